"""Targeted swaps in the whole: searched from a job file, chosen, judged by a policy, released and reported."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import quadrille as qd
from quadrille.cli import app
from quadrille.present import Table
from quadrille.present.numbers import NONE, score
from quadrille.present.scores import exposure
from quadrille.report.frontier_chart import draw_frontier, rows_of, scored, values_of_settings
from quadrille.report.input import Candidate, look
from quadrille.report.sections import accounts
from quadrille.report.tables import tables
from quadrille.score.evaluator import Scores
from quadrille.swap.targeted.risk import risk_by_level

JOB = """
[data]
file = "two.parquet"
codebook = "two.toml"

[search]
measures = ["exposed(ward*age*birth)", "linked_small(ward*age*birth)", "hellinger(parish*status)"]
out = "census.study"
workers = 1

[[grid]]
method = "targeted"
risk = [["age", "birth"]]
k = [2, 3]
rate = [0.0, 0.1]
near = ["any", "parent"]
similar = [[["hh_size", "hh_type"], ["hh_size"]], [["hh_size"]], [[]]]
seed = [1]

[[grid]]
method = "RandomSwap"
swap = [["status"]]
rate = [0.1]
seed = [1]
"""
RISK, LINKED, LOSS = "exposed(ward*age*birth)", "linked_small(ward*age*birth)", "hellinger(parish*status)"


@pytest.fixture(scope="module")
def data() -> qd.Data:
    """Return two districts of the island."""
    island = qd.datasets.island()
    return island.take(island.frame()["district"].is_in(["N1", "S1"]).to_numpy().nonzero()[0])


@pytest.fixture(scope="module")
def study(data: qd.Data, tmp_path_factory: pytest.TempPathFactory) -> qd.Study:
    folder = tmp_path_factory.mktemp("census")
    data.frame().write_parquet(folder / "two.parquet")
    data.codebook.write(folder / "two.toml")
    (folder / "job.toml").write_text(JOB, encoding="utf-8")
    done = CliRunner().invoke(app, ["search", str(folder / "job.toml"), "--json", "--allow-contradictions"])
    assert done.exit_code == 0, done.output
    return qd.Study(folder / "census.study")


def test_nested_profiles_of_a_job_file_make_the_designs_that_are_written(study: qd.Study) -> None:
    recipes = [study.recipe(int(number)) for number in study.ids]
    targeted = [recipe for recipe in recipes if isinstance(recipe, qd.TargetedSwap)]
    assert len(targeted) == 2 * 2 * 2 * 3 and len(recipes) == 25
    assert {recipe.similar for recipe in targeted} == {(("hh_size", "hh_type"), ("hh_size",)), (("hh_size",),), ((),)}
    assert {(recipe.k, recipe.rate, recipe.near) for recipe in targeted} == {
        (k, rate, near) for k in (2, 3) for rate in (0.0, 0.1) for near in ("any", "parent")
    }
    others = set(study.frame()["other"])
    assert "risk age + birth, similar hh_size*hh_type + hh_size" in others
    assert any("similar anybody" in other for other in others)
    assert set(study.frame()["swap"]) == {"all levels of geography", "status"}


def test_the_frontier_is_one_of_risk_by_area_against_loss_by_area(study: qd.Study, data: qd.Data) -> None:
    """With k of the measure's n everybody at risk leaves the ward: none is found there, and near partners cost less."""
    frame = study.frame().filter(study.frame()["method"] == "TargetedSwap")
    assert set(frame["status"]) == {"done"}
    default_k = ~frame["other"].str.contains(r"\bk 2\b")
    assert frame.filter(default_k)[LINKED].to_list() == [0.0] * 12
    assert all(value > 0.1 for value in frame.filter(~default_k)[LINKED])
    before = qd.score(data, qd.Plan([], data=data), [RISK])[RISK]
    assert before is not None and frame[RISK].to_numpy().max() < 0.75 * before
    near = frame["other"].str.contains("near parent")
    assert frame.filter(near)[LOSS].to_numpy().mean() < 0.9 * frame.filter(~near)[LOSS].to_numpy().mean()
    picked = study.pick("balanced", risk=RISK, loss=LOSS)
    assert isinstance(picked.recipe, qd.TargetedSwap)


