"""Fair permutations: each kind against all permutations of small files, the kernels against plain twins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations, pairwise, permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

import quadrille as qd
from effort import examples
from quadrille import kernels
from quadrille.data import Data
from quadrille.randomness import Stream
from strategies import file_of

DRAWS = 8_000
Moves = frozenset[tuple[int, int]]
"""A permutation as (row, source) of the records that move."""


def derangements(rows: tuple[int, ...], k: int) -> Iterator[Moves]:
    for chosen in combinations(rows, k):
        for source in permutations(chosen):
            if all(a != b for a, b in zip(chosen, source, strict=True)):
                yield frozenset(zip(chosen, source, strict=True))


def pairings(rows: tuple[int, ...], k: int) -> Iterator[Moves]:
    """All permutations of k rows that are their own inverse and leave none in its place."""
    for moves in derangements(rows, k):
        if all((b, a) in moves for a, b in moves):
            yield moves


def crossings(first: tuple[int, ...], second: tuple[int, ...], k: int) -> Iterator[Moves]:
    for some, others in product(combinations(first, k // 2), permutations(second, k // 2)):
        yield frozenset(zip(some, others, strict=True)) | frozenset(zip(others, some, strict=True))


def together(*classes: Iterator[Moves]) -> set[Moves]:
    return {frozenset().union(*each) for each in product(*map(list, classes))}


N = range(7)
SEVEN = file_of(A=[*N], C=[0, 1, 0, 1, 1, 0, 1], G=[0, 0, 1, 1, 1, 0, 1])
NINE = file_of(A=[*range(9)], C=[0, 0, 0, 0, 1, 1, 1, 1, 1], G=[0, 1, 0, 1, 0, 1, 0, 1, 1])
FIRST, SECOND = (0, 1, 2, 3), (4, 5, 6, 7, 8)

FAIR = {
    "cycles, 4 of 7": (SEVEN, {"kind": "cycles", "records": 4}, together(derangements((*N,), 4))),
    "cycles, 2 of 7": (SEVEN, {"kind": "cycles", "records": 2}, together(derangements((*N,), 2))),
    "cycles, 3 of 4": (file_of(A=[*range(4)]), {"kind": "cycles", "records": 3}, together(derangements(FIRST, 3))),
    "cycles, all 5": (file_of(A=[*range(5)]), {"kind": "cycles", "rate": 1}, together(derangements((*FIRST, 4), 5))),
    "cycles, in classes": (
        NINE, {"kind": "cycles", "rate": 0.6, "within": ["C"]},
        together(derangements(FIRST, 2), derangements(SECOND, 3)),
    ),
    "pairs, 4 of 7": (SEVEN, {"records": 4}, together(pairings((*N,), 4))),
    "pairs, 2 of 7": (SEVEN, {"records": 2}, together(pairings((*N,), 2))),
    "pairs, 6 of 7": (SEVEN, {"rate": 1}, together(pairings((*N,), 6))),
    "pairs, in classes": (
        NINE, {"rate": 0.6, "within": ["C"]}, together(pairings(FIRST, 2), pairings(SECOND, 4)),
    ),
    "across, 4 of 7": (
        SEVEN, {"kind": "across", "groups": "G", "records": 4}, together(crossings((0, 1, 5), (2, 3, 4, 6), 4)),
    ),
    "across, in classes": (
        NINE, {"kind": "across", "groups": "G", "rate": 0.7, "within": ["C"]},
        together(crossings((0, 2), (1, 3), 2), crossings((4, 6), (5, 7, 8), 4)),
    ),
}  # fmt: skip


def drawn(recipe: qd.PermutationSwap, data: Data) -> Counter[Moves]:
    drawer = recipe.prepared(data)
    plans = (drawer.draw(Stream.of(seed, recipe.design_json())) for seed in range(DRAWS))
    return Counter(
        frozenset(zip(plan.moves[0].given[0].tolist(), plan.moves[0].given[1].tolist(), strict=True)) for plan in plans
    )


@pytest.mark.parametrize("name", FAIR)
def test_every_permutation_of_its_kind_has_the_same_chance(name: str) -> None:
    data, options, possible = FAIR[name]
    found = drawn(qd.PermutationSwap("A", seed=0, **options), data)
    assert set(found) == possible
    counts = np.array([found[moves] for moves in possible])
    mean = DRAWS / len(possible)
    assert mean > 20
    # fixed seeds: each frequency within 4 standard errors, all of them together at p > 1e-3
    assert np.abs(counts - mean).max() < 4 * (mean * (1 - 1 / len(possible))) ** 0.5
    assert chisquare(counts).pvalue > 1e-3


def test_the_number_of_permutations_is_that_of_the_paper() -> None:
    assert len(FAIR["cycles, 4 of 7"][2]) == 315
    assert len(FAIR["pairs, 4 of 7"][2]) == 105


class TwinDice:
    """Uniform numbers from words in plain Python."""

    def __init__(self, words: list[int]) -> None:
        self.words = iter(words)

    def below(self, n: int) -> int:
        while True:
            product = next(self.words) * n
            if product % 2**32 >= 2**32 % n:
                return product >> 32


def twin_choose(blocks: list[list[int]], count: list[int], dice: TwinDice) -> list[int]:
    chosen = []
    for rows, k in zip(blocks, count, strict=True):
        left = list(rows)
        for i in range(k):
            j = i + dice.below(len(left) - i)
            left[i], left[j] = left[j], left[i]
        chosen += left[:k]
    return chosen


def twin_derange(count: list[int], dice: TwinDice) -> list[int]:
    places: list[int] = []
    for k in count:
        own = list(range(k))
        while any(place == i for i, place in enumerate(own)):
            for i in range(k - 1, -1, -1):
                j = dice.below(i + 1)
                own[i], own[j] = own[j], own[i]
                if own[i] == i:
                    break
        places += [len(places) + place for place in own]
    return places


sizes = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=5)


@examples(25)
@given(sizes, st.integers(0, 2**32))
def test_choosing_is_a_partial_shuffle_of_the_places_of_each_block(given: list, seed: int) -> None:
    count, size = [min(pair) for pair in given], [max(pair) for pair in given]
    words = Stream.of(seed, "choose").words(4096)
    start = np.concatenate(([0], np.cumsum(size))).astype(np.int64)
    chosen, dice = np.empty(sum(count), dtype=np.int64), kernels.dice(words)
    kernels.choose(start, np.array(count), dice, chosen)
    blocks = [list(range(a, b)) for a, b in pairwise(start)]
    assert chosen.tolist() == twin_choose(blocks, count, TwinDice(words.tolist()))
    short = kernels.dice(words[: dice.cursor[0] - 1])
    if sum(count):
        kernels.choose(start, np.array(count), short, chosen)
        assert short.cursor[1] == 1


@examples(25)
@given(st.lists(st.integers(0, 12).filter(lambda k: k != 1), min_size=1, max_size=5), st.integers(0, 2**32))
def test_deranging_shuffles_until_none_is_in_its_place(count: list[int], seed: int) -> None:
    words = Stream.of(seed, "derange").words(4096)
    places, dice = np.empty(sum(count), dtype=np.int64), kernels.dice(words)
    kernels.derange(places, np.array(count), dice)
    assert places.tolist() == twin_derange(count, TwinDice(words.tolist()))
    assert not dice.cursor[1]
    if sum(count):
        short = kernels.dice(words[: dice.cursor[0] - 1])
        kernels.derange(places, np.array(count), short)
        assert short.cursor[1] == 1
