"""Numbering combinations of values, in lexicographic order and without gaps, and finding the rows of a group.

A draw never looks at records: it needs the number of records of each group, and gives places. The records of group 0
own the first places, in the order of the file, then come those of group 1, and so on. `Roster` turns places into rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Codes, Combinations, Data, Find, Flags, Ints, keys_of

_RANK_LIMIT = 1 << 22
_KEY_LIMIT = 1 << 26
"""Up to so many possible combinations a group is looked up by its key; beyond, a number is kept for each record."""

INDEXED = 1 << 22
"""Files of up to so many records are put in the order of their groups when a row is first asked for."""
STREAMED_DRAWS = 20
"""Larger ones when rows have been looked for so often: a pass over the file each time has cost as much by then."""


def codes_of(data: Data, name: str) -> tuple[Codes, int]:
    """Return a column as codes and their number; numbers are ranked."""
    column = data[name]
    if column.variable.coded:
        return column.values, column.size
    values, codes = np.unique(column.values, return_inverse=True)
    return codes, len(values)


def group_ids(columns: Sequence[tuple[Codes, int]], n: int) -> tuple[Ints, int]:
    """Number the combinations of values that occur, in lexicographic order."""
    ids, size = np.zeros(n, dtype=np.int64), 1
    for codes, count in columns:
        if size * count >= 1 << 62:
            ids, size = ranks(ids, size)
        ids *= count
        ids += codes
        size *= count
    return ranks(ids, size)


def ranks(ids: Ints, size: int) -> tuple[Ints, int]:
    """Renumber without gaps, keeping the order."""
    if size > max(_RANK_LIMIT, len(ids)):
        values, found = np.unique(ids, return_inverse=True)
        return cast("Ints", found), len(values)
    present = np.bincount(ids, minlength=size) > 0
    return (np.cumsum(present) - 1)[ids], int(present.sum())


def sorted_by(ids: Ints, count: int) -> tuple[Ints, Ints]:
    """Return record numbers sorted by group, stable, and the first place of each group and the end."""
    start = np.zeros(count + 1, dtype=np.int64)
    order = np.empty(len(ids), dtype=np.int32)
    kernels.sort_into_groups(ids, count, start, order)
    return order.astype(np.int64), start


class Keys(NamedTuple):
    """Columns of codes, and what one step in each adds to the key of a record."""

    columns: Sequence[Codes]
    strides: Sequence[int]
    n: int

    def chunks(self) -> Iterator[tuple[int, Ints]]:
        """Yield the first row and the keys of one chunk of rows after the other."""
        return keys_of(self.columns, self.strides, self.n)


class Grouping:
    """The combinations of some columns that occur, numbered in lexicographic order; no number is kept per record.

    `group` has the number of each possible key, -1 where it does not occur; `counts` are the records of each group.
    """

    def __init__(self, columns: Sequence[tuple[Codes, int]], data: Data) -> None:
        n, self._elsewhere = data.n, data if isinstance(data, Combinations) else None
        if prod(count for _, count in columns) > min(max(_RANK_LIMIT, n), _KEY_LIMIT):
            ids, count = group_ids(columns, n)
            columns = [(ids.astype(np.uint32), count)]
        sizes = [count for _, count in columns]
        self.n, self.possible = n, prod(sizes)
        self.keys = Keys([codes for codes, _ in columns], [prod(sizes[i + 1 :]) for i in range(len(sizes))], n)
        held = self._count(self.keys, self.possible)
        occurs = held > 0
        self.counts = held[occurs].astype(np.int64)
        self.group = np.where(occurs, np.cumsum(occurs, dtype=np.int32) - 1, -1).astype(np.int32)

    def __len__(self) -> int:
        return len(self.counts)

    def _count(self, keys: Keys, possible: int) -> NDArray[Any]:
        """Count the records of every possible key."""
        if self._elsewhere is not None:
            held = np.zeros(possible, dtype=np.int64)
            for row, chunk in keys.chunks():
                kernels.add_ticks(chunk, self._elsewhere.times[row : row + len(chunk)], held)
            return held
        few = np.zeros(possible, dtype=np.int32)
        for _, chunk in keys.chunks():
            kernels.count_keys(chunk, few)
        return few

    @cached_property
    def first(self) -> Ints:
        """The first row of each group."""
        first, left = np.full(len(self), -1, dtype=np.int64), len(self)
        for row, keys in self.keys.chunks():
            left -= int(kernels.first_rows(keys, self.group, row, first))
            if not left:
                break
        return first

    @cached_property
    def of(self) -> Ints:
        """The group of each record, for those who need it record by record."""
        of = np.empty(self.n, dtype=np.int64)
        for row, keys in self.keys.chunks():
            of[row : row + len(keys)] = self.group[keys]
        return of

    def roster(self, kept: Flags | None = None) -> Roster:
        """Return where the rows of the groups are, or of those kept: these follow one another without gaps."""
        if kept is None or kept.all():
            return self._roster(self.keys, self.group, self.counts)
        new = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1).astype(np.int32)  # a group of -1 stays -1
        return self._roster(self.keys, new[self.group], self.counts[kept])

    def _roster(self, keys: Keys, group: NDArray[np.int32], counts: Ints) -> Roster:
        return Roster(keys, group, counts, None if self._elsewhere is None else self._elsewhere.find)

    def within(self, outer: Grouping) -> Roster:
        """Return where the rows are: by group of another grouping, and within each of these by group of this one.

        Every pair of groups has its place among them, also one that no record is in.
        """
        blocks = len(outer) * len(self)
        if outer.possible * self.possible > _RANK_LIMIT:
            keys = Keys([(outer.of * len(self) + self.of).astype(np.uint32)], [1], self.n)
            group = np.arange(blocks, dtype=np.int32)
        else:
            above = [stride * self.possible for stride in outer.keys.strides]
            keys = Keys([*outer.keys.columns, *self.keys.columns], [*above, *self.keys.strides], self.n)
            high, low = outer.group[:, None], self.group[None, :]
            group = np.where((high >= 0) & (low >= 0), high * len(self) + low, -1).ravel().astype(np.int32)
        held = self._count(keys, len(group))
        counts = np.zeros(blocks, dtype=np.int64)
        np.add.at(counts, group[held > 0], held[held > 0])
        return self._roster(keys, group, counts)


class Roster:
    """Which row stands at a place: the records of group 0 own the first places, in the order of the file, and so on.

    A small file is put in the order of its groups once. Of a large one the rows at the places of a draw are found by a
    pass with a counter per group, until so many draws have been made that the order pays. Where the records are
    elsewhere, they are found there.
    """

    def __init__(self, keys: Keys, group: NDArray[np.int32], counts: Ints, find: Find | None = None) -> None:
        self._keys, self._group, self._find = keys, group, find
        self._draws = 0
        self.counts = counts
        self.start = np.concatenate(([0], np.cumsum(counts)), dtype=np.int64)
        """The first place of each group, and the number of places."""

    @cached_property
    def order(self) -> NDArray[np.int32]:
        """The rows of all places."""
        order, place = np.empty(int(self.start[-1]), dtype=np.int32), self.start[:-1].copy()
        for row, keys in self._keys.chunks():
            kernels.put_rows(keys, self._group, row, place, order)
        return order

    def rows(self, places: Ints) -> Ints:
        """Return the rows at some places."""
        self._draws += 1
        if self._find is not None:
            return self._find(self._of(), self.start, places)
        if "order" in self.__dict__ or self._keys.n <= INDEXED or self._draws > STREAMED_DRAWS:
            return self.order[places].astype(np.int64)
        return self.look_up(places)

    def _of(self) -> Ints:
        """Return the group of each row, -1 where it is in none."""
        of = np.empty(self._keys.n, dtype=np.int64)
        for row, keys in self._keys.chunks():
            of[row : row + len(keys)] = self._group[keys]
        return of

    def look_up(self, places: Ints) -> Ints:
        """Find the rows at some places by one pass over the file."""
        wanted = places.ravel()
        sorting = np.argsort(wanted)
        ordered, found = wanted[sorting], np.empty(len(wanted), dtype=np.int64)
        place = self.start[:-1].copy()
        next_wanted = np.searchsorted(ordered, place)
        for row, keys in self._keys.chunks():
            kernels.find_rows(keys, self._group, row, place, next_wanted, ordered, found)
        rows = np.empty_like(found)
        rows[sorting] = found
        return rows.reshape(places.shape)


def combinations_of(data: Data, names: Sequence[str]) -> Combinations:
    """Return the combinations that occur of some columns; rows are found in the data they came from."""
    grouping = Grouping([codes_of(data, name) for name in names], data)
    columns = [replace(data[name], values=data[name].values[grouping.first]) for name in names]
    known: list[tuple[Ints, Roster]] = []

    def find(of: Ints, start: Ints, places: Ints) -> Ints:
        if not known or known[0][0] is not of:  # groups stay the same from draw to draw
            group = np.append(of, -1).astype(np.int32)[grouping.group]
            known[:] = [(of, Roster(grouping.keys, group, np.diff(start)))]
        return known[0][1].rows(places)

    return Combinations(columns, grouping.counts, find, sampling=data.sampling)
