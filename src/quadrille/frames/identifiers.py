"""Which columns identify persons or records: by what they are called and how many different values they have."""

from __future__ import annotations

from typing import Literal

import numpy as np

from quadrille.data import Column
from quadrille.frames.identifier_words import (
    AREAS,
    ENTITIES,
    FLAGS,
    NAMES,
    NUMBERED,
    NUMBERS,
    PERSONAL,
    PERSONS,
    ROWS,
    SERIAL,
)
from quadrille.frames.names import head

MOST_ORDINAL = 50
"""Integers with at most this many distinct values are guessed to be ordinal."""

_YES_OR_NO = 2
"""A column that is called like a thing of a person may tell whether there is one."""

_NOTABLE = 5
"""From as many different values on, a released column that is called like a thing of a person is worth a warning."""

Sort = Literal["direct", "record", "row"]
"""A name, address or number of a person; the number of a case, a household or the like; the number of a row."""


def sort_of(name: str) -> Sort | None:
    """Say what a name tells: words in any case and several languages, joined or not. None when it tells nothing.

    >>> from quadrille.frames.identifiers import sort_of
    >>> [sort_of(name) for name in ("first_name", "SSN_text", "PersonNumber", "hhid", "country_name", "phone_owner")]
    ['direct', 'direct', 'record', 'record', None, None]
    """
    words = head(name)
    if not words or words[0] in FLAGS:
        return None
    tails = ["".join(words[start:]) for start in range(len(words))]
    if any(tail in PERSONAL or _numbered(tail) for tail in tails) or _is_name(words):
        return "direct"
    if set(words[:-1]) & AREAS:
        return None
    if any(tail in SERIAL or _counted(tail) for tail in tails) or (words[0] == "id" and words[-1] in ENTITIES):
        return "record"
    return "row" if "".join(words) in ROWS else None


def _is_name(words: tuple[str, ...]) -> bool:
    """Whether the last word is "name" in some language and those before say that it is a person's."""
    return words[-1] in NAMES and all(word in PERSONS or len(word) == 1 for word in words[:-1])


def _numbered(tail: str) -> bool:
    """Whether a word is an official matter of a person and a word for number: taxnumber, passport_no."""
    return any(tail.endswith(number) and tail.removesuffix(number) in NUMBERED for number in NUMBERS)


def _counted(tail: str) -> bool:
    """Whether a word is somebody or something counted one by one and a word for number: caseid, PersonNumber."""
    return any(tail.endswith(number) and tail.removesuffix(number) in ENTITIES for number in NUMBERS)


def names_identifier(name: str) -> bool:
    """Whether a name says that the column tells records apart: surname, ssn, id, caseId, hh_nr and the like."""
    return sort_of(name) is not None


def identifies(name: str, distinct: int, present: int) -> bool:
    """Whether a column of text or whole numbers with such a name and as many different values is an identifier.

    `present` counts the fields that are not empty. Duplicates and empty fields are tolerated, since real files have
    both; but few values are categories, whatever the column is called.
    """
    sort = sort_of(name)
    if sort == "direct":
        flag = distinct <= _YES_OR_NO and 2 * distinct <= present
        return distinct > MOST_ORDINAL or (10 * distinct > present and not flag)
    return nearly_all(distinct, present) if sort == "row" else sort == "record" and 10 * distinct > present > 0


def tells_apart(distinct: int, present: int) -> bool:
    """Whether text identifies records whatever it is called: different in nearly every one of many."""
    return distinct > MOST_ORDINAL and nearly_all(distinct, present)


def nearly_all(distinct: int, present: int) -> bool:
    """Whether at least nine fields in ten have a value of their own."""
    return 10 * distinct >= 9 * present > 0


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
    sort = sort_of(variable.name) if variable.coded or _whole(column) else None
    if sort == "direct" and distinct >= _NOTABLE:
        return "is called like a name, an address or a number of a person"
    if sort == "record" and distinct > MOST_ORDINAL and variable.role is None:
        return "is called like an identifier and has many different values"
    return None


def _whole(column: Column) -> bool:
    present = column.values[~np.isnan(column.values)]
    return bool((present == np.floor(present)).all())
