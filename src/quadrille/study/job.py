"""Job files: which data, which measures, which grids of candidates; a fault is reported with its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, NoReturn, cast

from quadrille.data import Data
from quadrille.errors import InputError, OverlapError, ParameterError, QuadrilleError, bad_parameter, unknown_name
from quadrille.expressions import Rules, Where
from quadrille.measure import measure_of
from quadrille.params import ColumnSets, Param, Spot
from quadrille.randomness import checked_seed, fresh_seed
from quadrille.recipe import Recipe, find_method
from quadrille.score.evaluator import Evaluator
from quadrille.score.published import Names, read_tables, require_table, worst_cells
from quadrille.study.designed import curve_grids, published_loss
from quadrille.study.forecast import Candidates, check_candidates
from quadrille.study.grid import Grid, grid
from quadrille.swap.designed import Curve, DesignedSwap
from quadrille.text import Table, frozen, know_sections, read_toml

MOST_SEEDS = 1_000_000
SETS: dict[str, tuple[int, ...]] = {"singles": (1,), "pairs": (2,), "singles and pairs": (1, 2)}
"""Words that `swap` understands, and how many variables they swap at a time."""

_OURS = ("method", "version", "seeds", "of", "curve")
_SWEPT = {
    **{"price": "prices", "inference": "inferences", "coin": "coins", "share": "shares"},
    **{"keep": "keep", "choose": "choose"},
}
"""What the curve of a method sweeps, as a job file and as the method calls it."""
_STAND_IN = ("the variables that a word stands for",)


@dataclass(frozen=True)
class GridTable:
    """A method and the values of its parameters, as written; `ready` is the grid, where no data are needed to make it.

    With `curve = true` it stands for the curve of the method: `price`, `inference`, `coin` and `share` are swept one
    after the other, for each `keep`.
    """

    table: Table
    method: type[Recipe]
    ready: Grid | None = None

    @classmethod
    def read(cls, table: Table) -> GridTable:
        """Check a table as far as that is possible without the data."""
        table.require("method", '"RandomSwap"')
        name = table.text("method") or ""
        try:
            method = find_method(name)
        except InputError as error:
            table.refuse(str(error), "method")
        made = cls(table, _version(table, method))
        try:
            made.method.refuse(table.values)
        except ParameterError as error:
            table.refuse(str(error))
        table.know([*_OURS, *made.params])
        for key, param in made.params.items():
            if param.required:
                table.require(key, param.example)
        made._check_seeds()
        made._check_sets()
        made._check_values()
        if made.curved:
            made._curve(made._values())
            return made
        grid = made._grid({**made._values(), **({"swap": _STAND_IN} if made._word else {})})
        return made if made._word else replace(made, ready=grid)

    @cached_property
    def params(self) -> dict[str, Param]:
        """The parameters of the method by their names in a job file."""
        return {param.written: param for param in self.method.params().values()}

    @property
    def curved(self) -> bool:
        """Whether the table asks for the curve of its method."""
        return self.table.values.get("curve") is True

    @property
    def seeds(self) -> int:
        """The number of secret seeds; 0 when the seeds are given."""
        return 0 if "seed" in self.table.values else self.table.number("seeds", MOST_SEEDS) or 1

    @property
    def _word(self) -> str:
        """The word that stands for the sets of swap variables, if there is one."""
        word = self.table.values.get("swap")
        return word if isinstance(word, str) else ""

    def grids(self, data: Data, secrets: Sequence[str], tables: Sequence[Names] = ()) -> list[Grid]:
        """Make the grids for these data, with these secret seeds; without any, with the seeds that it gives itself.

        Designed swaps that name no loss keep the published `tables` low, too.
        """
        for key in self._written():
            for spot in self._spots(key):
                self._check_columns(data, key, self.params[key].columns(spot.value), spot.at)
        values = self._values()
        if self._word:
            values["swap"] = self._sets(data)
        ready = self.ready
        if tables and "loss" not in values and issubclass(self.method, DesignedSwap):
            loss = published_loss(self._designed(values), data, tables)
            values, ready = (values, ready) if loss is None else ({**values, "loss": loss}, None)
        made = curve_grids(self._curve(values), data) if self.curved else [ready or self._grid(values)]
        return [grid.with_secrets(secrets) for grid in made] if secrets else made

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
            except ParameterError as error:  # a seed is a secret: say no more than the method does
                must = (error.must or "").replace("None, ", "")
                self.table.refuse(f"must be {must}. Got {error.value!r}.", "seed", spot.at)

    def _check_sets(self) -> None:
        """Check `curve`, the words that stand for sets of swap variables, and `of`, which restricts them."""
        values = self.table.values
        if not isinstance(values.get("curve", False), bool):
            self.table.demand("true or false", values["curve"], "curve")
        if self.curved and not issubclass(self.method, DesignedSwap):
            version = f" of version {self.method.version}" if "version" in values else ""
            self.table.refuse(f"{self.method.method_name}{version} has no curve; DesignedSwap has one.", "curve")
        if self._word and (self._word not in SETS or self.curved):
            words = ", ".join(f'"{word}"' for word in SETS)
            several = "" if self.curved else f", a list of such lists, or one of the words {words}"
            self.table.demand(f"a list of columns{several}", self._word, "swap")
        if "of" in values:
            if not self._word:
                self.table.refuse('goes with swap = "singles", "pairs" or "singles and pairs" only.', "of")
            self.table.texts("of", "column names", least=max(SETS[self._word]))

    def _check_values(self) -> None:
        """Check every value of every parameter by itself."""
        for key in self._written():
            param, spots = self.params[key], self._spots(key)
            if not spots and not (self.curved and key in _SWEPT):
                self.table.demand("one value or more", (), key)
            for spot in spots:
                if spot.value is not param.default or not param.optional:
                    try:
                        param.check(self.method.method_name, param.name, spot.value)
                    except ParameterError as error:
                        self.table.demand(error.must or str(error), spot.value, key, spot.at)

    def _written(self) -> list[str]:
        """Return the parameters that the table names, but for the seed and a word in the place of columns."""
        aside = (*_OURS, "seed", *(["swap"] if self._word else []))
        return [key for key in self.table.values if key not in aside]

    def _spots(self, key: str) -> list[Spot]:
        return self.params[key].axis(self.table.values[key])

    def _values(self) -> dict[str, object]:
        """Return the values of the parameters as a grid takes them."""
        values = {key: value for key, value in self.table.values.items() if key not in _OURS}
        if "swap" in self.params:
            values.setdefault("swap", ((),))  # of a method that knows what to swap by itself
        for key, param in self.params.items():
            if key in values and isinstance(param, ColumnSets):
                sets = tuple(param.normal(spot.value) for spot in param.axis(values.pop(key)))
                values |= {key: sets} if any(sets) else {}
        return values

    def _grid(self, values: Mapping[str, object]) -> Grid:
        named: dict[str, Any] = {self.params[key].name: value for key, value in values.items()}
        try:
            made = grid(self.method, **named)
            _ = made.designs  # tries every combination, while the place of a fault is known
            return made
        except OverlapError:
            self.table.refuse("there is no candidate: in every combination a column has two parts.")
        except ParameterError as error:
            self._blame(error)

    def _curve(self, values: Mapping[str, object]) -> Curve:
        """Return the curve that the table asks for: one value of every parameter, but of those that are swept."""
        assert issubclass(self.method, DesignedSwap)  # as was checked
        swept: dict[str, Any] = {"seed": values.get("seed")}
        for key, value in values.items():
            listed = [spot.value for spot in self.params[key].axis(value)]
            if key in _SWEPT:
                swept[_SWEPT[key]] = listed
            elif key != "seed":
                if len(listed) > 1:
                    self.table.demand(f"one value, as a curve sweeps {', '.join(map(repr, _SWEPT))} only", value, key)
                swept[self.params[key].name] = listed[0]
        try:
            return self.method.curve(**swept)
        except ParameterError as error:
            self._blame(error)

    def _designed(self, values: Mapping[str, object]) -> list[DesignedSwap]:
        """Return the designed swaps of the table, one of each design; of a curve one of each `keep`."""
        if self.curved:
            curve = self._curve(values)
            return [DesignedSwap(**curve.parameters, keep=cast("Any", keep), seed=0) for keep in curve.keep]
        made = self._grid(values)
        return [recipe for recipe in replace(made, seeds=made.seeds[:1]) if isinstance(recipe, DesignedSwap)]

    def _blame(self, error: ParameterError) -> NoReturn:
        """Tell the place of the value that a method complains of, as far as it is known."""
        key = next((key for key in self._written() if self.params[key].name == error.parameter), None)
        if key is None or error.must is None:
            self.table.refuse(str(error))
        at = next((spot.at for spot in self._spots(key) if spot.value == error.value), None)
        self.table.demand(error.must, error.value, key, at)

    def _sets(self, data: Data) -> tuple[tuple[str, ...], ...]:
        """Return the sets of swap variables that the word stands for."""
        given = self.table.texts("of", "column names")
        for index, name in enumerate(given):
            self._check_columns(data, "of", (name,), index)
        variables, sizes = given or data.keys, SETS[self._word]
        if len(variables) < max(sizes):
            self.table.refuse(f"the data have {len(variables)} key variables; {max(sizes)} are needed.", "swap")
        return tuple(chosen for size in sizes for chosen in combinations(variables, size))

    def _check_columns(self, data: Data, key: str, columns: Sequence[str], at: int | None) -> None:
        for name in columns:
            if name not in data.columns:
                self.table.refuse(str(unknown_name("column", name, data.columns)), key, at)


def _version(table: Table, method: type[Recipe]) -> type[Recipe]:
    """Return the method in the version that a table asks for: today's, unless it says so."""
    known, asked = method.versions(), table.values.get("version", method.version)
    if type(asked) is not int or asked not in known:
        must = f"a version of {method.method_name} that is known here: {' or '.join(map(str, known))}"
        table.demand(must, asked, "version")
    return known[asked]


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
    roles: Mapping[str, Any] = field(default_factory=dict[str, Any])
    layout: str | None = None
    tables: tuple[Names, ...] = ()
    """The tables that are published; `measures` has the `worst_cell` of each."""

    @classmethod
    def read(cls, path: str | Path) -> Job:
        """Read a job file and check it; the first fault is reported with its place."""
        path = Path(path)
        document = _parsed(path)
        data, search = _section(path, document, "data"), _section(path, document, "search")
        data.know(("file", "codebook", "weight", "geography", *_ROLES, "unit", "layout", "rules"))
        search.know(("measures", "then", "tables", "out", "workers"))
        data.require("file", '"census.csv"')
        search.require("measures", '["small_cells", "exposed", "hellinger"]')
        file, codebook = data.text("file") or "", data.text("codebook")
        measures, then = _measures(search, "measures", least=1), _measures(search, "then", least=0)
        tables = read_tables(search, "tables")
        rules = _rules(data)
        if file.startswith(BUNDLED) and codebook is not None:
            data.refuse("a bundled data set brings its own codebook. Leave it out.", "codebook")
        return cls(
            path=path,
            file=file if file.startswith(BUNDLED) else str(path.parent / file),
            codebook=None if codebook is None else path.parent / codebook,
            weight=data.text("weight"),
            measures=(*measures, *worst_cells(tables, (*measures, *then))),
            then=then,
            out=path.parent / (search.text("out") or "study"),
            workers=search.number("workers", MOST_WORKERS),
            grids=tuple(map(GridTable.read, _grid_tables(path, document, rules))),
            rules=rules,
            geography=data.texts("geography", "columns"),
            roles=_named_roles(data),
            layout=data.text("layout"),
            tables=tables,
        )

    def recipes(self, data: Data, *, seeds: int | None = None) -> Candidates:
        """Return the grids, checked once for these data and measures, as `search` and `forecast` take them.

        `seeds` asks for that many secret seeds in every grid. Grids share their secret seeds, so that designs of
        different grids are compared seed by seed.
        """
        for index, rule in enumerate(self.rules):
            try:
                Rules.of(data, [rule], "the job")
            except QuadrilleError as error:
                Table(str(self.path), "data", {}).refuse(str(error), "rules", index)
        for index, names in enumerate(self.tables):
            try:
                require_table(data, names)
            except QuadrilleError as error:
                Table(str(self.path), "search", {}).refuse(str(error), "tables", index)
        if seeds is not None and seeds > MOST_SEEDS:
            raise bad_parameter("the job", "seeds", f"a whole number from 1 to {MOST_SEEDS:,}", seeds)
        counts = [table.seeds if seeds is None else seeds for table in self.grids]
        secrets = [fresh_seed() for _ in range(max(counts))]
        tables = zip(self.grids, counts, strict=True)
        made = [grid for table, count in tables for grid in table.grids(data, secrets[:count], self.tables)]
        try:
            return check_candidates(data, made, self.measures, self.then)
        except QuadrilleError:
            self._locate(data)
            raise

    def _locate(self, data: Data) -> None:
        """Tell the place of the first measure that these data do not allow."""
        for key, listed in (("measures", self.measures), ("then", self.then)):
            for index, address in enumerate(listed):
                try:
                    Evaluator(data, [address])
                except QuadrilleError as error:
                    Table(str(self.path), "search", {}).refuse(str(error), key, index)


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
    return _table(path, name, cast("dict[str, object]", found))


def _table(path: Path, name: str, values: Mapping[str, object], number: int = 0) -> Table:
    return Table(str(path), name, {key: frozen(value) for key, value in values.items()}, number)


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
    return [_table(path, "grid", table, number if len(tables) > 1 else 0) for number, table in enumerate(tables, 1)]


_ROLES = ("key", "outcome", "id")


def _named_roles(data: Table) -> dict[str, Any]:
    """Return the columns that have a role, as `Data.with_roles` takes them."""
    named: dict[str, Any] = {role: list(data.texts(role, "columns")) for role in _ROLES}
    return {role: columns for role, columns in {**named, "unit": data.text("unit")}.items() if columns}


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
