"""Combinations of two columns that never occur, or almost never, where many records were expected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import NamedTuple

import numpy as np

from quadrille import kernels
from quadrille.data import Rows
from quadrille.score.dependencies.coded import NEARLY, Coded, Codes32, Flags, Floats, Ints

EXPECTED = 10
"""A combination is missed where so many records are expected of columns that have nothing to do with each other."""
_MOST_CELLS = 1 << 16


class Never(NamedTuple):
    """Two columns, how many of their combinations never occur, and the share of the records expected there."""

    columns: tuple[str, str]
    combinations: int
    expected: float


def never_together(coded: Coded) -> Iterator[Never]:
    """Yield the pairs of columns with combinations that never occur, or almost never."""
    classes = {name: coded.classes(name) for name in coded.names}
    for a, b in combinations(coded.names, 2):
        if classes[a][1] * classes[b][1] <= min(_MOST_CELLS, coded.n):
            held, expected = _tabulated(classes[a], classes[b])
            absent = absent_cells(held, expected)
            if absent.any():
                yield Never((a, b), int(absent.sum()), float(expected[absent].sum()) / coded.n)


def table_of(coded: Coded, a: str, b: str) -> tuple[Ints, Floats]:
    """Return the records of every combination, and those expected without any association."""
    return _tabulated(coded.classes(a), coded.classes(b))


def _tabulated(a: tuple[Codes32, int], b: tuple[Codes32, int]) -> tuple[Ints, Floats]:
    held = np.zeros(a[1] * b[1], dtype=np.int64)
    kernels.count_pairs_of_codes(a[0], b[0], b[1], held)
    held = held.reshape(a[1], b[1])
    return held, np.outer(held.sum(axis=1), held.sum(axis=0)) / len(a[0])


def absent_cells(held: Ints, expected: Floats) -> Flags:
    """Tell which combinations never occur, or almost never, where ten records or more are expected."""
    return (expected >= EXPECTED) & (held <= NEARLY * expected)


def scarce_share(coded: Coded, a: str, b: str, rate: float) -> float:
    """Return the share of the records in combinations as scarce as absent ones are after a swap at this rate."""
    held, expected = table_of(coded, a, b)
    return float(held[(expected >= EXPECTED) & (held <= 2 * rate * expected)].sum()) / coded.n


def breaks_never(coded: Coded, a: str, b: str, source: Mapping[str, Rows]) -> Flags:
    """Tell which records have a combination that never occurred in the original, or almost never."""
    first, second = coded.classes(a), coded.classes(b)
    return absent_cells(*_tabulated(first, second))[first[0][source[a]], second[0][source[b]]]
