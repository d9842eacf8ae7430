"""Designed swaps on the command line and in job files: options, diagnosis, located errors, one mixed study."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from cli_files import Run
from typer.testing import Result

import quadrille as qd
from quadrille.swap.designed import DesignedSwap

JOB = """
[data]
file = "dataset:cps8d"
[search]
measures = ["exposed", "small_cells", "hellinger"]
out = "mixed.study"
[[grid]]
method = "RandomSwap"
swap = [["Edu"], ["Race"]]
pairs = [244, 2442]
[[grid]]
method = "DesignedSwap"
{settings}
"""


def shown(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


def test_every_option_reaches_its_parameter(run: Run, folder: Path) -> None:
    words = (
        "swap dataset:cps8d --method designed --n 4 --share 0.5 --choose cheapest --treatment camouflage"
        " --spread 0 --price 0 --keep-low hellinger=1,hellinger(Age*Sex)=5 --no-improve"
        " --together Age*MS --protect Age*MS*Sex,Edu*Race --keep 1-way,Age*Sex --keep logit(Race)"
        " --sensitive AnnSal --fit AvgHrs --new-cells --effort 0.01"
        " --max-pairs 9 --same EmpTyp --swap Age,MS,Edu,Race --seed 3 --save-recipe new.json"
    )
    shown(run(words))
    assert qd.Recipe.from_json((folder / "new.json").read_text()) == DesignedSwap(
        swap=["Age", "MS", "Edu", "Race"],
        n=4,
        share=0.5,
        choose="cheapest",
        treatment="camouflage",
        loss={"hellinger": 1, "hellinger(Age*Sex)": 5},
        spread=0,
        price=0,
        improve=False,
        together=[["Age", "MS"]],
        tables=[["Age", "MS", "Sex"], ["Edu", "Race"]],
        max_pairs=9,
        same=["EmpTyp"],
        keep=["1-way", "Age*Sex", "logit(Race)"],
        sensitive=["AnnSal"],
        fit=["AvgHrs"],
        new_cells=True,
        effort=0.01,
        seed=3,
    )


@pytest.mark.parametrize(
    ("words", "given"),
    [("--coin 0.5", {"coin": 0.5}), ("--keep 1-way --different AvgHrs --swap Edu", {"different": ["AvgHrs"]})],
)
def test_options_that_go_with_few_others_reach_their_parameter(words: str, given: dict[str, object], run: Run) -> None:
    found = json.loads(run(f"swap dataset:cps8d --method designed --effort 0.01 --seed 3 {words} --json").stdout)
    assert found["recipe"].items() >= given.items()


def test_one_measure_to_keep_low_is_kept_as_it_is_named(run: Run, folder: Path) -> None:
    words = "swap dataset:cps8d --method designed --effort 0.01 --n 2 --seed 1 --keep-low total_variation(Age*Sex)"
    shown(run(f"{words} --save-recipe new.json"))
    kept = qd.Recipe.from_json((folder / "new.json").read_text())
    assert kept.parameters()["loss"] == "total_variation(Age*Sex)"


def test_a_column_can_say_who_must_not_be_touched(run: Run, folder: Path) -> None:
    frame = qd.datasets.cps8d().frame()[::16].with_columns(spared=pl.int_range(pl.len()) % 20 == 3)
    frame.write_csv(folder / "spared.csv")
    words = "swap spared.csv --method designed --effort 0.05 --never spared --seed 1"
    shown(run(f"{words} --save-recipe new.json --out new.csv"))
    assert qd.Recipe.from_json((folder / "new.json").read_text()).parameters()["never"] == "spared"
    after = qd.read(folder / "new.csv").frame().filter(frame["spared"])
    assert after.equals(qd.read(folder / "spared.csv").frame().filter(frame["spared"]))


def test_swap_shows_the_outcome_for_the_small_cells(run: Run) -> None:
    text = shown(run("swap dataset:cps8d --method designed --effort 0.01 --seed 3"))
    facts = qd.DesignedSwap(effort=0.01, seed=3).plan(qd.datasets.cps8d()).report(qd.datasets.cps8d()).details
    assert f"547 cells of 1 or 2 records: {facts['camouflaged']} camouflaged" in text
    for reason, count in facts["left"].items():  # type: ignore[attr-defined]
        assert f"left {count} cells: {reason}" in text
    assert f"733 records before (1.501 %), {facts['exposed_after']} after" in text
    near = facts["just_large"][0]  # type: ignore[index]
    assert f"3 {near['cells_before']} {near['cells_after']} {near['unchanged']} " in text
    assert "n-rule (small_cells) alone can be fooled" in text
    assert "exposed risk lower 0.000" in text and "small_cells risk lower 0.000" in text
    assert "asked" not in text, "nobody asked for a number of pairs"


def test_json_has_the_diagnosis(run: Run) -> None:
    found = json.loads(run("swap dataset:cps8d --method designed --effort 0.05 --seed 3 --share 0.5 --json").stdout)
    assert found["recipe"] == {"method": "DesignedSwap", "effort": 0.05, "share": 0.5, "version": 3}
    details = found["account"]["details"]
    assert {"small_cells", "camouflaged", "emptied", "left", "by_size", "just_large"} <= set(details)
    assert found["scores"]["exposed"] and found["scores"]["small_cells"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--n 1", "'n' parameter of DesignedSwap must be a whole number of 2 or more"),
        ("--keep-low foo=a", "'--keep-low' parameter of the command must be measures with their weights"),
        ("--keep-low hellinger,hellinger", "'--keep-low' parameter of the command must be measures with their weights"),
        ("--protect Age*Foo", "There is no column 'Foo' in 'tables'"),
        ("--rate 0.1", "--rate belongs to --method permutation or random or targeted, and this is designed swapping"),
        ("--targets 0.1", "--targets belongs to --method controlled"),
        ("--spread 3", "'spread' parameter"),
        ("--effort 0", "'effort' parameter of DesignedSwap must be a number above 0, up to 1000"),
        ("--keep 8-way", "'keep' parameter of DesignedSwap must be about tables of 1 to 7 of the 8 variables"),
        ("--keep Age*Foo", "There is no column 'Foo' in 'keep' of DesignedSwap"),
        ("--coin 2", "'coin' parameter of DesignedSwap must be a number from 0 to 1"),
        ("--treatment cheaper", "'treatment' parameter of DesignedSwap must be one of 'either'"),
        ("--different Sex", "'different' of DesignedSwap is about pairs of records"),
    ],
)
def test_bad_options_exit_with_one_message(options: str, says: str, run: Run) -> None:
    result = run(f"swap dataset:cps8d --method designed --seed 1 {options}")
    assert result.exit_code == 2 and result.stdout == ""
    assert says in result.stderr and result.stderr.count("\n") == 1


def test_other_methods_refuse_the_options_of_designed_swaps_and_need_swap(run: Run) -> None:
    result = run("swap dataset:cps8d --swap Age --rate 0.1 --price 0.3")
    assert result.exit_code == 2 and "--price belongs to --method designed, and this is random" in result.stderr
    assert "Name the variables to exchange with --swap" in run("swap dataset:cps8d --rate 0.1").stderr


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ('tables = [["Age", "Foo"]]', "tables: There is no column 'Foo'"),
        ('tables = [[["Age", "Sex"]], ["Age*Foo"]]', "tables[2]: There is no column 'Foo'"),
        ("tables = 3", "tables: must be a list of lists of column names"),
        ("price = [0.1, -1]", "price[2]: must be a number of 0 or more"),
        ("share = [0.5, 2]", "share[2]: must be a number in (0, 1]"),
        ("loss = {hellinger = 0}", "loss: must be a measure such as"),
        ('choose = ["random", "best"]', "choose[2]: must be one of 'random', 'cheapest'"),
        ("rate = 0.1", "There is no setting 'rate'"),
        ("version = 4", "version: must be a version of DesignedSwap that is known here: 1 or 2 or 3. Got 4."),
        ("version = true", "version: must be a version of DesignedSwap that is known here: 1 or 2 or 3. Got true."),
        ('version = 1\nkeep = "2-way"', "There is no setting 'keep'"),
        ("version = 1\ncurve = true", "curve: DesignedSwap of version 1 has no curve"),
    ],
)
def test_a_fault_in_a_job_is_told_with_its_place(settings: str, says: str, run: Run, folder: Path) -> None:
    (folder / "mixed.toml").write_text(JOB.format(settings=settings))
    result = run("search mixed.toml")
    assert result.exit_code == 2 and f"mixed.toml, [grid 2] {says}".replace("] There", "]: There") in result.stderr
    assert not (folder / "mixed.study").exists()


def test_tables_of_a_job_are_one_value_or_several(run: Run, folder: Path) -> None:
    from quadrille.study.job import Job

    data, path = qd.datasets.cps8d(), folder / "mixed.toml"
    one = 'tables = [["Age", "Sex"], ["Age", "Race"]]\ntogether = [["Sex", "Race"]]'
    several = 'tables = [[["Age", "Sex"]], ["Age*Edu", "MS*Sex"]]\nloss = { hellinger = 1 }'
    for settings, tables in (
        (one, [(("Age", "Sex"), ("Age", "Race"))]),
        (several, [(("Age", "Sex"),), (("Age", "Edu"), ("MS", "Sex"))]),
    ):
        path.write_text(JOB.format(settings=settings))
        assert [recipe.parameters()["tables"] for recipe in Job.read(path).recipes(data)[1]] == tables


def test_a_study_is_continued_in_the_version_it_was_made_with(run: Run, folder: Path) -> None:
    old, new = "share = [0.5, 1.0]\nversion = 1\nseeds = 2", "share = [0.5, 1.0]\neffort = 0.01\nseeds = 2"
    (folder / "mixed.toml").write_text(JOB.format(settings=old))
    made = json.loads(run("search mixed.toml --json").stdout)
    (folder / "mixed.toml").write_text(JOB.format(settings=new))
    refused = run("search mixed.toml")
    assert refused.exit_code == 2 and refused.stderr.count("\n") == 1
    assert "holds DesignedSwap of version 1, and this search would add version 3" in refused.stderr
    assert "write version = 1 next to its method in the job file" in refused.stderr
    (folder / "mixed.toml").write_text(JOB.format(settings=old))
    assert json.loads(run("search mixed.toml --json").stdout)["counts"] == made["counts"], "the secret seeds are found"


def test_designed_and_random_candidates_stand_in_one_study(run: Run, folder: Path) -> None:
    (folder / "mixed.toml").write_text(JOB.format(settings="price = [0.03, 0.3, 5]\neffort = 0.02"))
    dry = shown(run("search mixed.toml --dry-run"))
    assert "DesignedSwap has no closed form" in dry and "7: 7 designs" in dry
    found = json.loads(run("search mixed.toml --json").stdout)
    assert found["counts"]["done"] == 7 and found["knee"]["design"]["method"] == "DesignedSwap"
    drawn = run("frontier mixed.study --chart new.png --json")
    assert drawn.exit_code == 0, drawn.output
    chart = json.loads(drawn.stdout)
    assert (folder / "new.png").stat().st_size > 10_000
    bound = chart["predicted"]["bound"]["points"]
    designed = [row for row in chart["frontier"] if row["method"] == "DesignedSwap"]
    assert len(designed) > 1
    for row in designed:
        least = [point["least_loss"] for point in bound if point["exposed"] >= row["scores"]["exposed"]]
        assert row["scores"]["hellinger"] > max(least)
    choice = shown(run("pick mixed.study --max-risk 0.001"))
    assert choice.startswith("Chosen The file as it is: exposed 0.0150076, hellinger 0. Candidate")
    safe = json.loads(run("pick mixed.study --max-risk 0.001 --json").stdout)["candidate"]
    release = f"release dataset:cps8d --study mixed.study --candidate {safe} --out new --readers --json"
    done = json.loads(run(release).stdout)
    assert done["account"]["details"]["camouflaged"] > 100
    assert shown(run("score dataset:cps8d new/public/data.csv --measures exposed"))


def names_with_signs(folder: Path) -> None:
    """A file of which two columns have signs in their names that stand between names elsewhere."""
    random = np.random.default_rng(1)
    head, held = random.integers(0, 3, 500), {}
    for name, size in (("a*b", 4), ("x,y", 5), ("c", 6)):
        held[name] = (head + random.integers(0, 3, 500)) % size
    pl.DataFrame(held).write_csv(folder / "signs.csv")


def test_a_kept_table_names_columns_with_signs_in_backticks(run: Run, folder: Path) -> None:
    names_with_signs(folder)
    result = run("swap signs.csv --effort 0.02 --seed 1 --json --keep '`a*b`*c,`x,y`*c'")
    assert result.exit_code == 0, result.output
    kept = json.loads(result.stdout)["account"]["details"]["kept"]
    assert kept == ["`a*b`*c", "`x,y`*c"]
