"""Additive statistics: tables of counts and weighted counts, and how a plan changes them.

`Table` and `Transition` say what is counted. Their `of` gives a `Tally`; its `change` lists the cells that a plan
touches, with old and new values, at a cost in proportion to the touched rows. All sums are of whole numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import DENSE_LIMIT, MOST_TICKS, Cells, Codes, Cross, Data, Flags, Ints, united
from quadrille.delta import OUTSIDE, Delta, Fused, scratch
from quadrille.errors import MismatchError
from quadrille.expressions import Where

_NONE = np.empty(0, dtype=np.int64)
Known = TypeVar("Known")
Part = tuple[Data, Cells]
"""Some records, and the cell of each."""
AT_ONCE = 1 << 22
"""Records whose cells are in memory at a time, where they are counted by cell."""
_MOST_CELLS = 1 << 26
"""Tables of up to so many possible cells are counted in an array of all of them, if the file is large enough."""


class Statistic(Protocol):
    """A summary worked out for a file: what a plan changes in it, and how it differs from that of a second file."""

    def change(self, delta: Delta) -> object:
        """Return what a plan does to it, at a cost in proportion to the touched rows."""

    def against(self, after: Any) -> object:
        """Return the change to the same statistic of another file."""

    def merge(self, other: Any) -> object:
        """Add the statistic of other records."""


@dataclass(frozen=True)
class Summary(ABC):
    """What is added up: something about some variables, of the records that meet a condition."""

    variables: tuple[str, ...]
    where: Where | None = None

    @cached_property
    def needs(self) -> tuple[str, ...]:
        """Every variable that decides what is added up."""
        return tuple(dict.fromkeys(self.variables + (self.where.variables if self.where else ())))

    @abstractmethod
    def of(self, data: Data, original: Data | None = None, swapped: Flags | None = None) -> Statistic:
        """Work it out. `original` holds the same records before, `swapped` who took part in a swap."""


@dataclass(frozen=True)
class Counted(Summary):
    """A summary that counts the records of cells."""

    @abstractmethod
    def cross(self, data: Data) -> Cross:
        """Return the cells."""

    @abstractmethod
    def cells(self, data: Data, original: Data | None = None, swapped: Flags | None = None) -> Cells:
        """Return the cell of every record, -1 outside.

        `original` holds the same records before, `swapped` who took part in a swap.
        """

    @abstractmethod
    def net(self, delta: Delta, cross: Cross) -> tuple[Cells, Ints]:
        """Return the cells of its cross whose counts or ticks change, ascending, and by how much, (2, m)."""

    def leave_out(self, cells: Cells, data: Data, values: Callable[[str], Codes]) -> None:
        """Put records outside, in place, whose values do not meet the condition."""
        for condition in self.where.conditions if self.where else ():
            cells[~condition.allowed(data)[values(condition.variable)]] = OUTSIDE

    def of(self, data: Data, original: Data | None = None, swapped: Flags | None = None) -> Tally:
        """Count, so many records at a time that the memory for their cells stays small."""

        def parts() -> Iterator[Part]:
            for start in range(0, data.n, AT_ONCE):
                stop = min(start + AT_ONCE, data.n)
                part, before = (each and each.part(start, stop) for each in (data, original))
                assert part is not None
                yield part, self.cells(part, before, None if swapped is None else swapped[start:stop])

        if data.n <= AT_ONCE:
            return Tally.count_cells(self, data, [(data, self.cells(data, original, swapped))])
        return Tally.count_cells(self, data, parts())

    def of_distinct(self, distinct: Distinct) -> Tally:
        """Count, given the combinations that occur of all variables that it needs."""
        return Tally.count_cells(self, distinct.data, [(distinct.data, self.cells(distinct.data))], distinct.count)


@dataclass(frozen=True)
class Table(Counted):
    """Counts of the cross of some variables."""

    def cross(self, data: Data) -> Cross:
        """Return the cross of the variables."""
        return Cross.of(data, self.variables)

    def cells(self, data: Data, original: Data | None = None, swapped: Flags | None = None) -> Cells:
        """Return the cell of every record."""
        cells = self.cross(data).cells(data)
        self.leave_out(cells, data, lambda name: data[name].values)
        return cells

    def net(self, delta: Delta, cross: Cross) -> tuple[Cells, Ints]:
        """Return the net change, from a fused cross that contains the table if there is one."""
        fused = delta.fused_with(self.needs)
        if fused and fused.cross == cross and not self.where:
            return delta.net(cross)
        if fused:
            cells, net = delta.net(fused.cross)
            lookup = fused.lookup(self, lambda: self._lookup(fused, delta.data))
            return kernels.net_of_cells(cells, net, lookup, scratch(cross.possible), cross.possible)
        return net_of_rows(cross, delta, *self.rows(delta, cross))

    def rows(self, delta: Delta, cross: Cross) -> tuple[Codes, Codes]:
        """Return the cells of the touched rows, before and after."""
        fused = delta.fused_with(self.needs)
        if fused and (self.where or fused.cross != cross):
            old, new = delta.cells(fused.cross)
            lookup = fused.lookup(self, lambda: self._lookup(fused, delta.data))
            return lookup[old], lookup[new]
        old, new = delta.cells(cross)
        if self.where:
            old, new = old.copy(), new.copy()
            self.leave_out(old, delta.data, lambda name: delta.values(name)[0])
            self.leave_out(new, delta.data, lambda name: delta.values(name)[1])
        return old, new

    def _lookup(self, fused: Fused, data: Data) -> NDArray[np.int32]:
        """Return the table's cell for every cell of a fused cross that contains it."""
        every = np.arange(fused.cross.possible, dtype=np.int64)
        cells = fused.cross.project(every, self.cross(data))
        self.leave_out(cells, data, lambda name: fused.cross.codes(every, name))
        return cells.astype(np.int32)


