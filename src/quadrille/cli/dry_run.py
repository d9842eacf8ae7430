"""What a search would do: how many candidates, how long, which designs cannot be done, what to expect. No writing."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, cast

from quadrille.cli.foreseen import Foreseen, foresee

if TYPE_CHECKING:
    from quadrille.data import Data
    from quadrille.plan import Plan
    from quadrille.recipe import Recipe
    from quadrille.study.grid import Grid
    from quadrille.study.score import Evaluator

MOST_CHECKED = 200
MOST_SECONDS = 10.0
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
    predicted: Foreseen
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


def forecast(data: Data, grids: Sequence[Grid], measures: Sequence[str], workers: int) -> Forecast:
    """Draw every design once, as far as time allows, and time the first of them; they are spread over the grids."""
    from quadrille.errors import QuadrilleError
    from quadrille.study.run import IN_PROCESS_SECONDS
    from quadrille.study.score import Evaluator
    from quadrille.swap import recipe_from_json
    from quadrille.traces import traces

    designs, candidates = counted(grids)
    evaluator, clock = Evaluator(data, measures), _Clock()
    refused: dict[str, Refused] = {}
    traced: dict[str, list[str]] = {}
    started, checked = time.perf_counter(), 0
    tried = _spread(designs)
    for design in tried:
        if time.perf_counter() - started > MOST_SECONDS and checked:
            break
        recipe = recipe_from_json(design)
        try:
            if not clock.timed:
                evaluator.values(recipe.plan(data))  # kernels are loaded and tables counted before the clock starts
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


def _predicted(data: Data, tried: Sequence[str], designs: Sequence[str], measures: Sequence[str]) -> Foreseen:
    """Predict the designs tried, in the order of the grid; where they differ in method, the names tell which."""
    from quadrille.swap import recipe_from_json

    recipes = [recipe_from_json(design) for design in tried]
    several = len({type(recipe) for recipe in recipes}) > 1
    names = [(f"{type(recipe).__name__}, " if several else "") + named(recipe) for recipe in recipes]
    found = foresee(data, list(zip(names, recipes, strict=True)), measures)
    place = {design: i for i, design in enumerate(designs)}
    ordered = sorted(zip(tried, found.designs, strict=False), key=lambda each: place[each[0]])
    return replace(found, designs=tuple(ahead for _, ahead in ordered))


def counted(grids: Iterable[Grid]) -> tuple[list[str], int]:
    """Return the distinct designs, and how many candidates they make with their seeds."""
    seeds: dict[str, frozenset[int | str]] = {}
    for grid in grids:
        given = frozenset(grid.seeds)
        for design in grid.designs():
            seeds[design] = seeds[design] | given if design in seeds else given
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
    design: dict[str, object] = json.loads(recipe.identity())
    said = {key: value for key, value in design.items() if key not in ("method", "version")}
    order = [key for key in recipe.parameters() if key in said]
    return ", ".join(f"{key} {_words(said[key])}" for key in order) or "all by default"


def _words(value: object) -> str:
    if not isinstance(value, list):
        return str(value)
    listed = cast("list[object]", value)
    return " + ".join("*".join(cast("list[str]", each)) if isinstance(each, list) else str(each) for each in listed)
