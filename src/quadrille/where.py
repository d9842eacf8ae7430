"""Which records a measure is about: conditions such as `Sex=Male & Age!=<25 & Edu=HS|Coll`."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quadrille.codebook import Variable
from quadrille.data import Column, Data
from quadrille.errors import InputError

_CONDITION = re.compile(r"\s*(?P<name>`[^`]+`|[^=!`]+?)\s*(?P<sign>!?=)\s*(?P<labels>.+?)\s*", re.DOTALL)


@dataclass(frozen=True)
class Condition:
    """One variable equals one of some labels, or none of them."""

    variable: str
    labels: tuple[str, ...]
    negated: bool = False

    def allowed(self, data: Data) -> NDArray[np.bool_]:
        """Tell, for each code of the variable, whether it meets the condition."""
        column = data.coded(self.variable, purpose="where")
        codes = [_code(column, label) for label in self.labels]
        allowed = np.zeros(column.size, dtype=bool)
        allowed[codes] = True
        return ~allowed if self.negated else allowed


@dataclass(frozen=True)
class Where:
    """Records that meet every condition."""

    conditions: tuple[Condition, ...]

    @classmethod
    def parse(cls, text: str) -> Where:
        """Read conditions joined by `&`; labels joined by `|`; names in backticks and labels in quotes if need be."""
        return cls(tuple(_condition(part) for part in split_outside_quotes(text, "&")))

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that decide."""
        return tuple(dict.fromkeys(condition.variable for condition in self.conditions))


def _condition(text: str) -> Condition:
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise InputError(f"The condition {text.strip()!r} is not understood. Write where=Sex=Male & Age!=<25|25-55.")
    labels = tuple(unquoted(label) for label in split_outside_quotes(match["labels"], "|"))
    return Condition(unquoted(match["name"]), labels, negated=match["sign"] == "!=")


def _code(column: Column, label: str) -> int:
    variable = column.variable
    if column.nullable and label == "":
        return len(variable.values)
    for known in (tuple(map(str, variable.values)), variable.labels):
        if label in known:
            return known.index(label)
    raise InputError(_no_category(variable))


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
