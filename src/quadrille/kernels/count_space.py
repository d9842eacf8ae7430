"""Swapping geography: flagged units go round between areas; in the area x level table, counts of a cell suffice."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadrille.kernels.compile import Flags, Ints, Whole, kernel, step
from quadrille.kernels.draw import Dice, below

NONE = -1
NOWHERE = 0xFFFFFFFF
"""The number of no area."""
Places = NDArray[np.uint32]


class Urn(NamedTuple):
    """The table before a swap, laid out for drawing; `hint[place >> shift]` is a cell at or just below its owner."""

    start: Places
    hint: Places
    shift: int
    area: Places
    levels: int
    patience: int


@kernel
def quick_cells(wanted: Whole, taken: Whole, urn: Urn, limit: Places, log: Places, dice: Dice) -> Whole:
    """Draw first records and partners in turn by rejection, as long as that goes fast; return how many there are.

    Numbers without a sign spare the compiled code a test at every look into an array, which halves the time.
    """
    words, cursor = dice
    start, hint, area, shift, one = urn.start, urn.hint, urn.area, np.uint64(urn.shift), np.uint32(1)
    size, at, last = np.int64(start[-1]), np.uint64(cursor[0]), np.uint64(cursor[0])
    uneven = np.int64(0x100000000) % size  # as in `below`, with what does not change kept out of the loop
    nowhere = np.uint32(NOWHERE)
    barred = nowhere if taken % 2 == 0 else area[log[taken - 1]]
    patience, end, taken, wanted = np.uint64(urn.patience), np.uint64(len(words)), np.uint64(taken), np.uint64(wanted)
    while taken < wanted and at - last < patience and at < end:
        product = np.int64(words[at]) * size
        at += one
        place = np.uint32(product >> 32)
        c = hint[place >> shift]
        while place >= start[np.uint32(c + one)]:
            c = np.uint32(c + one)
        if place < limit[c] and area[c] != barred and product & np.int64(0xFFFFFFFF) >= uneven:
            limit[c] -= one
            log[taken] = c
            taken += one
            last = at
            barred = area[c] if barred == nowhere else nowhere
    cursor[0] = at
    cursor[1] |= at >= end and taken < wanted
    return np.int64(taken)


@kernel
def counted_cell(barred: Whole, urn: Urn, limit: Places, dice: Dice) -> Whole:
    """Count the unused records outside an area and return the cell of one of them; -1 when there is none."""
    total = np.int64(0)
    for c in range(len(limit)):
        if urn.area[c] != barred:
            total += np.int64(limit[c]) - np.int64(urn.start[c])
    if total == 0:
        return NONE
    target = below(total, dice)
    for c in range(len(limit)):
        if urn.area[c] != barred:
            target -= np.int64(limit[c]) - np.int64(urn.start[c])
            if target < 0:
                return c
    return NONE


@kernel
def part_pairs(taken: Whole, urn: Urn, limit: Places, log: Places, dice: Dice) -> Whole:
    """Go on from a dead end: two unused records part a pair outside their area, and each takes one of its records.

    All unused records are in one area then, and stay there. Pair and records are uniform, as in
    `exchange.part_pairs`. Returns how many cells the log has then.
    """
    c = counted_cell(NOWHERE, urn, limit, dice)
    if c == NONE:
        return taken
    here = urn.area[c]
    outside = np.array(
        [m for m in range(0, taken, 2) if urn.area[log[m]] != here and urn.area[log[m + 1]] != here], dtype=np.int64
    )
    left = len(outside)
    while taken < len(log) and left > 0 and dice.cursor[1] == 0:
        c = counted_cell(NOWHERE, urn, limit, dice)
        if c == NONE:
            break
        limit[c] -= 1
        d = counted_cell(NOWHERE, urn, limit, dice)
        if d == NONE:
            limit[c] += 1
            break
        limit[d] -= 1
        chosen = below(left, dice)
        m = outside[chosen]
        left -= 1
        outside[chosen] = outside[left]
        log[taken] = d
        log[taken + 1] = log[m + 1]
        log[m + 1] = c
        taken += 2
    return taken


@kernel
def draw_cells(urn: Urn, limit: Places, log: Places, dice: Dice) -> tuple[Whole, Whole]:
    """Fill the log with the cells of pairs; return how many cells it has and how many pairs were parted."""
    taken = 0
    while dice.cursor[1] == 0:
        taken = quick_cells(len(log), taken, urn, limit, log, dice)
        if taken == len(log):
            return taken, 0
        c = counted_cell(NOWHERE if taken % 2 == 0 else np.int64(urn.area[log[taken - 1]]), urn, limit, dice)
        if c == NONE:
            break
        limit[c] -= 1
        log[taken] = c
        taken += 1
    if taken % 2 == 1:
        taken -= 1
        limit[log[taken]] += 1
    more = part_pairs(taken, urn, limit, log, dice)
    return more, (more - taken) // 2


@kernel
def swap_records(urn: Urn, pairs: Whole, after: Ints, dice: Dice) -> tuple[Whole, Whole]:
    """Let pairs of records of different areas exchange their areas; return the pairs drawn and the pairs parted.

    The first record is uniform among the unused ones, its partner among the unused ones of other areas.
    """
    limit = urn.start[1:].copy()
    log = np.empty(2 * pairs, dtype=np.uint32)
    taken, parted = draw_cells(urn, limit, log, dice)
    for m in range(0, taken, 2):
        c, d = np.int64(log[m]), np.int64(log[m + 1])
        way = (np.int64(urn.area[d]) - np.int64(urn.area[c])) * urn.levels
        after[c + way] += 1
        after[d - way] += 1
    for c in range(len(after)):
        after[c] -= np.int64(urn.start[c + 1]) - np.int64(limit[c])
    return taken // 2, parted


@step
def two_different(n: Whole, dice: Dice) -> tuple[Whole, Whole]:
    """Return two different numbers in 0..n-1, uniformly, for n up to 46,340, from one word with exact rejection."""
    words, cursor = dice
    while cursor[0] < len(words):
        first = np.int64(words[cursor[0]]) * np.int64(n)
        cursor[0] += 1
        second = (first & np.int64(0xFFFFFFFF)) * np.int64(n - 1)
        low = second & np.int64(0xFFFFFFFF)
        if low >= n * (n - 1) or low >= np.int64(0x100000000) % (n * (n - 1)):
            one, other = first >> 32, second >> 32
            return one, other + (other >= one)
    cursor[1] = 1
    return np.int64(0), np.int64(1)


@kernel
def swap_cells(areas: Whole, levels: Whole, pairs: Whole, after: Ints, dice: Dice) -> Whole:
    """Let pairs of cells that differ in area and level exchange a record; return how many pairs were redrawn.

    Every such pair of cells is equally likely, whatever its counts; one with an empty cell is redrawn.
    """
    done, redrawn = 0, 0
    while done < pairs and dice.cursor[1] == 0:
        i, k = two_different(areas, dice)
        j, m = two_different(levels, dice)
        c, d = i * levels + j, k * levels + m
        if after[c] == 0 or after[d] == 0:
            redrawn += 1
            continue
        after[c] -= 1
        after[d] -= 1
        after[i * levels + m] += 1
        after[k * levels + j] += 1
        done += 1
    return redrawn


@step
def entropy_term(share: float) -> float:
    """Return share * ln(share), 0 for 0."""
    return share * np.log(share) if share > 0 else 0.0


@kernel
def compare_tables(before: Ints, after: Ints, levels: Whole, out: NDArray[np.float64]) -> None:
    """Write the differences of two tables with equal area totals.

    In order: chi-square, effective swap rate, deviance, differences of Gini, Shannon and Renyi, cells that are empty
    before and not after. These cells are left out of chi-square and deviance.
    """
    square = moved = deviance = gini = shannon = cubes = cubes_more = 0.0
    empty = 0
    for low in range(0, len(before), levels):
        total = 0.0
        for c in range(low, low + levels):
            total += before[c]
        for c in range(low, low + levels):
            f, g = float(before[c]), float(after[c])
            r, s = f / total, g / total
            cubes += r * r * r
            if f == g:
                continue
            moved += abs(g - f)
            gini += (g - f) * (g + f) / (total * total)
            shannon += entropy_term(s) - entropy_term(r)
            cubes_more += s * s * s - r * r * r
            if f == 0:
                empty += 1
            else:
                square += (g - f) * (g - f) / f
                deviance += 2.0 * f * entropy_term(g / f)
    out[0], out[1], out[2] = square, 0.5 * moved / before.sum(), deviance
    out[3], out[4], out[5], out[6] = gini, shannon, 0.5 * np.log1p(cubes_more / cubes), empty


ALONE, ONE_AREA, DOMINATED = 1, 2, 3
"""Why a unit is in no cycle: alone in its cell, all of its cell in one area, its area has more than half."""

TRIES = 64


class Flagged(NamedTuple):
    """Flagged units sorted by cell and area: cell c has those from start[c] to start[c+1]."""

    unit: Ints
    area: Ints
    start: Ints


class Cycles(NamedTuple):
    """The outcome: the first counts[0] units of `to` receive from `of`, the first counts[1] of `aside` are in no cycle.

    `why` is the reason of those, and lengths[n] counts the cycles of n units.
    """

    to: Ints
    of: Ints
    aside: Ints
    why: Ints
    lengths: Ints
    counts: Ints


@kernel
def no_cycles(most: Whole) -> Cycles:
    """Return room for the outcome of so many units."""
    room = np.empty((4, most), dtype=np.int64)
    return Cycles(room[0], room[1], room[2], room[3], np.zeros(most + 1, dtype=np.int64), np.zeros(2, dtype=np.int64))


@kernel
def set_aside(flagged: Flagged, first: Whole, end: Whole, why: Whole, made: Cycles) -> None:
    """Note places of units that are in no cycle."""
    for place in range(first, end):
        made.aside[made.counts[1]] = place
        made.why[made.counts[1]] = why
        made.counts[1] += 1


@kernel
def shuffle_part(items: Ints, first: Whole, end: Whole, dice: Dice) -> None:
    """Put a part of the items in uniformly random order."""
    for i in range(end - 1, first, -1):
        j = first + below(i - first + 1, dice)
        items[i], items[j] = items[j], items[i]


@kernel
def send_round(flagged: Flagged, line: Ints, count: Whole, cycles: Whole, made: Cycles, dice: Dice) -> None:
    """Deal the units in line out to cycles; in each, in random order, every member receives from the next."""
    members = np.empty(-(-count // cycles), dtype=np.int64)
    for cycle in range(cycles):
        size = 0
        for t in range(cycle, count, cycles):
            members[size] = line[t]
            size += 1
        shuffle_part(members, 0, size, dice)
        made.lengths[size] += 1
        for i in range(size):
            made.to[made.counts[0]] = flagged.unit[members[i]]
            made.of[made.counts[0]] = flagged.unit[members[(i + 1) % size]]
            made.counts[0] += 1


@kernel
def make_cycles(flagged: Flagged, length: Whole, dice: Dice) -> Cycles:
    """Make cycles of about `length` units in every cell, the members of each in pairwise different areas."""
    made = no_cycles(len(flagged.unit))
    for c in range(len(flagged.start) - 1):
        first, end = flagged.start[c], flagged.start[c + 1]
        count = end - first
        run = np.empty(count + 1, dtype=np.int64)  # where the units of each area begin
        runs, largest = 0, 0
        for place in range(first, end):
            if place == first or flagged.area[place] != flagged.area[place - 1]:
                run[runs] = place
                runs += 1
        run[runs] = end
        for r in range(runs):
            largest = max(largest, run[r + 1] - run[r])
        if runs < 2:
            set_aside(flagged, first, end, ALONE if count == 1 else ONE_AREA, made)
            continue
        places = np.empty(count, dtype=np.int64)
        for p in range(count):
            places[p] = first + p
        above, waiting = max(0, 2 * largest - count), 0
        line, order = np.empty(count - above, dtype=np.int64), np.arange(runs)
        shuffle_part(order, 0, runs, dice)
        for r in order:
            low, high = run[r] - first, run[r + 1] - first
            shuffle_part(places, low, high, dice)
            if above and high - low == largest:
                for p in range(low, low + above):
                    set_aside(flagged, places[p], places[p] + 1, DOMINATED, made)
                low += above
            for p in range(low, high):
                line[waiting] = places[p]
                waiting += 1
        cycles = max(largest - above, min(waiting // 2, (2 * waiting + length) // (2 * length)), 1)
        send_round(flagged, line, waiting, cycles, made, dice)
    return made


class Lenders(NamedTuple):
    """Units that nobody has flagged, sorted by cell and area.

    Cell c has the areas (runs) from cell[c] to cell[c+1], and run r the places run[r] to run[r+1] of `unit`. Of those,
    left[r] are still to be had.
    """

    unit: Ints
    cell: Ints
    run: Ints
    left: Ints


@kernel
def borrow(cell: Ints, own: Ints, order: Ints, lenders: Lenders, used: Flags, partner: Ints, dice: Dice) -> None:
    """Give each unit, in order, a partner drawn uniformly from the lenders of its cell outside its own run (or -1)."""
    for i in order:
        partner[i] = -1
        a, b = lenders.cell[cell[i]], lenders.cell[cell[i] + 1]
        low, high = lenders.run[a], lenders.run[b]
        outside = np.int64(0)
        for r in range(a, b):
            if r != own[i]:
                outside += lenders.left[r]
        if outside == 0:
            continue
        mine = lenders.run[own[i]] if own[i] >= 0 else high
        after = lenders.run[own[i] + 1] if own[i] >= 0 else high
        found = np.int64(-1)
        for _ in range(TRIES):
            place = low + below(high - low, dice)
            if not used[place] and not mine <= place < after:
                found = place
                break
        if found < 0:
            found = counted_lender(a, b, own[i], below(outside, dice), lenders, used)
        used[found] = True
        for r in range(a, b):
            if found < lenders.run[r + 1]:
                lenders.left[r] -= 1
                break
        partner[i] = lenders.unit[found]


@kernel
def counted_lender(a: Whole, b: Whole, own: Whole, target: Whole, lenders: Lenders, used: Flags) -> Whole:
    """Return the place of the target-th lender that is left in the runs a to b but `own`."""
    for r in range(a, b):
        if r == own:
            continue
        if target >= lenders.left[r]:
            target -= lenders.left[r]
            continue
        for place in range(lenders.run[r], lenders.run[r + 1]):
            if not used[place]:
                if target == 0:
                    return np.int64(place)
                target -= 1
    return np.int64(-1)
