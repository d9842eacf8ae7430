"""Private swaps of CPS-8d: the designs, the predicted losses and the frontier of the spec, and the corrected tables."""

from __future__ import annotations

import hashlib
from math import sqrt

import numpy as np
import pytest

import quadrille as qd
from quadrille.data import Data
from quadrille.score.evaluator import Evaluator
from quadrille.swap.private import moved
from quadrille.theory.cells import cells_of, levels_of
from quadrille.theory.prediction import least_of

DESIGNS = {
    ("AnnSal", "Sex", 0.01): (32_650, 14.99, 488, 0.0152),
    ("AnnSal", "Sex", 0.10): (32_650, 12.59, 4_884, 0.0532),
    ("AnnSal", "Sex", 0.50): (32_650, 10.39, 24_421, 0.1449),
    ("Edu", "MS*Race*Sex", 0.01): (18_245, 14.41, 488, 0.0131),
    ("Edu", "MS*Race*Sex", 0.05): (18_245, 12.76, 2_442, 0.0307),
    ("Edu", "MS*Race*Sex", 0.10): (18_245, 12.01, 4_884, 0.0454),
    ("Edu*MS", "Age*Sex", 0.05): (23_269, 13.00, 2_442, 0.0327),
}
"""Largest stratum, epsilon, records expected to move (one more in 488 where small strata move more), root mean
square of the loss."""
FRONTIER = {14: (0.0162, 0.0102), 12: (0.0456, 0.0303), 10: (0.1172, 0.0882), 8: (0.1863, 0.1627), 6: (0.2065, 0.1990)}


@pytest.fixture(scope="module")
def cps8d() -> Data:
    return qd.datasets.cps8d()


def swap(design: tuple[str, str, float]) -> qd.PrivateSwap:
    moved, within, chance = design
    return qd.PrivateSwap(moved.split("*"), within=within.split("*"), chance=chance, seed=0)


def root_mean_square(data: Data, recipe: qd.PrivateSwap) -> float:
    """The root of the expected square of hellinger; `predict` gives the mean of the root, which is a little smaller."""
    cells = cells_of(data, recipe, levels_of(data, recipe), tuple(data.keys))
    mean, _ = cells.expected(lambda f, g: (np.sqrt(f) - np.sqrt(g)) ** 2)
    return sqrt(mean / (2 * data.n))


@pytest.mark.parametrize("design", DESIGNS)
def test_epsilon_and_the_predicted_loss_of_seven_designs(cps8d: Data, design: tuple[str, str, float]) -> None:
    recipe, (largest, epsilon, records, loss) = swap(design), DESIGNS[design]
    found = recipe.guarantee(cps8d)
    assert (found.largest, round(found.epsilon, 2)) == (largest, epsilon)
    assert abs(found.moves * cps8d.n - records) < 0.0015 * records + 1
    square = root_mean_square(cps8d, recipe)
    mean = qd.theory.predict(cps8d, recipe, ["hellinger"])["hellinger"]
    assert mean is not None and square == pytest.approx(loss, abs=1.2e-4)  # the last digit printed, and a bit
    assert 0.98 * square < mean < square


def test_the_frontier_with_one_chance_and_with_own_chances(cps8d: Data) -> None:
    design = qd.PrivateSwap(["Edu"], within=["MS", "Race", "Sex"], epsilon=12, seed=0)
    curve = qd.theory.epsilon_curve(cps8d, design, [3, *FRONTIER])
    assert curve["epsilon"].to_list() == [float(e) for e in FRONTIER for _ in range(2)], "3 cannot be reached"
    known = np.array([loss for both in FRONTIER.values() for loss in both])
    assert np.abs(curve["loss"].to_numpy() / known - 1).max() < 0.015, "the spec has the root mean square"
    for row, loss in zip(curve.to_dicts(), known, strict=True):
        given = {"epsilon": row["epsilon"]} if row["chance"] is None else {"chance": row["chance"], "epsilon": None}
        assert root_mean_square(cps8d, design.changed(**given)) == pytest.approx(loss, abs=1.2e-4)
    own = curve.row(3, named=True)
    assert round(own["moved"] * cps8d.n) == 3_261
    assert round(least_of(cps8d, design)[0], 3) == 4.906


