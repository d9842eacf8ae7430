"""How different two tables of areas and levels are: chi-square, effective swap rate, deviance, changes of diversity.

The first variable of the table is the area, the cross of the others are the levels. The first three measures look at
the changed cells only; the diversities look at every cell of the areas that the change touches.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, ldexp, log1p

import numpy as np

from quadrille.data import Cells
from quadrille.measure.areas import Areas, Floats, Grouped, Ints, steps
from quadrille.measure.base import EMPTY, NOTHING_CHANGED, Direction, Measure, Score, option, undefined
from quadrille.params import Param
from quadrille.summary import Change, Tally

Terms = Callable[[Floats], Floats]

REFERENCE = "Lemons, Dajani, You & Jordan (2014), US Census Bureau"
HASHED = "the table has too many possible cells to tell its areas apart; name fewer variables"
_POINT = 160
"""Bits after the point of a sum that is kept as a whole number: more than any sum of cubed shares uses."""


Sums = tuple[Floats, ...]
"""Terms per cell; they are added up one kind after the other, so that what cancels within a kind does so first."""


def _chi_square(f: Floats, g: Floats, step: Floats) -> Sums:
    return (step**2 / f,)


def _deviance(f: Floats, g: Floats, step: Floats) -> Sums:
    """Return the terms of 2 Σ f′ ln(f′/f), as 2 Σ ( f′ ln(f′/f) − (f′ − f) ) + 2 Σ (f′ − f).

    No term of the first sum is negative, and the second sum is 0 where the totals agree: little cancels.
    """
    logs = np.log1p(step / f, out=np.zeros_like(f), where=g > 0)
    return 2 * (g * logs - step), 2 * step


def _over_cells(terms: Callable[[Floats, Floats, Floats], Sums]) -> Callable[..., Score]:
    """Score a sum over the changed cells that is infinite where a cell was empty before and is not after.

    Such cells are counted and left out, unless `infinite` asks for the infinity.
    """

    def score(before: Tally, change: Change, *, infinite: int = 0) -> Score:
        if not change.total_old or not change.total_new:
            return undefined(EMPTY)
        f, g, step = steps(change)
        zero = int(((f == 0) & (step != 0)).sum())
        detail = {"cells_changed": int((step != 0).sum()), "zero_cells": zero}
        if change.nothing_changed:
            return Score(0.0, detail, NOTHING_CHANGED)
        if zero and infinite:
            return Score(inf, detail, zero_note(zero, left_out=False))
        kept = (f > 0) & (step != 0)
        added = terms(f[kept], g[kept], step[kept])
        value = sum(float(part.sum()) for part in added)
        return Score(value, detail, zero_note(zero) if zero else "", scale=float(np.abs(added[-1]).sum()))

    return score


def _cells_by_area(terms: Callable[[Floats, Floats, Floats], Sums]) -> Callable[..., Grouped]:
    """Add up the same terms within each area."""

    def grouped(areas: Areas, *, infinite: int = 0) -> Grouped:
        f, g, step = areas.values
        zero = areas.counts((f == 0) & (step != 0))
        kept = (f > 0) & (step != 0)
        value = np.zeros(len(areas))
        for part in terms(f[kept], g[kept], step[kept]):
            every = np.zeros(len(f))
            every[kept] = part
            value += areas.sums(every)
        return np.where(zero > 0, inf, value) if infinite else value, zero

    return grouped


def zero_note(zero: int, *, left_out: bool = True) -> str:
    """Say how many cells were empty before and not after."""
    cells = f"{zero:,} {'cell was' if zero == 1 else 'cells were'} empty before and not after"
    return f"{cells}: left out" if left_out else cells


def _effective_swap_rate(before: Tally, change: Change) -> Score:
    """Half the sum of |f′ − f|, as a share of the total before."""
    if not change.total_old or not change.total_new:
        return undefined(EMPTY)
    _, _, step = steps(change)
    detail = {"cells_changed": int((step != 0).sum())}
    if change.nothing_changed:
        return Score(0.0, detail, NOTHING_CHANGED)
    return Score(float(np.abs(step).sum()) / 2 / (change.total_old / change.per_unit), detail)


def _effective_by_area(areas: Areas) -> Grouped:
    total = areas.totals[0]
    return np.divide(areas.sums(np.abs(areas.values[2])) / 2, total, out=np.zeros(len(areas)), where=total > 0), None


def shares_within(area: Cells, value: Ints) -> Floats:
    """Return each cell's share of its area, 0 where the area is empty; the cells of an area stand together."""
    if not len(area):
        return np.zeros(0)
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


