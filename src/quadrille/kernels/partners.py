"""The search for partners: rounds in which every waiting target asks, and donors go to the smallest bias."""

from __future__ import annotations

import numpy as np

from quadrille.kernels.compile import kernel
from quadrille.kernels.crowds import ask_in_crowds
from quadrille.kernels.edits import spoils
from quadrille.kernels.finalists import Asked, ask, choose
from quadrille.kernels.market import (
    NOBODY,
    Line,
    Market,
    Stock,
    allowed,
    first_run_from,
    jump,
    open_stock,
    remove,
    take_any,
)
from quadrille.kernels.pool import Dice, Ints, Whole
from quadrille.kernels.words import below


@kernel
def ask_one_by_one(
    first: Whole, end: Whole, count: Whole,
    asked: Asked, line: Line, stock: Stock, market: Market, dice: Dice,
) -> Whole:  # fmt: skip
    """Let the waiting targets of a cell ask, each for itself."""
    t = jump(line.next_target, first)
    while t <= end:
        donor, bias = choose(t, stock, market, dice)
        count = ask(t, donor, bias, count, asked, dice)
        t = jump(line.next_target, t + 1)
    return count


@kernel
def pair_round(active: Whole, crowd: Ints, asked: Asked, line: Line, stock: Stock, market: Market, dice: Dice) -> Whole:
    """Let every waiting target ask for its favourite; a donor goes to the smallest bias, ties at random.

    Returns the number of groups in which targets still wait; they move to the front of `line`. A target for which
    nobody is left leaves with partner -1. When the words run out everything is as before and -1 is returned.
    """
    count = np.int64(0)
    for i in range(active):
        first, end = line.first[i], line.end[i]
        if market.one_x and not market.choosy[first]:
            count = ask_in_crowds(first, end, count, crowd, asked, line, stock, market, dice)
        else:
            count = ask_one_by_one(first, end, count, asked, line, stock, market, dice)
    if dice.cursor[1]:
        for t in asked.listed[:count]:
            if asked.partner[t] != NOBODY:
                asked.best[asked.partner[t]] = NOBODY
                asked.partner[t] = NOBODY
        return np.int64(-1)
    for t in asked.listed[:count]:
        donor = asked.partner[t]
        if donor == NOBODY or asked.best[donor] == t:
            line.next_target[t], line.last_target[t + 1] = t + 1, t
            if donor != NOBODY:
                remove(donor, stock, market)
        else:
            asked.partner[t] = NOBODY
    kept = 0
    for i in range(active):
        if jump(line.next_target, line.first[i]) <= line.end[i]:
            line.first[kept], line.end[kept] = line.first[i], line.end[i]
            kept += 1
    return np.int64(kept)


@kernel
def near_donors(cells_each_side: Whole, market: Market, dice: Dice) -> Ints:
    """List donors near each target: in the nearest cells of its zone on both sides, the closest from below and above.

    Returns one row of donors per target, -1 where there are fewer.
    """
    stock = open_stock(market)
    out = np.full((len(market.targets), 4 * cells_each_side), NOBODY)
    for t in range(len(market.targets)):
        c, found = market.target_cell[t], 0
        cell, seen = jump(stock.last_cell, c) - 1, 0
        while cell >= market.zone_first[c] and seen < cells_each_side:
            found = list_closest(cell, t, found, out, stock, market, dice)
            cell, seen = jump(stock.last_cell, cell) - 1, seen + 1
        cell, seen = jump(stock.next_cell, c + 1), 0
        while cell <= market.zone_last[c] and seen < cells_each_side:
            found = list_closest(cell, t, found, out, stock, market, dice)
            cell, seen = jump(stock.next_cell, cell + 1), seen + 1
    return out


@kernel
def list_closest(c: Whole, t: Whole, found: Whole, out: Ints, stock: Stock, market: Market, dice: Dice) -> Whole:
    """Add the closest donors of a cell, one from above and one from below the weight of the target."""
    first = first_run_from(market.target_weight[t], c, market)
    for step_ in (1, -1):
        r = first if step_ > 0 else first - 1
        while market.cell_start[c] <= r < market.cell_start[c + 1]:
            count = allowed(r, t, stock, market)
            if count > 0:
                out[t, found] = take_any(r, t, count, stock, market, dice)
                found += 1
                break
            r += step_
    return found


@kernel
def rules_leave_nobody(t: Whole, market: Market) -> bool:
    """Tell whether the rules exclude every donor in the other cells of a target's zone."""
    c = market.target_cell[t]
    for cell in range(market.zone_first[c], market.zone_last[c] + 1):
        first, end = market.run_start[market.cell_start[cell]], market.run_start[market.cell_start[cell + 1]]
        for p in range(first, end):
            if cell != c and not spoils(market.targets[t], market.donors[p], market.edits):
                return False
    return True


@kernel
def pick_from_groups(group: Ints, start: Ints, dice: Dice) -> Ints:
    """Pick, for each entry, a place of its group uniformly."""
    out = np.empty(len(group), dtype=np.int64)
    for i in range(len(group)):
        g = group[i]
        out[i] = start[g] + below(start[g + 1] - start[g], dice)
    return out
