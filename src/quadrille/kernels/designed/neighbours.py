"""Cells that neighbour one another: what moving a record from cell to cell does to counts, exposure and loss.

Two cells of a table are neighbours in a mover when they agree in everything but the variables of the mover. To move a
record to a level is to move it, in every table, from its cell to the neighbour at that level.
"""

from __future__ import annotations

import numpy as np

from quadrille.kernels.compile import kernel
from quadrille.kernels.designed.state import NONE, NOTHING, At, Board, Real, fixed, now, real, value
from quadrille.kernels.pool import Whole

HELLINGER, TOTAL_VARIATION, CHI_SQUARE = 1, 2, 3
"""Losses of a table; 0 is none."""
NEVER = np.inf
"""The cost of what must not be done."""
FORTH, BACK = np.int64(1), np.int64(-1)


@kernel
def raw_loss(kind: Whole, before: Real, after: Real, total: Real) -> Real:
    """Return what a cell adds to the raw loss of its table."""
    if kind == HELLINGER:
        return -np.sqrt(before * max(after, 0.0)) / total
    if kind == TOTAL_VARIATION:
        return 0.5 * abs(after - before) / total
    if before > 0:
        return (after - before) ** 2 / before
    return NEVER if after > 1e-9 else 0.0


@kernel
def exposure(before: Whole, after: Whole, small: Whole) -> Whole:
    """Return how many records of a cell are exposed: in a small cell, and matching a true record."""
    return min(before, after) if 0 < after < small else NOTHING


@kernel
def neighbour(m: Whole, cell: Whole, level: Whole, x: Board) -> Whole:
    """Return the cell that differs from a cell in this level of a mover only, or -1 where there is none."""
    row = m * x.at[At.CELLS]
    low = fixed(At.GROUP, row + cell, x)
    high = last = low + fixed(At.SIZE, row + cell, x)
    while low < high:
        middle = (low + high) // 2
        if fixed(At.LEVEL, row + fixed(At.MEMBERS, row + middle, x), x) < level:
            low = middle + 1
        else:
            high = middle
    if low == last:
        return NONE
    found = fixed(At.MEMBERS, row + low, x)
    return found if fixed(At.LEVEL, row + found, x) == level else NONE


@kernel
def step_in(t: Whole, m: Whole, base: Whole, to: Whole, x: Board) -> tuple[bool, Whole, Whole]:
    """Return whether a move changes a table, the cell that is left and the one that is reached, -1 for a new one."""
    row = (t * x.at[At.MOVERS] + m) * x.at[At.LEVELS]
    goal = fixed(At.AS_LEVEL, row + to, x)
    if fixed(At.AS_LEVEL, row + fixed(At.BASE_LEVEL, m * x.at[At.BASES] + base, x), x) == goal:
        return False, NONE, NONE
    left = fixed(At.CELL_OF, t * x.at[At.BASES] + base, x)
    return True, left, neighbour(m, left, goal, x)


@kernel
def cell_cost(t: Whole, cell: Whole, weight: Real, x: Board) -> Real:
    """Return the change of the raw loss of a table when a cell gains this weight; a new cell (-1) held none."""
    kind, total = fixed(At.LOSS, t, x), real(At.TOTAL, t, x)
    if cell < 0:
        return raw_loss(kind, 0.0, weight, total)
    before, after = real(At.WEIGHT_BEFORE, cell, x), value(At.WEIGHT, cell, x)
    return raw_loss(kind, before, after + weight, total) - raw_loss(kind, before, after, total)


@kernel
def is_forbidden(m: Whole, base: Whole, to: Whole, x: Board) -> Whole:
    """Tell whether a record of a base cell would break a plausibility rule at a level of a mover."""
    own = fixed(At.PATTERN, m * x.at[At.BASES] + base, x)
    other = fixed(At.LEVEL_PATTERN, m * x.at[At.LEVELS] + to, x)
    return fixed(At.FORBIDDEN, (m * x.at[At.PATTERNS] + own) * x.at[At.PATTERNS] + other, x)