@dataclass(frozen=True)
class Marked(Counted):
    """Counts of a table, apart for records without a mark (last variable 0) and with it (1)."""

    mark: ClassVar[str]

    def cross(self, data: Data) -> Cross:
        """Return the cross of the variables and of the mark."""
        table = Cross.of(data, self.variables)
        return Cross((*table.variables, self.mark), (*table.sizes, 2))

    @property
    def table(self) -> Table:
        """The table without the mark."""
        return Table(self.variables, self.where)

    def rows(self, delta: Delta, cross: Cross) -> tuple[Cells, Cells]:
        """Return the cells of the touched rows in the table without the mark, before and after."""
        return self.table.rows(delta, Cross(cross.variables[:-1], cross.sizes[:-1]))

    def join(self, cells: Cells, marked: Flags | int) -> Cells:
        """Return the cells with the mark, from those without."""
        joined = cells.astype(np.int64) * 2 + marked
        return joined if self.where is None else np.where(cells == OUTSIDE, OUTSIDE, joined)


@dataclass(frozen=True)
class Participation(Marked):
    """Counts of a table, apart for records that took part in no swap and in some."""

    mark = "(swapped)"

    def cells(self, data: Data, original: Data | None = None, swapped: Flags | None = None) -> Cells:
        """Return the cell of every record; without a mask nobody has taken part yet."""
        return self.join(self.table.cells(data), 0 if swapped is None else swapped)

    def net(self, delta: Delta, cross: Cross) -> tuple[Cells, Ints]:
        """Return the net change: every touched row leaves those that took no part."""
        old, new = self.rows(delta, cross)
        return net_of_rows(cross, delta, self.join(old, 0), self.join(new, 1))


@dataclass(frozen=True)
class Arrival(Marked):
    """Counts of a table, apart for records that are in the cell they were in, and that came from elsewhere."""

    mark = "(arrived)"

    def cells(self, data: Data, original: Data | None = None, swapped: Flags | None = None) -> Cells:
        """Return the cell of every record; without an original nobody has left a cell yet."""
        now = self.table.cells(data)
        return self.join(now, 0 if original is None else now != self.table.cells(original))

    def net(self, delta: Delta, cross: Cross) -> tuple[Cells, Ints]:
        """Return the net change: whoever reaches another cell is new there."""
        old, new = self.rows(delta, cross)
        return net_of_rows(cross, delta, self.join(old, 0), self.join(new, old != new))


