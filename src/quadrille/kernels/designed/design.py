"""The design of a swap: treat small cells in order, then improve while loss + price x exposed falls.

A small cell is treated by letting records come in until it is no longer small, or its records leave. Every record that
moves to another level of a mover is balanced by one that moves the other way: a filler that went the same way comes
back, or a new filler sets out. What has been done since `set_mark` can be undone.
"""

from __future__ import annotations

import numpy as np

from quadrille.kernels.compile import Floats, Ints, Whole, kernel, no_alloc
from quadrille.kernels.designed import NONE, NOTHING, Fillers, Lattice, Real, State
from quadrille.kernels.designed.neighbours import (
    BACK,
    FORTH,
    NEVER,
    Route,
    add_filler,
    cell_cost,
    cheapest,
    choose_filler,
    choose_near,
    close_all,
    drop_filler,
    find_route,
    level_of,
    loss_now,
    move,
    move_cost,
    newest_back,
    reopen,
    return_cost,
    set_slopes,
)
from quadrille.kernels.draw import Dice, below, shuffle, slot_of

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
    cost, t = treatments.options[0].cost, lattice.cells[c].table
    for o in range(1, count):  # the least, one by one: what the compiler has for it makes an array
        cost = min(cost, treatments.options[o].cost)
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


_ENOUGH = 1e-4
"""Improvement stops when a round lowers the loss and the exposed records by less than this share."""
_LEAST = 1e-12
_THRIFT = 0.15
"""A gain in loss must be more than this share of the increase in moved records."""


@no_alloc
def objective_loss(price: Real, lattice: Lattice) -> Real:
    """Return the loss so far; with a finite price the weighted sum of the raw losses, in which steps add up."""
    if price == np.inf:
        return loss_now(lattice)
    loss = 0.0
    for t in range(len(lattice.tables)):
        loss += lattice.tables[t].importance * lattice.tables[t].raw_loss
    return loss


@no_alloc
def improves(loss: Real, exposed: Whole, moved: Whole, price: Real, lattice: Lattice) -> bool:
    """Tell whether loss + price x exposed is lower than it was; an infinite price looks at the exposed first.

    Where the exposed stay as they are, a gain that takes more records must be worth them.
    """
    less = objective_loss(price, lattice) - loss
    fewer, more = lattice.totals.exposed - exposed, lattice.totals.moved - moved
    if fewer != 0:
        return fewer < 0 if price == np.inf else less + price * fewer < -_LEAST
    return less < -_LEAST and less * moved + _THRIFT * loss * more < 0


@kernel
def price_cells(price: Floats, treatment: Whole, state: State, dice: Dice) -> None:
    """Write down for every small cell what treating it alone costs per exposed record; infinite where it cannot be."""
    lattice, fillers, treatments = state
    set_slopes(fillers, lattice)
    for i in range(len(price)):
        set_mark(state)
        status = treat(i, treatment, state, dice)
        saved = lattice.totals.marked_exposed - lattice.totals.exposed
        price[i] = NEVER
        if status in (CAMOUFLAGED, EMPTIED) and saved > 0:
            cost = 0.0
            for t in range(len(lattice.tables)):
                cost += lattice.tables[t].slope * (lattice.tables[t].raw_loss - lattice.tables[t].marked_loss)
            price[i] = cost / saved
        else:
            treatments.small_cells[i].status = status
        treatments.small_cells[i].made = NOTHING
        undo(NOTHING, state)


@kernel
def treat_all(order: Ints, treatment: Whole, price: Real, most: Whole, state: State, dice: Dice) -> None:
    """Treat the small cells in this order, as long as each is worth its price and pairs are left."""
    lattice, fillers, treatments = state
    for i in order:
        if dice.cursor[1]:
            return
        set_slopes(fillers, lattice)
        set_mark(state)
        loss, exposed, moved = objective_loss(price, lattice), lattice.totals.exposed, lattice.totals.moved
        status, small = treat(i, treatment, state, dice), treatments.small_cells[i]
        if small.made:
            if not improves(loss, exposed, moved, price, lattice):
                status = TOO_DEAR
            elif lattice.totals.moved > 2 * most:
                status = BUDGET
        if status in (TOO_DEAR, BUDGET):
            undo(NOTHING, state)
            small.made = NOTHING
        small.status = status


