"""The ranks of a column within classes, the pairs drawn among them, and what a draw did to ranks and values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import floor
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Column, Data, Floats, Ints
from quadrille.errors import InputError
from quadrille.randomness import Stream, Words, draw_until_enough
from quadrille.swap.controlled.frame import numbers_of
from quadrille.swap.groups import codes_of, group_ids
from quadrille.swap.rank.expected import Ties, expected_correlation, possible_share
from quadrille.text import Shown

Kernel = Literal["window", "buckets", "normal"]
Tails = Literal["swap", "leave", "shuffle"]
Order = NDArray[np.int32]

_WORDS_PER_RANK = {"window": 0.8, "buckets": 1.5, "normal": 6.0}
"""Random words for each rank, as a first guess."""
_MORE_WORDS = 5
"""So many times as many where equal values may not be paired."""


@dataclass(frozen=True, eq=False, repr=False)
class Ranks(Shown):
    """The rows of each class in ascending order of a column, equal values in the order of the file.

    Class c owns the ranks start[c] to start[c+1]; those from low[c] to high[c] are in neither tail. `ends` gives for
    each rank the first one above it that holds another value. Rows without a value have no rank.
    """

    name: str
    order: Order = field(repr=False)
    start: Ints = field(repr=False)
    ends: Order = field(repr=False)
    tail: Ints = field(repr=False)
    missing: int = 0
    tied: bool = False
    ties: Ties | None = None

    @classmethod
    def of(cls, data: Data, name: str, classes: tuple[Ints, int], tail: float) -> Ranks:
        """Sort a column within classes, given as the class of each record and their number."""
        values = scale_of(data[name])
        present = np.flatnonzero(~np.isnan(values)).astype(np.int32)
        missing = data.n - len(present)
        keys, order = kernels.sort_keys(kernels.keys_of(values[present] if missing else values))
        rows, (of, count) = present[order] if missing else order, classes
        start = np.array([0, len(rows)])
        if count > 1:
            start, places = np.zeros(count + 1, dtype=np.int64), np.empty(len(rows), dtype=np.int32)
            kernels.sort_into_groups(of[rows], count, start, places)
            keys, rows = keys[places], rows[places]
        ends, sizes = kernels.runs_end(keys, start), np.diff(start)
        tied, ties = bool((ends[:-1] == ends[1:]).any()), Ties.of(ends) if count == 1 else None
        return cls(name, rows, start, ends, ranks_of_share(tail, sizes), missing, tied, ties)

    @property
    def sizes(self) -> Ints:
        """The ranks of each class."""
        return np.diff(self.start)

    @property
    def low(self) -> Ints:
        """The first rank of each class above its lower tail."""
        return self.start[:-1] + self.tail

    @property
    def high(self) -> Ints:
        """The first rank of each class in its upper tail."""
        return self.start[1:] - self.tail

    def facts(self) -> dict[str, object]:
        """Return what is remembered of them whatever the window."""
        return {
            "ranked": len(self.order),
            "missing": self.missing,
            "classes": int((self.sizes > 0).sum()),
            "in_tails": int(2 * self.tail.sum()),
        }

    def evenly(self, most: int) -> Ranks:
        """Return ranks at equal distances, at most so many."""
        if len(self.order) <= most:
            return self
        taken = np.arange(most) * len(self.order) // most
        ends = np.searchsorted(taken, self.ends[taken]).astype(np.int32)
        share = self.tail / np.maximum(self.sizes, 1)
        start = np.searchsorted(taken, self.start)
        return replace(
            self, order=self.order[taken], start=start, ends=ends, tail=(share * np.diff(start)).astype(np.int64)
        )

    def shuffled(self, stream: Stream) -> Ranks:
        """Return the ranks with equal values in random order."""
        if not self.tied:
            return self

        def attempt(words: Words) -> Order | None:
            order, dice = self.order.copy(), kernels.dice(words)
            kernels.shuffle_ties(order, self.ends, dice)
            return None if dice.cursor[1] else order

        return replace(self, order=draw_until_enough(attempt, stream, guess=len(self.order) + 64))


@dataclass(frozen=True, eq=False)
class Pairing:
    """How ranks find partners: the kernel with its reach in each class, and whom they may not take."""

    kernel: Kernel
    window: float
    buckets: int
    differ: bool
    alike: Ints
    edits: kernels.Edits
    ticks: Ints | None = None

    def widths(self, ranks: Ranks) -> Ints:
        """Return the window of each class in ranks."""
        return ranks_of_share(self.window, ranks.sizes)

    @property
    def windowed(self) -> bool:
        """Whether no rank moves farther than a number of ranks."""
        return self.kernel == "window" and self.ticks is None

    def facts(self, ranks: Ranks) -> dict[str, object]:
        """Return what is remembered of ranks and windows, whatever is drawn."""
        widths = self.widths(ranks)
        known = ranks.facts() | {
            "window": None if self.kernel == "buckets" else self.window,
            "width": int(widths.max(initial=0)) if self.windowed else None,
            "without_window": int((ranks.high - ranks.low)[widths == 0].sum()) if self.windowed else 0,
        }
        if self.windowed and ranks.ties is not None:
            known["possible"] = possible_share(ranks.ends, int(widths[0]))
            if not self.differ:
                known["pairs_that_change_expected"] = ranks.ties.share_changed(self.window)
                known["window_for_half"] = ranks.ties.window_for_half()
        return known

    def expected(self, ranks: Ranks, *, shuffled: bool) -> float | None:
        """Return the expected correlation of ranks; None where the kernel or what partners may hold has no theory."""
        if not self.windowed or self.differ or self.edits.stay.shape[1]:
            return None
        tails = ranks.tail if shuffled else np.zeros_like(ranks.tail)
        return expected_correlation(ranks.sizes, ranks.high - ranks.low, self.widths(ranks), tails)

    def ladder(self, ranks: Ranks) -> kernels.Ladder:
        """Return what the kernels work on."""
        apart = self.differ and not len(self.alike)
        ends = ranks.ends if apart else np.empty(0, dtype=np.int32)
        return kernels.Ladder(ranks.order, ranks.start, ranks.low, ranks.high, ends, self.alike, self.edits)

    def draw(self, ranks: Ranks, stream: Stream) -> Ints:
        """Draw pairs of ranks, the lower one first, in ascending order of the lower ones."""
        ladder = self.ladder(ranks)
        pairs = np.empty((len(ranks.order) // 2, 2), dtype=np.int64)
        widths, reach = self.widths(ranks), self._reach(ranks)
        buckets = np.minimum(self.buckets, np.maximum(ranks.high - ranks.low, 1))

        def attempt(words: Words) -> int | None:
            dice = kernels.dice(words)
            if self.kernel == "window":
                drawn = kernels.pair_in_window(ladder, widths, reach, pairs, dice)
            elif self.kernel == "buckets":
                drawn = kernels.pair_by_buckets(ladder, buckets, pairs, dice)
            else:
                drawn = kernels.pair_by_shift(ladder, self.window, pairs, dice)
            return None if dice.cursor[1] else int(drawn)

        more = _MORE_WORDS if self.differ and ranks.tied else 1
        guess = int(_WORDS_PER_RANK[self.kernel] * more * len(ranks.order)) + 256
        return pairs[: draw_until_enough(attempt, stream, guess=guess)]

    def _reach(self, ranks: Ranks) -> Order:
        """Return the highest rank of each weighted window; nothing where records count alike."""
        if self.ticks is None:
            return np.empty(0, dtype=np.int32)
        total = np.zeros(len(ranks.sizes), dtype=np.int64)
        np.add.at(total, np.repeat(np.arange(len(total)), ranks.sizes), self.ticks[ranks.order])
        share = exact(self.window)
        limit = np.array([floor(share * int(each)) for each in total], dtype=np.int64)
        return kernels.reach_by_weight(ranks.order, ranks.start, self.ticks, limit)


def exact(share: float) -> Fraction:
    """Return a share as the decimal that it is written as."""
    return Fraction(str(float(share)))


def ranks_of_share(share: float, sizes: Ints) -> Ints:
    """Return floor(share * size) for each size; the share counts as the decimal that it is written as."""
    wanted = share * sizes
    ranks = np.floor(wanted).astype(np.int64)
    for i in np.flatnonzero(np.abs(wanted - np.rint(wanted)) < 1e-6):  # where floats and decimals may differ
        ranks[i] = floor(exact(share) * int(sizes[i]))
    return ranks


def scale_of(column: Column) -> Floats:
    """Return numbers in the order of a column's values, NaN where they are missing; refuse categories without order."""
    variable = column.variable
    if not variable.coded:
        return column.values
    if variable.kind != "ordinal" or not variable.ordered:
        raise InputError(
            f"Column {variable.name!r} has categories without an order, so its values have no ranks. Declare it "
            "ordinal in the codebook, with its categories in order, or swap it with RandomSwap."
        )
    scale = np.append(np.arange(column.valid, dtype=np.float64), np.full(max(column.size - column.valid, 1), np.nan))
    return scale[column.values]


