"""What changed, point by point: estimates after the swap against before, and changes made against predicted ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import altair as alt
import polars as pl

from quadrille.chart import theme
from quadrille.chart.theme import GREY, HUES, INK, Kind, Plane, inline, left_out, names, prepared, thinned, tooltips
from quadrille.errors import InputError
from quadrille.present.numbers import counted

_LABELS = 6
_AFTER_SIDE, _ACROSS = 300, 3
_SAME, _FLAGGED = "within the limits", "flagged"


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
    columns: dict[str, Kind] = {"kind": "text", "label": "text", "before": "number", "after": "number"}
    columns["flagged"] = "flag"
    everyone, unknown = prepared(estimates, "after_before", columns, "before", "after")
    gap = (pl.col("after") - pl.col("before")).abs()
    state = pl.when("flagged").then(pl.lit(_FLAGGED)).otherwise(pl.lit(_SAME))
    everyone = everyone.with_columns(gap=gap, state=state)
    shown = thinned(everyone, keep=pl.col("flagged"))
    kinds = everyone["kind"].unique(maintain_order=True).to_list()
    panels = [_estimates(shown.filter(pl.col("kind") == kind), kind) for kind in kinds]
    reading = (
        "Each point is an estimate. On the dashed line it is the same after the swap as before; the further from the "
        "line, the more it has changed. Orange diamonds are flagged: look at these first."
    )
    flagged = everyone.filter("flagged")
    crowded = max(flagged.group_by("kind").len()["len"], default=0) > _LABELS
    notes = [
        f"Flagged: {flagged.height:,} of {everyone.height:,}.",
        f"Named: in each panel the {_LABELS} flagged ones that changed most." if crowded else "",
        _thinned_note(everyone, shown),
        left_out(unknown, "estimate", "without a value before and after"),
    ]
    figure = theme.in_rows(panels, 2 if len(panels) == _ACROSS + 1 else _ACROSS, 24, 24)
    title = f"{counted(everyone.height, 'estimate')} after the swap against before"
    return theme.finish(figure, title, reading, notes)


def _estimates(points: pl.DataFrame, kind: str) -> alt.LayerChart:
    both = theme.extent([*points["before"], *points["after"]], 0.06)
    axes = alt.Axis(tickCount=5, labelOverlap=True), alt.Axis(tickCount=5)
    # The same range up and across, so that the line of no change is the diagonal.
    plane = Plane((f"{kind}, before", f"{kind}, after"), both, both, axes, (_AFTER_SIDE, _AFTER_SIDE))
    shown = points.select("label", "before", "after", "state")
    layers = [_diagonal(plane), *_dots(shown, plane, ("before", "after"), (_SAME, _FLAGGED), size=48, opacity=0.75)]
    worst = points.filter("flagged").sort("gap", "label", descending=[True, False]).head(_LABELS)
    named = ((_short(label), x, y) for label, x, y in worst.select("label", "before", "after").iter_rows())
    layers += _named(named, points.select("before", "after"), plane)
    return theme.layered(layers, *plane.size)


def _short(label: str, most: int = 34) -> str:
    return label if len(label) <= most else label[: most - 1].rstrip() + "…"


_SIDE = 330
_LIKELY, _FAR = 2.0, 4.0
_INSIDE, _OUTSIDE = "within 4 sd", "outside 4 sd"
_READING = (
    "Each point is a cell. Left: on the dashed line {made} changed it just as predicted; the bar is the predicted "
    "change plus and minus 2 standard deviations{of}. Right: the difference in standard deviations; most points lie in "
    "the darker band (2), nearly all in the lighter one (4)."
)


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
    columns: dict[str, Kind] = {"label": "text", "bias": "number", "sd": "number", "realised": "number"}
    everyone, unknown = prepared(cells, "predicted_realised", columns, "bias", "sd", "realised")
    if (everyone["sd"] < 0).any():
        raise InputError("predicted_realised has a negative standard deviation. They are 0 or more.")
    everyone = _judged(everyone)
    shown = thinned(everyone, keep=pl.col("flagged"))
    figure = alt.hconcat(_changes(shown), _differences(shown), spacing=34)
    title = f"Predicted and realised change of {counted(everyone.height, 'cell')}"
    reading = _READING.format(made="the swap", of="")
    if draws > 1:
        title += f", mean of {draws:,} draws"
        reading = _READING.format(made=f"the {draws:,} swaps together", of=" of a mean over so many draws")
    return theme.finish(figure, title, reading, _notes(everyone, shown, unknown))


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


def _notes(cells: pl.DataFrame, shown: pl.DataFrame, unknown: int) -> list[str]:
    known, flagged = cells.drop_nulls("z"), cells.filter("flagged").height
    inside = known.filter(pl.col("z").abs() <= _LIKELY).height
    still = cells.height - known.height
    return [
        f"Outside 4 standard deviations: {flagged:,} of {cells.height:,}.",
        f"Within 2: {100 * (inside / known.height):.0f} % (about 95 % are expected)." if known.height else "",
        f"Not on the right: {counted(still, 'cell')} that cannot vary." if still else "",
        f"Named: the {_LABELS} furthest." if flagged > _LABELS else "",
        _thinned_note(cells, shown),
        left_out(unknown, "cell", "without a value"),
    ]


def _changes(cells: pl.DataFrame) -> alt.LayerChart:
    """Draw realised against predicted change: one range for both, so that the line runs from corner to corner."""
    both = theme.extent([*cells["low"], *cells["high"], *cells["realised"]], 0.06)
    plane = Plane(("Predicted change", "Realised change"), both, both, _axes(), (_SIDE, _SIDE))
    bars = alt.Chart(inline(cells.select("bias", "low", "high"))).mark_rule(color=GREY, strokeWidth=4, opacity=0.45)
    layers = [
        _diagonal(plane),
        bars.encode(x=plane.x("bias"), y=plane.y("low"), y2=alt.Y2("high:Q")),
        *_cell_dots(cells, plane, "realised"),
    ]
    return theme.layered(layers, *plane.size)


def _differences(cells: pl.DataFrame) -> alt.LayerChart:
    """Draw the differences in standard deviations, with the bands in which they are expected."""
    known = cells.drop_nulls("z")
    reach = max(_FAR + 1, *(abs(z) * 1.12 for z in known["z"])) if known.height else _FAR + 1
    across = theme.extent(known["bias"] if known.height else [0.0], 0.06)
    titles = "Predicted change", "Realised - predicted, in standard deviations"
    plane = Plane(titles, across, (-reach, reach), _axes(), (_SIDE, _SIDE))
    ends = {"left": [across[0]], "right": [across[1]]}
    zero = _dashed(pl.DataFrame({**ends, "zero": [0.0]}))
    layers = [
        _zone(plane, _FAR, 0.10),
        _zone(plane, _LIKELY, 0.16),
        zero.encode(x=plane.x("left"), x2=alt.X2("right:Q"), y=plane.y("zero")),
    ]
    if known.height:
        layers += _cell_dots(known, plane, "z")
        furthest = known.filter("flagged").sort(pl.col("z").abs(), "label", descending=[True, False]).head(_LABELS)
        layers += _named(furthest.select("label", "bias", "z").iter_rows(), known.select("bias", "z"), plane)
    return theme.layered(layers, *plane.size)


def _axes() -> tuple[alt.Axis, alt.Axis]:
    return alt.Axis(tickCount=5, labelOverlap=True), alt.Axis(tickCount=6)


def _zone(plane: Plane, half: float, opacity: float) -> alt.Chart:
    corners = pl.DataFrame({"left": [plane.across[0]], "right": [plane.across[1]], "low": [-half], "high": [half]})
    zone = alt.Chart(inline(corners)).mark_rect(color=HUES[0], opacity=opacity)
    return zone.encode(x=plane.x("left"), x2=alt.X2("right:Q"), y=plane.y("low"), y2=alt.Y2("high:Q"))


def _cell_dots(cells: pl.DataFrame, plane: Plane, field: str) -> list[alt.Chart]:
    shown = cells.select("label", "bias", "sd", "realised", "z", "state")
    return _dots(shown, plane, ("bias", field), (_INSIDE, _OUTSIDE), size=52, opacity=0.85)


def _thinned_note(everyone: pl.DataFrame, shown: pl.DataFrame) -> str:
    return (
        f"Shown: {shown.height:,}; points that are not flagged are thinned." if shown.height < everyone.height else ""
    )


def _dashed(ends: pl.DataFrame) -> alt.Chart:
    return alt.Chart(inline(ends)).mark_rule(strokeDash=[5, 4], color=INK, strokeWidth=1.1, opacity=0.7)


def _diagonal(plane: Plane) -> alt.Chart:
    low, high = plane.across
    line = _dashed(pl.DataFrame({"low": [low], "high": [high]}))
    return line.encode(x=plane.x("low"), y=plane.y("low"), x2=alt.X2("high:Q"), y2=alt.Y2("high:Q"))


def _dots(
    points: pl.DataFrame, plane: Plane, fields: tuple[str, str], states: Sequence[str], *, size: int, opacity: float
) -> list[alt.Chart]:
    """Draw the points, a layer per state and flagged ones last, so that none hides below another."""
    legend = alt.Legend(title=None, orient="bottom", direction="horizontal", symbolOpacity=1)
    color, shape = theme.looks("state", states, (HUES[0], HUES[3]), ("circle", "diamond"), legend)
    tooltip = tooltips(*(f"{name}:{'N' if name == 'label' else 'Q'}" for name in points.columns if name != "state"))
    return [
        alt.Chart(inline(points.filter(pl.col("state") == state)))
        .mark_point(filled=True, size=size, opacity=opacity, stroke="white", strokeWidth=0.6)
        .encode(x=plane.x(fields[0]), y=plane.y(fields[1]), color=color, shape=shape, tooltip=tooltip)
        for state in states
    ]


def _named(points: Iterable[tuple[str, float, float]], everyone: pl.DataFrame, plane: Plane) -> list[alt.Chart]:
    """Name some points where the text covers no point, with a line from each to its name."""
    return names(points, [plane.pixels(*point) for point in everyone.iter_rows()], plane, plane.size)
