"""A table taken apart by area: tabulated once for all areas, then summed within each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quadrille.data import Cells, Cross, Floats, Ints
from quadrille.summary import Change, Tally

Grouped = tuple[Floats, Ints | None]
"""A value per area, and per area how many cells were empty before and not after; None where that does not matter."""


@dataclass(frozen=True, eq=False)
class Areas:
    """A table before and after, cell by cell; the cells of an area stand together.

    The first `leading` variables of the table make the area; with 0 the whole table is one area. The next `within`
    variables make the smaller areas inside it, for measures that look at shares within areas. Every cell that is
    occupied before or after is listed in `change`, ascending.
    """

    before: Tally
    change: Change
    leading: int
    within: int = 0

    @classmethod
    def of(cls, before: Tally, change: Change, leading: int, within: int = 0) -> Areas:
        """Take a table apart; the change may list the changed cells only."""
        return cls(before, before.complete(change), leading, within)

    def whole(self) -> Areas:
        """Return the same table as one area, with the areas as smaller areas inside it."""
        return replace(self, leading=0, within=self.leading + self.within)

    def _stride(self, variables: int) -> int:
        cross = self.before.cross
        return cross.strides[variables - 1] if variables else cross.possible

    @cached_property
    def first(self) -> Ints:
        """Where each area begins in the list of cells."""
        number = self.change.cells // self._stride(self.leading)
        return np.flatnonzero(np.diff(number, prepend=-1))

    @cached_property
    def smaller(self) -> Cells:
        """The smaller area of each cell."""
        return self.change.cells // self._stride(self.leading + self.within)

    def __len__(self) -> int:
        return len(self.first)

    def sums(self, cells: Floats) -> Floats:
        """Add up within each area."""
        return np.add.reduceat(cells, self.first) if len(self.first) else np.zeros(0)

    def counts(self, cells: Ints | NDArray[np.bool_]) -> Ints:
        """Add up whole numbers within each area, exactly; or count what is true."""
        whole = cells.astype(np.int64, copy=False)
        return np.add.reduceat(whole, self.first) if len(self.first) else np.zeros(0, dtype=np.int64)

    @cached_property
    def values(self) -> tuple[Floats, Floats, Floats]:
        """Value before, value after and their difference, of each cell, in the unit of the weights.

        Whole numbers are subtracted wherever both sides are counted in the same ticks, so that nothing cancels.
        """
        return steps(self.change)

    @cached_property
    def totals(self) -> tuple[Floats, Floats]:
        """The totals of the areas before and after, in the unit of the weights."""
        change = self.change
        after = change.per_unit_after or change.per_unit
        return self.counts(change.old) / change.per_unit, self.counts(change.new) / after

    @cached_property
    def records(self) -> tuple[Ints, Ints]:
        """How many records each area has before and after."""
        return self.counts(self.change.old_count), self.counts(self.change.new_count)

    @cached_property
    def changed(self) -> Ints:
        """The least number of records of each area whose change explains the difference."""
        step = self.change.new_count - self.change.old_count
        return np.maximum(self.counts(np.maximum(step, 0)), self.counts(np.maximum(-step, 0)))

    @cached_property
    def differs(self) -> NDArray[np.bool_]:
        """Whether any cell of the area is not as before."""
        return self.counts(self.values[2] != 0) > 0

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """Whether each area is one: not so where a variable that makes it is missing."""
        cells, known = self.change.cells[self.first], np.ones(len(self.first), dtype=np.bool_)
        for name, valid in zip(self.before.cross.variables[: self.leading], self.before.valid, strict=False):
            known &= self.before.cross.codes(cells, name) < valid
        return known

    @property
    def unlisted(self) -> int:
        """How many areas are declared and have no record before or after; 0 for crosses, which nobody declares."""
        return self.before.valid[0] - int(self.known.sum()) if self.leading == 1 else 0

    def labels(self) -> list[tuple[str, ...]]:
        """Return the labels of the areas, one per variable that makes them."""
        cross = self.before.cross
        return labels_of(cross, self.change.cells[self.first], self.before.labels[: self.leading])

    def each(self) -> Iterator[tuple[Tally, Change]]:
        """Yield the table and the change of one area after another, for measures that look at one table at a time."""
        before, change, split = self.before, self.change, self.leading
        cross = Cross(before.cross.variables[split:], before.cross.sizes[split:])
        summary = replace(before.summary, variables=before.summary.variables[split:])
        inner = change.cells % self._stride(split)
        ends = np.append(self.first[1:], len(inner))
        for start, end in zip(self.first.tolist(), ends.tolist(), strict=True):
            part = _cut(change, inner, slice(start, end))
            yield (
                Tally(
                    summary,
                    cross,
                    part.cells,
                    part.old_count,
                    part.old_ticks,
                    before.per_unit,
                    before.valid[split:],
                    before.labels[split:],
                ),
                part,
            )


def labels_of(cross: Cross, cells: Cells, labels: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return what the first variables of a cross say of each cell; `labels` are those of their codes."""
    columns: list[list[str]] = []
    for name, known in zip(cross.variables, labels, strict=False):
        codes: list[int] = cross.codes(cells, name).tolist()
        columns.append([known[code] for code in codes])
    return list(zip(*columns, strict=True))


def shares_of(value: Ints, first: Ints) -> Floats:
    """Return each cell's share of its area, 0 where the area is empty; `first` is where the areas begin."""
    if not len(value):
        return np.zeros(0)
    total = np.repeat(np.add.reduceat(value, first), np.diff(np.append(first, len(value))))
    return np.divide(value, total, out=np.zeros(len(value)), where=total > 0)


def shares_within(area: Cells, value: Ints) -> Floats:
    """Return each cell's share of its area; the cells of an area stand together, ascending."""
    return shares_of(value, np.flatnonzero(np.diff(area, prepend=-1)))


def times_log(p: Floats) -> Floats:
    """Return p ln p, and 0 for p = 0."""
    return p * np.log(p, out=np.zeros_like(p), where=p > 0)


def steps(change: Change) -> tuple[Floats, Floats, Floats]:
    """Return the value of each cell before, after, and their difference, in the unit of the weights."""
    unit, unit_after = change.per_unit, change.per_unit_after or change.per_unit
    f, g = change.old / unit, change.new / unit_after
    return f, g, (change.new - change.old) / unit if unit == unit_after else g - f


def _cut(change: Change, cells: Cells, part: slice) -> Change:
    old, new = change.old[part], change.new[part]
    return Change(
        cells[part],
        change.old_count[part],
        change.new_count[part],
        None if change.old_ticks is None else old,
        None if change.new_ticks is None else new,
        int(old.sum()),
        int(new.sum()),
        change.per_unit,
        change.per_unit_after,
    )
