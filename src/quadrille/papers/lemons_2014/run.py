"""The study of the paper simulated: all published numbers of Tables 2 to 5, and ours with their standard errors."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from itertools import compress
from math import nan, sqrt
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from quadrille.papers.reproduction import published
from quadrille.simulation import METRICS, Mechanism
from quadrille.simulation.design import SimulationDesign
from quadrille.simulation.effects import INTERCEPT, Model, Stratum, fit, named, spearman
from quadrille.simulation.run import ReplicateStore, simulate_missing
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


def design(mechanism: Mechanism, replicates: int) -> SimulationDesign:
    """Return the design, the same as examples/lemons-2014.toml but for mechanism and replicates."""
    return SimulationDesign.of(
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


def simulated(chosen: SimulationDesign, tell: Callable[[int], None]) -> Floats:
    """Return the metrics: setting by replicate by metric; `tell` hears of the replicates done."""
    with TemporaryDirectory() as folder, closing(ReplicateStore(Path(folder) / "replicates")) as store:
        simulate_missing(chosen, SEED, store, cores(), lambda done, _total: tell(done))
        return store.collect(len(chosen.trials), chosen.replicates)[:, :, : len(METRICS)]


def with_levels(chosen: SimulationDesign, levels: str) -> NDArray[np.bool_]:
    """Tell which settings have these levels, "two" or "five"."""
    position = [factor.name for factor in chosen.factors].index("levels")
    factor = chosen.factors[position]
    return np.array([factor.levels[trial.levels[position]] == levels for trial in chosen.trials])


def expected(chosen: SimulationDesign, levels: str) -> tuple[float, float]:
    """Return the expected chi_square and gini_difference of the cells mechanism, mean over settings with these levels.

    The net change of each of TJ cells has mean 0 and variance v = 2 rate N / (TJ), so that E chi_square = v sum 1/f and
    E gini_difference = v J sum 1/n^2 over areas of n records.
    """
    found: list[tuple[float, float]] = []
    for trial in compress(chosen.trials, with_levels(chosen, levels)):
        before = trial.setting().before
        variance = 2 * trial.rate * before.sum() / before.size
        square = variance * float((1 / before).sum())
        found.append((square, variance * before.shape[1] * float((1.0 / before.sum(axis=1) ** 2).sum())))
    squares, ginis = zip(*found, strict=True)
    return float(np.mean(squares)), float(np.mean(ginis))


@dataclass(frozen=True)
class Chosen:
    """The selected model of a metric beside the one of all factors; in a balanced design they share their effects."""

    selected: Model
    full: Model

    @property
    def left_out(self) -> tuple[str, ...]:
        """The factors that are not selected."""
        return tuple(name for name in self.full.factors if name not in self.selected.factors)


def selected(design: SimulationDesign, values: Floats) -> list[Chosen]:
    """Fit every metric twice: with selection and with all factors. A metric that does not vary has no model."""
    levels = np.array([trial.levels for trial in design.trials], dtype=np.int64)
    found: list[Chosen] = []
    for m, metric in enumerate(METRICS):
        one, full = (fit(metric, values[:, :, m], levels, design.factors, select=select) for select in (True, False))
        found += [Chosen(one, full)] if one is not None and full is not None else []
    return found


Key = tuple[str, str, str]
"""Table, row, column."""

CODES: dict[str, str] = dict(zip(("CS", "ESR", "DS", "GD", "HD", "HD3"), METRICS, strict=True))
BATCHES = 50
WITHHELD = {("Table 5", row, "effective_swap_rate") for row in ("tract sizes skewed", "level shares skewed")}
"""Printed as below .00001 in size; compared with 0."""
MOST_ERRORS = 3.0
PLAIN = 0.01
"""What has no target of its own agrees within this share, or within three standard errors."""
_LEVELS = {"2": "two", "5": "five"}
_RANGES = {"aa": "within A", "ab": "across", "bb": "within B"}
TERMS = {
    "intercept": (INTERCEPT, ""),
    "perturbation low": ("perturbation", "low"),
    "perturbation medium": ("perturbation", "medium"),
    "tracts five": ("tracts", "five"),
    "tracts eight": ("tracts", "eight"),
    "levels two": ("levels", "two"),
    "tract sizes skewed": ("tract sizes", "skewed"),
    "level shares skewed": ("level shares", "skewed"),
}
_PRINTED = {"Tract distribution Skewed": "tract sizes skewed", "Level distribution Skewed": "level shares skewed"}
CORRECTED = {("perturbation low", "HD3"): "-0.000053", ("perturbation medium", "HD3"): "-0.000027"}
"""Misprints that the other tables show to be such."""


@dataclass(frozen=True)
class Entry:
    """A published number beside ours; `error` is the standard error of the difference of two such studies."""

    key: Key
    published: float
    ours: float
    error: float
    tolerance: float
    """The difference that the target allows; without a target 1 % of the published number."""

    @property
    def z(self) -> float:
        """The difference in standard errors."""
        return (self.ours - self.published) / self.error if self.error else nan

    @property
    def off(self) -> float:
        """The difference as a share of the published number."""
        return (self.ours - self.published) / abs(self.published) if self.published else nan

    @property
    def met(self) -> bool:
        """Whether the difference is within the tolerance itself."""
        return abs(self.ours - self.published) <= self.tolerance

    @property
    def verdict(self) -> str:
        """ "agrees" within the tolerance, "noise" beyond it but within three standard errors, else "differs"."""
        return "agrees" if self.met else "noise" if abs(self.z) <= MOST_ERRORS else "differs"


def compare(design: SimulationDesign, values: Floats) -> list[Entry]:
    """Set all published numbers beside those of a simulation."""
    ours = statistics(design, values)
    batches = [statistics(design, part) for part in np.array_split(values, min(BATCHES, values.shape[1] // 10), axis=1)]
    entries: list[Entry] = []
    for key, text in numbers().items():
        printed = 0.0 if key in WITHHELD else float(text)
        spread = np.std([batch[key] for batch in batches], ddof=1) / sqrt(len(batches))
        rounding = 10.0 ** -len(text.partition(".")[2]) / sqrt(12)
        error = sqrt(2 * float(spread) ** 2 + rounding**2)
        entries.append(Entry(key, printed, ours[key], error, _tolerance(key, printed)))
    return entries


def numbers() -> dict[Key, str]:
    """Return all published numbers as printed, misprints corrected."""
    found: dict[Key, str] = {}
    for row in published("lemons_table2.csv"):
        for column in ("mean", "sd", "p05", "p95"):
            found["Table 2", f"{CODES[row['metric']]}, {_LEVELS[row['levels']]}", column] = row[column]
    for row in published("lemons_table3.csv"):
        for code, metric in CODES.items():
            if row.get(code):
                found["Table 3", CODES[row["metric"]], metric] = row[code]
    for row in published("lemons_table4.csv"):
        stratum = ", ".join(row[name].lower() for name in ("perturbation", "tracts", "levels"))
        for kind, words in _RANGES.items():
            for end, word in (("low", "least"), ("high", "largest")):
                found["Table 4", stratum, f"{words}, {word}"] = row[f"{kind}_{end}"]
    for row in published("lemons_table5.csv"):
        term = _PRINTED.get(row["term"], row["term"] if row["term"] in ("R2", "RMSE") else row["term"].lower())
        for code, metric in CODES.items():
            if text := CORRECTED.get((term, code), row[code]):
                found["Table 5", term, metric] = text
    return found


def statistics(design: SimulationDesign, values: Floats) -> dict[Key, float]:
    """Return all numbers of Tables 2 to 5 for some replicates of every setting."""
    levels = np.array([trial.levels for trial in design.trials], dtype=np.int64)
    names = [factor.name for factor in design.factors]
    found: dict[Key, float] = {}
    for word in SHARES:
        inside = values[with_levels(design, word)].reshape(-1, len(METRICS))
        parts = (inside.mean(axis=0), inside.std(axis=0, ddof=1), *np.quantile(inside, (0.05, 0.95), axis=0))
        for column, row in zip(("mean", "sd", "p05", "p95"), parts, strict=True):
            for metric, value in zip(METRICS, row.tolist(), strict=True):
                found["Table 2", f"{metric}, {word}", column] = value
    matrix = spearman(values)
    for i, one in enumerate(METRICS):
        for j, other in enumerate(METRICS):
            found["Table 3", one, other] = float(matrix[i, j])
    positions = [names.index(name) for name in design.strata]
    for chosen in sorted({tuple(row) for row in levels[:, positions].tolist()}):
        inside = (levels[:, positions] == np.array(chosen)).all(axis=1)
        stratum = Stratum(named([design.factors[i] for i in positions], chosen), spearman(values[inside]))
        for words in _RANGES.values():
            for end, value in zip(("least", "largest"), stratum.range(words), strict=True):
                found["Table 4", ", ".join(stratum.levels.values()), f"{words}, {end}"] = value
    for m, metric in enumerate(METRICS):
        model = fit(metric, values[:, :, m], levels, design.factors, select=False)
        found |= {("Table 5", row, metric): value for row, value in _column(model).items()}
    return found


def _column(model: Model | None) -> dict[str, float]:
    if model is None:
        return dict.fromkeys((*TERMS, "R2", "RMSE"), nan)
    effects = {row: model.effect(*term) for row, term in TERMS.items()} | {"R2": model.r2, "RMSE": model.rmse}
    return {row: nan if value is None else value for row, value in effects.items()}


def _tolerance(key: Key, printed: float) -> float:
    """Return the difference that the target of a number allows."""
    table, row, column = key
    if table in ("Table 3", "Table 4"):
        return 0.02
    if table == "Table 5" and row in TERMS and row != "intercept":
        if column == "effective_swap_rate":
            return 0.00001
        if column in ("chi_square", "deviance"):
            return 0.04 * abs(printed)
    return PLAIN * abs(printed)
