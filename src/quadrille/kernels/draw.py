"""Drawing pairs at random, one after the other, at a cost in proportion to the records drawn.

Drawing a record exchanges it with the last unused one of its group, and a log of these exchanges puts everything
back, so a draw never depends on earlier draws. The last line of the log holds its length.
"""

# pyright: basic
from __future__ import annotations

import numpy as np

from quadrille.kernels.compile import kernel
from quadrille.kernels.words import below, below_large

NOBODY = (-1, -1)


@kernel
def admissible(g, h, pool):
    """Tell whether records of groups g and h may be paired."""
    types = pool.types
    for c in range(pool.swaps, types.shape[1]):
        if types[g, c] == types[h, c]:
            return False
    if pool.differ == 0:
        return True
    for c in range(pool.swaps):
        equal = types[g, c] == types[h, c]
        if equal and pool.differ == 2:
            return False
        if not equal and pool.differ == 1:
            return True
    return pool.differ == 2


@kernel
def take(place, g, pool, log):
    """Draw the record at a place: move it behind the unused ones of its group and note the exchange."""
    pool.unused[g] -= 1
    last = pool.start[g] + pool.unused[g]
    record = pool.order[place]
    pool.order[place] = pool.order[last]
    pool.order[last] = record
    log[log[-1, 0], 0] = place
    log[log[-1, 0], 1] = g
    log[-1, 0] += 1
    return np.int64(record)


@kernel
def put_back(count, pool, log):
    """Undo the last draws, latest first, until `count` are left."""
    while log[-1, 0] > count:
        log[-1, 0] -= 1
        place, g = log[log[-1, 0]]
        last = pool.start[g] + pool.unused[g]
        record = pool.order[last]
        pool.order[last] = pool.order[place]
        pool.order[place] = record
        pool.unused[g] += 1


@kernel
def partners_left(g, pool):
    """Count the unused records that a record of group g may be paired with."""
    total = np.int64(0)
    for h in range(pool.first[pool.class_of[g]], pool.first[pool.class_of[g] + 1]):
        if pool.unused[h] > 0 and admissible(g, h, pool):
            total += pool.unused[h]
    return total


@kernel
def nth_partner(target, g, pool):
    """Return group and place of the admissible unused record number `target`."""
    for h in range(pool.first[pool.class_of[g]], pool.first[pool.class_of[g] + 1]):
        if pool.unused[h] > 0 and admissible(g, h, pool):
            if target < pool.unused[h]:
                return h, pool.start[h] + target
            target -= pool.unused[h]
    return NOBODY


@kernel
def draw_partner(g, pool, dice):
    """Draw a partner uniformly from the admissible unused records; group -1 when there is none."""
    first, end = pool.first[pool.class_of[g]], pool.first[pool.class_of[g] + 1]
    low, high = pool.start[first], pool.start[end]
    for _ in range(32 + (end - first) // 4):
        place = low + below(high - low, dice)
        h = np.int64(pool.group_of[place])
        if place - pool.start[h] < pool.unused[h] and admissible(g, h, pool):
            return h, place
    total = partners_left(g, pool)
    if total == 0:
        return NOBODY
    return nth_partner(below(total, dice), g, pool)


@kernel
def draw_first(pool, dead, dice):
    """Draw uniformly from the unused records whose group is not known to be dead; group -1 at a dead end."""
    for _ in range(64 + 4 * len(pool.unused)):
        place = below(pool.start[-1], dice)
        g = np.int64(pool.group_of[place])
        if place - pool.start[g] < pool.unused[g] and not dead[g]:
            return g, place
    total = np.int64(0)
    for g in range(len(pool.unused)):
        if not dead[g]:
            total += pool.unused[g]
    if total == 0:
        return NOBODY
    target = below(total, dice)
    for g in range(len(pool.unused)):
        if not dead[g]:
            if target < pool.unused[g]:
                return g, pool.start[g] + target
            target -= pool.unused[g]
    return NOBODY


@kernel
def first_uniform_pair(pool, dead, log, dice):
    """Draw a record uniformly from those that still have a partner, then its partner uniformly."""
    while dice.cursor[1] == 0:
        g, place = draw_first(pool, dead, dice)
        if g < 0:
            return NOBODY
        record = take(place, g, pool, log)
        h, place = draw_partner(g, pool, dice)
        if h >= 0:
            return record, take(place, h, pool, log)
        dead[g] = True
        put_back(log[-1, 0] - 1, pool, log)
    return NOBODY


@kernel
def counted_pair(pool, log, dice):
    """Count all admissible ordered pairs and draw one of them uniformly; -1 when there is none."""
    total = np.int64(0)
    weight = np.zeros(len(pool.unused), dtype=np.int64)
    for g in range(len(pool.unused)):
        if pool.unused[g] > 0:
            partners = partners_left(g, pool)
            if partners > 0 and admissible(g, g, pool):
                partners -= 1
            weight[g] = pool.unused[g] * partners
            total += weight[g]
    if total == 0:
        return NOBODY
    target = below_large(total, dice)
    g = 0
    while target >= weight[g]:
        target -= weight[g]
        g += 1
    record = take(pool.start[g] + below(pool.unused[g], dice), g, pool, log)
    h, place = nth_partner(below(partners_left(g, pool), dice), g, pool)
    return record, take(place, h, pool, log)


@kernel
def pair_uniform_pair(pool, log, dice):
    """Draw a pair uniformly among all admissible pairs of unused records.

    A record of the whole file, then a place in a window as long as the largest class: every admissible ordered pair
    has the same chance, and anything else is rejected. When that takes too long, count and choose.
    """
    for _ in range(pool.patience):
        if dice.cursor[1] == 1:
            return NOBODY
        place = below(pool.start[-1], dice)
        g = np.int64(pool.group_of[place])
        if place - pool.start[g] >= pool.unused[g]:
            continue
        c = pool.class_of[g]
        other = pool.start[pool.first[c]] + below(pool.longest, dice)
        if other >= pool.start[pool.first[c + 1]] or other == place:
            continue
        h = np.int64(pool.group_of[other])
        if other - pool.start[h] < pool.unused[h] and admissible(g, h, pool):
            partner = pool.order[other]
            record = take(place, g, pool, log)
            # drawing the first may have moved the second: the last unused record of a group fills the gap
            return record, take(other if pool.order[other] == partner else place, h, pool, log)
    return counted_pair(pool, log, dice)


@kernel
def draw_pairs(pairs, pair_uniform, pool, log, dice):
    """Fill `pairs` with distinct records; return how many pairs were drawn before a dead end, if any."""
    dead = np.zeros(len(pool.unused), dtype=np.bool_)
    for m in range(len(pairs)):
        if pair_uniform:
            a, b = pair_uniform_pair(pool, log, dice)
        else:
            a, b = first_uniform_pair(pool, dead, log, dice)
        if a < 0:
            return m
        pairs[m, 0] = a
        pairs[m, 1] = b
    return len(pairs)


@kernel
def has_partner(pool):
    """Tell for each group whether its records have any admissible partner in the whole file."""
    found = np.zeros(len(pool.unused), dtype=np.bool_)
    for g in range(len(pool.unused)):
        for h in range(pool.first[pool.class_of[g]], pool.first[pool.class_of[g] + 1]):
            if (h != g or pool.unused[g] > 1) and admissible(g, h, pool):
                found[g] = True
                break
    return found
