"""Writes the tables of parameters in docs/: of every recipe, of the options of measures and of policy files.

    .venv/bin/python tools/parameter_tables.py

A page has a table between `<!-- parameters of NAME -->` and `<!-- end of parameters -->`, where NAME is a recipe,
`measures` or `policy`. All words come from the declarations in the code, so a table cannot differ from them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from quadrille import params
from quadrille.measure import MEASURES
from quadrille.params import Param
from quadrille.recipe import find_method
from quadrille.release.policy import SECTIONS, Limits

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
_BLOCK = re.compile(r"(<!-- parameters of (\w+) -->\n).*?(<!-- end of parameters -->)", re.DOTALL)
_KINDS = {
    "columns": "columns",
    "column sets": "sets of columns",
    "column": "a column",
    "rules": "conditions",
    "flag": "true or false",
    "links": "`{column: [columns]}`",
    "weights": "`{name: number}`",
    "losses": "a measure, or `{measure: weight}`",
    "seed": "64 hexadecimal digits, or a whole number",
    "text": "a text",
}


def pages() -> dict[Path, str]:
    """Return every page with such a table, as it must be."""
    texts = {page: page.read_text(encoding="utf-8") for page in sorted(DOCS.rglob("*.md"))}
    return {page: _BLOCK.sub(_filled, text) for page, text in texts.items() if _BLOCK.search(text)}


def _filled(block: re.Match[str]) -> str:
    return f"{block[1]}\n{table(block[2])}\n\n{block[3]}"


def table(name: str) -> str:
    """Return the table of a recipe, of the options of measures, or of policy files."""
    if name == "policy":
        return _table(("rule", "values", "left out", "meaning"), _policy())
    if name == "measures":
        return _table(("measure", "option", "left out", "meaning"), _options())
    rows = ((f"`{param.name}`", *_cells(param)) for param in find_method(name).params().values())
    return _table(("parameter", "values", "default", "meaning"), rows)


def _policy() -> Iterator[tuple[str, ...]]:
    for section, settings in SECTIONS.items():
        for param in settings:
            yield (f"`[{section}]` `{param.written}`", *_cells(param))
    any_measure = "any address of a measure, as in `quadrille measures`, with its limits"
    yield "`[measures]` an address", _values(Limits(margin=0.0)), "none", any_measure


def _options() -> Iterator[tuple[str, ...]]:
    """Return a row per option; measures that share one share the row."""
    shared: dict[Param, list[str]] = {}
    for measure in MEASURES.values():
        for param in measure.declares:
            shared.setdefault(param, []).append(f"`{measure.name}`")
    for param, names in shared.items():
        yield ", ".join(names), f"`{param.name}`", _default(param), _marked(param.help)


def _cells(param: Param) -> tuple[str, str, str]:
    return _values(param), _default(param), _marked(param.help)


def _values(param: Param) -> str:
    """Say which values there are."""
    if isinstance(param, params.Word):
        number = [f"a whole number of {param.least} or more"] if isinstance(param, params.WordOrCount) else []
        return ", ".join([*(f"`{word}`" for word in param.words), *number])
    if isinstance(param, params.Number):
        limits = "of 0 or more" if param.within == "[0, inf)" else f"in {param.within}"
        return f"a number {limits}" + (", or a column" if param.or_column else "")
    if isinstance(param, Limits):
        return "`{" + ", ".join(f"{part.name} = ..." for part in param.parts()) + "}`"
    if isinstance(param, params.UpTo):
        return f"a whole number from {param.least:,} to {param.most:,}"
    if isinstance(param, params.Count):
        return f"a whole number of {param.least} or more"
    return f"a list of {_marked(param.what)}" if isinstance(param, params.Texts) else _KINDS.get(param.kind, param.kind)


def _default(param: Param) -> str:
    if param.required or param.otherwise:
        return "*needed*" if param.required else param.otherwise
    if isinstance(param.default, bool):
        return str(param.default).lower()
    return "none" if param.default in (None, ()) else f"`{param.default}`"


def _marked(text: str) -> str:
    """Return text as Markdown that reads the same: signs escaped, but for what is code already.

    >>> _marked("A*B, as in `A*B`")
    'A\\\\*B, as in `A*B`'
    """
    parts = text.split("`")
    for at in range(0, len(parts), 2):
        parts[at] = re.sub(r"([*|\\])", r"\\\1", parts[at]).replace("&", "&amp;").replace("<", "&lt;")
    return "`".join(parts)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines).replace("|  |", "| |")


if __name__ == "__main__":
    for page, text in pages().items():
        page.write_text(text, encoding="utf-8")
        sys.stdout.write(f"Wrote {page.relative_to(ROOT)}.\n")
