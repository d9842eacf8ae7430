"""Counting points below and to the left of each point."""

from __future__ import annotations

import numpy as np

from quadrille.kernels.compile import kernel
from quadrille.kernels.pool import Ints


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
