"""Predicted against realised: the change of every cell that theory expects, and the one that a swap made."""

from __future__ import annotations

from typing import NamedTuple

import altair as alt
import polars as pl

from quadrille.chart import theme
from quadrille.chart.labels import names
from quadrille.chart.theme import GREY, HUES, INK, Range
from quadrille.chart.tidy import checked, defined, inline, thinned
from quadrille.errors import InputError
from quadrille.present.numbers import counted

_SIDE = 330
_LABELS = 6
_LIKELY, _FAR = 2.0, 4.0
_INSIDE, _OUTSIDE = "within 4 sd", "outside 4 sd"
_STATES = (_INSIDE, _OUTSIDE)
_READING = (
    "Each point is a cell. Left: on the dashed line {made} changed it just as predicted; the bar is the predicted "
    "change plus and minus 2 standard deviations{of}. Right: the difference in standard deviations; most points lie in "
    "the darker band (2), nearly all in the lighter one (4)."
)


class _Panel(NamedTuple):
    """A square area with a range and a title on each side."""

    titles: tuple[str, str]
    across: Range
    up: Range

    def x(self, field: str) -> alt.X:
        axis = alt.Axis(tickCount=5, labelOverlap=True)
        return alt.X(f"{field}:Q", title=self.titles[0], scale=theme.fixed(self.across), axis=axis)

    def y(self, field: str) -> alt.Y:
        axis = alt.Axis(tickCount=6)
        return alt.Y(f"{field}:Q", title=self.titles[1], scale=theme.fixed(self.up), axis=axis)

    def pixels(self, x: float, y: float) -> tuple[float, float]:
        (left, right), (low, high) = self.across, self.up
        return (x - left) / (right - left) * _SIDE, (high - y) / (high - low) * _SIDE

    def values(self, x: float, y: float) -> tuple[float, float]:
        (left, right), (low, high) = self.across, self.up
        return left + x / _SIDE * (right - left), high - y / _SIDE * (high - low)


def predicted_realised(cells: pl.DataFrame, *, draws: int = 1) -> alt.HConcatChart:
    """Draw the change that a swap made in each cell against the change that theory predicts for it.

    One row of `cells` is a cell: `label` (text), `bias` (number: the expected change), `sd` (number: its standard
    deviation), `realised` (number: the change that was made); rows without one are left out and counted. Cells
    further than 4 standard deviations from their prediction are flagged, and the six furthest are named. A cell that
    cannot vary (sd 0) is flagged when it is not exactly, to rounding, as predicted. Above 5,000 cells those that are
    not flagged are thinned. With several `draws`, `realised` is the mean change over them and `sd` that of the mean.

    Example
    -------
    >>> import polars as pl
    >>> import quadrille as qd
    >>> cells = pl.DataFrame({"label": ["<25, married", ">55, married"], "bias": [160.0, -51.9], "sd": [12.8, 12.1],
    ...     "realised": [168.0, -31.0]})
    >>> picture = qd.chart.predicted_realised(cells)
    >>> picture.to_dict()["title"]["text"]
    'Predicted and realised change of 2 cells'
    """
    columns = checked(
        cells, "predicted_realised", {"label": "text", "bias": "number", "sd": "number", "realised": "number"}
    )
    everyone, left_out = defined(columns, "predicted_realised", "bias", "sd", "realised")
    if (everyone["sd"] < 0).any():
        raise InputError("predicted_realised has a negative standard deviation. They are 0 or more.")
    everyone = _judged(everyone)
    shown = thinned(everyone, keep=pl.col("flagged"))
    figure = alt.hconcat(_changes(shown), _differences(shown), spacing=34)
    title = f"Predicted and realised change of {counted(everyone.height, 'cell')}"
    title += f", mean of {draws:,} draws" if draws > 1 else ""
    return theme.finish(figure, title, _reading(draws), _notes(everyone, shown.height, left_out))


def _reading(draws: int) -> str:
    if draws == 1:
        return _READING.format(made="the swap", of="")
    return _READING.format(made=f"the {draws:,} swaps together", of=" of a mean over so many draws")


def _judged(cells: pl.DataFrame) -> pl.DataFrame:
    """Add the difference in standard deviations, and whether it is too large; unknown where nothing can vary."""
    gap = pl.col("realised") - pl.col("bias")
    cells = cells.with_columns(
        z=pl.when(pl.col("sd") > 0).then(gap / pl.col("sd")),
        low=pl.col("bias") - _LIKELY * pl.col("sd"),
        high=pl.col("bias") + _LIKELY * pl.col("sd"),
    )
    off = gap.abs() > 1e-9 * pl.max_horizontal(pl.col("bias").abs(), pl.lit(1.0))
    flagged = pl.when(pl.col("sd") > 0).then(pl.col("z").abs() > _FAR).otherwise(off)
    cells = cells.with_columns(flagged=flagged)
    return cells.with_columns(state=pl.when("flagged").then(pl.lit(_OUTSIDE)).otherwise(pl.lit(_INSIDE)))


