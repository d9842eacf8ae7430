"""Cycles between areas: the flagged units of a cell send their areas round, and those left over borrow a partner."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from quadrille.kernels.compile import Flags, Ints, Whole, kernel
from quadrille.kernels.draw import Dice, below

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
