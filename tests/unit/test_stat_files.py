"""Files of SPSS, Stata and SAS: nothing is lost on the way in and out without a word, and nothing bad gets through."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import random
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyreadstat
import pytest

import quadrille as qd
from effort import tries
from quadrille.codebook import Stored, Variable
from quadrille.errors import InputError, OutputError
from quadrille.io import stat_library as library
from quadrille.io import stat_read as read
from quadrille.io.frames import from_frame
from quadrille.release.release import release
from stat_cases import LONG, frame, portable, write_case

ROWS = 300
SECRET = "Zebedee"


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read without a process of its own, which takes time; some tests turn it on again."""
    monkeypatch.setattr(read, "ISOLATED", False)


@pytest.fixture
def sav(tmp_path: Path) -> qd.Data:
    write_case(tmp_path / "in.sav", ROWS)
    return qd.read(tmp_path / "in.sav")


@pytest.fixture
def dta(tmp_path: Path) -> qd.Data:
    write_case(tmp_path / "in.dta", ROWS)
    return qd.read(tmp_path / "in.dta")


def _meta(path: Path, **options: Any) -> tuple[pd.DataFrame, Any]:
    readers = {".sav": pyreadstat.read_sav, ".dta": pyreadstat.read_dta, ".xpt": pyreadstat.read_xport}
    return readers[path.suffix](path, **options)


# --- what is taken over ---


def test_an_spss_file_brings_its_words_and_codes(sav: qd.Data) -> None:
    book = sav.codebook
    assert book["Sex"].categories == (1, 2, 3)  # 3 has a label and no record
    assert book["Sex"].labels == ("männlich", "weiblich", "divers")
    assert (book["Sex"].kind, book["ageGrp"].kind, book["Income"].kind) == ("nominal", "ordinal", "numeric")
    assert book["Sex"].label == "Geschlecht"
    assert book["ageGrp"].missing == (99,)
    assert book["ageGrp"].missing_labels == ("no answer",)
    assert book["ageGrp"].missing_ranges == ((90.0, 99.0),)
    assert book["ageGrp"].labels == ("<20", "20-39", "", "", "", "")
    assert sav["ageGrp"].labels[:3] == ("<20", "20-39", "3")
    assert book["Income"].missing == (-9, -8)
    assert book["Income"].missing_labels == ("refused", "")
    assert book["Income"].labelled == ((0, "none"),)
    assert book["Grade"].missing == ("x",)
    assert book["Income"].stored == Stored("spss", "F12.2", "double", display=14, measure="scale")
    assert book["Place"].stored is not None
    assert book["Place"].stored.width == len(LONG.encode())
    assert sav.columns == frame(1).columns


def test_the_values_are_those_of_the_file(sav: qd.Data) -> None:
    expected = frame(ROWS).with_columns(pl.col("caseid", "Sex", "ageGrp").cast(pl.Int64))
    assert sav.frame().equals(expected)
    assert np.isnan(sav["Income"].values).sum() == (expected["Income"] == -9).sum()


def test_a_stata_file_brings_its_missing_values_a_to_z(dta: qd.Data) -> None:
    book = dta.codebook
    assert book["ageGrp"].categories == (1, 2, 3, 4, 5, 6)
    assert book["ageGrp"].missing == (".a", ".c", ".z")
    assert book["ageGrp"].missing_labels == ("refused", "never used", "")
    assert book["Income"].missing == (".b",)
    assert (book["ageGrp"].kind, book["Income"].kind) == ("ordinal", "numeric")
    expected = frame(ROWS)
    tagged = dta["ageGrp"].values >= dta["ageGrp"].valid
    assert np.array_equal(tagged, (expected["ageGrp"] == 99).to_numpy())
    assert dta.frame()["ageGrp"].is_in([".a", ".z"]).sum() == tagged.sum()
    assert dta.frame()["Income"].str.starts_with(".b").sum() == (expected["Income"] == -9).sum()


def test_a_portable_file_keeps_labels_and_missing_codes(tmp_path: Path) -> None:
    portable(tmp_path / "in.por")
    data = qd.read(tmp_path / "in.por")
    variable = data.codebook["INC"]
    assert (variable.label, variable.missing, variable.missing_labels) == ("Income", (99,), ("refused",))
    assert variable.labelled == ((1, "one"),)
    assert data.frame()["INC"].to_list() == [1.0, 99.0, 2.5, None]
    qd.write(data, tmp_path / "out.sav")
    assert qd.read(tmp_path / "out.sav") == data


