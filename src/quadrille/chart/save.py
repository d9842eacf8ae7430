"""Writing a chart to a file: a picture, a page or a specification."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import vl_convert

from quadrille.chart.html import page
from quadrille.chart.theme import Figure
from quadrille.errors import OutputError
from quadrille.io.atomic import new_file

_SCALE = 2.0


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


def _png(chart: Figure) -> bytes:
    return vl_convert.vegalite_to_png(chart.to_dict(), scale=_SCALE)


def _svg(chart: Figure) -> bytes:
    return vl_convert.vegalite_to_svg(chart.to_dict()).encode()


def _html(chart: Figure) -> bytes:
    return page(chart).encode()


def _json(chart: Figure) -> bytes:
    return (json.dumps(chart.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


_WRITERS: dict[str, Callable[[Figure], bytes]] = {".png": _png, ".svg": _svg, ".html": _html, ".json": _json}
