"""Whole numbers never wrap: records taken repeatedly, files put together, tallies merged and candidates searched."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
import quadrille as qd
from effort import examples
from quadrille.data import Data, Ticks
from quadrille.errors import InputError, MismatchError
from quadrille.summary import Table, Tally
from strategies import file_of

WEIGHTS = (1 / 3, 2 / 3, 1 / 7, 5 / 7)
ADDRESSES = ("total_variation(A*B)", "hellinger(A*B)", "chi_square(A*B)", "cramers_v_change(A*B)", "hd1")

weights = st.lists(
    st.one_of(st.sampled_from([*WEIGHTS, 1.0, 0.0]), st.floats(1e-3, 1e15)), min_size=4, max_size=4
).filter(any)
repeats = st.lists(st.integers(0, 3), min_size=1, max_size=40)


def four(weight: list[float] | tuple[float, ...]) -> Data:
    return file_of(list(weight), A=[0, 0, 1, 1], B=[0, 1, 0, 1])


def close(tally: Tally, data: Data) -> bool:
    """Whether the cells hold the sums of the weights, up to a tick per record."""
    exact = oracles.table(data, ["A", "B"])
    assert tally.ticks is not None
    cells = {(f"A{i}", f"B{j}"): int(tally.ticks[2 * i + j]) for i in range(2) for j in range(2)}
    slack = Fraction(data.n) / Fraction(tally.per_unit) + sum(exact.values()) * data.n * Fraction(1, 2**52)
    return all(abs(ticks / Fraction(tally.per_unit) - exact[cell]) <= slack for cell, ticks in cells.items())


@examples(36)
@given(weights, repeats)
def test_records_taken_repeatedly_keep_their_weights(weight: list[float], rows: list[int]) -> None:
    data = four(weight)
    if not any(weight[i] for i in rows):
        rows = [*rows, int(np.argmax(weight))]
    taken = data.take(np.array(rows))
    whole = Table(("A", "B")).of(taken)
    assert 0 < whole.total < 2**62 and close(whole, taken)


@examples(36)
@given(weights, st.lists(repeats, min_size=2, max_size=4))
def test_tallies_of_parts_merge_to_the_sums_of_the_weights_or_say_that_they_cannot(
    weight: list[float], parts: list[list[int]]
) -> None:
    data = four(weight)
    heaviest = int(np.argmax(weight))
    taken = [data.take(np.array([*rows, heaviest])) for rows in parts]
    tallies = [Table(("A", "B")).of(part) for part in taken]
    together = data.take(np.array([i for rows in parts for i in (*rows, heaviest)]))
    try:
        merged = tallies[0]
        for tally in tallies[1:]:
            merged = merged.merge(tally)
    except MismatchError as error:
        assert "Tally all records together" in str(error)
        merged = Table(("A", "B")).of(together)
    assert 0 < merged.total < 2**62 and close(merged, together)


@pytest.mark.parametrize(("light", "heavy"), [(1e-288, 1e307), (0.1, 1 / 3)])
def test_tallies_without_a_common_tick_are_not_merged(light: float, heavy: float) -> None:
    """Of ticks beyond the range of numbers apart, and of decimal and binary ones, none is a multiple of the other."""
    tallies = [Table(("A", "B")).of(four((weight,) * 4)) for weight in (light, heavy)]
    with pytest.raises(MismatchError, match="Tally all records together"):
        tallies[0].merge(tallies[1])


@examples(24)
@given(weights, st.integers(1, 8), st.integers(0, 99))
def test_files_put_together_score_as_their_exact_tables_do(weight: list[float], copies: int, seed: int) -> None:
    data = four(weight)
    frames = qd.from_frame(pl.concat([data.frame()] * copies), weight="w")
    taken = data.take(np.tile(np.arange(4), copies))
    for whole in (taken, frames):
        plan = qd.RandomSwap(["A"], pairs=max(1, copies // 2), differ="none", seed=seed).plan(whole)
        if whole.uncounted is not None and whole.uncounted[plan.rows].any():  # what became of them could not be counted
            with pytest.raises(qd.QuadrilleError, match="count as 0"):
                qd.score(whole, plan, ["total_variation(A*B)"])
            continue
        scores = qd.score(whole, plan, ["total_variation(A*B)", "hellinger(A*B)"])
        was, now = (oracles.table(file, ["A", "B"]) for file in (whole, plan.apply(whole)))
        for name, oracle in (("total_variation", oracles.total_variation), ("hellinger", oracles.hellinger)):
            assert scores[f"{name}(A*B)"] == pytest.approx(oracle(was, now), rel=1e-9, abs=1e-7)


@pytest.mark.parametrize("copies", [1, 3, 5, 50])
def test_thirds_and_sevenths_taken_several_times_score_as_once(copies: int, tmp_path: Path) -> None:
    # Their tick is the finest binary one, which leaves no room for a second copy of the file.
    taken = four(WEIGHTS).take(np.tile(np.arange(4), copies * 5))
    recipe = qd.RandomSwap(["A"], pairs=copies, seed=3)
    plan = recipe.plan(taken)
    was, now = (oracles.table(file, ["A", "B"]) for file in (taken, plan.apply(taken)))
    expected = oracles.total_variation(was, now)
    assert qd.score(taken, plan, ["total_variation(A*B)"])["total_variation(A*B)"] == pytest.approx(expected, rel=1e-12)
    study = qd.search(
        taken,
        [recipe],
        measures=["total_variation(A*B)", "exposed(A*B)"],
        out=tmp_path / "study",
        allow_contradictions=True,
    )
    assert study.frame()["total_variation(A*B)"].to_list() == pytest.approx([expected], rel=1e-12)
    percents = qd.before_after(taken, plan, variables=["A"]).percents()
    assert percents["before"].sum() == pytest.approx(100, rel=1e-12)
    assert all(np.isfinite(qd.score(taken, plan, ADDRESSES)[address]) for address in ADDRESSES)


def test_ticks_beyond_what_whole_numbers_hold_are_refused() -> None:
    with pytest.raises(InputError, match="more ticks than whole numbers hold"):
        Ticks(np.full(4, 2**61, dtype=np.int64), 1.0, exact=True)
