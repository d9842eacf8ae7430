"""What a search would do: how many candidates, how long, which designs cannot be done, what to expect. No writing."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from quadrille.data import Data
from quadrille.delta import warnings_of
from quadrille.errors import QuadrilleError
from quadrille.measure import orient, sides
from quadrille.plan import Plan
from quadrille.recipe import Recipe
from quadrille.score.evaluator import Evaluator
from quadrille.study.candidates import Candidates, Recipes, check_candidates
from quadrille.study.choose import non_dominated
from quadrille.study.grid import Grid
from quadrille.study.study import written
from quadrille.study.workers import IN_PROCESS_SECONDS
from quadrille.text import Shown
from quadrille.theory.prediction import Predicted, Prediction, predict

MOST_SECONDS = 10.0


@dataclass(frozen=True, repr=False)
class PredictedDesign(Shown):
    """What is expected of a design: a value per measure, None where there is none, and why not."""

    design: str
    values: dict[str, float | None]
    basis: dict[str, str | None]
    reason: str
    on_frontier: bool


@dataclass(frozen=True, repr=False)
class Predictions(Shown):
    """The predictions of some designs; `axes` are the first risk and loss, None when the job lacks a side."""

    axes: tuple[str, str] | None
    designs: tuple[PredictedDesign, ...]

    @property
    def frontier(self) -> list[PredictedDesign]:
        """The designs that no other is expected to beat, by risk."""
        risk = "" if self.axes is None else self.axes[0]
        best = (design for design in self.designs if design.on_frontier)
        return sorted(best, key=lambda design: design.values[risk] or 0.0)

    @property
    def missing(self) -> list[PredictedDesign]:
        """The designs without a value on both axes."""
        return [design for design in self.designs if any(design.values[axis] is None for axis in self.axes or ())]


def _predictions(data: Data, recipes: Mapping[str, Recipe], measures: Sequence[str]) -> dict[str, Prediction]:
    """Predict the measures of designs, as far as time allows."""
    made: dict[str, Prediction] = {}
    started = time.perf_counter()
    for design, recipe in recipes.items():
        if time.perf_counter() - started > MOST_SECONDS and made:
            break
        try:
            made[design] = predict(data, recipe, measures)
        except QuadrilleError as error:
            made[design] = Prediction({address: Predicted(None, reason=str(error)) for address in measures})
    return made


def _predicted(
    data: Data, recipes: Mapping[str, Recipe], designs: Sequence[str], measures: Sequence[str]
) -> Predictions:
    """Predict designs, in the order of the grid; where they differ in method, their names say which."""
    both = sides(measures)
    axes = None if both is None else (measures[both[0]], measures[both[1]])
    made = _predictions(data, recipes, measures)
    best = _best(made, axes)
    several = len({type(recipe) for recipe in recipes.values()}) > 1
    rows: list[PredictedDesign] = []
    for design in (design for design in designs if design in made):
        recipe, found = recipes[design], made[design].found
        name = (f"{recipe.method_name}, " if several else "") + named(recipe)
        reasons = dict.fromkeys(one.reason for one in found.values() if one.value is None)
        values = {address: one.value for address, one in found.items()}
        basis: dict[str, str | None] = {address: one.basis for address, one in found.items()}
        rows.append(PredictedDesign(name, values, basis, "; ".join(reasons), design in best))
    return Predictions(axes, tuple(rows))


def _best(made: Mapping[str, Prediction], axes: tuple[str, str] | None) -> set[str]:
    """Return the designs that no other is expected to beat."""
    points: dict[str, tuple[float, ...]] = {}
    for design, prediction in made.items():
        values = [(axis, prediction[axis]) for axis in axes or ()]
        point = tuple(orient(axis, value) for axis, value in values if value is not None)
        if point and len(point) == len(values):
            points[design] = point
    kept: Sequence[bool] = non_dominated(np.array(list(points.values()))).tolist() if points else ()
    return {design for design, best in zip(points, kept, strict=True) if best}


MOST_CHECKED = 200
TIMED = 20
START_SECONDS = 1.0
WORKERS_SECONDS = 4.0
"""What it takes to load the kernels and to write the study, and to start workers that load them too."""


@dataclass(frozen=True, repr=False)
class Refused(Shown):
    """A design that cannot be done, why, and what would help where that is known."""

    design: str
    reason: str
    hint: str = ""


@dataclass(frozen=True, repr=False)
class Traced(Shown):
    """A warning that some designs would leave a trace, how many of those drawn, and the first of them."""

    warning: str
    designs: int
    first: str


@dataclass(frozen=True, repr=False)
class Forecast(Shown):
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
    seeds: tuple[int, int] = (1, 1)
    """The fewest and the most seeds of a design."""

    def as_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return asdict(self)


@dataclass
class _Clock:
    """Seconds spent on preparing designs, and on drawing and scoring candidates."""

    prepared: float = 0.0
    scored: float = 0.0
    timed: int = 0

    def per_candidate(self, designs: float) -> float | None:
        """Return the seconds per candidate, given the designs to prepare per candidate; None before any was timed."""
        return (self.prepared * designs + self.scored) / self.timed if self.timed else None


def forecast(data: Data, recipes: Recipes | Candidates, measures: Sequence[str], *, workers: int = 1) -> Forecast:
    """Say what a search would do, without writing anything: candidates, infeasible designs, time, predicted frontier.

    Every design is drawn once, as far as ten seconds allow, in an order that spreads over all of them; the first twenty
    are timed. What theory can predict of the measures is the mean over seeds.

    Parameters
    ----------
    data : the file to be released.
    recipes : a grid, or recipes, grids and curves of any methods, as in `search`.
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
    candidates = check_candidates(data, recipes, measures, then=None)
    seeds = _seeds_of_designs(candidates)
    designs, count = list(seeds), sum(map(len, seeds.values()))
    refused: dict[str, Refused] = {}
    drawn: dict[str, Recipe] = {}
    traced: dict[str, list[str]] = {}
    clock, started = _Clock(), time.perf_counter()
    for design in _spread(designs):
        if time.perf_counter() - started > MOST_SECONDS and (drawn or refused):
            break
        recipe = Recipe.from_json(design)
        try:
            if not clock.timed:
                candidates.evaluator.values(recipe.plan(data))  # loads kernels, counts tables: not part of the pace
                started = time.perf_counter()
            plan = _timed(recipe, data, candidates.evaluator if clock.timed < TIMED else None, clock)
            for warning in warnings_of(data, plan):
                traced.setdefault(warning, []).append(named(recipe))
            drawn[design] = recipe
        except QuadrilleError as error:
            refused[design] = Refused(named(recipe), error.reason, error.hint)
    per_candidate = clock.per_candidate(len(designs) / count)
    return Forecast(
        candidates=count,
        designs=len(designs),
        checked=len(drawn) + len(refused),
        refused=tuple(refused[design] for design in designs if design in refused),
        timed=clock.timed,
        seconds_each=per_candidate,
        seconds=None if per_candidate is None else _seconds(per_candidate * count, workers),
        workers=workers,
        predicted=_predicted(data, drawn, designs, candidates.measures),
        warnings=tuple(Traced(warning, len(names), names[0]) for warning, names in traced.items()),
        seeds=(min(map(len, seeds.values()), default=0), max(map(len, seeds.values()), default=0)),
    )


