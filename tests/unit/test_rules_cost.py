"""What rules cost: the same draws and scores as by hand."""

from __future__ import annotations

from statistics import fmean, stdev

import pytest

import quadrille as qd
from quadrille.errors import ParameterError

RULE = "Age=<25 & MS=Married"
MEASURES = ["hellinger", "conditional_entropy"]


def recipe(seed: int, *rules: str) -> qd.RandomSwap:
    return qd.RandomSwap(["Age"], rate=0.02, rules=rules, seed=seed)


def test_the_table_holds_the_means_of_draws_with_and_without_the_rules(cps8d: qd.Data) -> None:
    rows = {row["measure"]: row for row in qd.rules_cost(cps8d, recipe(5, RULE), MEASURES, draws=3).to_dicts()}
    assert list(rows) == ["pairs", *MEASURES]
    assert (rows["pairs"]["without"], rows["pairs"]["with_rules"], rows["pairs"]["difference"]) == (488, 488, 0)
    for measure in MEASURES:
        free, ruled = (
            [qd.score(cps8d, recipe(seed, *rules).plan(cps8d), [measure])[measure] or 0.0 for seed in (5, 6, 7)]
            for rules in ((), (RULE,))
        )
        row = rows[measure]
        assert row["without"] == pytest.approx(fmean(free)) and row["with_rules"] == pytest.approx(fmean(ruled))
        assert row["difference"] == pytest.approx(fmean(ruled) - fmean(free))
        assert row["standard_error"] == pytest.approx(((stdev(free) ** 2 + stdev(ruled) ** 2) / 3) ** 0.5)
        assert (row["draws"], row["better"]) == (3, "lower" if measure == "hellinger" else "higher")


def test_one_draw_has_no_standard_error_and_secret_seeds_work(cps8d: qd.Data) -> None:
    found = qd.rules_cost(cps8d, qd.RandomSwap(["Age"], rate=0.02, rules=[RULE]), ["hellinger"], draws=1)
    assert found["standard_error"].to_list() == [None, None]


def test_a_recipe_without_rules_and_a_bad_number_of_draws_are_refused(cps8d: qd.Data) -> None:
    with pytest.raises(ParameterError, match="no rules"):
        qd.rules_cost(cps8d, recipe(1), MEASURES)
    for draws in (0, 1.5, True):
        with pytest.raises(ParameterError, match="draws"):
            qd.rules_cost(cps8d, recipe(1, RULE), MEASURES, draws=draws)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="no rules"):
        qd.rules_cost(cps8d, qd.PermutationSwap(["Age"], rate=0.02), MEASURES)


def test_pairs_are_counted_as_the_plan_counts_them(cps8d: qd.Data) -> None:
    recipe = qd.RandomSwap(["Age", "MS"], rate=0.02, order="one-by-one", rules=[RULE], seed=5)
    row = qd.rules_cost(cps8d, recipe, ["hellinger"], draws=2).row(0, named=True)
    assert (row["without"], row["with_rules"]) == (976, 976) == (recipe.plan(cps8d).report(cps8d).pairs,) * 2