def test_transport_files_keep_special_missing_values_on_the_way_in(tmp_path: Path) -> None:
    path = tmp_path / "in.xpt"
    pyreadstat.write_xport(pl.DataFrame({"x": [1.5, None, 2.5]}), path)
    raw = path.read_bytes()
    empty = raw.rindex(b"\x2e" + b"\x00" * 7)
    path.write_bytes(raw[:empty] + b"B" + raw[empty + 1 :])  # SAS writes .B as the letter and seven zeros
    data = qd.read(path)
    assert data.codebook["x"].missing == (".B",)
    assert data.frame()["x"].to_list() == ["1.5", ".B", "2.5"]
    assert qd.write(data, tmp_path / "out.xpt") == ("x: missing codes such as .a become empty values.",)
    qd.write(data, tmp_path / "out.dta")
    assert qd.read(tmp_path / "out.dta").codebook["x"].missing == (".b",)


def test_a_codebook_comes_before_the_file_and_the_file_before_the_guess(tmp_path: Path, sav: qd.Data) -> None:
    mine = qd.Codebook(
        (
            Variable("ageGrp", "ordinal", (1, 2, 3, 4, 5, 6), ("A", "B", "C", "D", "E", "F"), role="key", label="Mine"),
            Variable("Half", "nominal"),
        )
    )
    data = qd.read(tmp_path / "in.sav", codebook=mine)
    variable = data.codebook["ageGrp"]
    assert (variable.labels[0], variable.label, variable.role) == ("A", "Mine", "key")
    assert variable.missing == (99,)
    assert variable.stored == sav.codebook["ageGrp"].stored
    assert data.codebook["Half"].categories == (0.0, 0.5, 1.0, 1.5)
    assert data.codebook["Sex"] == sav.codebook["Sex"]


