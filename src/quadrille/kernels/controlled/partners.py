"""The search for partners: rounds in which every waiting target asks, and donors go to the smallest bias."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadrille.kernels.compile import kernel, step
from quadrille.kernels.controlled.donors import (
    FAR,
    NOBODY,
    DonorIndex,
    Line,
    Stock,
    allowed,
    closest,
    first_run_from,
    jump,
    open_stock,
    remove,
    spoils,
    take_any,
)
from quadrille.kernels.draw import below
from quadrille.kernels.pool import Dice, Ints, Whole


@kernel
def on_the_left(c: Whole, t: Whole, stock: Stock, market: DonorIndex, dice: Dice) -> Whole:
    """Return the finalist of the nearest cell to the left of cell c that has one for target t; -1 without."""
    cell, end = jump(stock.last_cell, c) - 1, market.zone_first[c]
    while cell >= end:
        donor = closest(cell, t, stock, market, dice)
        if donor != NOBODY:
            return donor
        cell = jump(stock.last_cell, cell) - 1
    return np.int64(NOBODY)


@kernel
def on_the_right(c: Whole, t: Whole, stock: Stock, market: DonorIndex, dice: Dice) -> Whole:
    """Return the finalist of the nearest cell to the right of cell c that has one for target t; -1 without."""
    cell, end = jump(stock.next_cell, c + 1), market.zone_last[c]
    while cell <= end:
        donor = closest(cell, t, stock, market, dice)
        if donor != NOBODY:
            return donor
        cell = jump(stock.next_cell, cell + 1)
    return np.int64(NOBODY)


@step
def bias_of(t: Whole, d: Whole, market: DonorIndex) -> Whole:
    """Return the swapping bias of two records, in ticks."""
    return abs(np.float64(market.weight[t] - market.weight[d])) * abs(market.x[t] - market.x[d])


@kernel
def choose(t: Whole, stock: Stock, market: DonorIndex, dice: Dice) -> tuple[Whole, Whole]:
    """Return the finalist with the smaller bias, ties at random, and its bias."""
    c, row = market.target_cell[t], market.targets[t]
    left = on_the_left(c, t, stock, market, dice)
    right = on_the_right(c, t, stock, market, dice)
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
    """What the targets of a round ask for.

    Per target the donor it wants and the bias of the two; `listed` are the targets that asked, in order. Per donor the
    best target so far, how many tie with it, and the last crowd in which somebody asked for it.
    """

    partner: Ints
    bias: NDArray[np.float64]
    listed: Ints
    best: Ints
    ties: Ints
    seen: Ints


def nothing_asked(market: DonorIndex) -> Asked:
    """Start with no target having asked."""
    targets, records = len(market.targets), len(market.weight)
    nobody = np.full(targets, NOBODY)
    return Asked(nobody, np.zeros(targets), nobody.copy(), np.full(records, NOBODY), *np.zeros((2, records), np.int64))


@step
def ask(t: Whole, donor: Whole, bias: Whole, count: Whole, asked: Asked, dice: Dice) -> Whole:
    """Let a target ask for a donor: the smallest bias leads, ties at random. Returns how many have asked."""
    asked.partner[t], asked.bias[t], asked.listed[count] = donor, bias, t
    if donor != NOBODY:
        holder = asked.best[donor]
        if holder == NOBODY or bias < asked.bias[holder]:
            asked.best[donor], asked.ties[donor] = t, 1
        elif bias == asked.bias[holder]:
            asked.ties[donor] += 1
            if below(asked.ties[donor], dice) == 0:
                asked.best[donor] = t
    return count + 1


TIE = -2


@step
def closest_run(c: Whole, weight: Whole, stock: Stock, market: DonorIndex) -> tuple[Whole, Whole]:
    """Return the closest run of a cell, and up to which weight it stays the closest; TIE when two are."""
    if c == NOBODY:
        return np.int64(NOBODY), FAR
    first = first_run_from(weight, c, market)
    above, under = jump(stock.next_run, first), jump(stock.last_run, first) - 1
    if above >= market.cell_start[c + 1]:
        return under, FAR
    high = market.run_weight[above]
    if under < market.cell_start[c]:
        return above, high
    middle = market.run_weight[under] + high
    if 2 * weight < middle:
        return under, (middle - 1) // 2
    return (above, high) if 2 * weight > middle else (np.int64(TIE), weight)


@step
def run_bias(t: Whole, r: Whole, stock: Stock, market: DonorIndex) -> Whole:
    """Return the swapping bias of a target and any donor of a run, in ticks."""
    x, other = market.x[market.targets[t]], market.x[stock.donors[market.run_start[r]]]
    return abs(np.float64(market.target_weight[t] - market.run_weight[r])) * abs(x - other)


@step
def side(t: Whole, left: Whole, right: Whole, stock: Stock, market: DonorIndex) -> Whole:
    """Tell which of two runs has the smaller bias: -1 the left one, 1 the right one, 0 both."""
    if NOBODY in (left, right):
        return 1 if left == NOBODY else -1
    one, other = run_bias(t, left, stock, market), run_bias(t, right, stock, market)
    return -1 if one < other else (1 if one > other else 0)


@kernel
def ask_run(
    t: Whole, end: Whole, r: Whole, crowd: Whole, count: Whole,
    asked: Asked, line: Line, stock: Stock, market: DonorIndex, dice: Dice,
) -> Whole:  # fmt: skip
    """Let the waiting targets from t to end ask for donors of a run, the nearest in weight first."""
    free, found, full = stock.run_free[r], 0, -1.0
    upward = market.run_weight[r] <= market.target_weight[t]
    at = t if upward else end
    while t <= at <= end:
        bias = run_bias(at, r, stock, market)
        if found == free and bias > full:
            break
        place = below(free, dice) if free > 1 else np.int64(0)
        donor = stock.donors[market.run_start[r] + place]
        if asked.seen[donor] != crowd:
            asked.seen[donor] = crowd
            found += 1
            full = bias
        count = ask(at, donor, bias, count, asked, dice)
        at = jump(line.next_target, at + 1) if upward else jump(line.last_target, at) - 1
    return count


@step
def last_up_to(weight: Whole, t: Whole, end: Whole, market: DonorIndex) -> Whole:
    """Return the last target from t to end that is at most so heavy; t itself is."""
    low, high = t, end
    while low < high:
        middle = (low + high + 1) // 2
        if market.target_weight[middle] <= weight:
            low = middle
        else:
            high = middle - 1
    return low


@step
def last_on_side(t: Whole, end: Whole, left: Whole, right: Whole, stock: Stock, market: DonorIndex) -> Whole:
    """Return the last target from t to end that decides as t does; decisions change once at most."""
    decision, low, high = side(t, left, right, stock, market), t, end
    while low < high:
        middle = (low + high + 1) // 2
        if side(middle, left, right, stock, market) == decision:
            low = middle
        else:
            high = middle - 1
    return low


@kernel
def ask_in_crowds(
    first: Whole, end: Whole, count: Whole, crowd: Ints,
    asked: Asked, line: Line, stock: Stock, market: DonorIndex, dice: Dice,
) -> Whole:  # fmt: skip
    """Let the waiting targets of a cell ask, crowd by crowd; `first` to `end` are its targets by weight."""
    c = market.target_cell[first]
    left, right = jump(stock.last_cell, c) - 1, jump(stock.next_cell, c + 1)
    left = left if left >= market.zone_first[c] else np.int64(NOBODY)
    right = right if right <= market.zone_last[c] else np.int64(NOBODY)
    t = jump(line.next_target, first)
    while t <= end:
        weight = market.target_weight[t]
        one, until = closest_run(left, weight, stock, market)
        other, until_other = closest_run(right, weight, stock, market)
        nobody = one == NOBODY and other == NOBODY
        if nobody or TIE in (one, other) or side(t, one, other, stock, market) == 0:
            donor, bias = choose(t, stock, market, dice)
            count = ask(t, donor, bias, count, asked, dice)
            t = jump(line.next_target, t + 1)
            continue
        last = last_up_to(min(until, until_other), t, end, market)
        last = last_on_side(t, last, one, other, stock, market)
        run = one if side(t, one, other, stock, market) < 0 else other
        crowd[0] += 1
        waiting = jump(line.last_target, last + 1) - 1
        count = ask_run(t, waiting, run, crowd[0], count, asked, line, stock, market, dice)
        t = jump(line.next_target, last + 1)
    return count


@kernel
def ask_one_by_one(
    first: Whole, end: Whole, count: Whole,
    asked: Asked, line: Line, stock: Stock, market: DonorIndex, dice: Dice,
) -> Whole:  # fmt: skip
    """Let the waiting targets of a cell ask, each for itself."""
    t = jump(line.next_target, first)
    while t <= end:
        donor, bias = choose(t, stock, market, dice)
        count = ask(t, donor, bias, count, asked, dice)
        t = jump(line.next_target, t + 1)
    return count


@kernel
def pair_round(
    active: Whole, crowd: Ints, asked: Asked, line: Line, stock: Stock, market: DonorIndex, dice: Dice
) -> Whole:
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
def near_donors(cells_each_side: Whole, market: DonorIndex, dice: Dice) -> Ints:
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
def list_closest(c: Whole, t: Whole, found: Whole, out: Ints, stock: Stock, market: DonorIndex, dice: Dice) -> Whole:
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
def rules_leave_nobody(t: Whole, market: DonorIndex) -> bool:
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
