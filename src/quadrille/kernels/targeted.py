"""Counting who is at risk in which area, for methods that move whole units between areas."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quadrille.kernels.compile import Ints, Whole, kernel

Short = NDArray[np.int32]


@kernel
def least_in_table(combination: Ints, of: Ints, area: Short, areas: Whole, table: Short, least: Short) -> None:
    """Count the rows of each combination in each area, in a table of zeros; `least` gets the least of each unit.

    `of` is the unit of each row, `area` the area of each unit.
    """
    for i in range(len(of)):
        table[combination[i] * areas + area[of[i]]] += 1
    for i in range(len(of)):
        unit = of[i]
        least[unit] = min(least[unit], table[combination[i] * areas + area[unit]])


@kernel
def least_in_runs(order: Short, combination: Ints, of: Ints, area: Short, least: Short) -> None:
    """Do the same without a table, for rows sorted so that those of one combination and area stand together."""
    first, n = 0, len(order)
    while first < n:
        row = order[first]
        end = first + 1
        while end < n and combination[order[end]] == combination[row] and area[of[order[end]]] == area[of[row]]:
            end += 1
        for i in range(first, end):
            unit = of[order[i]]
            least[unit] = min(least[unit], end - first)
        first = end
