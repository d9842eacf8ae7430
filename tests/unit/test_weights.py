"""Weights become whole ticks: exact when a decimal tick exists, close to the last bit otherwise."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadrille.data import to_ticks
from quadrille.errors import InputError


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=50).filter(any), st.integers(0, 6))
def test_weights_with_few_decimals_are_exact_decimal_ticks(units: list[int], decimals: int) -> None:
    weights = np.array([float(Decimal(unit).scaleb(-decimals)) for unit in units])
    ticks = to_ticks(weights, "w")
    assert ticks.exact
    assert (ticks.values / ticks.per_unit == weights).all()
    assert ticks.per_unit <= 10.0**decimals
    assert int(ticks.values.sum()) * 10**decimals == sum(units) * int(ticks.per_unit)


@given(st.lists(st.floats(0, 1e12, allow_subnormal=False), min_size=1, max_size=50).filter(lambda w: sum(w) > 1e-280))
def test_any_weights_are_within_half_a_tick_and_their_total_fits(weights: list[float]) -> None:
    array = np.array(weights)
    ticks = to_ticks(array, "w")
    assert (np.abs(ticks.values / ticks.per_unit - array) <= 0.5 / ticks.per_unit + 2.0**-53 * array).all()
    assert 0 <= sum(map(int, ticks.values)) < 2**62
    assert (ticks.values >= 0).all()


@given(st.permutations([0.1, 0.2, 0.3, 1e9, 7.25, 1 / 3]))
def test_the_total_does_not_depend_on_the_order_of_the_rows(weights: list[float]) -> None:
    first = to_ticks(np.array(sorted(weights)), "w")
    second = to_ticks(np.array(weights), "w")
    assert first.values.sum() == second.values.sum()


def test_thirds_need_a_binary_tick_and_whole_weights_the_unit() -> None:
    assert not to_ticks(np.array([1 / 3, 1e6 + 1 / 7]), "w").exact
    assert to_ticks(np.array([1.0, 25.0]), "w").per_unit == 1.0


@pytest.mark.parametrize("weight", [1e-200, 1e300, 1e18, 2.0**61, 2.0**62, 2.0**63])
def test_extreme_weights_keep_their_size(weight: float) -> None:
    ticks = to_ticks(np.array([weight]), "w")
    assert int(ticks.values[0]) / ticks.per_unit == pytest.approx(weight, rel=2.0**-52, abs=0)


@pytest.mark.parametrize("weights", [[1e-300], [2.0**-1074], [1e308, 1e308]])
def test_absurd_weights_give_ticks_or_a_clear_error(weights: list[float]) -> None:
    try:
        ticks = to_ticks(np.array(weights), "w")
    except InputError as error:
        assert "'w'" in str(error)
    else:
        assert (ticks.values > 0).all()


def test_ticks_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        to_ticks(np.array([1.0]), "w").values[0] = 2


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([np.nan, 77.0, np.nan], "'w' is missing in 2 rows"),
        ([77.0, -77.0], "'w' is negative or infinite in 1 rows"),
        ([77.0, np.inf], "'w' is negative or infinite in 1 rows"),
        ([0.0, 0.0], "'w' is 0 in every row"),
    ],
)
def test_bad_weights_are_refused_with_a_count_and_no_value(weights: list[float], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        to_ticks(np.array(weights), "w")
    assert "77" not in str(caught.value)
