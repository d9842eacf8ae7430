"""The linear programme behind the bound, by an interior-point method that knows its structure (bound.md, 5)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_MOST_STEPS = 80
_BACK = 0.9995
"""Share of the way to the wall that a step goes."""


class Solution(NamedTuple):
    """The minimum, what is exposed above the limit, the price of exposure, and the multipliers of the margins."""

    minimum: float
    over: float
    price: float
    multipliers: Floats


class FreeColumns(NamedTuple):
    """Columns that belong to no cell: entries by row and column, and how many columns there are."""

    row: Ints
    column: Ints
    value: Floats
    count: int

    @classmethod
    def of_codes(cls, codes: Ints) -> FreeColumns:
        """Return a column for each row of codes: a record more in all of these margins."""
        return cls(codes.ravel(), np.repeat(np.arange(len(codes)), codes.shape[1]), np.ones(codes.size), len(codes))

    def matrix(self, rows: int) -> Any:
        """Return the columns as a sparse matrix."""
        from scipy.sparse import coo_array

        return coo_array((self.value, (self.row, self.column)), shape=(rows, self.count)).tocsr()


class Margins:
    """The rows of the programme that hold margins, for cells and for free columns: a basis of them.

    `codes` lists the rows of each cell. Margins of several tables imply one another, and the normal equations need rows
    that do not: a pivoted Cholesky factor shows which.
    """

    def __init__(self, codes: Ints, free: FreeColumns, count: int) -> None:
        from scipy.linalg import lapack

        every = FreeColumns.of_codes(codes).matrix(count), free.matrix(count)
        gram = sum(each @ each.T for each in every).toarray()
        _, pivots, rank, _ = cast("Any", lapack).dpstrf(gram, tol=1e-9 * gram.diagonal().max())
        self.count = count
        self.basis: Ints = np.sort(pivots[:rank] - 1)
        self.cells, self.free = (each[self.basis] for each in every)
        self.cells_t, self.free_t = self.cells.T.tocsr(), self.free.T.tocsr()


@dataclass(frozen=True, eq=False)
class Programme:
    """Minimise `cost @ x + free_cost @ z` over x, z >= 0 with what the names say.

    Columns are sorted by cell, every cell has some; the x of a cell add up to `times`. A column changes the count of
    its cell by `change` and exposes `exposes`; changes and free columns keep the `margins`. All together expose no more
    than `limit`, or pay `dearest` for each record above.
    """

    cell: Ints
    change: Floats
    exposes: Floats
    cost: Floats
    times: Floats
    free_cost: Floats
    margins: Margins
    limit: float
    dearest: float

    @cached_property
    def _first(self) -> Ints:
        return np.searchsorted(self.cell, np.arange(len(self.times)))

    def _sums(self, values: Floats) -> Floats:
        return np.add.reduceat(values, self._first)

    @cached_property
    def _all_costs(self) -> Floats:
        return np.concatenate([self.cost, self.free_cost, [0.0, self.dearest]])

    def _of_rows(self, x: Floats) -> tuple[Floats, Floats]:
        """Return what the columns add up to in each row: of cells; of margins, and then of exposure."""
        many = len(self.cost)
        inner, free = x[:many], x[many:-2]
        held = self.margins.cells @ self._sums(self.change * inner) + self.margins.free @ free
        return self._sums(inner), np.append(held, self.exposes @ inner + x[-2] - x[-1])

    def _of_columns(self, cells: Floats, rows: Floats) -> Floats:
        """Return what multipliers of rows add up to in each column."""
        y, price = rows[:-1], rows[-1]
        slope = self.margins.cells_t @ y
        inner = (cells[self.cell] + slope[self.cell] * self.change) + price * self.exposes
        return np.concatenate([inner, self.margins.free_t @ y, [price, -price]])

    def solve(self, accuracy: float) -> Solution | None:
        """Return the minimum and its multipliers; None where rounding stops the search.

        Mehrotra's method. The rows of cells are taken out of the normal equations: what is left has a row per margin.
        """
        many = len(self._all_costs)
        right = self.times, np.append(np.zeros(len(self.margins.basis)), self.limit)
        size = 1.0 + float(np.abs(right[1]).max() + self.times.max())
        x, cells, rows, slack = self._start(right)
        found: Solution | None = None
        for _ in range(_MOST_STEPS):
            has = self._of_rows(x)
            missing = right[0] - has[0], right[1] - has[1]
            off = self._all_costs - self._of_columns(cells, rows) - slack
            gap = float(x @ slack)
            minimum = float(self._all_costs @ x)
            feasible = max(float(np.abs(each).max()) for each in missing) <= 1e-7 * size
            if feasible:
                found = self._solution(minimum, x, rows)
                if gap <= accuracy * abs(minimum) + 1e-9:
                    break
            try:
                normal = _Normal(self, x / slack)
            except np.linalg.LinAlgError:
                break

            def direction(target: Floats) -> tuple[Floats, Floats, Floats, Floats]:
                share = target / slack - normal.weight * off  # noqa: B023
                less = self._of_rows(share)
                by_cell, by_row = normal.solve(missing[0] - less[0], missing[1] - less[1])  # noqa: B023
                bent = off - self._of_columns(by_cell, by_row)  # noqa: B023
                return target / slack - normal.weight * bent, by_cell, by_row, bent  # noqa: B023

            step, _, _, bent = direction(-x * slack)
            ahead = float((x + _reach(x, step) * step) @ (slack + _reach(slack, bent) * bent))
            centre = (ahead / gap) ** 3 * gap / many
            step, by_cell, by_row, bent = direction(centre - x * slack - step * bent)
            primal, dual = min(1.0, _BACK * _reach(x, step, 2.0)), min(1.0, _BACK * _reach(slack, bent, 2.0))
            if not np.isfinite(step).all() or max(primal, dual) < 1e-6:
                break
            x, slack = x + primal * step, slack + dual * bent
            cells, rows = cells + dual * by_cell, rows + dual * by_row
        return found

    def _solution(self, minimum: float, x: Floats, rows: Floats) -> Solution:
        multipliers = np.zeros(self.margins.count)
        multipliers[self.margins.basis] = rows[:-1]
        return Solution(minimum, float(x[-1]), max(0.0, -float(rows[-1])), multipliers)

    def _start(self, right: tuple[Floats, Floats]) -> tuple[Floats, Floats, Floats, Floats]:
        """Return Mehrotra's start: least squares, moved away from the walls."""
        costs = self._all_costs
        normal = _Normal(self, np.ones(len(costs)))
        x = self._of_columns(*normal.solve(*right))
        cells, rows = normal.solve(*self._of_rows(costs))
        slack = costs - self._of_columns(cells, rows)
        x = x + max(0.0, -1.5 * float(x.min()))
        slack = slack + max(0.0, -1.5 * float(slack.min()))
        product = max(float(x @ slack), 1e-3)
        x, slack = (
            x + 0.5 * product / max(float(slack.sum()), 1e-3),
            slack + 0.5 * product / max(float(x.sum()), 1e-3),
        )
        return x, cells, rows, slack


