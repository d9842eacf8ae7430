"""The smallest number of moved records at which the error of a cell crosses a line (derivations/moments.md, 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from quadrille.theory.spread import Floats, Kind, Spread, factors

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Reached = Callable[[Floats], Flags]

NEVER = -1
_SCANNED = 24
"""So many records are tried one by one: for cycles the error is a quadratic only beyond 20."""

_POINTS = 8


def mean_square(kind: Kind, spread: Spread, k: Floats) -> Floats:
    """Return variance + bias^2 of every cell when k records move, one k per cell."""
    found = factors(kind, tuple(np.asarray(size, dtype=float) for size in spread.sizes), k)
    variance = sum(f * p for f, p in zip(found.parts, spread.parts, strict=True))
    return np.maximum(variance, 0.0) + (found.bias * spread.lean) ** 2


def admissible(kind: Kind, most: int) -> range:
    """Return the numbers of records that can move, up to the most."""
    return range(2, most + 1, 1 if kind == "cycles" else 2)


def most_moved(kind: Kind, sizes: tuple[int, ...]) -> int:
    """Return the largest number of records that can move."""
    return 2 * min(sizes) if kind == "across" else sizes[0] if kind == "cycles" else sizes[0] // 2 * 2


def first_crossing(kind: Kind, spread: Spread, most: int, reached: Reached) -> Ints:
    """Return, per cell, the smallest admissible k whose mean square error is `reached`, NEVER where there is none.

    The error is not always monotone in k, but beyond the first few k it is a quadratic: so it is monotone on either
    side of its vertex, and halving is safe on each.
    """
    ks = admissible(kind, most)
    cells = np.broadcast_shapes(*(np.shape(part) for part in (spread.lean, *spread.parts)))
    search = _Search(kind, spread, ks, reached, np.full(cells, NEVER, dtype=np.int64))
    scanned = len([k for k in ks[:_SCANNED] if k < _SCANNED]) if len(ks) > _SCANNED + _POINTS else len(ks)
    search.scan(range(scanned))
    if scanned < len(ks) and (search.found == NEVER).any():
        _search_rest(search, scanned, len(ks) - 1)
    return search.found


class _Search:
    """Cells that have not crossed yet, and what is known of the others."""

    def __init__(self, kind: Kind, spread: Spread, ks: range, reached: Reached, found: Ints) -> None:
        self.kind: Kind = kind
        self.spread, self.reached, self.found = spread, reached, found
        self.first, self.step = ks.start, ks.step

    def error(self, index: Ints) -> Floats:
        return mean_square(self.kind, self.spread, (self.first + self.step * index).astype(float))

    def note(self, index: Ints, crossed: Flags) -> None:
        fresh = crossed & (self.found == NEVER)
        self.found[fresh] = (self.first + self.step * index)[fresh]

    def scan(self, places: Iterable[int]) -> None:
        for place in places:
            index = np.full(self.found.shape, place)
            self.note(index, self.reached(self.error(index)))

    def halve(self, low: Ints, high: Ints) -> None:
        """Look between two places, where the error only rises or only falls."""
        valid = low <= high
        start = self.reached(self.error(low))
        self.note(low, valid & start)
        rising = valid & ~start & self.reached(self.error(high))
        below, above = low.copy(), high.copy()
        while ((above - below > 1) & rising).any():
            middle = (below + above) // 2
            crossed = self.reached(self.error(middle))
            above, below = np.where(crossed, middle, above), np.where(crossed, below, middle)
        self.note(above, rising)


def _search_rest(search: _Search, low: int, high: int) -> None:
    shape = search.found.shape
    start, end = np.full(shape, low), np.full(shape, high)
    vertex = _vertex(search, start, (start + end) // 2, end)
    search.halve(start, np.maximum(vertex - 1, start))
    for shift in (-1, 0, 1):
        place = np.clip(vertex + shift, low, high)
        search.note(place, search.reached(search.error(place)))
    search.halve(np.minimum(vertex + 1, end), end)


def _vertex(search: _Search, one: Ints, two: Ints, three: Ints) -> Ints:
    """Return the place where the quadratic through three of its values turns, or the end where it does not."""
    y1, y2, y3 = (search.error(place) for place in (one, two, three))
    slope, steeper = (y2 - y1) / (two - one), (y3 - y1) / (three - one)
    curve = (steeper - slope) / (three - two)
    turn = np.divide(-slope, 2 * curve, out=np.full(one.shape, np.inf), where=curve != 0)
    place = (one + two) / 2 + turn
    inside = (place > one) & (place < three)
    return np.where(inside, np.floor(np.where(inside, place, 0.0)).astype(np.int64), three)
