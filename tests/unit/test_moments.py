"""Sums of centred numbers: correlations and regressions from them are those of numpy and statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from survey_case import SWAPS, ased_reg, r_ased, regress, survey

import quadrille as qd
from quadrille.data import Column, Data
from quadrille.errors import MismatchError
from quadrille.expressions import Model, column_scales
from quadrille.measure.moments import Moments
from strategies import column, numbers

SWAPPED = pytest.mark.parametrize("recipe", SWAPS, ids=lambda recipe: "+".join(recipe.swap))


@SWAPPED
@pytest.mark.parametrize("weighted", [True, False], ids=["weighted", "unweighted"])
def test_correlations_follow_their_definition_with_pairwise_missing_values(
    recipe: qd.RandomSwap, weighted: bool
) -> None:
    data = survey(weighted=weighted)
    plan = recipe.plan(data)
    after = plan.apply(data)
    truth = r_ased(data, after, plan.columns)
    assert qd.score(data, plan, ["r_ased"])["r_ased"] == pytest.approx(truth, rel=1e-10)
    assert qd.score(data, after, ["r_ased"])["r_ased"] == pytest.approx(truth, rel=1e-10)


@SWAPPED
@pytest.mark.parametrize("weighted", [True, False], ids=["weighted", "unweighted"])
def test_regressions_are_those_of_statsmodels_refitted(recipe: qd.RandomSwap, weighted: bool) -> None:
    data = survey(weighted=weighted)
    plan = recipe.plan(data)
    after = plan.apply(data)
    given = "ased_reg(score ~ age + C(race) + C(sex); math ~ income + C(race))"
    scores = qd.score(data, plan, ["ased_reg", given])
    default = [ased_reg(data, after, outcome, list(recipe.swap)) for outcome in ("score", "math")]
    assert scores["ased_reg"] == pytest.approx(np.mean(default), rel=1e-8)
    models = [("score", ["age", "race", "sex"]), ("math", ["income", "race"])]
    truth = [ased_reg(data, after, *model) for model in models]
    assert scores[given] == pytest.approx(np.mean(truth), rel=1e-8, abs=1e-12)
    assert qd.score(data, after, [given])[given] == pytest.approx(scores[given], rel=1e-10, abs=1e-12)


def test_the_rows_of_a_regression_hold_its_coefficients() -> None:
    data = survey()
    plan = SWAPS[0].plan(data)
    address = "ased_reg(score ~ age + C(race))"
    rows = qd.score(data, plan, [address]).detail(address)
    (b, se), (new, _) = (regress(file, "score", ["age", "race"]) for file in (data, plan.apply(data)))
    assert rows["term"].to_list() == ["(intercept)", "age", "race=x", "race=y"]
    assert set(rows["model"]) == {"score ~ age + C(race)"}
    assert np.allclose(rows["b_before"], b, rtol=1e-9)
    assert np.allclose(rows["se_before"], se, rtol=1e-9)
    assert np.allclose(rows["b_after"], new, rtol=1e-9)
    assert qd.score(data, plan, [address])[address] == pytest.approx(rows["ased"].mean())


def test_numbers_far_from_zero_keep_their_digits() -> None:
    data = survey(missing=0)
    sd = float(np.std(data["score"].values))
    far_away = data["score"].values + 1e6 * sd
    near_by = far_away - far_away[0]  # exact: what is left of the digits is the same in both
    kept = [data[name] for name in data.columns if name not in ("score", "math")]
    near, far = (Data([*kept, numbers("score", y, role="outcome")]) for y in (near_by, far_away))
    plan = SWAPS[0].plan(near)
    again = qd.Plan.of_pairs(far, plan.columns, plan.pairs)
    after = plan.apply(near)
    assert abs(far_away.mean() / sd) > 0.99e6
    assert qd.score(far, again, ["r_ased"])["r_ased"] == pytest.approx(r_ased(near, after, plan.columns), rel=1e-9)
    rows = qd.score(far, again, ["ased_reg"]).detail("ased_reg")
    (b, se), (new, _) = (regress(file, "score", ["educ", "race"]) for file in (near, after))
    assert np.allclose(rows["ased"], np.abs(b - new) / se, rtol=1e-9)
    assert np.allclose(rows["se_before"], se, rtol=1e-9)


def test_a_group_that_a_plan_empties_leaves_no_residue() -> None:
    x = [10.0, 20.0, 3.0, 4.0, 5.5, 7.0]
    group = [0, 0, 1, 1, 1, 1]
    heavy = [1e7, 3e7, 1.0, 2.0, 1.5, 1.0]
    filled = qd.Variable("y", "ordinal", (1, 2, 3), missing=(9,))
    y = np.array([0, 1, 3, 3, 1, 2], dtype=np.uint8)
    data = Data([numbers("x", x), Column(filled, y), column("g", group), numbers("w", heavy, role="weight")])
    plan = qd.Plan.of_pairs(data, ["y"], [[0, 2], [1, 3]])  # the heavy records lose their y
    for address in ("r_ased(x*y)", "ased_reg(x ~ y)"):
        by_plan, by_file = qd.score(data, plan, [address]), qd.score(data, plan.apply(data), [address])
        assert by_plan[address] == pytest.approx(by_file[address], rel=1e-12), address


def test_sums_of_other_columns_or_categories_are_not_merged() -> None:
    data = survey()
    scales, _ = column_scales(data, ("age", "score"), 16)
    sums = Moments(("age", "score"), None, scales).of(data)
    with pytest.raises(MismatchError):
        sums.merge(Moments(("age", "score"), None, scales, complete=True).of(data))


def test_sums_in_many_chunks_are_those_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    data = survey()
    plan = SWAPS[2].plan(data)
    whole = qd.score(data, plan, ["r_ased", "ased_reg"])
    monkeypatch.setattr("quadrille.measure.moments._CHUNK", 7)
    pieces = qd.score(data, plan, ["r_ased", "ased_reg"])
    assert all(pieces[address] == pytest.approx(whole[address], rel=1e-12) for address in whole)


def test_a_level_that_does_not_occur_gets_no_dummy() -> None:
    data = survey(missing=0)
    levels = qd.Variable("race", "nominal", ("x", "never", "y", "z", "nor this"))
    codes = np.array([0, 2, 3], dtype=np.uint8)[data["race"].values]
    wide = Data([Column(levels, codes) if n == "race" else data[n] for n in data.columns])
    address = "ased_reg(score ~ age + C(race))"
    plan, plan_wide = SWAPS[1].plan(data), SWAPS[1].plan(wide)
    truth, found = qd.score(data, plan, [address]), qd.score(wide, plan_wide, [address])
    assert found.detail(address)["term"].to_list() == ["(intercept)", "age", "race=x", "race=y"]
    pairs = plan.pairs
    again = qd.score(wide, qd.Plan.of_pairs(wide, ["race"], pairs), [address])
    assert again[address] == pytest.approx(truth[address], rel=1e-12)
    assert len(Model.parse("score ~ age + C(race)").scales(wide)) == 1 + 3 + 1


def with_weights(data: Data, weight: np.ndarray) -> Data:
    columns = [data[name] for name in data.columns if name != data.weight]
    return Data([*columns, numbers("w", weight, role="weight")])


@pytest.mark.parametrize("address", ["r_ased", "ased_reg(score ~ age + C(race) + C(sex))"])
def test_records_of_weight_0_are_as_if_they_were_not_there(address: str) -> None:
    # R drops them from the degrees of freedom: summary(lm(..., weights = w)).
    data = survey()
    keep = np.random.default_rng(5).random(data.n) < 0.6
    zeros = with_weights(data, np.where(keep, data["w"].values, 0.0))
    plan = SWAPS[0].plan(zeros)
    after = plan.apply(zeros)
    rows = np.flatnonzero(keep)
    for released in (plan, after):
        value = qd.score(zeros, released, [address])[address]
        without = qd.score(zeros.take(rows), after.take(rows), [address])[address]
        assert value == pytest.approx(without, rel=1e-10)


def test_a_regression_with_weights_of_0_has_the_degrees_of_freedom_of_the_others() -> None:
    # What `lm(y ~ x, weights = w)` does in R; software that counts all seven records divides by 5.
    y, x, w = np.array([1.0, 3, 2, 5, 4, 6, 100]), np.arange(1.0, 8), np.array([1.0, 2, 1, 3, 1, 2, 0])
    data = Data([numbers("x", x), numbers("y", y), numbers("w", w, role="weight")])
    plan = qd.Plan.of_pairs(data, ["x"], np.array([[0, 1], [5, 6]]))
    rows = qd.score(data, plan, ["ased_reg(y ~ x)"]).detail("ased_reg(y ~ x)")
    fitted = sm.WLS(y[:6], sm.add_constant(x[:6]), weights=w[:6]).fit()
    assert fitted.df_resid == 4
    assert rows["b_before"].to_list() == pytest.approx(fitted.params.tolist(), rel=1e-12)
    assert rows["se_before"].to_list() == pytest.approx(fitted.bse.tolist(), rel=1e-12)


def test_infinite_values_are_reported_and_leave_what_rests_on_them_undefined() -> None:
    data = survey(missing=0.0)
    income = data["income"].values.copy()
    income[[3, 8]] = np.inf, -np.inf
    endless = Data([numbers("income", income) if name == "income" else data[name] for name in data.columns])
    plan = qd.RandomSwap(["age", "educ", "income"], pairs=60, differ="any", seed=3).plan(endless)
    address = "r_ased(age*educ*income)"
    scores = qd.score(endless, plan, [address, "ased_reg(score ~ income)", "ased_reg(score ~ age)"])
    assert scores.note(address) == "of 3 pairs left out: 2 with an infinite value"
    finite = Data([data[name] for name in data.columns])
    plain = qd.score(finite, qd.Plan(plan.moves, data=finite), ["r_ased(age*educ)", "ased_reg(score ~ age)"])
    assert scores[address] == pytest.approx(plain["r_ased(age*educ)"], rel=1e-12)
    assert scores["ased_reg(score ~ income)"] is None
    assert "infinite in 2 records with a weight" in scores.note("ased_reg(score ~ income)")
    assert scores["ased_reg(score ~ age)"] == pytest.approx(plain["ased_reg(score ~ age)"], rel=1e-12)
    only = qd.score(endless, plan, ["r_ased(income*score)"])
    assert only["r_ased(income*score)"] is None
    assert only.note("r_ased(income*score)").endswith("of 1 pairs 1 with an infinite value")


@pytest.mark.parametrize("equal", [False, True])  # with equal weights the swapped squares stay as they are
@pytest.mark.parametrize("factor", [1e250, 1e-250, 2.0**900, 2.0**-900])
def test_the_unit_of_the_weight_does_not_matter_however_large_it_is(factor: float, equal: bool) -> None:
    data = survey(missing=0.0)
    data = with_weights(data, np.ones(data.n)) if equal else data
    scaled = with_weights(data, np.asarray(data["w"].values) * factor)
    addresses = ["r_ased", "ased_reg(score ~ age + C(race))"]
    plan = SWAPS[0].plan(data)
    truth = qd.score(data, plan, addresses)
    for released in (qd.Plan(plan.moves, data=scaled), qd.Plan(plan.moves, data=scaled).apply(scaled)):
        scores = qd.score(scaled, released, addresses)
        assert [scores[a] for a in addresses] == pytest.approx([truth[a] for a in addresses], rel=1e-9)


@pytest.mark.parametrize(("factor", "size"), [(1e250, 1e60), (1e-250, 1e-30)])
@pytest.mark.parametrize("address", ["r_ased(educ*score)", "ased_reg(score ~ age)"])
def test_sums_of_squares_beyond_the_range_of_numbers_are_refused_in_words(
    address: str, factor: float, size: float
) -> None:
    data = survey(missing=0.0)
    scaled = with_weights(data, np.asarray(data["w"].values) * factor)
    columns = [
        numbers("score", scaled["score"].values * size) if name == "score" else scaled[name] for name in scaled.columns
    ]
    extreme = Data(columns, weight="w")
    plan = qd.RandomSwap(["age", "educ"], pairs=150, seed=4).plan(extreme)
    scores = qd.score(extreme, plan, [address])
    assert scores[address] is None and "rescale the weight or the columns" in scores.note(address)