@dataclass(frozen=True)
class Transition(Counted):
    """Counts of (original, released) combinations of some variables, record by record.

    A condition looks at the original values: it chooses records, not cells.
    """

    def cross(self, data: Data) -> Cross:
        """Return the cross of original and released values."""
        half = Cross.of(data, self.variables)
        return Cross(tuple(f"{name} before" for name in half.variables) + half.variables, half.sizes * 2)

    def cells(self, data: Data, original: Data | None = None, swapped: Flags | None = None) -> Cells:
        """Return the cell of every record; without an original nothing has changed yet."""
        first = original or data
        cells = self._join(data, [(first[v].values, data[v].values) for v in self.variables])
        self.leave_out(cells, first, lambda name: first[name].values)
        return cells

    def net(self, delta: Delta, cross: Cross) -> tuple[Cells, Ints]:
        """Return the net change: records leave the diagonal."""
        values = [delta.values(name) for name in self.variables]
        old = self._join(delta.data, [(was, was) for was, _ in values])
        new = self._join(delta.data, values)
        for cells in (old, new):
            self.leave_out(cells, delta.data, lambda name: delta.values(name)[0])
        return net_of_rows(cross, delta, old, new)

    def _join(self, data: Data, values: Sequence[tuple[Codes, Codes]]) -> Cells:
        strides = self.cross(data).strides
        cells = np.zeros(len(values[0][0]), dtype=np.int64)
        for i, (was, now) in enumerate(values):
            cells += was.astype(np.int64) * strides[i] + now.astype(np.int64) * strides[len(values) + i]
        return cells


@dataclass(frozen=True, eq=False)
class Tally:
    """A counted table: all cells where `keys` is None, else the occupied cells in ascending order of their keys.

    `count` are records, `ticks` their weights; weight = ticks / per_unit. `valid` are the numbers of categories of
    the summary's variables that are not missing, `labels` the labels of all their codes.
    """

    summary: Counted
    cross: Cross
    keys: Cells | None
    count: Ints
    ticks: Ints | None
    per_unit: float
    valid: tuple[int, ...]
    labels: tuple[tuple[str, ...], ...] = ()
    _known: dict[str, Any] = field(default_factory=dict[str, Any])

    def known(self, name: str, work_out: Callable[[], Known]) -> Known:
        """Return what measures start from, such as a sum over the whole table, worked out once."""
        if name not in self._known:
            self._known[name] = work_out()
        return self._known[name]

    @classmethod
    def count_cells(cls, summary: Counted, data: Data, parts: Iterable[Part], times: Ints | None = None) -> Tally:
        """Count the records of each cell; with `times` each record so many times, but for its ticks."""
        cross, per_unit = summary.cross(data), data.ticks.per_unit if data.ticks else 1.0
        if cross.possible <= most_cells(data):
            count, ticks = _count_all(parts, cross.possible, times, weighted=data.ticks is not None)
            keys = None if cross.dense else np.flatnonzero(count)
            if keys is not None:
                count, ticks = count[keys], None if ticks is None else ticks[keys]
        else:
            keys, count, ticks = _count_occupied(list(parts), times, all_inside=summary.where is None)
        columns = [data[name] for name in summary.variables]
        valid, labels = tuple(column.valid for column in columns), tuple(column.labels for column in columns)
        return cls(summary, cross, keys, count.astype(np.int64, copy=False), ticks, per_unit, valid, labels)

    @cached_property
    def total(self) -> int:
        """Total in the unit of `value`: records, or ticks where there is a weight."""
        return int(self.value.sum())

    @cached_property
    def records(self) -> int:
        """Number of records."""
        return int(self.count.sum())

    @property
    def value(self) -> Ints:
        """Ticks where there is a weight, else counts."""
        return self.count if self.ticks is None else self.ticks

    @property
    def weighted(self) -> bool:
        """Whether there is a weight."""
        return self.ticks is not None

    def at(self, cells: Cells) -> tuple[Ints, Ints | None]:
        """Return count and ticks of some cells; zero where a cell is empty."""
        if self.keys is None:
            return self.count[cells], None if self.ticks is None else self.ticks[cells]
        if not len(self.keys):
            zero = np.zeros(len(cells), dtype=np.int64)
            return zero, None if self.ticks is None else zero
        place = np.minimum(kernels.places_in_order(self.keys, cells), len(self.keys) - 1)
        found = self.keys[place] == cells
        count = np.where(found, self.count[place], 0)
        return count, None if self.ticks is None else np.where(found, self.ticks[place], 0)

    def change(self, delta: Delta) -> Change:
        """Return what a plan does to the table, at a cost in proportion to the touched rows."""
        anyway = isinstance(self.summary, Participation) or (self.weighted and delta.weight_moves)
        if not anyway and not set(self.summary.needs) & set(delta.moved):
            return Change.nothing(self)
        cells, net = self.summary.net(delta, self.cross)
        count, ticks = self.at(cells)
        new_ticks = None if ticks is None else ticks + net[1]
        total = self.total + int(net[1 if self.weighted else 0].sum())
        return Change(cells, count, count + net[0], ticks, new_ticks, self.total, total, self.per_unit)

    def occupied(self) -> Cells:
        """Return the cells that hold a record, ascending."""
        return np.flatnonzero(self.count) if self.keys is None else self.keys[self.count > 0]

    def against(self, after: Tally) -> Change:
        """Return the change to another tally of the same cells, with every occupied cell listed."""
        cells = united(self.occupied(), after.occupied())
        old, old_ticks = self.at(cells)
        new, new_ticks = after.at(cells)
        return Change(cells, old, new, old_ticks, new_ticks, self.total, after.total, self.per_unit, after.per_unit)

    def complete(self, change: Change) -> Change:
        """Return the same change with every occupied cell listed, changed or not."""
        return self.against(self.after(change))

    def after(self, change: Change) -> Tally:
        """Return the tally that the change leads to."""
        per_unit = change.per_unit_after or self.per_unit
        if self.keys is None:
            count = self.count.copy()
            count[change.cells] = change.new_count
            ticks = None if self.ticks is None else self.ticks.copy()
            if ticks is not None and change.new_ticks is not None:
                ticks[change.cells] = change.new_ticks
            return replace(self, _known={}, count=count, ticks=ticks, per_unit=per_unit)
        keys = united(self.keys, change.cells)
        count, ticks = self.at(keys)
        place = np.searchsorted(keys, change.cells)
        count[place] = change.new_count
        if ticks is not None and change.new_ticks is not None:
            ticks[place] = change.new_ticks
        return replace(self, _known={}, keys=keys, count=count, ticks=ticks, per_unit=per_unit)

    def _in_ticks(self, per_unit: float) -> Tally:
        """Return the same tally in finer ticks, exactly."""
        factor = Fraction(per_unit) / Fraction(self.per_unit)
        if self.ticks is None or factor.denominator != 1 or self.total * factor >= MOST_TICKS:
            raise MismatchError("The weights of these tallies have no common tick. Tally all records together.")
        ticks = self.ticks * int(factor) if self.total else self.ticks
        return replace(self, _known={}, ticks=ticks, per_unit=per_unit)

    def merge(self, other: Tally) -> Tally:
        """Add the tally of other records, counted in the same cells."""
        if self.summary != other.summary or self.cross != other.cross or self.weighted != other.weighted:
            raise MismatchError("Only tallies of the same table, with the same categories and weight, can be merged.")
        if self.per_unit != other.per_unit:
            finest = max(self.per_unit, other.per_unit)
            return self._in_ticks(finest).merge(other._in_ticks(finest))
        if self.total + other.total >= MOST_TICKS:
            raise MismatchError(
                "The weights of these tallies add up to more ticks than whole numbers hold. Tally all records together."
            )
        keys = None if self.keys is None or other.keys is None else united(self.keys, other.keys)
        cells = np.arange(self.cross.possible) if keys is None else keys
        mine, my_ticks = self.at(cells)
        theirs, their_ticks = other.at(cells)
        ticks = None if my_ticks is None or their_ticks is None else my_ticks + their_ticks
        return replace(self, _known={}, keys=keys, count=mine + theirs, ticks=ticks)


