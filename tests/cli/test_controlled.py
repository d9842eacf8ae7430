"""Controlled swapping from the command line and from job files."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from cli_files import Run

SWAP = "swap good.csv --codebook book.toml --method controlled --swap Sex,Age --seed 3"
JOB = """
[data]
file = "good.csv"
codebook = "book.toml"

[search]
measures = ["small_cells", "c_ard(Sex*Age)", "hd1(Sex*Age)"]
out = "new.study"

[[grid]]
method = "ControlledSwap"
swap = [["Sex", "Age"], ["Age"]]
targets = [0.1, 0.2]
variant = ["standard", "balanced"]
seeds = 2

[[grid]]
method = "RandomSwap"
swap = ["Age"]
rate = 0.2
seeds = 2
"""


def told(run: Run, words: str) -> str:
    result = run(words)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    return lines[0]


def test_all_options_reach_the_recipe(run: Run, folder: Path) -> None:
    table = pl.read_csv(folder / "good.csv").with_columns(
        spared=pl.int_range(60) % 20 == 3, Linked=pl.int_range(60) % 5
    )
    table.write_csv(folder / "more.csv")
    words = (
        "swap more.csv --codebook book.toml --method controlled --swap Sex,Age --targets 0.1 --size Weight "
        "--never spared --stratum Region --sort Sex,Age --bias Sex --linked Age=Linked --variant balanced "
        "--matching optimal --on-missing category --seed 3 --measures hd1 --json --allow-contradictions"
    )
    result = run(words)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["recipe"] == {
        "method": "ControlledSwap",
        "version": 1,
        "swap": ["Sex", "Age"],
        "targets": 0.1,
        "size": "Weight",
        "never": "spared",
        "stratum": ["Region"],
        "sort": ["Sex", "Age"],
        "bias": "Sex",
        "linked": {"Age": ["Linked"]},
        "variant": "balanced",
        "matching": "optimal",
        "on_missing": "category",
    }


def test_the_table_tells_of_targets_and_partners(run: Run) -> None:
    result = run(f"{SWAP} --targets 0.1 --boundary Region")
    assert result.exit_code == 0, result.output
    shown = " ".join(result.stdout.split())
    assert "targets 6 drawn to get a partner, 0 of them certain by size" in shown
    assert "no partner none" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (SWAP, "Controlled swapping needs --targets"),
        (f"{SWAP} --targets 0.6", "must be a number in [0, 0.5) or the name of a column. Got 0.6."),
        (
            f"{SWAP} --targets 0.1 --rate 0.1",
            "--rate belongs to --method permutation or random or targeted, and this is controlled swapping",
        ),
        ("swap good.csv --swap Sex --rate 0.1 --boundary Age", "--boundary belongs to --method controlled"),
        ("swap good.csv --swap Sex --rate 0.1 --strict", "--strict belongs to --method controlled"),
        (
            "swap good.csv --swap Sex --rate 0.1 --method magic",
            "There is no method 'magic'. Known: ControlledSwap, DesignedSwap, ",
        ),
        (f"{SWAP} --targets 0.1 --linked Age", "must be like Edu=Degree,Years. Got 'Age'"),
        (f"{SWAP} --targets 0.1 --variant odd", "must be one of 'standard', 'balanced'. Got 'odd'"),
        (f"{SWAP} --targets Weight", "'Weight' is the weight: it cannot say who is a target"),
    ],
)
def test_bad_words_are_one_line_and_exit_code_2(run: Run, words: str, message: str) -> None:
    assert message in told(run, words)


def test_text_of_three_values_has_no_order_to_swap_along(run: Run, folder: Path) -> None:
    (folder / "colours.csv").write_text("colour,sex\n" + "red,m\nblue,f\ngreen,m\n" * 10, encoding="utf-8")
    assert "have no declared order" in told(run, "swap colours.csv --method controlled --swap colour --targets 0.1")


def test_both_families_stand_on_one_frontier_and_the_rule_picks_a_run(run: Run, folder: Path) -> None:
    (folder / "both.toml").write_text(JOB, encoding="utf-8")
    assert run("search both.toml --workers 1").exit_code == 0
    shown = json.loads(run("frontier new.study --json").stdout)
    assert shown["candidates"] == 18
    picked = json.loads(run("pick new.study --criterion dohrmann --json").stdout)
    assert picked["rule"] == "dohrmann"
    assert "the smallest hd1(Sex*Age)" in picked["reason"]
    plain = json.loads(run("pick new.study --criterion dohrmann --ignore-hd --json").stdout)
    assert "the Hellinger distance is ignored" in plain["reason"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("targets = [0.1, 0.7]", "[grid] targets[2]: must be a number in [0, 0.5) or the name of a column"),
        ('variant = ["standard", "odd"]', "variant[2]: must be one of 'standard', 'balanced'"),
        ('targets = 0.1\nboundary = ["Regio"]', "boundary: There is no column 'Regio'. Did you mean: 'Region'?"),
        ('targets = 0.1\nmust = "Regio"', "must: There is no column 'Regio'"),
        ('targets = 0.1\nmethods = "x"', "There is no setting 'methods'"),
    ],
)
def test_job_files_locate_what_is_wrong(run: Run, folder: Path, line: str, message: str) -> None:
    grid = '[[grid]]\nmethod = "ControlledSwap"\nswap = ["Sex", "Age"]\n'
    targets = "" if "targets" in line else "targets = 0.1\n"
    text = JOB[: JOB.index("[[grid]]")] + grid + targets + line + "\nseeds = 1\n"
    (folder / "bad.toml").write_text(text, encoding="utf-8")
    assert message in told(run, "search bad.toml")
    assert not (folder / "new.study").exists()


def test_a_release_can_bring_the_reports_of_the_three_readers(run: Run, folder: Path) -> None:
    release = SWAP.replace("swap good.csv", "release good.csv")
    result = run(f"{release} --targets 0.1 --readers --insecure --out made")
    assert result.exit_code == 0, result.output
    readers = folder / "made" / "confidential" / "readers"
    assert sorted(path.name for path in readers.iterdir()) == ["analyst.html", "board.html", "chair.html"]
    assert not list((folder / "made" / "public").glob("*.html"))
