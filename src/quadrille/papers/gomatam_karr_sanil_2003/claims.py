"""The claims of the paper with their counts over seeds."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from quadrille.data import Data
from quadrille.papers.gomatam_karr_sanil_2003 import experiment
from quadrille.papers.gomatam_karr_sanil_2003.experiment import (
    CONSTRAINED_RATE,
    CONSTRAINTS,
    EXPOSED,
    LOSS,
    MEASURES,
    PAIRS,
    RISK,
    Experiment,
    Flags,
    Floats,
    Swap,
)
from quadrille.papers.reproduction import Claim, Listing
from quadrille.study.frontier import dominated_by

SAME_RANGE = 0.15
"""Ranges are about the same when each end moves by no more than this."""
SYSTEMATIC = 4.0
"""A mean difference of more standard errors than this is systematic."""
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
    designs: int
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
        len(own),
        int((z > 2).sum()),
        int((z < -2).sum()),
    )


def listing(found: Experiment) -> Listing:
    """Show all paired comparisons."""
    rows = tuple(
        (
            effect.constraint,
            MEASURES[effect.measure],
            effect.without,
            f"{effect.difference:+.5f}",
            effect.error,
            f"{effect.z:+.1f}",
            f"{100 * effect.difference / effect.without:+.1f}",
            effect.up,
            effect.down,
        )
        for effect in effects(found)
    )
    return Listing(
        f"Constraints at 488 pairs, {found.sampler}: with minus without, paired by design",
        ("constraint", "measure", "without", "change", "error", "z", "in %", "up", "down"),
        rows,
        "Means over the 28 swaps that do not use the constraining variable, standard errors over seeds. Up, down: "
        "swaps whose own change is more than 2 standard errors from 0; chance alone gives about 1 in all.",
    )


def constraint_claims(found: Experiment) -> list[Claim]:
    """Judge what the paper says about constraints."""
    return [_same_range(found), _no_effect(found)]


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
    text = f"constrained swaps have about the same range (each end within {SAME_RANGE:.0%})"
    return Claim(text, max(moved) <= SAME_RANGE, evidence)


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
    text = f"constraints have no systematic effect (no mean difference beyond {SYSTEMATIC:.0f} standard errors)"
    return Claim(text, all(abs(effect.z) <= SYSTEMATIC for effect in seen), "; ".join(words))


MANY = 10
"""From this many on, out of 36, "many" is true."""
UNFEASIBLE: Swap = ("Race", "AnnSal")
"""The swap that the paper calls not feasible at its largest rate."""
MIDDLE, LAST = 1, 2
PASSES = 200


def claims(found: Experiment) -> list[Claim]:
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
        *constraint_claims(found),
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
    one = experiment.expected(data, UNFEASIBLE)
    mean, sd = experiment.simulated(data, UNFEASIBLE, PASSES)
    others = [experiment.expected(data, swap).mean for swap in found.swaps if swap != UNFEASIBLE]
    evidence = (
        f"{PAIRS[LAST]:,} pairs are found in {found.seeds} of {found.seeds} seeds; the maximum is "
        f"{experiment.most_pairs(data, UNFEASIBLE):,}. A single pass (all records in random order, cut into pairs, "
        f"those kept that differ in both variables) finds {one.mean:,.0f} with standard deviation {one.sd:.0f} "
        f"(simulated: {mean:,.0f} and {sd:.0f} in {PASSES} passes; {one.sd_independent:.0f} if as many pairs are drawn "
        f"independently). All other swaps yield {min(others):,.0f} or more in such a pass, so this is the only one of "
        f"the {len(found.swaps)} that it cannot do"
    )
    return Claim(f"Race + AnnSal at 0.05 ({PAIRS[LAST]:,} pairs) is not feasible", False, evidence)


def with_other(mine: list[Claim], other: list[Claim], sampler: str) -> list[Claim]:
    """Add to each claim the verdict that the other sampler gives."""
    said = {True: "holds", False: "does not hold"}
    return [
        Claim(claim.text, claim.holds, f"{claim.evidence}. With {sampler}: {said[twin.holds]}")
        for claim, twin in zip(mine, other, strict=True)
    ]
