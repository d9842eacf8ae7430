"""Plausibility rules: no plan of any recipe makes a record break one, and the other laws go on holding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import quadrille as qd
from controlled_strategies import designs
from effort import examples
from geography_strategies import nested_files
from oracles import admissible, largest, meets
from quadrille.errors import InfeasibleError, ParameterError
from quadrille.expressions import Rules
from quadrille.score.evaluator import Evaluator
from quadrille.study.workers import FusedScorer
from quadrille.testing import check_recipe
from rules_oracle import as_test, created, rule_sets, spoiling
from strategies import files, recipes, seeds

MEASURES = ["small_cells", "hellinger", "exposed"]


@given(st.data())
def test_no_random_swap_creates_a_violation_and_every_law_of_the_battery_holds(data: st.DataObject) -> None:
    file = data.draw(files(largest=30, most=4))
    rules = data.draw(rule_sets(file))
    recipe = replace(data.draw(recipes(file)), rules=[rule.text for rule in rules])
    try:
        plan = check_recipe(recipe, file)
    except InfeasibleError as error:
        assert error.exact
        assert _impossible(replace(recipe, rules=()), file) or Rules.of(file, recipe.rules, "").about(recipe.swap)
        return
    assert created(file, plan.apply(file), rules) == 0
    assert Rules.of(file, recipe.rules, "").created(plan) == (0,) * len(rules)
    before = [sum(meets(file, rule.allowed)) for rule in rules]
    listed = {row["rule"]: row["broken_before"] for row in plan.details.facts["rules"]}
    assert [listed[rule.text] for rule in rules] == before


def _impossible(recipe: qd.Recipe, file: qd.Data) -> bool:
    try:
        recipe.plan(file)
    except InfeasibleError:
        return True
    return False


@examples(24)
@given(st.data())
def test_the_most_pairs_under_rules_are_found_and_those_excluded_are_counted(data: st.DataObject) -> None:
    file = data.draw(files(largest=9, most=3, wide=False))
    rules = data.draw(rule_sets(file))
    recipe = replace(data.draw(recipes(file)), rules=[rule.text for rule in rules], order="together")
    possible = admissible(file, recipe, recipe.swap)
    spoils = spoiling(file, [as_test(rule) for rule in rules], recipe.swap)
    most = largest(possible & ~spoils)
    with pytest.raises(InfeasibleError) as caught:
        replace(recipe, rate=None, pairs=most + 1).plan(file)
    assert (caught.value.maximum, caught.value.exact) == (most, True)
    assume(most)
    plan = replace(recipe, rate=None, pairs=most).plan(file)
    assert not spoils[plan.pairs[:, 0], plan.pairs[:, 1]].any()
    above = np.triu(np.ones((file.n, file.n), dtype=bool), 1)
    facts = plan.details.facts
    assert facts["pairs_excluded"] == int((possible & spoils & above).sum())
    assert facts.get("pairs_without_rules", int((possible & above).sum())) == int((possible & above).sum())
    for row in facts["rules"]:
        rule = next(rule for rule in rules if rule.text == row["rule"])
        alone = spoiling(file, [as_test(rule)], recipe.swap)
        assert row["pairs_excluded"] == int((possible & alone & above).sum())


@examples(24)
@given(st.data())
def test_the_fused_scorer_obeys_rules_as_the_plain_path_does(data: st.DataObject) -> None:
    file = data.draw(files(largest=40, weights=(None,), most=4))
    rules = data.draw(rule_sets(file))
    recipe = replace(data.draw(recipes(file)), rules=[rule.text for rule in rules])
    fused, exchange = FusedScorer.build(file, MEASURES), recipe.prepared(file).exchange
    assume(fused is not None and exchange is not None)
    try:
        plan = recipe.plan(file)
    except InfeasibleError:
        assert fused.run(exchange, recipe.stream()) is None
        return
    quick = fused.run(exchange, recipe.stream())
    assert quick is None or quick == pytest.approx(Evaluator(file, MEASURES).values(plan)[0], abs=1e-12)
    assert recipe.plan(file) == plan


@given(st.data())
def test_no_controlled_swap_creates_a_violation_and_every_law_of_the_battery_holds(data: st.DataObject) -> None:
    file, made = data.draw(designs(largest=24))
    rules = data.draw(rule_sets(file))
    recipe = qd.ControlledSwap(**made, rules=[rule.text for rule in rules], seed=data.draw(seeds))
    plan = check_recipe(recipe, file)
    assert created(file, plan.apply(file), rules) == 0
    for rival in plan.details.alternatives.values():
        assert created(file, rival.apply(file), rules) == 0


@examples(24)
@given(st.data())
def test_levels_of_geography_that_are_carried_along_count_as_moving(data: st.DataObject) -> None:
    file = data.draw(nested_files(largest=24))
    rules = data.draw(rule_sets(file))
    level = data.draw(st.sampled_from(file.codebook.geography))
    texts, seed = [rule.text for rule in rules], data.draw(seeds)
    recipe: qd.Recipe = qd.RandomSwap([level], rate=0.3, differ="none", rules=texts, seed=seed)
    if data.draw(st.booleans()):
        recipe = qd.ControlledSwap([level], targets=0.3, rules=texts, on_missing="category", seed=seed)
    try:
        plan = recipe.plan(file)
    except qd.QuadrilleError as error:
        assume(not isinstance(error, InfeasibleError | ParameterError))
        raise
    assert created(file, plan.apply(file), rules) == 0
