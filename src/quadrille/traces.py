"""Traces that a swap leaves where an intruder can see them: weights that no longer fit the strata beside them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from quadrille.data import Data, Rows, unequal
from quadrille.plan import Plan

_NEARLY = 0.9
"""Strata have one weight each, or nearly, when so many of their records are in a stratum of one weight."""

_UNEXPLAINED = 0.05
"""A column tells the weight when no more of its variance than this is left within the categories."""


def traces(data: Data, plan: Plan, public: Sequence[str] | None = None) -> list[str]:
    """Say which traces a plan leaves in the public columns: what, why, and what to do.

    Unless they are named, these are all columns but identifiers and what steered the draw.
    """
    if public is None:
        public = [name for name in data.columns if data.codebook[name].role != "id" and name not in plan.aside]
    if data.ticks is None or data.weight not in public:
        return []
    strata = [name for name in public if data.codebook[name].role == "stratum"]
    moved = [name for name in strata if name in plan.columns]
    if data.weight in plan.columns:
        return [_weight_moved(data, moved, strata)] if strata and _tells_weight(data, plan, strata, moved) else []
    told = [_stratum_moved(data, name) for name in moved if _parted(data, plan, name)]
    others = [name for name in public if name in plan.columns and name not in strata]
    return told + [
        _like_a_stratum(data, name) for name in others if _parted(data, plan, name) and _sets_weight(data, name)
    ]


def _stratum_moved(data: Data, name: str) -> str:
    return (
        f"Column {name!r} is a stratum and was swapped while the weight {data.weight!r} stayed: a weight that does not "
        "fit its stratum shows that the record was swapped. Do not swap the stratum, or let the weight move with it "
        '(weight="moves" of PermutationSwap).'
    )


def _like_a_stratum(data: Data, name: str) -> str:
    return (
        f"Column {name!r} tells the weight {data.weight!r}, as a stratum does: nearly every category has one weight, "
        "and categories differ. It was swapped while the weight stayed: a weight that does not fit its category shows "
        "that the record was swapped. Do not swap the column, or let the weight move with it "
        '(weight="moves" of PermutationSwap).'
    )


def _weight_moved(data: Data, moved: Sequence[str], strata: Sequence[str]) -> str:
    stay = ", ".join(repr(name) for name in strata if name not in moved)
    return (
        f"The weight {data.weight!r} moved while the stratum {stay} stayed, and weights differ between strata: "
        "a weight that does not fit its stratum shows that the record was swapped. "
        'Let the weight stay (weight="stays"), or swap within strata (within=).'
    )


def _parted(data: Data, plan: Plan, name: str) -> bool:
    """Tell whether a record gets a value of this column from a record of another weight."""
    assert data.ticks is not None
    values, ticks = data[name].values, data.ticks.values
    rows, source = next(move.given for move in plan.moves if name in move.columns)
    return bool((unequal(values[rows], values[source]) & (ticks[rows] != ticks[source])).any())


def _tells_weight(data: Data, plan: Plan, strata: Sequence[str], moved: Sequence[str]) -> bool:
    """Tell whether a weight that moved gives itself away beside the strata that stayed.

    That is so when a record got a weight far out of the range of its stratum. It is also so when a record got another
    weight, and the strata have one weight each, or nearly: nine in ten of the
    records that share their stratum with others are in a stratum of one weight. Strata that moved with the weight
    and have one weight each explain it by themselves.
    """
    assert data.ticks is not None
    ticks = data.ticks.values
    rows, source = next(move.given for move in plan.moves if data.weight in move.columns)
    if (ticks[rows] == ticks[source]).all():
        return False
    stayed = [name for name in strata if name not in moved]
    if stayed and _out_of_range(data, stayed, rows, ticks[source]):
        return True
    return _one_weight(data, strata) >= _NEARLY and _one_weight(data, moved) < _NEARLY


def _sets_weight(data: Data, name: str) -> bool:
    """Tell whether the categories of a column have one weight each, or nearly, and differ in it.

    That is so when nine in ten records have the commonest weight of their category, and the others are less than half
    of those that lack the commonest weight of the file; or when categories explain 95 % of the variance of the weights,
    allowing for their number. A column of which most values occur once tells nothing in this way.
    """
    assert data.ticks is not None
    kinds, weight = np.unique(data.ticks.values, return_inverse=True)
    category = np.unique(data[name].values, return_inverse=True)[1]
    count = np.bincount(category)
    if len(kinds) < 2 or not 1 < len(count) <= data.n / 2:
        return False
    pairs, held = np.unique(category * len(kinds) + weight, return_counts=True)
    most = np.zeros(len(count), dtype=np.int64)
    np.maximum.at(most, pairs // len(kinds), held)
    odd, odd_at_all = 1 - int(most.sum()) / data.n, 1 - int(np.bincount(weight).max()) / data.n
    if odd <= 1 - _NEARLY and odd < odd_at_all / 2:
        return True
    ticks = data.ticks.values - data.ticks.values.mean()
    means = np.bincount(category, weights=ticks) / count
    inside, whole = float(((ticks - means[category]) ** 2).sum()), float((ticks**2).sum())
    return inside / (data.n - len(count)) <= _UNEXPLAINED * whole / (data.n - 1)


def _out_of_range(data: Data, strata: Sequence[str], rows: Rows, new: NDArray[np.int64]) -> bool:
    """Tell whether a moved weight is farther from those of its new stratum than these are from one another."""
    stratum, low, high = _weights_of(data, strata)
    least, most = low[stratum[rows]], high[stratum[rows]]
    return bool(((least - new > most - least) | (new - most > most - least)).any())


def _one_weight(data: Data, strata: Sequence[str]) -> float:
    """Return the share of the records in a stratum of one weight, among those that are not alone in theirs."""
    stratum, low, high = _weights_of(data, strata)
    count = np.bincount(stratum)
    shared = int(count[count > 1].sum())
    return int(count[(count > 1) & (low == high)].sum()) / shared if shared else 0.0


def _weights_of(data: Data, strata: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Number the strata; return the stratum of each record, and the least and largest weight of each stratum."""
    assert data.ticks is not None
    stratum = np.zeros(data.n, dtype=np.int64)
    for name in strata:
        values, codes = np.unique(data[name].values, return_inverse=True)
        stratum = np.unique(stratum * len(values) + codes, return_inverse=True)[1]
    strata_found = int(stratum.max()) + 1
    low, high = np.full(strata_found, np.iinfo(np.int64).max), np.zeros(strata_found, dtype=np.int64)
    np.minimum.at(low, stratum, data.ticks.values)
    np.maximum.at(high, stratum, data.ticks.values)
    return stratum, low, high
