"""What a search is given, checked once: recipes, grids and curves against the data and the measures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from quadrille.data import Data, require_columns
from quadrille.errors import InputError, QuadrilleError, bad_parameter
from quadrille.measure import beside_exposed, beside_the_n_rule, measure_of
from quadrille.measure.base import Address
from quadrille.measure.population import sample_of
from quadrille.recipe import Recipe
from quadrille.score.contradictions import ContradictionError, contradictions
from quadrille.score.evaluator import Evaluator
from quadrille.study.designed import curve_grids
from quadrille.study.grid import Grid
from quadrille.study.store import Store
from quadrille.swap.designed import Curve

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