@pytest.mark.parametrize("size", [1, 7, 100])
def test_batches_give_the_same_data(
    tmp_path: Path, sav: qd.Data, dta: qd.Data, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    if size == 1:
        pyreadstat.write_sav(frame(3), tmp_path / "in.sav")
        sav = qd.read(tmp_path / "in.sav")
        dta = sav
    monkeypatch.setattr(library, "BATCH", size)
    assert qd.read(tmp_path / "in.sav") == sav
    if size > 1:
        assert qd.read(tmp_path / "in.dta") == dta


def test_an_identifier_is_recognised_and_not_released(tmp_path: Path, sav: qd.Data) -> None:
    assert sav.codebook["caseid"].role == "id"
    whole = frame(ROWS).with_columns(pl.col("caseid").cast(pl.Int64))
    names = pl.Series("surname", [f"n{i % 200}" for i in range(ROWS)])
    assert from_frame(whole.with_columns(names)).codebook["caseid"].role == "id"
    assert from_frame(whole.with_columns(names)).codebook["surname"].role == "id"
    assert from_frame(whole.rename({"caseid": "paid"})).codebook["paid"].role is None
    for form in ("csv", "parquet", "sav", "dta", "xpt"):
        made = release(sav, qd.RandomSwap(["Sex"], rate=0.1), tmp_path / form, format=form)
        assert "caseid" not in qd.read(made.public / f"data.{form}").columns


# --- there and back ---


@pytest.mark.parametrize("suffix", [".sav", ".dta"])
def test_labels_codes_formats_and_order_survive_a_swap(tmp_path: Path, suffix: str) -> None:
    source = tmp_path / f"in{suffix}"
    write_case(source, ROWS)
    data = qd.read(source)
    plan = qd.RandomSwap(["ageGrp", "Income"], rate=0.2, seed=1).plan(data)
    swapped = plan.apply(data)
    assert qd.write(swapped, tmp_path / f"out{suffix}") == ()
    assert qd.read(tmp_path / f"out{suffix}") == swapped
    _, before = _meta(source, user_missing=True)
    _, after = _meta(tmp_path / f"out{suffix}", user_missing=True)
    for fact in (
        "column_names",
        "column_labels",
        "variable_value_labels",
        "missing_ranges",
        "missing_user_values",
        "original_variable_types",
        "variable_measure",
        "variable_display_width",
        "variable_storage_width",
        "readstat_variable_types",
    ):
        assert getattr(after, fact) == getattr(before, fact), fact


def _release(data: qd.Data, folder: Path, form: str) -> Path:
    made = release(data, qd.RandomSwap(["ageGrp"], rate=0.2), folder / form, format=form, shuffle=False)
    return made.public / f"data.{form}"


def test_pandas_opens_a_released_stata_file_with_labels(tmp_path: Path, dta: qd.Data) -> None:
    with pd.read_stata(_release(dta, tmp_path, "dta"), iterator=True) as reader:
        assert reader.variable_labels()["Sex"] == "Geschlecht"
        assert reader.value_labels()["Sex0"] == {1: "männlich", 2: "weiblich"}
        table = reader.read(convert_categoricals=False)
    assert table["Sex"].tolist() == dta.frame()["Sex"].to_list()
    assert table["Place"].tolist() == dta.frame()["Place"].fill_null("").to_list()
    assert [None if pd.isna(day) else day.date() for day in table["Born"]] == dta.frame()["Born"].to_list()


def test_pandas_opens_a_released_spss_file_with_labels(tmp_path: Path, sav: qd.Data) -> None:
    table = pd.read_spss(_release(sav, tmp_path, "sav"))
    assert table.columns.tolist() == [name for name in sav.columns if name != "caseid"]
    words = {1: "männlich", 2: "weiblich"}
    assert table["Sex"].tolist() == [words[code] for code in sav.frame()["Sex"]]
    assert [None if pd.isna(day) else day for day in table["Born"]] == sav.frame()["Born"].to_list()


def test_pandas_opens_a_released_transport_file_of_version_5(tmp_path: Path, sav: qd.Data) -> None:
    short = qd.Data([sav[name] for name in sav.columns if name != "Place"])
    path = _release(short, tmp_path, "xpt")
    assert "version 8" not in (path.parent / "methods.md").read_text()
    table = pd.read_sas(path, format="xport", encoding="utf-8")
    assert table["Income"].tolist() == short.frame()["Income"].to_list()
    assert table["Grade"].tolist() == short.frame()["Grade"].to_list()
    epoch = dt.date(1960, 1, 1)  # pandas leaves the days of a transport file as numbers
    born = [None if pd.isna(day) else epoch + dt.timedelta(days=int(day)) for day in table["Born"]]
    assert born == short.frame()["Born"].to_list()
    _, meta = _meta(path)
    assert meta.column_names_to_labels["Sex"] == "Geschlecht"


def test_a_transport_file_of_version_8_says_who_does_not_open_it(tmp_path: Path, sav: qd.Data) -> None:
    path = _release(sav, tmp_path, "xpt")
    note = (path.parent / "methods.md").read_text()
    assert "pandas and old SAS read version 5 only" in note
    assert "texts of 200 bytes in: Place." in note
    with pytest.raises(ValueError, match=r"[Hh]eader record"):
        pd.read_sas(path, format="xport", encoding="utf-8")
    back, meta = _meta(path)
    assert back["Income"].tolist() == sav.frame()["Income"].to_list()
    assert meta.column_names_to_labels["Place"] == "Wohnort ü"


VERSION_8 = "The file is of version 8 of the transport format: pandas and old SAS read version 5 only."
USUAL = "Born, Seen, At: dates or times are shown in the usual form of"
LOST = {
    (".sav", ".dta"): {
        "ageGrp, Income, Grade: Stata declares no",
        "Place: Stata holds no value labels for text.",
        f"{USUAL} Stata",
        "Sex, ageGrp, Income: Stata holds no level of measurement.",
        "Sex, Income: Stata holds no width of a column on the screen.",
    },
    (".sav", ".xpt"): {
        VERSION_8,
        "Sex, ageGrp, Income: SAS transport holds no value labels.",
        "ageGrp, Income, Grade: SAS transport declares no",
        "Place: SAS transport holds no value labels for text.",
        f"{USUAL} SAS transport",
        "Sex, ageGrp, Income: SAS transport holds no level of measurement.",
        "Sex, Income: SAS transport holds no width of a column on the screen.",
    },
    (".dta", ".sav"): {
        "ageGrp, Income: missing codes such as .a become empty values.",
        "ageGrp, Income: some value labels belong to",
        f"{USUAL} SPSS",
    },
    (".dta", ".xpt"): {
        VERSION_8,
        "Sex, ageGrp, Income: SAS transport holds no value labels.",
        "ageGrp, Income: missing codes such as .a become empty values.",
        f"{USUAL} SAS transport",
    },
    (".sav", ".sav"): set[str](),
    (".zsav", ".sav"): set[str](),
    (".dta", ".dta"): set[str](),
    (".xpt", ".xpt"): {VERSION_8},
    (".sav", ".csv"): {
        "Sex, ageGrp, Income, Place, Grade, Born: labels and missing codes",
        "Display formats, storage",
        "Born, Seen, At: dates and times are written as text",
    },
    (".dta", ".parquet"): {"Sex, ageGrp, Income, Place: labels and missing codes", "Display formats, storage"},
}


@pytest.mark.parametrize(("source", "target"), LOST)
def test_what_a_format_cannot_hold_is_listed_line_by_line(tmp_path: Path, source: str, target: str) -> None:
    write_case(tmp_path / f"in{source}", ROWS)
    data = qd.read(tmp_path / f"in{source}")
    lines = qd.write(data, tmp_path / f"out{target}")
    expected = LOST[source, target]
    assert len(lines) == len(expected)
    for start in expected:
        assert any(line.startswith(start) for line in lines), start
    made = release(data, qd.RandomSwap(["Sex"], rate=0.2), tmp_path / "release", format=target[1:])
    note = (made.public / "methods.md").read_text()
    lines = tuple(line for line in lines if "write the codebook too" not in line)  # a release has it
    assert made.not_held == lines
    assert all(f"- {line}" in note for line in lines)
    assert ("What the file does not hold" in note) == bool(lines)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".csv.gz", ".tsv"])
