"""Factor effects: how far each level of a factor moves each metric from the baseline."""

from __future__ import annotations

import altair as alt
import polars as pl

from quadrille.chart import theme
from quadrille.chart.factor_panels import At, labelled, panels
from quadrille.chart.theme import AXIS, HUES, counted
from quadrille.chart.tidy import Kind, checked, defined, inline

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
