"""Treating a small cell: let records come in until it is no longer small, or let its records leave.

Every record that moves to another level of a mover is balanced by one that moves the other way: a filler that went the
same way comes back, or a new filler sets out. What has been done since `begin` can be undone.
"""

from __future__ import annotations

import numpy as np

from quadrille.kernels.compile import kernel
from quadrille.kernels.designed.fillers import (
    Way,
    add_filler,
    cheapest,
    choose_filler,
    choose_near,
    drop_filler,
    newest_back,
    revive,
    way,
)
from quadrille.kernels.designed.neighbours import BACK, FORTH, NEVER, cell_cost, move, move_cost, return_cost
from quadrille.kernels.designed.state import NONE, NOTHING, At, Board, Real, fixed, now, put, put_value, real, value
from quadrille.kernels.draw import below
from quadrille.kernels.pool import Dice, Whole

NOT_CHOSEN, CAMOUFLAGED, EMPTIED, NO_NEIGHBOUR, NO_PARTNER, TOO_DEAR, BUDGET = range(7)
"""What came of a small cell."""
CHEAPER, CAMOUFLAGE_ONLY, EMPTY_ONLY, EITHER = range(4)
"""Which treatment: the cheaper where a cell can be camouflaged; one of the two only; whichever can be done."""
_MOVED, _FILLED, _CAME_BACK, _UNDONE = np.int64(0), np.int64(1), np.int64(2), np.int64(3)
_CELLS, _BASES = np.int64(128), np.int64(32)
"""How many neighbours in a mover, and base cells of one, are looked at; of more, a stretch that begins at random."""
_WIDTH = 6


@kernel
def begin(x: Board) -> None:
    """Remember where the draw stands."""
    put(At.LOGGED, NOTHING, NOTHING, x)
    put(At.DEATHS, NOTHING, NOTHING, x)
    put(At.MARK_EXPOSED, NOTHING, now(At.EXPOSED, NOTHING, x), x)
    for t in range(x.at[At.TABLES]):
        put_value(At.MARK_SUM, t, value(At.SUM, t, x), x)


@kernel
def note(what: Whole, road: Way, b: Whole, x: Board) -> None:
    """Write a step down."""
    row = x.at[At.LOG] + _WIDTH * now(At.LOGGED, NOTHING, x)
    x.now[row], x.now[row + 1], x.now[row + 2], x.now[row + 3] = what, road.mover, b, road.to
    x.now[row + 4], x.now[row + 5] = road.bucket, road.block
    x.now[x.at[At.LOGGED]] += 1


@kernel
def undo(keep: Whole, x: Board) -> None:
    """Undo all steps but the first so many."""
    while now(At.LOGGED, NOTHING, x) > keep:
        x.now[x.at[At.LOGGED]] -= 1
        row = x.at[At.LOG] + _WIDTH * now(At.LOGGED, NOTHING, x)
        what, b = x.now[row], x.now[row + 2]
        road = Way(x.now[row + 4], x.now[row + 5], x.now[row + 1], x.now[row + 3])
        if what == _FILLED:
            drop_filler(road, x)
        elif what == _CAME_BACK:
            add_filler(road, b, x)
        else:
            move(road.mover, b, road.to, BACK if what == _MOVED else FORTH, x)
    revive(x)
    if keep == 0:
        for t in range(x.at[At.TABLES]):
            put_value(At.SUM, t, value(At.MARK_SUM, t, x), x)


@kernel
def partner_cost(m: Whole, klass: Whole, start: Whole, to: Whole, x: Board) -> Real:
    """Return the price of balancing a move from one level to another."""
    cost = cheapest(way(m, klass, to, start, x), x)
    if x.at[At.UNLIKES]:
        return cost
    return min(cost, newest_back(way(m, klass, start, to, x), x))


@kernel
def balance(m: Whole, klass: Whole, start: Whole, to: Whole, tolerance: Real, x: Board, dice: Dice) -> bool:
    """Balance a move from one level to another that has been made; False where that cannot be done."""
    same, other = way(m, klass, start, to, x), way(m, klass, to, start, x)
    fresh = cheapest(other, x)
    back = newest_back(same, x)
    if back == NEVER and fresh == NEVER:
        return False
    if back <= fresh:
        note(_CAME_BACK, same, drop_filler(same, x), x)
    else:
        b = choose_filler(other, NONE, tolerance, x, dice)
        add_filler(other, b, x)
        note(_FILLED, other, b, x)
    return True


