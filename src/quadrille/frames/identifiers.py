"""Which columns identify persons or records: by what they are called and how many different values they have."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quadrille.data import Column
from quadrille.frames.sorts import Sort, asks, means_else, sort_of

MOST_ORDINAL = 50
"""Integers with at most this many distinct values are guessed to be ordinal."""

_MANY = 1_000
"""As many numbers of cases or households tell records apart, also where each has many records."""

_YES_OR_NO = 2
"""A column that is called like a thing of a person may tell whether there is one."""

_ANSWERS = 5
"""A question about a thing, such as has_phone, has at most as many answers."""

_NOTABLE = 20
"""From as many different values on, a released column that is called like a thing of a person is worth a warning."""

_FEW_ROWS = 50
"""A running number is recognised in files of more records."""


def names_identifier(name: str) -> bool:
    """Whether a name says that the column tells records apart: surname, ssn, id, caseId, hh_nr and the like."""
    return sort_of(name) is not None


def names_point(name: str) -> bool:
    """Whether a name is that of places on a map, which identify although they have decimals."""
    return sort_of(name) == "point"


def identifies(name: str, distinct: int, present: int, label: str = "") -> bool:
    """Whether a column of text or whole numbers with such a name and as many different values is an identifier.

    `present` counts the fields that are not empty. Duplicates and empty fields are tolerated, since real files have
    both; but few values are categories, whatever the column is called. A label counts where the name tells nothing,
    and less: it stands for more than a few values.
    """
    sort = sort_of(name)
    if sort is None:
        return distinct > MOST_ORDINAL and _identifies(sort_of("", label), distinct, present)
    return not (asks(name) and distinct <= _ANSWERS) and _identifies(sort, distinct, present)


def _identifies(sort: Sort | None, distinct: int, present: int) -> bool:
    match sort:
        case "direct":
            flag = distinct <= _YES_OR_NO and 2 * distinct <= present
            return distinct > MOST_ORDINAL or (10 * distinct > present and not flag)
        case "short" | "point":
            return distinct > MOST_ORDINAL or (distinct > _ANSWERS and nearly_all(distinct, present))
        case "record":
            return distinct >= _MANY or 10 * distinct > present > 0
        case "institution" | "row":
            return nearly_all(distinct, present)
        case None:
            return False


def tells_apart(distinct: int, present: int) -> bool:
    """Whether text identifies records whatever it is called: different in nearly every one of many."""
    return distinct > MOST_ORDINAL and nearly_all(distinct, present)


def nearly_all(distinct: int, present: int) -> bool:
    """Whether at least nine fields in ten have a value of their own."""
    return 10 * distinct >= 9 * present > 0


@dataclass
class Run:
    """Numbers that come in file order, batch by batch: do they count the records?

    They do when they are whole, rise from each record to the next, and either all steps are equal or the numbers are
    so dense that amounts would meet: of n amounts within a range r, about n^2 / (2 r) pairs are equal.
    """

    name: str
    rising: bool = True
    rows: int = 0
    first: float = 0.0
    last: float = 0.0
    step: float | None = None
    even: bool = True

    def __post_init__(self) -> None:
        """Amounts, years, areas and the like are no running numbers, though a file may list them one by one."""
        self.rising = not means_else(self.name)

    def extend(self, values: NDArray[np.float64]) -> None:
        """Go on with the next values; an empty field, as not a number, ends the run."""
        if not self.rising or not len(values):
            return
        if not np.isfinite(values).all():
            self.rising = False
            return
        steps = np.diff(values, prepend=self.last) if self.rows else np.diff(values)
        self.rising = bool((steps > 0).all() and (values == np.floor(values)).all())
        if self.rising and len(steps):
            self.step = float(steps[0]) if self.step is None else self.step
            self.even = self.even and bool((steps == self.step).all())
        self.first, self.last = self.first if self.rows else float(values[0]), float(values[-1])
        self.rows += len(values)

    @property
    def counts(self) -> bool:
        """Whether the numbers so far count records."""
        dense = 20 * (self.last - self.first) < self.rows**2
        return self.rising and self.rows > _FEW_ROWS and (self.even or dense)


def tally(column: Column) -> tuple[int, int]:
    """Count the different values of a column and the records that have one; missing codes are none."""
    coded = column.variable.coded
    values = column.values[column.values < column.valid] if coded else column.values[~np.isnan(column.values)]
    distinct = np.count_nonzero(np.bincount(values, minlength=1)) if coded else len(np.unique(values))
    return int(distinct), len(values)


def suspicion(column: Column) -> str | None:
    """Say what speaks for an identifier in a column that is not taken for one: to go on after "Column 'x' "."""
    variable, records = column.variable, len(column.values)
    distinct, present = tally(column)
    if variable.role == "id" or records < 2:
        return None
    if distinct == present and present >= records - 1:
        return "has a different value in every record"
    # Amounts are often different in most records; a number of persons differs in all but a few.
    if tells_apart(distinct, present) if variable.coded else 100 * distinct >= 99 * records:
        return "has a different value in nearly every record"
    sort = sort_of(variable.name, variable.label)
    if sort != "point" and has_decimals(column):
        return None
    if sort in ("direct", "short", "point") and distinct >= (_NOTABLE if sort == "direct" else MOST_ORDINAL):
        return "is called like a name, an address or a number of a person"
    if sort in ("record", "institution") and distinct > MOST_ORDINAL and variable.role is None:
        return "is called like an identifier and has many different values"
    return None


def can_be_rounded(column: Column) -> bool:
    """Whether a column holds amounts, by its decimals or its name: fewer digits make them less telling."""
    variable = column.variable
    if variable.coded or sort_of(variable.name, variable.label) is not None:
        return False
    return has_decimals(column) or means_else(variable.name)


def has_decimals(column: Column) -> bool:
    """Whether a column holds numbers that are not all whole."""
    if column.variable.coded:
        return False
    present = column.values[~np.isnan(column.values)]
    return not bool((present == np.floor(present)).all())
