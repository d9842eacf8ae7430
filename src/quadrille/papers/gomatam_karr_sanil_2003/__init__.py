"""Gomatam, Karr & Sanil (2003), A Risk-Utility Framework for Categorical Data Swapping, NISS Technical Report 132.

All swaps of one or two variables of CPS-8d at three rates, by risk and distortion: the claims of the paper with counts
over seeds, reference values beside ours, Figures 2 to 4.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from quadrille.datasets import cps8d
from quadrille.papers.gomatam_karr_sanil_2003 import claims
from quadrille.papers.gomatam_karr_sanil_2003 import figures as drawn
from quadrille.papers.gomatam_karr_sanil_2003.run import MEASURES, Experiment, designs, draw_all
from quadrille.papers.reproduction import (
    Check,
    Listing,
    Progress,
    Reproduction,
    adding_up,
    check_arguments,
    save_figures,
)

if TYPE_CHECKING:
    import polars as pl

__all__ = ["MEASURES", "figures", "reproduce", "write_figures"]

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
    check_arguments(seeds, sampler, SAMPLERS)
    data = cps8d()
    candidates = 2 * designs(data) * seeds
    done = adding_up(progress, candidates)
    samplers = sorted(SAMPLERS, key=lambda name: name != sampler)
    mine, other = (draw_all(data, name, seeds, done) for name in samplers)
    checks = [*claims.checks(mine), *claims.checks(other)]
    points = drawn.points(mine, data.n)
    fooled = claims.fooled(data)
    return Reproduction(
        paper="gomatam-karr-sanil-2003",
        title="Gomatam, Karr & Sanil (2003), A Risk-Utility Framework for Categorical Data Swapping, "
        "NISS Technical Report 132",
        setting={
            "file": "CPS-8d",
            "sampler": f"{sampler} ({other.sampler} beside it)",
            "seeds": seeds,
            "candidates": f"{candidates:,}",
        },
        claims=(*claims.both(mine, other), claims.infeasible(data, mine)),
        errata=ERRATA,
        figures=_summary(mine, checks, fooled),
        listings=(
            claims.means(mine, other),
            claims.ranges(mine, other),
            claims.frontier(points),
            claims.constraints(mine),
            claims.constraints(other),
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
    from quadrille import chart

    frames = figures(reproduction).items()
    return save_figures(
        {name: chart.frontier(frame, risk="small_cells", loss="hellinger") for name, frame in frames}, folder
    )


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
