"""What an intruder gains: each quantity after the swap, as a share of what the original would give, and by chance."""

from __future__ import annotations

import altair as alt
import polars as pl

from quadrille.chart import theme
from quadrille.chart.theme import AXIS, GREY, HUES, INK, WIDTH, Kind, checked, inline, tooltips
from quadrille.errors import InputError
from quadrille.present.numbers import statistic

_BAND = 21
_AIR = 1.27
_STROKE = "M-0.16,-1L0.16,-1L0.16,1L-0.16,1Z"
_BEFORE, _AFTER, _CHANCE = "before the swap", "after the swap", "by chance"
_LOOKS = {_BEFORE: (INK, _STROKE), _AFTER: (HUES[3], "circle"), _CHANCE: (GREY, "diamond")}
_COLUMNS: dict[str, Kind] = {
    "attack": "text",
    "quantity": "text",
    **dict.fromkeys(("value", "before", "chance"), "number"),
}


def attacks(findings: pl.DataFrame) -> alt.VConcatChart:
    """Draw, for each quantity, what is left of it after the swap and what guessing gives; a panel per attack.

    `findings` is the frame of `qd.attack(...)`: `attack`, `quantity`, `value`, `before`, `chance`. A quantity is drawn
    as a share of its value before the swap; without one, such as an area under a curve, as it is.

    Example
    -------
    >>> import polars as pl
    >>> import quadrille as qd
    >>> findings = pl.DataFrame({"attack": ["linkage"], "quantity": ["expected right links"], "value": [1435.6],
    ...     "before": [1695.0], "chance": [1.0]})
    >>> qd.chart.attacks(findings).to_dict()["title"]["text"]
    'What an intruder gains from the release'
    """
    given = checked(findings, "attacks", _COLUMNS)
    scale = pl.when(pl.col("before").is_null()).then(1.0).otherwise(pl.col("before"))
    shown = given.with_columns(scale=scale).filter(pl.col("value").is_not_null() & (pl.col("scale") > 0))
    if shown.is_empty():
        raise InputError("There is nothing to draw: no row of the frame for attacks has a value to compare.")
    panels = [_panel(part) for part in shown.partition_by("attack", maintain_order=True)]
    figure = alt.vconcat(*panels, spacing=26, resolve=alt.Resolve(scale=alt.ScaleResolveMap(y="independent")))
    reading = (
        "Each line is something that an intruder can do. Orange, how well it works after the swap; the black stroke, "
        "how well it would work with the original, which is 100 %; the grey diamond, by chance. The closer orange is "
        "to grey, the better the protection. To the right the value, before the swap in brackets."
    )
    plain = "Quantities without a stroke mean nothing for the original, and are shown as they are."
    notes = [
        plain if shown["before"].null_count() else "",
        theme.left_out(given.height - shown.height, "line", "without a value or with 0 before the swap"),
    ]
    return theme.finish(figure, "What an intruder gains from the release", reading, notes)


_LINES_A_SHEET = 46
"""So many lines, titles and axes among them, are read without a glass on a sheet of paper."""
_LINES_A_PANEL = 4


def attack_sheets(findings: pl.DataFrame) -> list[pl.DataFrame]:
    """Divide findings between attacks, so that the chart of each part is legible on a sheet of paper.

    >>> import polars as pl
    >>> from quadrille.chart.attack import attack_sheets
    >>> columns = {"attack": [name for name in "abc" for _ in range(20)], "value": [0.5] * 60, "before": [1.0] * 60}
    >>> [len(part) for part in attack_sheets(pl.DataFrame(columns))]
    [20, 20, 20]
    """
    sheets: list[list[pl.DataFrame]] = []
    used = _LINES_A_SHEET
    for panel in findings.partition_by("attack", maintain_order=True):
        lines = panel.filter(pl.col("value").is_not_null() & (pl.col("before").fill_null(1.0) > 0)).height
        if lines:
            used += lines + _LINES_A_PANEL
            if used > _LINES_A_SHEET:
                sheets.append([])
                used = lines + _LINES_A_PANEL
            sheets[-1].append(panel)
    return [pl.concat(parts) for parts in sheets] or [findings]


def _panel(part: pl.DataFrame) -> alt.LayerChart:
    names = part["quantity"].to_list()
    columns = {_CHANCE: "chance", _BEFORE: "before", _AFTER: "value"}
    points = pl.concat(
        part.select("quantity", x=pl.col(column) / pl.col("scale"), what=pl.lit(what)).drop_nulls("x")
        for what, column in columns.items()
    )
    high = max(1.0, *points["x"].to_list())
    title = "share of the value before" if part["before"].count() else "value"
    x_scale = theme.fixed((0.0, high * _AIR))
    x = alt.X("x:Q", title=title, scale=x_scale, axis=alt.Axis(format="%", tickCount=6))
    axis = alt.Axis(labelLimit=460, ticks=False, domain=False, labelPadding=8, grid=False)
    y = alt.Y("quantity:N", title=None, sort=names, scale=alt.Scale(domain=names), axis=axis)
    colour, shape = theme.looks(
        "what",
        list(_LOOKS),
        [hue for hue, _ in _LOOKS.values()],
        [form for _, form in _LOOKS.values()],
        alt.Legend(title=None, orient="top"),
    )
    texts = part.select(
        "quantity",
        x=pl.lit(high * 1.03),
        text=pl.Series([_text(row["value"], row["before"]) for row in part.to_dicts()]),
    )
    span = part.select("quantity", low=pl.col("chance") / pl.col("scale"), high=pl.col("value") / pl.col("scale"))
    layers = [
        alt.Chart(inline(span.drop_nulls()))
        .mark_rule(color=AXIS, opacity=0.5)
        .encode(x=alt.X("low:Q"), x2=alt.X2("high:Q"), y=y),
        alt.Chart(inline(points))
        .mark_point(filled=True, size=90, strokeWidth=2, opacity=1)
        .encode(x=x, y=y, color=colour, shape=shape, tooltip=tooltips("quantity:N", "what:N", "x:Q")),
        alt.Chart(inline(texts))
        .mark_text(align="left", fontSize=11, color=INK)
        .encode(x=x, y=y, text=alt.Text("text:N")),
    ]
    return theme.layered(layers, WIDTH, _BAND * len(names), theme.heading(part["attack"][0], frame="group"))


def _text(value: float, before: float | None) -> str:
    return statistic(value, 3) + ("" if before is None else f" ({statistic(before, 3)})")
