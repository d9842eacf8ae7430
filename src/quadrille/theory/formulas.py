"""The expectations of measures, from the distribution of every cell (derivations/prediction.md, Measures)."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, lgamma, sqrt
from typing import Literal, Protocol

import numpy as np

from quadrille.theory.independent import Cells, Effect
from quadrille.theory.spread import Floats

Basis = Literal["exact", "mean field", "approximate", "rough"]

FEW_MOVED = 100
"""Roots and ratios of the changes of fewer records than this are rough."""

CHI_SQUARE = "chi_square_distance"
"""Another name of chi_square: the sum of (T' - T)^2 / T over the cells that were not empty."""

MOMENTS_ONLY = frozenset({CHI_SQUARE, "chi_square"})
"""Sums of squares: exact where expectations and variances are."""


class Spreads(Protocol):
    """A table, (moved part, stayed part): totals before, expected totals and variances after."""

    @property
    def before(self) -> Floats:
        """Totals before."""
        ...

    @property
    def mean(self) -> Floats:
        """Expected totals after."""
        ...

    @property
    def variance(self) -> Floats:
        """Variances after."""
        ...

    @property
    def records(self) -> float:
        """The total of the table."""
        ...

    @property
    def shape(self) -> tuple[int, int]:
        """Moved parts and stayed parts that occur."""
        ...

    @property
    def together(self) -> float:
        """By how much fixed totals enlarge the variance of a sum over cells."""
        ...

    def expected(self, effect: Effect) -> tuple[float, float]:
        """Return the sum over the cells of the mean of an effect, and the sum of its variances."""
        ...

    def distance(self) -> float:
        """Return the expected sum of |T' - T|."""
        ...


Formula = Callable[[Spreads, int], float | None]
CountFormula = Callable[[Cells, int], float | None]


def _hellinger(cells: Spreads, n: int) -> float:
    mean, variance = cells.expected(lambda f, g: (np.sqrt(f) - np.sqrt(g)) ** 2)
    if mean <= 0:
        return 0.0
    return sqrt(mean / (2 * cells.records)) * _freedom(cells, mean, variance)


def _hd(cells: Spreads, n: int) -> float:
    mean, variance = cells.expected(lambda f, g: (np.sqrt(f) - np.sqrt(g)) ** 2)
    return sqrt(mean / 2) * _freedom(cells, mean, variance) if mean > 0 else 0.0


def _hd_norm(cells: Spreads, n: int) -> float:
    return _hd(cells, n) / sqrt(cells.records)


def _freedom(cells: Spreads, mean: float, variance: float) -> float:
    """Return E root / root E of a sum of squares; cells vary together because of totals that do not change."""
    varied = variance * cells.together
    return mean_root(2 * mean**2 / varied if varied > 0 else float("inf"))


def mean_root(freedom: float) -> float:
    """Return E sqrt(X / E X) for a chi-square of so many degrees of freedom."""
    if freedom > 1e4:
        return 1 - 1 / (4 * freedom)
    return sqrt(2 / freedom) * exp(lgamma((freedom + 1) / 2) - lgamma(freedom / 2))


def _total_variation(cells: Spreads, n: int) -> float:
    return cells.distance() / (2 * cells.records)


def _entropy_change(cells: Spreads, n: int) -> float:
    def term(count: Floats) -> Floats:
        share = count / cells.records
        return -share * np.log(np.where(share > 0, share, 1.0))

    return cells.expected(lambda f, g: term(g) - term(f))[0]


def _small_cells(cells: Cells, n: int) -> float | None:
    return cells.at_risk(n) / cells.levels.unswapped if cells.levels.unswapped >= 1 else None


def _genuine(cells: Cells, n: int) -> float:
    return cells.expected(lambda f, g: np.where(g < n, np.minimum(f, g), 0.0))[0]


def _exposed(cells: Cells, n: int) -> float:
    return _genuine(cells, n) / cells.records


def _confidence(cells: Cells, n: int) -> float | None:
    shown = cells.expected(lambda f, g: np.where(g < n, g, 0.0))[0]
    return _genuine(cells, n) / shown if shown > 0 else None


def _chi_square_distance(cells: Spreads, n: int) -> float:
    occupied = cells.before > 0
    square = cells.variance + (cells.mean - cells.before) ** 2
    return float((square[occupied] / cells.before[occupied]).sum())


def _deviance(cells: Spreads, n: int) -> float:
    """Return the expectation of 2 sum g ln(g / f) over the cells that were not empty, with little cancelling."""

    def term(f: Floats, g: Floats) -> Floats:
        held = f > 0
        share = np.divide(g, f, out=np.ones_like(g + f), where=held & (g > 0))
        return np.where(held, 2 * (g * np.log(share) - (g - f)), 0.0)

    held = cells.before > 0
    return cells.expected(term)[0] + 2 * float((cells.mean - cells.before)[held].sum())


def _chi_squares(cells: Spreads) -> tuple[float, float, int] | None:
    """Return chi-square before, its expectation after, and the smaller number of categories less one."""
    least = min(cells.shape) - 1
    if least < 1:
        return None
    even = np.outer(cells.before.sum(axis=1), cells.before.sum(axis=0)) / cells.records
    after = (cells.variance + (cells.mean - even) ** 2) / even
    return float(((cells.before - even) ** 2 / even).sum()), float(after.sum()), least


def _cramers_v_change(cells: Spreads, n: int) -> float | None:
    if (found := _chi_squares(cells)) is None:
        return None
    before, after, least = found
    return (sqrt(before) - sqrt(after)) / sqrt(cells.records * least)


def _contingency_change(cells: Spreads, n: int) -> float | None:
    if (found := _chi_squares(cells)) is None:
        return None
    before, after, _ = found
    return sqrt(before / (before + cells.records)) - sqrt(after / (after + cells.records))


TABLE_FORMULAS: dict[str, Formula] = {
    "hellinger": _hellinger,
    "total_variation": _total_variation,
    "entropy_change": _entropy_change,
    "effective_swap_rate": _total_variation,
    "deviance": _deviance,
    "chi_square": _chi_square_distance,
    CHI_SQUARE: _chi_square_distance,
}
"""Measures of totals, weighted ones too."""

MARGIN_FORMULAS: dict[str, Formula] = {
    "cramers_v_change": _cramers_v_change,
    "contingency_change": _contingency_change,
}
"""Measures whose expectation rests on row and column totals that do not change."""

MOVED_FORMULAS: dict[str, Formula] = {
    f"hd{number}{norm}": formula for number in (1, 2, 3, 4) for norm, formula in (("", _hd), ("_norm", _hd_norm))
}
"""Distances between the weighted totals of what moves."""

COUNT_FORMULAS: dict[str, CountFormula] = {
    "small_cells": _small_cells,
    "exposed": _exposed,
    "confidence": _confidence,
}
"""Measures of numbers of records, whatever their weights."""

_ROOTS = ("hellinger", "confidence", *MARGIN_FORMULAS, *MOVED_FORMULAS)
BASIS: dict[str, Basis] = {
    name: "approximate" if name in _ROOTS else "mean field"
    for name in (*TABLE_FORMULAS, *MARGIN_FORMULAS, *MOVED_FORMULAS, *COUNT_FORMULAS)
}