@kernel
def find_partner(m: Whole, b: Whole, to: Whole, tolerance: Real, x: Board, dice: Dice) -> Whole:
    """Move a partner of its own for a record of base cell b, one that differs from it; return it, -1 for none."""
    start = fixed(At.BASE_LEVEL, m * x.at[At.BASES] + b, x)
    road = way(m, fixed(At.CLASS_OF, b, x), to, start, x)
    if cheapest(road, x) == NEVER:
        return NONE
    partner = choose_filler(road, b, tolerance, x, dice)
    if partner >= 0:
        move(m, partner, start, FORTH, x)
        note(_MOVED, Way(NONE, NONE, m, start), partner, x)
    return partner


@kernel
def stretch(length: Whole, most: Whole, dice: Dice) -> tuple[Whole, Whole]:
    """Return where to begin in a list that is looked at all round, and how many entries to look at."""
    return (NOTHING, length) if length <= most else (below(length, dice), most)


@kernel
def options(c: Whole, way_in: Whole, x: Board, dice: Dice) -> Whole:
    """List the moves into a cell, or out of it, with their prices, partner included; return how many."""
    found = NOTHING
    for m in range(x.at[At.MOVERS]):
        row = m * x.at[At.CELLS]
        length = fixed(At.SIZE, row + c, x)
        first, looked = stretch(length, _CELLS, dice)
        for j in range(looked):
            other = fixed(At.MEMBERS, row + fixed(At.GROUP, row + c, x) + (first + j) % length, x)
            if other != c and now(At.COUNT, other, x) >= x.at[At.SMALL] + way_in:
                source, goal = (other, c) if way_in else (c, other)
                found = more_options(m, source, goal, c, found, x, dice)
    return found


@kernel
def more_options(m: Whole, source: Whole, goal: Whole, c: Whole, found: Whole, x: Board, dice: Dice) -> Whole:
    """Add the moves from one cell to another to the options for cell c; return how many options there are."""
    row = m * x.at[At.CELLS]
    start, to = fixed(At.LEVEL, row + source, x), fixed(At.LEVEL, row + goal, x)
    begin_of, end_of = fixed(At.FIRST_BASE, source, x), fixed(At.FIRST_BASE, source + 1, x)
    first, looked = stretch(end_of - begin_of, _BASES, dice)
    for i in range(looked):
        b = fixed(At.BASES_OF, begin_of + (first + i) % (end_of - begin_of), x)
        if now(At.FREE, b, x) <= 0 or found == x.at[At.OPTIONS]:
            continue
        cost = move_cost(m, b, to, c, x)
        if cost < NEVER:
            cost += partner_cost(m, fixed(At.CLASS_OF, b, x), start, to, x)
        if cost < NEVER:
            place = x.at[At.MAY_MOVE] + 3 * found
            x.now[place], x.now[place + 1], x.now[place + 2] = m, b, to
            put_value(At.MAY_COST, found, cost, x)
            found += 1
    return found


@kernel
def make_move(i: Whole, m: Whole, b: Whole, to: Whole, tolerance: Real, x: Board, dice: Dice) -> bool:
    """Make a move for patient i and balance it; False, with nothing done, where that cannot be done."""
    start, before, partner = fixed(At.BASE_LEVEL, m * x.at[At.BASES] + b, x), now(At.LOGGED, NOTHING, x), NONE
    move(m, b, to, FORTH, x)
    note(_MOVED, Way(NONE, NONE, m, to), b, x)
    if x.at[At.UNLIKES]:
        partner = find_partner(m, b, to, tolerance, x, dice)
        done = partner >= 0
    else:
        done = balance(m, fixed(At.CLASS_OF, b, x), start, to, tolerance, x, dice)
    if not done:
        undo(before, x)
        return False
    made = now(At.MADE, i, x)
    row = x.at[At.MOVES] + 4 * (i * x.at[At.SMALL] + made)
    x.now[row], x.now[row + 1], x.now[row + 2], x.now[row + 3] = m, b, to, partner
    put(At.MADE, i, made + 1, x)
    return True


@kernel
def one_step(i: Whole, way_in: Whole, x: Board, dice: Dice) -> bool:
    """Move one record into the cell of patient i, or out of it, by one of the cheapest ways; False for none."""
    found = options(fixed(At.CELL, i, x), way_in, x, dice)
    cost = x.value[x.at[At.MAY_COST] : x.at[At.MAY_COST] + found].copy()
    may = x.now[x.at[At.MAY_MOVE] : x.at[At.MAY_MOVE] + 3 * found].copy()
    while found and cost.min() < NEVER:
        tolerance = real(At.SPREAD, NOTHING, x) * max(cost.min(), 0.0)
        k = choose_near(cost, tolerance, dice)
        if make_move(i, may[3 * k], may[3 * k + 1], may[3 * k + 2], tolerance, x, dice):
            return True
        cost[k] = NEVER
    return False