def test_plain_tables_and_their_codebook_give_everything_back(
    tmp_path: Path, sav: qd.Data, dta: qd.Data, suffix: str
) -> None:
    for data in (sav, dta):
        lines = qd.write(data, tmp_path / f"out{suffix}")
        assert len(lines) == (2 if suffix == ".parquet" else 3)
        assert all("write the codebook too" in line for line in lines)
        data.codebook.write(tmp_path / "book.toml")
        back = qd.read(tmp_path / f"out{suffix}", codebook=tmp_path / "book.toml")
        assert back.codebook == data.codebook
        for name in data.columns:
            assert np.array_equal(back[name].values, data[name].values, equal_nan=not data[name].variable.coded), name


def test_the_files_own_label_and_notes_are_left_behind_with_a_word(tmp_path: Path) -> None:
    pyreadstat.write_sav(pl.DataFrame({"x": [1.0, 2.0]}), tmp_path / "in.sav", file_label=SECRET, note=[SECRET, "b"])
    data = qd.read(tmp_path / "in.sav")
    assert data.remarks == (
        "The file's own label is not copied.",
        "Notes attached to the file are not copied (lines: 2).",
    )
    for name in ("out.sav", "out.dta", "out.csv"):
        assert qd.write(data.take(np.array([0, 1])), tmp_path / name)[:2] == data.remarks
        assert SECRET.encode() not in (tmp_path / name).read_bytes()


def test_words_do_not_change_the_fingerprint() -> None:
    data = from_frame(pl.DataFrame({"x": [1, 2, 2], "y": ["a", "b", "c"]}))
    column = data["x"]
    words = replace(column.variable, label="X", stored=Stored("spss", "F8.2"), labelled=((9, "nine"),))
    spoken = qd.Data([replace(column, variable=words), data["y"]])
    assert spoken.fingerprint == data.fingerprint
    assert repr(words) == repr(column.variable)
    assert spoken != data


# --- what cannot be written ---

