"""Expected counts of a table under a log-linear model: iterative proportional fitting."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def fit(
    counts: NDArray[np.int64] | Floats,
    levels: Sequence[int],
    margins: Sequence[Sequence[int]] | int = 2,
    *,
    cells: Ints | None = None,
    sweeps: int = 100,
    tolerance: float = 1e-6,
) -> Floats:
    """Return the expected counts, as long as `counts`, that agree with it in some margins and are smooth otherwise.

    Every sweep scales the table to each margin in turn (Deming & Stephan 1940). It ends when no expected count changes
    by more than `tolerance`, or after so many `sweeps`. A cell in an empty place of a margin gets 0.

    Parameters
    ----------
    counts : the count of every cell, the first variable slowest; or of the `cells` that are listed.
    levels : the number of categories of each variable.
    margins : the margins to agree with, as places of variables; 2 stands for all pairs of variables, 3 for all triples.
    cells : numbers of the cells that can be occupied at all; all of them by default. The fit spreads over no others:
        with the occupied ones only, expected counts of small cells are too high.

    Example
    -------
    >>> import numpy as np
    >>> from quadrille.attack.loglinear import fit
    >>> fit(np.array([8, 2, 2, 8]), [2, 2], margins=1).tolist()
    [5.0, 5.0, 5.0, 5.0]
    """
    wanted = np.asarray(counts, dtype=np.float64)
    numbers = np.arange(len(wanted)) if cells is None else cells
    sides = combinations(range(len(levels)), min(margins, len(levels))) if isinstance(margins, int) else margins
    targets: list[tuple[Ints, Floats]] = []
    codes = _codes(numbers, levels)
    for side in sides:
        place = np.zeros(len(numbers), dtype=np.int64)
        for variable in side:
            place = place * levels[variable] + codes[variable]
        targets.append((place, np.bincount(place, weights=wanted).astype(np.float64)))
    fitted = np.full(len(wanted), wanted.sum() / max(len(wanted), 1))
    for _ in range(sweeps):
        last = fitted
        for place, target in targets:
            now = np.bincount(place, weights=fitted, minlength=len(target))
            fitted = fitted * np.divide(target, now, out=np.zeros_like(target), where=now > 0)[place]
        if np.abs(fitted - last).max(initial=0.0) <= tolerance:
            break
    return fitted


def _codes(numbers: Ints, levels: Sequence[int]) -> list[Ints]:
    """Take cell numbers apart into the codes of their variables."""
    codes: list[Ints] = []
    for size in reversed(levels):
        codes.insert(0, numbers % size)
        numbers = numbers // size
    return codes
