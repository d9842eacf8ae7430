"""Finding a partner for every target: nearest cells on both sides, closest weight, smallest bias, round by round.

Free donors are kept in runs of equal weight. A run that is empty is jumped over by a chain of pointers that shortens
itself, and so is a cell without free donors, so a search costs about the logarithm of the size of a cell however many
donors are taken.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadrille.kernels.compile import kernel, step
from quadrille.kernels.pool import Dice, Ints, Whole
from quadrille.kernels.words import below

NOBODY = -1


class Market(NamedTuple):
    """Donors by cell, by kind (equal in the original values) and by run (equal weight), and the targets.

    Cell c owns the kinds cell_start[c] to cell_start[c+1], kind k the runs kind_start[k] to kind_start[k+1], run r the
    places run_start[r] to run_start[r+1] of `donors`. Cells zone_first[c] to zone_last[c] are in the zone of cell c.
    `kind_value` names what the donors of a kind hold; a target whose `target_value` is the same takes nobody of that
    kind. `weight` and `x` belong to the records of the file.
    """

    donors: Ints
    run_start: Ints
    run_weight: Ints
    kind_start: Ints
    kind_value: Ints
    cell_start: Ints
    zone_first: Ints
    zone_last: Ints
    targets: Ints
    target_cell: Ints
    target_value: Ints
    target_weight: Ints
    weight: Ints
    x: NDArray[np.float64]


class Stock(NamedTuple):
    """What is still free: how many donors of each run, kind and cell, and pointers past those that are empty."""

    donors: Ints
    place: Ints
    run_of: Ints
    kind_of: Ints
    cell_of: Ints
    run_free: Ints
    kind_free: Ints
    cell_free: Ints
    next_run: Ints
    last_run: Ints
    next_cell: Ints
    last_cell: Ints


@step
def jump(pointer: Ints, i: Whole) -> Whole:
    """Follow pointers to the first entry that points at itself, and shorten the way for the next time."""
    while pointer[i] != i:
        pointer[i] = pointer[pointer[i]]
        i = pointer[i]
    return i


@kernel
def open_stock(market: Market, records: Whole) -> Stock:
    """Start with every donor free."""
    runs, kinds, cells = len(market.run_weight), len(market.kind_value), len(market.cell_start) - 1
    run_of = np.empty(records, dtype=np.int64)
    place = np.empty(records, dtype=np.int64)
    kind_of = np.empty(runs, dtype=np.int64)
    cell_of = np.empty(kinds, dtype=np.int64)
    for r in range(runs):
        for p in range(market.run_start[r], market.run_start[r + 1]):
            place[market.donors[p]] = p
            run_of[market.donors[p]] = r
    kind_free = np.zeros(kinds, dtype=np.int64)
    cell_free = np.zeros(cells, dtype=np.int64)
    for c in range(cells):
        for k in range(market.cell_start[c], market.cell_start[c + 1]):
            cell_of[k] = c
            kind_of[market.kind_start[k] : market.kind_start[k + 1]] = k
            kind_free[k] = market.run_start[market.kind_start[k + 1]] - market.run_start[market.kind_start[k]]
            cell_free[c] += kind_free[k]
    stock = Stock(
        market.donors.copy(), place, run_of, kind_of, cell_of, np.diff(market.run_start), kind_free, cell_free,
        np.arange(runs + 1), np.arange(runs + 1), np.arange(cells + 1), np.arange(cells + 1),
    )  # fmt: skip
    for c in range(cells):
        if cell_free[c] == 0:
            close_cell(c, stock)
    return stock


@step
def close_cell(c: Whole, stock: Stock) -> None:
    """Let searches jump over a cell; `last_cell` counts from 1, so that 0 is the end."""
    stock.next_cell[c] = c + 1
    stock.last_cell[c + 1] = c


@kernel
def remove(donor: Whole, stock: Stock, market: Market) -> None:
    """Take a donor out of its run: the last one moves to its place."""
    r = stock.run_of[donor]
    p, end = stock.place[donor], market.run_start[r] + stock.run_free[r] - 1
    moved = stock.donors[end]
    stock.donors[p], stock.donors[end] = moved, donor
    stock.place[moved], stock.place[donor] = p, end
    stock.run_free[r] -= 1
    if stock.run_free[r] == 0:
        stock.next_run[r] = r + 1
        stock.last_run[r + 1] = r
    k = stock.kind_of[r]
    stock.kind_free[k] -= 1
    c = stock.cell_of[k]
    stock.cell_free[c] -= 1
    if stock.cell_free[c] == 0:
        close_cell(c, stock)


@step
def first_run_from(weight: Whole, k: Whole, market: Market) -> Whole:
    """Return the first run of a kind that is at least so heavy."""
    low, high = market.kind_start[k], market.kind_start[k + 1]
    while low < high:
        middle = (low + high) // 2
        if market.run_weight[middle] < weight:
            low = middle + 1
        else:
            high = middle
    return low


@step
def consider(r: Whole, weight: Whole, state: Ints, stock: Stock, market: Market, dice: Dice) -> None:
    """Keep a run if it is closer than the best so far; of equally close ones every donor has the same chance.

    state: distance of the best (-1: none), donors at that distance, run chosen among them.
    """
    distance = abs(market.run_weight[r] - weight)
    if state[0] >= 0 and distance > state[0]:
        return
    free = stock.run_free[r]
    if state[0] < 0 or distance < state[0]:
        state[0], state[1], state[2] = distance, free, r
        return
    state[1] += free
    if below(state[1], dice) < free:
        state[2] = r


@kernel
def closest(c: Whole, weight: Whole, value: Whole, state: Ints, stock: Stock, market: Market, dice: Dice) -> Whole:
    """Return the free donor of a cell with the closest weight, ties at random; -1 when nobody may be taken."""
    state[0] = -1
    for k in range(market.cell_start[c], market.cell_start[c + 1]):
        if stock.kind_free[k] == 0 or market.kind_value[k] == value:
            continue
        first = first_run_from(weight, k, market)
        above = jump(stock.next_run, first)
        if above < market.kind_start[k + 1]:
            consider(above, weight, state, stock, market, dice)
        under = jump(stock.last_run, first) - 1
        if under >= market.kind_start[k]:
            consider(under, weight, state, stock, market, dice)
    if state[0] < 0:
        return np.int64(NOBODY)
    r = state[2]
    at = below(stock.run_free[r], dice) if stock.run_free[r] > 1 else np.int64(0)
    return stock.donors[market.run_start[r] + at]


@kernel
def on_the_left(c: Whole, t: Whole, state: Ints, stock: Stock, market: Market, dice: Dice) -> Whole:
    """Return the finalist of the nearest cell to the left of cell c that has one for target t; -1 without."""
    weight, value = market.target_weight[t], market.target_value[t]
    cell, end = jump(stock.last_cell, c) - 1, market.zone_first[c]
    while cell >= end:
        donor = closest(cell, weight, value, state, stock, market, dice)
        if donor != NOBODY:
            return donor
        cell = jump(stock.last_cell, cell) - 1
    return np.int64(NOBODY)


@kernel
def on_the_right(c: Whole, t: Whole, state: Ints, stock: Stock, market: Market, dice: Dice) -> Whole:
    """Return the finalist of the nearest cell to the right of cell c that has one for target t; -1 without."""
    weight, value = market.target_weight[t], market.target_value[t]
    cell, end = jump(stock.next_cell, c + 1), market.zone_last[c]
    while cell <= end:
        donor = closest(cell, weight, value, state, stock, market, dice)
        if donor != NOBODY:
            return donor
        cell = jump(stock.next_cell, cell + 1)
    return np.int64(NOBODY)


@step
def bias_of(t: Whole, d: Whole, market: Market) -> Whole:
    """Return the swapping bias of two records, in ticks."""
    return abs(np.float64(market.weight[t] - market.weight[d])) * abs(market.x[t] - market.x[d])


@kernel
def choose(t: Whole, state: Ints, stock: Stock, market: Market, dice: Dice) -> tuple[Whole, Whole]:
    """Return the finalist with the smaller bias, ties at random, and its bias."""
    c, row = market.target_cell[t], market.targets[t]
    left = on_the_left(c, t, state, stock, market, dice)
    right = on_the_right(c, t, state, stock, market, dice)
    if left == NOBODY and right == NOBODY:
        return np.int64(NOBODY), 0.0
    if left == NOBODY:
        return right, bias_of(row, right, market)
    if right == NOBODY:
        return left, bias_of(row, left, market)
    one, other = bias_of(row, left, market), bias_of(row, right, market)
    if one < other or (one == other and below(2, dice) == 0):
        return left, one
    return right, other


class Asked(NamedTuple):
    """Per target the donor it wants and the bias of the two; per donor the best target so far and how many tie."""

    partner: Ints
    bias: NDArray[np.float64]
    best: Ints
    ties: Ints


def nothing_asked(market: Market) -> Asked:
    """Start with no target having asked."""
    targets, records = len(market.targets), len(market.weight)
    return Asked(np.full(targets, NOBODY), np.zeros(targets), np.full(records, NOBODY), np.zeros(records, np.int64))


@kernel
def pair_round(waiting: Ints, asked: Asked, stock: Stock, market: Market, dice: Dice) -> Whole:
    """Let every waiting target ask for its favourite; a donor goes to the smallest bias, ties at random.

    Those that lose move to the front of `waiting`, and their number is returned. A target for which nobody is left is
    done, with partner -1. When the words run out everything is as before and -1 is returned.
    """
    state = np.zeros(3, dtype=np.int64)
    for t in waiting:
        donor, bias = choose(t, state, stock, market, dice)
        asked.partner[t], asked.bias[t] = donor, bias
        if donor == NOBODY:
            continue
        holder = asked.best[donor]
        if holder == NOBODY or bias < asked.bias[holder]:
            asked.best[donor], asked.ties[donor] = t, 1
        elif bias == asked.bias[holder]:
            asked.ties[donor] += 1
            if below(asked.ties[donor], dice) == 0:
                asked.best[donor] = t
    if dice.cursor[1]:
        for t in waiting:
            if asked.partner[t] != NOBODY:
                asked.best[asked.partner[t]] = NOBODY
                asked.partner[t] = NOBODY
        return np.int64(-1)
    losers = np.int64(0)
    for t in waiting:
        donor = asked.partner[t]
        if donor == NOBODY:
            continue
        if asked.best[donor] == t:
            remove(donor, stock, market)
        else:
            asked.partner[t] = NOBODY
            waiting[losers] = t
            losers += 1
    return losers


@kernel
def near_donors(cells_each_side: Whole, market: Market, dice: Dice) -> Ints:
    """List donors near each target: in the nearest cells of its zone on both sides, the closest from below and above.

    Returns one row of donors per target, -1 where there are fewer.
    """
    stock = open_stock(market, len(market.weight))
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
    weight = market.target_weight[t]
    most = min(found + 2, out.shape[1])
    for k in range(market.cell_start[c], market.cell_start[c + 1]):
        if market.kind_value[k] == market.target_value[t]:
            continue
        first = first_run_from(weight, k, market)
        for r in (first, first - 1):
            if found < most and market.kind_start[k] <= r < market.kind_start[k + 1]:
                size = stock.run_free[r]
                out[t, found] = stock.donors[market.run_start[r] + below(size, dice)]
                found += 1
    return found


@kernel
def pick_from_groups(group: Ints, start: Ints, dice: Dice) -> Ints:
    """Pick, for each entry, a place of its group uniformly."""
    out = np.empty(len(group), dtype=np.int64)
    for i in range(len(group)):
        g = group[i]
        out[i] = start[g] + below(start[g + 1] - start[g], dice)
    return out
