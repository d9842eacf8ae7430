"""How much to swap: until the error of a cell equals that of random rounding, a budget is used up; by area."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quadrille.codebook import Variable
from quadrille.data import Column, Data, Floats, Ints, require_columns, require_data, tidy
from quadrille.errors import InputError, OverlapError, ParameterError, bad_parameter
from quadrille.expressions import Where
from quadrille.params import as_float, names, one_of, share, whole
from quadrille.recipe import carried, refuse_fixed
from quadrille.swap.permutation import records_of
from quadrille.swap.targeted import TargetedSwap
from quadrille.swap.targeted.problem import OWNER, risk_of
from quadrille.text import Shown
from quadrille.theory.moments import (
    KINDS,
    Error,
    Kind,
    Spread,
    count_spread,
    factors,
    spread_of_records,
)
from quadrille.theory.tally import Margin, class_index, joint_of, labelled, margin_of, tally

if TYPE_CHECKING:
    import polars as pl


Flags = NDArray[np.bool_]
Reached = Callable[[Floats], Flags]

NEVER = -1
_SCANNED = 24
"""Up to this number of records each is tried: for cycles the error is a quadratic only beyond 20."""

_POINTS = 8


def mean_square(kind: Kind, spread: Spread, k: Floats) -> Floats:
    """Return variance + bias^2 of every cell when k records move, one k per cell."""
    found = factors(kind, tuple(np.asarray(size, dtype=float) for size in spread.sizes), k)
    return np.maximum(found.variance(spread), 0.0) + (found.bias * spread.bias_sum) ** 2


def admissible(kind: Kind, most: int) -> range:
    """Return the numbers of records that can move, up to the most."""
    return range(2, most + 1, 1 if kind == "cycles" else 2)


def most_moved(kind: Kind, sizes: tuple[int, ...]) -> int:
    """Return the largest number of records that can move."""
    return 2 * min(sizes) if kind == "across" else sizes[0] if kind == "cycles" else sizes[0] // 2 * 2


def first_crossing(kind: Kind, spread: Spread, most: int, reached: Reached) -> Ints:
    """Return, per cell, the smallest admissible k whose mean square error is `reached`, NEVER where there is none.

    The error is not always monotone in k, but beyond the first few k it is a quadratic: so it is monotone on either
    side of its vertex, and halving is safe on each.
    """
    ks = admissible(kind, most)
    cells = np.broadcast_shapes(*(np.shape(part) for part in (spread.bias_sum, *spread.parts)))
    search = _Search(kind, spread, ks, reached, np.full(cells, NEVER, dtype=np.int64))
    scanned = len([k for k in ks[:_SCANNED] if k < _SCANNED]) if len(ks) > _SCANNED + _POINTS else len(ks)
    search.scan(range(scanned))
    if scanned < len(ks) and (search.found == NEVER).any():
        _search_rest(search, scanned, len(ks) - 1)
    return search.found


class _Search:
    """Cells that have not crossed yet, and what is known of the others."""

    def __init__(self, kind: Kind, spread: Spread, ks: range, reached: Reached, found: Ints) -> None:
        self.kind: Kind = kind
        self.spread, self.reached, self.found = spread, reached, found
        self.first, self.step = ks.start, ks.step

    def error(self, index: Ints) -> Floats:
        return mean_square(self.kind, self.spread, (self.first + self.step * index).astype(float))

    def note(self, index: Ints, crossed: Flags) -> None:
        fresh = crossed & (self.found == NEVER)
        self.found[fresh] = (self.first + self.step * index)[fresh]

    def scan(self, places: Iterable[int]) -> None:
        for place in places:
            index = np.full(self.found.shape, place)
            self.note(index, self.reached(self.error(index)))

    def halve(self, low: Ints, high: Ints) -> None:
        """Look between two places, where the error only rises or only falls."""
        valid = low <= high
        start = self.reached(self.error(low))
        self.note(low, valid & start)
        rising = valid & ~start & self.reached(self.error(high))
        below, above = low.copy(), high.copy()
        while ((above - below > 1) & rising).any():
            middle = (below + above) // 2
            crossed = self.reached(self.error(middle))
            above, below = np.where(crossed, middle, above), np.where(crossed, below, middle)
        self.note(above, rising)


def _search_rest(search: _Search, low: int, high: int) -> None:
    shape = search.found.shape
    start, end = np.full(shape, low), np.full(shape, high)
    vertex = _vertex(search, start, (start + end) // 2, end)
    search.halve(start, np.maximum(vertex - 1, start))
    for shift in (-1, 0, 1):
        place = np.clip(vertex + shift, low, high)
        search.note(place, search.reached(search.error(place)))
    search.halve(np.minimum(vertex + 1, end), end)


def _vertex(search: _Search, one: Ints, two: Ints, three: Ints) -> Ints:
    """Return the place where the quadratic through three of its values turns, or the end where it does not."""
    y1, y2, y3 = (search.error(place) for place in (one, two, three))
    slope, steeper = (y2 - y1) / (two - one), (y3 - y1) / (three - one)
    curve = (steeper - slope) / (three - two)
    turn = np.divide(-slope, 2 * curve, out=np.full(one.shape, np.inf), where=curve != 0)
    place = (one + two) / 2 + turn
    inside = (place > one) & (place < three)
    return np.where(inside, np.floor(np.where(inside, place, 0.0)).astype(np.int64), three)


MOST_BASE = 10**6


def checked_base(owner: str, base: object) -> int:
    """Check the base of rounding."""
    found = whole(owner, "base", base, least=1)
    if found > MOST_BASE:
        raise bad_parameter(owner, "base", f"at most {MOST_BASE:,}", base)
    return found


def rounding_error(count: int, base: int = 5) -> Error:
    """Return the error of rounding a count to a multiple of the base at random, without bias.

    The residue r = count mod base goes up with probability r / base and down otherwise: variance r (base - r). It does
    not grow with the count.

    Example
    -------
    >>> import quadrille as qd
    >>> qd.theory.rounding_error(294438).variance
    6.0
    """
    if not 0 <= as_float(count) < 1e300 or int(count) != count:
        raise bad_parameter("rounding_error", "count", "a whole number of 0 or more", count)
    residue = int(count) % checked_base("rounding_error", base)
    return Error(float(count), 0.0, float(residue * (base - residue)))


_TABLE = "equivalent_table"

_SLACK = 1e-12
"""A mean square error this little short of the target has reached it: the rest is rounding of the arithmetic."""


def equivalent_records(
    a: ArrayLike,
    b: ArrayLike,
    *,
    rmse: float,
    kind: Kind = "pairs",
    groups: ArrayLike | None = None,
    counts: ArrayLike | None = None,
) -> int | None:
    """Return the smallest number of records whose moving puts an RMSE of at least `rmse` into the sum of a b.

    It is the first crossing from below: the RMSE may fall again for more records. 0 for a target of 0, None when no
    number reaches it. See `swap_error` for a, b, kind, groups and counts.

    Example
    -------
    >>> import quadrille as qd
    >>> qd.theory.equivalent_records([1] * 30 + [0] * 70, [1] * 20 + [0] * 80, rmse=2.449)
    16
    """
    if not 0 <= as_float(rmse) < inf:
        raise bad_parameter("equivalent_records", "rmse", "a number of 0 or more", rmse)
    spread = spread_of_records(a, b, kind, groups=groups, counts=counts)
    if rmse == 0:
        return 0
    floats = Spread(
        float(spread.value),
        spread.sizes,
        np.array(float(spread.bias_sum)),
        tuple(np.array(float(p)) for p in spread.parts),
    )
    found = int(first_crossing(kind, floats, most_moved(kind, spread.sizes), lambda e: e >= _line(rmse))[()])
    return None if found == NEVER else found


def equivalent_table(
    table: object,
    margin: str | Sequence[str] | None = None,
    *,
    swap: Sequence[str] | str = (),
    base: int = 5,
    kind: Kind = "pairs",
) -> pl.DataFrame:
    """Return, for each cell of a table of counts, how many records to swap for the error of rounding.

    `table` is a two-way table: a 2-D array, nested lists, or a frame whose first column holds labels. Rows are permuted
    against columns; either may be the swapped variable. Or it is a file, with a margin such as "Age*MS" and the
    variables that `swap`; then records are counted, whatever their weight.

    Columns: the labels, `count`, `rounding_rmse`, `records` (smallest k whose RMSE reaches it; None: never) and
    `closest`: whichever of that k and the admissible one before has the RMSE nearer to rounding's, or the k of the
    largest RMSE where rounding's is never reached.

    Example
    -------
    >>> import quadrille as qd
    >>> qd.theory.equivalent_table([[148313, 21316], [73508, 294438]])["records"].to_list()
    [16, 12, 16, 16]
    """
    one_of(_TABLE, "kind", kind, ("pairs", "cycles"))
    checked_base(_TABLE, base)
    split, values, listed = _counted(table, margin, swap)
    n, counts = int(values.sum()), values.ravel()
    residue = counts % base
    target = np.sqrt(residue * (base - residue))
    on_a, on_b = np.broadcast_arrays(values.sum(axis=1, keepdims=True), values.sum(axis=0, keepdims=True))
    spread = count_spread(float(max(n, 1)), on_a.ravel(), on_b.ravel(), counts)
    most = most_moved(kind, (n,))
    found = np.where(target > 0, first_crossing(kind, spread, most, lambda e: e >= _line(target)), 0)
    closest = _closest(kind, spread, most, target, found)
    return tidy(
        [
            {
                **cell,
                "count": int(counts[i]),
                "rounding_rmse": float(target[i]),
                "records": None if found[i] == NEVER else int(found[i]),
                "closest": int(closest[i]),
            }
            for i, cell in zip(listed.tolist(), split.named(listed), strict=True)
        ]
    )


def _counted(
    table: object, margin: str | Sequence[str] | None, swap: Sequence[str] | str
) -> tuple[Margin, Floats, Ints]:
    """Count a table: moved part in the rows, staying part in the columns; return also the cells to report."""
    if not isinstance(table, Data):
        if margin is not None or swap:
            raise ParameterError("equivalent_table takes 'margin' and 'swap' with a file, not with a table.")
        given = labelled(table, _TABLE)
        return given.margin, given.values, np.arange(given.values.size)
    if margin is None:
        raise ParameterError("equivalent_table needs a 'margin', such as \"Age*MS\", with a file.")
    moved = names(_TABLE, "swap", swap, least=1)
    require_columns(table, moved, f"'swap' of {_TABLE}")
    split = margin_of(table, margin, (*moved, *carried(table, moved)), _TABLE)
    values = tally(table, split).count[0, 0].astype(float)
    return split, values, split.reached(values)


def _line(rmse: float | Floats) -> float | Floats:
    return rmse * rmse * (1 - _SLACK)


def _closest(kind: Kind, spread: Spread, most: int, target: Floats, found: Ints) -> Ints:
    """Choose between the first crossing and the number before it; else the peak of the error."""
    ks = admissible(kind, most)
    reached = np.maximum(found, 0)
    before = np.maximum(reached - ks.step, 0)
    before[before < ks.start] = 0
    over = np.abs(np.sqrt(mean_square(kind, spread, reached.astype(float))) - target)
    under = np.abs(np.sqrt(mean_square(kind, spread, before.astype(float))) - target)
    nearest = np.where(under < over, before, reached)
    never = found == NEVER
    if never.any():
        nearest[never] = _peak(kind, spread, most, target)[never]
    return nearest


def _peak(kind: Kind, spread: Spread, most: int, target: Floats) -> Ints:
    """Return the smallest k of the largest RMSE, by raising the line until it is not reached."""
    low, high = np.zeros(target.shape), target**2
    best = np.zeros(target.shape, dtype=np.int64)
    for _ in range(60):
        middle = (low + high) / 2
        crossed = first_crossing(kind, spread, most, lambda e, line=middle: (e >= line) & (e > 0))
        hit = crossed != NEVER
        best = np.where(hit, crossed, best)
        low, high = np.where(hit, middle, low), np.where(hit, high, middle)
    return best


_OWNER = "rate_for"


@dataclass(frozen=True, repr=False)
class RateFor(Shown):
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
    if not as_float(budget) >= 0:
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
        variance = found.variance(watched.spread)
        bias = (found.bias * watched.spread.bias_sum).sum(axis=0)
        error = np.maximum(variance, 0.0).sum(axis=0) + bias**2
        broken = np.flatnonzero(error > watched.limit)
        if len(broken):
            return RateFor(*best, worst, _name(watched, int(broken[0])))
        best, worst = (rate, int(k.sum())), float(np.sqrt(error.max()))
    return RateFor(*best, worst)


def _name(watched: _Watched, place: int) -> dict[str, object]:
    return watched.margin.named(watched.cells[[place]])[0]


def ons_rates(data: Data, recipe: TargetedSwap, name: str = "area_rate") -> Data:
    """Return the data with a column of rates by area, as the Office for National Statistics set them in 2011.

    Among the lowest areas a of a parent with N households

        rate_a = (s/2) (N/n_a) (n_a^-1 / sum n^-1 + p_a / sum p),

    at most 1: s is the rate of the recipe, n_a the households of the area, p_a the share of them at risk at any level.
    Where nobody in the parent is at risk, the first term stands for both. Without the limit of 1 the parent's own rate
    is s. Households of which an area is missing have no rate.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.island()
    >>> recipe = qd.TargetedSwap(["birth", "age"], similar=[["hh_size"]], rate=0.05, seed=1)
    >>> rated = qd.theory.ons_rates(data, recipe)
    >>> plan = recipe.changed(rate="area_rate").plan(rated)
    >>> plan.asked, recipe.plan(data).asked
    (75, 75)

    Reference: Office for National Statistics, Statistical Disclosure Control for the 2011 UK Census.
    """
    require_data(data, "ons_rates")
    if not isinstance(recipe.rate, float):
        raise ParameterError(f"ons_rates needs a recipe of {OWNER} whose 'rate' is a number: the rate of each parent.")
    if name in data.codebook:
        raise InputError(f"The file has a column {name!r} already. Give the new one another name.")
    recipe.check_columns(data)
    units, areas, level = risk_of(recipe, data)
    path, known = areas.path, areas.known
    n = np.bincount(path[known], minlength=areas.count)
    at_risk = np.bincount(path[known & (level >= 0)], minlength=areas.count)
    parent = areas.of_level[-2] if len(areas.levels) > 1 else np.zeros(areas.count, dtype=np.int64)
    rate = np.full(areas.count, np.nan)
    held = n > 0
    rate[held] = _rates(n[held], at_risk[held], parent[held], recipe.rate)
    values = np.where(known, rate[path], np.nan)[units.of]
    column = Column(Variable(name, "numeric"), values, "Float64", nullable=bool(np.isnan(values).any()))
    columns = [*(data[each] for each in data.columns), column]
    return Data(columns, weight=data.weight, ticks=data.ticks, remarks=data.remarks, sampling=data.sampling)


def _rates(n: Ints, at_risk: Ints, parent: Ints, s: float) -> Floats:
    """Return the rate of each area of n households."""

    def of_parent(values: Floats) -> Floats:
        return cast("Floats", np.bincount(parent, weights=values))[parent]

    small, share = 1 / n, at_risk / n
    by_size = small / of_parent(small)
    total = of_parent(share)
    by_risk = np.where(total > 0, share / np.where(total > 0, total, 1), by_size)
    return np.minimum(1.0, s / 2 * of_parent(n.astype(np.float64)) / n * (by_size + by_risk))
