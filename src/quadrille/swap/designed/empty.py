"""Combinations that nobody has and somebody might: where a record that stands alone can be displaced to."""

from __future__ import annotations

from itertools import combinations
from math import log

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.errors import ParameterError
from quadrille.randomness import Chooser, Stream
from quadrille.swap.designed.lattice import CubeProblem
from quadrille.swap.groups import Ints

Cells = NDArray[np.int32]
Floats = NDArray[np.float64]

MOST_FITTED, _SWEEPS = 1 << 20, 12
"""Cells of a table that is fitted at most, and rounds of fitting."""
_TRIED = 16
"""Empty cells that are tried, one after the other."""
_MOST_STEPS, _FEWEST_SWEEPS, _MOST_SWEEPS = 1 << 29, 4, 20
"""Cells times margins times sweeps of a fit: a few seconds."""
_LEAST = 1e-9
_NEWTON, _PRIOR = 12, 1.0
"""Steps of a logistic regression, and how strongly it is held to what is known before."""
_ALIKE = round(log(1.2), 9)
"""The odds of partners differ by a fifth at most."""
_MIRRORS = (64, 128, 256)
"""Mirrors that turn one axis, two, and three."""


class Partners:
    """Cells in pairs: each of nobody or one gets another of nobody or one that is as plausible, and shares its fate.

    Which of a pair is occupied has no part in it: who partners whom follows from the seed, from which cells hold at
    most one, and from all others. So where a coin decides which of the two is shown, the shown one is genuine with the
    odds of the two cells, and those are even.

    Plausible is what a logistic regression makes of the records that the tables of two and of three variables let one
    expect, and of those in cells that differ in one axis; cells to be judged are counted by what is expected of them.
    """

    def __init__(self, problem: CubeProblem, table: int) -> None:
        self._problem, self._table, cubes = problem, table, problem.cubes
        self._first, last = problem.first_key[table : table + 2]
        if last - self._first > MOST_FITTED:
            raise ParameterError(
                f"'coin' of DesignedSwap works on a protected table of up to {MOST_FITTED:,} possible cells, and this "
                f"one has {last - self._first:,}. Name fewer variables with 'tables', or leave 'coin' out."
            )
        variables = set(problem.views[table].variables)
        self._inside = [a for a, axis in enumerate(problem.axes) if variables & set(axis.seen)]
        self._sizes = sizes_of(problem, table, self._inside)
        # A level of the table must be a level of the axis: of variables that move as one the table may have only some.
        whole = self._sizes == cubes.sizes[self._inside]
        moves = np.array([problem.axes[a].moves for a in self._inside])
        self._turned = np.flatnonzero(whole & moves & (self._sizes > 1))
        cells = slice(problem.first[table], problem.first[table + 1])
        self._held = np.zeros(last - self._first, dtype=np.int64)
        self._held[cubes.cells["key"][cells] - self._first] = cubes.cells["before"][cells]
        self._score = plausibility(self._held, self._sizes, self._turned)

    def drawn(self, stream: Stream) -> Ints:
        """Return the partner of each cell of the table by its key, counted from its first; -1 for none."""
        return partners(self._score, self._sizes, self._turned, stream)

    def of(self, cell: int, partner: Ints) -> int:
        """Return the partner of the cell of the table in which a cell of the first table lies; -1 for none."""
        return int(partner[self._problem.cubes.key_of[self._table, cell] - self._first])

    def if_empty(self, cell: int, partner: Ints) -> Cells | None:
        """Return the levels of the partner of a cell of the first table on all axes; None if somebody is there."""
        other = self.of(cell, partner)
        if self._held[other]:
            return None
        levels = self._problem.cubes.levels[cell].copy()
        digits = np.array(np.unravel_index(other, tuple(self._sizes), order="F"))
        levels[np.array(self._inside)[self._turned]] = digits[self._turned]
        return levels

    def key_of(self, levels: Cells) -> int:
        """Return the key of the cell of the table at these levels."""
        cubes = self._problem.cubes
        return self._first + int(cubes.adds[self._table, cubes.level_from + levels].sum())


