"""Rates are rounded half up as the decimals that they are written as; recipes of version 1 keep the rule of floats."""

from __future__ import annotations

import json
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from math import floor
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quadrille as qd
from quadrille.errors import MismatchError
from quadrille.recipe import half_up
from quadrille.simulation import Setting
from quadrille.simulation.design import SimulationDesign
from quadrille.swap.permutation import PermutationSwapOfFloats, records_of
from quadrille.swap.random import RandomSwapOfFloats
from strategies import file_of

SHORT_OF_A_HALF = [(0.29, 100, 15), (0.57, 100, 29), (0.58, 50, 15), (0.07, 100, 4), (0.35, 10, 2), (0.145, 1000, 73)]


def of_version_1(recipe: qd.Recipe) -> qd.Recipe:
    return qd.Recipe.from_json(recipe.to_json().replace('"version":2', '"version":1'))


@given(st.integers(1, 9_999), st.integers(1, 4), st.integers(1, 10**9), st.sampled_from([1, 2]))
def test_a_rate_is_rounded_as_decimals_are(digits: int, places: int, n: int, of: int) -> None:
    rate = float(Decimal(digits).scaleb(-places))
    exact = (Decimal(digits).scaleb(-places) * n / of).quantize(Decimal(1), ROUND_HALF_UP)
    assert half_up(rate, n, of) == int(exact)


@given(st.lists(st.tuples(st.integers(0, 1_000), st.integers(1, 2**31 - 1)), min_size=1, max_size=20))
def test_many_classes_are_rounded_like_each_of_them(classes: list[tuple[int, int]]) -> None:
    rate, n = np.array([digits / 1000 for digits, _ in classes]), np.array([n for _, n in classes])
    for kind, each in (("cycles", 1), ("pairs", 2)):
        exact = [each * min(floor(Fraction(d, 1000) * m / each + Fraction(1, 2)), m // each) for d, m in classes]
        assert records_of(kind, rate, n).tolist() == exact


@pytest.mark.parametrize(("rate", "n", "pairs"), SHORT_OF_A_HALF)
def test_every_recipe_with_a_rate_follows_the_decimal(rate: float, n: int, pairs: int) -> None:
    assert floor(Fraction(str(rate)) * n / 2 + Fraction(1, 2)) == pairs
    data = file_of(A=np.arange(n) % 5, B=np.arange(n) % 2)
    assert len(qd.RandomSwap(["A"], rate=rate, seed=1).plan(data).pairs) == pairs
    assert len(qd.PermutationSwap(["A"], rate=rate, seed=1).plan(data).rows) == 2 * pairs


def test_recipes_of_version_1_keep_the_rule_of_floats() -> None:
    data = file_of(A=np.arange(100) % 5, B=np.arange(100) % 2)
    old, new = RandomSwapOfFloats(["A"], rate=0.29, seed=1), qd.RandomSwap(["A"], rate=0.29, seed=1)
    assert (old.count(100), new.count(100)) == (14, 15)
    assert of_version_1(new) == old and old.to_json().endswith('"version":1}')
    assert len(old.plan(data).pairs) == 14
    moved = PermutationSwapOfFloats(["A"], rate=0.29, seed=1)
    assert len(moved.plan(data).rows) == 28 and moved.plan(data).details.facts["classes"][0]["k"] == 28


@pytest.mark.parametrize("make", [qd.RandomSwap, qd.PermutationSwap])
def test_both_versions_draw_one_plan_where_the_rules_agree(make: type[qd.Recipe], cps8d: qd.Data) -> None:
    new = make(["Age"], rate=0.02, seed=7)
    assert new.plan(cps8d) == of_version_1(new).plan(cps8d)
    assert new.to_json() != of_version_1(new).to_json()


@pytest.mark.parametrize("grid", [True, False])
def test_a_study_of_version_1_goes_on_with_it(tmp_path: Path, grid: bool) -> None:
    data = file_of(A=np.arange(100) % 5, B=np.arange(100) % 2, C=np.arange(100) % 3)
    measures = ["hellinger(A*B)", "exposed(A*B)"]
    old = [RandomSwapOfFloats(["A"], rate=0.29, seed=seed) for seed in range(2)]
    path = tmp_path / "study"
    qd.search(data, old, measures, out=path, progress=False)
    more = qd.grid(qd.RandomSwap, swap=["A"], rate=0.29, seed=range(3))
    study = qd.search(data, [more] if grid else list(more), measures, out=path, progress=False)
    assert len(study) == 3, "two are known already"
    assert all(study.recipe(number).count(100) == 14 for number in study.ids.tolist())
    plan = study.recipe(3).plan(data)
    assert study.frame()["hellinger(A*B)"][2] == qd.score(data, plan, measures)["hellinger(A*B)"]


def test_a_study_of_version_2_takes_no_recipes_of_version_1(tmp_path: Path) -> None:
    data = file_of(A=np.arange(100) % 5, B=np.arange(100) % 2)
    new = qd.RandomSwap(["A"], rate=0.29, seed=1)
    study = qd.search(data, [new], ["hellinger(A*B)", "exposed(A*B)"], out=tmp_path / "study", progress=False)
    assert len(study.recipe(1).plan(data).pairs) == 15
    with pytest.raises(MismatchError, match="holds RandomSwap of version 2"):
        qd.search(data, [of_version_1(new)], ["hellinger(A*B)", "exposed(A*B)"], out=tmp_path / "study", progress=False)


def test_a_column_of_rates_counts_as_decimals_too() -> None:
    frame = pl.DataFrame(
        {"A": [f"a{i % 5}" for i in range(300)], "C": ["x"] * 100 + ["y"] * 200, "r": [0.29] * 100 + [0.07] * 200}
    )
    classes = qd.PermutationSwap(["A"], rate="r", within=["C"], seed=1).classes(qd.from_frame(frame))
    assert classes.k.tolist() == [30, 14]


@pytest.mark.parametrize(("rate", "n", "pairs"), SHORT_OF_A_HALF)
def test_a_simulation_makes_as_many_pairs_as_a_recipe(rate: float, n: int, pairs: int) -> None:
    setting = Setting([n // 2, n - n // 2], [0.5, 0.5], rate)
    assert setting.pairs == pairs
    old = min(floor(rate * n / 2 + 0.5), n // 2)
    assert setting.version == (1 if old == pairs else 2), "a folder of replicates of other pairs is not gone on with"


def test_a_design_that_no_rule_changes_keeps_its_identity() -> None:
    document = {
        "design": {"replicates": 5, "seed": 1, "mechanism": ["records"]},
        "areas": {"equal": ["2 x 50"]},
        "levels": {"even": [0.5, 0.5]},
        "rates": {"low": 0.02, "high": 0.3},
    }
    ordinary = SimulationDesign.of(document)
    assert [trial.setting().version for trial in ordinary.trials] == [1, 1]
    half = SimulationDesign.of(document | {"rates": {"low": 0.02, "high": 0.29}})
    assert [trial.setting().version for trial in half.trials] == [1, 2]
    assert json.loads(half.trials[1].setting().identity)["simulate"] == 2
