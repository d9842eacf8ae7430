"""Reference values of the project's specification beside ours. They are not numbers of the paper.

Means over swaps agree when they differ by at most 4 standard errors, ends of the ranges over swaps when they differ by
at most 2 %. The reference of the sampler pair-uniform has 20 seeds and four decimals only, so an end can be farther
off by chance; its standard error tells.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from quadrille.papers.gomatam_karr_sanil_2003.experiment import EXPOSED, LOSS, MEASURES, PAIRS, RISK, Experiment, Floats
from quadrille.papers.reproduction import MOST_ERRORS, Check

REFERENCE_SEEDS = {"pair-uniform": 20, "first-uniform": 100}
RISKS = {
    "pair-uniform": ((0.01475, 0.01452), (0.01453, 0.01416), (0.01346, 0.01258)),
    "first-uniform": ((0.01475, 0.01453), (0.01454, 0.01415), (0.01347, 0.01237)),
}
"""Mean risk over the swaps of one and of two variables, by rate."""
RANGES = {
    ("pair-uniform", RISK): ((0.0141, 0.0149), (0.0137, 0.0148), (0.0110, 0.0143)),
    ("pair-uniform", LOSS): ((0.0145, 0.0361), (0.0214, 0.0533), (0.0549, 0.1424)),
    ("first-uniform", RISK): ((0.0142, 0.0149), (0.0137, 0.0148), (0.0105, 0.0143)),
    ("first-uniform", LOSS): ((0.0145, 0.0354), (0.0213, 0.0517), (0.0534, 0.1376)),
}
"""Least and largest mean over seeds among the swaps, by rate."""
EXPOSURES = {"pair-uniform": (0.01447, 0.01400, 0.01206)}
"""Mean of `exposed` over all swaps, by rate."""
LOWEST_EXPOSED = {"pair-uniform": 0.0108}
LOWEST_OF_SEEDS = 3
NOT_IN_THE_PAPER = ("Race", "AnnSal")
"""Lowest `exposed` of 321 single draws: 107 designs with three seeds, without the swap that the paper could not do."""
MOST_OFF = 0.02


def checks(found: Experiment) -> list[Check]:
    """Set all reference values for the sampler beside ours."""
    return [*_mean_checks(found), *_extreme_checks(found), *_lowest(found)]


def _mean_checks(found: Experiment) -> list[Check]:
    rows: list[Check] = []
    by_size = (slice(None, found.singles), slice(found.singles, None))
    for r, pairs in enumerate(PAIRS):
        for word, which, value in zip(("one variable", "two variables"), by_size, RISKS[found.sampler][r], strict=True):
            ours = found.free[r, which, :, RISK].mean(axis=0)
            rows.append(_mean_check(found, RISK, f"{pairs:,} pairs, {word}", value, ours))
    for r, value in enumerate(EXPOSURES.get(found.sampler, ())):
        ours = found.free[r, :, :, EXPOSED].mean(axis=0)
        rows.append(_mean_check(found, EXPOSED, f"{PAIRS[r]:,} pairs, all swaps", value, ours))
    return rows


def _mean_check(found: Experiment, measure: int, what: str, reference: float, by_seed: Floats) -> Check:
    title = f"Reference and ours: mean {MEASURES[measure]} over swaps, {found.sampler}"
    error = _error(float(by_seed.std(ddof=1)), found, digits=5)
    ours = float(by_seed.mean())
    z = (ours - reference) / error
    return Check(title, what, reference, ours, error, z, ours / reference - 1, abs(z) <= MOST_ERRORS)


def _extreme_checks(found: Experiment) -> list[Check]:
    rows: list[Check] = []
    for measure in (RISK, LOSS):
        for r, pairs in enumerate(PAIRS):
            means = found.means[r, :, measure]
            ends = (("least", int(means.argmin())), ("largest", int(means.argmax())))
            for (word, swap), value in zip(ends, RANGES[found.sampler, measure][r], strict=True):
                error = _error(float(found.free[r, swap, :, measure].std(ddof=1)), found, digits=4)
                rows.append(_end_check(found, measure, f"{pairs:,} pairs, {word}", value, float(means[swap]), error))
    return rows


def _lowest(found: Experiment) -> list[Check]:
    """Compare the lowest `exposed` among as many single draws as the reference had, on average over groups of seeds."""
    if found.sampler not in LOWEST_EXPOSED or found.seeds < 2 * LOWEST_OF_SEEDS:
        return []
    exposed = found.free[..., EXPOSED].copy()  # rate, swap, seed
    exposed[-1, found.swaps.index(NOT_IN_THE_PAPER)] = np.inf
    groups = [
        exposed[..., i : i + LOWEST_OF_SEEDS] for i in range(0, found.seeds - LOWEST_OF_SEEDS + 1, LOWEST_OF_SEEDS)
    ]
    lowest = np.array([group.min() for group in groups])
    what = f"least of {exposed[..., :LOWEST_OF_SEEDS].size - LOWEST_OF_SEEDS:,} draws"
    sd = float(lowest.std(ddof=1))
    return [_end_check(found, EXPOSED, what, LOWEST_EXPOSED[found.sampler], float(lowest.mean()), sd)]


def _end_check(found: Experiment, measure: int, what: str, reference: float, ours: float, error: float) -> Check:
    title = f"Reference and ours: range of {MEASURES[measure]} over swaps, {found.sampler}"
    off = ours / reference - 1
    return Check(title, what, reference, ours, error, (ours - reference) / error, off, abs(off) <= MOST_OFF)


def _error(sd: float, found: Experiment, *, digits: int) -> float:
    """Return the standard error of the difference: seeds of ours and of the reference, and its rounding."""
    rounding = 10.0**-digits
    return sqrt(sd**2 * (1 / found.seeds + 1 / REFERENCE_SEEDS[found.sampler]) + rounding**2 / 12)
