"""The records that can be paired, sorted so that any of them can be drawn and put back in constant time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Whole = Any
"""A whole number in a kernel: plain or numpy's, the compiler decides."""
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Pool(NamedTuple):
    """Records by class (equal on the `same` columns) and, within class, by group (equal in all that matters).

    Group g owns the places start[g] to start[g+1] of `order`, and unused[g] of them are still to be drawn; `used` has
    a bit per place. Class c owns the groups first[c] to first[c+1]. `hint[place >> shift]` is a group at or just
    below the one that owns a place. Columns 0..swaps-1 of `types` are the swap variables of a group, those up to
    `decisive` its `different` columns, the rest the bits of plausibility rules: of 31 rules each whether the group
    meets the conditions on what stays, then on what moves. `differ` is 0 (none), 1 (any) or 2 (all). `longest` is the
    size of the largest class; `patience` how often a pair is tried for before the admissible ones are counted.
    """

    order: NDArray[np.int32]
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


class Dice(NamedTuple):
    """Random words; cursor[0] is the next one, cursor[1] turns 1 when they run out."""

    words: NDArray[np.uint32]
    cursor: NDArray[np.int64]


def dice(words: NDArray[np.uint32]) -> Dice:
    """Start reading a stream of words."""
    return Dice(words, np.zeros(2, dtype=np.int64))
