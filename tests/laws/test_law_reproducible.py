"""Law 5: same recipe, same data, same plan: whatever was drawn before, in any thread, any process, from JSON."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import quadrille as qd
from quadrille.score.evaluator import Evaluator
from strategies import Case, cases, feasible, recipes

RECIPES = [
    qd.RandomSwap("Edu", pairs=700, seed=11),
    qd.RandomSwap(["Age", "MS"], rate=0.02, same=["Sex"], seed="ab" * 32),
    qd.RandomSwap(["Race", "AnnSal"], pairs=6900, sampler="pair-uniform", seed=5),  # dead ends and repair
    qd.RandomSwap(["Sex", "AvgHrs"], rate=0.01, order="one-by-one", different=["Race"], differ="any", seed=0),
]


def digest(plan: qd.Plan) -> str:
    parts = [move.pairs.astype("<i8").tobytes() for move in plan.moves]
    return hashlib.sha256(b"".join(parts)).hexdigest()


@given(cases(), st.data())
def test_other_draws_in_between_change_nothing(case: Case, draw: st.DataObject) -> None:
    other = draw.draw(recipes(case.data))
    try:
        other.plan(case.data)
    except qd.InfeasibleError as error:
        assert error.maximum < error.asked
    replace(case.recipe, seed=1).plan(case.data)
    again = case.recipe.plan(case.data)
    assert again == case.plan
    assert digest(again) == digest(case.plan)


@given(cases())
def test_a_draw_that_fails_leaves_the_preparation_as_it_was(case: Case) -> None:
    too_many = replace(case.recipe, rate=None, pairs=case.data.n)
    with pytest.raises(qd.InfeasibleError):
        too_many.plan(case.data)
    assert digest(case.recipe.plan(case.data)) == digest(case.plan)


@given(cases())
def test_a_fresh_preparation_and_the_json_of_the_recipe_give_the_same_plan(case: Case) -> None:
    again = qd.Recipe.from_json(case.recipe.to_json())
    assert again == case.recipe
    assert again.to_json() == case.recipe.to_json()
    fresh = qd.Data([case.data[name] for name in case.data.columns], weight=case.data.weight)
    assert digest(again.plan(fresh)) == digest(case.plan)
    assert digest(case.recipe.prepare(fresh).draw(case.recipe.stream())) == digest(case.plan)


@given(cases(), st.integers(0, 10**6))
def test_another_seed_can_draw_whatever_one_seed_can(case: Case, seed: int) -> None:
    other = replace(case.recipe, seed=seed)
    assert feasible(other, case.data) is other
    assert [len(move.pairs) for move in other.plan(case.data).moves] == [len(m.pairs) for m in case.plan.moves]


def test_threads_draw_the_same_plans_as_one_after_the_other(cps8d: qd.Data) -> None:
    jobs = [replace(recipe, seed=seed) for recipe in RECIPES[:2] + RECIPES[3:] for seed in range(12)]
    expected = [digest(recipe.plan(cps8d)) for recipe in jobs]
    fresh = qd.datasets.cps8d()
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda recipe: digest(recipe.plan(fresh)), reversed(jobs))) == expected[::-1]


def test_a_fresh_process_draws_the_same_plans(cps8d: qd.Data) -> None:
    script = (
        "import hashlib, sys, quadrille as qd\n"
        "data = qd.datasets.cps8d()\n"
        "for text in sys.argv[1:]:\n"
        "    moves = qd.Recipe.from_json(text).plan(data).moves\n"
        "    print(hashlib.sha256(b''.join(m.pairs.astype('<i8').tobytes() for m in moves)).hexdigest())\n"
    )
    texts = [recipe.to_json() for recipe in reversed(RECIPES)]
    done = subprocess.run([sys.executable, "-c", script, *texts], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [digest(recipe.plan(cps8d)) for recipe in reversed(RECIPES)]


def test_scores_in_threads_equal_scores_one_after_the_other(cps8d: qd.Data) -> None:
    measures = ["hellinger", "total_variation(2-way)", "cramers_v_change(Age*MS)", "conditional_entropy"]
    plans = [qd.RandomSwap("Age", pairs=300, seed=seed).plan(cps8d) for seed in range(16)]
    expected = [dict(qd.score(cps8d, plan, measures)) for plan in plans]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda plan: dict(qd.score(cps8d, plan, measures)), plans)) == expected


def test_one_evaluator_scores_in_threads_as_one_after_the_other(cps8d: qd.Data) -> None:
    evaluator = Evaluator(cps8d, ["hellinger", "total_variation(2-way)"])
    plans = [qd.RandomSwap("Age", pairs=2000, seed=seed).plan(cps8d) for seed in range(100)]
    expected = [dict(evaluator.score(plan)) for plan in plans]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda plan: dict(evaluator.score(plan)), plans)) == expected
