"""What an intruder finds after a swap; and a whole candidate in one go: draw, exchange, sum over the touched cells."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadrille.kernels.compile import Floats, Ints, Whole, kernel, step
from quadrille.kernels.draw import Dice, Pool, draw_places, put_all_back

Table = NDArray[np.int64] | NDArray[np.int32]
Cells = NDArray[np.uint32]
"""Numbers of cells; as they have no sign, nothing needs to look whether they count from the end."""

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


HELLINGER, TOTAL_VARIATION, ENTROPY_CHANGE, SMALL_CELLS, EXPOSED, CONFIDENCE = range(6)
LINKED, ATTRIBUTED, ATTRIBUTED_UNIQUE = range(6, 9)
BEFORE, CHANGE, UNSWAPPED, LEFT, MARK = range(5)


class FullTable(NamedTuple):
    """The full table: per cell its count before, and room for its change, that of its unswapped records, who left it.

    The last column marks the touched cells. `roots` are those of the whole numbers, `axes` the stride and the size of
    each variable. `measures` holds per measure a code, its n, and the first and the last but one of its targets;
    `start` the sum of each over the file before, `persons` how many that is about.
    """

    cells: NDArray[np.int32]
    total: float
    roots: Floats
    axes: Ints
    measures: Ints
    start: Floats
    persons: Floats


@step
def move(old: Whole, new: Whole, cells: NDArray[np.int32], touched: Cells, found: Whole) -> Whole:
    """Let an unswapped record leave a cell and a swapped one reach another; list both cells.

    A cell is written to the list in any case and counts if it was not there: no branch for a processor to guess.
    """
    cells[old, CHANGE] -= 1
    cells[old, UNSWAPPED] -= 1
    cells[old, LEFT] += old != new
    cells[new, CHANGE] += 1
    touched[found] = old
    found += np.uint64(1 - cells[old, MARK])
    cells[old, MARK] = 1
    touched[found] = new
    found += np.uint64(1 - cells[new, MARK])
    cells[new, MARK] = 1
    return found


@kernel
def sum_over(code: Whole, n: Whole, touched: Cells, table: FullTable) -> tuple[Whole, Whole]:
    """Sum a measure over the touched cells; for `CONFIDENCE` also the records shown in small cells."""
    value, shown = 0.0, 0.0
    cells, total, roots = table.cells, table.total, table.roots
    if code == HELLINGER:
        for cell in touched:
            f = cells[cell, BEFORE]
            value += (roots[np.uint32(f)] - roots[np.uint32(f + cells[cell, CHANGE])]) ** 2
        return value, shown
    for cell in touched:
        f = cells[cell, BEFORE]
        g = f + cells[cell, CHANGE]
        if code == TOTAL_VARIATION:
            value += abs(g - f)
        elif code == ENTROPY_CHANGE:
            value += f / total * math.log(f / total) if f else 0.0
            value -= g / total * math.log(g / total) if g else 0.0
        elif code == LINKED:
            still = f - cells[cell, LEFT]
            if 0 < f < n:
                value += (still / g if still else 0.0) - 1
        else:
            was = f if f < n else 0
            now = min(f, g) if code != SMALL_CELLS else f + cells[cell, UNSWAPPED]
            value += (now if 0 < g < n else 0) - was
            shown += (g if g < n else 0) - was
    return value, shown


@kernel
def sum_inferred(place: Whole, first: Whole, end: Whole, touched: Cells, table: FullTable) -> Whole:
    """Sum what is inferred about some targets, over the groups of the touched cells."""
    cells, sums = table.cells, np.zeros(BY_VALUE + table.axes[:, 1].max())
    for target in range(first, end):
        stride, size = table.axes[target]
        for cell in touched:
            infer(cell, stride, size, cells[:, BEFORE], cells[:, CHANGE], sums)
    return sums[place]


@step
def final(code: Whole, value: float, shown: float, start: float, persons: float, total: float, swapped: Whole) -> float:
    """Turn the sum over touched cells into the score; NaN where it is undefined."""
    if code == HELLINGER:
        return math.sqrt(value / (2 * total))
    if code == TOTAL_VARIATION:
        return value / (2 * total)
    if code == ENTROPY_CHANGE:
        return value
    if code == SMALL_CELLS:
        return (start + value) / (total - swapped) if total > swapped else np.nan
    if code == EXPOSED:
        return (start + value) / total
    if code >= LINKED:
        return (start + value) / persons if persons > 0 else np.nan
    return (start + value) / (start + shown) if start + shown > 0 else np.nan


@kernel
def score_candidate(
    count: Whole,
    pair_uniform: bool,
    pool: Pool,
    log: Ints,
    dice: Dice,
    table: FullTable,
    part: NDArray[np.int32],
    cell_at: NDArray[np.int32],
    out: Floats,
) -> Whole:
    """Fill `out` with the scores of one candidate; return 1, or 0 when it must go the plain way, -1 for more words.

    `part` is what the swap variables add to a cell's number, `cell_at` the cell of the record at each place of the
    pool. The pool, the log and the table are left as they were.
    """
    drawn = draw_places(count, pair_uniform, pool, log, dice)
    touched = np.empty(min(4 * drawn, len(table.cells)) + 1, dtype=np.uint32)
    found, cells = np.uint64(0), table.cells
    for m in range(np.uint64(drawn)):
        a, b = cell_at[np.uint64(log[2 * m])], cell_at[np.uint64(log[2 * m + 1])]
        shift = part[np.uint64(b)] - part[np.uint64(a)]
        found = move(np.uint64(a), np.uint64(a + shift), cells, touched, found)
        found = move(np.uint64(b), np.uint64(b - shift), cells, touched, found)
    put_all_back(pool, log)
    defined = True
    for m in range(len(out)):
        code, n, first, end = table.measures[:, m]
        if code >= ATTRIBUTED:
            place = RIGHT if code == ATTRIBUTED else UNIQUE_SHARE
            value, shown = sum_inferred(place, first, end, touched[:found], table), 0.0
        else:
            value, shown = sum_over(code, n, touched[:found], table)
        out[m] = final(code, value, shown, table.start[m], table.persons[m], table.total, 2 * drawn)
        defined &= out[m] == out[m]
    for cell in touched[:found]:
        cells[cell, CHANGE] = 0
        cells[cell, UNSWAPPED] = 0
        cells[cell, LEFT] = 0
        cells[cell, MARK] = 0
    if dice.cursor[1] == 1:
        return -1
    return 1 if defined and drawn == count else 0


@kernel
def inference_sums(order: Ints, group: Ints, value: Ints, f: Ints, g: Ints, sums: Floats, share: Floats) -> None:
    """Add up over groups what a release says of the target in each cell; `order` puts the cells of a group together.

    `f` and `g` are the counts before and in the release. `share` gets, for the one person of a group, the share of the
    released rows of the group that have the same value.
    """
    end = 0
    while end < len(order):
        start, persons, shown, values = end, 0, 0, 0
        while end < len(order) and group[order[end]] == group[order[start]]:
            cell = order[end]
            persons += f[cell]
            shown += g[cell]
            values += g[cell] > 0
            end += 1
        for place in range(start, end):
            cell = order[place]
            claimed = values == 1 and g[cell] > 0
            if claimed:
                sums[RIGHT] += f[cell]
                sums[CLAIMS] += persons
                sums[BY_VALUE + value[cell]] += persons
            if persons == 1 and f[cell] == 1:
                share[cell] = g[cell] / max(shown, 1)
                if claimed:
                    sums[UNIQUE_RIGHT] += 1
                elif values == 1 and g[cell] == 0:
                    sums[UNIQUE_WRONG] += 1
                elif shown > 0:
                    sums[UNIQUE_UNDECIDED] += 1
                else:
                    sums[UNIQUE_GONE] += 1
