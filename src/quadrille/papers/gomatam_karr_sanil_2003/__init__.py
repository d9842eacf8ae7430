"""Gomatam, Karr & Sanil (2003), A Risk-Utility Framework for Categorical Data Swapping, NISS Technical Report 132.

All swaps of one or two variables of CPS-8d at three rates, by risk and distortion: the claims of the paper with counts
over seeds, reference values beside ours, Figures 2 to 4.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from quadrille.data import Cross, Data
from quadrille.datasets import cps8d
from quadrille.papers.gomatam_karr_sanil_2003 import claims, reference
from quadrille.papers.gomatam_karr_sanil_2003 import claims as constraints
from quadrille.papers.gomatam_karr_sanil_2003 import figures as drawn
from quadrille.papers.gomatam_karr_sanil_2003.experiment import MEASURES, PAIRS, Experiment, designs, run
from quadrille.papers.gomatam_karr_sanil_2003.fooled import SWAP, fooling_plan
from quadrille.papers.reproduction import Check, Listing, Progress, Reproduction
from quadrille.params import one_of, whole
from quadrille.score.evaluator import score
from quadrille.swap.pairing import Sampler

if TYPE_CHECKING:
    import polars as pl

DEFAULT_SEEDS = 100
DEFAULT_SAMPLER = "pair-uniform"
SAMPLERS = ("pair-uniform", "first-uniform")

ERRATA = (
    "The rate of this paper is k/N, pairs by records: 0.005, 0.01 and 0.05 are 244, 488 and 2,442 pairs. It is half "
    "the share of records that take part, which is the rate of the report before it (131) and of Quadrille.",
    "Race + AnnSal at 0.05 is feasible: see the claim. A sampler that makes a single pass over the file, "
    "as the paper's seems to, does not find enough pairs.",
    "The n-rule calls every swapped record safe, whatever the swap did to it. Swaps that undo one another lower that "
    "risk and leave the release as it was: see the plan above. Read small_cells together with exposed.",
    "A single draw per candidate makes a frontier that is partly luck, at the two lower rates above all: "
    "see the share of seeds. Means over seeds tell designs apart.",
    "The reference values are the project's own, not the paper's. The least Hellinger distance at 244 pairs has one of "
    "20 seeds that is low by chance: the mean of 4,000 seeds is 2.05 % above it.",
)


def reproduce(
    seeds: int = DEFAULT_SEEDS, sampler: str = DEFAULT_SAMPLER, progress: Progress | None = None
) -> Reproduction:
    """Draw all candidates with both samplers; judge the claims by the one asked for, with the other beside it."""
    whole("reproduce", "seeds", seeds, least=2)
    one_of("reproduce", "sampler", sampler, SAMPLERS)
    data = cps8d()
    mine, other = _experiments(data, cast("Sampler", sampler), seeds, progress)
    checks = [check for found in (mine, other) for check in reference.checks(found)]
    points = drawn.points(mine, data.n)
    judged = claims.with_other(claims.claims(mine), claims.claims(other), other.sampler)
    fooled = _fooled(data)
    return Reproduction(
        paper="gomatam-karr-sanil-2003",
        title="Gomatam, Karr & Sanil (2003), A Risk-Utility Framework for Categorical Data Swapping, "
        "NISS Technical Report 132",
        setting={
            "file": "CPS-8d",
            "sampler": f"{sampler} ({other.sampler} beside it)",
            "seeds": seeds,
            "candidates": f"{2 * designs(data) * seeds:,}",
        },
        cells=(),
        claims=(*judged, claims.infeasible(data, mine)),
        errata=ERRATA,
        figures=_summary(mine, checks, fooled),
        listings=(
            _means(mine, other),
            _ranges(mine, other),
            _frontier(points),
            constraints.listing(mine),
            constraints.listing(other),
            fooled,
        ),
        checks=tuple(checks),
        points=points,
    )


def figures(reproduction: Reproduction) -> dict[str, pl.DataFrame]:
    """Return Figures 2, 3 and 4 as frames for `quadrille.chart.frontier`, by the name of the picture."""
    return drawn.frames_of(reproduction.points)


def write_figures(reproduction: Reproduction, folder: str | Path) -> list[Path]:
    """Draw Figures 2, 3 and 4 as PNG files in a folder; return their paths."""
    return drawn.write(reproduction.points, Path(folder))


def _experiments(data: Data, sampler: Sampler, seeds: int, progress: Progress | None) -> tuple[Experiment, Experiment]:
    total, so_far = 2 * designs(data) * seeds, 0

    def done(candidates: int) -> None:
        nonlocal so_far
        so_far += candidates
        if progress:
            progress(so_far, total)

    second: Sampler = "first-uniform" if sampler == "pair-uniform" else "pair-uniform"
    return run(data, sampler, seeds, done), run(data, second, seeds, done)


def _means(*experiments: Experiment) -> Listing:
    rows: list[tuple[str | int | float, ...]] = []
    for found in experiments:
        for r, pairs in enumerate(PAIRS):
            for word, which in (("one", slice(None, found.singles)), ("two", slice(found.singles, None))):
                rows.append((found.sampler, pairs, word, *map(float, found.means[r, which].mean(axis=0))))
    return Listing("Means over swaps and seeds", ("sampler", "pairs", "variables", *MEASURES), tuple(rows))


def _ranges(*experiments: Experiment) -> Listing:
    rows: list[tuple[str | int | float, ...]] = []
    for found in experiments:
        for r, pairs in enumerate(PAIRS):
            low, high = found.means[r].min(axis=0), found.means[r].max(axis=0)
            shown = [f"{a:.4f}-{b:.4f}" for a, b in zip(low, high, strict=True)]
            rows.append((found.sampler, pairs, *shown))
    return Listing("Ranges over the 36 swaps, means over seeds", ("sampler", "pairs", *MEASURES), tuple(rows))


def _frontier(points: tuple[drawn.Point, ...]) -> Listing:
    best = [p for p in points if p["on_frontier"] and p["constraint"] == drawn.FREE]
    rows = tuple(
        (p["swap"], p["pairs"], p["risk"], p["exposed"], p["loss"], f"{p['share']:.0%}")
        for p in sorted(best, key=lambda p: p["loss"])
    )
    return Listing(
        "Combined frontier of the means, all three rates",
        ("swap", "pairs", "small_cells", "exposed", "hellinger", "of seeds"),
        rows,
        "Of seeds: the share of seeds in whose own combined frontier the candidate is. A low share says that a single "
        "draw would show another frontier.",
    )


def _fooled(data: Data) -> Listing:
    """Score the plan that fools the n-rule beside the file as it is."""
    plan = fooling_plan(data)
    found = [float(value or 0.0) for value in score(data, plan, MEASURES).values()]
    account = plan.report(data)
    at_risk = _small_before(data)
    return Listing(
        f"A plan that fools the n-rule: {account.pairs:,} pairs exchange {', '.join(SWAP)}",
        ("", *MEASURES),
        (("before", at_risk, at_risk, 1.0, 0.0), ("after", *found)),
        f"All records of cells of one or two records are swapped, so the n-rule sees no risk; {found[1] / at_risk:.1%} "
        "of them can still be found in the release, and an intruder who sees a small cell is right in "
        f"{found[2]:.1%} of cases. No pair compensates by itself; the report of the plan counts "
        f"{account.compensating:,} of its {account.records:,} records as compensating.",
    )


def _small_before(data: Data) -> float:
    """Return the share of records in cells of one or two records, before any swap."""
    counts = np.unique(Cross.of(data, data.keys).cells(data), return_counts=True)[1]
    return float(counts[counts < 3].sum()) / data.n


def _summary(found: Experiment, checks: list[Check], fooled: Listing) -> dict[str, float]:
    means = [check for check in checks if ": mean " in check.table]
    ends = [check for check in checks if ": range " in check.table]
    before, after = fooled.rows
    return {
        "candidates without constraint, per seed": float(found.free[:, :, 0, 0].size),
        "risk before any swap (small_cells and exposed)": float(before[1]),
        "means compared with a reference": float(len(means)),
        "their largest |z|": max(abs(check.z) for check in means),
        "ends of ranges compared": float(len(ends)),
        "of them within 2 %": float(sum(check.agrees for check in ends)),
        "fooled n-rule, small_cells": float(after[1]),
        "fooled n-rule, exposed": float(after[2]),
    }
