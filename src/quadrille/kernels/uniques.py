"""Special uniques: which combinations of values are alone on some of the keys, and on no fewer of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quadrille.kernels.compile import kernel
from quadrille.kernels.pool import Ints, Whole

Bits = NDArray[np.uint64]
_BLOCK = 1 << 12


@kernel
def mark_lone(
    codes: NDArray[np.uint32],
    lone: NDArray[np.bool_],
    keys: Ints,
    strides: Ints,
    slots: NDArray[np.int32],
    direct: bool,
    known: Bits,
    found: NDArray[np.int32],
) -> Whole:
    """Find the cells that are alone on `keys`, mark them in `known`, count them in `found`, return how many.

    `codes[k, c]` is the code of key k in cell c, `lone` says whether the cell has one record. Cells in `known` are
    alone on some of the keys already: they meet nobody, and are passed over. `slots` has a place for every combination
    when `direct`; else its length is a power of 2, more than the number of cells, and places are found by hashing.
    """
    cells = codes.shape[1]
    nobody = np.int32(cells)
    slots[:] = nobody
    mask = len(slots) - 1
    place = np.empty(_BLOCK, dtype=np.int64)
    for start in range(0, cells, _BLOCK):
        size = min(_BLOCK, cells - start)
        place[:size] = 0
        for k in range(len(keys)):
            column, stride = codes[keys[k]], strides[k]
            for i in range(size):
                place[i] += column[start + i] * stride
        for i in range(size):
            cell = start + i
            if known[cell >> 6] >> np.uint64(cell & 63) & np.uint64(1):
                continue
            at = place[i]
            if not direct:
                at = _slot_of(cell, at, codes, keys, slots, mask)
            other = slots[at]
            # A slot holds its first cell, and the complement of it from the second record on.
            if other == nobody:
                slots[at] = cell if lone[cell] else ~cell
            elif other >= 0:
                slots[at] = ~other
    count = 0
    for at in range(len(slots)):
        cell = slots[at]
        if 0 <= cell < nobody:
            known[cell >> 6] |= np.uint64(1) << np.uint64(cell & 63)
            found[cell] += 1
            count += 1
    return count


@kernel
def _slot_of(
    cell: Whole, mixed: Whole, codes: NDArray[np.uint32], keys: Ints, slots: NDArray[np.int32], mask: Whole
) -> Whole:
    """Return the slot of the cell's combination: where a cell that agrees on all keys is, or the first free one."""
    at = (mixed ^ (mixed >> 29)) & mask
    while True:
        other = slots[at]
        if other == codes.shape[1]:
            return at
        if other < 0:
            other = ~other
        same = True
        for k in range(len(keys)):
            if codes[keys[k], other] != codes[keys[k], cell]:
                same = False
                break
        if same:
            return at
        at = (at + 1) & mask
