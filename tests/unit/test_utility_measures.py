"""Utility measures: worked examples, defaults, and what is undefined and why."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from scipy.stats import contingency
from survey_case import SWAPS, survey

import quadrille as qd
from quadrille.data import Column, Data
from quadrille.measure import MEASURES
from quadrille.measure.base import NOTHING_CHANGED
from strategies import column, file_of, numbers

UTILITY = ("c_ard", "v_ard", "r_ased", "ased_reg", *(f"hd{i}{norm}" for i in (1, 2, 3, 4) for norm in ("", "_norm")))


def test_every_utility_measure_is_listed_with_definition_and_reference() -> None:
    listed = {row["name"]: row for row in qd.measures().to_dicts()}
    for name in UTILITY:
        assert "Dohrmann" in listed[name]["reference"]
        assert "before" in listed[name]["definition"]
        assert listed[name]["better"] == "lower"
    assert {name for name, kind in MEASURES.items() if kind.follows_plan} == set(UTILITY)


def two_cells() -> tuple[Data, qd.Plan]:
    data = file_of([1, 4, 9, 16], A=[0, 0, 1, 1], B=[0, 1, 0, 1])
    return data, qd.Plan.of_pairs(data, ["A"], [[0, 2]])  # weights of A: 5, 25 before; 13, 17 after


def test_hellinger_distances_are_taken_between_sums_of_weights() -> None:
    data, plan = two_cells()
    truth = sqrt(((sqrt(5) - sqrt(13)) ** 2 + (sqrt(25) - sqrt(17)) ** 2) / 2)
    scores = qd.score(data, plan, ["hd1", "hd3", "hd1_norm", "hd1(A*B)", "hd3(A*B)"])
    assert scores["hd1"] == pytest.approx(truth, rel=1e-14)
    assert scores["hd3"] == pytest.approx(truth, rel=1e-14)
    assert scores["hd1_norm"] == pytest.approx(truth / sqrt(30), rel=1e-14)
    parts = {row["variable"]: row["value"] for row in scores.detail("hd3(A*B)").to_dicts()}
    assert parts == {"A": pytest.approx(truth), "B": 0.0}
    assert scores["hd3(A*B)"] == pytest.approx(truth / 2)
    assert scores["hd1(A*B)"] > truth


def test_distances_over_large_cells_are_undefined_without_one_and_never_zero_by_default() -> None:
    data, plan = two_cells()
    for measure in ("hd2", "hd4", "hd2_norm", "hd4_norm"):
        scores = qd.score(data, plan, [measure])
        assert scores[measure] is None
        assert "more than 45 records" in scores.note(measure)
    assert qd.score(data, plan, ["hd2(min_cell=1)"])["hd2(min_cell=1)"] == qd.score(data, plan, ["hd1"])["hd1"]
    assert qd.score(data, plan, ["hd2(min_cell=2)"])["hd2(min_cell=2)"] is None  # more than, not at least


def test_large_cells_are_those_of_the_file_before() -> None:
    data = file_of([1, 1, 1, 5, 1, 1], A=[0, 0, 0, 1, 1, 2], B=[0, 1, 2, 3, 4, 5])
    plan = qd.Plan.of_pairs(data, ["A"], [[3, 5]])
    scores = qd.score(data, plan, ["hd2(min_cell=1)", "hd2(min_cell=2)", "hd4(min_cell=2)"])
    assert scores["hd2(min_cell=1)"] == pytest.approx(abs(sqrt(6) - sqrt(2)) / sqrt(2))
    assert scores["hd2(min_cell=2)"] == 0
    assert scores.note("hd2(min_cell=2)") == "only cells of up to 2 records changed"


def test_a_swap_without_weights_keeps_the_joint_of_the_swapped_columns() -> None:
    data = survey(weighted=False)
    scores = qd.score(data, SWAPS[0].plan(data), ["hd1", "hd3", "hd1(race*sex)"])
    assert (scores["hd1"], scores["hd3"]) == (0, 0)
    assert scores["hd1(race*sex)"] > 0


def test_missing_codes_are_categories_of_a_distance() -> None:
    data = survey()
    plan = SWAPS[1].plan(data)
    after = plan.apply(data)
    w = np.asarray(data["w"].values)
    was, now = (np.bincount(file["race"].values, weights=w, minlength=4) for file in (data, after))
    truth = sqrt(((np.sqrt(was) - np.sqrt(now)) ** 2).sum() / 2)
    assert was[3] > 0
    assert qd.score(data, plan, ["hd1"])["hd1"] == pytest.approx(truth, rel=1e-10)


def test_pairs_that_did_not_change_are_no_part_of_the_mean() -> None:
    data = survey()
    scores = qd.score(data, SWAPS[1].plan(data), ["c_ard", "c_ard(race*sex)", "c_ard(race*educ)", "c_ard(race*age)"])
    singles = [value for address, value in scores.items() if address != "c_ard"]
    assert scores["c_ard"] == pytest.approx(np.mean(singles))
    detail = scores.results["c_ard"][1].detail
    assert detail == {"changed": 3, "unchanged": 3, "undefined": 0}
    matrix = {row["variable"]: row for row in scores.detail("c_ard").to_dicts()}
    assert matrix["age"]["sex"] == 0
    assert matrix["race"]["sex"] == scores["c_ard(race*sex)"]


def test_a_signed_association_that_turns_round_counts_both_ways() -> None:
    data = file_of(A=[0, 0, 0, 1, 1, 1], B=[0, 0, 1, 1, 1, 0])
    plan = qd.Plan.of_pairs(data, ["B"], [[0, 3], [1, 4]])
    scores = qd.score(data, plan, ["v_ard", "c_ard"])
    assert scores["v_ard"] == pytest.approx((1 / 3 + 1) / (1 / 3))  # V goes from 1/3 to -1
    assert scores["c_ard"] == pytest.approx((sqrt(1 / 2) - sqrt(1 / 10)) / sqrt(1 / 10))


def test_an_association_that_was_not_there_has_no_relative_difference() -> None:
    data = file_of(A=[0, 0, 1, 1], B=[0, 1, 0, 1])
    plan = qd.Plan.of_pairs(data, ["B"], [[0, 3]])
    scores = qd.score(data, plan, ["c_ard", "v_ard"])
    assert (scores["c_ard"], scores["v_ard"]) == (None, None)
    assert "no association before" in scores.note("c_ard")


def test_moved_outcomes_and_numbers_join_the_defaults() -> None:
    data = survey()
    scores = qd.score(data, SWAPS[2].plan(data), ["r_ased", "ased_reg", "hd1", "hd1(educ*race)"])
    rows = scores.detail("r_ased")
    assert "income" in set(rows["column_a"]) | set(rows["column_b"])
    assert "income" in set(scores.detail("ased_reg")["term"])
    assert scores["hd1"] == scores["hd1(educ*race)"]


def test_only_pairs_with_a_moved_column_count_and_the_rest_is_reported() -> None:
    data = survey()
    constant = Data([*(data[name] for name in data.columns), column("K", np.zeros(data.n), 1)])
    scores = qd.score(constant, SWAPS[1].plan(constant), ["r_ased"])
    detail = scores.results["r_ased"][1].detail
    rows = scores.detail("r_ased")
    assert all(
        a.startswith("race") or b.startswith("race") for a, b in zip(rows["column_a"], rows["column_b"], strict=True)
    )
    assert detail["constant"] == 3  # three dummies of race with K
    assert detail["pairs"] == len(rows) == 3 * 6 + 3
    assert "3 with a constant column" in scores.note("r_ased")


def test_variables_of_too_many_levels_are_left_out_and_named() -> None:
    data = survey()
    wide = Data([*(data[name] for name in data.columns), column("many", np.arange(data.n) % 20)])
    plan = SWAPS[1].plan(wide)
    scores = qd.score(wide, plan, ["r_ased", "r_ased(max_levels=20)", "r_ased(many*race, max_levels=2)"])
    assert "too many levels: many" in scores.note("r_ased")
    assert scores.note("r_ased(max_levels=20)") == ""
    assert scores["r_ased(many*race, max_levels=2)"] is None
    assert "max_levels" in scores.note("r_ased(many*race, max_levels=2)")


def test_what_is_left_out_does_not_hide_that_nothing_changed() -> None:
    data = survey()
    scores = qd.score(data, qd.Plan([], data=data), ["r_ased(race*sex*score, max_levels=2)"])
    assert list(scores.values()) == [0]
    assert scores.note("r_ased(race*sex*score, max_levels=2)") == NOTHING_CHANGED


def test_models_of_very_many_columns_are_refused_and_left_out_of_the_defaults() -> None:
    data = survey(700)
    wide = Data([*(data[name] for name in data.columns), column("own", np.arange(700))])
    plan = qd.RandomSwap("own", pairs=5, seed=1).plan(wide)
    with pytest.raises(qd.QuadrilleError, match="at most 500"):
        qd.score(wide, plan, ["ased_reg(score ~ C(own))"])
    assert "2 of 2 outcomes left out" in qd.score(wide, plan, ["ased_reg"]).note("ased_reg")


def test_perfect_correlations_are_left_out() -> None:
    data = file_of(A=[0, 1, 0, 1, 1], B=[0, 1, 0, 1, 1])
    scores = qd.score(data, qd.Plan.of_pairs(data, ["B"], [[0, 1]]), ["r_ased"])
    assert scores["r_ased"] is None
    assert "perfectly" in scores.note("r_ased")


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("ased_reg(score ~ age + C(twin) + C(race))", "depend on each other"),
        ("ased_reg(score ~ C(race) + same)", "constant"),
        ("ased_reg(copy ~ age + C(race))", "no residual variance"),
        ("ased_reg(same ~ C(race))", "no residual variance"),
        ("ased_reg(score ~ C(race) + C(own))", "too few"),
        ("ased_reg(score ~ C(race), where=sex=f & sex=m)", "no complete record"),
        ("r_ased(race*score, where=sex=f & sex=m)", "no record"),
        ("hd1(where=sex=f & sex=m)", "no record"),
        ("c_ard(where=sex=f & sex=m)", "no record"),
    ],
)
def test_what_cannot_be_computed_is_undefined_with_the_reason(address: str, reason: str) -> None:
    data = survey(60, missing=0)
    twin = Column(qd.Variable("twin", "nominal", ("u", "v", "w", "x", "y")), data["age"].values)
    age = np.array([20, 30, 45, 60, 80.0])[data["age"].values]
    more = [
        numbers("same", np.full(data.n, 0.1)),
        numbers("copy", 3 * age + 0.1),
        column("own", np.arange(data.n)),
    ]
    data = Data([*(data[name] for name in data.columns), twin, *more])
    plan = qd.RandomSwap("race", pairs=10, seed=1).plan(data)
    scores = qd.score(data, plan, [address])
    assert scores[address] is None
    assert reason in scores.note(address)


def test_regressions_need_an_outcome_that_is_a_number() -> None:
    data = file_of(A=[0, 1, 0, 1, 1], B=[0, 1, 1, 1, 0])
    plan = qd.Plan.of_pairs(data, ["B"], [[0, 1]])
    scores = qd.score(data, plan, ["ased_reg"])
    assert scores["ased_reg"] is None
    assert "role outcome" in scores.note("ased_reg")
    text = Data(
        [data["A"], data["B"], Column(qd.Variable("T", "nominal", ("a", "b"), role="outcome"), data["A"].values)]
    )
    scores = qd.score(text, qd.Plan.of_pairs(text, ["B"], [[0, 1]]), ["ased_reg"])
    assert scores["ased_reg"] is None
    assert "1 of 1 outcomes" in scores.note("ased_reg")


def test_a_plan_that_changes_no_value_says_so() -> None:
    data = survey()
    same = np.flatnonzero(data["race"].values == 0)[:2]
    plan = qd.Plan.of_pairs(data, ["race"], [same])
    measures = ["hd1", "hd3", "c_ard", "v_ard", "r_ased", "ased_reg", "ased_reg(score ~ age)"]
    scores = qd.score(data, plan, measures)
    assert dict(scores) == dict.fromkeys(measures, 0.0)
    assert {scores.note(measure) for measure in measures} == {NOTHING_CHANGED}


def test_a_second_file_with_new_categories_cannot_be_regressed() -> None:
    data = survey()
    levels = qd.Variable("race", "nominal", ("x", "y", "z", "new"), missing=("?",))
    codes = np.where(data["race"].values == 3, 4, data["race"].values).astype(np.uint8)
    codes[0] = 3
    other = Data([Column(levels, codes) if n == "race" else data[n] for n in data.columns])
    scores = qd.score(data, other, ["r_ased", "ased_reg(score ~ C(race))", "hd1(race)"])
    assert (scores["r_ased"], scores["ased_reg(score ~ C(race))"]) == (None, None)
    assert "second file has categories" in scores.note("r_ased")
    assert scores["hd1(race)"] > 0


def test_a_second_file_must_have_numbers_where_the_first_has() -> None:
    data = survey(30)
    words = Column(qd.Variable("score", "nominal", ("a",)), np.zeros(30, np.uint8))
    other = Data([words if n == "score" else data[n] for n in data.columns])
    with pytest.raises(qd.QuadrilleError, match="'score' is numeric in the first file"):
        qd.score(data, other, ["r_ased(race*score)"])


def test_a_model_of_several_outcomes_is_the_mean_over_models() -> None:
    data = survey()
    plan = SWAPS[0].plan(data)
    models = ["score ~ age + C(race)", "math ~ C(race)"]
    both = f"ased_reg({'; '.join(models)})"
    scores = qd.score(data, plan, [both, *(f"ased_reg({model})" for model in models)])
    single = [scores[f"ased_reg({model})"] for model in models]
    assert scores[both] == pytest.approx(np.mean(single), rel=1e-14)
    assert scores.results[both][1].parts == {(model,): value for model, value in zip(models, single, strict=True)}
    assert scores.results[f"ased_reg({models[0]})"][1].detail["coefficients"] == 4


def test_missing_values_are_categories_of_the_table_released_and_no_part_of_a_relative_difference() -> None:
    # Code 2 of A is a missing code: it goes with B0, and only there.
    a, b = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 2]), np.array([0, 0, 1, 1, 1, 0, 0, 0, 0, 0])
    variable = qd.Variable("A", "nominal", ("x", "y"), missing=("?",))
    data = Data([Column(variable, a.astype(np.uint8)), column("B", b)])
    plan = qd.Plan.of_pairs(data, ["A"], np.array([[0, 4], [6, 3]]))
    after = plan.apply(data)["A"].values
    plain, relative = qd.score(data, plan, ["cramers_v_change(A*B)"]), qd.score(data, plan, ["v_ard(A*B)"])

    def v(codes: np.ndarray, kept: np.ndarray) -> float:
        table = np.zeros((3, 2))
        np.add.at(table, (codes[kept], b[kept]), 1)
        return contingency.association(table[table.any(axis=1)].astype(int), method="cramer")

    every = np.ones(10, dtype=bool)
    assert plain["cramers_v_change(A*B)"] == pytest.approx(v(a, every) - v(after, every), rel=1e-12)
    before = v(a, a < 2)
    sign = -1 if (after[0], after[4]) == (1, 0) else 1
    assert relative["v_ard(A*B)"] == pytest.approx(abs(before - sign * v(after, after < 2)) / before, rel=1e-12)
