"""Rates that differ between areas: more where areas are small and where many are at risk."""

from __future__ import annotations

from typing import cast

import numpy as np

from quadrille.codebook import Variable
from quadrille.data import Column, Data, Floats, Ints, require_data
from quadrille.errors import InputError, ParameterError
from quadrille.swap.targeted import TargetedSwap
from quadrille.swap.targeted.problem import OWNER, risk_of


def ons_rates(data: Data, recipe: TargetedSwap, name: str = "area_rate") -> Data:
    """Return the data with a column of rates by area, as the Office for National Statistics set them in 2011.

    Among the lowest areas a of a parent with N households

        rate_a = (s/2) (N/n_a) (n_a^-1 / sum n^-1 + p_a / sum p),

    at most 1: s is the rate of the recipe, n_a the households of the area, p_a the share of them at risk at any level.
    Where nobody in the parent is at risk, the first term stands for both. Without the limit of 1 the parent's own rate
    is s. Households of which an area is missing have no rate.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.island()
    >>> recipe = qd.TargetedSwap(["birth", "age"], similar=[["hh_size"]], rate=0.05, seed=1)
    >>> rated = qd.theory.ons_rates(data, recipe)
    >>> plan = recipe.changed(rate="area_rate").plan(rated)
    >>> plan.asked, recipe.plan(data).asked
    (75, 75)

    Reference: Office for National Statistics, Statistical Disclosure Control for the 2011 UK Census.
    """
    require_data(data, "ons_rates")
    if not isinstance(recipe.rate, float):
        raise ParameterError(f"ons_rates needs a recipe of {OWNER} whose 'rate' is a number: the rate of each parent.")
    if name in data.codebook:
        raise InputError(f"The file has a column {name!r} already. Give the new one another name.")
    recipe.check_columns(data)
    units, areas, level = risk_of(recipe, data)
    path, known = areas.path, areas.known
    n = np.bincount(path[known], minlength=areas.count)
    at_risk = np.bincount(path[known & (level >= 0)], minlength=areas.count)
    parent = areas.of_level[-2] if len(areas.levels) > 1 else np.zeros(areas.count, dtype=np.int64)
    rate = np.full(areas.count, np.nan)
    held = n > 0
    rate[held] = _rates(n[held], at_risk[held], parent[held], recipe.rate)
    values = np.where(known, rate[path], np.nan)[units.of]
    column = Column(Variable(name, "numeric"), values, "Float64", nullable=bool(np.isnan(values).any()))
    columns = [*(data[each] for each in data.columns), column]
    return Data(columns, weight=data.weight, ticks=data.ticks, remarks=data.remarks, sampling=data.sampling)


def _rates(n: Ints, at_risk: Ints, parent: Ints, s: float) -> Floats:
    """Return the rate of each area of n households."""

    def of_parent(values: Floats) -> Floats:
        return cast("Floats", np.bincount(parent, weights=values))[parent]

    small, share = 1 / n, at_risk / n
    by_size = small / of_parent(small)
    total = of_parent(share)
    by_risk = np.where(total > 0, share / np.where(total > 0, total, 1), by_size)
    return np.minimum(1.0, s / 2 * of_parent(n.astype(np.float64)) / n * (by_size + by_risk))
