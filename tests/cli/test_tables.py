"""The error of a planned swap, and the correction of a published table, from the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cli_files import Run

import quadrille as qd

REGION = "age,never,married\nyoung,165268,0\nmiddle,73508,294438\nold,8830,65701\n"


def told(run: Run, words: str | list[str]) -> str:
    result = run(words)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    return result.stderr


def recipe(name: str = "swap.json", **parameters: object) -> str:
    """Write a recipe of permutation swapping by hand, into the folder that the commands run in; return its name."""
    given = {"method": "PermutationSwap", "swap": ["Age"], **parameters}
    Path(name).write_text(json.dumps(given), encoding="utf-8")
    return name


@pytest.fixture
def table(folder: Path) -> Path:
    path = folder / "table.csv"
    path.write_text(REGION, encoding="utf-8")
    (folder / "totals.csv").write_text("age,x,y\nold,1,2\nyoung,3,4\nall of them,4,6\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("swapped", ["row", "column"])
def test_the_error_of_a_table_follows_from_the_table(run: Run, table: Path, swapped: str) -> None:
    cells = json.loads(run(f"error {table.name} --swapped {swapped} --recipe {recipe(rate=0.05)} --json").stdout)[
        "cells"
    ]
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
    words = f"error dataset:cps8d --recipe {recipe(rate=0.2)} --margin Age*MS --chart made.png --json"
    found = json.loads(run(words).stdout)
    assert {cell["Age"] for cell in found["cells"]} == {"<25", "25-55", ">55"}
    assert all(cell["records"] is not None for cell in found["cells"])
    assert (folder / "made.png").read_bytes().startswith(b"\x89PNG")


def test_a_weighted_file_has_no_rounding_beside_it(run: Run) -> None:
    recipe(rate=0.2, within=["Region"])
    words = "error good.csv --codebook book.toml --recipe swap.json --margin Age*Sex"
    shown = run(words)
    assert shown.exit_code == 0, shown.output
    assert "rounding  not given: the cells are weighted totals" in shown.stdout
    assert "rmse" in shown.stdout
    found = json.loads(run(words + " --json").stdout)
    assert set(found["not_given"]) == {"rounding", "k"}
    assert all("rounding_rmse" not in cell and "records" not in cell for cell in found["cells"])


def test_within_classes_the_command_says_why_there_is_no_k(run: Run) -> None:
    words = "error dataset:cps8d --margin Age*MS --recipe swap.json"
    recipe(rate=0.05)
    assert json.loads(run(words + " --json").stdout)["not_given"] == {}
    recipe(rate=0.05, within=["Sex"])
    found = json.loads(run(words + " --json").stdout)
    assert "within classes" in found["not_given"]["k"]
    assert all("rounding_rmse" in cell for cell in found["cells"])
    assert "k         not given: records move within classes" in run(words).stdout
    recipe(rate=0.05, kind="across", groups="Sex")
    across = json.loads(run(words + " --json").stdout)
    assert "across two groups" in across["not_given"]["k"]


@pytest.fixture
def classes(folder: Path) -> Path:
    """A file of two classes with a rate each."""
    rows = [f"{'xy'[i % 2]},{'abc'[i % 3]},{'np'[i // 7 % 2]},{'0.2' if i % 2 else '0.1'}" for i in range(200)]
    path = folder / "classes.csv"
    path.write_text("\n".join(("class,A,B,r", *rows)) + "\n", encoding="utf-8")
    return path


def test_a_column_can_give_each_class_its_rate(run: Run, classes: Path) -> None:
    kept = recipe(swap=["A"], rate="r", within=["class"])
    found = json.loads(run(f"error {classes.name} --recipe {kept} --margin A*B --json").stdout)
    data = qd.read(classes)
    by_class = qd.PermutationSwap(["A"], rate="r", within=["class"])
    assert [cell["sd"] for cell in found["cells"]] == qd.theory.table_error(data, by_class, "A*B")["sd"].to_list()
    words = f"swap {classes.name} --method permutation --swap A --rate r --within class --measures hellinger(A*B)"
    made = json.loads(run(words + " --json").stdout)
    assert made["recipe"]["rate"] == "r"
    assert made["account"]["records"] == 10 + 20
    released = run(words.replace("swap classes", "release classes") + " --out made")
    assert released.exit_code == 0, released.output
    assert (classes.parent / "made" / "public" / "data.csv").read_text(encoding="utf-8").startswith("class,A,B\n")


def test_a_column_of_rates_is_for_permutations_of_files(run: Run, table: Path, classes: Path) -> None:
    recipe(rate="r", within=["class"])
    message = told(run, "error table.csv --swapped row --recipe swap.json")
    assert "A table of counts has no column of class rates: the rate of the recipe must be a number" in message
    for rate in ("r", "x"):
        message = told(run, f"swap classes.csv --swap A --rate {rate}")
        assert f"'rate' parameter of RandomSwap must be a number in (0, 1]. Got '{rate}'." in message


def test_a_recipe_of_another_method_has_no_error_in_closed_form(run: Run, table: Path) -> None:
    known = {"table.csv --swapped row": "permutation", "good.csv --margin Age*Sex": "permutation, private and rank"}
    for words, methods in known.items():
        message = told(run, f"error {words} --recipe good.json")
        assert f"{methods} swapping, and the recipe 'good.json' is of RandomSwap" in message
        assert "--method permutation --save-recipe FILE" in message


def test_the_error_is_that_of_the_recipe_that_swap_keeps(run: Run, folder: Path) -> None:
    words = "swap good.csv --codebook book.toml --method permutation --swap Age --records 20 --save-recipe kept.json"
    assert run(words).exit_code == 0
    shown = run("error good.csv --codebook book.toml --recipe kept.json --margin Age*Sex --json")
    seed = json.loads((folder / "kept.json").read_text())["seed"]
    assert shown.exit_code == 0 and str(seed) not in shown.output
    data = qd.read(folder / "good.csv", codebook=folder / "book.toml")
    expected = qd.theory.table_error(data, qd.PermutationSwap(["Age"], records=20), "Age*Sex")
    assert [cell["rmse"] for cell in json.loads(shown.stdout)["cells"]] == expected["rmse"].to_list()


def test_predicted_against_realised_is_drawn_from_a_file_and_from_a_table(run: Run, table: Path, folder: Path) -> None:
    words = f"--recipe {recipe(rate=0.05)} --draws 3 --json --realised"
    for place, what in (("a.png", "dataset:cps8d --margin Age*MS"), ("b.png", "table.csv --swapped row")):
        found = json.loads(run(f"error {what} {words} {place}").stdout)
        assert found["realised_chart"] == place
        assert (folder / place).read_bytes().startswith(b"\x89PNG")
    assert "exists" in told(run, f"error table.csv --swapped row {words} b.png")
    assert "--draws must be" in told(run, "error table.csv --swapped row --recipe swap.json --realised c.png --draws 0")


def test_a_swap_and_a_dry_run_warn_of_traces(run: Run, folder: Path) -> None:
    rows = [f"{'abc'[i % 3]},{'xy'[i // 5 % 2]},{(1.5, 2.5, 9)[i % 3]}" for i in range(120)]
    (folder / "strata.csv").write_text("\n".join(("S,A,w", *rows)) + "\n", encoding="utf-8")
    book = '[columns.S]\nkind = "nominal"\nrole = "stratum"\n[columns.w]\nkind = "numeric"\nrole = "weight"\n'
    (folder / "strata.toml").write_text(book + '[columns.A]\nkind = "nominal"\n', encoding="utf-8")
    swap = "swap strata.csv --codebook strata.toml --rate 0.2 --measures hellinger(A*S) --allow-contradictions"
    warned = run(f"{swap} --swap S --json")
    assert "warning: Column 'S' is a stratum and was swapped" in warned.stderr
    assert "is a stratum" in json.loads(warned.stdout)["account"]["warnings"][0]
    quiet = run(f"{swap} --swap A --json")
    assert quiet.stderr == ""
    assert json.loads(quiet.stdout)["account"]["warnings"] == []
    job = """
        [data]
        file = "strata.csv"
        codebook = "strata.toml"
        [search]
        measures = ["small_cells(A*S)", "total_variation(A*S)"]
        out = "strata.study"
        [[grid]]
        method = "RandomSwap"
        swap = [["A"], ["S"], ["A", "S"]]
        rate = [0.2]
        """
    (folder / "strata_job.toml").write_text(job, encoding="utf-8")
    found = json.loads(run("search strata_job.toml --dry-run --json --allow-contradictions").stdout)["warnings"]
    assert [(each["designs"], "is a stratum" in each["warning"]) for each in found] == [(2, True)]
    assert "Warning, 2 of 3 designs" in run("search strata_job.toml --dry-run --allow-contradictions").stdout


def test_correcting_undoes_the_expected_change(run: Run, table: Path, folder: Path) -> None:
    before = json.loads(run(f"error {table.name} --swapped row --recipe {recipe(rate=0.05)} --json").stdout)["cells"]
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
    assert "does not count all 48,842 records" in told(
        run, f"correct {table.name} --methods-note made/public/methods.md"
    )
    (folder / "whole.csv").write_text("MS,young,old\na,8432,14567\nb,12345,13498\n", encoding="utf-8")
    found = json.loads(run("correct whole.csv --methods-note made/public/methods.md --json").stdout)
    assert found["f"] == pytest.approx(2442 / 48841)


def test_f_by_class_needs_the_class(run: Run, table: Path, folder: Path) -> None:
    made = run("release dataset:cps8d --method permutation --swap Age --rate 0.05 --within Sex --publish-f --out made")
    assert made.exit_code == 0, made.output
    note = ["--methods-note", "made/public/methods.md"]
    unnamed = told(run, ["correct", table.name, *note])
    assert "gives f by class: 'Sex = Male', 'Sex = Female'" in unnamed
    assert "with --class, or the column of the table that holds the classes with --class-column" in unnamed
    (folder / "men.csv").write_text("MS,young,old\na,5000,10000\nb,10000,7650\n", encoding="utf-8")
    found = [
        json.loads(run(["correct", "men.csv", *note, "--class", name, "--json"]).stdout)
        for name in ("Sex = Male", "Sex=Male", "male")
    ]
    assert all(0.049 < each["f"] < 0.051 and not each["unchecked"] for each in found)
    assert "does not count all 16,192 records of the class 'Sex = Female'" in told(
        run, ["correct", "men.csv", *note, "--class", "Female"]
    )
    assert "There is no class 'M'" in told(run, ["correct", "men.csv", *note, "--class", "M"])
    old = folder / "made" / "public" / "methods.md"
    old.write_text(re.sub(r", [0-9]+ records", "", old.read_text(encoding="utf-8")), encoding="utf-8")
    assert "not checked: whether" in run(["correct", table.name, *note, "--class", "Male"]).stdout


def test_all_classes_of_a_table_are_corrected_at_once(run: Run, folder: Path) -> None:
    made = run("release dataset:cps8d --method permutation --swap Age --rate 0.05 --within Sex --publish-f --out made")
    assert made.exit_code == 0, made.output
    rows = ("MS,Sex,young,old", "a,Male,5000,10000", "b,Male,10000,7650", "a,Female,10000,6192")
    (folder / "both.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    words = ["correct", "both.csv", "--methods-note", "made/public/methods.md"]
    found = json.loads(run([*words, "--class-column", "Sex", "--json"]).stdout)
    assert set(found["f"]) == {"Sex = Male", "Sex = Female"}
    men, women = [[5000, 10000], [10000, 7650]], [[10000, 6192], [0, 0]]
    expected = qd.theory.correct({"Sex = Male": men, "Sex = Female": women}, found["f"])
    assert [cell["corrected"] for cell in found["cells"]] == pytest.approx(expected.table.ravel().tolist())
    assert [cell["se"] for cell in found["cells"]] == pytest.approx(expected.se.ravel().tolist())
    assert "Give --class for a table of one class, or" in told(
        run, [*words, "--class-column", "Sex", "--class", "Male"]
    )
    assert "There is no column 'sx'" in told(run, [*words, "--class-column", "sx"])
    assert "There is no class 'a'" in told(run, [*words, "--class-column", "MS"])
    (folder / "both.csv").write_text("\n".join(rows[:3]) + "\n", encoding="utf-8")
    assert "lacks 1 of the 2 classes of the note" in told(run, [*words, "--class-column", "Sex"])
    (folder / "both.csv").write_text("\n".join((*rows, "a,Female,1,1")) + "\n", encoding="utf-8")
    assert "two rows with the same label" in told(run, [*words, "--class-column", "Sex"])


def test_sampling_stands_beside_the_error_of_swapping(run: Run, table: Path, folder: Path) -> None:
    words = f"error table.csv --swapped row --recipe {recipe(rate=0.1)} --sampling 0.25"
    assert "a simple random sample of 25 %" in run(words).stdout
    found = json.loads(run(f"{words} --chart s.json --json").stdout)
    n = sum(cell["before"] for cell in found["cells"])
    for cell in found["cells"]:
        p = cell["before"] / n
        assert cell["sampling"] == pytest.approx((0.75 * n * n / (n - 1) * p * (1 - p)) ** 0.5)
    assert "standard errors of sampling" in (folder / "s.json").read_text(encoding="utf-8")
    recipe(records=20)
    words = "error good.csv --codebook book.toml --recipe swap.json --margin Age*Sex --sampling 0.1 --json"
    assert all(cell["sampling"] > 0 for cell in json.loads(run(words).stdout)["cells"] if cell["before"])


@pytest.mark.parametrize("width", [30, 45, 60, 80, 200])
def test_cells_fit_the_terminal_and_labels_break_between_words(
    run: Run, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    shown = run(f"error dataset:cps8d --recipe {recipe(rate=0.05)} --margin Age*MS*Sex*Race").stdout
    lines = shown.splitlines()
    assert max(map(len, lines[:60])) <= width
    for word in ("Married", "Female", "Non-White", "before", "rmse"):
        assert word in shown
    assert ("no room" in shown) == (width < 80)


def test_nothing_is_left_when_one_of_two_charts_cannot_be_written(run: Run, table: Path, folder: Path) -> None:
    for bad in ("nowhere/y.png", "y.pong"):
        for words in (f"--realised z.png --chart {bad}", f"--realised {bad} --chart z.png"):
            told(run, f"error {table.name} --swapped row --recipe {recipe(rate=0.1)} {words}")
            assert not (folder / "z.png").exists()


def test_figures_of_a_paper_need_a_folder_that_can_be(run: Run, table: Path) -> None:
    for place in ("/proc/none", "table.csv", "table.csv/below"):
        assert "Cannot write the folder" in told(run, f"reproduce boudreau-2005 --draws 2 --charts {place}")


def test_a_table_takes_no_options_of_a_file(run: Run, table: Path) -> None:
    for option in ("--margin age*never", "--weight w", "--codebook book.toml"):
        message = told(run, f"error {table.name} --swapped row --recipe {recipe(rate=0.1)} {option}")
        assert "are for a microdata file" in message


RECIPES = {
    "tenth": {"rate": 0.1},
    "three": {"records": 3},
    "one": {"records": 1},
    "nothing": {},
    "both": {"rate": 0.1, "records": 4},
    "much": {"rate": 1.5},
    "little": {"rate": 0.000001},
}
BAD_WORDS = [
    ("error table.csv --swapped row", "Missing option '--recipe'"),
    ("error table.csv --swapped row --recipe nowhere.json", "Cannot read the recipe"),
    ("error table.csv --swapped row --recipe nothing.json", "needs one of 'rate'"),
    ("error table.csv --swapped row --recipe both.json", "needs one of 'rate'"),
    ("error table.csv --swapped middle --recipe tenth.json", "must be one of 'row', 'column'. Got 'middle'"),
    ("error table.csv --swapped row --recipe three.json", 'must be even for kind="pairs"'),
    ("error table.csv --swapped row --recipe one.json", "must be a whole number of 2 or more"),
    ("error table.csv --swapped row --recipe tenth.json --base 0", "--base must be a whole number from 1"),
    ("error table.csv --swapped row --recipe tenth.json --draws 5", "--draws goes with --realised"),
    ("error table.csv --swapped row --recipe tenth.json --seed 5", "--seed goes with --realised"),
    ("error table.csv --swapped row --recipe tenth.json --sampling 2", "--sampling must be a number in (0, 1]"),
    ("correct table.csv --f 0.1 --class N", "--class needs --methods-note"),
    ("correct table.csv --f 0.1 --class-column N", "--class-column needs --methods-note"),
    ("error table.csv --swapped row --recipe much.json", "must be a number in (0, 1]. Got 1.5"),
    ("error table.csv --swapped row --recipe little.json", "moves no record of the table's 607,745"),
    (
        "error totals.csv --swapped row --recipe tenth.json",
        "The row 'all of them' of the table of compare_errors looks",
    ),
    ("correct totals.csv --f 0.1", "it equals the sum of the other rows. Leave totals out"),
    ("error dataset:cps8d --margin Age*MS --recipe tenth.json --no-totals", "--no-totals is for a table"),
    ("error good.csv --recipe tenth.json", "Name the table with --margin"),
    ("correct table.csv", "Give the factor with --f, or the methods note"),
    ("correct table.csv --f 1", "f"),
    ("correct table.csv --methods-note good.csv", "publishes no factor f"),
    ("correct nowhere.csv --f 0.1", "nowhere.csv"),
    ("release dataset:cps8d --swap Edu --rate 0.1 --publish-f --out made", "no factor f to publish"),
]


@pytest.mark.parametrize(("words", "message"), BAD_WORDS)
def test_bad_words_are_one_line_and_exit_code_2(run: Run, table: Path, folder: Path, words: str, message: str) -> None:
    for name, parameters in RECIPES.items():
        recipe(f"{name}.json", **parameters)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    result = run(words)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == (4 if result.stderr.startswith("Usage") else 1)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_a_line_that_is_no_total_can_be_kept(run: Run, table: Path) -> None:
    assert json.loads(run("correct totals.csv --f 0.1 --no-totals --json").stdout)["cells"][4]["swapped"] == 4
    words = f"error totals.csv --swapped row --recipe {recipe(rate=0.3)} --no-totals --json"
    assert len(json.loads(run(words).stdout)["cells"]) == 6


def test_a_permutation_can_be_tried_and_moved_with_its_weight(run: Run) -> None:
    words = (
        "swap good.csv --codebook book.toml --method permutation --swap Age --records 20 --kind cycles --move-weight"
    )
    found = json.loads(run(words + " --seed 1 --measures hellinger(Age*Sex) --json").stdout)
    assert found["recipe"]["weight"] == "moves"
    assert found["recipe"]["kind"] == "cycles"
    assert found["account"]["records"] == 20
