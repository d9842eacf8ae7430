"""The whole design of a swap: treat small cells in order, then improve while loss + price x exposed falls."""

from __future__ import annotations

import numpy as np

from quadrille.kernels.compile import kernel
from quadrille.kernels.designed.fillers import Way, cheapest, close_all, set_slopes
from quadrille.kernels.designed.neighbours import BACK, FORTH, NEVER, loss_now, move, return_cost
from quadrille.kernels.designed.state import NOTHING, At, Board, Floats, Real, fixed, now, put, real, value
from quadrille.kernels.designed.treat import (
    BUDGET,
    CAMOUFLAGED,
    EMPTIED,
    NOT_CHOSEN,
    TOO_DEAR,
    begin,
    treat,
    undo,
    untreat,
)
from quadrille.kernels.draw import below, shuffle
from quadrille.kernels.pool import Dice, Ints, Whole

_ENOUGH = 1e-4
"""Improvement stops when a round lowers the loss and the exposed records by less than this share."""
_LEAST = 1e-12
_THRIFT = 0.15
"""A gain in loss must be more than this share of the increase in moved records."""


@kernel
def worth(price: Real, x: Board) -> Real:
    """Return the loss so far; with a finite price the weighted sum of the raw losses, in which steps add up."""
    if price == np.inf:
        return loss_now(x)
    loss = 0.0
    for t in range(x.at[At.TABLES]):
        loss += real(At.IMPORTANCE, t, x) * value(At.SUM, t, x)
    return loss


@kernel
def falls(loss: Real, exposed: Whole, moved: Whole, price: Real, x: Board) -> bool:
    """Tell whether loss + price x exposed is lower than it was; an infinite price looks at the exposed first.

    Where the exposed stay as they are, a gain that takes more records must be worth them.
    """
    less, fewer, more = worth(price, x) - loss, now(At.EXPOSED, NOTHING, x) - exposed, now(At.MOVED, NOTHING, x) - moved
    if fewer != 0:
        return fewer < 0 if price == np.inf else less + price * fewer < -_LEAST
    return less < -_LEAST and less * moved + _THRIFT * loss * more < 0


@kernel
def price_cells(price: Floats, treatment: Whole, x: Board, dice: Dice) -> None:
    """Write down for every small cell what treating it alone costs per exposed record; infinite where it cannot be."""
    set_slopes(x)
    for i in range(len(price)):
        begin(x)
        status = treat(i, treatment, x, dice)
        saved = now(At.MARK_EXPOSED, NOTHING, x) - now(At.EXPOSED, NOTHING, x)
        price[i] = NEVER
        if status in (CAMOUFLAGED, EMPTIED) and saved > 0:
            cost = 0.0
            for t in range(x.at[At.TABLES]):
                cost += value(At.SLOPE, t, x) * (value(At.SUM, t, x) - value(At.MARK_SUM, t, x))
            price[i] = cost / saved
        else:
            put(At.STATUS, i, status, x)
        put(At.MADE, i, NOTHING, x)
        undo(NOTHING, x)


@kernel
def treat_all(order: Ints, treatment: Whole, price: Real, most: Whole, x: Board, dice: Dice) -> None:
    """Treat the small cells in this order, as long as each is worth its price and pairs are left."""
    for i in order:
        if dice.cursor[1]:
            return
        set_slopes(x)
        begin(x)
        loss, exposed, moved = worth(price, x), now(At.EXPOSED, NOTHING, x), now(At.MOVED, NOTHING, x)
        status = treat(i, treatment, x, dice)
        if now(At.MADE, i, x):
            if not falls(loss, exposed, moved, price, x):
                status = TOO_DEAR
            elif now(At.MOVED, NOTHING, x) > 2 * most:
                status = BUDGET
        if status in (TOO_DEAR, BUDGET):
            undo(NOTHING, x)
            put(At.MADE, i, NOTHING, x)
        put(At.STATUS, i, status, x)


