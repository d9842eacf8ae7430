"""Grids of candidate releases: every combination of parameter values, with secret or given seeds, made one by one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from quadrille.data import Data, require_columns
from quadrille.errors import OverlapError, ParameterError, bad_parameter, unknown_name
from quadrille.params import Param, whole
from quadrille.randomness import checked_seed, fresh_seed
from quadrille.recipe import Recipe

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
                yield made.design_json()

    def identity(self) -> str:
        """Return what tells this grid from others, without its secret seeds."""
        seeds = len(self.seeds) if self.secret else self.seeds
        document = {"method": self.method.__name__, "axes": self.axes, "seeds": seeds}
        return json.dumps(document, sort_keys=True, ensure_ascii=False)

    def require_columns(self, data: Data) -> None:
        """Raise the nearest-name error for the first column of any design that the data lack."""
        params = self.method.params()
        for name, values in self.axes:
            for columns in filter(None, map(params[name].columns, values)):
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
    params = method.params()
    for name in parameters:
        if name not in params:
            raise unknown_name("parameter", name, params, where=owner)
    if seeds is not None and seed is not None:
        raise ParameterError("grid takes 'seeds' (a number of secret seeds) or 'seed' (given ones), not both.")
    if seed is None:
        count = whole(owner, "seeds", 1 if seeds is None else seeds, least=1)
        given: tuple[int | str, ...] = tuple(fresh_seed() for _ in range(count))
    else:
        given = tuple(dict.fromkeys(checked_seed(each.value, owner) for each in params["seed"].axis(seed)))
    if not given:
        raise bad_parameter(owner, "seed", "one seed or more", seed)
    axes = tuple((name, _values(owner, params[name], value)) for name, value in parameters.items())
    made = Grid(method, axes, given, secret=seed is None)
    if next(iter(made), None) is None:
        raise ParameterError(f"{owner} has no candidate: in every combination a column has two parts.")
    return made


def _values(owner: str, param: Param, value: object) -> Values:
    """Return the values of one parameter."""
    values = tuple(each.value for each in param.axis(value))
    if not values:
        raise bad_parameter(owner, param.name, "one value or more", value)
    return values
