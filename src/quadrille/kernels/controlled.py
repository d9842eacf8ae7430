"""The search for partners: rounds in which every waiting target asks, and donors go to the smallest bias.

Free donors are kept by cell and by run of equal weight. A run that is empty is jumped over by a chain of pointers that
shortens itself, and so is a cell without free donors, so a search costs about the logarithm of the size of a cell
however many donors are taken.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadrille.kernels.compile import Flags, Ints, Whole, kernel, step
from quadrille.kernels.draw import Dice, below


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


@kernel
def on_the_left(c: Whole, t: Whole, stock: Stock, index: DonorIndex, dice: Dice) -> Whole:
    """Return the nearest donor of the nearest cell to the left of cell c that has one for target t; -1 without."""
    cell, end = jump(stock.last_cell, c) - 1, index.zone_first[c]
    while cell >= end:
        donor = closest(cell, t, stock, index, dice)
        if donor != NOBODY:
            return donor
        cell = jump(stock.last_cell, cell) - 1
    return np.int64(NOBODY)


@kernel
def on_the_right(c: Whole, t: Whole, stock: Stock, index: DonorIndex, dice: Dice) -> Whole:
    """Return the nearest donor of the nearest cell to the right of cell c that has one for target t; -1 without."""
    cell, end = jump(stock.next_cell, c + 1), index.zone_last[c]
    while cell <= end:
        donor = closest(cell, t, stock, index, dice)
        if donor != NOBODY:
            return donor
        cell = jump(stock.next_cell, cell + 1)
    return np.int64(NOBODY)


@step
def bias_of(t: Whole, d: Whole, index: DonorIndex) -> Whole:
    """Return the swapping bias of two records, in ticks."""
    return abs(np.float64(index.weight[t] - index.weight[d])) * abs(index.x[t] - index.x[d])


@kernel
def choose(t: Whole, stock: Stock, index: DonorIndex, dice: Dice) -> tuple[Whole, Whole]:
    """Return the nearest donor with the smaller bias, ties at random, and its bias."""
    c, row = index.target_cell[t], index.targets[t]
    left = on_the_left(c, t, stock, index, dice)
    right = on_the_right(c, t, stock, index, dice)
    if left == NOBODY and right == NOBODY:
        return np.int64(NOBODY), 0.0
    if left == NOBODY:
        return right, bias_of(row, right, index)
    if right == NOBODY:
        return left, bias_of(row, left, index)
    one, other = bias_of(row, left, index), bias_of(row, right, index)
    if one < other or (one == other and below(2, dice) == 0):
        return left, one
    return right, other


class Asked(NamedTuple):
    """What the targets of a round ask for.

    Per target the donor it wants and the bias of the two; `listed` are the targets that asked, in order. Per donor the
    best target so far, how many tie with it, and the last batch in which somebody asked for it.
    """

    partner: Ints
    bias: NDArray[np.float64]
    listed: Ints
    best: Ints
    ties: Ints
    seen: Ints


def nothing_asked(index: DonorIndex) -> Asked:
    """Start with no target having asked."""
    targets, records = len(index.targets), len(index.weight)
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
def closest_run(c: Whole, weight: Whole, stock: Stock, index: DonorIndex) -> tuple[Whole, Whole]:
    """Return the closest run of a cell, and up to which weight it stays the closest; TIE when two are."""
    if c == NOBODY:
        return np.int64(NOBODY), FAR
    first = first_run_from(weight, c, index)
    above, under = jump(stock.next_run, first), jump(stock.last_run, first) - 1
    if above >= index.cell_start[c + 1]:
        return under, FAR
    high = index.run_weight[above]
    if under < index.cell_start[c]:
        return above, high
    middle = index.run_weight[under] + high
    if 2 * weight < middle:
        return under, (middle - 1) // 2
    return (above, high) if 2 * weight > middle else (np.int64(TIE), weight)


@step
def run_bias(t: Whole, r: Whole, stock: Stock, index: DonorIndex) -> Whole:
    """Return the swapping bias of a target and any donor of a run, in ticks."""
    x, other = index.x[index.targets[t]], index.x[stock.donors[index.run_start[r]]]
    return abs(np.float64(index.target_weight[t] - index.run_weight[r])) * abs(x - other)


@step
def side(t: Whole, left: Whole, right: Whole, stock: Stock, index: DonorIndex) -> Whole:
    """Tell which of two runs has the smaller bias: -1 the left one, 1 the right one, 0 both."""
    if NOBODY in (left, right):
        return 1 if left == NOBODY else -1
    one, other = run_bias(t, left, stock, index), run_bias(t, right, stock, index)
    return -1 if one < other else (1 if one > other else 0)


@kernel
def ask_run(
    t: Whole, end: Whole, r: Whole, batch: Whole, count: Whole,
    asked: Asked, line: Line, stock: Stock, index: DonorIndex, dice: Dice,
) -> Whole:  # fmt: skip
    """Let the waiting targets from t to end ask for donors of a run, the nearest in weight first."""
    free, found, full = stock.run_free[r], 0, -1.0
    upward = index.run_weight[r] <= index.target_weight[t]
    at = t if upward else end
    while t <= at <= end:
        bias = run_bias(at, r, stock, index)
        if found == free and bias > full:
            break
        place = below(free, dice) if free > 1 else np.int64(0)
        donor = stock.donors[index.run_start[r] + place]
        if asked.seen[donor] != batch:
            asked.seen[donor] = batch
            found += 1
            full = bias
        count = ask(at, donor, bias, count, asked, dice)
        at = jump(line.next_target, at + 1) if upward else jump(line.last_target, at) - 1
    return count


@step
def last_up_to(weight: Whole, t: Whole, end: Whole, index: DonorIndex) -> Whole:
    """Return the last target from t to end that is at most so heavy; t itself is."""
    low, high = t, end
    while low < high:
        middle = (low + high + 1) // 2
        if index.target_weight[middle] <= weight:
            low = middle
        else:
            high = middle - 1
    return low


@step
def last_on_side(t: Whole, end: Whole, left: Whole, right: Whole, stock: Stock, index: DonorIndex) -> Whole:
    """Return the last target from t to end that decides as t does; decisions change once at most."""
    decision, low, high = side(t, left, right, stock, index), t, end
    while low < high:
        middle = (low + high + 1) // 2
        if side(middle, left, right, stock, index) == decision:
            low = middle
        else:
            high = middle - 1
    return low


@kernel
def ask_in_batches(
    first: Whole, end: Whole, count: Whole, batch: Ints,
    asked: Asked, line: Line, stock: Stock, index: DonorIndex, dice: Dice,
) -> Whole:  # fmt: skip
    """Let the waiting targets of a cell ask, batch by batch; `first` to `end` are its targets by weight."""
    c = index.target_cell[first]
    left, right = jump(stock.last_cell, c) - 1, jump(stock.next_cell, c + 1)
    left = left if left >= index.zone_first[c] else np.int64(NOBODY)
    right = right if right <= index.zone_last[c] else np.int64(NOBODY)
    t = jump(line.next_target, first)
    while t <= end:
        weight = index.target_weight[t]
        one, until = closest_run(left, weight, stock, index)
        other, until_other = closest_run(right, weight, stock, index)
        nobody = one == NOBODY and other == NOBODY
        if nobody or TIE in (one, other) or side(t, one, other, stock, index) == 0:
            donor, bias = choose(t, stock, index, dice)
            count = ask(t, donor, bias, count, asked, dice)
            t = jump(line.next_target, t + 1)
            continue
        last = last_up_to(min(until, until_other), t, end, index)
        last = last_on_side(t, last, one, other, stock, index)
        run = one if side(t, one, other, stock, index) < 0 else other
        batch[0] += 1
        waiting = jump(line.last_target, last + 1) - 1
        count = ask_run(t, waiting, run, batch[0], count, asked, line, stock, index, dice)
        t = jump(line.next_target, last + 1)
    return count


@kernel
def ask_one_by_one(
    first: Whole, end: Whole, count: Whole,
    asked: Asked, line: Line, stock: Stock, index: DonorIndex, dice: Dice,
) -> Whole:  # fmt: skip
    """Let the waiting targets of a cell ask, each for itself."""
    t = jump(line.next_target, first)
    while t <= end:
        donor, bias = choose(t, stock, index, dice)
        count = ask(t, donor, bias, count, asked, dice)
        t = jump(line.next_target, t + 1)
    return count


@kernel
def pair_round(
    active: Whole, batch: Ints, asked: Asked, line: Line, stock: Stock, index: DonorIndex, dice: Dice
) -> Whole:
    """Let every waiting target ask for its favourite; a donor goes to the smallest bias, ties at random.

    Returns the number of groups in which targets still wait; they move to the front of `line`. A target for which
    nobody is left leaves with partner -1. When the words run out everything is as before and -1 is returned.
    """
    count = np.int64(0)
    for i in range(active):
        first, end = line.first[i], line.end[i]
        if index.one_x and not index.choosy[first]:
            count = ask_in_batches(first, end, count, batch, asked, line, stock, index, dice)
        else:
            count = ask_one_by_one(first, end, count, asked, line, stock, index, dice)
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
                remove(donor, stock, index)
        else:
            asked.partner[t] = NOBODY
    kept = 0
    for i in range(active):
        if jump(line.next_target, line.first[i]) <= line.end[i]:
            line.first[kept], line.end[kept] = line.first[i], line.end[i]
            kept += 1
    return np.int64(kept)


@kernel
def near_donors(cells_each_side: Whole, index: DonorIndex, dice: Dice) -> Ints:
    """List donors near each target: in the nearest cells of its zone on both sides, the closest from below and above.

    Returns one row of donors per target, -1 where there are fewer.
    """
    stock = open_stock(index)
    out = np.full((len(index.targets), 4 * cells_each_side), NOBODY)
    for t in range(len(index.targets)):
        c, found = index.target_cell[t], 0
        cell, seen = jump(stock.last_cell, c) - 1, 0
        while cell >= index.zone_first[c] and seen < cells_each_side:
            found = list_closest(cell, t, found, out, stock, index, dice)
            cell, seen = jump(stock.last_cell, cell) - 1, seen + 1
        cell, seen = jump(stock.next_cell, c + 1), 0
        while cell <= index.zone_last[c] and seen < cells_each_side:
            found = list_closest(cell, t, found, out, stock, index, dice)
            cell, seen = jump(stock.next_cell, cell + 1), seen + 1
    return out


@kernel
def list_closest(c: Whole, t: Whole, found: Whole, out: Ints, stock: Stock, index: DonorIndex, dice: Dice) -> Whole:
    """Add the closest donors of a cell, one from above and one from below the weight of the target."""
    first = first_run_from(index.target_weight[t], c, index)
    for step_ in (1, -1):
        r = first if step_ > 0 else first - 1
        while index.cell_start[c] <= r < index.cell_start[c + 1]:
            count = allowed(r, t, stock, index)
            if count > 0:
                out[t, found] = take_any(r, t, count, stock, index, dice)
                found += 1
                break
            r += step_
    return found


@kernel
def rules_leave_nobody(t: Whole, index: DonorIndex) -> bool:
    """Tell whether the rules exclude every donor in the other cells of a target's zone."""
    c = index.target_cell[t]
    for cell in range(index.zone_first[c], index.zone_last[c] + 1):
        first, end = index.run_start[index.cell_start[cell]], index.run_start[index.cell_start[cell + 1]]
        for p in range(first, end):
            if cell != c and not spoils(index.targets[t], index.donors[p], index.edits):
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
