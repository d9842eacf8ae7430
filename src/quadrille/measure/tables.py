"""Distances between a table before and after: Hellinger, total variation, entropy, worst cell; HD1 to HD4."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from math import inf, sqrt

import numpy as np

from quadrille.measure.areas import Areas, Floats, Grouped, shares_of, steps, times_log
from quadrille.measure.base import (
    DOHRMANN_2009,
    EMPTY,
    NISS_131,
    NOTHING_CHANGED,
    Measure,
    Score,
    option,
    undefined,
    unscored,
)
from quadrille.summary import Change, Tally


def over_shares(formula: Callable[[Floats, Floats], float]) -> Callable[[Tally, Change], Score]:
    """Turn a formula over shares (f before, g after) into a score that looks at changed cells only.

    Cells that did not change contribute nothing as long as the totals agree; otherwise all cells are listed.
    """

    @wraps(formula)
    def score(before: Tally, change: Change) -> Score:
        detail = {"cells_changed": int((change.old_count != change.new_count).sum())}
        if plain := unscored(change, detail):
            return plain
        if change.total_old != change.total_new:
            change = before.complete(change) if change.per_unit_after is None else change
        f, g = change.old / change.total_old, change.new / change.total_new
        return Score(formula(f, g), detail)

    return score


def by_area(
    terms: Callable[[Floats, Floats], Floats], finish: Callable[[Floats], Floats] = lambda sums: sums
) -> Callable[[Areas], Grouped]:
    """Add up terms over the shares of each area, f before and g after; `finish` makes the value of the sum."""

    def grouped(areas: Areas) -> Grouped:
        f, g = (shares_of(value, areas.first) for value in (areas.change.old, areas.change.new))
        return finish(areas.sums(terms(f, g))), None

    return grouped


def _hellinger(f: Floats, g: Floats) -> float:
    return sqrt(float(((np.sqrt(f) - np.sqrt(g)) ** 2).sum()) / 2)


def _total_variation(f: Floats, g: Floats) -> float:
    return float(np.abs(f - g).sum()) / 2


def _entropy_change(f: Floats, g: Floats) -> float:
    return float((times_log(f) - times_log(g)).sum())


def _distance(before: Tally, change: Change, *, normal: bool, min_cell: int = 0) -> Score:
    """(1/√2) √( Σ (√W before − √W after)² ) over the cells with more than `min_cell` records before."""
    if not change.total_old or not change.total_new:
        return undefined(EMPTY)
    if min_cell and before.known("largest", lambda: int(before.count.max(initial=0))) <= min_cell:
        return undefined(f"no cell has more than {min_cell} records")
    kept = change.old_count > min_cell if min_cell else slice(None)
    old, new = change.old[kept], change.new[kept]
    detail = {"cells_changed": int((old != new).sum())}
    if change.nothing_changed:
        return Score(0.0, detail, NOTHING_CHANGED)
    unit, unit_after = change.per_unit, change.per_unit_after or change.per_unit
    total = change.total_old / unit / 2 + change.total_new / unit_after / 2
    value = hellinger(old, new) / sqrt(unit) if unit == unit_after else hellinger(old / unit, new / unit_after)
    note = "" if detail["cells_changed"] or not min_cell else f"only cells of up to {min_cell} records changed"
    return Score(value / sqrt(total) if normal else value, detail, note)


def hellinger(before: np.ndarray, after: np.ndarray) -> float:
    """Return (1/√2) √( Σ (√before − √after)² ) of two arrays of cell weights."""
    # √a − √b = (a − b) / (√a + √b): whole numbers are subtracted, so that nothing cancels.
    old, new = np.asarray(before), np.asarray(after)
    bottom = np.sqrt(old) + np.sqrt(new)
    step = np.divide(old - new, bottom, out=np.zeros(len(bottom)), where=bottom > 0)
    return sqrt(float((step**2).sum()) / 2)


def _worst_cell(before: Tally, change: Change, *, floor: int = 10) -> Score:
    """Return the largest |W after − W before| / max(W before, floor × mean weight) over the changed cells."""
    f, g, step = steps(change)
    detail: dict[str, float] = {"cells_changed": int((step != 0).sum())}
    if plain := unscored(change, detail):
        return plain
    relative = relative_steps(before, change, floor)
    worst = int(relative.argmax())
    detail |= {"before": float(f[worst]), "after": float(g[worst])}
    detail |= {"records_before": int(change.old_count[worst]), "records_after": int(change.new_count[worst])}
    return Score(float(relative[worst]), detail)


def relative_steps(before: Tally, change: Change, floor: int) -> Floats:
    """Return |W after − W before| / max(W before, floor × mean weight) of each cell of a table that is not empty."""
    f, _, step = steps(change)
    return np.abs(step) / np.maximum(f, floor * _mean_weight(before))


def _worst_by_area(areas: Areas, *, floor: int = 10) -> Grouped:
    f, _, step = areas.values
    old, records = areas.totals[0], areas.records[0]
    mean = np.divide(old, records, out=np.ones(len(areas)), where=records > 0)
    least = np.repeat(floor * mean, np.diff(np.append(areas.first, len(f))))
    bottom = np.maximum(f, least)
    relative = np.divide(np.abs(step), bottom, out=np.zeros(len(f)), where=bottom > 0)
    return np.maximum.reduceat(relative, areas.first) if len(areas) else np.zeros(0), None


def _mean_weight(before: Tally) -> float:
    """Return the mean weight of the records of a table; 1 where there is no weight, or no record."""
    return before.total / before.per_unit / before.records if before.weighted and before.records else 1.0


_FLOOR = option("floor", 10, "smaller cells count as this many records of mean weight; so do empty ones")
_MIN_CELL = option("min_cell", 45, "only cells with more records before count")


def _weighted(number: int, normal: bool) -> Measure:
    limited = number in (2, 4)
    cells = "cells c of the cross of the moved variables" if number <= 2 else "categories c of a moved variable"
    which = f"{cells} with more than min_cell records before" if limited else cells
    which += "; mean over the variables" if number > 2 else ""
    bottom = " / √(total weight)" if normal else ""
    return Measure(
        f"hd{number}_norm" if normal else f"hd{number}",
        f"(1/√2) √( Σ (√W before(c) − √W after(c))² ){bottom}, W sums of weights, {which}",
        partial(_distance, normal=normal),
        side="loss",
        reference=DOHRMANN_2009,
        range=(0.0, 1.0 if normal else inf),
        layout="moved" if number <= 2 else "margins",
        declares=(_MIN_CELL,) if limited else (),
        weight_linear=not limited,
    )


_measure = partial(Measure, side="loss", reference=NISS_131)
MEASURES = (
    _measure(
        "hellinger",
        "(1/√2) √( Σ (√f − √g)² ), f and g the shares of the cells before and after",
        over_shares(_hellinger),
        grouped=by_area(lambda f, g: (np.sqrt(f) - np.sqrt(g)) ** 2, lambda sums: np.sqrt(sums / 2)),
    ),
    _measure(
        "total_variation",
        "½ Σ |f − g|, f and g the shares of the cells before and after",
        over_shares(_total_variation),
        grouped=by_area(lambda f, g: np.abs(f - g) / 2),
    ),
    _measure(
        "entropy_change",
        "H(g) − H(f), H(p) = −Σ p ln p in nats; positive: more uncertainty after",
        over_shares(_entropy_change),
        reference=NISS_131 + ", with the sign of its Table 5",
        direction="nearer 0",
        range=(-inf, inf),
        grouped=by_area(lambda f, g: times_log(f) - times_log(g)),
    ),
    _measure(
        "worst_cell",
        "largest |W after(c) − W before(c)| / max(W before(c), floor × mean weight) over the cells c, W sums of "
        "weights or records; of several tables the largest",
        _worst_cell,
        reference="the relative change of the cells of published tables",
        range=(0.0, inf),
        declares=(_FLOOR,),
        weight_linear=False,
        largest=True,
        grouped=_worst_by_area,
    ),
    *(_weighted(number, normal) for normal in (False, True) for number in (1, 2, 3, 4)),
)
