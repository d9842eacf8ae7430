"""Designed pairs of larger files: geography, Adult at full detail, weights, and cells that nothing can be done for."""

from __future__ import annotations

import time
from itertools import product

import numpy as np
import pytest

import quadrille as qd
from designed_pairs_oracle import one_pair_suffices
from quadrille.data import Data
from quadrille.swap.designed.pairs import DesignedPairs
from quadrille.testing import check_recipe
from strategies import column

ADULT = ["age group", "workclass", "education", "marital-status", "occupation", "race", "sex"]


@pytest.fixture(scope="module")
def adult() -> Data:
    """Adult with age in groups of five years, unweighted."""
    whole = qd.datasets.adult()
    age = column("age group", (whole["age"].values // 5).astype(np.int64), kind="ordinal")
    return Data([*(whole[name] for name in ADULT[1:]), age])


def test_adult_at_full_detail_is_treated_where_that_can_be_done_and_the_rest_is_accounted_for(adult: Data) -> None:
    DesignedPairs(tables=[ADULT[:3]], seed=1).plan(adult)  # loads the kernels
    start = time.process_time()
    plan = DesignedPairs(tables=[ADULT], seed=1).plan(adult)
    assert time.process_time() - start < 20
    said = plan.details.facts
    assert said["small_cells"] > 8000, "most cells are small"
    treated = said["camouflaged"] + said["emptied"]
    assert treated > 0.2 * said["small_cells"]
    assert sum(said["left"].values()) == said["small_cells"] - treated > 0.1 * said["small_cells"]
    scores = qd.score(adult, plan, [f"exposed({'*'.join(ADULT)})", f"hellinger({'*'.join(ADULT)})"])
    exposed, hellinger = scores.values()
    assert exposed == pytest.approx(said["exposed_after"] / adult.n)
    assert said["exposed_after"] < 0.8 * said["exposed_before"]
    assert hellinger == pytest.approx(said["design_loss"], abs=1e-6)


def test_either_treats_more_of_adult_than_camouflage(adult: Data) -> None:
    said = {
        treatment: DesignedPairs(tables=[ADULT], treatment=treatment, improve=False, seed=1).plan(adult).details.facts
        for treatment in ("camouflage", "either")
    }
    assert said["camouflage"]["emptied"] == 0 < said["either"]["emptied"]
    assert said["either"]["exposed_after"] < said["camouflage"]["exposed_after"]


def test_finer_levels_of_geography_travel_with_the_coarser_and_say_so() -> None:
    data = qd.datasets.state(20_000)
    plan = check_recipe(DesignedPairs(["county"], tables=[["county", "race", "tenure"]], improve=False, seed=1), data)
    assert [move.columns for move in plan.moves] == [("county", "tract")]
    assert plan.details.facts["carried_along"] == "tract"
    after = plan.apply(data)
    codes, tract = data["county"].values, data["tract"].values
    parent = dict(zip(tract.tolist(), codes.tolist(), strict=True))
    moved = zip(after["tract"].values[plan.rows], after["county"].values[plan.rows], strict=True)
    assert all(parent[t] == c for t, c in moved)


def test_a_swap_within_a_county_moves_tracts_only() -> None:
    data = qd.datasets.state(20_000)
    recipe = DesignedPairs(["tenure"], tables=[["county", "race", "tenure"]], same=["county"], improve=False, seed=1)
    plan = check_recipe(recipe, data)
    assert plan.columns == ("tenure",) and len(plan.rows)


def test_weights_change_the_loss_and_not_the_exposure() -> None:
    whole = qd.datasets.adult()
    names = ["workclass", "marital-status", "race", "sex"]
    data = Data([*(whole[name] for name in names), whole["fnlwgt"]])
    plan = DesignedPairs(seed=1).plan(data)
    said, scores = plan.details.facts, qd.score(data, plan, ["exposed", "hellinger"])
    assert scores["exposed"] == pytest.approx(said["exposed_after"] / data.n)
    assert said["exposed_after"] < 0.1 * said["exposed_before"]
    # the loss of the design takes the mean weight of each cell; those who move have weights of their own
    assert scores["hellinger"] == pytest.approx(said["design_loss"], rel=0.2)


def lattice(cells: dict[tuple[int, ...], int]) -> Data:
    codes = np.repeat(np.array(list(cells)), list(cells.values()), axis=0)
    return Data([column(name, codes[:, i], 3) for i, name in enumerate("ABC"[: codes.shape[1]])])


def random_lattice(random: np.random.Generator, n: int, *, small_cells: int) -> dict[tuple[int, ...], int] | None:
    """Cells of which so many lack one record and the others hold n or more; at times they do not occur."""
    shape = random.integers(2, 4, random.integers(2, 4))
    cells = {cell: int(random.choice([0, n, n + 1, n + 2, n + 5])) for cell in product(*map(range, shape))}
    cells = {cell: held for cell, held in cells.items() if held}
    if len(cells) <= small_cells or max(cells.values()) <= n:
        return None
    names = sorted(cells)
    for i in random.choice(len(names), small_cells, replace=False):
        cells[names[i]] = n - 1
    usable = max(cells.values()) > n and all(len({cell[v] for cell in cells}) > 1 for v in range(len(shape)))
    return cells if usable else None


def test_a_cell_that_lacks_one_record_is_left_only_where_no_pair_at_all_would_do() -> None:
    # A cell that lacks more is filled step by step and may be given up although other first steps would do: no oracle.
    random, seen = np.random.default_rng(1), {True: 0, False: 0}
    while min(seen.values()) < 60:
        n = int(random.integers(2, 5))
        cells = random_lattice(random, n, small_cells=1)
        if cells is None:
            continue
        (small_cell,) = (cell for cell, held in cells.items() if held < n)
        possible = one_pair_suffices(cells, small_cell, n)
        for improve in (False, True):
            recipe = DesignedPairs(n=n, treatment="camouflage", improve=improve, seed=1)
            assert (recipe.plan(lattice(cells)).details.facts["camouflaged"] == 1) == possible
        seen[possible] += 1


def test_trying_one_cell_does_not_spoil_the_chances_of_another() -> None:
    """(0, 0, 0) lacks two records and cannot get them; (0, 0, 1) lacks one, and a pair would do."""
    cells = {
        (0, 0, 0): 1,
        (0, 0, 1): 2,
        (0, 1, 0): 5,
        (0, 1, 1): 8,
        (1, 0, 0): 2,
        (1, 0, 1): 3,
        (1, 1, 0): 5,
        (1, 1, 1): 4,
        (2, 0, 0): 4,
        (2, 1, 0): 8,
    }
    sure = [cell for cell, held in cells.items() if held == 2 and one_pair_suffices(cells, cell, 3)]
    assert (0, 0, 1) in sure
    for seed in range(5):
        recipe = DesignedPairs(treatment="camouflage", improve=False, spread=0, share=1 / 3, seed=seed)
        said = recipe.plan(lattice(cells)).details.facts
        assert said["camouflaged"] + said["left"].get("not chosen", 0) >= len(sure)
