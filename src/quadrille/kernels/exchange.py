"""The short way out of a dead end: two unused records part a pair and each takes one of its records."""

from __future__ import annotations

import numpy as np

from quadrille.kernels.compile import kernel, step
from quadrille.kernels.draw import admissible, group_at, is_used, take
from quadrille.kernels.pool import Dice, Ints, Pool, Whole
from quadrille.kernels.words import below

TRIES = 64
GIVE_UP = 256


@step
def enough_words(dice: Dice) -> bool:
    """Tell whether the words last for another round, rejections included."""
    return dice.cursor[0] + 2 * TRIES < len(dice.words)


@kernel
def part_pairs(pairs: Ints, places: Ints, drawn: Whole, pool: Pool, log: Ints, dice: Dice) -> Whole:
    """Add pairs as long as that goes fast: unused a and b and a pair (c, d) become (a, c) and (b, d).

    `places` holds the places of the records of `pairs`. Returns the number of pairs there are then.
    """
    unused = np.array([place for place in range(pool.start[-1]) if not is_used(place, pool)], dtype=np.int64)
    class_at = np.array([pool.class_of[group_at(place, pool)] for place in unused], dtype=np.int64)
    low = np.searchsorted(class_at, np.arange(len(pool.first)))  # of each class, the first unused record
    left = low[1:] - low[:-1]
    of_pair = np.array([pool.class_of[group_at(places[m, 0], pool)] for m in range(drawn)], dtype=np.int64)
    by_class = np.argsort(of_pair, kind="mergesort")
    first = np.searchsorted(of_pair[by_class], np.arange(len(pool.first)))
    failures = 0
    while drawn < len(pairs) and failures < GIVE_UP and len(unused) and enough_words(dice):
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
    for m in range(drawn):
        pairs[m, 0] = pool.order[places[m, 0]]
        pairs[m, 1] = pool.order[places[m, 1]]
    return drawn
