"""From a recipe and a file to cells, and to the frame from which the targets are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Codes, Column, Data, Flags, Floats, Ints, to_ticks
from quadrille.errors import InputError
from quadrille.randomness import Chooser, Stream, Words, draw_until_enough
from quadrille.recipe import half_up
from quadrille.swap.groups import codes_of, group_ids, sorted_by

if TYPE_CHECKING:
    from quadrille.swap.controlled import ControlledSwap


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


@dataclass(frozen=True, eq=False)
class Frame:
    """What the targets are drawn from: strata, the share of targets in each, sizes in ticks, must and never."""

    stratum: Ints
    share: Floats
    size: Ints
    must: Flags
    never: Flags

    def asked(self, h: int, records: int) -> int:
        """Return the number of targets of a stratum with so many records that may be drawn; halves go up."""
        return half_up(float(self.share[h]), records)


@dataclass(frozen=True, eq=False)
class Targets:
    """The rows drawn, ascending, which of them were certain by size, and the counts of each stratum."""

    rows: Ints
    certain: Ints
    strata: list[dict[str, int]]


def draw_targets(frame: Frame, order: Ints, stream: Stream) -> Targets:
    """Draw the targets; `order` lists all records in the order of the systematic draw."""
    by_stratum, start = sorted_by(frame.stratum[order], len(frame.share))
    chooser = Chooser(stream)
    rows: list[Ints] = [np.flatnonzero(frame.must)]
    certain: list[Ints] = []
    strata: list[dict[str, int]] = []
    for h in range(len(frame.share)):
        members = order[by_stratum[start[h] : start[h + 1]]]
        open_to = members[~frame.never[members]]
        must = int(frame.must[open_to].sum())
        asked = frame.asked(h, len(open_to))
        free = open_to[~frame.must[open_to]]
        sure, drawn = draw_stratum(free, frame.size[free], max(0, asked - must), chooser)
        rows += [sure, drawn]
        certain.append(sure)
        strata.append(
            {
                "records": len(members),
                "never": len(members) - len(open_to),
                "asked": asked,
                "must": must,
                "certain": len(sure),
                "drawn": len(drawn),
            }
        )
    return Targets(np.sort(np.concatenate(rows)), np.sort(np.concatenate(certain)), strata)


def draw_stratum(rows: Ints, size: Ints, count: int, chooser: Chooser) -> tuple[Ints, Ints]:
    """Return the rows that are certain by their size, and those drawn systematically, in the order given."""
    count = min(count, len(rows))
    sure = _certainties(size, count)
    rest = np.ones(len(rows), dtype=bool)
    rest[sure] = False
    left = count - len(sure)
    if left == 0:
        return rows[sure], rows[:0]
    total = int(size[rest].sum())
    start = 1 + chooser.below(total)
    return rows[sure], rows[rest][systematic(np.cumsum(size[rest]), left, start)]


def _certainties(size: Ints, count: int) -> Ints:
    """Take the largest while count * size is at least what is left of the total."""
    total = int(size.sum())
    if count * int(size.max(initial=0)) < total:
        return np.empty(0, dtype=np.int64)
    largest = np.argsort(-size, kind="stable")[:count]
    taken = 0
    for place in largest:
        if (count - taken) * int(size[place]) < total:
            break
        total -= int(size[place])
        taken += 1
    return largest[:taken]


def systematic(cumulated: Ints, count: int, start: int) -> Ints:
    """Return the places at which count * cumulated / total reaches start / total, 1 + start / total, ...

    `start` is in 1..total. With total = whole * count + part, the j-th point (start + j * total) / count is
    j * whole + (start + j * part) / count, which stays within 64 bits.
    """
    whole, part = divmod(int(cumulated[-1]), count)
    step = np.arange(count, dtype=np.int64)
    points = step * whole + -(-(start + step * part) // count)
    return np.searchsorted(cumulated, points, side="left")


_TRUE = {"1", "1.0", "true", "yes"}
_FALSE = {"0", "0.0", "false", "no"}


def frame_of(recipe: ControlledSwap, data: Data) -> Frame:
    """Gather strata, shares, sizes and the must and never records."""
    stratum, count = group_ids([codes_of(data, name) for name in recipe.stratum], data.n)
    must, never = flags_of(data, recipe.must, "must"), flags_of(data, recipe.never, "never")
    both = int((must & never).sum())
    if both:
        raise InputError(f"{both:,} records are in both 'must' and 'never' of ControlledSwap. Clear one of the two.")
    size = np.ones(data.n, dtype=np.int64)
    if recipe.size != 1:
        drawn = ~must & ~never
        size[drawn] = _sizes(data[recipe.size], never, drawn, stratum)
    if isinstance(recipe.targets, str):
        share = _shares(data[recipe.targets], stratum, count)
    else:
        share = np.full(count, recipe.targets)
    return Frame(stratum, share, size, must, never)


def stratum_labels(recipe: ControlledSwap, data: Data, frame: Frame) -> list[str]:
    """Return a label for every stratum: the values of its columns."""
    leader = np.zeros(len(frame.share), dtype=np.int64)
    leader[frame.stratum] = np.arange(data.n)
    if not recipe.stratum:
        return ["all records"] * len(leader)
    parts = [_labels(data[name], leader) for name in recipe.stratum]
    return [", ".join(row) for row in zip(*parts, strict=True)]


def _labels(column: Column, rows: Ints) -> list[str]:
    if not column.variable.coded:
        return [f"{column.variable.name} = {value:g}" for value in column.values[rows]]
    return [f"{column.variable.name} = {column.labels[code]}" for code in column.values[rows]]


def flags_of(data: Data, name: str | None, parameter: str, owner: str = "ControlledSwap") -> Flags:
    """Return a column of true and false, false for all where none is named."""
    if name is None:
        return np.zeros(data.n, dtype=bool)
    column = data[name]
    place = f"Column {name!r}, given as '{parameter}' of {owner},"
    if not column.variable.coded:
        values: NDArray[np.bool_] = column.values == 1
        unknown = ~values & (column.values != 0)
        return _known(values, unknown, place)
    text = [str(value).lower() for value in column.variable.categories]
    if not set(text) <= _TRUE | _FALSE:
        raise InputError(f"{place} must hold true or false, or 1 and 0, and has other categories. Recode it.")
    true = np.array([*(each in _TRUE for each in text), *([False] * (column.size - column.valid))], dtype=bool)
    return _known(true[column.values], column.values >= column.valid, place)


def _known(values: Flags, unknown: Flags, place: str) -> Flags:
    count = int(unknown.sum())
    if count:
        raise InputError(f"{place} is neither true nor false in {count:,} rows. Write 1 or 0 in every row.")
    return values


def _numbers(column: Column, parameter: str) -> Floats:
    values = numbers_of(column)
    if values is None:
        name = column.variable.name
        raise InputError(f"Column {name!r}, '{parameter}' of ControlledSwap, must hold numbers. It holds text.")
    return values


def _sizes(column: Column, never: Flags, drawn: Flags, stratum: Ints) -> Ints:
    """Return the sizes of the records that may be drawn, in ticks; only those of one stratum are compared."""
    values = _numbers(column, "size")
    bad = int((~((values > 0) & np.isfinite(values)) & ~never).sum())
    if bad:
        raise InputError(
            f"Column {column.variable.name!r}, given as 'size' of ControlledSwap, is missing, 0, negative or infinite "
            f"in {bad:,} rows. Sizes must be above 0; name records that must not be drawn with 'never'."
        )
    values, stratum = values[drawn], stratum[drawn]
    largest = np.zeros(int(stratum.max(initial=-1)) + 1)
    np.maximum.at(largest, stratum, values)
    scaled = np.ldexp(values, -np.frexp(largest)[1][stratum])
    return np.maximum(to_ticks(scaled, column.variable.name).values, 1) if len(scaled) else stratum


def _shares(column: Column, stratum: Ints, count: int) -> Floats:
    values = _numbers(column, "targets")
    place = f"Column {column.variable.name!r}, given as 'targets' of ControlledSwap,"
    bad = int((~((values >= 0) & (values < 0.5))).sum())
    if bad:
        raise InputError(f"{place} is missing or outside [0, 0.5) in {bad:,} rows. It must be a share of targets.")
    share, varies = constant_within(values, stratum, count)
    if varies:
        raise InputError(f"{place} varies within {varies:,} of {count:,} strata. Give each stratum one share.")
    return share
