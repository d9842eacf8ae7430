"""Grids of candidate releases: every combination of parameter values, with secret or given seeds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

from quadrille.errors import OverlapError, ParameterError, bad_parameter, unknown_name
from quadrille.params import Param, whole
from quadrille.randomness import checked_seed, fresh_seed
from quadrille.recipe import Recipe
from quadrille.text import Shown

Values = tuple[object, ...]


@dataclass(frozen=True, repr=False)
class Grid(Shown):
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
        names = [name for name, _ in self.axes]
        for values in product(*(values for _, values in self.axes)):
            parameters: dict[str, Any] = dict(zip(names, values, strict=True))
            with suppress(OverlapError):
                for seed in self.seeds:
                    yield self.method(**parameters, **{"seed": seed})

    @cached_property
    def designs(self) -> tuple[str, ...]:
        """The canonical text of every design, made once; combinations in which a column has two parts are left out."""
        return tuple(recipe.design_json() for recipe in replace(self, seeds=self.seeds[:1]))

    def with_secrets(self, seeds: Sequence[str]) -> Grid:
        """Return the same designs with other seeds, which are secret."""
        made = replace(self, seeds=tuple(seeds), secret=True)
        made.__dict__["designs"] = self.designs
        return made

    def identity(self) -> str:
        """Return what tells this grid from others, without its secret seeds."""
        seeds = len(self.seeds) if self.secret else self.seeds
        document = {"method": self.method.method_name, "axes": self.axes, "seeds": seeds}
        return json.dumps(document, sort_keys=True, ensure_ascii=False)

    def columns(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Return the lists of columns that its designs name, each once, with the parameter."""
        params = self.method.params()
        for name, values in self.axes:
            yield from ((name, columns) for columns in dict.fromkeys(map(params[name].columns, values)) if columns)


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
    owner = f"grid({method.method_name})"
    params = method.params()
    method.refuse(parameters)
    for name in parameters:
        if name not in params:
            raise unknown_name("parameter", name, params, where=owner)
    axes = tuple((name, _values(owner, params[name], value)) for name, value in parameters.items())
    chosen = _seeds(owner, params["seed"], seeds, seed)
    made = Grid(method, axes, chosen, seed is None)
    if next(iter(made), None) is None:
        raise OverlapError(f"{owner} has no candidate: in every combination a column has two parts.")
    return made


def _seeds(owner: str, param: Param, count: int | None, seed: object) -> tuple[int | str, ...]:
    """Return the seeds given, each once, or so many secret ones."""
    if count is not None and seed is not None:
        raise ParameterError("grid takes 'seeds' (a number of secret seeds) or 'seed' (given ones), not both.")
    if seed is None:
        return tuple(fresh_seed() for _ in range(whole(owner, "seeds", 1 if count is None else count, least=1)))
    return tuple(dict.fromkeys(checked_seed(value, owner) for value in _values(owner, param, seed, "one seed or more")))


def _values(owner: str, param: Param, value: object, must: str = "one value or more") -> Values:
    """Return the values of one parameter."""
    values = tuple(spot.value for spot in param.axis(value))
    if not values:
        raise bad_parameter(owner, param.name, must, value)
    return values