def _shares_by_area(areas: Areas) -> tuple[Floats, Floats]:
    """Return the shares of all cells within their smaller areas, before and after."""
    return shares_within(areas.smaller, areas.change.old), shares_within(areas.smaller, areas.change.new)


def _sum_by_area(terms: Terms) -> Callable[[Areas], Grouped]:
    """Add up the differences of some terms within each area."""

    def grouped(areas: Areas) -> Grouped:
        was, now = _shares_by_area(areas)
        return areas.sums(terms(now) - terms(was)), None

    return grouped


def _renyi_by_area(areas: Areas) -> Grouped:
    was, now = (areas.sums(r**3) for r in _shares_by_area(areas))
    change = np.divide(now - was, was, out=np.zeros(len(areas)), where=(was > 0) & (now > 0))
    return np.log1p(change) / 2, None


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
_INFINITE = option("infinite", 0, "1: the value is ∞ where a cell was empty before and is not after")


def _measure(
    name: str,
    definition: str,
    score: Callable[..., Score],
    grouped: Callable[..., Grouped],
    direction: Direction = "nearer 0",
    declares: tuple[Param, ...] = (),
) -> Measure:
    return Measure(
        name=name,
        side="loss",
        direction=direction,
        range=(0.0 if direction == "lower" else -inf, inf),
        definition=definition,
        reference=REFERENCE,
        score=score,
        grouped=grouped,
        declares=declares,
    )


MEASURES = (
    _measure(
        "chi_square",
        f"Σ (f′ − f)² / f, {_COUNTS}; {_ZERO}",
        _over_cells(_chi_square),
        _cells_by_area(_chi_square),
        "lower",
        (_INFINITE,),
    ),
    _measure(
        "effective_swap_rate",
        f"½ Σ |f′ − f| / Σ f, {_COUNTS}: the smallest share of records whose move explains the difference; at most 1 "
        "where the totals agree",
        _effective_swap_rate,
        _effective_by_area,
        "lower",
    ),
    _measure(
        "deviance",
        f"2 Σ f′ ln(f′/f), {_COUNTS}; {_ZERO}; negative at times where cells are left out or totals differ",
        _over_cells(_deviance),
        _cells_by_area(_deviance),
        declares=(_INFINITE,),
    ),
    _measure("gini_difference", f"Σ (r′² − r²), {_SHARES}", _over_shares(_sum_of(_squares)), _sum_by_area(_squares)),
    _measure(
        "shannon_difference", f"Σ (r′ ln r′ − r ln r), {_SHARES}", _over_shares(_sum_of(_logs)), _sum_by_area(_logs)
    ),
    _measure(
        "renyi_difference",
        f"½ ( ln Σ r′³ − ln Σ r³ ), the sums over all areas and levels, {_SHARES}",
        _over_shares(_renyi),
        _renyi_by_area,
    ),
)
DIVERSITIES = ("gini_difference", "shannon_difference", "renyi_difference")
NOT_MONOTONE = (
    "For gini_difference, shannon_difference and renyi_difference larger does not mean more perturbed: they are the "
    "diversity before minus the diversity after, and a swap that makes areas more alike makes them negative."
)
