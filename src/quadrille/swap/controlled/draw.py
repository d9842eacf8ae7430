"""How a controlled swap is drawn: cells, targets, partners, and what the plan remembers about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Codes, Column, Data, unequal
from quadrille.errors import InputError, OverlapError, ParameterError, infeasible
from quadrille.expressions import Rules
from quadrille.plan import Details, Move, Pairs, Plan
from quadrille.randomness import Chooser, Stream, Words, draw_until_enough
from quadrille.recipe import carried, carried_fact, random_order, refuse_one_area
from quadrille.swap.controlled.frame import (
    Cells,
    Floats,
    Targets,
    draw_targets,
    frame_of,
    impute,
    make_cells,
    numbers_of,
    require_order,
    scale_of,
    stratum_labels,
    zones_of,
)
from quadrille.swap.groups import Ints, codes_of, group_ids, sorted_by
from quadrille.swap.pairing import Candidates, RuleCounts, count_pairs, rules_facts

if TYPE_CHECKING:
    from quadrille.swap.controlled import ControlledSwap


@dataclass(frozen=True, eq=False)
class RuleFilter:
    """The rules of a recipe, those that a pair may break, and their bits; `edits` is None when there are none."""

    rules: Rules
    bound: Rules
    columns: tuple[str, ...]
    edits: kernels.Edits | None

    @classmethod
    def of(
        cls, data: Data, texts: Sequence[str], moved: Sequence[str], linked: Mapping[str, Sequence[str]]
    ) -> RuleFilter:
        """Read the rules for pairs that exchange `moved`, and what is linked where the parent differs."""
        rules = Rules.of(data, texts, "ControlledSwap")
        columns = (*moved, *(name for followers in linked.values() for name in followers))
        bound = rules.about(columns)
        return cls(rules, bound, columns, bound.edits(moved, linked) if bound else None)

    def excluded(self, rows: Ints, cells: Cells, records: Records) -> RuleCounts:
        """Count the pairs of a target and a donor, in different cells of a zone, that the rules exclude."""
        if self.edits is None:
            return RuleCounts(self.columns, 0, 0)
        rows = rows[records.target[rows] | records.donor[rows]]
        conditions = [cells.cell[rows]]
        if records.value is not None:
            value = records.value[rows]  # a record without missing values agrees with nobody
            conditions.append(np.where(value == NO_VALUE, records.value.max() + 1 + np.arange(len(rows)), value))
        target, donor = records.target[rows].astype(np.int64), records.donor[rows].astype(np.int64)
        candidates = Candidates(cells.zone[cells.cell[rows]], conditions, target, donor, both=False)
        return count_pairs(self.bound, self.columns, self.edits.take(rows), candidates)

    def facts(self, counts: Sequence[RuleCounts]) -> dict[str, object]:
        """Return what a plan remembers of the rules, over all groups in which partners were looked for."""
        by_rule = {text: sum(each.by_rule[text] for each in counts) for text in self.bound.texts}
        possible, excluded = (sum(getattr(each, name) for each in counts) for name in ("possible", "excluded"))
        return rules_facts(self.rules, [RuleCounts(self.columns, possible, excluded, by_rule)])


NOBODY_THERE = "no donor in another cell of its {zone}"
BARRED = "the rules exclude every donor in another cell of its {zone}"
ALL_TAKEN = "every donor in another cell of its {zone} is taken"


@dataclass(frozen=True, eq=False)
class _View:
    """The file as one search sees it: rows sorted by cell and weight, cells in the order of its variables, x."""

    rows: Ints
    cells: Cells
    x: Floats


class ControlledDraw:
    """A controlled swap prepared for one file."""

    def __init__(self, recipe: ControlledSwap, data: Data) -> None:
        self._recipe = recipe
        self._data = data
        _check(recipe, data)
        self._swap = [data[name] for name in recipe.swap]
        self._along = carried(data, recipe.swap, recipe.boundary)
        refuse_one_area(data, (*recipe.swap, *self._along, *_linked(recipe)))
        self._zone = zones_of(data, recipe.boundary)
        self._frame = frame_of(recipe, data)
        self._weight = np.ones(data.n, dtype=np.int64) if data.ticks is None else data.ticks.values
        self._per_unit = 1.0 if data.ticks is None else data.ticks.per_unit
        self._sort = group_ids([codes_of(data, name) for name in recipe.sort], data.n) if recipe.sort else None
        self._imputes = recipe.on_missing == "impute" and any(_some_missing(column) for column in self._swap)
        self._value = _values_of_incomplete(self._swap, data.n) if self._imputes else None
        self._known = None if self._imputes else self._view(self._one_missing())
        self._links = {
            parent: (*followers, *carried(data, followers, recipe.boundary))
            for parent, followers in recipe.followers.items()
        }
        self._rule_filter = RuleFilter.of(data, recipe.rules, (*recipe.swap, *self._along), self._links)

    def draw(self, stream: Stream) -> Plan:
        """Draw the plan of a stream."""
        codes = self._codes(stream)
        view = self._known or self._view(codes)
        drawn = draw_targets(self._frame, self._order(view, stream), stream.sub("targets"))
        if not len(drawn.rows):
            raise ParameterError(
                f"The 'targets' parameter of ControlledSwap gives no target at all for {self._data.n:,} records. "
                "Raise it, or name records with 'must'."
            )
        view = replace(view, x=self._x(codes, stream))
        target = np.zeros(self._data.n, dtype=bool)
        target[drawn.rows] = True
        donor = ~target & ~self._frame.never
        found: list[tuple[Found, Found]] = []
        counts: list[RuleCounts] = []
        for g, part in enumerate(self._parts(view, codes, stream)):
            records = Records(
                self._weight,
                part.x,
                target,
                donor,
                self._value,
                x_by_cell=self._x_by_cell,
                edits=self._rule_filter.edits,
            )
            index = index_donors(part.rows, part.cells, records)
            counts.append(self._rule_filter.excluded(part.rows, part.cells, records))
            greedy = find_partners(index, stream.sub(f"partners {g}"))
            chosen = greedy
            if self._recipe.matching == "optimal":
                costs = Costs(self._recipe.cost, codes, self._swap, self._weight)
                chosen = match_optimally(index, greedy, costs, stream.sub(f"near {g}"))
            found.append((chosen, greedy))
        chosen, greedy = (_joined([each[which] for each in found]) for which in (0, 1))
        return self._plan(drawn, chosen, greedy, codes, self._rule_filter.facts(counts))

    def _codes(self, stream: Stream) -> list[Codes]:
        """Return the swap variables as codes, missing ones imputed where that is asked for."""
        if not self._imputes:
            return self._one_missing()
        return [self._imputed(column, stream) for column in self._swap]

    def _one_missing(self) -> list[Codes]:
        """Return the swap variables as codes in which all kinds of missing are one category, the last."""
        return [column.one_missing for column in self._swap]

    def _imputed(self, column: Column, stream: Stream) -> Codes:
        name = column.variable.name
        return impute(column.values, column.valid, self._zone, stream.sub("impute " + name), name)

    def _view(self, codes: list[Codes]) -> _View:
        cells = make_cells(self._zone, [(c, column.size) for c, column in zip(codes, self._swap, strict=True)])
        return _View(np.lexsort((self._weight, cells.cell)), cells, np.empty(0))

    def _x(self, codes: list[Codes], stream: Stream) -> Floats:
        """Return x of the swapping bias for every record."""
        name = self._recipe.bias or self._recipe.swap[-1]
        if name in self._recipe.swap:
            place = list(self._recipe.swap).index(name)
            return scale_of(self._swap[place])[codes[place]]
        column = self._data[name]
        if not column.variable.coded:
            return column.values
        filled = self._imputed(column, stream) if self._recipe.on_missing == "impute" else column.values
        return scale_of(column)[filled]

    @property
    def _x_by_cell(self) -> bool:
        """Whether x is a swap variable, so that a cell has one x."""
        recipe = self._recipe
        in_turn = recipe.method == "balanced" and len(recipe.swap) > 1
        return recipe.bias is None or recipe.bias in recipe.swap or in_turn

    def _order(self, view: _View, stream: Stream) -> Ints:
        """Return all records sorted for the systematic draw, ties in random order."""
        ids, count = self._sort or (view.cells.cell, view.cells.count)
        shuffled = random_order(self._data.n, stream.sub("order"))
        return shuffled[sorted_by(ids[shuffled], count)[0]]

    def _parts(self, view: _View, codes: list[Codes], stream: Stream) -> Iterator[_View]:
        """Return what is searched: the whole file, or with the balanced method one group per swap variable."""
        variables = len(self._swap)
        if self._recipe.method == "standard" or variables == 1:
            yield view
            return
        shuffled = random_order(self._data.n, stream.sub("groups"))
        group = np.empty(self._data.n, dtype=np.int64)
        for g, rows in enumerate(np.array_split(shuffled, variables)):
            group[rows] = g
        chooser = Chooser(stream.sub("variables"))
        for g in range(variables):
            others = [v for v in range(variables) if v != g]
            for i in range(len(others) - 1, 0, -1):
                j = chooser.below(i + 1)
                others[i], others[j] = others[j], others[i]
            cells = _reordered(view.cells, [*others, g])
            rows = view.rows[group[view.rows] == g]
            yield _View(rows[sorted_by(cells.cell[rows], cells.count)[0]], cells, scale_of(self._swap[g])[codes[g]])

    def _plan(
        self, drawn: Targets, found: Found, greedy: Found, codes: list[Codes], about_rules: dict[str, object]
    ) -> Plan:
        recipe, asked = self._recipe, len(drawn.rows)
        if recipe.strict and len(found.alone):
            rules = f" The rules, {self._rule_filter.rules}, leave {len(found.barred):,} of them nobody."
            raise infeasible(
                f"{len(found.alone):,} of {asked:,} targets of ControlledSwap have no partner."
                f"{rules if len(found.barred) else ''}",
                asked,
                len(found.pairs),
                hint="Ask for fewer targets, use a coarser boundary, or leave them unswapped with strict=False.",
            )
        alternatives: dict[str, Plan] = {}
        facts = self._facts(drawn, found) | about_rules
        if recipe.matching == "optimal":
            costs = Costs(recipe.cost, codes, self._swap, self._weight)
            alternatives["greedy"] = Plan(
                self._moves(greedy.pairs), data=self._data, asked=asked, steering_columns=recipe.steering_columns
            )
            facts["cost"] = costs.total(found.pairs)
            facts["greedy"] = {**self._outcome(greedy), "cost": costs.total(greedy.pairs)}
        rows = {
            "targets": drawn.rows,
            "certain": drawn.certain,
            "without partner": found.alone,
            "nobody there": found.lonely,
        }
        return Plan(
            self._moves(found.pairs),
            data=self._data,
            asked=asked,
            details=Details(facts, rows, alternatives),
            steering_columns=recipe.steering_columns,
        )

    def _moves(self, pairs: Pairs) -> list[Move]:
        """Exchange the swap variables in every pair, and what is linked where the parent differs."""
        moves = [Move.exchange((*self._recipe.swap, *self._along), pairs)]
        for parent, columns in self._links.items():
            values = self._data[parent].values
            moves.append(Move.exchange(columns, pairs[unequal(values[pairs[:, 0]], values[pairs[:, 1]])]))
        return moves

    def _facts(self, drawn: Targets, found: Found) -> dict[str, object]:
        labels = stratum_labels(self._recipe, self._data, self._frame)
        return {
            "targets": len(drawn.rows),
            "certain": len(drawn.certain),
            "strata": [{"stratum": label, **row} for label, row in zip(labels, drawn.strata, strict=True)],
            **self._outcome(found),
            "reasons": self._reasons(found),
            **carried_fact([*self._along, *carried(self._data, _linked(self._recipe), self._recipe.boundary)]),
        }

    def _outcome(self, found: Found) -> dict[str, object]:
        return {
            "pairs": len(found.pairs),
            "without_partner": len(found.alone),
            "rounds": found.rounds,
            "bias": float(found.bias.sum()) / self._per_unit,
        }

    def _reasons(self, found: Found) -> dict[str, int]:
        """Count why targets have no partner."""
        where = " and group" if self._recipe.method == "balanced" and len(self._swap) > 1 else ""
        taken = len(found.alone) - len(found.lonely) - len(found.barred)
        counts = ((NOBODY_THERE, len(found.lonely)), (BARRED, len(found.barred)), (ALL_TAKEN, taken))
        return {reason.format(zone="zone" + where): count for reason, count in counts if count}


def _check(recipe: ControlledSwap, data: Data) -> None:
    _refuse_parted(recipe, data)
    if data.weight in recipe.steering_columns:
        raise InputError(f"Column {data.weight!r} is the weight: it cannot say who is a target, or how many are.")
    for name in recipe.boundary:
        data.coded(name, purpose="a boundary")
    for name in recipe.swap:
        require_order(data.coded(name, purpose="controlled swapping"))
    if recipe.bias is not None and recipe.bias not in recipe.swap:
        _check_bias(data[recipe.bias])


def _linked(recipe: ControlledSwap) -> list[str]:
    return [name for followers in recipe.followers.values() for name in followers]


def _refuse_parted(recipe: ControlledSwap, data: Data) -> None:
    """Refuse levels of geography that would move in different pairs: an area would leave its county."""
    levels = data.codebook.geography
    parts = [[name for name in part if name in levels] for part in (recipe.swap, *recipe.followers.values())]
    first, *others = [part for part in parts if part] or [[]]
    if others:
        raise OverlapError(
            f"Columns {first[0]!r} and {others[0][0]!r} are levels of one geography, which move together, but "
            "ControlledSwap has them in different parts. The other levels travel by themselves: leave "
            f"{others[0][0]!r} out of 'linked'."
        )


def _check_bias(column: Column) -> None:
    require_order(column)
    values = None if column.variable.coded else numbers_of(column)
    for word, test in (("missing", np.isnan), ("infinite", np.isinf)):
        bad = 0 if values is None else int(test(values).sum())
        if bad:
            raise InputError(
                f"The bias variable {column.variable.name!r} is {word} in {bad:,} rows. "
                "Correct these rows, or declare the column ordinal in the codebook."
            )


def _values_of_incomplete(swap: list[Column], n: int) -> Ints:
    """Number the original values of records with a missing one, -1 for the others; all missing codes are alike."""
    codes = [column.one_missing for column in swap]
    missing = np.logical_or.reduce([code == column.valid for code, column in zip(codes, swap, strict=True)])
    ids, _ = group_ids([(code, column.valid + 1) for code, column in zip(codes, swap, strict=True)], n)
    return np.where(missing, ids, -1)


def _some_missing(column: Column) -> bool:
    return column.size > column.valid and bool((column.values >= column.valid).any())


def _reordered(cells: Cells, variables: list[int]) -> Cells:
    """Put the cells in the lexicographic order of zone and these variables."""
    order = np.lexsort([*(cells.swapped[:, v] for v in reversed(variables)), cells.zone])
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return Cells(rank[cells.cell], cells.zone[order], cells.swapped[order])


def _joined(found: list[Found]) -> Found:
    return Found(
        np.concatenate([each.pairs for each in found]),
        np.concatenate([each.bias for each in found]),
        np.sort(np.concatenate([each.alone for each in found])),
        np.sort(np.concatenate([each.lonely for each in found])),
        max(each.rounds for each in found),
        np.sort(np.concatenate([each.barred for each in found])),
    )


Flags = NDArray[np.bool_]
T = TypeVar("T", bound=np.generic)
NO_VALUE = -1


@dataclass(frozen=True, eq=False)
class Records:
    """What decides about partners, per record: weight in ticks, x of the bias, and who is a target or a donor.

    `value` numbers the original swap values of records that have missing ones, -1 for the others; None without any.
    `x_by_cell`: all records of a cell have the same x. `edits` are those of the plausibility rules, None without any.
    """

    weight: Ints
    x: Floats
    target: Flags
    donor: Flags
    value: Ints | None = None
    x_by_cell: bool = True
    edits: kernels.Edits | None = None


@dataclass(frozen=True, eq=False)
class Found:
    """Pairs (target, donor) with their biases in ticks, targets without partner, and the number of rounds.

    `lonely` are those without partner that had no donor in another cell of their zone from the beginning, `barred`
    those to whom the rules left none of them.
    """

    pairs: Pairs
    bias: Floats
    alone: Ints
    lonely: Ints
    rounds: int
    barred: Ints


def index_donors(rows: Ints, cells: Cells, records: Records) -> kernels.DonorIndex:
    """Sort donors and targets among some rows; rows come sorted by cell and weight."""
    donors, targets = rows[records.donor[rows]], rows[records.target[rows]]
    cell, weight = cells.cell[donors], records.weight[donors]
    run_start = np.flatnonzero(_starts(cell, weight))
    bounds = np.searchsorted(cells.zone, np.arange(int(cells.zone.max(initial=-1)) + 2))
    value = np.full(1, NO_VALUE) if records.value is None else records.value
    target_value = np.full(len(targets), NO_VALUE) if records.value is None else records.value[targets]
    edits = records.edits or kernels.no_edits(0)
    choosy: Flags = target_value != NO_VALUE
    if records.edits is not None:
        # Nobody who meets neither the part of a rule that stays nor the part that moves can break it, or make others.
        choosy = choosy | ((edits.stay | edits.move)[targets] != 0).any(axis=1)
    if choosy.any():
        order = np.lexsort((choosy, cells.cell[targets]))  # stable: by weight within both
        targets, target_value, choosy = targets[order], target_value[order], choosy[order]
    return kernels.DonorIndex(
        donors=donors,
        run_start=np.append(run_start, len(donors)),
        run_weight=weight[run_start],
        cell_start=np.searchsorted(cell[run_start], np.arange(cells.count + 1)),
        zone_first=bounds[cells.zone],
        zone_last=bounds[cells.zone + 1] - 1,
        targets=targets,
        line=2 * cells.cell[targets] + choosy,
        target_cell=cells.cell[targets],
        target_value=target_value,
        target_weight=records.weight[targets],
        choosy=choosy,
        weight=_read_only(records.weight),
        x=_read_only(records.x),
        value=_read_only(value),
        one_x=records.x_by_cell,
        edits=edits,
    )


def _read_only(values: NDArray[T]) -> NDArray[T]:
    """Return a view that cannot be written to: one kind of array, so that one compiled search serves all files."""
    view = values.view()
    view.setflags(write=False)
    return view


def _starts(*columns: Ints) -> Flags:
    """Mark the places at which any of the columns differs from the place before."""
    first = np.zeros(len(columns[0]), dtype=bool)
    first[:1] = True
    for column in columns:
        first[1:] |= column[1:] != column[:-1]
    return first


def find_partners(index: kernels.DonorIndex, stream: Stream) -> Found:
    """Run the greedy search: rounds of nearest cells, closest weights and smallest biases."""
    asked, line = kernels.nothing_asked(index), kernels.open_line(index)
    stock = kernels.open_stock(index)
    dice = kernels.dice(stream.words(8 * len(index.targets) + 64))
    batch = np.zeros(1, dtype=np.int64)
    rounds, active = 0, len(line.first)
    while active:
        read = int(dice.cursor[0])
        left = int(kernels.pair_round(active, batch, asked, line, stock, index, dice))
        if left < 0:
            # The round begins again, with more words of the same stream.
            dice = kernels.dice(stream.words(2 * len(dice.words)))
            dice.cursor[0] = read
            continue
        rounds += 1
        active = left
    paired = asked.partner >= 0
    pairs = np.stack((index.targets[paired], asked.partner[paired]), axis=1)
    alone, lonely = index.targets[~paired], _lonely(index, index.target_cell[~paired])
    asked_in_vain = np.flatnonzero(~paired)[~lonely] if index.edits.stay.shape[1] else np.empty(0, dtype=np.int64)
    barred = [t for t in asked_in_vain.tolist() if kernels.rules_leave_nobody(t, index)]
    return Found(pairs, asked.bias[paired], alone, alone[lonely], rounds, index.targets[barred])


def _lonely(index: kernels.DonorIndex, cell: Ints) -> Flags:
    """Tell in which of these cells' zones no other cell has a donor."""
    before = index.run_start[index.cell_start]
    in_zone = before[index.zone_last[cell] + 1] - before[index.zone_first[cell]]
    return in_zone == before[cell + 1] - before[cell]


