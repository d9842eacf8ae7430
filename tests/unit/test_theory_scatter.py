"""How pairs between levels scatter: the linearised walk agrees with all sequences of small files, and with draws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quadrille as qd
from quadrille.theory import correct
from quadrille.theory.expected import (
    _slopes,
    chances,
    pair_scatter,  # pyright: ignore[reportPrivateUsage]
)

SAMPLERS = ["first-uniform", "pair-uniform"]


def next_pair(left: tuple[int, ...], sampler: str) -> dict[tuple[int, int], float]:
    """The chance of every two levels for the next pair, written out."""
    total, found = sum(left), {}
    every = sum(x * (total - x) for x in left)
    for a in range(len(left)):
        for b in range(a + 1, len(left)):
            x, y = left[a], left[b]
            first = x / total * y / max(total - x, 1) + y / total * x / max(total - y, 1)
            found[a, b] = first if sampler == "first-uniform" else 2 * x * y / every
    return found


def enumerated(counts: tuple[int, ...], pairs: int, sampler: str, gain: np.ndarray) -> np.ndarray:
    """The covariances of y over all sequences of pairs, each with its chance."""
    states = {(counts, (0.0,) * len(counts)): 1.0}
    for _ in range(pairs):
        after: dict[tuple[tuple[int, ...], tuple[float, ...]], float] = {}
        for (left, y), chance in states.items():
            for (a, b), step in next_pair(left, sampler).items():
                if step:
                    fewer, sums = list(left), list(y)
                    fewer[a], fewer[b] = fewer[a] - 1, fewer[b] - 1
                    sums[a], sums[b] = sums[a] + gain[a, b], sums[b] - gain[a, b]
                    key = tuple(fewer), tuple(np.round(sums, 9).tolist())
                    after[key] = after.get(key, 0.0) + chance * step
        states = after
    y, weight = np.array([key[1] for key in states]), np.array(list(states.values()))
    mean = weight @ y
    return (y - mean).T @ ((y - mean) * weight[:, None])


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_first_pair_scatters_exactly_as_enumerated(sampler: str) -> None:
    gain = np.array([[0.0, 1.0, -2.0], [-1.0, 0.0, 0.5], [2.0, -0.5, 0.0]])
    counts = (7, 4, 9)
    got = pair_scatter(np.array(counts, dtype=float), 1, sampler, gain)
    assert got == pytest.approx(enumerated(counts, 1, sampler, gain), abs=1e-12)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_several_pairs_scatter_as_enumerated_to_the_order_of_one_record(sampler: str) -> None:
    gain = np.array([[0.0, 1.0, -2.0], [-1.0, 0.0, 0.5], [2.0, -0.5, 0.0]])
    counts = (30, 18, 40)
    got = pair_scatter(np.array(counts, dtype=float), 12, sampler, gain)
    assert got == pytest.approx(enumerated(counts, 12, sampler, gain), rel=0.01, abs=0.01)


@given(st.lists(st.integers(5, 60), min_size=3, max_size=5), st.sampled_from(SAMPLERS), st.integers(0, 9))
def test_slopes_are_derivatives_of_the_chances(counts: list[int], sampler: str, seed: int) -> None:
    x = np.array(counts, dtype=float)
    gain = np.random.default_rng(seed).normal(size=(len(x), len(x)))
    gain -= gain.T
    apart = ~np.eye(len(x), dtype=bool)
    step = 1e-4
    near = [
        (gain * (chances(x + e, apart, sampler) - chances(x - e, apart, sampler))).sum(axis=1) / (2 * step)
        for e in step * np.eye(len(x))
    ]
    assert _slopes(x, sampler, gain) == pytest.approx(np.array(near).T, abs=1e-8)


@pytest.mark.parametrize(("sampler", "rate"), [("first-uniform", 0.3), ("pair-uniform", 0.1)])
def test_stated_errors_of_true_swaps_of_three_levels_are_those_of_draws(
    cps8d: qd.Data, sampler: str, rate: float
) -> None:
    """400 draws: a standard deviation is known to 1/sqrt(800) = 3.5 %, and must agree within 3.5 such errors."""
    age, status = (cps8d[name].values.astype(int) for name in ("Age", "MS"))
    truth = np.bincount(status * 3 + age, minlength=6)
    swapped = []
    for seed in range(400):
        recipe = qd.RandomSwap(["Age"], rate=rate, sampler=sampler, seed=1000 + seed)
        rows, source = recipe.plan(cps8d).moves[0].given
        new, old = (np.bincount(status[rows] * 3 + age[each], minlength=6) for each in (source, rows))
        swapped.append((truth + new - old).reshape(2, 3))
    recipe = qd.RandomSwap(["Age"], rate=rate, sampler=sampler)
    few = [correct(table, recipe=recipe) for table in swapped[:10]]
    # The correction is linear and the totals of the levels do not change, so its matrix is the same for every draw.
    back = np.linalg.lstsq(np.concatenate(swapped[:10]), np.concatenate([each.table for each in few]), rcond=None)[0]
    found = np.array(swapped) @ back
    assert found[:10] == pytest.approx(np.array([each.table for each in few]))
    stated = np.sqrt(np.mean([each.se**2 for each in few], axis=0))
    assert stated / np.std(found, axis=0, ddof=1) == pytest.approx(1, abs=3.5 / 800**0.5)
