"""Laws of files: what is written comes back, a codebook survives its text, and batches change nothing."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pyreadstat
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import quadrille as qd
from effort import examples
from quadrille.codebook import Codebook, Stored, Variable
from quadrille.data import missing_positions
from quadrille.errors import OutputError
from quadrille.io import parquet
from quadrille.io import stat_read as stat_parse
from quadrille.io.frames import build, from_frame
from quadrille.io.frames.values import from_moments, moment_of, to_moments
from quadrille.io.parquet import Batches, build_streamed
from quadrille.io.space import Space

NAMES = ("Alpha", "beta_2", "GAMMA")
WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
DATES = st.dates(dt.date(1900, 1, 1), dt.date(2100, 12, 31))
MOMENTS = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)).map(
    lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)
)
VALUES: dict[str, tuple[st.SearchStrategy[object], pl.DataType]] = {
    "codes": (st.integers(-3, 9), pl.Int64()),
    "whole": (st.integers(-(2**54), 2**54), pl.Int64()),
    "short": (st.integers(-(2**15), 2**15 - 1), pl.Int16()),
    "floats": (st.floats(allow_nan=False, allow_infinity=False), pl.Float64()),
    "text": (WORDS, pl.String()),
    "flags": (st.booleans(), pl.Boolean()),
    "dates": (DATES, pl.Date()),
    "moments": (MOMENTS, pl.Datetime("us")),
    "times": (st.times().map(lambda time: time.replace(microsecond=0)), pl.Time()),
}


@pytest.fixture(autouse=True, scope="module")
def in_this_process() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stat_parse, "ISOLATED", False)
        yield


@st.composite
def tables(draw: st.DrawFn, most: int = 12) -> pl.DataFrame:
    rows = draw(st.integers(1, most))
    columns: list[pl.Series] = []
    for name in NAMES[: draw(st.integers(1, 3))]:
        values, dtype = VALUES[draw(st.sampled_from(sorted(VALUES)))]
        drawn = draw(st.lists(st.none() | values, min_size=rows, max_size=rows))
        columns.append(pl.Series(name, drawn, dtype=dtype))
    return pl.DataFrame(columns)


def _same(sent: pl.Series, back: pl.Series) -> bool:
    """Whether a column is the same up to its type: an empty text is an empty field, true is 1."""
    if sent.dtype == pl.String:
        return sent.replace({"": None}).equals(back.cast(pl.String), check_names=False)
    if sent.dtype in (pl.Date, pl.Datetime, pl.Time) and sent.count():
        return sent.equals(back.cast(sent.dtype), check_names=False)
    return sent.cast(pl.Float64).equals(back.cast(pl.Float64), check_names=False) or not sent.count()


@given(table=tables(), suffix=st.sampled_from([".sav", ".dta", ".xpt"]))
def test_what_is_written_comes_back_or_is_refused(table: pl.DataFrame, suffix: str) -> None:
    data = from_frame(table)
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"file{suffix}"
        try:
            qd.write(data, path)
        except OutputError:
            assert not list(Path(folder).iterdir())
            return
        back = qd.read(path).frame()
    assert back.columns == table.columns
    for name in table.columns:
        assert _same(table[name], back[name]), name


@given(table=tables(), suffix=st.sampled_from([".sav", ".dta"]))
@examples(24)
def test_a_second_round_changes_nothing_more(table: pl.DataFrame, suffix: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"file{suffix}"
        try:
            qd.write(from_frame(table), path)
        except OutputError:
            return
        once = qd.read(path)
        assert qd.write(once, path) == ()
        assert qd.read(path) == once


WHOLE = st.integers(-50, 50)
LABELS = WORDS.map(lambda text: text.rstrip(" "))


@st.composite
def described(draw: st.DrawFn) -> tuple[pl.DataFrame, Codebook]:
    """A column of codes or amounts with labels, missing codes, a range of them, and words."""
    codes = draw(st.lists(WHOLE, min_size=1, max_size=6, unique=True))
    missing = draw(st.lists(st.integers(60, 70), max_size=2, unique=True))
    low = draw(st.integers(80, 90))
    ranges = draw(st.sampled_from([(), ((float(low), float(low + 9)),)]))
    if ranges:
        missing = missing[:1]
    found = draw(
        st.lists(
            st.none() | st.sampled_from([*codes, *missing, *([low, low + 3] if ranges else [])]),
            min_size=1,
            max_size=20,
        )
    )
    kind = draw(st.sampled_from(["nominal", "ordinal", "numeric"]))
    coded = kind != "numeric"
    names = tuple(draw(st.lists(LABELS, min_size=len(codes), max_size=len(codes))))
    others = draw(st.lists(LABELS, min_size=len(missing), max_size=len(missing)))
    variable = Variable(
        "Alpha",
        kind,  # pyright: ignore[reportArgumentType]
        categories=tuple(sorted(codes)) if coded else (),
        labels=names if coded and any(names) else (),
        missing=tuple(missing),
        missing_labels=tuple(others) if any(others) else (),
        missing_ranges=ranges,
        labelled=((55, "spare"),),
        label=draw(LABELS),
        stored=Stored("spss", "F8.0", "double", display=8, measure="" if not coded else kind),
    )
    return pl.DataFrame({"Alpha": pl.Series(found, dtype=pl.Int64)}), Codebook((variable,))


@given(case=described())
def test_a_codebook_survives_its_text_and_its_file(case: tuple[pl.DataFrame, Codebook]) -> None:
    table, book = case
    again = Codebook.from_toml(book.to_toml())
    assert [asdict(variable) for variable in again] == [asdict(variable) for variable in book]
    data = from_frame(table, codebook=book)
    inside = [code for code in data.codebook["Alpha"].missing if code >= 80]
    assert inside == sorted(value for value in set(table["Alpha"].drop_nulls()) if value >= 80)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "file.sav"
        qd.write(data, path)
        back = qd.read(path)
        assert back.frame().equals(data.frame())
        mine, theirs = data.codebook["Alpha"], back.codebook["Alpha"]
        assert theirs.value_labels == mine.value_labels
        assert (theirs.label, theirs.missing_ranges, set(theirs.missing)) == (
            mine.label,
            mine.missing_ranges,
            set(mine.missing),
        )
        qd.write(data, Path(folder) / "file.csv")
        assert qd.read(Path(folder) / "file.csv", codebook=data.codebook).frame().equals(data.frame()) or not any(
            table["Alpha"].is_not_null()
        )


@given(values=st.lists(st.none() | st.floats(-1e6, 1e6) | st.sampled_from([".a", ".z"]), min_size=1, max_size=15))
def test_missing_values_a_to_z_move_and_come_back(values: list[float | str | None]) -> None:
    texts = [None if value is None else str(value) for value in values]
    book = Codebook((Variable("x", "numeric", missing=(".a", ".z"), missing_labels=("refused", "")),))
    data = from_frame(pl.DataFrame({"x": pl.Series(texts, dtype=pl.String)}), codebook=book)
    positions = missing_positions(data["x"].values)
    assert [[".a", ".z"][p] if p >= 0 else None for p in positions] == [
        v if isinstance(v, str) else None for v in values
    ]
    turned = data.take(np.arange(data.n)[::-1])
    with TemporaryDirectory() as folder:
        qd.write(turned, Path(folder) / "file.dta")
        back = qd.read(Path(folder) / "file.dta", codebook=Codebook((Variable("x", "numeric"),)))
    found = missing_positions(back["x"].values)
    codes = back.codebook["x"].missing
    assert [codes[p] if p >= 0 else None for p in found] == [v if isinstance(v, str) else None for v in values[::-1]]
    numbers = [np.nan if isinstance(v, str | None) else v for v in values[::-1]]
    assert np.array_equal(back["x"].values, np.array(numbers), equal_nan=True)
    assert back.codebook["x"].value_labels == {".a": "refused"}


NUMBERS = st.floats(allow_nan=False) | st.sampled_from([float("inf"), float("-inf")])


@given(
    rows=st.lists(st.tuples(st.none() | st.just("") | WORDS, st.none() | NUMBERS), min_size=1, max_size=12),
    suffix=st.sampled_from([".csv", ".tsv", ".csv.gz"]),
)
def test_empty_texts_missing_values_and_infinite_numbers_come_back_from_text(
    rows: list[tuple[str | None, float | None]], suffix: str
) -> None:
    table = pl.DataFrame(rows, schema={"t": pl.String, "x": pl.Float64}, orient="row")
    data = from_frame(table, codebook=Codebook((Variable("t"), Variable("x", "numeric"))))
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"file{suffix}"
        told = qd.write(data, path)
        back = qd.read(path, codebook=data.codebook).frame()
    assert back["t"].to_list() == table["t"].to_list()
    assert back["x"].cast(pl.Float64).equals(table["x"])
    assert any(line.startswith("t: an empty text") for line in told) == (table["t"] == "").any()
    assert any(line.startswith("x: infinite") for line in told) == bool(table["x"].is_infinite().any())


MOMENT_FORMATS = {
    "spss": {"date": "EDATE10", "datetime": "DATETIME20", "time": "TIME8"},
    "stata": {"date": "%td", "datetime": "%tc", "time": "%tcHH:MM:SS"},
    "sas": {"date": "DATE9", "datetime": "DATETIME20", "time": "TIME8"},
}
SUFFIX = {"spss": ".sav", "stata": ".dta", "sas": ".xpt"}


@given(
    what=st.sampled_from([("date", "dates"), ("datetime", "moments"), ("time", "times")]),
    program=st.sampled_from(sorted(SUFFIX)),
    data=st.data(),
)
def test_dates_come_back_from_text_with_their_codes(what: tuple[str, str], program: str, data: st.DataObject) -> None:
    """From a program to CSV with its codebook and back; codes are a value for SPSS and .a for Stata."""
    values, dtype = VALUES[what[1]]
    drawn = data.draw(st.lists(st.none() | values, min_size=1, max_size=12))
    column = pl.Series("x", drawn, dtype=dtype)
    numbers = from_moments(column, program)
    coded = program == "spss" and numbers.count() and data.draw(st.booleans())
    tagged = program == "stata" and data.draw(st.booleans())
    options: dict[str, Any] = {"variable_format": {"x": MOMENT_FORMATS[program][what[0]]}}
    if coded:
        code = data.draw(st.sampled_from(numbers.drop_nulls().to_list()))
        options |= {"missing_ranges": {"x": [code]}, "variable_value_labels": {"x": {code: "refused"}}}
    if tagged:
        numbers = pl.Series("x", [*numbers.to_list()[1:], "a"], dtype=pl.Object)
        options["missing_user_values"] = {"x": ["a"]}
    with TemporaryDirectory() as folder:
        file, text, again = (
            Path(folder) / f"{name}" for name in (f"in{SUFFIX[program]}", "x.csv", f"x{SUFFIX[program]}")
        )
        writers = {"spss": pyreadstat.write_sav, "stata": pyreadstat.write_dta, "sas": pyreadstat.write_xport}
        writers[program](pl.DataFrame([numbers.alias("x"), pl.Series("k", [1.0] * len(numbers))]), file, **options)
        read = qd.read(file)
        assert read.codebook["x"].kind == "nominal"
        qd.write(read, text)
        assert qd.write(qd.read(text, codebook=read.codebook), again) == ()
        assert qd.read(again) == read
    if not coded and not tagged:
        assert read.frame()["x"].to_list() == drawn


@given(table=tables(most=30), size=st.integers(1, 7), listed=st.booleans())
@example(table=pl.DataFrame({"Alpha": pl.Series([None, None], dtype=pl.String)}), size=1, listed=False)
def test_batches_change_nothing(table: pl.DataFrame, size: int, listed: bool) -> None:
    wide = pl.concat([table] * 3) if listed else table
    whole = build(wide, codebook=None, weight=None, where="the table")
    book = whole.codebook if listed else None

    def read(name: str) -> Iterator[pl.Series]:
        for start in range(0, wide.height, size):
            yield wide[name].slice(start, size)

    def pieces(names: list[str]) -> Iterator[parquet.Piece]:
        """Each piece lists a value that none of its rows has, and some of them twice, as files of Arrow may."""
        for start in range(0, wide.height, size):
            piece: parquet.Piece = {}
            for name in names:
                held = wide[name].slice(start, size).to_list()
                piece[name] = [*held, "another", None], np.arange(len(held), dtype=np.int32)
            yield piece

    one_by_one = Batches(wide.clear(), wide.height, read)
    at_once = replace(one_by_one, texts=lambda names: parquet._read_texts(pieces(names), wide.height, Space(100)))
    for batches in (one_by_one, at_once):
        streamed = build_streamed(batches, codebook=book, weight=None, where="the table")
        assert streamed == whole
        assert streamed.fingerprint == whole.fingerprint
        for name in whole.columns:
            assert streamed[name].values.dtype == whole[name].values.dtype
            assert streamed[name].nullable == whole[name].nullable
            assert streamed[name].variable.ordered == whole[name].variable.ordered or book is not None


@pytest.mark.parametrize("values", [255, 256, 257, 300])
def test_codes_of_text_grow_when_a_byte_is_too_small_and_very_many_values_are_left_alone(values: int) -> None:
    codes = np.random.default_rng(values).permutation(np.arange(2 * values) % values).astype(np.int32)
    texts = [f"text {i}" for i in range(values)]
    column = parquet.Texts(len(codes), Space())
    for part in np.array_split(codes, 5):
        distinct, place = np.unique(part, return_inverse=True)
        assert column.add([texts[i] for i in distinct], place)
    series = pl.Series("x", [texts[i] for i in codes])
    whole = build(series.to_frame(), codebook=None, weight=None, where="the table")
    made = column.column(parquet.Source(series.clear(), "String", None, "the table", 0))
    assert qd.data.Data([made]) == whole
    assert made.values.dtype == whole["x"].values.dtype
    many = [str(i) for i in range(parquet.MOST_TEXTS + 1)]
    assert not parquet.Texts(1, Space()).add(many, np.zeros(1, dtype=np.int64))


def test_a_parquet_file_is_read_in_batches_with_the_same_result(
    tmp_path: Path, cps8d: qd.Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = pl.Series("id", range(cps8d.n))
    names = pl.Series("who", [f"person {i}" for i in range(cps8d.n)])
    table = cps8d.frame().with_columns(ids, names, (ids * 0.37).alias("amount"), (ids // 100).alias("group"))
    table.write_parquet(tmp_path / "file.parquet", row_group_size=999)
    whole = qd.read(tmp_path / "file.parquet")
    weighted = qd.read(tmp_path / "file.parquet", weight="group")
    assert whole.codebook["id"].role == whole.codebook["who"].role == "id"
    monkeypatch.setattr(parquet, "BATCH", 7000)
    collected, sizes = pl.LazyFrame.collect, list[tuple[int, int]]()

    def watched(scan: pl.LazyFrame) -> pl.DataFrame:
        table = collected(scan)
        sizes.append(table.shape)
        return table

    monkeypatch.setattr(pl.LazyFrame, "collect", watched)
    assert qd.read(tmp_path / "file.parquet") == whole
    assert qd.read(tmp_path / "file.parquet", weight="group") == weighted
    monkeypatch.setenv("QUADRILLE_MEMORY", "100KB")  # two columns of bytes; the others lie in files without a name
    paged = qd.read(tmp_path / "file.parquet")
    assert paged == whole
    assert sum(_of_a_file(paged[name].values) for name in paged.columns) >= len(paged.columns) - 4
    assert max(rows for rows, _ in sizes) == 7000
    assert {columns for rows, columns in sizes if rows > 1} == {1}


def _of_a_file(values: np.ndarray) -> bool:
    """Whether an array lies in a file that is mapped, through any views."""
    while isinstance(values, np.ndarray) and values.base is not None:
        values = values.base
    return not isinstance(values, np.ndarray)


@given(moment=MOMENTS, program=st.sampled_from(["spss", "stata", "sas"]))
def test_moments_are_numbers_and_back(moment: dt.datetime, program: str) -> None:
    epoch = dt.datetime(1582, 10, 14) if program == "spss" else dt.datetime(1960, 1, 1)
    seconds = (moment - epoch) / dt.timedelta(seconds=1) * (1000 if program == "stata" else 1)
    numbers = from_moments(pl.Series([moment], dtype=pl.Datetime("us")), program)
    assert numbers[0] == pytest.approx(seconds, rel=1e-15, abs=1e-5)
    back = to_moments(numbers, "datetime", program)
    assert back is not None
    assert back.to_list() == [moment]


@pytest.mark.parametrize(
    ("program", "format", "expected"),
    [
        ("spss", "EDATE10", "date"),
        ("spss", "DATETIME23.2", "datetime"),
        ("spss", "TIME8", "time"),
        ("spss", "F8.2", None),
        ("spss", "DTIME10", None),
        ("stata", "%td", "date"),
        ("stata", "%-tdD_m_Y", "date"),
        ("stata", "%tcHH:MM", "time"),
        ("stata", "%tc", "datetime"),
        ("stata", "%tm", None),
        ("stata", "%9.0g", None),
        ("sas", "DATE9.", "date"),
        ("sas", "E8601DA10.", "date"),
        ("sas", "DATETIME20.", "datetime"),
        ("sas", "BEST12.", None),
    ],
)
def test_formats_tell_dates_from_numbers(program: str, format: str, expected: str | None) -> None:
    assert moment_of(program, format) == expected
