"""Grids of candidate releases: every combination of parameter values, with secret or given seeds, made one by one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import product
from math import prod
from typing import Any, cast

from quadrille.data import Data, require_columns
from quadrille.errors import OverlapError, ParameterError, bad_parameter, unknown_name
from quadrille.randomness import checked_seed, fresh_seed
from quadrille.recipe import COLUMN_LISTS, Recipe, columns_in, whole

Values = tuple[object, ...]


@dataclass(frozen=True)
class Grid:
    """All combinations of parameter values, times the seeds; nothing is made before it is asked for.

    `secret` tells that the seeds were drawn from the operating system; a study that knows the grid already goes on
    with the seeds it has stored.
    """

    method: type[Recipe]
    axes: tuple[tuple[str, Values], ...]
    seeds: tuple[int | str, ...]
    secret: bool

    def __len__(self) -> int:
        return prod(len(values) for _, values in self.axes) * len(self.seeds)

    def __iter__(self) -> Iterator[Recipe]:
        for parameters in self._combinations():
            for seed in self.seeds:
                made = self._make(parameters, seed)
                if made is not None:
                    yield made

    def designs(self) -> Iterator[str]:
        """Return the canonical text of every design; combinations in which a column has two parts are left out."""
        for parameters in self._combinations():
            made = self._make(parameters, self.seeds[0])
            if made is not None:
                yield made.identity()

    def identity(self) -> str:
        """Return what tells this grid from others, without its secret seeds."""
        seeds = len(self.seeds) if self.secret else self.seeds
        document = {"method": self.method.__name__, "axes": self.axes, "seeds": seeds}
        return json.dumps(document, sort_keys=True, ensure_ascii=False)

    def require_columns(self, data: Data) -> None:
        """Raise the nearest-name error for the first column of any design that the data lack."""
        for name, values in self.axes:
            for columns in filter(None, (columns_in(name, value) for value in values)):
                require_columns(data, columns, f"'{name}' of {self.method.__name__}")

    def _combinations(self) -> Iterator[dict[str, object]]:
        names = [name for name, _ in self.axes]
        for values in product(*(values for _, values in self.axes)):
            yield dict(zip(names, values, strict=True))

    def _make(self, parameters: dict[str, Any], seed: int | str) -> Recipe | None:
        try:
            return self.method(**parameters, **{"seed": seed})
        except OverlapError:
            return None


def grid(method: type[Recipe], /, *, seeds: int | None = None, seed: object = None, **parameters: object) -> Grid:
    """Make a grid of recipes: every combination of the values given.

    A parameter takes one value or a list of values; one that is itself a list of columns, such as `swap`, takes a
    list of lists (`tables` and `together`, which are lists of lists, a list of those). `seeds=10` draws ten secret
    seeds, the same for every design (their streams are unrelated all the same); `seed=range(10)` is for tests and
    papers.

    Example
    -------
    >>> import quadrille as qd
    >>> len(qd.grid(qd.RandomSwap, swap=[["Edu"], ["Race", "Sex"]], pairs=[244, 488], seeds=10))
    40
    """
    owner = f"grid({method.__name__})"
    known = [field.name for field in fields(method)]
    for name in parameters:
        if name not in known:
            raise unknown_name("parameter", name, known, where=owner)
    if seeds is not None and seed is not None:
        raise ParameterError("grid takes 'seeds' (a number of secret seeds) or 'seed' (given ones), not both.")
    if seed is None:
        count = whole(owner, "seeds", 1 if seeds is None else seeds, least=1)
        given: tuple[int | str, ...] = tuple(fresh_seed() for _ in range(count))
    else:
        given = tuple(dict.fromkeys(checked_seed(each, owner) for each in _listed(seed)))
    if not given:
        raise bad_parameter(owner, "seed", "one seed or more", seed)
    axes = tuple((name, _axis(owner, name, value)) for name, value in parameters.items())
    made = Grid(method, axes, given, secret=seed is None)
    if next(iter(made), None) is None:
        raise ParameterError(f"{owner} has no candidate: in every combination a column has two parts.")
    return made


def _listed(value: object) -> list[object]:
    """Return one value, or each of several."""
    several = isinstance(value, Iterable) and not isinstance(value, str | Mapping)
    return list(cast("Iterable[object]", value)) if several else [value]


def _axis(owner: str, name: str, value: object) -> Values:
    """Return the values of one parameter; lists of columns become tuples."""
    values = _listed(value)
    if name in ("tables", "together") and not any(_nested(each) for each in values):
        return (tuple(values),)  # one list of sets of columns; several are a list of such lists
    if not values and name not in COLUMN_LISTS:
        raise bad_parameter(owner, name, "one value or more", value)
    if name in COLUMN_LISTS and all(isinstance(each, str) for each in values):
        return (tuple(values),)
    return tuple(tuple(_listed(each)) if name in COLUMN_LISTS else each for each in values)


def _nested(value: object) -> bool:
    """Whether a value is a list of lists."""
    return isinstance(value, list | tuple) and any(
        isinstance(part, list | tuple) for part in cast("list[object]", value)
    )
