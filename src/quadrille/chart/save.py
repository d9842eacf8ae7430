"""Writing a chart to a file: a picture, a page or a specification."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from html import escape
from pathlib import Path

import vl_convert

from quadrille.chart.theme import Figure, as_png, require_files, specification
from quadrille.errors import InputError, OutputError
from quadrille.io.atomic import new_file

_OPTIONS = {"renderer": "svg", "actions": {"export": True, "source": False, "compiled": False, "editor": False}}
"""The menu saves pictures; it does not offer the online editor, which would send the data away."""

_POLICY = "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:"


_GLOBAL = "window.vegaEmbed = vegaEmbed;"


@cache
def runtime() -> str:
    """Return the script that draws charts (Vega), about 900 kB: put it once on a page, before `script`.

    Example
    -------
    >>> import quadrille as qd
    >>> qd.chart.runtime().startswith("<script>")
    True
    """
    require_files()
    return f"<script>{_safe(vl_convert.javascript_bundle(_GLOBAL))}</script>"


def place(name: str) -> str:
    """Return the place where `script` draws the chart of this name.

    Example
    -------
    >>> import quadrille as qd
    >>> qd.chart.place("Seed cloud")
    '<div class="chart" id="chart-seed-cloud"></div>'
    """
    return f'<div class="chart" id="{escape(_identity(name))}"></div>'


def script(charts: Mapping[str, Figure]) -> str:
    """Return the script that draws each chart in its place; it stands after `runtime` and after the places.

    Example
    -------
    >>> import polars as pl
    >>> import quadrille as qd
    >>> groups = pl.DataFrame({"size": ["1", "2+"], "order": [0, 1], "swapped": [0.1, 0.1], "records": [361, 48481]})
    >>> picture = qd.chart.who_was_swapped(groups)
    >>> qd.chart.script({"Who": picture}).startswith("<script>")
    True
    """
    if len({_identity(name) for name in charts}) < len(charts):
        raise InputError("Two charts have names that differ only in case or punctuation. Rename one of them.")
    specs = {_identity(name): specification(chart) for name, chart in charts.items()}
    draw = "for (const [id, spec] of Object.entries(specs)) vegaEmbed(document.getElementById(id), spec, options);"
    return f"<script>(() => {{ const specs = {_json(specs)}, options = {_json(_OPTIONS)}; {draw} }})();</script>"


def inline_html(charts: Mapping[str, Figure]) -> str:
    """Return the places of all charts, one after the other, and their script, without the runtime.

    Example
    -------
    >>> import polars as pl
    >>> import quadrille as qd
    >>> groups = pl.DataFrame({"size": ["1", "2+"], "order": [0, 1], "swapped": [0.1, 0.1], "records": [361, 48481]})
    >>> picture = qd.chart.who_was_swapped(groups)
    >>> qd.chart.inline_html({"Who": picture}).splitlines()[0]
    '<div class="chart" id="chart-who"></div>'
    """
    return "\n".join([*(place(name) for name in charts), script(charts)])


def page(chart: Figure) -> str:
    """Return a page with one chart that needs nothing else; the page forbids itself any request."""
    spec = specification(chart)
    head = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    title = escape(str(spec.get("title", {}).get("text", "Chart")))
    body = f"{runtime()}\n{inline_html({'chart': chart})}"
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}<title>{title}</title></head>\n<body>\n{body}\n</body></html>\n'
    )


def _identity(name: str) -> str:
    return "chart-" + (re.sub(r"\W+", "-", name.lower()).strip("-") or "0")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c").replace("\u2028", "\\u2028")


def _lines(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _safe(code: str) -> str:
    """Keep code from ending its script element, or from opening a comment there."""
    return re.sub(r"<(?=/script|!--)", r"\\x3c", code, flags=re.IGNORECASE)


def save(chart: Figure, path: str | Path) -> Path:
    """Write a chart; the suffix says how: .png, .svg, .html (a page that works by itself) or .json (Vega-Lite).

    The file appears whole or not at all. All but the PNG carry the data they show, not only a picture of them: they
    are readable by their owner only.

    Example
    -------
    >>> import tempfile
    >>> import polars as pl
    >>> import quadrille as qd
    >>> groups = pl.DataFrame({"size": ["1", "2+"], "order": [0, 1], "swapped": [0.1, 0.1], "records": [361, 48481]})
    >>> picture = qd.chart.who_was_swapped(groups)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     qd.chart.save(picture, f"{folder}/who.svg").name
    'who.svg'
    """
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in _WRITERS:
        raise OutputError(
            f"A chart cannot be saved as {path.name!r}. The suffix must be one of: {', '.join(_WRITERS)}."
        )
    with new_file(path, _WRITERS[kind](chart), private=kind != ".png"):
        pass
    return path


def _as_svg(chart: Figure) -> bytes:
    require_files()
    return vl_convert.vegalite_to_svg(specification(chart)).encode()


_WRITERS: dict[str, Callable[[Figure], bytes]] = {
    ".png": as_png,
    ".svg": _as_svg,
    ".html": lambda chart: page(chart).encode(),
    ".json": lambda chart: _lines(specification(chart)).encode(),
}
