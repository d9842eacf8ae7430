"""Treating a small cell: let records come in until it is no longer small, or let its records leave.

Every record that moves to another level of a mover is balanced by one that moves the other way: a filler that went the
same way comes back, or a new filler sets out. What has been done since `set_mark` can be undone.
"""

from __future__ import annotations

import numpy as np

from quadrille.kernels.compile import Whole, kernel, no_alloc
from quadrille.kernels.designed.fillers import (
    Route,
    add_filler,
    cheapest,
    choose_filler,
    choose_near,
    drop_filler,
    find_route,
    newest_back,
    reopen,
)
from quadrille.kernels.designed.neighbours import BACK, FORTH, NEVER, cell_cost, level_of, move, move_cost, return_cost
from quadrille.kernels.designed.state import NONE, NOTHING, Fillers, Lattice, Real, State
from quadrille.kernels.draw import Dice, below

NOT_CHOSEN, CAMOUFLAGED, EMPTIED, NO_NEIGHBOUR, NO_PARTNER, TOO_DEAR, BUDGET = range(7)
"""What came of a small cell."""
CHEAPER, CAMOUFLAGE_ONLY, EMPTY_ONLY, EITHER = range(4)
"""Which treatment: the cheaper where a cell can be camouflaged; one of the two only; whichever can be done."""
_FILL, _EMPTY = np.int64(1), np.int64(0)
"""The two ways to treat a cell; a cell that gives a record needs one more than n, hence the numbers."""
_MOVED, _FILLED, _CAME_BACK, _UNDONE = np.int64(0), np.int64(1), np.int64(2), np.int64(3)
"""Steps: a record moved, a filler set out, a filler came back, a record's move was taken back."""
_CELLS, _BASES = np.int64(128), np.int64(32)
"""How many neighbours in a mover, and base cells of one, are looked at; of more, a stretch that begins at random."""


@no_alloc
def set_mark(state: State) -> None:
    """Remember where the draw stands."""
    state.treatments.progress.steps = NOTHING
    state.fillers.stock.exhausted = NOTHING
    state.lattice.totals.marked_exposed = state.lattice.totals.exposed
    for t in range(len(state.lattice.tables)):
        state.lattice.tables[t].marked_loss = state.lattice.tables[t].raw_loss


@no_alloc
def log_step(what: Whole, route: Route, b: Whole, state: State) -> None:
    """Write a step down."""
    step = state.treatments.log[state.treatments.progress.steps]
    step.what, step.mover, step.base, step.to = what, route.mover, b, route.to
    step.bucket, step.block = route.bucket, route.block
    state.treatments.progress.steps += 1


@no_alloc
def undo(keep: Whole, state: State) -> None:
    """Undo all steps but the first `keep`."""
    lattice, fillers, treatments = state
    while treatments.progress.steps > keep:
        treatments.progress.steps -= 1
        step = treatments.log[treatments.progress.steps]
        route = Route(step.bucket, step.block, step.mover, step.to)
        if step.what == _FILLED:
            drop_filler(route, fillers, lattice)
        elif step.what == _CAME_BACK:
            add_filler(route, step.base, fillers, lattice)
        else:
            move(step.mover, step.base, step.to, BACK if step.what == _MOVED else FORTH, lattice)
    reopen(fillers)
    if keep == 0:  # sums of floats that were added and taken away again are not quite what they were
        for t in range(len(lattice.tables)):
            lattice.tables[t].raw_loss = lattice.tables[t].marked_loss


@no_alloc
def partner_cost(m: Whole, class_: Whole, start: Whole, to: Whole, fillers: Fillers, lattice: Lattice) -> Real:
    """Return the price of balancing a move from one level to another."""
    cost = cheapest(find_route(m, class_, to, start, fillers), fillers, lattice)
    if len(fillers.different):
        return cost
    return min(cost, newest_back(find_route(m, class_, start, to, fillers), fillers, lattice))


@no_alloc
def balance(m: Whole, class_: Whole, start: Whole, to: Whole, tolerance: Real, state: State, dice: Dice) -> bool:
    """Balance a move from one level to another that has been made; False where that cannot be done."""
    lattice, fillers, _ = state
    same, other = find_route(m, class_, start, to, fillers), find_route(m, class_, to, start, fillers)
    fresh = cheapest(other, fillers, lattice)
    back = newest_back(same, fillers, lattice)
    if back == NEVER and fresh == NEVER:
        return False
    if back <= fresh:
        log_step(_CAME_BACK, same, drop_filler(same, fillers, lattice), state)
    else:
        b = choose_filler(other, NONE, tolerance, fillers, lattice, dice)
        add_filler(other, b, fillers, lattice)
        log_step(_FILLED, other, b, state)
    return True


