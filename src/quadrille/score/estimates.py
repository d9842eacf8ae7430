"""Weighted percents and means before and after a swap, with linearised standard errors and flags."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from quadrille.data import Data, require_columns, require_data, tidy
from quadrille.errors import InputError, ParameterError, bad_parameter
from quadrille.params import whole
from quadrille.plan import Plan
from quadrille.summary import Table
from quadrille.text import Shown

if TYPE_CHECKING:
    import polars as pl


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WHERE = "the sampling design"


@dataclass(frozen=True, eq=False)
class Design:
    """In which cluster each record was sampled, in which stratum each cluster is, and how to say it."""

    cluster: Ints
    stratum: Ints
    text: str

    @cached_property
    def units(self) -> Ints:
        """Number of units of each stratum."""
        return np.bincount(self.stratum)

    @property
    def strata(self) -> int:
        """Number of strata."""
        return len(self.units)

    @property
    def lonely(self) -> int:
        """Number of strata with a single unit; they say nothing about variation and contribute nothing."""
        return int((self.units == 1).sum())

    def totals(self, values: Floats, rows: Ints | None = None) -> Floats:
        """Add values up by unit; `rows` are the records that they belong to, all without it."""
        cluster = self.cluster if rows is None else self.cluster[rows]
        return np.asarray(np.bincount(cluster, weights=values, minlength=len(self.stratum)), dtype=np.float64)

    def error(self, totals: Floats) -> float:
        """Return the standard error of the sum of linearised values, given their totals by unit."""
        mean = np.bincount(self.stratum, weights=totals) / self.units
        spread = np.bincount(self.stratum, weights=(totals - mean[self.stratum]) ** 2)
        several = self.units > 1
        n = self.units[several]
        return float(np.sqrt((n / (n - 1) * spread[several]).sum()))

    def ratio(self, top: Floats, bottom: Floats) -> tuple[float, float]:
        """Return the ratio of two sums and its standard error, given their totals by unit."""
        size = float(bottom.sum())
        ratio = float(top.sum()) / size
        return ratio, self.error((top - ratio * bottom) / size)


def se_after(se_before: float, before: float, after: float) -> float:
    """Return the standard error of a swapped estimate: sqrt(SE_before^2 + (after - before)^2).

    >>> from quadrille.score.estimates import se_after
    >>> round(se_after(13.1005, 200.6773, 197.9714), 4)
    13.377
    """
    return float(np.hypot(se_before, after - before))


def weights_of(data: Data) -> Floats:
    """Return the weight of every record; 1 without a weight."""
    return np.ones(data.n) if data.ticks is None else data.ticks.values / data.ticks.per_unit


def design_of(data: Data, stratum: str | Sequence[str] | None = None, cluster: str | None = None) -> Design:
    """Read the design from the data; without `cluster` every record is one, without `stratum` there is one stratum.

    Units of the same name in different strata are different units.
    """
    if cluster is not None and not isinstance(cluster, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise bad_parameter("before_after", "cluster", "the name of a column", cluster)
    columns = (stratum,) if isinstance(stratum, str) else tuple(stratum or ())
    strata = np.zeros(data.n, dtype=np.int64)
    for name in columns:
        strata = _joined(strata, _present(data, name))
    if cluster is None:
        design = Design(np.arange(data.n), strata, "")
    else:
        _, first, unit = np.unique(_joined(strata, _present(data, cluster)), return_index=True, return_inverse=True)
        design = Design(unit, strata[first], "")
    return Design(design.cluster, design.stratum, _said(design, columns, cluster))


def _present(data: Data, name: str) -> Ints:
    """Return a column of the design as numbers from 0; a record without a value has no place in the design."""
    require_columns(data, [name], WHERE)
    column = data[name]
    missing = column.values >= column.valid if column.variable.coded else np.isnan(column.values)
    if missing.any():
        raise InputError(
            f"Column {name!r} of {WHERE} is missing in {int(missing.sum()):,} rows. "
            "Every record needs its stratum and its cluster: fill these rows, or leave the design out."
        )
    return np.unique(column.values, return_inverse=True)[1].astype(np.int64)


def _joined(outer: Ints, inner: Ints) -> Ints:
    return np.unique(outer * (int(inner.max()) + 1) + inner, return_inverse=True)[1].astype(np.int64)


def _said(design: Design, strata: Sequence[str], cluster: str | None) -> str:
    """Say which design the standard errors assume."""
    units = (
        "every record is its own sampling unit (no cluster was given)"
        if cluster is None
        else f"{len(design.stratum):,} clusters ({cluster}), drawn with replacement"
    )
    within = f"within {design.strata:,} strata ({', '.join(strata)})" if strata else "in one stratum (none was given)"
    alone = (
        f" {design.lonely:,} of the strata have a single unit and contribute nothing, so the standard errors are too "
        "small."
        if design.lonely
        else ""
    )
    return f"Taylor linearisation: {units}, {within}.{alone}"


_NOISE = 1e-12
"""A standard error below this share of what it is made of is the round-off of a zero."""

NO_WEIGHT = "the category has no weight"
NO_WEIGHT_AFTER = "the category has no weight after the swap"
FROM_ZERO = "the value before is 0, so there is no relative difference"
EVERYBODY = "every record is in this category, so its percent cannot vary"
ONE_RECORD = "one record only, so no standard error"
NOT_FINITE = "a value is infinite"
NOT_FINITE_AFTER = "a value is infinite after the swap"
ONE_VALUE = "all values are equal, so no standard error"
NO_VALUE = "no record of the category has a value"
LONELY = "every stratum has a single cluster, so variation cannot be estimated"
NO_VARIATION = "no stratum has two clusters that differ, so variation cannot be estimated"


@dataclass(frozen=True)
class Rules:
    """The limits of the flags."""

    min_cell: int = 45
    relative: float = 0.10
    se_ratio: float = 1.1


@dataclass(frozen=True, repr=False)
class Estimate(Shown):
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
        if se <= _NOISE * before / 100:
            reason = EVERYBODY if n == data.n else NO_WEIGHT if not before else _why(design)
        yield _estimate(data, name, code, None, _Values(n, before, later, None if reason else 100 * se, reason), rules)


def means_of(data: Data, after: Data, name: str, outcome: str, design: Design, rules: Rules) -> Iterator[Estimate]:
    """Yield the weighted mean of an outcome in each category that occurs; records without a value are left out."""
    weights, values = weights_of(data), data[outcome].values
    centre = _middle(values)
    later = _means(after, name, outcome, centre)
    before = _means(data, name, outcome, centre)
    counted = np.isinf(after[outcome].values) & (weights_of(after) > 0)
    endless = set(after[name].values[counted].tolist())
    for code, everybody in _by_code(data[name].values, data[name].size):
        rows: Ints = everybody[~np.isnan(values[everybody])]
        se, reason = _error(design, weights[rows], values[rows], rows)
        mean, mean_after = float(before[code]), float(later[code])
        if not np.isfinite(mean_after) and not reason:
            reason = NOT_FINITE_AFTER if code in endless else NO_WEIGHT_AFTER
        found = _Values(len(rows), _known(mean), _known(mean_after), se, reason)
        yield _estimate(data, name, code, outcome, found, rules)


def _error(design: Design, weights: Floats, values: Floats, rows: Ints) -> tuple[float | None, str]:
    """Return the standard error of a mean, or the reason why there is none."""
    if not len(rows):
        return None, NO_VALUE
    if not weights.any():
        return None, NO_WEIGHT
    counted = weights > 0
    weights, values, rows = weights[counted], values[counted], rows[counted]
    if not np.isfinite(values).all():
        return None, NOT_FINITE
    if len(values) == 1:
        return None, ONE_RECORD
    if values.min() == values.max():
        return None, ONE_VALUE
    # Distances from a value amid them: a standard error may be far below the last digit of the mean.
    away = weights * (values - _middle(values))
    _, se = design.ratio(design.totals(away, rows), design.totals(weights, rows))
    return (None, _why(design)) if se <= _NOISE * float(np.abs(away).sum() / weights.sum()) else (se, "")


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
    values, weights = data[outcome].values, weights_of(data)
    known = ~np.isnan(values) & (weights > 0)
    codes, weights, size = data[name].values[known], weights[known], data[name].size
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


_OWNER = "before_after"


@dataclass(frozen=True, repr=False)
class BeforeAfter(Shown):
    """The estimates of a file before and after a swap; `design` says what the standard errors assume.

    `notes` say what was left out and why. `rules` are the limits of the flags.
    """

    estimates: tuple[Estimate, ...]
    design: str
    rules: Rules
    notes: tuple[str, ...] = ()

    def percents(self) -> pl.DataFrame:
        """Return the weighted percents: a row per variable and category."""
        return self._frame("percent").drop("kind", "outcome")

    def means(self) -> pl.DataFrame:
        """Return the weighted means of the outcomes: a row per outcome, variable and category."""
        return self._frame("mean").drop("kind")

    def flags(self) -> pl.DataFrame:
        """Return the estimates that a flag marks: those a review board looks at first."""
        frame = self._frame(None)
        return frame.filter(frame["differs"].fill_null(False) | frame["se_high"].fill_null(False))

    def points(self) -> pl.DataFrame:
        """Return what `chart.after_before` draws: kind, label, before, after, flagged."""
        return tidy([estimate.point() for estimate in self.estimates])

    def as_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return {
            "design": self.design,
            "rules": asdict(self.rules),
            "notes": list(self.notes),
            "estimates": [asdict(estimate) for estimate in self.estimates],
        }

    def _frame(self, kind: str | None) -> pl.DataFrame:
        rows = [asdict(estimate) for estimate in self.estimates if kind in (None, estimate.kind)]
        if rows:
            return tidy(rows)
        empty = tidy([dict.fromkeys(Estimate.__dataclass_fields__)])
        return empty.clear()


def before_after(
    data: Data,
    plan: Plan,
    *,
    variables: Sequence[str] | None = None,
    outcomes: Sequence[str] | None = None,
    stratum: str | Sequence[str] | None = None,
    cluster: str | None = None,
    min_cell: int = 45,
    relative: float = 0.10,
    se_ratio: float = 1.1,
) -> BeforeAfter:
    """Compare weighted percents, and weighted means of outcomes, per category before and after a swap.

    SE_before is by Taylor linearisation, SE_after = sqrt(SE_before^2 + (after - before)^2). An estimate is flagged
    as `differs` when it changes by more than `relative` of itself in a category of more than `min_cell` records, and
    as `se_high` when SE_after / SE_before is above `se_ratio`. What is not defined is None, with the reason.

    Parameters
    ----------
    data, plan : the file before, and what is swapped.
    variables : categorical columns; those that the plan moves by default. Missing codes are rows of their own.
    outcomes : numeric columns; those with the role outcome by default. Records without a value are left out.
    stratum, cluster : columns of the sampling design. Without `cluster` every record is its own sampling unit.
    min_cell, relative, se_ratio : the limits of the flags.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> found = qd.before_after(data, qd.RandomSwap(["MS"], rate=0.02, seed=1).plan(data), variables=["MS"])
    >>> found.percents().select("category", "n").rows()[0]
    ('Married', 23044)
    """
    require_data(data, _OWNER)
    if not isinstance(plan, Plan):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"before_after needs a plan, and got {type(plan).__name__!r}. Use recipe.plan(data).")
    rules = _rules(min_cell, relative, se_ratio)
    names, notes = _variables(data, plan, variables)
    measured, more = _outcomes(data, outcomes)
    design = design_of(data, stratum, cluster)
    after = plan.apply(data)
    estimates: list[Estimate] = []
    for name in names:
        estimates += percents_of(data, after, name, design, rules)
    for outcome in measured:
        for name in names:
            estimates += means_of(data, after, name, outcome, design, rules)
    return BeforeAfter(tuple(estimates), design.text, rules, (*notes, *more))


def _rules(min_cell: object, relative: object, se_ratio: object) -> Rules:
    for name, value, least in (("relative", relative, 0.0), ("se_ratio", se_ratio, 1.0)):
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < np.inf:
            raise bad_parameter(_OWNER, name, f"a number of {least:g} or more", value)
    assert isinstance(relative, int | float) and isinstance(se_ratio, int | float)
    return Rules(whole(_OWNER, "min_cell", min_cell, least=0), float(relative), float(se_ratio))


def _listed(data: Data, parameter: str, given: Sequence[str]) -> list[str]:
    if isinstance(given, str):
        raise bad_parameter(_OWNER, parameter, "a list of column names", given)
    names = list(given)
    require_columns(data, names, _OWNER)
    if len(set(names)) != len(names):
        raise ParameterError(f"A column occurs twice in '{parameter}' of {_OWNER}. Name each column once.")
    return names


def _variables(data: Data, plan: Plan, given: Sequence[str] | None) -> tuple[list[str], list[str]]:
    if given is not None:
        names = _listed(data, "variables", given)
        for name in names:
            data.coded(name, purpose="a table of percents")
        return names, []
    moved = [name for name in plan.columns if data.codebook[name].coded]
    return moved, [] if moved else ["The plan moves no categorical column, so there is no category to compare."]


def _outcomes(data: Data, given: Sequence[str] | None) -> tuple[list[str], list[str]]:
    if given is not None:
        names = _listed(data, "outcomes", given)
        for name in names:
            if data.codebook[name].coded:
                raise InputError(
                    f"Column {name!r} is categorical, and an outcome needs numbers. Declare it numeric in the codebook."
                )
        return names, []
    declared = [variable for variable in data.codebook if variable.role == "outcome"]
    left_out = [variable.name for variable in declared if variable.coded]
    notes = [f"No means of {', '.join(left_out)}: the outcome is categorical, not numeric."] if left_out else []
    names = [variable.name for variable in declared if not variable.coded]
    return names, notes if declared else ["No column has the role outcome, so there are no means."]
