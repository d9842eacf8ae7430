"""Files in and out: exact text, every malformed file refused with its place, no data value in any message."""

from __future__ import annotations

import csv
import gzip
import io
import os
import sys
from importlib import import_module
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from release_case import files_of_at_most

import quadrille.io.csv
import quadrille.io.parquet
from effort import examples
from quadrille.codebook import Codebook, Variable
from quadrille.data import Data
from quadrille.errors import InputError, OutputError
from quadrille.io import FORMATS, Format, read, write
from quadrille.io.frames import from_frame, to_frame

SECRET = "Zebedee"
SLOW = settings(examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])


def _file(folder: Path, text: str | bytes, name: str = "file.csv") -> Path:
    path = folder / name
    raw = text.encode("utf-8") if isinstance(text, str) else text
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return path


def _read(folder: Path, text: str | bytes, **options: object) -> Data:
    return read(_file(folder, text), **options)  # pyright: ignore[reportArgumentType]


def _refused(folder: Path, text: str | bytes, match: str, name: str = "file.csv", **options: object) -> str:
    path = _file(folder, text, name)
    with pytest.raises(InputError, match=match) as caught:
        read(path, **options)  # pyright: ignore[reportArgumentType]
    message = str(caught.value)
    assert SECRET not in message
    assert path.name in message
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return message


# --- what CSV text means ---


def test_numbers_are_parsed_second_and_codes_stay_text(tmp_path: Path) -> None:
    text = "code,int,float,flag,plus,huge\n007,7,1.50,true,+1,18446744073709551616\n10,-3,2,false,2,5\n"
    data = _read(tmp_path, text)
    assert to_frame(data).to_dict(as_series=False) == {
        "code": ["007", "10"],
        "int": [7, -3],
        "float": [1.5, 2.0],
        "flag": ["true", "false"],
        "plus": ["+1", "2"],
        "huge": ["18446744073709551616", "5"],
    }
    assert [data[name].dtype for name in data.columns] == [
        "String",
        "Int64",
        "Float64",
        "String",
        "String",
        "String",
    ]


@pytest.mark.parametrize("cell", ["-0", ".5", "5.", "1e5", "1E-5", "-1.25e+3", "0.0"])
def test_plainly_written_floats_are_numbers(tmp_path: Path, cell: str) -> None:
    data = _read(tmp_path, f"x,y\n{cell},a\n1,b\n")
    assert data["x"].variable.kind == "numeric"
    assert data["x"].values[0] == float(cell)


@pytest.mark.parametrize(
    "cell", ["nan", "inf", "1_000", "0x10", " 1", "1 ", "1e999", "--1", "1.2.3", "-", "01.5", "N/A"]
)
def test_what_is_not_plainly_a_number_keeps_the_column_text(tmp_path: Path, cell: str) -> None:
    data = _read(tmp_path, f"x,y\n{cell},a\n1,b\n")
    assert to_frame(data)["x"].to_list() == [cell, "1"]


def test_one_late_word_keeps_a_long_column_text(tmp_path: Path) -> None:
    cells = [str(i % 7) for i in range(5000)]
    cells[4998] = "x"
    assert to_frame(_read(tmp_path, "\n".join(["v", *cells]) + "\n"))["v"].to_list() == cells


def test_ids_between_2_to_the_53_and_2_to_the_63_are_kept_exactly(tmp_path: Path) -> None:
    data = _read(tmp_path, "id,x\n9007199254740993,a\n9223372036854775807,b\n")
    assert data["id"].variable.role == "id"
    assert to_frame(data)["id"].to_list() == [9007199254740993, 9223372036854775807]


@pytest.mark.parametrize("book", [None, Codebook((Variable("x", categories=("b", "a")),))])
def test_an_empty_field_is_missing_quoted_or_not(tmp_path: Path, book: Codebook | None) -> None:
    data = _read(tmp_path, 'x,y\na,1\n,2\n"",3\nb,4\n', codebook=book)
    assert to_frame(data)["x"].to_list() == ["a", None, None, "b"]


