"""The error of a planned swap, and the correction of a published table, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_files import Run

REGION = "age,never,married\nyoung,165268,0\nmiddle,73508,294438\nold,8830,65701\n"


def told(run: Run, words: str) -> str:
    result = run(words)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    return result.stderr


@pytest.fixture
def table(folder: Path) -> Path:
    path = folder / "table.csv"
    path.write_text(REGION, encoding="utf-8")
    return path


@pytest.mark.parametrize("swapped", ["row", "column"])
def test_the_error_of_a_table_follows_from_the_table(run: Run, table: Path, swapped: str) -> None:
    cells = json.loads(run(f"error {table.name} --swapped {swapped} --rate 0.05 --json").stdout)["cells"]
    assert len(cells) == 6
    n, k = 607745, 30388
    for cell, (count, row, column) in zip(
        cells,
        [(165268, 165268, 247606), (0, 165268, 360139), (73508, 367946, 247606)],
        strict=False,
    ):
        assert cell["bias"] == pytest.approx(-k / (n - 1) * (count - row * column / n), rel=1e-12)
        assert cell["rmse"] >= abs(cell["bias"])


def test_the_error_of_a_file_has_a_row_per_cell_and_a_chart(run: Run, folder: Path) -> None:
    words = "error good.csv --codebook book.toml --swap Age --margin Age*Region --rate 0.2 --chart made.png"
    found = json.loads(run(words.replace("good.csv --codebook book.toml", "dataset:cps8d").replace("Region", "MS")
                           + " --json").stdout)  # fmt: skip
    assert {cell["Age"] for cell in found["cells"]} == {"<25", "25-55", ">55"}
    assert all(cell["records"] is not None for cell in found["cells"])
    assert (folder / "made.png").read_bytes().startswith(b"\x89PNG")


def test_a_weighted_file_has_no_rounding_beside_it(run: Run) -> None:
    words = "error good.csv --codebook book.toml --swap Age --margin Age*Sex --rate 0.2 --within Region"
    shown = run(words)
    assert shown.exit_code == 0, shown.output
    assert "rounding" not in shown.stdout
    assert "rmse" in shown.stdout


def test_correcting_undoes_the_expected_change(run: Run, table: Path, folder: Path) -> None:
    before = json.loads(run(f"error {table.name} --swapped row --rate 0.05 --json").stdout)["cells"]
    expected = {(cell["age"], cell["column"]): cell["expected"] for cell in before}
    swapped = {key: round(value) for key, value in expected.items()}
    rows = [
        ",".join([age, *(str(swapped[age, c]) for c in ("never", "married"))]) for age in ("young", "middle", "old")
    ]
    (folder / "swapped.csv").write_text("age,never,married\n" + "\n".join(rows) + "\n", encoding="utf-8")
    f = 30388 / 607744
    found = json.loads(run(f"correct swapped.csv --f {f} --out corrected.csv --json").stdout)
    back = {(cell["age"], cell["column"]): cell["corrected"] for cell in found["cells"]}
    assert back["middle", "married"] == pytest.approx(294438, abs=2)
    assert back["young", "married"] == pytest.approx(0, abs=2)
    assert (folder / "corrected.csv").read_text(encoding="utf-8").startswith("age,column,swapped,corrected,se")


def test_f_can_come_from_the_note_of_a_release(run: Run, table: Path, folder: Path) -> None:
    made = run("release dataset:cps8d --method permutation --swap Age --rate 0.05 --publish-f --out made")
    assert made.exit_code == 0, made.output
    assert "does not count all 48,842 records" in told(run, f"correct {table.name} --note made/public/methods.md")
    (folder / "whole.csv").write_text("MS,young,old\na,8432,14567\nb,12345,13498\n", encoding="utf-8")
    found = json.loads(run("correct whole.csv --note made/public/methods.md --json").stdout)
    assert found["f"] == pytest.approx(2442 / 48841)


def test_f_by_class_needs_the_class(run: Run, table: Path) -> None:
    made = run("release dataset:cps8d --method permutation --swap Age --rate 0.05 --within Sex --publish-f --out made")
    assert made.exit_code == 0, made.output
    assert "name it with --class" in told(run, f"correct {table.name} --note made/public/methods.md")
    words = ["correct", table.name, "--note", "made/public/methods.md", "--class", "Sex = Male", "--json"]
    assert 0.049 < json.loads(run(words).stdout)["f"] < 0.051


def test_a_table_takes_no_options_of_a_file(run: Run, table: Path) -> None:
    for option in ("--within age", "--swap age", "--weight w", "--move-weight"):
        assert "are for a microdata file" in told(run, f"error {table.name} --swapped row --rate 0.1 {option}")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("error table.csv --swapped row", "Give one of 'rate'"),
        ("error table.csv --swapped middle --rate 0.1", "must be one of 'row', 'column'. Got 'middle'"),
        ("error table.csv --swapped row --records 3", "must be even for kind='pairs'. Got 3"),
        ("error table.csv --swapped row --rate 1.5", "must be a number in (0, 1]. Got 1.5"),
        ("error good.csv --rate 0.1", "Name the variables to swap with --swap and the table with --margin"),
        ("correct table.csv", "Give the factor with --f, or the methods note"),
        ("correct table.csv --f 1", "f"),
        ("correct table.csv --note good.csv", "publishes no factor f"),
        ("correct nowhere.csv --f 0.1", "nowhere.csv"),
        ("release dataset:cps8d --swap Edu --rate 0.1 --publish-f --out made", "no factor f to publish"),
    ],
)
def test_bad_words_are_one_line_and_exit_code_2(run: Run, table: Path, words: str, message: str) -> None:
    assert message in told(run, words)


def test_a_permutation_can_be_tried_and_moved_with_its_weight(run: Run) -> None:
    words = (
        "swap good.csv --codebook book.toml --method permutation --swap Age --records 20 --kind cycles --move-weight"
    )
    found = json.loads(run(words + " --seed 1 --measures hellinger(Age*Sex) --json").stdout)
    assert found["recipe"]["weight"] == "moves"
    assert found["recipe"]["kind"] == "cycles"
    assert found["account"]["records"] == 20
