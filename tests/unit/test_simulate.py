"""The simulator: the distribution of RandomSwap on records, known moments, and input that cannot be used."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2_contingency, kstest, random_table

import quadrille as qd
from quadrille.errors import ParameterError
from quadrille.randomness import Stream
from quadrille.simulation import Swapping, simulate, table_before
from strategies import file_of

Table = NDArray[np.int64]
Floats = NDArray[np.float64]
REPLICATES = 3_000
LEVEL = 0.001

SETTINGS: dict[str, tuple[list[int], list[float], float]] = {
    "areas 2:2:2:94": ([8, 8, 8, 376], [0.5, 0.5], 0.05),
    "areas 2:2:2:94, skewed levels": ([8, 8, 8, 376], [0.4, 0.3, 0.15, 0.1, 0.05], 0.05),
    "uneven areas": ([20, 20, 120, 240], [0.8, 0.2], 0.1),
    "one large area": ([200] + [10] * 20, [0.5, 0.5], 0.1),
    "many areas": ([10] * 10 + [30] * 10, [0.6, 0.3, 0.1], 0.05),
    "half of the records": ([50, 150, 200], [0.7, 0.3], 0.5),
    "dead ends": ([60, 60, 120], [0.7, 0.3], 0.98),
}


def swapped_records(before: Table, pairs: int, replicates: int, sampler: str = "first-uniform") -> list[Table]:
    """Tables after RandomSwap of the areas of a file with these counts, recounted from the records."""
    areas, levels = before.shape
    area = np.repeat(np.arange(areas), before.sum(axis=1))
    level = np.concatenate([np.repeat(np.arange(levels), row) for row in before])
    data = file_of(tract=area)
    recipe = qd.RandomSwap(["tract"], pairs=pairs, differ="all", sampler=sampler, seed=0)
    drawer, found = recipe.prepared(data), []
    for seed in range(replicates):
        one, other = drawer.draw(replace(recipe, seed=seed).stream()).pairs.T
        moved = area.copy()
        moved[one], moved[other] = area[other], area[one]
        found.append(np.bincount(moved * levels + level, minlength=before.size).reshape(before.shape))
    return found


def hypergeometric_shortcut(before: Table, pairs: int, replicates: int) -> list[Table]:
    """What the simulator must not do: the swapped counts first, all records alike, and pairs afterwards."""
    random, (areas, levels), found = np.random.default_rng(1), before.shape, []
    for _ in range(replicates):
        swapped = random.multivariate_hypergeometric(before.ravel(), 2 * pairs)
        one, other = random.permutation(np.repeat(np.arange(before.size), swapped)).reshape(2, -1)
        after = before.ravel().copy()
        np.subtract.at(after, np.concatenate((one, other)), 1)
        np.add.at(after, other // levels * levels + one % levels, 1)
        np.add.at(after, one // levels * levels + other % levels, 1)
        found.append(after.reshape(areas, levels))
    return found


def patefield(before: Table, pairs: int, replicates: int) -> list[Table]:
    """Another shortcut: the records that RandomSwap takes, and their areas dealt out anew by a random table.

    A random table with given margins (Patefield 1981) is a random permutation of the areas of these records, so that
    some get the area they came from: fewer move than in pairs of different areas.
    """
    areas, levels = before.shape
    area = np.repeat(np.arange(areas), before.sum(axis=1))
    cell = np.repeat(np.arange(before.size), before.ravel())
    recipe = qd.RandomSwap(["tract"], pairs=pairs, differ="all", seed=0)
    drawer, random, found = recipe.prepared(file_of(tract=area)), np.random.default_rng(1), []
    for seed in range(replicates):
        rows = drawer.draw(replace(recipe, seed=10**6 + seed).stream()).rows
        taken = np.bincount(cell[rows], minlength=before.size).reshape(areas, levels)
        dealt = random_table.rvs(taken.sum(axis=1), taken.sum(axis=0), random_state=random).astype(np.int64)
        found.append(before - taken + dealt)
    return found


def scores(before: Table, tables: list[Table]) -> dict[str, Floats]:
    """Four metrics of many tables by plain numpy, zero cells left out of the first."""
    after = np.array(tables, dtype=float)
    change, total = after - before, before.sum(axis=1, keepdims=True)
    return {
        "chi_square": np.where(before > 0, change**2 / np.maximum(before, 1), 0).sum(axis=(1, 2)),
        "effective_swap_rate": np.abs(change).sum(axis=(1, 2)) / 2 / before.sum(),
        "gini_difference": ((after / total) ** 2 - (before / total) ** 2).sum(axis=(1, 2)),
        "zero_cells": ((before == 0) & (after > 0)).sum(axis=(1, 2)),
    }


def smallest_p(areas: list[int], shares: list[float], rate: float, others: Callable[..., list[Table]]) -> float:
    """The smallest p-value, over metrics, of the simulator against other tables; rounded so that ties stay ties."""
    before = table_before(areas, shares)
    pairs = int(rate * sum(areas) / 2 + 0.5)
    frame = simulate(areas, shares, rate=rate, replicates=REPLICATES, seed=1)
    expected = scores(before, others(before, pairs, REPLICATES))
    return min(kstest(frame[name].to_numpy().round(9), values.round(9)).pvalue for name, values in expected.items())


@pytest.mark.parametrize("name", SETTINGS)
def test_records_in_count_space_have_the_distribution_of_random_swap_on_the_records(name: str) -> None:
    assert smallest_p(*SETTINGS[name], swapped_records) > LEVEL


def test_the_same_test_rejects_swapped_counts_drawn_before_the_pairs() -> None:
    assert smallest_p(*SETTINGS["areas 2:2:2:94"], hypergeometric_shortcut) < LEVEL


@pytest.mark.parametrize("name", ["areas 2:2:2:94", "uneven areas", "many areas"])
def test_the_same_test_rejects_areas_dealt_out_by_a_random_table(name: str) -> None:
    assert smallest_p(*SETTINGS[name], patefield) < 1e-9


def test_the_same_test_rejects_pairs_that_are_all_equally_likely() -> None:
    def pair_uniform(before: Table, pairs: int, replicates: int) -> list[Table]:
        return swapped_records(before, pairs, replicates, "pair-uniform")

    assert smallest_p(*SETTINGS["one large area"], pair_uniform) < LEVEL


@pytest.mark.parametrize(
    ("before", "pairs"),
    [([[1, 1], [1, 0], [1, 2]], 2), ([[1, 0, 1], [0, 2, 0], [2, 1, 0]], 3), ([[1, 1], [1, 1], [2, 3]], 4)],
)
def test_whole_tables_of_tiny_files_occur_as_often_as_on_records_dead_ends_included(
    before: list[list[int]], pairs: int
) -> None:
    table, draws = np.array(before, dtype=np.int64), 6_000
    swapping, stream = Swapping(table, pairs, "records"), Stream.of(1, "tiny")
    ours = Counter(swapping.draw(stream.sub(str(i)))[0].tobytes() for i in range(draws))
    theirs = Counter(after.tobytes() for after in swapped_records(table, pairs, draws))
    common = [key for key in ours | theirs if ours[key] + theirs[key] >= 20]
    counts = np.array([[side[key] for key in common] for side in (ours, theirs)])
    assert counts.sum() > 0.98 * 2 * draws
    assert chi2_contingency(counts).pvalue > LEVEL


def test_dead_ends_are_met_and_counted() -> None:
    areas, shares, rate = SETTINGS["dead ends"]
    assert simulate(areas, shares, rate=rate, replicates=50, seed=1)["redrawn"].min() > 0
    assert simulate(areas, shares, rate=0.1, replicates=50, seed=1)["redrawn"].max() == 0


def within(values: Floats, expected: float, errors: float = 4) -> bool:
    """Whether a mean is as expected, up to so many standard errors."""
    return abs(values.mean() - expected) <= errors * values.std(ddof=1) / sqrt(len(values))


def test_net_changes_of_cells_have_mean_0_and_the_known_variance() -> None:
    areas, shares, rate, replicates = [5000, 8000, 8000, 20000], [0.6, 0.3, 0.1], 0.05, 4_000
    before = table_before(areas, shares)
    swapped = rate * sum(areas)
    variance = 2 * swapped / before.size
    swapping, stream = Swapping(before, round(swapped / 2), "cells"), Stream.of(1, "moments")
    change = np.array([swapping.draw(stream.sub(str(i)))[0] - before for i in range(replicates)], dtype=float)
    assert all(within(each, 0) for each in change.reshape(replicates, -1).T)
    assert within((change**2).mean(axis=(1, 2)), variance)
    frame = simulate(areas, shares, rate=rate, mechanism="cells", replicates=replicates, seed=1)
    assert within(frame["chi_square"].to_numpy(), variance * (1 / before).sum())
    assert frame["redrawn"].max() == 0


@pytest.mark.parametrize("shares", [[0.5, 0.5], [0.4, 0.3, 0.15, 0.1, 0.05]])
@pytest.mark.parametrize(("areas", "rate"), [(5, 0.05), (20, 0.03)])
def test_chi_square_of_records_in_equal_areas_has_the_known_mean(areas: int, rate: float, shares: list[float]) -> None:
    expected = (len(shares) - 1) * rate * areas * (2 - rate * areas / (areas - 1))
    frame = simulate([2000] * areas, shares, rate=rate, replicates=3_000, seed=1)
    assert within(frame["chi_square"].to_numpy(), expected)


def test_cells_that_run_empty_are_redrawn_and_cells_filled_anew_are_counted() -> None:
    frame = simulate([3, 3, 40], [0.9, 0.1], rate=0.4, mechanism="cells", replicates=200, seed=1)
    assert frame["redrawn"].mean() > 1
    assert frame["zero_cells"].max() > 0
    assert np.isfinite(frame["chi_square"].to_numpy()).all()


def test_largest_remainders_round_up_first_ties_in_the_order_of_levels() -> None:
    assert table_before([10, 7, 1], [40, 30, 15, 10, 5]).tolist() == [[4, 3, 2, 1, 0], [3, 2, 1, 1, 0], [1, 0, 0, 0, 0]]
    assert table_before([7, 8], [1, 1]).tolist() == [[4, 3], [4, 4]]


def test_a_secret_seed_is_new_every_time_and_mechanisms_have_streams_of_their_own() -> None:
    def run(**given: Any) -> list[float]:
        options: dict[str, Any] = {"rate": 0.05, "replicates": 5} | given
        return simulate([500, 700], [0.6, 0.4], **options)["chi_square"].to_list()

    assert run() != run()
    assert run(seed=1) == run(seed=1)
    assert run(seed=1) != run(seed=2)
    assert run(seed=1) != run(seed=1, mechanism="cells")


BAD: list[tuple[dict[str, Any], str]] = [
    ({"areas": [100]}, "'areas' parameter of simulate must be a list of the number of records of two or more areas"),
    ({"areas": 100}, "'areas' parameter"),
    ({"areas": [100, 0]}, "'areas' parameter of simulate must be a whole number of 1 or more"),
    ({"areas": [100, 10.5]}, "'areas' parameter"),
    ({"areas": [100, 2**31]}, "'areas' parameter of simulate must be a whole number from 1 to 2,147,483,647. Got 2147"),
    ({"areas": [100, 2**31 - 1]}, "fewer than 2,147,483,648 records"),
    ({"areas": [1] * 4_000, "shares": [1] * 4_000}, "4,000 areas by 4,000 levels are more than"),
    ({"shares": [0.0, 0.0]}, "'shares' parameter of simulate must be .* with a sum above 0"),
    ({"shares": [1.2, -0.2]}, "'shares' parameter of simulate must be a list of two or more numbers of 0 or more"),
    ({"shares": [1.0]}, "'shares' parameter"),
    ({"shares": [1.0, float("nan")]}, "'shares' parameter"),
    ({"shares": "ab"}, "'shares' parameter"),
    ({"rate": 0}, r"'rate' parameter of simulate must be a number in \(0, 1\]"),
    ({"rate": 1.5}, r"'rate' parameter of simulate must be a number in \(0, 1\]"),
    ({"rate": 0.0001}, "gives no pair at all for 200 records"),
    ({"mechanism": "households"}, "'mechanism' parameter of simulate must be one of 'records', 'cells'"),
    ({"mechanism": "cells", "shares": [1, 0]}, "fewer than two levels have a record"),
    ({"replicates": 0}, "'replicates' parameter of simulate must be a whole number of 1 or more"),
    ({"seed": -1}, "'seed' parameter of simulate"),
    ({"workers": 0}, "'workers' parameter of simulate"),
]


@pytest.mark.parametrize(("given", "message"), BAD)
def test_input_that_cannot_be_used_is_refused_with_a_clear_message(given: dict[str, Any], message: str) -> None:
    options: dict[str, Any] = {"areas": [100, 100], "shares": [0.8, 0.2], "rate": 0.1, "replicates": 2} | given
    with pytest.raises(ParameterError, match=message):
        simulate(**options)


def test_shares_too_large_to_add_up_are_refused_without_a_warning() -> None:
    with warnings.catch_warnings(), pytest.raises(ParameterError, match="'shares' parameter"):
        warnings.simplefilter("error")
        simulate([100, 100], [1e308, 1e308], rate=0.1, replicates=2)


def test_a_table_of_nearly_empty_cells_is_refused_instead_of_redrawn_for_ever() -> None:
    sparse = [1] * 20_000 + [20_000]
    message = "20,000 of 40,002 cells are empty at the start: for 2,000 pairs more than 1,200,000 had to be drawn again"
    with pytest.raises(ParameterError, match=message):
        simulate(sparse, [0.9999, 0.0001], rate=0.1, mechanism="cells", replicates=1, seed=1)
    assert simulate(sparse, [0.9999, 0.0001], rate=0.1, replicates=2, seed=1).height == 2
    few = simulate([1] * 20 + [2000], [0.99, 0.01], rate=0.1, mechanism="cells", replicates=2, seed=1)
    assert few["redrawn"].min() > 100  # many redraws that end are fine


def test_more_pairs_than_can_exist_are_refused_with_the_maximum() -> None:
    with pytest.raises(qd.InfeasibleError, match="the maximum is 20") as caught:
        simulate([5, 15, 80], [0.5, 0.5], rate=0.6, replicates=2)
    assert (caught.value.asked, caught.value.maximum) == (30, 20)
    assert len(simulate([5, 15, 80], [0.5, 0.5], rate=0.4, replicates=2)) == 2
