"""One path through a search: a job becomes grids, the grids are checked once, one evaluator is handed down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import quadrille as qd
from quadrille import recipe
from quadrille.measure import base
from quadrille.recipe import Recipe
from quadrille.score.evaluator import Evaluator
from quadrille.study import forecast
from quadrille.study.job import Job

HEAD = """
[data]
file = "dataset:cps8d"
[search]
measures = ["small_cells", "hellinger(Age*Sex)", "hellinger"]
THEN
[[grid]]
method = "RandomSwap"
pairs = [244, 488]
seeds = 2
"""
LISTED = f"swap = {[[name] for name in qd.datasets.cps8d().keys]}"
DESIGNS = 16
LISTS = 8
"""Lists of columns to swap: a design of each is asked whether it contradicts the file."""


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count what is made and checked from now on."""
    counted: Counter[str] = Counter()

    def counting(owner: Any, name: str, what: str) -> None:
        before: Callable[..., object] = getattr(owner, name)

        def counted_call(*given: object, **named: object) -> object:
            counted[what] += 1
            return before(*given, **named)

        monkeypatch.setattr(owner, name, counted_call)

    counting(Evaluator, "__init__", "evaluators")
    counting(Recipe, "__post_init__", "recipes")
    for module, what in ((forecast, "columns of designs"), (base, "columns of measures"), (recipe, "by the recipe")):
        counting(module, "require_columns", what)
    return counted


def job_of(folder: Path, swap: str, then: str = "") -> Job:
    (folder / "job.toml").write_text(HEAD.replace("THEN", then) + swap)
    return Job.read(folder / "job.toml")


@pytest.mark.parametrize(("swap", "tried"), [(LISTED, 1), ('swap = "singles"', 4)], ids=["listed", "by a word"])
def test_a_search_makes_one_evaluator_and_each_recipe_twice(
    swap: str, tried: int, tmp_path: Path, cps8d: qd.Data, count: Counter[str]
) -> None:
    cps8d.prepared.clear()  # of what other tests have drawn
    job = job_of(tmp_path, swap)
    recipes = job.recipes(cps8d)
    assert count["recipes"] == DESIGNS + tried, (
        "a grid tries its first recipe; what goes with a word is tried before the data are known"
    )
    study = qd.search(cps8d, recipes, job.measures, out=tmp_path / "study", workers=1, progress=False)
    assert (len(study), study.counts()["done"]) == (2 * DESIGNS, 2 * DESIGNS)
    assert count["evaluators"] == 1
    assert count["recipes"] == 2 * DESIGNS + LISTS + tried
    assert (count["columns of designs"], count["columns of measures"]) == (8, 1), "each list once"
    assert count["by the recipe"] == DESIGNS + LISTS, "a recipe looks for its columns when its design is prepared"


def test_costly_measures_share_the_evaluator(tmp_path: Path, cps8d: qd.Data, count: Counter[str]) -> None:
    job = job_of(tmp_path, LISTED, 'then = ["cramers_v_change(2-way)"]')
    study = qd.search(
        cps8d, job.recipes(cps8d), job.measures, then=job.then, out=tmp_path / "study", workers=1, progress=False
    )
    later = study.frame().drop_nulls("cramers_v_change(2-way)")
    assert count["evaluators"] == 1
    assert count["recipes"] == 1 + 2 * DESIGNS + LISTS + len(later), (
        "and the recipe of each candidate near the frontier"
    )
    for number, value in later.select("id", "cramers_v_change(2-way)").rows()[:3]:
        plan = study.recipe(number).plan(cps8d)
        assert qd.score(cps8d, plan, ["cramers_v_change(2-way)"])["cramers_v_change(2-way)"] == value


def test_a_forecast_of_a_job_makes_one_evaluator_and_each_recipe_twice(
    tmp_path: Path, cps8d: qd.Data, count: Counter[str]
) -> None:
    job = job_of(tmp_path, LISTED, 'then = ["cramers_v_change(2-way)"]')
    ahead = qd.forecast(cps8d, job.recipes(cps8d), job.measures)
    assert (ahead.designs, ahead.candidates, ahead.checked) == (DESIGNS, 2 * DESIGNS, DESIGNS)
    assert count["evaluators"] == 1 and count["recipes"] == 1 + 2 * DESIGNS
    assert count["columns of designs"] == 8


def test_a_grid_is_checked_anew_for_other_measures(tmp_path: Path, cps8d: qd.Data, count: Counter[str]) -> None:
    job = job_of(tmp_path, LISTED)
    study = qd.search(
        cps8d, job.recipes(cps8d), ["exposed", "hellinger"], out=tmp_path / "s", workers=1, progress=False
    )
    assert study.measures == ("exposed", "hellinger") and count["evaluators"] == 2
