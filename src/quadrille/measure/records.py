"""Measures that compare record by record: how far values moved, and what the release leaves open about them."""

from __future__ import annotations

from math import inf, prod

import numpy as np
from numpy.typing import NDArray

from quadrille.data import Cells
from quadrille.measure.base import EMPTY, NISS_131, NOTHING_CHANGED, Measure, Score, undefined
from quadrille.summary import Change, Tally


def _ordinal_shift(before: Tally, change: Change) -> Score:
    """Mean over records of the category distance moved, as a share of the scale; missing values are left out."""
    valid = before.valid[0]
    if valid < 2:
        return undefined("the variable has a single category")
    original, released, value = _from_to(before, change)
    known = (original < valid) & (released < valid)
    total = float(value[known].sum())
    if not total:
        return undefined("no record has a value before and after")
    distance = np.abs(original - released)[known]
    shift = float((value[known] * distance).sum()) / (valid - 1) / total
    note = "" if known.all() else "records with a missing value are left out"
    note = NOTHING_CHANGED if (original == released).all() else note
    return Score(shift, {"moved_share": float(value[known][distance > 0].sum()) / total}, note)


def _conditional_entropy(before: Tally, change: Change) -> Score:
    """H(original | released) = - sum p(o, r) ln( p(o, r) / p(r) )."""
    if not change.total_new:
        return undefined(EMPTY)
    if not before.cross.exact:
        return undefined("too many combinations of original and released values; name fewer variables")
    original, released, value = _from_to(before, change)
    if (original == released).all():
        return Score(0.0, note=NOTHING_CHANGED)
    _, place = np.unique(released, return_inverse=True)
    margin = np.bincount(place, weights=value)[place]
    return Score(float((value * np.log(margin / value)).sum()) / float(value.sum()))


def _from_to(before: Tally, change: Change) -> tuple[Cells, Cells, NDArray[np.float64]]:
    """Return original and released combinations and the records, or weights, that went from one to the other."""
    complete = before.complete(change)
    kept = complete.new > 0
    combinations = prod(before.cross.sizes[len(before.cross.sizes) // 2 :])
    cells = complete.cells[kept]
    return cells // combinations, cells % combinations, complete.new[kept].astype(np.float64)


MEASURES = (
    Measure(
        "ordinal_shift",
        "mean over records of |category position after − before| / (m − 1), m the categories of the scale",
        _ordinal_shift,
        side="loss",
        reference=f"asked for in the discussion of {NISS_131}",
        layout="each",
        ordinal=True,
    ),
    Measure(
        "conditional_entropy",
        "H(original | released) of the swap variables over records, in nats: what the release leaves open",
        _conditional_entropy,
        side="risk",
        direction="higher",
        range=(0.0, inf),
        reference=f"mentioned in {NISS_131}",
        layout="joint",
    ),
)
