"""Weights as whole numbers of ticks, so that sums are exact in any order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quadrille.errors import InputError

MOST_DECIMALS = 15
_TOTAL = 2.0**62
_LEAST = 2.0**-960


@dataclass(frozen=True, eq=False)
class Ticks:
    """Integer weights: weight = `values` / `per_unit`; `exact` when that is the file's weight to the last bit."""

    values: NDArray[np.int64]
    per_unit: float
    exact: bool


def to_ticks(weights: NDArray[np.float64], column: str) -> Ticks:
    """Turn weights into ticks: a decimal tick when one represents them exactly, else the finest binary one."""
    _refuse_bad(weights, column)
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    if not _LEAST < total < np.inf:
        raise InputError(f"The weights of column {column!r} add up beyond the range of numbers. Rescale them.")
    for decimals in range(MOST_DECIMALS + 1):
        per_unit = 10.0**decimals
        if total * per_unit >= _TOTAL:
            break
        if _represents(weights[:1000], per_unit) and _represents(weights, per_unit):
            return _frozen(np.rint(weights * per_unit), per_unit, exact=True)
    per_unit = 2.0 ** (61 - int(np.floor(np.log2(total))))
    if total * per_unit >= _TOTAL * 0.999:
        per_unit /= 2
    scaled = weights * per_unit
    ticks = np.rint(scaled)
    return _frozen(ticks, per_unit, exact=bool((ticks == scaled).all()))


def _represents(weights: NDArray[np.float64], per_unit: float) -> bool:
    return bool((np.rint(weights * per_unit) / per_unit == weights).all())


def _frozen(values: NDArray[np.float64], per_unit: float, *, exact: bool) -> Ticks:
    ticks = values.astype(np.int64)
    ticks.setflags(write=False)
    return Ticks(ticks, per_unit, exact)


def _refuse_bad(weights: NDArray[np.float64], column: str) -> None:
    missing = int(np.isnan(weights).sum())
    if missing:
        raise InputError(f"Weight column {column!r} is missing in {missing:,} rows. Fill or drop these rows.")
    bad = int((~np.isfinite(weights) | (weights < 0)).sum())
    if bad:
        raise InputError(
            f"Weight column {column!r} is negative or infinite in {bad:,} rows. Weights must be 0 or more."
        )
    if not weights.any():
        raise InputError(f"Weight column {column!r} is 0 in every row. Choose another weight column.")
