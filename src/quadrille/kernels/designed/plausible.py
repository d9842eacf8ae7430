"""How many records to expect in each cell of a table, given its tables of two variables only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quadrille.kernels.compile import kernel


@kernel
def fit_pairs(counts: NDArray[np.int64], sizes: NDArray[np.int64], sweeps: int, expected: NDArray[np.float64]) -> None:
    """Fit `expected` to the two-way tables of `counts` by proportional steps, the first axis running fastest.

    Sums run in a fixed order and nothing but sums, products and quotients is taken: every machine gives the same.
    """
    strides = np.ones(len(sizes), dtype=np.int64)
    for a in range(1, len(sizes)):
        strides[a] = strides[a - 1] * sizes[a - 1]
    expected[:] = 1.0
    for _ in range(sweeps):
        for a in range(len(sizes)):
            for b in range(a):
                wanted = np.zeros(sizes[a] * sizes[b])
                fitted = np.zeros(sizes[a] * sizes[b])
                for cell in range(len(counts)):
                    at = cell // strides[a] % sizes[a] * sizes[b] + cell // strides[b] % sizes[b]
                    wanted[at] += counts[cell]
                    fitted[at] += expected[cell]
                for at in range(len(wanted)):
                    wanted[at] = wanted[at] / fitted[at] if fitted[at] > 0 else 0.0
                for cell in range(len(counts)):
                    at = cell // strides[a] % sizes[a] * sizes[b] + cell // strides[b] % sizes[b]
                    expected[cell] *= wanted[at]
