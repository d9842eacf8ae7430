"""What the charts of factors share: a row per level, grouped by factor, and a panel per metric."""

from __future__ import annotations

from collections.abc import Callable

import altair as alt
import polars as pl

from quadrille.chart import theme

At = Callable[[str], alt.X]
"""Puts a column on the axis of a panel."""
BAND = 22
PANEL, SPACE, ACROSS = 300, 26, 3
_LABELS = 260


def panels(
    rows: pl.DataFrame, ends: tuple[str, str], draw: Callable[[pl.DataFrame, At, alt.Y], list[alt.Chart]]
) -> alt.VConcatChart:
    """Lay out a panel per metric, three in a line; only the first of a line names the levels.

    `rows` have `metric`, `label` and the columns that `draw` needs; `ends` are the columns of the outermost marks.
    """
    labels = rows["label"].unique(maintain_order=True).to_list()
    margin = min(max(theme.text_width(label) for label in labels), _LABELS)
    names = alt.Axis(minExtent=margin + 10, labelLimit=_LABELS, ticks=False, grid=True)
    bare = alt.Axis(labels=False, ticks=False, domain=False, grid=True)
    lines: list[alt.HConcatChart] = []
    metrics = rows["metric"].unique(maintain_order=True).to_list()
    for start in range(0, len(metrics), ACROSS):
        line: list[alt.LayerChart] = []
        for metric in metrics[start : start + ACROSS]:
            here = rows.filter(pl.col("metric") == metric)
            domain = theme.extent([0.0, *here[ends[0]], *here[ends[1]]])
            y = alt.Y("label:N", title=None, sort=labels, scale=alt.Scale(domain=labels), axis=bare if line else names)
            line.append(
                theme.layered(
                    draw(here, _across(metric, domain), y), PANEL if len(metrics) > 1 else 2 * PANEL, BAND * len(labels)
                )
            )
        lines.append(alt.hconcat(*line, spacing=SPACE, bounds="flush"))
    return alt.vconcat(*lines, spacing=SPACE)


def _across(metric: str, domain: theme.Range) -> At:
    """Return what puts a column on the axis of a panel."""
    axis = alt.Axis(tickCount=4, labelOverlap=True, labelSeparation=8, format=_format(domain))
    return lambda field: alt.X(f"{field}:Q", title=metric, scale=theme.fixed(domain), axis=axis)


def _format(domain: theme.Range) -> str:
    return ",.5~g" if max(map(abs, domain)) >= 1e-5 else ".3~e"


def labelled(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the label of a row: factor and level."""
    return rows.with_columns(
        label=pl.when(pl.col("level") == "").then(pl.col("factor")).otherwise(pl.col("factor") + ": " + pl.col("level"))
    )
