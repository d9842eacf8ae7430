"""Metrics against rate: what more swapping does to each measure, a small chart per measure."""

from __future__ import annotations

import altair as alt
import polars as pl

from quadrille.chart import n_rule, theme
from quadrille.chart.theme import HUES, INK
from quadrille.chart.tidy import checked, defined, inline, thinned
from quadrille.present.numbers import counted

_PANEL, _HEIGHT, _ACROSS = 250, 150, 3
_LABELS = 46


def metrics_by_rate(scores: pl.DataFrame) -> alt.VConcatChart:
    """Draw a panel per measure: rate across, value up, a point per run, a line through the means.

    One row of `scores` is a value of a run, as in `score_recipes(...).runs`: `rate` (share of the records that take
    part), `measure` (text), `value` (number; rows without one are left out and counted). Measures keep the order
    they first appear in. With the n-rule (`small_cells`) among the measures, `exposed` must be there too.

    Example
    -------
    >>> import polars as pl
    >>> import quadrille as qd
    >>> scores = pl.DataFrame({"rate": [0.01, 0.01, 0.05], "measure": ["hellinger"] * 3, "value": [0.02, 0.02, 0.04]})
    >>> picture = qd.chart.metrics_by_rate(scores)
    >>> picture.to_dict()["title"]["text"]
    'The measures against the rate of swapping'
    """
    kinds = checked(scores, "metrics_by_rate", {"rate": "number", "measure": "text", "value": "number"})
    everything, left_out = defined(kinds, "metrics_by_rate", "rate", "value")
    measures = everything["measure"].unique(maintain_order=True).to_list()
    for rule, want in n_rule.missing(measures).items():
        raise n_rule.refusal("metrics_by_rate", rule, f"Column 'measure' of the frame has no {want!r} with a value.")
    means = everything.group_by("measure", "rate", maintain_order=True).agg(pl.col("value").mean(), runs=pl.len())
    shown = thinned(everything, keep=pl.lit(False))
    rates = theme.extent(everything["rate"], margin=0.06)
    panels = [_panel(shown, means, name, rates) for name in measures]
    rows = [alt.hconcat(*panels[start : start + _ACROSS], spacing=22) for start in range(0, len(panels), _ACROSS)]
    reading = (
        "Each point is a run, each black dot the mean of the runs at a rate. A line that keeps moving away from "
        "zero: the measure tells how much was swapped. Points scattered around zero: it does not."
    )
    notes = [f"Shown: {shown.height:,} of {everything.height:,} points; means are of all."]
    notes = notes if shown.height < everything.height else []
    if any(map(theme.is_diversity, measures)):
        notes.append(
            "The differences of diversity are negative where areas become more alike: larger is not more perturbed."
        )
    if left_out:
        notes.append(f"Left out: {counted(left_out, 'value')} undefined or infinite.")
    return theme.finish(alt.vconcat(*rows, spacing=20), "The measures against the rate of swapping", reading, notes)


def _panel(shown: pl.DataFrame, means: pl.DataFrame, measure: str, rates: theme.Range) -> alt.LayerChart:
    here = pl.col("measure") == measure
    points, middle = shown.filter(here), means.filter(here).sort("rate")
    low, high = theme.extent([*points["value"], *middle["value"], 0.0], margin=0.08)
    axis = alt.Axis(tickCount=4, format=theme.number_format(measure) or ",.6~g", minExtent=_LABELS)
    x = alt.X("rate:Q", title="rate", scale=theme.fixed(rates), axis=alt.Axis(format="~%", tickCount=5, grid=False))
    y = alt.Y("value:Q", title=None, scale=theme.fixed((low, high)), axis=axis)
    dots = alt.Chart(inline(points.select("rate", "value")))
    line = alt.Chart(inline(middle.select("rate", "value", "runs")))
    zero = alt.Chart(inline(pl.DataFrame({"zero": [0.0]}))).mark_rule(color=INK, opacity=0.5, strokeDash=[4, 3])
    layers = [
        *([zero.encode(y="zero:Q")] if low < 0 < high else []),
        dots.mark_point(filled=True, size=26, opacity=0.45, color=HUES[0], strokeWidth=0).encode(x=x, y=y),
        line.mark_line(color=INK, strokeWidth=1.5).encode(x=x, y=y),
        line.mark_point(filled=True, color=INK, opacity=1, size=34).encode(
            x=x, y=y, tooltip=["rate:Q", "value:Q", "runs:Q"]
        ),
    ]
    title = alt.TitleParams(text=measure, anchor="start", frame="group", fontSize=13, offset=4, limit=_PANEL)
    return theme.layered(layers, _PANEL, _HEIGHT).properties(title=title)