@dataclass(frozen=True, eq=False)
class Change:
    """Cells of a table with old and new counts and ticks, and the totals before and after."""

    cells: Cells
    old_count: Ints
    new_count: Ints
    old_ticks: Ints | None
    new_ticks: Ints | None
    total_old: int
    total_new: int
    per_unit: float = 1.0
    per_unit_after: float | None = None

    @classmethod
    def nothing(cls, tally: Tally) -> Change:
        """Return the change of a table that a plan does not touch."""
        ticks = None if tally.ticks is None else _NONE
        return cls(_NONE, _NONE, _NONE, ticks, ticks, tally.total, tally.total, tally.per_unit)

    @property
    def old(self) -> Ints:
        """Old values: ticks where there is a weight, else counts."""
        return self.old_count if self.old_ticks is None else self.old_ticks

    @property
    def new(self) -> Ints:
        """New values: ticks where there is a weight, else counts."""
        return self.new_count if self.new_ticks is None else self.new_ticks

    @property
    def nothing_changed(self) -> bool:
        """Whether every listed cell is as before."""
        same_unit = self.per_unit_after is None or self.per_unit_after == self.per_unit
        return same_unit and bool((self.old == self.new).all())


@dataclass(frozen=True, eq=False)
class Distinct:
    """The combinations of some variables that occur, as records, and how many records of the file have each.

    The ticks of a combination are the sum of its records': one pass over the file, and all tables of these variables,
    or of some, follow from it.
    """

    data: Data
    count: Ints

    @classmethod
    def of(cls, data: Data, tally: Tally) -> Distinct:
        """Take a table of some variables apart, in the order of its cells."""
        cells, variables = tally.occupied(), tally.cross.variables
        count, ticks = tally.at(cells)
        columns = [
            replace(data[name], values=tally.cross.codes(cells, name).astype(data[name].values.dtype))
            for name in variables
        ]
        weights = None if ticks is None or data.ticks is None else replace(data.ticks, values=ticks)
        return cls(Data(columns, ticks=weights, nested=True), count)


