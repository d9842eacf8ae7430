"""Differences between tables of areas and levels: worked values, empty cells, weights, large tables, bad input."""

from __future__ import annotations

from math import inf, log

import numpy as np
import pytest
from scipy.special import xlogy

import quadrille as qd
from quadrille.data import Data
from quadrille.errors import InputError, ParameterError
from quadrille.measure.base import EMPTY, NOTHING_CHANGED
from quadrille.measure.difference import HASHED
from quadrille.score.evaluator import Evaluator
from strategies import column, file_of, numbers

CELLS = ("chi_square", "effective_swap_rate", "deviance")
DIVERSITY = ("gini_difference", "shannon_difference", "renyi_difference")
ALL = (*CELLS, *DIVERSITY)


def records(table: np.ndarray) -> Data:
    """One record per count of a table of tracts by races, with every category declared."""
    codes = [np.repeat(code.ravel(), table.ravel()) for code in np.indices(table.shape)]
    return Data([column(name, c, n) for name, c, n in zip(("tract", "race"), codes, table.shape, strict=True)])


def weighted(table: np.ndarray) -> Data:
    """One record per cell that is not empty, its value as weight."""
    kept = table.ravel() > 0
    codes = [code.ravel()[kept] for code in np.indices(table.shape)]
    columns = [column(name, c, n) for name, c, n in zip(("tract", "race"), codes, table.shape, strict=True)]
    return Data([*columns, numbers("w", table.ravel()[kept], role="weight")])


def truth(f: np.ndarray, g: np.ndarray) -> list[float]:
    """The six values by their definitions, zero cells left out."""
    kept = f > 0
    r, s = (np.nan_to_num(t / np.maximum(t.sum(axis=1, keepdims=True), 1e-300)) for t in (f, g))
    return [
        ((g - f)[kept] ** 2 / f[kept]).sum(),
        np.abs(g - f).sum() / 2 / f.sum(),
        2 * xlogy(g[kept], g[kept] / f[kept]).sum(),
        (s**2 - r**2).sum(),
        (xlogy(s, s) - xlogy(r, r)).sum(),
        (np.log((s**3).sum()) - np.log((r**3).sum())) / 2,
    ]


def found(before: Data, after: Data | qd.Plan, margin: str = "tract*race") -> list[float | None]:
    return list(qd.score(before, after, [f"{name}({margin})" for name in ALL]).values())


def test_hand_worked_values() -> None:
    before, after = np.array([[3, 1], [2, 2]]), np.array([[2, 2], [3, 1]])
    assert found(records(before), records(after)) == pytest.approx(
        [1 / 3 + 1 + 1 / 2 + 1 / 2, 1 / 4, 2 * (2 * log(2 / 3) + 2 * log(2) + 3 * log(3 / 2) - log(2)), 0, 0, 0],
        abs=1e-15,
    )
    data = records(np.array([[4, 0], [0, 4]]))  # two tracts, each of one race: a swap makes them more alike
    plan = qd.Plan.of_pairs(data, ["tract"], [[0, 4]])
    shannon = 2 * (0.75 * log(0.75) + 0.25 * log(0.25))
    renyi = log(0.75**3 + 0.25**3) / 2
    expected = [0.5, 0.25, 12 * log(0.75), 2 * (0.75**2 + 0.25**2 - 1), shannon, renyi]
    assert found(data, plan) == pytest.approx(expected, abs=1e-15)
    scores = qd.score(data, plan, ["chi_square", "deviance", "deviance(infinite=1)"])
    assert scores.note("deviance") == scores.note("chi_square") == "2 cells were empty before and not after: left out"
    assert scores.detail("chi_square").to_dicts() == [{"cells_changed": 4, "zero_cells": 2}]
    assert scores["deviance"] < 0  # what was left out is what would make it positive
    assert scores["deviance(infinite=1)"] == inf
    assert scores.note("deviance(infinite=1)") == "2 cells were empty before and not after"


@pytest.mark.parametrize("build", [records, weighted])
@pytest.mark.parametrize("seed", range(5))
def test_random_tables_with_empty_cells_agree_with_numpy(build: object, seed: int) -> None:
    random = np.random.default_rng(seed)
    before, after = (random.poisson(random.gamma(0.4, 10, (30, 5))) for _ in range(2))
    before[3] = after[4] = 0  # areas that come and go
    assert ((before == 0) & (after > 0)).any()
    assert found(build(before), build(after)) == pytest.approx(truth(before, after), rel=1e-12)


def test_levels_may_be_crosses_and_the_order_of_the_margin_names_the_area() -> None:
    random = np.random.default_rng(2)
    data = file_of(tract=np.arange(400) % 8, race=random.integers(0, 3, 400), sex=random.integers(0, 2, 400))
    plan = qd.RandomSwap(["tract"], pairs=60, seed=1).plan(data)
    after = plan.apply(data)

    def table(file: Data, area: str, levels: list[str]) -> np.ndarray:
        level = np.ravel_multi_index([file[name].values for name in levels], (3, 2)[: len(levels)])
        out = np.zeros((8, 6))
        np.add.at(out, (file[area].values, level), 1)
        return out

    cross = truth(*(table(file, "tract", ["race", "sex"]) for file in (data, after)))
    assert found(data, plan, "tract*race*sex") == pytest.approx(cross, rel=1e-11)
    turned = truth(*(np.bincount(f["race"].values * 8 + f["tract"].values).reshape(3, 8) for f in (data, after)))
    assert found(data, plan, "race*tract") == pytest.approx(turned, rel=1e-11)
    assert found(data, plan, "race*tract")[3] != pytest.approx(found(data, plan, "tract*race")[3])


