"""Why a column is taken for what it is, and what to look at before swapping. No data values."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quadrille.data import Column, Data

MANY_CATEGORIES = 1000
FEW_RECORDS = 5
_PROGRAM = {"spss": "SPSS", "stata": "Stata", "sas": "SAS"}
_PLACE = re.compile(
    r"region|state|province|canton|county|district|municip|commune|tract|block|ward|nuts|zip|plz|postal", re.IGNORECASE
)
_WEIGHT = re.compile(r"(?:^|[_ .-])(?:w|wt|wgt|wght|weight|gewicht|[a-z]?weight|finalwt|fnlwgt)[0-9]*$", re.IGNORECASE)


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
    if stored is not None and stored.measure == variable.kind:
        return f"{_PROGRAM[stored.program]} calls it {stored.measure}"
    return _why_kind(column)


def _why_identifier(column: Column) -> str:
    if column.dtype == "String":
        return "text that is different in almost every record: an identifier, left out of releases"
    return "numbers that tell records apart, by their name or size: an identifier, left out of releases"


def _why_kind(column: Column) -> str:
    from quadrille.frames.columns import MOST_ORDINAL

    variable, count = column.variable, f"{column.valid:,}"
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


def checks(data: Data) -> list[str]:
    """Return everything worth looking at before swapping, most urgent first."""
    columns = [data[name] for name in data.columns]
    found = [hint for column in columns for hint in _of_column(column, data)]
    return [*found, *_order(columns), *_weights(data), *_geography(columns)]


def _of_column(column: Column, data: Data) -> list[str]:
    import numpy as np

    from quadrille.frames.columns import names_identifier

    name, role = column.variable.name, column.variable.role
    distinct = len(np.unique(column.values))
    free = role not in ("id", "geography") and name != data.weight
    if free and 1 < data.n == distinct:
        return [
            f"Column {name!r} looks like an identifier: it has a different value in every record. "
            'Give it the role "id" in the codebook if it is one.'
        ]
    if distinct == 1 and data.n > 1 and free:
        return [f"Column {name!r} has the same value in every record. It cannot be swapped and tells nothing apart."]
    if role is None and free and names_identifier(name) and distinct > data.n // 10:
        return [
            f"Column {name!r} is called like an identifier, of a household perhaps. Give it the role "
            '"id" or "unit" in the codebook: it is released otherwise.'
        ]
    return _recoding(column, data) if name in data.keys and role != "geography" else []


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
    return column.dtype.startswith(("Date", "Time"))


def _order(columns: Sequence[Column]) -> list[str]:
    """Name ordinal columns whose order is only the alphabet."""
    names = [c.variable.name for c in columns if c.variable.kind == "ordinal" and not c.variable.ordered]
    if not names:
        return []
    return [
        f"The order of the categories is missing for {', '.join(map(repr, names))}: ordinal, but in the order of the "
        "alphabet. List the categories in the codebook, lowest first."
    ]


def _weights(data: Data) -> list[str]:
    """Look at the sum of the weights, or for a weight that nobody named."""
    if data.ticks is None or data.weight is None:
        numbers = [v for v in data.codebook if v.role is None and not any(isinstance(c, str) for c in v.categories)]
        named = [v.name for v in numbers if _WEIGHT.search(v.name)]
        return [f"Column {named[0]!r} is called like a weight. If it is one, add: --weight {named[0]}"] if named else []
    hints: list[str] = []
    if not data.ticks.exact:
        hints.append(
            f"The weights in {data.weight!r} have more digits than fit and are rounded, "
            "each by less than one part in 10^15 of their sum."
        )
    total = int(data.ticks.values.sum()) / data.ticks.per_unit
    if abs(total - data.n) > 0.005 * data.n and total < data.n:
        hints.append(
            f"The weights in {data.weight!r} sum to less than the number of records. Weights that count persons sum to "
            "the population, others to the number of records: check whether this is the right column."
        )
    elif abs(total - round(total)) > 1e-9 * total and abs(total - data.n) > 0.005 * data.n:
        hints.append(
            f"The weights in {data.weight!r} sum neither to the number of records nor to a whole number. "
            "Check the sum against the published population: records or digits may be lost."
        )
    return hints


def _geography(columns: Sequence[Column]) -> list[str]:
    """Look for areas inside areas among columns that are called like places and have no role."""
    import numpy as np

    places = [c for c in columns if c.variable.coded and c.variable.role is None and _PLACE.search(c.variable.name)]
    places = sorted((c for c in places if c.valid > 1), key=lambda c: c.valid)
    hints: list[str] = []
    for coarse, fine in pairwise(places):
        pairs = np.unique(np.stack([fine.values.astype(np.int64), coarse.values.astype(np.int64)]), axis=1)
        torn = int((np.bincount(pairs[0]) > 1).sum())
        names = f"{coarse.variable.name!r} and {fine.variable.name!r}"
        if not torn and coarse.valid < fine.valid:
            levels = f"{coarse.variable.name},{fine.variable.name}"
            hints.append(f"Columns {names} look like areas inside areas. If they are, add: --geography {levels}")
        elif torn:
            hints.append(
                f"Columns {names} are called like areas but are not nested: {torn:,} areas of {fine.variable.name!r} "
                f"lie in several of {coarse.variable.name!r}. Levels of geography must be nested."
            )
    return hints
