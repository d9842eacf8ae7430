"""One estimate before and after a swap: a weighted percent or mean of a category, its standard errors and flags."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from quadrille.data import Data
from quadrille.study.linearisation import Design, Floats, Ints, se_after, weights_of
from quadrille.summary import Table

_NOISE = 1e-12
"""A standard error below this share of the largest value is the round-off of a zero."""

NO_WEIGHT = "the category has no weight"
NO_WEIGHT_AFTER = "the category has no weight after the swap"
FROM_ZERO = "the value before is 0, so there is no relative difference"
EVERYBODY = "every record is in this category, so its percent cannot vary"
ONE_RECORD = "one record only, so no standard error"
NOT_FINITE = "a value is infinite"
ONE_VALUE = "all values are equal, so no standard error"
NO_VALUE = "no record of the category has a value"
LONELY = "every stratum has a single PSU, so variation cannot be estimated"
NO_VARIATION = "no stratum has two PSUs that differ, so variation cannot be estimated"


@dataclass(frozen=True)
class Rules:
    """The limits of the flags."""

    min_cell: int = 45
    relative: float = 0.10
    se_ratio: float = 1.1


@dataclass(frozen=True)
class Estimate:
    """A percent (`outcome` None) or a mean. `n` are the records it rests on before, `reason` says why a part is None.

    `relative` is abs(after - before) / abs(before). `differs`: relative above its limit with n above its limit;
    `se_high`: the ratio of the standard errors above its limit.
    """

    kind: Literal["percent", "mean"]
    outcome: str | None
    variable: str
    category: str
    missing: bool
    n: int
    before: float | None
    after: float | None
    relative: float | None
    se_before: float | None
    se_after: float | None
    se_ratio: float | None
    differs: bool | None
    se_high: bool | None
    reason: str

    @property
    def flagged(self) -> bool:
        """Whether any flag marks it."""
        return bool(self.differs or self.se_high)

    def point(self) -> dict[str, object]:
        """Return the row of a chart of after against before."""
        kind = "percents" if self.outcome is None else f"means of {self.outcome}"
        label = f"{self.variable}: {self.category}"
        return {"kind": kind, "label": label, "before": self.before, "after": self.after, "flagged": self.flagged}


@dataclass(frozen=True)
class _Values:
    """What is known of an estimate before anything is compared."""

    n: int
    before: float | None
    after: float | None
    se: float | None
    reason: str


def percents_of(data: Data, after: Data, name: str, design: Design, rules: Rules) -> Iterator[Estimate]:
    """Yield the weighted percent of each category that occurs, among all records."""
    (was, total), (now, total_after) = _whole_weights(data, name), _whole_weights(after, name)
    weights = weights_of(data)
    everybody = design.totals(weights)
    for code, rows in _by_code(data[name].values, data[name].size):
        before, later = 100 * was[code] / total, 100 * now[code] / total_after
        _, se = design.ratio(design.totals(weights[rows], rows), everybody)
        n, reason = len(rows), ""
        if se <= _NOISE:
            reason = EVERYBODY if n == data.n else NO_WEIGHT if not before else _why(design)
        yield _estimate(data, name, code, None, _Values(n, before, later, None if reason else 100 * se, reason), rules)


def means_of(data: Data, after: Data, name: str, outcome: str, design: Design, rules: Rules) -> Iterator[Estimate]:
    """Yield the weighted mean of an outcome in each category that occurs; records without a value are left out."""
    weights, values = weights_of(data), data[outcome].values
    centre = _middle(values)
    later = _means(after, name, outcome, centre)
    before = _means(data, name, outcome, centre)
    for code, everybody in _by_code(data[name].values, data[name].size):
        rows: Ints = everybody[~np.isnan(values[everybody])]
        se, reason = _error(design, weights[rows], values[rows], rows, centre)
        mean, mean_after = float(before[code]), float(later[code])
        if not np.isfinite(mean_after) and not reason:
            reason = NO_WEIGHT_AFTER
        found = _Values(len(rows), _known(mean), _known(mean_after), se, reason)
        yield _estimate(data, name, code, outcome, found, rules)


def _error(design: Design, weights: Floats, values: Floats, rows: Ints, centre: float) -> tuple[float | None, str]:
    """Return the standard error of a mean, or the reason why there is none."""
    if not len(rows):
        return None, NO_VALUE
    if not weights.any():
        return None, NO_WEIGHT
    inside = values[weights > 0]
    if not np.isfinite(inside).all():
        return None, NOT_FINITE
    if len(inside) == 1:
        return None, ONE_RECORD
    if inside.min() == inside.max():
        return None, ONE_VALUE
    _, se = design.ratio(design.totals(weights * (values - centre), rows), design.totals(weights, rows))
    return (None, _why(design)) if se <= _NOISE * float(np.abs(inside).max()) else (se, "")


def _estimate(data: Data, name: str, code: int, outcome: str | None, found: _Values, rules: Rules) -> Estimate:
    """Compare before with after: relative difference, standard errors, flags."""
    before, after, reasons = found.before, found.after, [found.reason]
    relative = differs = later = ratio = high = None
    if before is not None and after is not None:
        relative = abs(after - before) / abs(before) if before else None
        if relative is None:
            reasons.append(FROM_ZERO if after else "")
        differs = None if relative is None else relative > rules.relative and found.n > rules.min_cell
        if found.se is not None:
            later = se_after(found.se, before, after)
            ratio = later / found.se
            high = ratio > rules.se_ratio
    return Estimate(
        kind="percent" if outcome is None else "mean",
        outcome=outcome,
        variable=name,
        category=data[name].labels[code],
        missing=code >= data[name].valid,
        n=found.n,
        before=before,
        after=after,
        relative=relative,
        se_before=found.se,
        se_after=later,
        se_ratio=ratio,
        differs=differs,
        se_high=high,
        reason="; ".join(filter(None, reasons)),
    )


def _by_code(codes: Ints, size: int) -> Iterator[tuple[int, Ints]]:
    """Yield each code that occurs, and the rows that have it."""
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=size))
    for code, rows in enumerate(np.split(order, ends[:-1])):
        if len(rows):
            yield code, rows


def _whole_weights(data: Data, name: str) -> tuple[list[int], int]:
    """Return the ticks of each code, records without a weight, and their sum: whole numbers, exact in any order."""
    tally = Table((name,)).of(data)
    count, ticks = tally.at(np.arange(data[name].size))
    return (count if ticks is None else ticks).tolist(), tally.total


def _means(data: Data, name: str, outcome: str, centre: float) -> Floats:
    """Return the weighted mean in each category; NaN where there is no weight."""
    values = data[outcome].values
    known = ~np.isnan(values)
    codes, weights, size = data[name].values[known], weights_of(data)[known], data[name].size
    top = np.bincount(codes, weights=weights * (values[known] - centre), minlength=size)
    bottom = np.bincount(codes, weights=weights, minlength=size)
    with np.errstate(invalid="ignore", divide="ignore"):
        return centre + top / bottom


def _middle(values: Floats) -> float:
    """Return a value amid the others: sums of distances from it lose no digits."""
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else 0.0


def _known(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _why(design: Design) -> str:
    return LONELY if design.lonely == design.strata else NO_VARIATION