def test_files_whose_weights_need_different_ticks_are_compared_in_the_unit_of_the_weights() -> None:
    random = np.random.default_rng(3)
    before, after = random.integers(1, 90, (6, 4)), random.integers(1, 9000, (6, 4)) / 100
    assert found(weighted(before), weighted(after)) == pytest.approx(truth(before, after), rel=1e-12)
    assert found(weighted(after), weighted(before)) == pytest.approx(truth(after, before), rel=1e-12)


@pytest.mark.parametrize("with_weight", [False, True])
def test_tables_of_which_only_the_occupied_cells_are_kept_give_the_same(with_weight: bool) -> None:
    random = np.random.default_rng(4)
    n, tracts, levels = 3000, 2000, 3000
    weight = random.integers(1, 9, n).astype(float) if with_weight else None
    tract, level = random.integers(0, 40, n) * 50, random.integers(0, 30, n) * 100
    columns = [column("tract", tract, tracts), column("level", level, levels)]
    data = Data([*columns, numbers("w", weight, role="weight")] if with_weight else columns)
    plan = qd.RandomSwap(["tract"], pairs=10, seed=1).plan(data)
    after = plan.apply(data)
    f, g = np.zeros((2, 40, 30))
    for table, file in ((f, data), (g, after)):
        place = file["tract"].values // 50, file["level"].values // 100
        np.add.at(table, place, 1 if weight is None else weight)
    assert qd.score(data, plan, ["gini_difference"]).detail("gini_difference")["areas_touched"][0] <= 20
    assert found(data, plan, "tract*level") == pytest.approx(truth(f, g), rel=1e-10)
    assert found(data, after, "tract*level") == pytest.approx(truth(f, g), rel=1e-10)


def test_tables_whose_cells_are_hashed_have_sums_over_cells_but_no_areas() -> None:
    random = np.random.default_rng(6)
    codes = np.repeat(random.integers(0, 3, (70, 30)), 4, axis=1)
    data = Data([column(f"V{i}", row, 3) for i, row in enumerate(codes)])
    plan = qd.RandomSwap(["V3"], pairs=20, seed=1).plan(data)
    scores = qd.score(data, plan, ALL)
    swapped = codes.copy()
    swapped[3] = plan.apply(data)["V3"].values
    both, place = np.unique(np.concatenate((codes, swapped), axis=1), axis=1, return_inverse=True)
    f, g = (np.bincount(part, minlength=both.shape[1])[None] for part in np.split(place.ravel(), 2))
    assert [scores[name] for name in CELLS] == pytest.approx(truth(f, g)[:3], rel=1e-12)
    assert {scores[name] for name in DIVERSITY} == {None}
    assert {scores.note(name) for name in DIVERSITY} == {HASHED}
    assert qd.score(data, plan, ["gini_difference(V0*V3)"])["gini_difference(V0*V3)"] is not None


def test_a_sum_worked_out_once_serves_every_plan() -> None:
    random = np.random.default_rng(7)
    data = file_of(tract=np.arange(300) % 6, race=random.choice(4, 300, p=[0.6, 0.2, 0.15, 0.05]))
    evaluator = Evaluator(data, ["renyi_difference"])
    for seed in range(5):
        plan = qd.RandomSwap(["tract"], pairs=5, seed=seed).plan(data)
        f, g = (np.bincount(d["tract"].values * 4 + d["race"].values).reshape(6, 4) for d in (data, plan.apply(data)))
        assert evaluator.score(plan)["renyi_difference"] == pytest.approx(truth(f, g)[5], abs=1e-14)


def test_no_change_is_0_and_no_record_is_undefined() -> None:
    data = records(np.array([[3, 1], [2, 2]]))
    same = qd.score(data, qd.Plan([], data=data), ALL)
    assert set(same.values()) == {0}
    assert {same.note(name) for name in ALL} == {NOTHING_CHANGED}
    none = qd.score(data, data, ALL, where=np.zeros(8, dtype=bool))
    assert set(none.values()) == {None}
    assert {none.note(name) for name in ALL} == {EMPTY}


def test_every_difference_is_listed_with_what_its_sign_means() -> None:
    listed = {row["name"]: row for row in qd.measures().to_dicts()}
    for name in ALL:
        assert listed[name]["side"] == "loss"
        assert "Lemons" in listed[name]["reference"]
        assert listed[name]["better"] == ("lower" if name in CELLS[:2] else "nearer 0")
    for name in DIVERSITY:
        assert "positive: less diverse after" in listed[name]["definition"]
        assert "larger is not more perturbed" in listed[name]["definition"]


def test_wrong_options_are_refused() -> None:
    data = records(np.array([[3, 1], [2, 2]]))
    with pytest.raises(ParameterError, match="infinite"):
        qd.score(data, data, ["chi_square(tract*race, infinite=yes)"])
    with pytest.raises(InputError, match="infinite"):
        qd.score(data, data, ["gini_difference(tract*race, infinite=1)"])