@kernel
def move_cost(m: Whole, base: Whole, to: Whole, treated: Whole, x: Board) -> Real:
    """Return the price of moving a record of a base cell to a level of a mover; infinite where it must not be done.

    A cell that a record leaves is not small afterwards, and one that it reaches is not small before, save the cell that
    is treated. In tables other than that cell's, a small cell may also grow, shrink or run empty.
    """
    if x.at[At.PATTERNS] and is_forbidden(m, base, to, x):
        return NEVER
    cost, small = 0.0, x.at[At.SMALL]
    own = NONE if treated < 0 else fixed(At.OF_TABLE, treated, x)
    for t in range(x.at[At.TABLES]):
        changes, left, reached = step_in(t, m, base, to, x)
        if not changes:
            continue
        if fixed(At.PROTECTED, t, x):
            lenient = own >= 0 and own != t
            if reached < 0 or now(At.COUNT, reached, x) == 0:
                return NEVER
            held = now(At.COUNT, left, x)
            if left != treated and held <= small and not (lenient and held < small):
                return NEVER
            if reached != treated and now(At.COUNT, reached, x) < small and not lenient:
                return NEVER
        if fixed(At.LOSS, t, x) > 0:
            weight = real(At.MEAN, base, x)
            change = cell_cost(t, left, -weight, x) + cell_cost(t, reached, weight, x)
            cost += value(At.SLOPE, t, x) * change
    return cost


@kernel
def return_cost(m: Whole, base: Whole, to: Whole, x: Board) -> Real:
    """Return the price of taking a move back; infinite where that would leave a cell too small."""
    cost = 0.0
    for t in range(x.at[At.TABLES]):
        changes, left, reached = step_in(t, m, base, to, x)
        if not changes:
            continue
        if fixed(At.PROTECTED, t, x) and now(At.COUNT, reached, x) <= x.at[At.SMALL]:
            return NEVER
        if fixed(At.LOSS, t, x) > 0:
            cost += value(At.SLOPE, t, x) * back_cost(t, left, reached, real(At.MEAN, base, x), x)
    return cost


@kernel
def back_cost(t: Whole, left: Whole, reached: Whole, weight: Real, x: Board) -> Real:
    """Return the change of the raw loss of a table when a weight that went from `left` to `reached` comes back."""
    if reached < 0:
        return cell_cost(t, left, weight, x) - cell_cost(t, reached, weight, x)
    return cell_cost(t, left, weight, x) + cell_cost(t, reached, -weight, x)


@kernel
def move(m: Whole, base: Whole, to: Whole, records: Whole, x: Board) -> None:
    """Move a record of a base cell to a level of a mover (FORTH), or take that back (BACK)."""
    weight = real(At.MEAN, base, x)
    for t in range(x.at[At.TABLES]):
        changes, left, reached = step_in(t, m, base, to, x)
        if not changes:
            continue
        if fixed(At.LOSS, t, x) > 0:
            if records < 0:
                change = back_cost(t, left, reached, weight, x)
            else:
                change = cell_cost(t, left, -weight, x) + cell_cost(t, reached, weight, x)
            x.value[x.at[At.SUM] + t] += change
        add_to(left, -records, -weight * records, t, x)
        if reached >= 0:
            add_to(reached, records, weight * records, t, x)
    x.now[x.at[At.FREE] + base] -= records
    x.now[x.at[At.MOVED]] += records


@kernel
def add_to(cell: Whole, records: Whole, weight: Real, t: Whole, x: Board) -> None:
    """Change what a cell holds."""
    if fixed(At.PROTECTED, t, x):
        before, after = fixed(At.BEFORE, cell, x), now(At.COUNT, cell, x)
        change = exposure(before, after + records, x.at[At.SMALL]) - exposure(before, after, x.at[At.SMALL])
        x.now[x.at[At.EXPOSED]] += change
    x.now[x.at[At.COUNT] + cell] += records
    x.value[x.at[At.WEIGHT] + cell] += weight


@kernel
def loss_now(x: Board) -> Real:
    """Return the loss so far: the weighted sum over tables, the root of the raw loss for Hellinger distances."""
    loss = 0.0
    for t in range(x.at[At.TABLES]):
        raw = value(At.SUM, t, x)
        if fixed(At.LOSS, t, x) == HELLINGER:
            raw = np.sqrt(max(raw, 0.0))
        loss += real(At.IMPORTANCE, t, x) * raw
    return loss
