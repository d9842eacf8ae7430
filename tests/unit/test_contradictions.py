"""Recipes that contradict a file are refused, before anything is written; others are left alone."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import quadrille as qd
from lookalikes import FIRST_ATTEMPTS, LOOKALIKES, SOUND
from quadrille.cli import app
from quadrille.data import Data
from quadrille.plan import Plan
from quadrille.release.dossier import GuessableSeedWarning, ShownWarning
from quadrille.score.contradictions import Contradiction, ContradictionError, contradicted, contradictions

N = 3_000
RNG = np.random.default_rng(8)
REGION = RNG.integers(0, 6, N)


def file(**more: object) -> Data:
    """A file in which a stratum holds the region, and two columns that say nothing about anything."""
    columns = {"region": [f"r{r}" for r in REGION], "stratum": REGION * 10 + RNG.integers(0, 3, N)}
    columns |= {"sex": RNG.choice(["f", "m"], N), "job": RNG.integers(0, 9, N)}
    return qd.from_frame(pl.DataFrame({**columns, **more}))


DATA = file()


@pytest.mark.parametrize("name", LOOKALIKES)
def test_first_attempts_contradict_the_look_alikes_and_sound_recipes_do_not(name: str) -> None:
    data = LOOKALIKES[name]()
    assert all(contradictions(data, recipe) for recipe in FIRST_ATTEMPTS[name])
    assert not any(contradictions(data, recipe) for recipe in SOUND[name])


def test_nothing_in_the_bundled_files_without_derived_columns_is_refused(cps8d: Data) -> None:
    state = qd.datasets.state(records=20_000)
    for data in (cps8d, state):
        for count in (1, 2):
            for swap in combinations(data.columns, count):
                assert contradictions(data, qd.RandomSwap(swap, rate=0.02)) == (), swap
        assert contradictions(data, qd.DesignedSwap(tables=[data.columns[2:6]])) == ()


def test_adult_is_refused_where_it_contradicts_itself() -> None:
    adult = qd.datasets.adult()

    def found(*swap: str) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        return [(each.moved, each.stays) for each in contradictions(adult, qd.RandomSwap(swap, rate=0.02))]

    assert found("education") == [(("education",), ("education-num",))]
    assert found("education", "education-num") == []
    assert (("sex",), ("relationship",)) in found("sex")
    assert (("marital-status",), ("relationship",)) in found("marital-status")
    assert found("race") == [(("race",), ("age", "fnlwgt"))]
    assert found("native-country") == found("hours-per-week") == []


def ways_out() -> dict[str, tuple[Data, qd.Recipe]]:
    left_out = qd.from_frame(DATA.frame(), codebook=qd.Codebook((qd.Variable("stratum", "numeric", role="id"),)))
    forbidden = [f"region=r{r} & stratum<{10 * r}" for r in range(6)]
    forbidden += [f"region=r{r} & stratum>={10 * r + 10}" for r in range(6)]
    linked = {"stratum": ["region"]}
    return {
        "moved together": (DATA, qd.RandomSwap(["region", "stratum"], rate=0.05)),
        "moved by one permutation": (DATA, qd.PermutationSwap(["region", "stratum"], rate=0.05)),
        "linked": (DATA, qd.ControlledSwap(["stratum"], targets=0.05, linked=linked)),
        "left out": (left_out, qd.RandomSwap(["region"], rate=0.05)),
        "a rule for every value": (DATA, qd.RandomSwap(["stratum"], rate=0.05, rules=forbidden)),
        "partners agree": (DATA, qd.RandomSwap(["stratum"], rate=0.05, same=["region"])),
        "within classes": (DATA, qd.PermutationSwap(["stratum"], rate=0.05, within=["region"])),
        "cells that somebody had": (DATA, qd.DesignedSwap(tables=[["region", "stratum", "sex", "job"]], n=2)),
    }


@pytest.mark.parametrize("way", ways_out())
def test_every_way_out_is_one(way: str) -> None:
    data, recipe = ways_out()[way]
    assert contradictions(data, recipe) == ()
    assert contradicted(data, recipe.changed(seed=1).plan(data)).records == 0


def test_one_by_one_is_not_together() -> None:
    recipe = qd.RandomSwap(["region", "stratum"], rate=0.05, order="one-by-one")
    assert {each.moved for each in contradictions(DATA, recipe)} <= {("region",), ("stratum",)}
    assert contradictions(DATA, recipe)


def test_a_rule_for_some_values_lowers_the_share_and_is_no_way_out() -> None:
    (without,) = contradictions(DATA, qd.RandomSwap(["stratum"], rate=0.05))
    (some,) = contradictions(DATA, qd.RandomSwap(["stratum"], rate=0.05, rules=["region=r0 & stratum>=10"]))
    assert without.share == pytest.approx(15 / 17, abs=0.02)  # of the 17 other strata, 2 are of the same region
    assert 0 < some.share < without.share


def test_a_designed_swap_with_new_cells_keeps_only_its_tables() -> None:
    tables = [["region", "stratum", "sex", "job"]]
    assert contradictions(DATA, qd.DesignedSwap(tables=tables, n=2, keep="1-way", new_cells=True))
    assert contradictions(DATA, qd.DesignedSwap(tables=tables, n=2, keep="2-way", new_cells=True)) == ()


def test_a_column_outside_of_the_designed_table_can_contradict_it() -> None:
    data = file(share=REGION * 0.37)
    found = contradictions(data, qd.DesignedSwap(tables=[["region", "sex", "job"]], n=2, loss="hellinger(sex*job)"))
    assert {(each.moved, each.stays) for each in found} == {(("region",), ("stratum",)), (("region",), ("share",))}


def test_what_steers_the_draw_is_not_released_and_contradicts_nothing() -> None:
    data = file(rate=np.where(REGION < 3, 0.1, 0.2))
    recipe = qd.PermutationSwap(["region", "stratum"], rate="rate", within=["sex", "rate"])
    assert contradictions(data, recipe) == ()


def test_a_method_that_does_not_say_what_moves_together_shows_it_by_its_plan() -> None:
    recipe = qd.RandomSwap(["region", "stratum"], rate=0.05, seed=1)
    said = recipe.movement(DATA)
    assert qd.Recipe.movement(recipe, DATA).together == said.together == (("region", "stratum"),)


def plain_count(data: Data, plan: Plan) -> int:
    """Records whose stratum is not of their region any more."""
    now = plan.apply(data).frame()
    return int((now["stratum"] // 10 != now["region"].str.slice(1).cast(pl.Int64)).sum())


def test_the_dossier_counts_the_records_that_contradict(tmp_path: Path) -> None:
    recipe = qd.RandomSwap(["region"], rate=0.05)
    with pytest.raises(ContradictionError) as refused:
        qd.release(DATA, recipe, tmp_path / "release")
    assert [type(each) for each in refused.value.contradictions] == [Contradiction]
    assert not (tmp_path / "release").exists()
    with pytest.warns(ShownWarning, match="records contradict what the original says, as was allowed"):
        made = qd.release(DATA, recipe, tmp_path / "release", allow_contradictions=True)
    assert "as was allowed" in made.warnings[0]
    count = plain_count(DATA, recipe.plan(DATA))
    dossier = (made.confidential / "dossier.md").read_text(encoding="utf-8")
    assert count == contradicted(DATA, recipe.plan(DATA)).records > 0
    assert f"{count} records contradict the rest of the file" in dossier
    assert f"| stratum determines region | all records | {count} |" in dossier


def test_every_combination_that_never_occurred_and_is_filled_is_flagged(tmp_path: Path) -> None:
    never = np.where(REGION == 0, RNG.choice(["a", "b"], N), RNG.choice(["a", "b", "c"], N))
    data = file(kind=never)
    recipe = qd.RandomSwap(["kind"], rate=0.05, seed=1)
    found = contradicted(data, recipe.plan(data))
    now = recipe.plan(data).apply(data).frame()
    count = now.filter((pl.col("region") == "r0") & (pl.col("kind") == "c")).height
    flagged = {(each.columns, each.labels): each.records for each in found.filled}
    assert flagged[("region", "kind"), ("r0", "c")] == count > 0
    with pytest.warns(GuessableSeedWarning):
        made = qd.release(data, recipe, tmp_path / "release", allow_contradictions=True, insecure=True)
    dossier = (made.confidential / "dossier.md").read_text(encoding="utf-8")
    assert "| region * kind | r0 * c |" in dossier
    assert "r0 * c" not in "".join(path.read_text(encoding="utf-8") for path in made.public.iterdir())


def test_a_search_refuses_before_it_writes_and_looks_at_what_differs_in_more_than_numbers(tmp_path: Path) -> None:
    sound = qd.grid(qd.RandomSwap, swap=[["sex"], ["region", "stratum"]], pairs=range(1, 50), seeds=2)
    unsound = qd.grid(qd.RandomSwap, swap=[["sex"], ["region"]], pairs=[5, 10], seeds=2)
    for recipes in (unsound, [sound, unsound], iter([*list(sound)[:3], *unsound])):
        with pytest.raises(ContradictionError):
            qd.search(DATA, recipes, ["hellinger"], out=tmp_path / "study", progress=False)
        assert list(tmp_path.glob("study*")) == []
    study = qd.search(DATA, unsound, ["hellinger"], out=tmp_path / "study", progress=False, allow_contradictions=True)
    assert len(study) == 8


def test_the_message_names_the_columns_the_ways_out_and_no_value() -> None:
    with pytest.raises(ContradictionError) as refused:
        qd.release(DATA, qd.RandomSwap(["region"], rate=0.05), "nowhere")
    text = str(refused.value)
    assert "stratum determines region, and region would move without stratum" in text
    for way in ("Move the columns together", "leave one of them out", "make it a rule", "--allow-contradictions"):
        assert way in text
    assert "r0" not in text


@pytest.mark.parametrize("command", ["swap", "release"])
def test_the_command_line_refuses_and_goes_on_when_told_to(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    DATA.frame().write_csv("file.csv")
    call = [command, "file.csv", "--method", "random", "--swap", "region", "--rate", "0.05", "--out", "out.csv"]
    refused = CliRunner().invoke(app, call)
    assert (refused.exit_code, Path("out.csv").exists()) == (2, False)
    assert CliRunner().invoke(app, [*call, "--allow-contradictions"]).exit_code == 0
    assert Path("out.csv").exists()


def test_inspect_lists_what_columns_say_about_one_another(tmp_path: Path) -> None:
    DATA.frame().write_csv(tmp_path / "file.csv")
    shown = CliRunner().invoke(app, ["inspect", str(tmp_path / "file.csv")]).output
    assert "stratum determines region" in shown
    listed = json.loads(CliRunner().invoke(app, ["inspect", str(tmp_path / "file.csv"), "--json"]).output)
    assert [each["text"] for each in listed["dependencies"]] == ["stratum determines region"]


def test_the_report_warns_of_records_that_contradict(tmp_path: Path) -> None:
    recipes = qd.grid(qd.RandomSwap, swap=[["region"]], pairs=[20, 60], seed=[1])
    measures = ["exposed", "hellinger"]
    study = qd.search(DATA, recipes, measures, out=tmp_path / "s", progress=False, allow_contradictions=True)
    page = qd.report.write_report(study, DATA, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "It shows who was swapped." in page
    assert "stratum determines region" in page


MOVERS: dict[str, qd.Recipe] = {
    "random": qd.RandomSwap(["region", "stratum"], rate=0.2, same=["sex"], seed=1),
    "random, one by one": qd.RandomSwap(["region", "sex"], rate=0.2, order="one-by-one", seed=1),
    "permutation": qd.PermutationSwap(["job", "sex"], rate=0.2, within=["region"], kind="cycles", seed=1),
    "controlled": qd.ControlledSwap(
        ["job", "sex"], targets=0.1, boundary=["stratum"], linked={"job": ["region"]}, seed=1
    ),
    "designed": qd.DesignedSwap(n=2, seed=1, effort=0.02),
    "designed, same": qd.DesignedSwap(["job", "stratum"], keep="1-way", n=3, same=["sex"], seed=1, effort=0.02),
    "designed, one way": qd.DesignedSwap(keep="1-way", n=3, seed=1, effort=0.02),
    "designed, different": qd.DesignedSwap(["job"], keep="1-way", n=3, different=["sex"], seed=1),
    "designed, together": qd.DesignedSwap(together=[["region", "stratum"]], n=3, seed=1, effort=0.02),
    "designed, coin": qd.DesignedSwap(coin=0.5, n=3, seed=1, effort=0.02),
    "designed, two tables": qd.DesignedSwap(tables=[["region", "sex", "job"], ["stratum", "sex"]], n=22, seed=1),
    "designed, a table kept": qd.DesignedSwap(keep=["region*stratum", "2-way"], n=3, new_cells=True, seed=1),
    "designed, first version": qd.Recipe.from_json('{"method":"DesignedSwap","n":3,"seed":1,"version":1}'),
}


@pytest.mark.parametrize("name", MOVERS)
def test_what_a_recipe_says_of_its_movement_is_what_its_plan_does(name: str) -> None:
    recipe = MOVERS[name]
    movement, plan = recipe.movement(DATA), recipe.plan(DATA)
    assert len(plan.rows)
    for move in plan.moves:
        assert any(set(move.columns) <= set(group) for group in movement.together)
        for column in movement.same:
            values = DATA[column].values
            assert (values[move.rows] == values[move.source]).all()
    before, after = DATA.frame(), plan.apply(DATA).frame()
    for closed in movement.closed:
        new = after.select(closed).unique().join(before.select(closed).unique(), on=closed, how="anti")
        assert new.height == 0, closed
