"""What plain tables do not hold: delimited text knows no types, and neither it nor Parquet knows labels and formats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from quadrille.codebook import Variable
from quadrille.data import Column, Data
from quadrille.io.frames import NOT_A_NUMBER
from quadrille.io.stat.dates import counted_in

_LOOK_ALIKE = "the missing code that is an empty text and a missing value look alike"
_EMPTY = 'an empty text is written as "" and a missing value as nothing; only the codebook tells the two apart'
_INFINITE = "infinite numbers are written as inf, which is a number with the codebook only"
_ZONE = "the time zone is not kept; the moments are in UTC"
_MOMENTS = "dates and times are written as text (ISO 8601) and read back as text"
_ORDER = "the order of the categories is not in the file; write the codebook too"
_KINDS_OF_MOMENTS = ("Date", "Datetime", "Time")
_NARROW = "numbers of fewer than 64 bits are read back with 64 bits"
_DECIMALS = "decimal numbers are read back as binary ones or as text"
_WORDS = "labels and missing codes are not in the file; write the codebook too"
_FORMATS = (
    "Display formats, storage types and levels of measurement of the original are not in the file; "
    "write the codebook too."
)

NO_ORDER = "the order of the categories cannot be read from the file; list them in the codebook"
NEEDS_ARROW = "the order of the categories is read with pyarrow only; install it, or list them in the codebook"
_OF_COLUMNS = (NOT_A_NUMBER, NO_ORDER, NEEDS_ARROW)
"""What reading says about single columns."""


@dataclass
class NotHeld:
    """What a file does not hold, by reason, with the columns that it concerns."""

    found: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    general: list[str] = field(default_factory=list[str])

    def add(self, column: str, reason: str) -> None:
        """Note what is not held of one column."""
        names = self.found.setdefault(reason, [])
        if column not in names:
            names.append(column)

    def whole(self, line: str) -> None:
        """Note something about the whole file."""
        self.general.append(line)

    def lines(self) -> tuple[str, ...]:
        """Return one line per reason."""
        return (*self.general, *(f"{', '.join(names)}: {reason}." for reason, names in self.found.items()))


def remarked(data: Data) -> tuple[str, ...]:
    """Say what was left behind at reading: about the file as a whole, and about the columns that are still there."""
    not_held = NotHeld()
    for line in data.remarks:
        reason = next((reason for reason in _OF_COLUMNS if line.endswith(f": {reason}.")), None)
        name = line.removesuffix(f": {reason}.")
        if reason is None:
            not_held.whole(line)
        elif name in data.columns:
            not_held.add(name, reason)
    return not_held.lines()


def lines_of(reasons: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return one line per reason from pairs of a column and a reason."""
    not_held = NotHeld()
    for name, reason in reasons:
        not_held.add(name, reason)
    return not_held.lines()


def not_in_text(data: Data) -> tuple[str, ...]:
    """Say what delimited text does not keep, also with the codebook."""
    return lines_of((name, reason) for name in data.columns for reason in _not_kept(data[name]))


def _not_kept(column: Column) -> Iterator[str]:
    """Yield what delimited text does not keep of one column."""
    variable, kind = column.variable, column.dtype.partition("[")[0]
    numbers = [value for value in variable.values if isinstance(value, float)] if variable.coded else column.values
    if np.isinf(numbers).any():
        yield _INFINITE
    if "" in variable.missing and column.nullable:
        yield _LOOK_ALIKE
    if "" in variable.categories and np.any(column.values == variable.categories.index("")):
        yield _EMPTY
    if kind == "Datetime" and "null" not in column.dtype:
        yield _ZONE
    if kind in _KINDS_OF_MOMENTS and variable.stored is None:
        yield _MOMENTS
    if kind in ("Float16", "Float32"):
        yield _NARROW
    if kind == "Decimal":
        yield _DECIMALS


def moments_left(data: Data) -> tuple[str, ...]:
    """Name the dates and times of a statistics program that delimited text leaves to the codebook."""
    reason = f"{_MOMENTS}; write the codebook too"
    stored = (name for name in data.columns if data[name].variable.stored is not None)
    return lines_of((name, reason) for name in stored if data[name].dtype.partition("[")[0] in _KINDS_OF_MOMENTS)


def orders_left(data: Data) -> tuple[str, ...]:
    """Name the columns whose ordered categories came with the data, which only Parquet and the codebook keep."""
    ordinal = (name for name in data.columns if data[name].variable.kind == "ordinal")
    return lines_of((name, _ORDER) for name in ordinal if data[name].dtype.startswith("Enum"))


def numbers_of_moments(data: Data) -> tuple[str, ...]:
    """Name the columns that a statistics program shows as dates or times, but that are numbers in a plain table."""
    units = [(v, counted_in(v.stored.program, v.stored.format)) for v in data.codebook if v.stored]
    return lines_of(
        (variable.name, f"dates or times are written as numbers: {unit}")
        for variable, unit in units
        if unit and not any(isinstance(value, str) for value in variable.categories) and _holds_numbers(data, variable)
    )


def _holds_numbers(data: Data, variable: Variable) -> bool:
    return not variable.coded or not data[variable.name].dtype.startswith(("Date", "Time", "String"))


def words_left(data: Data) -> tuple[str, ...]:
    """Say which words and formats of a statistics program a plain table leaves to the codebook."""
    stored = [variable for variable in data.codebook if variable.stored]
    described = (v for v in stored if v.label or v.value_labels or v.missing or v.missing_ranges)
    formatted = any(v.stored.format or v.stored.type or v.stored.measure for v in stored if v.stored)
    return (*lines_of((v.name, _WORDS) for v in described), *([_FORMATS] if formatted else []))
