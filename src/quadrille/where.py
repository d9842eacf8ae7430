"""Which records a measure or a rule is about: conditions such as `Sex=Male & Age!=<25 & Edu=HS|Coll & Hours>=40`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite, nan
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from quadrille.codebook import Variable
from quadrille.data import Column, Data, missing_positions
from quadrille.errors import InputError

_EQUALITY = re.compile(r"\s*(?P<name>`[^`]+`|[^=!`]+?)\s*(?P<sign>!?=)\s*(?P<labels>.+?)\s*", re.DOTALL)
_COMPARISON = re.compile(
    r"\s*(?P<name>`[^`]+`|[^=!<>`]+?)\s*(?P<sign><=|>=|<|>)\s*(?P<bound>'[^']+'|\"[^\"]+\"|[^=|'\"<>]+?)\s*", re.DOTALL
)
"""A comparison has its sign right behind the name: `Age=<25` and `Over>60=yes` are equalities."""
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Condition:
    """One variable equals one of some labels, or none of them; with a `sign` it lies on one side of a bound."""

    variable: str
    labels: tuple[str, ...]
    negated: bool = False
    sign: str = ""

    def allowed(self, data: Data) -> Flags:
        """Tell, for each code of the variable, whether it meets the condition."""
        column = data.coded(self.variable, purpose="a condition (where=) of a measure")
        if self.sign:
            return _beyond(column, self.sign, self.labels[0])
        codes = [code for label in self.labels for code in _codes(column, label)]
        allowed = np.zeros(column.size, dtype=bool)
        allowed[codes] = True
        return ~allowed if self.negated else allowed

    def met(self, data: Data) -> Flags:
        """Tell, for each record, whether it meets the condition; the variable may also hold numbers."""
        column = data[self.variable]
        if column.variable.coded:
            return self.allowed(data)[column.values]
        marks = _missing_marks(column.variable)
        if self.sign:
            if self.labels[0] in marks:
                raise InputError(_missing_bound(column.variable))
            return cast("Flags", _COMPARE[self.sign](column.values, _number(self.labels[0], column.variable)))
        found = np.isin(column.values, [_number(label, column.variable) for label in self.labels if label not in marks])
        wanted = [marks[label] for label in self.labels if label in marks]
        if wanted or "" in self.labels:
            positions = missing_positions(column.values)
            found |= np.isin(positions, wanted)
            found |= np.isnan(column.values) & (positions < 0) & ("" in self.labels)
        return ~found if self.negated else found


@dataclass(frozen=True)
class Where:
    """Records that meet every condition."""

    conditions: tuple[Condition, ...]

    @classmethod
    def parse(cls, text: str) -> Where:
        """Read conditions joined by `&`; labels joined by `|`; names in backticks and labels in quotes if need be.

        >>> from quadrille.where import Where
        >>> Where.parse("Sex=Male & Hours>=40").variables
        ('Sex', 'Hours')
        """
        return cls(tuple(_condition(part) for part in split_outside_quotes(text, "&")))

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that decide."""
        return tuple(dict.fromkeys(condition.variable for condition in self.conditions))

    def met(self, data: Data) -> Flags:
        """Tell, for each record, whether it meets every condition."""
        met = np.ones(data.n, dtype=bool)
        for condition in self.conditions:
            met &= condition.met(data)
        return met


def _condition(text: str) -> Condition:
    match = _COMPARISON.fullmatch(text)
    if match is not None:
        return Condition(unquoted(match["name"]), (unquoted(match["bound"]),), sign=match["sign"])
    match = _EQUALITY.fullmatch(text)
    if match is None:
        raise InputError(
            f"The condition {text.strip()!r} is not understood. Write Sex=Male & Age!=<25|25-55, or Hours>=40."
        )
    labels = tuple(unquoted(label) for label in split_outside_quotes(match["labels"], "|"))
    return Condition(unquoted(match["name"]), labels, negated=match["sign"] == "!=")


def _missing_marks(variable: Variable) -> dict[str, int]:
    """Return the position of every missing code of numbers, by the code as text and by its label."""
    words = variable.value_labels
    codes = list(enumerate(variable.missing))
    return {words[value]: at for at, value in codes if value in words} | {str(value): at for at, value in codes}


def _codes(column: Column, label: str) -> list[int]:
    """Return the codes that a word stands for: a value, else every category and missing code with this label."""
    variable = column.variable
    if column.nullable and label == "":
        return [len(variable.values)]
    words = variable.value_labels
    values = [code for code, value in enumerate(variable.values) if str(value) == label]
    labelled = [code for code, value in enumerate(variable.values) if words.get(value) == label]
    if not values and not labelled:
        raise InputError(_no_category(variable))
    return values or labelled


def _beyond(column: Column, sign: str, bound: str) -> Flags:
    """Tell which codes lie on one side of a bound; missing ones never do.

    Categories that are numbers are compared with any number, others by their declared order.
    """
    variable = column.variable
    if variable.kind != "ordinal" or not variable.ordered:
        raise InputError(
            f"A condition compares column {variable.name!r}, whose categories have no order. Name categories with =, "
            "or declare the column ordinal, with its categories in order, in the codebook."
        )
    beyond = np.zeros(column.size, dtype=bool)
    numbers = not any(isinstance(value, str) for value in variable.categories)
    if numbers and bound not in variable.labels:
        limit = _number(bound, variable)
        beyond[: column.valid] = [_COMPARE[sign](float(value), limit) for value in variable.categories]
        return beyond
    code, *others = _codes(column, bound)
    if others:
        raise InputError(
            f"A condition compares column {variable.name!r} with a label that {len(others) + 1} categories share. "
            "Give the value of the one that is meant."
        )
    if code >= column.valid:
        raise InputError(_missing_bound(variable))
    beyond[: column.valid] = _COMPARE[sign](np.arange(column.valid), code)
    return beyond


def _number(text: str, variable: Variable) -> float:
    """Read a number to compare with; an empty text stands for an empty field."""
    if text == "":
        return nan
    try:
        found = float(text)
    except ValueError:
        found = nan
    if not isfinite(found):
        raise InputError(
            f"A condition compares column {variable.name!r}, which holds numbers, with something that is none."
        )
    return found


def _missing_bound(variable: Variable) -> str:
    return f"A condition compares column {variable.name!r} with a missing code, which is neither small nor large."


def _no_category(variable: Variable) -> str:
    return (
        f"A condition names a category that column {variable.name!r} does not have. "
        f"It has {len(variable.values):,}; `quadrille inspect --categories` lists them."
    )


def split_outside_quotes(text: str, separator: str) -> list[str]:
    """Split at a separator, but not inside quotes, backticks or brackets."""
    parts, depth, quote = [""], 0, ""
    for sign in text:
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"`":
            quote = sign
        elif sign in "([":
            depth += 1
        elif sign in ")]":
            depth -= 1
        if sign == separator and not quote and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return parts


def unquoted(text: str) -> str:
    """Strip spaces and one pair of quotes or backticks."""
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] in "'\"`" and text[-1] == text[0] else text