@kernel
def treat_again(i: Whole, treatment: Whole, price: Real, most: Whole, x: Board, dice: Dice) -> None:
    """Take back what was done for patient i and treat it anew, or leave it, where that lowers the objective."""
    loss, exposed, moved = worth(price, x), now(At.EXPOSED, NOTHING, x), now(At.MOVED, NOTHING, x)
    status, made = now(At.STATUS, i, x), now(At.MADE, i, x)
    row = x.at[At.MOVES] + 4 * i * x.at[At.SMALL]
    kept = x.now[row : row + 4 * x.at[At.SMALL]].copy()
    begin(x)
    set_slopes(x)
    better = untreat(i, x, dice)
    if better:
        put(At.STATUS, i, as_it_stands(i, x), x)
        if not falls(loss, exposed, moved, price, x):
            put(At.STATUS, i, treat(i, treatment, x, dice), x)
            better = falls(loss, exposed, moved, price, x) and now(At.MOVED, NOTHING, x) <= 2 * most
    if not better:
        undo(NOTHING, x)
        x.now[row : row + 4 * x.at[At.SMALL]] = kept
        put(At.MADE, i, made, x)
        put(At.STATUS, i, status, x)


@kernel
def as_it_stands(i: Whole, x: Board) -> Whole:
    """Tell what the cell of patient i is without moves of its own: others may have filled or emptied it."""
    held = now(At.COUNT, fixed(At.CELL, i, x), x)
    if held == 0:
        return EMPTIED
    return CAMOUFLAGED if held >= x.at[At.SMALL] else TOO_DEAR


@kernel
def better_filler(slot: Whole, road: Way, x: Board) -> None:
    """Exchange a filler in use for the cheapest one of its bucket where that lowers the loss."""
    b = now(At.BASE, slot, x)
    saved = return_cost(road.mover, b, road.to, x)
    if saved == NEVER:
        return
    move(road.mover, b, road.to, BACK, x)
    if cheapest(road, x) + saved < -_LEAST:
        b = now(At.HEAP, now(At.HEAP_AT, road.bucket, x), x)
        put(At.BASE, slot, b, x)
    move(road.mover, b, road.to, FORTH, x)


@kernel
def better_fillers(x: Board) -> None:
    """Exchange every filler in use for a cheaper one, where there is one."""
    set_slopes(x)
    for block in range(x.at[At.BLOCKS]):
        m = now(At.BLOCK_KEY, block, x) // (x.at[At.CLASSES] * x.at[At.LEVELS])
        first = fixed(At.BUCKET_FROM, block, x)
        for q in range(first, fixed(At.BUCKET_FROM, block + 1, x)):
            slot = now(At.HEAD, q, x)
            while slot >= 0:
                better_filler(slot, Way(np.int64(q), np.int64(block), m, np.int64(q - first)), x)
                slot = now(At.UNDER, slot, x)


@kernel
def improve(rounds: Whole, retry: bool, treatment: Whole, price: Real, most: Whole, x: Board, dice: Dice) -> Whole:
    """Treat cells anew and exchange fillers, round by round, until the objective no longer falls; return the rounds."""
    order: Ints = np.arange(x.at[At.PATIENTS], dtype=np.int64)
    for done in range(rounds):
        loss, exposed = loss_now(x), now(At.EXPOSED, NOTHING, x)
        close_all(x)
        shuffle(order, dice)
        for i in order:
            again = now(At.MADE, i, x) > 0 or (retry and now(At.STATUS, i, x) != NOT_CHOSEN)
            if again and dice.cursor[1] == 0:
                treat_again(i, treatment, price, most, x, dice)
        better_fillers(x)
        fewer = exposed - now(At.EXPOSED, NOTHING, x)
        if dice.cursor[1] or (fewer <= _ENOUGH * exposed and loss - loss_now(x) <= _ENOUGH * loss):
            return done + 1
    return rounds


@kernel
def take_back(mover: Ints, base: Ints, to: Ints, x: Board) -> None:
    """Take moves back."""
    for i in range(len(mover)):
        move(mover[i], base[i], to[i], BACK, x)


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
