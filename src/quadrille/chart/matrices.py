"""Square matrices: which variables changed together, which metrics agree, where records moved."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import altair as alt
import polars as pl

from quadrille.chart import cell_sizes, theme
from quadrille.chart.theme import INK, checked, inline, tooltips
from quadrille.errors import InputError, bad_parameter
from quadrille.present.numbers import counted

_SIDE = 560
_UNDEFINED, _EDGE = "#d5d5d5", "#e4e4e4"
_DARK = 0.6
_BLUES = ["#ffffff", "#9ecae1", "#4292c6", "#08306b"]
_BLUE_TO_ORANGE = ["#08519c", "#6baed6", "#ffffff", "#fd8d3c", "#a63603"]


def distortion_heatmap(pairs: pl.DataFrame, *, measure: str) -> alt.LayerChart:
    """Draw a square matrix of variables; the darker a cell, the more the two variables' table has changed.

    One row of `pairs` is a pair of variables: `first`, `second` (text), `value` (number; null where the measure is
    undefined). A pair given in one order is drawn in both. Variables keep the order they first appear in. The scale
    runs from 0, or symmetrically around 0 when any value is negative. Up to 12 variables the values are printed.
    The n-rule (`small_cells`) is refused: the matrix has no place for `exposed` next to it.

    Example
    -------
    >>> import polars as pl
    >>> import quadrille as qd
    >>> pairs = pl.DataFrame({"first": ["Age", "Age"], "second": ["Sex", "Race"], "value": [0.004, 0.0]})
    >>> picture = qd.chart.distortion_heatmap(pairs, measure="hellinger(2-way)")
    >>> picture.to_dict()["title"]["text"]
    'What changed between pairs of variables: hellinger(2-way)'
    """
    if cell_sizes.is_n_rule(measure):
        raise cell_sizes.refusal(
            "distortion_heatmap", measure, "A heatmap has no place for it: draw exposed by itself."
        )
    known = checked(pairs, "distortion_heatmap", {"first": "text", "second": "text", "value": "number"})
    known = known.unique(["first", "second"], keep="first", maintain_order=True)
    if known.filter(pl.col("first") != pl.col("second")).is_empty():
        raise InputError("There is nothing to draw: the frame for distortion_heatmap has no pair of two variables.")
    values: list[float] = known["value"].drop_nulls().to_list()
    most = max((abs(value) for value in values), default=0.0)
    signed = min(values, default=0.0) < 0
    # Two digits of the largest value, at most six decimals.
    decimals = min(max(1 - math.floor(math.log10(most)), 0), 6) if most else 0
    cells = _both_ways(known).filter(pl.col("value").is_not_null() | (pl.col("first") != pl.col("second")))
    cells = _lettered(cells, ("0" if value == 0 else _printed(value, decimals) for value in cells["value"]), most)
    names = _names(known)
    step, size, angle = _room(names, widest=56, narrowest=9)
    x, y = _axes(names, ("second", "first"), {"labelAngle": angle}, labelFontSize=size, labelLimit=160)
    top = most or 1.0
    stops = [-top, -top / 2, 0, top / 2, top] if signed else [0, top / 3, top * 2 / 3, top]
    scale = alt.Scale(domain=stops, range=_BLUE_TO_ORANGE if signed else _BLUES, interpolate="rgb")
    color = alt.Color("value:Q", scale=scale, legend=alt.Legend(title=measure, gradientLength=200, titleLimit=220))
    layers = [
        _tiles(cells.drop_nulls("value"), x, y, stroke=_EDGE).encode(color=color, tooltip=_TOOLTIP),
        _tiles(cells.filter(pl.col("value").is_null()), x, y, stroke=_EDGE, color=_UNDEFINED),
        *([_numbers(cells.drop("value"), x, y, 12)] if len(names) <= _DISTORTIONS_UP_TO else []),
    ]
    reading = "Each cell is a pair of variables. " + (
        "Orange: above zero; blue: below zero; white: no change. The stronger the colour, the larger the change."
        if signed
        else "The darker a cell, the more the table of the two variables has changed; white: not at all."
    )
    notes = ["A grey cell is undefined." if cells["value"].is_null().any() else ""]
    figure = theme.layered(layers, step * len(names), step * len(names))
    return theme.finish(figure, f"What changed between pairs of variables: {measure}", reading, notes)


_DISTORTIONS_UP_TO = 12
_TOOLTIP = tooltips("first:N", "second:N", "value:Q")


def correlation_matrix(pairs: pl.DataFrame) -> alt.LayerChart:
    """Draw a square matrix of metrics with their rank correlations, from -1 to 1.

    One row of `pairs` is a pair of metrics: `first`, `second` (text), `spearman` (number in [-1, 1]; null where a
    metric does not vary). A pair given in one order is drawn in both. Metrics keep the order they first appear in.

    Example
    -------
    >>> import polars as pl
    >>> import quadrille as qd
    >>> pairs = pl.DataFrame({"first": ["chi_square"], "second": ["deviance"], "spearman": [0.99]})
    >>> picture = qd.chart.correlation_matrix(pairs)
    >>> picture.to_dict()["title"]["text"]
    'Which metrics agree'
    """
    known = checked(pairs, "correlation_matrix", {"first": "text", "second": "text", "spearman": "number"})
    outside = known.filter(pl.col("spearman").abs() > 1 + 1e-9).height
    if outside:
        raise InputError(f"Column 'spearman' of the frame has {outside:,} values that are not in [-1, 1].")
    names = _names(known)
    same = pl.DataFrame({"first": names, "second": names, "value": [1.0] * len(names)})
    cells = _both_ways(known.rename({"spearman": "value"}), same)
    cells = _lettered(cells, (_printed(value, 2) for value in cells["value"]), 1.0)
    lines = {name: _two_lines(name) for name in names}
    room = 6 + 14 * (max(map(len, lines.values())) - 1)
    above = {"labelExpr": f"({lines})[datum.value]", "labelAngle": 0, "labelPadding": room, "labelLimit": 120}
    x, y = _axes(names, ("second", "first"), above, labelLimit=220)
    stops = [-1.0, -0.5, 0.0, 0.5, 1.0]
    legend = alt.Legend(title=["Spearman", "correlation"], gradientLength=220, values=stops)
    scale = alt.Scale(domain=stops, range=_BLUE_TO_ORANGE, interpolate="rgb")
    layers = [
        _tiles(cells.drop_nulls("value"), x, y, stroke=_EDGE).encode(
            color=alt.Color("value:Q", scale=scale, legend=legend),
            tooltip=tooltips("first:N", "second:N", alt.Tooltip("value:Q", format=".3f")),
        ),
        _tiles(cells.filter(pl.col("value").is_null()), x, y, stroke=_EDGE, color=_UNDEFINED),
        _numbers(cells.drop("value"), x, y, 13),
    ]
    reading = (
        "Each cell compares two metrics over all replicates by rank. 1: they order replicates alike, so that one of "
        "them will do; 0: they have nothing to do with each other; below 0: they contradict each other."
    )
    notes = ["A grey cell is undefined: a metric does not vary." if cells["value"].is_null().any() else ""]
    figure = theme.layered(layers, int(1.5 * _STEP) * len(names), _STEP * len(names))
    return theme.finish(figure, "Which metrics agree", reading, notes)


_STEP = 62


def _two_lines(name: str) -> list[str]:
    first, mark, rest = name.partition("_")
    return [first + mark, rest] if rest else [name]


OTHER = "all others"
_FLOWS_UP_TO = 14


def flows(moved: pl.DataFrame, *, most: int = 20) -> alt.LayerChart:
    """Draw a matrix: areas of origin down, areas of destination across, the darker the more records moved.

    One row of `moved` is a flow, as `area_flows` makes it: `origin`, `destination` (text), `records` (number). The
    `most` areas with the largest flows, in and out together, have a row and a column; the rest share those named
    "all others". Up to 14 areas, and for all others, the numbers are printed. Where flows have `units` and the coarsest
    level that they cross, `crosses`, the notes count them.

    Example
    -------
    >>> import polars as pl
    >>> import quadrille as qd
    >>> moved = pl.DataFrame({"origin": ["North", "South"], "destination": ["South", "North"], "records": [12, 12]})
    >>> picture = qd.chart.flows(moved)
    >>> picture.to_dict()["title"]["text"]
    'Where records moved, by area'
    """
    if most < 1:
        raise bad_parameter("flows", "most", "a whole number of 1 or more", most)
    known = checked(moved, "flows", {"origin": "text", "destination": "text", "records": "number"}).drop_nulls()
    if known.is_empty() or not known["records"].sum():
        raise InputError("There is nothing to draw: no record moved from one area to another.")
    sizes = _flow_sizes(known)
    names = sizes.head(most)["area"].sort().to_list()
    rest = sizes.height - len(names)
    figure = _flow_matrix(_flow_cells(known, names), [*names, OTHER] if rest else names)
    total, level = int(known["records"].sum()), moved["level"][0] if "level" in moved.columns else "area"
    reading = (
        "Each row is the area that records left, each column the area they came to; the darker, the more records. "
        "Rows and columns that add up to the same: the area has as many records as before."
    )
    shared = (
        f"Shown: the {len(names)} areas with the largest flows; {counted(rest, 'area')} share '{OTHER}', which "
        "has numbers instead of colours, moves among them included."
    )
    what = counted(total, "record") + _in_units(moved)
    notes = [f"{what} moved between {counted(sizes.height, 'area')}.", _crossing(moved), shared if rest else ""]
    return theme.finish(figure, f"Where records moved, by {level}", reading, notes)


def _in_units(moved: pl.DataFrame) -> str:
    """Say of how many households or other units the records are."""
    return f" of {counted(int(moved['units'].sum()), 'unit')}" if "units" in moved.columns else ""


def _crossing(moved: pl.DataFrame) -> str:
    """Say how many records, or units, have which level as the coarsest that they cross."""
    if "crosses" not in moved.columns:
        return ""
    what = "units" if "units" in moved.columns else "records"
    sums = moved.group_by("crosses", maintain_order=True).agg(pl.col(what).sum()).sort(what, descending=True)
    listed = ", ".join(f"{name} {number:,}" for name, number in sums.rows())
    return f"By the coarsest level crossed, {what}: {listed}."


def _flow_sizes(known: pl.DataFrame) -> pl.DataFrame:
    """Return the areas by the size of their flows, in and out together."""
    ends = pl.concat([known.select(area=pl.col(name), records="records") for name in ("origin", "destination")])
    sizes = ends.group_by("area").agg(pl.col("records").sum())
    return sizes.sort("records", "area", descending=[True, False])


def _flow_cells(known: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Return every flow between the areas shown and all others, with its text."""

    def shown(column: str) -> pl.Expr:
        return pl.when(pl.col(column).is_in(names)).then(column).otherwise(pl.lit(OTHER)).alias(column)

    sums = known.select(shown("origin"), shown("destination"), "records")
    sums = sums.group_by("origin", "destination").agg(pl.col("records").sum())
    return sums.with_columns(pl.Series("text", [f"{int(records):,}" for records in sums["records"]], dtype=pl.String))


