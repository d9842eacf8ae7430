"""Moves over cubes: which tables notice them, and from the counts of a new table to the fewest records."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quadrille as qd
from effort import examples
from exact_strategies import both
from oracles import records
from quadrille.kernels.designed import cubes as kernel
from quadrille.kernels.designed.neighbours import CHI_SQUARE, HELLINGER, TOTAL_VARIATION, raw_loss
from quadrille.randomness import Stream
from quadrille.swap.designed import lattice
from quadrille.swap.designed.lattice import CubeProblem, Realisation, cube_problem, smallest_missing
from quadrille.swap.designed.search import cell_losses, room_for_cube
from strategies import file_of, numbers

SIZES = (2, 3, 3, 2, 2)


def dense_file(records_per_cell: int = 4) -> qd.Data:
    """Every combination of five variables, as often."""
    cells = np.indices(SIZES).reshape(len(SIZES), -1)
    return file_of(**{name: np.repeat(codes, records_per_cell) for name, codes in zip("ABCDE", cells, strict=True)})


def table(counts: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    return counts.sum(axis=tuple(a for a in range(counts.ndim) if a not in axes))


@pytest.mark.parametrize(
    "blocks", [[[0], [1]], [[0, 1], [2]], [[0], [1], [2]], [[0, 4], [1, 3], [2]], [[0], [1], [2], [3]]]
)
def test_a_move_changes_the_tables_that_meet_every_block_and_no_other(blocks: list[list[int]]) -> None:
    problem = cube_problem(qd.DesignedSwap(keep=f"{len(blocks) - 1}-way", n=2, seed=1), dense_file())
    cubes, cube, m = problem.cubes, room_for_cube(problem.cubes), np.int64(len(blocks))
    kernel._clear(m, cube, cubes)
    for j, axes in enumerate(blocks):
        for a in axes:
            kernel._set_block(np.int64(j), np.int64(a), np.int64(0), np.int64(1), cube, cubes)
    assert cubes.levels[0].tolist() == [0] * len(SIZES)
    assert kernel._fits(np.int64(0), m, np.int64(1), cube, cubes)
    kernel._make(m, np.int64(1), cube, cubes)
    change = (cubes.cells["count"] - cubes.cells["before"]).reshape(SIZES[::-1]).T  # the first axis runs fastest
    assert np.abs(change).sum() == 2**m == cubes.progress[1]
    for size in range(1, len(SIZES) + 1):
        for axes in combinations(range(len(SIZES)), size):
            meets_all = all(set(block) & set(axes) for block in blocks)
            assert bool(table(change, axes).any()) == meets_all


@pytest.mark.parametrize(("keep", "admitted"), [("1-way", True), ("2-way", False), ("A*B", False), ("A*C", True)])
def test_a_move_is_admitted_where_every_kept_table_misses_a_block(keep: str, *, admitted: bool) -> None:
    problem = cube_problem(qd.DesignedSwap(keep=keep, n=2, seed=1), dense_file())
    cube = room_for_cube(problem.cubes)
    kernel._set_block(np.int64(0), np.int64(0), np.int64(0), np.int64(1), cube, problem.cubes)
    kernel._set_block(np.int64(1), np.int64(1), np.int64(0), np.int64(1), cube, problem.cubes)
    assert kernel._admitted(np.int64(2), cube, problem.cubes) == admitted


@given(st.lists(st.sets(st.integers(0, 5), min_size=1, max_size=5), min_size=1, max_size=8))
def test_the_smallest_missing_sets_are_those_of_a_plain_search(tables: list[set[int]]) -> None:
    def contained(axes: tuple[int, ...]) -> bool:
        return len(axes) == 1 or any(set(axes) <= kept for kept in tables)

    every = [axes for size in range(1, 7) for axes in combinations(range(6), size)]
    expected = [
        axes
        for axes in every
        if not contained(axes) and all(contained(part) for part in combinations(axes, len(axes) - 1))
    ]
    assert smallest_missing([sum(1 << a for a in kept) for kept in tables], range(6)) == expected


def test_many_variables_have_their_smallest_missing_sets_in_a_moment() -> None:
    tables = [sum(1 << a for a in axes) for axes in combinations(range(62), 2)]
    assert len(smallest_missing(tables, range(62))) == 62 * 61 * 60 // 6
    logit = [sum(1 << a for a in range(61)), *((1 << a) | (1 << 61) for a in range(61))]
    assert len(smallest_missing(logit, range(62))) == 61 * 60 // 2


@pytest.mark.parametrize("kind", [HELLINGER, TOTAL_VARIATION, CHI_SQUARE])
def test_the_loss_of_cells_is_that_of_the_search(kind: int) -> None:
    before, after = (side.ravel() for side in np.meshgrid(np.arange(6), np.arange(6)))
    one_by_one = [raw_loss(kind, float(f), float(g), 100.0) for f, g in zip(before, after, strict=True)]
    assert cell_losses(kind, before, after, 100).tolist() == one_by_one


@examples(36)
@given(st.integers(0, 2**32 - 1), st.sampled_from([None, ["A"], ["A", "B"]]), st.booleans())
def test_any_table_with_the_same_kept_margins_is_made_by_the_fewest_records(
    number: int, swap: list[str] | None, weighted: bool
) -> None:
    random = np.random.default_rng(number)
    n = int(random.integers(200, 400))
    codes = {name: random.integers(0, size, n) for name, size in zip("ABCD", (2, 3, 4, 2), strict=True)}
    data = file_of(random.lognormal(0, 0.5, n) if weighted else None, **codes)
    shuffled = {name: random.permutation(codes[name]) if name in (swap or "ABCD") else codes[name] for name in codes}
    recipe = qd.DesignedSwap(swap or (), keep="1-way", n=2, new_cells=True, seed=number)
    problem = cube_problem(recipe, data)
    moves = Realisation(recipe, problem).moves(filled(problem, shuffled), Stream.of(number, "test"))
    after = qd.Plan(moves, data=data).apply(data)
    wanted = file_of(data["w"].values if weighted else None, **shuffled)
    assert Counter(records(after, "ABCD")) == Counter(records(wanted, "ABCD"))
    f, g = both(data, wanted, "ABCD")
    assert len(qd.Plan(moves, data=data).rows) == np.abs(g - f).sum() // 2


def filled(problem: CubeProblem, codes: dict[str, np.ndarray]) -> kernel.Cubes:
    """The cells of a problem with the counts of other records."""
    cubes = problem.cubes._replace(cells=problem.cubes.cells.copy(), progress=problem.cubes.progress.copy())
    cubes.cells["count"] = 0
    for levels in zip(*(codes[axis.seen[0]].tolist() for axis in problem.axes), strict=True):
        key = int(np.dot(levels, cubes.strides))
        cell = int(kernel.find(key, cubes))
        if cell < 0:
            cell = int(cubes.progress[0])
            cubes.progress[0] += 1
            cubes.cells["key"][cell] = key
            kernel._put(np.int64(key), np.int64(cell), cubes)
        cubes.cells["count"][cell] += 1
    return cubes


def test_many_records_are_matched_in_steps_with_few_values_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe, data = qd.DesignedSwap(seed=3, effort=0.05), qd.datasets.cps8d()
    at_once = recipe.plan(data)
    monkeypatch.setattr("quadrille.swap.designed.lattice._MATCHED", 50)
    in_steps = recipe.prepare(data).draw(recipe.stream())
    values = [plan.details.facts["values_moved"] for plan in (at_once, in_steps)]
    assert len(at_once.rows) == len(in_steps.rows)
    assert values[0] <= values[1] <= 1.2 * values[0]


@pytest.mark.parametrize("parameters", [{}, {"new_cells": True}, {"keep": "1-way", "coin": 0.5}])
def test_hashed_keys_and_listed_ones_give_the_same_plan(
    parameters: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, data = qd.DesignedSwap(**parameters, seed=5, effort=0.01), qd.datasets.cps8d()
    listed = recipe.plan(data)
    monkeypatch.setattr(lattice, "LISTED_KEYS", 0)
    monkeypatch.setattr(lattice, "LISTED_PER_CELL", 0)
    assert len(cube_problem(recipe, data).cubes.keys)
    assert recipe.prepare(data).draw(recipe.stream()) == listed


def test_records_that_weigh_the_same_leave_weighted_tables_as_they_were() -> None:
    random = np.random.default_rng(1)
    data = file_of(np.full(800, 2.5), **{name: random.integers(0, 3, 800) ** 2 % 5 for name in "ABCD"})
    plan = qd.DesignedSwap(n=5, seed=1, effort=0.01).plan(data)
    assert len(plan.rows) and plan.details.facts["weighted_change"] == 0.0


def test_records_near_the_median_weight_move() -> None:
    data = qd.datasets.cps8d()
    weight = numbers("w", np.random.default_rng(1).lognormal(-0.125, 0.5, data.n), role="weight")
    weighted = qd.Data([*(data[name] for name in data.columns), weight])
    plan = qd.DesignedSwap(seed=7, effort=0.2).plan(weighted)
    moved = np.abs(weight.values[plan.rows] - np.median(weight.values))
    assert moved.mean() < 0.6 * np.abs(weight.values - np.median(weight.values)).mean()
    assert plan.details.facts["weighted_change"] < 15
