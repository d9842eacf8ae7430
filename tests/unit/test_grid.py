"""Grids: every combination once, lazily, with secret or given seeds."""

from __future__ import annotations

import sys

import pytest

import quadrille as qd
from quadrille.errors import QuadrilleError


def test_a_grid_is_every_combination_times_the_seeds() -> None:
    grid = qd.grid(qd.RandomSwap, swap=[["Edu"], ["Race", "Sex"]], pairs=[244, 488], same=["Age"], seed=range(3))
    recipes = list(grid)
    assert len(recipes) == len(grid) == 12
    assert len({recipe.to_json() for recipe in recipes}) == 12
    assert {recipe.swap for recipe in recipes} == {("Edu",), ("Race", "Sex")}
    assert {recipe.same for recipe in recipes} == {("Age",)}


def test_seeds_are_secret_unless_given_and_the_same_for_every_design() -> None:
    recipes = list(qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"]], rate=0.1, seeds=5))
    seeds = {recipe.seed for recipe in recipes}
    assert len(seeds) == 5
    assert all(len(seed) == 64 for seed in seeds)
    assert len({bytes(recipe.stream().words(8)) for recipe in recipes}) == 10


def test_combinations_in_which_a_column_has_two_parts_are_left_out() -> None:
    recipes = list(qd.grid(qd.RandomSwap, swap=[["Edu"], ["Sex"]], same=[[], ["Sex"]], rate=0.1, seed=1))
    assert [(recipe.swap, recipe.same) for recipe in recipes] == [(("Edu",), ()), (("Edu",), ("Sex",)), (("Sex",), ())]


def test_a_grid_of_a_million_candidates_takes_no_memory_to_speak_of() -> None:
    grid = qd.grid(qd.RandomSwap, swap=[["Edu"]], pairs=range(1, 1001), seed=range(1000))
    assert len(grid) == 10**6
    assert sum(sys.getsizeof(each) for each in (grid.axes, grid.seeds)) < 20_000
    assert next(iter(grid)).pairs == 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"swap": [["Edu"]], "rate": [0.1, 1.5]}, "'rate' parameter"),
        ({"swop": [["Edu"]], "rate": 0.1}, "Did you mean: 'swap'"),
        ({"swap": [["Edu"]], "rate": []}, "one value or more"),
        ({"swap": [["Edu"]], "rate": 0.1, "seeds": 0}, "'seeds' parameter"),
        ({"swap": [["Edu"]], "rate": 0.1, "seeds": 2, "seed": 1}, "not both"),
        ({"swap": [["Edu"]], "rate": 0.1, "seed": []}, "one seed or more"),
        ({"swap": [["Edu"]], "rate": 0.1, "same": ["Edu"]}, "no candidate"),
    ],
)
def test_a_grid_that_makes_no_sense_is_refused(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(QuadrilleError, match=message):
        list(qd.grid(qd.RandomSwap, **parameters))  # type: ignore[arg-type]