def _notes(cells: pl.DataFrame, shown: int, left_out: int) -> list[str]:
    known = cells.drop_nulls("z")
    flagged = cells.filter("flagged").height
    notes = [f"Outside 4 standard deviations: {flagged:,} of {cells.height:,}."]
    if known.height:
        share = known.filter(pl.col("z").abs() <= _LIKELY).height / known.height
        notes.append(f"Within 2: {100 * share:.0f} % (about 95 % are expected).")
    if known.height < cells.height:
        notes.append(f"Not on the right: {counted(cells.height - known.height, 'cell')} that cannot vary.")
    if flagged > _LABELS:
        notes.append(f"Named: the {_LABELS} furthest.")
    if shown < cells.height:
        notes.append(f"Shown: {shown:,}; points that are not flagged are thinned.")
    if left_out:
        notes.append(f"Left out: {counted(left_out, 'cell')} without a value.")
    return notes


def _changes(cells: pl.DataFrame) -> alt.LayerChart:
    """Draw realised against predicted change: one range for both, so that the line runs from corner to corner."""
    both = theme.extent([*cells["low"], *cells["high"], *cells["realised"]], 0.06)
    panel = _Panel(("Predicted change", "Realised change"), both, both)
    ends = pl.DataFrame({"low": [both[0]], "high": [both[1]]})
    line = alt.Chart(inline(ends)).mark_rule(strokeDash=[5, 4], color=INK, strokeWidth=1.1, opacity=0.7)
    bars = alt.Chart(inline(cells.select("bias", "low", "high"))).mark_rule(color=GREY, strokeWidth=4, opacity=0.45)
    layers = [
        line.encode(x=panel.x("low"), y=panel.y("low"), x2="high:Q", y2="high:Q"),
        bars.encode(x=panel.x("bias"), y=panel.y("low"), y2="high:Q"),
        *_dots(cells, panel, "realised"),
    ]
    return theme.layered(layers, _SIDE, _SIDE)


def _differences(cells: pl.DataFrame) -> alt.LayerChart:
    """Draw the differences in standard deviations, with the bands in which they are expected."""
    known = cells.drop_nulls("z")
    reach = max(_FAR + 1, *(abs(z) * 1.12 for z in known["z"])) if known.height else _FAR + 1
    across = theme.extent(known["bias"] if known.height else [0.0], 0.06)
    panel = _Panel(("Predicted change", "Realised - predicted, in standard deviations"), across, (-reach, reach))
    layers = [_zone(panel, _FAR, 0.10), _zone(panel, _LIKELY, 0.16), _zero(panel)]
    if known.height:
        layers += _dots(known, panel, "z")
        flagged = known.filter("flagged").sort(pl.col("z").abs(), "label", descending=[True, False])
        taken = [panel.pixels(*point) for point in known.select("bias", "z").iter_rows()]
        furthest = flagged.head(_LABELS).select("label", "bias", "z").iter_rows()
        layers += names(furthest, taken, panel, (_SIDE, _SIDE))
    return theme.layered(layers, _SIDE, _SIDE)


def _zone(panel: _Panel, half: float, opacity: float) -> alt.Chart:
    corners = pl.DataFrame({"left": [panel.across[0]], "right": [panel.across[1]], "low": [-half], "high": [half]})
    zone = alt.Chart(inline(corners)).mark_rect(color=HUES[0], opacity=opacity)
    return zone.encode(x=panel.x("left"), x2="right:Q", y=panel.y("low"), y2="high:Q")


def _zero(panel: _Panel) -> alt.Chart:
    ends = pl.DataFrame({"left": [panel.across[0]], "right": [panel.across[1]], "zero": [0.0]})
    line = alt.Chart(inline(ends)).mark_rule(strokeDash=[5, 4], color=INK, strokeWidth=1.1, opacity=0.7)
    return line.encode(x=panel.x("left"), x2="right:Q", y=panel.y("zero"))


def _dots(cells: pl.DataFrame, panel: _Panel, field: str) -> list[alt.Chart]:
    """Draw the points, flagged ones last, so that none hides below another."""
    hue = alt.Scale(domain=list(_STATES), range=[HUES[0], HUES[3]])
    form = alt.Scale(domain=list(_STATES), range=["circle", "diamond"])
    legend = alt.Legend(title=None, orient="bottom", direction="horizontal", symbolOpacity=1)
    columns = ["label", "bias", "sd", "realised", "z", "state"]
    return [
        alt.Chart(inline(cells.filter(pl.col("state") == state).select(columns)))
        .mark_point(filled=True, size=52, opacity=0.85, stroke="white", strokeWidth=0.6)
        .encode(
            x=panel.x("bias"),
            y=panel.y(field),
            color=alt.Color("state:N", scale=hue, legend=legend),
            shape=alt.Shape("state:N", scale=form, legend=legend),
            tooltip=["label:N", "bias:Q", "sd:Q", "realised:Q", "z:Q"],
        )
        for state in _STATES
    ]
