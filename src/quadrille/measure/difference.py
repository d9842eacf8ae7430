"""How different two tables of areas and levels are: chi-square, effective swap rate, deviance, changes of diversity.

The first variable of the table is the area, the cross of the others are the levels. The first three measures look at
the changed cells only; the diversities look at every cell of the areas that the change touches.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf, ldexp, log1p

import numpy as np

from quadrille.data import Cells, Floats, Ints, united
from quadrille.measure.areas import Areas, Grouped, shares_within, steps, times_log
from quadrille.measure.base import LEMONS_2014, Measure, Score, option, undefined, unscored
from quadrille.summary import Change, Tally

Terms = Callable[[Floats], Floats]

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
        f, g, step = steps(change)
        zero = int(((f == 0) & (step != 0)).sum())
        detail = {"cells_changed": int((step != 0).sum()), "zero_cells": zero}
        if plain := unscored(change, detail):
            return plain
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
    _, _, step = steps(change)
    detail = {"cells_changed": int((step != 0).sum())}
    if plain := unscored(change, detail):
        return plain
    return Score(float(np.abs(step).sum()) / 2 / (change.total_old / change.per_unit), detail)


def _effective_by_area(areas: Areas) -> Grouped:
    total = areas.totals[0]
    return np.divide(areas.sums(np.abs(areas.values[2])) / 2, total, out=np.zeros(len(areas)), where=total > 0), None


def _touched(before: Tally, change: Change) -> tuple[Cells, Ints, Ints]:
    """Return every cell of the areas that the change lists: its area, its old and its new value."""
    stride = before.cross.strides[0]
    areas = np.unique(change.cells // stride)
    if before.keys is None:
        cells = (areas[:, None] * stride + np.arange(stride)).ravel()
    else:
        cells = united(before.keys[np.isin(before.keys // stride, areas)], change.cells)
    count, ticks = before.at(cells)
    old = count if ticks is None else ticks
    new = old.copy()
    new[np.searchsorted(cells, change.cells)] = change.new
    return cells // stride, old, new


def _over_shares(score: Callable[[Tally, Floats, Floats], tuple[float, float]]) -> Callable[[Tally, Change], Score]:
    """Score a formula over the shares within the areas that a change touches."""

    def scored(before: Tally, change: Change) -> Score:
        if plain := unscored(change, {"areas_touched": 0}):
            return plain
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
_measure = partial(Measure, side="loss", reference=LEMONS_2014, direction="nearer 0", range=(-inf, inf))
MEASURES = (
    _measure(
        "chi_square",
        f"Σ (f′ − f)² / f, {_COUNTS}; {_ZERO}",
        _over_cells(_chi_square),
        grouped=_cells_by_area(_chi_square),
        direction="lower",
        range=(0.0, inf),
        declares=(_INFINITE,),
    ),
    _measure(
        "effective_swap_rate",
        f"½ Σ |f′ − f| / Σ f, {_COUNTS}: the smallest share of records whose move explains the difference; at most 1 "
        "where the totals agree",
        _effective_swap_rate,
        grouped=_effective_by_area,
        direction="lower",
        range=(0.0, inf),
    ),
    _measure(
        "deviance",
        f"2 Σ f′ ln(f′/f), {_COUNTS}; {_ZERO}; negative at times where cells are left out or totals differ",
        _over_cells(_deviance),
        grouped=_cells_by_area(_deviance),
        declares=(_INFINITE,),
    ),
    _measure(
        "gini_difference",
        f"Σ (r′² − r²), {_SHARES}",
        _over_shares(_sum_of(np.square)),
        grouped=_sum_by_area(np.square),
    ),
    _measure(
        "shannon_difference",
        f"Σ (r′ ln r′ − r ln r), {_SHARES}",
        _over_shares(_sum_of(times_log)),
        grouped=_sum_by_area(times_log),
    ),
    _measure(
        "renyi_difference",
        f"½ ( ln Σ r′³ − ln Σ r³ ), the sums over all areas and levels, {_SHARES}",
        _over_shares(_renyi),
        grouped=_renyi_by_area,
    ),
)
DIVERSITIES = ("gini_difference", "shannon_difference", "renyi_difference")
NOT_MONOTONE = (
    "For gini_difference, shannon_difference and renyi_difference larger does not mean more perturbed: they are the "
    "diversity before minus the diversity after, and a swap that makes areas more alike makes them negative."
)
