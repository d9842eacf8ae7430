"""Changes of the association between two variables, plain and relative: Cramér's V and the contingency coefficient.

The plain changes are of the table as it is released, as in their paper: a missing value is a category like others, and
who misses a value may depend on the other variable. The relative ones are what an analyst of complete records finds, as
in theirs: records that miss either variable are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf, sqrt

import numpy as np

from quadrille import kernels
from quadrille.data import Cells
from quadrille.measure.base import (
    DOHRMANN_2009,
    EMPTY,
    NISS_131,
    NO_DIFFERENCE,
    NOTHING_CHANGED,
    Measure,
    Score,
    undefined,
    unscored,
)
from quadrille.summary import Change, Tally

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
        if plain := unscored(change):
            return plain
        was = coefficient(*chi_square_share(before))
        now = coefficient(*chi_square_share(before.after(change)))
        if was is None or now is None:
            return undefined("one of the two variables has a single category")
        return Score(was - now, {"before": was, "after": now})

    return score


_SAME = 1e-12


class Known:
    """A table of two variables without the records that miss either of them."""

    def __init__(self, tally: Tally) -> None:
        rows, columns = tally.valid
        self.dense = tally.value.reshape(tally.cross.sizes)[:rows, :columns] if tally.keys is None else None
        if tally.keys is not None:
            first, second = (tally.cross.codes(tally.keys, name) for name in tally.cross.variables)
            kept = (first < rows) & (second < columns) & (tally.value > 0)
            self.sparse = first[kept], second[kept], tally.value[kept]
        values = self.dense if self.dense is not None else self.sparse[2]
        self.total = int(values.sum())

    def same(self, other: Known) -> bool:
        """Tell whether both hold the same weights."""
        if self.dense is not None and other.dense is not None:
            return np.array_equal(self.dense, other.dense)
        return all(map(np.array_equal, self.sparse, other.sparse))

    def share(self) -> tuple[float, int, int]:
        """Return chi-square divided by the total, and the numbers of categories that occur."""
        if self.dense is None:
            return sparse_share(*self.sparse, self.total)
        share, rows, columns = kernels.chi_square(np.ascontiguousarray(self.dense, dtype=np.float64))
        return float(share), int(rows), int(columns)

    def occurring(self) -> tuple[Cells, Cells]:
        """Return the codes that occur, of both variables."""
        if self.dense is None:
            return np.unique(self.sparse[0]), np.unique(self.sparse[1])
        return np.flatnonzero(self.dense.any(axis=1)), np.flatnonzero(self.dense.any(axis=0))

    def sign(self, rows: Cells, columns: Cells) -> float:
        """Return the sign of n11 n22 − n12 n21."""
        cells = np.zeros((2, 2))
        for i, row in enumerate(rows):
            for j, column in enumerate(columns):
                cells[i, j] = self._at(int(row), int(column))
        return float(np.sign(cells[0, 0] * cells[1, 1] - cells[0, 1] * cells[1, 0]))

    def _at(self, row: int, column: int) -> int:
        if self.dense is not None:
            return int(self.dense[row, column])
        first, second, value = self.sparse
        return int(value[(first == row) & (second == column)].sum())


Coefficients = Callable[[Known, Known], tuple[float | None, float | None]]


def c_of(was: Known, now: Known) -> tuple[float | None, float | None]:
    """Return Pearson's contingency coefficient before and after."""
    return contingency(*was.share()), contingency(*now.share())


def v_of(was: Known, now: Known) -> tuple[float | None, float | None]:
    """Return Cramér's V before and after; with a sign where both variables have the same two categories."""
    before, after = cramers_v(*was.share()), cramers_v(*now.share())
    if before is None or after is None:
        return before, after
    rows, columns = was.occurring()
    if len(rows) == len(columns) == 2 and all(map(np.array_equal, (rows, columns), now.occurring())):
        return before * was.sign(rows, columns), after * now.sign(rows, columns)
    return before, after


def relative(coefficients: Coefficients) -> Callable[[Tally, Change], Score]:
    """Score |before − after| / |before| of a coefficient."""

    def score(before: Tally, change: Change) -> Score:
        if change.nothing_changed:
            return Score(0.0, note=NOTHING_CHANGED) if change.total_old else undefined(EMPTY)
        was, now = Known(before), Known(before.after(change))
        if not was.total or not now.total:
            return undefined(EMPTY)
        if change.per_unit_after in (None, change.per_unit) and was.same(now):
            return Score(0.0, note=NOTHING_CHANGED)
        old, new = coefficients(was, now)
        if old is None or new is None:
            return undefined("one of the two variables has a single category")
        if abs(old) <= _SAME:
            return undefined("there is no association before")
        if abs(old - new) <= _SAME:
            return Score(0.0, note=NO_DIFFERENCE)
        return Score(abs(old - new) / abs(old), {"before": old, "after": new}, scale=1 / abs(old))

    return score


_PAIRS = "mean over the pairs that are associated before and change"
_change = partial(Measure, side="loss", direction="nearer 0", range=(-1.0, 1.0), layout="pair")
_relative = partial(Measure, side="loss", reference=DOHRMANN_2009, range=(0.0, inf), layout="pair", over_changed=True)
MEASURES = (
    _change(
        "cramers_v_change",
        "V before − V after, V = √( χ² / (N min(m−1, n−1)) ), m, n categories that occur, a "
        "missing value being one; positive: weaker",
        change_of(cramers_v),
        reference=NISS_131 + ", there adV",
    ),
    _change(
        "contingency_change",
        "C before − C after, C = √( χ² / (χ² + N) ), a missing value being a category; positive: weaker",
        change_of(contingency),
        reference=NISS_131 + ", there adC",
    ),
    _relative(
        "c_ard",
        "|C before − C after| / C before, C = √( χ² / (χ² + n) ), n the sum of weights of the records that miss "
        f"neither; {_PAIRS}",
        relative(c_of),
    ),
    _relative(
        "v_ard",
        "|V before − V after| / |V before|, V = √( χ² / (n min(m−1, k−1)) ), in 2×2 tables with the sign of "
        f"n₁₁n₂₂ − n₁₂n₂₁, over the records that miss neither; {_PAIRS}",
        relative(v_of),
    ),
)
