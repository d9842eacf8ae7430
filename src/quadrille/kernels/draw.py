"""Drawing pairs at random, one after the other, at a cost in proportion to the records drawn.

A record drawn is marked in a bitmap, and its place noted in a log whose last entry is its length. Putting the
places of the log back leaves the pool as it was, so a draw never depends on earlier draws.

`draw_quickly` draws places at random and rejects what is used or not admissible. When that takes too long
`draw_carefully` goes on from the same state by counting what is left. Both give every choice the same chance, so the
switch from one to the other changes the time and not the distribution. The quick loops call nothing that is not
inlined, which makes them some eight times faster.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadrille.kernels.compile import Flags, Ints, Whole, kernel, step

Words = NDArray[np.uint32]
_LOW, _HIGH = np.uint64(0xFFFFFFFF), np.uint64(32)
"""What multiplies a word gives its upper half; numbers without a sign index arrays in fewer steps."""


class Pool(NamedTuple):
    """Records by class (equal on the `same` columns) and, within class, by group (equal in all that matters).

    Group g owns the places start[g] to start[g+1], and unused[g] of them are still to be drawn; `used` has a bit per
    place. A draw deals with places only: which record stands at one is found afterwards. Class c owns the groups
    first[c] to first[c+1]. `hint[place >> shift]` is a group at or just below the one that owns a place. Columns
    0..swaps-1 of `types` are the swap variables of a group, those up to `decisive` its `different` columns, the rest
    the bits of plausibility rules: of 31 rules each whether the group meets the conditions on what stays, then on what
    moves. `differ` is 0 (none), 1 (any) or 2 (all). `longest` is the size of the largest class; `patience` how often a
    pair is tried for before the admissible ones are counted. `fits` tells for each two groups whether their records may
    be paired, where groups are few; else it is empty.
    """

    start: NDArray[np.int64]
    unused: NDArray[np.int64]
    used: NDArray[np.uint8]
    hint: NDArray[np.int32]
    shift: int
    class_of: NDArray[np.int64]
    first: NDArray[np.int64]
    types: NDArray[np.int32]
    swaps: int
    decisive: int
    differ: int
    longest: int
    patience: int
    fits: NDArray[np.uint8]


class Dice(NamedTuple):
    """Random words; cursor[0] is the next one, cursor[1] turns 1 when they run out."""

    words: NDArray[np.uint32]
    cursor: NDArray[np.int64]


def dice(words: NDArray[np.uint32]) -> Dice:
    """Start reading a stream of words."""
    return Dice(words, np.zeros(2, dtype=np.int64))


@step
def below(n: Whole, dice: Dice) -> Whole:
    """Return a uniform number in 0..n-1, for n up to 2^31, by multiplication with exact rejection."""
    words, cursor = dice
    while cursor[0] < len(words):
        product = np.uint64(words[np.uint64(cursor[0])]) * np.uint64(n)
        cursor[0] += 1
        low = np.int64(product & _LOW)
        if low >= n or low >= np.int64(0x100000000) % n:
            return np.int64(product >> _HIGH)
    cursor[1] = 1
    return np.int64(0)


@kernel
def below_large(n: Whole, dice: Dice) -> Whole:
    """Return a uniform number in 0..n-1, for n up to 2^62, from two words with exact rejection."""
    words, cursor = dice
    whole = np.int64(1) << 62
    while cursor[0] + 1 < len(words):
        value = (np.int64(words[cursor[0]] >> 1) << 31) | np.int64(words[cursor[0] + 1] >> 1)
        cursor[0] += 2
        if value < whole - whole % n:
            return value % n
    cursor[1] = 1
    return np.int64(0)


@kernel
def shuffle(items: Ints, dice: Dice) -> None:
    """Put items in uniformly random order."""
    for i in range(len(items) - 1, 0, -1):
        j = below(i + 1, dice)
        items[i], items[j] = items[j], items[i]


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
    g = np.uint64(pool.hint[np.uint64(place) >> np.uint64(pool.shift)])
    while np.int64(place) >= pool.start[g + np.uint64(1)]:
        g += np.uint64(1)
    return np.int64(g)


@step
def is_used(place: Whole, pool: Pool) -> bool:
    """Tell whether the record at a place is drawn already."""
    return (pool.used[np.uint64(place) >> np.uint64(3)] >> (place & 7)) & 1 == 1


@step
def take(place: Whole, g: Whole, pool: Pool, log: Ints) -> None:
    """Draw the record at a place of group g."""
    pool.unused[np.uint64(g)] -= 1
    pool.used[np.uint64(place) >> np.uint64(3)] |= np.uint8(1 << (place & 7))
    end = np.uint64(len(log) - 1)
    log[np.uint64(log[end])] = place
    log[end] += 1


@kernel
def put_back(count: Whole, pool: Pool, log: Ints) -> None:
    """Undo the last draws until `count` are left."""
    while log[-1] > count:
        log[-1] -= 1
        place = log[log[-1]]
        pool.unused[group_at(place, pool)] += 1
        pool.used[place >> 3] &= np.uint8(~(1 << (place & 7)) & 0xFF)


@kernel
def put_all_back(pool: Pool, log: Ints) -> None:
    """Undo all draws."""
    if len(pool.unused) > log[-1]:
        put_back(0, pool, log)
        return
    for i in range(np.uint64(log[-1])):
        pool.used[np.uint64(log[i]) >> np.uint64(3)] = 0
    for g in range(len(pool.unused)):
        pool.unused[g] = pool.start[g + 1] - pool.start[g]
    log[-1] = 0


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
            fits = pool.fits[np.uint64(g), np.uint64(h)] == 1 if len(pool.fits) else admissible(g, h, pool)
            if fits and not is_used(other, pool):
                take(other, h, pool, log)
                tries = 0
                break
            tries += 1


BATCH = 32


@step
def try_batch(count: Whole, pool: Pool, log: Ints, batch: Words, dice: Dice) -> Whole:
    """Try for pairs with the next words of the stream; return how many tries there were after the last that succeeded.

    The same as so many tries one by one, but which of them are admissible is found without a branch: a processor that
    guesses wrong loses more time than a try takes. Unsigned places need no look at whether they count from the end.
    -1, and no word used, where a word must be rejected or words run out.
    """
    words, cursor = dice
    at, size, longest = np.uint64(cursor[0]), np.uint64(pool.start[-1]), np.uint64(pool.longest)
    if at + np.uint64(2 * BATCH) > np.uint64(len(words)):
        return -1
    found, lowest = np.uint64(0), _LOW
    for k in range(BATCH):
        first = np.uint64(words[at + np.uint64(2 * k)]) * size
        second = np.uint64(words[at + np.uint64(2 * k + 1)]) * longest
        lowest = min(lowest, first & _LOW, second & _LOW)
        place = first >> _HIGH
        g = np.uint64(group_at(place, pool))
        c = np.uint64(pool.class_of[g])
        other = np.uint64(pool.start[np.uint64(pool.first[c])]) + (second >> _HIGH)
        inside = (other < np.uint64(pool.start[np.uint64(pool.first[c + np.uint64(1)])])) & (other != place)
        other = min(other, size - np.uint64(1))
        h = np.uint64(group_at(other, pool))
        batch[0, found], batch[1, found], batch[2, found] = k, place, other
        found += np.uint64(inside) & np.uint64(pool.fits[g, h])
    if lowest < size:  # rarely: this word may have to be rejected
        return -1
    last = -1
    for i in range(found):
        place, other = np.int64(batch[1, i]), np.int64(batch[2, i])
        if not is_used(place, pool) and not is_used(other, pool):
            take(place, group_at(place, pool), pool, log)
            take(other, group_at(other, pool), pool, log)
            last = np.int64(batch[0, i])
            if log[-1] == 2 * count:
                cursor[0] = np.int64(at) + 2 * (last + 1)
                return 0
    cursor[0] = np.int64(at) + 2 * BATCH
    return BATCH - 1 - last


@kernel
def quick_pair_uniform(count: Whole, pool: Pool, log: Ints, batch: Words, dice: Dice) -> None:
    """Draw pairs by rejection: a record of the whole file, then a place in a window as long as the largest class.

    Every admissible ordered pair has the same chance; anything else is rejected.
    """
    size, tries = pool.start[-1], 0
    while log[-1] < 2 * count and tries < pool.patience and dice.cursor[1] == 0:
        if len(pool.fits) and tries + BATCH <= pool.patience:
            skipped = try_batch(count, pool, log, batch, dice)
            if skipped >= 0:
                tries = skipped if skipped < BATCH else tries + BATCH
                continue
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
    batch = np.empty((3, BATCH), dtype=np.uint32)
    while log[-1] < 2 * count and going:
        if pair_uniform:
            quick_pair_uniform(count, pool, log, batch, dice)
            going = log[-1] == 2 * count or careful_pair_uniform(pool, log, dice)
        else:
            quick_first_uniform(count, pool, log, dice)
            going = log[-1] == 2 * count or careful_first_uniform(pool, dead, log, dice)
    return log[-1] // 2


@kernel
def draw_pairs(pairs: Ints, pair_uniform: bool, pool: Pool, log: Ints, dice: Dice) -> Whole:
    """Fill `pairs` with distinct places; return how many pairs were drawn before a dead end, if any."""
    drawn = draw_places(len(pairs), pair_uniform, pool, log, dice)
    for m in range(drawn):
        pairs[m, 0] = log[2 * m]
        pairs[m, 1] = log[2 * m + 1]
    return drawn


@kernel
def take_any(g: Whole, pool: Pool, log: Ints, dice: Dice) -> Whole:
    """Draw a place of a group uniformly from its unused ones."""
    place = unused_in(g, pool, dice)
    take(place, g, pool, log)
    return place


@kernel
def fitting_groups(pool: Pool) -> NDArray[np.uint8]:
    """Tell for each two groups whether their records may be paired."""
    count = len(pool.unused)
    fits = np.zeros((count, count), dtype=np.uint8)
    for g in range(count):
        for h in range(pool.first[pool.class_of[g]], pool.first[pool.class_of[g] + 1]):
            fits[g, h] = admissible(g, h, pool)
    return fits


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


@kernel
def common_base(a: Whole, b: Whole, base: Ints, mate: Ints, parent: Ints) -> Whole:
    """Return the nearest vertex, counted by blossom bases, that both a and b descend from."""
    seen = np.zeros(len(mate), dtype=np.bool_)
    while True:
        a = base[a]
        seen[a] = True
        if mate[a] < 0:
            break
        a = parent[mate[a]]
    while True:
        b = base[b]
        if seen[b]:
            return b
        b = parent[mate[b]]


@kernel
def mark_blossom(v: Whole, top: Whole, child: Whole, base: Ints, mate: Ints, parent: Ints, inside: Flags) -> None:
    """Mark the bases between v and the top of a blossom, and turn the parents round."""
    while base[v] != top:
        inside[base[v]] = True
        inside[base[mate[v]]] = True
        parent[v] = child
        child = mate[v]
        v = parent[mate[v]]


@kernel
def search_from(root: Whole, group: Ints, mate: Ints, parent: Ints, frozen: Flags, pool: Pool) -> Whole:
    """Search an augmenting path from an unmatched vertex; return its other end or -1. `parent` tells the way back.

    What a search without success has reached can be on no augmenting path: it is frozen for the searches after it.
    """
    count = len(group)
    base = np.arange(count)
    reached = np.zeros(count, dtype=np.bool_)
    queue = np.empty(count, dtype=np.int64)
    parent[:] = -1
    reached[root] = True
    queue[0], head, tail = root, 0, 1
    while head < tail:
        v = queue[head]
        head += 1
        for to in range(count):
            if frozen[to] or base[v] == base[to] or mate[v] == to or not admissible(group[v], group[to], pool):
                continue
            if to == root or (mate[to] >= 0 and parent[mate[to]] >= 0):
                top = common_base(v, to, base, mate, parent)
                inside = np.zeros(count, dtype=np.bool_)
                mark_blossom(v, top, to, base, mate, parent, inside)
                mark_blossom(to, top, v, base, mate, parent, inside)
                for i in range(count):
                    if inside[base[i]]:
                        base[i] = top
                        if not reached[i]:
                            reached[i] = True
                            queue[tail] = i
                            tail += 1
            elif parent[to] < 0:
                parent[to] = v
                if mate[to] < 0:
                    return np.int64(to)
                reached[mate[to]] = True
                queue[tail] = mate[to]
                tail += 1
    for v in range(count):
        if reached[v] or parent[v] >= 0:
            frozen[v] = True
    return np.int64(-1)


@kernel
def augment(group: Ints, mate: Ints, pool: Pool) -> bool:
    """Match one pair more if possible: change `mate` along a path and tell whether there was one."""
    parent = np.empty(len(group), dtype=np.int64)
    frozen = np.zeros(len(group), dtype=np.bool_)
    tried = np.zeros(len(pool.unused), dtype=np.bool_)
    for root in range(len(group)):
        if mate[root] >= 0 or frozen[root] or tried[group[root]]:
            continue
        tried[group[root]] = True
        v = search_from(root, group, mate, parent, frozen, pool)
        if v >= 0:
            while v >= 0:
                before = parent[v]
                after = mate[before]
                mate[v] = before
                mate[before] = v
                v = after
            return True
    return False


TRIES = 64
GIVE_UP = 256


@step
def enough_words(dice: Dice) -> bool:
    """Tell whether the words last for another round, rejections included."""
    return dice.cursor[0] + 2 * TRIES < len(dice.words)


@kernel
def part_pairs(places: Ints, drawn: Whole, pool: Pool, log: Ints, dice: Dice) -> Whole:
    """Add pairs as long as that goes fast: unused a and b and a pair (c, d) become (a, c) and (b, d).

    Returns the number of pairs there are then.
    """
    unused = np.array([place for place in range(pool.start[-1]) if not is_used(place, pool)], dtype=np.int64)
    class_at = np.array([pool.class_of[group_at(place, pool)] for place in unused], dtype=np.int64)
    low = np.searchsorted(class_at, np.arange(len(pool.first)))  # of each class, the first unused record
    left = low[1:] - low[:-1]
    of_pair = np.array([pool.class_of[group_at(places[m, 0], pool)] for m in range(drawn)], dtype=np.int64)
    by_class = np.argsort(of_pair, kind="mergesort")
    first = np.searchsorted(of_pair[by_class], np.arange(len(pool.first)))
    failures = 0
    while drawn < len(places) and failures < GIVE_UP and len(unused) and enough_words(dice):
        i = below(len(unused), dice)
        c = class_at[i]
        failures += 1
        if i - low[c] >= left[c] or left[c] < 2 or first[c + 1] == first[c]:
            continue
        j = low[c] + below(left[c], dice)
        if i == j:
            continue
        a, b = unused[i], unused[j]
        for _ in range(TRIES):
            m = by_class[first[c] + below(first[c + 1] - first[c], dice)]
            p, q = places[m]
            if admissible(group_at(a, pool), group_at(p, pool), pool) and admissible(
                group_at(b, pool), group_at(q, pool), pool
            ):
                take(a, group_at(a, pool), pool, log)
                take(b, group_at(b, pool), pool, log)
                places[m, 1] = a
                places[drawn] = b, q
                drawn += 1
                failures = 0
                for gone in (max(i, j), min(i, j)):  # the last unused record of the class fills the gap
                    left[c] -= 1
                    unused[gone] = unused[low[c] + left[c]]
                break
    return drawn


@step
def slot_of(place: Whole, at: Ints) -> Whole:
    """Return the slot of a place in a table of displaced places: its own, or the free one where it would stand."""
    mask = len(at) - 1
    slot = ((np.int64(place) * np.int64(0x9E3779B1)) >> 15) & mask  # places are below 2^31: no overflow
    while at[slot] >= 0 and at[slot] != place:
        slot = (slot + 1) & mask
    return slot


@kernel
def choose(start: Ints, count: Ints, dice: Dice, chosen: Ints) -> None:
    """Choose count[b] of the places of each block, one block after the other, uniformly and in random order.

    Block b owns the places start[b] to start[b+1]. This is the shuffle of Fisher and Yates, stopped when enough are
    chosen: only places that are not where they were at first are remembered, in a table found by hashing.
    """
    largest = 0
    for b in range(len(count)):
        largest = max(largest, count[b])
    size = 64
    while size < 2 * largest:
        size *= 2
    at, value = np.full(size, -1, dtype=np.int64), np.empty(size, dtype=np.int64)
    used = np.empty(largest, dtype=np.int64)
    done = 0
    for b in range(len(count)):
        low, width = start[b], start[b + 1] - start[b]
        for i in range(count[b]):
            other = i + below(width - i, dice)
            mine = slot_of(i, at)
            first = value[mine] if at[mine] == i else np.int64(i)
            slot = slot_of(other, at)
            chosen[done + i] = low + (value[slot] if at[slot] == other else other)
            at[slot] = other
            value[slot] = first
            used[i] = slot
        for i in range(count[b]):
            at[used[i]] = -1
        done += count[b]


@kernel
def derange(places: Ints, count: Ints, dice: Dice) -> None:
    """Permute the places of each class uniformly among the permutations that leave none where it is.

    Uniform permutations are drawn until one has no fixed point, and given up at the first fixed point. A shuffle is
    uniform whatever it starts from, so a new attempt goes on from the order that the last one left.
    """
    low = 0
    for c in range(len(count)):
        size, i = count[c], count[c] - 1
        for k in range(size):
            places[low + k] = low + k
        while size > 1 and i >= 0 and dice.cursor[1] == 0:
            j = below(i + 1, dice)
            places[low + i], places[low + j] = places[low + j], places[low + i]
            i = size - 1 if places[low + i] == low + i else i - 1
        low += size


@kernel
def select(words: Words, start: Ints, size: Ints, threshold: Ints, state: Ints, chosen: Ints, count: Ints) -> None:
    """Go on selecting places of stratum after stratum: a place is selected if its word is below the threshold.

    A stratum of which one place is selected is drawn again. Stratum m owns `size[m]` places from start[m] on. `state`
    is where the draw has got to: stratum, place within it, places selected, those of strata that are done, and strata
    with selected places, whose numbers are in `count`. `chosen` needs room for a place per word and one more.
    """
    m, i, selected, done, full = state
    at = 0
    while at < len(words) and m < len(size):
        below, base = threshold[m], start[m] + i
        step = min(size[m] - i, len(words) - at)
        for j in range(step):  # without a branch, which a processor would guess wrong
            chosen[selected] = base + j
            selected += np.int64(np.int64(words[at + j]) < below)
        at += step
        i += step
        if i < size[m]:
            break
        i = 0
        if selected - done == 1:
            selected = done
            continue
        if selected > done:
            count[full] = selected - done
            full += 1
            done = selected
        m += 1
    state[:] = m, i, selected, done, full
