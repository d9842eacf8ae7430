"""Distributions by factor: how the replicates of each level spread, for each metric."""

from __future__ import annotations

import altair as alt
import polars as pl

from quadrille.chart import theme
from quadrille.chart.factor_panels import At, labelled, panels
from quadrille.chart.theme import AXIS, HUES, INK
from quadrille.chart.tidy import Kind, checked, defined, inline

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
