"""Counting: net changes of table cells, exact sums of ticks, sorting by group, chi-square."""

# pyright: basic
from __future__ import annotations

import numpy as np

from quadrille.kernels.compile import kernel


@kernel
def add_ticks(cells, ticks, out):
    """Add each record's ticks to its cell; cell -1 is outside the table."""
    for i in range(len(cells)):
        if cells[i] >= 0:
            out[cells[i]] += ticks[i]


@kernel
def sort_into_groups(group, count, start, order):
    """Sort record numbers by group, stable; `start` gets the first place of each group and the total."""
    for i in range(len(group)):
        start[group[i] + 1] += 1
    for g in range(count):
        start[g + 1] += start[g]
    place = start[:-1].copy()
    for i in range(len(group)):
        order[place[group[i]]] = i
        place[group[i]] += 1


@kernel
def note(cell, count, ticks, scratch, listed, found):
    """Add to a cell's net change, and list the cell when it is met for the first time."""
    if scratch[cell, 2] == 0:
        scratch[cell, 2] = 1
        listed[found] = cell
        found += 1
    scratch[cell, 0] += count
    scratch[cell, 1] += ticks
    return found


@kernel
def collect(scratch, listed, found, possible):
    """Return the cells that changed, ascending, with their net changes, and leave the scratch clean."""
    cells = np.empty(found, dtype=np.int64)
    net = np.empty((2, found), dtype=np.int64)
    if possible > 8 * found:
        listed[:found].sort()
    kept = 0
    for i in range(possible if possible <= 8 * found else found):
        cell = i if possible <= 8 * found else listed[i]
        if scratch[cell, 0] != 0 or scratch[cell, 1] != 0:
            cells[kept] = cell
            net[0, kept] = scratch[cell, 0]
            net[1, kept] = scratch[cell, 1]
            kept += 1
        scratch[cell, 0] = 0
        scratch[cell, 1] = 0
        scratch[cell, 2] = 0
    return cells[:kept], net[:, :kept]


@kernel
def net_of_rows(old, new, ticks, scratch, possible):
    """Return the net change of every touched cell; `ticks` is empty for counts only, cell -1 is outside."""
    listed = np.empty(min(2 * len(old), possible), dtype=np.int64)
    found = 0
    for i in range(len(old)):
        if old[i] != new[i]:
            weight = ticks[i] if len(ticks) else 0
            if old[i] >= 0:
                found = note(old[i], -1, -weight, scratch, listed, found)
            if new[i] >= 0:
                found = note(new[i], 1, weight, scratch, listed, found)
    return collect(scratch, listed, found, possible)


@kernel
def net_of_cells(cells, net, lookup, scratch, possible):
    """Carry net changes over to a margin: `lookup` gives the margin's cell, -1 outside."""
    listed = np.empty(min(len(cells), possible), dtype=np.int64)
    found = 0
    for i in range(len(cells)):
        cell = lookup[cells[i]]
        if cell >= 0:
            found = note(cell, net[0, i], net[1, i], scratch, listed, found)
    return collect(scratch, listed, found, possible)


@kernel
def chi_square(table):
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
