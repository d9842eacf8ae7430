"""Private swaps by counting: every file of one stratum, every permutation, every release, in plain Python and numpy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import permutations, product
from math import comb, factorial, log

import numpy as np

Table = tuple[int, ...]


@cache
def derangements(k: int) -> int:
    """Count by inclusion and exclusion."""
    return sum((-1) ** i * factorial(k) // factorial(i) for i in range(k + 1))


def partitions(n: int, most: int | None = None) -> Iterator[tuple[int, ...]]:
    """The ways to have ties: sizes of groups of equal values, largest first."""
    most = n if most is None else most
    if n == 0:
        yield ()
    for first in range(min(n, most), 0, -1):
        yield from ((first, *rest) for rest in partitions(n - first, first))


def tie_patterns(n: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Sizes of the groups of held and of swapped values; with one group the invariants leave nothing open."""
    several = [sizes for sizes in partitions(n) if len(sizes) > 1]
    return list(product(several, several))


def weights(n: int, chance: Fraction) -> list[Fraction]:
    """The probability of one permutation that moves k records, for k from 0 to n (spec: Algorithm 1)."""
    redrawn = 1 - n * chance * (1 - chance) ** (n - 1)
    return [
        Fraction(0) if k == 1 else chance**k * (1 - chance) ** (n - k) / (derangements(k) * redrawn)
        for k in range(n + 1)
    ]


@cache
def permutations_by_moved(n: int) -> tuple[tuple[tuple[int, ...], int], ...]:
    """All permutations of n records, with the number of records that they move."""
    return tuple((g, sum(i != j for i, j in enumerate(g))) for g in permutations(range(n)))


def comparable(held: tuple[int, ...], swapped: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return all files of these ties, as tables, and how many permutations that move k turn file x into file z."""
    n = sum(held)
    h = [i for i, size in enumerate(held) for _ in range(size)]
    s = [i for i, size in enumerate(swapped) for _ in range(size)]
    wide = len(swapped)

    def cells(values: tuple[int, ...]) -> Table:
        table = [0] * (len(held) * wide)
        for row, value in zip(h, values, strict=True):
            table[row * wide + value] += 1
        return tuple(table)

    files = {cells(values): values for values in set(permutations(s))}
    place = {table: i for i, table in enumerate(files)}
    counts = np.zeros((n + 1, len(files), len(files)))
    for table, values in files.items():
        found = Counter((cells(tuple(values[j] for j in g)), moved) for g, moved in permutations_by_moved(n))
        for (after, moved), times in found.items():
            counts[moved, place[table], place[after]] += times
    return np.array(list(files)), counts


def largest_loss(tables: np.ndarray, counts: np.ndarray, chance: Fraction) -> float:
    """Return the largest |ln P(z | x) - ln P(z | x')| / d(x, x') over all files x, x' and releases z."""
    n = int(tables[0].sum())
    chances = np.tensordot(np.array([float(w) for w in weights(n, chance)]), counts, axes=1)
    assert np.allclose(chances.sum(axis=1), 1, atol=1e-12)
    logs = np.log(chances)
    worst = 0.0
    for i in range(len(tables) - 1):
        distance = n - np.minimum(tables[i], tables[i + 1 :]).sum(axis=1)
        worst = max(worst, float((np.abs(logs[i] - logs[i + 1 :]).max(axis=1) / distance).max()))
    return worst


def moved_moments(n: int, chance: Fraction) -> tuple[Fraction, Fraction]:
    """Return mean and variance of the number of records that move."""
    each = [comb(n, k) * derangements(k) * w for k, w in enumerate(weights(n, chance))]
    assert sum(each) == 1
    mean = sum((k * p for k, p in enumerate(each)), Fraction(0))
    return mean, sum((k * k * p for k, p in enumerate(each)), Fraction(0)) - mean**2


def total_moments(a: list[int], b: list[int], chance: Fraction) -> tuple[Fraction, Fraction]:
    """Return mean and variance of sum a_i b_g(i) over all permutations."""
    n = len(a)
    w = weights(n, chance)
    first = second = Fraction(0)
    for g, moved in permutations_by_moved(n):
        x = sum(a[i] * b[j] for i, j in enumerate(g))
        first, second = first + w[moved] * x, second + w[moved] * x * x
    return first, second - first**2


def best_of(draws: int, n: int, chance: Fraction) -> float:
    """Return the loss per record when of several draws the one that moves fewest is released, all records different."""
    w = weights(n, chance)
    ways = [comb(n, k) * derangements(k) for k in range(n + 1)]
    tail = [sum(ways[i] * w[i] for i in range(k, n + 1)) for k in range(n + 2)]
    picked = {k: (tail[k] ** draws - tail[k + 1] ** draws) / ways[k] for k in range(n + 1) if ways[k]}
    worst = 0.0
    for g, moved in permutations_by_moved(n):
        for other, also in permutations_by_moved(n):
            apart = sum(i != j for i, j in zip(g, other, strict=True))
            if apart:
                worst = max(worst, abs(log(picked[moved] / picked[also])) / apart)
    return worst
