"""Designed swaps of CPS-8d that keep tables: what stays exact, what they reach, and what regressions notice."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np
import pytest

import quadrille as qd
from effort import tries
from exact_strategies import both

OUTCOME = "AnnSal"


@cache
def cps8d() -> qd.Data:
    return qd.datasets.cps8d()


@cache
def plan_of(keep: str = "2-way", coin: float = 0.0, seed: int = 1) -> qd.Plan:
    return qd.DesignedSwap(keep=keep, coin=coin, seed=seed).plan(cps8d())


@cache
def reached(keep: str = "2-way", coin: float = 0.0, seed: int = 1) -> dict[str, float]:
    return dict(qd.score(cps8d(), plan_of(keep, coin, seed), ["exposed", "hellinger", "attributed_unique"]))


def exact_tables(plan: qd.Plan, ways: int) -> int:
    """How many tables of so many variables are the same to the last record."""
    data, after = cps8d(), plan.apply(cps8d())
    tables = (both_counts(data, after, names) for names in combinations(data.columns, ways))
    return sum(bool((f == g).all()) for f, g in tables)


def both_counts(data: qd.Data, after: qd.Data, names: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    shape = [data[name].size for name in names]
    return tuple(
        np.bincount(np.ravel_multi_index([file[name].values for name in names], shape), minlength=int(np.prod(shape)))
        for file in (data, after)
    )


@pytest.mark.parametrize("seed", range(1, 1 + tries(2, 10)))
def test_all_tables_of_two_variables_are_exact_and_nearly_nobody_is_exposed(seed: int) -> None:
    plan, scores = plan_of(seed=seed), reached(seed=seed)
    assert exact_tables(plan, 2) == 28
    assert scores["exposed"] * 48_842 <= 6.001
    assert 0.055 <= scores["hellinger"] <= 0.060
    f, g = both_counts(cps8d(), plan.apply(cps8d()), tuple(cps8d().columns))
    assert np.abs(g - f).sum() // 2 == len(plan.rows) == plan.details.facts["records_moved"]


@pytest.mark.parametrize("seed", range(1, 1 + tries(1, 3)))
def test_all_tables_of_three_variables_are_exact(seed: int) -> None:
    scores = reached("3-way", seed=seed)
    assert exact_tables(plan_of("3-way", seed=seed), 3) == 56
    assert scores["exposed"] <= 0.002
    assert scores["hellinger"] <= 0.065


@pytest.mark.parametrize("seed", range(1, 1 + tries(1, 5)))
def test_keeping_less_costs_less(seed: int) -> None:
    one, two = reached("1-way", seed=seed), reached("2-way", seed=seed)
    assert one["exposed"] <= 0.0001 and one["hellinger"] <= 0.0510
    assert one["hellinger"] < two["hellinger"]


def least_squares(file: qd.Data) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and standard errors of a regression of the outcome on main effects."""
    x, y = design(file), file[OUTCOME].values.astype(float)
    coefficients = np.linalg.lstsq(x, y, rcond=None)[0]
    inverse = np.linalg.inv(x.T @ x)
    variance = ((y - x @ coefficients) ** 2).sum() / (len(y) - x.shape[1])
    return coefficients, np.sqrt(variance * np.diag(inverse))


def logistic(file: qd.Data) -> tuple[np.ndarray, np.ndarray]:
    """The same of a logistic regression, by Newton's method."""
    x, y = design(file), file[OUTCOME].values.astype(float)
    coefficients = np.zeros(x.shape[1])
    for _ in range(30):
        mean = 1 / (1 + np.exp(-x @ coefficients))
        information = x.T @ (x * (mean * (1 - mean))[:, None])
        coefficients = coefficients + np.linalg.solve(information, x.T @ (y - mean))
    return coefficients, np.sqrt(np.diag(np.linalg.inv(information)))


def design(file: qd.Data) -> np.ndarray:
    """A constant and a column for each category but the first of every variable but the outcome."""
    columns = [np.ones(file.n)]
    for name in file.columns:
        if name != OUTCOME:
            columns += [(file[name].values == code).astype(float) for code in range(1, file[name].size)]
    made = np.stack(columns, axis=1)
    return made[:, made.any(axis=0)]


def test_a_linear_regression_on_main_effects_is_exact_and_a_logistic_one_is_not() -> None:
    data, after = cps8d(), plan_of().apply(cps8d())
    for before, now in zip(least_squares(data), least_squares(after), strict=True):
        assert np.abs(now - before).max() < 1e-10
    (coefficients, errors), (others, _) = logistic(data), logistic(after)
    assert np.abs((others - coefficients) / errors).max() > 0.1


def test_a_logistic_regression_is_exact_where_what_it_needs_is_kept() -> None:
    data, after = cps8d(), plan_of(f"logit({OUTCOME})").apply(cps8d())
    for before, now in zip(logistic(data), logistic(after), strict=True):
        assert np.abs(now - before).max() < 1e-8
    assert exact_tables(plan_of(f"logit({OUTCOME})"), 2) == 28
    assert reached(f"logit({OUTCOME})")["exposed"] <= 0.0076


def test_the_coin_leaves_cells_of_one_or_empties_them() -> None:
    data, plan = cps8d(), plan_of("2-way", 0.5)
    facts = plan.details.facts
    f, g = both(data, plan.apply(data), data.columns)
    assert exact_tables(plan, 2) == 28
    assert (g[f == 0] <= 1).all() and g[f == 0].sum() == facts["displaced"] == facts["new_cells"]
    tossed = facts["left"]["left by the coin"]
    assert ((f == 1) & (g == 1)).sum() >= tossed
    assert abs(tossed - facts["displaced"]) <= 4 * np.sqrt(tossed + facts["displaced"])
    assert not ((f >= 3) & (g < 3)).any()


COIN = 0.45


@pytest.mark.nightly
def test_with_a_coin_few_uniques_are_attributed_at_little_loss() -> None:
    means = {name: np.mean([reached("1-way", COIN, seed)[name] for seed in range(1, 6)]) for name in reached()}
    assert means["hellinger"] <= 0.056
    assert means["exposed"] <= 0.0022
    assert means["attributed_unique"] <= 0.75
