"""A job as read from its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from quadrille.data import Data
from quadrille.errors import InputError, QuadrilleError, bad_parameter
from quadrille.randomness import fresh_seed
from quadrille.rules import Rules
from quadrille.study.axes import kind_of
from quadrille.study.grid import Grid
from quadrille.study.job.grids import MOST_SEEDS, GridTable
from quadrille.study.job.table import Table, frozen
from quadrille.study.score import Evaluator
from quadrille.study.toml import know_sections, read_toml
from quadrille.where import Where

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
            kind_of(address)
        except QuadrilleError as error:
            search.refuse(str(error), key, index)
        if key == "then" and address in search.texts("measures", "measures"):
            search.refuse(f"{address!r} is in 'measures' already. Name it once.", key, index)
    return listed
