"""What a search is given, checked once; what it would do: how many, how long, which cannot be done, what to expect."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np

from quadrille.data import Data, require_columns
from quadrille.delta import warnings_of
from quadrille.errors import InputError, QuadrilleError, bad_parameter
from quadrille.measure import beside_exposed, beside_the_n_rule, measure_of, orient, sides
from quadrille.measure.base import Address
from quadrille.measure.population import sample_of
from quadrille.plan import Plan
from quadrille.recipe import Recipe
from quadrille.score.contradictions import ContradictionError, contradictions
from quadrille.score.evaluator import Evaluator
from quadrille.study.choose import non_dominated
from quadrille.study.designed import curve_grids
from quadrille.study.grid import Grid
from quadrille.study.store import Store
from quadrille.study.study import written
from quadrille.study.workers import IN_PROCESS_SECONDS
from quadrille.swap.designed import Curve
from quadrille.text import Shown
from quadrille.theory.prediction import Predicted, Prediction, predict

Recipes = Grid | Curve | Iterable[Recipe | Grid | Curve]


class CandidateCheck:
    """Looks at every recipe or grid that a search is given, at each list of columns once."""

    def __init__(self, data: Data, measures: Sequence[str]) -> None:
        self._data = data
        self._free = [address for address in measures if not Address.parse(address).explicit]
        self._following = [address for address in self._free if measure_of(address).follows_plan]
        self._seen: set[tuple[str, tuple[str, ...]]] = set()
        self._moved: frozenset[str] | None = None
        self._steering: tuple[str, ...] | None = None

    def know(self, designs: Iterable[str]) -> None:
        """Take the candidates into account that a study has already."""
        for design in designs if self._following else ():
            recipe = Recipe.from_json(design)
            self._compare(recipe.moved(recipe.parameters()))

    def check(self, candidate: Recipe | Grid) -> None:
        """Refuse a recipe or a grid that this search cannot do."""
        if isinstance(candidate, Grid):
            method, columns = candidate.method, candidate.columns()
            moving = [(name, values) for name, values in candidate.axes if method.params()[name].moves]
            names = [name for name, _ in moving]
            moved = [dict(zip(names, chosen, strict=True)) for chosen in product(*(values for _, values in moving))]
            self._compare_steering(_steering_columns(candidate))
        else:
            method, columns, moved = type(candidate), candidate.columns().items(), [candidate.parameters()]
            self._compare_steering(candidate.steering_columns)
        for name, listed in columns:
            if (name, listed) not in self._seen:
                require_columns(self._data, listed, f"'{name}' of {method.method_name}")
                self._seen.add((name, listed))
        for parameters in moved if self._following else ():
            self._compare(method.moved(parameters))

    def _compare_steering(self, steering: tuple[str, ...]) -> None:
        if self._free and self._steering not in (None, steering):
            raise InputError(
                f"The measure {self._free[0]!r} is taken over the key variables without the columns that steer a draw, "
                "and the candidates are steered by different ones. Name its variables, or give these columns the role "
                "stratum in the codebook."
            )
        self._steering = steering

    def _compare(self, moved: frozenset[str]) -> None:
        """Compare the columns that a candidate moves with those of the others; one that names none moves all keys."""
        moved = moved or frozenset(self._data.keys)
        if self._following and self._moved not in (None, moved):
            address = self._following[0]
            raise InputError(
                f"The measure {address!r} looks at the columns that a candidate moves, and the candidates move "
                f"different ones, so their scores could not be compared. Name its variables, as in {address}(A*B)."
            )
        self._moved = moved


def _steering_columns(grid: Grid) -> tuple[str, ...]:
    """Return the columns that steer the first design of a grid, in the order of the parameters."""
    first = {name: values[0] for name, values in grid.axes}
    steering = [(name, param) for name, param in grid.method.params().items() if param.steers and name in first]
    return tuple(column for name, param in steering for column in param.columns(first[name]))


@dataclass(frozen=True)
class Candidates:
    """Recipes and grids that were checked, and the one evaluator of the measures; `later` is that of `then`.

    What is made one by one is checked one by one, while it is taken; all else was checked before.
    """

    data: Data
    measures: tuple[str, ...]
    then: tuple[str, ...]
    recipes: Iterable[Recipe | Grid]
    check: CandidateCheck
    evaluator: Evaluator
    later: Evaluator | None

    def __iter__(self) -> Iterator[Recipe | Grid]:
        return iter(self.recipes)

    def __getitem__(self, place: int) -> Recipe | Grid:
        return tuple(self.recipes)[place]


def check_candidates(
    data: Data,
    recipes: Recipes | Candidates,
    measures: Sequence[str],
    then: Sequence[str] | None = (),
    *,
    begun: Path | None = None,
) -> Candidates:
    """Check what a search is given, before anything is written; what was checked for the same is taken as it is.

    A `then` of None stands for any costly measures; `begun` is the study, which may have been begun already.
    """
    early, late = with_exposed(measures, then or (), data, begun)
    if isinstance(recipes, Candidates):
        if recipes.data is data and recipes.measures == early and (then is None or recipes.then == late):
            return recipes
        recipes = recipes.recipes
    evaluator = Evaluator(data, early)
    later = evaluator.sharing(late) if late else None
    if len({*early, *late}) < len(early) + len(late):
        raise bad_parameter("search", "measures", "measures that are named once each", [*early, *late])
    check = CandidateCheck(data, [*early, *late])
    checked = _checked(check, expanded(recipes, data))
    one_by_one = isinstance(recipes, Iterator)
    return Candidates(data, early, late, checked if one_by_one else tuple(checked), check, evaluator, later)


def expanded(recipes: Recipes, data: Data) -> Iterator[Recipe | Grid]:
    """Return recipes and grids; a curve becomes the grids that it is with these data."""
    for candidate in [recipes] if isinstance(recipes, Grid | Curve) else recipes:
        if isinstance(candidate, Curve):
            yield from curve_grids(candidate, data)
        else:
            yield candidate


def _checked(check: CandidateCheck, recipes: Iterable[Recipe | Grid]) -> Iterator[Recipe | Grid]:
    for candidate in recipes:
        check.check(candidate)
        yield candidate


def without_contradictions(candidates: Candidates) -> Candidates:
    """Refuse candidates that contradict the file; of designs that move the same in the same way one is looked at."""
    seen: set[object] = set()

    def checked() -> Iterator[Recipe | Grid]:
        for candidate in candidates:
            for recipe in _typical(candidate):
                _refuse(candidates.data, recipe, seen)
            yield candidate

    one_by_one = not isinstance(candidates.recipes, tuple)
    return replace(candidates, recipes=checked() if one_by_one else tuple(checked()))


def _typical(candidate: Recipe | Grid) -> Iterable[Recipe]:
    """Return the designs of a grid that differ in more than numbers, with the largest of each number.

    A rate changes nothing in what moves together; a coin does, if it is not 0.
    """
    if not isinstance(candidate, Grid):
        return (candidate,)
    axes = tuple((name, _largest(values)) for name, values in candidate.axes)
    return replace(candidate, axes=axes, seeds=candidate.seeds[:1])


def _largest(values: tuple[object, ...]) -> tuple[object, ...]:
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    return (max(numbers),) if len(numbers) == len(values) else values


def _refuse(data: Data, recipe: Recipe, seen: set[object]) -> None:
    """Refuse a recipe that contradicts the data, unless its like was seen; one that cannot be done is left alone."""
    try:
        rules = recipe.parameters().get("rules", ())
        alike = (recipe.movement(data), recipe.steering_columns, rules)
        found = () if alike in seen else contradictions(data, recipe)
    except QuadrilleError:
        return
    seen.add(alike)
    if found:
        raise ContradictionError(found)


def with_exposed(
    measures: Sequence[str], then: Sequence[str], data: Data, begun: Path | None = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what a study scores: `exposed` next to every `small_cells`, each time once; what is named twice stays.

    Next to `exposed` stands `population_risk` where the data are a sample of a population of known size, unless the
    study was begun without it.
    """
    early, late = beside_the_n_rule(measures), beside_the_n_rule(then)
    sample = sample_of(data)
    if sample is not None and sample.share is not None and not (begun and _is_without_population(begun)):
        early, late = beside_exposed(early, data), beside_exposed(late, data)
    kept = [address for address in late if address not in early or (address in measures and address in then)]
    return tuple(early), tuple(kept)


def _is_without_population(study: Path) -> bool:
    """Tell whether there is such a study, begun by a version that did not put `population_risk` next to `exposed`."""
    with suppress(QuadrilleError), closing(Store.open(study)) as store:
        scored = (*store.header.measures, *store.header.then)
        return all(Address.parse(address).name != "population_risk" for address in scored)
    return False


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
