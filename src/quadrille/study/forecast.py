"""What a search would do: how many candidates, how long, which designs cannot be done, what to expect. No writing."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import cast

import numpy as np

from quadrille.data import Data
from quadrille.delta import traces
from quadrille.errors import QuadrilleError
from quadrille.measure.axes import beside_the_n_rule, orient, sides
from quadrille.plan import Plan
from quadrille.recipe import Recipe
from quadrille.score.evaluator import Evaluator
from quadrille.study.frontier import non_dominated
from quadrille.study.grid import Grid
from quadrille.study.run import IN_PROCESS_SECONDS, Recipes
from quadrille.theory.prediction import Predicted, Prediction, predict

MOST_SECONDS = 10.0


@dataclass(frozen=True)
class PredictedDesign:
    """What is expected of a design: a value per measure, None where there is none, and why not."""

    design: str
    values: dict[str, float | None]
    basis: dict[str, str | None]
    reason: str
    on_frontier: bool


@dataclass(frozen=True)
class Predictions:
    """The predictions of some designs; `axes` are the first risk and loss, None when the job lacks a side."""

    axes: tuple[str, str] | None
    designs: tuple[PredictedDesign, ...]

    @property
    def frontier(self) -> list[PredictedDesign]:
        """The designs that no other is expected to beat, by risk."""
        risk = "" if self.axes is None else self.axes[0]
        return sorted((each for each in self.designs if each.on_frontier), key=lambda each: each.values[risk] or 0.0)

    @property
    def missing(self) -> list[PredictedDesign]:
        """The designs without a value on both axes."""
        return [each for each in self.designs if any(each.values[axis] is None for axis in self.axes or ())]


def _predictions(data: Data, recipes: Sequence[tuple[str, Recipe]], measures: Sequence[str]) -> Predictions:
    """Predict the measures of designs, as far as time allows; each comes with its name."""
    wanted = beside_the_n_rule(measures)
    both = sides(wanted)
    axes = None if both is None else (wanted[both[0]], wanted[both[1]])
    found: list[tuple[str, Prediction]] = []
    started = time.perf_counter()
    for name, recipe in recipes:
        if time.perf_counter() - started > MOST_SECONDS and found:
            break
        try:
            found.append((name, predict(data, recipe, wanted)))
        except QuadrilleError as error:
            found.append((name, Prediction({address: Predicted(None, reason=str(error)) for address in wanted})))
    best = _best([each for _, each in found], axes)
    return Predictions(
        axes, tuple(_prediction_of(name, each, place in best) for place, (name, each) in enumerate(found))
    )


def _prediction_of(name: str, each: Prediction, on_frontier: bool) -> PredictedDesign:
    reasons = dict.fromkeys(one.reason for one in each.found.values() if one.value is None)
    values = {address: one.value for address, one in each.found.items()}
    basis: dict[str, str | None] = {address: one.basis for address, one in each.found.items()}
    return PredictedDesign(name, values, basis, "; ".join(reasons), on_frontier)


def _best(found: Sequence[Prediction], axes: tuple[str, str] | None) -> set[int]:
    """Return the places of the designs that no other is expected to beat."""
    rows: list[tuple[float, ...]] = []
    places: list[int] = []
    for place, each in enumerate(found):
        values = [(axis, each[axis]) for axis in axes or ()]
        point = tuple(orient(axis, value) for axis, value in values if value is not None)
        if len(point) == len(values) and point:
            rows.append(point)
            places.append(place)
    if not rows:
        return set()
    return {place for place, best in zip(places, non_dominated(np.array(rows)).tolist(), strict=True) if best}


MOST_CHECKED = 200
TIMED = 20
START_SECONDS = 1.0
WORKERS_SECONDS = 4.0
"""What it takes to load the kernels and to write the study, and to start workers that load them too."""


@dataclass(frozen=True)
class Refused:
    """A design that cannot be done, and why."""

    design: str
    reason: str


@dataclass(frozen=True)
class Traced:
    """A warning that some designs would leave a trace, how many of those drawn, and the first of them."""

    warning: str
    designs: int
    first: str


@dataclass(frozen=True)
class Forecast:
    """What a search would do; `seconds` is an estimate from `timed` candidates, None when none could be timed."""

    candidates: int
    designs: int
    checked: int
    refused: tuple[Refused, ...]
    timed: int
    seconds_each: float | None
    seconds: float | None
    workers: int
    predicted: Predictions
    warnings: tuple[Traced, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return asdict(self)


@dataclass
class _Clock:
    """Seconds spent on preparing designs, and on drawing and scoring candidates."""

    prepared: float = 0.0
    scored: float = 0.0
    timed: int = 0


def forecast(data: Data, recipes: Recipes, measures: Sequence[str], *, workers: int = 1) -> Forecast:
    """Say what a search would do, without writing anything: candidates, infeasible designs, time, predicted frontier.

    Every design is drawn once, as far as ten seconds allow, in an order that spreads over all of them; the first twenty
    are timed. What theory can predict of the measures is the mean over seeds.

    Parameters
    ----------
    data : the file to be released.
    recipes : a grid, or recipes and grids of any methods, as in `search`.
    measures : what the search would score.
    workers : the processes that it would use, for the estimate of its time.

    Example
    -------
    >>> import quadrille as qd
    >>> recipes = qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"]], pairs=[244, 488], seeds=10)
    >>> ahead = qd.forecast(qd.datasets.cps8d(), recipes, ["small_cells", "hellinger"])
    >>> ahead.candidates, ahead.designs, ahead.refused
    (40, 4, ())
    >>> [each.design for each in ahead.predicted.frontier]
    ['swap MS, pairs 488', 'swap MS, pairs 244', 'swap Edu, pairs 244']
    """
    designs, candidates = _counted(recipes)
    evaluator, clock = Evaluator(data, measures), _Clock()
    refused: dict[str, Refused] = {}
    traced: dict[str, list[str]] = {}
    started, checked = time.perf_counter(), 0
    tried = _spread(designs)
    for design in tried:
        if time.perf_counter() - started > MOST_SECONDS and checked:
            break
        recipe = Recipe.from_json(design)
        try:
            if not clock.timed:
                evaluator.values(recipe.plan(data))  # kernels are loaded and tables counted before the clock starts
                started = time.perf_counter()
            plan = _timed(recipe, data, evaluator if clock.timed < TIMED else None, clock)
            for warning in traces(data, plan):
                traced.setdefault(warning, []).append(named(recipe))
        except QuadrilleError as error:
            refused[design] = Refused(named(recipe), str(error))
        checked += 1
    each = seconds = None
    if clock.timed:
        each = (clock.prepared * len(designs) / candidates + clock.scored) / clock.timed
        alone = each * candidates
        together = workers > 1 and alone > IN_PROCESS_SECONDS
        seconds = START_SECONDS + (WORKERS_SECONDS + alone / workers if together else alone)
    told = tuple(refused[design] for design in designs if design in refused)
    seen = tuple(Traced(warning, len(found), found[0]) for warning, found in traced.items())
    ahead = _predicted(data, [design for design in tried if design not in refused], designs, measures)
    return Forecast(candidates, len(designs), checked, told, clock.timed, each, seconds, workers, ahead, seen)


def _predicted(data: Data, tried: Sequence[str], designs: Sequence[str], measures: Sequence[str]) -> Predictions:
    """Predict the designs tried, in the order of the grid; where they differ in method, the names tell which."""
    recipes = [Recipe.from_json(design) for design in tried]
    several = len({type(recipe) for recipe in recipes}) > 1
    names = [(f"{type(recipe).__name__}, " if several else "") + named(recipe) for recipe in recipes]
    found = _predictions(data, list(zip(names, recipes, strict=True)), measures)
    place = {design: i for i, design in enumerate(designs)}
    ordered = sorted(zip(tried, found.designs, strict=False), key=lambda each: place[each[0]])
    return replace(found, designs=tuple(ahead for _, ahead in ordered))


def _counted(recipes: Recipes) -> tuple[list[str], int]:
    """Return the distinct designs, and how many candidates they make with their seeds."""
    seeds: dict[str, set[int | str]] = {}
    for each in [recipes] if isinstance(recipes, Grid) else recipes:
        given = each.seeds if isinstance(each, Grid) else [cast("int | str", each.parameters()["seed"])]
        for design in each.designs() if isinstance(each, Grid) else [each.design_json()]:
            seeds.setdefault(design, set()).update(given)
    return list(seeds), sum(map(len, seeds.values()))


def _timed(recipe: Recipe, data: Data, evaluator: Evaluator | None, clock: _Clock) -> Plan:
    """Draw a candidate and return its plan; with an evaluator also score it, by the clock.

    The first draw of a design is dearer than the others.
    """
    begin = time.perf_counter()
    drawer = recipe.prepare(data)
    plan = drawer.draw(recipe.stream())
    if evaluator is not None:
        evaluator.values(plan)
        first = time.perf_counter()
        evaluator.values(drawer.draw(recipe.stream()))
        again = time.perf_counter() - first
        clock.prepared += max(0.0, first - begin - again)
        clock.scored += again
        clock.timed += 1
    return plan


def _spread(designs: Sequence[str]) -> list[str]:
    """Return up to 200 designs, evenly spread, in an order in which also the first few are spread over all."""
    count = min(len(designs), MOST_CHECKED)
    bits = max(1, (count - 1).bit_length())
    order = sorted(range(count), key=lambda place: int(f"{place:0{bits}b}"[::-1], 2))
    return [designs[place * len(designs) // count] for place in order]


def named(recipe: Recipe) -> str:
    """Name a design in one line: what differs from the defaults, without the seed."""
    design: dict[str, object] = json.loads(recipe.design_json())
    said = {key: value for key, value in design.items() if key not in ("method", "version")}
    order = [key for key in recipe.parameters() if key in said]
    return ", ".join(f"{key} {_words(said[key])}" for key in order) or "all by default"


def _words(value: object) -> str:
    if not isinstance(value, list):
        return str(value)
    listed = cast("list[object]", value)
    return " + ".join("*".join(cast("list[str]", each)) if isinstance(each, list) else str(each) for each in listed)
