"""Groups whose records nearly all agree on a column: who stands against the others was swapped.

What holds in 99.5 % of the records is a dependency. Less is enough to tell the swapped ones, where few records stand
against the rest of their group before the swap and most of the swapped ones do after it: the income of a household
tells its members, also where some other household has the same. It does so in both directions: a region that moves
stands against the others of that income, and an income that moves brings its record to people of another region.

Where the records of a group have an order, as the years of a person do, it takes less: a value stands against the one
that both neighbours have.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple, cast

import numpy as np

from quadrille.data import Data, Rows
from quadrille.score.coded import CLEARLY, ENOUGH, Coded, Codes32, Flags, Groups, some_groups

_LACKING = 0.15
"""So many records of a group may lack its commonest value."""
_TIMES = 3
"""In random order so many times as many must lack it."""
_MOST_COLUMNS = 40
"""In wider files, pairs are made of the columns with the fewest values."""

Given = tuple[str, ...]


class Against(NamedTuple):
    """The shares of the swapped and of the other records that stand against their group after a swap."""

    swapped: float
    others: float
    swapped_count: int
    """How many of the swapped ones do."""


def nearly_determined(data: Data, coded: Coded, column: str) -> tuple[tuple[Given, str, float], ...]:
    """Return what nearly holds of a column: groups, the column on which nearly all of a group agree, and the share.

    Groups are of one column or two; either all agree on the column, or it is one of those that make the groups.
    """
    name = f"nearly determines {column}"
    if name not in data.prepared:
        data.prepared[name] = tuple(_searched(coded, column))
    return cast("tuple[tuple[Given, str, float], ...]", data.prepared[name])


def _searched(coded: Coded, column: str) -> Iterator[tuple[Given, str, float]]:
    if column not in coded.codes:
        return
    repeating = [name for name in coded.names if name != column and _repeats(coded, name)]
    few = sorted(sorted(repeating, key=coded.sizes.__getitem__)[:_MOST_COLUMNS], key=repeating.index)
    for given in [*((name,) for name in repeating), *combinations(few, 2)]:
        yield from _agreed(coded, given, [column])
    if _repeats(coded, column):
        for given in [(column,), *((column, name) for name in few)]:
            yield from _agreed(coded, given, [name for name in coded.names if name not in given])


def _agreed(coded: Coded, given: Given, columns: Sequence[str]) -> Iterator[tuple[Given, str, float]]:
    """Yield the columns on which nearly all of a group agree, and would not by chance."""
    rows = some_groups(coded, given)
    groups = Groups.of(coded, given, rows)
    if len(groups.rows) < ENOUGH * len(rows):
        return
    limit = int(_LACKING * len(groups.rows))
    for column in columns:
        lacking = groups.lacking(coded.codes[column], coded.sizes[column], limit)
        needed = max(CLEARLY, _TIMES * lacking)
        if lacking <= limit and groups.lacking(coded.shuffled(column), coded.sizes[column], needed) >= needed:
            yield given, column, 1 - lacking / len(groups.rows)


def _repeats(coded: Coded, name: str) -> bool:
    held = coded.held[name]
    return int(held[held > 1].sum()) >= ENOUGH * coded.n


def stand_against(
    coded: Coded, given: Given, column: str, moved: Collection[str], swapped: Rows, donors: Rows
) -> Against:
    """Return how many records have fewer of their kind in their group than the commonest value has.

    `swapped` are the rows whose values of the columns `moved` have changed, `donors` those they came from.
    """
    after = coded.exchanged([name for name in (*given, column) if name in moved], swapped, donors)
    of_them = np.zeros(coded.n, dtype=np.bool_)
    of_them[swapped] = True
    groups = Groups.of(after, given, some_groups(after, given))
    against = _minorities(groups, after.codes[column][groups.rows], after.sizes[column])
    of_swapped = of_them[groups.rows]
    return _counted(against, of_swapped)


def stand_out(coded: Coded, given: Given, column: str, swapped: Rows, donors: Rows) -> Against:
    """Return how many records differ from both neighbours, who agree, within a group and in the order of a column."""
    after = coded.exchanged([column], swapped, donors)
    unit, place = given
    rows = after.by_code(unit, after.by_code(place, some_groups(after, (unit,))))
    units, values = after.codes[unit][rows], after.codes[column][rows]
    inner = units[:-2] == units[2:]
    against = inner & (values[:-2] == values[2:]) & (values[1:-1] != values[2:])
    of_them = np.zeros(coded.n, dtype=np.bool_)
    of_them[swapped] = True
    return _counted(against[inner], of_them[rows[1:-1]][inner])


def _counted(against: Flags, of_swapped: Flags) -> Against:
    count, others = int((against & of_swapped).sum()), int((against & ~of_swapped).sum())
    return Against(_share(count, of_swapped), _share(others, ~of_swapped), count)


def _share(count: int, among: Flags) -> float:
    return count / max(int(among.sum()), 1)


def _minorities(groups: Groups, values: Codes32, size: int) -> Flags:
    sizes = groups.sizes
    group = np.repeat(np.arange(len(sizes)), sizes)
    cells, place, counts = np.unique(group * size + values, return_inverse=True, return_counts=True)
    most = np.zeros(len(sizes), dtype=np.int64)
    np.maximum.at(most, cells // size, counts)
    return (counts < most[cells // size])[place]
