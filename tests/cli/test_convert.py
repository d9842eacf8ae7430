"""Statistical files on the command line: convert, inspect, and the whole way from a file to a release."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from cli_files import SECRET, Run

import quadrille as qd
from effort import tries
from quadrille.io import stat_read as read
from stat_cases import READERS, SHORT, frame, write_case

SMALL = 120


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read without a process of its own, which takes time; some tests turn it on again."""
    monkeypatch.setattr(read, "ISOLATED", False)


def test_convert_writes_the_same_data_and_lists_what_is_lost(run: Run, folder: Path) -> None:
    write_case(folder / "in.sav", SMALL)
    done = run("convert in.sav out.dta --json")
    assert done.exit_code == 0
    told = json.loads(done.stdout)
    assert told["records"] == SMALL
    assert any("value labels for text" in line for line in told["not_held"])
    assert "identifiers are kept (caseid)" in done.stderr
    assert (folder / "out.dta").stat().st_mode & 0o777 == 0o600
    before, after = qd.read(folder / "in.sav"), qd.read(folder / "out.dta")
    assert after.frame().select(before.columns[:4]).equals(before.frame().select(before.columns[:4]))
    shown = run("convert in.sav out.dta --overwrite")
    assert "Not in the file" in shown.stdout
    assert "120 records, 10 columns" in shown.stdout


@pytest.mark.parametrize("between", ["csv", "parquet"])
@pytest.mark.parametrize("suffix", ["sav", "dta", "xpt"])
def test_convert_with_a_codebook_gives_everything_back(run: Run, folder: Path, suffix: str, between: str) -> None:
    write_case(folder / f"in.{suffix}", SMALL)
    assert "write the codebook too" in run(f"convert in.{suffix} out.{between}").stdout
    done = run(f"convert in.{suffix} out.{between} --write-codebook out.toml --overwrite")
    assert done.exit_code == 0
    assert "Not in the file" not in done.stdout
    done = run(f"convert out.{between} again.{suffix} --codebook out.toml --json")
    assert [line for line in json.loads(done.stdout)["not_held"] if "version 8" not in line] == []
    before, after = qd.read(folder / f"in.{suffix}"), qd.read(folder / f"again.{suffix}")
    assert after.codebook == before.codebook
    assert after.frame().equals(before.frame())
    options = {} if suffix == "xpt" else {"user_missing": True}
    (old, was), (new, now) = (READERS[f".{suffix}"](folder / f"{n}.{suffix}", **options) for n in ("in", "again"))
    assert old.equals(new)
    for fact in (*FACTS, "column_names", "readstat_variable_types", "variable_display_width", "variable_storage_width"):
        assert getattr(now, fact) == getattr(was, fact), fact


BAD = {
    "convert good.csv good.csv --overwrite": "is the original file",
    "convert good.csv out.sas7bdat": "Only SAS writes",
    "convert good.csv out.xlsx": "Supported are",
    "convert good.csv nowhere/out.sav": "Cannot write 'nowhere/out.sav'",
    "convert good.csv book.toml": "exists",
    "convert good.csv out.csv --write-codebook out.csv": "same file",
    "convert nowhere.sav out.csv": "No such file",
    "convert lie.sav out.csv": "not intact SPSS",
    "convert lie.dta out.csv": "not intact Stata",
    "convert lie.por out.csv": "not intact SPSS portable",
    "convert lie.xpt out.csv": "not intact SAS transport",
    "convert lie.sas7bdat out.csv": "not intact SAS",
    "inspect lie.sas7bdat --catalog lie.dta": "not intact SAS",
    "inspect good.csv --catalog lie.dta": "catalog belongs to",
    "convert spaces.csv out.sav": "'my column'",
    "convert huge.csv out.sav": "'Big' holds whole numbers beyond",
    "inspect good.csv --write-codebook book.toml": "exists",
    "release good.csv --swap Sex --rate 0.2 --format por": "'sav'",
}


@pytest.mark.parametrize("words", BAD)
def test_bad_calls_end_with_one_message_and_nothing_written(run: Run, folder: Path, words: str) -> None:
    for suffix in ("sav", "dta", "por", "xpt", "sas7bdat"):
        (folder / f"lie.{suffix}").write_bytes((folder / "good.csv").read_bytes())
    (folder / "spaces.csv").write_text("my column,b\nZQ1,1\nZQ2,2\n")
    (folder / "huge.csv").write_text(f"Big,b\n{2**63 - 1},1\n{2**62},2\n")
    before = {path.name for path in folder.iterdir()}
    done = run(words)
    assert done.exit_code == 2
    assert BAD[words] in " ".join(done.stderr.split())
    assert done.stderr.count("quadrille:") == 1
    assert SECRET not in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    assert {path.name for path in folder.iterdir()} == before


def test_inspect_gives_reasons_and_writes_the_codebook(run: Run, folder: Path) -> None:
    write_case(folder / "in.sav", SMALL)
    done = run("inspect in.sav --write-codebook new.toml --full --json")
    told = json.loads(done.stdout)
    reasons = {column["name"]: column["reason"] for column in told["columns"]}
    assert reasons["Sex"] == "SPSS calls it nominal"
    assert "whole numbers" in reasons["ageGrp"] or "ordinal" in reasons["ageGrp"]
    assert "identifier" in reasons["caseid"]
    assert reasons["Born"] == "dates or times"
    assert {column["name"]: column["label"] for column in told["columns"]}["Sex"] == "Geschlecht"
    assert qd.Codebook.read(folder / "new.toml") == qd.read(folder / "in.sav").codebook
    shown = run("inspect in.sav --codebook new.toml --reasons").stdout
    assert "as the codebook says" in shown
    assert "Geschlecht" in shown


