"""What the replicates of a design say: spread of each metric, rank correlations, effects of the factors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, product
from math import exp, isfinite, log, log1p, sqrt
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from quadrille.data import tidy
from quadrille.simulation import COUNTS, METRICS
from quadrille.simulation.design import Factor, SimulationDesign
from quadrille.text import Shown

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ENTER, STAY = 0.10, 0.05
"""A factor enters with a p-value below the first, and stays with one below the second."""
INTERCEPT = "intercept"
_CONFIDENCE = 0.95
_SMALLEST = -700.0
"""Logarithm of a probability that floats still have with all their digits."""


@dataclass(frozen=True)
class Term:
    """An effect against the baseline of its factor, its standard error and 95 % interval."""

    factor: str
    level: str
    effect: float
    error: float
    low: float
    high: float


@dataclass(frozen=True)
class Step:
    """A factor that entered or left the model, and its p-value then."""

    factor: str
    entered: bool
    p: float


@dataclass(frozen=True, repr=False)
class Model(Shown):
    """The selected model of one metric. `ceiling` is the R2 that a model with an effect per setting has."""

    metric: str
    factors: tuple[str, ...]
    terms: tuple[Term, ...]
    r2: float
    rmse: float
    ceiling: float
    steps: tuple[Step, ...]

    def effect(self, factor: str, level: str = "") -> float | None:
        """Return an effect, None when the factor is not in the model; the intercept is a factor without levels."""
        return next((t.effect for t in self.terms if (t.factor, t.level) == (factor, level)), None)


@dataclass(frozen=True)
class _Cells:
    """Cell means, the sum of squares within cells and the columns of every factor's dummies."""

    means: Floats
    within: float
    replicates: int
    columns: dict[str, Floats]

    @property
    def n(self) -> int:
        return len(self.means) * self.replicates

    def matrix(self, factors: Sequence[str]) -> Floats:
        return np.column_stack([np.ones(len(self.means)), *(self.columns[name] for name in factors)])

    def residual(self, factors: Sequence[str]) -> tuple[float, int]:
        """Return the residual sum of squares of a model and its degrees of freedom."""
        matrix = self.matrix(factors)
        fitted = matrix @ np.linalg.lstsq(matrix, self.means)[0]
        between = self.replicates * float(((self.means - fitted) ** 2).sum())
        return self.within + between, self.n - matrix.shape[1]

    def log_p(self, small: Sequence[str], large: Sequence[str]) -> float:
        """Return the logarithm of the p-value of what the large model has more: p-values themselves can be 0."""
        less, df_less = self.residual(small)
        more, df = self.residual(large)
        if df <= 0 or more <= 0:
            return 0.0
        ratio = max(less - more, 0.0) / (df_less - df) / (more / df)
        return log_tail(ratio, df_less - df, df)


def log_tail(ratio: float, more: int, df: int) -> float:
    """Return the logarithm of the probability that F with (more, df) degrees of freedom is above a ratio.

    Where the probability is too small for floats, its logarithm is that of the first term of the incomplete beta
    function, x^a (1 - x)^(b - 1) / (a B(a, b)) with x = df / (df + more F), a = df / 2 and b = more / 2.
    """
    found = float(stats.f.logsf(ratio, more, df))
    if found > _SMALLEST:
        return found
    a, b, x = df / 2, more / 2, df / (df + more * ratio)
    return a * log(x) + (b - 1) * log1p(-x) - log(a) - float(special.betaln(a, b))


def fit(metric: str, values: Floats, levels: Ints, factors: Sequence[Factor], *, select: bool = True) -> Model | None:
    """Select factors, or take all, and estimate effects; `values` are setting by replicate. None if nothing varies."""
    centre = float(values.mean())
    moved = values - centre  # sums of squares of numbers near 0 lose no digits
    means = moved.mean(axis=1)
    within = float(((moved - means[:, None]) ** 2).sum())
    total = within + values.shape[1] * float((means**2).sum())
    if not total > (1e-14 * max(abs(centre), 1e-300)) ** 2 * values.size:
        return None
    columns = {f.name: _dummies(levels[:, i], f) for i, f in enumerate(factors) if len(f.levels) > 1}
    cells = _Cells(means, within, values.shape[1], columns)
    chosen, steps = _select(cells) if select else (list(columns), [])
    kept = [factor for factor in factors if factor.name in chosen]
    residual, df = cells.residual([factor.name for factor in kept])
    variance = residual / df if df > 0 else float("nan")
    return Model(
        metric,
        tuple(factor.name for factor in kept),
        tuple(_terms(cells, kept, variance, df, centre)),
        1 - residual / total,
        sqrt(variance),
        1 - within / total,
        tuple(steps),
    )


def _dummies(levels: Ints, factor: Factor) -> Floats:
    others = [i for i, name in enumerate(factor.levels) if name != factor.baseline]
    return (levels[:, None] == np.array(others)).astype(np.float64)


def _select(cells: _Cells) -> tuple[list[str], list[Step]]:
    """Let the most significant factor enter, then drop what is not significant any more, until neither happens."""
    chosen: list[str] = []
    steps: list[Step] = []
    while outside := [name for name in cells.columns if name not in chosen]:
        p = {name: cells.log_p(chosen, [*chosen, name]) for name in outside}
        best = min(outside, key=p.__getitem__)
        if p[best] >= log(ENTER):
            break
        chosen.append(best)
        steps.append(Step(best, True, exp(p[best])))
        _drop(cells, chosen, steps)
        if best not in chosen:  # it would enter and leave for ever
            break
    return chosen, steps


