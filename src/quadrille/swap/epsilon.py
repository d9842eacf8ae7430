"""The epsilon of a permutation swap by chance, exactly, and the chance that a target needs (theory/private.md)."""

from __future__ import annotations

from functools import cache
from math import ceil, exp, expm1, inf, log, log1p
from typing import NamedTuple

from quadrille.errors import ParameterError, bad_parameter
from quadrille.params import as_float, whole

WORDS = 1 << 32
"""A record is selected when a word of 32 bits is below a threshold, so chances are multiples of 1 / WORDS."""

_EXACT = 18
"""Up to so many records derangement numbers are counted; beyond, d(b) / d(b - 2) is b (b - 1) in every digit."""


@cache
def _derangements(k: int) -> int:
    """Count the permutations of k things that leave none in its place."""
    return 1 if k == 0 else k * _derangements(k - 1) + (-1) ** k


@cache
def _half_window(n: int) -> float:
    """Return R(n) = ln(d(n) / d(n - 2)) / 2, what moving the last two records of a stratum costs each of them."""
    ratio = n * (n - 1) if n > _EXACT else _derangements(n) / _derangements(n - 2)
    return log(ratio) / 2


def log_odds(chance: float) -> float:
    """Return ln(p / (1 - p))."""
    return log(chance) - log1p(-chance)


def swap_epsilon(n: int, chance: float, *, published: bool = False) -> float:
    """Return the epsilon of a stratum of n records whose records are drawn with a chance, then permuted.

    With L = ln(p / (1 - p)) and R(n) = ln(d(n) / d(n - 2)) / 2, d the derangement numbers: |L| for n = 2,
    max(L, ln 2 / 3 - L, (ln 2 - L) / 2) for n = 3, max(L, R(n) - L) for more. No smaller value holds for all files of
    that size. A file has the largest epsilon of its strata.

    Parameters
    ----------
    n : records of the stratum; one record never moves, and its epsilon is 0.
    chance : that a record is drawn.
    published : return the bound of Bailie, Gong and Meng instead, which is up to 1.2 larger: ln(n + 1) - L, or L.

    Example
    -------
    >>> import quadrille as qd
    >>> round(qd.theory.swap_epsilon(100, 0.05), 3), round(qd.theory.swap_epsilon(100, 0.05, published=True), 3)
    (7.545, 7.56)

    Reference: Bailie, Gong and Meng, A Refreshment Stirred, Not Shaken, 2026, for the method and its bound.
    """
    n, p = whole("swap_epsilon", "n", n, least=1), as_float(chance)
    if not 0 <= p <= 1:
        raise bad_parameter("swap_epsilon", "chance", "a number from 0 to 1", chance)
    if n == 1:
        return 0.0
    if p in (0, 1):
        return inf
    if published:
        return max(log(n + 1) - log_odds(p), log_odds(p))
    return _epsilon(n, log_odds(p))


def _epsilon(n: int, odds: float) -> float:
    """Return the largest loss per record over all two permutations of n records, by the log odds."""
    if n == 2:
        return abs(odds)
    if n == 3:
        return max(odds, log(2) / 3 - odds, (log(2) - odds) / 2)
    return max(odds, _half_window(n) - odds)


def least_epsilon(n: int) -> float:
    """Return the least epsilon that a stratum of n records can have, whatever the chance.

    >>> from quadrille.swap.epsilon import least_epsilon
    >>> [round(least_epsilon(n), 3) for n in (2, 3, 4, 10, 1000)]
    [0.0, 0.231, 0.549, 1.125, 3.454]
    """
    if n <= 2:
        return 0.0
    return log(2) / 3 if n == 3 else _half_window(n) / 2


_SLACK, _ROUNDING = 1e-9, 1e-13