def most_cells(data: Data) -> int:
    """Return how many possible cells are counted in an array of all of them: not many more than there are records."""
    return max(DENSE_LIMIT, min(_MOST_CELLS, 4 * data.n))


def _count_all(
    parts: Iterable[Part], possible: int, times: Ints | None, *, weighted: bool
) -> tuple[Codes, Ints | None]:
    """Count the records, and add up the ticks, of every possible cell."""
    count: Codes = np.zeros(possible, dtype=np.int32 if times is None else np.int64)
    ticks = np.zeros(possible, dtype=np.int64) if weighted else None
    for data, cells in parts:
        if times is None:
            kernels.count_keys(cells, count)
        else:
            kernels.add_ticks(cells, times, count)
        if ticks is not None and data.ticks is not None:
            kernels.add_ticks(cells, data.ticks.values, ticks)
    return count, ticks


def _count_occupied(parts: list[Part], times: Ints | None, *, all_inside: bool) -> tuple[Cells, Ints, Ints | None]:
    """Count the records, and add up the ticks, of the cells that have a record, ascending."""
    inside = np.concatenate([cells if all_inside else cells[cells != OUTSIDE] for _, cells in parts])
    inside.sort()
    found = int(kernels.runs(inside, _NONE, _NONE))
    keys, count = np.empty(found, dtype=np.int64), np.zeros(found, dtype=np.int64)
    kernels.runs(inside, keys, count)
    if times is None and parts[0][0].ticks is None:
        return keys, count, None
    ticks = None if parts[0][0].ticks is None else np.zeros(found, dtype=np.int64)
    count = count if times is None else np.zeros(found, dtype=np.int64)
    for data, cells in parts:
        place = np.searchsorted(keys, cells)
        if not all_inside:
            place[cells == OUTSIDE] = OUTSIDE
        if times is not None:
            kernels.add_ticks(place, times, count)
        if ticks is not None and data.ticks is not None:
            kernels.add_ticks(place, data.ticks.values, ticks)
    return keys, count, ticks


def _net_of_cells(left: Cells, reached: Cells) -> tuple[Cells, Ints]:
    """Return the net change of records; a cell has its step as its last bit, so that plain numbers are sorted."""
    steps = np.concatenate((left << 1, reached << 1 | 1))
    steps.sort()
    cells = steps >> 1
    first = np.flatnonzero(np.concatenate(([True], cells[1:] != cells[:-1]))[: len(cells)])
    net = np.zeros((2, len(first)), dtype=np.int64)
    net[0] = np.add.reduceat((steps & 1) * 2 - 1, first)
    kept = net[0] != 0
    return cells[first][kept], net[:, kept]


def net_of_rows(cross: Cross, delta: Delta, old: Cells, new: Cells) -> tuple[Cells, Ints]:
    """Return the net change of the cells that the touched rows leave and reach."""
    old, new, ticks = delta.steps(old, new)
    if cross.dense:
        return kernels.net_of_rows(old, new, ticks, scratch(cross.possible), cross.possible)
    moved = old != new
    leaving, reaching = moved & (old != OUTSIDE), moved & (new != OUTSIDE)
    if cross.exact and not len(ticks):
        return _net_of_cells(old[leaving], new[reaching])
    cells = np.concatenate((old[leaving], new[reaching]))
    step = np.ones((2, len(cells)), dtype=np.int64)
    step[1] = np.concatenate((ticks[leaving], ticks[reaching])) if len(ticks) else 0
    step[:, : int(leaving.sum())] *= -1
    if not len(cells):
        return cells, step
    order = np.argsort(cells, kind="stable")
    ordered = cells[order]
    first = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    net = np.add.reduceat(step[:, order], first, axis=1)
    kept = net.any(axis=0)
    return ordered[first][kept], net[:, kept]
