"""What a rank swap is expected to do, before any draw: distances, correlations, ties; and windows from other wishes.

The derivation is in `theory/ranks.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import ceil, floor, log, log10, sqrt

import numpy as np

from quadrille import kernels
from quadrille.data import Floats, Ints
from quadrille.errors import InputError, ParameterError

_MOST_RANKS = 20_000
"""Longer classes behave as this many ranks do with a window of the same share."""

_FINE = 100
"""Windows of this many ranks or more are as good as continuous."""

LARGEST_FINE = 0.25
"""Windows up to this share of the ranks look the same wherever they are, but for both ends."""


@lru_cache(maxsize=4096)
def mean_square(ranks: int, width: int) -> float:
    """Return the expected squared distance of partners, in ranks, over all ranks of a class (ranks.md, 3)."""
    if ranks < 2 or width < 1:
        return 0.0
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


def share_changed(runs: Ints, window: float) -> float:
    """Return the expected share of the pairs that hold two values, for runs of equal values (ranks.md, 5).

    A pair at distance x window holds two values where a boundary lies between, and x has the density ln 2 * 2^x.
    """
    count = int(runs.sum())
    if count < 2:
        return 0.0
    shares = np.sort(runs[:-1]) / count
    sums = np.append(0.0, np.cumsum(shares))
    x = (np.arange(256) + 0.5) / 256
    below = np.searchsorted(shares, x * window)
    apart = sums[below] + (len(shares) - below) * x * window
    return float((log(2) * 2**x * np.minimum(apart, 1.0)).mean())


def window_for_half(runs: Ints) -> float | None:
    """Return the window at which half of the pairs would hold two values; None above a quarter of the ranks."""
    if share_changed(runs, LARGEST_FINE) < 0.5:
        return None
    return _bisect(lambda window: share_changed(runs, window) < 0.5, 1e-6, LARGEST_FINE)


def possible_share(ranks: Ints, widths: Ints, runs: Ints) -> float:
    """Return the mean share of the file whose released value lies within the window of a person's value.

    Equal values share all their ranks. Only for one class.
    """
    ends = np.cumsum(runs)
    first = ends - runs
    count, width = int(ranks[0]), int(widths[0])
    low = first[np.searchsorted(ends, np.maximum(first - width, 0), side="right")]
    high = ends[np.searchsorted(first, np.minimum(ends - 1 + width, count - 1), side="right") - 1]
    return float(((high - low) * (runs / count)).sum()) / count


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


__all__ = [
    "LARGEST_FINE",
    "expected_correlation",
    "mean_square",
    "possible_share",
    "rule_of_thumb",
    "share_changed",
    "smallest_window",
    "window_for_correlation",
    "window_for_half",
    "window_of_formula",
]
