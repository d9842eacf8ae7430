"""Columns of codes: keys of combinations, chunk by chunk; which row stands at a place; hashes of values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quadrille.kernels.compile import Ints, Whole, kernel, step

Codes = NDArray[Any]
Groups = NDArray[np.int32]


@kernel
def add_codes(codes: Codes, stride: Whole, keys: Ints) -> None:
    """Add a column's part to the keys of some rows."""
    for i in range(len(keys)):
        keys[i] += np.int64(codes[i]) * stride


@kernel
def count_keys(keys: Ints, count: Groups) -> None:
    """Count the rows of every key; those with a negative one are left out."""
    for i in range(len(keys)):
        if keys[i] >= 0:
            count[keys[i]] += 1


@kernel
def count_codes(codes: Codes, count: Ints) -> None:
    """Count the rows of every code."""
    for i in range(len(codes)):
        count[codes[i]] += 1


@kernel
def runs(keys: Ints, distinct: Ints, count: Ints) -> Whole:
    """Return how many different keys there are in sorted ones; list and count them, where there is room for that."""
    found = 0
    for i in range(len(keys)):
        if i == 0 or keys[i] != keys[i - 1]:
            if found < len(distinct):
                distinct[found] = keys[i]
                count[found] = 0
            found += 1
        if found <= len(distinct):
            count[found - 1] += 1
    return found


@kernel
def first_rows(keys: Ints, group: Groups, row: Whole, first: Ints) -> Whole:
    """Note the first row of each group that has none so far; return how many groups have got one.

    `row` is that of the first key, `group` the group of every key, -1 outside.
    """
    found = 0
    for i in range(len(keys)):
        g = group[keys[i]]
        if g >= 0 and first[g] < 0:
            first[g] = row + i
            found += 1
    return found


@kernel
def put_rows(keys: Ints, group: Groups, row: Whole, place: Ints, order: NDArray[np.int32]) -> None:
    """Put rows at the next places of their groups: `place[g]` moves on by one for each."""
    for i in range(len(keys)):
        g = group[keys[i]]
        if g >= 0:
            order[place[g]] = row + i
            place[g] += 1


@kernel
def find_rows(keys: Ints, group: Groups, row: Whole, place: Ints, next_wanted: Ints, places: Ints, rows: Ints) -> None:
    """Find the rows at some sorted places, without putting all rows in order.

    `place[g]` is where the next row of group g stands, and `next_wanted[g]` points at the first of its places in
    `places` that has not come yet; a place may be wanted repeatedly.
    """
    for i in range(len(keys)):
        g = group[keys[i]]
        if g < 0:
            continue
        at = next_wanted[g]
        while at < len(places) and places[at] == place[g]:
            rows[at] = row + i
            at += 1
        next_wanted[g] = at
        place[g] += 1


@step
def mix(x: Whole) -> Whole:
    """Scramble 64 bits so that every input bit reaches every output bit (two multiply-shift rounds)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def hash_rows(values: Codes, first: Whole, salt: Whole) -> Whole:
    """Sum, modulo 2^64, a hash of (salt, row, value) over rows that follow one another."""
    total = np.uint64(0)
    for i in range(len(values)):
        total += mix(mix(np.uint64(first + i) + np.uint64(salt)) ^ np.uint64(values[i]))
    return total


@kernel
def hash_at(values: Codes, rows: Ints, salt: Whole) -> Whole:
    """Sum, modulo 2^64, a hash of (salt, row, value) over some rows."""
    total = np.uint64(0)
    for i in range(len(values)):
        total += mix(mix(np.uint64(rows[i]) + np.uint64(salt)) ^ np.uint64(values[i]))
    return total


@kernel
def put_in_buckets(words: NDArray[np.uint32], first: Whole, mask: Whole, place: Ints, places: Ints) -> None:
    """Give rows their places: each row draws 16 bits, the last ones of which name its bucket.

    Row `first` is the first; two rows share a word. `place[b]` is the next free place of bucket b and moves on by one.
    """
    for i in range(len(places)):
        row = first + i
        bucket = (np.int64(words[(row >> 1) - (first >> 1)]) >> (16 * (row & 1))) & mask
        places[i] = place[bucket]
        place[bucket] += 1


@kernel
def scatter(values: Codes, places: Ints, out: Codes) -> None:
    """Put each value at its place."""
    for i in range(len(places)):
        out[places[i]] = values[i]
