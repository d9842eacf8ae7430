"""Numbering combinations of values, in lexicographic order and without gaps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from quadrille import kernels
from quadrille.data import Codes, Data, Ints

_RANK_LIMIT = 1 << 22


def codes_of(data: Data, name: str) -> tuple[Codes, int]:
    """Return a column as codes and their number; numbers are ranked."""
    column = data[name]
    if column.variable.coded:
        return column.values, column.size
    values, codes = np.unique(column.values, return_inverse=True)
    return codes, len(values)


def group_ids(columns: Sequence[tuple[Codes, int]], n: int) -> tuple[Ints, int]:
    """Number the combinations of values that occur, in lexicographic order."""
    ids, size = np.zeros(n, dtype=np.int64), 1
    for codes, count in columns:
        if size * count >= 1 << 62:
            ids, size = ranks(ids, size)
        ids *= count
        ids += codes
        size *= count
    return ranks(ids, size)


def ranks(ids: Ints, size: int) -> tuple[Ints, int]:
    """Renumber without gaps, keeping the order."""
    if size > max(_RANK_LIMIT, len(ids)):
        values, found = np.unique(ids, return_inverse=True)
        return cast("Ints", found), len(values)
    present = np.bincount(ids, minlength=size) > 0
    return (np.cumsum(present) - 1)[ids], int(present.sum())


def sorted_by(ids: Ints, count: int) -> tuple[Ints, Ints]:
    """Return record numbers sorted by group, stable, and the first place of each group and the end."""
    start = np.zeros(count + 1, dtype=np.int64)
    order = np.empty(len(ids), dtype=np.int32)
    kernels.sort_into_groups(ids, count, start, order)
    return order.astype(np.int64), start
