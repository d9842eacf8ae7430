"""Job files: which data, which measures, which grids of candidates; a fault is reported with its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product
from pathlib import Path
from typing import Any, NoReturn, cast

from quadrille.data import Data
from quadrille.errors import InputError, OverlapError, ParameterError, QuadrilleError, bad_parameter, unknown_name
from quadrille.expressions import Rules, Where
from quadrille.measure import measure_of
from quadrille.params import ColumnSets, Param, Spot, Table, frozen
from quadrille.randomness import checked_seed, fresh_seed
from quadrille.recipe import Recipe, find_method
from quadrille.score.evaluator import Evaluator
from quadrille.study.grid import Grid, grid
from quadrille.text import know_sections, read_toml

MOST_SEEDS = 1_000_000
SETS: dict[str, tuple[int, ...]] = {"singles": (1,), "pairs": (2,), "singles and pairs": (1, 2)}
"""Words that `swap` understands, and how many variables they swap at a time."""

_OURS = ("method", "seeds", "of")
_STAND_IN = ("the variables that a word stands for",)


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
        try:
            made = cls(table, find_method(name))
        except InputError as error:
            table.refuse(str(error), "method")
        table.know([*_OURS, *made.params])
        for key, param in made.params.items():
            if param.required:
                table.require(key, param.example)
        made._check_seeds()
        made._check_sets()
        made._check_values()
        return made

    @cached_property
    def params(self) -> dict[str, Param]:
        """The parameters of the method by their names in a job file."""
        return {param.written: param for param in self.method.params().values()}

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
        if "swap" in self.params:
            values.setdefault("swap", ((),))  # of a method that knows what to swap by itself
        for key, param in self.params.items():
            if key not in values:
                continue
            spots = param.axis(values[key])
            for spot in spots:
                self._check_columns(data, key, param.columns(spot.value), spot.at)
            if isinstance(param, ColumnSets):
                sets = tuple(param.normal(spot.value) for spot in spots)
                values = {name: value for name, value in values.items() if name != key}
                values |= {key: sets} if any(sets) else {}
        try:
            made = grid(self.method, **self._by_name(values))
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
        for spot in self.params["seed"].axis(values.get("seed", ())):
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
        axes = {key: self._spots(key) for key in self.table.values if key not in (*_OURS, "seed")}
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
        parameters = self._by_name({key: spot.value for key, spot in chosen.items()})
        try:
            self.method(**parameters, **{"seed": 0})
        except OverlapError:
            return False
        except ParameterError as error:
            self._blame(error, chosen)
        return True

    def _spots(self, key: str) -> list[Spot]:
        value = self.table.values[key]
        return [Spot(_STAND_IN, None)] if key == "swap" and isinstance(value, str) else self.params[key].axis(value)

    def _by_name(self, written: Mapping[str, object]) -> dict[str, Any]:
        """Return values by the names of the parameters, some of which a job file knows by another."""
        return {self.params[key].name: value for key, value in written.items()}

    def _blame(self, error: ParameterError, chosen: Mapping[str, Spot]) -> NoReturn:
        """Tell the place of the value that a method complains of."""
        key = next((key for key in chosen if self.params[key].name == error.parameter), None)
        if key is None or error.must is None:
            self.table.refuse(str(error))
        spot = chosen[key]
        if key == "seed":  # a seed is a secret: say no more than the method does
            self.table.refuse(f"must be {error.must.replace('None, ', '')}. Got {error.value!r}.", key, spot.at)
        self.table.demand(error.must, spot.value, key, spot.at)

    def _sets(self, data: Data) -> tuple[tuple[str, ...], ...]:
        """Return the sets of swap variables that the word stands for."""
        given = self.table.texts("of", "column names")
        for index, name in enumerate(given):
            self._check_columns(data, "of", (name,), index)
        variables = given or data.keys
        sizes = SETS[cast("str", self.table.values["swap"])]
        if len(variables) < max(sizes):
            self.table.refuse(f"the data have {len(variables)} key variables; {max(sizes)} are needed.", "swap")
        return tuple(chosen for size in sizes for chosen in combinations(variables, size))

    def _check_columns(self, data: Data, key: str, columns: Sequence[str], at: int | None) -> None:
        for name in columns:
            if name not in data.columns:
                self.table.refuse(str(unknown_name("column", name, data.columns)), key, at)


def _combinations(axes: Mapping[str, list[Spot]]) -> Iterator[dict[str, Spot]]:
    for chosen in product(*axes.values()):
        yield dict(zip(axes, chosen, strict=True))


BUNDLED = "dataset:"
MOST_WORKERS = 1024
_SECTIONS = ("data", "search", "grid")


@dataclass(frozen=True)
class Job:
    """A search to be done. Paths in the file are relative to the file; `file` may be "dataset:NAME".

    Example
    -------
    >>> import quadrille as qd, tempfile
    >>> from pathlib import Path
    >>> from quadrille.study.job import Job
    >>> path = Path(tempfile.mkdtemp()) / "job.toml"
    >>> _ = path.write_text('''
    ... [data]
    ... file = "dataset:cps8d"
    ... [search]
    ... measures = ["small_cells", "exposed", "hellinger"]
    ... [[grid]]
    ... method = "RandomSwap"
    ... swap = "singles and pairs"
    ... pairs = [244, 488, 2442]
    ... seeds = 20
    ... ''')
    >>> [len(grid) for grid in Job.read(path).recipes(qd.datasets.cps8d())]
    [2160]
    """

    path: Path
    file: str
    codebook: Path | None
    weight: str | None
    measures: tuple[str, ...]
    then: tuple[str, ...]
    out: Path
    workers: int | None
    grids: tuple[GridTable, ...]
    rules: tuple[str, ...] = ()
    geography: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: str | Path) -> Job:
        """Read a job file and check it; the first fault is told with its place."""
        path = Path(path)
        document = _parsed(path)
        data, search = _section(path, document, "data"), _section(path, document, "search")
        data.know(("file", "codebook", "weight", "geography", "rules"))
        search.know(("measures", "then", "out", "workers"))
        data.require("file", '"census.csv"')
        search.require("measures", '["small_cells", "exposed", "hellinger"]')
        file, codebook = data.text("file") or "", data.text("codebook")
        rules = _rules(data)
        if file.startswith(BUNDLED) and codebook is not None:
            data.refuse("a bundled data set brings its own codebook. Leave it out.", "codebook")
        return cls(
            path=path,
            file=file if file.startswith(BUNDLED) else str(path.parent / file),
            codebook=None if codebook is None else path.parent / codebook,
            weight=data.text("weight"),
            measures=_measures(search, "measures", least=1),
            then=_measures(search, "then", least=0),
            out=path.parent / (search.text("out") or "study"),
            workers=search.number("workers", MOST_WORKERS),
            grids=tuple(map(GridTable.read, _grid_tables(path, document, rules))),
            rules=rules,
            geography=data.texts("geography", "columns"),
        )

    def recipes(self, data: Data, *, seeds: int | None = None) -> list[Grid]:
        """Return the grids for these data; `seeds` asks for that many secret seeds in every grid.

        Grids share their secret seeds, so that designs of different grids are compared seed by seed.
        """
        search = Table(f"{self.path}, [search]", {})
        for key, listed in (("measures", self.measures), ("then", self.then)):
            for index, address in enumerate(listed):
                try:
                    Evaluator(data, [address])
                except QuadrilleError as error:
                    search.refuse(str(error), key, index)
        for index, rule in enumerate(self.rules):
            try:
                Rules.of(data, [rule], "the job")
            except QuadrilleError as error:
                Table(f"{self.path}, [data]", {}).refuse(str(error), "rules", index)
        if seeds is not None and seeds > MOST_SEEDS:
            raise bad_parameter("the job", "seeds", f"a whole number from 1 to {MOST_SEEDS:,}", seeds)
        counts = [each.seeds if seeds is None else seeds for each in self.grids]
        secrets = [fresh_seed() for _ in range(max(counts))]
        return [each.grid(data, secrets[:count]) for each, count in zip(self.grids, counts, strict=True)]


def _parsed(path: Path) -> Mapping[str, object]:
    """Read TOML, and tell the line of what is wrong with it."""
    document = read_toml(path, "the job")
    know_sections(document, _SECTIONS, str(path))
    for name, header in zip(_SECTIONS, ("[data]", "[search]", "[[grid]]"), strict=True):
        if not document.get(name):
            raise InputError(f"{path}: the section {header} is missing or empty.")
    return document


def _section(path: Path, document: Mapping[str, object], name: str) -> Table:
    found = document[name]
    if not isinstance(found, dict):
        raise InputError(f"{path}: {name} must be a section, headed [{name}].")
    return _table(f"{path}, [{name}]", cast("dict[str, object]", found))


def _table(place: str, values: Mapping[str, object]) -> Table:
    return Table(place, {key: frozen(value) for key, value in values.items()})


def _grid_tables(path: Path, document: Mapping[str, object], rules: tuple[str, ...]) -> list[Table]:
    """Return the [[grid]] tables, numbered when there are several; a single [grid] will do.

    The plausibility rules of the data hold in every grid that has none of its own.
    """
    found = document["grid"]
    listed = cast("list[object]", found if isinstance(found, list) else [found])
    if not all(isinstance(each, dict) for each in listed):
        raise InputError(f"{path}: grid must be one section or more, each headed [[grid]].")
    shared: dict[str, object] = {"rules": rules} if rules else {}
    tables = [shared | table for table in cast("list[dict[str, object]]", listed)]
    numbers = [""] if len(tables) == 1 else [f" {number + 1}" for number in range(len(tables))]
    return [_table(f"{path}, [grid{number}]", table) for number, table in zip(numbers, tables, strict=True)]


def _rules(data: Table) -> tuple[str, ...]:
    listed = data.texts("rules", "rules")
    for index, rule in enumerate(listed):
        try:
            Where.parse(rule)
        except QuadrilleError as error:
            data.refuse(str(error), "rules", index)
    return listed


def _measures(search: Table, key: str, *, least: int) -> tuple[str, ...]:
    listed = search.texts(key, "measures", least=least)
    for index, address in enumerate(listed):
        try:
            measure_of(address)
        except QuadrilleError as error:
            search.refuse(str(error), key, index)
        if key == "then" and address in search.texts("measures", "measures"):
            search.refuse(f"{address!r} is in 'measures' already. Name it once.", key, index)
    return listed