def chance_for(n: int, epsilon: float) -> float:
    """Return the smallest chance that gives a stratum of n records this epsilon.

    p = o / (1 + o) with o = exp(-e) for n = 2, exp(max(ln 2 / 3 - e, ln 2 - 2 e)) for n = 3, exp(R(n) - e) for more. A
    stratum of many records cannot have a small epsilon: the error names the least one.

    Example
    -------
    >>> import quadrille as qd
    >>> [round(qd.theory.chance_for(n, 8), 4) for n in (2, 10, 100, 1_000)]
    [0.0003, 0.0032, 0.0323, 0.2511]
    >>> qd.theory.chance_for(1_000, 2)
    Traceback (most recent call last):
    quadrille.errors.ParameterError: No chance gives a stratum of 1,000 records an epsilon of 2: ...
    """
    n, e = whole("chance_for", "n", n, least=2), as_float(epsilon)
    if not 0 <= e < inf:
        raise bad_parameter("chance_for", "epsilon", "a number of 0 or more, not infinite", epsilon)
    if e < least_epsilon(n) - _SLACK:
        raise _out_of_reach(n, e)
    if n == 2:
        odds = -e
    elif n == 3:
        odds = max(log(2) / 3 - e, log(2) - 2 * e)
    else:
        odds = _half_window(n) - e
    return 1 / (1 + exp(-odds)) if odds > -700 else 0.0


def _out_of_reach(n: int, epsilon: float) -> ParameterError:
    """Say which epsilon can be asked for instead."""
    return ParameterError(
        f"No chance gives a stratum of {n:,} records an epsilon of {epsilon:g}: the least is "
        f"{ceil(least_in_words(n) * 1000) / 1000:.3f}. Ask for a larger epsilon, or make the strata smaller with "
        "'within', which keeps more exactly and hides less."
    )


def threshold_of(chance: float) -> int:
    """Return the threshold of a chance: the nearest that selects neither nobody nor everybody.

    >>> from quadrille.swap.epsilon import threshold_of
    >>> threshold_of(0.5), threshold_of(1e-12), threshold_of(1 - 1e-12)
    (2147483648, 1, 4294967295)
    """
    return min(max(int(chance * WORDS + 0.5), 1), WORDS - 1)


def threshold_for(n: int, epsilon: float) -> int:
    """Return the smallest threshold whose epsilon is this one or less."""
    near = ceil(chance_for(n, epsilon) * WORDS)
    for threshold in (near - 1, near, near + 1):  # a float may miss it by one
        if 0 < threshold < WORDS and swap_epsilon(n, threshold / WORDS) <= epsilon + _ROUNDING:
            return threshold
    raise _out_of_reach(n, epsilon)


def least_in_words(n: int) -> float:
    """Return the least epsilon among all thresholds; of huge strata the steps between them tell.

    >>> from quadrille.swap.epsilon import least_in_words
    >>> round(least_in_words(1_000), 3), least_in_words(2)
    (3.454, 0.0)
    """
    best = threshold_of(chance_for(n, least_epsilon(n)))
    return min(swap_epsilon(n, t / WORDS) for t in (best - 1, best, best + 1) if 0 < t < WORDS)


def exchange_odds(epsilon: float) -> float:
    """Return exp(2 epsilon): the most by which one exchange of two records changes the chance of a release.

    >>> from quadrille.swap.epsilon import exchange_odds
    >>> round(exchange_odds(5))
    22026
    """
    return exp(2 * epsilon) if epsilon < 350 else inf


class Moved(NamedTuple):
    """The number K of records that move: a binomial number, drawn again while it is one."""

    mean: float
    variance: float


def moved(n: int, chance: float) -> Moved:
    """Return mean and variance of the number of records that move in a stratum.

    E K = n p (1 - (1-p)^(n-1)) / (1 - n p (1-p)^(n-1)), and E K^2 likewise.

    >>> from quadrille.swap.epsilon import moved
    >>> round(moved(4, 0.1).mean / 4, 4)
    0.0383
    """
    if n < 2 or chance == 0:
        return Moved(0.0, 0.0)
    stay = (n - 1) * log1p(-chance) if chance < 1 else -inf
    one = n * chance * exp(stay)
    mean = n * chance * -expm1(stay) / (1 - one)
    square = (n * chance * (1 - chance) + (n * chance) ** 2 - one) / (1 - one)
    return Moved(mean, max(square - mean**2, 0.0))
