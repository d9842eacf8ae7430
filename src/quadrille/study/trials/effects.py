"""Main-effects analysis of variance of a factorial design, with stepwise selection of factors.

The settings are balanced and replicated alike, so cell means and the sum of squares within settings are all it takes:
the least squares of all replicates on the factors is that of the cell means, and their residuals add to the sum within.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, log1p, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from quadrille.study.trials.design import Factor

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


@dataclass(frozen=True)
class Model:
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
