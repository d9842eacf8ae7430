"""Seed clouds: candidates that differ by seed only, and whether the frontier is design or noise."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadrille.study.frontier import non_dominated

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
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
