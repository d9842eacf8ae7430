"""Factor effects: how far each level of a factor moves each metric from the baseline."""

from __future__ import annotations

from collections.abc import Callable

import altair as alt
import polars as pl

from quadrille.chart import theme
from quadrille.chart.theme import AXIS, HUES, INK
from quadrille.chart.tidy import Kind, checked, defined, inline
from quadrille.present.numbers import counted

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


_NUMBERS = ("mean", "p5", "p25", "median", "p75", "p95")


def factor_distributions(summary: pl.DataFrame) -> alt.VConcatChart:
    """Draw a panel per metric: a thin bar from the 5th to the 95th percentile, a thick one over the middle half.

    One row of `summary` is a level of a factor: `metric`, `factor`, `level` (text), `mean`, `p5`, `p25`, `median`,
    `p75`, `p95` (numbers). The level of all replicates together has an empty text.

    Example
    -------
    >>> import polars as pl
    >>> import quadrille as qd
    >>> summary = pl.DataFrame({"metric": ["chi_square"] * 2, "factor": ["rate"] * 2, "level": ["1 %", "5 %"],
    ...     "mean": [5.0, 25.0], "p5": [1.0, 9.0], "p25": [3.0, 16.0], "median": [5.0, 24.0], "p75": [7.0, 33.0],
    ...     "p95": [9.0, 44.0]})
    >>> picture = qd.chart.factor_distributions(summary)
    >>> picture.to_dict()["title"]["text"]
    'How the metrics spread, by factor'
    """
    needs: dict[str, Kind] = {"metric": "text", "factor": "text", "level": "text"}
    needs |= dict.fromkeys(_NUMBERS, "number")
    given = checked(summary, "factor_distributions", needs)
    rows, _ = defined(labelled(given), "factor_distributions", *_NUMBERS)
    reading = (
        "Each line is all replicates with that level: thin from the 5th to the 95th percentile, thick over the middle "
        "half, white mark the median, diamond the mean. Lines of one factor that lie apart: it matters by itself. "
        "Lines that cover each other: other factors or chance matter more."
    )
    return theme.finish(panels(rows, ("p5", "p95"), _bars), "How the metrics spread, by factor", reading)


def _bars(here: pl.DataFrame, at: At, y: alt.Y) -> list[alt.Chart]:
    base = alt.Chart(inline(here.select("label", *_NUMBERS)))

    tooltip = ["label:N", *(f"{name}:Q" for name in _NUMBERS)]
    zero = alt.Chart(inline(pl.DataFrame({"value": [0.0]}))).mark_rule(color=AXIS, strokeWidth=1)
    return [
        zero.encode(x=at("value")),
        base.mark_rule(color=HUES[0], strokeWidth=2).encode(x=at("p5"), x2="p95:Q", y=y, tooltip=tooltip),
        base.mark_rule(color=HUES[0], strokeWidth=9).encode(x=at("p25"), x2="p75:Q", y=y, tooltip=tooltip),
        base.mark_tick(color="white", opacity=1, thickness=2, size=9).encode(x=at("median"), y=y),
        base.mark_point(
            shape="diamond", filled=True, size=55, color=HUES[1], opacity=1, stroke=INK, strokeWidth=0.7
        ).encode(x=at("mean"), y=y, tooltip=tooltip),
    ]


_INTERCEPT = "intercept"


def factor_effects(effects: pl.DataFrame) -> alt.VConcatChart:
    """Draw a panel per metric: a dot per level at its effect, with its 95 % interval, and a line at 0.

    One row of `effects` is a term of a main-effects model: `metric`, `factor`, `level` (text), `effect`, `low`, `high`
    (numbers; a term without an interval is drawn without one). The intercept is left out. A level that is missing for
    a metric was not selected, and has no dot there.

    Example
    -------
    >>> import polars as pl
    >>> import quadrille as qd
    >>> effects = pl.DataFrame({"metric": ["chi_square"] * 2, "factor": ["rate"] * 2, "level": ["3 %", "5 %"],
    ...     "effect": [9.8, 19.7], "low": [9.6, 19.5], "high": [10.0, 19.9]})
    >>> picture = qd.chart.factor_effects(effects)
    >>> picture.to_dict()["title"]["text"]
    'What each factor does to each metric'
    """
    needs: dict[str, Kind] = {
        "metric": "text",
        "factor": "text",
        "level": "text",
        "effect": "number",
        "low": "number",
        "high": "number",
    }
    given = checked(effects, "factor_effects", needs)
    terms, _ = defined(given.filter(pl.col("factor") != _INTERCEPT), "factor_effects", "effect")
    rows = labelled(terms).with_columns(
        value="effect", low=pl.col("low").fill_null(pl.col("effect")), high=pl.col("high").fill_null(pl.col("effect"))
    )
    possible = rows["label"].n_unique() * given["metric"].n_unique()
    notes = [f"No dot: {counted(possible - rows.height, 'effect')} that the selection left out."]
    reading = (
        "Each dot says by how much a level changes the metric against the baseline of its factor, the other factors "
        "being equal; its bar is the 95 % interval, often narrower than the dot. On the line at 0: no effect. Compare "
        "dots within a panel, not across panels: each metric has its own scale."
    )
    figure = panels(rows, ("low", "high"), _dots)
    title = "What each factor does to each metric"
    return theme.finish(figure, title, reading, notes if rows.height < possible else [])


def _dots(here: pl.DataFrame, at: At, y: alt.Y) -> list[alt.Chart]:
    base = alt.Chart(inline(here.select("label", "value", "low", "high")))
    zero = alt.Chart(inline(pl.DataFrame({"value": [0.0]}))).mark_rule(color=AXIS, strokeWidth=1.2)
    return [
        zero.encode(x=at("value")),
        base.mark_rule(color=HUES[0], strokeWidth=3).encode(x=at("low"), x2="high:Q", y=y),
        base.mark_point(filled=True, size=60, color=HUES[0], opacity=1).encode(
            x=at("value"), y=y, tooltip=["label:N", "value:Q", "low:Q", "high:Q"]
        ),
    ]
