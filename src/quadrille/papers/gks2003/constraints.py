"""What constraints do: each constrained swap beside the same swap without the constraint."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from quadrille.papers.gks2003.experiment import (
    CONSTRAINED_RATE,
    CONSTRAINTS,
    EXPOSED,
    LOSS,
    MEASURES,
    RISK,
    Experiment,
    Floats,
)
from quadrille.papers.reproduction import Claim, Listing

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


def claims(found: Experiment) -> list[Claim]:
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