@kernel
def treat_again(i: Whole, treatment: Whole, price: Real, most: Whole, state: State, dice: Dice) -> None:
    """Take back what was done for small cell i and treat it anew, or leave it, where that lowers the objective."""
    lattice, fillers, treatments = state
    loss, exposed, moved = objective_loss(price, lattice), lattice.totals.exposed, lattice.totals.moved
    small = treatments.small_cells[i]
    status, made, kept = small.status, small.made, treatments.moves[i].copy()
    set_mark(state)
    set_slopes(fillers, lattice)
    better = untreat(i, state, dice)
    if better:
        small.status = as_it_stands(small.cell, lattice)
        if not improves(loss, exposed, moved, price, lattice):
            small.status = treat(i, treatment, state, dice)
            better = improves(loss, exposed, moved, price, lattice) and lattice.totals.moved <= 2 * most
    if not better:
        undo(NOTHING, state)
        treatments.moves[i] = kept
        small.made = made
        small.status = status


@no_alloc
def as_it_stands(cell: Whole, lattice: Lattice) -> Whole:
    """Tell what a small cell is without moves of its own: others may have filled or emptied it."""
    count = lattice.cells[cell].count
    if count == 0:
        return EMPTIED
    return CAMOUFLAGED if count >= lattice.n else TOO_DEAR


@no_alloc
def better_filler(slot: Whole, route: Route, fillers: Fillers, lattice: Lattice) -> None:
    """Exchange a filler in use for the cheapest one of its bucket where that lowers the loss."""
    filler = fillers.slots[slot]
    saved = return_cost(route.mover, filler.base, route.to, lattice)
    if saved == NEVER:
        return
    move(route.mover, filler.base, route.to, BACK, lattice)
    if cheapest(route, fillers, lattice) + saved < -_LEAST:
        filler.base = fillers.heap[fillers.buckets[route.bucket].heap_at].base
    move(route.mover, filler.base, route.to, FORTH, lattice)


@no_alloc
def better_fillers(fillers: Fillers, lattice: Lattice) -> None:
    """Exchange every filler in use for a cheaper one, where there is one."""
    set_slopes(fillers, lattice)
    for k in range(len(fillers.blocks)):
        block = fillers.blocks[k]
        m = block.key // (fillers.classes * fillers.levels)
        for q in range(block.buckets_from, block.buckets_to):
            slot = fillers.buckets[q].newest
            while slot >= 0:
                route = Route(np.int64(q), np.int64(k), m, np.int64(q - block.buckets_from))
                better_filler(slot, route, fillers, lattice)
                slot = fillers.slots[slot].older


@kernel
def improve(rounds: Whole, retry: bool, treatment: Whole, price: Real, most: Whole, state: State, dice: Dice) -> Whole:
    """Treat cells anew and exchange fillers, round by round, until the objective no longer falls; return the rounds."""
    lattice, fillers, treatments = state
    order: Ints = np.arange(len(treatments.small_cells), dtype=np.int64)
    for done in range(rounds):
        loss, exposed = loss_now(lattice), lattice.totals.exposed
        close_all(fillers)
        shuffle(order, dice)
        for i in order:
            small = treatments.small_cells[i]
            again = small.made > 0 or (retry and small.status != NOT_CHOSEN)
            if again and dice.cursor[1] == 0:
                treat_again(i, treatment, price, most, state, dice)
        better_fillers(fillers, lattice)
        fewer = exposed - lattice.totals.exposed
        if dice.cursor[1] or (fewer <= _ENOUGH * exposed and loss - loss_now(lattice) <= _ENOUGH * loss):
            return done + 1
    return rounds


@kernel
def take_back(mover: Ints, base: Ints, to: Ints, lattice: Lattice) -> None:
    """Take moves back."""
    for i in range(len(mover)):
        move(mover[i], base[i], to[i], BACK, lattice)


@kernel
def draw_places(bases: Ints, start: Ints, left: Ints, places: Ints, dice: Dice) -> None:
    """Draw a place of each of these base cells, every place once; b has left[b] places from start[b] on.

    This is a shuffle of which only the places that are not where they were at first are remembered, found by hashing.
    """
    size = 64
    while size < 2 * len(bases):
        size *= 2
    at, value = np.full(size, -1, dtype=np.int64), np.empty(size, dtype=np.int64)
    for i in range(len(bases)):
        b = bases[i]
        place = start[b] + below(left[b], dice)
        left[b] -= 1
        last = start[b] + left[b]
        end = slot_of(last, at)
        moved = value[end] if at[end] == last else np.int64(last)
        slot = slot_of(place, at)
        places[i] = value[slot] if at[slot] == place else place
        at[slot] = place
        value[slot] = moved