def _drop(cells: _Cells, chosen: list[str], steps: list[Step]) -> None:
    while chosen:
        p = {name: cells.log_p([other for other in chosen if other != name], chosen) for name in chosen}
        worst = max(chosen, key=p.__getitem__)
        if p[worst] < log(STAY):
            return
        chosen.remove(worst)
        steps.append(Step(worst, False, exp(p[worst])))


def _terms(cells: _Cells, kept: Sequence[Factor], variance: float, df: int, centre: float) -> list[Term]:
    matrix = cells.matrix([factor.name for factor in kept])
    effects: list[float] = np.linalg.lstsq(matrix, cells.means)[0].tolist()
    spread = np.linalg.inv(matrix.T @ matrix).diagonal() * variance / cells.replicates
    errors: list[float] = np.sqrt(spread).tolist()
    reach = float(stats.t.ppf((1 + _CONFIDENCE) / 2, df)) if df > 0 else float("nan")
    names = [(INTERCEPT, "")]
    names += [(factor.name, level) for factor in kept for level in factor.levels if level != factor.baseline]
    effects[0] += centre
    return [
        Term(factor, level, effect, error, effect - reach * error, effect + reach * error)
        for (factor, level), effect, error in zip(names, effects, errors, strict=True)
    ]


Row = dict[str, object]

DISTANCES = METRICS[:3]
"""Group A: how far cells are from where they were; never negative but for deviance with zero cells left out."""
DIVERSITIES = METRICS[3:]
"""Group B: how diversity within areas has changed; either sign."""
_NOISE = 1e-12
QUANTILES = {"p5": 0.05, "p25": 0.25, "median": 0.5, "p75": 0.75, "p95": 0.95}


@dataclass(frozen=True, repr=False)
class Stratum(Shown):
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


@dataclass(frozen=True, repr=False)
class Analysis(Shown):
    """The results of a design: `values` are setting by replicate by column, six metrics and two counts."""

    factors: tuple[Factor, ...]
    levels: Ints
    values: Floats
    summary: tuple[Row, ...]
    settings: tuple[Row, ...]
    pooled: Floats
    strata: tuple[Stratum, ...]
    models: dict[str, Model | None]


def analyse(design: SimulationDesign, values: Floats) -> Analysis:
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
    >>> from quadrille.simulation.effects import without_noise
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


def _settings(design: SimulationDesign, values: Floats) -> Iterator[Row]:
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


def _strata(design: SimulationDesign, levels: Ints, values: Floats) -> Iterator[Stratum]:
    positions = [i for name in design.strata for i, factor in enumerate(design.factors) if factor.name == name]
    chosen = [design.factors[i] for i in positions]
    for combination in product(*(range(len(factor.levels)) for factor in chosen)):
        inside = (levels[:, positions] == np.array(combination)).all(axis=1)
        yield Stratum(named(chosen, combination), spearman(values[inside][:, :, : len(METRICS)]))


def named(factors: Sequence[Factor], levels: Sequence[int]) -> dict[str, str]:
    """Return levels by the names of their factors."""
    return {factor.name: factor.levels[level] for factor, level in zip(factors, levels, strict=True)}


RANGES = ("within A", "within B", "across")


def tables(found: Analysis) -> dict[str, pl.DataFrame]:
    """Return the tables that stand beside the replicates as CSV."""
    return {
        "summary": tidy(found.summary),
        "settings": tidy(found.settings),
        "correlations": tidy(_correlations(found.pooled)),
        "strata": tidy([{**each.levels, **_ranges(each)} for each in found.strata]),
        "effects": tidy([row for model in found.models.values() if model for row in _effects(model)]),
    }


def document(design: SimulationDesign, seed: int | str, found: Analysis) -> dict[str, object]:
    """Return everything but the replicates as plain values; what is undefined is null."""
    counts = {name: int(found.values[:, :, i].sum()) for i, name in enumerate(COUNTS, len(METRICS))}
    return {
        "title": design.title,
        "identity": design.identity,
        "seed": seed,
        "settings": len(design.trials),
        "replicates": design.replicates,
        "factors": [
            {"factor": factor.name, "levels": list(factor.levels), "baseline": factor.baseline}
            for factor in design.factors
        ],
        **counts,
        "groups": {"A": list(DISTANCES), "B": list(DIVERSITIES)},
        "summary": list(found.summary),
        "correlations": _correlations(found.pooled),
        "strata": [{"stratum": each.levels, **_ranges(each)} for each in found.strata],
        "models": {name: model and _model(model) for name, model in found.models.items()},
    }


def _correlations(matrix: Floats) -> list[Row]:
    return [
        {"first": METRICS[i], "second": METRICS[j], "spearman": _known(float(matrix[i, j]))}
        for i, j in combinations(range(len(METRICS)), 2)
    ]


def _ranges(stratum: Stratum) -> Row:
    found: Row = {}
    for kind in RANGES:
        low, high = stratum.range(kind)
        found |= {f"{kind}, least": _known(low), f"{kind}, largest": _known(high)}
    return found


def _effects(model: Model) -> list[Row]:
    return [
        {"metric": model.metric, **{name: _known(value) for name, value in asdict(term).items()}}
        for term in model.terms
    ]


def _model(model: Model) -> Row:
    return {
        "factors": list(model.factors),
        "effects": _effects(model),
        "r2": model.r2,
        "r2 of the settings": model.ceiling,
        "rmse": _known(model.rmse),
        "steps": [asdict(step) for step in model.steps],
    }


def _known(value: object) -> object:
    """Return what is known of a value: nothing of a number that is infinite or none."""
    return None if isinstance(value, float) and not isfinite(value) else value
