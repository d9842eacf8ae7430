"""Targets of one cell that share their finalists ask together, so that a round costs what it pairs and not who waits.

Between two free weights of the cells on both sides all targets have the same finalists. Within such a crowd the bias
grows with the distance from the donor's weight, so the targets nearest to it ask first, each for a donor of the
run at random; when every donor of the run has been asked for, the rest of the crowd cannot win in this round and need
not ask. That changes nothing in who wins.
"""

from __future__ import annotations

import numpy as np

from quadrille.kernels.compile import kernel, step
from quadrille.kernels.finalists import Asked, ask, choose
from quadrille.kernels.market import FAR, NOBODY, Line, Market, Stock, first_run_from, jump
from quadrille.kernels.pool import Dice, Ints, Whole
from quadrille.kernels.words import below

TIE = -2


@step
def closest_run(c: Whole, weight: Whole, stock: Stock, market: Market) -> tuple[Whole, Whole]:
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
def run_bias(t: Whole, r: Whole, stock: Stock, market: Market) -> Whole:
    """Return the swapping bias of a target and any donor of a run, in ticks."""
    x, other = market.x[market.targets[t]], market.x[stock.donors[market.run_start[r]]]
    return abs(np.float64(market.target_weight[t] - market.run_weight[r])) * abs(x - other)


@step
def side(t: Whole, left: Whole, right: Whole, stock: Stock, market: Market) -> Whole:
    """Tell which of two runs has the smaller bias: -1 the left one, 1 the right one, 0 both."""
    if NOBODY in (left, right):
        return 1 if left == NOBODY else -1
    one, other = run_bias(t, left, stock, market), run_bias(t, right, stock, market)
    return -1 if one < other else (1 if one > other else 0)


@kernel
def ask_run(
    t: Whole, end: Whole, r: Whole, crowd: Whole, count: Whole,
    asked: Asked, line: Line, stock: Stock, market: Market, dice: Dice,
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
def last_up_to(weight: Whole, t: Whole, end: Whole, market: Market) -> Whole:
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
def last_on_side(t: Whole, end: Whole, left: Whole, right: Whole, stock: Stock, market: Market) -> Whole:
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
    asked: Asked, line: Line, stock: Stock, market: Market, dice: Dice,
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
