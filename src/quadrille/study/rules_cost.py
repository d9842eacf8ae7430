"""What plausibility rules cost: the same design drawn with its rules and without them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import hypot, sqrt
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, cast

from quadrille import frames
from quadrille.data import Data
from quadrille.errors import ParameterError, bad_parameter
from quadrille.recipe import Recipe
from quadrille.study.score import Evaluator

if TYPE_CHECKING:
    import polars as pl

PAIRS = "pairs"
"""The row that is no measure: how many pairs a draw makes."""

Values = dict[str, float | None]


def rules_cost(
    data: Data,
    recipe: Recipe,
    measures: Sequence[str],
    *,
    draws: int = 10,
    progress: Callable[[int, int], None] | None = None,
) -> pl.DataFrame:
    """Draw a recipe with its rules and without them, and compare the pairs made and the measures.

    One row for the pairs and one per measure: `without` and `with_rules` are means over the draws that have a value,
    `difference` is with rules minus without, and `standard_error` is its standard error, to tell a cost from chance.
    A recipe whose seed is a number is drawn with the seeds that follow it; else every draw has a secret seed.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> recipe = qd.RandomSwap(["Age"], rate=0.1, rules=["Age=<25 & MS=Married"], seed=1)
    >>> found = qd.rules_cost(data, recipe, ["hellinger"], draws=3)
    >>> found["measure"].to_list(), found["with_rules"][1] < found["without"][1]
    (['pairs', 'hellinger'], True)
    """
    if not recipe.parameters().get("rules"):
        raise ParameterError("The recipe has no rules, so there is nothing to compare. Give it rules.")
    if isinstance(cast("object", draws), bool) or not isinstance(cast("object", draws), int) or draws < 1:
        raise bad_parameter("rules_cost", "draws", "a whole number of 1 or more", draws)
    evaluator = Evaluator(data, measures)
    designs = (replace(cast("Any", recipe), rules=()), recipe)
    found: list[list[Values]] = [[], []]
    better: dict[str, str] = {}
    for number, (drawn, values) in enumerate((d, found[i]) for i in (1, 0) for d in _seeded(designs[i], draws)):
        plan = drawn.plan(data)
        scores = evaluator.score(plan)
        better = {name: kind.direction for name, (kind, _) in scores.results.items()}
        values.append({PAIRS: plan.report(data).pairs, **scores})
        if progress is not None:
            progress(number + 1, 2 * draws)
    return frames.tidy([_row(name, better.get(name, ""), *found) for name in found[0][0]])


def _seeded(recipe: Recipe, draws: int) -> Iterator[Recipe]:
    seed = recipe.parameters()["seed"]
    for number in range(draws):
        yield replace(cast("Any", recipe), seed=seed + number if isinstance(seed, int) else None)


def _row(name: str, better: str, without: Sequence[Values], ruled: Sequence[Values]) -> dict[str, object]:
    """Compare one quantity; a draw without a value counts nowhere, and one draw alone has no standard error."""
    free, bound = ([value for draw in draws if (value := draw[name]) is not None] for draws in (without, ruled))
    known = bool(free and bound)
    spread = [stdev(values) / sqrt(len(values)) for values in (free, bound) if len(values) > 1]
    return {
        "measure": name,
        "better": better,
        "without": fmean(free) if free else None,
        "with_rules": fmean(bound) if bound else None,
        "difference": fmean(bound) - fmean(free) if known else None,
        "standard_error": hypot(*spread) if known and len(spread) == 2 else None,
        "draws": min(len(free), len(bound)),
    }
