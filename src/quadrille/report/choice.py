"""The candidate a report is about: the one named, or the knee of the frontier."""

from __future__ import annotations

import numpy as np

from quadrille.study.choose import Choice
from quadrille.study.results import Study


def choose(study: Study, candidate: int | None, axes: tuple[str, str]) -> Choice:
    """Return the choice of the candidate named, or of the knee."""
    knee = study.pick("knee", risk=axes[0], loss=axes[1])
    if candidate is None or candidate == knee.candidate:
        return knee
    return study.choice(candidate, risk=axes[0], loss=axes[1])


def reasons(study: Study, choice: Choice) -> list[str]:
    """Say in plain words why this candidate, and what stands against it."""
    points, _ = study.objectives(choice.axes)
    here = np.array([choice.risk, choice.loss])
    better = int(((points <= here).all(axis=1) & (points < here).any(axis=1)).sum())
    lines = choice.explain().splitlines()
    if not better:
        return lines
    which = "1 candidate is" if better == 1 else f"{better:,} candidates are"
    against = (
        f"It is not on the frontier: {which} at least as good on both axes and better on one. "
        "The board should hear why none of them was chosen."
    )
    return [*lines[:3], against]
