"""Drawing pairs at random, one after the other, at a cost in proportion to the records drawn.

A record drawn is marked in a bitmap, and its place noted in a log whose last entry is its length. Putting the
places of the log back leaves the pool as it was, so a draw never depends on earlier draws.

`draw_quickly` draws places at random and rejects what is used or not admissible. When that takes too long
`draw_carefully` goes on from the same state by counting what is left. Both give every choice the same chance, so the
switch from one to the other changes the time and not the distribution. The quick loops call nothing that is not
inlined, which makes them some eight times faster.
"""

from __future__ import annotations

import numpy as np

from quadrille.kernels.compile import kernel, step
from quadrille.kernels.pool import Dice, Flags, Ints, Pool, Whole
from quadrille.kernels.words import below, below_large

NOBODY = (-1, -1)


@step
def admissible(g: Whole, h: Whole, pool: Pool) -> bool:
    """Tell whether records of groups g and h may be paired."""
    types = pool.types
    for c in range(pool.swaps, pool.decisive):
        if types[g, c] == types[h, c]:
            return False
    for c in range(pool.decisive, types.shape[1], 2):  # does a rule hold with the other's values, and not with its own?
        if types[g, c] & types[h, c + 1] & ~types[g, c + 1] | types[h, c] & types[g, c + 1] & ~types[h, c + 1]:
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


@step
def group_at(place: Whole, pool: Pool) -> Whole:
    """Return the group that owns a place."""
    g = np.int64(pool.hint[place >> pool.shift])
    while place >= pool.start[g + 1]:
        g += 1
    return g


@step
def is_used(place: Whole, pool: Pool) -> bool:
    """Tell whether the record at a place is drawn already."""
    return (pool.used[place >> 3] >> (place & 7)) & 1 == 1


@step
def take(place: Whole, g: Whole, pool: Pool, log: Ints) -> None:
    """Draw the record at a place of group g."""
    pool.unused[g] -= 1
    pool.used[place >> 3] |= np.uint8(1 << (place & 7))
    log[log[-1]] = place
    log[-1] += 1


@kernel
def put_back(count: Whole, pool: Pool, log: Ints) -> None:
    """Undo the last draws until `count` are left."""
    while log[-1] > count:
        log[-1] -= 1
        place = log[log[-1]]
        pool.unused[group_at(place, pool)] += 1
        pool.used[place >> 3] &= np.uint8(~(1 << (place & 7)) & 0xFF)


@kernel
def unused_in(g: Whole, pool: Pool, dice: Dice) -> Whole:
    """Choose uniformly among the unused places of a group that has some."""
    low, size = pool.start[g], pool.start[g + 1] - pool.start[g]
    for _ in range(64):
        place = low + below(size, dice)
        if not is_used(place, pool):
            return place
    target = below(pool.unused[g], dice)
    for place in range(low, low + size):
        if not is_used(place, pool):
            if target == 0:
                return place
            target -= 1
    return low


@kernel
def partners_left(g: Whole, pool: Pool) -> Whole:
    """Count the unused records that a record of group g may be paired with."""
    total = np.int64(0)
    for h in range(pool.first[pool.class_of[g]], pool.first[pool.class_of[g] + 1]):
        if pool.unused[h] > 0 and admissible(g, h, pool):
            total += pool.unused[h]
    return total


@kernel
def counted_partner(g: Whole, pool: Pool, dice: Dice) -> tuple[Whole, Whole]:
    """Count the admissible unused records and choose one uniformly; -1 when there is none."""
    total = partners_left(g, pool)
    if total == 0:
        return NOBODY
    target = below(total, dice)
    for h in range(pool.first[pool.class_of[g]], pool.first[pool.class_of[g] + 1]):
        if pool.unused[h] > 0 and admissible(g, h, pool):
            if target < pool.unused[h]:
                return h, unused_in(h, pool, dice)
            target -= pool.unused[h]
    return NOBODY


@kernel
def counted_first(pool: Pool, dead: Flags, dice: Dice) -> tuple[Whole, Whole]:
    """Choose uniformly from the unused records whose group is not known to be dead; -1 at a dead end."""
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
                return g, unused_in(g, pool, dice)
            target -= pool.unused[g]
    return NOBODY


