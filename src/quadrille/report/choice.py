"""The candidate a report is about: the one named, or the knee of the frontier."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from quadrille.errors import InputError
from quadrille.study.choose import Choice, Option
from quadrille.study.frontier import non_dominated
from quadrille.study.results import Study

_NAMED = "named by those who asked for this report"


def choose(study: Study, candidate: int | None, axes: tuple[str, str]) -> Choice:
    """Return the choice of the candidate named, or of the knee."""
    knee = study.pick("knee", risk=axes[0], loss=axes[1])
    if candidate is None or candidate == knee.candidate:
        return knee
    points, rows = study.objectives(axes)
    ids = study.ids[rows]
    place = np.flatnonzero(ids == candidate)
    if not len(place):
        why = "has no score on both axes" if (study.ids == candidate).any() else "does not exist"
        raise InputError(f"Candidate {candidate} of the study {str(study.path)!r} {why}. Name another one.")
    return _named(study, knee, points, ids, int(place[0]))


def _named(study: Study, knee: Choice, points: NDArray[np.float64], ids: NDArray[np.int64], place: int) -> Choice:
    """Describe a candidate that no rule chose, in the way of one that a rule did."""
    here, order = points[place], np.lexsort((points[:, 1], points[:, 0]))
    front = order[non_dominated(points)[order]]
    safer = [i for i in front if points[i, 0] < here[0]]
    gentler = [i for i in front if points[i, 1] < here[1]]

    def option(i: int) -> Option:
        return Option(int(ids[i]), float(points[i, 0]), float(points[i, 1]))

    return replace(
        knee,
        candidate=int(ids[place]),
        recipe=study.recipe(int(ids[place])),
        rule="named",
        risk=float(here[0]),
        loss=float(here[1]),
        reason=_NAMED,
        dominates=int(((points >= here).all(axis=1) & (points > here).any(axis=1)).sum()),
        safer=option(safer[-1]) if safer else None,
        gentler=option(gentler[0]) if gentler else None,
        trades=None,
    )


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
