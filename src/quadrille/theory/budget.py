"""The largest rate that keeps an error budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import SupportsFloat

import numpy as np

from quadrille.data import Data, require_columns, require_data
from quadrille.errors import InputError, OverlapError, bad_parameter
from quadrille.expressions import Where
from quadrille.params import names, one_of, share, whole
from quadrille.recipe import carried, refuse_fixed
from quadrille.swap.permutation import records_of
from quadrille.theory.equivalent import NEVER, admissible, first_crossing, mean_square, most_moved
from quadrille.theory.margin import Ints, Margin, margin_of
from quadrille.theory.spread import KINDS, Floats, Kind, Spread, factors
from quadrille.theory.tables import class_index, joint_of

_OWNER = "rate_for"


@dataclass(frozen=True)
class RateFor:
    """The rate found and the records it moves; the cell that would break the budget next, None if none does.

    Example
    -------
    >>> import quadrille as qd
    >>> found = qd.theory.rate_for(qd.datasets.cps8d(), "Age*MS", swap=["Age"], budget=100)
    >>> round(found.rate, 4), found.records, round(found.rmse, 2)
    (0.0311, 1518, 99.95)
    """

    rate: float
    records: int
    rmse: float
    cell: dict[str, object] | None = field(default=None)


@dataclass(frozen=True, eq=False)
class _Watched:
    """The stated cells: their sums in every class, (class, cell), and the mean square error each may have."""

    margin: Margin
    cells: Ints
    spread: Spread
    limit: Floats


def rate_for(
    data: Data,
    margin: str | Sequence[str],
    *,
    swap: Sequence[str] | str,
    budget: float,
    relative: bool = False,
    cells: str | None = None,
    least: int = 1,
    kind: Kind = "pairs",
    within: Sequence[str] | str = (),
    groups: str | None = None,
    weight: str = "stays",
    step: float = 0.001,
) -> RateFor:
    """Return the largest rate such that it and all smaller rates keep every stated cell within the budget.

    Parameters
    ----------
    data, margin, swap : the file, the margin such as "Age*MS", and the variables that move.
    budget : the largest RMSE allowed in a cell; with `relative` as a share of the cell's total before.
    cells : which cells, as a condition on the margin's variables such as "Age=<25 & MS=Married"; all unless given.
    least : cells of fewer records than this are not counted in. 0 with an absolute budget takes empty cells too.
    kind, within, groups, weight : as in `PermutationSwap`; the same rate in every class.
    step : within classes, rates are tried in these steps. Without classes every number of records is considered.

    Example
    -------
    >>> import quadrille as qd
    >>> found = qd.theory.rate_for(qd.datasets.cps8d(), "Age*MS", swap=["Age"], budget=100)
    >>> found.records, found.cell
    (1518, {'Age': '<25', 'MS': 'Married'})
    """
    require_data(data, _OWNER)
    one_of(_OWNER, "kind", kind, KINDS)
    one_of(_OWNER, "weight", weight, ("stays", "moves"))
    moved, classes = names(_OWNER, "swap", swap, least=1), names(_OWNER, "within", within)
    require_columns(data, moved, f"'swap' of {_OWNER}")
    refuse_fixed(data, moved)
    _check_values(budget, least, cells, groups)
    _refuse_overlap(moved, classes, groups)
    step = share(_OWNER, "step", step)
    if (groups is not None) != (kind == "across"):
        raise InputError(f"{_OWNER} needs 'groups' for kind=\"across\", and only then.")
    split = margin_of(data, margin, (*moved, *carried(data, moved, classes)), _OWNER)
    joint = joint_of(data, split, classes=class_index(data, classes), groups=groups, weight=weight)
    numbers = joint.count.sum(axis=(0, 1)).ravel()
    stated = _stated(data, split, numbers, cells, max(least, 1) if relative else least)
    spread = _picked([each for _, each in joint.spreads()], stated)
    allowed = budget * (spread.value.sum(axis=0) if relative else 1.0)
    watched = _Watched(split, stated, spread, np.broadcast_to(allowed**2, stated.shape) * (1 + 1e-12))
    return _whole_file(watched, kind) if not classes else _by_class(watched, kind, step)


def _refuse_overlap(moved: Sequence[str], classes: Sequence[str], groups: str | None) -> None:
    for name in classes:
        if name in moved or name == groups:
            other = "swap" if name in moved else "groups"
            raise OverlapError(
                f"Column {name!r} is in both 'within' and '{other}' of {_OWNER}. Classes are bounded by columns that "
                "neither move nor are crossed."
            )


def _check_values(budget: object, least: object, cells: object, groups: object) -> None:
    if isinstance(budget, bool | str) or not isinstance(budget, SupportsFloat) or not float(budget) >= 0:
        raise bad_parameter(_OWNER, "budget", "a number of 0 or more", budget)
    whole(_OWNER, "least", least, least=0)
    if not isinstance(groups, str | None):
        raise bad_parameter(_OWNER, "groups", "the name of a column", groups)
    if not isinstance(cells, str | None):
        raise bad_parameter(_OWNER, "cells", 'a condition such as "Age=<25 & MS=Married"', cells)


def _picked(spreads: list[Spread], cells: Ints) -> Spread:
    """Join the sums of all classes for some cells."""

    def joined(parts: Sequence[Floats]) -> Floats:
        return np.concatenate([part[:, cells] for part in parts])

    sizes = tuple(
        np.concatenate([each.sizes[g] for each in spreads]).astype(float) for g in range(len(spreads[0].sizes))
    )
    parts = tuple(joined([each.parts[i] for each in spreads]) for i in range(len(spreads[0].parts)))
    return Spread(joined([each.value for each in spreads]), sizes, joined([each.bias_sum for each in spreads]), parts)


def _stated(data: Data, margin: Margin, numbers: Ints, cells: str | None, least: int) -> Ints:
    """Return the cells that must keep the budget."""
    every = np.arange(margin.cells)
    kept = numbers >= least
    if cells is not None:
        codes = margin.codes(every)
        for condition in Where.parse(cells).conditions:
            if condition.variable not in margin.variables:
                raise InputError(f"The condition on {condition.variable!r} is not about the margin of {_OWNER}.")
            kept &= condition.allowed(data)[codes[condition.variable]]
    if not kept.any():
        raise InputError(f"No cell of the margin of {_OWNER} meets the condition and has {least:,} records or more.")
    return margin.ordered(every[kept])


def _whole_file(watched: _Watched, kind: Kind) -> RateFor:
    """Look for the first number of records that breaks the budget in any cell; the one before is the answer."""
    spread = watched.spread
    sizes = tuple(int(size[0, 0]) for size in spread.sizes)
    one = Spread(spread.value[0], sizes, spread.bias_sum[0], tuple(part[0] for part in spread.parts))
    most = most_moved(kind, sizes)
    broken = first_crossing(kind, one, most, lambda error: error > watched.limit)
    ks = admissible(kind, most)
    breaks = broken[broken != NEVER]
    if not len(ks):
        return RateFor(0.0, 0, 0.0)
    k = int(breaks.min()) - ks.step if len(breaks) else ks[-1]
    k = k if k >= ks.start else 0
    rmse = float(np.sqrt(mean_square(kind, one, np.asarray(float(k)))).max())
    cell = _name(watched, int(np.flatnonzero(broken == breaks.min())[0])) if len(breaks) else None
    return RateFor(k / sum(sizes), k, rmse, cell)


def _by_class(watched: _Watched, kind: Kind, step: float) -> RateFor:
    """Try rates upward in small steps; each class rounds its own number of records."""
    n = np.add.reduce([size[:, 0] for size in watched.spread.sizes]).astype(np.int64)
    smaller = np.minimum.reduce([size[:, 0] for size in watched.spread.sizes])
    best, worst = (0.0, 0), 0.0
    for i in range(1, int(1 / step + 1e-9) + 1):
        rate = min(i * step, 1.0)
        k = records_of(kind, np.full(len(n), rate), n)
        k = np.where(k > 1, k, 0)
        if kind == "across" and (k // 2 > smaller).any():
            break
        found = factors(kind, watched.spread.sizes, k[:, None].astype(float))
        variance = sum(f * p for f, p in zip(found.parts, watched.spread.parts, strict=True))
        bias = (found.bias * watched.spread.bias_sum).sum(axis=0)
        error = np.maximum(variance, 0.0).sum(axis=0) + bias**2
        broken = np.flatnonzero(error > watched.limit)
        if len(broken):
            return RateFor(*best, worst, _name(watched, int(broken[0])))
        best, worst = (rate, int(k.sum())), float(np.sqrt(error.max()))
    return RateFor(*best, worst)


def _name(watched: _Watched, place: int) -> dict[str, object]:
    return watched.margin.named(watched.cells[[place]])[0]
