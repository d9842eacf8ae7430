"""Closed forms know that levels of geography travel together."""

from __future__ import annotations

import numpy as np
import pytest

import quadrille as qd
from geography_strategies import area
from quadrille.data import Data
from strategies import column

DRAWS = 1200


def file() -> Data:
    """Two counties of two and three uneven tracts; A goes with the tract."""
    random = np.random.default_rng(5)
    tract = np.repeat(np.arange(5), [30, 14, 22, 9, 25])
    county = np.array([0, 0, 1, 1, 1])[tract]
    levels = [area("county", county, 2, 1), area("tract", tract, 5, 2)]
    a = (random.random(100) < np.array([0.2, 0.7, 0.4, 0.9, 0.5])[tract]).astype(int)
    return Data([*levels, column("A", a, 2), column("B", random.integers(0, 3, 100), 3)])


RECIPES = {
    "random": lambda seed: qd.RandomSwap(["tract"], pairs=12, seed=seed),
    "random, no condition": lambda seed: qd.RandomSwap(["tract"], pairs=12, differ="none", seed=seed),
    "random, same county": lambda seed: qd.RandomSwap(["tract"], pairs=12, same=["county"], seed=seed),
    "random, other county": lambda seed: qd.RandomSwap(["tract"], pairs=12, different=["county"], seed=seed),
    "random, county": lambda seed: qd.RandomSwap(["county"], pairs=12, seed=seed),
    "random, one by one": lambda seed: qd.RandomSwap(["B", "tract", "county"], pairs=8, order="one-by-one", seed=seed),
    "permutation": lambda seed: qd.PermutationSwap(["tract"], records=24, seed=seed),
    "permutation, cycles": lambda seed: qd.PermutationSwap(["county"], records=24, kind="cycles", seed=seed),
    "permutation, in county": lambda seed: qd.PermutationSwap(["tract"], rate=0.3, within=["county"], seed=seed),
}


@pytest.mark.parametrize("design", list(RECIPES))
def test_the_expected_table_of_a_swap_that_carries_levels_agrees_with_draws(design: str) -> None:
    """Tolerance: 4 standard errors of the mean of 1,200 draws, plus a twentieth of a record for mean field."""
    data = file()
    after = [RECIPES[design](seed).plan(data).apply(data) for seed in range(DRAWS)]
    for level in ("county", "tract"):
        rows = qd.theory.table_error(data, RECIPES[design](1), f"{level}*A").to_dicts()
        counts = np.array(
            [np.bincount(d[level].values * 2 + d["A"].values, minlength=2 * d[level].size) for d in after]
        )
        assert len(rows) == counts.shape[1]
        expected = np.array([row["before"] + row["bias"] for row in rows])
        off = np.abs(expected - counts.mean(axis=0))
        assert (off <= 0.05 + 4 * counts.std(axis=0) / DRAWS**0.5).all()
        kept = level == "county" and design in ("random, same county", "permutation, in county")
        assert kept == (not any(row["bias"] for row in rows))


@pytest.mark.parametrize(
    "design", ["random", "random, no condition", "random, other county", "random, county", "permutation"]
)
def test_a_margin_of_areas_alone_is_kept_and_predicted_to_be(design: str) -> None:
    data = file()
    assert qd.theory.predict(data, RECIPES[design](1), ["hellinger(county*tract)"])["hellinger(county*tract)"] == 0
    plan = RECIPES[design](1).plan(data)
    assert qd.score(data, plan, ["hellinger(county*tract)"])["hellinger(county*tract)"] == 0


@pytest.mark.parametrize("design", ["random", "random, other county", "permutation"])
def test_the_prediction_for_the_carried_level_agrees_with_draws(design: str) -> None:
    """Tolerance: 15 %, since the prediction is mean field and the file small."""
    data = file()
    address = "total_variation(county*A)"
    got = [qd.score(data, RECIPES[design](seed).plan(data), [address])[address] for seed in range(600)]
    assert qd.theory.predict(data, RECIPES[design](1), address)[address] == pytest.approx(np.mean(got), rel=0.15)