def _seconds(alone: float, workers: int) -> float:
    """Estimate the time of a search from the time that its candidates take one after the other."""
    together = workers > 1 and alone > IN_PROCESS_SECONDS
    return START_SECONDS + (WORKERS_SECONDS + alone / workers if together else alone)


def _seeds_of_designs(candidates: Candidates) -> dict[str, set[int | str]]:
    """Return the distinct designs, each with its seeds."""
    seeds: dict[str, set[int | str]] = {}
    for candidate in candidates:
        if isinstance(candidate, Grid):
            for design in candidate.designs:
                seeds.setdefault(design, set()).update(candidate.seeds)
        else:
            seeds.setdefault(candidate.design_json(), set()).add(candidate.parameters()["seed"])
    return seeds


def _timed(recipe: Recipe, data: Data, evaluator: Evaluator | None, clock: _Clock) -> Plan:
    """Draw a candidate and return its plan; with an evaluator also score it, by the clock.

    The first draw of a design is dearer than the others. All is done twice and the shorter times count: the first time
    kernels may have to be compiled.
    """
    plan = recipe.plan(data)
    if evaluator is not None:
        trials = [_trial(recipe, data, evaluator) for _ in range(2)]
        first, again = map(min, zip(*trials, strict=True))
        clock.prepared += max(0.0, first - again)
        clock.scored += again
        clock.timed += 1
    return plan


def _trial(recipe: Recipe, data: Data, evaluator: Evaluator) -> tuple[float, float]:
    """Return the seconds for a first and for a second candidate of a design."""
    begin = time.perf_counter()
    prepared = recipe.prepare(data)
    evaluator.values(prepared.draw(recipe.stream()))
    first = time.perf_counter()
    evaluator.values(prepared.draw(recipe.stream()))
    return first - begin, time.perf_counter() - first


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
    return ", ".join(f"{key} {written(said[key])}" for key in order) or "all by default"
