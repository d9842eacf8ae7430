"""The whole design of a swap: treat small cells in order, then improve while loss + price x exposed falls."""

from __future__ import annotations

import numpy as np

from quadrille.kernels.compile import Ints, Whole, kernel, no_alloc
from quadrille.kernels.designed.fillers import Route, cheapest, close_all, set_slopes
from quadrille.kernels.designed.neighbours import BACK, FORTH, NEVER, loss_now, move, return_cost
from quadrille.kernels.designed.state import NOTHING, Fillers, Floats, Lattice, Real, State
from quadrille.kernels.designed.treat import (
    BUDGET,
    CAMOUFLAGED,
    EMPTIED,
    NOT_CHOSEN,
    TOO_DEAR,
    set_mark,
    treat,
    undo,
    untreat,
)
from quadrille.kernels.draw import Dice, below, shuffle

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
def draw_rows(bases: Ints, order: Ints, start: Ints, left: Ints, rows: Ints, dice: Dice) -> None:
    """Draw a record of each of these base cells, every record once; b has left[b] records from start[b] of `order`."""
    for i in range(len(bases)):
        b = bases[i]
        place = start[b] + below(left[b], dice)
        left[b] -= 1
        last = start[b] + left[b]
        rows[i] = order[place]
        order[place], order[last] = order[last], order[place]
