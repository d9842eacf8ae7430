"""Cells for controlled swapping: observed combinations of boundary and swap variables, in category order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Codes, Column, Data
from quadrille.errors import InputError
from quadrille.randomness import Stream, Words, draw_until_enough
from quadrille.swap.groups import Ints, codes_of, group_ids, sorted_by

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Cells:
    """The cell of every record; `zone` and `swapped` give each cell's zone and its swap values, (cells, variables)."""

    cell: Ints
    zone: Ints
    swapped: NDArray[np.int32]

    @property
    def count(self) -> int:
        """Number of cells."""
        return len(self.zone)


def make_cells(zone: tuple[Ints, int], swap: Sequence[tuple[Codes, int]]) -> Cells:
    """Number the observed combinations of zone and swap values, lexicographically."""
    ids, zones = zone
    cell, count = group_ids([(ids, zones), *swap], len(ids))
    leader = np.zeros(count, dtype=np.int64)
    leader[cell] = np.arange(len(cell))
    swapped = np.stack([codes[leader] for codes, _ in swap], axis=1).astype(np.int32)
    return Cells(cell, ids[leader], swapped)


def zones_of(data: Data, boundary: Sequence[str]) -> tuple[Ints, int]:
    """Number the observed combinations of the boundary variables; a missing value is a category of its own."""
    return group_ids([codes_of(data, name) for name in boundary], data.n)


def require_order(column: Column) -> None:
    """Refuse categories that are text in no declared order: neighbours would mean nothing."""
    variable = column.variable
    if variable.coded and not variable.ordered and len(variable.categories) > 2:
        raise InputError(
            f"Column {variable.name!r} holds text whose categories have no declared order, and controlled swapping "
            "looks for partners in neighbouring categories. List its categories in order in a codebook."
        )


def numbers_of(column: Column) -> Floats | None:
    """Return the values as numbers, NaN where missing; None when its categories are no numbers."""
    if not column.variable.coded:
        return column.values
    by_code = _numeric_categories(column)
    if by_code is None:
        return None
    padded = np.full(column.size, np.nan)
    padded[: len(by_code)] = by_code
    return padded[column.values]


def constant_within(values: Floats, group: Ints, count: int) -> tuple[Floats, int]:
    """Return the value of each group, and in how many groups it varies."""
    low, high = np.full(count, np.inf), np.zeros(count)
    np.minimum.at(low, group, values)
    np.maximum.at(high, group, values)
    return high, int((low != high).sum())


def scale_of(column: Column) -> Floats:
    """Return x of the swapping bias for each code: numeric categories as they are, else positions.

    Missing is one category, a step above the largest.
    """
    numeric = _numeric_categories(column)
    known = np.arange(column.valid, dtype=np.float64) if numeric is None else numeric
    return np.append(known, np.full(max(column.size - column.valid, 1), float(known.max(initial=-1.0)) + 1))


def _numeric_categories(column: Column) -> Floats | None:
    categories = column.variable.categories
    if any(isinstance(value, str) for value in categories):
        return None
    return np.array(categories, dtype=np.float64)


def impute(codes: Codes, valid: int, zone: tuple[Ints, int], stream: Stream, name: str) -> Codes:
    """Replace missing codes by that of a record drawn uniformly from those of the zone that have a value."""
    missing = np.flatnonzero(codes >= valid)
    if not len(missing):
        return codes
    known = np.flatnonzero(codes < valid)
    ids, zones = zone
    order, start = sorted_by(ids[known], zones)
    empty = start[ids[missing] + 1] == start[ids[missing]]
    if empty.any():
        raise InputError(
            f"Column {name!r} has no value at all in a zone of the boundary variables, for {int(empty.sum()):,} "
            'records, so none can be imputed. Use on_missing="category", or a coarser boundary.'
        )

    def attempt(words: Words) -> Ints | None:
        dice = kernels.dice(words)
        places = kernels.pick_from_groups(ids[missing], start, dice)
        return None if dice.cursor[1] else places

    places = draw_until_enough(attempt, stream, guess=len(missing) + 64)
    filled = codes.copy()
    filled[missing] = codes[known[order[places]]]
    return filled
