"""Predicted against realised: what draws of a recipe do to the cells of a margin, beside what theory expects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from quadrille.codebook import Variable
from quadrille.data import Column, Data, code_dtype
from quadrille.delta import Delta
from quadrille.errors import InputError
from quadrille.plan import Plan
from quadrille.recipe import Recipe, whole
from quadrille.swap.permutation import PermutationSwap
from quadrille.theory.labelled import labelled
from quadrille.theory.margin import Ints, Margin
from quadrille.theory.planned import Planned, planned
from quadrille.theory.spread import Floats, Kind

if TYPE_CHECKING:
    import polars as pl

_OWNER = "realised"
MOST_RECORDS = 10_000_000
"""Larger tables are not spread out into records."""


def realised(data: Data, recipe: Recipe, margin: str | Sequence[str], *, draws: int = 1, seed: int = 1) -> pl.DataFrame:
    """Draw a recipe and return, cell by cell, its mean change beside the predicted one.

    Columns: the variables, `label`, `bias` (predicted change), `sd` (that of the mean over the draws), `realised`.
    `chart.predicted_realised` draws the frame.

    Parameters
    ----------
    data, recipe, margin : as in `table_error`; the seed of the recipe plays no part.
    draws : how many, with seeds `seed`, `seed` + 1 and so on: whole numbers, so never those of a release.

    Example
    -------
    >>> import quadrille as qd
    >>> recipe = qd.PermutationSwap(["Age"], rate=0.05)
    >>> qd.theory.realised(qd.datasets.cps8d(), recipe, "Age*MS", draws=20)["realised"].round(1).to_list()[:2]
    [163.6, -163.6]
    """
    draws, seed = whole(_OWNER, "draws", draws, least=1), whole(_OWNER, "seed", seed, least=0)
    found = planned(data, recipe, margin, _OWNER)
    seeded = (replace(cast("Any", recipe), seed=seed + each) for each in range(draws))
    total = _total(data, (one.plan(data) for one in seeded), found.margin)
    return _frame(found, total / draws, draws)


def realised_of_counts(
    table: object,
    *,
    rate: float | None = None,
    records: int | None = None,
    kind: Kind = "pairs",
    draws: int = 1,
    seed: int = 1,
) -> pl.DataFrame:
    """Do the same for a two-way table of counts, spread out into records.

    Example
    -------
    >>> import quadrille as qd
    >>> found = qd.theory.realised_of_counts([[30, 20], [20, 30]], rate=0.2, draws=50)
    >>> found["realised"].round(1).to_list()
    [-0.7, 0.7, 0.7, -0.7]
    """
    given = labelled(table, _OWNER)
    n = int(given.values.sum())
    if n > MOST_RECORDS:
        raise InputError(f"The table counts {n:,} records; at most {MOST_RECORDS:,} are drawn. Take a smaller table.")
    rows, columns = given.values.shape
    each = given.values.astype(np.int64).ravel()
    codes = np.repeat(np.arange(rows * columns, dtype=np.int64), each)
    row, column = ("row" if given.row_name == "column" else given.row_name), "column"
    data = Data([_column(row, given.rows, codes // columns), _column(column, given.columns, codes % columns)])
    recipe = PermutationSwap([column], rate=rate, records=records, kind=kind, seed=seed)
    return realised(data, recipe, [row, column], draws=draws, seed=seed)


def _column(name: str, labels: Sequence[str], codes: Ints) -> Column:
    return Column(Variable(name, "nominal", tuple(labels)), codes.astype(code_dtype(len(labels))))


def _total(data: Data, plans: Iterable[Plan], margin: Margin) -> Floats:
    """Add up the changes of all cells over plans, in the order moved part, stayed part."""
    total = np.zeros(margin.cells)
    for plan in plans:
        delta = Delta(data, plan)
        (was, now), (stay, still) = delta.cells(margin.moved), delta.cells(margin.stayed)
        old, new = was * margin.stayed.possible + stay, now * margin.stayed.possible + still
        if data.ticks is None or delta.ticks is None or delta.ticks_after is None:
            before, after = None, None
        else:
            before, after = delta.ticks / data.ticks.per_unit, delta.ticks_after / data.ticks.per_unit
        total += np.bincount(new.astype(np.int64), weights=after, minlength=margin.cells)
        total -= np.bincount(old.astype(np.int64), weights=before, minlength=margin.cells)
    return total


def _frame(found: Planned, change: Floats, draws: int) -> pl.DataFrame:
    from quadrille.frames import tidy

    cells = found.listed
    numbers = zip(found.bias[cells], np.sqrt(found.variance[cells] / draws), change[cells], strict=True)
    return tidy(
        [
            {
                **labels,
                "label": ", ".join(map(str, labels.values())),
                "bias": float(bias),
                "sd": float(sd),
                "realised": float(made),
            }
            for labels, (bias, sd, made) in zip(found.margin.named(cells), numbers, strict=True)
        ]
    )
