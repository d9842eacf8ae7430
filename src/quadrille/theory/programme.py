"""The linear programme behind the bound, by an interior-point method that knows its structure (bound.md, 5)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np

from quadrille.data import Floats, Ints

_MOST_STEPS = 80
_TO_THE_WALL = 0.9995
"""A step goes this share of the way to where a column would be 0."""
_FULL = 0.15
"""From this share of entries other than 0 on a matrix is faster dense."""


class Solution(NamedTuple):
    """The minimum, what is exposed above the limit, the price of exposure, and the multipliers of the margins."""

    minimum: float
    over: float
    price: float
    multipliers: Floats


@dataclass(frozen=True, eq=False)
class FreeColumns:
    """Columns that belong to no cell: their entries by row and column, and their number."""

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

        cells, others = FreeColumns.of_codes(codes).matrix(count), free.matrix(count)
        gram: Floats = (cells @ cells.T + others @ others.T).toarray()
        _, pivots, rank, _ = cast("Any", lapack).dpstrf(gram, tol=1e-9 * gram.diagonal().max())
        self.count = count
        self.basis: Ints = np.sort(pivots[:rank] - 1)
        self.cells, self.free = (_dense_if_full(each[self.basis]) for each in (cells, others))
        self.by_cell, self.by_free = self.cells.T, self.free.T

    def product(self, of_cells: Floats, of_free: Floats) -> Floats:
        """Return the rows by rows, with a weight for each cell and each free column."""
        return _weighted(self.cells, of_cells) + _weighted(self.free, of_free)


def _dense_if_full(matrix: Any) -> Any:
    return matrix.toarray() if matrix.nnz > _FULL * matrix.shape[0] * matrix.shape[1] else matrix


def _weighted(matrix: Any, weight: Floats) -> Floats:
    from scipy.sparse import diags_array

    if isinstance(matrix, np.ndarray):
        scaled = cast("Floats", matrix) * np.sqrt(weight)
        return scaled @ scaled.T
    return (matrix @ cast("Any", diags_array)(weight) @ matrix.T).toarray()


class Rows(NamedTuple):
    """A number for each row: those of cells; those of margins, and at the end that of exposure."""

    cells: Floats
    others: Floats

    def less(self, other: Rows) -> Rows:
        """Return the differences."""
        return Rows(self.cells - other.cells, self.others - other.others)

    def plus(self, other: Rows, share: float) -> Rows:
        """Return the sums with a share of others."""
        return Rows(self.cells + share * other.cells, self.others + share * other.others)


@dataclass(frozen=True, eq=False)
class Programme:
    """Minimise `cost @ x + free_cost @ z + dearest * over` over x, z, over >= 0 under these conditions.

    Columns x are sorted by cell, every cell has some, and those of a cell add up to `times`. A column changes the count
    of its cell by `change` and exposes `exposes`. All changes and all z leave the `margins` as they are, and no more
    than `limit + over` is exposed.
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

    @cached_property
    def costs(self) -> Floats:
        """What each column costs: x, then z, then what is exposed below the limit and what above."""
        return np.concatenate([self.cost, self.free_cost, [0.0, self.dearest]])

    @cached_property
    def demands(self) -> Rows:
        """What the rows must add up to."""
        return Rows(self.times, np.append(np.zeros(len(self.margins.basis)), self.limit))

    def sums(self, values: Floats) -> Floats:
        """Add up by cell."""
        return np.add.reduceat(values, self._first)

    def rows_of(self, x: Floats) -> Rows:
        """Return what columns add up to in each row."""
        inner, free = x[: len(self.cost)], x[len(self.cost) : -2]
        held = self.margins.cells @ self.sums(self.change * inner) + self.margins.free @ free
        return Rows(self.sums(inner), np.append(held, self.exposes @ inner + x[-2] - x[-1]))

    def columns_of(self, rows: Rows) -> Floats:
        """Return what multipliers of rows add up to in each column."""
        y, price = rows.others[:-1], rows.others[-1]
        slope = (self.margins.by_cell @ y)[self.cell]
        inner = rows.cells[self.cell] + slope * self.change + price * self.exposes
        return np.concatenate([inner, self.margins.by_free @ y, [price, -price]])

    def solve(self, accuracy: float) -> Solution | None:
        """Return the minimum to a share `accuracy`, and its multipliers; None where rounding leads nowhere.

        Mehrotra's predictor and corrector. `x` are the columns, `slack` their reduced costs; both stay above 0.
        """
        x, rows, slack = self._start()
        close = 1e-7 * (1 + self.limit + float(self.times.max()))
        found: Solution | None = None
        for _ in range(_MOST_STEPS):
            missing = self.demands.less(self.rows_of(x))
            gap, minimum = float(x @ slack), float(self.costs @ x)
            if max(float(np.abs(each).max()) for each in missing) <= close:
                found = self._solution(minimum, x, rows)
                if gap <= accuracy * abs(minimum) + 1e-9:
                    break
            try:
                newton = _Newton(self, x, slack, missing, self.costs - self.columns_of(rows) - slack)
            except np.linalg.LinAlgError:
                break
            step, _, bent = newton.towards(-x * slack)
            ahead = float((x + _reach(x, step) * step) @ (slack + _reach(slack, bent) * bent))
            centre = (ahead / gap) ** 3 * gap / len(x)
            step, turn, bent = newton.towards(centre - x * slack - step * bent)
            primal, dual = _TO_THE_WALL * _reach(x, step), _TO_THE_WALL * _reach(slack, bent)
            if not np.isfinite(primal + dual) or max(primal, dual) < 1e-6:
                break
            x, slack, rows = x + primal * step, slack + dual * bent, rows.plus(turn, dual)
        return found

    def _solution(self, minimum: float, x: Floats, rows: Rows) -> Solution:
        multipliers = np.zeros(self.margins.count)
        multipliers[self.margins.basis] = rows.others[:-1]
        return Solution(minimum, float(x[-1]), max(0.0, -float(rows.others[-1])), multipliers)

    def _start(self) -> tuple[Floats, Rows, Floats]:
        """Return Mehrotra's start: least squares, moved away from 0."""
        normal = _NormalEquations(self, np.ones(len(self.costs)))
        x = self.columns_of(normal.solve(self.demands))
        rows = normal.solve(self.rows_of(self.costs))
        slack = self.costs - self.columns_of(rows)
        x, slack = (each + max(0.0, -1.5 * float(each.min())) for each in (x, slack))
        product = max(float(x @ slack), 1e-3)
        away, off = (0.5 * product / max(float(each.sum()), 1e-3) for each in (slack, x))
        return x + away, rows, slack + off


