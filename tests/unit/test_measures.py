"""Measures: the published golden table, worked examples, and the corners of their definitions."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

import quadrille as qd
from oracles import close
from quadrille.data import Column, Data
from quadrille.errors import InputError
from strategies import column, file_of, numbers

BEFORE = np.array([[20533, 21229], [2511, 4569]])
AFTER = np.array([[20442, 21320], [2602, 4478]])
PRINTED = {
    "hellinger": ".003874",
    "total_variation": ".003726",
    "entropy_change": ".000993",
    "cramers_v_change": ".010601",
    "contingency_change": ".010470",
}


def repeated(table: np.ndarray) -> Data:
    """One record per count."""
    rows, columns = (np.repeat(codes.ravel(), table.ravel()) for codes in np.indices(table.shape))
    return file_of(Race=rows, MS=columns)


def weighted(table: np.ndarray) -> Data:
    """One record per cell, its count as weight."""
    rows, columns = (codes.ravel() for codes in np.indices(table.shape))
    return file_of(table.ravel(), Race=rows, MS=columns)


def golden_plan(data: Data) -> qd.Plan:
    """Exchange MS between 91 married white records and 91 other non-white ones."""
    race, ms = data["Race"].values, data["MS"].values
    white = np.flatnonzero((race == 0) & (ms == 0))[:91]
    other = np.flatnonzero((race == 1) & (ms == 1))[:91]
    return qd.Plan.of_pairs(data, ["MS"], np.stack((white, other), axis=1))


def golden(scores: qd.Scores) -> dict[str, str]:
    return {name: f"{scores[f'{name}(Race*MS)']:.6f}".lstrip("0") for name in PRINTED}


ADDRESSES = [f"{name}(Race*MS)" for name in PRINTED]


@pytest.mark.parametrize("build", [repeated, weighted])
def test_the_golden_table_gives_every_printed_digit_from_two_files(build: object) -> None:
    scores = qd.score(build(BEFORE), build(AFTER), ADDRESSES)
    assert golden(scores) == PRINTED
    assert f"{(scores['hellinger(Race*MS)'] / 2) ** 0.5:.5f}" == "0.04401"


def test_the_golden_table_gives_every_printed_digit_from_a_plan(cps8d: qd.Data) -> None:
    for data in (repeated(BEFORE), cps8d):
        plan = golden_plan(data)
        assert golden(qd.score(data, plan, ADDRESSES)) == PRINTED
        assert golden(qd.score(data, plan.apply(data), ADDRESSES)) == PRINTED


def test_hand_worked_values() -> None:
    data = file_of(A=[0, 0, 1, 1], B=[0, 0, 1, 1])
    plan = qd.Plan.of_pairs(data, ["A"], [[0, 2]])  # perfect association becomes independence
    addresses = ["hellinger", "total_variation", "entropy_change", "cramers_v_change", "contingency_change"]
    scores = qd.score(data, plan, [*addresses, "conditional_entropy"])
    assert close(scores["hellinger"], (1 - 0.5**0.5) ** 0.5)
    assert close(scores["total_variation"], 0.5)
    assert close(scores["entropy_change"], log(2))
    assert close(scores["cramers_v_change"], 1.0)
    assert close(scores["contingency_change"], 0.5**0.5)
    assert close(scores["conditional_entropy"], log(2))


def ordinal(codes: list[int], size: int, *, missing: tuple[str, ...] = ()) -> Data:
    variable = qd.Variable("A", "ordinal", tuple(f"a{i}" for i in range(size)), missing=missing)
    return Data([Column(variable, np.array(codes, dtype=np.uint8)), column("B", range(len(codes)))])


def test_ordinal_shift_is_the_mean_distance_moved_as_a_share_of_the_scale() -> None:
    data = ordinal([0, 4, 1, 2], 5)
    assert qd.score(data, qd.Plan.of_pairs(data, ["A"], [[0, 1]]), ["ordinal_shift"])["ordinal_shift"] == 0.5
    assert qd.score(data, qd.Plan.of_pairs(data, ["A"], [[2, 3]]), ["ordinal_shift"])["ordinal_shift"] == 0.125


def test_ordinal_shift_refuses_nominal_variables_and_is_undefined_when_none_moved() -> None:
    data = ordinal([0, 1, 0, 1], 2)
    plan = qd.Plan.of_pairs(data, ["B"], [[0, 1]])
    with pytest.raises(InputError, match="ordinal"):
        qd.score(data, plan, ["ordinal_shift(B)"])
    scores = qd.score(data, plan, ["ordinal_shift"])
    assert scores["ordinal_shift"] is None
    assert "ordinal" in scores.note("ordinal_shift")


def test_record_measures_of_files_that_are_not_aligned_are_undefined_with_a_reason() -> None:
    data = file_of(A=[0, 1, 0, 1], B=[0, 0, 1, 1])
    other = file_of(A=[1, 0, 1, 0], B=[1, 1, 0, 0])
    scores = qd.score(data, other, ["conditional_entropy"])
    assert scores["conditional_entropy"] is None
    assert "aligned" in scores.note("conditional_entropy")


def test_categories_of_a_second_file_are_matched_by_label() -> None:
    data = file_of(A=[0, 0, 1, 2], B=[0, 1, 0, 1])
    shuffled = Column(qd.Variable("A", categories=("A2", "A9", "A0", "A1")), np.array([2, 2, 3, 0], np.uint8))
    scores = qd.score(data, Data([shuffled, data["B"]]), ["total_variation(A)", "total_variation(A*B)"])
    assert scores["total_variation(A)"] == 0
    assert scores["total_variation(A*B)"] == 0
    grown = Column(qd.Variable("A", categories=("A9", "A0", "A1")), np.array([1, 1, 2, 0], np.uint8))
    assert qd.score(data, Data([grown, data["B"]]), ["total_variation(A)"])["total_variation(A)"] == 0.25


def labelled(categories: tuple, labels: tuple[str, ...], codes: list[int]) -> Data:
    return Data(
        [Column(qd.Variable("A", categories=categories, labels=labels), np.array(codes, np.uint8)), column("B", [0, 1])]
    )


def test_a_condition_by_label_works_on_a_second_file_with_other_codes() -> None:
    data, other = labelled((1, 2), ("male", "female"), [0, 1]), labelled(("male", "female"), (), [0, 1])
    assert qd.score(data, other, ["total_variation(B, where=A=male)"])["total_variation(B, where=A=male)"] == 0


def test_a_second_file_may_use_the_same_code_for_another_label() -> None:
    data, other = labelled((1, 2), ("a", "b"), [0, 1]), labelled((1,), ("c",), [0, 0])
    assert qd.score(data, other, ["total_variation(A)"])["total_variation(A)"] == 1


def test_a_weak_association_is_as_precise_in_a_sparse_table_as_in_a_dense_one() -> None:
    found = []
    for size in (2, 2000):
        columns = [column("A", [0, 0, 1, 1, 0], size), column("B", [0, 1, 0, 0, 0], size)]
        data = Data([*columns, numbers("w", [1e9, 1, 1, 3, 10], role="weight")])
        plan = qd.Plan.of_pairs(data, ["A"], [[3, 4]])
        found.append(qd.score(data, plan, ["cramers_v_change(A*B)"]).results["cramers_v_change(A*B)"][1])
    dense, sparse = found
    assert close(dense.value, sparse.value)


def test_ordinal_shift_does_not_claim_that_nothing_changed_when_values_became_missing() -> None:
    data = ordinal([0, 1, 2, 2], 2, missing=("?",))
    scores = qd.score(data, qd.Plan.of_pairs(data, ["A"], [[0, 2]]), ["ordinal_shift"])
    assert scores.note("ordinal_shift") != "nothing changed"


def test_a_mean_over_parts_says_that_nothing_changed_even_if_some_are_undefined() -> None:
    data = Data([column("A", [0, 1], 2, kind="ordinal"), column("B", [0, 0], 1, kind="ordinal")])
    scores = qd.score(data, data, ["ordinal_shift(A*B)"])
    assert scores["ordinal_shift(A*B)"] == 0
    assert scores.note("ordinal_shift(A*B)") == "nothing changed"


@pytest.mark.parametrize("weight", [1e-300, 1e-100, 1e100, 1.7e308])
def test_weights_of_any_size_are_taken_or_refused_with_a_message(weight: float) -> None:
    try:
        assert min(file_of([weight, weight], A=[0, 1]).ticks.values) > 0
    except InputError as error:
        assert "'w'" in str(error)


def test_the_worst_cell_is_the_largest_relative_change_and_tiny_cells_count_as_the_floor() -> None:
    before = file_of(A=[0] * 100 + [1] * 20 + [2] * 2)
    after = file_of(A=[0] * 90 + [1] * 25 + [2] * 7)
    scores = qd.score(before, after, ["worst_cell(A)", "worst_cell(A, floor=1)", "worst_cell(A, floor=100)"])
    assert close(scores["worst_cell(A)"], 5 / 10)  # of a cell of 2 records, which counts as 10
    assert close(scores["worst_cell(A, floor=1)"], 5 / 2)
    assert close(scores["worst_cell(A, floor=100)"], 10 / 100)
    detail = scores.results["worst_cell(A)"][1].detail
    assert detail == {"cells_changed": 3, "before": 2, "after": 7, "records_before": 2, "records_after": 7}


def test_a_cell_that_was_empty_counts_as_the_floor_and_never_as_infinity() -> None:
    before, after = file_of(A=[0] * 50, B=[0] * 25 + [1] * 25), file_of(A=[0] * 50, B=[0] * 26 + [1] * 24)
    emptied = qd.score(after, before, ["worst_cell(A*B)"])["worst_cell(A*B)"]
    assert close(qd.score(before, after, ["worst_cell(A*B)"])["worst_cell(A*B)"], 1 / 25)
    assert close(emptied, 1 / 24)
    filled = qd.score(file_of(A=[0, 0, 0, 1]), file_of(A=[0, 0, 1, 2]), ["worst_cell(A)"])["worst_cell(A)"]
    assert close(filled, 1 / 10)
