"""Moments of every cell of a table: for a planned swap, after real draws, by sampling; and all errors side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from quadrille.data import Data, require_data, tidy
from quadrille.delta import Delta
from quadrille.errors import InputError, ParameterError, bad_parameter, unknown_name
from quadrille.params import as_float, share, whole
from quadrille.plan import Plan
from quadrille.recipe import Recipe, carried
from quadrille.swap.permutation import PermutationSwap, refuse_small_groups
from quadrille.swap.private import PrivateSwap
from quadrille.swap.random import RandomSwap
from quadrille.text import Shown
from quadrille.theory.equivalent import checked_base, equivalent_table, rounding_error
from quadrille.theory.expected import flow_moments
from quadrille.theory.moments import Error, Factors, Floats, Ints, Kind, chance_factors, factors, swap_error
from quadrille.theory.tally import (
    COLUMN,
    ClassIndex,
    Joint,
    Labelled,
    Margin,
    class_index,
    joint_of,
    labelled,
    margin_of,
    refuse_totals,
)

if TYPE_CHECKING:
    import polars as pl


FactorsOf = Callable[[slice, tuple[Floats, ...]], Factors]
EXACT = "exact"
UNTOUCHED = "exact: the margin holds no swapped variable"


@dataclass(frozen=True, eq=False)
class TableMoments:
    """Every possible cell of a margin, moved part first: total before, bias and variance; `idle` classes stay.

    `listed` are the cells to report: those that a swap can reach, or all cells of a user's own table.
    """

    margin: Margin
    count: Ints
    before: Floats | Ints
    bias: Floats
    variance: Floats
    note: str
    listed: Ints
    idle: int = 0
    weighted: bool = False

    @property
    def rmse(self) -> Floats:
        """The root mean square error of every cell."""
        return np.sqrt(self.variance + self.bias**2)

    def frame(self, columns: Sequence[str]) -> pl.DataFrame:
        """Return a row per cell: labels, some columns of numbers and the note."""
        return tidy([{**row, "note": self.told} for row in self.rows(columns)])

    @property
    def told(self) -> str:
        """The note, and how many classes cannot move."""
        idle = f"; {self.idle:,} classes stay as they are, because one record alone cannot move" if self.idle else ""
        return self.note + idle

    def rows(self, columns: Sequence[str]) -> list[dict[str, object]]:
        """Return the labels and some numbers of every cell that is listed."""
        cells = self.listed
        before, rmse = self.before[cells], self.rmse[cells]
        relative = np.divide(rmse, before, out=np.full(len(cells), np.nan), where=before > 0)
        numbers = {
            "before": before.tolist(),
            "expected": (self.before + self.bias)[cells].tolist(),
            "bias": self.bias[cells].tolist(),
            "sd": np.sqrt(self.variance[cells]).tolist(),
            "rmse": rmse.tolist(),
            "relative_rmse": [None if np.isnan(value) else value for value in relative.tolist()],
        }
        return [
            {**labels, **{name: numbers[name][i] for name in columns}}
            for i, labels in enumerate(self.margin.named(cells))
        ]


def moments_of(
    table: object, recipe: Recipe, margin: str | Sequence[str] | None, where: str, *, no_totals: bool = False
) -> TableMoments:
    """Work out expectation and variance of every cell of a margin of a file, or of a table of counts."""
    if margin is None and not isinstance(table, Data):
        return _of_counts(labelled(table, where), recipe, where, no_totals=no_totals)
    data = require_data(table, where)
    if isinstance(recipe, PermutationSwap | RandomSwap):
        recipe.check_columns(data)
        if recipe.rules:
            raise ParameterError(f"{where} has no closed form for a swap under plausibility rules. Draw plans instead.")
    if isinstance(recipe, PrivateSwap):
        recipe.check_columns(data)
        return _private(data, recipe, margin, where)
    if isinstance(recipe, PermutationSwap):
        return _permuted(data, recipe, margin, where)
    if isinstance(recipe, RandomSwap):
        return _random(data, recipe, margin, where)
    raise ParameterError(
        f"{where} has closed forms for PermutationSwap, PrivateSwap and RandomSwap. Draw plans of "
        f"{recipe.method_name} instead."
    )


def _of_counts(given: Labelled, recipe: Recipe, where: str, *, no_totals: bool) -> TableMoments:
    """Work out the cells of a two-way table, each from exact fractions, so that counts may be as large as they are."""
    if not no_totals:
        refuse_totals(given, where)
    kind, k = _amount(given, recipe, where)
    values = given.values
    n, in_rows, in_columns = values.sum(), values.sum(axis=1), values.sum(axis=0)
    errors = [
        swap_error(
            [1, 1, 0, 0], [1, 0, 1, 0], k, kind, counts=[cell, row - cell, column - cell, n - row - column + cell]
        )
        for row, line in zip(in_rows, values, strict=True)
        for column, cell in zip(in_columns, line, strict=True)
    ]
    bias, variance = (np.array([getattr(error, name) for error in errors]) for name in ("bias", "variance"))
    counts, every = values.ravel().astype(np.int64), np.arange(values.size)
    return TableMoments(given.margin, counts, counts, bias, variance, EXACT, every)


def _amount(given: Labelled, recipe: Recipe, where: str) -> tuple[Kind, int]:
    """Return the kind of permutation and how many records of a table it moves."""
    if not isinstance(recipe, PermutationSwap) or recipe.kind == "across" or recipe.within or recipe.weight == "moves":
        raise ParameterError(
            f"{where} of a table of counts takes a PermutationSwap of kind pairs or cycles, without classes and "
            f"weights. Give the file and a 'margin' for other swaps."
        )
    known = (COLUMN, given.row_name)
    for name in recipe.swap:
        if name not in known:
            raise unknown_name("variable", name, known, where=f"the table of {where}")
    if len(recipe.swap) > 1:
        raise ParameterError(f"{where} of a table needs one swapped variable, that of the rows or of the columns.")
    if isinstance(recipe.rate, str):
        raise bad_parameter(where, "rate", "a number in (0, 1]: a table has no column of class rates", recipe.rate)
    n = int(given.values.sum())
    if recipe.records is not None:
        if recipe.records > n:
            raise bad_parameter(where, "records", f"at most the number of records, {n:,}", recipe.records)
        return recipe.kind, recipe.records
    moved = int(recipe.records_at(np.array([recipe.rate]), np.array([n]))[0])
    if moved < 2:
        first = (1.5 if recipe.kind == "cycles" else 1) / max(n, 1)
        least = f"The smallest rate that moves two is about {first:.3g}." if n > 1 else ""
        raise ParameterError(
            f"The 'rate' parameter of {where} moves {'one record' if moved else 'no record'} of the table's {n:,}, "
            f"so there is no error to show. {least}".rstrip()
        )
    return recipe.kind, moved


def approximate(levels: int) -> str:
    """Return the note of a mean-field result: the pairs between levels take their expected numbers."""
    return (
        f"approximate: mean field, because the pairs spread over {levels:,} levels "
        "(combinations of the values that decide who may be paired)"
    )


def is_exact(recipe: Recipe, levels: int) -> bool:
    """Tell whether expectation and variance of a recipe's tables are exact; `levels` decide who may be paired."""
    if isinstance(recipe, RandomSwap):
        return _is_free(recipe) or (levels == 2 and recipe.differ != "none")
    return isinstance(recipe, PermutationSwap | PrivateSwap)


