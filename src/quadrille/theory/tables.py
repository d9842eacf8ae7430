"""Moments of every cell of a table: for a planned swap, after real draws, and by sampling."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, SupportsFloat, cast

import numpy as np

from quadrille.codebook import Variable
from quadrille.data import Column, Cross, Data, code_dtype, require_columns, require_data, tidy
from quadrille.delta import Delta
from quadrille.errors import InputError, ParameterError, bad_parameter
from quadrille.params import share, whole
from quadrille.plan import Plan
from quadrille.recipe import Recipe, carried, refuse_fixed
from quadrille.swap.groups import codes_of, group_ids
from quadrille.swap.permutation import PermutationSwap, records_of, refuse_small_groups, two_groups
from quadrille.swap.random import RandomSwap
from quadrille.theory.expected import ClassIndex, Joint, flow_moments, tally
from quadrille.theory.labelled import labelled
from quadrille.theory.margin import Ints, Margin, margin_of
from quadrille.theory.moments import Error
from quadrille.theory.spread import Floats, Kind, factors

if TYPE_CHECKING:
    import polars as pl


EXACT = "exact"
_SMALL_CROSS = 1024
UNTOUCHED = "exact: the margin holds no swapped variable"


@dataclass(frozen=True, eq=False)
class TableMoments:
    """Every possible cell of a margin, moved part first: total before, bias and variance; `idle` classes stay."""

    margin: Margin
    count: Ints
    before: Floats
    bias: Floats
    variance: Floats
    note: str
    idle: int = 0

    @property
    def rmse(self) -> Floats:
        """The root mean square error of every cell."""
        return np.sqrt(self.variance + self.bias**2)

    @property
    def listed(self) -> Ints:
        """The cells that a swap can reach: moved part and stayed part both occur. In the order of the margin."""
        table = self.count.reshape(self.margin.moved.possible, self.margin.stayed.possible)
        open_cells = (table.sum(axis=1) > 0)[:, None] & (table.sum(axis=0) > 0)[None, :]
        return self.margin.ordered(np.flatnonzero(open_cells.ravel()))


def planned(data: Data, recipe: Recipe, margin: str | Sequence[str], where: str) -> TableMoments:
    """Work out expectation and variance of every cell of a margin."""
    require_data(data, where)
    if isinstance(recipe, PermutationSwap | RandomSwap):
        require_columns(data, recipe.swap, f"'swap' of {type(recipe).__name__}")
        refuse_fixed(data, recipe.swap)
        if recipe.rules:
            raise ParameterError(f"{where} has no closed form for a swap under plausibility rules. Draw plans instead.")
    if isinstance(recipe, PermutationSwap):
        return _permuted(data, recipe, margin, where)
    if isinstance(recipe, RandomSwap):
        return _random(data, recipe, margin, where)
    raise ParameterError(
        f"{where} has closed forms for PermutationSwap and RandomSwap. Draw plans of {type(recipe).__name__} instead."
    )


def approximate(levels: int) -> str:
    """Return the note of a mean-field result: the pairs between levels take their expected numbers."""
    return (
        f"approximate: mean field, because the pairs spread over {levels:,} levels "
        "(combinations of the values that decide who may be paired)"
    )


def is_exact(recipe: Recipe, levels: int) -> bool:
    """Tell whether expectation and variance of a recipe's tables are exact; `levels` decide who may be paired."""
    if isinstance(recipe, RandomSwap):
        free = recipe.differ == "none" and not recipe.same and not recipe.different
        return free or (levels == 2 and recipe.differ != "none")
    return isinstance(recipe, PermutationSwap)


def joint_of(
    data: Data,
    margin: Margin,
    *,
    classes: ClassIndex | None = None,
    groups: str | None = None,
    weight: str = "stays",
) -> Joint:
    """Tally a margin for a permutation within classes, perhaps across two groups."""
    if weight == "moves" and data.weight is None:
        raise InputError('weight="moves" needs a weight, and the file has none. Name it, or let it stay.')
    group = None if groups is None else two_groups(data, groups, "PermutationSwap")
    heavy = None if data.weight is None else "moved" if weight == "moves" else "stayed"
    return tally(data, margin, classes=classes, group=group, heavy=heavy)


