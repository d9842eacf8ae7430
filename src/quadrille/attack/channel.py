"""What a designed swap makes of a cell of each size, found by swapping files that are made up from the release."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from quadrille.attack.input import AttackInput, KeyTable
from quadrille.data import Data, Floats, Ints
from quadrille.errors import QuadrilleError
from quadrille.randomness import Stream
from quadrille.swap.designed import DesignedSwap

REACH = 20
"""Changes of a cell that are told apart; larger ones count as this."""
_ALONE = 12
"""Sizes that are looked at one by one; larger ones in classes, each half as large again."""
_EFFORT, _DRAFTS, _ENOUGH = 0.1, 3, 1_500
"""Effort of a swap, most files that are made up, and cells of n that are enough of them."""
_UNSEEN, _NEAR, _FAR = 0.3, 1.2, 0.3
"""Cases that are added for a change that was not seen, and how fast they get fewer with its size, for cells of a
few records and for others."""


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


def simulated_channel(given: AttackInput, table: KeyTable, recipe: DesignedSwap, fitted: Floats) -> Channel | None:
    """Swap files drawn from a fit to the release by the same design, and tabulate; None where that cannot be done."""
    names = table.names
    if len(given.protected) != 1 or any(name not in given.released.codebook for name in names):
        return None
    drafts = min(max(_ENOUGH // max(int((table.g == recipe.n).sum()), 1), 1), _DRAFTS)
    quick = recipe.changed(effort=min(recipe.effort, _EFFORT))
    try:
        pairs = [
            (_counts(file, table), _counts(quick.changed(seed=place).plan(file).apply(file), table))
            for place, file in enumerate(_made_up(given.released, table, fitted, quick, drafts))
        ]
    except QuadrilleError:
        return None
    before, after = (np.concatenate(part) for part in zip(*pairs, strict=True))
    return channel_of(before, after, recipe.n)


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


def _counts(file: Data, table: KeyTable) -> Ints:
    """Count the records of every possible cell."""
    cell = np.ravel_multi_index([file[name].values.astype(np.int64) for name in table.names], table.sizes)
    return np.bincount(cell, minlength=table.possible)
