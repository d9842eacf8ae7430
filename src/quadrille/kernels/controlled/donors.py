"""The donors of a search for partners, free ones by cell and by run of equal weight.

A run that is empty is jumped over by a chain of pointers that shortens itself, and so is a cell without free donors, so
a search costs about the logarithm of the size of a cell however many donors are taken.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadrille.kernels.compile import kernel, step
from quadrille.kernels.draw import below
from quadrille.kernels.pool import Dice, Flags, Ints, Whole


class Edits(NamedTuple):
    """Plausibility rules, one bit each, per record or group: whether it meets the conditions on what stays or moves.

    `stay` and `move` have a column for every so many rules. `linked` holds the conditions on the columns that move
    where the parent differs, a layer for each parent, and `parent` the values of the parents.
    """

    stay: Ints
    move: Ints
    linked: Ints
    parent: Ints

    def take(self, rows: NDArray[Any]) -> Edits:
        """Return those of some records."""
        linked, parent = (np.ascontiguousarray(part[:, rows]) for part in (self.linked, self.parent))
        return Edits(self.stay[rows], self.move[rows], linked, parent)


def no_edits(n: int) -> Edits:
    """Return the edits of n records without any rule."""
    none = np.zeros((n, 0), dtype=np.int64)
    return Edits(none, none, np.zeros((0, n, 0), dtype=np.int64), np.zeros((0, n), dtype=np.int64))


@step
def spoils(a: Whole, b: Whole, edits: Edits) -> bool:
    """Tell whether an exchange makes a or b break a rule that it did not break before."""
    for w in range(edits.stay.shape[1]):
        one_was, one = edits.stay[a, w] & edits.move[a, w], edits.stay[a, w] & edits.move[b, w]
        other_was, other = edits.stay[b, w] & edits.move[b, w], edits.stay[b, w] & edits.move[a, w]
        for p in range(len(edits.parent)):
            mine, theirs = edits.linked[p, a, w], edits.linked[p, b, w]
            one_was, other_was = one_was & mine, other_was & theirs
            if edits.parent[p, a] == edits.parent[p, b]:
                one, other = one & mine, other & theirs
            else:
                one, other = one & theirs, other & mine
        if (one & ~one_was) | (other & ~other_was):
            return True
    return False


NOBODY = -1
NO_VALUE = -1
"""The value of a record whose own values are all known."""
FAR = np.int64((1 << 63) - 1)


class DonorIndex(NamedTuple):
    """Donors by cell and by run (equal weight), and the targets.

    Cell c owns the runs cell_start[c] to cell_start[c+1], run r the places run_start[r] to run_start[r+1] of `donors`.
    Cells zone_first[c] to zone_last[c] are in the zone of cell c. `weight`, `x` and `value` belong to the records of
    the file. A target with a `target_value` takes nobody of the same `value`: they hold the same where values were
    imputed. `edits` tell which pairs the plausibility rules exclude. Targets that may not take every donor are
    `choosy`. `line` numbers the groups of targets that wait together: those of one cell, apart for targets that are
    choosy, and targets are sorted by it and by weight. `one_x`: all records of a cell have the same x.
    """

    donors: Ints
    run_start: Ints
    run_weight: Ints
    cell_start: Ints
    zone_first: Ints
    zone_last: Ints
    targets: Ints
    line: Ints
    target_cell: Ints
    target_value: Ints
    target_weight: Ints
    choosy: Flags
    weight: Ints
    x: NDArray[np.float64]
    value: Ints
    one_x: bool
    edits: Edits


class Line(NamedTuple):
    """The targets that wait: pointers past those that have left, and the groups that have some, with their places."""

    next_target: Ints
    last_target: Ints
    first: Ints
    end: Ints


def open_line(index: DonorIndex) -> Line:
    """Start with every target waiting."""
    _, first = np.unique(index.line, return_index=True)
    everyone = np.arange(len(index.targets) + 1)
    return Line(everyone, everyone.copy(), first, np.append(first[1:], len(index.targets)) - 1)


class Stock(NamedTuple):
    """What is still free: how many donors of each run and cell, and pointers past those that are empty."""

    donors: Ints
    place: Ints
    run_of: Ints
    cell_of: Ints
    run_free: Ints
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
def open_stock(index: DonorIndex) -> Stock:
    """Start with every donor free."""
    records, runs, cells = len(index.weight), len(index.run_weight), len(index.cell_start) - 1
    run_of = np.empty(records, dtype=np.int64)
    place = np.empty(records, dtype=np.int64)
    cell_of = np.empty(runs, dtype=np.int64)
    cell_free = np.zeros(cells, dtype=np.int64)
    for c in range(cells):
        for r in range(index.cell_start[c], index.cell_start[c + 1]):
            cell_of[r] = c
            for p in range(index.run_start[r], index.run_start[r + 1]):
                place[index.donors[p]] = p
                run_of[index.donors[p]] = r
                cell_free[c] += 1
    stock = Stock(
        index.donors.copy(), place, run_of, cell_of, np.diff(index.run_start), cell_free,
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
def remove(donor: Whole, stock: Stock, index: DonorIndex) -> None:
    """Take a donor out of its run: the last one moves to its place."""
    r = stock.run_of[donor]
    p, end = stock.place[donor], index.run_start[r] + stock.run_free[r] - 1
    moved = stock.donors[end]
    stock.donors[p], stock.donors[end] = moved, donor
    stock.place[moved], stock.place[donor] = p, end
    stock.run_free[r] -= 1
    if stock.run_free[r] == 0:
        stock.next_run[r] = r + 1
        stock.last_run[r + 1] = r
    c = stock.cell_of[r]
    stock.cell_free[c] -= 1
    if stock.cell_free[c] == 0:
        close_cell(c, stock)


@step
def first_run_from(weight: Whole, c: Whole, index: DonorIndex) -> Whole:
    """Return the first run of a cell that is at least so heavy."""
    low, high = index.cell_start[c], index.cell_start[c + 1]
    while low < high:
        middle = (low + high) // 2
        if index.run_weight[middle] < weight:
            low = middle + 1
        else:
            high = middle
    return low


@step
def may_take(t: Whole, donor: Whole, index: DonorIndex) -> bool:
    """Tell whether a choosy target may take a donor."""
    value = index.target_value[t]
    if value != NO_VALUE and index.value[donor] == value:
        return False
    return not spoils(index.targets[t], donor, index.edits)


@step
def allowed(r: Whole, t: Whole, stock: Stock, index: DonorIndex) -> Whole:
    """Count the free donors of a run that a target may take: all, unless it is choosy."""
    free = stock.run_free[r]
    if not index.choosy[t]:
        return free
    count = np.int64(0)
    for p in range(index.run_start[r], index.run_start[r] + free):
        if may_take(t, stock.donors[p], index):
            count += 1
    return count


@step
def take_any(r: Whole, t: Whole, count: Whole, stock: Stock, index: DonorIndex, dice: Dice) -> Whole:
    """Return one of the `count` free donors of a run that a target may take, each with the same chance."""
    at = below(count, dice) if count > 1 else np.int64(0)
    if not index.choosy[t]:
        return stock.donors[index.run_start[r] + at]
    p = index.run_start[r]
    while True:
        if may_take(t, stock.donors[p], index):
            if at == 0:
                return stock.donors[p]
            at -= 1
        p += 1


@kernel
def closest(c: Whole, t: Whole, stock: Stock, index: DonorIndex, dice: Dice) -> Whole:
    """Return the free donor of a cell with the weight closest to a target's, ties at random; -1 without any."""
    weight = index.target_weight[t]
    first = first_run_from(weight, c, index)
    above, under = jump(stock.next_run, first), jump(stock.last_run, first) - 1
    while above < index.cell_start[c + 1] or under >= index.cell_start[c]:
        up = index.run_weight[above] - weight if above < index.cell_start[c + 1] else FAR
        down = weight - index.run_weight[under] if under >= index.cell_start[c] else FAR
        on_top = allowed(above, t, stock, index) if up <= down else np.int64(0)
        below_it = allowed(under, t, stock, index) if down <= up else np.int64(0)
        if on_top + below_it > 0:
            both = on_top > 0 and below_it > 0
            if below_it == 0 or (both and below(on_top + below_it, dice) < on_top):
                return take_any(above, t, on_top, stock, index, dice)
            return take_any(under, t, below_it, stock, index, dice)
        if up <= down:
            above = jump(stock.next_run, above + 1)
        if down <= up:
            under = jump(stock.last_run, under) - 1
    return np.int64(NOBODY)