def add_up(joint: Joint, kind: Kind, k: Ints) -> tuple[Floats, Floats, Floats]:
    """Return total before, bias and variance of every cell, added over classes in which k records move."""
    return _added(joint, lambda part, sizes: factors(kind, sizes, k[part, None].astype(float)))


def _added(joint: Joint, factors_of: FactorsOf) -> tuple[Floats, Floats, Floats]:
    """Add up the cells over classes, given the factors of some classes by their sizes."""
    cells = joint.count[0, 0].size
    before, bias, variance = np.zeros(cells), np.zeros(cells), np.zeros(cells)
    for part, spread in joint.spreads():
        found = factors_of(part, tuple(size.astype(float) for size in spread.sizes))
        before += spread.value.sum(axis=0)
        bias += (found.bias * spread.bias_sum).sum(axis=0)
        variance += np.maximum(found.variance(spread), 0.0).sum(axis=0)
    return before, bias, variance


def _permuted(data: Data, recipe: PermutationSwap, margin: str | Sequence[str] | None, where: str) -> TableMoments:
    split = margin_of(data, margin, (*recipe.swap, *carried(data, recipe.swap, recipe.within)), where)
    if isinstance(recipe.rate, float):
        classes = class_index(data, recipe.within)
        joint = joint_of(data, split, classes=classes, groups=recipe.groups, weight=recipe.weight)
        n = joint.count.sum(axis=(0, 2, 3))
        k = recipe.records_at(np.full(len(n), recipe.rate), n)
    else:
        given = recipe.classes(data)
        classes, k = ClassIndex(len(given.n), listed=given.of) if recipe.within else None, given.k
        joint = joint_of(data, split, classes=classes, groups=recipe.groups, weight=recipe.weight)
    if not (k > 1).any():
        recipe.classes(data)  # says which rate would move two records
    moved = np.where(k > 1, k, 0)
    if recipe.groups is not None:
        refuse_small_groups(joint.count.sum(axis=(2, 3)), moved // 2, recipe.groups)
    found = _moments(data, split, joint, recipe.kind, moved)
    return replace(found, idle=int((k == 1).sum()))


def _private(data: Data, recipe: PrivateSwap, margin: str | Sequence[str] | None, where: str) -> TableMoments:
    split = margin_of(data, margin, recipe.columns_moved(data), where)
    strata = recipe.strata(data)
    classes = ClassIndex(len(strata.n), listed=strata.of) if recipe.within else None
    joint = joint_of(data, split, classes=classes, weight=recipe.weight)
    known = chance_factors(strata.n, strata.chance)

    def factors_of(part: slice, _: object) -> Factors:
        return Factors(known.bias[part, None], tuple(each[part, None] for each in known.parts))

    return _table_moments(data, split, joint, _added(joint, factors_of))


def _random(data: Data, recipe: RandomSwap, margin: str | Sequence[str] | None, where: str) -> TableMoments:
    groups = [(group, carried(data, group, recipe.same)) for group in recipe.groups(data)]
    split = margin_of(data, margin, [name for group, along in groups for name in (*group, *along)], where)
    moved = [each for each in groups if set(split.moved.variables) & set(each[0] + each[1])]
    if not moved:
        found, nothing = _moments(data, split, joint_of(data, split), "pairs", np.array([0])), np.zeros(split.cells)
        return replace(found, bias=nothing, variance=nothing, note=UNTOUCHED)
    if len(moved) > 1:
        raise InputError(
            f"{where} has no closed form for several variables swapped one by one. Name a margin with one of them."
        )
    pairs = recipe.count(data.n)
    if _is_free(recipe):
        return _moments(data, split, joint_of(data, split), "pairs", np.array([2 * pairs]))
    flow = flow_moments(data, recipe, moved[0], split, pairs)
    note = EXACT if flow.exact else approximate(flow.levels)
    listed, weighted = split.reached(flow.count), data.weight is not None
    bias = flow.expected - flow.before
    return TableMoments(split, flow.count, flow.before, bias, flow.variance, note, listed, weighted=weighted)


def _moments(data: Data, margin: Margin, joint: Joint, kind: Kind, k: Ints) -> TableMoments:
    """Return the exact moments when k records of each class are permuted."""
    return _table_moments(data, margin, joint, add_up(joint, kind, k))


def _table_moments(data: Data, margin: Margin, joint: Joint, added: tuple[Floats, Floats, Floats]) -> TableMoments:
    count = joint.count.sum(axis=(0, 1)).ravel()
    weighted = data.weight is not None
    return TableMoments(margin, count, *added, EXACT, margin.reached(count), weighted=weighted)


def _is_free(recipe: RandomSwap) -> bool:
    """Tell whether every two records may be paired."""
    return recipe.differ == "none" and not recipe.same and not recipe.different


ERRORS = ("before", "expected", "bias", "sd", "rmse", "relative_rmse")


def table_error(
    table: object, recipe: Recipe, margin: str | Sequence[str] | None = None, *, no_totals: bool = False
) -> pl.DataFrame:
    """Return expected change, standard deviation and RMSE of every cell of a table: one row per cell.

    Of a file, one pass over the records tallies class, moved part and stayed part; the rest follows from the tally.
    Weighted totals where the file has a weight. Cells whose moved or stayed part does not occur are left out: they stay
    empty. Exact for `PermutationSwap`, `PrivateSwap`, and for `RandomSwap` with differ="none" and no constraints. For
    true swaps the expectation is that of expected.md, exact for two levels; the column `note` says which.

    Parameters
    ----------
    table : the file; or a two-way table of counts: a 2-D array, nested lists, or a frame whose first column holds
        labels.
    recipe : the planned swap; its seed plays no part. For a table of counts a `PermutationSwap` of "column" or of the
        name of the rows, which is "row" where there is none; which of the two does not matter.
    margin : of a file, variables joined by "*", such as "Age*MS", or a list of them.
    no_totals : a table in which a row or column equals the sum of the others is refused, unless this says that it is
        no total.

    Example
    -------
    >>> import quadrille as qd
    >>> recipe = qd.PermutationSwap(["Age"], rate=0.05)
    >>> found = qd.theory.table_error(qd.datasets.cps8d(), recipe, "Age*MS")
    >>> found.columns
    ['Age', 'MS', 'before', 'expected', 'bias', 'sd', 'rmse', 'relative_rmse', 'note']
    >>> found["rmse"].round(1).to_list()
    [160.5, 160.5, 109.3, 109.3, 53.2, 53.2]
    >>> swap = qd.PermutationSwap("column", rate=0.1)
    >>> qd.theory.table_error([[30, 20], [20, 30]], swap)["bias"].round(3).to_list()
    [-0.505, 0.505, 0.505, -0.505]
    """
    return moments_of(table, recipe, margin, "table_error", no_totals=no_totals).frame(ERRORS)


def expected_table(table: object, recipe: Recipe, margin: str | Sequence[str] | None = None) -> pl.DataFrame:
    """Return the expected table after a planned swap: one row per cell, with the total before.

    Exact for `PermutationSwap` and `PrivateSwap`, mean field for true swaps (`RandomSwap`); see `table_error`.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> recipe = qd.PermutationSwap(["Age"], rate=0.05)
    >>> found = qd.theory.expected_table(data, recipe, "Age*MS")
    >>> found["before"].to_list()[:2], found["expected"].round(1).to_list()[:2]
    ([779.0, 7653.0], [939.0, 7493.0])
    """
    return moments_of(table, recipe, margin, "expected_table").frame(ERRORS[:2])


@dataclass(frozen=True, repr=False)
class ExpectedChiSquare(Shown):
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


def expected_chi_square(table: object, recipe: Recipe, margin: str | Sequence[str] | None = None) -> ExpectedChiSquare:
    """Return the expected chi-square distance and association of a table; exact where the variances are.

    See `table_error` for the parameters.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> recipe = qd.PermutationSwap(["Age"], rate=0.05)
    >>> found = qd.theory.expected_chi_square(data, recipe, "Age*MS")
    >>> round(found.association_before), round(found.association)
    (6059, 5468)
    """
    found = moments_of(table, recipe, margin, "expected_chi_square")
    mse, before = found.variance + found.bias**2, found.before
    occupied = before > 0
    distance = float((mse[occupied] / before[occupied]).sum())
    left_out = int((~occupied[found.listed]).sum())
    if found.weighted:
        return ExpectedChiSquare(distance, left_out, None, None, found.note)
    counts = before.reshape(found.margin.moved.possible, found.margin.stayed.possible)
    even = np.outer(counts.sum(axis=1), counts.sum(axis=0)).ravel() / counts.sum()
    kept = even > 0
    gap = (before + found.bias - even)[kept]
    after = float(((found.variance[kept] + gap**2) / even[kept]).sum())
    was = float(((before - even)[kept] ** 2 / even[kept]).sum())
    return ExpectedChiSquare(distance, left_out, after, was, found.note)


_REALISED = "realised"
MOST_RECORDS = 10_000_000
"""Larger tables are not spread out into records."""


def realised(
    table: object, recipe: Recipe, margin: str | Sequence[str] | None = None, *, draws: int = 1, seed: int = 1
) -> pl.DataFrame:
    """Draw a recipe and return, cell by cell, its mean change next to the predicted one.

    Columns: the variables, `label`, `bias` (predicted change), `sd` (that of the mean over the draws), `realised`.
    `chart.predicted_realised` draws the frame.

    Parameters
    ----------
    table, recipe, margin : as in `table_error`; a table of counts is spread out into records. The seed of the recipe
        plays no part.
    draws : how many, with seeds `seed`, `seed` + 1 and so on: whole numbers, so never those of a release.

    Example
    -------
    >>> import quadrille as qd
    >>> recipe = qd.PermutationSwap(["Age"], rate=0.05)
    >>> qd.theory.realised(qd.datasets.cps8d(), recipe, "Age*MS", draws=20)["realised"].round(1).to_list()[:2]
    [163.6, -163.6]
    >>> swap = qd.PermutationSwap("column", rate=0.2)
    >>> qd.theory.realised([[30, 20], [20, 30]], swap, draws=50)["realised"].round(1).to_list()
    [-0.7, 0.7, 0.7, -0.7]
    """
    draws, seed = whole(_REALISED, "draws", draws, least=1), whole(_REALISED, "seed", seed, least=0)
    if margin is None and not isinstance(table, Data):
        given = labelled(table, _REALISED)
        table, margin = given.spread_out(MOST_RECORDS), given.margin.variables
    found = moments_of(table, recipe, margin, _REALISED)
    data = require_data(table, _REALISED)
    seeded = (replace(cast("Any", recipe), seed=seed + draw) for draw in range(draws))
    total = _total(data, (one.plan(data) for one in seeded), found.margin)
    return _realised_frame(found, total / draws, draws)


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
    if not 0 <= as_float(total) < inf or (squares is None and total > n):
        raise bad_parameter(_OWNER, "total", "a number of 0 or more, a count no larger than n", total)
    square = total if squares is None else squares
    variance = (1 - held) * n / (n - 1) * (square - total / n * total)
    return Error(float(total), 0.0, max(float(variance), 0.0))


def sampling_table(table: object, margin: str | Sequence[str] | None = None, *, fraction: float) -> pl.DataFrame:
    """Return the sampling error of every cell that can be: its labels, `total` and `sampling`.

    `table` is a file, with a margin such as "Age*MS", or a two-way table of counts as in `table_error`.

    Example
    -------
    >>> import quadrille as qd
    >>> qd.theory.sampling_table(qd.datasets.cps8d(), "Age*MS", fraction=0.01)["sampling"].round(1).to_list()[:2]
    [27.5, 79.9]
    """
    if margin is None and not isinstance(table, Data):
        given = labelled(table, _TABLE)
        split, totals, n = given.margin, given.values.ravel(), int(given.values.sum())
        squares = totals
    else:
        data = require_data(table, _TABLE)
        split, n = margin_of(data, margin, (), _TABLE), data.n
        of = split.stayed.cells(data)
        weight = None if data.ticks is None else data.ticks.values / data.ticks.per_unit
        totals = np.bincount(of, weights=weight, minlength=split.cells)
        squares = totals if weight is None else np.bincount(of, weights=weight**2, minlength=split.cells)
    rows = zip(split.named(np.arange(split.cells)), totals.tolist(), squares.tolist(), strict=True)
    return tidy(
        [
            {**labels, "total": total, "sampling": sampling_error(total, n, fraction=fraction, squares=square).sd}
            for labels, total, square in rows
        ]
    )


_WEIGHTED = "the cells are weighted totals, and random rounding is for counts"
_CLASSES = "records move within classes, so there is no single number of records to compare with"
_ACROSS = "records move across two groups, and the number that equals rounding is for the whole file"
_BY_CHANCE = "records are drawn by chance, so there is no single number of records to compare with"
_TRUE_SWAPS = "the number that equals rounding is for permutations, and true swaps are none"
_SIDE_BY_SIDE = "compare_errors"


@dataclass(frozen=True, eq=False, repr=False)
class CellErrors(Shown):
    """The errors of the cells of a table side by side, as `compare_errors` returns them.

    `cells` holds one mapping per cell and `labels` the names of those of its entries that are labels. `not_given` says
    of a column that is left out why it is. `weighted` tells whether the cells are weighted totals.

    Example
    -------
    >>> import quadrille as qd
    >>> recipe = qd.PermutationSwap(["Age"], rate=0.05, within=["Sex"])
    >>> found = qd.theory.compare_errors(qd.datasets.cps8d(), recipe, "Age*MS")
    >>> found.labels, list(found.not_given)
    (('Age', 'MS'), ['records'])
    """

    cells: tuple[dict[str, Any], ...]
    labels: tuple[str, ...]
    not_given: Mapping[str, str]
    weighted: bool

    def frame(self) -> pl.DataFrame:
        """Return one row per cell.

        Example
        -------
        >>> import quadrille as qd
        >>> swap = qd.PermutationSwap("column", rate=0.1)
        >>> found = qd.theory.compare_errors([[30, 20], [20, 30]], swap).frame()
        >>> found.columns[-4:]
        ['rounding_rmse', 'records', 'closest', 'note']
        """
        return tidy(self.cells)


def compare_errors(
    table: object,
    recipe: Recipe,
    margin: str | Sequence[str] | None = None,
    *,
    base: int = 5,
    sampling: float | None = None,
    no_totals: bool = False,
) -> CellErrors:
    """Return, for each cell of a table, the error of swapping next to those of random rounding and of sampling.

    Columns: those of `table_error`; `sampling`, the standard error of sampling, where its share is given;
    `rounding_rmse`, the error of random rounding; and the number of records whose swapping would put as much error into
    the cell as rounding does: `records`, and the `closest`. What does not exist is left out, and `not_given` says why.

    Parameters
    ----------
    table, recipe, margin, no_totals : as in `table_error`.
    base : of random rounding.
    sampling : the share of the population that the file holds, when it is a simple random sample.

    Example
    -------
    >>> import quadrille as qd
    >>> swap = qd.PermutationSwap("column", rate=0.1)
    >>> found = qd.theory.compare_errors([[30, 20], [20, 30]], swap, sampling=0.5).frame()
    >>> found.select("before", "rmse", "rounding_rmse", "sampling").row(1)
    (20, 1.211..., 0.0, 2.842...)
    """
    checked_base(_SIDE_BY_SIDE, base)
    if not isinstance(table, Data) and margin is None:
        table = labelled(table, _SIDE_BY_SIDE)
    found = moments_of(table, recipe, margin, _SIDE_BY_SIDE, no_totals=no_totals)
    labels, cells, not_given = found.margin.variables, found.rows(ERRORS), dict[str, str]()
    if sampling is not None:
        _join(cells, sampling_table(table, margin, fraction=sampling), labels, ("sampling",))
    if found.weighted:
        not_given = {"rounding_rmse": _WEIGHTED, "records": _WEIGHTED}
    else:
        for cell in cells:
            cell["rounding_rmse"] = rounding_error(round(cast("float", cell["before"])), base).rmse
        not_given = _no_equivalent(recipe)
    if not not_given:
        assert isinstance(recipe, PermutationSwap)
        swap = recipe.swap if isinstance(table, Data) else ()
        equal = equivalent_table(table, margin, swap=swap, base=base, kind=recipe.kind)
        _join(cells, equal, labels, ("records", "closest"))
    return CellErrors(tuple({**cell, "note": found.told} for cell in cells), labels, not_given, found.weighted)


def _no_equivalent(recipe: Recipe) -> dict[str, str]:
    """Say why no number of records equals rounding, if there is a reason."""
    if isinstance(recipe, PrivateSwap):
        return {"records": _BY_CHANCE}
    if not isinstance(recipe, PermutationSwap):
        return {"records": _TRUE_SWAPS}
    if recipe.within:
        return {"records": _CLASSES}
    return {"records": _ACROSS} if recipe.kind == "across" else {}


def _join(
    cells: Sequence[dict[str, object]], frame: pl.DataFrame, labels: Sequence[str], columns: Sequence[str]
) -> None:
    """Add columns of a frame to cells, found by their labels."""
    by_cell = {tuple(row[name] for name in labels): row for row in frame.to_dicts()}
    for cell in cells:
        row = by_cell[tuple(cell[name] for name in labels)]
        cell.update({name: row[name] for name in columns})
