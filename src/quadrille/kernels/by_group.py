"""Groups of cells that differ in one variable only: where each stands in an order that puts them together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quadrille.kernels.compile import Ints, Whole, kernel

Places = NDArray[np.uint32]


@kernel
def find_groups(groups: Ints, cells: Ints, order: Places, stride: Whole, size: Whole, start: Ints, end: Ints) -> None:
    """Find where each group starts and ends among `cells[order]`, which ascend by group.

    A group is named by its first cell: that with the first category of the variable that has this stride and size. The
    names are worked out of the cells on the way, as a list of them would be as long as that of the cells.
    """
    for number in range(len(groups)):
        low = 0
        for side in range(2):  # the first cell that is not below the group, and then the first one above
            high = len(order)
            while low < high:
                middle = (low + high) // 2
                cell = cells[order[middle]]
                if cell - cell // stride % size * stride < groups[number] + side:
                    low = middle + 1
                else:
                    high = middle
            if side:
                end[number] = low
            else:
                start[number] = low
