"""Figures 2, 3 and 4 of the paper as tidy frames, from means over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict, cast

import numpy as np

from quadrille.data import tidy
from quadrille.papers.gomatam_karr_sanil_2003.run import (
    AXES,
    CONSTRAINED_RATE,
    CONSTRAINTS,
    PAIRS,
    Experiment,
    Floats,
    name_of,
)
from quadrille.study.frontier import non_dominated

if TYPE_CHECKING:
    import polars as pl

FREE = ""
"""The name of no constraint."""


class Point(TypedDict):
    """A design: means over seeds; whether it is on the frontier of the means, and in which share of the seeds.

    `rate` is the share of records that take part, twice the paper's.
    """

    swap: str
    variables: int
    pairs: int
    rate: float
    constraint: str
    risk: float
    exposed: float
    confidence: float
    loss: float
    on_own_frontier: bool
    on_frontier: bool
    share_own: float
    share: float


def points(found: Experiment, records: int) -> tuple[Point, ...]:
    """Return all designs, those without constraint first. Constrained designs have a frontier among themselves."""
    seeds = [found.frontiers(found.free[:, :, seed]) for seed in range(found.seeds)]
    own_share, share = (np.mean([flags[i] for flags in seeds], axis=0) for i in (0, 1))
    own, combined = found.frontiers(found.means)

    def point(
        swap: int, pairs: int, constraint: str, means: Floats, front: Sequence[np.bool_], shares: Sequence[np.float64]
    ) -> Point:
        risk, exposed, confidence, loss = means.tolist()
        return Point(
            swap=name_of(found.swaps[swap]),
            variables=len(found.swaps[swap]),
            pairs=pairs,
            rate=2 * pairs / records,
            constraint=constraint,
            risk=risk,
            exposed=exposed,
            confidence=confidence,
            loss=loss,
            on_own_frontier=bool(front[0]),
            on_frontier=bool(front[1]),
            share_own=float(shares[0]),
            share=float(shares[1]),
        )

    listed = [
        point(i, pairs, FREE, found.means[r, i], (own[r, i], combined[r, i]), (own_share[r, i], share[r, i]))
        for r, pairs in enumerate(PAIRS)
        for i in range(len(found.swaps))
    ]
    for name in CONSTRAINTS:
        scores = found.constrained[name]
        means = scores.mean(axis=1)
        among = non_dominated(means[:, AXES])
        in_seeds = np.mean([non_dominated(scores[:, seed][:, AXES]) for seed in range(found.seeds)], axis=0)
        listed += [
            point(i, PAIRS[CONSTRAINED_RATE], name, means[j], (among[j],) * 2, (in_seeds[j],) * 2)
            for j, i in enumerate(found.left_by(name))
        ]
    return tuple(listed)


def frames_of(given: Iterable[Mapping[str, object]]) -> dict[str, pl.DataFrame]:
    """Lay the points out for the chart of the frontier, a frame per picture.

    Figure 2: all candidates without constraint. Figure 3: the frontier of each rate and of all together. Figure 4:
    constrained beside unconstrained swaps, the same designs in both.
    """
    listed = cast("list[Point]", list(given))
    free = [point for point in listed if point["constraint"] == FREE]
    words = {1: "one", 2: "two"}
    found = {"figure-2": tidy([_row(p, words[p["variables"]], on=p["on_frontier"]) for p in free])}
    for pairs in PAIRS:
        rows = [_row(p, p["swap"], on=p["on_own_frontier"]) for p in free if p["pairs"] == pairs]
        found[f"figure-3-{pairs}-pairs"] = tidy(rows)
    found["figure-3-combined"] = tidy([_row(p, p["swap"], on=p["on_frontier"]) for p in free])
    for constraint in CONSTRAINTS:
        found[f"figure-4-{constraint.lower().replace(' ', '-')}"] = tidy(_beside(listed, constraint))
    return found


def _row(point: Point, swap: str, *, on: bool) -> dict[str, object]:
    label = f"{point['swap']}, {point['pairs']:,} pairs" + (f", {point['constraint']}" if point["constraint"] else "")
    return {
        "risk": point["risk"],
        "loss": point["loss"],
        "swap": swap,
        "rate": point["rate"],
        "on_frontier": on,
        "chosen": False,
        "label": label,
        "exposed": point["exposed"],
    }


def _beside(listed: list[Point], constraint: str) -> list[dict[str, object]]:
    bound = [point for point in listed if point["constraint"] == constraint]
    names = {point["swap"] for point in bound}
    pairs = PAIRS[CONSTRAINED_RATE]
    free = [p for p in listed if p["constraint"] == FREE and p["pairs"] == pairs and p["swap"] in names]
    both = [*free, *bound]
    on = non_dominated(np.array([[point["risk"], point["loss"]] for point in both]))
    words = {FREE: f"{len(names)} swaps, no constraint", constraint: f"{len(names)} swaps, {constraint}"}
    return [_row(p, words[p["constraint"]], on=bool(flag)) for p, flag in zip(both, on, strict=True)]
