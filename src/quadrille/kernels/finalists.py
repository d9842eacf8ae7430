"""The finalists of a target, the closest donor of the nearest cell on either side, and which of the two it asks for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadrille.kernels.compile import kernel, step
from quadrille.kernels.market import NOBODY, Market, Stock, closest, jump
from quadrille.kernels.pool import Dice, Ints, Whole
from quadrille.kernels.words import below


@kernel
def on_the_left(c: Whole, t: Whole, stock: Stock, market: Market, dice: Dice) -> Whole:
    """Return the finalist of the nearest cell to the left of cell c that has one for target t; -1 without."""
    cell, end = jump(stock.last_cell, c) - 1, market.zone_first[c]
    while cell >= end:
        donor = closest(cell, t, stock, market, dice)
        if donor != NOBODY:
            return donor
        cell = jump(stock.last_cell, cell) - 1
    return np.int64(NOBODY)


@kernel
def on_the_right(c: Whole, t: Whole, stock: Stock, market: Market, dice: Dice) -> Whole:
    """Return the finalist of the nearest cell to the right of cell c that has one for target t; -1 without."""
    cell, end = jump(stock.next_cell, c + 1), market.zone_last[c]
    while cell <= end:
        donor = closest(cell, t, stock, market, dice)
        if donor != NOBODY:
            return donor
        cell = jump(stock.next_cell, cell + 1)
    return np.int64(NOBODY)


@step
def bias_of(t: Whole, d: Whole, market: Market) -> Whole:
    """Return the swapping bias of two records, in ticks."""
    return abs(np.float64(market.weight[t] - market.weight[d])) * abs(market.x[t] - market.x[d])


@kernel
def choose(t: Whole, stock: Stock, market: Market, dice: Dice) -> tuple[Whole, Whole]:
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


def nothing_asked(market: Market) -> Asked:
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
