"""Changes of weighted correlations and of regression coefficients, in standard errors: R_ASED and ASED_REG."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import inf

import numpy as np
from numpy.typing import NDArray

from quadrille.data import Floats, Ints
from quadrille.measure.base import DOHRMANN_2009, NOTHING_CHANGED, Measure, Score, option, undefined
from quadrille.measure.moments import OUT_OF_RANGE, Sums, SumsChange

CHANGED = 1e-9
"""A correlation that moves less has not changed."""
_CONSTANT = 1e-10
_ROUNDING = 1e-14
UNKNOWN = "the second file has categories that the file before does not have"


def ased(r_before: Floats, r_after: Floats, n: Floats | Ints | int, least: Floats | float = CHANGED) -> Floats:
    """Return |r before − r after| / SE, SE = (1 − r before²) / √n, of each correlation that changed; NaN otherwise.

    `least` is what counts as a change, and as being short of ±1.
    """
    step = np.abs(np.asarray(r_before) - np.asarray(r_after))
    kept = (step > least) & (np.abs(r_before) < 1 - least)
    return np.where(kept, step / np.where(kept, standard_error(r_before, n), 1.0), np.nan)


def standard_error(r: Floats, n: Floats | Ints | int) -> Floats:
    """Return (1 − r²) / √n. The paper prints (1 − r)² / √n, which its own program disproves."""
    return (1 - np.asarray(r) ** 2) / np.sqrt(n)


@dataclass(frozen=True)
class Correlations:
    """Weighted correlations of pairs of columns, over the records that have both; NaN where a column is constant.

    `n` counts the records with a weight above 0, as R does.

    `growth` says by how much rounding errors grow: sums of squares over what is left of them around the mean.
    """

    r: Floats
    n: Ints
    growth: Floats


def correlations(sums: Sums, first: Ints, second: Ints) -> Correlations:
    """Return the weighted correlations of some pairs of columns."""
    p = len(sums.centre)
    masks, products = sums.mask_of, sums.products
    mask_a, mask_b = masks[first], masks[second]
    weight = sums.weight[mask_a, mask_b]
    sum_a, sum_b = products[first, p + mask_b], products[second, p + mask_a]
    square_a, square_b = sums.squares[first, mask_b], sums.squares[second, mask_a]
    with np.errstate(divide="ignore", invalid="ignore"):
        # Factors of the size of the weights are never multiplied: they may be 1e250 or 1e-250.
        mean_a, mean_b = sum_a / weight, sum_b / weight
        a, b = square_a - sum_a * mean_a, square_b - sum_b * mean_b
        varies = (weight > 0) & (a > _CONSTANT * square_a) & (b > _CONSTANT * square_b)
        r = (products[first, second] - sum_a * mean_b) / np.sqrt(a) / np.sqrt(b)
        growth = np.maximum(square_a / a, square_b / b)
    return Correlations(
        np.where(varies, np.clip(r, -1, 1), np.nan), sums.count[mask_a, mask_b], np.where(varies, growth, 1.0)
    )


def _r_ased(before: Sums, change: SumsChange, *, moved: frozenset[str], max_levels: int = 16) -> Score:
    """Mean over the pairs of columns, one of them moved, whose correlation changed."""
    if change.new.unknown:
        return undefined(UNKNOWN)
    if not before.weight[0, 0] or not change.new.weight[0, 0]:
        return undefined("no record, or no weight, to take correlations of")
    if change.nothing_changed:
        return Score(0.0, note=NOTHING_CHANGED)
    if before.out_of_range or change.new.out_of_range:
        return undefined(OUT_OF_RANGE)
    first, second = _pairs(before, moved)
    was, now = correlations(before, first, second), correlations(change.new, first, second)
    growth = np.maximum(was.growth, now.growth)
    least = np.maximum(CHANGED, _ROUNDING * growth)
    endless = (before.infinite > 0) | (change.new.infinite > 0)
    infinite = endless[first] | endless[second]
    constant = ~infinite & (np.isnan(was.r) | np.isnan(now.r))
    perfect = ~infinite & ~constant & (np.abs(was.r) >= 1 - least)
    values = ased(was.r, now.r, np.maximum(was.n, 1), least)
    values[infinite] = np.nan
    changed = ~np.isnan(values)
    left_out = {"constant": int(constant.sum()), "perfect": int(perfect.sum()), "infinite": int(infinite.sum())}
    detail = {"pairs": len(first), "changed": int(changed.sum()), **left_out}
    explain = partial(_rows, before, first, second, was, now, values)
    if not changed.any():
        if len(first) > sum(left_out.values()):
            return Score(0.0, detail, "no correlation changed", explain=explain)
        why = "no pair of columns varies without being perfectly correlated"
        if left_out["infinite"]:
            why += f"; of {len(first)} pairs {left_out['infinite']} with an infinite value"
        return Score(None, detail, why, explain=explain)
    # An error of r enters a value by the step, and once more by the standard error, which is small where r is near ±1.
    steep = (1 + 2 * values / np.sqrt(np.maximum(was.n, 1))) / standard_error(was.r, np.maximum(was.n, 1))
    scale = float((growth * steep)[changed].max())
    return Score(float(values[changed].mean()), detail, _note(detail), explain=explain, scale=scale)


def _pairs(sums: Sums, moved: frozenset[str]) -> tuple[Ints, Ints]:
    """Return the pairs of columns of which at least one belongs to a moved variable."""
    touched = np.array([scale.variable in moved for scale in sums.summary.scales])
    first, second = np.triu_indices(len(touched), 1)
    kept = touched[first] | touched[second]
    return first[kept], second[kept]


def _note(detail: dict[str, int]) -> str:
    left = [
        f"{detail[kind]} {what}"
        for kind, what in (
            ("constant", "with a constant column"),
            ("perfect", "with |r| = 1"),
            ("infinite", "with an infinite value"),
        )
        if detail[kind]
    ]
    return f"of {detail['pairs']} pairs left out: {' and '.join(left)}" if left else ""


def _rows(
    before: Sums, first: Ints, second: Ints, was: Correlations, now: Correlations, values: Floats
) -> list[dict[str, object]]:
    """List the pairs: columns, records, correlations, standard error and the change in standard errors."""
    labels = [scale.label for scale in before.summary.scales]
    errors = standard_error(was.r, np.maximum(was.n, 1))
    return [
        {
            "column_a": labels[a],
            "column_b": labels[b],
            "n": int(was.n[i]),
            "r_before": _number(was.r[i]),
            "r_after": _number(now.r[i]),
            "se": _number(errors[i]),
            "ased": _number(values[i]),
        }
        for i, (a, b) in enumerate(zip(first.tolist(), second.tolist(), strict=True))
    ]


def _number(value: NDArray[np.float64]) -> float | None:
    return None if np.isnan(value) else float(value)


_OF_PAIRS = (
    Measure(
        "r_ased",
        "mean of |r before − r after| / SE, r the weighted correlation, SE = (1 − r before²) / √n, over the "
        "pairs of columns with a moved one whose r changed by more than 1e-9; n records with a weight above 0",
        _r_ased,
        side="loss",
        reference=DOHRMANN_2009,
        range=(0.0, inf),
        layout="columns",
        declares=(option("max_levels", 16, "nominal variables with more levels are left out"),),
        weight_linear=False,
    ),
)


_CONSTANT_MODEL = 1e-12
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
    if not (spread[:-1] > _CONSTANT_MODEL * square[:-1]).all():
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
    if spread[-1] <= _CONSTANT_MODEL * square[-1] or left <= _CONSTANT_MODEL * spread[-1]:
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
    return Score(float(values.mean()), detail, explain=partial(_terms, name, before, columns, was, now), scale=scale)


def _terms(name: str, before: Sums, columns: Ints, was: Fit, now: Fit) -> list[dict[str, object]]:
    """List the coefficients: model, term, before with its standard error, after, and the change."""
    terms = [INTERCEPT, *(before.summary.scales[int(i)].label for i in columns)]
    centre = np.zeros(len(terms))
    centre[0] = before.centre[-1]
    table = zip(terms, was.b + centre, was.se, now.b + centre, ased_of(was.b, was.se, now.b), strict=True)
    names = ("b_before", "se_before", "b_after", "ased")
    return [
        {"model": name, "term": term, **dict(zip(names, map(float, numbers), strict=True))} for term, *numbers in table
    ]


_OF_MODELS = (
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

MEASURES = (*_OF_PAIRS, *_OF_MODELS)
