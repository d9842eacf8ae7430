"""What a release lets an intruder find: right links into the touched cells, and values inferred in touched groups.

A group holds the cells of a table that differ in one variable only, the target; the others are what the intruder knows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quadrille.kernels.compile import kernel, step
from quadrille.kernels.pool import Ints, Whole

Floats = NDArray[np.float64]
Table = NDArray[np.int64] | NDArray[np.int32]

RIGHT, CLAIMS, UNIQUE_RIGHT, UNIQUE_WRONG, UNIQUE_UNDECIDED, UNIQUE_GONE, UNIQUE_SHARE, BY_VALUE = range(8)
"""The sums over the persons of the original file, by place; from `BY_VALUE` on the claims of each value of the target.

A claim is made about a person whose group has one value of the target in the release. The others are about persons who
are alone in their group: right, wrong and undecided as the release says, gone when it lacks the group, and the share of
the released group that has their own value.
"""


@kernel
def links_change(cells: Ints, new: Ints, count: Ints, n: Whole) -> tuple[Whole, Whole, Whole]:
    """Return by how much the expected right links, the unique links and those that are right change, where f < n.

    A link is unique for the persons of a cell with one released record. Cell 2c counts the records of cell c that were
    there before and 2c+1 those that arrived; `count` is the table before.
    """
    links, unique, right = 0.0, np.int64(0), np.int64(0)
    i = 0
    while i < len(cells):
        cell = cells[i] >> 1
        was = count[2 * cell]
        still, arrived = was, np.int64(0)
        while i < len(cells) and cells[i] >> 1 == cell:
            if cells[i] & 1:
                arrived = new[i]
            else:
                still = new[i]
            i += 1
        if was < n:
            links += (still / (still + arrived) if still else 0.0) - (was > 0)
            unique += (was if still + arrived == 1 else 0) - np.int64(was == 1)
            right += np.int64(still == 1 and arrived == 0) - np.int64(was == 1)
    return links, unique, right


@step
def infer(cell: Whole, stride: Whole, size: Whole, count: Table, change: Table, sums: Floats) -> None:
    """Add to the sums what the release says about the group of a changed cell, less what the file said before.

    A group with several changed cells counts at the first of them. `stride` and `size` are those of the target.
    """
    if change[cell] == 0:
        return
    code = cell // stride % size
    first = cell - code * stride
    persons, shown = 0, 0
    said, says = -1, -1  # the only value of the target, before and in the release; size where there are several
    for value in range(size):
        member = first + value * stride
        if value < code and change[member] != 0:
            return
        f = count[member]
        g = f + change[member]
        persons += f
        shown += g
        if f:
            said = value if said < 0 else size
        if g:
            says = value if says < 0 else size
    if persons == 0:
        return
    if said < size:
        sums[RIGHT] -= persons
        sums[CLAIMS] -= persons
        sums[BY_VALUE + said] -= persons
    if 0 <= says < size:
        sums[RIGHT] += count[first + says * stride]
        sums[CLAIMS] += persons
        sums[BY_VALUE + says] += persons
    if persons == 1:
        own = first + said * stride
        sums[UNIQUE_RIGHT] -= 1
        sums[UNIQUE_SHARE] -= 1
        if shown == 0:
            sums[UNIQUE_GONE] += 1
        else:
            sums[UNIQUE_SHARE] += (count[own] + change[own]) / shown
            sums[UNIQUE_RIGHT if says == said else UNIQUE_WRONG if says < size else UNIQUE_UNDECIDED] += 1


@kernel
def inference_change(cells: Ints, new: Ints, count: Ints, stride: Whole, size: Whole, scratch: Ints) -> Floats:
    """Return by how much the sums change for one target; `count` is the table before, the scratch is left clean."""
    sums = np.zeros(BY_VALUE + size)
    change = scratch[0]
    for i in range(len(cells)):
        change[cells[i]] = new[i] - count[cells[i]]
    for cell in cells:
        infer(cell, stride, size, count, change, sums)
    for cell in cells:
        change[cell] = 0
    return sums
