"""Moments after a permutation of records that are drawn by chance, so that their number is random (private.md)."""

from __future__ import annotations

from math import sqrt

import numpy as np

from quadrille.swap.epsilon import moved
from quadrille.theory.moments import Factors, Floats, Ints, factors

_SPREADS = 12.0
"""Numbers of records that are more standard deviations off their mean have no chance that a float would notice."""


def chance_factors(n: Ints, chance: Floats) -> Factors:
    """Return the factors of the centred sums, class by class, when each of n records is drawn with a chance.

    The moments of cycles of K records are averaged over K; the variance of K adds Var(K) / (n - 1)^2 to that of C^2.
    """
    kinds, where = np.unique(np.stack([n.astype(float), chance]), axis=1, return_inverse=True)
    found = [_factors(int(size), float(p)) for size, p in kinds.T]
    of = where.ravel()
    table = np.array([[each.bias, *each.parts] for each in found]).reshape(-1, 4)[of]
    return Factors(table[:, 0], tuple(table[:, 1:].T))


def _factors(n: int, chance: float) -> Factors:
    if n < 2 or chance == 0:
        return Factors(0.0, (0.0, 0.0, 0.0))
    k, weight = _numbers_moved(n, chance)
    each = factors("cycles", (np.float64(n),), k)
    expected = moved(n, chance)
    q, squares, c = (float(weight @ np.broadcast_to(part, k.shape)) for part in each.parts)
    return Factors(-expected.mean / (n - 1), (q, squares, c + expected.variance / (n - 1) ** 2))


def _numbers_moved(n: int, chance: float) -> tuple[Floats, Floats]:
    """Return the numbers of records that may move, and their chances: binomial, without 1."""
    from scipy.stats import binom

    mean, spread = n * chance, _SPREADS * sqrt(n * chance * (1 - chance)) + _SPREADS
    k = np.arange(max(0, int(mean - spread)), min(n, int(mean + spread) + 1) + 1)
    k = k[k != 1]
    weight = np.asarray(binom.pmf(k, n, chance), dtype=np.float64)
    return k.astype(float), weight / weight.sum()


def chance_of(f: float, n: int) -> float:
    """Return the chance by which records of a class were drawn, from its published factor f = E K / (n - 1).

    >>> from quadrille.swap.epsilon import moved
    >>> from quadrille.theory.chances import chance_of
    >>> round(chance_of(moved(10, 0.3).mean / 9, 10), 9)
    0.3
    """
    if f <= 0 or n < 2:
        return 0.0
    low, high = 0.0, 1.0
    while high - low > 1e-15 and low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if moved(n, middle).mean < f * (n - 1) else (low, middle)
    return high
