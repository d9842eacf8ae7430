"""From a recipe and a file to the frame that targets are drawn from; refuses columns that cannot serve."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from quadrille.data import Column, Data
from quadrille.errors import InputError
from quadrille.swap.cells import Floats, constant_within, numbers_of
from quadrille.swap.groups import Ints, codes_of, group_ids
from quadrille.swap.targets import Flags, Frame
from quadrille.weights import to_ticks

if TYPE_CHECKING:
    from quadrille.swap.controlled import ControlledSwap

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
