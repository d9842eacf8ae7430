"""What the measures of a planned swap are expected to be, before any draw (derived in prediction.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, lgamma, sqrt
from typing import TYPE_CHECKING, Literal, cast

import numpy as np

from quadrille import measure as measures_by_name
from quadrille.data import Data, require_data
from quadrille.errors import ParameterError, QuadrilleError, unknown_name
from quadrille.measure_base import Call, Measure, Part, parts_of
from quadrille.recipe import Recipe
from quadrille.theory.independent import Cells, cells_of
from quadrille.theory.levels import Levels, NotPredicted, levels_of
from quadrille.theory.spread import Floats

if TYPE_CHECKING:
    import polars as pl

Basis = Literal["exact", "mean field", "approximate"]

CHI_SQUARE = "chi_square_distance"
"""Sum of (T' - T)^2 / T over the cells that were not empty: a prediction that is no measure of its own."""


@dataclass(frozen=True)
class Predicted:
    """The expectation of a measure, or None with the reason.

    `basis` is "exact", "mean field" (a sum over cells, each by its own distribution when pairs between levels take
    their expected numbers and records move independently) or "approximate" (besides, a root or a ratio of such sums).
    """

    value: float | None
    basis: Basis | None = None
    reason: str = ""


@dataclass(frozen=True)
class Prediction:
    """The expected measures of a design, by address, and the share of records that take part."""

    found: Mapping[str, Predicted]
    rate: float | None = None

    def __getitem__(self, address: str) -> float | None:
        return self.detail(address).value

    def detail(self, address: str) -> Predicted:
        """Return the value of a measure with its basis, or the reason why there is none."""
        if address not in self.found:
            raise unknown_name("measure", address, self.found, where="the prediction")
        return self.found[address]

    def frame(self) -> pl.DataFrame:
        """Return one row per measure."""
        from quadrille.frames import tidy

        return tidy(
            [
                {"measure": address, "value": each.value, "basis": each.basis, "reason": each.reason}
                for address, each in self.found.items()
            ]
        )


def predict(data: Data, recipe: Recipe, measures: str | Sequence[str]) -> Prediction:
    """Return what measures are expected to be after a planned swap, averaged over its seeds. Nothing is drawn.

    For `RandomSwap` (variables moved together) and `PermutationSwap`. The measures are hellinger, total_variation,
    entropy_change, small_cells, exposed, confidence, cramers_v_change, contingency_change, of any margin, and
    chi_square_distance(A*B): the sum of (T' - T)^2 / T over the cells that were not empty. Others, and what has no
    prediction, are None with a reason.

    Parameters
    ----------
    data : the file.
    recipe : the planned swap; its seed plays no part.
    measures : addresses such as "small_cells(n=5)" or "hellinger(Age*MS)".

    Example
    -------
    >>> import quadrille as qd
    >>> expected = predict(qd.datasets.cps8d(), qd.RandomSwap(["Edu"], pairs=488, seed=1), ["small_cells", "hellinger"])
    >>> round(expected["small_cells"], 4), round(expected["hellinger"], 4)
    (0.0148, 0.0217)
    """
    require_data(data, "predict")
    asked = [measures] if isinstance(measures, str) else list(measures)
    if not isinstance(cast("object", recipe), Recipe):
        raise ParameterError("predict needs a recipe, such as RandomSwap or PermutationSwap.")
    largest = max((_kind(Call.parse(address)).options.get("n", 0) for address in asked), default=0)
    try:
        design = _Design(data, recipe, levels_of(data, recipe), largest)
    except NotPredicted as why:
        return Prediction({address: Predicted(None, reason=str(why)) for address in asked})
    share = 1 - design.levels.unswapped / data.n if data.n else None
    return Prediction({address: design.predicted(address) for address in asked}, share)


def predictions(data: Data, recipes: Sequence[Recipe], measures: Sequence[str]) -> pl.DataFrame:
    """Return one row per recipe: `design` (its place in the list), `swap`, `rate`, `label`, the measures, `reason`.

    `rate` is the expected share of records that take part. `reason` says why measures are missing. A recipe that the
    data do not allow has no measures either. `chart.frontier(..., predicted=)` draws the frame.
    """
    from quadrille.frames import tidy

    rows: list[dict[str, object]] = []
    for place, recipe in enumerate(recipes):
        try:
            got = predict(data, recipe, measures)
        except QuadrilleError as error:
            got = Prediction({address: Predicted(None, reason=str(error)) for address in measures})
        reasons = dict.fromkeys(each.reason for each in got.found.values() if each.value is None)
        swap = " + ".join(cast("Sequence[str]", getattr(recipe, "swap", ())))
        label = swap if got.rate is None else f"{swap}, {100 * got.rate:.3g} % of records"
        row = {"design": place, "swap": swap, "rate": got.rate, "label": label}
        rows.append({**row, **{a: each.value for a, each in got.found.items()}, "reason": "; ".join(reasons)})
    return tidy(rows)


@dataclass(frozen=True, eq=False)
class _Design:
    """A planned swap with the tables that measures have asked for so far."""

    data: Data
    recipe: Recipe
    levels: Levels
    largest: int
    tables: dict[tuple[str, ...], Cells] = field(default_factory=dict[tuple[str, ...], Cells])

    def predicted(self, address: str) -> Predicted:
        """Return the expectation of one measure."""
        call = Call.parse(address)
        kind = _kind(call)
        try:
            formula = _formula(call, kind, self.data)
            parts = parts_of(call, kind, self.data, self.levels.swap)
            values = [self._part(part, kind, formula) for part in parts.parts]
        except NotPredicted as why:
            return Predicted(None, reason=str(why))
        known = [value for value in values if value is not None]
        if not known:
            return Predicted(None, reason="it is undefined for every table")
        still = all(map(self._still, parts.parts)) and kind.layout != "participation"
        return Predicted(sum(known) / len(known), "exact" if still else _BASIS[call.name])

    def _still(self, part: Part) -> bool:
        """Whether all its variables move together, or none moves: then no cell changes."""
        return len(set(part.variables) & set(self.levels.swap)) in (0, len(part.variables))

    def _part(self, part: Part, kind: Measure, formula: Formula) -> float | None:
        if kind.layout == "pair" and self._still(part):
            return 0.0 if all(len(np.unique(self.data[name].values)) > 1 for name in part.variables) else None
        if part.variables not in self.tables:
            self.tables[part.variables] = cells_of(self.data, self.recipe, self.levels, part.variables, self.largest)
        return formula(self.tables[part.variables], kind.options.get("n", 0))


Formula = Callable[[Cells, int], float | None]


def _formula(call: Call, kind: Measure, data: Data) -> Formula:
    """Return how the measure is worked out from the cells."""
    if call.name not in _FORMULAS:
        raise NotPredicted(f"{call.name} has no prediction")
    if call.where is not None:
        raise NotPredicted("a condition (where=) is not predicted")
    if data.weight is not None and kind.weight_linear:
        raise NotPredicted("weighted tables are not predicted")
    return _FORMULAS[call.name]


def _kind(call: Call) -> Measure:
    """Return the measure of a call; the chi-square distance is read like any other measure of a table."""
    if call.name == CHI_SQUARE:
        return replace(measures_by_name.get("hellinger"), name=CHI_SQUARE).bound(call)
    return measures_by_name.get(call.name).bound(call)


def _hellinger(cells: Cells, n: int) -> float:
    mean, variance = cells.expected(lambda f, g: (np.sqrt(f) - np.sqrt(g)) ** 2)
    if mean <= 0:
        return 0.0
    parts, columns = cells.shape
    # The fixed margins take degrees of freedom away: cells vary together.
    variance *= parts / max(parts - 1, 1) * columns / max(columns - 1, 1)
    return sqrt(mean / (2 * cells.records)) * _mean_root(2 * mean**2 / variance if variance > 0 else float("inf"))


def _mean_root(freedom: float) -> float:
    """Return E sqrt(X / E X) for a chi-square of so many degrees of freedom."""
    if freedom > 1e4:
        return 1 - 1 / (4 * freedom)
    return sqrt(2 / freedom) * exp(lgamma((freedom + 1) / 2) - lgamma(freedom / 2))


def _total_variation(cells: Cells, n: int) -> float:
    return cells.distance() / (2 * cells.records)


def _entropy_change(cells: Cells, n: int) -> float:
    def term(count: Floats) -> Floats:
        share = count / cells.records
        return -share * np.log(np.where(share > 0, share, 1.0))

    return cells.expected(lambda f, g: term(g) - term(f))[0]


def _small_cells(cells: Cells, n: int) -> float | None:
    return cells.at_risk(n) / cells.levels.unswapped if cells.levels.unswapped >= 1 else None


def _genuine(cells: Cells, n: int) -> float:
    return cells.expected(lambda f, g: np.where(g < n, np.minimum(f, g), 0.0))[0]


def _exposed(cells: Cells, n: int) -> float:
    return _genuine(cells, n) / cells.records


def _confidence(cells: Cells, n: int) -> float | None:
    shown = cells.expected(lambda f, g: np.where(g < n, g, 0.0))[0]
    return _genuine(cells, n) / shown if shown > 0 else None


def _chi_square_distance(cells: Cells, n: int) -> float:
    occupied = cells.before > 0
    square = cells.variance + (cells.mean - cells.before) ** 2
    return float((square[occupied] / cells.before[occupied]).sum())


def _chi_squares(cells: Cells) -> tuple[float, float, int] | None:
    """Return chi-square before, its expectation after, and the smaller number of categories less one."""
    least = min(cells.shape) - 1
    if least < 1:
        return None
    even = np.outer(cells.before.sum(axis=1), cells.before.sum(axis=0)) / cells.records
    after = (cells.variance + (cells.mean - even) ** 2) / even
    return float(((cells.before - even) ** 2 / even).sum()), float(after.sum()), least


def _cramers_v_change(cells: Cells, n: int) -> float | None:
    if (found := _chi_squares(cells)) is None:
        return None
    before, after, least = found
    return (sqrt(before) - sqrt(after)) / sqrt(cells.records * least)


def _contingency_change(cells: Cells, n: int) -> float | None:
    if (found := _chi_squares(cells)) is None:
        return None
    before, after, _ = found
    return sqrt(before / (before + cells.records)) - sqrt(after / (after + cells.records))


_FORMULAS: dict[str, Formula] = {
    "hellinger": _hellinger,
    "total_variation": _total_variation,
    "entropy_change": _entropy_change,
    "small_cells": _small_cells,
    "exposed": _exposed,
    "confidence": _confidence,
    "cramers_v_change": _cramers_v_change,
    "contingency_change": _contingency_change,
    CHI_SQUARE: _chi_square_distance,
}

_BASIS: dict[str, Basis] = {
    name: "approximate"
    if name in ("hellinger", "confidence", "cramers_v_change", "contingency_change")
    else "mean field"
    for name in _FORMULAS
}
