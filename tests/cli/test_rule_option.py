"""Plausibility rules from the command line, recipes and job files."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from cli_files import JOB, Run

RULE = "Age<2 & Sex=Female"
SWAP = ["swap", "good.csv", "--codebook", "book.toml", "--swap", "Sex", "--seed", "3"]


def told(run: Run, words: list[str]) -> str:
    result = run(words)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert "ZQ" not in lines[0]
    return lines[0]


def violations(folder: Path, name: str) -> int:
    before = pl.read_csv(folder / "good.csv")
    after = pl.read_csv(next((folder / name / "public").glob("*.csv")))
    young = after["Age"] < 2
    return int((young & (after["Sex"] == "ZQf") & (before["Sex"] != "ZQf")).sum())


def test_rules_reach_the_recipe_and_the_account_tells_what_they_exclude(run: Run) -> None:
    result = run([*SWAP, "--rate", "0.3", "--rule", RULE, "--rule", "Region=ZQr1 & Age=3", "--json"])
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["recipe"]["rules"] == [RULE, "Region=ZQr1 & Age=3"]
    details = document["account"]["details"]
    first, second = details["rules"]
    assert details["pairs_excluded"] == first["pairs_excluded"] > 0
    assert first["broken_before"] > 0
    assert "none of its columns moves" in second["remark"]


def test_a_recipe_file_with_rules_gives_the_plan_of_the_options(run: Run, folder: Path) -> None:
    made = run([*SWAP, "--rate", "0.3", "--rule", RULE, "--save-recipe", "kept.json", "--json"])
    assert made.exit_code == 0, made.output
    again = run(["swap", "good.csv", "--codebook", "book.toml", "--recipe", "kept.json", "--json"])
    assert json.loads(again.stdout)["account"] == json.loads(made.stdout)["account"]


def test_no_release_breaks_a_rule_anew(run: Run, folder: Path) -> None:
    base = ["release", "good.csv", "--codebook", "book.toml", "--swap", "Sex", "--rate", "0.3", "--seed", "3"]
    for name, more in (("free", []), ("ruled", ["--rule", RULE])):
        done = run([*base, *more, "--out", name, "--keep-order", "--insecure"])
        assert done.exit_code == 0, done.output
    assert violations(folder, "free") > 0
    assert violations(folder, "ruled") == 0
    kept = json.loads((folder / "ruled/confidential/account.json").read_text())
    assert kept["details"]["pairs_excluded"] > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--rate", "0.3", "--rule", "Agee<2"], "no column 'Agee' in the rule 'Agee<2' of RandomSwap. Did you mean"),
        (["--rate", "0.3", "--rule", "Age=7"], "names a category that column 'Age' does not have"),
        (["--rate", "0.3", "--rule", ""], "'rules' parameter of RandomSwap must be a list of conditions"),
        (["--rate", "0.3", "--rule", "Age"], "like ['Age<16 & MS=Widowed']. Got 'Age'"),
        (["--rate", "0.3", "--rule", "Sex<Male"], "column 'Sex', whose categories have no order"),
        (["--rate", "0.3", "--rule", "Age<9"], "Every record meets the rule 'Age<9' of RandomSwap"),
        (["--rate", "0.3", "--rule", "Sex=Male"], "because the rules exclude every pair"),
        (["--rate", "0.3", "--method", "permutation", "--rule", RULE], "PermutationSwap takes no 'rules'"),
        (["--recipe", "x.json", "--rule", RULE], "not both"),
    ],
)  # fmt: skip
def test_bad_rules_are_one_line_and_exit_code_2(run: Run, words: list[str], message: str) -> None:
    assert message in told(run, [*SWAP, *words])


def job(folder: Path, rules: str, more: str = "") -> list[str]:
    text = JOB.replace('codebook = "book.toml"\n', f'codebook = "book.toml"\nrules = {rules}\n') + more
    (folder / "ruled.toml").write_text(text, encoding="utf-8")
    return ["search", "ruled.toml", "--workers", "1"]


def test_rules_of_a_job_hold_in_every_grid_that_has_none_of_its_own(run: Run, folder: Path) -> None:
    assert run(job(folder, f'["{RULE}"]', 'rules = ["Age=3 & Sex=Male"]\n')).exit_code == 0
    picked = run("pick new.study --json")
    assert picked.exit_code == 0, picked.output
    import quadrille as qd

    study = qd.Study(folder / "new.study")
    found = {tuple(study.recipe(int(number)).parameters()["rules"]) for number in study.frame()["id"]}
    assert found == {(RULE,), ("Age=3 & Sex=Male",)}


@pytest.mark.parametrize(
    ("rules", "more", "message"),
    [
        ('["Age<2 &"]', "", "[data] rules[1]: The condition '' is not understood"),
        ('["Agee<2"]', "", "[data] rules[1]: There is no column 'Agee'"),
        ('["Age=3", "Age=7"]', "", "[data] rules[2]: In the rule 'Age=7' of the job"),
        ('"Age=3"', "", "[data] rules: must be a list of rules"),
        ('["Age=3"]', '[[grid]]\nmethod = "PermutationSwap"\nswap = ["Sex"]\nrate = 0.1\n', "takes no 'rules'"),
    ],
)
def test_bad_rules_of_a_job_are_told_with_their_place(
    run: Run, folder: Path, rules: str, more: str, message: str
) -> None:
    assert message in told(run, job(folder, rules, more))
    assert not (folder / "new.study").exists()


def test_the_cost_of_rules_is_told(run: Run) -> None:
    call = ["score", "good.csv", "--codebook", "book.toml", "--recipe", "ruled.json", "--without", "rules"]
    document = json.loads(run([*call, "--draws", "2", "--json"]).stdout)
    assert list(document["rules"]) == ["with rules"] and document["draws"] == 2
    facts = document["rules"]["with rules"]
    assert facts["pairs_excluded"] == facts["rules"][0]["pairs_excluded"] > 0
    assert facts["rules"][0]["rule"] == RULE
    assert [row["recipe"] for row in document["measures"]].count("without rules") == len(document["measures"]) / 2
    measures = list(dict.fromkeys(row["measure"] for row in document["measures"]))
    assert measures[:2] == ["pairs", "hellinger"]
    shown = run([*call, "--draws", "2"]).stdout
    assert "What the rules exclude" in shown and "its s.e." in shown and "with rules, minus without rules" in shown
    assert "'rules'" in told(run, ["good.json" if word == "ruled.json" else word for word in call])
