"""The moments of a swap by brute force and by exact arithmetic, without the package's formulas."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import permutations, product

import numpy as np

KINDS = ("cycles", "pairs", "across")


@cache
def every_permutation(n: int) -> np.ndarray:
    return np.array(list(permutations(range(n)))).reshape(-1, n)


def moving(n: int, k: int, kind: str, groups: np.ndarray | None = None) -> np.ndarray:
    """All permutations of n that move exactly k, as the kind wants them."""
    every = every_permutation(n)
    moved = every != np.arange(n)
    kept = moved.sum(axis=1) == k
    if kind != "cycles":
        kept &= (np.take_along_axis(every, every, axis=1) == np.arange(n)).all(axis=1)
    if kind == "across":
        kept &= (~moved | (groups[every] != groups)).all(axis=1)
    return every[kept]


def amounts(n: int, kind: str, groups: np.ndarray | None = None) -> list[int]:
    """All numbers of records that can move."""
    most = n if groups is None else 2 * min((groups == 0).sum(), (groups == 1).sum())
    return [k for k in range(most + 1) if k != 1 and (kind == "cycles" or k % 2 == 0)]


def enumerated(a: np.ndarray, b: np.ndarray, k: int, kind: str, groups: np.ndarray | None = None) -> np.ndarray:
    """The estimate after each of the permutations."""
    return (a * b[moving(len(a), k, kind, groups)]).sum(axis=1)


def in_classes(parts: list[np.ndarray]) -> np.ndarray:
    """All sums of one value per class."""
    return np.array([sum(values) for values in product(*parts)])


def derangements(k: int) -> int:
    return 1 if k == 0 else k * derangements(k - 1) + (-1) ** k


def exact_moments(a: list, b: list, counts: list[int], k: int, kind: str) -> tuple[Fraction, Fraction]:
    """Bias and variance by the uncentred formula, in fractions: it cancels badly, but not here."""
    n = sum(counts)
    entries = [(Fraction(x), Fraction(y), c) for x, y, c in zip(a, b, counts, strict=True)]

    def total(i: int, j: int) -> Fraction:
        return sum((c * x**i * y**j for x, y, c in entries), Fraction(0))

    big_a, big_b, c = total(1, 0), total(0, 1), total(1, 1)
    a2b2 = total(2, 2)
    r = Fraction(1, k - 1) if kind == "pairs" else _exchange(k)
    bias = -Fraction(k, n - 1) * (c - big_a * big_b / n)
    kk = Fraction(k * (k - 1), n * (n - 1))
    p_ff = Fraction((n - k) * (n - k - 1), n * (n - 1))
    p_fm = Fraction((n - k) * k, n * (n - 1) * (n - 2))
    p_path = kk * (Fraction(1, k - 1) - r) / (n - 2)
    p_gen = kk * (1 - Fraction(2, k - 1) + r) / ((n - 2) * (n - 3))
    q = p_fm + p_path
    s11, u, w = c**2 - a2b2, big_a * c - total(2, 1), big_a * total(1, 2) - a2b2
    square = (
        (1 - Fraction(k, n)) * a2b2
        + Fraction(k, n * (n - 1)) * (total(2, 0) * total(0, 2) - a2b2)
        + (p_ff + kk * r) * s11
        + q * (2 * big_b * u - 2 * w - 2 * s11)
        + p_gen * ((big_b**2 - total(0, 2)) * (big_a**2 - total(2, 0)) - 4 * big_b * u + 4 * w + 2 * s11)
    )
    return bias, square - (c + bias) ** 2


def _exchange(k: int) -> Fraction:
    return Fraction(derangements(k - 2), derangements(k)) if k < 200 else Fraction(1, k * (k - 1))


def splits(n: int) -> Iterator[np.ndarray]:
    """A few ways to put n records into two groups."""
    for first in range(1, n):
        yield (np.arange(n) >= first).astype(int)
