"""The market of a search for partners: free donors by cell, by kind and by run of equal weight.

A run that is empty is jumped over by a chain of pointers that shortens itself, and so is a cell without free donors, so
a search costs about the logarithm of the size of a cell however many donors are taken.
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
    kind. `weight` and `x` belong to the records of the file; targets are sorted by cell and weight. `crowds`: every
    cell has one kind at most and one x, so that targets between the same free weights have the same finalists.
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
    crowds: bool


class Line(NamedTuple):
    """The targets that wait: pointers past those that have left, and the cells that have some, with their places."""

    next_target: Ints
    last_target: Ints
    cell: Ints
    first: Ints
    end: Ints


def open_line(market: Market) -> Line:
    """Start with every target waiting."""
    cell, first = np.unique(market.target_cell, return_index=True)
    everyone = np.arange(len(market.targets) + 1)
    return Line(everyone, everyone.copy(), cell, first, np.append(first[1:], len(market.targets)) - 1)


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
