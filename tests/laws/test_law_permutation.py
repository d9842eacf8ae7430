"""Permutation swapping: exactly k records of each class change places, none stays, and the laws of all plans hold."""

from __future__ import annotations

import pickle
from collections import defaultdict
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

import quadrille as qd
from effort import examples
from oracles import counts, records, table
from quadrille.data import Data
from quadrille.errors import ParameterError
from strategies import column, feasible, files, numbers, recipes, seeds

few = examples(25)
RATES = (0.0, 0.1, 0.25, 0.4, 0.5, 0.8, 1.0)


@dataclass(frozen=True)
class Permuted:
    """A file, a permutation swap that can be drawn on it, and its plan."""

    data: Data
    recipe: qd.PermutationSwap
    plan: qd.Plan

    @property
    def classes(self) -> list[list[int]]:
        """The rows of each class."""
        found = defaultdict(list)
        for row, values in enumerate(records(self.data, self.recipe.within)):
            found[values].append(row)
        return list(found.values())


@st.composite
def permuted(draw: st.DrawFn, *, weight: str | None = None, **options: object) -> Permuted:
    """A file with two groups (G) and a rate per class (r), and a swap of one to three columns on it."""
    data = draw(files(**{"least": 2, "most": 4, **options}))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    free = [name for name in data.columns if name != data.weight]
    swap = draw(st.lists(st.sampled_from(free), min_size=1, max_size=3, unique=True))
    rest = [name for name in free if name not in swap]
    within = draw(st.lists(st.sampled_from(rest), max_size=2, unique=True)) if rest else []
    numbered = {values: i for i, values in enumerate(dict.fromkeys(records(data, within)))}
    classes = [numbered[values] for values in records(data, within)]
    group = column("G", random.permutation(np.arange(data.n) % 2), 2)
    rate = numbers("r", random.choice(RATES, data.n)[classes])
    data = Data([*(data[name] for name in data.columns), group, rate])
    kind = draw(st.sampled_from(["cycles", "pairs", "across"]))
    recipe = qd.PermutationSwap(
        swap,
        rate=draw(st.sampled_from(["r", *RATES[1:]])),
        kind=kind,
        within=within,
        groups="G" if kind == "across" else None,
        weight=weight or (draw(st.sampled_from(["stays", "moves"])) if data.weight else "stays"),
        seed=draw(seeds),
    )
    if not within and draw(st.booleans()):
        k = draw(st.integers(1, max(1, data.n // 2)))
        recipe = replace(recipe, rate=None, records=k + 1 if kind == "cycles" else 2 * k)
    try:
        return Permuted(data, recipe, recipe.plan(data))
    except ParameterError as error:
        assert expected_k(data, recipe, data.n) <= 1 or within
        assert "gives" in str(error)
    except qd.InfeasibleError as error:
        assert error.maximum < error.asked
        assert kind == "across"
    assume(False)
    raise AssertionError


def expected_k(data: Data, recipe: qd.PermutationSwap, n: int, row: int = 0) -> int:
    """How many of n records a rate moves, by the definition; `row` is a record of the class."""
    if recipe.records is not None:
        return recipe.records
    rate = float(data["r"].values[row]) if recipe.rate == "r" else recipe.rate
    share, half = Fraction(str(rate)), Fraction(1, 2)
    if recipe.kind == "cycles":
        return floor(share * n + half)
    return min(2 * floor(share * n / 2 + half), n - n % 2)


@few
@given(permuted())
def test_exactly_k_records_of_each_class_change_places_and_none_stays(case: Permuted) -> None:
    (move,) = case.plan.moves
    source = dict(zip(move.rows.tolist(), move.source.tolist(), strict=True))
    assert all(row != other for row, other in source.items())
    assert sorted(source) == sorted(source.values())
    for rows in case.classes:
        k = expected_k(case.data, case.recipe, len(rows), rows[0])
        moved = [row for row in rows if row in source]
        assert len(moved) == (k if k > 1 else 0)
        assert all(source[row] in rows for row in moved)


@few
@given(permuted())
def test_pairs_exchange_with_each_other_and_cross_the_groups_where_asked(case: Permuted) -> None:
    (move,) = case.plan.moves
    if case.recipe.kind == "cycles":
        assert case.plan.pairs is None and case.plan.asked is None
        return
    back = dict(zip(move.source.tolist(), move.rows.tolist(), strict=True))
    assert all(back[row] == other for row, other in zip(move.rows.tolist(), move.source.tolist(), strict=True))
    assert 2 * len(case.plan.pairs) == len(move.rows) == 2 * case.plan.asked
    if case.recipe.kind == "across":
        group = case.data["G"].values
        assert (group[case.plan.pairs[:, 0]] != group[case.plan.pairs[:, 1]]).all()


@few
@given(permuted())
def test_the_facts_list_every_class_with_its_n_rate_and_k(case: Permuted) -> None:
    facts = case.plan.details.facts
    assert facts["records"] == len(case.plan.rows) == sum(row["k"] for row in facts["classes"])
    given_k = [expected_k(case.data, case.recipe, len(rows), rows[0]) for rows in case.classes]
    truth = sorted((len(rows), k if k > 1 else 0) for rows, k in zip(case.classes, given_k, strict=True))
    assert sorted((row["n"], row["k"]) for row in facts["classes"]) == truth
    assert all(bool(row["left_out"]) == (row["k"] == 0) for row in facts["classes"])
    assert sum(facts["classes_left_out"].values()) == sum(k < 2 for k in given_k)


@few
@given(permuted())
def test_permutation_swapping_passes_the_battery_for_recipes(case: Permuted) -> None:
    assert qd.testing.check_recipe(case.recipe, case.data) == case.plan


@few
@given(permuted())
def test_what_moves_together_and_what_stays_keep_their_joint_counts_with_the_weight_on_its_side(case: Permuted) -> None:
    after = case.plan.apply(case.data)
    weight = case.data.weight
    moved = list(case.recipe.swap)
    still = [name for name in case.data.columns if name not in (*moved, weight)]
    for names in (moved, still, *([name] for name in case.data.columns)):
        assert counts(case.data, names) == counts(after, names)
    kept = moved if case.recipe.weight == "moves" else still
    assert table(case.data, kept) == table(after, kept)


@few
@given(permuted(), st.data())
def test_plans_invert_compose_and_survive_pickling(case: Permuted, draw: st.DataObject) -> None:
    after = case.plan.apply(case.data)
    assert case.plan.inverse().apply(after) == case.data
    assert case.plan.after == after.fingerprint
    other = feasible(draw.draw(recipes(after)), after).plan(after)
    both = case.plan.then(other)
    assert both.apply(case.data) == other.apply(after)
    assert both.inverse() == other.inverse().then(case.plan.inverse())
    again = pickle.loads(pickle.dumps(case.plan))
    assert again == case.plan and again.report(case.data) == case.plan.report(case.data)


@few
@given(permuted(), st.integers(0, 10**6))
def test_the_same_recipe_draws_the_same_plan_whatever_was_drawn_before(case: Permuted, seed: int) -> None:
    replace(case.recipe, seed=seed).plan(case.data)
    again = qd.Recipe.from_json(case.recipe.to_json())
    fresh = Data([case.data[name] for name in case.data.columns], weight=case.data.weight)
    for plan in (case.recipe.plan(case.data), again.plan(fresh), case.recipe.prepare(fresh).draw(again.stream())):
        assert all(np.array_equal(a, b) for a, b in zip(plan.moves[0].given, case.plan.moves[0].given, strict=True))


@few
@given(permuted())
def test_the_account_tells_what_moved(case: Permuted) -> None:
    account = case.plan.report(case.data)
    after = case.plan.apply(case.data)
    columns = case.data.columns
    before, now = records(case.data, columns), records(after, columns)
    assert account.changed == sum(a != b for a, b in zip(before, now, strict=True))
    assert account.records == len(case.plan.rows)
    assert [each.variable for each in account.variables] == list(case.plan.columns)
