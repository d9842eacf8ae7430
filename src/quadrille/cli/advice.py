"""Why a column is taken for what it is, and what to look at before swapping. No data values."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from quadrille.cli.advice_roles import geography, left_out, weights

if TYPE_CHECKING:
    from quadrille.data import Column, Data

MANY_CATEGORIES = 1000
FEW_RECORDS = 5
_PROGRAM = {"spss": "SPSS", "stata": "Stata", "sas": "SAS"}


def reason(column: Column, data: Data, declared: Collection[str]) -> str:
    """Say in a few words why a column has its kind and role."""
    variable = column.variable
    if variable.name in declared:
        return "as the codebook says"
    if variable.name == data.weight:
        return "named as the weight"
    if variable.name in data.codebook.geography:
        return "named as a level of geography"
    if variable.role == "id":
        return _why_identifier(column)
    stored = variable.stored
    if stored is None or not stored.measure:
        return _why_kind(column)
    said = f"{_PROGRAM[stored.program]} calls it {stored.measure}"
    same = "scale" if variable.kind == "numeric" else variable.kind
    return said if stored.measure == same else f"{_why_kind(column)}; {said}"


def _why_identifier(column: Column) -> str:
    from quadrille.frames.sorts import sort_of

    sort = sort_of(column.variable.name, column.variable.label)
    what = "text" if column.dtype == "String" else "numbers"
    if sort in ("direct", "short", "point"):
        why = "called like a name, an address or a number of a person"
    elif sort is not None:
        why = f"{what} with many different values, called like an identifier"
    elif what == "text":
        why = "text that is different in almost every record, or addresses of mail"
    else:
        why = "numbers that tell records apart: running or very large ones, or nominal ones that all differ"
    return f"{why}: left out of releases"


def _why_kind(column: Column) -> str:
    from quadrille.frames.identifiers import MOST_ORDINAL, tally

    variable, count = column.variable, f"{column.valid:,}"
    if not tally(column)[1]:
        return "every field is missing" + ("" if variable.categories else ", so there is nothing to tell the kind by")
    if unit := _counted_in(column):
        return f"dates or times that are kept as numbers: {unit}"
    if not variable.coded:
        return f"numbers, more than {MOST_ORDINAL} different or with decimals"
    if _is_moment(column):
        return "dates or times"
    if column.dtype == "Boolean":
        return "true or false"
    if variable.labels and all(variable.labels) and variable.stored is not None:
        return f"every value has a label in the file ({count})"
    if any(isinstance(value, str) for value in variable.categories):
        return f"text, {count} different" + ("" if variable.ordered else "; the alphabet is no order")
    return f"whole numbers, {count} different: at most {MOST_ORDINAL} are taken for ordered categories"


def checks(data: Data, declared: Collection[str] = ()) -> list[str]:
    """Return everything worth looking at before swapping; `declared` are the columns of the user's own codebook."""
    columns = [data[name] for name in data.columns]
    found = [hint for column in columns for hint in (*_of_column(column, data), *_labels(column))]
    return [*left_out(columns, declared), *found, *_order(columns), *weights(data), *geography(columns)]


def _of_column(column: Column, data: Data) -> list[str]:
    from quadrille.frames.identifiers import can_be_rounded, suspicion, tally

    name, role = column.variable.name, column.variable.role
    free = role not in ("id", "geography") and name != data.weight
    why, (distinct, present) = suspicion(column) if free else None, tally(column)
    if why is not None:
        if can_be_rounded(column):
            return [f"Column {name!r} {why}, so records can be matched with other files. Round it before a release."]
        return [
            f'Column {name!r} looks like an identifier: it {why}. Give it the role "id" in the codebook if it is one.'
        ]
    if free and not present:
        return [f"Column {name!r} has no value in any record. It cannot be swapped and tells nothing apart."]
    if free and distinct == 1 and present == data.n > 1:
        return [f"Column {name!r} has the same value in every record. It cannot be swapped and tells nothing apart."]
    return _recoding(column, data) if name in data.keys and role != "geography" else []


def _labels(column: Column) -> list[str]:
    """Name columns in which categories have the same label, so that nobody can tell them apart in a table."""
    labels = [label for label in column.variable.labels if label]
    if len(set(labels)) == len(labels):
        return []
    return [
        f"Categories of {column.variable.name!r} have the same label, so tables do not tell them apart. "
        "Give each its own label in the codebook, or merge them."
    ]


def _recoding(column: Column, data: Data) -> list[str]:
    """Suggest coarser categories where there are too many, or where many are nearly empty."""
    import numpy as np

    name = column.variable.name
    if column.valid > MANY_CATEGORIES:
        how = "cut it into classes of similar size" if column.variable.kind == "ordinal" else "group them"
        how = "years or months will do" if _is_moment(column) else how
        return [
            f"Column {name!r} has {column.valid:,} categories. Recode it into classes, "
            f'or give it a role such as "outcome" if it is no key variable. A dozen are usual: {how}.'
        ]
    counts = np.bincount(column.values, minlength=column.size)[: column.valid]
    rare = int(((counts > 0) & (counts < FEW_RECORDS)).sum())
    if data.n >= 20 * FEW_RECORDS and rare > 1 and rare * 2 > column.valid:
        how = "Merge neighbours" if column.variable.kind == "ordinal" else "Group similar ones"
        how = "Recode it into years or months" if _is_moment(column) else how
        return [
            f"{rare:,} of the {column.valid:,} categories of {name!r} have fewer than {FEW_RECORDS} records. "
            f"{how}, or leave the column out of the key."
        ]
    return []


def _is_moment(column: Column) -> bool:
    """Whether a column holds dates or times, also as text because missing codes stand among them."""
    from quadrille.io.stat_moments import was_moment

    if column.dtype.startswith(("Date", "Time")):
        return True
    texts = column.dtype == "String" and all(isinstance(value, str) for value in column.variable.categories)
    return texts and column.variable.coded and was_moment(column.variable) is not None


def _counted_in(column: Column) -> str:
    """Say what a column of numbers counts that its program shows as dates or times; nothing for other columns."""
    from quadrille.io.stat_dates import counted_in

    stored = column.variable.stored
    return "" if stored is None or _is_moment(column) else counted_in(stored.program, stored.format)


def _order(columns: Sequence[Column]) -> list[str]:
    """Name ordinal columns whose order is only the alphabet."""
    names = [c.variable.name for c in columns if c.variable.kind == "ordinal" and not c.variable.ordered]
    if not names:
        return []
    return [
        f"The order of the categories is missing for {', '.join(map(repr, names))}: ordinal, but in the order of the "
        "alphabet. List the categories in the codebook, lowest first."
    ]
