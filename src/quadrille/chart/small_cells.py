"""Small cells: how many there are, by size, before the swap and after."""

from __future__ import annotations

import altair as alt
import polars as pl

from quadrille.chart import theme
from quadrille.chart.theme import HUES, INK, PALE
from quadrille.chart.tidy import Kind, checked, defined, inline
from quadrille.errors import InputError, ParameterError

_WHEN = ["before", "after"]
_GENUINE = "after, genuine"
_RECORDS = "records in such cells"
_HUES = [PALE, HUES[5], HUES[0]]
_PANEL, _HEIGHT, _TEXT = 310, 320, 11
_READING = (
    "A cell is a combination of all key variables; a record alone in its cell, or nearly, can be recognised. "
    "A swap empties some small cells and fills others, so bars may rise: what counts is the dark part."
)
_ALONE = (
    "Small cells that are false protect, genuine ones do not, so the two are never shown as one: give the records in "
    "cells of that size after the swap that match a true one, the sum of min(f, g) that `exposed` counts."
)


def small_cells(cells: pl.DataFrame) -> alt.HConcatChart:
    """Draw bars of the cells of each small size, and of the records in them, before and after side by side.

    One row of `cells` is a size of cell before or after: `size` (1, 2, ...), `when` ("before" or "after"), `cells`,
    `records`, `genuine` (numbers). `genuine` counts the records after the swap that match a true one of the same
    combination (what `exposed` counts; the sum of min(f, g)); they are drawn inside the bars. Before the swap it
    may be null.

    Example
    -------
    >>> import polars as pl
    >>> import quadrille as qd
    >>> cells = pl.DataFrame({"size": [1, 1], "when": ["before", "after"], "cells": [361, 34], "records": [361, 34],
    ...     "genuine": [None, 34]})
    >>> picture = qd.chart.small_cells(cells)
    >>> picture.to_dict()["title"]["text"]
    'Small cells before and after the swap'
    """
    if "genuine" not in cells.columns:
        raise ParameterError(f"The frame for small_cells has no column 'genuine'. {_ALONE}")
    columns: dict[str, Kind] = {"size": "number", "when": "text", "cells": "number", "records": "number"}
    given = checked(cells, "small_cells", {**columns, "genuine": "number"})
    frame, _ = defined(given, "small_cells", "size", "cells", "records")
    if not set(frame["when"]) <= set(_WHEN):
        raise InputError("Column 'when' of the frame for small_cells must hold 'before' and 'after'.")
    if frame.filter(pl.col("when") == "after")["genuine"].has_nulls():
        raise ParameterError(f"Column 'genuine' of the frame for small_cells is empty in a row 'after'. {_ALONE}")
    frame = frame.sort("size", maintain_order=True).with_columns(size=pl.col("size").cast(pl.Int64).cast(pl.String))
    color = _color([*_WHEN, _GENUINE])
    left = _bars(frame, "cells", "cells of this size", color)
    right = [*_bars(frame, "records", _RECORDS, color), *_genuine(frame, color)]
    panels = [theme.layered(layers, _PANEL, _HEIGHT) for layers in (left, right)]
    figure = alt.hconcat(*panels, spacing=36)
    return theme.finish(figure, "Small cells before and after the swap", _READING)


def _color(series: list[str]) -> alt.Color:
    legend = alt.Legend(title=None, orient="top", direction="horizontal", symbolType="square", offset=8)
    return alt.Color("series:N", scale=alt.Scale(domain=series, range=_HUES), legend=legend)


def _base(frame: pl.DataFrame, field: str, title: str, top: float) -> alt.Chart:
    sizes = frame["size"].unique(maintain_order=True).to_list()
    x = alt.X("size:N", title="size of cell (records)", sort=sizes, axis=alt.Axis(labelAngle=0, ticks=False))
    scale = alt.Scale(domain=[0, 1.08 * top or 1], nice=False)
    y = alt.Y(f"{field}:Q", title=title, scale=scale, axis=alt.Axis(format=",.0f", tickCount=6, tickMinStep=1))
    offset = alt.XOffset("when:N", sort=_WHEN, scale=alt.Scale(domain=_WHEN))
    return alt.Chart(inline(frame)).encode(x=x, y=y, xOffset=offset)


def _bars(frame: pl.DataFrame, field: str, title: str, color: alt.Color) -> list[alt.Chart]:
    base = _base(frame.with_columns(series="when"), field, title, max(frame[field].drop_nulls(), default=0.0))
    layers = [base.mark_bar().encode(color=color, tooltip=["size:N", "when:N", "cells:Q", "records:Q"])]
    if _fits(frame, field):
        layers.append(base.mark_text(dy=-8, fontSize=_TEXT, color=INK).encode(text=alt.Text(f"{field}:Q", format=",")))
    return layers


def _genuine(frame: pl.DataFrame, color: alt.Color) -> list[alt.Chart]:
    after = frame.filter((pl.col("when") == "after") & pl.col("genuine").is_not_null())
    base = _base(
        after.with_columns(series=pl.lit(_GENUINE)),
        "genuine",
        _RECORDS,
        max(frame["records"].drop_nulls(), default=0.0),
    )
    layers = [base.mark_bar().encode(color=color, tooltip=["size:N", "genuine:Q", "records:Q"])]
    if _fits(after, "genuine"):
        text = alt.Text("genuine:Q", format=",")
        layers.append(base.mark_text(dy=9, fontSize=_TEXT, color="white").encode(text=text))
    return layers


def _fits(frame: pl.DataFrame, field: str) -> bool:
    """Whether the numbers are narrower than the bars."""
    bar = _PANEL / frame["size"].n_unique() * 0.8 / 2
    return all(theme.text_width(f"{value:,.0f}", _TEXT) < bar for value in frame[field].drop_nulls())
