"""Laws of the simulator: what every replicate keeps, the metrics against numpy, and independence of how it is run."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from effort import examples
from quadrille import kernels
from quadrille.kernels.count_space import two_different
from quadrille.randomness import Stream
from quadrille.simulation import COUNTS, METRICS, Mechanism, Swapping, simulate, table_before

Table = NDArray[np.int64]
MECHANISMS: tuple[Mechanism, ...] = ("records", "cells")


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """A table of 2-6 areas, none empty, by 2-4 levels, two or more of them with a record; many cells are empty."""
    areas, levels = draw(st.integers(2, 6)), draw(st.integers(2, 4))
    counts = st.sampled_from([0, 0, 0, 1, 1, 2, 3, 7, 40])
    table = np.array(draw(st.lists(counts, min_size=areas * levels, max_size=areas * levels))).reshape(areas, levels)
    table[:, 0] += table.sum(axis=1) == 0
    table[0, 0] += not table[:, 0].any()
    table[0, 1] += not table[:, 1:].any()
    return table.astype(np.int64)


def metrics(before: Table, after: Table) -> dict[str, float]:
    """The six metrics and the cells filled anew, by numpy from their definitions."""
    f, g = before.astype(float), after.astype(float)
    r, s = (each / f.sum(axis=1, keepdims=True) for each in (f, g))
    kept = f > 0

    def plogp(p: NDArray[np.float64]) -> float:
        return float((p * np.log(np.where(p > 0, p, 1))).sum())

    return {
        "chi_square": ((g - f)[kept] ** 2 / f[kept]).sum(),
        "effective_swap_rate": np.abs(g - f).sum() / 2 / f.sum(),
        "deviance": 2 * (g[kept] * np.log(np.where(g[kept] > 0, g[kept], f[kept]) / f[kept])).sum(),
        "gini_difference": (s**2).sum() - (r**2).sum(),
        "shannon_difference": plogp(s) - plogp(r),
        "renyi_difference": (np.log((s**3).sum()) - np.log((r**3).sum())) / 2,
        "zero_cells": ((f == 0) & (g > 0)).sum(),
    }


def most_pairs(table: Table) -> int:
    return int(min(table.sum() // 2, table.sum() - table.sum(axis=1).max()))


@given(tables(), st.integers(0, 10**6), st.floats(0, 1), st.sampled_from(MECHANISMS))
def test_every_replicate_keeps_both_margins_and_has_the_metrics_of_its_tables(
    before: Table, seed: int, part: float, mechanism: Mechanism
) -> None:
    pairs = max(1, round(part * most_pairs(before)))
    swapping, stream = Swapping(before, pairs, mechanism), Stream.of(seed, "law")
    after, redrawn = swapping.draw(stream)
    assert after.min() >= 0
    assert redrawn >= 0
    assert (after.sum(axis=0) == before.sum(axis=0)).all()
    assert (after.sum(axis=1) == before.sum(axis=1)).all()
    assert np.abs(after - before).sum() <= 4 * pairs
    expected = [*metrics(before, after).values(), redrawn]
    assert swapping.replicate(stream) == pytest.approx(expected, rel=1e-9, abs=1e-11)


@given(tables(), st.integers(0, 10**6))
def test_the_largest_possible_number_of_pairs_is_reached_through_dead_ends(before: Table, seed: int) -> None:
    swapping = Swapping(before, most_pairs(before), "records")
    dice = kernels.dice(Stream.of(seed, "law").words(20_000))
    after = before.ravel().copy()
    drawn, _ = kernels.swap_records(swapping._urn, most_pairs(before) + 3, after, dice)
    assert not dice.cursor[1]
    assert drawn == most_pairs(before)


@given(tables(), st.integers(0, 10**6), st.sampled_from(MECHANISMS))
def test_a_draw_does_not_depend_on_how_many_words_are_asked_for_first(
    before: Table, seed: int, mechanism: Mechanism
) -> None:
    one, other = (Swapping(before, max(1, most_pairs(before) // 2), mechanism) for _ in range(2))
    other._words = 9_000
    stream = Stream.of(seed, "law")
    assert (one.draw(stream)[0] == other.draw(stream)[0]).all()
    assert (one.draw(stream)[0] == other.draw(stream)[0]).all()


@given(st.integers(2, 46_340), st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=9))
def test_two_different_numbers_come_from_words_as_with_exact_arithmetic(n: int, words: list[int]) -> None:
    ordered = n * (n - 1)
    kept = [word * ordered >> 32 for word in words if word * ordered % 2**32 >= 2**32 % ordered]
    expected = [(v // (n - 1), v % (n - 1) + (v % (n - 1) >= v // (n - 1))) for v in kept]
    dice = kernels.dice(np.array(words, dtype=np.uint32))
    assert [two_different(n, dice) for _ in kept] == expected
    two_different(n, dice)
    assert dice.cursor[1] == 1


@examples(10)
@given(
    st.lists(st.integers(30, 90), min_size=2, max_size=5),
    st.lists(st.floats(0.1, 1), min_size=2, max_size=4),
    st.sampled_from(MECHANISMS),
    st.integers(0, 10**6),
)
def test_rows_are_the_same_for_any_number_of_workers_and_replicates(
    areas: list[int], shares: list[float], mechanism: Mechanism, seed: int
) -> None:
    def run(replicates: int, workers: int) -> list[tuple[object, ...]]:
        frame = simulate(
            areas, shares, rate=0.1, mechanism=mechanism, replicates=replicates, seed=seed, workers=workers
        )
        assert frame.columns == [*METRICS, *COUNTS]
        return frame.rows()

    rows = run(150, 3)
    assert rows == run(150, 1)
    assert rows[:7] == run(7, 1)
    assert len(set(rows)) > 1


@given(st.lists(st.integers(1, 10**6), min_size=2, max_size=6), st.lists(st.integers(1, 9), min_size=2, max_size=6))
def test_the_table_before_is_within_one_record_of_the_shares_and_keeps_the_areas(
    areas: list[int], shares: list[int]
) -> None:
    table = table_before(areas, shares)
    exact = np.outer(areas, np.array(shares) / sum(shares))
    assert table.sum(axis=1).tolist() == areas
    assert np.abs(table - exact).max() < 1
    rest = exact - np.floor(exact)
    for row, up in zip(rest, table > np.floor(exact), strict=True):
        if up.any() and not up.all():
            assert row[up].min() >= row[~up].max() - 1e-6
