"""What a change of a table that knows who was swapped does to the records in small cells."""

from __future__ import annotations

import numpy as np

from quadrille.kernels.compile import kernel
from quadrille.kernels.pool import Ints, Whole


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
