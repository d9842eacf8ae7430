"""Placing a label on a crowded chart: near its point, on nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Place = tuple[float, float]

_ACROSS, _DOWN = 8.0, 6.0
_MARGIN, _HALF = 7.0, 14.0
_RING = 12.0
_NEAR = 26.0
_ABOVE = 60.0


class Spot(NamedTuple):
    """Where a label ends on its right, in pixels, how wide it is, and the line that leads to it from its point."""

    x: float
    y: float
    width: float
    line: tuple[Place, Place]

    def covered(self) -> list[Place]:
        """Return places all along the label, for the next label to keep away from."""
        return [(self.x - self.width * share, self.y) for share in np.linspace(0, 1, 12).tolist()]


def free_spot(point: Place, width: float, taken: Sequence[Place], size: tuple[int, int]) -> Spot:
    """Return the nearest free place for a label of this width; below its point rather than above, where points crowd.

    `taken` are the places to keep free, `size` the width and height of the chart; all in pixels from the top left.
    """
    rights = np.arange(width + _MARGIN, size[0] - 2, _ACROSS)
    downs = np.arange(_HALF, size[1] - _HALF / 2, _DOWN)
    down, right = np.meshgrid(downs, rights, indexing="ij")
    x, y = point
    gap = np.hypot(np.maximum(np.maximum(right - width - x, x - right), 0), down - y)
    cost = gap + np.where(down < y - _DOWN, _ABOVE, 0) + np.where(gap < _RING + 4, np.inf, 0)
    cost[_blocked(rights, downs, width, np.array(taken, dtype=np.float64).reshape(-1, 2))] = np.inf
    best = int(np.argmin(cost)) if cost.size else 0
    if not cost.size or not np.isfinite(cost.flat[best]):
        return Spot(min(max(x, width + _MARGIN), float(size[0])), max(y - 2 * _HALF, _HALF), width, (point, point))
    found = float(right.flat[best]), float(down.flat[best])
    return Spot(*found, width, _lead(point, found, width, float(gap.flat[best])))


def _blocked(
    rights: NDArray[np.float64], downs: NDArray[np.float64], width: float, taken: NDArray[np.float64]
) -> NDArray[np.bool_]:
    blocked = np.zeros((len(downs), len(rights)), dtype=np.bool_)
    for i, down in enumerate(downs):
        xs = np.sort(taken[np.abs(taken[:, 1] - down) < _HALF, 0])
        blocked[i] = np.searchsorted(xs, rights + _MARGIN) > np.searchsorted(xs, rights - width - _MARGIN)
    return blocked


def _lead(point: Place, end: Place, width: float, gap: float) -> tuple[Place, Place]:
    """Return the line from the ring around the point to the label; none where the label is near."""
    if gap < _NEAR:
        return point, point
    (x, y), (right, down) = point, end
    to = min(max(x, right - width), right), down + (0 if down == y else -10 if down > y else 10)
    length = float(np.hypot(to[0] - x, to[1] - y)) or 1.0
    return (x + (to[0] - x) / length * _RING, y + (to[1] - y) / length * _RING), to


def stairs(corners: Sequence[Place]) -> list[Place]:
    """Return places along a line of steps that runs level from each corner and then down to the next."""
    places: list[Place] = []
    for (x, y), (to_x, to_y) in pairwise(corners):
        places += [(along, y) for along in np.arange(x, to_x, _ACROSS).tolist()]
        places += [(to_x, along) for along in np.arange(y, to_y, _ACROSS).tolist()]
    return places
