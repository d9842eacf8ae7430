"""What a designed swap makes of cells and records, found by swapping files that are made up from the release."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from quadrille.data import Data, Floats, Ints
from quadrille.errors import QuadrilleError
from quadrille.randomness import Stream
from quadrille.swap.designed import DesignedSwap

if TYPE_CHECKING:
    from quadrille.attack.input import KeyTable

REACH = 20
"""Changes of a cell that are told apart; larger ones count as this."""
_ALONE = 12
"""Sizes that are looked at one by one; larger ones in classes, each half as large again."""
_EFFORT, _DRAFTS, _ENOUGH = 0.1, 3, 1_500
"""Effort of a swap, most files that are made up, and cells of n that are enough of them."""
_UNSEEN, _NEAR, _FAR = 0.3, 1.2, 0.3
"""Cases that are added for a change that was not seen, and how fast they get fewer with its size, for cells of a
few records and for others."""

FAR, _ABOVE = 3, (0, 1, 2, 5, 15, 45)
"""Variables in which a record's new cell differs: more are not told apart; where classes of cells begin, above n."""
_FEW_ROWS, _MOST_COMPARED = 10.0, 1 << 25
"""Rows like all others that are added to those of a class; cells times cells times variables that are compared."""


@dataclass(frozen=True, eq=False)
class Channel:
    """`chance[k, d + REACH]` of a change by d of the cells of class k; class k begins at `first[k]` records."""

    first: Ints
    chance: Floats

    def of(self, before: Ints, after: Ints) -> Floats:
        """Return the chance that cells of these sizes before have these afterwards."""
        change = after - before
        size = np.searchsorted(self.first, before, side="right") - 1
        found = self.chance[size, np.clip(change, -REACH, REACH) + REACH]
        return np.where(np.abs(change) <= REACH, found, 0.0)


