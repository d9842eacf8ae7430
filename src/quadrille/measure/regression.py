"""Changes of regression coefficients, in standard errors: ASED_REG."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import inf

import numpy as np

from quadrille.expressions import Floats
from quadrille.measure.base import DOHRMANN_2009, NOTHING_CHANGED, Measure, Score, undefined
from quadrille.measure.correlation import UNKNOWN
from quadrille.measure.moments import OUT_OF_RANGE, Ints, Sums, SumsChange

_CONSTANT = 1e-12
_DEPENDENT = 1e-10
_ABSENT = 1e-12
INTERCEPT = "(intercept)"
INFINITE = "a column of the model is infinite in {} records with a weight; declare what it stands for as a missing code"


@dataclass(frozen=True)
class Fit:
    """Weighted least squares: intercept first, the outcome measured from its centre.

    `growth` says by how much rounding errors grow on the way from the sums to the coefficients.
    """

    b: Floats
    se: Floats
    growth: float


def ased_of(b_before: Floats, se_before: Floats, b_after: Floats) -> Floats:
    """Return |b before − b after| / SE before of each coefficient."""
    return np.abs(np.asarray(b_before) - np.asarray(b_after)) / np.asarray(se_before)


def fit(sums: Sums, columns: Ints) -> Fit | str:
    """Regress the last column on some others and an intercept; return why when that cannot be done.

    s² = Σ w e² / (n − p), Var b = s² (X'WX)⁻¹, from products around the means; the intercept is turned back. Records of
    weight 0 are not among the n: like R, and unlike software that takes any row for a degree of freedom.
    """
    n, parameters = int(sums.count[0, 0]), len(columns) + 1
    if n <= parameters:
        return f"too few complete records for {parameters} coefficients"
    used = np.append(columns, len(sums.centre) - 1)
    weight = float(sums.weight[0, 0])
    mean = sums.products[used, len(sums.centre)] / weight
    around = sums.products[np.ix_(used, used)] - weight * np.outer(mean, mean)
    spread, square = np.diag(around), sums.squares[used, 0]
    if not (spread[:-1] > _CONSTANT * square[:-1]).all():
        return "a term is constant"
    size = np.sqrt(spread[:-1])
    scaled = around[:-1, :-1] / np.outer(size, size)
    least = float(np.linalg.eigvalsh(scaled)[0]) if len(columns) else 1.0
    if least < _DEPENDENT:
        return "the terms depend on each other"
    inverse = np.linalg.inv(scaled) / np.outer(size, size)
    slopes = inverse @ around[:-1, -1]
    turn = np.append(-slopes, 1.0)
    left = float(turn @ around @ turn)
    if spread[-1] <= _CONSTANT * square[-1] or left <= _CONSTANT * spread[-1]:
        return "no residual variance"
    x = sums.centre[columns] + mean[:-1]
    variance = left / (n - parameters) * np.append(1 / weight + x @ inverse @ x, np.diag(inverse))
    b = np.append(mean[-1] - slopes @ x, slopes)
    growth = float((square / spread).max()) * max(1 / least, float(spread[-1]) / left)
    return Fit(b, np.sqrt(variance), growth)


def design(before: Sums, after: Sums) -> Ints | str:
    """Return the columns of the terms: of each C(x) the levels that occur, without the last."""
    last = len(before.centre) - 1
    levels = np.array([scale.level is not None for scale in before.summary.scales[:last]], dtype=np.bool_)
    occurs = _occurs(before, last) | ~levels
    if not np.array_equal(occurs, _occurs(after, last) | ~levels):
        return "a level occurs only before or only after"
    kept = occurs.copy()
    for variable in dict.fromkeys(scale.variable for scale in before.summary.scales[:last] if scale.level is not None):
        own = [i for i in range(last) if before.summary.scales[i].variable == variable and occurs[i]]
        kept[own[-1:]] = False
    return np.flatnonzero(kept)


def _occurs(sums: Sums, last: int) -> np.ndarray:
    """Tell which columns have weight where they are 1."""
    weight = float(sums.weight[0, 0])
    return sums.products[:last, last + 1] + sums.centre[:last] * weight > _ABSENT * weight


def _ased_reg(before: Sums, change: SumsChange, *, name: str) -> Score:
    """Mean over the coefficients of a model."""
    after = change.new
    if after.unknown:
        return undefined(UNKNOWN)
    if before.weight[0, 0] <= 0 or after.weight[0, 0] <= 0:
        return undefined("no complete record, or no weight")
    if change.nothing_changed:
        return Score(0.0, note=NOTHING_CHANGED)
    if before.out_of_range or after.out_of_range:
        return undefined(OUT_OF_RANGE)
    if infinite := max(int(before.infinite.max()), int(after.infinite.max())):
        return undefined(INFINITE.format(f"{infinite:,}"))
    columns = design(before, after)
    if isinstance(columns, str):
        return undefined(columns)
    was, now = fit(before, columns), fit(after, columns)
    if isinstance(was, str) or isinstance(now, str):
        reason = was if isinstance(was, str) else f"after the swap: {now}"
        return undefined(reason)
    values = ased_of(was.b, was.se, now.b)
    detail = {"coefficients": len(values), "records": int(before.count[0, 0])}
    largest = float((np.maximum(np.abs(was.b), np.abs(now.b)) / was.se).max())
    scale = max(1.0, largest) * max(was.growth, now.growth)
    return Score(float(values.mean()), detail, explain=partial(_rows, name, before, columns, was, now), scale=scale)


def _rows(name: str, before: Sums, columns: Ints, was: Fit, now: Fit) -> list[dict[str, object]]:
    """List the coefficients: model, term, before with its standard error, after, and the change."""
    terms = [INTERCEPT, *(before.summary.scales[int(i)].label for i in columns)]
    centre = np.zeros(len(terms))
    centre[0] = before.centre[-1]
    table = zip(terms, was.b + centre, was.se, now.b + centre, ased_of(was.b, was.se, now.b), strict=True)
    names = ("b_before", "se_before", "b_after", "ased")
    return [
        {"model": name, "term": term, **dict(zip(names, map(float, numbers), strict=True))} for term, *numbers in table
    ]


MEASURES = (
    Measure(
        "ased_reg",
        "mean over models of the mean over coefficients b, intercept included, of |b before − b after| / SE "
        "before; weighted least squares, s² = Σ w e² / (n − p), Var b = s² (X'WX)⁻¹, n complete records with a weight "
        "above 0",
        _ased_reg,
        side="loss",
        reference=DOHRMANN_2009,
        range=(0.0, inf),
        layout="models",
        weight_linear=False,
    ),
)
