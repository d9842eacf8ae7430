"""The public batteries: they pass for what the package offers and name the law that a broken method breaks."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_law_attack_measures import ATTACK
from test_law_difference import DIFFERENCE
from test_law_risk import RISK
from test_law_utility import UTILITY

import quadrille as qd
from effort import examples
from oracles import PAIR_MEASURES, TABLE_MEASURES
from quadrille.data import Data
from quadrille.measure import MEASURES
from quadrille.measure.base import Score
from quadrille.plan import Move
from quadrille.randomness import Stream
from quadrille.recipe import Prepared, Recipe
from quadrille.summary import Change, Tally
from quadrille.testing import LawError
from strategies import Case, cases, coded, column, file_of, numbers


@given(cases(numeric=False))
def test_random_swapping_passes_the_battery_for_recipes(case: Case) -> None:
    assert qd.testing.check_recipe(case.recipe, case.data) == case.plan


@examples(24)
@given(cases(least=2, largest=30), st.data())
def test_every_measure_passes_the_battery_for_measures(case: Case, draw: st.DataObject) -> None:
    names = draw.draw(st.lists(st.sampled_from(coded(case.data)), min_size=1, max_size=4, unique=True))
    ordinal = [name for name in names if case.data[name].variable.kind == "ordinal"][:1]
    addresses = [*TABLE_MEASURES, *PAIR_MEASURES, "hellinger(2-way)", f"total_variation({'*'.join(names)})"]
    addresses += [f"conditional_entropy({'*'.join(names)})", *(f"ordinal_shift({name})" for name in ordinal)]
    for address in addresses:
        scores = qd.testing.check_measure(address, case.data, case.plan)
        assert scores[address] == qd.score(case.data, case.plan, [address])[address]


def test_the_batteries_cover_every_measure_there_is() -> None:
    records = {"conditional_entropy", "ordinal_shift", "population_risk"}
    assert set(MEASURES) == {*TABLE_MEASURES, *PAIR_MEASURES, *DIFFERENCE, *records, *RISK, *ATTACK, *UTILITY}
    assert qd.measures()["name"].to_list() == list(MEASURES)


@pytest.fixture
def data() -> Data:
    random = np.random.default_rng(1)
    return file_of(A=random.integers(0, 3, 40), B=random.integers(0, 3, 40), C=np.arange(40) % 2)


@dataclass(frozen=True)
class Broken(Recipe):
    """Exchange A in twelve random pairs, but break one law."""

    _: KW_ONLY
    how: str
    same: tuple[str, ...] = ()
    different: tuple[str, ...] = ()
    differ: str = "none"
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "same", tuple(self.same))
        object.__setattr__(self, "different", tuple(self.different))

    def prepare(self, data: Data) -> Prepared:
        drawn = []

        def draw(stream: Stream) -> qd.Plan:
            drawn.append(None)
            shown = Stream.of(len(drawn), "") if self.how == "depends on earlier draws" else stream
            if self.how == "depends on the preparation":
                shown = Stream.of(id(drawn), "")
            rows = np.argsort(shown.words(data.n), kind="stable")[:24].astype(np.int64)
            pairs = rows.reshape(-1, 2)
            if self.how == "repeats a record":
                pairs = np.concatenate((pairs, [[pairs[0, 0], pairs[3, 1]]]))
            move = Move.exchange(["A"], pairs)
            if self.how == "copies":
                move = Move(("A",), (rows[:12], rows[12:]))
            if self.how == "moves nothing":
                move = Move(("A",), (rows, rows))
            moves = [move, Move.exchange(["A"], pairs[::-1])] if self.how == "moves a column twice" else [move]
            return qd.Plan(moves, data=data, asked=12)

        return Prepared(draw)


def test_the_scaffold_of_the_broken_recipes_is_sound(data: Data) -> None:
    assert len(qd.testing.check_recipe(Broken(how="not at all"), data).pairs) == 12


@pytest.mark.parametrize(
    ("how", "law"),
    [
        ("depends on earlier draws", "another plan"),
        ("depends on the preparation", "another plan"),
        ("repeats a record", "in two pairs"),
        ("copies", "no permutation"),
        ("moves nothing", "its own values"),
        ("moves a column twice", "in two moves"),
    ],
)
def test_a_recipe_that_breaks_a_law_is_caught(how: str, law: str, data: Data) -> None:
    with pytest.raises(LawError, match=law):
        qd.testing.check_recipe(Broken(how=how), data)


@pytest.mark.parametrize(
    ("ignored", "law"),
    [
        ({"same": ["C"]}, "differs on a `same` column"),
        ({"different": ["C"]}, "agrees on a `different` column"),
        ({"differ": "all"}, "agrees on a swap variable"),
        ({"differ": "any"}, "agrees on every swap variable"),
    ],
)
def test_a_recipe_that_ignores_a_constraint_is_caught(ignored: dict, law: str, data: Data) -> None:
    with pytest.raises(LawError, match=law):
        qd.testing.check_recipe(Broken(how="not at all", seed=1, **ignored), data)


def test_a_recipe_whose_json_loses_a_parameter_is_caught(data: Data) -> None:
    class Forgetful(Broken):
        def to_json(self) -> str:
            return replace(self, seed=0).to_json() if self.seed else super().to_json()

    with pytest.raises(LawError, match="JSON"):
        qd.testing.check_recipe(Forgetful(how="not at all", seed=3), data)


def ignores_the_change(before: Tally, change: Change) -> Score:
    return Score(float(before.count.max()))


def looks_at_listed_cells_only(before: Tally, change: Change) -> Score:
    return Score(float(change.new.sum()) / change.total_new, note="" if len(change.cells) else "nothing changed")


def says_nothing_when_nothing_changed(before: Tally, change: Change) -> Score:
    return Score(float(np.abs(change.new - change.old).sum()) / change.total_new)


def ignores_the_weight(before: Tally, change: Change) -> Score:
    if change.nothing_changed:
        return Score(0.0, note="nothing changed")
    return Score(float(np.abs(change.new_count - change.old_count).sum()) / before.count.sum() / 2)


def out_of_range(before: Tally, change: Change) -> Score:
    return Score(-1.0)


def undefined_without_reason(before: Tally, change: Change) -> Score:
    return Score(None)


@pytest.mark.parametrize(
    ("formula", "law"),
    [
        (ignores_the_change, "range|outside|not scored 0"),
        (looks_at_listed_cells_only, "different scores"),
        (says_nothing_when_nothing_changed, "not scored 0"),
        (ignores_the_weight, "twice"),
        (out_of_range, "outside"),
        (undefined_without_reason, "say why"),
    ],
)
def test_a_measure_that_breaks_a_law_is_caught(formula: object, law: str, data: Data) -> None:
    plan = qd.RandomSwap("A", pairs=8, seed=3).plan(data)
    broken = replace(MEASURES["total_variation"], name="broken", score=formula)
    with pytest.raises(LawError, match=law):
        qd.testing.check_measure(broken, data, plan)


def test_a_measure_that_depends_on_the_order_of_rows_is_caught(data: Data) -> None:
    plan = qd.RandomSwap("A", pairs=8, seed=3).plan(data)
    calls = []

    def order_dependent(before: Tally, change: Change) -> Score:
        calls.append(None)
        if change.nothing_changed:
            return Score(0.0, note="nothing changed")
        return Score(0.5 if len(calls) <= 2 else 0.25)  # the third call is the one with the rows turned round

    broken = replace(MEASURES["total_variation"], name="broken", score=order_dependent)
    with pytest.raises(LawError, match="order of rows"):
        qd.testing.check_measure(broken, data, plan)


def test_the_battery_for_recipes_takes_two_empty_numbers_for_equal() -> None:
    data = Data([numbers("x", [1, np.nan, np.nan]), column("A", [0, 1, 0])])
    qd.testing.check_recipe(qd.RandomSwap("A", pairs=1, same=["x"], seed=1), data)


@pytest.mark.parametrize("measure", ["conditional_entropy", "ordinal_shift"])
def test_the_battery_for_measures_passes_when_a_moved_column_happens_not_to_change(measure: str) -> None:
    codes = {"A": [0, 1, 0, 1], "B": [0, 0, 1, 1], "C": [0, 1, 2, 3]}
    data = Data([column(name, values, kind="ordinal") for name, values in codes.items()])
    plan = qd.Plan.of_pairs(data, ["A", "B"], [[0, 1]])
    qd.testing.check_measure(measure, data, plan)
