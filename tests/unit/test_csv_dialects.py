"""Delimited text as people have it: what is detected is right, what can be read in two ways is refused."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import quadrille as qd
from effort import examples
from quadrille.codebook import Codebook, Variable
from quadrille.data import Data
from quadrille.errors import InputError, ParameterError
from quadrille.io import read
from quadrille.io.layout import Layout

SECRET = "Zebedee"
LAW = settings(examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])


def _read(folder: Path, text: str | bytes, name: str = "file.csv", **options: object) -> Data:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read(path, **options)  # pyright: ignore[reportArgumentType]


def _refused(folder: Path, text: str | bytes, match: str, **options: object) -> str:
    with pytest.raises(InputError, match=match) as caught:
        _read(folder, text, **options)
    assert SECRET not in str(caught.value)
    return str(caught.value)


def _cells(data: Data) -> dict[str, list[object]]:
    return data.frame().to_dict(as_series=False)


# --- separator ---


@pytest.mark.parametrize(("mark", "word"), [(";", "semicolons"), ("\t", "tabs"), ("|", "vertical bars")])
@pytest.mark.parametrize("name", ["file.csv", "file.tsv"])
def test_the_separator_is_detected_and_told(tmp_path: Path, mark: str, word: str, name: str) -> None:
    data = _read(tmp_path, f"a{mark}b{mark}c\n1{mark}x, y{mark}2\n3{mark}z{mark}4\n", name)
    assert _cells(data) == {"a": [1, 3], "b": ["x, y", "z"], "c": [2, 4]}
    usual = name == "file.tsv" and mark == "\t"
    assert data.read_as == (() if usual else (f"fields separated by {word}",))


def test_plain_files_are_read_without_a_word(tmp_path: Path) -> None:
    assert _read(tmp_path, "a,b\n1.5,x\n2,y\n").read_as == ()


def test_commas_in_a_tsv_file_are_detected(tmp_path: Path) -> None:
    assert _read(tmp_path, "a,b\n1,x\n", "file.tsv").columns == ["a", "b"]


def test_a_mark_inside_names_or_quotes_is_no_separator(tmp_path: Path) -> None:
    data = _read(tmp_path, "age,income; monthly\n3,5\n4,6\n")
    assert data.columns == ["age", "income; monthly"]
    assert _read(tmp_path, '"a;b","c;d"\n1,2\n').columns == ["a;b", "c;d"]
    assert _read(tmp_path, "income; monthly\n5\n6\n").columns == ["income; monthly"]


def test_a_file_that_two_separators_fit_is_refused_until_one_is_said(tmp_path: Path) -> None:
    text = f"a;b,c\n{SECRET};2,3\n4;5,6\n"
    message = _refused(tmp_path, text, "could be separated by commas or semicolons")
    assert '--layout "separator=,"' in message and '--layout "separator=;"' in message
    assert _read(tmp_path, text, separator=";").columns == ["a", "b,c"]
    assert _read(tmp_path, text, separator="comma").columns == ["a;b", "c"]


def test_rows_of_the_wrong_width_are_refused_for_any_separator(tmp_path: Path) -> None:
    _refused(tmp_path, f"a;b\n1;2\n{SECRET}\n", r"1 rows have fewer fields .* line 3\.")
    _refused(tmp_path, f"a|b\n1|2\n{SECRET}|2|3\n", r"1 rows have more fields .* line 3\.")


def test_the_line_in_which_excel_names_the_separator_is_heeded(tmp_path: Path) -> None:
    assert _cells(_read(tmp_path, "sep=;\r\na;b,c\r\n1;2,5\r\n")) == {"a": [1], "b,c": [2.5]}


FIELDS = st.text(st.sampled_from("ab17 ,;|\t'é\n"), max_size=5)


@LAW
@given(data=st.data())
def test_a_file_is_read_as_it_was_written_whatever_is_detected(tmp_path: Path, data: st.DataObject) -> None:
    """All fields are quoted, so that nothing is left open; the encodings are those that can be told apart."""
    width = data.draw(st.integers(2, 4))
    rows = data.draw(st.lists(st.lists(FIELDS, min_size=width, max_size=width), min_size=1, max_size=6))
    separator, quote = data.draw(st.sampled_from(",;\t|")), data.draw(st.sampled_from("\"'"))
    encoding = data.draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1"]))
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=separator, quotechar=quote, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerows([[f"c{i}" for i in range(width)], *rows])
    book = Codebook(tuple(Variable(f"c{i}", missing=("\0",)) for i in range(width)))
    found = _read(tmp_path, buffer.getvalue().encode(encoding), codebook=book)
    assert found.frame().rows() == [tuple(cell or None for cell in row) for row in rows]


# --- quotation marks ---


def test_single_quotes_are_detected_where_they_enclose_a_column_or_all_names(tmp_path: Path) -> None:
    data = _read(tmp_path, "a,b\n'x, y',1\n'it''s',2\n")
    assert _cells(data) == {"a": ["x, y", "it's"], "b": [1, 2]}
    assert data.read_as == ("single quotes",)
    assert _read(tmp_path, "'a','b'\nx,1\n").columns == ["a", "b"]


def test_an_apostrophe_is_no_quotation_mark(tmp_path: Path) -> None:
    assert _cells(_read(tmp_path, "a,b\nO'Neil,1\n'tis,2\n"))["a"] == ["O'Neil", "'tis"]


def test_quotation_marks_can_be_said_to_be_text(tmp_path: Path) -> None:
    text = 'a,b\n5" pipe,1\n"x,2\n'
    _refused(tmp_path, text, "quotation mark in line 2")
    assert _cells(_read(tmp_path, text, quote="none"))["a"] == ['5" pipe', '"x']


# --- encoding ---


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_unicode_is_detected_with_and_without_its_mark(tmp_path: Path, encoding: str) -> None:
    data = _read(tmp_path, "Größe,Ort\n1.5,Łódź\n2,Αθήνα\n".encode(encoding))
    assert _cells(data) == {"Größe": [1.5, 2.0], "Ort": ["Łódź", "Αθήνα"]}
    assert data.read_as == (() if "8" in encoding else (f"encoding {encoding}",))


@pytest.mark.parametrize(
    "words", ["Müller,Köln,Straße", "élève,forêt,garçon", "niño,España,mañana", "smørrebrød,åben,æble", "»Æther« – 5 €"]
)
def test_western_letters_are_read_as_cp1252_and_told(tmp_path: Path, words: str) -> None:
    data = _read(tmp_path, f"a;b\n{words};1\nx;2\n".encode("cp1252"))
    assert _cells(data)["a"] == [words, "x"]
    assert "encoding cp1252" in data.read_as


@pytest.mark.parametrize(
    ("words", "encoding"),
    [
        ("Łódź wąż", "cp1250"),
        ("příliš žluťoučký kůň", "cp1250"),
        ("běžný řeč čas", "cp1250"),
        ("erdőműűű hűtő", "cp1250"),
        ("Москва и область", "cp1251"),
        ("Αθήνα", "iso8859-7"),
        ("ığdır şişli", "cp1254"),
    ],
)
def test_letters_that_do_not_tell_their_encoding_are_refused_until_it_is_said(
    tmp_path: Path, words: str, encoding: str
) -> None:
    text = f"a;b\n{SECRET};1\n{words};2\n".encode(encoding)
    message = _refused(tmp_path, text, r"not UTF-8 text: see line 3\. .*encoding=cp1250")
    assert words not in message
    assert _cells(_read(tmp_path, text, encoding=encoding))["a"] == [SECRET, words]


def test_an_encoding_that_is_said_must_fit(tmp_path: Path) -> None:
    _refused(tmp_path, "a,b\nx,1\né,2\n".encode("latin-1"), r"not UTF-8 text: see line 3\.", encoding="utf-8")
    _refused(tmp_path, "a,b\nx,1\né,2\n", r"not text in the encoding ascii: see line 3\.", encoding="ascii")
    with pytest.raises(ParameterError, match="'encoding' parameter of the layout must be"):
        _read(tmp_path, "a,b\n1,2\n", encoding="klingon")


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    _refused(tmp_path, bytes(range(256)) * 20, "not UTF-8 text|is not text|carriage return")


# --- decimal marks ---


def test_decimal_commas_are_detected_and_told(tmp_path: Path) -> None:
    data = _read(tmp_path, "a;b;c;d\n1,5;-,25;7;1,2,3\n2;3,125e2;8;x\n")
    assert _cells(data) == {"a": [1.5, 2.0], "b": [-0.25, 312.5], "c": [7, 8], "d": ["1,2,3", "x"]}
    assert data.read_as == ("fields separated by semicolons", "decimal comma")
    assert _cells(_read(tmp_path, 'a,b\n"1,5",x\n"2,25",y\n'))["a"] == [1.5, 2.25]


def test_commas_that_may_mark_thousands_are_refused_until_it_is_said(tmp_path: Path) -> None:
    text = f"a;b\n1,234;{SECRET}\n12,500;x\n700;y\n"
    message = _refused(tmp_path, text, "with commas in 'a', with three digits after each")
    assert "234" not in message
    assert _cells(_read(tmp_path, text, decimal=","))["a"] == [1.234, 12.5, 700.0]
    assert _cells(_read(tmp_path, text, decimal="."))["a"] == ["1,234", "12,500", "700"]


def test_another_column_tells_whether_commas_mark_decimals(tmp_path: Path) -> None:
    assert _cells(_read(tmp_path, "a;b\n1,234;0,5\n2,500;1\n"))["a"] == [1.234, 2.5]


def test_commas_here_and_points_there_are_refused_until_it_is_said(tmp_path: Path) -> None:
    text = "nace;x\n45.1;2,5\n46.2;3\n"
    _refused(tmp_path, text, "commas in 'x', and points in 'nace'")
    assert _cells(_read(tmp_path, text, decimal=",")) == {"nace": ["45.1", "46.2"], "x": [2.5, 3.0]}
    assert _cells(_read(tmp_path, text, decimal="."))["x"] == ["2,5", "3"]


def test_the_codebook_can_declare_numbers_with_decimal_commas(tmp_path: Path) -> None:
    book = Codebook((Variable("x", "numeric", missing=("k.A.",)), Variable("y", categories=("1,5", "2"))))
    data = _read(tmp_path, "x;y;z\n1,5;2;0,5\n02,5;1,5;1\nk.A.;2;2\n", codebook=book)
    assert data["x"].values[:2].tolist() == [1.5, 2.5]
    assert _cells(data)["y"] == ["2", "1,5", "2"]
    _refused(tmp_path, "x;z\n1.500;0,5\n2,5;1\n", "1 rows do not hold a number", codebook=Codebook(book.variables[:1]))


def test_weights_have_decimal_commas_too(tmp_path: Path) -> None:
    assert _read(tmp_path, "s;w\nf;1,5\nm;2,25\n", weight="w").ticks.values.tolist() == [150, 225]  # pyright: ignore[reportOptionalMemberAccess]


# --- dates ---


@pytest.mark.parametrize(
    ("dates", "order"),
    [
        (["31.12.1999", "1.2.2000"], "day first"),
        (["31/12/1999", "01/02/2000"], "day first"),
        (["12/31/1999", "2/1/2000"], "month first"),
        (["1999/12/31", "2000/02/01"], "year first"),
    ],
)
def test_dates_are_read_as_iso_text_in_the_order_that_they_tell(tmp_path: Path, dates: list[str], order: str) -> None:
    data = _read(tmp_path, f"d,x\n{dates[0]},1\n{dates[1]},2\n,3\n")
    assert _cells(data)["d"] == ["1999-12-31", "2000-02-01", None]
    assert data.read_as == (f"dates with the {order}",)


def test_dates_that_do_not_tell_their_order_stay_text_and_that_is_told(tmp_path: Path) -> None:
    text = "d,x\n03/04/1999,1\n05/06/1999,2\n"
    data = _read(tmp_path, text)
    assert _cells(data)["d"] == ["03/04/1999", "05/06/1999"]
    assert "may come first, in: d" in data.read_as[0] and "dates=dmy" in data.read_as[0]
    assert _cells(_read(tmp_path, text, dates="dmy"))["d"][0] == "1999-04-03"
    assert _cells(_read(tmp_path, text, dates="mdy"))["d"][0] == "1999-03-04"


def test_one_column_of_dates_tells_the_order_for_the_others(tmp_path: Path) -> None:
    data = _read(tmp_path, "d,e\n03/04/1999,31/01/1999\n05/06/1999,01/01/1999\n")
    assert _cells(data)["d"] == ["1999-04-03", "1999-06-05"]


def test_what_is_no_date_stays_text(tmp_path: Path) -> None:
    for words in (
        ["31.12.1999", "never"],
        ["32.12.1999", "01.01.2000"],
        ["1.2.99", "3.4.00"],
        ["1999-12-31", "2000-01-01"],
    ):
        assert _cells(_read(tmp_path, f"d,x\n{words[0]},1\n{words[1]},2\n"))["d"] == words


# --- words for missing values ---


def test_words_for_missing_values_are_missing_among_numbers(tmp_path: Path) -> None:
    data = _read(tmp_path, "r,p,s,b,t\n1,2.5,7,8,NA\nNA,NaN,.,  ,x\n3,4,9,10,.\n")
    assert _cells(data) == {
        "r": [1, None, 3],
        "p": [2.5, None, 4.0],
        "s": [7, None, 9],
        "b": [8, None, 10],
        "t": ["NA", "x", "."],
    }
    assert data.read_as == ("NA, NaN, . and blanks are missing in: r, p, s, b",)


def test_a_file_of_r_with_row_names_is_read(tmp_path: Path) -> None:
    rows = "".join(f'"{i}",{i % 2},"{"mf"[i % 2]}",{"NA" if i % 5 == 0 else i * 1.5}\n' for i in range(1, 101))
    data = _read(tmp_path, '"","smoker","sex","bmi"\n' + rows)
    assert data.columns == ["row", "smoker", "sex", "bmi"]
    assert [data[name].variable.kind for name in data.columns] == ["numeric", "ordinal", "nominal", "numeric"]
    assert data["row"].variable.role == "id"
    assert "the first column has no name and is called 'row'" in data.read_as


@pytest.mark.parametrize("gap", ["", "NA", ".", "NaN", " "])
@pytest.mark.parametrize("form", ["{}", "{}.0"])
def test_zero_and_one_with_gaps_stay_categories(tmp_path: Path, gap: str, form: str) -> None:
    cells = [gap if i % 4 == 3 else form.format(i % 2) for i in range(12)]
    data = _read(tmp_path, "flag,x\n" + "".join(f"{cell},{i}.5\n" for i, cell in enumerate(cells)))
    assert data["flag"].variable.kind == "ordinal"
    assert data["flag"].variable.categories == (0, 1)
    assert data["flag"].values.tolist() == [2 if i % 4 == 3 else i % 2 for i in range(12)]


def test_whole_floats_without_gaps_stay_numbers(tmp_path: Path) -> None:
    assert _read(tmp_path, "x,y\n1.0,a\n2.0,b\n")["x"].variable.kind == "numeric"


def test_words_that_the_codebook_lists_are_its_missing_codes(tmp_path: Path) -> None:
    book = Codebook((Variable("x", "numeric", missing=(".",)),))
    data = _read(tmp_path, "x,y\n1,a\n.,b\nNA,c\n2,d\n", codebook=book)
    assert _cells(data)["x"] == ["1", ".", None, "2"]


# --- saying it ---


def test_the_words_of_the_option_are_those_of_python() -> None:
    said = Layout.parse("separator=tab decimal=comma quote=single encoding=cp1252 dates=dmy")
    assert said == Layout("\t", ",", "cp1252", "'", "dmy")
    for words in ("separator", "separator=", "decimal=, decimal=.", "; ,"):
        with pytest.raises(ParameterError, match="--layout takes settings"):
            Layout.parse(words)
    with pytest.raises(InputError, match="Did you mean: 'separator'"):
        Layout.parse("seperator=;")


@pytest.mark.parametrize("words", ["separator=x", "decimal=;", "quote=q", "dates=ydm"])
def test_what_is_no_dialect_is_refused(words: str) -> None:
    with pytest.raises(ParameterError, match="of the layout must be"):
        Layout.parse(words)


def test_a_dialect_is_for_delimited_text_only(tmp_path: Path) -> None:
    qd.write(qd.datasets.cps8d().take(range(10)), tmp_path / "file.parquet")
    with pytest.raises(InputError, match="are for delimited text"):
        read(tmp_path / "file.parquet", separator=";")
