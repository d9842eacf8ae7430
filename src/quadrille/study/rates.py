"""Scores of one design at several rates: what more swapping does to each measure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from quadrille import frames
from quadrille.data import Data
from quadrille.errors import bad_parameter
from quadrille.recipe import Recipe
from quadrille.study.score import Evaluator

if TYPE_CHECKING:
    import polars as pl


def scores_by_rate(
    data: Data,
    recipes: Iterable[Recipe],
    measures: Sequence[str],
    *,
    progress: Callable[[int, int], None] | None = None,
) -> pl.DataFrame:
    """Score recipes that differ by rate and seed: rate, run, measure, value, note; a row per recipe and measure.

    `rate` is the share of the records that take part in the plan, both partners counted. Make the recipes with
    `grid`, as in `grid(RandomSwap, swap=[["tract"]], rate=[0.01, 0.03, 0.05], seeds=10)`.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> recipes = qd.grid(qd.RandomSwap, swap=[["Edu"]], rate=[0.01, 0.05], seed=range(2))
    >>> found = qd.scores_by_rate(data, recipes, ["hellinger"])
    >>> found.columns, found.height
    (['rate', 'run', 'measure', 'value', 'note'], 4)
    """
    listed = list(recipes)
    if not listed:
        raise bad_parameter("scores_by_rate", "recipes", "one recipe or more", listed)
    evaluator = Evaluator(data, measures)
    rows: list[dict[str, object]] = []
    for run, recipe in enumerate(listed):
        plan = recipe.plan(data)
        rate = len(plan.rows) / data.n
        for address, (_, score) in evaluator.score(plan).results.items():
            rows.append({"rate": rate, "run": run + 1, "measure": address, "value": score.value, "note": score.note})
        if progress is not None:
            progress(run + 1, len(listed))
    return frames.tidy(rows)
