"""What a rank swap is expected to do, before any draw: distances, correlations, ties; and windows from other wishes.

The derivation is in `theory/ranks.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, floor, log, log10, sqrt

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Floats, Ints
from quadrille.errors import InputError

_MOST_RANKS = 200_000
"""Longer classes behave as this many ranks do with a window of the same share."""

_FINE = 1_000
"""Windows of this many ranks or more are as good as continuous."""

LARGEST_FINE = 0.25
"""Windows up to this share of the ranks look the same wherever they are, but for both ends."""


@lru_cache(maxsize=4096)
def mean_square(ranks: int, width: int) -> float:
    """Return the expected squared distance of partners, in ranks, over all ranks of a class (ranks.md, 3)."""
    if ranks < 2 or width < 1:
        return 0.0
    if width >= ranks - 1 and (ranks % 2 == 0 or ranks > _MOST_RANKS):  # every pairing has the same chance
        return ranks * (ranks + 1) / 6
    if ranks <= _MOST_RANKS:
        return kernels.mean_square_distance(ranks, min(width, ranks - 1))
    scaled = max(round(width * _MOST_RANKS / ranks), min(width, _FINE))
    return kernels.mean_square_distance(_MOST_RANKS, min(scaled, _MOST_RANKS - 1)) * (width / scaled) ** 2


def expected_correlation(sizes: Ints, ranks: Ints, widths: Ints, shuffled: Ints) -> float | None:
    """Return the expected correlation of ranks within classes.

    `sizes` are the ranks of each class, `ranks` those that are swapped within a window of `widths`, and `shuffled`
    those of each tail that is permuted.
    """
    total = float((sizes.astype(np.float64) * (sizes.astype(np.float64) ** 2 - 1)).sum())
    if not total:
        return None
    kinds, times = np.unique(np.stack((ranks, widths)), axis=1, return_counts=True)
    moved = sum(int(t) * int(m) * mean_square(int(m), int(w)) for m, w, t in zip(*kinds, times, strict=True))
    tails = shuffled.astype(np.float64)
    moved += float((2 * tails * (tails**2 - 1) / 6).sum()) if shuffled.any() else 0.0
    return 1 - 6 * moved / total


@dataclass(frozen=True, eq=False)
class Ties:
    """The runs of equal values of one class of ranks: how many runs there are of each size, the last one left out.

    A run ends at a boundary, and a pair holds two values where a boundary lies between its ranks.
    """

    sizes: Ints
    runs: Ints
    ranks: int

    @classmethod
    def of(cls, ends: NDArray[np.int32]) -> Ties:
        """Count the runs of ranks whose run ends at `ends`."""
        ranks = len(ends)
        if not _tied(ends):
            return cls(np.array([1]), np.array([ranks - 1]), ranks)
        first = np.flatnonzero(ends[1:] != ends[:-1]) + 1
        runs = np.diff(np.concatenate(([0], first)))
        of_size = np.bincount(runs, minlength=1)
        sizes = np.flatnonzero(of_size)
        return cls(sizes[sizes > 0], of_size[sizes[sizes > 0]], ranks)

    def share_changed(self, window: float) -> float:
        """Return the expected share of the pairs that hold two values (ranks.md, 5).

        A pair is x windows apart with the density ln 2 * 2^x.
        """
        if not len(self.sizes):
            return 0.0
        shares = self.sizes / self.ranks
        sums = np.append(0.0, np.cumsum(shares * self.runs))
        larger = np.append(np.cumsum(self.runs[::-1])[::-1], 0)
        x = (np.arange(256) + 0.5) / 256
        below = np.searchsorted(shares, x * window)
        apart = sums[below] + larger[below] * x * window
        return float((log(2) * 2**x * np.minimum(apart, 1.0)).mean())

    def window_for_half(self) -> float | None:
        """Return the window at which half of the pairs would hold two values; None above a quarter of the ranks."""
        if self.share_changed(LARGEST_FINE) < 0.5:
            return None
        return _bisect(lambda window: self.share_changed(window) < 0.5, 1 / self.ranks, LARGEST_FINE)


def _tied(ends: NDArray[np.int32]) -> bool:
    """Tell whether any two values of one class are equal."""
    return bool((ends[1:] == ends[:-1]).any())


_LOOKED_AT = 2_000


def possible_share(ends: NDArray[np.int32], width: int) -> float:
    """Return the mean share of the rows whose released value lies within the window of a person's value.

    Equal values share all their ranks. Of a long file some ranks are looked at, at equal distances. Only for one class.
    """
    ranks = len(ends)
    first = np.append(0, np.flatnonzero(ends[1:] != ends[:-1]) + 1) if _tied(ends) else None
    looked = np.arange(ranks) if ranks <= _LOOKED_AT else np.arange(_LOOKED_AT) * ranks // _LOOKED_AT

    def start_at(rank: Ints) -> Ints:
        return rank if first is None else first[np.searchsorted(first, rank, side="right") - 1]

    own = start_at(looked), ends[looked].astype(np.int64)
    low = start_at(np.maximum(own[0] - width, 0))
    high = ends[np.minimum(own[1] - 1 + width, ranks - 1)]
    return float((high - low).mean()) / ranks


def window_of_formula(values: Floats, tail: float, r0: float | None, k0: float | None, name: str) -> float:
    """Return the window P of the formulas for r0 and k0: P = sqrt(2 V (1 - r0)) / D, P = sqrt(8/3) k0 |mean| / D."""
    ordered = np.sort(values)
    cut = floor(tail * len(ordered))
    middle = ordered[cut : len(ordered) - cut]
    top = ordered[len(ordered) - cut] if cut else ordered[-1]
    bottom = ordered[cut - 1] if cut else ordered[0]
    which = "r0" if r0 is not None else "k0"
    if not np.isfinite(ordered).all():
        raise InputError(f"Column {name!r} holds infinite values, and '{which}' needs finite ones. Give a window.")
    if not len(middle) or top == bottom:
        raise InputError(f"Column {name!r} has a single value, and '{which}' needs several. Leave the column out.")
    scale = float(np.abs(ordered).max())
    spread, middle = float(top / scale - bottom / scale), middle / scale
    if r0 is not None:
        return min(sqrt(2 * float(middle.var()) * (1 - r0)) / spread, 1.0)
    assert k0 is not None
    return min(sqrt(8 / 3) * k0 * abs(float(middle.mean())) / spread, 1.0)


def window_for_correlation(wanted: float, realised: Callable[[float], float], least: float) -> float:
    """Return the window, to 1 %, at which realised correlations come down to the wanted one."""
    return _bisect(lambda window: realised(window) >= wanted, least, 1.0)


def _bisect(below: Callable[[float], bool], low: float, high: float) -> float:
    while high > 1.01 * low:
        middle = sqrt(low * high)
        low, high = (middle, high) if below(middle) else (low, middle)
    return sqrt(low * high)


def smallest_window(ranks: int) -> str:
    """Return the smallest window that takes in one of so many ranks, rounded up to three digits."""
    digits = 2 - floor(log10(1 / ranks))
    return f"{ceil(10**digits / ranks) / 10**digits:.{max(digits, 0)}f}".rstrip("0").rstrip(".")


def rule_of_thumb(records: int, shares: Floats) -> float:
    """Return the expected number of others who fit windows of several variables, were these independent."""
    return records * float(np.prod(shares))
