"""Gomatam, Karr & Sanil (2003), A Risk-Utility Framework for Categorical Data Swapping, NISS Technical Report 132.

All swaps of one or two variables of CPS-8d at three rates, by risk and distortion: the claims of the paper with counts
over seeds, reference values beside ours, Figures 2 to 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from quadrille.data import Cross, Data
from quadrille.datasets import cps8d
from quadrille.papers.gomatam_karr_sanil_2003.run import (
    CONSTRAINED_RATE,
    CONSTRAINTS,
    EXPOSED,
    FREE,
    LOSS,
    MEASURES,
    PAIRS,
    RISK,
    SWAP,
    Experiment,
    Flags,
    Point,
    Swap,
    designs,
    draw_all,
    expected,
    fooling_plan,
    frames_of,
    most_pairs,
    points_of,
    simulated,
)
from quadrille.papers.reproduction import (
    ABOUT,
    MOST_ERRORS,
    Check,
    Claim,
    Columns,
    Floats,
    Listing,
    Progress,
    Reproduction,
    adding_up,
    check_arguments,
    over_seeds,
    save_figures,
)
from quadrille.score.evaluator import score
from quadrille.study.choose import dominated_by

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
    compared = [*checks(mine), *checks(other)]
    points = points_of(mine, data.n)
    tricked = fooled(data)
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
        claims=(*both(mine, other), infeasible(data, mine)),
        errata=ERRATA,
        figures=_summary(mine, compared, tricked),
        listings=(
            means(mine, other),
            ranges(mine, other),
            frontier(points),
            constraints(mine),
            constraints(other),
            tricked,
        ),
        checks=tuple(compared),
        points=points,
    )


def figures(reproduction: Reproduction) -> dict[str, pl.DataFrame]:
    """Return Figures 2, 3 and 4 as frames for `quadrille.chart.frontier`, by the name of the picture."""
    return frames_of(reproduction.points)


def write_figures(reproduction: Reproduction, folder: str | Path) -> list[Path]:
    """Draw Figures 2, 3 and 4 as PNG files in a folder; return their paths."""
    from quadrille import chart

    frames = figures(reproduction).items()
    return save_figures(
        {name: chart.frontier(frame, risk="small_cells", loss="hellinger") for name, frame in frames}, folder
    )


def _summary(found: Experiment, checks: list[Check], fooled: Listing) -> dict[str, float]:
    before, after = fooled.rows
    return {
        "candidates without constraint, per seed": float(found.free[:, :, 0, 0].size),
        "risk before any swap (small_cells and exposed)": float(before[1]),
        "reference values compared": float(len(checks)),
        "of them agree": float(sum(check.agrees for check in checks)),
        "their largest |z|": max(abs(check.z or 0.0) for check in checks),
        "fooled n-rule, small_cells": float(after[1]),
        "fooled n-rule, exposed": float(after[2]),
    }


_SHOWN = (RISK, EXPOSED, LOSS)


@dataclass(frozen=True)
class Effect:
    """A paired comparison by design: mean over designs of (with - without), its standard error over seeds.

    `up` and `down` count the designs whose own difference is more than 2 standard errors above or below 0.
    """

    constraint: str
    measure: int
    without: float
    difference: float
    error: float
    up: int
    down: int

    @property
    def z(self) -> float:
        """The difference in standard errors."""
        return self.difference / self.error


def effects(found: Experiment) -> list[Effect]:
    """Compare every constraint with no constraint, measure by measure."""
    return [_effect(found, constraint, measure) for constraint in CONSTRAINTS for measure in _SHOWN]


def _pair(found: Experiment, constraint: str, measure: int) -> tuple[Floats, Floats]:
    """Return the scores (swap, seed) with and without a constraint."""
    without = found.free[CONSTRAINED_RATE, found.left_by(constraint), :, measure]
    return found.constrained[constraint][..., measure], without


def _effect(found: Experiment, constraint: str, measure: int) -> Effect:
    with_it, without = _pair(found, constraint, measure)
    by_seed = (with_it - without).mean(axis=0)
    own = with_it.mean(axis=1) - without.mean(axis=1)
    z = own / np.sqrt((with_it.var(axis=1, ddof=1) + without.var(axis=1, ddof=1)) / found.seeds)
    return Effect(
        constraint,
        measure,
        float(without.mean()),
        float(by_seed.mean()),
        float(by_seed.std(ddof=1)) / sqrt(found.seeds),
        int((z > 2).sum()),
        int((z < -2).sum()),
    )


def means(*experiments: Experiment) -> Listing:
    """Show the means over swaps of one and of two variables."""
    rows = tuple(
        (found.sampler, pairs, word, *map(float, found.means[r, which].mean(axis=0)))
        for found in experiments
        for r, pairs in enumerate(PAIRS)
        for word, which in (("one", slice(None, found.singles)), ("two", slice(found.singles, None)))
    )
    return Listing("Means over swaps and seeds", ("sampler", "pairs", "variables", *MEASURES), rows)


def ranges(*experiments: Experiment) -> Listing:
    """Show the least and the largest mean over seeds among the swaps."""
    rows = tuple(
        (found.sampler, pairs, *(f"{own.min():.4f}-{own.max():.4f}" for own in found.means[r].T))
        for found in experiments
        for r, pairs in enumerate(PAIRS)
    )
    return Listing("Ranges over the 36 swaps, means over seeds", ("sampler", "pairs", *MEASURES), rows)


def frontier(points: Sequence[Point]) -> Listing:
    """Show the combined frontier of the means."""
    columns: Columns[Point] = (
        ("swap", "", lambda point: point["swap"]),
        ("pairs", "", lambda point: point["pairs"]),
        ("small_cells", "", lambda point: point["risk"]),
        ("exposed", "", lambda point: point["exposed"]),
        ("hellinger", "", lambda point: point["loss"]),
        ("of seeds", ".0%", lambda point: point["share"]),
    )
    best = [point for point in points if point["on_frontier"] and point["constraint"] == FREE]
    return Listing.of(
        "Combined frontier of the means, all three rates",
        sorted(best, key=lambda point: point["loss"]),
        columns,
        "Of seeds: the share of seeds in whose own combined frontier the candidate is. A low share says that a single "
        "draw would show another frontier.",
    )


def constraints(found: Experiment) -> Listing:
    """Show all paired comparisons."""
    columns: Columns[Effect] = (
        ("constraint", "", lambda effect: effect.constraint),
        ("measure", "", lambda effect: MEASURES[effect.measure]),
        ("without", "", lambda effect: effect.without),
        ("change", "+.5f", lambda effect: effect.difference),
        ("error", "", lambda effect: effect.error),
        ("z", "+.1f", lambda effect: effect.z),
        ("in %", "+.1f", lambda effect: 100 * effect.difference / effect.without),
        ("up", "", lambda effect: effect.up),
        ("down", "", lambda effect: effect.down),
    )
    return Listing.of(
        f"Constraints at 488 pairs, {found.sampler}: with minus without, paired by design",
        effects(found),
        columns,
        "Means over the 28 swaps that do not use the constraining variable, standard errors over seeds. Up, down: "
        "swaps whose own change is more than 2 standard errors from 0; chance alone gives about 1 in all.",
    )


def fooled(data: Data) -> Listing:
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


def _same_range(found: Experiment) -> Claim:
    moved: list[float] = []
    words: list[str] = []
    for constraint in CONSTRAINTS:
        parts: list[str] = []
        for measure in _SHOWN:
            with_it, without = (scores.mean(axis=1) for scores in _pair(found, constraint, measure))
            ends = [(float(end(with_it)), float(end(without))) for end in (np.min, np.max)]
            moved += [abs(new / old - 1) for new, old in ends]
            (low, old_low), (high, old_high) = ends
            parts.append(f"{MEASURES[measure]} {low:.4f}-{high:.4f} (without: {old_low:.4f}-{old_high:.4f})")
        words.append(f"{constraint}: {', '.join(parts)}")
    evidence = f"{'; '.join(words)}. No end moves by more than {max(moved):.1%}"
    text = f"constrained swaps have about the same range (each end within {ABOUT:.0%})"
    return Claim(text, max(moved) <= ABOUT, evidence)


def _no_effect(found: Experiment) -> Claim:
    seen = effects(found)
    words = [
        f"{name}: "
        + ", ".join(
            f"{MEASURES[e.measure]} {e.difference / e.without:+.1%} (z = {e.z:+.1f}; {e.up} swaps up, {e.down} down)"
            for e in seen
            if e.constraint == name
        )
        for name in CONSTRAINTS
    ]
    text = f"constraints have no systematic effect (no mean difference beyond {MOST_ERRORS:.0f} standard errors)"
    return Claim(text, all(abs(effect.z) <= MOST_ERRORS for effect in seen), "; ".join(words))


MANY = 10
"""From this many on, out of 36, "many" is true."""
UNFEASIBLE: Swap = ("Race", "AnnSal")
"""The swap that the paper calls not feasible at its largest rate."""
MIDDLE, LAST = 1, 2
PASSES = 200


def all_claims(found: Experiment) -> list[Claim]:
    """Judge all claims but the one about feasibility, which does not depend on scores."""
    return [
        _monotone(found, LOSS, 1, "distortion rises with the rate (every swap)"),
        _monotone(found, RISK, -1, "risk falls with the rate (every swap)"),
        _singles(found),
        _spread(found, RISK, "the spread of risk over swaps grows with the rate"),
        _spread(found, LOSS, "the spread of distortion over swaps grows with the rate"),
        _combined(found),
        _edu_on_its_own(found),
        _edu_dominated(found),
        _same_range(found),
        _no_effect(found),
    ]


def _monotone(found: Experiment, measure: int, sign: int, text: str) -> Claim:
    def counts(which: int) -> str:
        means = sign * np.diff(found.means[:, :, which], axis=0) > 0
        single = sign * np.diff(found.free[:, :, :, which], axis=0) > 0
        return f"{means.sum()} of {means.size} steps of means, {single.sum():,} of {single.size:,} of single seeds"

    holds = bool((sign * np.diff(found.means[:, :, measure], axis=0) > 0).all())
    evidence = counts(measure)
    if measure == RISK:
        evidence += f"; by exposed: {counts(EXPOSED)}"
    return Claim(text, holds, evidence)


def _singles(found: Experiment) -> Claim:
    def compare(measure: int) -> tuple[Floats, Floats]:
        scores = found.free[..., measure]
        return scores[:, : found.singles].mean(axis=1), scores[:, found.singles :].mean(axis=1)

    words: list[str] = []
    for name, measure in (("small_cells", RISK), ("exposed", EXPOSED)):
        one, two = compare(measure)
        means = ", ".join(f"{a:.5f}/{b:.5f}" for a, b in zip(one.mean(axis=1), two.mean(axis=1), strict=True))
        words.append(f"{name} {means}, one above two in {(one > two).sum()} of {one.size} seeds and rates")
    one, two = (scores.mean(axis=1) for scores in compare(RISK))
    text = "single-variable swaps are riskier than two-variable ones (means over swaps, at each rate)"
    return Claim(text, bool((one > two).all()), "; ".join(words))


def _spread(found: Experiment, measure: int, text: str) -> Claim:
    def ranges(which: int) -> tuple[Floats, Flags]:
        means = np.ptp(found.means[:, :, which], axis=1)
        by_seed = np.ptp(found.free[..., which], axis=1)
        return means, (np.diff(by_seed, axis=0) > 0).all(axis=0)

    def words(which: int) -> str:
        means, grows = ranges(which)
        shown = ", ".join(f"{value:.4f}" for value in means)
        return f"{shown} (means over seeds), growing in {grows.sum()} of {grows.size} seeds"

    evidence = f"largest minus least: {words(measure)}"
    if measure == RISK:
        evidence += f"; of exposed: {words(EXPOSED)}"
    return Claim(text, bool((np.diff(ranges(measure)[0]) > 0).all()), evidence)


def _combined(found: Experiment) -> Claim:
    sizes = np.array([[flags.sum() for flags in found.frontiers(found.free[:, :, s])] for s in range(found.seeds)])
    own, combined = found.frontiers(found.means)
    strict = int((sizes[:, 1] < sizes[:, 0]).sum())
    evidence = (
        f"strict in {strict} of {found.seeds} seeds; on average {sizes[:, 1].mean():.1f} of {sizes[:, 0].mean():.1f} "
        f"candidates remain; by means {combined.sum()} of {own.sum()}"
    )
    text = "the combined frontier is a strict subset of the union of the three"
    return Claim(text, bool((combined <= own).all()) and strict == found.seeds, evidence)


def _edu_on_its_own(found: Experiment) -> Claim:
    edu = found.swaps.index(("Edu",))
    seeds = sum(bool(found.frontiers(found.free[:, :, s])[0][LAST, edu]) for s in range(found.seeds))
    holds = bool(found.frontiers(found.means)[0][LAST, edu])
    evidence = f"by means {'yes' if holds else 'no'}; in {seeds} of {found.seeds} seeds"
    return Claim(f"Edu at 0.05 ({PAIRS[LAST]:,} pairs) is on the frontier of its own rate", holds, evidence)


def _edu_dominated(found: Experiment) -> Claim:
    edu = found.swaps.index(("Edu",))

    def better(scores: Floats, risk: int = RISK) -> int:
        """Count the swaps of the middle rate that dominate it."""
        points = np.concatenate((scores[LAST, edu : edu + 1], scores[MIDDLE]))[:, [risk, LOSS]]
        return int(dominated_by(points)[0])

    by_seed = [better(found.free[:, :, s]) for s in range(found.seeds)]
    by_means = better(found.means)
    evidence = (
        f"by {by_means} of {len(found.swaps)} by means; by {np.mean(by_seed):.1f} in a single seed "
        f"({min(by_seed)} to {max(by_seed)}); with exposed as the risk, by {better(found.means, EXPOSED)}"
    )
    text = f"Edu at 0.05 is dominated by many 0.01 swaps ({PAIRS[MIDDLE]} pairs; many: {MANY} or more)"
    return Claim(text, by_means >= MANY, evidence)


def infeasible(data: Data, found: Experiment) -> Claim:
    """Judge the swap that the paper calls not feasible, and say why it could not find enough pairs."""
    one = expected(data, UNFEASIBLE)
    mean, sd = simulated(data, UNFEASIBLE, PASSES)
    others = [expected(data, swap).mean for swap in found.swaps if swap != UNFEASIBLE]
    evidence = (
        f"{PAIRS[LAST]:,} pairs are found in {found.seeds} of {found.seeds} seeds; the maximum is "
        f"{most_pairs(data, UNFEASIBLE):,}. A single pass (all records in random order, cut into pairs, "
        f"those kept that differ in both variables) finds {one.mean:,.0f} with standard deviation {one.sd:.0f} "
        f"(simulated: {mean:,.0f} and {sd:.0f} in {PASSES} passes; {one.sd_independent:.0f} if as many pairs are drawn "
        f"independently). All other swaps yield {min(others):,.0f} or more in such a pass, so this is the only one of "
        f"the {len(found.swaps)} that it cannot do"
    )
    return Claim(f"Race + AnnSal at 0.05 ({PAIRS[LAST]:,} pairs) is not feasible", False, evidence)


def both(mine: Experiment, other: Experiment) -> list[Claim]:
    """Judge all claims by one sampler, and add to each the verdict that the other one gives."""
    return [
        Claim(claim.text, claim.holds, f"{claim.evidence}. With {other.sampler}: {_SAID[twin.holds]}")
        for claim, twin in zip(all_claims(mine), all_claims(other), strict=True)
    ]


_SAID = {True: "holds", False: "does not hold"}

# Reference values of the project's specification; they are not numbers of the paper.
REFERENCE_SEEDS = {"pair-uniform": 20, "first-uniform": 100}
RISKS = {
    "pair-uniform": (("0.01475", "0.01452"), ("0.01453", "0.01416"), ("0.01346", "0.01258")),
    "first-uniform": (("0.01475", "0.01453"), ("0.01454", "0.01415"), ("0.01347", "0.01237")),
}
"""Mean risk over the swaps of one and of two variables, by rate."""
RANGES = {
    ("pair-uniform", RISK): (("0.0141", "0.0149"), ("0.0137", "0.0148"), ("0.0110", "0.0143")),
    ("pair-uniform", LOSS): (("0.0145", "0.0361"), ("0.0214", "0.0533"), ("0.0549", "0.1424")),
    ("first-uniform", RISK): (("0.0142", "0.0149"), ("0.0137", "0.0148"), ("0.0105", "0.0143")),
    ("first-uniform", LOSS): (("0.0145", "0.0354"), ("0.0213", "0.0517"), ("0.0534", "0.1376")),
}
"""Least and largest mean over seeds among the swaps, by rate."""
EXPOSURES = {"pair-uniform": ("0.01447", "0.01400", "0.01206")}
"""Mean of `exposed` over all swaps, by rate."""
LOWEST_EXPOSED = {"pair-uniform": "0.0108"}
LOWEST_OF_SEEDS = 3
NOT_IN_THE_PAPER = ("Race", "AnnSal")
"""Lowest `exposed` of 321 single draws: 107 designs with three seeds, without the swap that the paper could not do."""


def checks(found: Experiment) -> list[Check]:
    """Set all reference values for the sampler beside ours."""
    return [*_mean_checks(found), *_extreme_checks(found), *_lowest(found)]


def _check(found: Experiment, kind: str, measure: int, what: str, printed: str, by_seed: Floats) -> Check:
    """Compare a mean over seeds with that of the reference, which has seeds of its own."""
    reason = f"by chance, it seems: the reference has {REFERENCE_SEEDS[found.sampler]} seeds"
    title = f"Reference and ours: {kind} {MEASURES[measure]} over swaps, {found.sampler}"
    return Check(title, what, "", printed, *over_seeds(by_seed, REFERENCE_SEEDS[found.sampler]), reason)


def _mean_checks(found: Experiment) -> list[Check]:
    by_size = {"one variable": slice(None, found.singles), "two variables": slice(found.singles, None)}
    rows: list[Check] = []
    for r, pairs in enumerate(PAIRS):
        for (word, which), printed in zip(by_size.items(), RISKS[found.sampler][r], strict=True):
            ours = found.free[r, which, :, RISK].mean(axis=0)
            rows.append(_check(found, "mean", RISK, f"{pairs:,} pairs, {word}", printed, ours))
    for r, printed in enumerate(EXPOSURES.get(found.sampler, ())):
        ours = found.free[r, :, :, EXPOSED].mean(axis=0)
        rows.append(_check(found, "mean", EXPOSED, f"{PAIRS[r]:,} pairs, all swaps", printed, ours))
    return rows


def _extreme_checks(found: Experiment) -> list[Check]:
    rows: list[Check] = []
    for measure in (RISK, LOSS):
        for r, pairs in enumerate(PAIRS):
            means = found.means[r, :, measure]
            ends = (("least", int(means.argmin())), ("largest", int(means.argmax())))
            for (word, swap), printed in zip(ends, RANGES[found.sampler, measure][r], strict=True):
                ours = found.free[r, swap, :, measure]
                rows.append(_check(found, "range of", measure, f"{pairs:,} pairs, {word}", printed, ours))
    return rows


def _lowest(found: Experiment) -> list[Check]:
    """Compare the lowest `exposed` among as many single draws as the reference had, over groups of seeds."""
    if found.sampler not in LOWEST_EXPOSED or found.seeds < 2 * LOWEST_OF_SEEDS:
        return []
    exposed = found.free[..., EXPOSED].copy()  # rate, swap, seed
    exposed[-1, found.swaps.index(NOT_IN_THE_PAPER)] = np.inf
    starts = range(0, found.seeds - LOWEST_OF_SEEDS + 1, LOWEST_OF_SEEDS)
    lowest = np.array([exposed[..., i : i + LOWEST_OF_SEEDS].min() for i in starts])
    what = f"least of {exposed[..., :LOWEST_OF_SEEDS].size - LOWEST_OF_SEEDS:,} draws"
    title = f"Reference and ours: range of {MEASURES[EXPOSED]} over swaps, {found.sampler}"
    return [Check(title, what, "", LOWEST_EXPOSED[found.sampler], *over_seeds(lowest))]
