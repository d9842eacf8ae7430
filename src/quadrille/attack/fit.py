"""Log-linear fits of a table by iterative proportional fitting, and how well a score tells two groups apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from quadrille.attack.input import Floats, KeyTable
from quadrille.present.numbers import statistic

MOST_STEPS = 1 << 31
"""Cells times margins times sweeps that are fitted: about twenty seconds."""


def all_margins(variables: int, way: int) -> list[tuple[int, ...]]:
    """Return the sets of `way` variables, by their places."""
    return list(combinations(range(variables), min(way, variables)))


def is_feasible(possible: int, variables: int, way: int, sweeps: int) -> bool:
    """Tell whether a fit of all margins of that many variables takes seconds rather than minutes."""
    return possible * comb(variables, min(way, variables)) * sweeps <= MOST_STEPS


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
    >>> from quadrille.attack.fit import all_margins, fit
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
