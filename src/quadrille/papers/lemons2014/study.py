"""The 72 settings of the study, simulated with either mechanism, and what follows from them without a draw."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from quadrille.study.simulate import METRICS, Mechanism, cores
from quadrille.study.trials.design import Design
from quadrille.study.trials.ledger import opened
from quadrille.study.trials.run import simulate_missing

Floats = NDArray[np.float64]

SEED = 2014
COUNTIES = 10
TRACTS = {
    "five": {"uniform": ["5 x 20000"], "skewed": [5000, 5000, "3 x 30000"]},
    "eight": {"uniform": ["8 x 12500"], "skewed": [5000, 5000, "3 x 10000", "3 x 20000"]},
    "ten": {"uniform": ["10 x 10000"], "skewed": ["6 x 5000", 15000, 15000, 20000, 20000]},
}
SHARES = {
    "two": {"uniform": [0.5, 0.5], "skewed": [0.8, 0.2]},
    "five": {"uniform": ["5 x 0.2"], "skewed": [0.4, 0.3, 0.15, 0.1, 0.05]},
}
RATES = {"low": 0.01, "medium": 0.03, "high": 0.05}
STRATA = ("perturbation", "tract sizes", "level shares")


def design(mechanism: Mechanism, replicates: int) -> Design:
    """Return the design, the same as examples/lemons-2014.toml but for mechanism and replicates."""
    return Design.of(
        {
            "design": {
                "title": "Lemons, Dajani, You & Jordan (2014)",
                "replicates": replicates,
                "seed": SEED,
                "mechanism": mechanism,
                "counties": COUNTIES,
                "strata": list(STRATA),
            },
            "names": {
                "areas": ["tracts", "tract sizes"],
                "levels": ["levels", "level shares"],
                "rates": "perturbation",
            },
            "areas": TRACTS,
            "levels": SHARES,
            "rates": RATES,
            "baseline": {"perturbation": "high", "tracts": "ten", "levels": "five"},
        }
    )


def simulated(chosen: Design, tell: Callable[[int], None]) -> Floats:
    """Return the metrics: setting by replicate by metric; `tell` hears of the replicates done."""
    with TemporaryDirectory() as folder, opened(Path(folder) / "replicates") as ledger:
        simulate_missing(chosen, SEED, ledger, cores(), lambda done, _total: tell(done))
        return ledger.collect(len(chosen.trials), chosen.replicates)[:, :, : len(METRICS)]


def expected(chosen: Design, levels: str) -> tuple[float, float]:
    """Return the expected chi_square and gini_difference of the cells mechanism, mean over settings with these levels.

    The net change of each of TJ cells has mean 0 and variance v = 2 rate N / (TJ), so that E chi_square = v sum 1/f and
    E gini_difference = v J sum 1/n^2 over areas of n records.
    """
    position = [factor.name for factor in chosen.factors].index("levels")
    found: list[tuple[float, float]] = []
    for trial in chosen.trials:
        if chosen.factors[position].levels[trial.levels[position]] == levels:
            before = trial.setting().before
            variance = 2 * trial.rate * before.sum() / before.size
            square = variance * float((1 / before).sum())
            found.append((square, variance * before.shape[1] * float((1.0 / before.sum(axis=1) ** 2).sum())))
    squares, ginis = zip(*found, strict=True)
    return float(np.mean(squares)), float(np.mean(ginis))
