"""Nothing that a file holds is lost in silence: it comes back, or a line says that it does not."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import polars as pl
import pyreadstat
import pytest

import quadrille as qd
from quadrille.codebook import Stored, Variable
from quadrille.errors import InputError
from quadrille.io import file_bytes
from quadrille.io import stat_read as read
from quadrille.io.frames import from_frame
from quadrille.io.frames.values import counted_in
from quadrille.release.release import release
from stat_cases import READERS, write_case

DAYS = [dt.date(1950, 1, 1), dt.date(2000, 2, 29), None, dt.date(9999, 12, 31), dt.date(1950, 1, 1)]
SECONDS = [None if day is None else (day - dt.date(1582, 10, 14)).days * 86_400.0 for day in DAYS]
LAST = SECONDS[3]


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "ISOLATED", False)


def _facts(path: Path) -> dict[str, Any]:
    options = {} if path.suffix == ".xpt" else {"user_missing": True}
    table, meta = READERS[path.suffix](path, disable_datetime_conversion=True, **options)
    names = ("original_variable_types", "variable_value_labels", "missing_ranges", "missing_user_values")
    return {"values": [str(row) for row in table.to_numpy().tolist()]} | {name: getattr(meta, name) for name in names}


# --- dates with missing codes ---

SPSS_DATES: dict[str, dict[str, Any]] = {
    "one code": {"missing_ranges": {"d": [LAST]}},
    "a code with a label": {"missing_ranges": {"d": [LAST]}, "variable_value_labels": {"d": {LAST: "refused"}}},
    "a range": {"missing_ranges": {"d": [{"lo": LAST, "hi": LAST + 86_400.0}]}},
    "labels alone": {"variable_value_labels": {"d": {SECONDS[0]: "the first day", 86_400.0: "of no record"}}},
}


@pytest.mark.parametrize("what", SPSS_DATES)
def test_dates_of_spss_with_codes_or_labels_stay_dates_and_come_back(tmp_path: Path, what: str) -> None:
    source = tmp_path / "in.sav"
    table = pl.DataFrame({"d": SECONDS, "x": [1.0, 2.0, 1.0, 2.0, 1.0]})
    pyreadstat.write_sav(table, source, variable_format={"d": "EDATE10"}, **SPSS_DATES[what])
    data = qd.read(source)
    assert data.frame()["d"].to_list() == DAYS
    assert data.codebook["d"].missing == (() if what == "labels alone" else ("9999-12-31",))
    assert qd.write(data, tmp_path / "out.sav") == ()
    assert _facts(tmp_path / "out.sav") == _facts(source)
    assert qd.read(tmp_path / "out.sav") == data
    for form in ("csv", "parquet"):
        qd.write(data, tmp_path / f"out.{form}")
        data.codebook.write(tmp_path / "book.toml")
        back = qd.read(tmp_path / f"out.{form}", codebook=tmp_path / "book.toml")
        assert qd.write(back, tmp_path / "again.sav") == ()
        assert _facts(tmp_path / "again.sav") == _facts(source)


@pytest.mark.parametrize("format", ["%td", "%tdDD.NN.CCYY"])
def test_dates_of_stata_with_missing_values_a_to_z_stay_dates_and_come_back(tmp_path: Path, format: str) -> None:
    source = tmp_path / "in.dta"
    days = pl.Series("d", [15000.0, "a", 15001.0, None, "z"], dtype=pl.Object)
    pyreadstat.write_dta(
        pl.DataFrame([days, pl.Series("x", [1, 2, 1, 2, 1], dtype=pl.Int32)]),
        source,
        missing_user_values={"d": ["a", "z"]},
        variable_value_labels={"d": {"a": "refused"}},
        variable_format={"d": format},
    )
    data = qd.read(source)
    variable = data.codebook["d"]
    assert (variable.categories, variable.missing) == (("2001-01-25", "2001-01-26"), (".a", ".z"))
    assert variable.missing_labels == ("refused", "")
    assert data.frame()["d"].to_list() == ["2001-01-25", ".a", "2001-01-26", None, ".z"]
    assert qd.write(data, tmp_path / "out.dta") == ()
    assert _facts(tmp_path / "out.dta") == _facts(source)
    assert qd.read(tmp_path / "out.dta") == data
    qd.write(data, tmp_path / "out.csv")
    data.codebook.write(tmp_path / "book.toml")
    assert qd.write(qd.read(tmp_path / "out.csv", codebook=tmp_path / "book.toml"), tmp_path / "again.dta") == ()
    assert _facts(tmp_path / "again.dta") == _facts(source)
    lines = qd.write(data, tmp_path / "out.sav")
    assert "d: missing codes such as .a become empty values." in lines
    assert qd.read(tmp_path / "out.sav").frame()["d"].to_list() == [
        dt.date(2001, 1, 25),
        None,
        dt.date(2001, 1, 26),
        None,
        None,
    ]


def test_dates_with_a_code_that_is_no_date_are_numbers_and_the_unit_is_told(tmp_path: Path) -> None:
    pyreadstat.write_sav(
        pl.DataFrame({"d": [*SECONDS, 99.0]}),
        tmp_path / "in.sav",
        variable_format={"d": "EDATE10"},
        missing_ranges={"d": [99.0]},
    )
    data = qd.read(tmp_path / "in.sav")
    told = "d: dates or times are written as numbers: seconds since 14 October 1582."
    for form in ("csv", "parquet", "dta", "xpt"):
        assert told in qd.write(data, tmp_path / f"out.{form}")
    assert qd.write(data, tmp_path / "out.sav") == ()
    assert _facts(tmp_path / "out.sav") == _facts(tmp_path / "in.sav")
    swap = qd.RandomSwap(["d"], rate=0.3)
    for form in ("csv", "parquet"):
        assert told in release(data, swap, tmp_path / form, format=form).not_held


@pytest.mark.parametrize(
    ("program", "format", "expected"),
    [
        ("spss", "EDATE10", "seconds since 14 October 1582"),
        ("spss", "DTIME12", "seconds"),
        ("spss", "F8.2", ""),
        ("stata", "%td", "days since 1 January 1960"),
        ("stata", "%-d", "days since 1 January 1960"),
        ("stata", "%tcHH:MM", "milliseconds since 1 January 1960"),
        ("stata", "%tm", "months since January 1960"),
        ("stata", "%ty", ""),
        ("stata", "%9.0g", ""),
        ("sas", "DATE9.", "days since 1 January 1960"),
        ("sas", "DATETIME20.", "seconds since 1 January 1960"),
        ("sas", "TIME8.", "seconds"),
        ("sas", "BEST12.", ""),
    ],
)
def test_the_unit_of_dates_is_told_by_their_format(program: str, format: str, expected: str) -> None:
    assert counted_in(program, format) == expected


def test_text_that_is_no_date_is_written_as_text_with_a_line(tmp_path: Path) -> None:
    variable = Variable("d", stored=Stored("spss", "EDATE10", "double"))
    data = from_frame(pl.DataFrame({"d": ["1.5.1950", "2000-01-01"]}), codebook=qd.Codebook((variable,)))
    lines = qd.write(data, tmp_path / "out.sav")
    assert lines[0].startswith("d: dates or times are written as text")
    assert qd.read(tmp_path / "out.sav").frame()["d"].to_list() == ["1.5.1950", "2000-01-01"]


@pytest.mark.parametrize("suffix", [".sav", ".dta", ".xpt"])
def test_a_text_column_of_nothing_but_missing_codes_stays_text(tmp_path: Path, suffix: str) -> None:
    book = qd.Codebook((Variable("t", missing=("x", "y")), Variable("k", "ordinal")))
    data = from_frame(pl.DataFrame({"t": ["x", "y", "x"], "k": [1, 2, 1]}), codebook=book)
    lines = qd.write(data, tmp_path / f"out{suffix}")
    assert len(lines) == (suffix != ".sav")
    assert qd.read(tmp_path / f"out{suffix}").frame()["t"].to_list() == ["x", "y", "x"]


# --- formats, names of tables, empty labels ---


def test_quarters_and_months_that_become_full_dates_are_told(tmp_path: Path) -> None:
    table = pl.DataFrame({"q": SECONDS, "m": SECONDS, "d": SECONDS, "z": [1.0] * 5})
    pyreadstat.write_sav(table, tmp_path / "in.sav", variable_format={"q": "QYR8", "m": "MOYR8", "d": "EDATE10"})
    data = qd.read(tmp_path / "in.sav")
    assert qd.write(data, tmp_path / "out.sav") == ()
    for form in ("dta", "xpt"):
        lines = qd.write(data, tmp_path / f"out.{form}")
        assert "q, m: dates or times are shown in full, where the original shows months, quarters or weeks." in lines
        assert any(line.startswith("d: dates or times are shown in the usual form of") for line in lines)


def test_formats_of_text_are_kept_or_told(tmp_path: Path) -> None:
    table = pl.DataFrame({"t": ["a", "bb"], "u": ["c", "d"]})
    pyreadstat.write_xport(
        table, tmp_path / "in.xpt", variable_format={"t": "$20", "u": "$HEX8"}, file_format_version=5
    )
    data = qd.read(tmp_path / "in.xpt")
    assert qd.write(data, tmp_path / "out.xpt") == ()
    assert _facts(tmp_path / "out.xpt") == _facts(tmp_path / "in.xpt")
    for form, name in (("sav", "SPSS"), ("dta", "Stata")):
        assert qd.write(data, tmp_path / f"out.{form}") == (f"u: the display format has no counterpart in {name}.",)
    pyreadstat.write_sav(table, tmp_path / "in.sav", variable_format={"u": "AHEX2"})
    lines = qd.write(qd.read(tmp_path / "in.sav"), tmp_path / "out.sav")
    assert lines == ("u: the display format has no counterpart in SPSS.",)


def test_a_file_without_labels_still_tells_that_formats_are_left_behind(tmp_path: Path) -> None:
    pyreadstat.write_sav(pl.DataFrame({"x": [1.0, 2.0]}), tmp_path / "in.sav", variable_measure={"x": "ordinal"})
    data = qd.read(tmp_path / "in.sav")
    for form in ("csv", "parquet", "tsv", "csv.gz"):
        (line,) = qd.write(data, tmp_path / f"out.{form}")
        assert line.startswith("Display formats, storage types and levels of measurement")
    assert qd.write(data, tmp_path / "out.dta") == ("x: Stata holds no level of measurement.",)


def test_names_of_tables_and_of_sets_of_labels_are_told(tmp_path: Path) -> None:
    table = pl.DataFrame({"x": [1.0, 2.0]})
    pyreadstat.write_xport(
        table, tmp_path / "in.xpt", table_name="MYSURV", file_format_version=5, variable_informat={"x": "COMMA8"}
    )
    assert qd.write(qd.read(tmp_path / "in.xpt"), tmp_path / "out.xpt") == (
        "The name of the table inside the file is not copied.",
        "x: the informat, by which SAS reads the column from text, is not copied.",
    )
    assert qd.read(tmp_path / "out.xpt").remarks == ()
    table.to_pandas().assign(sex=[1, 2]).to_stata(
        tmp_path / "in.dta", write_index=False, value_labels={"sex": {1: "m", 2: "f"}}, version=118
    )
    remark = "Names of sets of value labels are not copied: each column has its own set."
    assert remark in qd.write(qd.read(tmp_path / "in.dta"), tmp_path / "out.dta")
    assert qd.read(tmp_path / "out.dta").remarks == ()


@pytest.mark.parametrize("suffix", [".sav", ".dta"])
def test_an_empty_value_label_is_told(tmp_path: Path, suffix: str) -> None:
    writer = pyreadstat.write_sav if suffix == ".sav" else pyreadstat.write_dta
    labels = {"x": {1: "", 2: "two"}}
    writer(pl.DataFrame({"x": [1, 2]}), tmp_path / f"in{suffix}", variable_value_labels=labels)
    data = qd.read(tmp_path / f"in{suffix}")
    for form in (suffix[1:], "csv"):
        assert "x: value labels that are empty are not copied." in qd.write(data, tmp_path / f"out.{form}")
    made = release(data, qd.RandomSwap(["x"], rate=0.5), tmp_path / "out", format="csv")
    assert made.not_held == ("x: value labels that are empty are not copied.",)


# --- delimited text ---


def _released(data: qd.Data, folder: Path) -> tuple[tuple[str, ...], pl.DataFrame, str]:
    made = release(data, qd.RandomSwap(["k"], rate=0.5), folder, format="csv", shuffle=False)
    back = qd.read(made.public / "data.csv", codebook=made.public / "codebook.toml")
    return made.not_held, back.frame(), (made.public / "methods.md").read_text()


def test_an_empty_text_and_a_missing_value_are_told_apart_with_the_codebook(tmp_path: Path) -> None:
    texts = ["", "a", None, "b"] * 10
    data = from_frame(pl.DataFrame({"t": texts, "k": [1, 2] * 20}))
    told, back, note = _released(data, tmp_path / "out")
    assert back["t"].to_list() == texts
    assert told == (
        't: an empty text is written as "" and a missing value as nothing; only the codebook tells the two apart.',
    )
    assert told[0] in note
    qd.write(data, tmp_path / "out.csv")
    assert qd.read(tmp_path / "out.csv").frame()["t"].to_list() == [text or None for text in texts]


def test_missing_values_stay_missing_where_the_empty_text_is_listed_and_does_not_occur(tmp_path: Path) -> None:
    data = from_frame(pl.DataFrame({"t": ["", "a", None, "b"], "k": [1, 2, 1, 2]}))
    some = data.take(pl.Series([1, 2, 3]).to_numpy())
    told, back, _ = _released(some, tmp_path / "out")
    assert back["t"].to_list() == ["a", None, "b"]
    assert told == ()


def test_a_missing_code_that_is_the_empty_text_is_told(tmp_path: Path) -> None:
    book = qd.Codebook((Variable("t", categories=("a",), missing=("",)), Variable("k", "ordinal")))
    data = from_frame(pl.DataFrame({"t": ["", "a", None], "k": [1, 2, 1]}), codebook=book)
    (line,) = qd.write(data, tmp_path / "out.csv")
    assert line == "t: the missing code that is an empty text and a missing value look alike."


@pytest.mark.parametrize("kind", ["numeric", "nominal"])
def test_infinite_numbers_are_read_back_with_the_codebook(tmp_path: Path, kind: str) -> None:
    values = [float("inf"), 1.5, float("-inf"), None, 2.0, float("inf")]
    book = qd.Codebook((Variable("x", kind),))  # pyright: ignore[reportArgumentType]
    data = from_frame(pl.DataFrame({"x": values, "k": [1, 2, 1, 2, 1, 2]}), codebook=book)
    told, back, note = _released(data, tmp_path / "out")
    assert back["x"].to_list() == values
    assert told == ("x: infinite numbers are written as inf, which is a number with the codebook only.",)
    assert told[0] in note


def test_infinite_numbers_do_not_let_numbers_in_that_are_rounded(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(f"x,k\ninf,1\n{2**53 + 1},2\n")
    with pytest.raises(InputError):
        qd.read(tmp_path / "in.csv", codebook=qd.Codebook((Variable("x", "numeric"),)))


def test_types_that_text_does_not_keep_are_told(tmp_path: Path) -> None:
    table = pl.DataFrame(
        {
            "day": pl.Series([dt.date(2000, 1, 1)] * 2),
            "zoned": pl.Series([dt.datetime(2000, 1, 1)] * 2, dtype=pl.Datetime("us", "Europe/Berlin")),
            "short": pl.Series([0.1, 0.2], dtype=pl.Float32),
            "exact": pl.Series(["1.10", "2.20"]).cast(pl.Decimal(10, 2)),
            "plain": [1, 2],
        }
    )
    assert qd.write(from_frame(table), tmp_path / "out.csv") == (
        "day, zoned: dates and times are written as text (ISO 8601) and read back as text.",
        "zoned: the time zone is not kept; the moments are in UTC.",
        "short: numbers of fewer than 64 bits are read back with 64 bits.",
        "exact: decimal numbers are read back as binary ones or as text.",
    )
    assert qd.write(from_frame(table), tmp_path / "out.parquet") == ()


# --- endings ---


def test_xport_is_another_ending_for_transport_files(tmp_path: Path) -> None:
    data = from_frame(pl.DataFrame({"x": [1, 2]}))
    for name in ("out.xport", "out.xpt", "OUT.XPORT"):
        assert qd.write(data, tmp_path / name) == ()
    assert (tmp_path / "out.xport").read_bytes()[:13] == b"HEADER RECORD"
    assert qd.read(tmp_path / "out.xport") == qd.read(tmp_path / "out.xpt") == qd.read(tmp_path / "OUT.XPORT")
    (tmp_path / "cut.xport").write_bytes((tmp_path / "out.xport").read_bytes()[:-7])
    with pytest.raises(InputError, match="cut off"):
        qd.read(tmp_path / "cut.xport")


def test_a_compressed_spss_file_is_the_same_as_a_plain_one(tmp_path: Path) -> None:
    for suffix in (".sav", ".zsav"):
        write_case(tmp_path / f"in{suffix}", 200)
    assert (tmp_path / "in.zsav").read_bytes()[:4] == b"$FL3"
    assert qd.read(tmp_path / "in.zsav") == qd.read(tmp_path / "in.sav")


# --- moments beyond the years that nanoseconds hold, and moments in text ---


@pytest.mark.parametrize("suffix", [".sav", ".dta", ".xpt"])
@pytest.mark.parametrize("unit", ["ms", "us"])
def test_the_open_end_of_time_is_written_and_read_back(tmp_path: Path, suffix: str, unit: Any) -> None:
    moments = [dt.datetime(9999, 12, 31, 23, 59, 59), dt.datetime(1600, 1, 1, 12), dt.datetime(2024, 2, 29)] * 3
    table = pl.DataFrame({"end": pl.Series(moments, dtype=pl.Datetime(unit)), "k": [1, 2, 3] * 3})
    assert qd.write(from_frame(table), tmp_path / f"out{suffix}") == ()
    assert qd.read(tmp_path / f"out{suffix}").frame()["end"].to_list() == moments


@pytest.mark.parametrize(("unit", "count"), [("ns", 1_000), ("us", 1)])
def test_fractions_that_stata_does_not_hold_are_told_in_any_unit(tmp_path: Path, unit: Any, count: int) -> None:
    table = pl.DataFrame({"t": pl.Series([0, count, None]).cast(pl.Datetime(unit)), "k": [1, 2, 1]})
    assert qd.write(from_frame(table), tmp_path / "out.dta") == ("t: fractions of a second are kept to milliseconds.",)
    assert qd.write(from_frame(table), tmp_path / "out.xpt") == ()


def test_dates_of_spss_that_become_text_are_told_where_no_codebook_is_written(tmp_path: Path) -> None:
    pyreadstat.write_sav(
        pl.DataFrame({"d": SECONDS, "x": [1.0, 2.0] * 2 + [1.0]}), tmp_path / "in.sav", variable_format={"d": "EDATE10"}
    )
    data = qd.read(tmp_path / "in.sav")
    line = "d: dates and times are written as text (ISO 8601) and read back as text; write the codebook too."
    assert line in qd.write(data, tmp_path / "out.csv")
    assert line not in qd.write(data, tmp_path / "out.parquet")
    assert line not in file_bytes(data, "out.csv")[1]
