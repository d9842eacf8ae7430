"""Hellinger distances between weighted tables, in the unit of the weights: HD1 to HD4 and their normalised forms."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf, sqrt

import numpy as np

from quadrille.measure.base import EMPTY, NOTHING_CHANGED, Layout, Measure, Score, undefined
from quadrille.summary import Change, Tally

REFERENCE = "Dohrmann, Krenzke, Roey & Russell (2009)"


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
    value = _root(old, new) / sqrt(unit) if unit == unit_after else hellinger(old / unit, new / unit_after)
    note = "" if detail["cells_changed"] or not min_cell else f"only cells of up to {min_cell} records changed"
    return Score(value / sqrt(total) if normal else value, detail, note)


def hellinger(before: np.ndarray, after: np.ndarray) -> float:
    """Return (1/√2) √( Σ (√before − √after)² ) of two arrays of cell weights."""
    return _root(np.asarray(before), np.asarray(after))


def _root(old: np.ndarray, new: np.ndarray) -> float:
    # √a − √b = (a − b) / (√a + √b): whole numbers are subtracted, so that nothing cancels.
    bottom = np.sqrt(old) + np.sqrt(new)
    step = np.divide(old - new, bottom, out=np.zeros(len(bottom)), where=bottom > 0)
    return sqrt(float((step**2).sum()) / 2)


def _measure(number: int, normal: bool) -> Measure:
    layout: Layout = "moved" if number <= 2 else "margins"
    limited = number in (2, 4)
    cells = "cells c of the cross of the moved variables" if number <= 2 else "categories c of a moved variable"
    which = f"{cells} with more than min_cell records before" if limited else cells
    which += "; mean over the variables" if number > 2 else ""
    bottom = " / √(total weight)" if normal else ""
    score: Callable[..., Score] = partial(_distance, normal=normal)
    return Measure(
        name=f"hd{number}_norm" if normal else f"hd{number}",
        side="loss",
        direction="lower",
        range=(0.0, 1.0 if normal else inf),
        definition=f"(1/√2) √( Σ (√W before(c) − √W after(c))² ){bottom}, W sums of weights, {which}",
        reference=REFERENCE,
        layout=layout,
        score=score,
        options={"min_cell": 45} if limited else {},
        weight_linear=not limited,
    )


MEASURES = tuple(_measure(number, normal) for normal in (False, True) for number in (1, 2, 3, 4))
