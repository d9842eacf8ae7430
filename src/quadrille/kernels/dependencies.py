"""Looking for columns that determine others: records that lack the commonest value of their group."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quadrille.kernels.compile import kernel
from quadrille.kernels.pool import Ints, Whole

Codes32 = NDArray[np.int32]


@kernel
def rows_of_whole_groups(a: Codes32, b: Codes32, size: Whole, shift: Whole) -> Ints:
    """Return the rows of one in 2^shift combinations of two columns, chosen by a hash: their groups are whole."""
    found = np.empty(len(a), dtype=np.int64)
    count = 0
    for i in range(len(a)):
        key = np.uint64(a[i]) * np.uint64(size) + np.uint64(b[i])
        key = (key ^ (key >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
        if key >> np.uint64(64 - shift) == 0:
            found[count] = i
            count += 1
    return found[:count].copy()


@kernel
def lacking_majority(rows: Ints, start: Ints, values: Codes32, counts: Ints, limit: Whole) -> Whole:
    """Count the records that lack the commonest value of their group; stop above the limit.

    Group g is `rows[start[g]:start[g + 1]]`. `counts` is zeroed memory for every value, and is left zeroed.
    """
    lacking = 0
    for g in range(len(start) - 1):
        most = 0
        for i in range(start[g], start[g + 1]):
            value = values[rows[i]]
            counts[value] += 1
            most = max(most, counts[value])
        for i in range(start[g], start[g + 1]):
            counts[values[rows[i]]] = 0
        lacking += start[g + 1] - start[g] - most
        if lacking > limit:
            return lacking
    return lacking


@kernel
def changes_in_order(rows: Ints, values: Codes32, limit: Whole) -> tuple[Whole, Whole, Whole]:
    """Count, row after row, how often a value differs from the one before, and how often it falls and rises.

    Stops when the changes, the falls and the rises are all above the limit.
    """
    falls, rises = 0, 0
    for i in range(1, len(rows)):
        before, now = values[rows[i - 1]], values[rows[i]]
        falls += now < before
        rises += now > before
        if falls > limit and rises > limit:
            break
    return falls + rises, falls, rises


@kernel
def count_pairs_of_codes(a: Codes32, b: Codes32, size: Whole, out: Ints) -> None:
    """Count the records of every combination of two columns."""
    for i in range(len(a)):
        out[np.int64(a[i]) * size + b[i]] += 1
