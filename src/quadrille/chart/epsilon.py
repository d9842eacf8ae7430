"""What an epsilon costs: the predicted loss of a private swap, with one chance and with a chance per stratum."""

from __future__ import annotations

import altair as alt
import polars as pl

from quadrille.chart import theme
from quadrille.chart.theme import HEIGHT, HUES, SHAPES, WIDTH, Kind, inline, left_out, prepared, tooltips
from quadrille.errors import InputError
from quadrille.present.numbers import epsilon

_READING = (
    "Each point is a design before any draw: its epsilon to the right, the loss that is expected upwards. A smaller "
    "epsilon promises more. With a chance of its own for each stratum the same epsilon costs less, because small "
    "strata are left alone: next to nobody moves there, and what they show is published nearly as it is."
)
_MEANINGLESS = "Above an epsilon of about 5 the promise by itself rules out nothing that matters."


def epsilon_loss(curve: pl.DataFrame) -> alt.LayerChart:
    """Draw what each epsilon of a private swap costs, a line per design.

    `curve` is the frame of `theory.epsilon_curve`: `epsilon`, `loss`, `moved` (numbers; rows without a loss are left
    out and counted), `design` and `measure` (text).

    Example
    -------
    >>> import polars as pl
    >>> import quadrille as qd
    >>> curve = pl.DataFrame({"epsilon": [12.0, 10.0], "design": ["one chance"] * 2,
    ...     "moved": [0.1, 0.45], "loss": [0.0455, 0.1171], "measure": ["hellinger"] * 2})
    >>> picture = qd.chart.epsilon_loss(curve)
    >>> picture.to_dict()["title"]["text"]
    'What an epsilon costs: hellinger by epsilon, from 10 to 12'
    """
    columns: dict[str, Kind] = {"epsilon": "number", "design": "text", "moved": "number", "loss": "number"}
    points, lacking = prepared(curve, "epsilon_loss", {**columns, "measure": "text"}, "epsilon", "loss")
    measures = points["measure"].unique(maintain_order=True).to_list()
    if len(measures) > 1:
        raise InputError(f"The frame for epsilon_loss has {len(measures)} measures of loss. Draw one at a time.")
    designs = points["design"].unique(maintain_order=True).to_list()
    if len(designs) > len(HUES):
        raise InputError(f"epsilon_loss has {len(designs)} designs. At most {len(HUES)} can be told apart: draw fewer.")
    color, shape = theme.looks("design", designs, HUES, SHAPES, theme.legend())
    x = alt.X("epsilon:Q", title="epsilon, per record", scale=alt.Scale(zero=False, nice=True))
    y = alt.Y("loss:Q", title=f"{measures[0]}, predicted", scale=alt.Scale(zero=True))
    base = alt.Chart(inline(points.sort("design", "epsilon")))
    lines = base.mark_line(strokeWidth=2).encode(x=x, y=y, color=color)
    shown = tooltips("design:N", "epsilon:Q", "loss:Q", "moved:Q")
    dots = base.mark_point(filled=True, size=60, opacity=1).encode(x=x, y=y, color=color, shape=shape, tooltip=shown)
    low, high = (epsilon(float(end)) for end in (points["epsilon"].min(), points["epsilon"].max()))  # type: ignore[arg-type]
    title = f"What an epsilon costs: {measures[0]} by epsilon, from {low} to {high}"
    notes = [_MEANINGLESS, left_out(lacking, "design", "that cannot be predicted")]
    return theme.finish(theme.layered([lines, dots], WIDTH, HEIGHT), title, _READING, notes)
