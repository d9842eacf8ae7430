"""A weight that moves with the swap variables: the change gives what the two files give, exactly for whole ticks."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from test_law_permutation import Permuted, permuted

import oracles
import quadrille as qd
from effort import examples
from oracles import PAIR_MEASURES, TABLE_MEASURES, close
from quadrille.data import Data
from quadrille.delta import Delta
from quadrille.expressions import Where
from quadrille.measure import MEASURES
from quadrille.plan import Move
from quadrille.score.evaluator import Evaluator
from quadrille.summary import Counted, Participation, Table, Transition
from strategies import WEIGHTS, coded, column, feasible, numbers, recipes, restrictions

SCALE = 10.0
few = examples(25)


def moving(**options: object) -> st.SearchStrategy[Permuted]:
    return permuted(weight="moves", weights=WEIGHTS, **options)


def is_the_change(summary: Counted, data: Data, plan: qd.Plan, fused: object = None) -> None:
    """Compare the change with a full count of the swapped file, cell by cell and tick by tick."""
    after, swapped = plan.apply(data), np.isin(np.arange(data.n), plan.rows)
    before = summary.of(data)
    truth = summary.of(after, data, swapped)
    change = before.change(Delta(data, plan, fused))
    assert (change.total_old, change.total_new) == (before.total, truth.total)
    found, cells = before.after(change), np.union1d(before.occupied(), truth.occupied())
    assert found.per_unit == truth.per_unit
    for mine, theirs in zip(found.at(cells), truth.at(cells), strict=True):
        assert np.array_equal(mine, theirs)
    assert np.array_equal(found.occupied(), truth.occupied())


def margin(draw: st.DataObject, data: Data, most: int = 3) -> tuple[str, ...]:
    return tuple(draw.draw(st.lists(st.sampled_from(coded(data)), min_size=1, max_size=most, unique=True)))


@few
@given(moving(), st.data())
def test_every_table_changes_as_the_two_files_say_to_the_last_tick(case: Permuted, draw: st.DataObject) -> None:
    names = margin(draw, case.data)
    where = Where.parse(draw.draw(restrictions(case.data)).text) if draw.draw(st.booleans()) else None
    for kind in (Table, Participation, Transition):
        is_the_change(kind(names, where), case.data, case.plan)
    evaluator = Evaluator(case.data, ["hellinger"])
    is_the_change(Table(names, where), case.data, case.plan, evaluator.fused)
    is_the_change(Participation(names, where), case.data, case.plan, evaluator.fused)


@few
@given(moving(), st.data())
def test_so_it_is_for_a_weight_that_moves_in_one_of_several_moves(case: Permuted, draw: st.DataObject) -> None:
    after = case.plan.apply(case.data)
    both = case.plan.then(feasible(draw.draw(recipes(after)), after).plan(after))
    assume(len(both.moves) > 1)
    names = margin(draw, case.data)
    for kind in (Table, Participation, Transition):
        is_the_change(kind(names), case.data, both, Evaluator(case.data, ["hellinger"]).fused)


@few
@given(moving(), st.data())
def test_distances_and_associations_follow_their_definitions(case: Permuted, draw: st.DataObject) -> None:
    after = case.plan.apply(case.data)
    first, second = draw.draw(st.sampled_from(list(combinations(coded(case.data), 2))))
    was, now = (oracles.table(data, (first, second)) for data in (case.data, after))
    addresses = {name: f"{name}(`{first}`*`{second}`)" for name in (*TABLE_MEASURES, *PAIR_MEASURES)}
    plan = qd.score(case.data, case.plan, list(addresses.values()))
    files = qd.score(case.data, after, list(addresses.values()), moved=case.plan.columns)
    same = +was == +now
    for name, address in addresses.items():
        truth = 0.0 if same and sum(was.values()) else {**TABLE_MEASURES, **PAIR_MEASURES}[name](was, now)
        assert close(plan[address], truth, SCALE), address
        assert close(files[address], truth, SCALE), address


@st.composite
def surveys(draw: st.DrawFn) -> Permuted:
    """A moving weight in a file with two outcomes, one of them with empty fields and far from 0."""
    case = draw(moving(wide=False, largest=30))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = case.data.n
    pay = random.lognormal(8, 1, n)
    pay[random.random(n) < draw(st.sampled_from([0, 0.3]))] = np.nan
    extra = [numbers("score", 500 + random.normal(0, 10, n), role="outcome"), numbers("pay", pay, role="outcome")]
    data = Data([*(case.data[name] for name in case.data.columns), *extra])
    return Permuted(data, case.recipe, case.recipe.plan(data))


@examples(10)
@given(case=surveys(), rest=st.data())
def test_every_measure_passes_the_battery_when_the_weight_moves(case: Permuted, rest: st.DataObject) -> None:
    for address in rest.draw(st.permutations(list(MEASURES)))[:8]:
        qd.testing.check_measure(address, case.data, case.plan)
    other = [name for name in coded(case.data) if name not in case.plan.columns]
    for name in other[:2]:
        qd.testing.check_measure(f"hd3({name})", case.data, case.plan)
        qd.testing.check_measure(f"r_ased(score*pay*`{name}`)", case.data, case.plan)
        qd.testing.check_measure(f"ased_reg(score ~ C(`{name}`) + pay)", case.data, case.plan)


@few
@given(surveys())
def test_sums_over_columns_that_stay_change_with_the_weight(case: Permuted) -> None:
    evaluator = Evaluator(case.data, ["r_ased(score*pay)", "ased_reg(score ~ pay)"])
    after = case.plan.apply(case.data)
    for summary in evaluator.summaries(case.plan.columns):
        before = summary.of(case.data)
        found = before.change(Delta(case.data, case.plan)).new
        truth = before.against(summary.of(after)).new
        size = np.sqrt(np.outer(np.diag(before.products), np.diag(before.products)))
        size += np.sqrt(np.outer(np.diag(truth.products), np.diag(truth.products)))
        assert (np.abs(found.products - truth.products) <= 1e-12 * size).all()
        assert np.array_equal(found.count, truth.count)


def survey() -> Data:
    random = np.random.default_rng(4)
    columns = [column(name, random.integers(0, 3, 200)) for name in "ABC"]
    return Data([*columns, numbers("w", random.integers(1, 9, 200) * 0.25, role="weight")])


def test_a_moving_weight_disturbs_tables_of_columns_that_stay_and_spares_those_that_move() -> None:
    data = survey()
    stays, moves = (
        qd.score(data, qd.PermutationSwap(["A"], rate=0.3, weight=weight, seed=1).plan(data), ["hd3(A)", "hd3(B)"])
        for weight in ("stays", "moves")
    )
    assert stays["hd3(A)"] > 0 and stays["hd3(B)"] == 0
    assert moves["hd3(A)"] == 0 and moves["hd3(B)"] > 0
    assert moves.note("hd3(A)") == "nothing changed"


@pytest.mark.parametrize("power", [-40, 0, 40])
def test_a_file_keeps_its_tick_when_weights_change_places(power: int) -> None:
    """Weights that no decimal tick represents, with a total next to a power of two, where order decides rounding."""
    random = np.random.default_rng(power + 100)
    shares = random.random(1001)
    weights = shares / shares.sum() * 2.0**power
    data = Data([column("A", np.arange(1001) % 7), numbers("w", weights, role="weight")])
    for seed in range(20):
        after = qd.PermutationSwap("A", rate=1, weight="moves", kind="cycles", seed=seed).plan(data).apply(data)
        assert after.ticks.per_unit == data.ticks.per_unit
        assert after.ticks.values.sum() == data.ticks.values.sum()
        assert np.array_equal(np.sort(after.ticks.values), np.sort(data.ticks.values))
        assert np.array_equal(after.ticks.values, np.rint(after["w"].values * data.ticks.per_unit))


def test_new_weights_get_a_tick_of_their_own() -> None:
    data = survey()
    after = data.with_values({"w": (np.array([0, 1]), np.array([0.001, 2.0]))})
    assert after.ticks.per_unit == 1000
    assert after.ticks.values[0] == 1


def test_a_move_of_the_weight_made_by_hand_is_scored_as_well() -> None:
    data = survey()
    pairs = np.arange(100).reshape(-1, 2)
    plan = qd.Plan([Move.exchange(["w"], pairs)], data=data)
    files = qd.score(data, plan.apply(data), ["hd3(A)"], moved=("w",))
    assert qd.score(data, plan, ["hd3(A)"])["hd3(A)"] == pytest.approx(files["hd3(A)"], rel=1e-14)
    assert files["hd3(A)"] > 0
