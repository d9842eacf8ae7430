"""Several recipes, several draws of each, one table: means, spread and standard errors of the measures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import hypot, sqrt
from statistics import fmean, mean, stdev
from typing import TYPE_CHECKING, Any, cast

from quadrille.data import Data, tidy
from quadrille.errors import ParameterError, bad_parameter
from quadrille.measure.base import Measure, Score
from quadrille.params import whole
from quadrille.recipe import Recipe
from quadrille.score.evaluator import Evaluator
from quadrille.study.candidates import Recipes, expanded
from quadrille.text import Shown

if TYPE_CHECKING:
    import polars as pl

PAIRS = "pairs"
"""Stands among the measures for what is no measure: how many pairs a draw makes."""
_OWNER = "score_recipes"

Named = Recipe | Mapping[str, Recipe] | Recipes


@dataclass(frozen=True, repr=False)
class RecipeScores(Shown):
    """The scores of some designs, several draws each."""

    runs: pl.DataFrame
    """A row per draw and measure: recipe, rate, run, measure, better, value, note, as `chart.metrics_by_rate` takes it.
    `rate` is the share of the records that take part, both partners counted."""

    def frame(self) -> pl.DataFrame:
        """Return a row per recipe and measure: mean, sd and standard_error over the draws that have a value.

        `difference` is the mean minus that of the first recipe, and `difference_error` its standard error, to tell an
        effect from chance. One draw alone has no sd.
        """
        cells: dict[tuple[object, str], list[dict[str, Any]]] = {}
        for row in self.runs.iter_rows(named=True):
            cells.setdefault((row["recipe"], row["measure"]), []).append(row)
        first = next(iter(cells))[0]
        means = {key: _mean(rows) for key, rows in cells.items()}
        return tidy([row | _difference(row, means[first, key[1]], key[0] == first) for key, row in means.items()])

    def notes(self) -> list[tuple[str, str]]:
        """Return what must be said of some measures, such as why one has no value: each with its notes, once."""
        noted = self.runs.filter(self.runs["note"] != "").select("measure", "note").unique(maintain_order=True)
        return list(noted.iter_rows())


def score_recipes(
    data: Data,
    recipes: Named,
    measures: Sequence[str],
    *,
    draws: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> RecipeScores:
    """Draw and score recipes several times each, in this process, and compare them in one table.

    Parameters
    ----------
    data : the file to be released.
    recipes : one, several, a grid or a curve; a dict gives them names, otherwise they are numbered from 1. Recipes
        that differ by seed only are draws of one recipe.
    measures : what to score, as in `score`. The word "pairs" stands for the number of pairs that a draw makes.
    draws : draws of every recipe. One whose seed is a number is drawn with the seeds that follow it, too; else every
        draw has a secret seed. Without `draws` every recipe is drawn once, with its own seed.
    progress : is called with the number of draws done and the number of all.

    Of the result, `frame()` has a row per recipe and measure with the means, and `runs` a row per draw and measure.

    What rules cost, and what more swapping does:

    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> ruled = qd.RandomSwap(["Age"], rate=0.1, rules=["Age=<25 & MS=Married"], seed=1)
    >>> free = qd.RandomSwap(["Age"], rate=0.1, seed=1)
    >>> table = qd.score_recipes(data, {"free": free, "ruled": ruled}, ["pairs", "hellinger"], draws=3).frame()
    >>> table["difference"][3] < -5 * table["difference_error"][3]
    True
    >>> recipes = qd.grid(qd.RandomSwap, swap=[["Edu"]], rate=[0.01, 0.05], seed=range(2))
    >>> table = qd.score_recipes(data, recipes, ["hellinger"]).frame()
    >>> table.select("recipe", "measure", "better", "rate", "draws").rows()
    [(1, 'hellinger', 'lower', 0.0099..., 2), (2, 'hellinger', 'lower', 0.0499..., 2)]
    >>> table.columns[5:]
    ['mean', 'sd', 'standard_error', 'difference', 'difference_error']
    """
    seeded = [draw for name, recipe in _named(recipes, data) for draw in _seeded(name, recipe, draws)]
    if not seeded:
        raise bad_parameter(_OWNER, "recipes", "one recipe or more", [])
    if draws is not None and len({recipe.to_json() for _, recipe in seeded}) < len(seeded):
        raise ParameterError(f"{_OWNER} takes 'draws', or recipes with several seeds each, not both.")
    scored = [address for address in measures if address != PAIRS]
    evaluator = Evaluator(data, scored) if scored or not measures else None
    numbers: dict[str, int] = {}
    rows: list[dict[str, object]] = []
    for run, (name, recipe) in enumerate(seeded):
        design = numbers.setdefault(recipe.design_json(), len(numbers) + 1)
        plan = recipe.plan(data)
        results: Mapping[str, tuple[Measure, Score]] = {} if evaluator is None else evaluator.score(plan).results
        common = {"recipe": name or design, "rate": len(plan.rows) / data.n, "run": run + 1}
        for address in measures:
            if address == PAIRS:
                found = {"better": "", "value": plan.report(data).pairs, "note": ""}
            else:
                kind, score = results[address]
                found = {"better": kind.direction, "value": score.value, "note": score.note}
            rows.append({**common, "measure": address, **found})
        if progress is not None:
            progress(run + 1, len(seeded))
    return RecipeScores(tidy(rows))


def _named(recipes: Named, data: Data) -> Iterator[tuple[str, Recipe]]:
    """Return every recipe with the name that it has."""
    if isinstance(recipes, Mapping):
        yield from cast("Mapping[str, Recipe]", recipes).items()
        return
    for candidate in [recipes] if isinstance(recipes, Recipe) else expanded(recipes, data):
        for recipe in [candidate] if isinstance(candidate, Recipe) else candidate:
            yield "", recipe


def _seeded(name: str, recipe: Recipe, draws: int | None) -> Iterator[tuple[str, Recipe]]:
    """Return a recipe with the seed of every draw."""
    if draws is None:
        yield name, recipe
        return
    seed = recipe.parameters()["seed"]
    for number in range(whole(_OWNER, "draws", draws, least=1)):
        yield name, replace(cast("Any", recipe), seed=seed + number if isinstance(seed, int) else None)


def _mean(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Summarise the draws of a recipe; one without a value counts nowhere."""
    values = [row["value"] for row in rows if row["value"] is not None]
    spread = stdev(values) if len(values) > 1 else None
    return {
        **{name: rows[0][name] for name in ("recipe", "measure", "better")},
        "rate": mean(row["rate"] for row in rows),
        "draws": len(values),
        "mean": fmean(values) if values else None,
        "sd": spread,
        "standard_error": None if spread is None else spread / sqrt(len(values)),
    }


def _difference(row: Mapping[str, Any], first: Mapping[str, Any], alone: bool) -> dict[str, Any]:
    known = not alone and None not in (row["mean"], first["mean"])
    sure = known and None not in (row["standard_error"], first["standard_error"])
    return {
        "difference": row["mean"] - first["mean"] if known else None,
        "difference_error": hypot(row["standard_error"], first["standard_error"]) if sure else None,
    }
