"""Flows between areas: how many records moved from each area to each other one."""

from __future__ import annotations

import altair as alt
import polars as pl

from quadrille.chart import theme
from quadrille.chart.theme import INK
from quadrille.chart.tidy import checked, inline
from quadrille.errors import InputError, bad_parameter
from quadrille.present.numbers import counted

OTHER = "all others"
_NUMBERS_UP_TO = 14
_WIDEST, _SIDE = 52, 560
_DARK = 0.55
_EDGE, _SAME, _REST = "#e4e4e4", "#e6e6e6", "#f7f7f7"
_TOOLTIP = ["origin:N", "destination:N", "records:Q"]


def flows(moved: pl.DataFrame, *, most: int = 20) -> alt.LayerChart:
    """Draw a matrix: areas of origin down, areas of destination across, the darker the more records moved.

    One row of `moved` is a flow, as `area_flows` makes it: `origin`, `destination` (text), `records` (number). The
    `most` areas with the largest flows, in and out together, have a row and a column; the rest share those named
    "all others". Up to 14 areas, and for all others, the numbers are printed.

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
    given = checked(moved, "flows", {"origin": "text", "destination": "text", "records": "number"}).drop_nulls()
    if given.is_empty() or not given["records"].sum():
        raise InputError("There is nothing to draw: no record moved from one area to another.")
    sizes = _sizes(given)
    names = sizes.head(most)["area"].sort().to_list()
    rest = sizes.height - len(names)
    cells = _cells(given, names)
    shown = [*names, OTHER] if rest else names
    figure = _matrix(cells, shown)
    total, level = int(given["records"].sum()), moved["level"][0] if "level" in moved.columns else "area"
    reading = (
        "Each row is the area that records left, each column the area they came to; the darker, the more records. "
        "Rows and columns that add up to the same: the area has as many records as before."
    )
    notes = [f"{counted(total, 'record')} moved between {counted(sizes.height, 'area')}."]
    if rest:
        notes.append(
            f"Shown: the {len(names)} areas with the largest flows; {counted(rest, 'area')} share '{OTHER}', which "
            "has numbers instead of colours, moves among them included."
        )
    return theme.finish(figure, f"Where records moved, by {level}", reading, notes)


def _sizes(given: pl.DataFrame) -> pl.DataFrame:
    """Return the areas by the size of their flows, in and out together."""
    ends = [given.select(area=pl.col(name), records="records") for name in ("origin", "destination")]
    return (
        pl.concat(ends).group_by("area").agg(pl.col("records").sum()).sort("records", "area", descending=[True, False])
    )


def _cells(given: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Return every flow between the areas shown and all others, with its text."""

    def shown(column: str) -> pl.Expr:
        return pl.when(pl.col(column).is_in(names)).then(column).otherwise(pl.lit(OTHER)).alias(column)

    sums = given.select(shown("origin"), shown("destination"), "records")
    sums = sums.group_by("origin", "destination").agg(pl.col("records").sum())
    texts = [f"{int(records):,}" for records in sums["records"]]
    return sums.with_columns(pl.Series("text", texts, dtype=pl.String))


def _matrix(cells: pl.DataFrame, names: list[str]) -> alt.LayerChart:
    step = min(_SIDE // len(names), _WIDEST)
    size = max(min(12, step), 8)
    wide = max(theme.text_width(name) for name in names) > step
    above = alt.Axis(
        orient="top",
        labelAngle=-90 if wide else 0,
        titlePadding=12,
        labelFontSize=size,
        ticks=False,
        domain=False,
        labelLimit=150,
        labelPadding=6,
    )
    beside = alt.Axis(labelFontSize=size, ticks=False, domain=False, labelLimit=150, labelPadding=6)
    x = alt.X("destination:N", title="to", scale=alt.Scale(domain=names), sort=names, axis=above)
    y = alt.Y("origin:N", title="from", scale=alt.Scale(domain=names), sort=names, axis=beside)
    among = (pl.col("origin") != OTHER) & (pl.col("destination") != OTHER)
    known, rest = cells.filter(among), cells.filter(~among)
    top = max([*known["records"], 1.0])
    stops = [0, top / 3, top * 2 / 3, top]
    scale = alt.Scale(domain=stops, range=["#ffffff", "#9ecae1", "#4292c6", "#08306b"], interpolate="rgb")
    legend = alt.Legend(title="records", gradientLength=200, format=",.0f", tickCount=min(top, 5))
    color = alt.Color("records:Q", scale=scale, legend=legend)
    same = pl.DataFrame({"origin": names, "destination": names})
    blank = alt.Chart(inline(same)).mark_rect(color=_SAME).encode(x=x, y=y)
    squares = alt.Chart(inline(known)).mark_rect(stroke=_EDGE).encode(x=x, y=y, color=color, tooltip=_TOOLTIP)
    others = alt.Chart(inline(rest)).mark_rect(stroke=_EDGE, color=_REST).encode(x=x, y=y, tooltip=_TOOLTIP)
    layers = [blank, squares, *([others] if rest.height else [])]
    printed = cells if len(names) <= _NUMBERS_UP_TO else rest
    if printed.height:
        dark = (pl.col("records") > _DARK * top) & among
        ink = alt.when(alt.datum.dark).then(alt.value("white")).otherwise(alt.value(INK))
        numbers = alt.Chart(inline(printed.with_columns(dark=dark))).mark_text(fontSize=11 if step > 30 else 9)
        layers.append(numbers.encode(x=x, y=y, text="text:N", color=ink))
    return theme.layered(layers, step * len(names), step * len(names))
