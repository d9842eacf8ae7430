"""Plans: what they list, what they refuse, and the account they give."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given

import oracles
import quadrille as qd
from quadrille.errors import InputError, MismatchError, QuadrilleError
from strategies import Case, cases, coded, file_of, rows_of


@pytest.fixture
def data() -> qd.Data:
    return file_of(A=[0, 1, 2, 0, 1, 2], B=[0, 0, 1, 1, 2, 2], C=[0, 1, 2, 3, 4, 5])


def test_a_move_lists_columns_rows_sources_and_pairs(data: qd.Data) -> None:
    plan = qd.Plan.of_pairs(data, ["A", "B"], [[5, 0], [1, 3]])
    (move,) = plan.moves
    assert move.columns == ("A", "B")
    assert move.rows.tolist() == [0, 1, 3, 5]
    assert move.source.tolist() == [5, 3, 1, 0]
    assert move.pairs.tolist() == [[5, 0], [1, 3]]
    assert plan.pairs.tolist() == [[5, 0], [1, 3]]
    assert plan.rows.tolist() == [0, 1, 3, 5]
    assert plan.asked == 2


def test_pairs_are_none_when_a_record_is_in_two_pairs(data: qd.Data) -> None:
    plan = qd.RandomSwap(["A", "B"], pairs=2, order="one-by-one", seed=1).plan(data)
    apart = qd.RandomSwap(["A", "B"], pairs=1, order="one-by-one", seed=4).plan(data)
    for drawn in (plan, apart):
        rows = np.concatenate([move.pairs.ravel() for move in drawn.moves])
        twice = len(np.unique(rows)) < len(rows)
        assert (drawn.pairs is None) == twice
    assert plan.pairs is None  # 8 places for 6 records
    assert plan.rows.tolist() == sorted({*plan.moves[0].rows.tolist(), *plan.moves[1].rows.tolist()})


def test_a_plan_of_pairs_refuses_unknown_columns_foreign_rows_and_repeated_records(data: qd.Data) -> None:
    with pytest.raises(InputError, match="Did you mean"):
        qd.Plan.of_pairs(data, ["a"], [[0, 1]])
    for outside in ([[0, 6]], [[-1, 2]]):
        with pytest.raises(QuadrilleError, match="outside the file"):
            qd.Plan.of_pairs(data, ["A"], outside)
    for repeated in ([[0, 1], [1, 2]], [[3, 3]]):
        with pytest.raises(QuadrilleError, match="two pairs"):
            qd.Plan.of_pairs(data, ["A"], repeated)


def test_apply_score_and_report_refuse_other_data(data: qd.Data) -> None:
    plan = qd.Plan.of_pairs(data, ["A"], [[0, 1]])
    for other in (plan.apply(data), rows_of(data, [1, 0, 2, 3, 4, 5]), rows_of(data, range(5))):
        with pytest.raises(MismatchError):
            plan.apply(other)
        with pytest.raises(MismatchError):
            plan.report(other)
        with pytest.raises(MismatchError):
            qd.score(other, plan, ["hellinger"])


def test_the_same_data_built_again_are_accepted(data: qd.Data) -> None:
    plan = qd.Plan.of_pairs(data, ["A"], [[0, 1]])
    assert plan.apply(rows_of(data, range(6))) == plan.apply(data)


def test_a_plan_without_moves_changes_nothing(data: qd.Data) -> None:
    plan = qd.Plan([], data=data)
    assert plan.rows.tolist() == []
    assert plan.pairs.tolist() == []
    assert plan.apply(data) == data
    report = plan.report(data)
    assert (report.pairs, report.records, report.changed, report.false_swaps, report.compensating) == (0, 0, 0, 0, 0)


def test_applying_leaves_the_original_untouched_and_the_result_is_immutable(data: qd.Data) -> None:
    before = oracles.records(data, data.columns)
    after = qd.Plan.of_pairs(data, ["A"], [[0, 1]]).apply(data)
    assert oracles.records(data, data.columns) == before
    with pytest.raises(ValueError, match="read-only"):
        after["A"].values[0] = 1


def brute_account(case: Case) -> dict[str, int]:
    """Count what the account counts, record by record."""
    after = case.plan.apply(case.data)
    moved = case.plan.columns
    was, now = oracles.records(case.data, moved), oracles.records(after, moved)
    false = 0
    for move in case.plan.moves:
        values = oracles.records(case.data, move.columns)
        false += sum(values[a] == values[b] for a, b in move.pairs.tolist())
    keys = coded(case.data)
    old, new = oracles.records(case.data, keys), oracles.records(after, keys)
    count_old, count_new = Counter(old), Counter(new)
    steady = {cell for cell in count_old | count_new if count_old[cell] == count_new[cell]}
    return {
        "n": case.data.n,
        "asked": case.recipe.count(case.data.n),
        "pairs": sum(len(move.pairs) for move in case.plan.moves) if case.plan.pairs is None else len(case.plan.pairs),
        "records": len({row for move in case.plan.moves for row in move.pairs.ravel().tolist()}),
        "changed": sum(a != b for a, b in zip(was, now, strict=True)),
        "false_swaps": false,
        "compensating": sum(a != b and a in steady and b in steady for a, b in zip(old, new, strict=True)),
    }


@given(cases())
def test_the_account_counts_what_a_record_by_record_comparison_counts(case: Case) -> None:
    report = case.plan.report(case.data).as_dict()
    assert {name: report[name] for name in brute_account(case)} == brute_account(case)
    after = case.plan.apply(case.data)
    for moved, name in zip(report["variables"], case.plan.columns, strict=True):
        pairs = next(move.pairs for move in case.plan.moves if name in move.columns)
        was, now = oracles.values(case.data, name), oracles.values(after, name)
        changed = sum(a != b for a, b in zip(was, now, strict=True))
        assert (moved["variable"], moved["pairs"], moved["records"]) == (name, len(pairs), 2 * len(pairs))
        assert moved["changed"] == changed
        assert moved["rate_paired"] == 2 * len(pairs) / case.data.n
        assert moved["rate_changed"] == changed / case.data.n


def test_false_swaps_are_counted_when_partners_need_not_differ() -> None:
    data = file_of(A=[0] * 9 + [1], B=range(10))
    reports = [qd.RandomSwap("A", pairs=5, differ="none", seed=seed).plan(data).report(data) for seed in range(5)]
    assert {(r.pairs, r.false_swaps, r.changed, r.records) for r in reports} == {(5, 4, 2, 10)}


def test_compensating_swaps_leave_the_cells_they_touch_as_they_were() -> None:
    data = file_of(A=[0, 1, 1, 0], B=[0, 0, 1, 1])
    plan = qd.Plan.of_pairs(data, ["A"], [[0, 1], [2, 3]])
    assert plan.report(data).compensating == 4
    assert qd.Plan.of_pairs(data, ["A"], [[0, 2]]).report(data).compensating == 0


def test_the_account_of_a_plan_that_is_no_exchange_of_pairs_names_no_number_of_pairs(data: qd.Data) -> None:
    one = qd.Plan.of_pairs(data, ["A"], [[0, 1]])
    two = qd.Plan.of_pairs(one.apply(data), ["A"], [[1, 2]])
    both = one.then(two)
    assert both.pairs is None
    (moved,) = both.report(data).variables
    assert (moved.pairs, moved.records) == (None, 3)


def test_the_account_as_a_whole_names_no_number_of_pairs_either(data: qd.Data) -> None:
    one = qd.Plan.of_pairs(data, ["A"], [[0, 1]])
    both = one.then(qd.Plan.of_pairs(one.apply(data), ["A"], [[1, 2]]))
    assert both.report(data).pairs is None
