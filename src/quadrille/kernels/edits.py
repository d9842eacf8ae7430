"""Plausibility rules as bits: whether a pair that exchanges values would make a record break a rule anew."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadrille.kernels.compile import step
from quadrille.kernels.pool import Ints, Whole


class Edits(NamedTuple):
    """Plausibility rules, one bit each, per record or group: whether it meets the conditions on what stays or moves.

    `stay` and `move` have a column for every so many rules. `linked` holds the conditions on the columns that move
    where the parent differs, a layer for each parent, and `parent` the values of the parents.
    """

    stay: Ints
    move: Ints
    linked: Ints
    parent: Ints

    def take(self, rows: NDArray[Any]) -> Edits:
        """Return those of some records."""
        linked, parent = (np.ascontiguousarray(part[:, rows]) for part in (self.linked, self.parent))
        return Edits(self.stay[rows], self.move[rows], linked, parent)


def no_edits(n: int) -> Edits:
    """Return the edits of n records without any rule."""
    none = np.zeros((n, 0), dtype=np.int64)
    return Edits(none, none, np.zeros((0, n, 0), dtype=np.int64), np.zeros((0, n), dtype=np.int64))


@step
def spoils(a: Whole, b: Whole, edits: Edits) -> bool:
    """Tell whether an exchange makes a or b break a rule that it did not break before."""
    for w in range(edits.stay.shape[1]):
        one_was, one = edits.stay[a, w] & edits.move[a, w], edits.stay[a, w] & edits.move[b, w]
        other_was, other = edits.stay[b, w] & edits.move[b, w], edits.stay[b, w] & edits.move[a, w]
        for p in range(len(edits.parent)):
            mine, theirs = edits.linked[p, a, w], edits.linked[p, b, w]
            one_was, other_was = one_was & mine, other_was & theirs
            if edits.parent[p, a] == edits.parent[p, b]:
                one, other = one & mine, other & theirs
            else:
                one, other = one & theirs, other & mine
        if (one & ~one_was) | (other & ~other_was):
            return True
    return False
