"""Log-linear fits of a table by iterative proportional fitting, and how well a score tells two groups apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quadrille.attack.input import Floats, KeyTable
from quadrille.measure.population import all_margins, fit, is_feasible
from quadrille.present.numbers import statistic

_SWEEPS = 20


def released_fit(table: KeyTable) -> Floats | None:
    """Return the 2-way log-linear fit of the released table, over all possible cells; None where it has too many."""
    if not is_feasible(table.possible, len(table.names), 2, _SWEEPS):
        return None
    released = table.spread(table.g)
    return fit(released, all_margins(released.ndim, 2), _SWEEPS)


def auc(score: Floats, truth: NDArray[np.bool_]) -> float | None:
    """Return the chance that a true one has the higher score than a false one, ties counted half; None without both."""
    true, false = int(truth.sum()), int((~truth).sum())
    if not true or not false:
        return None
    _, place, count = np.unique(score, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[place]
    return (float(rank[truth].sum()) - true * (true + 1) / 2) / (true * false)


def surest(score: Floats, truth: NDArray[np.bool_], most: int) -> float | None:
    """Return the share of true ones among those of the highest scores; the first of equals come first."""
    top = np.argsort(-score, kind="stable")[:most]
    return float(truth[top].mean()) if len(top) else None


def standard_error(found: float | None, count: int) -> str:
    """Say how far a share of so few may be from what it is for others like them; nothing where there is no share."""
    return "" if found is None or not count else f"standard error {statistic((found * (1 - found) / count) ** 0.5)}"


def hellinger(before: Floats, after: Floats) -> float:
    """Return the Hellinger distance of two tables of counts."""
    f, g = before / before.sum(), after / after.sum()
    return float(np.sqrt(((np.sqrt(f) - np.sqrt(g)) ** 2).sum() / 2))
