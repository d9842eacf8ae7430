"""Levels of geography on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_files import Run

import quadrille as qd

ROWS = "county,tract,sex\n" + "".join(f"c{i % 2},t{i % 4},{'mf'[i // 5 % 2]}\n" for i in range(40))


JOB = """
[data]
file = "census.csv"
{levels}

[search]
measures = ["small_cells", "hellinger"]
workers = 1

[[grid]]
method = "RandomSwap"
swap = [["tract"]]
rate = [0.1]
seed = [1, 2]
"""


@pytest.fixture
def census(run: Run) -> Path:  # `run` works in a folder of its own
    path = Path("census.csv")
    path.write_text(ROWS, encoding="utf-8")
    return path


def test_inspect_tells_the_areas_of_each_level_and_which_have_no_record(run: Run, census: Path) -> None:
    found = run(f"inspect {census} --geography county,tract")
    assert found.exit_code == 0, found.output
    text = " ".join(found.stdout.split())
    assert "county: 2 areas of 20 records; tract: 4 areas of 10 records" in text
    assert "county nominal geography 1" in text
    assert "Hint" not in text
    levels = '[columns.tract]\nrole = "geography"\nlevel = 2\ncategories = ["t0", "t1", "t2", "t3", "t9"]\n'
    Path("five.toml").write_text(levels, encoding="utf-8")
    told = run(f"inspect {census} --codebook five.toml")
    assert "1 of 5 areas of 'tract' have no record." in " ".join(told.stdout.split())
    document = json.loads(run(f"inspect {census} --codebook five.toml --json").stdout)
    assert document["geography"] == [
        {"column": "tract", "areas": 5, "empty": 1, "smallest": 10, "median": 10.0, "largest": 10}
    ]


def test_a_codebook_written_with_levels_serves_the_other_commands(run: Run, census: Path) -> None:
    assert run(f"inspect {census} --geography county --geography tract --write-codebook levels.toml").exit_code == 0
    assert qd.Codebook.read("levels.toml").geography == ("county", "tract")
    swapped = run(f"swap {census} --codebook levels.toml --swap tract --pairs 5 --seed 1 --json")
    assert swapped.exit_code == 0, swapped.output
    account = json.loads(swapped.stdout)["account"]
    assert [moved["variable"] for moved in account["variables"]] == ["tract", "county"]
    assert account["details"] == {"carried_along": "county"}


def test_levels_are_named_where_a_file_is_swapped_released_or_searched(run: Run, census: Path) -> None:
    words = f"{census} --geography county,tract --swap tract --pairs 5 --seed 1"
    swapped = json.loads(run(f"swap {words} --measures hellinger --json").stdout)
    assert swapped["account"]["details"] == {"carried_along": "county"}
    done = run(f"release {words} --insecure --out released --measures hellinger --json")
    assert done.exit_code == 0, done.output
    Path("job.toml").write_text(JOB.format(levels='geography = ["county", "tract"]'), encoding="utf-8")
    assert run("search job.toml").exit_code == 0
    found = run("pick study --criterion knee")
    assert found.exit_code == 0, found.output
    assert "--geography county --geography tract" in " ".join(found.stdout.split())
    study = qd.Study("study")
    assert json.loads(study.source["geography"] or "") == ["county", "tract"]
    data = qd.read(census, geography=["county", "tract"])
    assert study.recipe(1).plan(data).columns == ("tract", "county")
    told = run("report study --candidate 1 --out report.html --json")
    assert told.exit_code == 0, told.output
    Path("job.toml").write_text(JOB.format(levels='geography = ["tract", "county"]'), encoding="utf-8")
    refused = run("search job.toml")
    assert refused.exit_code == 2 and "job.toml, [data]: The levels of geography are not nested" in refused.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("inspect census.csv --geography tract,county", "It is the other way round"),
        ("inspect census.csv --geography county,sex", "not nested: 2 of 2 areas of 'sex' lie in more than one area"),
        ("inspect census.csv --geography county,track", "Did you mean: 'tract'"),
        ("inspect dataset:state --geography county", "brings its own codebook. Leave --geography out"),
    ],
)
def test_levels_that_cannot_be_are_refused_in_one_message(run: Run, census: Path, words: str, message: str) -> None:
    result = run(words)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.output


def test_the_invented_state_can_be_looked_at_and_swapped(run: Run) -> None:
    found = run("inspect dataset:state --json")
    assert [level["areas"] for level in json.loads(found.stdout)["geography"]] == [67, 3200]
    words = "swap dataset:state --swap tract --same county --rate 0.01 --seed 1 --measures total_variation(tract*race)"
    assert json.loads(run(words + " --json").stdout)["account"]["changed"] == 3200
