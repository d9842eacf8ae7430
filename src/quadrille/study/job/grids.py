"""The [[grid]] tables of a job file: a method and the values of its parameters, each tried before the data are read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from itertools import combinations, product
from typing import Any, NamedTuple, NoReturn, cast

from quadrille import swap
from quadrille.data import Data
from quadrille.errors import OverlapError, ParameterError, unknown_name
from quadrille.randomness import checked_seed
from quadrille.recipe import COLUMN_LISTS, COLUMN_NAMES, Recipe, columns_in, written_name
from quadrille.study.grid import Grid, grid
from quadrille.study.job.table import Table

METHODS = swap.Recipe.methods  # importing `swap` has filled it
MOST_SEEDS = 1_000_000
SETS: dict[str, tuple[int, ...]] = {"singles": (1,), "pairs": (2,), "singles and pairs": (1, 2)}
"""Words that `swap` understands, and how many variables they swap at a time."""

_OURS = ("method", "seeds", "of")
_TABLE_LISTS = ("tables", "together")
"""Parameters that are lists of sets of columns: several values of one are lists of such lists."""
_FAULT = re.compile(r"The '(\w+)' parameter of .*? (must be .*) Got (.*)", re.DOTALL)
_STAND_IN = ("the variables that a word stands for",)


class Spot(NamedTuple):
    """A value of a parameter, and its place in a list of values."""

    value: object
    at: int | None


@dataclass(frozen=True)
class GridTable:
    """A method and the values of its parameters, as written."""

    table: Table
    method: type[Recipe]

    @classmethod
    def read(cls, table: Table) -> GridTable:
        """Check a table as far as that is possible without the data."""
        table.require("method", '"RandomSwap"')
        name = table.text("method") or ""
        if name not in METHODS:
            table.refuse(str(unknown_name("method", name, METHODS)), "method")
        made = cls(table, METHODS[name])
        parameters = fields(made.method)
        table.know([*_OURS, *(written_name(field.name) for field in parameters)])
        for field in parameters:
            if field.default is MISSING and field.default_factory is MISSING:
                table.require(field.name, '[["A"], ["B", "C"]]' if field.name in COLUMN_LISTS else "...")
        made._check_seeds()
        made._check_sets()
        made._check_values()
        return made

    @property
    def seeds(self) -> int:
        """The number of secret seeds; 0 when the seeds are given."""
        return 0 if "seed" in self.table.values else self.table.number("seeds", MOST_SEEDS) or 1

    def grid(self, data: Data, secrets: Sequence[str]) -> Grid:
        """Make the grid for these data, with these secret seeds; without any, with the seeds that it gives itself."""
        left_out = (*_OURS, "seed") if secrets else _OURS
        values = {key: value for key, value in self.table.values.items() if key not in left_out}
        if isinstance(values.get("swap"), str):
            values["swap"] = self._sets(data)
        values.setdefault("swap", ((),))  # of a method that knows what to swap by itself
        for key in (*COLUMN_LISTS, *COLUMN_NAMES, *_TABLE_LISTS, "linked"):
            for spot in _spots(key, values.get(key, ())):
                self._check_columns(data, key, spot)
        for key in _TABLE_LISTS:
            sets = tuple(_column_sets(key, spot.value) for spot in _spots(key, values.pop(key, ())))
            values |= {key: sets} if any(sets) else {}
        try:
            made = grid(self.method, **self._parameters(values))
        except ParameterError as error:
            self.table.refuse(str(error))
        return replace(made, seeds=tuple(secrets), secret=True) if secrets else made

    def _check_seeds(self) -> None:
        values = self.table.values
        if "seeds" in values and "seed" in values:
            self.table.refuse("give 'seeds' (a number of secret seeds) or 'seed' (given ones, for tests), not both.")
        self.table.number("seeds", MOST_SEEDS)
        if values.get("seed") == ():
            self.table.demand("one seed or more", (), "seed")
        for spot in _spots("seed", values.get("seed", ())):
            try:
                checked_seed(spot.value, "grid")
            except ParameterError as error:
                self._blame(error, {"seed": spot})

    def _check_sets(self) -> None:
        """Check the words that stand for sets of swap variables, and `of`, which restricts them."""
        word = self.table.values.get("swap")
        if isinstance(word, str) and word not in SETS:
            words = ", ".join(f'"{each}"' for each in SETS)
            self.table.demand(f"a list of columns, a list of such lists, or one of the words {words}", word, "swap")
        if "of" in self.table.values:
            if not isinstance(word, str):
                self.table.refuse('goes with swap = "singles", "pairs" or "singles and pairs" only.', "of")
            self.table.texts("of", "column names", least=max(SETS[word]))

    def _check_values(self) -> None:
        """Try every value of every parameter, beside a sample of the others."""
        axes = {key: _spots(key, value) for key, value in self.table.values.items() if key not in (*_OURS, "seed")}
        for key, spots in axes.items():
            if not spots:
                self.table.demand("one value or more", (), key)
        sample = next(filter(self._try, _combinations(axes)), None)
        if sample is None:
            self.table.refuse("there is no candidate: in every combination a column has two parts.")
        for key, spots in axes.items():
            for spot in spots:
                self._try({**sample, key: spot})

    def _try(self, chosen: Mapping[str, Spot]) -> bool:
        """Make a recipe; False when a column has two parts in it, which leaves the combination out."""
        parameters = self._parameters({key: spot.value for key, spot in chosen.items()})
        try:
            self.method(**parameters, **{"seed": 0})
        except OverlapError:
            return False
        except ParameterError as error:
            self._blame(error, chosen)
        return True

    def _parameters(self, written: Mapping[str, object]) -> dict[str, Any]:
        """Return values by the names of the parameters, some of which a job file knows by another."""
        names = {written_name(field.name): field.name for field in fields(self.method)}
        return {names[key]: value for key, value in written.items()}

    def _blame(self, error: ParameterError, chosen: Mapping[str, Spot]) -> NoReturn:
        """Tell the place of the value that a method complains of."""
        fault = _FAULT.fullmatch(str(error))
        if fault is None or written_name(fault[1]) not in chosen:
            self.table.refuse(str(error))
        key, must, got = written_name(fault[1]), fault[2], fault[3]
        spot = chosen[key]
        if key == "seed":  # a seed is a secret: say no more than the method does
            self.table.refuse(f"{must.replace('None, ', '')} Got {got}", key, spot.at)
        self.table.demand(must.removeprefix("must be ").removesuffix("."), spot.value, key, spot.at)

    def _sets(self, data: Data) -> tuple[tuple[str, ...], ...]:
        """Return the sets of swap variables that the word stands for."""
        given = self.table.texts("of", "column names")
        for index, name in enumerate(given):
            self._check_columns(data, "of", Spot((name,), index))
        variables = given or data.keys
        sizes = SETS[cast("str", self.table.values["swap"])]
        if len(variables) < max(sizes):
            self.table.refuse(f"the data have {len(variables)} key variables; {max(sizes)} are needed.", "swap")
        return tuple(chosen for size in sizes for chosen in combinations(variables, size))

    def _check_columns(self, data: Data, key: str, spot: Spot) -> None:
        for name in columns_in("swap" if key == "of" else key, spot.value):
            if name not in data.columns:
                self.table.refuse(str(unknown_name("column", name, data.columns)), key, spot.at)


def _spots(key: str, value: object) -> list[Spot]:
    """Return the values of a parameter as `grid` takes them, with their places."""
    if key == "swap" and isinstance(value, str):
        return [Spot(_STAND_IN, None)]
    if not isinstance(value, tuple):
        return [Spot((value,) if key in COLUMN_LISTS and isinstance(value, str) else value, None)]
    listed = cast("tuple[object, ...]", value)
    if key in _TABLE_LISTS and not any(isinstance(part, tuple) for each in listed for part in _parts(each)):
        return [Spot(listed, None)]
    if key not in COLUMN_LISTS:
        return [Spot(each, index) for index, each in enumerate(listed)]
    if all(isinstance(each, str) for each in listed):
        return [Spot(listed, None)]
    return [Spot((each,) if isinstance(each, str) else each, index) for index, each in enumerate(listed)]


def _parts(value: object) -> tuple[object, ...]:
    return cast("tuple[object, ...]", value) if isinstance(value, tuple) else ()


def _column_sets(key: str, value: object) -> tuple[tuple[str, ...], ...]:
    """Return sets of columns, each of which may be written A*B."""
    return tuple(columns_in(key, (each,)) for each in _parts(value))


def _combinations(axes: Mapping[str, list[Spot]]) -> Iterator[dict[str, Spot]]:
    for chosen in product(*axes.values()):
        yield dict(zip(axes, chosen, strict=True))
