"""Published tables on the command line: one list with one meaning in swap, score, release, pick and report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_files import JOB, SECRET, Run
from typer.testing import Result

import quadrille as qd

BOOK = "good.csv --codebook book.toml"
SWAP = f"swap {BOOK} --swap Sex --pairs 15"
JOB_OF_TABLES = JOB.replace("[search]", '[search]\ntables = ["Sex*Age"]')
BAD = {
    "an unknown column": ("Sex*Aeg", "There is no column 'Aeg' in the published tables. Did you mean: 'Age'?"),
    "a numeric column": ("Sex*Weight", "Column 'Weight' is numeric, and a published table needs categories."),
    "a table twice": ("Sex*Age,Age*Sex", "--tables, entry 2: The table Age*Sex is listed twice."),
    "a variable twice": ("Sex*Sex", "--tables, entry 1: A variable occurs twice in a table."),
    "no variable": ("Sex*", "--tables, entry 1: A table is variables with asterisks between them"),
    "an empty entry": ("Sex*Age,", "--tables, entry 2: A table is variables with asterisks between them"),
}


@pytest.fixture
def policies(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("QUADRILLE_POLICY", raising=False)
    for name, most in (("strict", 0.0), ("loose", 1000.0)):
        (folder / f"{name}.toml").write_text(f"[published]\npercent = {{most = {most}}}\n")
    return folder


def document(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def shown(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


@pytest.mark.parametrize("call", [SWAP, f"release {BOOK} --swap Sex --pairs 15", f"score {BOOK} good.parquet"])
@pytest.mark.parametrize(("tables", "message"), BAD.values(), ids=BAD)
def test_bad_tables_are_refused_in_one_line_and_nothing_is_written(
    call: str, tables: str, message: str, run: Run, folder: Path
) -> None:
    before = {path.name for path in folder.iterdir()}
    done = run(
        [
            *call.replace(f"{BOOK} good.parquet", "good.csv good.parquet --codebook book.toml").split(),
            "--tables",
            tables,
        ]
    )
    assert done.exit_code == 2, done.output
    assert message in done.stderr and done.stderr.count("\n") == 1 and SECRET not in done.output
    assert {path.name for path in folder.iterdir()} == before


def test_tables_of_one_and_of_many_variables_are_tables_too(run: Run) -> None:
    told = document(run(f"{SWAP} --tables Region --tables Sex*Age*Region --json"))["tables"]
    one, many = told["tables"]
    assert (one["table"], one["changed"]) == ("Region", 0)
    assert many["table"] == "Sex*Age*Region" and many["changed"] > 0
    assert document(run(f"{SWAP} --json"))["tables"] is None


def test_weights_that_are_all_zero_are_refused(run: Run) -> None:
    done = run("swap zero_weight.csv --weight Weight --swap Sex --pairs 5 --tables Sex*Age")
    assert done.exit_code == 2 and "is 0 in every row" in done.stderr


def test_swap_and_score_tell_the_same_of_the_same_files(run: Run, folder: Path) -> None:
    words = f"{SWAP} --seed 3 --out swapped.csv --tables Sex*Age,Region*Sex"
    text = shown(run(words))
    assert "Published tables" in text and "cell records weighted change points" in text and "more than 10 %" in text
    swapped = document(run(f"{words} --overwrite --json"))["tables"]
    scored = document(run("score good.csv swapped.csv --codebook book.toml --tables Sex*Age,Region*Sex --json"))[
        "tables"
    ]
    assert swapped == scored and swapped["weighted"]
    frame = qd.table_changes(
        qd.read(folder / "good.csv", codebook=folder / "book.toml"),
        qd.read(folder / "swapped.csv", codebook=folder / "book.toml"),
        ["Sex*Age", "Region*Sex"],
    )
    assert swapped == json.loads(json.dumps(frame.as_dict()))
    assert "Published tables" in shown(run("score good.csv swapped.csv --codebook book.toml --tables Sex*Age"))


def test_score_of_recipes_has_no_second_file_to_compare_with(run: Run) -> None:
    done = run("score good.csv --recipe good.json --tables Sex*Age")
    assert done.exit_code == 2 and "--tables compares two files" in done.stderr


def test_release_check_judges_the_tables_and_a_release_that_fails_is_not_written(run: Run, policies: Path) -> None:
    words = f"release {BOOK} --swap Sex --pairs 15 --tables Sex*Age"
    checked = run(f"{words} --policy strict.toml --check")
    assert checked.exit_code == 2
    assert "[published]" in checked.stdout and "percent(Sex*Age)" in checked.stdout and "at most 0 %" in checked.stdout
    refused = run(f"{words} --policy strict.toml --json")
    assert refused.exit_code == 2 and not (policies / "release").exists()
    assert refused.stderr.startswith(
        "quadrille: The release fails the policy 'strict.toml': [published] percent(Sex*Age)"
    )
    assert SECRET not in refused.output and "Male" not in refused.stderr
    made = document(run(f"{words} --policy loose.toml --json"))
    assert [each["table"] for each in made["tables"]["tables"]] == ["Sex*Age"]
    assert (policies / "release" / "confidential" / "tables.parquet").is_file()
    public = [path.read_text() for path in (policies / "release" / "public").iterdir()]
    assert not any("Published tables" in text for text in public)
    unnamed = run(f"release {BOOK} --swap Sex --pairs 15 --policy loose.toml --check")
    assert unnamed.exit_code == 0 and "none is named" in unnamed.stdout


def test_a_study_knows_its_tables_so_that_nobody_has_to_name_them_again(run: Run, policies: Path) -> None:
    (policies / "job.toml").write_text(JOB_OF_TABLES)
    searched = document(run("search job.toml --workers 1 --json"))
    assert searched["measures"][-1] == "worst_cell(Sex*Age)"
    assert "risk worst taken candidate" in shown(run("pick new.study")), "a column of the worst cell"
    picked = document(run("pick new.study --criterion knee --json"))
    data = qd.read(policies / "good.csv", codebook=policies / "book.toml")
    recipe = qd.Study(policies / "new.study").recipe(picked["candidate"])
    found = qd.table_changes(data, recipe.plan(data), ["Sex*Age"]).as_dict()
    assert picked["tables"] == json.loads(json.dumps(found))
    text = shown(run("pick new.study --criterion knee --tables Region*Sex"))
    assert "Published tables" in text and "Region*Sex" in text
    release = f"release {BOOK} --study new.study --pick"
    assert document(run(f"{release} --out one --json"))["tables"] == picked["tables"]
    other = document(run(f"{release} --out two --tables Region*Sex --json"))["tables"]["tables"]
    assert [each["table"] for each in other] == ["Region*Sex"]
    frontier = run(f"release {BOOK} --study new.study --policy strict.toml --check --json")
    lines = [line["rule"] for each in json.loads(frontier.stdout)["frontier"] for line in each["policies"][0]["lines"]]
    assert "[published] percent(Sex*Age)" in lines


def test_pick_chooses_without_the_data_and_says_that_the_tables_are_not_shown(run: Run, folder: Path) -> None:
    (folder / "job.toml").write_text(JOB_OF_TABLES)
    assert run("search job.toml --workers 1").exit_code == 0
    (folder / "good.csv").unlink()
    done = run("pick new.study --criterion knee --json")
    assert done.exit_code == 0 and json.loads(done.stdout)["tables"] is None
    assert "the published tables are not shown" in done.stderr
    named = run("pick new.study --criterion knee --tables Sex*Age")
    assert named.exit_code == 2 and "good.csv" in named.stderr


def test_tables_without_a_choice_are_refused_by_pick(run: Run) -> None:
    done = run("pick small.study --tables Sex*Age")
    assert done.exit_code == 2 and "--tables needs a choice" in done.stderr


def test_a_designed_swap_keeps_the_tables_low_unless_it_names_a_loss_or_has_a_recipe(run: Run, folder: Path) -> None:
    words = "swap dataset:cps8d --effort 0.05 --seed 3 --measures exposed --json"
    loss = {"hellinger": 1.0, "hellinger(Age*Edu*Sex)": 2.0}
    tables = "--tables Age*Edu*Sex,Age*Edu"
    assert document(run(f"{words} {tables} --save-recipe one.json"))["recipe"]["loss"] == loss
    assert "loss" not in document(run(words))["recipe"]
    named = document(run(f"{words} {tables} --keep-low total_variation"))["recipe"]
    assert named["loss"] == "total_variation"
    text = json.loads((folder / "one.json").read_text())
    del text["loss"]
    (folder / "plain.json").write_text(json.dumps(text))
    kept = document(run(f"swap dataset:cps8d --recipe plain.json --measures exposed {tables} --json"))["recipe"]
    assert "loss" not in kept, "a recipe says it all"
