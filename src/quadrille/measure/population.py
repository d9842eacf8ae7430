"""A sample and its population: the share that is in the file, and how many persons stand behind a combination."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, prod

import numpy as np

from quadrille.data import Data
from quadrille.measure.areas import Floats, Ints

NEAR_1 = 0.05
"""Weights whose mean is this near to 1 are taken for scaled to the number of records."""
ASK = "say what share of it the file holds, with sampling= or --sampling, or as a line sampling = 0.02 of the codebook"


@dataclass(frozen=True)
class Sample:
    """A file as a part of a population.

    `share` is the part of the population that is in the file, None where it is not known; `reason` says why not.
    `said` tells that the share was given and not taken from the weights. A record of weight w stands for w * `per_unit`
    persons; without a weight w is 1.
    """

    share: float | None
    said: bool = False
    per_unit: float = 1.0
    reason: str = ""

    def persons(self, records: int) -> float:
        """Return the size of the population of a file of so many records.

        >>> from quadrille.measure.population import Sample
        >>> Sample(0.02).persons(1_000)
        50000.0
        """
        return records / (self.share or 1.0)


def sample_of(data: Data, sampling: float | None = None) -> Sample | None:
    """Return what is known of the population behind a file; None for a file without a weight of which nothing is said.

    The share is `sampling`, else that of the data, else the number of records over the sum of the weights. Weights with
    a mean near 1, or below, do not count persons.

    >>> import quadrille as qd
    >>> from quadrille.measure.population import sample_of
    >>> sample_of(qd.datasets.cps8d()), sample_of(qd.datasets.cps8d(), 0.5).share
    (None, 0.5)
    >>> sample_of(qd.datasets.adult()).persons(48_842) == 9_263_575_662  # the sum of the weights, as they are
    True
    """
    said = data.sampling if sampling is None else sampling
    ticks = data.ticks
    mean = 1.0 if ticks is None else float(ticks.values.sum()) / ticks.per_unit / data.n
    if said is not None:
        return Sample(said, said=True, per_unit=1 / (said * mean))
    if ticks is None:
        return None
    if mean <= 1 + NEAR_1:
        how = "near 1, as if they were scaled to the number of records" if mean >= 1 - NEAR_1 else "below 1"
        return Sample(None, reason=f"the mean of the weights is {how}: the size of the population is not known; {ASK}")
    return Sample(1 / mean)


MOST_STEPS = 1 << 31
"""Cells times margins times sweeps that are fitted: about twenty seconds."""
_QUICK = 1 << 28
"""The same for a measure, which is worked out more often."""
_SWEEPS, _TOLERANCE = 100, 1e-6


def all_margins(variables: int, way: int) -> list[tuple[int, ...]]:
    """Return the sets of `way` variables, by their places."""
    return list(combinations(range(variables), min(way, variables)))


def is_feasible(possible: int, variables: int, way: int, sweeps: int, most: int = MOST_STEPS) -> bool:
    """Tell whether a fit of all margins of that many variables takes seconds rather than minutes."""
    return possible * comb(variables, min(way, variables)) * sweeps <= most


def fit(
    table: Floats,
    margins: Iterable[Sequence[int]],
    sweeps: int,
    start: Floats | None = None,
    tolerance: float | None = None,
) -> Floats:
    """Return the table that has these margins of `table` and no association beyond them, or beyond those of `start`.

    Iterative proportional fitting (Deming & Stephan 1940): every sweep scales to each margin in turn. With a tolerance
    it ends as soon as a sweep changes no expected count by more. A cell in an empty place of a margin gets 0.

    Example
    -------
    >>> import numpy as np
    >>> from quadrille.measure.population import all_margins, fit
    >>> fit(np.array([[8.0, 2.0], [2.0, 8.0]]), all_margins(2, 1), sweeps=1).tolist()
    [[5.0, 5.0], [5.0, 5.0]]
    """
    fitted = np.ones(table.shape) if start is None else start.astype(np.float64)
    away = [tuple(axis for axis in range(table.ndim) if axis not in margin) for margin in margins]
    wanted = [table.sum(axis=axes, keepdims=True) for axes in away]
    for _ in range(sweeps):
        last = fitted.copy() if tolerance is not None else fitted
        for axes, total in zip(away, wanted, strict=True):
            reached = fitted.sum(axis=axes, keepdims=True)
            fitted *= np.divide(total, reached, out=np.zeros_like(reached), where=reached > 0)
        if tolerance is not None and np.abs(fitted - last).max(initial=0.0) <= tolerance:
            break
    return fitted


def expected_counts(
    codes: Sequence[Ints], sizes: Sequence[int], count: Ints | Floats, *, quick: bool = False
) -> tuple[Floats, bool]:
    """Return the count to be expected in each occupied cell of a table, and whether all its 2-way margins were fitted.

    `codes[v][c]` is what cell c holds of variable v, `count[c]` its records. A table that is too large for all of them
    gets those of a tree: each variable with the one that says most about it (Chow & Liu 1968).
    """
    if is_feasible(prod(sizes), len(sizes), 2, _SWEEPS, _QUICK if quick else MOST_STEPS):
        table, cells = np.zeros(tuple(sizes)), tuple(codes)
        table[cells] = count
        return fit(table, all_margins(len(sizes), 2), _SWEEPS, tolerance=_TOLERANCE)[cells], True
    return _tree(codes, sizes, np.asarray(count, dtype=np.float64)), False


def _tree(codes: Sequence[Ints], sizes: Sequence[int], count: Floats) -> Floats:
    """Return the counts expected by the tree of two-way margins that has the most information, from the root outwards.

    Of a tree the log-linear model has a closed form: n times the share of the root, times the share of each variable
    among the records with the value of its neighbour.
    """
    total = float(count.sum())
    own = [np.bincount(values, weights=count, minlength=size) for values, size in zip(codes, sizes, strict=True)]

    def joint(a: int, b: int) -> Floats:
        pair = codes[a].astype(np.int64) * sizes[b] + codes[b]
        _, place = np.unique(pair, return_inverse=True)
        return np.bincount(place, weights=count)[place]

    expected, free = own[0][codes[0]].astype(np.float64), dict.fromkeys(range(1, len(codes)), (-1.0, 0))

    def information(a: int, b: int) -> float:
        return float((count * np.log(joint(a, b) * total / (own[a][codes[a]] * own[b][codes[b]]))).sum())

    latest = 0
    while free:
        for other in free:
            free[other] = max(free[other], (information(latest, other), latest))
        latest = max(free, key=lambda each: free[each][0])
        _, neighbour = free.pop(latest)
        expected *= joint(neighbour, latest) / own[neighbour][codes[neighbour]]
    return expected


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)
_REACH = 45.0
"""Beyond this power of 1/e the integrand is nothing."""


def mean_one_in(inside: Ints | Floats, outside: Floats) -> Floats:
    """Return the mean of 1 / (f + X) for X persons outside of the file, Poisson with the mean `outside`.

    It is the integral of (1 - s)^(f - 1) exp(-h s) over s from 0 to 1; for f = 1 that is (1 - exp(-h)) / h.

    >>> import numpy as np
    >>> from quadrille.measure.population import mean_one_in
    >>> mean_one_in(np.array([1, 1, 2, 4]), np.array([0.0, 2.0, 0.0, 1.0])).round(6).tolist()
    [1.0, 0.432332, 0.5, 0.207277]
    """
    f, h = np.asarray(inside, dtype=np.float64)[:, None], np.asarray(outside, dtype=np.float64)[:, None]
    end = np.minimum(1.0, _REACH / np.maximum(f - 1 + h, 1e-300))
    s = end * (1 + _NODES) / 2
    with np.errstate(divide="ignore"):
        power = np.where(f > 1, (f - 1) * np.log1p(-s), 0.0)
    return (np.exp(power - h * s) * _WEIGHTS).sum(axis=1) * end[:, 0] / 2
