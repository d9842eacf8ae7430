"""What the measures of a planned swap are expected to be, before any draw (prediction.md, private.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, inf, lgamma, sqrt
from typing import TYPE_CHECKING, Literal, cast

import numpy as np

from quadrille import measure as measures_by_name
from quadrille.data import Data, require_data, tidy
from quadrille.errors import ParameterError, QuadrilleError, bad_parameter, unknown_name
from quadrille.measure.base import Address, Measure, Part, parts_of
from quadrille.params import as_float, several
from quadrille.recipe import Recipe
from quadrille.score.by_area import with_margin
from quadrille.swap.private import PrivateSwap, chance_for, least_in_words
from quadrille.text import Shown, percent
from quadrille.theory.cells import (
    Cells,
    Levels,
    NotPredicted,
    Totals,
    WeightedCells,
    cells_of,
    is_kept,
    levels_of,
    weighted_cells,
)
from quadrille.theory.moments import Floats

if TYPE_CHECKING:
    import polars as pl


Basis = Literal["exact", "mean field", "approximate", "rough"]

FEW_MOVED = 100
"""Roots and ratios of the changes of fewer records than this are rough."""

CHI_SQUARE = "chi_square_distance"
"""Another name of chi_square: the sum of (T' - T)^2 / T over the cells that were not empty."""

MOMENTS_ONLY = frozenset({CHI_SQUARE, "chi_square"})
"""Sums of squares: exact where expectations and variances are."""


Formula = Callable[[Totals, int], float | None]
CountFormula = Callable[[Cells, int], float | None]


def _hellinger(cells: Totals, n: int) -> float:
    mean, variance = cells.expected(lambda f, g: (np.sqrt(f) - np.sqrt(g)) ** 2)
    if mean <= 0:
        return 0.0
    return sqrt(mean / (2 * cells.records)) * _freedom(cells, mean, variance)


def _hd(cells: Totals, n: int) -> float:
    mean, variance = cells.expected(lambda f, g: (np.sqrt(f) - np.sqrt(g)) ** 2)
    return sqrt(mean / 2) * _freedom(cells, mean, variance) if mean > 0 else 0.0


def _hd_norm(cells: Totals, n: int) -> float:
    return _hd(cells, n) / sqrt(cells.records)


def _freedom(cells: Totals, mean: float, variance: float) -> float:
    """Return E root / root E of a sum of squares; cells vary together because of totals that do not change."""
    varied = variance * cells.together
    return mean_root(2 * mean**2 / varied if varied > 0 else float("inf"))


def mean_root(freedom: float) -> float:
    """Return E sqrt(X / E X) for a chi-square with these degrees of freedom."""
    if freedom > 1e4:
        return 1 - 1 / (4 * freedom)
    return sqrt(2 / freedom) * exp(lgamma((freedom + 1) / 2) - lgamma(freedom / 2))


def _total_variation(cells: Totals, n: int) -> float:
    return cells.distance() / (2 * cells.records)


def _entropy_change(cells: Totals, n: int) -> float:
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


def _chi_square_distance(cells: Totals, n: int) -> float:
    occupied = cells.before > 0
    square = cells.variance + (cells.mean - cells.before) ** 2
    return float((square[occupied] / cells.before[occupied]).sum())


def _deviance(cells: Totals, n: int) -> float:
    """Return the expectation of 2 sum g ln(g / f) over the cells that were not empty, with little cancelling."""

    def term(f: Floats, g: Floats) -> Floats:
        held = f > 0
        share = np.divide(g, f, out=np.ones_like(g + f), where=held & (g > 0))
        return np.where(held, 2 * (g * np.log(share) - (g - f)), 0.0)

    held = cells.before > 0
    return cells.expected(term)[0] + 2 * float((cells.mean - cells.before)[held].sum())


def _chi_squares(cells: Totals) -> tuple[float, float, int] | None:
    """Return chi-square before, its expectation after, and the smaller number of categories less one."""
    least = min(cells.shape) - 1
    if least < 1:
        return None
    even = np.outer(cells.before.sum(axis=1), cells.before.sum(axis=0)) / cells.records
    after = (cells.variance + (cells.mean - even) ** 2) / even
    return float(((cells.before - even) ** 2 / even).sum()), float(after.sum()), least


def _cramers_v_change(cells: Totals, n: int) -> float | None:
    if (found := _chi_squares(cells)) is None:
        return None
    before, after, least = found
    return (sqrt(before) - sqrt(after)) / sqrt(cells.records * least)


def _contingency_change(cells: Totals, n: int) -> float | None:
    if (found := _chi_squares(cells)) is None:
        return None
    before, after, _ = found
    return sqrt(before / (before + cells.records)) - sqrt(after / (after + cells.records))


TABLE_FORMULAS: dict[str, Formula] = {
    "hellinger": _hellinger,
    "total_variation": _total_variation,
    "entropy_change": _entropy_change,
    "effective_swap_rate": _total_variation,
    "deviance": _deviance,
    "chi_square": _chi_square_distance,
    CHI_SQUARE: _chi_square_distance,
}
"""Measures of totals, weighted ones too."""

MARGIN_FORMULAS: dict[str, Formula] = {
    "cramers_v_change": _cramers_v_change,
    "contingency_change": _contingency_change,
}
"""Measures whose expectation rests on row and column totals that do not change."""

MOVED_FORMULAS: dict[str, Formula] = {
    f"hd{number}{norm}": formula for number in (1, 2, 3, 4) for norm, formula in (("", _hd), ("_norm", _hd_norm))
}
"""Distances between the weighted totals of what moves."""

COUNT_FORMULAS: dict[str, CountFormula] = {
    "small_cells": _small_cells,
    "exposed": _exposed,
    "confidence": _confidence,
}
"""Measures of numbers of records, whatever their weights."""

_ROOTS = ("hellinger", "confidence", *MARGIN_FORMULAS, *MOVED_FORMULAS)
BASIS: dict[str, Basis] = {
    name: "approximate" if name in _ROOTS else "mean field"
    for name in (*TABLE_FORMULAS, *MARGIN_FORMULAS, *MOVED_FORMULAS, *COUNT_FORMULAS)
}


@dataclass(frozen=True, repr=False)
class Predicted(Shown):
    """The expectation of a measure, or None with the reason.

    `basis` is "exact", "mean field" (a sum over cells, each by its own distribution when pairs between levels take
    their expected numbers and records move independently), "approximate" (besides, a root or a ratio of such sums) or
    "rough": such a root or ratio where fewer than 100 records move.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> foreseen = qd.theory.predict(data, qd.RandomSwap(["Edu"], rate=0.05), ["hellinger"])
    >>> foreseen.detail("hellinger").basis
    'approximate'
    """

    value: float | None
    basis: Basis | None = None
    reason: str = ""


@dataclass(frozen=True, repr=False)
class Prediction(Shown):
    """The expected measures of a design, by address, and the share of records that take part.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> foreseen = qd.theory.predict(data, qd.RandomSwap(["Edu"], rate=0.05), ["exposed", "hellinger"])
    >>> list(foreseen.found), round(foreseen.rate, 2)
    (['exposed', 'hellinger'], 0.05)
    >>> round(foreseen["hellinger"], 4)
    0.0359
    """

    found: Mapping[str, Predicted]
    rate: float | None = None

    def __getitem__(self, address: str) -> float | None:
        return self.detail(address).value

    def detail(self, address: str) -> Predicted:
        """Return the value of a measure with its basis, or the reason why there is none.

        Example
        -------
        >>> import quadrille as qd
        >>> recipe = qd.RandomSwap(["Edu"], rate=0.05)
        >>> foreseen = qd.theory.predict(qd.datasets.cps8d(), recipe, ["exposed", "gini_difference"])
        >>> foreseen.detail("exposed").basis, foreseen.detail("gini_difference").reason
        ('mean field', 'gini_difference has no prediction')
        """
        if address not in self.found:
            raise unknown_name("measure", address, self.found, where="the prediction")
        return self.found[address]

    def frame(self) -> pl.DataFrame:
        """Return one row per measure: `measure`, `value`, `basis`, `reason`.

        Example
        -------
        >>> import quadrille as qd
        >>> recipe = qd.RandomSwap(["Edu"], rate=0.05)
        >>> foreseen = qd.theory.predict(qd.datasets.cps8d(), recipe, ["exposed", "hellinger"])
        >>> foreseen.frame().select("measure", "basis").rows()
        [('exposed', 'mean field'), ('hellinger', 'approximate')]
        """
        return tidy(
            [
                {"measure": address, "value": each.value, "basis": each.basis, "reason": each.reason}
                for address, each in self.found.items()
            ]
        )


def predict(data: Data, recipe: Recipe, measures: str | Sequence[str]) -> Prediction:
    """Return what measures are expected to be after a planned swap, averaged over its seeds. Nothing is drawn.

    For `RandomSwap` (variables moved together), `PermutationSwap` and `PrivateSwap`. The measures are hellinger,
    total_variation, entropy_change, small_cells, exposed, confidence, cramers_v_change, contingency_change, chi_square,
    deviance and effective_swap_rate, of any margin, and hd1 to hd4 and their normalised forms. (chi_square_distance is
    another name of chi_square.) Weighted tables are predicted where most of their change is in cells of ten records or
    more. Others have no prediction and are None, with a reason.

    Parameters
    ----------
    data : the file.
    recipe : the planned swap; its seed plays no part.
    measures : addresses such as "small_cells(n=5)" or "hellinger(Age*MS)".

    Example
    -------
    >>> import quadrille as qd
    >>> recipe = qd.RandomSwap(["Edu"], pairs=488)
    >>> expected = qd.theory.predict(qd.datasets.cps8d(), recipe, ["small_cells", "hellinger"])
    >>> round(expected["small_cells"], 4), round(expected["hellinger"], 4)
    (0.0148, 0.0217)
    """
    require_data(data, "predict")
    asked = [measures] if isinstance(measures, str) else list(measures)
    if not isinstance(cast("object", recipe), Recipe):
        raise ParameterError("predict needs a recipe, such as RandomSwap or PermutationSwap.")
    largest = max((_kind(Address.parse(address)).options.get("n", 0) for address in asked), default=0)
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

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> designs = [qd.RandomSwap([name], rate=0.05) for name in ("Edu", "MS")]
    >>> found = qd.theory.predictions(data, designs, ["hellinger"])
    >>> found["label"].to_list(), found["hellinger"].round(4).to_list()
    (['Edu, 5 % of records', 'MS, 5 % of records'], [0.0359, 0.0532])
    """
    rows: list[dict[str, object]] = []
    for place, recipe in enumerate(recipes):
        try:
            got = predict(data, recipe, measures)
        except QuadrilleError as error:
            got = Prediction({address: Predicted(None, reason=str(error)) for address in measures})
        reasons = dict.fromkeys(each.reason for each in got.found.values() if each.value is None)
        swap = " + ".join(cast("Sequence[str]", getattr(recipe, "swap", ())))
        label = swap if got.rate is None else f"{swap}, {percent(got.rate)} of records"
        row = {"design": place, "swap": swap, "rate": got.rate, "label": label}
        rows.append({**row, **{a: each.value for a, each in got.found.items()}, "reason": "; ".join(reasons)})
    return tidy(rows)


@dataclass(frozen=True, eq=False)
class _Design:
    """A planned swap with the tables that measures have asked for so far, of counts and of weighted totals."""

    data: Data
    recipe: Recipe
    levels: Levels
    largest: int
    tables: dict[tuple[str, ...], Cells] = field(default_factory=dict[tuple[str, ...], Cells])
    totals: dict[tuple[str, ...], WeightedCells] = field(default_factory=dict[tuple[str, ...], WeightedCells])

    def predicted(self, address: str) -> Predicted:
        """Return the expectation of one measure."""
        call = Address.parse(address)
        kind = _kind(call)
        try:
            _refuse(call, kind, self.data)
            parts = parts_of(call, kind, self.data, self.levels.swap, self.recipe.steering_columns)
            values = [self._part(part, kind, call.name) for part in parts.parts]
        except NotPredicted as why:
            return Predicted(None, reason=str(why))
        known = [value for value, _ in values if value is not None]
        if not known:
            return Predicted(None, reason="it is undefined for every table")
        exact = all(sure for _, sure in values)
        return Predicted(sum(known) / len(known), "exact" if exact else self._basis(kind, call.name))

    def _basis(self, kind: Measure, name: str) -> Basis:
        normal = self.data.weight is not None and name in TABLE_FORMULAS and name not in MOMENTS_ONLY
        basis = "approximate" if normal else BASIS[name]
        few = self.data.n - self.levels.unswapped < FEW_MOVED
        return "rough" if few and basis == "approximate" else basis

    def _part(self, part: Part, kind: Measure, name: str) -> tuple[float | None, bool]:
        """Return the expectation of a measure for one table, and whether it is exact."""
        if name in MOVED_FORMULAS or (self.data.weight is not None and name in TABLE_FORMULAS):
            return self._weighted(part, kind, name)
        still = is_kept(part.variables, self.recipe, self.levels)
        if kind.layout == "pair" and still:
            varied = all(len(np.unique(self.data[name].values)) > 1 for name in part.variables)
            return (0.0 if varied else None), True
        if part.variables not in self.tables:
            self.tables[part.variables] = cells_of(self.data, self.recipe, self.levels, part.variables, self.largest)
        cells = self.tables[part.variables]
        if name in COUNT_FORMULAS:
            sure = still and kind.layout != "participation"
            return COUNT_FORMULAS[name](cells, kind.options.get("n", 0)), sure
        formula = TABLE_FORMULAS[name] if name in TABLE_FORMULAS else MARGIN_FORMULAS[name]
        return formula(cells, 0), still or (name in MOMENTS_ONLY and cells.exact)

    def _weighted(self, part: Part, kind: Measure, name: str) -> tuple[float | None, bool]:
        if part.variables not in self.totals:
            self.totals[part.variables] = weighted_cells(self.data, self.recipe, part.variables)
        cells = self.totals[part.variables]
        least = kind.options.get("min_cell", 0)
        if least and cells.count.max() <= least:
            return None, False
        formula = MOVED_FORMULAS[name] if name in MOVED_FORMULAS else TABLE_FORMULAS[name]
        if cells.unmoved:
            return 0.0, True
        value = formula(cells.larger_than(least) if least else cells, 0)
        return value, name in MOMENTS_ONLY and cells.exact


def _refuse(call: Address, kind: Measure, data: Data) -> None:
    """Refuse what has no prediction, with the reason."""
    if call.name not in BASIS:
        raise NotPredicted(f"{call.name} has no prediction")
    if kind.options.get("infinite"):
        raise NotPredicted("with infinite=1 a measure is infinite as soon as one empty cell is filled")
    if call.where is not None:
        raise NotPredicted("a condition (where=) is not predicted")
    if data.weight is not None and call.name in MARGIN_FORMULAS:
        raise NotPredicted(f"{call.name} of weighted tables is not predicted: a swap changes their margins")


def _kind(call: Address) -> Measure:
    """Return the measure of a call; the chi-square distance is read like any other measure of a table."""
    if call.name == CHI_SQUARE:
        return replace(measures_by_name.get("hellinger"), name=CHI_SQUARE).with_options(call)
    return measures_by_name.get(call.name).with_options(call)


ONE, OWN = "one chance", "own chances"
DESIGNS = (ONE, OWN)
_CURVE = "epsilon_curve"


def epsilon_curve(
    data: Data, recipe: PrivateSwap, epsilons: Sequence[float] = (), *, loss: str | None = None
) -> pl.DataFrame:
    """Return what a private swap costs at each epsilon, before any draw: with one chance, and with own chances.

    One row per epsilon and design ("one chance" for all strata, "own chances"): `epsilon`, `design`, `chance` (None
    where every stratum has its own), `moved` (the expected share of records that move) and the predicted `loss`. An
    epsilon that no chance gives is left out.
    `chart.epsilon_loss` draws the frame.

    Parameters
    ----------
    data, recipe : the file and the private swap; its chance or epsilon and its seed play no part.
    epsilons : which; by default the least that can be reached, and eleven whole ones from there on.
    loss : the measure of loss, one that `predict` knows. By default `hellinger` of the key variables, and of what moves
        where no key does; where that table is too large, of smaller ones.

    Example
    -------
    >>> import quadrille as qd
    >>> recipe = qd.PrivateSwap(["Edu"], within=["MS", "Race", "Sex"], epsilon=12)
    >>> found = qd.theory.epsilon_curve(qd.datasets.cps8d(), recipe, [12, 10])
    >>> found["loss"].round(4).to_list()
    [0.0455, 0.0303, 0.1171, 0.0882]
    """
    require_data(data, _CURVE)
    if not isinstance(cast("object", recipe), PrivateSwap):
        raise ParameterError(f"{_CURVE} needs a PrivateSwap: no other recipe has an epsilon.")
    least, size = least_of(data, recipe)
    reached = [each for each in _checked(epsilons) or _spread_out(least) if each >= least - 1e-9]
    if not reached:
        raise ParameterError(
            f"No chance reaches any of these epsilons: the largest stratum has {size:,} records, and the least epsilon "
            f"is {least:.3f}. Ask for larger ones, or make the strata smaller with 'within'."
        )
    chances = [(each, min(max(chance_for(size, each), 1e-9), 1 - 1e-9)) for each in reached]
    curves = (_curve_of(data, recipe, chances, each) for each in ([loss] if loss else _usual_losses(data, recipe)))
    first = next(curves)
    return tidy(next((rows for rows in (first, *curves) if any(row["loss"] is not None for row in rows)), first))


def _usual_losses(data: Data, recipe: PrivateSwap) -> list[str]:
    """Return the losses to look at, the first that can be predicted: of the keys, with what moves where no key does."""
    moving = recipe.columns_moved(data)
    if set(moving) & set(data.keys):
        return ["hellinger", *(["hellinger(2-way)"] if len(data.keys) > 1 else [])]
    tables = [(*data.keys, *moving), *((key, name) for key in data.keys for name in moving)]
    return [with_margin("hellinger", data, table) for table in tables]


def _curve_of(
    data: Data, recipe: PrivateSwap, chances: Sequence[tuple[float, float]], loss: str
) -> list[dict[str, object]]:
    """Return the rows of a curve, by epsilon and the one chance that it needs."""
    rows: list[dict[str, object]] = []
    for epsilon, one in chances:
        designs = ((ONE, {"chance": one, "epsilon": None}), (OWN, {"chance": None, "epsilon": epsilon}))
        for design, given in designs:
            ahead = predict(data, recipe.changed(**given, seed=0), [loss])
            row = {"epsilon": epsilon, "design": design, "chance": given["chance"], "moved": ahead.rate}
            rows.append({**row, "loss": ahead[loss], "measure": loss, "reason": ahead.detail(loss).reason})
    return rows


def least_of(data: Data, recipe: PrivateSwap) -> tuple[float, int]:
    """Return the least epsilon that a private swap of a file can have, and the size of the largest stratum.

    >>> import quadrille as qd
    >>> from quadrille.theory.prediction import least_of
    >>> least, size = least_of(qd.datasets.cps8d(), qd.PrivateSwap(["Edu"], within=["MS", "Race", "Sex"], epsilon=12))
    >>> round(least, 3), size
    (4.906, 18245)
    """
    recipe.check_columns(data)
    strata = recipe.changed(chance=0.5, epsilon=None, seed=0).strata(data)
    size = int(strata.n[strata.threshold > 0].max())
    sizes = {n for n, chance in strata.kinds if chance}
    return max(map(least_in_words, sizes)), size


def _checked(epsilons: object) -> list[float]:
    listed = list(cast("Iterable[object]", epsilons)) if several(epsilons) else [epsilons]
    values = [as_float(value) for value in listed]
    if not all(0 <= value < inf for value in values):
        raise bad_parameter(_CURVE, "epsilons", "numbers of 0 or more, not infinite", listed)
    return values


_POINTS = 11


def _spread_out(least: float) -> list[float]:
    """Return the least epsilon, and whole ones from there on."""
    return [least, *(float(int(least) + step) for step in range(1, _POINTS + 1))]
