"""How different two tables of areas and levels are: chi-square, effective swap rate, deviance, changes of diversity.

The first variable of the table is the area, the cross of the others are the levels. The first three measures look at
the changed cells only; the diversities look at every cell of the areas that the change touches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf, ldexp, log1p

import numpy as np
from numpy.typing import NDArray

from quadrille.cross import Cells
from quadrille.measure_base import EMPTY, NOTHING_CHANGED, Direction, Measure, Score, undefined
from quadrille.summary import Change, Tally

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Terms = Callable[[Floats], Floats]

REFERENCE = "Lemons, Dajani, You & Jordan (2014), US Census Bureau"
HASHED = "the table has too many possible cells to tell its areas apart; name fewer variables"
_POINT = 160
"""Bits after the point of a sum that is kept as a whole number: more than any sum of cubed shares uses."""


def _steps(change: Change) -> tuple[Floats, Floats, Floats]:
    """Return the cells that differ: f before, f′ after and f′ − f, in the unit of the weights.

    Whole numbers are subtracted wherever both sides are counted in the same ticks, so that nothing cancels.
    """
    unit, unit_after = change.per_unit, change.per_unit_after or change.per_unit
    f, g = change.old / unit, change.new / unit_after
    step = (change.new - change.old) / unit if unit == unit_after else g - f
    differs = step != 0
    return f[differs], g[differs], step[differs]


def _chi_square(f: Floats, g: Floats, step: Floats) -> tuple[float, float]:
    value = float((step**2 / f).sum())
    return value, value


def _deviance(f: Floats, g: Floats, step: Floats) -> tuple[float, float]:
    """Return 2 Σ f′ ln(f′/f), as 2 Σ ( f′ ln(f′/f) − (f′ − f) ) + 2 Σ (f′ − f).

    No term of the first sum is negative, and the second sum is 0 where the totals agree: little cancels.
    """
    logs = np.log1p(step / f, out=np.zeros_like(f), where=g > 0)
    return 2 * float((g * logs - step).sum()) + 2 * float(step.sum()), 2 * float(np.abs(step).sum())


def _over_cells(formula: Callable[[Floats, Floats, Floats], tuple[float, float]]) -> Callable[..., Score]:
    """Score a sum over the changed cells that is infinite where a cell was empty before and is not after.

    Such cells are counted and left out, unless `infinite` asks for the infinity.
    """

    def score(before: Tally, change: Change, *, infinite: int = 0) -> Score:
        if not change.total_old or not change.total_new:
            return undefined(EMPTY)
        f, g, step = _steps(change)
        occupied = f > 0
        zero = int((~occupied).sum())
        detail = {"cells_changed": len(f), "zero_cells": zero}
        if change.nothing_changed:
            return Score(0.0, detail, NOTHING_CHANGED)
        cells = f"{zero:,} {'cell was' if zero == 1 else 'cells were'} empty before and not after"
        if zero and infinite:
            return Score(inf, detail, cells)
        value, scale = formula(f[occupied], g[occupied], step[occupied])
        return Score(value, detail, f"{cells}: left out" if zero else "", scale=scale)

    return score


def _effective_swap_rate(before: Tally, change: Change) -> Score:
    """Half the sum of |f′ − f|, as a share of the total before."""
    if not change.total_old or not change.total_new:
        return undefined(EMPTY)
    _, _, step = _steps(change)
    detail = {"cells_changed": len(step)}
    if change.nothing_changed:
        return Score(0.0, detail, NOTHING_CHANGED)
    return Score(float(np.abs(step).sum()) / 2 / (change.total_old / change.per_unit), detail)


def shares_within(area: Cells, value: Ints) -> Floats:
    """Return each cell's share of its area, 0 where the area is empty; the cells of an area stand together."""
    first = np.flatnonzero(np.concatenate(([True], area[1:] != area[:-1])))
    total = np.repeat(np.add.reduceat(value, first), np.diff(np.append(first, len(area))))
    return np.divide(value, total, out=np.zeros(len(value)), where=total > 0)


