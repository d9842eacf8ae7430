"""Weights become whole ticks: exact when a decimal tick exists, close to the last bit otherwise."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quadrille as qd
from quadrille.data import Data, to_ticks
from quadrille.errors import InputError
from quadrille.inspect import weight_remarks
from quadrille.plan import Plan
from quadrille.score.estimates import before_after
from strategies import file_of


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


def lopsided() -> Data:
    """Two weights of eight are above 0 and less than a tick."""
    return file_of(
        [1e12, 1e12 / 3, 1e-9, 1e12, 1e12, 1e-9, 0, 1], A=[0, 1, 0, 1, 0, 1, 0, 1], B=[0, 0, 1, 1, 0, 0, 1, 1]
    )


def test_weights_too_small_to_count_are_reported_wherever_they_are_left_out() -> None:
    data = lopsided()
    assert data.uncounted is not None and data.uncounted.tolist() == [
        False,
        False,
        True,
        False,
        False,
        True,
        False,
        False,
    ]
    told = "2 weights above 0 count as 0 in 'w'"
    plan = Plan.of_pairs(data, ["A"], np.array([[0, 1], [4, 7]]))
    for released in (plan, plan.apply(data)):
        scores = qd.score(data, released, ["hellinger(A*B)", "chi_square(A*B)"])
        assert all(told in scores.note(address) for address in scores)
    assert any(told in note for note in before_after(data, plan, variables=["A"]).notes)
    remarks = weight_remarks(data)
    assert remarks[0].startswith(told) and remarks[1].startswith("1 record has the weight 0")
    exact = file_of([1e12, 1e-3, 0], A=[0, 1, 0])
    assert exact.uncounted is None and weight_remarks(exact)[0].startswith("1 record has the weight 0")


def test_a_swap_of_records_whose_weight_does_not_count_is_refused(tmp_path: Path) -> None:
    data = lopsided()
    moved = Plan.of_pairs(data, ["A"], np.array([[0, 1], [2, 3]]))
    message = r"2 weights above 0 count as 0 in 'w'.* the swap moves 1 of these records"
    for attempt in (lambda: qd.score(data, moved, ["hellinger(A*B)"]), lambda: before_after(data, moved)):
        with pytest.raises(InputError, match=message):
            attempt()
    recipe = qd.RandomSwap(["A"], pairs=4, seed=1)
    with pytest.raises(InputError, match="count as 0"):
        qd.release(data, recipe, out=tmp_path / "release", allow_contradictions=True, insecure=True)
    assert not (tmp_path / "release").exists()
