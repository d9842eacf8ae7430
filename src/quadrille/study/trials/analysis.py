"""What the replicates of a design say: spread of each metric, rank correlations, effects of the factors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from quadrille.study.simulate import COUNTS, METRICS
from quadrille.study.trials.design import Design, Factor
from quadrille.study.trials.effects import Model, fit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Row = dict[str, object]

DISTANCES = METRICS[:3]
"""Group A: how far cells are from where they were; never negative but for deviance with zero cells left out."""
DIVERSITIES = METRICS[3:]
"""Group B: how diversity within areas has changed; either sign."""
_NOISE = 1e-12
QUANTILES = {"p5": 0.05, "p25": 0.25, "median": 0.5, "p75": 0.75, "p95": 0.95}


@dataclass(frozen=True)
class Stratum:
    """Settings that share some levels: their rank correlations, and the ranges within and across groups of metrics."""

    levels: dict[str, str]
    matrix: Floats

    def range(self, kind: str) -> tuple[float, float]:
        """Return least and largest correlation "within A", "within B" or "across"."""
        a, b = len(DISTANCES), len(METRICS)
        pairs = {
            "within A": combinations(range(a), 2),
            "within B": combinations(range(a, b), 2),
            "across": product(range(a), range(a, b)),
        }[kind]
        found = [float(self.matrix[i, j]) for i, j in pairs]
        return (float("nan"), float("nan")) if any(map(np.isnan, found)) else (min(found), max(found))


@dataclass(frozen=True)
class Analysis:
    """The results of a design: `values` are setting by replicate by column, six metrics and two counts."""

    factors: tuple[Factor, ...]
    levels: Ints
    values: Floats
    summary: tuple[Row, ...]
    settings: tuple[Row, ...]
    pooled: Floats
    strata: tuple[Stratum, ...]
    models: dict[str, Model | None]


def analyse(design: Design, values: Floats) -> Analysis:
    """Summarise, correlate and decompose."""
    levels = np.array([trial.levels for trial in design.trials], dtype=np.int64)
    metrics = {name: values[:, :, i] for i, name in enumerate(METRICS)}
    return Analysis(
        factors=design.factors,
        levels=levels,
        values=values,
        summary=tuple(_summary(design.factors, levels, values)),
        settings=tuple(_settings(design, values)),
        pooled=spearman(values[:, :, : len(METRICS)]),
        strata=tuple(_strata(design, levels, values)),
        models={name: fit(name, each, levels, design.factors) for name, each in metrics.items()},
    )


def spearman(values: Floats) -> Floats:
    """Return the rank correlations of the last axis, everything else pooled; NaN where a column does not vary.

    Values that are equal but for rounding errors share a rank.
    """
    columns = values.reshape(-1, values.shape[-1]).T
    ranks = np.array([stats.rankdata(without_noise(column)) for column in columns])
    ranks -= ranks.mean(axis=1, keepdims=True)
    norms = np.sqrt((ranks**2).sum(axis=1))
    with np.errstate(invalid="ignore"):
        return (ranks @ ranks.T) / np.outer(norms, norms)


def without_noise(values: Floats) -> Ints:
    """Number the values in ascending order; those that differ by rounding errors only have the same number.

    Sums of the same terms in another order differ in their last digits. Values count as equal when no gap between them
    is above 1e-12 of the largest in size.

    >>> import numpy as np
    >>> from quadrille.study.trials.analysis import without_noise
    >>> without_noise(np.array([0.1 + 0.2, 5.0, 0.3, -1.0])).tolist()
    [1, 2, 1, 0]
    """
    order = np.argsort(values)
    gaps = np.diff(values[order]) > _NOISE * np.abs(values).max(initial=0.0)
    number = np.zeros(len(values), dtype=np.int64)
    number[order[1:]] = np.cumsum(gaps)
    return number


def spread(values: Floats) -> Row:
    """Return number, mean, standard deviation and quantiles."""
    flat = values.ravel()
    found: Row = {"replicates": flat.size, "mean": float(flat.mean())}
    found["sd"] = float(flat.std(ddof=1)) if flat.size > 1 else None
    quantiles: list[float] = np.quantile(flat, list(QUANTILES.values())).tolist()
    return found | dict(zip(QUANTILES, quantiles, strict=True))


def _summary(factors: Sequence[Factor], levels: Ints, values: Floats) -> Iterator[Row]:
    """Each metric over all settings, then by level of every factor that has several."""
    for m, metric in enumerate(METRICS):
        yield {"metric": metric, "factor": "all", "level": "", **spread(values[:, :, m])}
        for i, factor in enumerate(factors):
            for number, level in enumerate(factor.levels if len(factor.levels) > 1 else ()):
                here = values[levels[:, i] == number, :, m]
                yield {"metric": metric, "factor": factor.name, "level": level, **spread(here)}


def _settings(design: Design, values: Floats) -> Iterator[Row]:
    """Each setting: its levels, and mean and standard deviation of every metric."""
    for trial, rows in zip(design.trials, values, strict=True):
        row: Row = {**named(design.factors, trial.levels)}
        row |= {"number of areas": len(trial.areas), "number of records": sum(trial.areas), "replicates": len(rows)}
        for m, metric in enumerate(METRICS):
            row[f"{metric} mean"] = float(rows[:, m].mean())
            row[f"{metric} sd"] = float(rows[:, m].std(ddof=1)) if len(rows) > 1 else None
        for c, name in enumerate(COUNTS, len(METRICS)):
            row[f"{name} mean"] = float(rows[:, c].mean())
        yield row


def _strata(design: Design, levels: Ints, values: Floats) -> Iterator[Stratum]:
    positions = [i for name in design.strata for i, factor in enumerate(design.factors) if factor.name == name]
    chosen = [design.factors[i] for i in positions]
    for combination in product(*(range(len(factor.levels)) for factor in chosen)):
        inside = (levels[:, positions] == np.array(combination)).all(axis=1)
        yield Stratum(named(chosen, combination), spearman(values[inside][:, :, : len(METRICS)]))


def named(factors: Sequence[Factor], levels: Sequence[int]) -> dict[str, str]:
    """Return levels by the names of their factors."""
    return {factor.name: factor.levels[level] for factor, level in zip(factors, levels, strict=True)}
