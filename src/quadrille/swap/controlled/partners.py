"""Partners in controlled swaps: the published search for near donors, and optimal matching."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Codes, Column
from quadrille.plan import Pairs
from quadrille.randomness import Stream, Words, draw_until_enough
from quadrille.swap.controlled.frame import Cells, Floats, scale_of
from quadrille.swap.groups import Ints

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