def _flow_matrix(cells: pl.DataFrame, names: list[str]) -> alt.LayerChart:
    step, size, angle = _room(names, widest=52)
    above = {"labelAngle": angle, "titlePadding": 12}
    x, y = _axes(names, ("destination", "origin"), above, ("to", "from"), labelFontSize=size, labelLimit=150)
    among = (pl.col("origin") != OTHER) & (pl.col("destination") != OTHER)
    inner, outer = cells.filter(among), cells.filter(~among)
    top = max([*inner["records"], 1.0])
    scale = alt.Scale(domain=[0, top / 3, top * 2 / 3, top], range=_BLUES, interpolate="rgb")
    legend = alt.Legend(title="records", gradientLength=200, format=",.0f", tickCount=min(top, 5))
    color = alt.Color("records:Q", scale=scale, legend=legend)
    tooltip = tooltips("origin:N", "destination:N", "records:Q")
    layers = [
        _tiles(pl.DataFrame({"origin": names, "destination": names}), x, y, color="#e6e6e6"),
        _tiles(inner, x, y, stroke=_EDGE).encode(color=color, tooltip=tooltip),
    ]
    if outer.height:
        layers.append(_tiles(outer, x, y, stroke=_EDGE, color="#f7f7f7").encode(tooltip=tooltip))
    printed = cells if len(names) <= _FLOWS_UP_TO else outer
    if printed.height:
        dark = (pl.col("records") > 0.55 * top) & among
        layers.append(_numbers(printed.with_columns(dark=dark), x, y, 11 if step > 30 else 9))
    return theme.layered(layers, step * len(names), step * len(names))