def test_inspect_finds_what_must_be_looked_at(run: Run, folder: Path) -> None:
    rng = np.random.default_rng(3)
    n = 400
    table = pl.DataFrame(
        {
            "same": ["ZQ"] * n,
            "hhid": np.arange(n) // 2,
            "serial": np.arange(n),
            "level": np.array(["ZQlow", "ZQmid", "ZQtop"])[rng.integers(0, 3, n)],
            "weight": rng.random(n) * 0.3,
            "county": np.arange(n) % 8,
            "tract": np.arange(n) % 40,
            "ward": rng.integers(0, 45, n),
            "job": [f"ZQ{i % 133}" for i in range(n)],
        }
    )
    table.write_csv(folder / "odd.csv")
    (folder / "odd.toml").write_text('[columns.level]\nkind = "ordinal"\n')
    hints = json.loads(run("inspect odd.csv --codebook odd.toml --json").stdout)["hints"]
    text = "\n".join(hints)
    for expected in (
        "'same' has the same value in every record",
        "Taken for identifiers and left out of releases: 'hhid', 'serial'. To release one on purpose",
        "The order of the categories is missing for 'level'",
        "'weight' is called like a weight",
        "'county' and 'tract' look like areas inside areas",
        "are not nested",
        "of the 133 categories of 'job' have fewer than 5 records",
    ):
        assert expected in text, expected
    assert SECRET not in text
    weighted = json.loads(run("inspect odd.csv --weight weight --json").stdout)["hints"]
    assert any("sum to less than the number of records" in hint for hint in weighted)


def test_swap_writes_statistical_files_and_tells_what_they_lack(run: Run, folder: Path) -> None:
    write_case(folder / "in.dta", SMALL)
    done = run("swap in.dta --swap ageGrp --rate 0.2 --seed 1 --out out.sav")
    assert done.exit_code == 0
    assert "not in the file: ageGrp, Income: missing codes such as .a become empty values." in " ".join(
        done.stderr.split()
    )
    same = run("swap in.dta --swap ageGrp --rate 0.2 --seed 1 --out out.dta")
    assert "not in the file" not in same.stderr


JOB = """
[data]
file = "in.{suffix}"
codebook = "keys.toml"

[search]
measures = ["small_cells", "exposed", "hellinger"]
out = "new.study"

[[grid]]
method = "RandomSwap"
swap = [["{age}"], ["{sex}"]]
rate = [0.01]
seeds = 1
"""
KEYS = '[columns.{sex}]\nkind = "nominal"\nrole = "key"\n[columns.{age}]\nkind = "ordinal"\nrole = "key"\n'
FACTS = (
    "column_names_to_labels",
    "original_variable_types",
    "variable_value_labels",
    "missing_ranges",
    "missing_user_values",
    "variable_measure",
)


@pytest.mark.parametrize("suffix", ["sav", "zsav", "por", "dta", "xpt", "csv", "parquet"])
def test_many_rows_go_all_the_way(run: Run, folder: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, source = tries(20_000, nightly=100_000), folder / f"in.{suffix}"
    names = {"sex": "SEX", "age": "AGEGRP"} if suffix == "por" else {"sex": "Sex", "age": "ageGrp"}
    written = {"zsav": "sav", "por": "sav"}.get(suffix, suffix)
    write_case(source, rows, SHORT)
    monkeypatch.setattr(read, "ISOLATED", True)  # as it is outside of tests
    monkeypatch.setattr(read, "parse", cache(read.parse))  # each file once: three commands read the same
    found = json.loads(run(f"inspect in.{suffix} --write-codebook in.toml --json").stdout)
    assert found["records"] == rows
    monkeypatch.setattr(read, "ISOLATED", False)
    (folder / "keys.toml").write_text(KEYS.format(**names))
    (folder / "job.toml").write_text(JOB.format(suffix=suffix, **names))
    assert run("search job.toml --workers 1 --json").exit_code == 0
    words = f"release in.{suffix} --codebook keys.toml --study new.study --candidate 1 --keep-order --format {written}"
    done = run(f"{words} --out out --measures hellinger --json")
    assert done.exit_code == 0, done.stderr
    public = folder / "out" / "public" / f"data.{written}"
    book = qd.Codebook.read(folder / "out" / "public" / "codebook.toml")
    before, after = qd.read(source.name, codebook="keys.toml"), qd.read(public, codebook=book)
    swapped = pl.read_parquet(folder / "out" / "confidential" / "plan.parquet")["row"].unique()
    assert 0 < len(swapped) < rows / 20
    untouched = np.setdiff1d(np.arange(rows), swapped.to_numpy())
    was, now = before.frame(), after.frame()
    assert now.columns == [name for name in was.columns if before.codebook[name].role != "id"]
    for name in now.columns:
        kept = slice(None) if name not in names.values() else untouched
        assert was[name][kept].cast(pl.String).equals(now[name][kept].cast(pl.String)), name
    assert not was.select(names.values()).equals(now.select(names.values()))
    if source.suffix in READERS:
        _same_facts(source, public, now.columns)


def _same_facts(source: Path, public: Path, names: list[str]) -> None:
    """Compare what two files say about their columns, as pyreadstat reads it from a few rows."""
    options = {} if ".xpt" in (source.suffix, public.suffix) else {"user_missing": True}
    original = READERS[source.suffix](source, row_limit=1, **({} if source.suffix == ".por" else options))[1]
    released = READERS[public.suffix](public, row_limit=1, **options)[1]
    for fact in FACTS:
        told = {name: value for name, value in getattr(original, fact).items() if name in names}
        assert getattr(released, fact) == told, fact


def test_frames_of_the_cases_have_empty_fields() -> None:
    assert frame(SMALL).null_count().sum_horizontal().item() > 0
