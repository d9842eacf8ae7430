"""Distances between the distributions of a table before and after: Hellinger, total variation, entropy."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from quadrille.measure.areas import Areas, Grouped
from quadrille.measure.base import EMPTY, NOTHING_CHANGED, Measure, Score, undefined
from quadrille.summary import Change, Tally

Shares = NDArray[np.float64]
_REPORT = "Gomatam & Karr (2003), NISS Technical Report 131"


def over_shares(formula: Callable[[Shares, Shares], float]) -> Callable[[Tally, Change], Score]:
    """Turn a formula over shares (f before, g after) into a score that looks at changed cells only.

    Cells that did not change contribute nothing as long as the totals agree; otherwise all cells are listed.
    """

    @wraps(formula)
    def score(before: Tally, change: Change) -> Score:
        if not change.total_old or not change.total_new:
            return undefined(EMPTY)
        detail = {"cells_changed": int((change.old_count != change.new_count).sum())}
        if change.nothing_changed:
            return Score(0.0, detail, NOTHING_CHANGED)
        if change.total_old != change.total_new:
            change = before.complete(change) if change.per_unit_after is None else change
        f, g = change.old / change.total_old, change.new / change.total_new
        return Score(formula(f, g), detail)

    return score


def by_area(
    terms: Callable[[Shares, Shares], Shares], finish: Callable[[Shares], Shares] = lambda sums: sums
) -> Callable[[Areas], Grouped]:
    """Add up terms over the shares of each area, f before and g after; `finish` makes the value of the sum."""

    def grouped(areas: Areas) -> Grouped:
        f, g = (shares_of(areas.counts(value), value, areas.first) for value in (areas.change.old, areas.change.new))
        return finish(areas.sums(terms(f, g))), None

    return grouped


def shares_of(total: NDArray[np.int64], value: NDArray[np.int64], first: NDArray[np.int64]) -> Shares:
    """Return each cell's share of its area's total, 0 where the area is empty."""
    spread = np.repeat(total, np.diff(np.append(first, len(value))))
    return np.divide(value, spread, out=np.zeros(len(value)), where=spread > 0)


def _entropy_terms(p: Shares) -> Shares:
    """Return - p ln p, and 0 for p = 0."""
    return -p * np.log(p, out=np.zeros_like(p), where=p > 0)


def _hellinger(f: Shares, g: Shares) -> float:
    return sqrt(float(((np.sqrt(f) - np.sqrt(g)) ** 2).sum()) / 2)


def _total_variation(f: Shares, g: Shares) -> float:
    return float(np.abs(f - g).sum()) / 2


def _entropy_change(f: Shares, g: Shares) -> float:
    return float((_entropy_terms(g) - _entropy_terms(f)).sum())


MEASURES = (
    Measure(
        name="hellinger",
        side="loss",
        direction="lower",
        range=(0.0, 1.0),
        definition="(1/√2) √( Σ (√f − √g)² ), f and g the shares of the cells before and after",
        reference=_REPORT,
        layout="table",
        score=over_shares(_hellinger),
        grouped=by_area(lambda f, g: (np.sqrt(f) - np.sqrt(g)) ** 2, lambda sums: np.sqrt(sums / 2)),
    ),
    Measure(
        name="total_variation",
        side="loss",
        direction="lower",
        range=(0.0, 1.0),
        definition="½ Σ |f − g|, f and g the shares of the cells before and after",
        reference=_REPORT,
        layout="table",
        score=over_shares(_total_variation),
        grouped=by_area(lambda f, g: np.abs(f - g) / 2),
    ),
    Measure(
        name="entropy_change",
        side="loss",
        direction="nearer 0",
        range=(-inf, inf),
        definition="H(g) − H(f), H(p) = −Σ p ln p in nats; positive: more uncertainty after",
        reference=_REPORT + ", with the sign of its Table 5",
        layout="table",
        score=over_shares(_entropy_change),
        grouped=by_area(lambda f, g: _entropy_terms(g) - _entropy_terms(f)),
    ),
)