@pytest.mark.parametrize(("rate", "outcome"), [("{most = 0.05}", "pass"), ("{least = 0.06}", "fail")])
def test_a_policy_judges_the_share_of_the_households_and_names_that_of_the_persons(
    tmp_path: Path, rate: str, outcome: str
) -> None:
    """150 of 3,000 households take part: 5 %, and more of the persons, as large households are rather at risk."""
    data = qd.datasets.island()
    (tmp_path / "policy.toml").write_text(f"[swap]\nrate = {rate}\n", encoding="utf-8")
    recipe = qd.TargetedSwap(["age", "birth"], rate=0.05, similar=[["hh_size"]], mode="cap", seed=1)
    plan = recipe.plan(data)
    assert plan.units is not None and len(plan.units) == 150 and len(plan.rows) > 0.052 * data.n
    lines = {line.rule: line for line in qd.check_policy(data, recipe, tmp_path / "policy.toml").lines}
    assert lines["[swap] rate"].verdict == outcome
    assert lines["[swap] rate"].asked.endswith(" of all units")
    share = f"{len(plan.rows) / data.n:.6g} ({len(plan.rows):,} of 6,528) records"
    assert lines["[swap] rate"].found == f"0.05 (150 of 3,000), with {share}"


def words(page: str) -> str:
    text = re.sub(r"<script.*?</script>|<style.*?</style>", "", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def test_the_report_says_who_was_at_risk_who_moved_and_how_far(study: qd.Study, data: qd.Data, tmp_path: Path) -> None:
    number = next(
        int(n)
        for n in study.ids
        if isinstance(recipe := study.recipe(int(n)), qd.TargetedSwap) and recipe.k == 3 and recipe.near == "parent"
    )
    out = qd.report.write_report(study, data, tmp_path / "report.html", candidate=number, risk=RISK, loss=LOSS)
    page = out.read_text(encoding="utf-8")
    text = words(page)
    found = risk_by_level(data, ["age", "birth"])
    assert "Who moved between areas" in text and f"{found.at_risk:,} of {found.units:,} households" in text
    flows = qd.area_flows(data, study.recipe(number).plan(data), "ward")
    table = text.split("by the coarsest level of geography crossed coarsest level")[1]
    for (level,), part in flows.group_by("crosses"):
        assert f"{level} {sum(part['units']):,} {sum(part['records']):,}" in table
    assert "Where records moved, by parish" in page  # 96 wards are too many to draw
    assert "Units:" in text and f"of {found.units:,} take part" in text


def test_parameters_of_a_search_are_listed_apart_and_the_one_that_matters_most_has_the_colours(study: qd.Study) -> None:
    rows = rows_of(study)
    assert values_of_settings(rows) == {
        "k": ["2", "3"],
        "near": ["any", "parent"],
        "risk": ["age + birth"],
        "similar": ["anybody", "hh_size", "hh_size*hh_type + hh_size"],
    }
    every = [each for each in scored(study, (RISK, LOSS), rows) if each[0]["settings"]]
    assert len(every) == 24
    told = draw_frontier(study, (RISK, LOSS), every, None).to_dict()
    assert "'title': 'k'" in str(told) and "Variables swapped" not in str(told)
    parent = [each for each in every if each[0]["settings"]["k"] == "3"]
    assert "'title': 'near'" in str(draw_frontier(study, (RISK, LOSS), parent, None).to_dict())
    assert "'title': 'k'" not in str(
        draw_frontier(study, (RISK, LOSS), scored(study, (RISK, LOSS), rows), None).to_dict()
    )


def test_where_areas_move_the_intruder_knows_the_area(data: qd.Data, tmp_path: Path) -> None:
    """Of keys that do not move nothing changes; with the area the risk is there, and tables have levels."""
    keyed = data.with_roles(key=["age", "birth"])
    recipes = [qd.TargetedSwap(["age", "birth"], k=k, similar=[["hh_size"]], seed=1) for k in (2, 3)]
    study = qd.search(keyed, recipes, [RISK, LOSS], out=tmp_path / "keyed.study", progress=False)
    scope = look(study, keyed, 2, RISK, LOSS)
    assert scope.keys == ("ward", "age", "birth") and scope.together[1] == RISK
    was, now = scope.before[RISK], scope.chosen.scores[RISK]
    assert was and now and 0 < now < 0.75 * was
    found = tables(scope)
    pairs = {(row["first"], row["second"]) for row in found["two_way"]}
    assert pairs <= {(level, key) for level in keyed.codebook.geography for key in ("age", "birth")} and len(pairs) == 3
    assert {single.caption for single in found["kept"]} == {f"{name}: exactly kept" for name in scope.keys}
    rows = {
        row[0]: row[2:]
        for block in exposure(keyed, scope.chosen.plan)
        if isinstance(block, Table)
        for row in block.rows
    }
    assert rows[RISK] == (score(was), score(now)) and rows[LINKED][1] == "0"
    plain = qd.RandomSwap(["birth"], rate=0.1, seed=1).plan(keyed)
    listed = next(block for block in exposure(keyed, plain) if isinstance(block, Table))
    assert listed.rows[0][0] == "exposed"


def test_accounts_of_methods_that_move_units_and_of_others_stand_in_one_table(data: qd.Data) -> None:
    recipes = [
        qd.RandomSwap(["status"], rate=0.1, seed=1),
        qd.TargetedSwap(["age", "birth"], similar=[["hh_size"]], seed=1),
    ]
    plans = [recipe.plan(data) for recipe in recipes]
    candidates = [Candidate(n, "", {}, plan, plan.report(data), Scores({})) for n, plan in enumerate(plans)]
    rows = {row[0]: row[1:] for row in accounts(["one", "other"], candidates).rows}
    assert [len(row) for row in rows.values()] == [2] * len(rows)
    assert rows["units"][0] == NONE and "take part" in rows["units"][1]
    assert all("take part" in text for text in rows["records"])


def test_the_dossier_has_risk_by_level_and_reasons_and_the_public_file_has_neither(tmp_path: Path) -> None:
    data = qd.datasets.island()
    lonely = data.frame()["hh_size"] == 6
    recipe = qd.TargetedSwap(["age", "birth"], similar=[["hh_size", "hh_type", "tenure"]], rate=0.05)
    qd.release(data, recipe, tmp_path / "r", measures=[RISK])
    dossier = (tmp_path / "r/confidential/dossier.md").read_text(encoding="utf-8")
    account: Any = json.loads((tmp_path / "r/confidential/account.json").read_text(encoding="utf-8"))
    assert "Households at risk" in dossier and "| ward | 401 |" in dossier
    assert "no partner in any profile" in dossier and lonely.any()
    assert "no partner in any profile" in json.dumps(account)
    public = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "r/public").iterdir())
    assert "no partner" not in public and "at risk" not in public


@pytest.mark.filterwarnings("ignore::quadrille.release.dossier.ReleaseWarning")
def test_a_release_that_moves_areas_is_warned_of_by_who_is_found_there(data: qd.Data, tmp_path: Path) -> None:
    """The keys alone single some out before and after; what a swap of areas hides is who is found in the ward."""
    keyed = data.with_roles(key=["age", "birth", "status"])
    assert qd.score(keyed, qd.Plan([], data=keyed), ["exposed"])["exposed"]
    given: dict[str, Any] = {"similar": [["hh_size"]], "k": 3}
    few = qd.TargetedSwap(["age", "birth", "status"], rate=0.02, mode="cap", **given)
    most = qd.TargetedSwap(["age", "birth", "status"], **given)
    for recipe, said in ((few, True), (most, False)):
        made = qd.release(keyed, recipe, tmp_path / recipe.mode, measures=[LOSS])
        warned = [warning for warning in made.warnings if "The swap hides few" in warning]
        assert len(warned) == said and all("by ward, age, birth and status" in warning for warning in warned)