def channel_of(before: Ints, after: Ints, n: int) -> Channel:
    """Tabulate what cells became. What was not seen has a small chance, unless a designed swap never does it.

    It fills cells to n or more and empties small ones; whatever else was seen, as with a coin, counts as it was seen.

    Example
    -------
    >>> import numpy as np
    >>> from quadrille.attack.channel import channel_of
    >>> found = channel_of(np.array([1, 1, 1, 1, 0]), np.array([0, 3, 3, 3, 0]), 3)
    >>> found.of(np.array([1, 1, 1, 0, 3]), np.array([0, 3, 2, 3, 0])).round(2).tolist()
    [0.26, 0.73, 0.0, 0.0, 0.0]
    """
    first = list(range(max(_ALONE, n + 2)))
    while first[-1] < before.max(initial=0):
        first.append(first[-1] + max(1, first[-1] // 2))
    start: Ints = np.array(first, dtype=np.int64)
    change: Ints = np.arange(-REACH, REACH + 1)
    seen = np.zeros((len(start), len(change)))
    np.add.at(
        seen,
        (np.searchsorted(start, before, side="right") - 1, np.clip(after - before, -REACH, REACH) + REACH),
        1.0,
    )
    size, shown = start[:, None], start[:, None] + change
    possible = ((shown == 0) & (size < n)) | ((shown >= n) & (size > 0))
    falls = np.where(start < max(_ALONE, n + 2) - 1, _NEAR, _FAR)
    seen += np.where(possible | (seen > 0), _UNSEEN * np.exp(-falls[:, None] * np.abs(change)), 0.0)
    return Channel(start, seen / seen.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class Draft:
    """A file that was made up and swapped: the cell of each record before and after, among all possible ones."""

    before: Ints
    after: Ints


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """Swaps of made-up files by a design, as an intruder makes them who has the release and the design.

    `fitted` is the log-linear fit of the released protected table that the files were drawn from.
    """

    table: KeyTable
    fitted: Floats
    n: int
    drafts: tuple[Draft, ...]

    @cached_property
    def counts(self) -> tuple[tuple[Ints, Ints], ...]:
        """The records of every possible cell before and after, draft by draft."""
        possible = self.table.possible
        return tuple(
            (np.bincount(draft.before, minlength=possible), np.bincount(draft.after, minlength=possible))
            for draft in self.drafts
        )

    @cached_property
    def channel(self) -> Channel:
        """What became of cells of each size."""
        before, after = (np.concatenate(part) for part in zip(*self.counts, strict=True))
        return channel_of(before, after, self.n)

    @cached_property
    def goals(self) -> Floats:
        """The chance per row that a record went there whose cell nobody has any more.

        `goals[d, s]` is that of a row in a cell of size class s, see `size_class`, that differs in d variables, the
        last d or more.
        """
        went, rows = np.zeros((2, FAR + 1, len(_ABOVE) + 1))
        for draft, (f, g) in zip(self.drafts, self.counts, strict=True):
            gone, shown = np.flatnonzero((f > 0) & (g == 0)), np.flatnonzero(g > 0)
            most = max(_MOST_COMPARED // (len(shown) * len(self.table.sizes) + 1), 1)
            gone = gone[:: max(-(-len(gone) // most), 1)]
            size = size_class(g[shown], self.n)
            apart = self._apart(gone, shown)
            np.add.at(rows, (apart, np.broadcast_to(size, apart.shape)), np.outer(f[gone], g[shown]))
            row, column = np.full((2, len(f)), -1)
            row[gone], column[shown] = np.arange(len(gone)), np.arange(len(shown))
            left = np.flatnonzero(row[draft.before] >= 0)
            goal = column[draft.after[left]]
            np.add.at(went, (apart[row[draft.before[left]], goal], size[goal]), 1.0)
        return (went + _FEW_ROWS * went.sum() / max(rows.sum(), 1.0)) / (rows + _FEW_ROWS)

    def _apart(self, some: Ints, others: Ints) -> Ints:
        """Return in how many variables cells differ from others, at most `FAR`."""
        mine, theirs = (np.unravel_index(cells, self.table.sizes) for cells in (some, others))
        differs = sum(
            ((one[:, None] != other).astype(np.int64) for one, other in zip(mine, theirs, strict=True)),
            np.zeros((len(some), len(others)), dtype=np.int64),
        )
        return np.minimum(differs, FAR)


def size_class(rows: Ints, n: int) -> Ints:
    """Return the class of cells of so many rows: below n, n, n + 1, n + 2 to n + 4, and wider ones.

    >>> import numpy as np
    >>> from quadrille.attack.channel import size_class
    >>> size_class(np.array([1, 3, 4, 5, 7, 8, 900]), 3).tolist()
    [0, 1, 2, 3, 3, 4, 6]
    """
    return np.searchsorted(n + np.array(_ABOVE), rows, side="right")


def rehearse(released: Data, table: KeyTable, recipe: DesignedSwap, fitted: Floats) -> Rehearsal | None:
    """Swap files drawn from a fit to the release by the same design; None where that cannot be done."""
    drafts = min(max(_ENOUGH // max(int((table.g == recipe.n).sum()), 1), 1), _DRAFTS)
    quick = recipe.changed(effort=min(recipe.effort, _EFFORT))
    try:
        made = tuple(
            Draft(_cells(file, table), _cells(quick.changed(seed=place).plan(file).apply(file), table))
            for place, file in enumerate(_made_up(released, table, fitted, quick, drafts))
        )
    except QuadrilleError:
        return None
    return Rehearsal(table, fitted, recipe.n, made)


def _made_up(released: Data, table: KeyTable, fitted: Floats, recipe: DesignedSwap, drafts: int) -> Iterator[Data]:
    """Draw files of as many records from a fit; columns outside of the table are left as they are."""
    stream = Stream.of(0, recipe.design_json()).sub("made up")
    rows, strides = np.arange(released.n), [prod(table.sizes[place + 1 :]) for place in range(len(table.sizes))]
    reached: Floats = np.cumsum(fitted.reshape(-1))
    for place in range(drafts):
        chance = (stream.sub(str(place)).words(released.n) + 0.5) / (1 << 32)
        last = len(reached) - 1
        cell = np.minimum(np.searchsorted(reached, chance * float(reached[last]), side="right"), last).astype(np.int64)
        yield released.with_values(
            {
                name: (rows, (cell // stride % size).astype(released[name].values.dtype))
                for name, size, stride in zip(table.names, table.sizes, strides, strict=True)
            }
        )


def _cells(file: Data, table: KeyTable) -> Ints:
    """Return the cell of each record, among all possible ones."""
    return np.ravel_multi_index([file[name].values.astype(np.int64) for name in table.names], table.sizes)
