"""The tables that an agency publishes, cell by cell before and after a swap, the worst cells first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from quadrille.data import Cross, Data, require_columns, require_data, tidy
from quadrille.delta import Delta
from quadrille.errors import InputError, ParameterError, QuadrilleError, bad_parameter
from quadrille.expressions import split_outside_quotes, unquoted
from quadrille.measure.areas import steps
from quadrille.measure.base import Address
from quadrille.measure.tables import relative_steps
from quadrille.params import whole
from quadrille.plan import Plan
from quadrille.score.matching import matched
from quadrille.summary import Change, Table, Tally
from quadrille.text import Shown
from quadrille.text import Table as Settings

if TYPE_CHECKING:
    import polars as pl


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Names = tuple[str, ...]
Tables = Sequence[str | Sequence[str]]
"""Published tables as they are given: "Age*Edu", or a list of variables."""

OWNER = "table_changes"
EXAMPLE = '["Age*Edu", "Region*Tenure*Sex"]'
_MUST = f"a list of tables, like {EXAMPLE}"
_SIGNS = frozenset("*,;=&~()[]'\"`")


def table_name(variables: Sequence[str]) -> str:
    """Write a table as measures and options take it.

    >>> from quadrille.score.published import table_name
    >>> table_name(["Age", "Hours, usual"])
    'Age*`Hours, usual`'
    """
    return "*".join(_quoted(name) for name in variables)


def _quoted(name: str) -> str:
    if not _SIGNS & set(name) and name == name.strip():
        return name
    return f'"{name}"' if "`" in name else f"`{name}`"


def _variables(given: object) -> Names:
    """Return the variables of one table; the error says what is wrong and not where."""
    if isinstance(given, str):
        parts: object = tuple(map(unquoted, split_outside_quotes(given, "*")))
    else:
        parts = given
    listed = tuple(cast("Iterable[object]", parts)) if isinstance(parts, list | tuple) else ()
    if not listed or not all(isinstance(name, str) and name.strip() for name in listed):
        raise InputError('A table is variables with asterisks between them, like "Age*Edu".')
    if len(set(listed)) < len(listed):
        raise InputError("A variable occurs twice in a table. Name each variable once.")
    return cast("Names", listed)


def read_tables(settings: Settings, key: str) -> tuple[Names, ...]:
    """Read the published tables of a file; a fault is reported with its place."""
    made: list[Names] = []
    for index, text in enumerate(settings.texts(key, f"tables, like {EXAMPLE}")):
        try:
            made.append(_variables(text))
            _refuse_repeated(made)
        except QuadrilleError as error:
            settings.refuse(str(error), key, index)
    return tuple(made)


def tables_of(owner: str, given: Tables) -> tuple[Names, ...]:
    """Return the published tables that a function is given.

    >>> from quadrille.score.published import tables_of
    >>> tables_of("release", ["Age*Edu", ["MS", "Race", "Sex"]])
    (('Age', 'Edu'), ('MS', 'Race', 'Sex'))
    """
    if not isinstance(cast("object", given), list | tuple):
        raise bad_parameter(owner, "tables", _MUST, given)
    made: list[Names] = []
    for number, each in enumerate(given, start=1):
        try:
            made.append(_variables(each))
            _refuse_repeated(made)
        except InputError as error:
            place = owner if owner.startswith("--") else f"The 'tables' parameter of {owner}"
            raise ParameterError(f"{place}, entry {number}: {error}") from None
    return tuple(made)


def _refuse_repeated(made: Sequence[Names]) -> None:
    """Refuse a table that was listed before, also with its variables in another order."""
    if frozenset(made[-1]) in map(frozenset, made[:-1]):
        raise InputError(f"The table {table_name(made[-1])} is listed twice. Name it once.")


def require_table(data: Data, variables: Names) -> None:
    """Refuse a table that cannot be made of these data."""
    require_columns(data, variables, "the published tables")
    for name in variables:
        data.coded(name, purpose="a published table")
    if not Cross.of(data, variables).exact:
        raise InputError(
            f"The published table of {len(variables)} variables has more possible cells than can be told apart. "
            "Name tables of fewer variables."
        )


def worst_cells(tables: Iterable[Names], scored: Iterable[str]) -> tuple[str, ...]:
    """Return the `worst_cell` of each published table, but for those that are scored anyway.

    >>> from quadrille.score.published import worst_cells
    >>> worst_cells([("Age", "Edu"), ("MS", "Sex")], ["hellinger", "worst_cell(Edu*Age, floor=5)"])
    ('worst_cell(MS*Sex)',)
    """
    known = {frozenset(each.margin or ()) for each in map(Address.parse, scored) if each.name == "worst_cell"}
    return tuple(f"worst_cell({table_name(table)})" for table in tables if frozenset(table) not in known)


def together(*lists: Iterable[Names]) -> tuple[Names, ...]:
    """Return each table once, whatever the order of its variables."""
    found: dict[frozenset[str], Names] = {}
    for listed in lists:
        for table in listed:
            found.setdefault(frozenset(table), table)
    return tuple(found.values())


@dataclass(frozen=True, repr=False)
class CellLimits(Shown):
    """A cell is over the limits if it changes by more than `percent` per cent, or its share by more than `points`.

    A cell of fewer than `floor` records counts as one of `floor` records of mean weight, as in `worst_cell`, so that a
    cell of two records does not always come first. `points` are percentage points of the total of the table.
    """

    percent: float = 10.0
    points: float = 1.0
    floor: int = 10


@dataclass(frozen=True, eq=False, repr=False)
class TableChange(Shown):
    """One published table: its cells that are occupied before or after, the worst first.

    `percent` is the change of each cell, NaN where it was empty; `relative` its size in per cent with small cells
    counted as `floor` records; `points` the change of its share of the table in percentage points.
    """

    variables: Names
    categories: tuple[NDArray[np.str_], ...]
    records_before: Ints
    records_after: Ints
    before: Floats
    after: Floats
    percent: Floats
    relative: Floats
    points: Floats
    over: NDArray[np.bool_]

    @property
    def name(self) -> str:
        """The table as options have it, such as Age*Edu."""
        return table_name(self.variables)

    def __len__(self) -> int:
        return len(self.over)

    @cached_property
    def changed(self) -> int:
        """How many cells change."""
        return int((self.relative > 0).sum())

    @property
    def worst_percent(self) -> float:
        """The largest change of a cell in per cent: 100 times `worst_cell` of the table."""
        return float(self.relative.max(initial=0.0))

    @property
    def worst_points(self) -> float:
        """The largest change of the share of a cell, in percentage points."""
        return float(np.abs(self.points).max(initial=0.0))

    @property
    def share_over(self) -> float:
        """The share of the cells that are over the limits."""
        return float(self.over.mean()) if len(self) else 0.0

    def rows(self, places: Iterable[int]) -> list[dict[str, object]]:
        """Return some of the cells as rows of a table."""
        return [
            {
                "table": self.name,
                "cell": ", ".join(
                    f"{name}: {labels[i]}" for name, labels in zip(self.variables, self.categories, strict=True)
                ),
                "records_before": int(self.records_before[i]),
                "records_after": int(self.records_after[i]),
                "before": float(self.before[i]),
                "after": float(self.after[i]),
                "percent": None if np.isnan(self.percent[i]) else float(self.percent[i]),
                "relative": float(self.relative[i]),
                "points": float(self.points[i]),
                "over": bool(self.over[i]),
            }
            for i in places
        ]

    def summary(self) -> dict[str, object]:
        """Return the table in a row: cells, how many change and are over the limits, the worst."""
        return {
            "table": self.name,
            "cells": len(self),
            "changed": self.changed,
            "over": int(self.over.sum()),
            "worst_percent": self.worst_percent,
            "worst_points": self.worst_points,
        }


@dataclass(frozen=True)
class TableChanges(Shown):
    """What a swap does to the published tables: `frame()` has every cell, `over()` those that change too much.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> found = qd.table_changes(data, qd.RandomSwap(["MS"], rate=0.05, seed=1).plan(data), ["Age*MS"])
    >>> found.summary().select("table", "cells", "over").rows()
    [('Age*MS', 6, 1)]
    """

    tables: tuple[TableChange, ...]
    limits: CellLimits = field(default_factory=CellLimits)
    weighted: bool = False
    """Whether `before`, `after` and the changes are of sums of weights; otherwise they are of records."""

    def frame(self) -> pl.DataFrame:
        """Return a row per cell of every table, the worst first.

        `relative` is the size of the change in per cent, small cells counted as `floor` records; `percent` is None for
        a cell that was empty. Sorted by `over`, then by `relative`, then by the size of `points`.
        """
        return self._framed(self.worst())

    def over(self) -> pl.DataFrame:
        """Return the cells over the limits: those that users of the tables will ask about."""
        return self._framed(self.worst(over=True))

    def summary(self) -> pl.DataFrame:
        """Return a row per table: cells, how many change and are over the limits, the worst change."""
        return tidy([table.summary() for table in self.tables])

    def worst(self, most: int | None = None, *, over: bool = False, changed: bool = False) -> list[dict[str, object]]:
        """Return the worst cells of all tables, at most so many; only those over the limits, or changed, if asked."""
        listed = [
            ((not table.over[i], -table.relative[i], -abs(table.points[i]), number, i), number)
            for number, table in enumerate(self.tables)
            for i in range(len(table))[:most]
            if (table.over[i] or not over) and (table.relative[i] > 0 or not changed)
        ]
        return [row for key, number in sorted(listed)[:most] for row in self.tables[number].rows([key[-1]])]

    @property
    def count_over(self) -> int:
        """How many cells are over the limits."""
        return sum(int(table.over.sum()) for table in self.tables)

    def as_dict(self) -> dict[str, object]:
        """Return plain values, for JSON: every table, and the cells over the limits."""
        return {
            "limits": asdict(self.limits),
            "weighted": self.weighted,
            "tables": [table.summary() for table in self.tables],
            "cells_over": self.worst(over=True),
        }

    def _framed(self, rows: list[dict[str, object]]) -> pl.DataFrame:
        # A row of every type, so that a table without any row has the types of one that has some.
        return tidy([*rows, dict(zip(_COLUMNS, ("", "", 0, 0, *[0.0] * 5, False), strict=True))]).head(len(rows))


_COLUMNS = (
    *("table", "cell", "records_before", "records_after", "before", "after", "percent", "relative", "points", "over"),
)


def table_changes(
    data: Data,
    released: Plan | Data,
    tables: Tables,
    *,
    percent: float = 10.0,
    points: float = 1.0,
    floor: int = 10,
) -> TableChanges:
    """Compare every cell of published tables before and after a swap, the worst cells first.

    A cell is over the limits if it changes by more than `percent` per cent, or its share of the table by more than
    `points` percentage points. With a weight, both are about sums of weights; records are listed next to them.

    Parameters
    ----------
    data : the file before.
    released : the plan, or the released file; the latter is tabulated by itself, categories matched by label.
    tables : the published tables, such as "Age*Edu" and "Region*Tenure*Sex". Missing codes are categories.
    percent : limit of the change of a cell, in per cent of the cell.
    points : limit of the change of its share, in percentage points of the total of the table.
    floor : a cell of fewer records counts as one of so many records of mean weight, and so does an empty one.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> plan = qd.RandomSwap(["Edu", "MS"], rate=0.2, seed=1).plan(data)
    >>> found = qd.table_changes(data, plan, ["Edu*MS", "Age*Edu*Race"])
    >>> found.frame().columns[:4], found.over().height == found.count_over
    (['table', 'cell', 'records_before', 'records_after'], True)
    """
    require_data(data, OWNER)
    listed, limits = tables_of(OWNER, tables), _limits(percent, points, floor)
    for variables in listed:
        require_table(data, variables)
    if isinstance(released, Plan):
        released.check(data)
        delta = Delta(data, released)
        made = [_of_plan(data, delta, variables, limits) for variables in listed]
    else:
        other = require_data(released, OWNER)
        made = [_of_files(data, other, variables, limits) for variables in listed]
    return TableChanges(tuple(made), limits, data.ticks is not None)


def _limits(percent: object, points: object, floor: object) -> CellLimits:
    for name, value in (("percent", percent), ("points", points)):
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < inf:
            raise bad_parameter(OWNER, name, "a number of 0 or more", value)
    return CellLimits(
        float(cast("float", percent)), float(cast("float", points)), whole(OWNER, "floor", floor, least=1)
    )


def _of_plan(data: Data, delta: Delta, variables: Names, limits: CellLimits) -> TableChange:
    before = Table(variables).of(data)
    return _changed(before, before.complete(before.change(delta)), limits)


def _of_files(data: Data, other: Data, variables: Names, limits: CellLimits) -> TableChange:
    mine, theirs = matched(data, other, variables)
    before = Table(variables).of(mine)
    return _changed(before, before.against(Table(variables).of(theirs)), limits)


def _changed(before: Tally, change: Change, limits: CellLimits) -> TableChange:
    """Sort the cells of a table by how much they change."""
    old, new, step = steps(change)
    relative = 100 * relative_steps(before, change, limits.floor)
    percent = 100 * np.divide(step, old, out=np.full(len(old), np.nan), where=old > 0)
    points = 100 * (change.new / change.total_new - change.old / change.total_old)
    if change.total_old == change.total_new:  # then a cell that stays as it is has no change of the last digit
        points = 100 * ((change.new - change.old) / change.total_old)
    over = (relative > limits.percent) | (np.abs(points) > limits.points)
    order = np.lexsort((change.cells, -np.abs(points), -relative, ~over))
    cells = change.cells[order]
    categories = tuple(
        np.asarray(labels, dtype=np.str_)[before.cross.codes(cells, name)]
        for name, labels in zip(before.cross.variables, before.labels, strict=True)
    )
    return TableChange(
        variables=before.cross.variables,
        categories=categories,
        records_before=change.old_count[order],
        records_after=change.new_count[order],
        before=old[order],
        after=new[order],
        percent=percent[order],
        relative=relative[order],
        points=points[order],
        over=over[order],
    )
