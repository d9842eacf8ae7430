"""Turns the formulas of a page, written in TeX between dollar signs, into MathML while the site is built.

MathML is drawn by the browser itself, with no script and nothing from elsewhere. mkdocs.yml loads this file as a hook;
`pymdownx.arithmatex` finds the formulas and leaves dollar signs in code, consoles and prices alone.
"""

from __future__ import annotations

import html
import re
from itertools import pairwise
from xml.etree.ElementTree import Element, tostring

from latex2mathml.converter import convert_to_element

_BLOCK = re.compile(r'<div class="arithmatex">\\\[(.*?)\\\]</div>', re.DOTALL)
_INLINE = re.compile(r'(\(?)<span class="arithmatex">\\\((.*?)\\\)</span>([.,;:!?)]*)', re.DOTALL)
_TAG = re.compile(r"\s*\\tag\{(\w+)\}")
_LIMITS = {"∑", "∏", "min", "max"}
_UNDER = {"msub": "munder", "msup": "mover", "msubsup": "munderover"}
_SCRIPTS = {*_UNDER, *_UNDER.values()}
_PARTS = {"mfrac": 2, "mroot": 2, "msub": 2, "msup": 2, "msubsup": 3, "munder": 2, "mover": 2, "munderover": 3}
_ROWS = {"math", "mrow", "mtd"}
_ACCENTS = {"^": "ˆ", "~": "˜", "¯": "‾"}
_SIGNS = {"−", "+", "±"}
_CLOSING = {")", "]", "}", "|", "!"}


class FormulaError(ValueError):
    """A formula that has no MathML: the build stops instead of printing something else."""


def on_page_content(content: str, page: object = None, **_: object) -> str:
    """Replace every formula of a page.

    >>> on_page_content('<p>An <span class="arithmatex">\\\\(x\\\\)</span> here</p>')
    '<p>An <math display="inline"><mrow><mi>x</mi></mrow></math> here</p>'
    """
    where = getattr(getattr(page, "file", None), "src_uri", "the page")

    try:
        content = _BLOCK.sub(lambda found: _displayed(html.unescape(found[1]).strip()), content)
        return _INLINE.sub(lambda found: _in_line(found[1], html.unescape(found[2]).strip(), found[3]), content)
    except FormulaError as error:
        raise FormulaError(f"{where}: {error}") from None


def to_mathml(tex: str, *, block: bool = False) -> str:
    """Return TeX as MathML that a browser draws as TeX would.

    >>> to_mathml("a_b")
    '<math display="inline"><mrow><msub><mi>a</mi><mi>b</mi></msub></mrow></math>'
    """
    source = tex.replace("{aligned}", "{split}")  # the same thing, by the name that the converter knows
    try:
        root = convert_to_element(source, display="block" if block else "inline")
    except Exception as error:
        raise FormulaError(f"cannot typeset {tex!r} ({type(error).__name__})") from None
    root.attrib.pop("xmlns", None)
    for element in root.iter():
        element.text = html.unescape(element.text or "")  # the converter writes &#x0003D; for =
    if any(len(element) != _PARTS.get(element.tag, len(element)) for element in root.iter()):
        raise FormulaError(f"cannot typeset {tex!r}: a part of a fraction, a root or a script is missing")
    for element in list(root.iter()):
        _modernise(element)
        _close_up(element)
        _name_functions(element)
    if left := [text for text in root.itertext() if "\\" in text or text == "&"]:
        raise FormulaError(f"cannot typeset {left[0]!r} in {tex!r}")
    return tostring(root, encoding="unicode", short_empty_elements=False)


def _in_line(before: str, tex: str, after: str) -> str:
    """Return a formula within a sentence; brackets and points beside it stay on its line."""
    math = to_mathml(tex)
    return f'<span class="in-line">{before}{math}{after}</span>' if before or after else math


def _displayed(tex: str) -> str:
    """Return a formula in a line of its own that scrolls by itself, with its number beside it."""
    number = _TAG.search(tex)
    math = to_mathml(_TAG.sub("", tex), block=True)
    beside = f"<span>({number[1]})</span>" if number else ""
    return f'<div class="formula"><div tabindex="0">{math}</div>{beside}</div>'


def _modernise(element: Element) -> None:
    """Say in the part of MathML that browsers know what the converter says in the part they dropped."""
    if (side := element.attrib.pop("columnalign", None)) is not None:
        element.set("class", side)
    for name in ("columnspacing", "rowspacing"):
        element.attrib.pop(name, None)
    if element.tag == "mi" and set(element.text or "") == {"′"}:
        element.tag = "mo"
    if element.tag == "mi" and "Α" <= (element.text or "") <= "Ω":  # Greek capitals are upright in TeX
        element.set("mathvariant", "normal")
    if element.tag == "mover" and (accent := _ACCENTS.get(element[-1].text or "")):
        element[-1].text = accent
        element[-1].set("stretchy", "false")
        if accent != "‾":  # a bar keeps its distance
            element.set("accent", "true")
    if element.tag in _SCRIPTS and element[0].text in _LIMITS:
        element.tag = _UNDER.get(element.tag, element.tag)
        element[0].attrib.update(movablelimits="true", lspace="0", rspace="0.167em")


def _close_up(element: Element) -> None:
    """Take away the spaces around slashes and bars, operators in scripts, and signs that follow an operator."""
    tight = [mark for mark in element.findall("mo") if mark.text in ("/", "|")]
    if element.tag in _SCRIPTS:
        tight += [mark for script in element[1:] for mark in script.iter("mo")]
    for mark in tight:
        mark.attrib.update(lspace="0", rspace="0", stretchy=mark.get("stretchy", "false"))
    for before, sign in pairwise(element):
        opening = before.tag == "mo" and before.text not in _CLOSING
        if sign.text in _SIGNS and opening:
            sign.attrib.update(form="prefix", lspace="0", rspace="0")


def _name_functions(element: Element) -> None:
    """Make names such as Var, ln and min upright words with a thin space around them, none before a bracket."""
    if element.tag not in _ROWS:
        return
    for place in reversed(range(len(element))):
        name = element[place]
        base = name if name.tag in ("mo", "mi") else None
        if base is None or not (base.text or "").isalpha() or (base.tag == "mi" and len(base.text or "") < 2):
            continue
        base.tag = "mi"
        base.set("mathvariant", "normal")
        after = element[place + 1] if place + 1 < len(element) else None
        if after is not None and after.tag not in ("mo", "mspace"):
            element.insert(place + 1, Element("mspace", width="0.167em"))
        before = element[place - 1] if place else None
        if before is not None and before.tag not in ("mo", "mspace", "mtext") and (len(before) or before.text):
            element.insert(place, Element("mspace", width="0.167em"))
