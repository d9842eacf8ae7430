"""The error of every cell of a margin for a planned swap, before any draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from quadrille.data import Data
from quadrille.recipe import Recipe
from quadrille.theory.planned import Planned, planned

if TYPE_CHECKING:
    import polars as pl


def table_error(data: Data, recipe: Recipe, margin: str | Sequence[str]) -> pl.DataFrame:
    """Return expected change, standard deviation and RMSE of every cell of a margin: one row per cell.

    One pass over the records tallies class, moved part and stayed part; the rest follows from the tally. Weighted
    totals where the file has a weight. Cells whose moved or stayed part does not occur are left out: they stay empty.

    Exact for `PermutationSwap`, and for `RandomSwap` with differ="none" and no constraints. For true swaps the
    expectation is that of derivations/expected.md, exact for two levels; its column `note` says which.

    Parameters
    ----------
    data : the file.
    recipe : the planned swap; its seed plays no part.
    margin : variables joined by "*", such as "Age*MS", or a list of them.

    Example
    -------
    >>> import quadrille as qd
    >>> recipe = qd.PermutationSwap(["Age"], rate=0.05)
    >>> found = qd.theory.table_error(qd.datasets.cps8d(), recipe, "Age*MS")
    >>> found.columns
    ['Age', 'MS', 'before', 'expected', 'bias', 'sd', 'rmse', 'relative_rmse', 'note']
    >>> found["rmse"].round(1).to_list()
    [160.5, 160.5, 109.3, 109.3, 53.2, 53.2]
    """
    found = planned(data, recipe, margin, "table_error")
    return _frame(found, ("before", "expected", "bias", "sd", "rmse", "relative_rmse"))


def expected_table(data: Data, recipe: Recipe, margin: str | Sequence[str]) -> pl.DataFrame:
    """Return the expected table after a planned swap: one row per cell, with the total before.

    Exact for `PermutationSwap`, mean field for true swaps (`RandomSwap`); see `table_error`.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> recipe = qd.PermutationSwap(["Age"], rate=0.05)
    >>> found = qd.theory.expected_table(data, recipe, "Age*MS")
    >>> found["before"].to_list()[:2], found["expected"].round(1).to_list()[:2]
    ([779.0, 7653.0], [939.0, 7493.0])
    """
    return _frame(planned(data, recipe, margin, "expected_table"), ("before", "expected"))


@dataclass(frozen=True)
class ExpectedChiSquare:
    """Expected chi-squares of a margin after a planned swap.

    `distance` is E sum (T' - T)^2 / T over the cells that were not empty; `left_out` counts the empty ones that can be
    reached. `association` is E sum (T' - e)^2 / e with e = row * column / n, the chi-square between moved and stayed
    part, and `association_before` is its value before; None for weighted totals, whose margins change.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> recipe = qd.PermutationSwap(["Age"], rate=0.05)
    >>> found = qd.theory.expected_chi_square(data, recipe, "Age*MS")
    >>> round(found.distance, 1), found.left_out, found.note
    (39.6, 0, 'exact')
    """

    distance: float
    left_out: int
    association: float | None
    association_before: float | None
    note: str


def expected_chi_square(data: Data, recipe: Recipe, margin: str | Sequence[str]) -> ExpectedChiSquare:
    """Return the expected chi-square distance and association of a margin; exact where the variances are.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> recipe = qd.PermutationSwap(["Age"], rate=0.05)
    >>> found = qd.theory.expected_chi_square(data, recipe, "Age*MS")
    >>> round(found.association_before), round(found.association)
    (6059, 5468)
    """
    found = planned(data, recipe, margin, "expected_chi_square")
    mse, before = found.variance + found.bias**2, found.before
    occupied = before > 0
    distance = float((mse[occupied] / before[occupied]).sum())
    left_out = int((~occupied[found.listed]).sum())
    if data.weight is not None:
        return ExpectedChiSquare(distance, left_out, None, None, found.note)
    table = before.reshape(found.margin.moved.possible, found.margin.stayed.possible)
    even = np.outer(table.sum(axis=1), table.sum(axis=0)).ravel() / table.sum()
    kept = even > 0
    gap = (before + found.bias - even)[kept]
    after = float(((found.variance[kept] + gap**2) / even[kept]).sum())
    was = float(((before - even)[kept] ** 2 / even[kept]).sum())
    return ExpectedChiSquare(distance, left_out, after, was, found.note)


def _frame(found: Planned, columns: Sequence[str]) -> pl.DataFrame:
    from quadrille.frames import tidy

    cells = found.listed
    before, rmse = found.before[cells], found.rmse[cells]
    relative = np.divide(rmse, before, out=np.full(len(cells), np.nan), where=before > 0)
    numbers = {
        "before": before.tolist(),
        "expected": (found.before + found.bias)[cells].tolist(),
        "bias": found.bias[cells].tolist(),
        "sd": np.sqrt(found.variance[cells]).tolist(),
        "rmse": rmse.tolist(),
        "relative_rmse": [None if np.isnan(value) else value for value in relative.tolist()],
    }
    note = found.note
    if found.idle:
        note += f"; {found.idle:,} classes stay as they are, because one record alone cannot move"
    rows = [
        {**labels, **{name: numbers[name][i] for name in columns}, "note": note}
        for i, labels in enumerate(found.margin.named(cells))
    ]
    return tidy(rows)
