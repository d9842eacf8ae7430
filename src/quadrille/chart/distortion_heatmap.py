"""The distortion heatmap: which pairs of variables a release changes most."""

from __future__ import annotations

import math

import altair as alt
import polars as pl

from quadrille.chart import n_rule, theme
from quadrille.chart.theme import INK
from quadrille.chart.tidy import checked, inline
from quadrille.errors import InputError

_NUMBERS_UP_TO = 12
_WIDEST, _NARROWEST, _SIDE = 56, 9, 560
_UNDEFINED, _EDGE = "#d5d5d5", "#e4e4e4"
_TOOLTIP = ["first:N", "second:N", "value:Q"]
_DARK = 0.6


def distortion_heatmap(pairs: pl.DataFrame, *, measure: str) -> alt.LayerChart:
    """Draw a square matrix of variables; the darker a cell, the more the two variables' table has changed.

    One row of `pairs` is a pair of variables: `first`, `second` (text), `value` (number; null where the measure is
    undefined). A pair given in one order is drawn in both. Variables keep the order they first appear in. The scale
    runs from 0, or symmetrically around 0 when any value is negative. Up to 12 variables the values are printed.
    The n-rule (`small_cells`) is refused: the matrix has no place for `exposed` beside it.

    Example
    -------
    >>> import polars as pl
    >>> import quadrille as qd
    >>> pairs = pl.DataFrame({"first": ["Age", "Age"], "second": ["Sex", "Race"], "value": [0.004, 0.0]})
    >>> picture = qd.chart.distortion_heatmap(pairs, measure="hellinger(2-way)")
    >>> picture.to_dict()["title"]["text"]
    'What changed between pairs of variables: hellinger(2-way)'
    """
    if n_rule.is_n_rule(measure):
        raise n_rule.refusal("distortion_heatmap", measure, "A heatmap has no place for it: draw exposed by itself.")
    given = checked(pairs, "distortion_heatmap", {"first": "text", "second": "text", "value": "number"})
    given = given.unique(["first", "second"], keep="first", maintain_order=True)
    names = pl.concat([given["first"].rename("name"), given["second"].rename("name")]).unique(maintain_order=True)
    values: list[float] = given["value"].drop_nulls().to_list()
    if given.filter(pl.col("first") != pl.col("second")).is_empty():
        raise InputError("There is nothing to draw: the frame for distortion_heatmap has no pair of two variables.")
    most = max((abs(value) for value in values), default=0.0)
    signed = min(values, default=0.0) < 0
    cells = _cells(given, most)
    figure = _matrix(cells, names.to_list(), _scale(most, signed=signed), measure)
    reading = "Each cell is a pair of variables. " + (
        "Orange: above zero; blue: below zero; white: no change. The stronger the colour, the larger the change."
        if signed
        else "The darker a cell, the more the table of the two variables has changed; white: not at all."
    )
    undefined = cells["value"].is_null().any()
    notes = ["A grey cell is undefined."] if undefined else []
    return theme.finish(figure, f"What changed between pairs of variables: {measure}", reading, notes)


def _cells(given: pl.DataFrame, most: float) -> pl.DataFrame:
    """Return both triangles, with the text of each cell and whether it must be light on dark."""
    mirrored = given.select(first="second", second="first", value="value")
    both = pl.concat([given, mirrored]).unique(["first", "second"], keep="first", maintain_order=True)
    both = both.filter(pl.col("value").is_not_null() | (pl.col("first") != pl.col("second")))
    decimals = _decimals(most)
    texts = [_printed(value, decimals) for value in both["value"]]
    return both.with_columns(
        pl.Series("text", texts, dtype=pl.String),
        dark=(pl.col("value").abs() > _DARK * most).fill_null(False),
    )


def _decimals(most: float) -> int:
    """Return how many decimals show the largest value with two digits."""
    return min(max(1 - math.floor(math.log10(most)), 0), 6) if most else 0


def _printed(value: float | None, decimals: int) -> str:
    if value is None:
        return "–"
    return "0" if value == 0 else f"{value:,.{decimals}f}".replace("-", "−")


def _scale(most: float, *, signed: bool) -> alt.Scale:
    top = most or 1.0
    if signed:
        stops = [-top, -top / 2, 0, top / 2, top]
        return alt.Scale(domain=stops, range=["#08519c", "#6baed6", "#ffffff", "#fd8d3c", "#a63603"], interpolate="rgb")
    stops = [0, top / 3, top * 2 / 3, top]
    return alt.Scale(domain=stops, range=["#ffffff", "#9ecae1", "#4292c6", "#08306b"], interpolate="rgb")


def _matrix(cells: pl.DataFrame, names: list[str], scale: alt.Scale, measure: str) -> alt.LayerChart:
    step = min(max(_SIDE // len(names), _NARROWEST), _WIDEST)
    size = max(min(12, step), 8)
    angle = -90 if max(theme.text_width(name) for name in names) > step else 0
    above = alt.Axis(
        orient="top", labelAngle=angle, labelFontSize=size, ticks=False, domain=False, labelLimit=160, labelPadding=6
    )
    beside = alt.Axis(labelFontSize=size, ticks=False, domain=False, labelLimit=160, labelPadding=6)
    x = alt.X("second:N", title=None, sort=names, scale=alt.Scale(domain=names), axis=above)
    y = alt.Y("first:N", title=None, sort=names, scale=alt.Scale(domain=names), axis=beside)
    known, unknown = cells.drop_nulls("value"), cells.filter(pl.col("value").is_null())
    color = alt.Color("value:Q", scale=scale, legend=alt.Legend(title=measure, gradientLength=200, titleLimit=220))
    squares = alt.Chart(inline(known)).mark_rect(stroke=_EDGE).encode(x=x, y=y, color=color, tooltip=_TOOLTIP)
    blanks = alt.Chart(inline(unknown)).mark_rect(stroke=_EDGE, color=_UNDEFINED).encode(x=x, y=y)
    layers = [squares, blanks]
    if len(names) <= _NUMBERS_UP_TO:
        ink = alt.when(alt.datum.dark).then(alt.value("white")).otherwise(alt.value(INK))
        numbers = alt.Chart(inline(cells.drop("value"))).mark_text(fontSize=12)
        layers.append(numbers.encode(x=x, y=y, text="text:N", color=ink))
    side = step * len(names)
    return theme.layered(layers, side, side)