def class_index(data: Data, within: Sequence[str]) -> ClassIndex | None:
    """Return the classes of some columns: their cross when it is small, else the combinations that occur."""
    require_columns(data, within, "'within'")
    if not within:
        return None
    if all(data[name].variable.coded for name in within):
        cross = Cross.of(data, tuple(within))
        if cross.possible <= _SMALL_CROSS:
            return ClassIndex(cross.possible, cross=cross)
    of, count = group_ids([codes_of(data, name) for name in within], data.n)
    return ClassIndex(count, listed=of)


def add_up(joint: Joint, kind: Kind, k: Ints) -> tuple[Floats, Floats, Floats]:
    """Return total before, bias and variance of every cell, added over classes in which k records move."""
    cells = joint.count[0, 0].size
    before, bias, variance = np.zeros(cells), np.zeros(cells), np.zeros(cells)
    for part, spread in joint.spreads():
        moved = k[part, None].astype(float)
        found = factors(kind, tuple(size.astype(float) for size in spread.sizes), moved)
        before += spread.value.sum(axis=0)
        bias += (found.bias * spread.bias_sum).sum(axis=0)
        terms = sum(f * p for f, p in zip(found.parts, spread.parts, strict=True))
        variance += np.maximum(terms, 0.0).sum(axis=0)
    return before, bias, variance


