"""What a plan changes: touched rows before and after, the report on the plan, and the traces that it leaves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Cells, Codes, Cross, Data, Rows, keys_of, refuse_uncounted, tidy, unequal
from quadrille.plan import Move, Plan
from quadrille.text import Shown, percent

if TYPE_CHECKING:
    import polars as pl


Ints = NDArray[np.int64]

OUTSIDE = -1
"""The cell of a record that a table leaves out."""
FEW = 1 << 22
"""The cells of all records of a file are kept from the first on where it has no more records than this."""
_NONE = np.empty(0, dtype=np.int64)


class Delta:
    """What a plan changes in the data: for every touched row its old and its new cell.

    `fused` holds the cell of every record for crosses that are used again and again; a cross that is not
    in it is gathered column by column, for the touched rows only.
    """

    def __init__(self, data: Data, plan: Plan, fused: Mapping[Cross, Fused] | None = None) -> None:
        self.data = data
        self.plan = plan
        self.fused = fused or {}
        self._cells: dict[Cross, tuple[Codes, Codes]] = {}
        self._nets: dict[Cross, tuple[Cells, Cells]] = {}
        self._values: dict[str, tuple[Codes, Codes]] = {}
        only = plan.moves[0] if len(plan.moves) == 1 else None
        self.rows: Rows = only.expanded[0] if only else plan.rows
        refuse_uncounted(data, self.rows)
        self._places = [
            (move, None if move is only else np.searchsorted(self.rows, move.expanded[0])) for move in plan.moves
        ]

    @cached_property
    def moved(self) -> tuple[str, ...]:
        """The columns that move."""
        return self.plan.columns

    @cached_property
    def weight_moves(self) -> bool:
        """Whether the weight moves too, so that tables of columns that stay change as well."""
        return self.data.weight is not None and self.data.weight in self.moved

    @cached_property
    def ticks(self) -> Ints | None:
        """Weights of the touched rows before, in ticks."""
        return None if self.data.ticks is None else self.data.ticks.values[self.rows]

    @cached_property
    def ticks_after(self) -> Ints | None:
        """Weights of the touched rows after, in ticks."""
        old, ticks = self.ticks, self.data.ticks
        if old is None or ticks is None or not self.weight_moves:
            return old
        move, place = next((move, place) for move, place in self._places if self.data.weight in move.columns)
        new = old.copy()
        new[slice(None) if place is None else place] = ticks.values[move.expanded[1]]
        return new

    def steps(self, old: Codes, new: Codes) -> tuple[Codes, Codes, Ints]:
        """Return cells that the touched rows leave and reach, with the ticks they carry; no ticks without a weight.

        Where the weight moves, a row leaves with its old weight and arrives with its new one: two steps, from a cell
        to outside and from outside to a cell.
        """
        if self.ticks is None or self.ticks_after is None:
            return old, new, _NONE
        if not self.weight_moves:
            return old, new, self.ticks
        outside = np.full_like(old, OUTSIDE)
        ticks = np.concatenate((self.ticks, self.ticks_after))
        return np.concatenate((old, outside)), np.concatenate((outside, new)), ticks

    def values(self, name: str) -> tuple[Codes, Codes]:
        """Return one column at the touched rows, before and after."""
        if name not in self._values:
            values = self.data[name].values
            old = new = values[self.rows]
            for move, place in self._places:
                if name in move.columns:
                    new = old.copy()
                    new[slice(None) if place is None else place] = values[move.expanded[1]]
            self._values[name] = old, new
        return self._values[name]

    def cells(self, cross: Cross) -> tuple[Codes, Codes]:
        """Return the cells of the touched rows in a cross, before and after."""
        if cross not in self._cells:
            self._cells[cross] = self._gather_fused(cross) if cross in self.fused else self._gather(cross)
        return self._cells[cross]

    def fused_with(self, variables: tuple[str, ...]) -> Fused | None:
        """Return a fused cross that has all of these variables, if there is one."""
        return next((fused for fused in self.fused.values() if fused.contains(variables)), None)

    def net(self, cross: Cross) -> tuple[Cells, Cells]:
        """Return the cells of a fused cross that change, and the net changes of count and ticks, (2, m)."""
        if cross not in self._nets:
            memory = scratch(cross.possible)
            self._nets[cross] = kernels.net_of_rows(*self.steps(*self.cells(cross)), memory, cross.possible)
        return self._nets[cross]

    def _gather(self, cross: Cross) -> tuple[Cells, Cells]:
        old = cross.cells(self.data, self.rows)
        new = old
        for name in set(cross.variables) & set(self.moved):
            was, now = self.values(name)
            new = new + (now.astype(np.int64) - was.astype(np.int64)) * cross.stride(name)
        return old, new

    def _gather_fused(self, cross: Cross) -> tuple[Codes, Codes]:
        fused = self.fused[cross]
        old = fused.at(self.rows)
        new = old.copy()
        for move, place in self._places:
            part = fused.part(move.columns)
            if part is None:
                continue
            source = move.expanded[1]
            if place is None:
                new += part[_partner_cells(fused, old, source, paired=move.row_pairs is not None)] - part[old]
            else:
                new[place] += part[fused.at(source)] - part[old[place]]
        return old, new


def _partner_cells(fused: Fused, old: Codes, source: Rows, *, paired: bool) -> Codes:
    """Return the cells of the source rows; in an exchange they are the two halves of `old`, turned round."""
    if not paired:
        return fused.at(source)
    half = len(old) // 2
    return np.concatenate((old[half:], old[:half]))


class Fused:
    """The cell of every record in a dense cross, and what each group of moved columns contributes to it."""

    def __init__(self, data: Data, cross: Cross) -> None:
        self.cross = cross
        self._data = data
        self._asked = 0
        self._parts: dict[tuple[str, ...], NDArray[np.int32] | None] = {}
        self._lookups: dict[object, NDArray[np.int32]] = {}

    @cached_property
    def cells(self) -> NDArray[np.int32]:
        """The cell of every record."""
        cells = np.empty(self._data.n, dtype=np.int32)
        columns = [self._data[name].values for name in self.cross.variables]
        for start, keys in keys_of(columns, self.cross.strides, len(cells)):
            cells[start : start + len(keys)] = keys
        return cells

    def at(self, rows: Rows) -> Codes:
        """Return the cells of some records; in a large file all are worked out when as many have been asked for."""
        self._asked += len(rows)
        if "cells" in self.__dict__ or self._data.n <= FEW or self._asked > self._data.n:
            return self.cells[rows]
        return self.cross.cells(self._data, rows).astype(np.int32)

    def contains(self, variables: tuple[str, ...]) -> bool:
        """Tell whether all of these variables are in the cross."""
        return all(name in self.cross.variables for name in variables)

    def lookup(self, table: object, make: Callable[[], NDArray[np.int32]]) -> NDArray[np.int32]:
        """Return the cell of a table for each cell of the cross, made once."""
        if table not in self._lookups:
            self._lookups[table] = make()
        return self._lookups[table]

    def part(self, columns: tuple[str, ...]) -> NDArray[np.int32] | None:
        """Return, for each cell, the share of its number that comes from `columns`; None if they are not in it."""
        if columns not in self._parts:
            inside = set(columns) & set(self.cross.variables)
            self._parts[columns] = self.cross.part(inside) if inside else None
        return self._parts[columns]


_SCRATCH = threading.local()


def scratch(possible: int) -> Cells:
    """Return zeroed working memory for the counting kernels, which leave it zeroed."""
    memory = cast("Cells | None", getattr(_SCRATCH, "memory", None))
    if memory is None or memory.shape[1] < possible:
        memory = np.zeros((3, possible), dtype=np.int64)
        _SCRATCH.memory = memory
    return memory


_NEARLY = 0.9
"""Strata have one weight each, or nearly, when so many of their records are in a stratum of one weight."""

_UNEXPLAINED = 0.05
"""A column tells the weight when no more of its variance than this is left within the categories."""


def warnings_of(data: Data, plan: Plan, public: Sequence[str] | None = None) -> list[str]:
    """Say what speaks against a plan: the traces that it leaves, and what its method warns of."""
    own = () if plan.details is None else cast("Sequence[str]", plan.details.facts.get("warnings", ()))
    shown = (*traces(data, plan, public), *told_by_values(data, plan, public), *told_by_pairs(data, plan, public))
    return [*shown, *own]


def margins_kept(data: Data, plan: Plan) -> bool:
    """Whether each category of every variable has as many records as before: not where units of unequal size move.

    >>> import quadrille as qd
    >>> from quadrille.delta import margins_kept
    >>> data = qd.datasets.census(500)
    >>> recipes = [qd.TargetedSwap(["gender"], similar=[each], rate=0.1, seed=1) for each in (["hsize"], [])]
    >>> [margins_kept(data, recipe.plan(data)) for recipe in recipes]
    [True, False]
    """
    of_units = [move for move in plan.moves if move.units is not None]
    return all(
        np.array_equal(np.sort(data[name].values[rows]), np.sort(data[name].values[source]), equal_nan=True)
        for move in of_units
        for rows, source in [move.expanded]
        for name in move.columns
    )


def traces(data: Data, plan: Plan, public: Sequence[str] | None = None) -> list[str]:
    """Say which traces a plan leaves in the public columns: what, why, and what to do.

    Unless they are named, these are all columns but identifiers and what steered the draw.
    """
    public = _public(data, plan, public)
    if data.ticks is None or data.weight not in public:
        return []
    strata = [name for name in public if data.codebook[name].role == "stratum"]
    moved = [name for name in strata if name in plan.columns]
    if data.weight in plan.columns:
        return [_weight_moved(data, moved, strata)] if strata and _tells_weight(data, plan, strata, moved) else []
    warned = [_stratum_moved(data, name) for name in moved if _parted(data, plan, name)]
    others = [name for name in public if name in plan.columns and name not in strata]
    return warned + [
        _like_a_stratum(data, name) for name in others if _parted(data, plan, name) and _sets_weight(data, name)
    ]


def _public(data: Data, plan: Plan, public: Sequence[str] | None) -> Sequence[str]:
    if public is not None:
        return public
    return [name for name in data.columns if data.codebook[name].role != "id" and name not in plan.steering_columns]


_MOST_CHANGED = 0.25
_FEWEST_OF_A_VALUE = 10


def told_by_values(data: Data, plan: Plan, public: Sequence[str] | None = None) -> list[str]:
    """Name columns with values that most of their records have received, where few of all records change.

    Partners who must differ make it so: of a value that few records have nearly all are exchanged. Whole units that
    move are left out: the values are areas, and those of few households are at risk.

    >>> import polars as pl
    >>> import quadrille as qd
    >>> from quadrille.delta import told_by_values
    >>> data = qd.from_frame(pl.DataFrame({"ill": ["yes"] * 20 + ["no"] * 980, "sex": ["f", "m"] * 500}))
    >>> recipes = [qd.RandomSwap(["ill"], pairs=15, differ=each, seed=1) for each in ("all", "none")]
    >>> [len(told_by_values(data, recipe.plan(data))) for recipe in recipes]
    [1, 0]
    """
    names, found = _public(data, plan, public), list[str]()
    for move in plan.moves:
        rows, source = move.expanded
        for name in move.columns if move.units is None else ():
            values = data[name].values
            arrived = values[source][unequal(values[rows], values[source])]
            if name not in names or not 0 < len(arrived) <= _MOST_CHANGED * data.n:
                continue
            kinds, count = np.unique(arrived[~np.isnan(arrived)], return_counts=True)
            often = 2 * count > _FEWEST_OF_A_VALUE
            held = _records_of(values, kinds[often])
            many = int(((held >= _FEWEST_OF_A_VALUE) & (2 * count[often] > held)).sum())
            if many:
                found.append(_told_by_value(name, many, len(arrived) / data.n))
    return found


def _records_of(values: Codes, kinds: Codes) -> Ints:
    """Count the records of some values, which are in ascending order."""
    if not len(kinds):
        return _NONE
    place = np.minimum(np.searchsorted(kinds, values), len(kinds) - 1)
    return np.bincount(place[kinds[place] == values], minlength=len(kinds))


def _told_by_value(name: str, many: int, changed: float) -> str:
    values = "a value" if many == 1 else f"{many:,} values"
    it = "it" if many == 1 else "them"
    return (
        f"Most records with {values} of {name!r} received {it} by the swap, which changes {percent(changed)} of all "
        f"records: whoever has {it} was probably swapped. Swap fewer records, merge rare values, or let partners be "
        'equal (differ="none").'
    )


_FEWEST_PAIRS = 20
_FEWEST_ODD = 10
_ALIKE = 0.15
_MOST_CLASSES = 60
_CLASSES = 10


def told_by_pairs(data: Data, plan: Plan, public: Sequence[str] | None = None) -> list[str]:
    """Name columns in which the two of a kind in one unit nearly always differ, as the sexes of a couple do.

    Of those that agree after the swap, most then hold a swapped record. Looked at are the pairs of one unit, such as a
    household, and one category of any other column, such as an age group.

    >>> import polars as pl
    >>> import quadrille as qd
    >>> from quadrille.delta import told_by_pairs
    >>> couples = {"hh": [i // 2 for i in range(800)], "sex": ["f", "m"] * 400}
    >>> data = qd.from_frame(pl.DataFrame(couples | {"job": [i * i % 7 % 3 for i in range(800)]})).with_roles(unit="hh")
    >>> [len(told_by_pairs(data, qd.RandomSwap([each], pairs=20, seed=1).plan(data))) for each in ("sex", "job")]
    [1, 0]
    """
    names, found = _public(data, plan, public), list[str]()
    moving = [(move, name) for move in plan.moves if move.units is None for name in move.columns if name in names]
    for unit in (name for name in names if moving and data.codebook[name].role == "unit"):
        of, others = data.units(unit).of, [name for name in names if name not in (unit, data.weight)]
        kinds = {name: _pairs_of(of, _classes(data, name)) for name in others}
        for move, name in moving:
            before, (rows, source) = data[name].values, move.expanded
            after = before.copy()
            after[rows] = before[source]
            odd = {kind: _odd_pairs(pairs, before, after) for kind, pairs in kinds.items() if kind != name}
            worst = max(odd, key=lambda kind: odd[kind].share, default=None)
            if worst is not None and odd[worst].share:
                found.append(_told_by_pair(name, unit, worst, odd[worst]))
    return found


class _Odd(NamedTuple):
    """Pairs whose like nearly always differ, those that agree after a swap, and those of them with a swapped record."""

    pairs: int = 0
    alike: int = 0
    swapped: int = 0

    @property
    def share(self) -> float:
        """The share of the pairs that agree which hold a swapped record; 0 where it is half of them or less."""
        return self.swapped / self.alike if self.swapped >= _FEWEST_ODD and 2 * self.swapped > self.alike else 0.0


def _classes(data: Data, name: str) -> Ints:
    """Return the categories of a column, or classes of similar size where it has many values."""
    column = data[name]
    if column.variable.coded and column.size <= _MOST_CLASSES:
        return column.values.astype(np.int64)
    values = np.nan_to_num(column.values.astype(np.float64))
    return np.searchsorted(np.unique(np.quantile(values, np.arange(1, _CLASSES) / _CLASSES)), values, side="right")


def _pairs_of(units: Ints, classes: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the rows of every two records that are alone with each other in one unit and one class, and the class."""
    key = units * (int(classes.max(initial=0)) + 1) + classes
    order = np.argsort(key, kind="stable")
    start = np.flatnonzero(np.diff(key[order], prepend=-1))
    two = start[np.diff(start, append=len(order)) == 2]
    return order[two], order[two + 1], classes[order[two]]


def _odd_pairs(pairs: tuple[Ints, Ints, Ints], before: Codes, after: Codes) -> _Odd:
    one, other, classes = pairs
    usual = np.zeros(int(classes.max(initial=-1)) + 1, dtype=np.bool_)
    alike = before[one] == before[other]
    for class_ in np.flatnonzero(np.bincount(classes) >= _FEWEST_PAIRS):
        here = classes == class_
        held = np.unique(before[np.concatenate((one[here], other[here]))], return_counts=True)[1]
        by_chance = float(((held / held.sum()) ** 2).sum())
        usual[class_] = alike[here].mean() <= min(_ALIKE, by_chance / 3)
    odd = usual[classes] & (after[one] == after[other])
    changed = unequal(before, after)
    return _Odd(int(usual[classes].sum()), int(odd.sum()), int((odd & (changed[one] | changed[other])).sum()))


def _told_by_pair(name: str, unit: str, kind: str, odd: _Odd) -> str:
    return (
        f"Two records of one {unit!r} who are alike in {kind!r} nearly always differ in {name!r}. After the swap "
        f"{odd.alike:,} of {odd.pairs:,} such pairs agree, and {odd.swapped:,} of them hold a swapped record, so that "
        "they show it. Swap other columns, or leave the number of the unit out of the file (role id)."
    )


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


def _differ(data: Data, columns: Sequence[str], rows: Rows, source: Rows) -> NDArray[np.bool_]:
    """Tell, pair by pair, whether two rows differ in any of some columns."""
    differ = np.zeros(len(rows), dtype=np.bool_)
    for name in columns:
        values = data[name].values
        differ |= unequal(values[rows], values[source])
    return differ


def _parted(data: Data, plan: Plan, name: str) -> bool:
    """Tell whether a record gets a value of this column from a record of another weight."""
    assert data.ticks is not None
    ticks = data.ticks.values
    rows, source = next(move.expanded for move in plan.moves if name in move.columns)
    return bool((_differ(data, (name,), rows, source) & (ticks[rows] != ticks[source])).any())


def _tells_weight(data: Data, plan: Plan, strata: Sequence[str], moved: Sequence[str]) -> bool:
    """Tell whether a weight that moved gives itself away beside the strata that stayed.

    That is so when a record got a weight far out of the range of its stratum. It is also so when a record got another
    weight, and the strata have one weight each, or nearly: nine in ten of the
    records that share their stratum with others are in a stratum of one weight. Strata that moved with the weight
    and have one weight each explain it by themselves.
    """
    assert data.ticks is not None
    ticks = data.ticks.values
    rows, source = next(move.expanded for move in plan.moves if data.weight in move.columns)
    if (ticks[rows] == ticks[source]).all():
        return False
    stayed = [name for name in strata if name not in moved]
    if stayed and _out_of_range(data, stayed, rows, ticks[source]):
        return True
    return _one_weight(data, strata) >= _NEARLY and _one_weight(data, moved) < _NEARLY


def _sets_weight(data: Data, name: str) -> bool:
    """Tell whether the categories of a column set the weight, looked up once per file."""
    kept = f"sets the weight: {name}"
    if kept not in data.prepared:
        data.prepared[kept] = _weight_follows(data, name)
    return bool(data.prepared[kept])


def _weight_follows(data: Data, name: str) -> bool:
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


@dataclass(frozen=True, repr=False)
class Moved(Shown):
    """One variable's part in a plan. Rates are shares of all records."""

    variable: str
    asked: int | None
    pairs: int | None
    records: int
    changed: int
    rate_paired: float
    rate_changed: float


@dataclass(frozen=True, repr=False)
class UnitsMoved(Shown):
    """The part of whole units, such as households, in a plan; shares are shares of all units.

    `unequal` counts pairs of units that differ in size: the number of records of an area changes by them.
    """

    n: int
    pairs: int | None
    units: int
    changed: int
    unequal: int | None
    rate: float
    rate_changed: float


@dataclass(frozen=True, repr=False)
class PlanReport(Shown):
    """What a plan does: counts of pairs and records, per variable and in all.

    `false_swaps` are pairs (records, where a move has no pairs) in which nothing changes. `compensating`
    counts the records that changed although the count of the full cell they left and of the one they
    reached is the same after as before: the released table does not show that they moved. `details` are facts that
    some methods add, such as the targets of each stratum. `warnings` say which traces an intruder could see: weights
    that no longer fit their strata. Where whole units move, pairs are pairs of units and `units` counts them.
    """

    n: int
    asked: int | None
    pairs: int | None
    records: int
    changed: int
    false_swaps: int
    compensating: int
    variables: tuple[Moved, ...]
    details: Mapping[str, object] = field(default_factory=dict[str, object])
    warnings: tuple[str, ...] = ()
    units: UnitsMoved | None = None

    def as_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        values = asdict(self)
        return values if self.units else {name: value for name, value in values.items() if name != "units"}

    def frame(self) -> pl.DataFrame:
        """Return one row per variable."""

        return tidy([asdict(moved) for moved in self.variables])


def account(plan: Plan, data: Data) -> PlanReport:
    """Account for a plan on its data."""
    plan.check(data)
    delta = Delta(data, plan)
    old, new = delta.cells(Cross.of(data, tuple(name for name in data.keys if name not in plan.steering_columns)))
    differs = np.zeros(len(delta.rows), dtype=bool)
    for name in plan.columns:
        was, now = delta.values(name)
        differs |= unequal(was, now)
    return PlanReport(
        n=data.n,
        asked=plan.asked,
        pairs=_pairs(plan),
        records=len(plan.rows),
        changed=int(differs.sum()),
        false_swaps=sum(_false(move, data) for move in plan.moves),
        compensating=_compensating(old, new),
        variables=tuple(_moved(move, name, plan, data) for move in plan.moves for name in move.columns),
        details={} if plan.details is None else dict(plan.details.facts),
        warnings=tuple(warnings_of(data, plan)),
        units=_units_moved(plan, data),
    )


def _units_moved(plan: Plan, data: Data) -> UnitsMoved | None:
    units = next((move.units for move in plan.moves if move.units is not None), None)
    if units is None or plan.units is None:
        return None
    changed = np.zeros(units.count, dtype=np.bool_)
    for move in plan.moves:
        receivers, givers = move.given
        changed[receivers[_differ(data, move.columns, units.first[receivers], units.first[givers])]] = True
    pairs = plan.unit_pairs
    return UnitsMoved(
        n=units.count,
        pairs=None if pairs is None else len(pairs),
        units=len(plan.units),
        changed=int(changed.sum()),
        unequal=None if pairs is None else int((units.sizes[pairs[:, 0]] != units.sizes[pairs[:, 1]]).sum()),
        rate=len(plan.units) / units.count,
        rate_changed=int(changed.sum()) / units.count,
    )


def _pairs(plan: Plan) -> int | None:
    drawn = plan.pairs if plan.units is None else plan.unit_pairs
    if drawn is not None:
        return len(drawn)
    listed = [move.pairs for move in plan.moves if move.pairs is not None]
    return sum(map(len, listed)) if len(listed) == len(plan.moves) else None


def _moved(move: Move, name: str, plan: Plan, data: Data) -> Moved:
    rows, source = move.expanded
    changed = int(_differ(data, (name,), rows, source).sum())
    pairs = None if move.pairs is None else len(move.pairs)
    return Moved(name, plan.asked, pairs, len(rows), changed, len(rows) / data.n, changed / data.n)


def _false(move: Move, data: Data) -> int:
    rows, source = (move.pairs[:, 0], move.pairs[:, 1]) if move.pairs is not None else move.given
    if move.units is not None:
        rows, source = move.units.first[rows], move.units.first[source]
    return len(rows) - int(_differ(data, move.columns, rows, source).sum())


def _compensating(old: np.ndarray, new: np.ndarray) -> int:
    """Count changed records between cells whose counts have not changed."""
    if not len(old):
        return 0
    _, place = np.unique(np.concatenate((old, new)), return_inverse=True)
    left, reached = place[: len(old)], place[len(old) :]
    net = np.bincount(reached, minlength=place.max() + 1) - np.bincount(left, minlength=place.max() + 1)
    return int(((left != reached) & (net[left] == 0) & (net[reached] == 0)).sum())
