"""Formulas of the site: TeX becomes MathML while it is built; dollar signs that are no formulas stay as they are."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from xml.etree.ElementTree import Element, fromstring

import markdown
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
try:
    from site_formulas import FormulaError, on_page_content, to_mathml
finally:
    sys.path.pop(0)

METHODS = (
    "random-swapping",
    "controlled-swapping",
    "swap-error",
    "predicted-frontier",
    "geography",
    "areas",
    "designed-swapping",
    "searching",
    "before-and-after",
    "simulating-swaps",
)
DERIVATIONS = ("moments", "expected", "correction", "prediction", "bound", "private", "ranks")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PAGES = (*METHODS, *(f"derivations/{name}" for name in DERIVATIONS))


class _Loader(yaml.SafeLoader):
    """Reads mkdocs.yml, whatever tags it has."""


def _extensions() -> tuple[list[str], dict[str, dict[str, object]]]:
    """Return the Markdown extensions of the site and their options."""
    listed = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), _Loader)["markdown_extensions"]
    options = {name: given for each in listed if isinstance(each, dict) for name, given in each.items()}
    return [each if isinstance(each, str) else next(iter(each)) for each in listed], options


def shown(text: str) -> str:
    """Return a page as the site shows it."""
    names, options = _extensions()
    return on_page_content(markdown.markdown(text, extensions=names, extension_configs=options))


def page(name: str) -> str:
    """Return the text of a page; that of a derivation stands next to the code that it justifies."""
    text = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    included = re.fullmatch(r'--8<-- "(.+)"\n', text)
    return (ROOT / "src/quadrille/theory" / included[1]).read_text(encoding="utf-8") if included else text


def without_code(text: str) -> str:
    return re.sub(r"`[^`]*`", "", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def test_a_formula_in_a_sentence_keeps_the_point_that_ends_it() -> None:
    assert shown("Here $a_b$.") == (
        '<p>Here <span class="in-line"><math display="inline"><mrow><msub><mi>a</mi><mi>b</mi></msub></mrow></math>.'
        "</span></p>"
    )


def test_a_formula_in_a_line_of_its_own_scrolls_by_itself_and_its_number_stays() -> None:
    found = shown("Here\n\n$$\nx = 1. \\tag{7}\n$$\n")
    assert '<div class="formula"><div tabindex="0"><math display="block">' in found
    assert found.count("(7)") == 1 and "</div><span>(7)</span></div>" in found and "\\tag" not in found


@pytest.mark.parametrize(
    "text",
    [
        "It costs $5 or $6, and $10 more.",
        "Use `$HOME` and `$PATH`.",
        "```console\n$ quadrille search job.toml\n$ quadrille pick study\n```",
        "    $ ls\n    $ ls -l\n",
        "| a | b |\n|---|---|\n| $5 | $6 |\n",
        r"A sign \$x\$ that is escaped.",
    ],
)
def test_dollar_signs_that_are_no_formulas_are_left_alone(text: str) -> None:
    found = shown(text)
    assert "<math" not in found and found.count("$") == text.count("$")


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_prices_are_never_formulas(one: int, other: int) -> None:
    assert "<math" not in shown(f"Between ${one} and ${other} a year.")


@pytest.mark.parametrize("tex", [r"\begin{matrix} a & b", r"a & b", r"\nosuchcommand{x}", r"\frac{1}", r"\left( x"])
def test_a_formula_without_mathml_stops_the_build(tex: str) -> None:
    with pytest.raises(FormulaError, match="cannot typeset"):
        to_mathml(tex)
    with pytest.raises(FormulaError, match="cannot typeset"):
        shown(f"Here\n\n$$\n{tex}\n$$\n")


def _tree(tex: str, *, block: bool = True) -> Element:
    return fromstring(to_mathml(tex, block=block))


def test_limits_stand_below_sums_and_minima() -> None:
    sums = _tree(r"\sum_{a < b} m_{ab} + \min_g x").findall(".//munder")
    assert [each[0].text for each in sums] == ["∑", "min"]
    assert all(each[0].get("movablelimits") == "true" for each in sums)


def test_named_operators_are_upright_words_with_a_space_before_what_they_act_on() -> None:
    row = _tree(r"\operatorname{Var} X' = 2 \ln(x)").find("mrow")
    assert row is not None
    assert [(each.tag, each.text) for each in row][:2] == [("mi", "Var"), ("mspace", None)]
    assert [each.get("mathvariant") for each in row.findall("mi")] == ["normal", "normal", None]
    assert row[-4].text == "ln" and row[-3].text == "("


def test_lines_are_aligned_by_classes_because_browsers_dropped_the_attribute() -> None:
    cells = _tree(r"\begin{aligned} a &= b \\ c &= d \end{aligned}").findall(".//mtd")
    assert [each.get("class") for each in cells] == ["right", "left"] * 2
    assert not any("columnalign" in each.attrib for each in cells)


def test_a_sign_after_another_operator_belongs_to_what_follows() -> None:
    signs = [each for each in _tree("a = -b - c").iter("mo") if each.text == "−"]
    assert [each.get("form") for each in signs] == ["prefix", None]


@given(st.text("abcxyz0123456789+-=<>(),/ ", min_size=1, max_size=30).filter(str.strip))
def test_plain_expressions_keep_every_character(text: str) -> None:
    drawn = "".join(_tree(text, block=False).itertext()).replace("−", "-").replace("\xa0", "")
    assert drawn == text.replace(" ", "")


@pytest.mark.parametrize("name", PAGES)
def test_every_formula_of_a_page_becomes_mathml(name: str) -> None:
    text = page(name)
    written = without_code(text).count("$") - 2 * without_code(text).count("$$")
    found = shown(text)
    assert found.count("<math") == text.count("\n$$\n") // 2 + text.count("\n    $$\n") // 2 + written // 2
    assert "arithmatex" not in found and written % 2 == 0
    for formula in re.findall(r"<math.*?</math>", found, flags=re.DOTALL):
        fromstring(formula)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_page_has_formulas_and_dated_references(name: str) -> None:
    text = page(name)
    listed = text.partition("\n## References\n")[2]
    assert "\n$$\n" in text and listed and "\n## " not in listed
    entries = re.findall(r"^- (.*(?:\n  .*)*)", listed, flags=re.MULTILINE)
    assert entries and all(re.search(r"\((?:19|20)\d\d\), \S", entry) for entry in entries)


@pytest.mark.parametrize("name", PAGES)
def test_the_numbers_of_the_formulas_of_a_page_count_up(name: str) -> None:
    numbers = [int(number) for number in re.findall(r"\\tag\{(\d+)\}", page(name))]
    assert numbers == list(range(1, len(numbers) + 1))


def test_no_page_sends_its_reader_into_the_sources_for_a_formula() -> None:
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")]
    assert len(pages) > 40 and not any(re.search(r"src/quadrille/theory/\S*\.md", text) for text in pages)


def test_every_derivation_stands_next_to_its_code_once_and_is_a_page_of_the_site() -> None:
    theory = ROOT / "src/quadrille/theory"
    assert {path.stem for path in theory.glob("*.md")} == set(DERIVATIONS)
    for name in DERIVATIONS:
        intro = re.search(r"^Code.*?\n\n", page(f"derivations/{name}"), flags=re.MULTILINE | re.DOTALL)
        named = re.findall(r"`([\w/]+\.py)`", intro[0]) if intro else []
        assert named and all((ROOT / each).is_file() or (theory / each).is_file() for each in named), name
        assert len(page(f"derivations/{name}")) > 1000


def test_the_font_of_the_formulas_comes_with_the_site_and_its_licence() -> None:
    assets = ROOT / "docs/assets"
    style = (assets / "formulas.css").read_text(encoding="utf-8")
    addresses = re.findall(r"url\(([^)]*)\)", style)
    assert addresses == ['"stix-two-math.woff2"'] and (assets / "stix-two-math.woff2").read_bytes()[:4] == b"wOF2"
    assert "SIL OPEN FONT LICENSE" in (assets / "stix-two-math-license.txt").read_text(encoding="utf-8")


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found: apt-get install chromium")
def test_on_a_phone_formulas_are_drawn_in_their_font_and_only_they_scroll(tmp_path: Path) -> None:
    from playwright.sync_api import sync_playwright

    style = (ROOT / "docs/assets/formulas.css").as_uri()
    body = shown("\n\n".join(page(name) for name in ("swap-error", "derivations/bound")))
    top = f'<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="{style}">'
    rest = "<style>body { margin: 16px } pre, table { display: block; overflow: auto; max-width: 358px }</style>"
    file = tmp_path / "page.html"
    file.write_text(f'{top}{rest}<body class="md-typeset">{body}</body>', encoding="utf-8")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        phone = browser.new_context(offline=True, viewport={"width": 390, "height": 800}).new_page()
        phone.goto(file.as_uri())
        phone.evaluate("document.fonts.ready")
        assert phone.evaluate("[...document.fonts].every(font => font.status == 'loaded')")
        assert phone.evaluate("document.documentElement.scrollWidth") <= 390
        wide = "[...document.querySelectorAll('.formula > div')].filter(part => part.scrollWidth > part.clientWidth)"
        assert phone.evaluate(f"{wide}.length") > 2
        flat = "[...document.querySelectorAll('math')].filter(each => each.getBoundingClientRect().height < 5).length"
        assert phone.evaluate(flat) == 0
        browser.close()
