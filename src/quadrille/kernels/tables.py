"""Counting: net changes of table cells, exact sums of ticks, sorting, chi-square, small and dominating cells."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quadrille.kernels.compile import kernel, step
from quadrille.kernels.pool import Ints, Whole


@kernel
def add_ticks(cells: Ints, ticks: Ints, out: Ints) -> None:
    """Add each record's ticks to its cell; cell -1 is outside the table."""
    for i in range(len(cells)):
        if cells[i] >= 0:
            out[cells[i]] += ticks[i]


@kernel
def sort_into_groups(group: Ints, count: Whole, start: Ints, order: NDArray[np.int32]) -> None:
    """Sort record numbers by group, stable; `start` gets the first place of each group and the total."""
    for i in range(len(group)):
        start[group[i] + 1] += 1
    for g in range(count):
        start[g + 1] += start[g]
    place = start[:-1].copy()
    for i in range(len(group)):
        order[place[group[i]]] = i
        place[group[i]] += 1


@step
def note(cell: Whole, scratch: Ints, listed: Ints, found: Whole) -> Whole:
    """List a cell when it is met for the first time."""
    if scratch[2, cell] == 0:
        scratch[2, cell] = 1
        listed[found] = cell
        return found + 1
    return found


@kernel
def collect(candidates: Ints, scratch: Ints) -> tuple[Ints, Ints]:
    """Return the candidate cells that changed, with their net changes, and leave the scratch clean."""
    cells = np.empty(len(candidates), dtype=np.int64)
    net = np.empty((2, len(candidates)), dtype=np.int64)
    kept = 0
    for cell in candidates:
        if scratch[0, cell] != 0 or scratch[1, cell] != 0:
            cells[kept] = cell
            net[0, kept] = scratch[0, cell]
            net[1, kept] = scratch[1, cell]
            kept += 1
        scratch[0, cell] = 0
        scratch[1, cell] = 0
        scratch[2, cell] = 0
    return cells[:kept], net[:, :kept]


@kernel
def list_cells(old: Ints, new: Ints, scratch: Ints, possible: Whole) -> Ints:
    """Return the cells met, ascending: all of a small table, without looking; -1 is outside."""
    if possible <= 16 * len(old):
        return np.arange(0, possible, dtype=np.int64)
    listed = np.empty(2 * len(old), dtype=np.int64)
    found = 0
    for i in range(len(old)):
        if old[i] != new[i]:
            if old[i] >= 0:
                found = note(old[i], scratch, listed, found)
            if new[i] >= 0:
                found = note(new[i], scratch, listed, found)
    return np.sort(listed[:found])


@kernel
def net_of_rows(old: Ints, new: Ints, ticks: Ints, scratch: Ints, possible: Whole) -> tuple[Ints, Ints]:
    """Return the net change of every touched cell; `ticks` is empty for counts only, cell -1 is outside."""
    candidates = list_cells(old, new, scratch, possible)
    weighted = len(ticks) > 0
    for i in range(len(old)):
        was, now = old[i], new[i]
        if was != now:
            if was >= 0:
                scratch[0, was] -= 1
                if weighted:
                    scratch[1, was] -= ticks[i]
            if now >= 0:
                scratch[0, now] += 1
                if weighted:
                    scratch[1, now] += ticks[i]
    return collect(candidates, scratch)


@kernel
def net_of_cells(
    cells: Ints, net: Ints, lookup: NDArray[np.int32], scratch: Ints, possible: Whole
) -> tuple[Ints, Ints]:
    """Carry net changes over to a margin: `lookup` gives the margin's cell, -1 outside."""
    reached = np.empty(len(cells), dtype=np.int64)
    for i in range(len(cells)):
        cell = lookup[cells[i]]
        reached[i] = cell
        if cell >= 0:
            scratch[0, cell] += net[0, i]
            scratch[1, cell] += net[1, i]
    return collect(list_cells(reached, np.full(len(cells), -1), scratch, possible), scratch)


@kernel
def chi_square(table: NDArray[np.float64]) -> tuple[float, Whole, Whole]:
    """Return chi-square divided by the total, and the numbers of rows and columns that occur."""
    rows = np.zeros(table.shape[0])
    columns = np.zeros(table.shape[1])
    total = 0.0
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            rows[i] += table[i, j]
            columns[j] += table[i, j]
            total += table[i, j]
    value = 0.0
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            expected = rows[i] * columns[j] / total
            if expected > 0:
                value += (table[i, j] - expected) ** 2 / expected
    return value / total, (rows > 0).sum(), (columns > 0).sum()


@kernel
def count_dominating(x: Ints, y: Ints) -> Ints:
    """Count the points with no larger x and y, equal points excepted; x and y are ranks from 0."""
    order = np.argsort(x * (y.max() + 1) + y) if len(x) else np.empty(0, dtype=np.int64)
    tree = np.zeros(y.max() + 2 if len(x) else 1, dtype=np.int64)
    counts = np.zeros(len(x), dtype=np.int64)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and x[order[end]] == x[order[start]] and y[order[end]] == y[order[start]]:
            end += 1
        i, below = y[order[start]] + 1, 0
        while i > 0:
            below += tree[i]
            i -= i & -i
        for j in range(start, end):
            counts[order[j]] = below
        i = y[order[start]] + 1
        while i < len(tree):
            tree[i] += end - start
            i += i & -i
        start = end
    return counts


@kernel
def small_cell_change(cells: Ints, new: Ints, count: Ints, n: Whole) -> tuple[Whole, Whole]:
    """Return by how many the unswapped records in cells of 1 to n-1 records, and all unswapped records, change.

    Cell 2c counts the unswapped records of cell c and 2c+1 the swapped ones; `count` is the table before.
    """
    at_risk, unswapped = np.int64(0), np.int64(0)
    i = 0
    while i < len(cells):
        cell = cells[i] >> 1
        was, others = count[2 * cell], count[2 * cell + 1]
        now, fresh = was, others
        while i < len(cells) and cells[i] >> 1 == cell:
            if cells[i] & 1:
                fresh = new[i]
            else:
                now = new[i]
            i += 1
        unswapped += now - was
        if 0 < now + fresh < n:
            at_risk += now
        if 0 < was + others < n:
            at_risk -= was
    return at_risk, unswapped
