"""Designed pairs of CPS-8d: what they reach in every seed, their curves, and that no random swap reaches as much."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import numpy as np
import pytest

import quadrille as qd
from bounds import stored_bound
from quadrille.score.evaluator import Evaluator
from quadrille.swap.designed.pairs import DesignedPairs

SEEDS = range(20)
N, PAIRED, SINGLE = 48842, 186, 361
"""Records, cells of two records and of one. A cell of two costs less per record, so these are the cheapest."""
BOUND = {0.0074: 0.0146, 0.0057: 0.0262, 0.0039: 0.0347, 0.0021: 0.0419, 0.0010: 0.0460}
"""Exposed, and the least Hellinger distance with it of any table with the same one-way margins."""
GREEDY = {0.0074: 0.0148, 0.0058: 0.0261, 0.0042: 0.0344, 0.0025: 0.0413}
"""The same of the greedy step, cheapest cells first."""
RATES = (244, 488, 2442)
RANDOM_MEANS = (0.01447, 0.01400, 0.01206)
"""Mean exposure of 36 random swaps at these numbers of pairs."""

Points = np.ndarray
"""A row per candidate: exposed, hellinger, pairs."""


def points(data: qd.Data, recipes: Iterable[qd.Recipe]) -> Points:
    evaluator, made = Evaluator(data, ["exposed", "hellinger"]), []
    for recipe in recipes:
        plan = recipe.plan(data)
        scores = evaluator.score(plan)
        made.append((scores["exposed"], scores["hellinger"], sum(len(move.pairs) for move in plan.moves)))
    return np.array(made)


@pytest.fixture(scope="module")
def default(cps8d: qd.Data) -> Points:
    return points(cps8d, [DesignedPairs(seed=seed) for seed in SEEDS])


@pytest.fixture(scope="module")
def cheapest(cps8d: qd.Data) -> Points:
    shares = np.linspace(0.05, 1, 20)
    return points(cps8d, [DesignedPairs(share=share, choose="cheapest", seed=1) for share in shares])


@pytest.fixture(scope="module")
def at_random(cps8d: qd.Data) -> Points:
    shares = (0.03, 0.06, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
    return points(cps8d, [DesignedPairs(share=share, seed=seed) for share in shares for seed in range(3)])


def loss_at(curve: Points, exposed: float) -> float:
    """The Hellinger distance of a curve at an exposure, in straight lines between its points."""
    order = np.argsort(curve[:, 0])
    return float(np.interp(exposed, curve[order, 0], curve[order, 1]))


def test_each_of_20_seeds_keeps_what_the_defaults_promise(default: Points) -> None:
    exposed, hellinger, pairs = default.max(axis=0)
    assert exposed <= 0.0010 and hellinger <= 0.049 and pairs <= 900
    assert len({tuple(point) for point in default}) > 10


def test_without_spread_it_is_within_3_percent_of_the_bound(cps8d: qd.Data) -> None:
    # The square of the bound is convex in the exposure, so beyond its last two points it is above their line.
    found = points(cps8d, [DesignedPairs(spread=0, seed=seed) for seed in range(5)])
    slope = (BOUND[0.0021] ** 2 - BOUND[0.0010] ** 2) / (0.0021 - 0.0010)
    bound = np.sqrt(BOUND[0.0010] ** 2 + slope * (found[:, 0] - 0.0010))
    assert (found[:, 0] < 0.0010).all()
    assert (found[:, 1] <= 1.03 * bound).all()


def share_for(exposed: float) -> float:
    """The share of the cells that must go, the cheapest first, for this exposure."""
    records = 2 * PAIRED + SINGLE - int(exposed * N)
    cells = (records + 1) // 2 if records <= 2 * PAIRED else records - PAIRED
    return (cells - 0.5) / (PAIRED + SINGLE)


@pytest.mark.parametrize(("published", "above"), [(BOUND, 1.05), (GREEDY, 1.01)])
def test_cheapest_first_is_within_5_percent_of_the_bound_and_no_worse_than_the_published_curve(
    cps8d: qd.Data, published: dict[float, float], above: float
) -> None:
    for exposed, hellinger in published.items():
        ((reached, cost, _),) = points(cps8d, [DesignedPairs(share=share_for(exposed), choose="cheapest", seed=1)])
        assert abs(reached - exposed) <= 3 / N  # towards the end cells stand in each other's way
        assert cost <= above * hellinger
        if published is BOUND:
            assert cost >= hellinger - 0.0003, "below the bound, which is worth so much per 3 records"


def test_more_cells_treated_mean_less_exposure_and_more_loss(cheapest: Points) -> None:
    assert (np.diff(cheapest, axis=0) * [-1, 1, 1] > 0)[:-1].all()
    assert cheapest[-1] == pytest.approx(cheapest[-2], rel=0.1)  # the last cells stand in each other's way


def test_half_of_the_exposure_goes_at_the_loss_of_the_gentlest_random_swap(cps8d: qd.Data) -> None:
    recipe = DesignedPairs(share=PAIRED / (PAIRED + SINGLE), choose="cheapest", seed=1)
    ((exposed, hellinger, pairs),) = points(cps8d, [recipe])
    assert exposed <= 0.0075 and hellinger <= 0.0148 and pairs <= 230


def test_a_higher_price_treats_more_cells(cps8d: qd.Data, cheapest: Points) -> None:
    found = points(cps8d, [DesignedPairs(price=price, seed=1) for price in (0, 0.02, 0.1, 0.3, 0.34, 0.4, 1, 5)])
    assert found[0].tolist() == found[1].tolist() == [733 / 48842, 0, 0]
    assert (np.diff(found[:, 0]) <= 0).all() and len(set(found[:, 0])) >= 5
    for exposed, hellinger, _ in found[2:]:
        assert hellinger <= 1.02 * loss_at(cheapest, exposed)


def test_cells_chosen_at_random_cost_more_than_the_cheapest_and_trace_the_published_curve(
    at_random: Points, cheapest: Points
) -> None:
    for exposed, hellinger, _ in at_random:
        assert hellinger >= loss_at(cheapest, exposed)
    for exposed, published in {0.0127: 0.0185, 0.0087: 0.0306, 0.0048: 0.0409}.items():
        assert loss_at(at_random, exposed) == pytest.approx(published, rel=0.07)


def test_every_random_candidate_of_the_frontier_paper_is_dominated_and_none_is_below_the_bound(
    cps8d: qd.Data, cheapest: Points, at_random: Points, default: Points
) -> None:
    keys = list(cps8d.keys)
    swaps = [[name] for name in keys] + [list(two) for two in combinations(keys, 2)]
    recipes = qd.grid(qd.RandomSwap, swap=swaps, pairs=list(RATES), sampler=["pair-uniform"], seed=[0, 1, 2])
    study = qd.search(cps8d, recipes, measures=["exposed", "hellinger"], workers=1)
    frame = study.frame()
    cloud = np.stack([frame[name].to_numpy() for name in ("exposed", "hellinger")], axis=1)
    assert len(cloud) == 324
    for pairs, mean in zip(RATES, RANDOM_MEANS, strict=True):
        own = cloud[frame["pairs"].to_numpy() == pairs, 0]
        # 108 candidates; the sd over swaps is below .0009, so four standard errors are below .0004
        assert own.mean() == pytest.approx(mean, abs=0.0004)
    bound = stored_bound(cps8d)
    for each in (cloud, cheapest, at_random, default):
        assert (each[:, 1] >= bound.at(each[:, 0])).all(), "no candidate lies below the bound"
    for ours in (np.concatenate((cheapest, default)), np.concatenate((at_random, default))):
        better = (ours[None, :, 0] <= cloud[:, None, 0]) & (ours[None, :, 1] < cloud[:, None, 1])
        assert better.any(axis=1).all()
