"""Several recipes, several draws, one table: the same draws and scores as by hand."""

from __future__ import annotations

from statistics import fmean, stdev

import polars as pl
import pytest

import quadrille as qd
from quadrille.errors import ParameterError
from quadrille.study.run import RecipeScores

RULE = "Age=<25 & MS=Married"
MEASURES = ["hellinger", "conditional_entropy"]


def recipe(seed: int, *rules: str) -> qd.RandomSwap:
    return qd.RandomSwap(["Age"], rate=0.02, rules=rules, seed=seed)


def test_the_table_holds_means_and_their_errors_and_compares_with_the_first_recipe(cps8d: qd.Data) -> None:
    both = {"free": recipe(5), "ruled": recipe(5, RULE)}
    table = qd.score_recipes(cps8d, both, ["pairs", *MEASURES], draws=3).frame()
    assert table["recipe"].to_list() == ["free"] * 3 + ["ruled"] * 3
    rows = {(row["recipe"], row["measure"]): row for row in table.iter_rows(named=True)}
    pairs = [(rows[name, "pairs"]["mean"], rows[name, "pairs"]["difference"]) for name in both]
    assert pairs == [(488, None), (488, 0)]
    for measure in MEASURES:
        free, ruled = (
            [qd.score(cps8d, recipe(seed, *rules).plan(cps8d), [measure])[measure] or 0.0 for seed in (5, 6, 7)]
            for rules in ((), (RULE,))
        )
        for name, values in (("free", free), ("ruled", ruled)):
            row = rows[name, measure]
            assert (row["mean"], row["sd"]) == (pytest.approx(fmean(values)), pytest.approx(stdev(values)))
            assert row["standard_error"] == pytest.approx(stdev(values) / 3**0.5)
            assert (row["draws"], row["better"]) == (3, "lower" if measure == "hellinger" else "higher")
            assert row["rate"] == pytest.approx(recipe(5).plan(cps8d).rows.size / cps8d.n)
        assert rows["free", measure]["difference"] is None
        assert rows["ruled", measure]["difference"] == pytest.approx(fmean(ruled) - fmean(free))
        expected = ((stdev(free) ** 2 + stdev(ruled) ** 2) / 3) ** 0.5
        assert rows["ruled", measure]["difference_error"] == pytest.approx(expected)


def test_recipes_that_differ_by_seed_only_are_draws_of_one(cps8d: qd.Data) -> None:
    recipes = qd.grid(qd.RandomSwap, swap=[["Edu"]], rate=[0.01, 0.05], seed=range(3))
    seen: list[tuple[int, int]] = []
    found = qd.score_recipes(cps8d, recipes, ["hellinger"], progress=lambda *done: seen.append(done))
    assert found.runs["recipe"].to_list() == [1, 1, 1, 2, 2, 2] and found.runs["run"].to_list() == list(range(1, 7))
    assert seen == [(done, 6) for done in range(1, 7)]
    for each, value, rate in zip(recipes, found.runs["value"], found.runs["rate"], strict=True):
        plan = each.plan(cps8d)
        assert (value, rate) == (qd.score(cps8d, plan, ["hellinger"])["hellinger"], len(plan.rows) / cps8d.n)
    table = found.frame()
    assert table["recipe"].to_list() == [1, 2] and table["draws"].to_list() == [3, 3]
    again = qd.score_recipes(
        cps8d, [each for each in recipes if each.parameters()["seed"] == 0], ["hellinger"], draws=3
    )
    assert again.frame().equals(table)


def test_one_draw_has_no_standard_error_and_secret_seeds_differ(cps8d: qd.Data) -> None:
    secret = qd.RandomSwap(["Age"], rate=0.02, rules=[RULE])
    (row,) = qd.score_recipes(cps8d, secret, ["hellinger"], draws=1).frame().to_dicts()
    assert row["sd"] is row["standard_error"] is row["difference_error"] is None
    assert qd.score_recipes(cps8d, secret, ["hellinger"], draws=3).runs["value"].n_unique() == 3


def test_a_draw_without_a_value_counts_nowhere() -> None:
    common = {"rate": [0.5] * 4, "measure": ["m"] * 4, "better": ["lower"] * 4}
    first, second = (
        RecipeScores(pl.DataFrame({"recipe": [1, 1, 2, 2], "value": [3.0, None, None, None], **common}))
        .frame()
        .iter_rows(named=True)
    )
    assert (first["draws"], first["mean"], first["sd"]) == (1, 3.0, None)
    assert (second["draws"], second["mean"], second["difference"]) == (0, None, None)


def test_nothing_to_draw_and_a_bad_number_of_draws_are_refused(cps8d: qd.Data) -> None:
    with pytest.raises(ParameterError, match="one recipe or more"):
        qd.score_recipes(cps8d, [], MEASURES)
    for draws in (0, 1.5, True):
        with pytest.raises(ParameterError, match="draws"):
            qd.score_recipes(cps8d, recipe(1, RULE), MEASURES, draws=draws)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="not both"):
        qd.score_recipes(cps8d, [recipe(1), recipe(2)], MEASURES, draws=2)


def test_pairs_are_counted_as_the_plan_counts_them(cps8d: qd.Data) -> None:
    one = qd.RandomSwap(["Age", "MS"], rate=0.02, order="one-by-one", rules=[RULE], seed=5)
    (row,) = qd.score_recipes(cps8d, one, ["pairs"], draws=2).frame().to_dicts()
    assert row["mean"] == 976 == one.plan(cps8d).report(cps8d).pairs