@no_alloc
def find_partner(m: Whole, b: Whole, to: Whole, tolerance: Real, state: State, dice: Dice) -> Whole:
    """Move a partner of its own for a record of base cell b, one that differs from it; return it, -1 for none."""
    lattice, fillers, _ = state
    start = level_of(m, b, lattice)
    route = find_route(m, lattice.bases[b].class_, to, start, fillers)
    if cheapest(route, fillers, lattice) == NEVER:
        return NONE
    partner = choose_filler(route, b, tolerance, fillers, lattice, dice)
    if partner >= 0:
        move(m, partner, start, FORTH, lattice)
        log_step(_MOVED, Route(NONE, NONE, m, start), partner, state)
    return partner


@no_alloc
def stretch(length: Whole, most: Whole, dice: Dice) -> tuple[Whole, Whole]:
    """Return where to begin in a list that is looked at all round, and how many entries to look at."""
    return (NOTHING, length) if length <= most else (below(length, dice), most)


@no_alloc
def options(c: Whole, way: Whole, state: State, dice: Dice) -> Whole:
    """List the moves into a cell, or out of it, with their prices, partner included; return how many."""
    lattice, count = state.lattice, NOTHING
    for m in range(len(lattice.places)):
        first, length = np.int64(lattice.places[m, c].first), np.int64(lattice.places[m, c].size)
        start, looked = stretch(length, _CELLS, dice)
        for j in range(looked):
            other = np.int64(lattice.neighbours[m, first + (start + j) % length].cell)
            if other != c and lattice.cells[other].count >= lattice.n + way:
                source, goal = (other, c) if way == _FILL else (c, other)
                count = more_options(m, source, goal, c, count, state, dice)
    return count


@no_alloc
def more_options(m: Whole, source: Whole, goal: Whole, c: Whole, count: Whole, state: State, dice: Dice) -> Whole:
    """Add the moves from one cell to another to the options for cell c; return how many options there are."""
    lattice, fillers, treatments = state
    start, to = np.int64(lattice.places[m, source].level), np.int64(lattice.places[m, goal].level)
    begin, length = lattice.cells[source].bases_from, lattice.cells[source].bases_to - lattice.cells[source].bases_from
    first, looked = stretch(length, _BASES, dice)
    for i in range(looked):
        b = np.int64(treatments.bases_of[begin + (first + i) % length])
        if lattice.bases[b].free <= 0 or count == len(treatments.options):
            continue
        cost = move_cost(m, b, to, c, lattice)
        if cost < NEVER:
            cost += partner_cost(m, lattice.bases[b].class_, start, to, fillers, lattice)
        if cost < NEVER:
            option = treatments.options[count]
            option.mover, option.base, option.to, option.cost = m, b, to, cost
            count += 1
    return count


@no_alloc
def make_move(i: Whole, m: Whole, b: Whole, to: Whole, tolerance: Real, state: State, dice: Dice) -> bool:
    """Make a move for small cell i and balance it; False, with nothing done, where that cannot be done."""
    lattice, fillers, treatments = state
    before, partner = treatments.progress.steps, NONE
    move(m, b, to, FORTH, lattice)
    log_step(_MOVED, Route(NONE, NONE, m, to), b, state)
    if len(fillers.different):
        partner = find_partner(m, b, to, tolerance, state, dice)
        done = partner >= 0
    else:
        done = balance(m, lattice.bases[b].class_, level_of(m, b, lattice), to, tolerance, state, dice)
    if not done:
        undo(before, state)
        return False
    made = treatments.moves[i, treatments.small_cells[i].made]
    made.mover, made.base, made.to, made.partner = m, b, to, partner
    treatments.small_cells[i].made += 1
    return True


@kernel
def one_step(i: Whole, way: Whole, state: State, dice: Dice) -> bool:
    """Move one record into small cell i, or out of it, by one of the cheapest ways; False for none."""
    treatments = state.treatments
    count = options(treatments.small_cells[i].cell, way, state, dice)
    cost = treatments.options[:count].cost.copy()
    while count and cost.min() < NEVER:
        tolerance = treatments.spread * max(cost.min(), 0.0)
        k = choose_near(cost, tolerance, dice)
        option = treatments.options[k]
        if make_move(i, option.mover, option.base, option.to, tolerance, state, dice):
            return True
        cost[k] = NEVER
    return False