@pytest.mark.parametrize("design", [("AnnSal", "Sex", 0.10), ("Edu", "MS*Race*Sex", 0.05), ("Edu*MS", "Age*Sex", 0.05)])
def test_the_predicted_loss_is_that_of_sixty_draws(cps8d: Data, design: tuple[str, str, float]) -> None:
    recipe, judge = swap(design), Evaluator(cps8d, ["hellinger"])
    drawn = [judge.score(recipe.changed(seed=seed).plan(cps8d))["hellinger"] for seed in range(60)]
    found = qd.theory.predict(cps8d, recipe, ["hellinger"])["hellinger"]
    assert found == pytest.approx(np.mean(np.array(drawn, dtype=float)), rel=0.02)


def test_a_recipe_draws_the_plan_that_it_drew_when_it_was_new(cps8d: Data) -> None:
    text = '{"chance":0.05,"method":"PrivateSwap","seed":7,"swap":["Edu"],"version":1,"within":["MS","Race","Sex"]}'
    recipe = qd.Recipe.from_json(text)
    assert recipe.to_json() == text
    (move,) = recipe.plan(cps8d).moves
    drawn = np.concatenate((move.rows, move.source)).astype("<i8").tobytes()
    assert hashlib.sha256(drawn).hexdigest() == "7f10cb089e8f86239ac2021b4a81fc3aa28b581a20df327f4de4ef68e6a5ec50"


def tabulated(data: Data) -> dict[str, list[list[int]]]:
    """Edu by AnnSal, of each stratum of Sex."""
    sizes = [data[name].size for name in ("Sex", "AnnSal", "Edu")]
    code = np.ravel_multi_index([data[name].values.astype(int) for name in ("Sex", "AnnSal", "Edu")], sizes)
    table = np.bincount(code, minlength=int(np.prod(sizes))).reshape(sizes)
    present = table.sum(axis=(1, 2)) > 0
    kept = table[present][:, table.sum(axis=(0, 2)) > 0][:, :, table.sum(axis=(0, 1)) > 0]
    return {str(place): part.tolist() for place, part in enumerate(kept)}


def test_corrected_tables_are_right_on_average_and_their_errors_are_those_of_the_draws(cps8d: Data) -> None:
    data = cps8d.take(np.random.default_rng(3).choice(cps8d.n, 3_000, replace=False))
    recipe = qd.PrivateSwap(["Edu"], within=["Sex"], chance=0.3, seed=0)
    strata = recipe.strata(data)
    f = {str(place): m / (n - 1) for place, (m, n) in enumerate(zip(strata.expected, strata.n, strict=True))}
    true = np.sum([np.array(part) for part in tabulated(data).values()], axis=0)
    plans = [recipe.changed(seed=seed).plan(data).apply(data) for seed in range(200)]
    found = [qd.theory.correct(tabulated(after), f, kind="private", no_totals=True) for after in plans]
    tables = np.array([each.table for each in found])
    error = tables.std(axis=0, ddof=1)
    assert (np.abs(tables.mean(axis=0) - true) < 4 * error / sqrt(len(plans)) + 1e-9).all()
    told = np.mean([each.se for each in found], axis=0)
    large = true > 20
    assert np.abs(told[large] / error[large] - 1).max() < 4 / sqrt(2 * 199), "standard errors within four of their own"


def test_a_table_of_the_whole_file_is_corrected_by_the_recipe_as_by_its_published_factor() -> None:
    table = [[300, 200], [150, 350]]
    recipe = qd.PrivateSwap("column", chance=0.2)
    by_recipe = qd.theory.correct(table, recipe=recipe)
    factor = moved(1_000, recipe.chance_in(1_000)).mean / 999
    by_factor = qd.theory.correct(table, factor, kind="private")
    assert np.allclose(by_recipe.table, by_factor.table) and np.allclose(by_recipe.se, by_factor.se)
    assert (by_factor.se > qd.theory.correct(table, factor, kind="cycles").se).all(), "the number that moves varies too"
