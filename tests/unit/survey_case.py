"""A weighted survey file of every kind of column, and the utility measures by plain numpy and statsmodels."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import statsmodels.api as sm

import quadrille as qd
from quadrille.data import Column, Data
from strategies import numbers

SWAPS = (
    qd.RandomSwap(["educ", "race"], pairs=60, seed=1),
    qd.RandomSwap(["race"], pairs=100, seed=2),
    qd.RandomSwap(["educ", "race", "income"], pairs=40, order="one-by-one", differ="any", seed=3),
    qd.RandomSwap(["educ"], rate=1.0, differ="none", seed=4),
)


def survey(n: int = 400, seed: int = 0, *, weighted: bool = True, missing: float = 0.1) -> Data:
    """Records of age (ordinal numbers), educ (ordinal text), race (nominal), sex (two levels), income and scores."""
    random = np.random.default_rng(seed)
    age, educ, race, sex = (random.integers(0, k, n) for k in (5, 4, 3, 2))
    score = 250 + 8.0 * age - 5 * educ + 12 * (race == 1) + random.normal(0, 30, n)
    math = 0.5 * score + 3 * sex + random.normal(0, 20, n)
    income = np.round(random.lognormal(10, 0.6, n))
    race = np.where(random.random(n) < missing, 3, race)
    math[random.random(n) < missing] = np.nan
    income[random.random(n) < missing] = np.nan
    columns = [
        Column(qd.Variable("age", "ordinal", (20, 30, 45, 60, 80)), age.astype(np.uint8)),
        Column(qd.Variable("educ", "ordinal", ("none", "some", "more", "most")), educ.astype(np.uint8)),
        Column(qd.Variable("race", "nominal", ("x", "y", "z"), missing=("?",)), race.astype(np.uint8)),
        Column(qd.Variable("sex", "nominal", ("f", "m")), sex.astype(np.uint8)),
        numbers("income", income),
        numbers("score", score, role="outcome"),
        numbers("math", math, role="outcome"),
    ]
    if weighted:
        columns.append(numbers("w", np.round(random.lognormal(5, 0.8, n), 2), role="weight"))
    return Data(columns)


def weights(data: Data) -> np.ndarray:
    return np.ones(data.n) if data.weight is None else np.asarray(data[data.weight].values)


def columns_of(data: Data) -> dict[str, np.ndarray]:
    """The columns of numbers that correlations are taken of, NaN where missing, in the order of the file."""
    frame = data.frame()
    found = {
        "age": np.array(frame["age"].to_list(), dtype=float),
        "educ": np.array([("none", "some", "more", "most").index(x) for x in frame["educ"]], dtype=float),
    }
    race = np.array(frame["race"].to_list())
    for level in ("x", "y", "z"):
        found[f"race={level}"] = np.where(race == "?", np.nan, race == level)
    found["sex=f"] = (np.array(frame["sex"].to_list()) == "f").astype(float)
    for name in ("income", "score", "math"):
        if name not in data.columns:
            continue
        found[name] = np.array(data[name].values, dtype=float)
    return found


def weighted_r(x: np.ndarray, y: np.ndarray, w: np.ndarray) -> tuple[float, int]:
    """Weighted correlation and number of records, over those with both values."""
    both = ~np.isnan(x) & ~np.isnan(y)
    x, y, w = x[both], y[both], w[both]
    x, y = x - np.average(x, weights=w), y - np.average(y, weights=w)
    return float((w * x * y).sum() / np.sqrt((w * x * x).sum() * (w * y * y).sum())), int(both.sum())


def r_ased(before: Data, after: Data, moved: tuple[str, ...]) -> float:
    """The mean change of correlations in standard errors, from the two files."""
    was, now = columns_of(before), columns_of(after)
    if "income" not in moved:  # neither key nor outcome
        del was["income"]
    found = []
    for a, b in combinations(was, 2):
        if not {a.split("=")[0], b.split("=")[0]} & set(moved):
            continue
        (old, n), (new, _) = weighted_r(was[a], was[b], weights(before)), weighted_r(now[a], now[b], weights(after))
        if abs(old - new) > 1e-9:
            found.append(abs(old - new) / ((1 - old**2) / np.sqrt(n)))
    return float(np.mean(found))


def regress(data: Data, outcome: str, terms: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and standard errors by statsmodels; `race` and `sex` as dummies without the last level."""
    columns = columns_of(data)
    columns["sex=m"] = 1 - columns["sex=f"]
    dummies = {"race": ["race=x", "race=y"], "sex": ["sex=f"]}
    x = np.column_stack([np.ones(data.n)] + [columns[c] for term in terms for c in dummies.get(term, [term])])
    y = columns[outcome]
    complete = ~np.isnan(x).any(axis=1) & ~np.isnan(y)
    fitted = sm.WLS(y[complete], x[complete], weights=weights(data)[complete]).fit()
    return fitted.params, fitted.bse


def ased_reg(before: Data, after: Data, outcome: str, terms: list[str]) -> float:
    (b, se), (new, _) = regress(before, outcome, terms), regress(after, outcome, terms)
    return float(np.mean(np.abs(b - new) / se))
