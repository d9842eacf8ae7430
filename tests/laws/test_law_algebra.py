"""Law 2: plans are permutations, so inverse, composition and equality are plain algebra."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

import quadrille as qd
from oracles import records
from quadrille.errors import MismatchError
from strategies import Case, cases, feasible, file_of, recipes


def second(draw: st.DataObject, case: Case) -> tuple[qd.Data, qd.Plan]:
    """The swapped file, and a plan drawn on it."""
    after = case.plan.apply(case.data)
    return after, feasible(draw.draw(recipes(after)), after).plan(after)


@given(cases())
def test_the_inverse_restores_the_file(case: Case) -> None:
    after = case.plan.apply(case.data)
    back = case.plan.inverse().apply(after)
    assert back == case.data
    assert back.fingerprint == case.data.fingerprint
    assert case.plan.inverse().inverse() == case.plan


@given(cases(), st.data())
def test_then_does_the_first_plan_and_then_the_second(case: Case, draw: st.DataObject) -> None:
    after, plan = second(draw, case)
    both = case.plan.then(plan)
    assert both.apply(case.data) == plan.apply(after)
    assert both.before == case.plan.before
    assert both.after == plan.after
    assert len(set(both.columns)) == len(both.columns)


@given(cases(), st.data())
def test_the_inverse_of_two_plans_is_the_inverses_in_turn(case: Case, draw: st.DataObject) -> None:
    _, plan = second(draw, case)
    assert case.plan.then(plan).inverse() == plan.inverse().then(case.plan.inverse())


@given(cases(), st.data())
def test_composition_is_associative(case: Case, draw: st.DataObject) -> None:
    after, q = second(draw, case)
    last = q.apply(after)
    r = feasible(draw.draw(recipes(last)), last).plan(last)
    assert case.plan.then(q).then(r) == case.plan.then(q.then(r))


@given(cases())
def test_a_plan_followed_by_its_inverse_moves_nothing(case: Case) -> None:
    nothing = case.plan.then(case.plan.inverse())
    assert nothing.moves == ()
    assert nothing.apply(case.data) == case.data
    assert nothing == qd.Plan([], data=case.data)


@given(cases())
def test_the_fingerprint_after_is_that_of_the_swapped_file_built_afresh(case: Case) -> None:
    after = case.plan.apply(case.data)
    fresh = qd.Data([after[name] for name in after.columns], weight=after.weight)
    assert case.plan.after == after.fingerprint == fresh.fingerprint
    changed = records(after, after.columns) != records(case.data, case.data.columns)
    assert (after.fingerprint != case.data.fingerprint) == changed


@given(cases())
def test_plans_survive_pickling_without_carrying_the_file(case: Case) -> None:
    again = pickle.loads(pickle.dumps(case.plan))
    assert again == case.plan
    assert (again.before, again.after, again.asked) == (case.plan.before, case.plan.after, case.plan.asked)
    assert again.apply(case.data) == case.plan.apply(case.data)
    assert again.report(case.data) == case.plan.report(case.data)


@given(cases())
def test_files_survive_pickling(case: Case) -> None:
    again = pickle.loads(pickle.dumps(case.data))
    assert again == case.data
    assert again.fingerprint == case.data.fingerprint
    assert case.recipe.plan(again) == case.plan


@given(cases(), st.data())
def test_a_plan_is_equal_only_to_the_same_permutation_on_the_same_file(case: Case, draw: st.DataObject) -> None:
    shuffled = draw.draw(st.permutations(range(len(case.plan.moves))))
    assert qd.Plan([case.plan.moves[i] for i in shuffled], data=case.data) == case.plan
    assert case.plan != qd.Plan(case.plan.moves, before="another file")
    assert case.plan != qd.Plan(case.plan.moves[1:], data=case.data)


@pytest.mark.parametrize("other", ["the same file", "a second plan"])
def test_then_refuses_a_plan_drawn_on_anything_but_the_result(other: str) -> None:
    data = file_of(A=[0, 1, 0, 1], B=[0, 0, 1, 1])
    plan = qd.RandomSwap("A", pairs=1, seed=1).plan(data)
    after = plan.apply(data)
    wrong = plan if other == "the same file" else qd.RandomSwap("B", pairs=1, seed=2).plan(after).inverse()
    with pytest.raises(MismatchError):
        plan.then(wrong)