class _NormalEquations:
    """Rows by rows, each column with a weight. The rows of cells are eliminated: a row per margin is left to factor."""

    def __init__(self, programme: Programme, weight: Floats) -> None:
        from scipy.linalg import cho_factor

        self._margins, cell = programme.margins, programme.cell
        inner, free = weight[: len(cell)], weight[len(cell) : -2]
        self._total = programme.sums(inner)
        self._change = programme.sums(inner * programme.change) / self._total
        self._exposes = programme.sums(inner * programme.exposes) / self._total
        # What elimination leaves of a cell is the variance of its columns.
        change, exposes = programme.change - self._change[cell], programme.exposes - self._exposes[cell]
        matrix = np.empty((len(self._margins.basis) + 1,) * 2)
        matrix[:-1, :-1] = self._margins.product(programme.sums(inner * change**2), free)
        matrix[:-1, -1] = matrix[-1, :-1] = self._margins.cells @ programme.sums(inner * change * exposes)
        matrix[-1, -1] = float(inner @ exposes**2) + weight[-1] + weight[-2]
        self._scale = 1 / np.sqrt(np.maximum(matrix.diagonal(), 1e-300))
        matrix *= self._scale[:, None] * self._scale
        matrix[np.diag_indices(len(matrix))] += 1e-13  # rounding may leave a pivot a little below 0
        self._factor: Any = cast("Any", cho_factor)(matrix, lower=True, overwrite_a=True, check_finite=False)

    def solve(self, right: Rows) -> Rows:
        from scipy.linalg import cho_solve

        less = np.append(self._margins.cells @ (self._change * right.cells), self._exposes @ right.cells)
        scaled = self._scale * (right.others - less)
        others: Floats = self._scale * cast("Any", cho_solve)(self._factor, scaled, check_finite=False)
        slope = self._margins.by_cell @ others[:-1]
        return Rows(right.cells / self._total - self._change * slope - self._exposes * others[-1], others)


class _Newton:
    """Newton's equations at a point: what is `missing` in the rows, and how far the reduced costs are `off`."""

    def __init__(self, programme: Programme, x: Floats, slack: Floats, missing: Rows, off: Floats) -> None:
        self._programme, self._slack, self._missing, self._off = programme, slack, missing, off
        self._weight = x / slack
        self._normal = _NormalEquations(programme, self._weight)

    def towards(self, target: Floats) -> tuple[Floats, Rows, Floats]:
        """Return the steps of columns, multipliers and reduced costs that change each product by `target`."""
        straight = target / self._slack
        less = self._programme.rows_of(straight - self._weight * self._off)
        turn = self._normal.solve(self._missing.less(less))
        bent = self._off - self._programme.columns_of(turn)
        return straight - self._weight * bent, turn, bent


def _reach(at: Floats, step: Floats) -> float:
    """Return how far a step can go, at most all the way, until a value is 0."""
    down = step < 0
    return float((-at[down] / step[down]).min(initial=1.0))
