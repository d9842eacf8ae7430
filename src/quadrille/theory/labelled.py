"""A two-way table of counts as a user has it: numbers, nested lists or a frame whose first column holds labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from quadrille.errors import InputError
from quadrille.theory.spread import Floats

_TWO = 2
MOST_RECORDS = 2**53
_TOTALS = frozenset({"total", "totals", "grand total", "sum"})


@dataclass(frozen=True, eq=False)
class Labelled:
    """Counts with the name of the rows and the labels of rows and columns."""

    values: Floats
    row_name: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]

    def cells(self) -> list[dict[str, object]]:
        """Return the labels of the cells, row by row."""
        return [{self.row_name: row, "column": column} for row in self.rows for column in self.columns]


def labelled(table: object, where: str) -> Labelled:
    """Read a table of counts, or say what is wrong with it."""
    if isinstance(table, Labelled):
        return table
    if hasattr(table, "__arrow_c_stream__") or hasattr(table, "collect"):
        found = _from_frame(table, where)
    else:
        values = _numbers(table, where)
        rows, columns = values.shape
        found = Labelled(values, "row", tuple(map(str, range(rows))), tuple(map(str, range(columns))))
    _check(found.values, where)
    return found


def refuse_totals(given: Labelled, where: str) -> None:
    """Refuse a table with a line of totals: its records would be counted twice."""
    sides = (("row", given.rows, given.values), ("column", given.columns, given.values.T))
    for what, labels, lines in sides:
        rest = lines.sum(axis=0) - lines
        sums = (lines == rest).all(axis=1) & (len(lines) > _TWO) & (lines.sum() > 0)
        for place, label in enumerate(labels):
            if sums[place] or label.strip().casefold() in _TOTALS:
                raise InputError(
                    f"The {what} {label!r} of the table of {where} looks like a total"
                    f"{f': it equals the sum of the other {what}s' if sums[place] else ''}. Leave totals out, because "
                    f"their records would count twice. If it is none, say so with no_totals (--no-totals)."
                )


def _from_frame(table: object, where: str) -> Labelled:
    from quadrille.io.frames.convert import to_polars

    frame = to_polars(table)
    if frame.width < _TWO:
        raise InputError(f"The table of {where} needs a first column of labels and at least one column of counts.")
    head, *names = frame.columns
    text = [name for name in names if not frame[name].dtype.is_numeric()]
    if text:
        raise InputError(f"Column {text[0]!r} of the table of {where} must hold counts. Only the first holds labels.")
    values = _numbers([frame[name].to_list() for name in names], where).T
    labels = ["" if label is None else str(label).strip() for label in frame[head].to_list()]
    _refuse_labels(labels, where)
    return Labelled(values, head, tuple(labels), tuple(names))


def _refuse_labels(labels: Sequence[str], where: str) -> None:
    """Refuse rows that cannot be told apart."""
    blank = sum(not label for label in labels)
    if blank:
        raise InputError(f"{blank:,} rows of the table of {where} have no label. Give every row its own.")
    twice = len(labels) - len(set(labels))
    if twice:
        raise InputError(
            f"{twice:,} rows of the table of {where} have the label of another row. Add them up, or name them apart."
        )


def _numbers(table: object, where: str) -> Floats:
    try:
        values = np.array(table, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"The table of {where} must hold numbers, with rows of equal length.") from None
    if values.ndim != _TWO or not values.size:
        raise InputError(f"The table of {where} must have rows and columns.")
    return values


def refuse_too_many(total: float, what: str) -> None:
    """Refuse more records than a float counts one by one."""
    if total > MOST_RECORDS:
        raise InputError(
            f"The {what} adds up to more than {MOST_RECORDS:,} records, beyond which sums are not exact. Check it."
        )


def _check(values: Floats, where: str) -> None:
    bad = int((~np.isfinite(values)).sum())
    if bad:
        raise InputError(f"The table of {where} is missing or infinite in {bad:,} cells. Write 0 for an empty cell.")
    negative = int((values < 0).sum())
    if negative:
        raise InputError(f"The table of {where} is negative in {negative:,} cells. It must hold counts.")
    if (np.rint(values) != values).any():
        raise InputError(f"The table of {where} must hold whole numbers: the formulas are for counts of records.")
    # Cut off first, because the sum of huge floats is infinite.
    refuse_too_many(float(np.minimum(values, 2.0 * MOST_RECORDS).sum()), f"table of {where}")
