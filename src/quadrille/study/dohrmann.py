"""The published rule for choosing among runs: associations and regressions first, then the Hellinger distance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from quadrille.errors import InputError
from quadrille.study.axes import kind_of, orient

if TYPE_CHECKING:
    from quadrille.study.results import Study

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

SHORT_LIST = 3
PAIRWISE_AND_REGRESSION = ("r_ased", "c_ard", "v_ard", "ased_reg")
DISTANCES = ("hd1", "hd2", "hd3", "hd4")


def by_dohrmann(study: Study, rows: Ints, *, ignore_hd: bool = False) -> tuple[int, str]:
    """Return the place, among these rows of the study, of the run that the rule chooses, and why.

    The runs with the smallest pairwise and regression measures (mean of their ranks) make the short list; the smallest
    Hellinger distance among them wins, unless there is none or it is to be ignored.
    """
    ranked = [address for address in study.measures if _family(address) in PAIRWISE_AND_REGRESSION]
    if not ranked:
        raise InputError(
            f"The study {str(study.path)!r} has none of the measures that the rule 'dohrmann' looks at first: "
            f"{', '.join(PAIRWISE_AND_REGRESSION)}. Search with one of them."
        )
    scores = np.stack([_column(study, rows, address) for address in ranked], axis=1)
    complete = np.flatnonzero(np.isfinite(scores).all(axis=1))
    if not len(complete):
        raise InputError(f"No candidate of the study {str(study.path)!r} has a score for each of {', '.join(ranked)}.")
    ranks = np.mean([_ranks(column) for column in scores[complete].T], axis=0)
    order = complete[np.argsort(ranks, kind="stable")]
    first = f"the smallest mean rank on {', '.join(ranked)}"
    designs = study.designs_of(rows[complete])
    if designs > 1:
        first += f" (over {designs:,} designs, though the rule is meant for runs that differ by seed only)"
    distance = None if ignore_hd else next((a for a in study.measures if _family(a) in DISTANCES), None)
    values = None if distance is None else _column(study, rows[order[:SHORT_LIST]], distance)
    if values is None or not np.isfinite(values).any():
        why = "the Hellinger distance is ignored" if ignore_hd else "there is no Hellinger distance to go by"
        return int(order[0]), f"{first}; {why}"
    place = int(order[np.nanargmin(values)])
    return place, f"of the {len(values)} runs with {first}, the smallest {distance}"


def _family(address: str) -> str:
    return kind_of(address).name.removesuffix("_norm")


def _column(study: Study, rows: Ints, address: str) -> Floats:
    scores: Floats = study.scores[rows, study.measures.index(address)]
    return orient(address, scores)


def _ranks(values: Floats) -> Floats:
    """Return ranks from 1; equal values share the mean of their ranks."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count - 1) / 2)[place]
