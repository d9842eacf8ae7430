"""The curve of designed swaps, small cells and their costs, and a plan that fools the n-rule."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quadrille as qd
from effort import examples
from quadrille.cli.commands.demo import _search
from quadrille.data import Data
from quadrille.errors import ParameterError
from quadrille.study.designed import (
    cell_costs,
    curve_grids,
    default_measures,
    size_table,
    sweep_prices,
    theory_cost,
    undoing_plan,
)
from quadrille.study.study import Study
from quadrille.swap.designed import DesignedNeighbours

AXES = ("exposed", "hellinger")
MEASURES = ("exposed", "small_cells", "hellinger", "confidence")


@pytest.fixture(scope="module")
def study(cps8d: Data, tmp_path_factory: pytest.TempPathFactory) -> Study:
    cloud = qd.grid(qd.RandomSwap, swap=[["Edu"], ["Race"], ["MS", "Race"]], pairs=[244, 2442], seed=range(2))
    out = tmp_path_factory.mktemp("curve") / "study"
    curve = qd.DesignedSwap.curve(shares=[0.3, 1.0], effort=0.05, seed=1)
    return qd.search(cps8d, [cloud, curve], MEASURES, out=out, workers=1, progress=False)


def test_every_random_candidate_lies_above_the_curve(study: Study) -> None:
    assert set(study.frontier(*AXES)["method"]) == {"DesignedSwap"}
    found = study.gains(*AXES)
    assert (found.random, found.beaten) == (12, 12)
    assert found.at_no_more_loss is not None and found.gentlest_random is not None
    assert found.at_no_more_loss[0] < found.gentlest_random[0]
    assert found.at_no_more_loss[1] <= found.gentlest_random[1]


def test_what_a_study_has_scored_is_what_its_recipe_draws(cps8d: Data, tmp_path: Path) -> None:
    recipes: list[qd.Recipe] = [qd.DesignedSwap(coin=coin, effort=0.02, seed=3) for coin in (0.0, 0.5)]
    recipes += [DesignedNeighbours(effort=0.02, seed=3)]
    found = qd.search(cps8d, recipes, AXES, out=tmp_path / "drawn", workers=1, progress=False)
    for place in range(len(recipes)):
        plan = found.recipe(place + 1).plan(cps8d)
        assert list(qd.score(cps8d, plan, list(AXES)).values()) == found.scores[place].tolist()


def test_the_curve_falls_with_the_price_and_no_step_is_wide(cps8d: Data) -> None:
    prices = sweep_prices(cps8d, qd.DesignedSwap(seed=0))
    drawn = [qd.DesignedSwap(price=price, inference=0, effort=0.05, seed=1).plan(cps8d) for price in prices]
    exposed = [733, *(plan.details.facts["exposed_after"] for plan in drawn)]  # type: ignore[union-attr]
    assert list(prices) == sorted(prices) and exposed[-1] < 50
    assert max(np.diff(exposed)) <= 15, "a search is no exact minimum"
    assert -min(np.diff(exposed)) < 250, "no hole"


def test_the_curve_is_above_the_bound_and_near_it(study: Study, cps8d: Data) -> None:
    bound = qd.theory.least_loss(cps8d, np.linspace(0, 0.015, 16).tolist(), margins="2-way")
    scored = study.frame().drop_nulls(list(AXES)).filter(method="DesignedSwap")
    gaps = bound.gap(scored["exposed"].to_list(), scored["hellinger"].to_list())
    assert (gaps >= 1 - 1e-6).all()
    assert gaps.min() < 1.25, "at a twentieth of the effort"


def test_a_study_of_the_curve_goes_on_where_it_stopped(study: Study, cps8d: Data) -> None:
    count = len(study)
    curve = qd.DesignedSwap.curve(shares=[0.3, 1.0], effort=0.05, seed=1)
    more = qd.search(cps8d, curve, MEASURES, out=study.path, workers=1, progress=False)
    assert len(more) == count and more.counts()["pending"] == 0


def test_a_curve_of_secret_seeds_finds_its_prices_and_seeds_again(cps8d: Data, tmp_path: Path) -> None:
    def search() -> Study:
        curve = qd.DesignedSwap.curve(shares=[0.1], seeds=2, effort=0.01)
        return qd.search(cps8d, [curve], AXES, out=tmp_path / "s", workers=1, progress=stop)

    def stop(_results: object, done: int, _total: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search()
    unfinished = Study(tmp_path / "s")
    known = [unfinished.recipe(number) for number in unfinished.ids.tolist()]
    assert unfinished.counts()["pending"] > 0 and len(known) == 46, (
        "11 prices, 7 inferences, 4 coins and 1 share, 2 seeds each"
    )
    finished = search()
    assert [finished.recipe(number) for number in finished.ids.tolist()] == known
    assert finished.counts()["done"] == 46


def test_a_forecast_takes_a_curve_and_a_curve_is_made_of_grids(cps8d: Data) -> None:
    known = {"shares": [0.2], "prices": [0.3], "coins": [], "inferences": [], "choose": ["random", "cheapest"]}
    curve = qd.DesignedSwap.curve(["Edu", "MS"], n=4, **known, seeds=2, effort=0.01)
    priced, shared = curve_grids(curve, cps8d)
    assert [recipe.price for recipe in priced] == [0.3, 0.3]
    assert [(recipe.share, recipe.choose) for recipe in shared][::2] == [(0.2, "random"), (0.2, "cheapest")]
    assert all(recipe.swap == ("Edu", "MS") and recipe.n == 4 for each in (priced, shared) for recipe in each)
    ahead = qd.forecast(cps8d, curve, AXES)
    assert (ahead.designs, ahead.candidates) == (3, 6)


def test_measures_follow_n_and_the_tables(cps8d: Data, tmp_path: Path) -> None:
    tables = [["Age", "Sex", "Race"], ["Age", "Edu", "MS", "AnnSal"]]
    curve = qd.DesignedSwap.curve(prices=[0.3], inferences=[], seed=1, tables=tables, n=4, effort=0.02)
    found = qd.search(cps8d, curve, default_measures(4, tables), out=tmp_path / "s", progress=False)
    assert found.measures[:2] == ("exposed(Age*Sex*Race, n=4)", "exposed(Age*Edu*MS*AnnSal, n=4)")
    assert "hellinger(Age*Edu*MS*AnnSal)" in found.measures
    assert found.recipe(1).parameters()["tables"] == tuple(map(tuple, tables))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"share": 0.5}, "sweeps 'shares' itself"),
        ({"price": 0.5}, "sweeps 'prices' itself"),
        ({"prices": [], "coins": [], "inferences": []}, "nothing to sweep"),
        ({"n": 1}, "'n' parameter"),
        ({"shares": [0.5], "choose": "best"}, "'choose' parameter"),
    ],
)
def test_what_cannot_be_swept_is_refused_and_leaves_nothing(
    words: dict[str, object], says: str, cps8d: Data, tmp_path: Path
) -> None:
    with pytest.raises(ParameterError, match=says):
        qd.search(cps8d, qd.DesignedSwap.curve(**words), AXES, out=tmp_path / "s")  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_costs_of_single_cells_are_those_of_theory_and_a_bit_more(cps8d: Data) -> None:
    costs = cell_costs(cps8d)
    for row in costs.iter_rows(named=True):
        assert row["theory"] < row["low"] <= row["cost"] <= row["high"] < row["theory"] + 0.1
    camouflage = dict(costs.filter(treatment="camouflage").select("size", "cost").iter_rows())
    assert camouflage[2] < camouflage[1] < 0.5 < costs.filter(treatment="empty")["cost"].min()


@pytest.mark.parametrize(("f", "n"), [(f, n) for n in range(2, 7) for f in range(1, n)])
def test_theory_is_the_change_of_overlap_among_huge_cells(f: int, n: int) -> None:
    huge = 1e8

    def overlap(before: list[float], after: list[float]) -> float:
        return sum(np.sqrt(np.longdouble(x) * np.longdouble(y)) for x, y in zip(before, after, strict=True))

    lack = n - f
    filled = overlap([f, huge, huge, huge], [n, huge - lack, huge - lack, huge + lack])
    emptied = overlap([f, huge, huge, huge], [0, huge + f, huge - f, huge + f])
    start = f + 3 * huge
    assert float(start - filled) / f == pytest.approx(theory_cost(f, n, "camouflage"), abs=1e-5)
    assert float(start - emptied) / f == pytest.approx(theory_cost(f, n, "empty"), abs=1e-5)


def small_file(counts: list[int]) -> Data:
    cells = list(product("abc", "xy", "pq"))[: len(counts)]
    rows = [cell for cell, count in zip(cells, counts, strict=True) for _ in range(count)]
    return qd.from_frame(pl.DataFrame(rows, schema=["A", "B", "C"], orient="row"))


@examples(24)
@given(st.lists(st.integers(0, 5), min_size=12, max_size=12).filter(lambda counts: sum(counts) > 1), st.integers(2, 5))
def test_a_plan_that_undoes_itself_changes_no_cell_and_lowers_the_n_rule(counts: list[int], n: int) -> None:
    data = small_file(counts)
    plan = undoing_plan(data, n)
    scores = qd.score(data, plan, [f"small_cells(n={n})", f"exposed(n={n})", "hellinger"])
    before = qd.score(data, qd.Plan([], data=data), [f"small_cells(n={n})", f"exposed(n={n})"])
    assert sorted(plan.apply(data).frame().rows()) == sorted(data.frame().rows())
    assert scores[f"exposed(n={n})"] == before[f"exposed(n={n})"] and scores["hellinger"] == 0
    after, was = scores[f"small_cells(n={n})"], before[f"small_cells(n={n})"]
    if len(plan.rows) and after is not None and was is not None:
        taken = np.isin(np.arange(data.n), plan.rows)
        size = data.frame().select(pl.len().over("A", "B", "C")).to_series().to_numpy()
        assert after == pytest.approx(((size < n) & ~taken).sum() / (~taken).sum())


def test_nearly_all_records_at_risk_in_cps8d_can_be_made_safe_by_name_only(cps8d: Data) -> None:
    scores = qd.score(cps8d, undoing_plan(cps8d), ["small_cells", "exposed"])
    assert scores["small_cells"] < 0.0005 and scores["exposed"] == pytest.approx(733 / 48_842)  # type: ignore[operator]


def test_sizes_before_and_after_agree_with_the_account(cps8d: Data) -> None:
    plan = qd.DesignedSwap(effort=0.02, seed=3).plan(cps8d)
    sizes, facts = size_table(cps8d, plan), plan.report(cps8d).details
    after = {row["size"]: row for row in sizes.filter(when="after").iter_rows(named=True)}
    for row in facts["just_large"]:  # type: ignore[attr-defined]
        assert after[row["records"]]["cells"] == row["cells_after"]
        assert after[row["records"]]["genuine"] / after[row["records"]]["records"] == pytest.approx(
            row["genuine_share"]
        )
    assert sum(after[size]["genuine"] for size in (1, 2)) == facts["exposed_after"]


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [1, 2])
def test_no_random_candidate_of_the_demo_is_on_the_frontier_of_three_objectives(
    seed: int, cps8d: Data, tmp_path: Path
) -> None:
    study = _search(cps8d, tmp_path, seed)
    best = study.frontier("exposed", "hellinger", "attributed_unique")
    assert len(study) == 562 and len(best) > 10
    assert best["method"].unique().to_list() == ["DesignedSwap"]
