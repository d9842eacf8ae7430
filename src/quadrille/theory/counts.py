"""The error of swapping in a published table of counts: all that is needed is in the table itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quadrille.errors import ParameterError, bad_parameter
from quadrille.recipe import one_of, share, whole
from quadrille.swap.classes import Kind, records_of
from quadrille.theory.equivalent import equivalent_table
from quadrille.theory.labelled import Labelled, labelled, refuse_totals
from quadrille.theory.moments import swap_error
from quadrille.theory.rounding import checked_base

if TYPE_CHECKING:
    import polars as pl

_OWNER = "error_of_counts"


def error_of_counts(
    table: object,
    *,
    rate: float | None = None,
    records: int | None = None,
    kind: Kind = "pairs",
    base: int = 5,
    no_totals: bool = False,
) -> pl.DataFrame:
    """Return, for each cell of a two-way table of counts, the error of swapping and that of rounding.

    The variable of the rows or that of the columns is swapped against the other; which of the two does not matter.

    Parameters
    ----------
    table : a 2-D array, nested lists, or a frame whose first column holds labels.
    rate, records : how much is moved; give one of the two.
    kind : "pairs" or "cycles".
    base : of random rounding.
    no_totals : a table in which a row or column equals the sum of the others is refused, unless this says that it is
        no total.

    Columns: labels, `before`, `expected`, `bias`, `sd`, `rmse`, `relative_rmse`, `rounding_rmse`, and the number of
    records whose swapping would put as much error into the cell as rounding does: `records`, and the `closest`.

    Example
    -------
    >>> import quadrille as qd
    >>> qd.theory.error_of_counts([[30, 20], [20, 30]], rate=0.1)["bias"].round(3).to_list()
    [-0.505, 0.505, 0.505, -0.505]
    """
    from quadrille.frames import tidy

    one_of(_OWNER, "kind", kind, ("pairs", "cycles"))
    given = labelled(table, _OWNER)
    if not no_totals:
        refuse_totals(given, _OWNER)
    checked_base(_OWNER, base)
    k = _amount(given, rate, records, kind)
    equivalent = equivalent_table(given, base=base, kind=kind).to_dicts()
    return tidy([{**_cell(given, place, k, kind), **_rounding(row)} for place, row in enumerate(equivalent)])


def _amount(given: Labelled, rate: float | None, records: int | None, kind: Kind) -> int:
    if (rate is None) == (records is None):
        raise ParameterError("Give one of 'rate' (share of records) and 'records' (number of records moved).")
    n = int(given.values.sum())
    if records is not None:
        moved = whole(_OWNER, "records", records, least=2)
        if kind == "pairs" and moved % 2:
            raise bad_parameter(_OWNER, "records", "even: pairs move two records each", records)
        if moved > n:
            raise bad_parameter(_OWNER, "records", f"at most the number of records, {n:,}", records)
        return moved
    if isinstance(rate, str):
        raise bad_parameter(_OWNER, "rate", "a number in (0, 1]: a table has no column of class rates", rate)
    moved = int(records_of(kind, np.array([share(_OWNER, "rate", rate)]), np.array([n]))[0])
    if moved < 2:
        first = (1.5 if kind == "cycles" else 1) / max(n, 1)
        least = f"The smallest rate that moves two is about {first:.3g}." if n > 1 else ""
        raise ParameterError(
            f"The 'rate' parameter of {_OWNER} moves {'one record' if moved else 'no record'} of the table's {n:,}, "
            f"so there is no error to show. {least}".rstrip()
        )
    return moved


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