@kernel
def careful_first_uniform(pool: Pool, dead: Flags, log: Ints, dice: Dice) -> bool:
    """Complete the pair begun, or draw one: a record from those that still have a partner, then its partner."""
    while dice.cursor[1] == 0:
        if log[-1] % 2 == 0:
            g, place = counted_first(pool, dead, dice)
            if g < 0:
                return False
            take(place, g, pool, log)
        g = group_at(log[log[-1] - 1], pool)
        h, other = counted_partner(g, pool, dice)
        if h >= 0:
            take(other, h, pool, log)
            return True
        dead[g] = True
        put_back(log[-1] - 1, pool, log)
    return False


@kernel
def careful_pair_uniform(pool: Pool, log: Ints, dice: Dice) -> bool:
    """Count all admissible ordered pairs and draw one of them uniformly; False when there is none."""
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
        return False
    target = below_large(total, dice)
    g = 0
    while target >= weight[g]:
        target -= weight[g]
        g += 1
    take(unused_in(g, pool, dice), g, pool, log)
    h, other = counted_partner(g, pool, dice)
    take(other, h, pool, log)
    return True


@kernel
def quick_first_uniform(count: Whole, pool: Pool, log: Ints, dice: Dice) -> None:
    """Draw records and their partners by rejection, as long as that goes fast."""
    size, tries = pool.start[-1], 0
    while log[-1] < 2 * count and tries < pool.patience and dice.cursor[1] == 0:
        place = below(size, dice)
        tries += 1
        if is_used(place, pool):
            continue
        g = group_at(place, pool)
        first, end = pool.first[pool.class_of[g]], pool.first[pool.class_of[g] + 1]
        low, width = pool.start[first], pool.start[end] - pool.start[first]
        take(place, g, pool, log)
        tries = 0
        while tries < pool.patience:
            other = low + below(width, dice)
            h = group_at(other, pool)
            if admissible(g, h, pool) and not is_used(other, pool):
                take(other, h, pool, log)
                tries = 0
                break
            tries += 1


@kernel
def quick_pair_uniform(count: Whole, pool: Pool, log: Ints, dice: Dice) -> None:
    """Draw pairs by rejection: a record of the whole file, then a place in a window as long as the largest class.

    Every admissible ordered pair has the same chance; anything else is rejected.
    """
    size, tries = pool.start[-1], 0
    while log[-1] < 2 * count and tries < pool.patience and dice.cursor[1] == 0:
        tries += 1
        place = below(size, dice)
        g = group_at(place, pool)
        c = pool.class_of[g]
        other = pool.start[pool.first[c]] + below(pool.longest, dice)
        if other >= pool.start[pool.first[c + 1]] or other == place:
            continue
        h = group_at(other, pool)
        if admissible(g, h, pool) and not is_used(place, pool) and not is_used(other, pool):
            take(place, g, pool, log)
            take(other, h, pool, log)
            tries = 0


@kernel
def draw_places(count: Whole, pair_uniform: bool, pool: Pool, log: Ints, dice: Dice) -> Whole:
    """Write the places of `count` pairs to the log; return how many pairs were drawn before a dead end, if any."""
    going = True
    dead = np.zeros(len(pool.unused), dtype=np.bool_)
    while log[-1] < 2 * count and going:
        if pair_uniform:
            quick_pair_uniform(count, pool, log, dice)
            going = log[-1] == 2 * count or careful_pair_uniform(pool, log, dice)
        else:
            quick_first_uniform(count, pool, log, dice)
            going = log[-1] == 2 * count or careful_first_uniform(pool, dead, log, dice)
    return log[-1] // 2


@kernel
def draw_pairs(pairs: Ints, pair_uniform: bool, pool: Pool, log: Ints, dice: Dice) -> Whole:
    """Fill `pairs` with distinct records; return how many pairs were drawn before a dead end, if any."""
    drawn = draw_places(len(pairs), pair_uniform, pool, log, dice)
    for m in range(drawn):
        pairs[m, 0] = pool.order[log[2 * m]]
        pairs[m, 1] = pool.order[log[2 * m + 1]]
    return drawn


@kernel
def take_any(g: Whole, pool: Pool, log: Ints, dice: Dice) -> Whole:
    """Draw a record of a group uniformly from its unused ones."""
    place = unused_in(g, pool, dice)
    take(place, g, pool, log)
    return np.int64(pool.order[place])


@kernel
def has_partner(pool: Pool) -> Flags:
    """Tell for each group whether its records have any admissible partner in the whole file."""
    found = np.zeros(len(pool.unused), dtype=np.bool_)
    for g in range(len(pool.unused)):
        for h in range(pool.first[pool.class_of[g]], pool.first[pool.class_of[g] + 1]):
            if (h != g or pool.unused[g] > 1) and admissible(g, h, pool):
                found[g] = True
                break
    return found
