"""Weighted percents and outcome means per category, before and after a swap, with standard errors and flags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from quadrille import frames
from quadrille.data import Data, require_columns, require_data
from quadrille.errors import InputError, ParameterError, bad_parameter
from quadrille.plan import Plan
from quadrille.recipe import whole
from quadrille.study.estimates import Estimate, Rules, means_of, percents_of
from quadrille.study.linearisation import design_of

if TYPE_CHECKING:
    import polars as pl

_OWNER = "before_after"


@dataclass(frozen=True)
class BeforeAfter:
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
        return frames.tidy([estimate.point() for estimate in self.estimates])

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
            return frames.tidy(rows)
        empty = frames.tidy([dict.fromkeys(Estimate.__dataclass_fields__)])
        return empty.clear()


def before_after(
    data: Data,
    plan: Plan,
    *,
    variables: Sequence[str] | None = None,
    outcomes: Sequence[str] | None = None,
    stratum: str | Sequence[str] | None = None,
    psu: str | None = None,
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
    stratum, psu : columns of the sampling design. Without `psu` every record is its own sampling unit.
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
    design = design_of(data, stratum, psu)
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
