"""Predicted measures against draws on CPS-8d. Prints the tables of docs/predicted-frontier.md.

Run: python -m bench.prediction [draws]
"""

from __future__ import annotations

import sys
from dataclasses import replace
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import quadrille as qd
from quadrille.score.evaluator import Evaluator
from quadrille.theory.prediction import predict

DRAWS = 50
PAIRS = (244, 488, 2442)
TWO = (("Age", "Edu"), ("Edu", "AvgHrs"), ("MS", "Race"), ("Sex", "AnnSal"))
FULL = ("hellinger", "total_variation", "entropy_change", "small_cells", "small_cells(n=5)", "exposed", "confidence")
MARGINS = ("hellinger(2-way)", "total_variation(2-way)", "cramers_v_change(2-way)", "hellinger(Age*Edu*Sex)")


class Group(NamedTuple):
    """Designs that share a line of the table."""

    name: str
    recipes: list[qd.Recipe]


class Compared(NamedTuple):
    """Relative errors of one measure over some designs, and the standard errors of the means of the draws."""

    error: NDArray[np.float64]
    noise: NDArray[np.float64]


def groups(data: qd.Data) -> list[Group]:
    """Return the designs, by kind."""
    alone = [(name,) for name in data.keys]
    found = [
        Group(f"{what}, {sampler}, {pairs:,} pairs", [_random(swap, pairs, sampler) for swap in swaps])
        for what, swaps in (("8 single", alone), ("4 of two", TWO))
        for sampler in ("first-uniform", "pair-uniform")
        for pairs in PAIRS
    ]
    same = [qd.RandomSwap([name], pairs=488, same=["Sex"], seed=0) for name in data.keys if name != "Sex"]
    found.append(Group("7 single, same Sex, 488 pairs", list(same)))
    for kind in ("pairs", "cycles"):
        listed = [qd.PermutationSwap([name], rate=0.05, kind=kind, seed=0) for name in data.keys]
        found.append(Group(f"8 permutations, {kind}, 5 %", list(listed)))
    inside = [qd.PermutationSwap([name], rate=0.05, within=["Sex"], seed=0) for name in data.keys if name != "Sex"]
    found.append(Group("7 permutations within Sex, 5 %", list(inside)))
    return found


def _random(swap: tuple[str, ...], pairs: int, sampler: str) -> qd.Recipe:
    return qd.RandomSwap(swap, pairs=pairs, sampler=sampler, seed=0)  # pyright: ignore[reportArgumentType]


def _seeded(recipe: qd.Recipe, seed: int) -> qd.Recipe:
    return replace(recipe, seed=seed)  # pyright: ignore[reportCallIssue]


def compare(data: qd.Data, recipes: list[qd.Recipe], measures: tuple[str, ...], draws: int) -> dict[str, Compared]:
    """Predict and draw every design; return the relative errors, one per design."""
    evaluator = Evaluator(data, measures)
    error, noise = np.empty((2, len(measures), len(recipes)))
    for place, recipe in enumerate(recipes):
        expected = predict(data, recipe, measures)
        drawer = recipe.prepare(data)
        scores = np.array(
            [evaluator.values(drawer.draw(_seeded(recipe, seed).stream()))[0] for seed in range(draws)], dtype=float
        )
        mean = scores.mean(axis=0)
        value = np.array([expected[address] for address in measures], dtype=float)
        scale = np.where(mean == 0, np.nan, np.abs(mean))  # a table without a swapped variable does not change
        error[:, place] = np.where(value == mean, 0.0, (value - mean) / scale)
        noise[:, place] = scores.std(axis=0, ddof=1) / np.sqrt(draws) / scale
    return {address: Compared(error[i], noise[i]) for i, address in enumerate(measures)}


def show(data: qd.Data, measures: tuple[str, ...], draws: int) -> None:
    """Print a table: designs down, measures across; largest error and largest noise in per cent."""
    print(f"| designs | {' | '.join(measures)} |")
    print(f"|---|{'---|' * len(measures)}")
    zs: list[NDArray[np.float64]] = []
    for group in groups(data):
        found = compare(data, group.recipes, measures, draws)
        cells = [f"{_largest(each.error)} ({100 * np.nanmax(each.noise):.1f})" for each in found.values()]
        print(f"| {group.name} | {' | '.join(cells)} |", flush=True)
        zs.append(np.array([each.error / each.noise for each in found.values()]))
    z = np.concatenate(zs, axis=1)
    print("| **mean of z²** | " + " | ".join(f"{value:.2f}" for value in np.nanmean(z**2, axis=1)) + " |")


def _largest(error: NDArray[np.float64]) -> str:
    return f"{100 * error[np.argmax(np.abs(error))]:+.1f}"


def main() -> None:
    """Print the accuracy and the cost."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else DRAWS
    data = qd.datasets.cps8d()
    print(f"Largest relative error of the prediction in per cent (largest standard error of the mean of {draws} draws)")
    for measures in (FULL, MARGINS):
        print()
        show(data, measures, draws)
    recipe = qd.RandomSwap(["Edu"], pairs=2442, seed=0)
    predict(data, recipe, FULL)
    begin = perf_counter()
    for _ in range(20):
        predict(data, recipe, ("small_cells", "hellinger"))
    print(f"\none design, two measures of the 8-way table: {(perf_counter() - begin) * 50:.0f} ms")


if __name__ == "__main__":
    main()
