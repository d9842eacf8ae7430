"""The fused scorer of a search draws the same pairs and gives the same scores as the plain path."""

from __future__ import annotations

import pytest
from hypothesis import given

import quadrille as qd
from quadrille.score.evaluator import Evaluator
from quadrille.study.workers import FusedScorer
from strategies import Case, cases

MEASURES = [
    "small_cells",
    "hellinger",
    "exposed",
    "confidence",
    "total_variation",
    "entropy_change",
    "small_cells(n=5)",
    "exposed(n=2)",
]


@given(cases(weights=(None,)))
def test_the_fused_scorer_scores_as_the_plain_path_or_steps_aside(case: Case) -> None:
    fused = FusedScorer.build(case.data, MEASURES)
    exchange = case.recipe.prepared(case.data).exchange
    if fused is None or exchange is None:
        return
    plain, _ = Evaluator(case.data, MEASURES).values(case.plan)
    for _ in range(2):  # twice: scratch memory is left clean
        quick = fused.run(exchange, case.recipe.stream())
        assert quick is None or quick == pytest.approx(plain, abs=1e-12)
        assert case.recipe.plan(case.data) == case.plan


@pytest.mark.parametrize("sampler", ["first-uniform", "pair-uniform"])
@pytest.mark.parametrize("swap", [["Edu"], ["Race", "AnnSal"]])
def test_on_cps8d_the_fused_scorer_is_taken(cps8d: qd.Data, sampler: str, swap: list[str]) -> None:
    fused = FusedScorer.build(cps8d, MEASURES)
    assert fused is not None
    evaluator = Evaluator(cps8d, MEASURES)
    for seed in range(20):
        recipe = qd.RandomSwap(swap, pairs=488, sampler=sampler, seed=seed)
        exchange = recipe.prepared(cps8d).exchange
        assert exchange is not None
        quick = fused.run(exchange, recipe.stream())
        assert quick == pytest.approx(evaluator.values(recipe.plan(cps8d))[0], abs=1e-12)


@pytest.mark.parametrize(
    "measures",
    [["hellinger(Age*Sex)"], ["hellinger(where=Sex=Male)"], ["cramers_v_change"], ["hellinger", "ordinal_shift"]],
)
def test_other_measures_go_the_plain_way(cps8d: qd.Data, measures: list[str]) -> None:
    assert FusedScorer.build(cps8d, measures) is None