@no_alloc
def all_steps(i: Whole, way: Whole, state: State, dice: Dice) -> bool:
    """Camouflage small cell i, or empty it; where that cannot be finished, undo what was begun."""
    before, small = state.treatments.progress.steps, state.treatments.small_cells[i]
    made, goal = small.made, state.lattice.n if way == _FILL else NOTHING
    while state.lattice.cells[small.cell].count != goal:
        if not one_step(i, way, state, dice):
            undo(before, state)
            small.made = made
            return False
    return True


@no_alloc
def estimate(i: Whole, way: Whole, state: State, dice: Dice) -> Real:
    """Estimate the price of camouflaging or emptying a cell; infinite where not even a first step can be made.

    The price of the first step is taken for each step, the cell's own part of it exactly.
    """
    lattice, _, treatments = state
    c = treatments.small_cells[i].cell
    steps = lattice.n - lattice.cells[c].count if way == _FILL else lattice.cells[c].count
    if way == _EMPTY and free_in(c, state) < steps:
        return NEVER
    count = options(c, way, state, dice)
    if count == 0:
        return NEVER
    cost, t = treatments.options[:count].cost.min(), lattice.cells[c].table
    if lattice.tables[t].loss == 0:
        return steps * cost
    weight = lattice.bases[treatments.options[0].base].mean_weight * (1 if way == _FILL else -1)
    own = cell_cost(t, c, weight * steps, lattice) - steps * cell_cost(t, c, weight, lattice)
    return steps * cost + lattice.tables[t].slope * own


@no_alloc
def free_in(c: Whole, state: State) -> Whole:
    """Count the records of a cell that have not moved and may."""
    free = NOTHING
    for place in range(state.lattice.cells[c].bases_from, state.lattice.cells[c].bases_to):
        free += state.lattice.bases[state.treatments.bases_of[place]].free
    return free


@no_alloc
def has_neighbour(c: Whole, treatment: Whole, lattice: Lattice) -> bool:
    """Tell whether a neighbour is large enough to give a record, or to take one where the cell may be emptied."""
    least = lattice.n + (0 if treatment in (EMPTY_ONLY, EITHER) else 1)
    for m in range(len(lattice.places)):
        first = lattice.places[m, c].first
        for place in range(first, first + lattice.places[m, c].size):
            other = lattice.neighbours[m, place].cell
            if other != c and lattice.cells[other].count >= least:
                return True
    return False


@no_alloc
def treat(i: Whole, treatment: Whole, state: State, dice: Dice) -> Whole:
    """Treat small cell i by the cheaper way, or by the other where that fails; return what came of it."""
    c = state.treatments.small_cells[i].cell
    if state.lattice.cells[c].count == 0 or state.lattice.cells[c].count >= state.lattice.n:
        return EMPTIED if state.lattice.cells[c].count == 0 else CAMOUFLAGED
    fill = NEVER if treatment == EMPTY_ONLY else estimate(i, _FILL, state, dice)
    empty = NEVER if treatment == CAMOUFLAGE_ONLY else estimate(i, _EMPTY, state, dice)
    if fill == NEVER and (empty == NEVER or treatment == CHEAPER):
        return NO_PARTNER if has_neighbour(c, treatment, state.lattice) else NO_NEIGHBOUR
    for attempt in range(2):
        way = _FILL if (fill <= empty) == (attempt == 0) else _EMPTY
        if (fill if way == _FILL else empty) < NEVER and all_steps(i, way, state, dice):
            return CAMOUFLAGED if way == _FILL else EMPTIED
        if treatment == CHEAPER and way == _FILL:
            break
    return NO_PARTNER


@no_alloc
def untreat(i: Whole, state: State, dice: Dice) -> bool:
    """Take back the moves made for small cell i, balanced again; False, with steps to undo, where that fails."""
    lattice, _, treatments = state
    for j in range(treatments.small_cells[i].made):
        made = treatments.moves[i, j]
        start = level_of(made.mover, made.base, lattice)
        if made.partner >= 0:
            if return_cost(made.mover, made.partner, start, lattice) == NEVER:
                return False
            move(made.mover, made.partner, start, BACK, lattice)
            log_step(_UNDONE, Route(NONE, NONE, made.mover, start), made.partner, state)
        move(made.mover, made.base, made.to, BACK, lattice)
        log_step(_UNDONE, Route(NONE, NONE, made.mover, made.to), made.base, state)
        class_ = lattice.bases[made.base].class_
        if made.partner < 0 and not balance(made.mover, class_, made.to, start, 0.0, state, dice):
            return False
    treatments.small_cells[i].made = NOTHING
    return True
