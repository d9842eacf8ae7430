"""How many records to expect in each cell of a table, given small tables of it; and who is whose mirror image."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quadrille.kernels.compile import kernel

Ints = NDArray[np.int64]


@kernel
def fit_margins(
    counts: NDArray[np.float64],
    unsure: NDArray[np.bool_],
    sizes: Ints,
    margins: Ints,
    sweeps: int,
    expected: NDArray[np.float64],
) -> None:
    """Fit `expected` to these margins of `counts`, from what it holds; the first axis runs fastest.

    In an unsure cell is nobody or one, with odds of what is expected there: each sweep puts that in for its count.
    Sums run in a fixed order and nothing but sums, products and quotients is taken: every machine gives the same.
    """
    levels = np.empty((len(sizes), len(counts)), dtype=np.int16)
    stride = 1
    for a in range(len(sizes)):
        for cell in range(len(counts)):
            levels[a, cell] = cell // stride % sizes[a]
        stride *= sizes[a]
    at = np.empty(len(counts), dtype=np.int64)
    for _ in range(sweeps):
        for cell in range(len(counts)):
            if unsure[cell]:
                counts[cell] = expected[cell] / (1.0 + expected[cell])
        for i in range(len(margins)):
            cells = 1
            at[:] = 0
            for a in margins[i]:
                for cell in range(len(counts)):
                    at[cell] = at[cell] * sizes[a] + levels[a, cell]
                cells *= sizes[a]
            wanted = np.zeros(cells)
            fitted = np.zeros(cells)
            for cell in range(len(counts)):
                wanted[at[cell]] += counts[cell]
                fitted[at[cell]] += expected[cell]
            for place in range(cells):
                wanted[place] = wanted[place] / fitted[place] if fitted[place] > 0 else 0.0
            for cell in range(len(counts)):
                expected[cell] *= wanted[at[cell]]


@kernel
def pair_images(
    waiting: Ints, score: NDArray[np.float64], width: float, sizes: Ints, mirrors: Ints, partner: Ints
) -> None:
    """Pair cells with their images in one mirror after the other, where the scores of the two are within a width.

    A mirror takes level l of an axis to k - l, modulo the number of levels: so the image of the image is the cell. It
    has -1 for an axis that it leaves as it is. `waiting` are the cells to pair; `partner` is -1 for all without one.
    """
    left = len(waiting)
    for mirror in mirrors:
        for i in range(left):
            cell = waiting[i]
            if partner[cell] >= 0:
                continue
            image, stride = cell, 1
            for a in range(len(sizes)):
                if mirror[a] >= 0:
                    level = cell // stride % sizes[a]
                    image += ((mirror[a] - level) % sizes[a] - level) * stride
                stride *= sizes[a]
            # An image that is not waiting has a score of infinity.
            if image > cell and partner[image] < 0 and abs(score[image] - score[cell]) <= width:
                partner[cell], partner[image] = image, cell
        kept = 0
        for i in range(left):
            if partner[waiting[i]] < 0:
                waiting[kept] = waiting[i]
                kept += 1
        left = kept
