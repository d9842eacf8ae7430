"""What it costs to protect a record: emptying its cell, or filling the cell up, by the size of the cell."""

from __future__ import annotations

import altair as alt
import polars as pl

from quadrille.chart import theme
from quadrille.chart.theme import GREY, HUES, INK
from quadrille.chart.tidy import Kind, checked, defined, inline
from quadrille.present.numbers import counted

_PANEL, _HEIGHT = 560, 320
_ORDER = ["empty", "camouflage"]
_LABELS = {"empty": "empty the cell", "camouflage": "fill it up (camouflage)"}
_READING = (
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
    name = pl.col("treatment").replace(_LABELS)
    frame = frame.with_columns(name=name, cell=pl.col("size").cast(pl.Int64).cast(pl.String))
    untreated = int((everyone["cells"] - everyone["treatable"]).sum())
    top = 1.12 * max([*frame["high"], *frame["theory"].drop_nulls()])
    base = _base(frame, loss, top)
    ticks = _base(frame.drop_nulls("theory"), loss, top).mark_tick(thickness=1.6, size=22, color=INK)
    layers = [
        *([ticks.encode(y=_y("theory", loss, top))] if frame["theory"].is_not_null().any() else []),
        base.mark_rule(strokeWidth=3, opacity=0.45).encode(y=_y("low", loss, top), y2="high:Q", color=_color(frame)),
        base.mark_point(filled=True, size=110, opacity=1).encode(color=_color(frame), shape=_shape(frame)),
        base.mark_text(dx=13, dy=-4, align="left", fontSize=12, color=INK).encode(
            text=alt.Text("cost:Q", format=".3~f")
        ),
    ]
    left = counted(untreated, "treatment") + " of single cells cannot be done" if untreated else ""
    notes = [f"Not drawn: {left}, because no neighbour can give or take a record."] if left else []
    figure = theme.layered(layers, _PANEL, _HEIGHT)
    return theme.finish(figure, "What it costs to protect one record", _READING, notes)


def _y(field: str, loss: str, top: float) -> alt.Y:
    title = f"{loss} per protected record, × N"
    return alt.Y(f"{field}:Q", title=title, scale=alt.Scale(domain=[0, top], nice=False))


def _base(frame: pl.DataFrame, loss: str, top: float) -> alt.Chart:
    sizes = frame.sort("size")["cell"].unique(maintain_order=True).to_list()
    axis = alt.Axis(labelAngle=0, ticks=False)
    x = alt.X("cell:N", title="records in the small cell", sort=sizes, axis=axis)
    offset = alt.XOffset("name:N", scale=alt.Scale(domain=_names(frame)))
    tooltip = ["name:N", "cell:N", "cells:Q", "treatable:Q", "low:Q", "cost:Q", "high:Q", "theory:Q"]
    return alt.Chart(inline(frame)).encode(x=x, xOffset=offset, y=_y("cost", loss, top), tooltip=tooltip)


def _names(frame: pl.DataFrame) -> list[str]:
    return [_LABELS[each] for each in _ORDER if each in set(frame["treatment"])]


def _color(frame: pl.DataFrame) -> alt.Color:
    hues = {_LABELS["empty"]: HUES[3], _LABELS["camouflage"]: HUES[0]}
    shown = _names(frame)
    scale = alt.Scale(domain=shown, range=[hues.get(each, GREY) for each in shown])
    return alt.Color("name:N", scale=scale, legend=_legend())


def _shape(frame: pl.DataFrame) -> alt.Shape:
    shapes = {_LABELS["empty"]: "square", _LABELS["camouflage"]: "diamond"}
    shown = _names(frame)
    return alt.Shape("name:N", scale=alt.Scale(domain=shown, range=[shapes[each] for each in shown]), legend=_legend())


def _legend() -> alt.Legend:
    return alt.Legend(title="Treatment", symbolOpacity=1, symbolStrokeWidth=0)