@kernel
def all_steps(i: Whole, way_in: Whole, x: Board, dice: Dice) -> bool:
    """Camouflage the cell of patient i, or empty it; where that cannot be finished, undo what was begun."""
    c, before, made = fixed(At.CELL, i, x), now(At.LOGGED, NOTHING, x), now(At.MADE, i, x)
    goal = x.at[At.SMALL] if way_in else 0
    while now(At.COUNT, c, x) != goal:
        if not one_step(i, way_in, x, dice):
            undo(before, x)
            put(At.MADE, i, made, x)
            return False
    return True


@kernel
def estimate(i: Whole, way_in: Whole, x: Board, dice: Dice) -> Real:
    """Estimate the price of camouflaging or emptying a cell; infinite where not even a first step can be made.

    The price of the first step is taken for each step, the cell's own part of it exactly.
    """
    c = fixed(At.CELL, i, x)
    steps = x.at[At.SMALL] - now(At.COUNT, c, x) if way_in else now(At.COUNT, c, x)
    if not way_in and free_in(c, x) < steps:
        return NEVER
    found = options(c, way_in, x, dice)
    if found == 0:
        return NEVER
    cost, t = x.value[x.at[At.MAY_COST] : x.at[At.MAY_COST] + found].min(), fixed(At.OF_TABLE, c, x)
    if fixed(At.LOSS, t, x) == 0:
        return steps * cost
    weight = real(At.MEAN, now(At.MAY_MOVE, FORTH, x), x) * (1 if way_in else -1)
    own = cell_cost(t, c, weight * steps, x) - steps * cell_cost(t, c, weight, x)
    return steps * cost + value(At.SLOPE, t, x) * own


@kernel
def free_in(c: Whole, x: Board) -> Whole:
    """Count the records of a cell that have not moved and may."""
    free = NOTHING
    for place in range(fixed(At.FIRST_BASE, c, x), fixed(At.FIRST_BASE, c + 1, x)):
        free += now(At.FREE, fixed(At.BASES_OF, place, x), x)
    return free


@kernel
def has_neighbour(c: Whole, treatment: Whole, x: Board) -> bool:
    """Tell whether a neighbour is large enough to give a record, or to take one where the cell may be emptied."""
    least = x.at[At.SMALL] + (0 if treatment in (EMPTY_ONLY, EITHER) else 1)
    for m in range(x.at[At.MOVERS]):
        row = m * x.at[At.CELLS]
        for j in range(fixed(At.SIZE, row + c, x)):
            other = fixed(At.MEMBERS, row + fixed(At.GROUP, row + c, x) + j, x)
            if other != c and now(At.COUNT, other, x) >= least:
                return True
    return False


@kernel
def treat(i: Whole, treatment: Whole, x: Board, dice: Dice) -> Whole:
    """Treat the cell of patient i by the cheaper way, or by the other where that fails; return what came of it."""
    c, no, yes = fixed(At.CELL, i, x), NOTHING, FORTH
    if now(At.COUNT, c, x) == 0 or now(At.COUNT, c, x) >= x.at[At.SMALL]:
        return EMPTIED if now(At.COUNT, c, x) == 0 else CAMOUFLAGED
    come = NEVER if treatment == EMPTY_ONLY else estimate(i, yes, x, dice)
    leave = NEVER if treatment == CAMOUFLAGE_ONLY else estimate(i, no, x, dice)
    if come == NEVER and (leave == NEVER or treatment == CHEAPER):
        return NO_PARTNER if has_neighbour(c, treatment, x) else NO_NEIGHBOUR
    for attempt in range(2):
        way_in = yes if (come <= leave) == (attempt == 0) else no
        if (come if way_in else leave) < NEVER and all_steps(i, way_in, x, dice):
            return CAMOUFLAGED if way_in else EMPTIED
        if treatment == CHEAPER and way_in:
            break
    return NO_PARTNER


@kernel
def untreat(i: Whole, x: Board, dice: Dice) -> bool:
    """Take back the moves made for patient i, balanced again; False, with steps to undo, where that fails."""
    for j in range(now(At.MADE, i, x)):
        row = x.at[At.MOVES] + 4 * (i * x.at[At.SMALL] + j)
        m, b, to, partner = x.now[row], x.now[row + 1], x.now[row + 2], x.now[row + 3]
        start = fixed(At.BASE_LEVEL, m * x.at[At.BASES] + b, x)
        if partner >= 0:
            if return_cost(m, partner, start, x) == NEVER:
                return False
            move(m, partner, start, BACK, x)
            note(_UNDONE, Way(NONE, NONE, m, start), partner, x)
        move(m, b, to, BACK, x)
        note(_UNDONE, Way(NONE, NONE, m, to), b, x)
        if partner < 0 and not balance(m, fixed(At.CLASS_OF, b, x), to, start, 0.0, x, dice):
            return False
    put(At.MADE, i, NOTHING, x)
    return True