def partners(score: Floats, sizes: Ints, turned: Ints, stream: Stream) -> Ints:
    """Return the partner of each cell of a table, the first axis running fastest; -1 for none.

    A stream draws mirrors, each of which gives every cell an image, and the image that cell. In one mirror after the
    other cells that are left are paired with their images where the scores of both are alike.
    """
    chooser, partner = Chooser(stream), np.full(len(score), -1, dtype=np.int64)
    mirrors: list[Ints] = []
    for axes, count in enumerate(_MIRRORS, start=1):
        for _ in range(count if axes <= len(turned) else 0):
            left, mirror = turned.tolist(), np.full(len(sizes), -1, dtype=np.int64)
            for _ in range(axes):
                a = left.pop(chooser.below(len(left)))
                mirror[a] = 1 if sizes[a] == 2 else chooser.below(int(sizes[a]))
            mirrors.append(mirror)
    if mirrors:
        waiting = np.flatnonzero(np.isfinite(score))
        kernels.pair_images(waiting, score, _ALIKE, sizes, np.stack(mirrors), partner)
    return partner


def plausibility(held: Ints, sizes: Ints, turned: Ints) -> Floats:
    """Return the log odds that somebody is in a cell rather than nobody; infinity where more than one are."""
    signs, unsure = signs_of(held, sizes, turned), held <= 1
    score = np.full(len(held), np.inf)
    # By a rounded logistic regression: one record here or there, or another machine, makes no other weights.
    score[unsure] = np.round(signs[unsure] @ np.round(logistic(signs[unsure], held[unsure] == 1), 1), 6)
    return score