def _names(pairs: pl.DataFrame) -> list[str]:
    """Return all names, in the order in which they first appear."""
    return pl.concat([pairs[end].rename("name") for end in ("first", "second")]).unique(maintain_order=True).to_list()


def _both_ways(pairs: pl.DataFrame, *others: pl.DataFrame) -> pl.DataFrame:
    """Return both triangles, and what else there is; of two that are the same cell the first counts."""
    mirrored = pairs.select(first="second", second="first", value="value")
    return pl.concat([pairs, mirrored, *others]).unique(["first", "second"], keep="first", maintain_order=True)


def _lettered(cells: pl.DataFrame, texts: Iterable[str], most: float) -> pl.DataFrame:
    """Add the text of each cell, and whether it must be light on dark."""
    dark = (pl.col("value").abs() > _DARK * most).fill_null(False)
    return cells.with_columns(pl.Series("text", list(texts), dtype=pl.String), dark=dark)


def _printed(value: float | None, decimals: int) -> str:
    return "–" if value is None else f"{value:,.{decimals}f}".replace("-", "−")


def _room(names: list[str], *, widest: int, narrowest: int = 0) -> tuple[int, int, int]:
    """Return the side of a cell, the size of the names, and the angle of those above."""
    step = min(max(_SIDE // len(names), narrowest), widest)
    wide = max(theme.text_width(name) for name in names) > step
    return step, max(min(12, step), 8), -90 if wide else 0


def _axes(
    names: list[str],
    fields: tuple[str, str],
    above: dict[str, Any],
    titles: tuple[str | None, str | None] = (None, None),
    **both: Any,
) -> tuple[alt.X, alt.Y]:
    """Return the names above and beside the matrix; `above` holds for the former, `both` for all."""
    both = {"ticks": False, "domain": False, "labelPadding": 6, **both}
    over, beside = alt.Axis(orient="top", **(both | above)), alt.Axis(**both)
    x = alt.X(f"{fields[0]}:N", title=titles[0], sort=names, scale=alt.Scale(domain=names), axis=over)
    y = alt.Y(f"{fields[1]}:N", title=titles[1], sort=names, scale=alt.Scale(domain=names), axis=beside)
    return x, y


def _tiles(cells: pl.DataFrame, x: alt.X, y: alt.Y, **style: Any) -> alt.Chart:
    return alt.Chart(inline(cells)).mark_rect(**style).encode(x=x, y=y)


def _numbers(cells: pl.DataFrame, x: alt.X, y: alt.Y, size: int) -> alt.Chart:
    ink = alt.when(alt.datum.dark).then(alt.value("white")).otherwise(alt.value(INK))
    return alt.Chart(inline(cells)).mark_text(fontSize=size).encode(x=x, y=y, text=alt.Text("text:N"), color=ink)
