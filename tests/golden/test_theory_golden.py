"""Spec 4: the seven records of Boudreau (2005), to every printed digit, and the expected pairs between levels."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from quadrille.theory import equivalent_table, pairs_between, rounding_error, swap_error
from theory_oracle import enumerated, exact_moments

W = np.array([5.800281, 9.760256, 6.531695, 8.829931, 9.805243, 8.347917, 5.952525])
P = np.array([0, 1, 1, 0, 0, 1, 1])
F = np.array([1, 1, 0, 0, 1, 1, 1])
VALUES = {
    12.48422: 4,
    14.30044: 22,
    14.87961: 4,
    15.71278: 22,
    16.29195: 4,
    18.10817: 22,
    20.83214: 30,
    22.24448: 30,
    24.0607: 99,
    24.63987: 30,
    30.59239: 48,
}
REGION_1 = [
    [165268, 0, 0, 0, 0],
    [148313, 21316, 1524, 973, 120],
    [73508, 294438, 21130, 44795, 10051],
    [8830, 65701, 2170, 6248, 43614],
]
REGION_2 = [[20, 0, 0, 0, 0], [14, 1, 0, 0, 0], [19, 18, 3, 8, 0], [0, 3, 1, 1, 1]]


def test_cycles_of_four_of_the_seven_records() -> None:
    error = swap_error(W * P, F, 4, "cycles")
    assert error.value == pytest.approx(24.060698, abs=1e-12)
    assert round(error.expected, 5) == 22.58804
    assert round(error.variance, 5) == 23.20468
    assert round(error.rmse, 4) == 5.0372


def test_pairs_of_four_of_the_seven_records() -> None:
    error = swap_error(W * P, F, 4, "pairs")
    assert round(error.expected, 5) == 22.58804
    assert round(error.variance, 5) == 21.61678


def test_the_distribution_over_all_permutations() -> None:
    values = enumerated(W * P, F, 4, "cycles")
    assert len(values) == 315
    assert Counter(np.round(values, 5).tolist()) == VALUES
    assert len(enumerated(W * P, F, 4, "pairs")) == 105


def test_expected_pairs_between_the_levels_of_age() -> None:
    counts = np.array([8432.0, 33541.0, 6869.0])
    for sampler, expected in (("first-uniform", (1280.4, 129.7, 1031.9)), ("pair-uniform", (1218.3, 234.7, 989.0))):
        m = pairs_between(counts, 2442, sampler)
        assert tuple(round(float(m[pair]), 1) for pair in ((0, 1), (0, 2), (1, 2))) == expected


def test_equivalent_records_of_the_two_regions() -> None:
    """The smallest k of every cell, searched one by one with the public functions."""
    frame = equivalent_table(REGION_2)
    table = np.array(REGION_2)
    n = table.sum()
    for row in frame.iter_rows(named=True):
        i, j = int(row["row"]), int(row["column"])
        target = rounding_error(int(table[i, j])).rmse
        a, b = np.repeat(np.arange(4) == i, 5) * 1.0, np.tile(np.arange(5) == j, 4) * 1.0
        errors = {k: swap_error(a, b, k, counts=table.ravel()).rmse for k in range(0, n + 1, 2)}
        first = next((k for k, rmse in errors.items() if rmse >= target * (1 - 1e-12)), None)
        assert row["records"] == first
        assert row["rounding_rmse"] == pytest.approx(target)
    assert equivalent_table(REGION_1)["records"].null_count() == 0
    assert equivalent_table(REGION_2)["records"].null_count() > 0


def test_the_worked_cell_at_five_percent() -> None:
    """Married, 36-65: the bias is 73 times the standard deviation, and the RMSE 2,200 times rounding's."""
    table = np.array(REGION_1)
    a, b = np.repeat(np.arange(4) == 2, 5) * 1.0, np.tile(np.arange(5) == 1, 4) * 1.0
    error = swap_error(a, b, 45_400, counts=table.ravel())
    assert error.value == 294438
    assert (round(error.bias, 2), round(error.sd, 2), round(error.rmse, 2)) == (-5397.22, 73.75, 5397.72)
    bias, variance = exact_moments(a.tolist(), b.tolist(), table.ravel().tolist(), 45_400, "pairs")
    assert (error.bias, error.variance) == pytest.approx((float(bias), float(variance)), rel=1e-12)
    assert rounding_error(294438).rmse == pytest.approx(6**0.5)