CELLS_EACH_SIDE = 3
"""In so many cells on either side donors are looked for: the closest from below and from above in each."""


class Costs:
    """The declared cost of a pair: a weighted sum of three parts, each a pure number.

    distance: mean over the swap variables of the distance of the categories as a share of the largest (nominal: 0 or
    1). weight: difference of the weights over the mean weight. bias: mean over the swap variables of
    |w_t - w_d| * |x_t - x_d| over mean weight times the range of x.
    """

    def __init__(
        self, parts: Mapping[str, float] | None, codes: Sequence[Codes], columns: Sequence[Column], weight: Ints
    ) -> None:
        self._parts = dict.fromkeys(("distance", "weight", "bias"), 1.0) if parts is None else parts
        self._weight = weight / weight.mean()
        self._scaled = [_scaled(each, column) for each, column in zip(codes, columns, strict=True)]
        self._nominal = [column.variable.kind == "nominal" for column in columns]

    def of(self, pairs: Pairs) -> Floats:
        """Return the cost of each pair."""
        first, second = pairs[:, 0], pairs[:, 1]
        weight = np.abs(self._weight[first] - self._weight[second])
        apart = [np.abs(x[first] - x[second]) for x in self._scaled]
        far = [(gap > 0) * 1.0 if nominal else gap for gap, nominal in zip(apart, self._nominal, strict=True)]
        share = self._parts.get
        return (
            share("distance", 0.0) * sum(far, np.zeros(len(pairs))) / len(far)
            + share("weight", 0.0) * weight
            + share("bias", 0.0) * weight * sum(apart, np.zeros(len(pairs))) / len(apart)
        )

    def total(self, pairs: Pairs) -> float:
        """Return the cost of all pairs together."""
        return float(self.of(pairs).sum())


