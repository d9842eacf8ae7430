"""Stepwise selection of the factors of Table 5: which enter, in which order, and what the selected model explains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from quadrille.papers.reproduction import Claim, Listing
from quadrille.simulation.design import Design
from quadrille.simulation.effects import ENTER, STAY, Model, fit
from quadrille.simulation.run import opened, simulate_missing
from quadrille.simulation.simulate import METRICS, Mechanism
from quadrille.study.workers import cores

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
    with TemporaryDirectory() as folder, opened(Path(folder) / "replicates") as store:
        simulate_missing(chosen, SEED, store, cores(), lambda done, _total: tell(done))
        return store.collect(len(chosen.trials), chosen.replicates)[:, :, : len(METRICS)]


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


RULE = f"stepwise selection (enter {ENTER:.2f}, stay {STAY:.2f})".replace("0.", ".")


@dataclass(frozen=True)
class Chosen:
    """The selected model of a metric beside the one of all factors; in a balanced design they share their effects."""

    selected: Model
    full: Model

    @property
    def left_out(self) -> tuple[str, ...]:
        """The factors that are not selected."""
        return tuple(name for name in self.full.factors if name not in self.selected.factors)


def selected(design: Design, values: Floats) -> list[Chosen]:
    """Fit every metric twice: with selection and with all factors. A metric that does not vary has no model."""
    levels = np.array([trial.levels for trial in design.trials], dtype=np.int64)
    found: list[Chosen] = []
    for m, metric in enumerate(METRICS):
        one, full = (fit(metric, values[:, :, m], levels, design.factors, select=select) for select in (True, False))
        found += [Chosen(one, full)] if one is not None and full is not None else []
    return found


def selection(mechanism: str, chosen: list[Chosen]) -> Listing:
    """Return which factors enter for each metric, with their p-values, and R2 and RMSE of both models."""
    rows: list[tuple[str | int | float, ...]] = []
    for each in chosen:
        metric = each.selected.metric
        entered = [step for step in each.selected.steps if step.entered and step.factor in each.selected.factors]
        for turn, step in enumerate(entered, 1):
            rows.append((metric, step.factor, f"enters {turn}.", "p < .0001" if step.p < 1e-4 else f"p = {step.p:.4f}"))
        rows += [(metric, name, "left out", "") for name in each.left_out]
        for what, one, full in (
            ("R2", each.selected.r2, each.full.r2),
            ("RMSE", each.selected.rmse, each.full.rmse),
        ):
            rows.append((metric, what, f"{one:.4g}", f"all factors: {full:.4g}"))
    note = (
        "Table 5 above is of the model with all five factors, as the paper prints all terms for all metrics. The "
        "design is balanced, so that the effects of factors that are selected are the same in both models."
    )
    return Listing(f"Table 5, {RULE}: mechanism {mechanism}", ("", "", "", ""), tuple(rows), note)


def keeps_all(mechanism: str, chosen: list[Chosen]) -> Claim:
    """Judge whether the selection keeps what Table 5 prints."""
    lost = [f"{each.selected.metric} leaves out {' and '.join(each.left_out)}" for each in chosen if each.left_out]
    kept = sum(len(each.selected.factors) for each in chosen)
    evidence = f"{kept} of {sum(len(each.full.factors) for each in chosen)} selected"
    text = f"{mechanism}: {RULE} keeps all five factors for every metric, as Table 5 prints them"
    return Claim(text, not lost, "; ".join([evidence, *lost]))
