"""Combinations that nobody has and somebody might: where a record that stands alone can be displaced to."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.randomness import Chooser
from quadrille.swap.designed.lattice import CubeProblem
from quadrille.swap.groups import Ints

Cells = NDArray[np.int32]
Floats = NDArray[np.float64]

_MOST_FITTED, _SWEEPS = 1 << 20, 12
"""Cells of a table that is fitted at most, and rounds of fitting."""
_TRIED = 16
"""Empty cells that are tried, one after the other."""


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

    def drawn(self, cell: int, chooser: Chooser) -> tuple[Cells, Cells]:
        """Return axes and levels of the empty neighbours of a cell, in the order in which to try them."""
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
        return np.concatenate(axes)[order].astype(np.int32), np.concatenate(levels)[order].astype(np.int32)

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
        if last - first > _MOST_FITTED:
            return None
        cubes, counts = self._problem.cubes, np.zeros(last - first, dtype=np.int64)
        np.add.at(counts, cubes.key_of[self._table] - first, self._held)
        adds = [cubes.adds[self._table, cubes.level_from[a] :][: cubes.sizes[a]] for a in self._inside]
        sizes = np.array([len(np.unique(values)) for values in adds], dtype=np.int64)
        expected = np.empty(len(counts))
        kernels.fit_pairs(counts, sizes, _SWEEPS, expected)
        return expected
