"""Elimination against statsmodels, published tables as printed, verdicts where a claim holds and where it fails."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from effort import examples
from quadrille.papers.dohrmann_2009 import all_claims, coefficients, pairs_of_scenarios
from quadrille.papers.dohrmann_2009 import run as analysis
from quadrille.papers.dohrmann_2009.files import METHODS, RATES, SHAPES, SIZES, scenarios
from quadrille.papers.dohrmann_2009.run import (
    FACTORS,
    NAMES,
    Column,
    Runs,
    Term,
    all_terms,
    columns,
    columns_of,
    eliminate,
)
from quadrille.papers.reproduction import Claim

Floats = NDArray[np.float64]
SHAPE = (len(SIZES), len(SHAPES), len(RATES), len(METHODS), 4, len(NAMES))


def response(seed: int, strength: float) -> Floats:
    """A response that depends on some factors and one product, with noise."""
    factors = analysis.design_factors(2)
    rng = np.random.default_rng(seed)
    beta = rng.normal(size=3) * strength
    y = beta[0] * factors["rate"][1][:, 0] * 10 + beta[1] * factors["size"][1][:, 1]
    y = y + beta[2] * factors["rate"][1][:, 0] * factors["cells"][1][:, 0] / 10
    return y + rng.normal(size=len(y))


def matrix(terms: Sequence[Term]) -> tuple[list[str], Floats]:
    factors = analysis.design_factors(2)
    blocks = [columns_of(term, factors) for term in terms]
    names = ["intercept", *(name for labels, _ in blocks for name in labels)]
    return names, np.hstack([np.ones((2 * 192, 1)), *(values for _, values in blocks)])


def eliminate_with_statsmodels(y: Floats, terms: list[Term]) -> list[Term]:
    kept = list(terms)
    while kept:
        names, x = matrix(kept)
        fit = sm.OLS(y, x).fit()
        p: dict[Term, float] = {}
        for term in kept:
            if any(set(term) < set(other) for other in kept):
                continue
            mine = [names.index(name) for name in columns_of(term, analysis.design_factors(2))[0]]
            p[term] = float(fit.f_test(np.eye(len(names))[mine]).pvalue)
        worst = max(p, key=lambda term: p[term])
        if p[worst] <= 0.05:
            break
        kept.remove(worst)
    return kept


@examples(4)
@given(seed=st.integers(0, 10_000), strength=st.sampled_from([0.0, 0.3, 2.0]))
def test_the_elimination_is_that_of_statsmodels_step_by_step(seed: int, strength: float) -> None:
    y, terms = response(seed, strength), all_terms(FACTORS)
    fit = eliminate(y, analysis.design_factors(2), terms)
    kept = eliminate_with_statsmodels(y, terms)
    assert list(fit.terms) == kept
    names, x = matrix(kept)
    oracle = sm.OLS(y, x).fit()
    assert list(fit.coefficients) == names
    scale = np.linalg.norm(x, axis=0) / np.linalg.norm(y)
    assert np.allclose(np.array(list(fit.coefficients.values())) * scale, oracle.params * scale, atol=1e-9, rtol=0)
    assert np.allclose(list(fit.errors.values()), oracle.bse, rtol=1e-7)
    assert fit.r_square == pytest.approx(float(oracle.rsquared), abs=1e-10)
    assert set(fit.terms) | set(fit.dropped) == set(terms)


@examples(16)
@given(seed=st.integers(0, 10_000), strength=st.sampled_from([0.0, 0.3, 2.0]))
def test_a_factor_stays_while_a_product_with_it_stays_and_what_stays_is_significant(seed: int, strength: float) -> None:
    fit = eliminate(response(seed, strength), analysis.design_factors(2), all_terms(FACTORS))
    for term in fit.terms:
        assert all((factor,) in fit.terms for factor in term)
    assert all(p > 0.05 for p in fit.dropped.values())


def test_terms_that_the_data_cannot_tell_apart_are_named_and_left_out() -> None:
    factors = analysis.design_factors()
    few = {name: (labels, values[:48][::4]) for name, (labels, values) in factors.items()}  # one file, one rate
    fit = eliminate(np.random.default_rng(1).normal(size=12), few, [("size",), ("rate",), ("cells",)])
    assert fit.aliased == (("size",), ("rate",))


def test_an_exact_fit_keeps_its_terms() -> None:
    factors = analysis.design_factors()
    y = 3 + 2 * factors["rate"][1][:, 0]
    fit = eliminate(y, factors, [("rate",)])
    assert fit.coefficients == pytest.approx({"intercept": 3, "rate": 2})
    assert fit.r_square == pytest.approx(1)


def test_published_tables_are_read_as_printed() -> None:
    values, cv = columns("values"), columns("cv")
    assert tuple(values) == tuple(cv) == NAMES
    assert values["HD1"].r_square == 0.8251
    assert values["HD1"].coefficients["cells x size 8153"] == 0.3010
    assert values["ASED_REG"].coefficients["standard x nominal"] == 0.0066, "printed as nominal x standard"
    assert cv["C_ARD"].coefficients == {"intercept": 2.2016, "rate": -1.1686, "variables": -0.1028}
    assert ("variables",) not in values["HD2"].considered
    assert len(values["R_ASED"].considered) == len(all_terms(FACTORS)) == 21
    assert ("size", "nominal") not in values["C_ARD"].considered, "its factor nominal was not considered"
    assert ("size", "variables") in cv["R_ASED"].considered, "printed once for all files"


def test_average_effects_of_the_published_coefficients_say_what_the_paper_claims() -> None:
    values, cv = columns("values"), columns("cv")

    def effect(factor: str, column: Column) -> float:
        return analysis.average_effect(factor, column.coefficients)

    assert all(effect("rate", column) > 0 for column in values.values())
    assert all(effect("rate", column) < 0 for column in cv.values())
    assert all(effect("standard", values[name]) < 0 for name in ("HD1", "HD2", "R_ASED", "C_ARD"))
    assert all(effect("cells", values[name]) > 0 for name in ("HD1", "HD2"))
    assert all(effect("cells", values[name]) < 0 for name in ("R_ASED", "C_ARD", "ASED_REG"))


def test_the_average_effect_is_the_mean_difference_of_predictions() -> None:
    column = columns("values")["R_ASED"]
    factors = dict(analysis.design_factors())

    def predicted(step: float) -> Floats:
        labels, rate = factors["rate"]
        moved = {**factors, "rate": (labels, rate + step)}
        total = np.full(192, column.coefficients["intercept"])
        for term in column.considered:
            names, values = columns_of(term, moved)
            total = total + values @ np.array([column.coefficients.get(name, 0.0) for name in names])
        return total

    assert (predicted(1.0) - predicted(0.0)).mean() == pytest.approx(
        analysis.average_effect("rate", column.coefficients), rel=1e-12
    )


def table(
    *, rate: float = 1.5, balanced: float = 1.3, cells_hd: float = 0.3, cells_other: float = -0.3, spread: float = -0.4
) -> Runs:
    """Make a table of runs in which each factor has the effect asked for, as a multiple or a power."""
    values = np.empty(SHAPE)
    noise = np.array([-1.5, -0.5, 0.5, 1.5])
    for s, scenario in enumerate(scenarios("simulated")):
        for m, name in enumerate(NAMES):
            power = cells_hd if name.startswith("HD") else cells_other
            base = len(scenario.variables) * scenario.cells**power
            for r in range(len(RATES)):
                for b, method in enumerate(METHODS):
                    level = base * (rate if r else 1) * (balanced if method == "balanced" else 1)
                    size = 0.2 * (1 + (spread if r else 0)) * (1 + 0.01 * s)
                    values[:, s, r, b, :, m] = level * (1 + size * noise)
    return Runs("simulated", values, {})


def verdicts(runs: Runs) -> dict[str, Claim]:
    judged = all_claims(runs, analysis.analyse(runs))
    return {words: next(claim for claim in judged if words in claim.text) for words in WORDS}


WORDS = ("utility falls", "standard method", "help associations", "hurt HD", "variability falls")


def test_all_claims_hold_where_they_are_true() -> None:
    for words, claim in verdicts(table()).items():
        assert claim.holds, (words, claim.evidence)


@pytest.mark.parametrize(
    ("words", "change"),
    [
        ("utility falls", {"rate": 0.8}),
        ("standard method", {"balanced": 0.8}),
        ("help associations", {"cells_other": 0.3}),
        ("hurt HD", {"cells_hd": -0.3}),
        ("variability falls", {"spread": 0.4}),
        ("variability falls", {"spread": 0.0}),
    ],
)
def test_a_claim_fails_where_it_is_false_and_the_others_stay(words: str, change: dict[str, float]) -> None:
    found = verdicts(table(**change))
    assert [other for other in WORDS if not found[other].holds] == [words]


def test_one_measure_that_contradicts_is_enough_and_is_named() -> None:
    runs = table()
    turned = runs.values.copy()
    turned[:, :, 1, ..., NAMES.index("C_ARD")] *= 0.5
    found = verdicts(Runs("simulated", turned, {}))["utility falls"]
    assert not found.holds
    assert found.evidence.endswith("Not by C_ARD")
    assert "HD1 96 of 96" in found.evidence and "C_ARD 0 of 96" in found.evidence


def test_a_single_setting_the_other_way_contradicts_only_beyond_chance() -> None:
    values = table().values.copy()
    one = values[0, 0, 1, 0, :, 0]  # HD1 at the higher rate, of one file, scenario and method
    low = values[0, 0, 0, 0, :, 0]
    for apart, holds in ((0.5, True), (6.0, False)):
        error = np.sqrt((one.var(ddof=1) + low.var(ddof=1)) / 4)
        changed = values.copy()
        changed[0, 0, 1, 0, :, 0] = one - one.mean() + low.mean() - apart * error
        found = verdicts(Runs("simulated", changed, {}))["utility falls"]
        assert found.holds is holds
        assert "HD1 95 of 96" in found.evidence
        assert ("1 against it beyond chance" in found.evidence) is not holds


def test_undefined_scores_are_not_compared_and_nothing_to_compare_is_no_confirmation() -> None:
    values = table().values.copy()
    values[:2, ..., NAMES.index("HD2")] = np.nan
    assert "HD2 48 of 48" in verdicts(Runs("simulated", values, {}))["utility falls"].evidence
    values[..., NAMES.index("HD2")] = np.nan
    found = verdicts(Runs("simulated", values, {}))
    for words in ("utility falls", "standard method", "hurt HD", "variability falls"):
        assert not found[words].holds and "Not by HD2" in found[words].evidence, words


def test_pairs_of_scenarios_have_as_many_variables_and_more_cells() -> None:
    plan = scenarios("simulated")
    pairs = pairs_of_scenarios()
    assert len(pairs) == 3 + 3 + 1 + 6
    for fewer, more in pairs:
        assert len(plan[fewer].variables) == len(plan[more].variables)
        assert plan[fewer].cells < plan[more].cells


def test_undefined_and_zero_responses_are_counted_and_left_out() -> None:
    values = np.random.default_rng(2).gamma(3, size=SHAPE)
    values[3, :, :, :, 0, NAMES.index("HD2")] = np.nan
    values[0, 0, 0, 0, :, NAMES.index("C_ARD")] = 0
    results = {(result.table, result.measure): result for result in analysis.analyse(Runs("adult", values, {"x": 48}))}
    assert results["values", "HD2"].left_out == 48
    assert results["values", "HD2"].fit.n == 768 - 48
    assert results["cv", "HD2"].left_out == 48, "a CV needs every seed"
    assert results["values", "C_ARD"].left_out == 4
    assert results["cv", "C_ARD"].left_out == 1
    assert results["values", "HD1"].left_out == results["cv", "HD1"].left_out == 0
    note = coefficients("adult", "values", [results["values", name] for name in NAMES]).note
    assert "HD2 48, C_ARD 4" in note


def test_signs_tell_kept_dropped_and_not_considered_apart() -> None:
    considered: tuple[Term, ...] = (("rate",), ("size",))
    found = {"rate": -0.1}
    assert analysis.sign_of("rate", found, considered) == "-"
    assert analysis.sign_of("size 8153", found, considered) == "0"
    assert analysis.sign_of("cells", found, considered) == ""


def test_the_spread_over_seeds_is_the_sample_standard_deviation_by_the_mean() -> None:
    runs = table()
    one = runs.values[1, 2, 1, 0, :, 3]
    assert runs.cv[1, 2, 1, 0, 3] == pytest.approx(100 * one.std(ddof=1) / one.mean())
