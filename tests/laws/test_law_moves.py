"""Laws 1 and 3: what a move keeps, and what holds in every pair."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
from hypothesis import given

from oracles import admissible, counts, records
from strategies import Case, cases


@given(cases())
def test_every_margin_the_joint_moved_together_and_the_joint_not_moved_stay_exactly(case: Case) -> None:
    after = case.plan.apply(case.data)
    for name in case.data.columns:
        assert counts(case.data, [name]) == counts(after, [name])
    for move in case.plan.moves:
        assert counts(case.data, move.columns) == counts(after, move.columns)
    still = [name for name in case.data.columns if name not in case.plan.columns]
    assert records(case.data, still) == records(after, still)


@given(cases())
def test_each_row_receives_exactly_what_its_source_held(case: Case) -> None:
    after = case.plan.apply(case.data)
    for move in case.plan.moves:
        before, now = records(case.data, move.columns), records(after, move.columns)
        expected = list(before)
        for row, source in zip(move.rows, move.source, strict=True):
            expected[row] = before[source]
        assert now == expected


@given(cases())
def test_every_pair_is_admissible_and_no_record_is_in_two_pairs_of_a_move(case: Case) -> None:
    for move in case.plan.moves:
        assert move.pairs is not None
        assert len(set(move.pairs.ravel().tolist())) == move.pairs.size
        allowed = admissible(case.data, case.recipe, move.columns)
        assert allowed[move.pairs[:, 0], move.pairs[:, 1]].all()


@given(cases())
def test_a_plan_has_the_number_of_pairs_asked_for_and_one_move_per_group_of_columns(case: Case) -> None:
    together = case.recipe.order == "together"
    groups = [case.recipe.swap] if together else [(name,) for name in case.recipe.swap]
    assert [move.columns for move in case.plan.moves] == [tuple(group) for group in groups]
    rounded = floor(Fraction(str(case.recipe.rate or 0)) * case.data.n / 2 + Fraction(1, 2))
    asked = case.recipe.pairs or min(rounded, case.data.n // 2)
    assert case.plan.asked == asked
    assert [len(move.pairs) for move in case.plan.moves] == [asked] * len(groups)


@given(cases())
def test_rows_are_sorted_distinct_and_never_receive_their_own_values(case: Case) -> None:
    touched = set()
    for move in case.plan.moves:
        assert (np.diff(move.rows) > 0).all()
        assert (move.rows != move.source).all()
        assert np.array_equal(np.sort(move.source), move.rows)
        touched |= set(move.rows.tolist())
    assert case.plan.rows.tolist() == sorted(touched)
    assert case.plan.rows.dtype == np.int64


@given(cases())
def test_pairs_are_listed_unless_a_record_is_in_two_of_them(case: Case) -> None:
    listed = np.concatenate([move.pairs for move in case.plan.moves])
    different = np.unique(listed, axis=0)  # two moves may happen to have the same pair
    if len(np.unique(listed)) == listed.size:
        assert np.array_equal(case.plan.pairs, listed)
    elif len(np.unique(listed)) == different.size:
        assert np.array_equal(case.plan.pairs, different)
    else:
        assert case.plan.pairs is None