NOT_EXACT = 2**53 + 1
REFUSED: dict[str, tuple[dict[str, list[object]], str, tuple[str, ...]]] = {
    "whole numbers beyond 2^53": (
        {"x": [NOT_EXACT, 1]},
        r"'x' holds whole numbers beyond .*2\^53",
        (".sav", ".dta", ".xpt"),
    ),
    "ids of 64 bits": ({"x": [2**63 - 1, 2**62]}, r"'x' holds whole numbers", (".sav", ".dta", ".xpt")),
    "numbers beyond the range of Stata": ({"x": [1e308, 1.5]}, "too large", (".dta", ".xpt")),
    "numbers beyond the range of SAS": ({"x": [1e76, 1.5]}, "too large", (".xpt",)),
    "infinite numbers": ({"x": [float("inf"), 1.5]}, "infinite", (".sav", ".dta", ".xpt")),
    "blanks at the end": ({"x": [f"{SECRET} ", "b"]}, "end in blanks", (".sav", ".xpt")),
    "zero bytes": ({"x": [f"{SECRET}\0", "b"]}, "zero bytes", (".sav", ".dta", ".xpt")),
    "long texts": ({"x": [SECRET * 6000, "b"]}, "more than 32,767 bytes", (".sav", ".xpt")),
    "names with blanks": ({"my name": [1, 2]}, "column names 'my name'", (".sav", ".dta", ".xpt")),
    "names that begin with a digit": ({"1st": [1, 2]}, "'1st'", (".sav", ".dta", ".xpt")),
    "long names": ({"n" * 33: [1, 2]}, "at most 32", (".dta", ".xpt")),
    "reserved words": ({"With": [1, 2], "strL": [1, 2]}, "column names", (".sav", ".dta")),
    "names that differ by case": ({"Age": [1, 2], "age": [1, 2]}, "by case only", (".sav", ".xpt")),
    "non-ASCII names": ({"größe": [1, 2]}, "'größe'", (".xpt",)),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_held_at_all_is_refused(tmp_path: Path, what: str) -> None:
    columns, message, formats = REFUSED[what]
    data = from_frame(pl.DataFrame(columns))
    for suffix in formats:
        with pytest.raises(OutputError, match=message) as caught:
            qd.write(data, tmp_path / f"out{suffix}")
        assert SECRET not in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", [".sav", ".dta"])
def test_mixed_case_and_non_ascii_names_are_kept(tmp_path: Path, suffix: str) -> None:
    data = from_frame(pl.DataFrame({"größeCm": [1, 2], "Age_1": ["ä", "b"], "AGE_2": [True, False]}))
    assert qd.write(data, tmp_path / f"out{suffix}") == ("AGE_2: true and false are written as 1 and 0.",)
    assert qd.read(tmp_path / f"out{suffix}").columns == data.columns


def test_stata_keeps_names_that_differ_by_case(tmp_path: Path) -> None:
    data = from_frame(pl.DataFrame({"Age": [1, 2], "age": [3, 4]}))
    qd.write(data, tmp_path / "out.dta")
    assert qd.read(tmp_path / "out.dta").frame().equals(data.frame())


def test_labels_and_codes_beyond_the_limits_are_cut_and_told(tmp_path: Path) -> None:
    long = "ü" * 150
    variable = Variable("x", "ordinal", (1, 2), (long, "b"), (7, 8, 9, 10), label=long * 2)
    data = from_frame(pl.DataFrame({"x": [1, 2, 9]}), codebook=qd.Codebook((variable,)))
    lines = qd.write(data, tmp_path / "out.sav")
    assert [line.split(": ")[1] for line in lines] == [
        "the label is cut to what SPSS holds.",
        "value labels are cut to what SPSS holds.",
        "SPSS declares three missing codes or a range and a code; the others are plain values.",
    ]
    back = qd.read(tmp_path / "out.sav").codebook["x"]
    assert back.label == "ü" * 128
    assert back.labels[0] == "ü" * 60
    assert back.missing == (7, 8, 9)
    assert back.categories == (1, 2)
    lines = qd.write(data, tmp_path / "out.dta")
    assert lines[0] == "x: the label is cut to what Stata holds."
    assert qd.read(tmp_path / "out.dta").codebook["x"].label == "ü" * 80


def test_a_narrower_storage_is_told(tmp_path: Path) -> None:
    byte = Variable("x", "ordinal", stored=Stored("stata", "%8.0g", "int8"))
    flt = Variable("y", "numeric", stored=Stored("stata", "%9.0g", "float"))
    text = Variable("z", "nominal", stored=Stored("stata", "%20s", "string", width=20))
    table = pl.DataFrame({"x": [1, 2], "y": [0.5, 1.5], "z": ["a", "b"]})
    lines = qd.write(from_frame(table, codebook=qd.Codebook((byte, flt, text))), tmp_path / "out.dta")
    assert len(lines) == 3
    assert [line[0] for line in lines] == ["x", "y", "z"]


def test_a_file_that_would_come_back_different_is_not_kept(
    tmp_path: Path, sav: qd.Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = pyreadstat.write_sav

    def careless(table: pl.DataFrame, path: str, **options: Any) -> None:
        write(table.with_columns(pl.col("Income") + 1), path, **options)

    monkeypatch.setattr(pyreadstat, "write_sav", careless)
    with pytest.raises(OutputError, match="'Income' does not come back"):
        qd.write(sav, tmp_path / "out.sav")
    assert not (tmp_path / "out.sav").exists()


# --- bad files ---

BAD = {"sav": "SPSS", "dta": "Stata", "xpt": "SAS transport", "por": "SPSS portable", "sas7bdat": "SAS"}


@pytest.mark.parametrize("suffix", BAD)
def test_files_that_are_something_else_are_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"in.{suffix}"
    lies = [b"Sex,Age\nZebedee,1\n" * 40, random.Random(1).randbytes(800), b"PK\x03\x04" + b"\0" * 796, SECRET.encode()]
    for raw in lies:
        path.write_bytes(raw)
        with pytest.raises(InputError, match=r"is not intact|is cut off") as caught:
            qd.read(path)
        assert SECRET not in str(caught.value)
        assert caught.value.__suppress_context__ or caught.value.__context__ is None
    path.write_bytes(b"")
    with pytest.raises(InputError, match="is empty"):
        qd.read(path)
    with pytest.raises(InputError, match="No such file"):
        qd.read(tmp_path / f"none.{suffix}")


@pytest.mark.parametrize("suffix", ["sav", "dta", "xpt"])
def test_truncated_files_are_refused(tmp_path: Path, suffix: str) -> None:
    write_case(tmp_path / f"in.{suffix}", 50)
    raw = (tmp_path / f"in.{suffix}").read_bytes()
    path = tmp_path / f"cut.{suffix}"
    for share in (0.1, 0.3, 0.5, 0.9, 0.999):
        size = int(len(raw) * share)
        path.write_bytes(raw[: size - (size % 80 == 0)])
        with pytest.raises(InputError, match=r"cut\."):
            qd.read(path)


def test_a_row_count_that_lies_is_refused_in_little_memory(tmp_path: Path) -> None:
    write_case(tmp_path / "in.dta", 50)
    raw = (tmp_path / "in.dta").read_bytes()
    at = raw.index(b"<N>") + 3
    (tmp_path / "in.dta").write_bytes(raw[:at] + (2**40).to_bytes(8, "little") + raw[at + 8 :])
    with pytest.raises(InputError, match="not intact Stata"):
        qd.read(tmp_path / "in.dta")


def test_damaged_files_are_refused_or_read_but_never_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "ISOLATED", True)  # a damaged file can kill the process that reads it
    dice = random.Random(5)
    for suffix in ("sav", "dta", "xpt"):
        write_case(tmp_path / f"in.{suffix}", 20)
        raw = (tmp_path / f"in.{suffix}").read_bytes()
        for _ in range(tries(1, nightly=20)):
            damaged = bytearray(raw)
            for _ in range(12):
                damaged[dice.randrange(len(damaged))] = dice.randrange(256)
            (tmp_path / f"bad.{suffix}").write_bytes(damaged)
            with contextlib.suppress(InputError):
                assert qd.read(tmp_path / f"bad.{suffix}").columns
    assert qd.read(tmp_path / "in.xpt").n == 20


def test_a_reader_that_dies_is_an_error_message(tmp_path: Path, sav: qd.Data, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "ISOLATED", True)
    assert qd.read(tmp_path / "in.sav") == sav
    (tmp_path / "dies").write_text("#!/bin/sh\nprintf 'B\\377\\0\\0\\0\\0\\0\\0\\0half'\nkill -SEGV $$\n")
    (tmp_path / "dies").chmod(0o700)
    for program in ("/bin/false", str(tmp_path / "dies")):
        monkeypatch.setattr(sys, "executable", program)
        with pytest.raises(InputError, match="not intact SPSS: it is damaged"):
            qd.read(tmp_path / "in.sav")


def test_old_stata_files_in_latin_1_are_read(tmp_path: Path) -> None:
    table = pd.DataFrame({"x": [1, 2], "ort": ["Köln", "Bâle"]})
    table.to_stata(tmp_path / "in.dta", version=114, write_index=False, variable_labels={"x": "Größe"})
    data = qd.read(tmp_path / "in.dta")
    assert data.frame()["ort"].to_list() == ["Köln", "Bâle"]
    assert data.codebook["x"].label == "Größe"
    stored = data.codebook["x"].stored
    assert stored is not None
    assert stored.type.startswith("int")


def test_a_file_without_records_is_refused(tmp_path: Path) -> None:
    pyreadstat.write_sav(pl.DataFrame({"x": [1.0]}).head(0), tmp_path / "in.sav")
    with pytest.raises(InputError, match="no records"):
        qd.read(tmp_path / "in.sav")


def test_a_catalog_belongs_to_sas(tmp_path: Path, sav: qd.Data) -> None:
    with pytest.raises(InputError, match="catalog belongs"):
        qd.read(tmp_path / "in.sav", catalog=tmp_path / "formats.sas7bcat")
    with pytest.raises(OutputError, match="Only SAS writes"):
        qd.write(sav, tmp_path / "out.sas7bdat")


def test_the_catalog_of_sas_gives_the_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library's own part is not tested: nobody but SAS writes such files."""
    pyreadstat.write_xport(pl.DataFrame({"sex": [1.0, 2.0], "date": [0.0, 1.0]}), tmp_path / "in.sas7bdat")
    (tmp_path / "formats.sas7bcat").write_bytes(b"x")
    inner = library._entry_point()

    def stub(path: str, *, parser_format: str, **options: Any) -> tuple[Any, Any]:
        if parser_format == "sas7bcat":
            assert path.endswith("formats.sas7bcat")
            return {}, SimpleNamespace(value_labels={"SEXFMT": {1.0: "male", 2.0: "female"}, "OTHER": {1.0: "no"}})
        found, meta = inner(path, parser_format="xport", **options)
        meta.variable_to_label = {"sex": "SEXFMT", "date": "DATE"}
        meta.original_variable_types = {"sex": "SEXFMT1.", "date": "DATE9."}
        return found, meta

    monkeypatch.setattr(library, "_entry_point", lambda: stub)
    data = qd.read(tmp_path / "in.sas7bdat", catalog=tmp_path / "formats.sas7bcat")
    assert data["sex"].labels == ("male", "female")
    assert data.frame()["date"].to_list() == [dt.date(1960, 1, 1), dt.date(1960, 1, 2)]
    assert qd.read(tmp_path / "in.sas7bdat").codebook["sex"].labels == ()


def test_without_the_library_the_message_says_what_to_install(
    tmp_path: Path, sav: qd.Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    monkeypatch.setitem(sys.modules, "pyreadstat._readstat_parser", None)
    with pytest.raises(InputError, match=r"pip install 'quadrille\[stat\]'"):
        qd.read(tmp_path / "in.sav")
    with pytest.raises(OutputError, match=r"pip install 'quadrille\[stat\]'"):
        qd.write(sav, tmp_path / "out.sav")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_to_is_told(tmp_path: Path, sav: qd.Data) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    with pytest.raises(OutputError, match="Permission denied"):
        qd.write(sav, tmp_path / "locked" / "out.sav")
    assert not list((tmp_path / "locked").iterdir())


def test_a_folder_that_does_not_exist_is_told(tmp_path: Path, sav: qd.Data) -> None:
    with pytest.raises(OutputError, match="No such file or directory"):
        qd.write(sav, tmp_path / "nowhere" / "out.sav")


def test_only_the_owner_reads_a_private_file(tmp_path: Path, sav: qd.Data) -> None:
    qd.write(sav, tmp_path / "out.sav", private=True)
    assert (tmp_path / "out.sav").stat().st_mode & 0o777 == 0o600
