"""`release --after`: the same data again, by the same plan or by another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_files import Run

RELEASE = "release good.csv --codebook book.toml"


@pytest.fixture
def first(run: Run, folder: Path) -> Path:
    done = run(f"{RELEASE} --swap Sex --pairs 5 --out first")
    assert done.exit_code == 0, done.output
    return folder / "first"


def test_another_plan_is_warned_of_and_the_warning_says_how_to_repeat_the_first(run: Run, first: Path) -> None:
    done = run(f"{RELEASE} --swap Sex --pairs 6 --out second --after first")
    assert done.exit_code == 0, done.output
    assert done.stderr.startswith("quadrille: warning: These data were released before by another plan, in 'first'.")
    assert "use its recipe: --recipe first/confidential/recipe.json\n" in done.stderr
    again = run(f"{RELEASE} --recipe first/confidential/recipe.json --out third --after first --after second")
    assert again.exit_code == 0 and "released before" not in again.stderr, again.output
    assert "by the same plan: this release repeats it" in " ".join(again.stdout.split())


def test_json_and_check_tell_the_same(run: Run, first: Path, folder: Path) -> None:
    told = json.loads(run(f"{RELEASE} --swap Sex --pairs 6 --out second --after first --json").stdout)
    assert told["earlier"]["others"] == ["first"] and told["earlier"]["repeats"] is None
    (folder / "once.toml").write_text('[release]\nearlier = "."\n')
    done = run(f"{RELEASE} --recipe first/confidential/recipe.json --policy once.toml --check --json")
    (line, *_) = json.loads(done.stdout)["policies"][0]["lines"]
    assert (line["rule"], line["found"]) == ("[release] earlier", "the same plan again")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--after nowhere", "Cannot read the earlier release 'nowhere/confidential/hashes.json': No such file"),
        ("--after good.csv", "Cannot read the earlier release 'good.csv/confidential/hashes.json': Not a directory"),
        ("--after first --out first --overwrite", "An earlier release lies in 'first'. Write the new one to another"),
        ("--check --insecure", "--check writes nothing: leave --insecure out."),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(words: str, message: str, run: Run, first: Path) -> None:
    done = run(f"{RELEASE} --swap Sex --pairs 5 {words}")
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr and done.stderr.count("\n") == 1
