"""Which candidates deserve a look: the non-dominated ones, the hull of all linear objectives, the knee.

Everything here is lower-is-better and works on plain arrays, one row per candidate, one column per objective.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Flags, Floats, Ints

Points = NDArray[np.float64]

_BLOCK = 512


def non_dominated(points: Points) -> Flags:
    """Tell which points no other point dominates: none is no larger everywhere and smaller somewhere.

    Equal points do not dominate one another. O(n log n) for two objectives.
    """
    if points.shape[1] == 2:
        return _non_dominated_pairs(points)
    distinct, place = np.unique(points, axis=0, return_inverse=True)
    kept = np.zeros(len(distinct), dtype=bool)
    front = np.empty((0, points.shape[1]))
    # Sorted lexicographically, so a point can be dominated only by one before it.
    for start in range(0, len(distinct), _BLOCK):
        block = distinct[start : start + _BLOCK]
        alive = np.flatnonzero(~_dominated(block, front))
        alive = alive[~_dominated(block[alive], block[alive])]
        kept[start + alive] = True
        front = np.concatenate((front, block[alive]))
    return kept[place.ravel()]


def _dominated(points: Points, by: Points) -> Flags:
    """Tell which points some point of `by` dominates."""
    found = np.zeros(len(points), dtype=bool)
    for start in range(0, len(by), _BLOCK):
        other = by[None, start : start + _BLOCK, :]
        no_larger: Flags = np.all(other <= points[:, None, :], axis=2)
        smaller: Flags = np.any(other < points[:, None, :], axis=2)
        found |= np.any(no_larger & smaller, axis=1)
    return found


def _non_dominated_pairs(points: Points) -> Flags:
    if not len(points):
        return np.zeros(0, dtype=bool)
    order = np.lexsort((points[:, 1], points[:, 0]))
    x, y = points[order, 0], points[order, 1]
    first = np.concatenate(([True], x[1:] != x[:-1]))
    group = np.cumsum(first) - 1
    least = y[first]  # smallest y of each x, because y is sorted within x
    before = np.concatenate(([np.inf], np.minimum.accumulate(least)[:-1]))
    kept = np.empty(len(points), dtype=bool)
    kept[order] = (y == least[group]) & (y < before[group])
    return kept


def dominated_by(points: Points) -> Ints:
    """Count, for each point, the points that dominate it. O(n log n) for two objectives."""
    if points.shape[1] == 2:
        x = np.unique(points[:, 0], return_inverse=True)[1]
        y = np.unique(points[:, 1], return_inverse=True)[1]
        return kernels.count_dominating(x.astype(np.int64), y.astype(np.int64))
    counts = np.zeros(len(points), dtype=np.int64)
    for start in range(0, len(points), _BLOCK):
        block = points[start : start + _BLOCK, None, :]
        no_larger = (points[None, :, :] <= block).all(axis=2)
        counts[start : start + _BLOCK] = (no_larger & (points[None, :, :] < block).any(axis=2)).sum(axis=1)
    return counts


class Range(NamedTuple):
    """A candidate that wins risk + trade * loss for every trade-off between `low` and `high`."""

    point: int
    low: float
    high: float


def linear_winners(risk: NDArray[np.float64], loss: NDArray[np.float64]) -> list[Range]:
    """Return the winners of risk + trade * loss over all trade >= 0, with the breakpoints between them.

    They are the corners of the lower convex hull of the frontier; the first wins at trade 0 (least risk).
    """
    front = np.flatnonzero(non_dominated(np.stack((risk, loss), axis=1)))
    front = front[np.lexsort((front, loss[front], risk[front]))]
    corners: list[int] = []
    for i in front.tolist():
        if corners and (risk[corners[-1]], loss[corners[-1]]) == (risk[i], loss[i]):
            continue
        while len(corners) > 1 and not _turns(risk, loss, corners[-2], corners[-1], i):
            corners.pop()
        corners.append(i)
    breaks = [0.0]
    for one, other in pairwise(corners):
        breaks.append(float((risk[other] - risk[one]) / (loss[one] - loss[other])))
    return [Range(i, low, high) for i, low, high in zip(corners, breaks, [*breaks[1:], np.inf], strict=True)]


def _turns(risk: NDArray[np.float64], loss: NDArray[np.float64], a: int, b: int, c: int) -> bool:
    """Tell whether b lies strictly below the line from a to c."""
    cross = (risk[b] - risk[a]) * (loss[c] - loss[a]) - (loss[b] - loss[a]) * (risk[c] - risk[a])
    return bool(cross > 0)


def scaled(points: Points, front: Flags) -> Points:
    """Scale each objective so that the frontier's box is [0, 1]; an objective without spread becomes 0."""
    low, high = points[front].min(axis=0), points[front].max(axis=0)
    spread = np.where(high > low, high - low, 1.0)
    with np.errstate(over="ignore"):  # points far from a tiny box are far, however far
        return (points - low) / spread