def test_an_empty_text_listed_in_the_codebook_is_the_empty_field(tmp_path: Path) -> None:
    book = Codebook((Variable("x", categories=("a",), missing=("",)),))
    data = _read(tmp_path, 'x,y\na,1\n,2\n"",3\n', codebook=book)
    assert data["x"].values.tolist() == [0, 1, 1]
    assert not data["x"].nullable


@pytest.mark.parametrize("name", ["file.csv", "file.csv.gz", "FILE.CSV"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_byte_order_mark_line_ends_and_gzip_make_no_difference(tmp_path: Path, name: str, mark: str, end: str) -> None:
    text = mark + end.join(["é,n", '"a,b",1', "c,2"]) + end
    frame = to_frame(read(_file(tmp_path, text, name)))
    assert frame.to_dict(as_series=False) == {"é": ["a,b", "c"], "n": [1, 2]}


def test_a_byte_order_mark_may_precede_a_quoted_name(tmp_path: Path) -> None:
    assert _read(tmp_path, '\ufeff"a",b\n1,2\n').columns == ["a", "b"]


def test_names_and_fields_may_hold_separators_quotes_and_line_ends(tmp_path: Path) -> None:
    data = _read(tmp_path, '"a\nb","c""d"\n"1\n2","x,""y"""\n')
    assert to_frame(data).to_dict(as_series=False) == {"a\nb": ["1\n2"], 'c"d': ['x,"y"']}


def test_tabs_separate_a_tsv_file(tmp_path: Path) -> None:
    data = read(_file(tmp_path, "a\tb\nx,y\t1\n", "file.tsv"))
    assert to_frame(data).rows() == [("x,y", 1)]


def test_blank_lines_of_a_single_column_are_missing_values(tmp_path: Path) -> None:
    assert to_frame(_read(tmp_path, "x\na\n\nb\n"))["x"].to_list() == ["a", None, "b"]


def test_file_names_are_taken_literally(tmp_path: Path) -> None:
    _file(tmp_path, "x,y\na,1\n", "ab.csv")
    assert to_frame(read(_file(tmp_path, "x,y\nb,1\n", "[a]*.csv")))["x"].to_list() == ["b"]


FIELDS = st.one_of(
    st.sampled_from(["", "0", "7", "007", "-1", "2.50", "1e3", "true", "NA", "99999999999999999999"]),
    st.text(st.sampled_from('ab,"\n\t;é '), max_size=4),
)


@st.composite
def csv_texts(draw: st.DrawFn) -> tuple[list[list[str]], str]:
    width = draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(FIELDS, min_size=width, max_size=width), min_size=1, max_size=8))
    buffer = io.StringIO()
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    writer = csv.writer(buffer, quoting=quoting, lineterminator=draw(st.sampled_from(["\n", "\r\n"])))
    writer.writerows([[f"c{i}" for i in range(width)], *rows])
    text = buffer.getvalue()
    return rows, text.rstrip("\r\n") if draw(st.booleans()) and rows[-1][-1] else text


