"""Ranks and pairs of ranks: a stable radix sort of numbers, ties in random order, and three ways to pair upwards.

A rank is a place in `order`, which lists the rows of each class in ascending order of their values. Ranks are taken in
turn; each that is still free looks for a partner above it. `skip[r] == r` says that rank r is free; of a rank that is
taken, `skip` points towards the next free one, by paths that shorten themselves.

A partner is tried for at random first. When that fails too often the free ranks are counted instead, which gives every
one of them the same chance, so the switch changes the time and not the distribution.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadrille.kernels.compile import Floats, Ints, Whole, kernel, no_alloc, step
from quadrille.kernels.controlled import Edits, spoils
from quadrille.kernels.draw import Dice, below

Keys = NDArray[np.uint64]
Order = NDArray[np.int32]

DIGIT = 13
DIGITS = 5
"""Numbers are sorted by five digits of 13 bits; a digit that is the same in all of them is left out."""

QUICK_TRIES, TRIES = 8, 64
FAR_TRIES = 256
NOBODY = -1


@kernel
def keys_of(values: Floats) -> Keys:
    """Return whole numbers in the order of the numbers; 0.0 and -0.0 are the same."""
    bits = (values + 0.0).view(np.uint64)  # -0.0 + 0.0 is 0.0
    top = np.uint64(1) << np.uint64(63)
    keys = np.empty(len(bits), dtype=np.uint64)
    for i in range(len(bits)):
        keys[i] = ~bits[i] if bits[i] & top else bits[i] | top
    return keys


@kernel
def sort_keys(keys: Keys) -> tuple[Keys, Order]:
    """Return the keys in ascending order and where each has been; equal ones stay in their order."""
    n, base = len(keys), 1 << DIGIT
    mask, width = np.uint64(base - 1), np.uint64(DIGIT)
    counts = np.zeros((DIGITS, base), dtype=np.int64)
    for i in range(n):
        key = keys[i]
        for d in range(DIGITS):
            counts[d, key & mask] += 1
            key >>= width
    order, spare = np.arange(n).astype(np.int32), np.empty(n, dtype=np.int32)
    now, later = keys.copy(), np.empty(n, dtype=np.uint64)
    for d in range(DIGITS):
        shift = np.uint64(d * DIGIT)
        if n == 0 or counts[d, (now[0] >> shift) & mask] == n:
            continue
        place = np.cumsum(counts[d]) - counts[d]
        for i in range(n):
            digit = (now[i] >> shift) & mask
            later[place[digit]] = now[i]
            spare[place[digit]] = order[i]
            place[digit] += 1
        now, later = later, now
        order, spare = spare, order
    return now, order


@kernel
def runs_end(keys: Keys, start: Ints) -> Order:
    """Return for each rank the first one above it whose key is another, or the end of its class."""
    ends = np.empty(len(keys), dtype=np.int32)
    for c in range(len(start) - 1):
        end = start[c + 1]
        for i in range(start[c + 1] - 1, start[c] - 1, -1):
            if i + 1 < start[c + 1] and keys[i] != keys[i + 1]:
                end = i + 1
            ends[i] = end
    return ends


@kernel
def shuffle_ties(order: Order, ends: Order, dice: Dice) -> None:
    """Put rows of equal values in uniformly random order."""
    first = 0
    while first < len(order):
        end = np.int64(ends[first])
        for i in range(end - 1, first, -1):
            j = first + below(i - first + 1, dice)
            order[i], order[j] = order[j], order[i]
        first = end


@kernel
def reach_by_weight(order: Order, start: Ints, ticks: Ints, limit: Ints) -> Order:
    """Return the highest rank that a weighted window takes in: the ticks above the own rank are at most the limit."""
    reach = np.empty(len(order), dtype=np.int32)
    for c in range(len(start) - 1):
        last, within = start[c], np.int64(0)
        for i in range(start[c], start[c + 1]):
            last = max(last, i)
            while last + 1 < start[c + 1] and within + ticks[order[last + 1]] <= limit[c]:
                last += 1
                within += ticks[order[last]]
            reach[i] = last
            if last > i:
                within -= ticks[order[i + 1]]
    return reach


class Ladder(NamedTuple):
    """Ranks to be paired: class c owns those from start[c] to start[c+1], and low[c] to high[c] take part.

    Where `ends` is not empty a partner must have another value: that of rank i is at least ends[i]. Where `alike` is
    not empty, rows that are equal in it may not be paired. `edits` tell which pairs the plausibility rules exclude.
    """

    order: Order
    start: Ints
    low: Ints
    high: Ints
    ends: Order
    alike: Ints
    edits: Edits


@step
def fits(i: Whole, j: Whole, ladder: Ladder) -> bool:
    """Tell whether the rows at two ranks may exchange their values."""
    a, b = ladder.order[i], ladder.order[j]
    if len(ladder.alike) and ladder.alike[a] == ladder.alike[b]:
        return False
    return not spoils(a, b, ladder.edits)


class Free(NamedTuple):
    """Which ranks are free: pointers towards the next one; and a tree of their numbers, where it is needed.

    tree[k] is the number of free ranks among the 2^t before rank k, 2^t the largest power of two that divides k.
    """

    skip: Order
    tree: Order


@kernel
def all_free(ladder: Ladder) -> Free:
    """Return the state in which every rank is free, and an end that always is."""
    ranks = len(ladder.order)
    counted = len(ladder.ends) > 0 and plain(ladder)
    tree = np.arange(ranks + 1 if counted else 0).astype(np.int32)
    for k in range(1, len(tree)):
        tree[k] = k & -k
    return Free(np.arange(ranks + 1).astype(np.int32), tree)


@step
def next_free(rank: Whole, skip: Order) -> Whole:
    """Return the first free rank from here on."""
    while skip[rank] != rank:
        skip[rank] = skip[skip[rank]]
        rank = np.int64(skip[rank])
    return rank


@step
def plain(ladder: Ladder) -> bool:
    """Tell whether rows need not be looked at: there are no rules, and no values to compare."""
    return len(ladder.alike) == 0 and ladder.edits.stay.shape[1] == 0


@step
def free_before(rank: Whole, tree: Order) -> Whole:
    """Count the free ranks below this one."""
    count = np.int64(0)
    while rank > 0:
        count += tree[rank]
        rank &= rank - 1
    return count


@step
def free_number(target: Whole, tree: Order) -> Whole:
    """Return the free rank that has `target` free ones below it."""
    rank, jump = np.int64(0), np.int64(1)
    while 2 * jump < len(tree):
        jump *= 2
    while jump > 0:
        if rank + jump < len(tree) and tree[rank + jump] <= target:
            rank += jump
            target -= tree[rank]
        jump >>= 1
    return rank


@step
def take(rank: Whole, free: Free) -> None:
    """Mark a rank as taken."""
    free.skip[rank] = rank + 1
    k = rank + 1
    while k < len(free.tree):
        free.tree[k] -= 1
        k += k & -k


@no_alloc
def walk(i: Whole, first: Whole, last: Whole, ladder: Ladder, skip: Order, most: Whole) -> tuple[Whole, Whole]:
    """Count the free ranks from first to last that rank i may be paired with, up to `most`, and say where it ends."""
    found, place, j = np.int64(0), np.int64(NOBODY), next_free(first, skip)
    while j <= last and found < most:
        if fits(i, j, ladder):
            found, place = found + 1, np.int64(j)
        j = next_free(j + 1, skip)
    return found, place


@no_alloc
def pick(i: Whole, first: Whole, last: Whole, ladder: Ladder, free: Free, dice: Dice) -> Whole:
    """Choose uniformly among the free ranks from first to last that rank i may be paired with; -1 if there is none."""
    if first > last or next_free(first, free.skip) > last:
        return np.int64(NOBODY)
    if len(free.tree):
        below_first = free_before(first, free.tree)
        return free_number(below_first + below(free_before(last + 1, free.tree) - below_first, dice), free.tree)
    for _ in range(TRIES):
        j = first + below(last - first + 1, dice)
        if free.skip[j] == j and fits(i, j, ladder):
            return np.int64(j)
    found = walk(i, first, last, ladder, free.skip, last - first + 1)[0]
    if found == 0:
        return np.int64(NOBODY)
    return walk(i, first, last, ladder, free.skip, below(found, dice) + 1)[1]


@step
def try_some(i: Whole, first: Whole, last: Whole, ladder: Ladder, skip: Order, dice: Dice) -> Whole:
    """Try a few ranks from first to last at random; -1 if none of those tried may be paired with rank i."""
    if first <= last:
        for _ in range(QUICK_TRIES):
            j = first + below(last - first + 1, dice)
            if skip[j] == j and fits(i, j, ladder):
                return np.int64(j)
    return np.int64(NOBODY)


@step
def first_above(i: Whole, ladder: Ladder) -> Whole:
    """Return the lowest rank that may be the partner of rank i."""
    return np.int64(ladder.ends[i]) if len(ladder.ends) else i + 1


@step
def note_pair(i: Whole, j: Whole, count: Whole, pairs: Ints, free: Free) -> Whole:
    """Write down a pair of ranks and take both."""
    take(i, free)
    take(j, free)
    pairs[count, 0], pairs[count, 1] = i, j
    return count + 1


@kernel
def pair_in_window(ladder: Ladder, width: Ints, reach: Order, pairs: Ints, dice: Dice) -> Whole:
    """Pair ranks that are at most `width` apart, or as far as `reach` where it is not empty; return how many pairs."""
    free, count = all_free(ladder), 0
    for c in range(len(ladder.low)):
        top = ladder.high[c] - 1
        for i in range(ladder.low[c], ladder.high[c]):
            if free.skip[i] != i or dice.cursor[1]:
                continue
            last = min(np.int64(reach[i]) if len(reach) else i + width[c], top)
            first = first_above(i, ladder)
            partner = try_some(i, first, last, ladder, free.skip, dice)
            if partner < 0:
                partner = pick(i, first, last, ladder, free, dice)
            if partner >= 0:
                count = note_pair(i, partner, count, pairs, free)
    return count


@step
def bucket_start(bucket: Whole, ranks: Whole, buckets: Whole) -> Whole:
    """Return the first of the ranks r, from 0 on, whose bucket floor(r buckets / ranks) is this one or a later one."""
    return -((-bucket * ranks) // buckets)


@step
def halvings(dice: Dice) -> Whole:
    """Return 0 with chance 1/2, 1 with chance 1/4, and so on."""
    count = np.int64(0)
    while dice.cursor[0] < len(dice.words):
        word = dice.words[dice.cursor[0]]
        dice.cursor[0] += 1
        for bit in range(32):
            if (word >> np.uint32(bit)) & np.uint32(1):
                return count + bit
        count += 32
    dice.cursor[1] = 1
    return count


@step
def span(i: Whole, bucket: Whole, c: Whole, buckets: Whole, ladder: Ladder) -> tuple[Whole, Whole]:
    """Return the first and the last rank of a bucket that may be partners of rank i; none beyond the last bucket."""
    low, ranks = ladder.low[c], ladder.high[c] - ladder.low[c]
    if bucket >= buckets:
        return np.int64(0), np.int64(-1)
    first = max(first_above(i, ladder), low + bucket_start(bucket, ranks, buckets))
    return first, low + bucket_start(bucket + 1, ranks, buckets) - 1


@no_alloc
def first_bucket(i: Whole, bucket: Whole, c: Whole, buckets: Whole, ladder: Ladder, free: Free) -> Whole:
    """Return the first bucket, from this one on, that holds a partner of rank i; the number of buckets if none does."""
    while bucket < buckets:
        first, last = span(i, bucket, c, buckets, ladder)
        if first <= last and walk(i, first, last, ladder, free.skip, 1)[0]:
            return bucket
        bucket += 1
    return buckets


@kernel
def pair_by_buckets(ladder: Ladder, buckets: Ints, pairs: Ints, dice: Dice) -> Whole:
    """Pair each rank in a bucket whose chance halves from one to the next; return how many pairs."""
    free, count = all_free(ladder), 0
    for c in range(len(ladder.low)):
        low, ranks = ladder.low[c], ladder.high[c] - ladder.low[c]
        for i in range(ladder.low[c], ladder.high[c]):
            if free.skip[i] != i or dice.cursor[1]:
                continue
            nearest = next_free(first_above(i, ladder), free.skip)
            if nearest >= ladder.high[c]:
                continue
            # Buckets below that of the nearest rank hold nobody: without them the chances are in the same proportions.
            base, partner = (nearest - low) * buckets[c] // ranks, np.int64(NOBODY)
            tries = 0
            while partner < 0 and base < buckets[c] and dice.cursor[1] == 0:
                if tries == TRIES:
                    base = first_bucket(i, base, c, buckets[c], ladder, free)
                tries += 1
                first, last = span(i, base + halvings(dice), c, buckets[c], ladder)
                partner = try_some(i, first, last, ladder, free.skip, dice)
                if partner < 0:  # a bucket that holds a partner gives one, however few it holds
                    partner = pick(i, first, last, ladder, free, dice)
            if partner >= 0:
                count = note_pair(i, partner, count, pairs, free)
    return count


@step
def ones(word: Whole) -> Whole:
    """Count the one-bits of a word."""
    word = np.uint32(word)
    word = word - ((word >> np.uint32(1)) & np.uint32(0x55555555))
    word = (word & np.uint32(0x33333333)) + ((word >> np.uint32(2)) & np.uint32(0x33333333))
    word = (word + (word >> np.uint32(4))) & np.uint32(0x0F0F0F0F)
    return np.int64((np.uint64(word) * np.uint64(0x01010101) >> np.uint64(24)) & np.uint64(0xFF))


@step
def nearly_normal(dice: Dice) -> float:
    """Return a number whose distribution function is within .0007 of the normal one, the same on every machine.

    The one-bits of four words, of mean 64 and variance 32, are spread evenly by a fifth word, which adds 1/12.
    """
    words, cursor = dice
    if cursor[0] + 5 > len(words):
        cursor[1] = 1
        return 0.0
    bits = np.int64(0)
    for k in range(4):
        bits += ones(words[cursor[0] + k])
    spread = (np.float64(words[cursor[0] + 4]) + 0.5) / 4294967296.0 - 0.5
    cursor[0] += 5
    return (np.float64(bits - 64) + spread) / np.sqrt(32.0 + 1.0 / 12.0)


@kernel
def pair_by_shift(ladder: Ladder, window: Whole, pairs: Ints, dice: Dice) -> Whole:
    """Pair each rank with one at a normal distance, of mean and deviation half a window; return how many pairs."""
    free, count = all_free(ladder), 0
    for c in range(len(ladder.low)):
        ranks, top = np.float64(ladder.start[c + 1] - ladder.start[c]), ladder.high[c] - 1
        for i in range(ladder.low[c], ladder.high[c]):
            if free.skip[i] != i or dice.cursor[1]:
                continue
            first = first_above(i, ladder)
            if first > top or next_free(first, free.skip) > top:
                continue
            partner = np.int64(NOBODY)
            for _ in range(FAR_TRIES):
                j = i + np.int64(np.ceil(ranks * window * (1.0 + nearly_normal(dice)) / 2.0))
                if first <= j <= top and free.skip[j] == j and fits(i, j, ladder):
                    partner = j
                    break
            if partner < 0:
                partner = pick(i, first, top, ladder, free, dice)
            if partner >= 0:
                count = note_pair(i, partner, count, pairs, free)
    return count


_SURE = 1.0 - 1e-12


@kernel
def mean_square_distance(ranks: Whole, width: Whole) -> float:
    """Return the expected squared distance in ranks, a left-over one counting 0, when chances are as expected.

    With v(j) the chance that rank j is still free when it is rank i's turn, each free rank of the window is taken with
    chance v(i) / sum v. The sums of v, d v and d^2 v over the window go along with i.
    """
    above = np.zeros(ranks + 1)  # sum of -log(1 - chance to be taken) before each turn
    total = min(width, ranks - 1)
    s0, s1, s2 = np.float64(total), 0.0, 0.0
    for d in range(1, total + 1):
        s1 += d
        s2 += np.float64(d) * d
    square = 0.0
    for i in range(ranks - 1):
        free = np.exp(above[max(0, i - width)] - above[i])
        chance = min(free / s0, _SURE) if s0 > 0 else _SURE
        square += min(free, s0) * s2 / s0 if s0 > 0 else 0.0
        above[i + 1] = above[i] - np.log1p(-chance)
        # The next rank leaves the window, distances fall by one, and a rank that nobody has looked at comes in.
        gone = np.exp(above[max(0, i + 1 - width)] - above[i + 1])
        s0, s1, s2 = s0 * (1 - chance), s1 * (1 - chance), s2 * (1 - chance)
        s0, s1, s2 = s0 - gone, s1 - s0, s2 - 2 * s1 + s0
        if i + 1 + width < ranks:
            s0, s1, s2 = s0 + 1.0, s1 + width, s2 + np.float64(width) * width
        s0, s1, s2 = max(s0, 0.0), max(s1, 0.0), max(s2, 0.0)
    return 2 * square / ranks


@kernel
def compare_pairs(held: Floats, pairs: Ints) -> tuple[Whole, float, float]:
    """Return how many pairs hold two values, the sum of their squared differences, and the spread of all values.

    Both sums are in units of the largest value, so that none is too large; the spread is 0 where a value is infinite.
    """
    scale, total = 0.0, 0.0
    for i in range(len(held)):
        scale = max(scale, float(abs(held[i])))
    unlike, squares, spread = np.int64(0), 0.0, 0.0
    for k in range(len(pairs)):
        unlike += held[pairs[k, 0]] != held[pairs[k, 1]]
    if scale == 0.0 or np.isinf(scale):
        return unlike, 0.0, 0.0
    for i in range(len(held)):
        total += held[i] / scale
    mean = total / len(held)
    for i in range(len(held)):
        spread += (held[i] / scale - mean) ** 2
    for k in range(len(pairs)):
        squares += (held[pairs[k, 0]] / scale - held[pairs[k, 1]] / scale) ** 2
    return unlike, squares, spread