def knee(points: Points) -> int:
    """Return the frontier point farthest below the chord between the two ends of the frontier, after scaling."""
    front = non_dominated(points)
    at = scaled(points, front)
    depth = np.where(front, 1 - at.sum(axis=1), -np.inf)
    return int(np.argmax(depth))


def nearest_ideal(points: Points, weights: NDArray[np.float64]) -> int:
    """Return the point with the least weighted distance to the ideal point, after scaling."""
    front = non_dominated(points)
    distance = np.hypot(*(np.sqrt(weights) * scaled(points, front)).T)
    return int(np.argmin(np.where(front, distance, np.inf)))


NOISE_SHARE = 0.5


class Cloud(NamedTuple):
    """One design over its seeds; `share` is the share of seeds in which it is on that seed's frontier."""

    design: int
    seeds: int
    mean_risk: float
    sd_risk: float
    mean_loss: float
    sd_loss: float
    share: float
    on_frontier: bool


def clouds(points: Floats, designs: Ints, seed_nos: Ints) -> list[Cloud]:
    """Return the cloud of each design. A design is on the frontier when its mean over seeds is.

    `seed_nos` are running numbers that tell the seeds apart, never the seeds.
    """
    numbers, place = np.unique(designs, return_inverse=True)
    count = np.bincount(place)
    mean = np.stack([np.bincount(place, weights=points[:, i]) / count for i in (0, 1)], axis=1)
    square = np.stack([np.bincount(place, weights=(points[:, i] - mean[place, i]) ** 2) for i in (0, 1)], axis=1)
    sd = np.sqrt(square / np.maximum(count - 1, 1)[:, None])
    on = np.zeros(len(numbers), dtype=np.int64)
    for seed_no in np.unique(seed_nos):
        rows = np.flatnonzero(seed_nos == seed_no)
        on += np.bincount(place[rows[non_dominated(points[rows])]], minlength=len(numbers))
    front = non_dominated(mean)
    return [
        Cloud(int(n), int(c), float(m[0]), float(s[0]), float(m[1]), float(s[1]), float(k / c), bool(f))
        for n, c, m, s, k, f in zip(numbers, count, mean, sd, on, front, strict=True)
    ]


def seed_warning(found: list[Cloud]) -> str:
    """Say in plain words when the frontier is seed noise; empty when it is not, or cannot be told."""
    if any(cloud.seeds < 2 for cloud in found):
        return (
            "Some designs have one seed only, so nobody can tell whether they are on the frontier by design or by "
            "luck. Search with several seeds."
        )
    front = [cloud for cloud in found if cloud.on_frontier]
    lucky = [cloud for cloud in front if cloud.share < NOISE_SHARE]
    if len(lucky) * 2 < len(front):
        return ""
    return (
        f"Of the {len(front)} designs on the frontier of the means, {len(lucky)} are on it in fewer than half of "
        "their seeds: much of this frontier is seed noise, not design. Compare designs by their means over seeds."
    )