@SLOW
@given(case=csv_texts(), chunk=st.integers(1, 40))
def test_any_well_formed_text_is_read_as_pythons_csv_module_reads_it(
    tmp_path: Path, case: tuple[list[list[str]], str], chunk: int
) -> None:
    rows, text = case
    book = Codebook(tuple(Variable(f"c{i}", missing=("\0",)) for i in range(len(rows[0]))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quadrille.io.csv, "_CHUNK", chunk)
        frame = to_frame(_read(tmp_path, text, codebook=book))
    assert frame.rows() == [tuple(cell or None for cell in row) for row in rows]


@SLOW
@given(case=csv_texts())
def test_guessed_numbers_mean_what_the_text_says(tmp_path: Path, case: tuple[list[list[str]], str]) -> None:
    rows, text = case
    frame = to_frame(_read(tmp_path, text))
    for i, name in enumerate(frame.columns):
        number = frame[name].dtype.is_numeric()
        cells = [row[i] or None for row in rows]
        cells = [None if number and cell is not None and (not cell.strip() or cell == "NA") else cell for cell in cells]
        back = frame[name].to_list()
        if frame[name].dtype == pl.Int64:
            gaps = None in cells  # then whole floats are integers
            same = [float(cell) if cell and gaps else cell for cell in cells]
            assert [value if value is None or gaps else str(value) for value in back] == same
        elif frame[name].dtype == pl.Float64:
            assert back == [None if cell is None else float(cell) for cell in cells]
        else:
            assert back == cells


@SLOW
@given(case=csv_texts(), data=st.data(), chunk=st.integers(1, 40))
def test_a_row_that_lost_or_gained_a_field_is_refused_with_its_line(
    tmp_path: Path, case: tuple[list[list[str]], str], data: st.DataObject, chunk: int
) -> None:
    rows, _ = case
    width = len(rows[0])
    if width == 1:
        return
    at = data.draw(st.integers(0, len(rows) - 1))
    short = data.draw(st.booleans())
    rows[at] = rows[at][:-1] if short else [*rows[at], "x"]
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([[f"c{i}" for i in range(width)], *rows[:at]])
    line = buffer.getvalue().count("\n") + 1
    csv.writer(buffer, lineterminator="\n").writerows(rows[at:])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quadrille.io.csv, "_CHUNK", chunk)
        what = "fewer" if short else "more"
        _refused(tmp_path, buffer.getvalue(), rf"1 rows have {what} fields .* first in line {line}\.")


# --- malformed files ---


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("\ufeff", "is empty"),
        ("a,b", "no records"),
        ("a,b\n", "no records"),
        ("a,b\r\n", "no records"),
        (f"\na,b\n{SECRET},1\n", "first line is empty"),
        (f"a,b,a\n{SECRET},1,2\n", "'a' occurs more than once"),
        (f"a,,b\n{SECRET},1,2\n", "column 2 has no name"),
        (f'a," ",b\n{SECRET},1,2\n', "column 2 has no name"),
        (f"a,b\r{SECRET},1\r", "carriage return"),
        (f"a,b\n1,2\n{SECRET}\n3\n3,4\n", r"2 rows have fewer fields .* first in line 3\."),
        (f"a,b\n{SECRET}\n3,4\n", r"1 rows have fewer fields .* first in line 2\."),
        (f"a,b\n{SECRET},2\n\n3,4\n", r"1 rows have fewer fields .* first in line 3\. .* blank line"),
        (f"a,b\n{SECRET},\n3", r"1 rows have fewer fields .* first in line 3\."),
        (f"a,b\n1,2\n{SECRET},2,3\n", r"1 rows have more fields .* first in line 3\."),
        (f"a,b\n{SECRET},2,\n1,2,\n", r"2 rows have more fields .* first in line 2\."),
        (f'a,b\n"1\n1",2\n{SECRET}\n', r"1 rows have fewer fields .* first in line 4\."),
        (f'a,b\n1,2\n"{SECRET},2\n3,4\n', r"quotation mark in line 3 is not closed"),
        (f'a,b\n1,2\n1,"{SECRET}\n3,4\n', r"quotation mark in line 3 is not closed"),
        (f'a,b\n1,2\n{SECRET}" x,2\n5" y,4\n', r"quotation mark in line 3 "),
        (f'a,b\n{SECRET}",2\n5",4\n', r"quotation mark in line 2 "),
        (f'a,b\n"{SECRET}"x,2\n', r"quotation mark in line 2 "),
        (f'a,b\n"{SECRET}" ,2\n', r"quotation mark in line 2 "),
    ],
)
@pytest.mark.parametrize("name", ["file.csv", "file.csv.gz"])
@pytest.mark.parametrize("listed", [False, True])
def test_a_malformed_file_is_refused_with_its_place(
    tmp_path: Path, text: str, match: str, name: str, listed: bool
) -> None:
    book = Codebook((Variable("a", categories=("1", "3", SECRET)),)) if listed else None
    _refused(tmp_path, text, match, name, codebook=book)