class _Normal:
    """The normal equations with a weight for each column: rows of cells eliminated, the rest factored."""

    def __init__(self, programme: Programme, weight: Floats) -> None:
        from scipy.linalg import cho_factor
        from scipy.sparse import diags_array

        many = len(programme.cost)
        inner = weight[:many]
        self.weight = weight
        self._programme = programme
        sums = programme._sums  # noqa: SLF001
        self._total = sums(inner)
        self._change = sums(inner * programme.change) / self._total
        self._exposes = sums(inner * programme.exposes) / self._total
        change = programme.change - self._change[programme.cell]
        exposes = programme.exposes - self._exposes[programme.cell]
        margins = programme.margins
        diag = cast("Any", diags_array)
        rows = len(margins.basis)
        matrix = np.empty((rows + 1, rows + 1))
        matrix[:rows, :rows] = (
            margins.cells @ diag(sums(inner * change**2)) @ margins.cells_t
            + margins.free @ diag(weight[many:-2]) @ margins.free_t
        ).toarray()
        matrix[:rows, rows] = matrix[rows, :rows] = margins.cells @ sums(inner * change * exposes)
        matrix[rows, rows] = float(inner @ exposes**2) + weight[-1] + weight[-2]
        # Rounding may leave a pivot a little below 0.
        self._scale = 1 / np.sqrt(np.maximum(matrix.diagonal(), 1e-300))
        matrix *= self._scale[:, None] * self._scale
        matrix[np.diag_indices(rows + 1)] += 1e-13
        self._factor: Any = cast("Any", cho_factor)(matrix, lower=True, overwrite_a=True, check_finite=False)

    def solve(self, cells: Floats, rows: Floats) -> tuple[Floats, Floats]:
        from scipy.linalg import cho_solve

        margins = self._programme.margins
        reduced = rows - np.append(margins.cells @ (self._change * cells), self._exposes @ cells)
        found = self._scale * cast("Any", cho_solve)(self._factor, self._scale * reduced, check_finite=False)
        slope = margins.cells_t @ found[:-1]
        return cells / self._total - self._change * slope - self._exposes * found[-1], found


def _reach(at: Floats, step: Floats, most: float = 1.0) -> float:
    """Return how far a step can go until a value is 0."""
    down = step < 0
    return min(most, float((-at[down] / step[down]).min(initial=most)))
