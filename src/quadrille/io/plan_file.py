"""A plan as a table that any engine can apply: who receives new values, and which."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from quadrille.data import Codes, Data, Rows
from quadrille.errors import InputError, OutputError, unknown_name
from quadrille.io.atomic import new_file
from quadrille.io.frames import restore
from quadrille.plan import Plan

ROW = "row_index"
"""The column with the number of a record in its file, from 0, where no identifier is named."""
METADATA = "quadrille.plan"
"""The entry of the file's metadata that holds the fingerprints, as JSON."""


def write_plan(plan: Plan, data: Data, out: str | Path, id: str | None = None) -> None:
    """Write the new values of the records that a plan changes, so that any engine can apply it with one join.

    The table has a row per record that takes part, in the order of the file: its number from 0 in the column
    `row_index`, or its value of the column `id`, and the values that it has afterwards in all columns that move, as
    text or numbers. The metadata of the file have the fingerprints of the data before and after. It undoes the release,
    so it is as confidential as the original, and only its owner can read it.

    Parameters
    ----------
    plan, data : the plan, and the data for which it was drawn.
    out : the Parquet file to write.
    id : a column that tells all records apart, for tables that have no order of their own.

    Example
    -------
    >>> import polars as pl
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> plan = qd.RandomSwap(["Edu"], pairs=2, seed=7).plan(data)
    >>> qd.write_plan(plan, data, "plan.parquet")
    >>> pl.read_parquet("plan.parquet").columns, pl.read_parquet("plan.parquet").height
    (['row_index', 'Edu'], 4)
    """
    plan.check(data)
    path = Path(out)
    if path.suffix.lower() != ".parquet":
        raise OutputError(f"A plan is written as Parquet. {path.name!r} must end in .parquet.")
    _refuse_recoded(plan, data)
    rows = plan.rows
    changed = plan.changed(data)
    columns = [_key(plan, data, rows, id)]
    for name in plan.columns:
        values = data[name].values[rows]
        receivers, received = changed[name]
        values[np.searchsorted(rows, receivers)] = received
        columns.append(restore(replace(data[name], values=values)))
    facts = {"before": plan.before, "after": plan.after, "records": data.n, "columns": list(plan.columns)}
    buffer = io.BytesIO()
    pl.DataFrame(columns).write_parquet(buffer, metadata={METADATA: json.dumps(facts)})
    with new_file(path, buffer.getbuffer(), private=True):
        pass


def _refuse_recoded(plan: Plan, data: Data) -> None:
    """Refuse columns that the codebook recoded when they were read: the table elsewhere has the values as they were."""
    recoded = [name for name in plan.columns if data.codebook[name].recodes]
    if recoded:
        raise InputError(
            f"The codebook recodes {', '.join(map(repr, recoded))}, so the plan has values that the file does not. "
            "Write the recoded file first (quadrille convert), and draw the plan for that."
        )


def _key(plan: Plan, data: Data, rows: Rows, id: str | None) -> pl.Series:
    """Return what names the records that change."""
    if id is None:
        if ROW in plan.columns:
            raise InputError(f"A column that moves is called {ROW!r}, as the number of a record is. Rename it.")
        return pl.Series(ROW, rows)
    if id not in data.codebook:
        raise unknown_name("column", id, data.columns, where="the plan file")
    if id in plan.columns:
        raise InputError(f"Column {id!r} moves, so it cannot name the records. Name another one.")
    column = data[id]
    _refuse_no_identifier(column.values, id, missing=data.n - column.tally[1])
    return restore(replace(column, values=column.values[rows]))


def _refuse_no_identifier(values: Codes, id: str, missing: int) -> None:
    """Refuse a column that does not tell all records apart."""
    repeated = len(values) - len(np.unique(values))
    if missing or repeated:
        what = f"is missing in {missing:,} records" if missing else f"has a value twice in {repeated:,} records"
        raise InputError(f"Column {id!r} {what}, so it cannot name them. Name a column that tells all records apart.")