def test_rows_are_not_searched_when_the_last_column_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quadrille.io.csv.check_widths", None)
    assert _read(tmp_path, "a,b\n,1\nx,2\n").n == 2


@pytest.mark.parametrize("listed", [False, True])
def test_text_in_no_known_encoding_is_refused_with_its_line(tmp_path: Path, listed: bool) -> None:
    book = Codebook((Variable("a", categories=("x", "y")),)) if listed else None
    _refused(tmp_path, f"a,b\nx,{SECRET}\ny,".encode() + b"\xb3\n", r"not UTF-8 text: see line 3\.", codebook=book)
    _refused(tmp_path, b"\xb3,b\nx,1\n", r"not UTF-8 text: see line 1\.")
    _refused(tmp_path, b"a\0,b\nx,1\n", "is not text: see the header")


def test_damaged_gzip_is_refused(tmp_path: Path) -> None:
    path = _file(tmp_path, f"a,b\n{SECRET},1\n" * 100, "file.csv.gz")
    whole = path.read_bytes()
    for damaged, match in [(whole[:-9], "cut off"), (whole[:5], "gzip"), (b"a,b\n1,2\n", "not intact gzip")]:
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=match) as caught:
            read(path)
        assert "file.csv.gz" in str(caught.value)
    broken = bytearray(whole)
    broken[len(broken) // 2] ^= 0xFF
    path.write_bytes(bytes(broken))
    with pytest.raises(InputError, match=r"not intact gzip|cut off"):
        read(path)


def test_damaged_parquet_is_refused_without_its_values(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    pl.DataFrame({"x": [SECRET, "a"] * 50}).write_parquet(path)
    whole = path.read_bytes()
    for damaged in (b"", b"PAR1", whole[:-10], whole[: len(whole) // 2], f"x\n{SECRET}\n".encode()):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"file\.parquet' is not intact Parquet") as caught:
            read(path)
        assert SECRET not in str(caught.value)


def test_nested_parquet_columns_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    pl.DataFrame({"x": [[1, 2]]}).write_parquet(path)
    with pytest.raises(InputError, match=r"Column 'x' of the file .*file\.parquet' has the type List"):
        read(path)


@pytest.mark.parametrize("name", ["file.csv", "file.csv.gz", "file.tsv", "file.parquet"])
def test_a_path_that_cannot_be_read_is_refused(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=rf"{name}': No such file"):
        read(tmp_path / name)
    (tmp_path / name).mkdir()
    with pytest.raises(InputError, match=rf"{name}': Is a directory"):
        read(str(tmp_path / name))

    def forbid(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", forbid)
    with pytest.raises(InputError, match=rf"{name}': Permission denied"):
        read(tmp_path / name)


@pytest.mark.parametrize("form", FORMATS.values(), ids=lambda form: form.ending)
def test_a_declared_format_has_its_functions_and_is_named_where_formats_are_explained(form: Format) -> None:
    assert callable(import_module(f"quadrille.io.{form.reader}").read_file)
    if form.writer is not None:
        writer = import_module(f"quadrille.io.{form.writer}")
        assert callable(writer.file_bytes) and callable(writer.left_to_codebook)
    assert form.writer is not None or not form.released
    page = Path(__file__).parents[2] / "docs" / "file-formats.md"
    assert all(f"`{ending}`" in page.read_text(encoding="utf-8") for ending in form.endings)
    assert not form.released or f'"{form.ending[1:]}"' in str(quadrille.release.__doc__)


@pytest.mark.parametrize("name", ["file.xls", "file", "file.gz", "file.sas", "file.csv.bz2", "csv"])
def test_other_formats_are_refused_with_the_supported_ones(tmp_path: Path, name: str) -> None:
    listed = r"Supported are \.csv, \.csv\.gz, \.tsv, \.parquet, \.sav, .*\.xpt\."
    read_too = r"Supported are \.csv, \.csv\.gz, \.tsv, \.parquet, \.xlsx, \.sav, .*\.xpt, \.zip\."
    with pytest.raises(InputError, match=read_too) as caught:
        read(tmp_path / name)
    assert "later" not in str(caught.value)
    with pytest.raises(OutputError, match=listed):
        write(from_frame(pl.DataFrame({"x": ["a"]})), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


# --- with a codebook ---


def test_categories_of_any_type_are_matched_with_the_text(tmp_path: Path) -> None:
    book = Codebook(
        (
            Variable("t", "ordinal", ("3", "1"), missing=("NA",)),
            Variable("i", "ordinal", (3, 1), missing=(-9,)),
            Variable("f", categories=(1.5, 2.0)),
            Variable("b", categories=(True, False)),
        )
    )
    data = _read(tmp_path, "t,i,f,b\n3,3,1.50,true\n1,1,2,false\nNA,-9,1.5,\n", codebook=book)
    assert data["t"].values.tolist() == [0, 1, 2]
    assert data["i"].values.tolist() == [0, 1, 2]
    assert data["f"].values.tolist() == [0, 1, 0]
    assert data["b"].values.tolist() == [0, 1, 2]
    assert to_frame(data).rows()[2] == ("NA", -9, 1.5, None)


@pytest.mark.parametrize("categories", [("1", "2"), (1, 2)])
def test_a_value_outside_the_codebook_is_counted_and_never_shown(tmp_path: Path, categories: tuple[str]) -> None:
    book = Codebook((Variable("x", categories=categories),))
    text = f"x,y\n1,a\n{SECRET},b\n01,c\n,d\n"
    _refused(tmp_path, text, r"Column 'x' of the file .* in 2 rows", codebook=book)


def test_a_numeric_column_that_is_text_is_refused_with_a_count(tmp_path: Path) -> None:
    book = Codebook((Variable("x", "numeric"),))
    _refused(tmp_path, f"x,y\n1,a\n{SECRET},b\n", r"Column 'x' of the file .* 1 rows", codebook=book)
    book = Codebook((Variable("x", "numeric", missing=(SECRET,)),))
    assert to_frame(_read(tmp_path, f"x,y\n1,a\n{SECRET},b\n", codebook=book))["x"].to_list() == ["1", SECRET]


def test_a_codebook_column_that_the_file_lacks_gets_the_nearest_name(tmp_path: Path) -> None:
    book = Codebook((Variable("Edo", categories=("a",)),))
    _refused(tmp_path, "Edu,y\na,1\n", "no column 'Edo' in the file .*Did you mean: 'Edu'", codebook=book)


def test_a_codebook_is_read_from_a_path_but_never_unasked(tmp_path: Path) -> None:
    text = "x,y\na,1\nb,2\n"
    beside = tmp_path / "file.codebook.toml"
    beside.write_text('[columns.x]\ncategories = ["b", "a"]\n')
    assert _read(tmp_path, text)["x"].values.tolist() == [0, 1]
    assert _read(tmp_path, text, codebook=beside)["x"].values.tolist() == [1, 0]
    assert _read(tmp_path, text, codebook=str(beside))["x"].values.tolist() == [1, 0]


def test_the_weight_column_is_numeric_and_text_is_refused(tmp_path: Path) -> None:
    data = _read(tmp_path, "x,w\na,1\nb,2\n", weight="w")
    assert data["w"].variable == Variable("w", "numeric", role="weight")
    _refused(tmp_path, f"x,w\na,1\nb,{SECRET}\n", r"Weight column 'w' of the file .* 1 rows", weight="w")
    _refused(tmp_path, "x,w\na,1\n", "no column 'v' in the file", weight="v")


# --- writing ---

FRAME = pl.DataFrame(
    {
        "t": ["007", "a,b", None, 'q"q', "é\nz"],
        "i": [3, -1, None, 3, 0],
        "x": [0.1, None, 1e300, -2.5, 1 / 3],
        "w": [1.5, 2.5, 1.0, 0.0, 3.0],
    }
)


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.tsv", "out.parquet"])
def test_what_is_written_is_read_back_equal(tmp_path: Path, name: str) -> None:
    data = from_frame(FRAME, weight="w")
    write(data, tmp_path / name)
    data.codebook.write(tmp_path / "book.toml")
    assert read(tmp_path / name, codebook=tmp_path / "book.toml") == data
    assert read(tmp_path / name, weight="w") == data
    assert sorted(os.listdir(tmp_path)) == ["book.toml", name]  # noqa: PTH208


def test_parquet_keeps_every_type(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "e": pl.Series(["a", None], dtype=pl.Enum(["b", "a"])),
            "c": pl.Series(["a", None], dtype=pl.Categorical),
            "d": pl.Series(["2020-01-01", None]).str.to_date(),
            "i": pl.Series([1, None], dtype=pl.Int8),
            "f": pl.Series([1.5, None], dtype=pl.Float32),
            "b": [True, None],
        }
    )
    write(from_frame(frame), tmp_path / "x.parquet")
    back = to_frame(read(tmp_path / "x.parquet"))
    assert back.equals(frame)
    assert back.schema == frame.schema


@SLOW
@given(st.lists(st.none() | st.text(st.characters(codec="utf-8"), min_size=1, max_size=4), min_size=1, max_size=8))
def test_any_text_survives_csv_with_its_codebook(tmp_path: Path, cells: list[str | None]) -> None:
    data = from_frame(pl.DataFrame({"x": pl.Series(cells, dtype=pl.String), "y": ["k"] * len(cells)}))
    write(data, tmp_path / "x.csv")
    assert read(tmp_path / "x.csv", codebook=data.codebook) == data


def test_equal_data_make_equal_files(tmp_path: Path) -> None:
    data = from_frame(FRAME)
    for suffix in (".csv", ".csv.gz", ".parquet"):
        write(data, tmp_path / f"a{suffix}")
        write(data, tmp_path / f"b{suffix}")
        assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.parquet"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"old")
    data = from_frame(pl.DataFrame({"x": [SECRET + str(i * 7919 % 100_003) for i in range(20_000)]}))
    with files_of_at_most(1_000), pytest.raises(OutputError, match=rf"{name}': File too large") as caught:
        write(data, path)
    assert SECRET not in str(caught.value)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == [name]  # noqa: PTH208


def test_a_place_that_cannot_be_written_is_refused_and_left_clean(tmp_path: Path) -> None:
    data = from_frame(FRAME)
    with pytest.raises(OutputError, match=r"gone/out\.csv': No such file"):
        write(data, tmp_path / "gone" / "out.csv")
    (tmp_path / "plain").touch()
    with pytest.raises(OutputError, match="Not a directory"):
        write(data, tmp_path / "plain" / "out.csv")
    (tmp_path / "plain").unlink()
    (tmp_path / "out.csv").mkdir()
    with pytest.raises(OutputError, match=r"out\.csv': it is a folder"):
        write(data, tmp_path / "out.csv")
    with pytest.raises(OutputError, match="it is a folder"):
        data.codebook.write(tmp_path / "out.csv")
    assert os.listdir(tmp_path) == ["out.csv"]  # noqa: PTH208


def test_an_interrupted_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write(from_frame(FRAME), tmp_path / "out.csv")
    assert os.listdir(tmp_path) == []  # noqa: PTH208


def test_a_codebook_survives_its_file(tmp_path: Path) -> None:
    book = Codebook((Variable("é", "ordinal", (3, 1), ("three", "one"), missing=(9,), role="geography", level=1),))
    book.write(tmp_path / "book.toml")
    assert Codebook.read(tmp_path / "book.toml") == book


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n\n"])
def test_blank_lines_at_the_end_of_a_file_are_no_records(tmp_path: Path, end: str) -> None:
    path = tmp_path / "file.csv"
    path.write_text(f"a,b\nx,1\ny,2\n{end}", newline="")
    assert read(path).frame().rows() == [("x", 1), ("y", 2)]


# --- ordered categories and NaN in Parquet ---

LEVELS = ["low", "mid", "high", "never"]
NO_ORDER = "level: the order of the categories cannot be read from the file; list them in the codebook."


def _ordered(path: Path, **options: object) -> Path:
    levels = pd.Categorical(["low", "high", "mid", None] * 30, categories=LEVELS, ordered=True)
    table = pd.DataFrame({"level": levels, "plain": pd.Categorical(["b", "a"] * 60), "k": range(120)})
    pq.write_table(pa.Table.from_pandas(table), path, **options)
    return path


@pytest.mark.parametrize("batch", [50, 1000])
def test_ordered_categories_of_parquet_keep_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    monkeypatch.setattr(quadrille.io.parquet, "BATCH", batch)
    path = _ordered(tmp_path / "in.parquet", row_group_size=40)
    data = read(path)
    assert data.codebook["level"] == Variable("level", "ordinal", tuple(LEVELS))
    assert (data.codebook["plain"].kind, data.codebook["plain"].categories) == ("nominal", ("a", "b"))
    assert data["level"].values[:4].tolist() == [0, 2, 1, 4]
    assert write(data, tmp_path / "out.parquet") == ()
    left = "level: the order of the categories is not in the file; write the codebook too."
    assert write(data, tmp_path / "out.csv") == write(data, tmp_path / "out.sav") == (left,)
    back = pd.read_parquet(tmp_path / "out.parquet")["level"]
    assert back.cat.ordered
    assert back.cat.categories.tolist() == LEVELS
    assert back.astype(object).where(back.notna(), None).tolist() == ["low", "high", "mid", None] * 30
    assert read(tmp_path / "out.parquet").codebook["level"].categories == tuple(LEVELS)
    book = Codebook((Variable("level", "nominal", ("never", "low", "mid", "high", "other")),))
    assert read(path, codebook=book).codebook["level"] == book["level"]
    assert to_frame(read(path, codebook=book))["level"].to_list() == ["low", "high", "mid", None] * 30


def test_an_order_that_the_file_does_not_tell_is_listed(tmp_path: Path) -> None:
    data = read(_ordered(tmp_path / "in.parquet", use_dictionary=False))
    assert data.codebook["level"].kind == "nominal"
    assert write(data, tmp_path / "out.parquet") == (NO_ORDER,)
    numbers = pd.Categorical([3, 1, 2] * 10, categories=[3, 1, 2], ordered=True)
    pd.DataFrame({"level": numbers, "k": range(30)}).to_parquet(tmp_path / "n.parquet")
    assert write(read(tmp_path / "n.parquet"), tmp_path / "out.csv") == (NO_ORDER,)


def test_without_pyarrow_the_order_is_not_read_and_this_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _ordered(tmp_path / "in.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    (line,) = write(read(path), tmp_path / "out.csv")
    assert line.startswith("level: the order of the categories is read with pyarrow only")


@pytest.mark.parametrize("batch", [2, 1000])
@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out.sav"])
def test_nan_in_parquet_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int, name: str) -> None:
    monkeypatch.setattr(quadrille.io.parquet, "BATCH", batch)
    nan = float("nan")
    table = pl.DataFrame({"x": [1.5, 2.5, nan, None, 0.5], "y": [1.5, None, 2.5, 3.5, nan], "z": [0.5] * 4 + [None]})
    table.write_parquet(tmp_path / "in.parquet")
    data = read(tmp_path / "in.parquet")
    assert write(data, tmp_path / name) == ("x, y: not-a-number becomes an empty value.",)
    fewer = Data([data["y"], data["z"]], remarks=data.remarks)  # as a release that leaves a column out
    assert write(fewer, tmp_path / name) == ("y: not-a-number becomes an empty value.",)


def test_ordered_categories_with_a_name_that_stands_for_several_columns_are_refused(tmp_path: Path) -> None:
    cells = {"o": pd.Categorical(["b", "a"], ordered=True), "^o$": pd.Categorical(["u", "v"], ordered=True)}
    pd.DataFrame(cells).to_parquet(tmp_path / "in.parquet")
    with pytest.raises(InputError, match="stands for several columns"):
        read(tmp_path / "in.parquet")
