"""The error of swapping in a published table of counts: all that is needed is in the table itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quadrille.errors import ParameterError
from quadrille.recipe import one_of, share, whole
from quadrille.swap.classes import Kind, records_of
from quadrille.theory.equivalent import equivalent_table
from quadrille.theory.labelled import Labelled, labelled
from quadrille.theory.moments import swap_error

if TYPE_CHECKING:
    import polars as pl

_OWNER = "error_of_counts"


def error_of_counts(
    table: object, *, rate: float | None = None, records: int | None = None, kind: Kind = "pairs", base: int = 5
) -> pl.DataFrame:
    """Return, for each cell of a two-way table of counts, the error of swapping and that of rounding.

    The variable of the rows or that of the columns is swapped against the other; which of the two does not matter.

    Parameters
    ----------
    table : a 2-D array, nested lists, or a frame whose first column holds labels.
    rate, records : how much is moved; give one of the two.
    kind : "pairs" or "cycles".
    base : of random rounding.

    Columns: labels, `before`, `expected`, `bias`, `sd`, `rmse`, `relative_rmse`, `rounding_rmse`, and the number of
    records whose swapping would put as much error into the cell as rounding does: `records`, and the `closest`.

    Example
    -------
    >>> error_of_counts([[30, 20], [20, 30]], rate=0.1)["bias"].round(3).to_list()
    [-0.505, 0.505, 0.505, -0.505]
    """
    from quadrille.frames import tidy

    one_of(_OWNER, "kind", kind, ("pairs", "cycles"))
    given = labelled(table, _OWNER)
    k = _amount(given, rate, records, kind)
    equivalent = equivalent_table(given, base=base, kind=kind).to_dicts()
    return tidy([{**_cell(given, place, k, kind), **_rounding(row)} for place, row in enumerate(equivalent)])


def _amount(given: Labelled, rate: float | None, records: int | None, kind: Kind) -> int:
    if (rate is None) == (records is None):
        raise ParameterError("Give one of 'rate' (share of records) and 'records' (number of records moved).")
    if records is not None:
        return whole(_OWNER, "records", records, least=1)
    n = np.array([int(given.values.sum())])
    return int(records_of(kind, np.array([share(_OWNER, "rate", rate)]), n)[0])


def _cell(given: Labelled, place: int, k: int, kind: Kind) -> dict[str, object]:
    values = given.values
    row, column = divmod(place, values.shape[1])
    cell, in_row, in_column = values[row, column], values[row].sum(), values[:, column].sum()
    counts = [cell, in_row - cell, in_column - cell, values.sum() - in_row - in_column + cell]
    error = swap_error([1, 1, 0, 0], [1, 0, 1, 0], k, kind, counts=counts)
    return {
        **given.cells()[place],
        "before": int(cell),
        "expected": float(cell) + error.bias,
        "bias": error.bias,
        "sd": error.sd,
        "rmse": error.rmse,
        "relative_rmse": error.rmse / float(cell) if cell else None,
    }


def _rounding(row: dict[str, object]) -> dict[str, object]:
    return {name: row[name] for name in ("rounding_rmse", "records", "closest")}
