"""The sums over records that the moments need: exact for few records or whole numbers, centred floats otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import fsum

import numpy as np
from numpy.typing import NDArray

from quadrille.theory.across import Moments, cross_parts
from quadrille.theory.spread import Floats, Number, Spread

Ints = NDArray[np.int64]

EXACT_ENTRIES = 4096
"""Up to so many entries are added up as exact fractions, whatever their values."""

_LARGEST = 2.0**62


def spread_of(a: Floats, b: Floats, counts: Ints | None) -> Spread:
    """Return the sums for permutations of one class; each entry stands for `counts` records."""
    if _few_or_whole(a, b, counts):
        m, scale_a, scale_b = _exact_moments(a, b, counts)
        return uniform_spread(m, Fraction(1, scale_a), Fraction(1, scale_b))
    times = np.ones(len(a)) if counts is None else counts.astype(float)
    n = len(a) if counts is None else int(counts.sum())
    x, y = _centred(a, times, n), _centred(b, times, n)
    c, a2, b2 = _sum(x * y, times), _sum(x * x, times), _sum(y * y, times)
    return Spread(_sum(a * b, times), (n,), c, (_sum(x * x * y * y, times), a2 * b2, c * c))


def spread_across(a: Floats, b: Floats, first: NDArray[np.bool_], counts: Ints | None) -> Spread:
    """Return the sums for pairs across two groups; `first` marks the first one."""
    exact = _few_or_whole(a, b, counts)
    one, two = (_group_moments(a, b, inside, counts, exact=exact) for inside in (first, ~first))
    lean, parts = cross_parts(one, two)
    times = np.ones(len(a)) if counts is None else counts.astype(float)
    value = one[1][1] + two[1][1] if exact else _sum(a * b, times)
    return Spread(value, (int(one[0][0]), int(two[0][0])), lean, parts)


def _group_moments(a: Floats, b: Floats, inside: NDArray[np.bool_], counts: Ints | None, *, exact: bool) -> Moments:
    """Return the moments of one group, as fractions or shifted by constants that both groups share."""
    times = None if counts is None else counts[inside]
    if exact:
        m, scale_a, scale_b = _exact_moments(a[inside], b[inside], times)
        return tuple(tuple(Fraction(m[i][j], scale_a**i * scale_b**j) for j in range(3)) for i in range(3))
    ones = np.ones(int(inside.sum())) if times is None else times.astype(float)
    x, y = a[inside] - a.mean(), b[inside] - b.mean()
    return tuple(tuple(_sum(x**i * y**j, ones) for j in range(3)) for i in range(3))


def uniform_spread(m: Moments, unit_a: Number, unit_b: Number) -> Spread:
    """Centre exact moments: C, A2, B2 and Q of a - mean a and b - mean b, in whole numbers as far as they go."""
    n = m[0][0]
    mean_a, mean_b = Fraction(m[1][0], n), Fraction(m[0][1], n)
    c = m[1][1] - mean_a * m[0][1]
    a2, b2 = m[2][0] - mean_a * m[1][0], m[0][2] - mean_b * m[0][1]
    q = (
        m[2][2]
        - 2 * mean_b * m[2][1]
        - 2 * mean_a * m[1][2]
        + mean_b**2 * m[2][0]
        + mean_a**2 * m[0][2]
        + 4 * mean_a * mean_b * m[1][1]
        - 3 * n * mean_a**2 * mean_b**2
    )
    unit = unit_a * unit_b
    return Spread(m[1][1] * unit, (n,), c * unit, (q * unit**2, a2 * b2 * unit**2, c**2 * unit**2))


def _few_or_whole(a: Floats, b: Floats, counts: Ints | None) -> bool:
    if len(a) <= EXACT_ENTRIES:
        return True
    n = len(a) if counts is None else int(counts.sum())
    largest = float(np.abs(a).max() * np.abs(b).max()) ** 2 + float(np.abs(a).max() + np.abs(b).max()) ** 2
    return n * largest < _LARGEST and bool((np.rint(a) == a).all() and (np.rint(b) == b).all())


def _exact_moments(a: Floats, b: Floats, counts: Ints | None) -> tuple[Moments, int, int]:
    if len(a) > EXACT_ENTRIES:
        return _array_moments(a.astype(np.int64), b.astype(np.int64), counts), 1, 1
    whole_a, scale_a = _whole(a)
    whole_b, scale_b = _whole(b)
    return _integer_moments(whole_a, whole_b, None if counts is None else counts.tolist()), scale_a, scale_b


def _array_moments(a: Ints, b: Ints, times: Ints | None) -> Moments:
    """Add up whole numbers that fit into 64 bits."""
    ones = np.ones(len(a), dtype=np.int64) if times is None else times
    ta, tb = (ones, ones * a, ones * a * a), (np.ones(len(b), dtype=np.int64), b, b * b)
    return tuple(tuple(int(np.dot(x, y)) for y in tb) for x in ta)


def _whole(values: Floats) -> tuple[list[int], int]:
    """Return floats as whole numbers over a common power of two, exactly."""
    ratios = [value.as_integer_ratio() for value in values.tolist()]
    scale = max((below for _, below in ratios), default=1)
    return [above * (scale // below) for above, below in ratios], scale


def _integer_moments(a: Sequence[int], b: Sequence[int], counts: Sequence[int] | None) -> Moments:
    times = counts or [1] * len(a)
    found: list[tuple[int, ...]] = []
    weighted = list(times)
    for _ in range(3):
        found.append(
            (
                sum(weighted),
                sum(x * y for x, y in zip(weighted, b, strict=True)),
                sum(x * y * y for x, y in zip(weighted, b, strict=True)),
            )
        )
        weighted = [x * y for x, y in zip(weighted, a, strict=True)]
    return tuple(found)


def _centred(values: Floats, times: Floats, n: int) -> Floats:
    """Subtract the mean twice: the second time takes off what rounding left of the first."""
    once = values - _sum(values, times) / n
    return once - _sum(once, times) / n


def _sum(values: Floats, times: Floats) -> float:
    products = values * times
    return fsum(products.tolist()) if len(products) <= 1 << 20 else float(products.sum())