def signs_of(held: Ints, sizes: Ints, turned: Ints) -> Floats:
    """Return what tells whether somebody is in a cell: what fits expect there, and who is around.

    Cells of nobody and of one count as what is expected of them: that somebody is in this very cell does not enter.
    """
    counts, unsure = held.astype(np.float64), held <= 1
    expected = np.ones(len(counts))
    signs: list[Floats] = []
    for ways in (2, 3)[: max(len(sizes) - 1, 1)]:
        margins = margins_of(len(sizes), ways)
        sweeps = min(_MOST_STEPS // (len(margins) * len(counts)), _MOST_SWEEPS)
        if ways == 2 or sweeps >= _FEWEST_SWEEPS:
            kernels.fit_margins(counts, unsure, sizes, margins, max(sweeps, _FEWEST_SWEEPS), expected)
            signs.append(np.log(np.maximum(expected, _LEAST)))
    table = counts.reshape(tuple(sizes), order="F")
    around = sum((table.sum(axis=int(a), keepdims=True) - table for a in turned), np.zeros(table.shape))
    signs.append(np.log1p(np.maximum(around.reshape(-1, order="F"), 0.0)))
    return np.stack([*signs, np.ones(len(counts))], axis=1)


def logistic(x: Floats, there: NDArray[np.bool_]) -> Floats:
    """Return the coefficients of a logistic regression.

    A little is known before: the first sign is taken to be the log odds, with a prior of unit variance.

    >>> import numpy as np
    >>> from quadrille.swap.designed.empty import logistic
    >>> x = np.log([[0.5], [0.5], [0.5], [2.0], [2.0], [2.0]])
    >>> logistic(x, np.array([0, 0, 1, 0, 1, 1]) > 0).round(2).tolist()
    [1.0]
    """
    before = np.zeros(x.shape[1])
    before[0] = 1.0
    weight = before.copy()
    for _ in range(_NEWTON):
        chance = 1 / (1 + np.exp(-np.clip(x @ weight, -30.0, 30.0)))
        slope = x.T @ (there - chance) - _PRIOR * (weight - before)
        weight = weight + np.linalg.solve((x.T * (chance * (1 - chance))) @ x + _PRIOR * np.eye(len(weight)), slope)
    return weight


def sizes_of(problem: CubeProblem, table: int, inside: list[int]) -> Ints:
    """Return the number of levels that a table has of each of these axes."""
    cubes = problem.cubes
    adds = [cubes.adds[table, cubes.level_from[a] :][: cubes.sizes[a]] for a in inside]
    return np.array([len(np.unique(values)) for values in adds], dtype=np.int64)


def margins_of(axes: int, ways: int) -> Ints:
    """Return the sets of so many axes; all of them where there are fewer."""
    return np.array(list(combinations(range(axes), min(ways, axes))), dtype=np.int64)


class EmptyNeighbours:
    """Empty cells that differ from a cell in one axis, drawn in proportion to how plausible they are.

    A cell is as plausible as the number of records that the tables of two variables let one expect there: then the
    empty cells drawn are like the cells of one record. Of a table of very many cells the product of the shares of the
    values among the records that have the changed one is taken instead.
    """

    def __init__(self, problem: CubeProblem, table: int) -> None:
        self._problem, self._table, cubes = problem, table, problem.cubes
        variables = set(problem.views[table].variables)
        self._inside = [a for a, axis in enumerate(problem.axes) if variables & set(axis.seen)]
        self._moving = [a for a in self._inside if problem.axes[a].moves]
        self._levels = cubes.levels.astype(np.int64)
        self._held = cubes.cells["before"][: problem.first[1]].astype(np.int64)
        self._expected = self._fitted()
        self._pairs = {(a, b): self._pair(a, b) for a in self._moving for b in self._inside if b != a}

    def drawn(self, cell: int, chooser: Chooser) -> Cells:
        """Return the empty neighbours of a cell by their levels on all axes, in the order in which to try them."""
        axes: list[Ints] = [np.empty(0, dtype=np.int64)]
        levels, weights = [axes[0]], [np.empty(0)]
        for a in self._moving:
            keys, plausible = self._keys(cell, a), self._plausible(cell, a)
            occupied = np.array([kernels.find(int(key), self._problem.cubes) >= 0 for key in keys])
            level = np.flatnonzero(~occupied & (plausible > 0))
            axes.append(np.full(len(level), a))
            levels.append(level)
            weights.append(plausible[level])
        weight = np.concatenate(weights)
        chance = (np.array([chooser.below(1 << 32) for _ in weight], dtype=np.float64) + 0.5) / (1 << 32)
        waiting = np.round(-np.log(chance), 9) / weight  # rounded: the same on every machine
        order = np.argsort(waiting, kind="stable")[:_TRIED]
        goals = np.tile(self._problem.cubes.levels[cell], (len(order), 1))
        goals[np.arange(len(order)), np.concatenate(axes)[order]] = np.concatenate(levels)[order]
        return goals

    def _keys(self, cell: int, a: int) -> Ints:
        """Return the keys of the cells that differ from a cell in an axis, by level."""
        cubes = self._problem.cubes
        adds = cubes.adds[self._table, cubes.level_from[a] : cubes.level_from[a] + cubes.sizes[a]]
        return cubes.key_of[self._table, cell] + adds - adds[self._levels[cell, a]]

    def _plausible(self, cell: int, a: int) -> Floats:
        """Return how plausible these cells are."""
        if self._expected is not None:
            return self._expected[self._keys(cell, a) - self._problem.first_key[self._table]]
        count = np.bincount(self._levels[:, a], self._held, int(self._problem.cubes.sizes[a]))
        plausible: Floats = count.astype(np.float64)
        for b in self._inside:
            if b != a:
                plausible = plausible * (self._pairs[a, b][:, self._levels[cell, b]] + 0.5) / (count + 1.0)
        return plausible

    def _pair(self, a: int, b: int) -> Floats:
        """Return the table of two axes."""
        rows, columns = int(self._problem.cubes.sizes[a]), int(self._problem.cubes.sizes[b])
        records = np.bincount(self._levels[:, a] * columns + self._levels[:, b], self._held, rows * columns)
        return records.astype(np.float64).reshape(rows, columns)

    def _fitted(self) -> Floats | None:
        """Return the records to expect in each cell of the table; None where there are too many cells."""
        first, last = self._problem.first_key[self._table : self._table + 2]
        if last - first > MOST_FITTED:
            return None
        cubes, sizes = self._problem.cubes, sizes_of(self._problem, self._table, self._inside)
        keys = cubes.key_of[self._table] - first
        counts = np.bincount(keys, self._held, last - first).astype(np.float64)
        expected, unsure = np.ones(len(counts)), np.zeros(len(counts), dtype=np.bool_)
        kernels.fit_margins(counts, unsure, sizes, margins_of(len(sizes), 2), _SWEEPS, expected)
        return expected
