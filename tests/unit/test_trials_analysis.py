"""The analysis of a design against statsmodels and scipy, and the selection of factors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.anova import anova_lm

from quadrille.simulation import METRICS
from quadrille.simulation.design import SimulationDesign
from quadrille.simulation.effects import Stratum, analyse, fit, log_tail, spearman, without_noise

Floats = NDArray[np.float64]

DESIGN = SimulationDesign.of(
    {
        "design": {"replicates": 12, "seed": 1, "mechanism": ["records", "cells"], "strata": ["rates"]},
        "areas": {"a": [100, 100], "b": [90, 110], "c": [80, 120]},
        "levels": {"two": [0.5, 0.5], "three": [0.4, 0.3, 0.3]},
        "rates": {"low": 0.1, "high": 0.4},
        "baseline": {"areas": "b"},
    }
)
LEVELS = np.array([trial.levels for trial in DESIGN.trials], dtype=np.int64)


def made(random: np.random.Generator, effect: float = 1.0, shift: float = 1e6) -> Floats:
    """Values with effects of areas and rates, none of levels and mechanism, far from 0."""
    cell = effect * (2.0 * LEVELS[:, 0] ** 2 - 3.0 * LEVELS[:, 2])
    return shift + cell[:, None] + random.normal(size=(len(LEVELS), DESIGN.replicates))


def long(values: Floats) -> pd.DataFrame:
    rows = {f.name: np.repeat([f.levels[i] for i in LEVELS[:, k]], 12) for k, f in enumerate(DESIGN.factors)}
    return pd.DataFrame({**rows, "y": values.ravel()})


@pytest.mark.parametrize("seed", range(3))
def test_effects_errors_and_intervals_are_those_of_least_squares_on_all_replicates(seed: int) -> None:
    values = made(np.random.default_rng(seed))
    model = fit("y", values, LEVELS, DESIGN.factors, select=False)
    oracle = smf.ols(
        "y ~ C(areas, Treatment('b')) + C(levels, Treatment('two')) + C(rates, Treatment('low')) "
        "+ C(mechanism, Treatment('records'))",
        long(values),
    ).fit()
    assert model is not None
    names = ["Intercept"] + [f"[T.{level}]" for level in ("a", "c", "three", "high", "cells")]
    for term, name in zip(model.terms, names, strict=True):
        key = next(each for each in oracle.params.index if each.endswith(name))
        low, high = oracle.conf_int().loc[key]
        ours = (term.effect, term.error, term.low, term.high)
        assert ours == pytest.approx((oracle.params[key], oracle.bse[key], low, high), rel=1e-7, abs=1e-7)
    assert model.r2 == pytest.approx(oracle.rsquared, rel=1e-8)
    assert model.rmse == pytest.approx(np.sqrt(oracle.mse_resid), rel=1e-8)
    full = smf.ols("y ~ areas * levels * rates * mechanism", long(values)).fit()
    assert model.ceiling == pytest.approx(full.rsquared, rel=1e-8)


def test_p_values_of_factors_that_enter_are_those_of_the_analysis_of_variance() -> None:
    values = made(np.random.default_rng(5), effect=0.1)
    model = fit("y", values, LEVELS, DESIGN.factors)
    assert model is not None and model.factors == ("areas", "rates")
    first, second = model.steps[:2]
    order = [first.factor, second.factor]
    alone = anova_lm(smf.ols(f"y ~ C({order[0]})", long(values)).fit())
    both = anova_lm(smf.ols(f"y ~ C({order[0]}) + C({order[1]})", long(values)).fit())
    assert first.p == pytest.approx(alone["PR(>F)"].iloc[0], rel=1e-5)
    assert second.p == pytest.approx(both["PR(>F)"].iloc[1], rel=1e-5)


def test_the_strongest_factor_enters_first_even_where_p_values_are_below_all_floats() -> None:
    random = np.random.default_rng(8)
    strong = 50.0 * (LEVELS[:, 1] == 1) + 400.0 * LEVELS[:, 2] + 100.0 * (LEVELS[:, 0] == 2)
    values = strong[:, None] + random.normal(size=(len(LEVELS), 400))
    model = fit("y", values, LEVELS, DESIGN.factors)
    assert model is not None
    assert [step.factor for step in model.steps[:3]] == ["rates", "areas", "levels"]
    assert [step.p for step in model.steps[:3]] == [0.0] * 3


@pytest.mark.parametrize(("more", "df"), [(1, 2000), (2, 10_792), (4, 71_992)])
def test_logarithms_of_tiny_tails_continue_those_of_scipy(more: int, df: int) -> None:
    ratios = np.geomspace(10, 1e5, 8000)
    ours = np.array([log_tail(ratio, more, df) for ratio in ratios])
    theirs = stats.f.logsf(ratios, more, df)
    assert np.isinf(theirs).any() and np.isfinite(ours).all()
    assert (np.diff(ours) < 0).all()  # no step where one form takes over from the other
    exact = theirs > -708  # beyond, probabilities lose their digits
    assert ours[exact] == pytest.approx(theirs[exact], abs=0.005)  # the terms left out are that small
    assert (theirs[exact] < -700).any()


def test_only_factors_that_matter_are_selected_at_about_the_stated_level() -> None:
    random, wrong, turns = np.random.default_rng(9), 0, 200
    for _ in range(turns):
        model = fit("y", made(random), LEVELS, DESIGN.factors)
        assert model is not None and {"areas", "rates"} <= set(model.factors)
        wrong += len(model.factors) - 2
    # Two factors without effect stay with probability .05 each: 20 expected, 4 standard errors are 17.
    assert abs(wrong - 0.05 * 2 * turns) < 4 * np.sqrt(2 * turns * 0.05 * 0.95)


def test_a_factor_that_enters_above_the_level_of_staying_leaves_again() -> None:
    random, left = np.random.default_rng(2), 0
    for _ in range(150):
        model = fit("y", random.normal(size=(len(LEVELS), 12)), LEVELS, DESIGN.factors)
        assert model is not None
        for step in model.steps:
            assert step.p < 0.10 if step.entered else step.p >= 0.05
            left += not step.entered
        if not model.factors:
            assert (model.r2, len(model.terms)) == (pytest.approx(0, abs=1e-12), 1)
    assert left > 5


def test_a_metric_that_does_not_vary_has_no_model_and_no_correlation() -> None:
    assert fit("y", np.full((len(LEVELS), 12), 0.1), LEVELS, DESIGN.factors) is None
    values = np.random.default_rng(1).normal(size=(4, 5, 6))
    values[:, :, 2] = 3.0
    matrix = spearman(values)
    assert np.isnan(matrix[2]).all()
    assert np.isnan(Stratum({}, matrix).range("within A")[0])
    assert not np.isnan(Stratum({}, matrix).range("within B")[0])


def test_correlations_are_those_of_scipy_ties_included() -> None:
    values = np.random.default_rng(3).integers(0, 6, size=(7, 11, 6)).astype(float)
    values[:, :, 5] += values[:, :, 0]
    oracle = stats.spearmanr(values.reshape(-1, 6)).statistic
    assert spearman(values) == pytest.approx(oracle, abs=1e-12)


def test_values_that_are_equal_but_for_rounding_share_a_rank() -> None:
    random = np.random.default_rng(5)
    terms = random.normal(size=(40, 9)).round(3)
    shuffled = np.array([random.permutation(row) for row in np.repeat(terms, 5, axis=0)])
    sums = shuffled.cumsum(axis=1)[:, -1]  # the same sums, added up in another order
    exact = np.repeat([sum(round(1000 * each) for each in row) for row in terms.tolist()], 5)
    assert len(np.unique(sums)) > len(np.unique(exact))  # floats tell apart what is equal
    assert stats.rankdata(without_noise(sums)).tolist() == stats.rankdata(exact).tolist()
    other = random.normal(size=len(sums))
    oracle = stats.spearmanr(exact, other).statistic
    assert spearman(np.stack([sums, other], axis=1)[None])[0, 1] == pytest.approx(oracle, abs=1e-12)
    noise = np.array([0.1 + 0.2, 0.3, 0.3, 0.1 + 0.2])
    assert np.isnan(spearman(np.stack([noise, np.arange(4.0)], axis=1)[None])[0, 1])


def test_ranges_are_within_and_across_the_two_groups_of_metrics() -> None:
    matrix = np.array([[10.0 * i + j for j in range(6)] for i in range(6)])
    stratum = Stratum({}, matrix)
    assert stratum.range("within A") == (1, 12)
    assert stratum.range("within B") == (34, 45)
    assert stratum.range("across") == (3, 25)


def test_the_analysis_summarises_by_level_and_by_stratum() -> None:
    random = np.random.default_rng(4)
    values = np.concatenate([random.normal(size=(24, 12, 6)), np.zeros((24, 12, 2))], axis=2)
    found = analyse(DESIGN, values)
    high = LEVELS[:, 2] == 1
    row = next(r for r in found.summary if (r["metric"], r["level"]) == ("deviance", "high"))
    inside = values[high][:, :, 2].ravel()
    assert row["mean"] == pytest.approx(inside.mean())
    assert row["sd"] == pytest.approx(inside.std(ddof=1))
    assert [row["p5"], row["p95"]] == pytest.approx(np.quantile(inside, [0.05, 0.95]).tolist())
    assert [stratum.levels for stratum in found.strata] == [{"rates": "low"}, {"rates": "high"}]
    assert found.strata[1].matrix == pytest.approx(spearman(values[high][:, :, :6]))
    assert list(found.models) == list(METRICS)
    assert len(found.settings) == 24
