"""Missing codes: those that a range declares, texts among numbers, and the way from positions to codes and back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from quadrille.codebook import Value, Variable
from quadrille.data import FIRST_MISSING

Marks = list[tuple[int, pl.Series]]
"""Positions of missing codes in `Variable.missing`, each with the rows that hold it."""


def with_found_codes(variable: Variable, numbers: pl.Series) -> Variable:
    """Add the numbers found inside the missing ranges to the missing codes, in ascending order."""
    if not variable.missing_ranges or not numbers.dtype.is_numeric():
        return variable
    inside = pl.Series([False]).new_from_index(0, len(numbers))
    for low, high in variable.missing_ranges:
        inside |= ((numbers >= low) & (numbers <= high)).fill_null(value=False)
    known = {code for code in variable.missing if not isinstance(code, str)}
    found: list[Value] = [code for code in numbers.filter(inside).unique().sort().to_list() if code not in known]
    if not found:
        return variable
    labels = (*(variable.missing_labels or [""] * len(variable.missing)), *[""] * len(found))
    return replace(variable, missing=(*variable.missing, *found), missing_labels=labels if any(labels) else ())


def without_marks(text: pl.Series, variable: Variable) -> tuple[pl.Series, Marks]:
    """Take missing codes that are text out of a column of numbers; return the rest and where each code was."""
    marks = [
        (position, (text == code).fill_null(value=False))
        for position, code in enumerate(variable.missing)
        if isinstance(code, str)
    ]
    for _, mark in marks:
        text = text.set(mark, None)
    return text, [(position, mark) for position, mark in marks if mark.any()]


def mark_numbers(values: NDArray[np.float64], missing: tuple[Value, ...], marks: Marks) -> None:
    """Replace missing codes by NaNs that carry their position, in place."""
    codes = sorted((float(code), position) for position, code in enumerate(missing) if not isinstance(code, str))
    if codes:
        numbers, positions = np.array([code for code, _ in codes]), np.array([position for _, position in codes])
        nearest = np.minimum(np.searchsorted(numbers, values), len(numbers) - 1)
        at = np.flatnonzero(numbers[nearest] == values)
        values[at] = (positions[nearest[at]] + FIRST_MISSING).astype(np.int64).view(np.float64)
    for position, mark in marks:
        values[mark.to_numpy()] = np.int64(FIRST_MISSING + position).view(np.float64)


def text_of(value: Value) -> str:
    """Write a value as text; a whole float without its decimals, as the text of a file has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)
