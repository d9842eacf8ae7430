"""From the counts of a new table to records: the fewest that can make it, each variable permuted among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from quadrille import kernels
from quadrille.data import Data, Floats, Ints
from quadrille.kernels.designed.cubes import Cubes
from quadrille.plan import Move
from quadrille.randomness import Chooser, Stream, Words, draw_until_enough
from quadrille.recipe import random_order
from quadrille.swap.designed.lattice import CubeProblem
from quadrille.swap.groups import codes_of, group_ids, sorted_by

if TYPE_CHECKING:
    from quadrille.swap.designed import DesignedSwap


_MATCHED = 2_000
"""So many records are matched to places at the least number of changed values; more than that in steps."""
_CANDIDATES = 256
"""So many records of a cell are compared, drawn at random where there are more."""


class Realisation:
    """Who stands in which cell, and how records are drawn from it."""

    def __init__(self, recipe: DesignedSwap, data: Data, problem: CubeProblem) -> None:
        self._data, self._problem = data, problem
        rows = np.flatnonzero(problem.free)
        order, self._start = sorted_by(problem.base[rows], len(problem.cubes.levels))
        self._order = rows[order]
        self._weighted = data.ticks is not None
        if data.ticks is not None:  # records of like weight hardly change weighted tables
            weight = data.ticks.values
            away = np.abs(weight - np.median(weight))
            self._order = self._order[np.lexsort((away[self._order], problem.base[self._order]))]
        self._moving = [a for a, axis in enumerate(problem.axes) if axis.moves]
        self._still = [a for a, axis in enumerate(problem.axes) if not axis.moves]
        self._class, _ = group_ids([codes_of(data, name) for name in recipe.same], data.n)
        self._fit = _Fit(data, problem, recipe.fit) if recipe.fit else None

    def moves(self, cubes: Cubes, stream: Stream) -> list[Move]:
        """Return the moves that turn the records into those of the new table."""
        more = cubes.cells["count"].astype(np.int64) - cubes.cells["before"]
        first = self._problem.cells_of(0, cubes)
        leaving, arriving = first[more[first] < 0], first[more[first] > 0]
        leaving, arriving = np.repeat(leaving, -more[leaving]), np.repeat(arriving, more[arriving])
        leaving = leaving[random_order(len(leaving), stream.sub("leaving"))]
        arriving = arriving[random_order(len(arriving), stream.sub("arriving"))]
        before, after = self._levels(cubes, leaving), self._levels(cubes, arriving)
        place = self._matched(before, after)
        wanted = after[place]
        rows = self._drawn(leaving, before, wanted, stream)
        return [
            Move(self._problem.axes[a].columns, self._permuted(rows, before[:, a], wanted[:, a]))
            for a in self._moving
            if (before[:, a] != wanted[:, a]).any()
        ]

    def _levels(self, cubes: Cubes, cells: Ints) -> Ints:
        return cubes.cells["key"][cells][:, None] // cubes.strides[None, :] % cubes.sizes[None, :]

    def _matched(self, before: Ints, after: Ints) -> Ints:
        """Return for each record that leaves the place it takes: alike in all that stays, few values changed."""
        place = np.full(len(before), -1, dtype=np.int64)
        size = int(max(before.max(initial=0), after.max(initial=0))) + 1
        both = np.concatenate((before, after))

        def keys(axes: list[int]) -> tuple[Ints, Ints]:
            ids, _ = group_ids([(both[:, a], size) for a in axes], len(both))
            return ids[: len(before)], ids[len(before) :]

        if len(before) > _MATCHED:
            for without in [[a] for a in self._moving] + [[a, b] for a in self._moving for b in self._moving if a < b]:
                free, open_ = np.flatnonzero(place < 0), _open(place, len(after))
                mine, theirs = keys([a for a in range(both.shape[1]) if a not in without])
                _join(mine[free], theirs[open_], free, open_, place)
        mine, theirs = keys(self._still)
        free, open_ = np.flatnonzero(place < 0), _open(place, len(after))
        free, open_ = free[np.argsort(mine[free], kind="stable")], open_[np.argsort(theirs[open_], kind="stable")]
        cuts = np.flatnonzero(np.diff(mine[free])) + 1
        for left, right in zip(np.split(free, cuts), np.split(open_, cuts), strict=True):
            for at in range(0, len(left), _MATCHED):
                some, others = left[at : at + _MATCHED], right[at : at + _MATCHED]
                place[some] = others[_assigned(before[some][:, self._moving], after[others][:, self._moving])]
        return place

    def _drawn(self, cells: Ints, before: Ints, wanted: Ints, stream: Stream) -> Ints:
        """Draw a record of each of these cells; nobody twice."""
        if self._fit is not None:
            return self._fit.drawn(cells, before, wanted, self._order, self._start, Chooser(stream.sub("records")))
        available = np.diff(self._start)
        if self._weighted:
            available = np.minimum(available, 3 * np.bincount(cells, minlength=len(available)))

        def attempt(words: Words) -> Ints | None:
            dice, rows = kernels.dice(words), np.empty(len(cells), dtype=np.int64)
            kernels.draw_rows(cells, self._order.copy(), self._start, available.copy(), rows, dice)
            return None if dice.cursor[1] else rows

        return draw_until_enough(attempt, stream.sub("records"), 2 * len(cells) + 64)

    def _permuted(self, rows: Ints, has: Ints, needs: Ints) -> tuple[Ints, Ints]:
        """Return who receives a value and from whom, among the records that need another one."""
        changed = has != needs
        rows, has, needs = rows[changed], has[changed], needs[changed]
        group = self._class[rows]
        receivers, givers = np.lexsort((needs, group)), np.lexsort((has, group))
        return rows[receivers], rows[givers]


class _Fit:
    """How well the other columns of a record fit a place: products of odds from tables of two variables."""

    def __init__(self, data: Data, problem: CubeProblem, names: Sequence[str]) -> None:
        coded = [codes_of(data, name) for name in names]
        self._codes = [codes.astype(np.int64) for codes, _ in coded]
        self._pairs: dict[tuple[int, int], Floats] = {}
        for w, (codes, (_, size)) in enumerate(zip(self._codes, coded, strict=True)):
            for a, axis in enumerate(problem.axes):
                if axis.moves:
                    width = int(problem.cubes.sizes[a])
                    ids = codes * width + problem.cubes.levels[problem.base, a]
                    records = np.bincount(ids, minlength=size * width).reshape(size, width)
                    self._pairs[w, a] = records.astype(np.float64) + 0.5

    def drawn(self, cells: Ints, before: Ints, wanted: Ints, order: Ints, start: Ints, chooser: Chooser) -> Ints:
        """Draw a record of each cell, in proportion to how well it fits the place it is to take."""
        left = {int(cell): order[start[cell] : start[cell + 1]] for cell in np.unique(cells)}
        rows = np.empty(len(cells), dtype=np.int64)
        for i, cell in enumerate(cells.tolist()):
            here = left[cell]
            picked = np.arange(len(here))
            if len(here) > _CANDIDATES:
                picked = np.unique([chooser.below(len(here)) for _ in range(_CANDIDATES)])
            odds = np.ones(len(picked))
            for a in np.flatnonzero(before[i] != wanted[i]).tolist():
                for w, codes in enumerate(self._codes):
                    pair = self._pairs[w, a][codes[here[picked]]]
                    odds *= pair[:, wanted[i, a]] / pair[:, before[i, a]]
            edges: Floats = np.cumsum(odds)
            dice = (chooser.below(1 << 32) + 0.5) / (1 << 32)
            at = picked[int(np.searchsorted(edges, dice * float(edges[-1])))]
            rows[i] = here[at]
            left[cell] = np.delete(here, at)
        return rows


def _open(place: Ints, count: int) -> Ints:
    """Return the places that are not taken."""
    taken = np.zeros(count, dtype=bool)
    taken[place[place >= 0]] = True
    return np.flatnonzero(~taken)


def _join(mine: Ints, theirs: Ints, free: Ints, open_: Ints, place: Ints) -> None:
    """Give records places of the same key, one each, as far as both go."""
    mine_order, their_order = np.argsort(mine, kind="stable"), np.argsort(theirs, kind="stable")
    mine_sorted, their_sorted = mine[mine_order], theirs[their_order]
    rank = np.arange(len(mine)) - np.searchsorted(mine_sorted, mine_sorted, side="left")
    first = np.searchsorted(their_sorted, mine_sorted, side="left")
    size = np.searchsorted(their_sorted, mine_sorted, side="right") - first
    found = rank < size
    place[free[mine_order[found]]] = open_[their_order[(first + rank)[found]]]


def _assigned(before: Ints, after: Ints) -> Ints:
    """Match rows one to one with the least number of differing values."""
    from scipy.optimize import linear_sum_assignment

    differ = np.zeros((len(before), len(after)), dtype=np.int8)
    for a in range(before.shape[1]):
        differ += before[:, a][:, None] != after[:, a][None, :]
    _, place = linear_sum_assignment(differ)
    return np.asarray(place, dtype=np.int64)
