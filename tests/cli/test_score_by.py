"""Scores by area, flows, ranking and rates from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from cli_files import Run

import quadrille as qd

MEASURES = (
    "chi_square",
    "effective_swap_rate",
    "deviance",
    "gini_difference",
    "shannon_difference",
    "renyi_difference",
)
BOOK = """
[columns.county]
kind = "nominal"
role = "geography"
level = 1

[columns.tract]
kind = "nominal"
role = "geography"
level = 2
"""


@pytest.fixture
def census(folder: Path) -> tuple[qd.Data, qd.Data]:
    random = np.random.default_rng(1)
    tract = random.choice(24, 1500, p=random.dirichlet(np.full(24, 3.0)))
    frame = pl.DataFrame(
        {
            "county": [f"County {i // 6}" for i in tract],
            "tract": [f"Tract {i:02}" for i in tract],
            "race": [f"ZQ{i}" for i in (random.random(1500) ** (2 + 2 * (tract % 3)) * 5).astype(int)],
            "sex": random.choice(["ZQm", "ZQf"], 1500),
            "income": random.random(1500),
        }
    )
    (folder / "census.toml").write_text(BOOK)
    data = qd.from_frame(frame, codebook=qd.Codebook.read(folder / "census.toml"))
    after = qd.RandomSwap(["tract"], pairs=60, seed=1).plan(data).apply(data)
    frame.write_csv(folder / "census.csv")
    after.frame().write_csv(folder / "swapped.csv")
    after.frame().sample(fraction=1, shuffle=True, seed=2).write_csv(folder / "shuffled.csv")
    after.frame().filter(pl.col("tract") != "Tract 03").write_csv(folder / "fewer.csv")
    return data, after


def refused(run: Run, words: str) -> str:
    result = run(words)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert "ZQ" not in result.stderr
    return result.stderr


def test_the_spread_and_the_ranking_are_those_of_the_library(run: Run, census: tuple[qd.Data, qd.Data]) -> None:
    words = "score census.csv swapped.csv --codebook census.toml --by county,tract --top 4 --json"
    found = json.loads(run(words).stdout)
    scores = qd.score(*census, by=["county", "tract"])
    assert found["spread"] == scores.spread().to_dicts()
    assert {row["variable"] for row in found["spread"]} == {"race", "sex"}
    assert found["ranking"] == scores.ranking("effective_swap_rate(race)", top=4).to_dicts()
    assert found["scores"].keys() == scores.keys()
    large = json.loads(run(words.replace("--top 4", "--min-records 70")).stdout)["ranking"]
    assert large == scores.ranking("effective_swap_rate(race)", min_records=70).to_dicts()
    assert min(row["before"] for row in large) >= 70


@pytest.mark.parametrize("words", ["", "--codebook census.toml", "--geography county,tract"])
def test_the_tables_fit_a_terminal_and_show_areas_but_no_values(run: Run, census: object, words: str) -> None:
    result = run(f"score census.csv shuffled.csv --by county,tract,county*sex --top 3 {words}")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    by_sex = next(i for i, line in enumerate(lines) if line.startswith("Areas of county*sex"))
    assert "ZQ" not in "\n".join(lines[:by_sex])  # beyond, the values are the areas that were asked for
    assert "race by tract: 24 areas" in lines
    assert "Areas of tract most and least affected: effective_swap_rate(race)" in lines
    for name in MEASURES:
        assert sum(line.split()[:1] == [name] for line in lines) == 3  # sex is an area here, so race is left
    assert "larger does not mean more perturbed" in " ".join(result.stdout.split())


def test_measures_without_variables_are_taken_of_every_variable(run: Run, census: object) -> None:
    measures = "chi_square,hellinger(race*sex)"
    words = f"score census.csv swapped.csv --codebook census.toml --by tract --measures {measures} --json"
    found = json.loads(run(words).stdout)
    assert [row["address"] for row in found["spread"]] == ["chi_square(race)", "chi_square(sex)", "hellinger(race*sex)"]
    assert {row["address"] for row in found["ranking"]} == {"chi_square(race)"}
    words = words.replace("--json", "--rank hellinger --top 1 --json")
    assert {row["address"] for row in json.loads(run(words).stdout)["ranking"]} == {"hellinger(race*sex)"}


def test_every_area_and_the_charts_are_written_and_only_when_asked(
    run: Run, census: tuple[qd.Data, qd.Data], folder: Path
) -> None:
    words = "score census.csv swapped.csv --codebook census.toml --by county,tract --out areas.csv "
    before = set(folder.iterdir())
    result = run(words + "--chart ranking.png --chart-flows flows.png")
    assert result.exit_code == 0, result.output
    assert "Wrote areas.csv, ranking.png, flows.png." in " ".join(result.stdout.split())
    assert {path.name for path in set(folder.iterdir()) - before} == {"areas.csv", "ranking.png", "flows.png"}
    written = pl.read_csv(folder / "areas.csv")
    assert written["value"].to_list() == qd.score(*census, by=["county", "tract"]).by()["value"].to_list()
    assert (folder / "areas.csv").stat().st_mode & 0o777 == 0o600
    assert (folder / "flows.png").read_bytes().startswith(b"\x89PNG")
    assert "exists" in refused(run, words)
    assert run(words + "--overwrite").exit_code == 0


def test_flows_of_a_file_need_the_recipe_unless_its_columns_tell_records_apart(
    run: Run, census: tuple[qd.Data, qd.Data], folder: Path
) -> None:
    columns = ["race", "sex", "tract"]
    for name in ("census", "swapped"):
        pl.read_csv(folder / f"{name}.csv").drop("income").write_csv(folder / f"{name}-narrow.csv")
        narrow = pl.read_csv(folder / f"{name}-narrow.csv").sort(columns)
        narrow.write_csv(folder / f"{name}-sorted.csv")
    sorted_files = "score census-sorted.csv swapped-sorted.csv --by tract --chart-flows flows.png"
    assert "nothing shows that they are" in refused(run, sorted_files)
    assert not (folder / "flows.png").exists()
    words = "census-narrow.csv --geography county,tract"
    done = run(f"swap {words} --swap tract --pairs 60 --seed 1 --out own.csv --save-recipe r.json --measures hellinger")
    assert done.exit_code == 0, done.output
    flows = "score census-narrow.csv own.csv --geography county,tract --by county --chart-flows flows.png"
    assert "--recipe" in refused(run, flows)
    assert run(f"{flows} --recipe r.json").exit_code == 0
    assert (folder / "flows.png").read_bytes().startswith(b"\x89PNG")


def test_what_the_diversities_mean_is_said_wherever_they_are_shown(run: Run, census: object) -> None:
    for words in ("--measures gini_difference(tract*race)", "--by tract --measures renyi_difference(race)"):
        shown = run(f"score census.csv swapped.csv --codebook census.toml {words}")
        assert "larger does not mean more perturbed" in " ".join(shown.stdout.split())
    plain = run("score census.csv swapped.csv --codebook census.toml --measures chi_square(tract*race)")
    assert "larger does not mean" not in plain.stdout


def test_an_area_that_one_file_lacks_is_told(run: Run, census: object) -> None:
    result = run("score census.csv fewer.csv --codebook census.toml --by tract --measures chi_square(race)")
    assert "1 of 24 areas have no value (no record, or no weight, after)" in " ".join(result.stdout.split())


def test_infinity_is_a_text_in_json(run: Run, census: object) -> None:
    measure = "chi_square(race*sex,infinite=1)"
    words = f"score census.csv swapped.csv --codebook census.toml --by tract --top 1 --measures {measure}"
    found = json.loads(run(words + " --json").stdout, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert found["spread"][0]["mean"] == "Infinity"
    assert found["ranking"][0]["value"] == "Infinity"
    assert "infinite" in run(words).stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("census.csv swapped.csv --by cunty", "Did you mean: 'county'"),
        ("census.csv swapped.csv --by income", "'income' is numeric, and by= needs categories"),
        ("census.csv swapped.csv --by race --measures chi_square(race)", "is what the measure"),
        ("census.csv swapped.csv --by tract --measures r_ased(race*sex)", "not computed from a table"),
        ("census.csv swapped.csv --top 3", "--top is about areas"),
        ("census.csv swapped.csv --min-records 3", "--min-records is about areas"),
        ("census.csv swapped.csv --chart-flows f.png", "--chart-flows is about areas"),
        ("census.csv swapped.csv --chart f.png", "--chart is about areas"),
        ("census.csv swapped.csv --out f.csv", "--out is about areas"),
        ("census.csv swapped.csv --by tract --top 0", "--top must be a whole number of 1 or more"),
        ("census.csv swapped.csv --by tract --rank hellinger", "There is no measure 'hellinger'"),
        ("census.csv swapped.csv --by tract --out areas.txt", "must end in .csv or .parquet"),
        ("census.csv swapped.csv --by tract --out swapped.csv --overwrite", "is the original file"),
        ("census.csv swapped.csv --by tract --out a.csv --chart-flows a.csv", "the same file"),
        ("census.csv swapped.csv --by tract --chart a.gif", "cannot be saved as"),
        ("census.csv shuffled.csv --by tract --chart-flows f.png", "in the same order"),
        ("census.csv census.csv --by tract --chart-flows f.png", "No record changes its area"),
        ("census.csv swapped.csv --by tract --geography tract,county", "not nested"),
        ("census.csv many.csv --by tract", "no column 'county' in the second file"),
        ("header.csv swapped.csv --by tract", "no records"),
        ("empty.csv swapped.csv --by tract", "empty"),
    ],
)
def test_bad_calls_are_refused_in_one_line_and_write_nothing(
    run: Run, census: object, folder: Path, words: str, message: str
) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert message in refused(run, f"score {words}")
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before


@pytest.fixture
def tract(folder: Path) -> Path:
    """A recipe that swaps the tract, with a seed."""
    path = folder / "tract.json"
    path.write_text('{"method": "RandomSwap", "swap": ["tract"], "rate": 0.05, "seed": 5}', encoding="utf-8")
    return path


def test_the_values_of_a_parameter_are_compared_by_the_means_of_the_draws(
    run: Run, census: tuple[qd.Data, qd.Data], tract: Path, folder: Path
) -> None:
    words = "score census.csv --codebook census.toml --recipe tract.json --vary rate=0.02,0.1 --draws 3 --by tract"
    found = json.loads(run(words + " --chart rates.png --out runs.parquet --json").stdout)
    assert (found["draws"], found["chart"], found["out"]) == (3, "rates.png", "runs.parquet")
    assert list(dict.fromkeys(row["recipe"] for row in found["measures"])) == ["rate 0.02", "rate 0.1"]
    recipes = qd.grid(qd.RandomSwap, swap=[["tract"]], rate=[0.02, 0.1], seed=range(5, 8))
    address = "deviance(tract*sex)"
    expected = qd.score_recipes(census[0], recipes, [address]).runs
    rows = [row for row in found["measures"] if row["measure"] == address]
    assert len(rows) == 2
    for row in rows:
        values = expected.filter(pl.col("rate") == row["rate"])["value"]
        assert row["mean"] == pytest.approx(values.mean())
        assert row["sd"] == pytest.approx(values.std())
        assert row["draws"] == 3
    drawn = pl.read_parquet(folder / "runs.parquet")
    assert drawn.height == 6 * 13 and set(drawn["measure"]) >= {"pairs", "chi_square(tract*race)"}
    assert (folder / "runs.parquet").stat().st_mode & 0o777 == 0o600
    assert (folder / "rates.png").read_bytes().startswith(b"\x89PNG")
    shown = run(words)
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert "Means over 3 draws of each recipe" in shown.stdout
    assert "larger does not mean more perturbed" in " ".join(shown.stdout.split())


def test_recipes_of_several_files_are_compared(run: Run, census: tuple[qd.Data, qd.Data], tract: Path) -> None:
    Path("sex.json").write_text('{"method": "RandomSwap", "swap": ["sex"], "rate": 0.05, "seed": 5}')
    words = (
        "score census.csv --codebook census.toml --recipe tract.json --recipe sex.json --measures hellinger(tract*sex)"
    )
    found = json.loads(run(words + " --draws 2 --json").stdout)["measures"]
    assert [(row["recipe"], row["measure"]) for row in found if row["measure"] != "pairs"] == [
        ("tract.json", "hellinger(tract*sex)"),
        ("sex.json", "hellinger(tract*sex)"),
    ]
    kept = qd.Recipe.from_json(Path("tract.json").read_text())
    alone = qd.score_recipes(census[0], {"tract.json": kept}, ["hellinger(tract*sex)"], draws=2).frame()
    assert [row["mean"] for row in found if row["recipe"] == "tract.json"][-1] == alone["mean"][0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--by tract", "recipes to be drawn with --recipe FILE"),
        ("--recipe tract.json --by tract --vary rate=a,b", "a number in (0, 1]. Got 'a'."),
        ("--recipe tract.json --by tract --vary rate=2", "a number in (0, 1]. Got 2.0."),
        ("--recipe tract.json --by tract --vary rate=", "like rate=0.01,0.05"),
        ("--recipe tract.json --by tract --draws 0", "--draws must be a whole number of 1 or more"),
        ("--recipe tract.json --by tract --vary seed=abc", "a whole number of 0 or more"),
        ("--recipe tract.json --by trackt", "Did you mean: 'tract'"),
        ("--recipe tract.json --by tract --out a.txt", "must end in"),
        ("--recipe tract.json --by tract --out tract.json --overwrite", "is the recipe that this command reads"),
        ("--recipe tract.json --by tract --chart a.gif", "cannot be saved as"),
        ("--recipe tract.json --by tract --rank hellinger", "--rank compares two files"),
        ("--recipe tract.json --by tract --chart-flows f.png", "--chart-flows compares two files"),
    ],
)
def test_bad_calls_of_recipes_are_refused(
    run: Run, census: object, tract: Path, folder: Path, words: str, message: str
) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert message in refused(run, f"score census.csv {words}")
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before
