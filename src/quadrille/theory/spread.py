"""What a swap's error depends on, apart from how many records move: a few sums over the records.

Bias = lean * factors.bias and variance = sum of parts * factors.parts. The spread belongs to the estimate, the
factors to the number of records moved, so that either can be varied without looking at the records again. Both hold
fractions, floats or arrays of floats.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Number = Any
"""A whole number, a fraction, a float or an array of floats: the formulas are the same."""

Kind = Literal["pairs", "cycles", "across"]
KINDS = ("pairs", "cycles", "across")

_EXACT_RATIO = 20


@dataclass(frozen=True)
class Spread:
    """The sums of one estimate in one class: `sizes` is (n,), or (n1, n2) for two groups."""

    value: Number
    sizes: tuple[Number, ...]
    bias_sum: Number
    parts: tuple[Number, ...]


@dataclass(frozen=True)
class Factors:
    """What the sums are multiplied by when k records move."""

    bias: Number
    parts: tuple[Number, ...]


def ratio(above: Number, below: Number) -> Number:
    """Divide, exactly for whole numbers; 0 where the divisor is 0, because such terms count impossible events."""
    if isinstance(above, int | Fraction) and isinstance(below, int | Fraction):
        return Fraction(above, below) if below else Fraction(0)
    upper, lower = np.broadcast_arrays(np.asarray(above, dtype=float), np.asarray(below, dtype=float))
    return np.divide(upper, lower, out=np.zeros(upper.shape), where=lower != 0)


def factors(kind: Kind, sizes: tuple[Number, ...], k: Number) -> Factors:
    """Return the factors for k moved records among n, or among two groups (moments.md, 1 to 4, 7, 8)."""
    return _across(sizes[0], sizes[1], k) if kind == "across" else _uniform(kind, sizes[0], k)


def _uniform(kind: Kind, n: Number, k: Number) -> Factors:
    """Give the factors of the centred sums: C for the bias; Q, A2 B2 and C^2 for the variance."""
    exchange = _exchange(kind, k)
    both = ratio(k * (k - 1), n * (n - 1))
    mixed = ratio((n - k) * k, n * (n - 1) * (n - 2))
    path = ratio(both * (ratio(1, k - 1) - exchange), n - 2)
    general = ratio(both * (1 - 2 * ratio(1, k - 1) + exchange), (n - 2) * (n - 3))
    two, q = both * exchange, mixed + path
    alone = ratio(k * (n - k - 1), n * (n - 1))
    return Factors(
        -ratio(k, n - 1),
        (
            alone - two + 4 * q - 6 * general,
            ratio(k, n * (n - 1)) + general,
            ratio(alone, n - 1) + two - 2 * q + 2 * general,
        ),
    )


def _across(n1: Number, n2: Number, k: Number) -> Factors:
    """Give the factors of the sums over cross pairs (see `across.cross_parts`)."""
    half = k // 2
    once = ratio(half, n1 * n2)
    return Factors(once, (once, ratio(half * (half - 1), n1 * (n1 - 1) * n2 * (n2 - 1))))


def _exchange(kind: Kind, k: Number) -> Number:
    """Return r, the chance that two moved records exchange with each other."""
    if kind == "pairs":
        return ratio(1, k - 1)
    far = ratio(1, k * (k - 1))
    if isinstance(k, int):
        return far if k > _EXACT_RATIO else _derangement_ratio(k)
    small = np.array([float(_derangement_ratio(i)) for i in range(_EXACT_RATIO + 1)])
    moved = np.asarray(k, dtype=float)
    near = small[np.minimum(moved, _EXACT_RATIO).astype(np.int64)]
    return np.where(moved > _EXACT_RATIO, cast("Floats", far), near)


def _derangement_ratio(k: int) -> Fraction:
    """Return D_{k-2} / D_k; D_k counts the permutations of k things that leave none in place."""
    counts = [1, 0]
    while len(counts) <= k:
        counts.append((len(counts) - 1) * (counts[-1] + counts[-2]))
    return Fraction(counts[k - 2], counts[k]) if k > 1 else Fraction(0)


def count_spread(n: Number, on_a: Number, on_b: Number, both: Number) -> Spread:
    """Return the sums of a cell of counts, from n, its row, its column and itself (moments.md, 5)."""
    a, b = on_a / n, on_b / n
    c = (n * both - on_a * on_b) / n
    q = (
        (1 - a) ** 2 * ((1 - b) ** 2 * both + b**2 * (on_a - both))
        + a**2 * (1 - b) ** 2 * (on_b - both)
        + a**2 * b**2 * (n - on_a - on_b + both)
    )
    return Spread(both, (n,), c, (q, on_a * (1 - a) * on_b * (1 - b), c * c))


Moments = tuple[tuple[Number, ...], ...]
"""`m[i][j]` is the sum of a^i b^j over the records of a group, i and j from 0 to 2."""

_SQUARE = (1, -2, 1)


def cross_parts(one: Moments, two: Moments) -> tuple[Number, tuple[Number, Number]]:
    """Return T1, the sum of d_xy = -(a_x - a_y)(b_x - b_y), and the two sums of squares that the variance needs.

    They are taken around the mean of d, because the plain ones cancel when the bias is large against its deviation.
    """
    n1, n2 = one[0][0], two[0][0]
    total = -(n2 * one[1][1] + n1 * two[1][1] - one[1][0] * two[0][1] - one[0][1] * two[1][0])
    squares = sum(
        _SQUARE[i] * _SQUARE[j] * one[2 - i][2 - j] * two[i][j]
        for i in range(len(_SQUARE))
        for j in range(len(_SQUARE))
    )
    centred = squares - ratio(total * total, n1 * n2)
    rows = _squared_lines(one, two) - ratio(total * total, n1)
    columns = _squared_lines(two, one) - ratio(total * total, n2)
    return total, (centred, centred - rows - columns)


def _squared_lines(mine: Moments, other: Moments) -> Number:
    """Return the sum over my records of the square of d summed over the other group."""
    terms = ((1, 1, other[0][0]), (1, 0, -other[0][1]), (0, 1, -other[1][0]), (0, 0, other[1][1]))
    return sum(x * y * mine[i + p][j + q] for i, j, x in terms for p, q, y in terms)
