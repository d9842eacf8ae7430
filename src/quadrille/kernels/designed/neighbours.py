"""Cells that neighbour one another: what moving a record from cell to cell does to counts, exposure and loss.

Two cells of a table are neighbours in a mover when they agree in everything but the variables of the mover. To move a
record to a level is to move it, in every table, from its cell to the neighbour at that level.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quadrille.kernels.compile import Whole, kernel, no_alloc
from quadrille.kernels.designed import NONE, NOTHING, Lattice, Real

Ints = NDArray[np.int64]

HELLINGER, TOTAL_VARIATION, CHI_SQUARE = 1, 2, 3
"""Losses of a table; 0 is none."""
NEVER = np.inf
"""The cost of what must not be done."""
FORTH, BACK = np.int64(1), np.int64(-1)


@no_alloc
def raw_loss(kind: Whole, before: Real, after: Real, total: Real) -> Real:
    """Return what a cell adds to the raw loss of its table."""
    if kind == HELLINGER:
        return -np.sqrt(before * max(after, 0.0)) / total
    if kind == TOTAL_VARIATION:
        return 0.5 * abs(after - before) / total
    if before > 0:
        return (after - before) ** 2 / before
    return NEVER if after > 1e-9 else 0.0


@no_alloc
def exposure(before: Whole, after: Whole, n: Whole) -> Whole:
    """Return how many records of a cell are exposed: in a small cell, and matching a true record."""
    return min(before, after) if 0 < after < n else NOTHING


@no_alloc
def level_of(m: Whole, base: Whole, lattice: Lattice) -> Whole:
    """Return the level of a base cell in a mover."""
    return np.int64(lattice.base_levels[m, base].level)


@no_alloc
def neighbour(m: Whole, cell: Whole, level: Whole, lattice: Lattice) -> Whole:
    """Return the cell that differs from a cell in this level of a mover only, or -1 where there is none."""
    low = np.int64(lattice.places[m, cell].first)
    high = last = low + lattice.places[m, cell].size
    while low < high:  # neighbours are in ascending order of level
        middle = (low + high) // 2
        if lattice.neighbours[m, middle].level < level:
            low = middle + 1
        else:
            high = middle
    if low < last and lattice.neighbours[m, low].level == level:
        return np.int64(lattice.neighbours[m, low].cell)
    return NONE


@no_alloc
def step_in(t: Whole, m: Whole, base: Whole, to: Whole, lattice: Lattice) -> tuple[bool, Whole, Whole]:
    """Return whether a move changes a table, the cell that is left and the one that is reached, -1 for a new one."""
    goal = np.int64(lattice.seen_level[t, m, to])
    if lattice.seen_level[t, m, level_of(m, base, lattice)] == goal:
        return False, NONE, NONE
    left = np.int64(lattice.cell_of[t, base])
    return True, left, neighbour(m, left, goal, lattice)


@no_alloc
def cell_cost(t: Whole, cell: Whole, weight: Real, lattice: Lattice) -> Real:
    """Return the change of the raw loss of a table when a cell gains this weight; a new cell (-1) held none."""
    kind, total = lattice.tables[t].loss, lattice.tables[t].total
    if cell < 0:
        return raw_loss(kind, 0.0, weight, total)
    before, after = lattice.cells[cell].weight_before, lattice.cells[cell].weight
    return raw_loss(kind, before, after + weight, total) - raw_loss(kind, before, after, total)


@no_alloc
def is_forbidden(m: Whole, base: Whole, to: Whole, lattice: Lattice) -> Whole:
    """Tell whether a record of a base cell would break a plausibility rule at a level of a mover."""
    return lattice.forbidden[m, lattice.base_levels[m, base].pattern, lattice.level_pattern[m, to]]


@no_alloc
def move_cost(m: Whole, base: Whole, to: Whole, treated: Whole, lattice: Lattice) -> Real:
    """Return the price of moving a record of a base cell to a level of a mover; infinite where it must not be done.

    A cell that a record leaves is not small afterwards, and one that it reaches is not small before, save the cell that
    is treated. In tables other than that cell's, a small cell may also grow, shrink or run empty.
    """
    if lattice.forbidden.size and is_forbidden(m, base, to, lattice):
        return NEVER
    cost, n = 0.0, lattice.n
    own = NONE if treated < 0 else lattice.cells[treated].table
    for t in range(len(lattice.tables)):
        changes, left, reached = step_in(t, m, base, to, lattice)
        if not changes:
            continue
        if lattice.tables[t].protected:
            lenient = own >= 0 and own != t
            if reached < 0 or lattice.cells[reached].count == 0:
                return NEVER
            held = lattice.cells[left].count
            if left != treated and held <= n and not (lenient and held < n):
                return NEVER
            if reached != treated and lattice.cells[reached].count < n and not lenient:
                return NEVER
        if lattice.tables[t].loss > 0:
            weight = lattice.bases[base].mean_weight
            change = cell_cost(t, left, -weight, lattice) + cell_cost(t, reached, weight, lattice)
            cost += lattice.tables[t].slope * change
    return cost


@no_alloc
def return_cost(m: Whole, base: Whole, to: Whole, lattice: Lattice) -> Real:
    """Return the price of taking a move back; infinite where that would leave a cell too small."""
    cost = 0.0
    for t in range(len(lattice.tables)):
        changes, left, reached = step_in(t, m, base, to, lattice)
        if not changes:
            continue
        if lattice.tables[t].protected and lattice.cells[reached].count <= lattice.n:
            return NEVER
        if lattice.tables[t].loss > 0:
            cost += lattice.tables[t].slope * back_cost(t, left, reached, lattice.bases[base].mean_weight, lattice)
    return cost


@no_alloc
def back_cost(t: Whole, left: Whole, reached: Whole, weight: Real, lattice: Lattice) -> Real:
    """Return the change of the raw loss of a table when a weight that went from `left` to `reached` comes back."""
    if reached < 0:
        return cell_cost(t, left, weight, lattice) - cell_cost(t, reached, weight, lattice)
    return cell_cost(t, left, weight, lattice) + cell_cost(t, reached, -weight, lattice)


@no_alloc
def move(m: Whole, base: Whole, to: Whole, records: Whole, lattice: Lattice) -> None:
    """Move a record of a base cell to a level of a mover (FORTH), or take that back (BACK)."""
    weight = lattice.bases[base].mean_weight
    for t in range(len(lattice.tables)):
        changes, left, reached = step_in(t, m, base, to, lattice)
        if not changes:
            continue
        if lattice.tables[t].loss > 0:
            if records < 0:
                change = back_cost(t, left, reached, weight, lattice)
            else:
                change = cell_cost(t, left, -weight, lattice) + cell_cost(t, reached, weight, lattice)
            lattice.tables[t].raw_loss += change
        add_to(left, -records, -weight * records, t, lattice)
        if reached >= 0:
            add_to(reached, records, weight * records, t, lattice)
    lattice.bases[base].free -= records
    lattice.totals.moved += records


@no_alloc
def add_to(cell: Whole, records: Whole, weight: Real, t: Whole, lattice: Lattice) -> None:
    """Change what a cell holds."""
    held, n = lattice.cells[cell], lattice.n
    if lattice.tables[t].protected:
        change = exposure(held.before, held.count + records, n) - exposure(held.before, held.count, n)
        lattice.totals.exposed += change
    held.count += records
    held.weight += weight


@kernel
def loss_now(lattice: Lattice) -> Real:
    """Return the loss so far: the weighted sum over tables, the root of the raw loss for Hellinger distances."""
    loss = 0.0
    for table in lattice.tables:
        raw = table.raw_loss
        if table.loss == HELLINGER:
            raw = np.sqrt(max(raw, 0.0))
        loss += table.importance * raw
    return loss


@kernel
def fit_margins(
    counts: NDArray[np.float64],
    unsure: NDArray[np.bool_],
    sizes: Ints,
    margins: Ints,
    sweeps: int,
    expected: NDArray[np.float64],
) -> None:
    """Fit `expected` to these margins of `counts`, from what it holds; the first axis runs fastest.

    In an unsure cell is nobody or one, with odds of what is expected there: each sweep puts that in for its count.
    Sums run in a fixed order and nothing but sums, products and quotients is taken: every machine gives the same.
    """
    levels = np.empty((len(sizes), len(counts)), dtype=np.int16)
    stride = 1
    for a in range(len(sizes)):
        for cell in range(len(counts)):
            levels[a, cell] = cell // stride % sizes[a]
        stride *= sizes[a]
    at = np.empty(len(counts), dtype=np.int64)
    for _ in range(sweeps):
        for cell in range(len(counts)):
            if unsure[cell]:
                counts[cell] = expected[cell] / (1.0 + expected[cell])
        for i in range(len(margins)):
            cells = 1
            at[:] = 0
            for a in margins[i]:
                for cell in range(len(counts)):
                    at[cell] = at[cell] * sizes[a] + levels[a, cell]
                cells *= sizes[a]
            wanted = np.zeros(cells)
            fitted = np.zeros(cells)
            for cell in range(len(counts)):
                wanted[at[cell]] += counts[cell]
                fitted[at[cell]] += expected[cell]
            for place in range(cells):
                wanted[place] = wanted[place] / fitted[place] if fitted[place] > 0 else 0.0
            for cell in range(len(counts)):
                expected[cell] *= wanted[at[cell]]


@kernel
def pair_images(
    waiting: Ints, score: NDArray[np.float64], width: float, sizes: Ints, mirrors: Ints, partner: Ints
) -> None:
    """Pair cells with their images in one mirror after the other, where the scores of the two are within a width.

    A mirror takes level l of an axis to k - l, modulo the number of levels: so the image of the image is the cell. It
    has -1 for an axis that it leaves as it is. `waiting` are the cells to pair; `partner` is -1 for all without one.
    """
    left = len(waiting)
    for mirror in mirrors:
        for i in range(left):
            cell = waiting[i]
            if partner[cell] >= 0:
                continue
            image, stride = cell, 1
            for a in range(len(sizes)):
                if mirror[a] >= 0:
                    level = cell // stride % sizes[a]
                    image += ((mirror[a] - level) % sizes[a] - level) * stride
                stride *= sizes[a]
            # An image that is not waiting has a score of infinity.
            if image > cell and partner[image] < 0 and abs(score[image] - score[cell]) <= width:
                partner[cell], partner[image] = image, cell
        kept = 0
        for i in range(left):
            if partner[waiting[i]] < 0:
                waiting[kept] = waiting[i]
                kept += 1
        left = kept