def _permuted(data: Data, recipe: PermutationSwap, margin: str | Sequence[str], where: str) -> TableMoments:
    split = margin_of(data, margin, (*recipe.swap, *carried(data, recipe.swap, recipe.within)), where)
    if isinstance(recipe.rate, float):
        classes = class_index(data, recipe.within)
        joint = joint_of(data, split, classes=classes, groups=recipe.groups, weight=recipe.weight)
        n = joint.count.sum(axis=(0, 2, 3))
        k = records_of(recipe.kind, np.full(len(n), recipe.rate), n)
    else:
        given = recipe.classes(data)
        classes, k = ClassIndex(len(given.n), listed=given.of) if recipe.within else None, given.k
        joint = joint_of(data, split, classes=classes, groups=recipe.groups, weight=recipe.weight)
    if not (k > 1).any():
        recipe.classes(data)  # says which rate would move two records
    moved = np.where(k > 1, k, 0)
    if recipe.groups is not None:
        refuse_small_groups(joint.count.sum(axis=(2, 3)), moved // 2, recipe.groups)
    before, bias, variance = add_up(joint, recipe.kind, moved)
    count = joint.count.sum(axis=(0, 1)).ravel()
    return TableMoments(split, count, before, bias, variance, EXACT, int((k == 1).sum()))


def _random(data: Data, recipe: RandomSwap, margin: str | Sequence[str], where: str) -> TableMoments:
    groups = [(group, carried(data, group, recipe.same)) for group in recipe.groups(data)]
    split = margin_of(data, margin, [name for group, along in groups for name in (*group, *along)], where)
    moved = [each for each in groups if set(split.moved.variables) & set(each[0] + each[1])]
    if not moved:
        joint = joint_of(data, split)
        before, _, _ = add_up(joint, "pairs", np.zeros(1, dtype=np.int64))
        nothing = np.zeros(split.cells)
        return TableMoments(split, joint.count.ravel(), before, nothing, nothing, UNTOUCHED)
    if len(moved) > 1:
        raise InputError(
            f"{where} has no closed form for several variables swapped one by one. Name a margin with one of them."
        )
    pairs = recipe.count(data.n)
    if recipe.differ == "none" and not recipe.same and not recipe.different:
        joint = joint_of(data, split)
        before, bias, variance = add_up(joint, "pairs", np.array([2 * pairs]))
        return TableMoments(split, joint.count.sum(axis=(0, 1)).ravel(), before, bias, variance, EXACT)
    found = flow_moments(data, recipe, moved[0], split, pairs)
    note = EXACT if found.exact else approximate(found.levels)
    return TableMoments(split, found.count, found.before, found.expected - found.before, found.variance, note)


def table_error(data: Data, recipe: Recipe, margin: str | Sequence[str]) -> pl.DataFrame:
    """Return expected change, standard deviation and RMSE of every cell of a margin: one row per cell.

    One pass over the records tallies class, moved part and stayed part; the rest follows from the tally. Weighted
    totals where the file has a weight. Cells whose moved or stayed part does not occur are left out: they stay empty.

    Exact for `PermutationSwap`, and for `RandomSwap` with differ="none" and no constraints. For true swaps the
    expectation is that of expected.md, exact for two levels; its column `note` says which.

    Parameters
    ----------
    data : the file.
    recipe : the planned swap; its seed plays no part.
    margin : variables joined by "*", such as "Age*MS", or a list of them.

    Example
    -------
    >>> import quadrille as qd
    >>> recipe = qd.PermutationSwap(["Age"], rate=0.05)
    >>> found = qd.theory.table_error(qd.datasets.cps8d(), recipe, "Age*MS")
    >>> found.columns
    ['Age', 'MS', 'before', 'expected', 'bias', 'sd', 'rmse', 'relative_rmse', 'note']
    >>> found["rmse"].round(1).to_list()
    [160.5, 160.5, 109.3, 109.3, 53.2, 53.2]
    """
    found = planned(data, recipe, margin, "table_error")
    return _frame(found, ("before", "expected", "bias", "sd", "rmse", "relative_rmse"))


def expected_table(data: Data, recipe: Recipe, margin: str | Sequence[str]) -> pl.DataFrame:
    """Return the expected table after a planned swap: one row per cell, with the total before.

    Exact for `PermutationSwap`, mean field for true swaps (`RandomSwap`); see `table_error`.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> recipe = qd.PermutationSwap(["Age"], rate=0.05)
    >>> found = qd.theory.expected_table(data, recipe, "Age*MS")
    >>> found["before"].to_list()[:2], found["expected"].round(1).to_list()[:2]
    ([779.0, 7653.0], [939.0, 7493.0])
    """
    return _frame(planned(data, recipe, margin, "expected_table"), ("before", "expected"))


@dataclass(frozen=True)
class ExpectedChiSquare:
    """Expected chi-squares of a margin after a planned swap.

    `distance` is E sum (T' - T)^2 / T over the cells that were not empty; `left_out` counts the empty ones that can be
    reached. `association` is E sum (T' - e)^2 / e with e = row * column / n, the chi-square between moved and stayed
    part, and `association_before` is its value before; None for weighted totals, whose margins change.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> recipe = qd.PermutationSwap(["Age"], rate=0.05)
    >>> found = qd.theory.expected_chi_square(data, recipe, "Age*MS")
    >>> round(found.distance, 1), found.left_out, found.note
    (39.6, 0, 'exact')
    """

    distance: float
    left_out: int
    association: float | None
    association_before: float | None
    note: str


def expected_chi_square(data: Data, recipe: Recipe, margin: str | Sequence[str]) -> ExpectedChiSquare:
    """Return the expected chi-square distance and association of a margin; exact where the variances are.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> recipe = qd.PermutationSwap(["Age"], rate=0.05)
    >>> found = qd.theory.expected_chi_square(data, recipe, "Age*MS")
    >>> round(found.association_before), round(found.association)
    (6059, 5468)
    """
    found = planned(data, recipe, margin, "expected_chi_square")
    mse, before = found.variance + found.bias**2, found.before
    occupied = before > 0
    distance = float((mse[occupied] / before[occupied]).sum())
    left_out = int((~occupied[found.listed]).sum())
    if data.weight is not None:
        return ExpectedChiSquare(distance, left_out, None, None, found.note)
    table = before.reshape(found.margin.moved.possible, found.margin.stayed.possible)
    even = np.outer(table.sum(axis=1), table.sum(axis=0)).ravel() / table.sum()
    kept = even > 0
    gap = (before + found.bias - even)[kept]
    after = float(((found.variance[kept] + gap**2) / even[kept]).sum())
    was = float(((before - even)[kept] ** 2 / even[kept]).sum())
    return ExpectedChiSquare(distance, left_out, after, was, found.note)


def _frame(found: TableMoments, columns: Sequence[str]) -> pl.DataFrame:
    cells = found.listed
    before, rmse = found.before[cells], found.rmse[cells]
    relative = np.divide(rmse, before, out=np.full(len(cells), np.nan), where=before > 0)
    numbers = {
        "before": before.tolist(),
        "expected": (found.before + found.bias)[cells].tolist(),
        "bias": found.bias[cells].tolist(),
        "sd": np.sqrt(found.variance[cells]).tolist(),
        "rmse": rmse.tolist(),
        "relative_rmse": [None if np.isnan(value) else value for value in relative.tolist()],
    }
    note = found.note
    if found.idle:
        note += f"; {found.idle:,} classes stay as they are, because one record alone cannot move"
    rows = [
        {**labels, **{name: numbers[name][i] for name in columns}, "note": note}
        for i, labels in enumerate(found.margin.named(cells))
    ]
    return tidy(rows)


_REALISED = "realised"
MOST_RECORDS = 10_000_000
"""Larger tables are not spread out into records."""


def realised(data: Data, recipe: Recipe, margin: str | Sequence[str], *, draws: int = 1, seed: int = 1) -> pl.DataFrame:
    """Draw a recipe and return, cell by cell, its mean change beside the predicted one.

    Columns: the variables, `label`, `bias` (predicted change), `sd` (that of the mean over the draws), `realised`.
    `chart.predicted_realised` draws the frame.

    Parameters
    ----------
    data, recipe, margin : as in `table_error`; the seed of the recipe plays no part.
    draws : how many, with seeds `seed`, `seed` + 1 and so on: whole numbers, so never those of a release.

    Example
    -------
    >>> import quadrille as qd
    >>> recipe = qd.PermutationSwap(["Age"], rate=0.05)
    >>> qd.theory.realised(qd.datasets.cps8d(), recipe, "Age*MS", draws=20)["realised"].round(1).to_list()[:2]
    [163.6, -163.6]
    """
    draws, seed = whole(_REALISED, "draws", draws, least=1), whole(_REALISED, "seed", seed, least=0)
    found = planned(data, recipe, margin, _REALISED)
    seeded = (replace(cast("Any", recipe), seed=seed + each) for each in range(draws))
    total = _total(data, (one.plan(data) for one in seeded), found.margin)
    return _realised_frame(found, total / draws, draws)


def realised_of_counts(
    table: object,
    *,
    rate: float | None = None,
    records: int | None = None,
    kind: Kind = "pairs",
    draws: int = 1,
    seed: int = 1,
) -> pl.DataFrame:
    """Do the same for a two-way table of counts, spread out into records.

    Example
    -------
    >>> import quadrille as qd
    >>> found = qd.theory.realised_of_counts([[30, 20], [20, 30]], rate=0.2, draws=50)
    >>> found["realised"].round(1).to_list()
    [-0.7, 0.7, 0.7, -0.7]
    """
    given = labelled(table, _REALISED)
    n = int(given.values.sum())
    if n > MOST_RECORDS:
        raise InputError(f"The table counts {n:,} records; at most {MOST_RECORDS:,} are drawn. Take a smaller table.")
    rows, columns = given.values.shape
    each = given.values.astype(np.int64).ravel()
    codes = np.repeat(np.arange(rows * columns, dtype=np.int64), each)
    row, column = ("row" if given.row_name == "column" else given.row_name), "column"
    data = Data([_column(row, given.rows, codes // columns), _column(column, given.columns, codes % columns)])
    recipe = PermutationSwap([column], rate=rate, records=records, kind=kind, seed=seed)
    return realised(data, recipe, [row, column], draws=draws, seed=seed)


def _column(name: str, labels: Sequence[str], codes: Ints) -> Column:
    return Column(Variable(name, "nominal", tuple(labels)), codes.astype(code_dtype(len(labels))))


def _total(data: Data, plans: Iterable[Plan], margin: Margin) -> Floats:
    """Add up the changes of all cells over plans, in the order moved part, stayed part."""
    total = np.zeros(margin.cells)
    for plan in plans:
        delta = Delta(data, plan)
        (was, now), (stay, still) = delta.cells(margin.moved), delta.cells(margin.stayed)
        old, new = was * margin.stayed.possible + stay, now * margin.stayed.possible + still
        if data.ticks is None or delta.ticks is None or delta.ticks_after is None:
            before, after = None, None
        else:
            before, after = delta.ticks / data.ticks.per_unit, delta.ticks_after / data.ticks.per_unit
        total += np.bincount(new.astype(np.int64), weights=after, minlength=margin.cells)
        total -= np.bincount(old.astype(np.int64), weights=before, minlength=margin.cells)
    return total


def _realised_frame(found: TableMoments, change: Floats, draws: int) -> pl.DataFrame:
    cells = found.listed
    numbers = zip(found.bias[cells], np.sqrt(found.variance[cells] / draws), change[cells], strict=True)
    return tidy(
        [
            {
                **labels,
                "label": ", ".join(map(str, labels.values())),
                "bias": float(bias),
                "sd": float(sd),
                "realised": float(made),
            }
            for labels, (bias, sd, made) in zip(found.margin.named(cells), numbers, strict=True)
        ]
    )


_OWNER = "sampling_error"
_TABLE = "sampling_table"


def sampling_error(total: float, n: int, *, fraction: float, squares: float | None = None) -> Error:
    """Return the sampling error of a cell's total, when the file is a simple random sample of a population.

    With y the weight of a record in the cell and 0 in the others, the variance of sum y over samples of n records is
    estimated by (1 - fraction) n/(n-1) (sum y^2 - (sum y)^2 / n). For counts that is (1 - fraction) n/(n-1) n p (1-p).

    Parameters
    ----------
    total, n : the cell's count, or its total weight, and the number of records of the file.
    fraction : the share of the population that the file holds, in (0, 1]; 1 is a census.
    squares : the sum of squared weights in the cell; for counts it is the count.

    Example
    -------
    >>> import quadrille as qd
    >>> round(qd.theory.sampling_error(200, 1000, fraction=0.1).sd, 3)
    12.006
    """
    n = whole(_OWNER, "n", n, least=2)
    held = share(_OWNER, "fraction", fraction)
    number = isinstance(cast("object", total), SupportsFloat) and not isinstance(total, bool)
    if not number or not isfinite(total) or total < 0 or (squares is None and total > n):
        raise bad_parameter(_OWNER, "total", "a number of 0 or more, a count no larger than n", total)
    square = total if squares is None else squares
    variance = (1 - held) * n / (n - 1) * (square - total / n * total)
    return Error(float(total), 0.0, max(float(variance), 0.0))


def sampling_table(data: Data, margin: str | Sequence[str], *, fraction: float) -> pl.DataFrame:
    """Return the sampling error of every cell of a margin that can be: its labels, `total` and `sampling`.

    Example
    -------
    >>> import quadrille as qd
    >>> qd.theory.sampling_table(qd.datasets.cps8d(), "Age*MS", fraction=0.01)["sampling"].round(1).to_list()[:2]
    [27.5, 79.9]
    """
    require_data(data, _TABLE)
    split = margin_of(data, margin, (), _TABLE)
    of = split.stayed.cells(data)
    weight = None if data.ticks is None else data.ticks.values / data.ticks.per_unit
    totals = np.bincount(of, weights=weight, minlength=split.cells)
    squares = totals if weight is None else np.bincount(of, weights=weight**2, minlength=split.cells)
    rows = zip(split.named(np.arange(split.cells)), totals.tolist(), squares.tolist(), strict=True)
    return tidy(
        [
            {
                **labels,
                "total": total,
                "sampling": sampling_error(total, data.n, fraction=fraction, squares=square).sd,
            }
            for labels, total, square in rows
        ]
    )
