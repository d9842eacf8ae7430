"""By the size of the cell: how many small cells there are, who was swapped, what it costs to protect a record."""

from __future__ import annotations

import altair as alt
import polars as pl

from quadrille.chart import theme
from quadrille.chart.theme import HUES, INK, PALE, WIDTH, Kind, checked, defined, inline, prepared, tooltips
from quadrille.errors import InputError, ParameterError
from quadrille.present.numbers import count, counted, share

_WHEN = ["before", "after"]
_GENUINE = "after, genuine"
_RECORDS = "records in such cells"
_PANEL, _HEIGHT, _TEXT = 310, 320, 11
_CELLS = "A cell is a combination of all key variables; a record alone in its cell, or nearly, can be recognised."
_READING = f"{_CELLS} A swap empties some small cells and fills others, so bars may rise: what counts is the dark part."
_ALONE = (
    "Small cells that are false protect, genuine ones do not, so the two are never shown as one: give the records in "
    "cells of that size after the swap that match a true one, the sum of min(f, g) that `exposed` counts."
)


def small_cells(cells: pl.DataFrame) -> alt.HConcatChart:
    """Draw bars of the cells of each small size, and of the records in them, before and after side by side.

    One row of `cells` is a size of cell before or after: `size` (1, 2, ...), `when` ("before" or "after"), `cells`,
    `records`, `genuine` (numbers). `genuine` counts the records after the swap that match a true one of the same
    combination (what `exposed` counts; the sum of min(f, g)); they are drawn inside the bars. Before the swap it
    may be null. Without rows "after" the file as it is is drawn.

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
    frame, _ = prepared(cells, "small_cells", {**columns, "genuine": "number"}, "size", "cells", "records")
    if not set(frame["when"]) <= set(_WHEN):
        raise InputError("Column 'when' of the frame for small_cells must hold 'before' and 'after'.")
    if frame.filter(pl.col("when") == "after")["genuine"].has_nulls():
        raise ParameterError(f"Column 'genuine' of the frame for small_cells is empty in a row 'after'. {_ALONE}")
    frame = frame.sort("size", maintain_order=True).with_columns(size=pl.col("size").cast(pl.Int64).cast(pl.String))
    swapped = "after" in set(frame["when"])
    legend = alt.Legend(title=None, orient="top", direction="horizontal", symbolType="square", offset=8)
    scale = alt.Scale(domain=[*_WHEN, _GENUINE], range=[PALE, HUES[5], HUES[0]])
    color = alt.Color("series:N", scale=scale, legend=legend if swapped else None)
    left = _small_bars(frame, "cells", "cells of this size", color)
    right = [*_small_bars(frame, "records", _RECORDS, color), *(_genuine(frame, color) if swapped else [])]
    figure = alt.hconcat(*(theme.layered(layers, _PANEL, _HEIGHT) for layers in (left, right)), spacing=36)
    if not swapped:
        return theme.finish(figure, "Small cells of the file as it is", _CELLS)
    return theme.finish(figure, "Small cells before and after the swap", _READING)


def _by_size(frame: pl.DataFrame, field: str, title: str, top: float) -> alt.Chart:
    sizes = frame["size"].unique(maintain_order=True).to_list()
    x = alt.X("size:N", title="size of cell (records)", sort=sizes, axis=alt.Axis(labelAngle=0, ticks=False))
    scale = alt.Scale(domain=[0, 1.08 * top or 1], nice=False)
    y = alt.Y(f"{field}:Q", title=title, scale=scale, axis=alt.Axis(format=",.0f", tickCount=6, tickMinStep=1))
    offset = alt.XOffset(
        "when:N", sort=_WHEN, scale=alt.Scale(domain=_WHEN if "after" in set(frame["when"]) else _WHEN[:1])
    )
    return alt.Chart(inline(frame)).encode(x=x, y=y, xOffset=offset)


def _small_bars(frame: pl.DataFrame, field: str, title: str, color: alt.Color) -> list[alt.Chart]:
    top = max(frame[field].drop_nulls(), default=0.0)
    base = _by_size(frame.with_columns(series="when"), field, title, top)
    bars = base.mark_bar().encode(color=color, tooltip=tooltips("size:N", "when:N", "cells:Q", "records:Q"))
    numbers = base.mark_text(dy=-8, fontSize=_TEXT, color=INK).encode(text=alt.Text(f"{field}:Q", format=","))
    return [bars, numbers] if _fits(frame, field) else [bars]


def _genuine(frame: pl.DataFrame, color: alt.Color) -> list[alt.Chart]:
    after = frame.filter((pl.col("when") == "after") & pl.col("genuine").is_not_null())
    top = max(frame["records"].drop_nulls(), default=0.0)
    base = _by_size(after.with_columns(series=pl.lit(_GENUINE)), "genuine", _RECORDS, top)
    bars = base.mark_bar().encode(color=color, tooltip=tooltips("size:N", "genuine:Q", "records:Q"))
    numbers = base.mark_text(dy=9, fontSize=_TEXT, color="white").encode(text=alt.Text("genuine:Q", format=","))
    return [bars, numbers] if _fits(after, "genuine") else [bars]


def _fits(frame: pl.DataFrame, field: str) -> bool:
    """Whether the numbers are narrower than the bars."""
    bar = _PANEL / frame["size"].n_unique() * 0.8 / 2
    return all(theme.text_width(f"{value:,.0f}", _TEXT) < bar for value in frame[field].drop_nulls())


_SHARES_HEIGHT = 360


def who_was_swapped(groups: pl.DataFrame) -> alt.LayerChart:
    """Draw a bar per class of cell size: the share of its records that were swapped, and a line at the overall share.

    One row of `groups` is a class: `size` (text, "1", "2", "3-9"), `order` (number, the place along the axis),
    `swapped` (share of its records; null where it has none), `records` (number).

    Example
    -------
    >>> import polars as pl
    >>> import quadrille as qd
    >>> groups = pl.DataFrame({"size": ["1", "2", "3+"], "order": [0, 1, 2], "swapped": [0.1, 0.1, 0.1],
    ...     "records": [361, 372, 48109]})
    >>> picture = qd.chart.who_was_swapped(groups)
    >>> picture.to_dict()["title"]["text"]
    'Who was swapped, by the size of the cell they came from'
    """
    columns: dict[str, Kind] = {"size": "text", "order": "number", "swapped": "number", "records": "number"}
    frame, _ = prepared(groups, "who_was_swapped", columns, "swapped", "records")
    frame = frame.sort("order", maintain_order=True)
    shares, records = frame["swapped"].to_list(), frame["records"].to_list()
    overall = sum(part * number for part, number in zip(shares, records, strict=True)) / (sum(records) or 1)
    frame = frame.with_columns(
        below=pl.Series([f"{count(number)} records" for number in records]), text=pl.Series(map(share, shares))
    )
    top = max(*shares, overall) or 1.0
    figure = theme.layered([*_share_bars(frame, top), *_overall(overall, top)], WIDTH, _SHARES_HEIGHT)
    reading = (
        "Each bar is the share of records swapped among those from cells of one size. "
        "Bars that fall from left to right: the swap reaches the records most at risk. Equal bars: it is blind to risk."
    )
    return theme.finish(figure, "Who was swapped, by the size of the cell they came from", reading)


def _share_axis(field: str, top: float) -> alt.Y:
    axis = alt.Axis(format="%", tickCount=6)
    return alt.Y(f"{field}:Q", title="share of records swapped", scale=theme.fixed((0, top * 1.15)), axis=axis)


def _share_bars(frame: pl.DataFrame, top: float) -> list[alt.Chart]:
    x = alt.X(
        "size:N",
        title="records in the cell before the swap",
        sort=frame["size"].to_list(),
        axis=alt.Axis(labelAngle=0, ticks=False, labelFontSize=13, titlePadding=32),
        scale=alt.Scale(paddingInner=0.3, paddingOuter=0.2),
    )
    base = alt.Chart(inline(frame)).encode(x=x, y=_share_axis("swapped", top))
    tooltip = tooltips("size:N", alt.Tooltip("swapped:Q", format=theme.SHARE), alt.Tooltip("records:Q", format=","))
    return [
        base.mark_bar(color=HUES[0]).encode(tooltip=tooltip),
        base.mark_text(dy=-9, fontSize=13, fontWeight="bold", color=INK).encode(text=alt.Text("text:N")),
        base.mark_text(dy=27, fontSize=12, color="#555555").encode(
            y=alt.value(_SHARES_HEIGHT), text=alt.Text("below:N")
        ),
    ]


def _overall(overall: float, top: float) -> list[alt.Chart]:
    base = alt.Chart(inline(pl.DataFrame({"share": [overall], "text": [f"all: {share(overall)}"]})))
    y = _share_axis("share", top)
    return [
        base.mark_rule(strokeDash=[6, 4], color=INK, strokeWidth=1.3).encode(y=y),
        base.mark_text(color=INK, align="left", dx=6, fontSize=12).encode(
            y=y, x=alt.value(WIDTH), text=alt.Text("text:N")
        ),
    ]


_COST_WIDTH = 560
_TREATMENTS = {
    "empty": ("empty the cell", HUES[3], "square"),
    "camouflage": ("fill it up (camouflage)", HUES[0], "diamond"),
}
"""Name, hue and shape."""
_COST_READING = (
    "Each dot is the middle cell of its size, treated alone: what it costs per record that is no longer exposed. Bars "
    "reach from the 10th to the 90th percentile. Ticks are what theory says where all other cells are large."
)


def treatment_costs(costs: pl.DataFrame, *, loss: str = "hellinger²") -> alt.LayerChart:
    """Draw the cost per protected record of both treatments, by the size of the small cell.

    One row of `costs` is a treatment of a size, as `study.cells.cell_costs` returns them: `treatment` ("empty" or
    "camouflage"), `size`, `cells`, `treatable`, `low`, `cost`, `high`, `theory` (numbers; no cost where no cell can be
    treated). `loss` names what the costs are in.

    Example
    -------
    >>> import polars as pl
    >>> import quadrille as qd
    >>> costs = pl.DataFrame({"treatment": ["empty", "camouflage"], "size": [1, 1], "cells": [361, 361],
    ...     "treatable": [300, 327], "low": [0.45, 0.25], "cost": [0.5, 0.27], "high": [0.6, 0.3],
    ...     "theory": [0.5, 0.27]})
    >>> picture = qd.chart.treatment_costs(costs)
    >>> picture.to_dict()["title"]["text"]
    'What it costs to protect one record'
    """
    columns: dict[str, Kind] = {"treatment": "text"}
    columns |= dict.fromkeys(("size", "cells", "treatable", "low", "cost", "high", "theory"), "number")
    everyone = checked(costs, "treatment_costs", columns)
    frame, _ = defined(everyone, "treatment_costs", "cost")
    name = pl.col("treatment").replace({treatment: name for treatment, (name, _, _) in _TREATMENTS.items()})
    frame = frame.with_columns(name=name, cell=pl.col("size").cast(pl.Int64).cast(pl.String))
    shown = [look for treatment, look in _TREATMENTS.items() if treatment in frame["treatment"]]
    names, hues, shapes = ([look[i] for look in shown] for i in range(3))
    top = 1.12 * max([*frame["high"], *frame["theory"].drop_nulls()])

    def y(field: str) -> alt.Y:
        scale = alt.Scale(domain=[0, top], nice=False)
        return alt.Y(f"{field}:Q", title=f"{loss} per protected record, × N", scale=scale)

    sizes = frame.sort("size")["cell"].unique(maintain_order=True).to_list()
    x = alt.X("cell:N", title="records in the small cell", sort=sizes, axis=alt.Axis(labelAngle=0, ticks=False))
    offset = alt.XOffset("name:N", scale=alt.Scale(domain=names))
    tooltip = tooltips("name:N", "cell:N", "cells:Q", "treatable:Q", "low:Q", "cost:Q", "high:Q", "theory:Q")
    base = alt.Chart(inline(frame)).encode(x=x, xOffset=offset, y=y("cost"), tooltip=tooltip)
    known = frame.drop_nulls("theory")
    ticks = alt.Chart(inline(known)).mark_tick(thickness=1.6, size=22, color=INK)
    legend = theme.legend("Treatment", symbolOpacity=1, symbolStrokeWidth=0)
    color, shape = theme.looks("name", names, hues, shapes, legend)
    layers = [
        *([ticks.encode(x=x, xOffset=offset, y=y("theory"), tooltip=tooltip)] if known.height else []),
        base.mark_rule(strokeWidth=3, opacity=0.45).encode(y=y("low"), y2=alt.Y2("high:Q"), color=color),
        base.mark_point(filled=True, size=110, opacity=1).encode(color=color, shape=shape),
        base.mark_text(dx=13, dy=-4, align="left", fontSize=12, color=INK).encode(
            text=alt.Text("cost:Q", format=".3~f")
        ),
    ]
    untreated = int((everyone["cells"] - everyone["treatable"]).sum())
    undone = f"{counted(untreated, 'treatment')} of single cells cannot be done"
    notes = [f"Not drawn: {undone}, because no neighbour can give or take a record." if untreated else ""]
    figure = theme.layered(layers, _COST_WIDTH, _HEIGHT)
    return theme.finish(figure, "What it costs to protect one record", _COST_READING, notes)
