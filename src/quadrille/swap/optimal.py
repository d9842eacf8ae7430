"""Optimal matching: for every target a few near donors; most pairs first, then least total cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from quadrille import kernels
from quadrille.data import Codes, Column
from quadrille.plan import Pairs
from quadrille.randomness import Stream, Words, draw_until_enough
from quadrille.swap.cells import Floats, scale_of
from quadrille.swap.groups import Ints
from quadrille.swap.partners import Found

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


def match_optimally(market: kernels.Market, greedy: Found, costs: Costs, stream: Stream) -> Found:
    """Match as many targets as possible at the least total cost; greedy's own pairs are among the candidates."""
    if not len(greedy.pairs):
        return greedy
    edges = _candidates(market, greedy, stream)
    chosen = edges[_least_cost(edges, costs.of(edges))]
    chosen = chosen[np.argsort(chosen[:, 0], kind="stable")]
    gap = np.abs((market.weight[chosen[:, 0]] - market.weight[chosen[:, 1]]).astype(np.float64))
    bias = gap * np.abs(market.x[chosen[:, 0]] - market.x[chosen[:, 1]])
    alone = np.setdiff1d(market.targets, chosen[:, 0])
    return Found(chosen, bias, alone, greedy.lonely, greedy.rounds, greedy.barred)


def _candidates(market: kernels.Market, greedy: Found, stream: Stream) -> Pairs:
    """List the pairs that may be chosen: target and near donor, each pair once."""

    def attempt(words: Words) -> Ints | None:
        dice = kernels.dice(words)
        near = kernels.near_donors(CELLS_EACH_SIDE, market, dice)
        return None if dice.cursor[1] else near

    near = draw_until_enough(attempt, stream, guess=5 * CELLS_EACH_SIDE * len(market.targets))
    target = np.repeat(market.targets, near.shape[1])
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
