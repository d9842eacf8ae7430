"""Changes of weighted correlations, in standard errors: R_ASED."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import inf

import numpy as np
from numpy.typing import NDArray

from quadrille.expressions import Floats
from quadrille.measure.base import DOHRMANN_2009, NOTHING_CHANGED, Measure, Score, option, undefined
from quadrille.measure.moments import OUT_OF_RANGE, Ints, Sums, SumsChange

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
    scale = float((growth[changed] / standard_error(was.r, was.n)[changed]).max())
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


MEASURES = (
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