def _touched(before: Tally, change: Change) -> tuple[Cells, Ints, Ints]:
    """Return every cell of the areas that the change lists: its area, its old and its new value."""
    stride = before.cross.strides[0]
    areas = np.unique(change.cells // stride)
    if before.keys is None:
        cells = (areas[:, None] * stride + np.arange(stride)).ravel()
    else:
        cells = np.union1d(before.keys[np.isin(before.keys // stride, areas)], change.cells)
    count, ticks = before.at(cells)
    old = count if ticks is None else ticks
    new = old.copy()
    new[np.searchsorted(cells, change.cells)] = change.new
    return cells // stride, old, new


def _over_shares(score: Callable[[Tally, Floats, Floats], tuple[float, float]]) -> Callable[[Tally, Change], Score]:
    """Score a formula over the shares within the areas that a change touches."""

    def scored(before: Tally, change: Change) -> Score:
        if not change.total_old or not change.total_new:
            return undefined(EMPTY)
        if change.nothing_changed:
            return Score(0.0, {"areas_touched": 0}, NOTHING_CHANGED)
        if not before.cross.exact:
            return undefined(HASHED)
        area, old, new = _touched(before, change)
        was, now = shares_within(area, old), shares_within(area, new)
        value, scale = score(before, was, now)
        return Score(value, {"areas_touched": len(np.unique(area[was != now]))}, scale=scale)

    return scored


def _squares(r: Floats) -> Floats:
    return r**2


def _logs(r: Floats) -> Floats:
    """Return r ln r, and 0 for r = 0."""
    return r * np.log(r, out=np.zeros_like(r), where=r > 0)


def _sum_of(terms: Terms) -> Callable[[Tally, Floats, Floats], tuple[float, float]]:
    """Return the sum of the differences of some terms, and the sum of their sizes."""

    def formula(before: Tally, was: Floats, now: Floats) -> tuple[float, float]:
        differences = terms(now) - terms(was)
        return float(differences.sum()), float(np.abs(differences).sum())

    return formula


def _renyi(before: Tally, was: Floats, now: Floats) -> tuple[float, float]:
    """Return ½ ( ln Σ r′³ − ln Σ r³ ), the sums over all areas."""
    # The sum before is a float, but kept as a whole number; both directions of the shift are exact.
    whole = ldexp(float(before.known("cubed shares", lambda: int(ldexp(_cubes(before), _POINT)))), -_POINT)
    change = float((now**3 - was**3).sum()) / whole
    return log1p(change) / 2, 1 / (1 + change)


def _cubes(before: Tally) -> float:
    cells = before.occupied()
    count, ticks = before.at(cells)
    r = shares_within(cells // before.cross.strides[0], count if ticks is None else ticks)
    return float((r**3).sum())


_COUNTS = "f and f′ the counts of area × level before and after (weighted totals where there is a weight)"
_SHARES = (
    "r and r′ the shares of the levels within each area before and after; positive: less diverse after. Where areas "
    "differ in composition a swap makes them more alike and the value negative: larger is not more perturbed"
)
_ZERO = "cells with f = 0 < f′ are left out and counted; infinite=1: ∞ if there are any"


def _measure(
    name: str,
    definition: str,
    score: Callable[..., Score],
    direction: Direction = "nearer 0",
    options: Mapping[str, int] | None = None,
) -> Measure:
    return Measure(
        name=name,
        side="loss",
        direction=direction,
        range=(0.0 if direction == "lower" else -inf, inf),
        definition=definition,
        reference=REFERENCE,
        layout="table",
        score=score,
        options=options or {},
    )


MEASURES = (
    _measure("chi_square", f"Σ (f′ − f)² / f, {_COUNTS}; {_ZERO}", _over_cells(_chi_square), "lower", {"infinite": 0}),
    _measure(
        "effective_swap_rate",
        f"½ Σ |f′ − f| / Σ f, {_COUNTS}: the smallest share of records whose move explains the difference; at most 1 "
        "where the totals agree",
        _effective_swap_rate,
        "lower",
    ),
    _measure(
        "deviance",
        f"2 Σ f′ ln(f′/f), {_COUNTS}; {_ZERO}; negative at times where cells are left out or totals differ",
        _over_cells(_deviance),
        options={"infinite": 0},
    ),
    _measure("gini_difference", f"Σ (r′² − r²), {_SHARES}", _over_shares(_sum_of(_squares))),
    _measure("shannon_difference", f"Σ (r′ ln r′ − r ln r), {_SHARES}", _over_shares(_sum_of(_logs))),
    _measure(
        "renyi_difference",
        f"½ ( ln Σ r′³ − ln Σ r³ ), the sums over all areas and levels, {_SHARES}",
        _over_shares(_renyi),
    ),
)
