"""Fair draws of a private swap: every permutation at its chance, the kernel against a plain twin, blocks of words."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

import quadrille as qd
from effort import examples, tries
from private_oracle import permutations_by_moved, weights
from quadrille import kernels
from quadrille.randomness import Stream
from quadrille.swap.permutation import deranged
from quadrille.swap.private import WORDS
from strategies import file_of

DRAWS = tries(3_000, nightly=100_000)
STRATA = 100_000


def check_frequencies(found: Counter[tuple[int, ...]], draws: int, chance: float) -> None:
    """Fixed seeds: each frequency within 4 standard errors, all of them together at p > 1e-3."""
    weight = weights(4, Fraction(round(chance * WORDS), WORDS))
    expected = {g: float(weight[moved]) * draws for g, moved in permutations_by_moved(4) if moved != 1}
    assert set(found) == set(expected) and len(expected) == 24
    assert sum(expected.values()) == pytest.approx(draws)
    counts, means = (np.array([table[g] for g in expected], dtype=float) for table in (found, expected))
    assert (np.abs(counts - means) < 4 * np.sqrt(means)).all()
    assert chisquare(counts, means).pvalue > 1e-3


@pytest.mark.parametrize("chance", [0.5, 0.6])
def test_every_permutation_of_four_records_has_its_chance_over_seeds(chance: float) -> None:
    data, recipe = file_of(A=[0, 1, 2, 3], B=[0, 1, 2, 3]), qd.PrivateSwap("A", chance=chance, seed=0)
    drawer, found = recipe.prepared(data), Counter[tuple[int, ...]]()
    for seed in range(DRAWS):
        rows = np.arange(4)
        for move in drawer.draw(Stream.of(seed, "permutations of four")).moves:
            rows[move.given[0]] = move.given[1]
        found[tuple(rows.tolist())] += 1
    check_frequencies(found, DRAWS, chance)


@pytest.mark.parametrize("chance", [0.3, 0.6])
def test_every_permutation_of_four_records_has_its_chance_over_the_strata_of_one_draw(chance: float) -> None:
    row = np.arange(4 * STRATA)
    data = file_of(A=row % 4, B=row % 4, C=row // 4)
    source = row.copy()
    for move in qd.PrivateSwap("A", within=["C"], chance=chance, seed=1).plan(data).moves:
        source[move.given[0]] = move.given[1]
    places, times = np.unique(source.reshape(-1, 4) - 4 * np.arange(STRATA)[:, None], axis=0, return_counts=True)
    found = Counter(dict(zip(map(tuple, places.tolist()), times.tolist(), strict=True)))
    check_frequencies(found, STRATA, chance)


def plain(words: list[int], sizes: list[int], thresholds: list[int]) -> tuple[list[int], list[int], int]:
    """Select as the method says it; return places, numbers by stratum that has any, and the words that it took."""
    chosen, numbers, at, start = list[int](), list[int](), 0, 0
    for size, threshold in zip(sizes, thresholds, strict=True):
        while True:
            inside = [start + i for i in range(size) if words[at + i] < threshold]
            at += size
            if len(inside) != 1:
                break
        chosen += inside
        numbers += [len(inside)] if inside else []
        start += size
    return chosen, numbers, at


@given(
    sizes=st.lists(st.integers(2, 9), min_size=1, max_size=12),
    chance=st.floats(0.02, 0.98),
    block=st.integers(1, 40),
    seed=st.integers(0, 2**32),
)
@examples(36)
def test_the_kernel_selects_as_its_plain_twin_whatever_the_blocks(
    sizes: list[int], chance: float, block: int, seed: int
) -> None:
    stream, thresholds = Stream.of(seed, "twin"), [int(chance * WORDS)] * len(sizes)
    known = plain(stream.words(100_000).tolist(), sizes, thresholds)
    start = np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.int64)
    state, chosen, count = np.zeros(5, np.int64), np.empty(200, np.int64), np.empty(50, np.int64)
    used = 0
    for words in stream.blocks(block):
        kernels.select(words, start, np.array(sizes), np.array(thresholds), state, chosen, count)
        used += 1
        if state[0] == len(sizes):
            break
    assert (chosen[: state[3]].tolist(), count[: state[4]].tolist()) == known[:2]
    assert (used - 1) * block < known[2] <= used * block


@given(block=st.integers(1, 999), seed=st.integers(0, 2**32))
@examples(20)
def test_blocks_of_a_stream_are_the_stream(block: int, seed: int) -> None:
    stream = Stream.of(seed, "blocks")
    read = np.concatenate(list(islice(stream.blocks(block), 5)))
    assert (read == stream.words(5 * block)).all()


def test_a_file_of_many_blocks_is_drawn_as_its_plain_twin() -> None:
    n = 300_000
    data = file_of(A=np.arange(n) % 7, B=np.arange(n) % 5, C=(np.arange(n) * 7919) % n < n // 3)
    recipe = qd.PrivateSwap("A", within=["C"], chance=0.4, seed=11)
    (move,) = recipe.plan(data).moves
    strata = recipe.strata(data)
    order = np.argsort(strata.of, kind="stable")
    stream = recipe.stream()
    words = stream.sub("select").words(4 * n).tolist()
    chosen, numbers, _ = plain(words, strata.n.tolist(), strata.threshold.tolist())
    rows = order[chosen]
    places = deranged(np.array(numbers), stream.sub("cycles"))
    assert (move.given[0] == rows).all() and (move.given[1] == rows[places]).all()
