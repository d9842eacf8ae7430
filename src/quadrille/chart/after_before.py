"""After against before: every estimate as a point, with the line on which nothing has changed."""

from __future__ import annotations

from typing import NamedTuple

import altair as alt
import polars as pl

from quadrille.chart import theme
from quadrille.chart.labels import names
from quadrille.chart.theme import HUES, INK, Range
from quadrille.chart.tidy import checked, defined, inline, thinned
from quadrille.present.numbers import counted

_SIDE, _ACROSS = 300, 3
_TEXT, _LABELS = 11, 6
_EDGE, _LEVEL = 4.0, 7.0
_SAME, _FLAGGED = "within the limits", "flagged"
_HUE = {_SAME: HUES[0], _FLAGGED: HUES[3]}
_SHAPE = {_SAME: "circle", _FLAGGED: "diamond"}


class _Square(NamedTuple):
    """One panel: the same range up and across, so that the line of no change is the diagonal."""

    kind: str
    range: Range

    def x(self, field: str) -> alt.X:
        axis = alt.Axis(tickCount=5, labelOverlap=True)
        return alt.X(f"{field}:Q", title=f"{self.kind}, before", scale=theme.fixed(self.range), axis=axis)

    def y(self, field: str) -> alt.Y:
        axis = alt.Axis(tickCount=5)
        return alt.Y(f"{field}:Q", title=f"{self.kind}, after", scale=theme.fixed(self.range), axis=axis)

    def pixels(self, before: float, after: float) -> tuple[float, float]:
        low, high = self.range
        return (before - low) / (high - low) * _SIDE, (high - after) / (high - low) * _SIDE

    def values(self, x: float, y: float) -> tuple[float, float]:
        low, high = self.range
        return low + x / _SIDE * (high - low), high - y / _SIDE * (high - low)


def after_before(estimates: pl.DataFrame) -> alt.VConcatChart:
    """Draw the estimates after the swap against those before, a panel per kind, with the 45 degree line.

    One row of `estimates` is an estimate: `kind` (text, such as "percents", "means of score", "correlations"),
    `label` (text), `before`, `after` (numbers; rows without one are left out and counted), `flagged` (true or false).
    Kinds keep the order they first appear in. Flagged points are marked, and the six of a panel that are furthest
    from the line are named. Above 5,000 points those that are not flagged are thinned.

    Example
    -------
    >>> import polars as pl
    >>> import quadrille as qd
    >>> estimates = pl.DataFrame({"kind": ["percents"] * 3, "label": ["age <25", "25-55", ">55"],
    ...     "before": [17.3, 68.7, 14.0], "after": [17.3, 68.5, 15.9], "flagged": [False, False, True]})
    >>> picture = qd.chart.after_before(estimates)
    >>> picture.to_dict()["title"]["text"]
    '3 estimates after the swap against before'
    """
    columns = checked(
        estimates,
        "after_before",
        {"kind": "text", "label": "text", "before": "number", "after": "number", "flagged": "flag"},
    )
    everyone, left_out = defined(columns, "after_before", "before", "after")
    gap = (pl.col("after") - pl.col("before")).abs()
    state = pl.when("flagged").then(pl.lit(_FLAGGED)).otherwise(pl.lit(_SAME))
    everyone = everyone.with_columns(gap=gap, state=state)
    shown = thinned(everyone, keep=pl.col("flagged"))
    kinds = everyone["kind"].unique(maintain_order=True).to_list()
    panels = [_panel(shown.filter(pl.col("kind") == kind), kind) for kind in kinds]
    across = 2 if len(panels) == _ACROSS + 1 else _ACROSS
    rows = [alt.hconcat(*row, spacing=24) for row in (panels[i : i + across] for i in range(0, len(panels), across))]
    reading = (
        "Each point is an estimate. On the dashed line it is the same after the swap as before; the further from the "
        "line, the more it has changed. Orange diamonds are flagged: look at these first."
    )
    title = f"{counted(everyone.height, 'estimate')} after the swap against before"
    return theme.finish(alt.vconcat(*rows, spacing=24), title, reading, _notes(everyone, shown.height, left_out))


def _notes(everyone: pl.DataFrame, shown: int, left_out: int) -> list[str]:
    flagged = everyone.filter("flagged")
    notes = [f"Flagged: {flagged.height:,} of {everyone.height:,}."]
    if max(flagged.group_by("kind").len()["len"], default=0) > _LABELS:
        notes.append(f"Named: in each panel the {_LABELS} flagged ones that changed most.")
    if shown < everyone.height:
        notes.append(f"Shown: {shown:,}; points that are not flagged are thinned.")
    if left_out:
        notes.append(f"Left out: {counted(left_out, 'estimate')} without a value before and after.")
    return notes


def _panel(points: pl.DataFrame, kind: str) -> alt.LayerChart:
    square = _Square(kind, theme.extent([*points["before"], *points["after"]], 0.06))
    plain, flagged = points.filter(~pl.col("flagged")), points.filter("flagged")
    layers = [_diagonal(square), _dots(plain, square), _dots(flagged, square)]
    if not flagged.is_empty():
        layers += _names(flagged, points, square)
    return theme.layered(layers, _SIDE, _SIDE)


def _diagonal(square: _Square) -> alt.Chart:
    low, high = square.range
    ends = pl.DataFrame({"low": [low], "high": [high]})
    line = alt.Chart(inline(ends)).mark_rule(strokeDash=[5, 4], color=INK, strokeWidth=1.1, opacity=0.7)
    return line.encode(x=square.x("low"), y=square.y("low"), x2="high:Q", y2="high:Q")


def _dots(points: pl.DataFrame, square: _Square) -> alt.Chart:
    states = list(_HUE)
    hue = alt.Scale(domain=states, range=[_HUE[state] for state in states])
    form = alt.Scale(domain=states, range=[_SHAPE[state] for state in states])
    legend = alt.Legend(title=None, orient="bottom", direction="horizontal", symbolOpacity=1)
    return (
        alt.Chart(inline(points.select("label", "before", "after", "state")))
        .mark_point(filled=True, size=48, opacity=0.75, stroke="white", strokeWidth=0.6)
        .encode(
            x=square.x("before"),
            y=square.y("after"),
            color=alt.Color("state:N", scale=hue, legend=legend),
            shape=alt.Shape("state:N", scale=form, legend=legend),
            tooltip=["label:N", "before:Q", "after:Q"],
        )
    )


def _names(flagged: pl.DataFrame, points: pl.DataFrame, square: _Square) -> list[alt.Chart]:
    """Name the flagged points where the text covers no point, with a line from each to its name."""
    taken = [square.pixels(*point) for point in points.select("before", "after").iter_rows()]
    worst = flagged.sort("gap", "label", descending=[True, False]).head(_LABELS)
    named = ((_short(label), x, y) for label, x, y in worst.select("label", "before", "after").iter_rows())
    return names(named, taken, square, (_SIDE, _SIDE))


def _short(label: str, most: int = 34) -> str:
    return label if len(label) <= most else label[: most - 1].rstrip() + "…"
