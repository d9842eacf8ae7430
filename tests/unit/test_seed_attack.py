"""Whoever guesses the seed: with the order of the rows drawn from it a file fell from itself alone; now it stands.

The intruder knows the recipe but for the seed, and nothing else. For every number he draws the plan, which depends on
the number of records only, undoes it, and looks whether the association of two variables comes back.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import quadrille as qd
from quadrille.recipe import random_order
from quadrille.release.release import GuessableSeedWarning

RIGHT, SEEDS = 77, range(256)
ORIGINAL = 6016.8
"""Pearson's chi-square of AnnSal by Edu in CPS-8d."""


def recipe(seed: int | None) -> qd.PermutationSwap:
    return qd.PermutationSwap(["AnnSal"], rate=0.10, seed=seed)


def chi_square(salary: np.ndarray, education: np.ndarray) -> float:
    table = np.zeros((int(salary.max()) + 1, int(education.max()) + 1))
    np.add.at(table, (salary, education), 1)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    return float(((table - expected) ** 2 / expected).sum())


def codes(data: qd.Data) -> tuple[np.ndarray, np.ndarray]:
    return data["AnnSal"].values.astype(np.int64), data["Edu"].values.astype(np.int64)


def order_of_the_seed(n: int, seed: int) -> np.ndarray:
    """The order that the public rows had when it was drawn from the seed."""
    return random_order(n, recipe(seed).stream().sub("public order"))


@cache
def drawn(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """What a number gives an intruder: the rows and the sources of its plan."""
    (move,) = recipe(seed).plan(qd.datasets.cps8d()).moves
    return move.rows, move.source


def undone(salary: np.ndarray, education: np.ndarray, seed: int, *, ordered: bool) -> tuple[np.ndarray, np.ndarray]:
    """Undo the order, where it is thought to come from the seed, and then the plan."""
    rows, source = drawn(seed)
    if ordered:
        place = np.argsort(order_of_the_seed(len(salary), seed))
        salary, education = salary[place], education[place]
    back = salary.copy()
    back[source] = salary[rows]
    return back, education


def tried(public: tuple[np.ndarray, np.ndarray], *, ordered: bool) -> np.ndarray:
    return np.array([chi_square(*undone(*public, seed, ordered=ordered)) for seed in SEEDS])


def released(data: qd.Data, made: qd.Recipe, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    files = qd.release(data, made, folder / "out", measures=[], insecure=True).public
    return codes(qd.read(files / "data.csv", codebook=files / "codebook.toml"))


def test_with_the_order_of_the_seed_the_file_was_restored_from_itself_alone(cps8d: qd.Data) -> None:
    swapped = codes(recipe(RIGHT).plan(cps8d).apply(cps8d))
    order = order_of_the_seed(cps8d.n, RIGHT)
    public = (swapped[0][order], swapped[1][order])
    found = tried(public, ordered=True)
    others = np.delete(found, RIGHT)
    assert found[RIGHT] == pytest.approx(ORIGINAL, abs=0.05)
    assert (found[RIGHT] - others.mean()) / others.std() > 25
    assert np.array_equal(undone(*public, RIGHT, ordered=True), codes(cps8d)), "every record"


@pytest.mark.parametrize("ordered", [True, False])
def test_with_a_fresh_order_the_right_number_looks_like_any_other(
    ordered: bool, cps8d: qd.Data, tmp_path: Path
) -> None:
    with pytest.warns(GuessableSeedWarning):
        public = released(cps8d, recipe(RIGHT), tmp_path)
    found = tried(public, ordered=ordered)
    assert found.max() < chi_square(*public)
    # The order is drawn afresh, so the number that is right has a place by chance; beyond 7 standard deviations: 1e-12.
    assert abs(found[RIGHT] - found.mean()) < 7 * found.std()


def test_with_a_secret_seed_no_number_brings_the_association_back(cps8d: qd.Data, tmp_path: Path) -> None:
    public = released(cps8d, recipe(None), tmp_path)
    assert chi_square(*public) < ORIGINAL
    for ordered in (True, False):
        assert tried(public, ordered=ordered).max() < chi_square(*public)
