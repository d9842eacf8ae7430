"""How many admissible pairs a single pass over the file finds: why the paper calls a feasible swap "not feasible".

Put the records in random order and cut the sequence into N/2 pairs; keep those that differ in every swap variable. Let
E be the number of admissible pairs of records in the file and d_i that of the partners of record i. The number kept, X,
has

    E[X] = E / (N - 1),    E[X (X - 1)] = (E (E - 1) - sum_i d_i (d_i - 1)) / ((N - 1)(N - 3)).
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from quadrille.cross import Cross
from quadrille.data import Data
from quadrille.errors import InfeasibleError
from quadrille.papers.gks2003.experiment import Swap
from quadrille.randomness import Stream
from quadrille.swap.random import RandomSwap


class Yield(NamedTuple):
    """Mean and standard deviation of the number of admissible pairs.

    `sd` is for a random order cut into pairs, `sd_independent` for as many pairs drawn independently of one another.
    """

    mean: float
    sd: float
    sd_independent: float


def expected(data: Data, swap: Swap) -> Yield:
    """Work out what a single pass finds, for an even number of records."""
    cross = Cross.of(data, swap)
    groups, counts = np.unique(cross.cells(data), return_counts=True)
    differs = np.ones((len(groups), len(groups)), dtype=bool)
    for name in swap:
        codes = cross.codes(groups, name)
        differs &= codes[:, None] != codes[None, :]
    partners = differs @ counts
    edges = int(counts @ partners) // 2
    n = data.n
    mean = edges / (n - 1)
    disjoint = edges * (edges - 1) - int(counts @ (partners * (partners - 1)))
    share = mean / (n // 2)
    sd = sqrt(disjoint / ((n - 1) * (n - 3)) + mean - mean**2)
    return Yield(mean, sd, sqrt(mean * (1 - share)))


def simulated(data: Data, swap: Swap, passes: int) -> tuple[float, float]:
    """Return mean and standard deviation over simulated passes."""
    found: list[int] = []
    half = data.n // 2
    for seed in range(passes):
        order = np.argsort(Stream.of(seed, "single pass").words(data.n), kind="stable")
        first, second = order[:half], order[half : 2 * half]
        kept = np.ones(half, dtype=bool)
        for name in swap:
            kept &= data[name].values[first] != data[name].values[second]
        found.append(int(kept.sum()))
    return float(np.mean(found)), float(np.std(found, ddof=1))


def most_pairs(data: Data, swap: Swap) -> int:
    """Return the largest possible number of pairs that differ in every swap variable."""
    try:
        RandomSwap(swap, pairs=data.n // 2, seed=0).plan(data)
    except InfeasibleError as error:
        return error.maximum
    return data.n // 2
