"""Columns that one or two others determine: value by value, or range by range.

A column determines another when records that agree on the one agree on the other. Only groups of two or more records
can tell. Where values hardly repeat, ranges can: sorted by the one column, the other changes as rarely as it can, or
only rises, or only falls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import ceil, log2

import numpy as np

from quadrille import kernels
from quadrille.data import Rows
from quadrille.score.dependencies.coded import (
    CLEARLY,
    ENOUGH,
    NEARLY,
    PROBE,
    Coded,
    Codes32,
    Flags,
    Ints,
    beyond_chance,
    grouped,
)

Found = tuple[tuple[str, ...], str, float]
"""Columns that determine, the column determined, and the share of the records in which it is so."""

_FEW_CELLS = 4096
_MOST_COLUMNS = 64
"""In wider files, pairs are made of the columns with the fewest values."""
_MANY_VALUES = 50
"""A column of fewer values has no ranges: its values repeat."""
_MOSTLY = 0.9
"""A column that repeats the values of so many records says by its values what it determines, and needs no ranges."""
_FEW_VALUES = 1 / 20
"""A column changes rarely when it has fewer values than this share of the records."""


class Groups:
    """Records that agree on one or two columns, and what they make of any other."""

    def __init__(self, coded: Coded, rows: Rows, start: Ints) -> None:
        self._coded, self.rows, self._start = coded, rows, start

    @classmethod
    def of(cls, coded: Coded, given: tuple[str, ...], rows: Rows | None = None) -> Groups:
        """Group all rows, or some."""
        rows = np.arange(coded.n) if rows is None else rows
        return cls(coded, *grouped(coded.key(given, rows), rows))

    @property
    def enough(self) -> int:
        """How many failures are one too many for a dependency."""
        return int(NEARLY * len(self.rows)) + 1

    def lacking(self, values: Codes32, size: int, limit: int) -> int:
        """Count the records that lack the commonest value of their group, up to just above the limit."""
        return int(kernels.lacking_majority(self.rows, self._start, values, np.zeros(size, dtype=np.int64), limit))

    def share(self, column: str, than: Sequence[str] = ()) -> float | None:
        """Return the share of the records that have the commonest value of their group; None if that is nothing.

        It is nothing where chance gives the same: values in random order, and in random order within each column of
        `than`, which alone would say as much.
        """
        values, size = self._coded.codes[column], self._coded.sizes[column]
        failures = self.lacking(values, size, self.enough)
        if failures >= self.enough:
            return None
        by_chance = [(self._coded.shuffled(column), beyond_chance(failures))]
        by_chance += [(self._coded.shuffled_within(column, each), max(CLEARLY, 2 * failures)) for each in than]
        if any(self.lacking(mixed, size, needed) < needed for mixed, needed in by_chance):
            return None
        return 1 - failures / len(self.rows)


def single(coded: Coded) -> tuple[list[Found], dict[str, float]]:
    """Return which columns determine which others, and the columns that can tell, with the share of repeated values."""
    found: list[Found] = []
    repeating: dict[str, float] = {}
    for x in coded.names:
        groups = Groups.of(coded, (x,))
        if len(groups.rows) < ENOUGH * coded.n:
            continue
        repeating[x] = len(groups.rows) / coded.n
        for y in coded.names:
            if y != x and (share := groups.share(y)) is not None:
                found.append(((x,), y, share))
    return found, repeating


def paired(coded: Coded, known: list[Found], repeating: Sequence[str]) -> Iterator[Found]:
    """Yield what two columns determine together and neither does alone.

    A column that says the same as an earlier one is left out: what it determines, the earlier one does.
    """
    alone = {(given[0], y) for given, y, _ in known}
    exact = {(given[0], y) for given, y, share in known if share == 1}
    first = [x for i, x in enumerate(repeating) if not any({(x, z), (z, x)} <= exact for z in repeating[:i])]
    few = sorted(sorted(first, key=coded.sizes.__getitem__)[:_MOST_COLUMNS], key=first.index)
    for a, b in combinations(few, 2):
        if {(a, b), (b, a)} & exact:
            continue
        others = [y for y in coded.names if y not in (a, b) and not {(a, y), (b, y)} & alone]
        others = _surviving(coded, (a, b), others)
        if others:
            groups = Groups.of(coded, (a, b))
            shares = [(y, groups.share(y, than=(a, b))) for y in others] if len(groups.rows) >= ENOUGH * coded.n else []
            yield from (((a, b), y, share) for y, share in shares if share is not None)


def _surviving(coded: Coded, given: tuple[str, str], others: list[str]) -> list[str]:
    """Return the columns that a part of the rows does not rule out."""
    if not others or coded.n <= 2 * PROBE:
        return others
    a, b = given
    if coded.sizes[a] * coded.sizes[b] <= _FEW_CELLS:
        rows = coded.probe
    else:
        shift = ceil(log2(coded.n / PROBE))
        rows = kernels.rows_of_whole_groups(coded.codes[a], coded.codes[b], coded.sizes[b], shift)
    groups = Groups.of(coded, given, rows)
    if len(groups.rows) < ENOUGH * len(rows) / 2:
        return []
    limit = 2 * groups.enough + 10
    return [y for y in others if groups.lacking(coded.codes[y], coded.sizes[y], limit) <= limit]


def ranges(coded: Coded, known: list[Found], repeating: Mapping[str, float]) -> Iterator[Found]:
    """Yield columns that follow the order of another one whose values hardly repeat; of two, once."""
    alone = {(given[0], y) for given, y, _ in known if repeating[given[0]] > _MOSTLY}
    told: set[frozenset[str]] = set()
    for x in coded.names:
        if coded.sizes[x] <= _MANY_VALUES:
            continue
        ordered = _in_order(coded, x, coded.probe)
        whole: Rows | None = None
        for y in coded.names:
            pair = frozenset((x, y))
            if y == x or pair in told or {(x, y), (y, x)} & alone:
                continue
            share = _follows(coded, ordered, y)
            if share is not None and len(ordered) < coded.n:
                whole = _in_order(coded, x, coded.order) if whole is None else whole
                share = _follows(coded, whole, y)
            if share is not None:
                told.add(pair)
                yield (x,), y, share


def _in_order(coded: Coded, x: str, rows: Rows) -> Rows:
    return rows[np.argsort(coded.codes[x][rows], kind="stable")]


def _follows(coded: Coded, rows: Rows, y: str) -> float | None:
    """Return the share of the records of a column that are in line with their neighbours; None if that is nothing."""
    size, enough = coded.sizes[y], int(NEARLY * len(rows)) + 1
    failures = _out_of_line(coded.codes[y], size, rows, enough + size)
    if failures >= enough:
        return None
    needed = beyond_chance(failures)
    by_chance = _out_of_line(coded.shuffled(y), size, rows, needed + size)
    return 1 - failures / len(rows) if by_chance >= needed else None


def _out_of_line(values: Codes32, size: int, rows: Rows, limit: int) -> int:
    """Count the records that make a column change more often than it has values, or fall, or rise."""
    changes, falls, rises = kernels.changes_in_order(rows, values, limit)
    runs = max(0, (changes - size + 2) // 2) if size <= _FEW_VALUES * len(rows) else len(rows)
    return min(falls, rises, runs)


def breaks_function(coded: Coded, given: tuple[str, ...], column: str, source: Mapping[str, Rows]) -> Flags:
    """Tell which records lack the commonest value that records with the same given values had in the original."""
    key = coded.key(given)
    keys, group, count = np.unique(key, return_inverse=True, return_counts=True)
    usual = _commonest(group, coded.codes[column], coded.sizes[column])
    now = np.zeros(len(source[column]), dtype=np.int64)
    for name in given:
        now = now * coded.sizes[name] + coded.codes[name][source[name]]
    place = np.minimum(np.searchsorted(keys, now), len(keys) - 1)
    seen = (keys[place] == now) & (count[place] > 1)
    return seen & (usual[place] != coded.codes[column][source[column]])


def _commonest(group: Ints, values: Codes32, size: int) -> Ints:
    """Return the commonest value of each group; of several the first."""
    cells, count = np.unique(group * size + values, return_counts=True)
    order = np.lexsort((-cells, count, cells // size))
    usual = np.zeros(int(group.max()) + 1, dtype=np.int64)
    usual[cells[order] // size] = cells[order] % size  # the last of a group is the commonest
    return usual


def breaks_range(coded: Coded, given: str, column: str, source: Mapping[str, Rows]) -> Flags:
    """Tell which records are out of line with those that stood next to their given value in the original."""
    ordered = _in_order(coded, given, coded.order)
    at = np.empty(coded.n, dtype=np.int64)
    at[ordered] = np.arange(coded.n)
    place, values = at[source[given]], coded.codes[column][ordered]
    near = [values[np.clip(place + step, 0, coded.n - 1)] for step in (-1, 0, 1)]
    now = coded.codes[column][source[column]]
    return (now < np.minimum.reduce(near)) | (now > np.maximum.reduce(near))