def _scaled(codes: Codes, column: Column) -> Floats:
    scale = scale_of(column)
    used = scale if (codes >= column.valid).any() else scale[: column.valid]
    return (scale / max(float(np.ptp(used)), 1e-300))[codes]


def match_optimally(index: kernels.DonorIndex, greedy: Found, costs: Costs, stream: Stream) -> Found:
    """Match as many targets as possible at the least total cost; greedy's own pairs are among the candidates."""
    if not len(greedy.pairs):
        return greedy
    edges = _candidates(index, greedy, stream)
    chosen = edges[_least_cost(edges, costs.of(edges))]
    chosen = chosen[np.argsort(chosen[:, 0], kind="stable")]
    gap = np.abs((index.weight[chosen[:, 0]] - index.weight[chosen[:, 1]]).astype(np.float64))
    bias = gap * np.abs(index.x[chosen[:, 0]] - index.x[chosen[:, 1]])
    alone = np.setdiff1d(index.targets, chosen[:, 0])
    return Found(chosen, bias, alone, greedy.lonely, greedy.rounds, greedy.barred)


def _candidates(index: kernels.DonorIndex, greedy: Found, stream: Stream) -> Pairs:
    """List the pairs that may be chosen: target and near donor, each pair once."""

    def attempt(words: Words) -> Ints | None:
        dice = kernels.dice(words)
        near = kernels.near_donors(CELLS_EACH_SIDE, index, dice)
        return None if dice.cursor[1] else near

    near = draw_until_enough(attempt, stream, guess=5 * CELLS_EACH_SIDE * len(index.targets))
    target = np.repeat(index.targets, near.shape[1])
    edges = np.stack((target, near.ravel()), axis=1)
    return np.unique(np.concatenate((edges[edges[:, 1] >= 0], greedy.pairs)), axis=0)


