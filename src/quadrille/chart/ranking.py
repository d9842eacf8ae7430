"""The ranking of areas: those that a swap changed most, and those it changed least."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from quadrille.chart import theme
from quadrille.chart.theme import AXIS, HUES, INK, WIDTH, tooltips
from quadrille.chart.tidy import Kind, checked, inline
from quadrille.errors import InputError
from quadrille.present.numbers import counted, statistic

_BAND = 19
_COLOURS = {"most": HUES[3], "least": HUES[0]}
_TEXTS = ("level", "affected", "area", "address", "ranked_by")
_COLUMNS = ("level", "affected", "rank", "of", "area", "address", "before", "value", "equal", "ranked_by")


def ranking(areas: pl.DataFrame) -> alt.VConcatChart:
    """Draw a bar per area, the most affected at the top, the least at the bottom; a panel per level.

    `areas` is the frame of `scores.ranking(address)`: `level`, `affected` (most or least), `rank`, `of`, `area`,
    `address`, `before` (records), `value`, `equal` (areas of the same value), `ranked_by`. All rows
    must be of one address.

    Example
    -------
    >>> import polars as pl
    >>> import quadrille as qd
    >>> areas = pl.DataFrame({"level": ["county"] * 2, "affected": ["most", "least"], "rank": [1, 2], "of": [2, 2],
    ...     "area": ["North", "South"], "address": ["effective_swap_rate(race)"] * 2, "before": [400, 9000],
    ...     "value": [0.031, 0.004], "equal": [1, 1], "ranked_by": ["value"] * 2})
    >>> picture = qd.chart.ranking(areas)
    >>> picture.to_dict()["title"]["text"]
    'Areas most and least affected: effective_swap_rate(race)'
    """
    kinds: dict[str, Kind] = {name: "text" if name in _TEXTS else "number" for name in _COLUMNS}
    given = checked(areas, "ranking", kinds).drop_nulls("value")
    if given.is_empty():
        raise InputError("There is nothing to draw: no area in the frame for ranking has a finite value.")
    addresses = given["address"].unique(maintain_order=True).to_list()
    if len(addresses) > 1:
        raise InputError(f"The frame for ranking has {len(addresses)} measures. Give the ranking of one address.")
    panels = [
        _panel(given.filter(pl.col("level") == level), level, addresses[0])
        for level in given["level"].unique(maintain_order=True)
    ]
    own = alt.Resolve(scale=alt.ScaleResolveMap(y="independent", x="independent"))
    figure = alt.vconcat(*panels, spacing=26, resolve=own)
    how = given["ranked_by"][0]
    reading = (
        "Each bar is an area: orange, those most affected; blue, those least affected. Before the name its rank, "
        "after it its number of records before the swap."
    )
    diverse = "A larger value is not a stronger perturbation: negative means more diverse after."
    notes = [
        "" if how == "value" else f"Ranked by {how}.",
        diverse if theme.is_diversity(addresses[0]) else "",
        theme.left_out(areas.height - given.height, "area", "with an infinite value"),
    ]
    return theme.finish(figure, f"Areas most and least affected: {addresses[0]}", reading, notes)


def _panel(areas: pl.DataFrame, level: str, address: str) -> alt.LayerChart:
    """Return the bars of one level; a gap stands for the areas between."""
    rows: list[dict[str, Any]] = []
    for row in areas.to_dicts():
        turns = rows and (rows[-1]["affected"], row["affected"]) == ("most", "least")
        between = int(row["rank"] - rows[-1]["rank"]) - 1 if turns else 0
        if between > 0:
            rows.append({"name": f"… {between:,} between …", "value": None, "affected": "", "text": ""})
        value = row["value"]
        name = f"{int(row['rank']):,}. {row['area']} ({int(row['before']):,})"
        rows.append({**row, "name": name, "text": statistic(value).replace("-", "−"), "right": value >= 0})
    names = [row["name"] for row in rows]
    low, high = min(0.0, *(v for v in areas["value"])), max(0.0, *(v for v in areas["value"]))
    air = (high - low) * 0.14 or 1.0
    scale = theme.fixed((low - (air if low < 0 else 0), high + (air if high > 0 else 0)))
    x = alt.X("value:Q", title=address, scale=scale, axis=alt.Axis(tickCount=6))
    axis = alt.Axis(labelLimit=240, ticks=False, domain=False, labelPadding=8, grid=False)
    y = alt.Y("name:N", title=None, sort=names, scale=alt.Scale(domain=names), axis=axis)
    color = alt.Color("affected:N", legend=None, scale=alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values())))
    bars = [row for row in rows if row["value"] is not None]
    base = alt.Chart(inline(pl.DataFrame(bars).select("name", "area", "value", "affected", "text", "right", "before")))
    layers = [
        base.mark_bar(height=_BAND - 6).encode(
            x=x, y=y, color=color, tooltip=tooltips("area:N", "value:Q", "before:Q")
        ),
        alt.Chart(inline(pl.DataFrame({"zero": [0.0]}))).mark_rule(color=AXIS).encode(x=alt.X("zero:Q")),
    ]
    ends = base.transform_filter(alt.datum.right), base.transform_filter(~alt.datum.right)
    right = ends[0].mark_text(align="left", dx=4, fontSize=11, color=INK)
    left = ends[1].mark_text(align="right", dx=-4, fontSize=11, color=INK)
    layers += [text.encode(x=x, y=y, text=alt.Text("text:N")) for text in (right, left)]
    count = int(areas["of"][0])
    last, equal = areas["value"][-1], int(areas["equal"][-1])
    alike = f", {equal:,} of them at {statistic(last)}" if equal > int((areas["value"] == last).sum()) else ""
    text = f"{level}: {counted(count, 'area')}{alike}"
    return theme.layered(layers, WIDTH, _BAND * len(names), theme.heading(text, frame="group"))