def numbers_or_positions(column: Column) -> Floats:
    """Return the values of a column as numbers: those of its categories, else their positions."""
    numbers = numbers_of(column)
    return scale_of(column) if numbers is None else numbers


def class_ids(data: Data, names: Sequence[str]) -> tuple[Ints, int]:
    """Number the classes of a file; a missing value is a category of its own."""
    if not names:
        return np.zeros(0, dtype=np.int64), 1
    return group_ids([codes_of(data, name) for name in names], data.n)


def value_correlation(held: Floats, pairs: Ints, steps: tuple[Ints, Ints] | None = None) -> tuple[int, float | None]:
    """Return how many records change, and the correlation of values before and after; None where there is none.

    `held` are the values by rank; each pair of ranks is exchanged, and the ranks steps[0] receive from steps[1]. The
    values stay the same as a whole, so r = 1 - sum (x'_i - x_i)^2 / (2 sum (x_i - mean)^2).
    """
    unlike, squares, spread = kernels.compare_pairs(held, pairs)
    changed, squares = 2 * int(unlike), 2 * float(squares)
    if steps is not None and len(steps[0]):
        more, further, _ = kernels.compare_pairs(held, np.column_stack(steps))
        changed, squares = changed + int(more), squares + float(further)
    return changed, 1 - squares / (2 * float(spread)) if spread > 0 else None