def _least_cost(edges: Pairs, cost: Floats) -> Ints:
    """Return the edges of a matching with the most pairs and, of those, the least total cost.

    Targets that share no donor with another one take their cheapest; the rest is solved group by group, a group being
    targets that are linked by donors they share.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    _, row = np.unique(edges[:, 0], return_inverse=True)
    _, column = np.unique(edges[:, 1], return_inverse=True)
    targets, donors = int(row.max()) + 1, int(column.max()) + 1
    nodes = targets + donors
    links = coo_array((np.ones(len(row), dtype=bool), (row, targets + column)), shape=(nodes, nodes))
    group = np.asarray(connected_components(links, directed=False)[1], dtype=np.int64)
    size = np.bincount(group[:targets], minlength=nodes)[group[row]]
    chosen = [_cheapest(np.flatnonzero(size == 1), row, cost)]
    share = cost / max(float(cost.max()), np.finfo(np.float64).tiny)
    shared = np.flatnonzero(size > 1)
    shared = shared[np.argsort(group[row[shared]], kind="stable")]
    ends = np.flatnonzero(np.diff(group[row[shared]], append=-1)) + 1
    for first, end in zip(np.append(0, ends[:-1]), ends, strict=True) if len(shared) else ():
        inside = shared[first:end]
        chosen.append(inside[_solve(row[inside], column[inside], share[inside])])
    return np.sort(np.concatenate(chosen))


def _cheapest(edges: Ints, row: Ints, cost: Floats) -> Ints:
    """Return the cheapest of these edges for each of their targets."""
    order = edges[np.lexsort((cost[edges], row[edges]))]
    return order[np.diff(row[order], prepend=-1) > 0]


def _solve(row: Ints, column: Ints, share: Floats) -> Ints:
    """Match the targets of one group: places of the edges chosen.

    Every target also has an edge to a dummy of its own, so dear that it is used only where nothing else is left. Costs
    are shares of the largest, raised by 1, because the solver takes an edge of cost 0 for a missing one; neither
    changes a comparison between matchings of as many pairs.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    row, column = (np.unique(each, return_inverse=True)[1] for each in (row, column))
    targets, donors = int(row.max()) + 1, int(column.max()) + 1
    every = np.arange(targets)
    rows, columns = np.concatenate((row, every)), np.concatenate((column, donors + every))
    values = np.concatenate((share + 1, np.full(targets, 2.0 * (targets + 1))))
    graph = coo_array((values, (rows, columns)), shape=(targets, donors + targets)).tocsr()
    mate = np.asarray(min_weight_full_bipartite_matching(graph)[1], dtype=np.int64)
    return np.flatnonzero(mate[row] == column)
