"""Changes of the association between two variables: Cramér's V and the contingency coefficient."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np

from quadrille import kernels
from quadrille.data import Cells
from quadrille.measure.base import EMPTY, NOTHING_CHANGED, Measure, Score, undefined
from quadrille.summary import Change, Tally

_REPORT = "Gomatam & Karr (2003), NISS Technical Report 131"
Coefficient = Callable[[float, int, int], float | None]


def chi_square_share(tally: Tally) -> tuple[float, int, int]:
    """Return chi-square divided by the total, and the numbers of row and column categories that occur.

    Computed from the differences to the expected counts, so that independence gives 0 and not a rounding error.
    """
    if tally.keys is None:
        share, rows, columns = kernels.chi_square(tally.value.reshape(tally.cross.sizes).astype(np.float64))
        return float(share), int(rows), int(columns)
    first, second = (tally.cross.codes(tally.keys, name) for name in tally.cross.variables)
    return sparse_share(first, second, tally.value, tally.total)


def sparse_share(first: Cells, second: Cells, value: Cells, whole: int) -> tuple[float, int, int]:
    """Return the same for occupied cells, given by row, column and value; `whole` is the sum of the values."""
    total = float(whole)
    row, column = _margin(first, value), _margin(second, value)
    expected = row[first] * column[second].astype(np.float64) / total
    kept = expected > 0
    inside = float((((value - expected)[kept]) ** 2 / expected[kept]).sum())
    # What is expected in empty cells: whole numbers are subtracted, so that nothing cancels.
    empty_columns = whole - _margin(first, column[second])
    outside = float((row * empty_columns.astype(np.float64)).sum()) / total
    return (inside + outside) / total, int((row > 0).sum()), int((column > 0).sum())


def _margin(codes: Cells, value: Cells) -> Cells:
    """Add up whole numbers by code, exactly."""
    out = np.zeros(int(codes.max(initial=-1)) + 1, dtype=np.int64)
    kernels.add_ticks(codes, value, out)
    return out


def cramers_v(share: float, rows: int, columns: int) -> float | None:
    """Return Cramér's V, None when a variable has one category only."""
    return sqrt(share / (min(rows, columns) - 1)) if min(rows, columns) > 1 else None


def contingency(share: float, rows: int, columns: int) -> float | None:
    """Return Pearson's contingency coefficient."""
    return sqrt(share / (share + 1))


def change_of(coefficient: Coefficient) -> Callable[[Tally, Change], Score]:
    """Score the coefficient before minus the coefficient after."""

    def score(before: Tally, change: Change) -> Score:
        if not change.total_old or not change.total_new:
            return undefined(EMPTY)
        if change.nothing_changed:
            return Score(0.0, note=NOTHING_CHANGED)
        was = coefficient(*chi_square_share(before))
        now = coefficient(*chi_square_share(before.after(change)))
        if was is None or now is None:
            return undefined("one of the two variables has a single category")
        return Score(was - now, {"before": was, "after": now})

    return score


MEASURES = (
    Measure(
        name="cramers_v_change",
        side="loss",
        direction="nearer 0",
        range=(-1.0, 1.0),
        definition="V before − V after, V = √( χ² / (N min(m−1, n−1)) ), m, n categories that occur; positive: weaker",
        reference=_REPORT + ", there adV",
        layout="pair",
        score=change_of(cramers_v),
    ),
    Measure(
        name="contingency_change",
        side="loss",
        direction="nearer 0",
        range=(-1.0, 1.0),
        definition="C before − C after, C = √( χ² / (χ² + N) ); positive: weaker",
        reference=_REPORT + ", there adC",
        layout="pair",
        score=change_of(contingency),
    ),
)
