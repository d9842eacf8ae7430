"""Inequalities between loss and exposure for every table with the same one-way margins (derivations/bound.md, 1-3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum, inf, prod

import numpy as np
from numpy.typing import NDArray

from quadrille.cross import Cross
from quadrille.data import Data

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_EMPTY = 1 << 14
"""Tables of more possible cells do not list their empty ones."""

_ROUNDING = 1e-14
"""What rounding may add to a sum, as a share of the size of its terms: far more than it does."""


@dataclass(frozen=True)
class Loss:
    """A loss that is a sum over cells: `term(f, g)`, convex in g; `empty` is what a record in an empty cell costs.

    `turning(f, s)` is the g at which term(f, g) - s g is least. The loss is (sum / unit)^(1 / power), where the unit
    is the number of records if `per_record`, else 1. `most` is the largest loss that exists.
    """

    term: Callable[[Floats, Floats], Floats]
    turning: Callable[[Floats, Floats], Floats]
    empty: float
    power: int = 1
    per_record: bool = True
    most: float = 1.0


def _root_turning(f: Floats, s: Floats) -> Floats:
    rest = np.maximum(1 - 2 * s, 0.0)
    return np.divide(f, rest**2, out=np.full(len(f), inf), where=rest > 0)


_MOVED = Loss(
    lambda f, g: np.abs(f - g) / 2,
    lambda f, s: np.where(s >= 0.5, inf, np.where(s <= -0.5, 0.0, f)),
    empty=0.5,
)
LOSSES: dict[str, Loss] = {
    "hellinger": Loss(lambda f, g: (np.sqrt(f) - np.sqrt(g)) ** 2 / 2, _root_turning, empty=0.5, power=2),
    "total_variation": _MOVED,
    "effective_swap_rate": _MOVED,
    "chi_square": Loss(
        lambda f, g: (g - f) ** 2 / f, lambda f, s: f * (1 + s / 2), empty=0.0, per_record=False, most=inf
    ),
}


def exposure(f: Floats, g: Floats, n: int) -> Floats:
    """Return the records that a cell exposes: min(f, g) where 0 < g < n."""
    return np.where(g < n, np.minimum(f, g), 0.0)


@dataclass(frozen=True, eq=False)
class Counts:
    """The occupied cells of a table: counts, and for each variable the place of its category among all margins.

    `times` says for how many cells a row stands. `starts` says where the margins of each variable begin, and ends with
    their number. `empty` lists the categories of the empty cells; None stands for any combination whatever.
    """

    f: Floats
    times: Floats
    codes: Ints
    starts: Ints
    empty: Ints | None

    @cached_property
    def records(self) -> float:
        """Number of records."""
        return float(self.f @ self.times)

    @cached_property
    def most(self) -> Floats:
        """The most records each cell can have: its smallest margin."""
        margins = np.zeros(self.starts[-1])
        np.add.at(margins, self.codes, (self.f * self.times)[:, None])
        return margins[self.codes].min(axis=1)


def counts_of(data: Data, table: Sequence[str]) -> Counts:
    """Count the cells of a table, with all its one-way margins."""
    cross = Cross.of(data, tuple(table))
    _, first, f = np.unique(cross.cells(data), return_index=True, return_counts=True)
    # Categories without a record stay without: they are left out.
    found = [np.unique(data[name].values[first], return_inverse=True) for name in table]
    sizes = [len(levels) for levels, _ in found]
    codes = np.stack([code for _, code in found], axis=1).astype(np.int64)
    starts = np.concatenate(([0], np.cumsum(sizes)))
    empty = None
    if prod(sizes) <= MOST_EMPTY:
        vacant = np.setdiff1d(np.arange(prod(sizes)), np.ravel_multi_index(tuple(codes.T), sizes))
        empty = np.stack(np.unravel_index(vacant, sizes), axis=1) + starts[:-1]
    return Counts(f.astype(np.float64), np.ones(len(f)), codes + starts[:-1], starts, empty)


def total_only(data: Data, table: Sequence[str]) -> Counts:
    """Count the cells of a table by their size, with no margin but the number of records."""
    f = np.unique(Cross.of(data, tuple(table)).cells(data), return_counts=True)[1]
    size, times = np.unique(f, return_counts=True)
    codes = np.zeros((len(size), 1), dtype=np.int64)
    return Counts(size.astype(np.float64), times.astype(np.float64), codes, np.array([0, 1]), None)


@dataclass(frozen=True)
class Certificate:
    """`loss^power >= height - price * exposed`, for every table with the same one-way margins.

    The multipliers, one per category that occurs, variable by variable, are the proof:
    `quadrille.theory.certificate.certify` checks them (derivations/bound.md, 3).

    Example
    -------
    >>> import quadrille as qd
    >>> bound = qd.theory.least_loss(qd.datasets.cps8d(), 0.001, margins="total")
    >>> found = bound.points[0].certificate
    >>> round(found.height, 6), round(found.price, 4)
    (0.002226, 0.2777)
    >>> round(found.at(0.001) ** (1 / bound.power), 4), round(bound.points[0].loss, 4)
    (0.0441, 0.0441)
    """

    height: float
    price: float
    multipliers: tuple[float, ...] = ()

    def at(self, exposed: float) -> float:
        """Return what loss^power is at least where so much is exposed.

        Example
        -------
        >>> import quadrille as qd
        >>> qd.theory.Certificate(height=0.002, price=0.25).at(0.004)
        0.001
        """
        return self.height - self.price * exposed


def certify(counts: Counts, loss: Loss, n: int, price: float, multipliers: Floats) -> tuple[Certificate, Floats]:
    """Return the inequality that a price per exposed record and multipliers of margins prove (derivations/bound.md, 3).

    Return also the count at which each cell attains its minimum. Any price of 0 or more and any multipliers give a
    true inequality.
    """
    y = _below_empty(counts, loss, multipliers)
    s = y[counts.codes].sum(axis=1)
    f, most = counts.f[:, None], counts.most[:, None]
    around = np.floor(loss.turning(counts.f, s))[:, None] + np.arange(-1, 3)
    small = np.broadcast_to(np.arange(n, dtype=np.float64), (len(f), n))
    tried = np.hstack([small, np.minimum(np.maximum(around, n), np.maximum(most, n)), f])
    with np.errstate(invalid="ignore"):
        value = loss.term(f, tried) + price * exposure(f, tried, n) - s[:, None] * (tried - f)
    value[tried > most] = inf
    best = value.argmin(axis=1)
    rows = np.arange(len(f))
    least = value[rows, best]
    slack = _ROUNDING * counts.records * (1 + price + len(counts.starts) * float(np.abs(y).max()))
    unit = counts.records if loss.per_record else 1.0
    height = (fsum(counts.times * least) - slack) / unit
    return Certificate(height, price * counts.records / unit, tuple(y.tolist())), tried[rows, best]


def _below_empty(counts: Counts, loss: Loss, multipliers: Floats) -> Floats:
    """Lower the multipliers of one variable until no record gains by going to an empty cell.

    A constant for all cells changes nothing, because the number of records is given.
    """
    if counts.empty is None:
        highest = float(np.maximum.reduceat(multipliers, counts.starts[:-1]).sum())
    else:
        highest = float(multipliers[counts.empty].sum(axis=1).max(initial=-inf))
    y = multipliers.copy()
    y[: counts.starts[1]] -= max(0.0, highest - loss.empty)
    return y
