"""Recoding in the codebook: bands, top and bottom codes, merges; done at reading, told, and not undone by a release."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import quadrille as qd
from effort import examples
from quadrille.cli.app import app
from quadrille.codebook import Codebook, Variable
from quadrille.data import Data
from quadrille.errors import InputError
from quadrille.io.frames.columns import band_labels

AGES = [3, 15, 16, 24, 25, 64, 65, 99]


def _one(values: object, **settings_of: object) -> Data:
    book = Codebook((Variable("x", **settings_of),))  # pyright: ignore[reportArgumentType]
    return qd.from_frame(pl.DataFrame({"x": values, "y": ["a", "b"] * 4}), codebook=book)


def _back(data: Data) -> list[object]:
    return data.frame()["x"].to_list()


# --- bands ---


def test_bands_of_whole_numbers_are_named_by_their_first_and_last_number() -> None:
    data = _one(AGES, bands=(0, 16, 25, 65))
    assert data["x"].variable.categories == ("0-15", "16-24", "25-64", "65+")
    assert data["x"].variable.kind == "ordinal" and data["x"].variable.ordered
    assert data["x"].values.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert data.remarks == data.recoded == ("x: numbers are recoded into 4 bands.",)
    assert data.keys == ("x", "y"), "a numeric key becomes usable"


def test_bands_of_decimals_say_what_belongs_to_them() -> None:
    data = _one([0.5, 1.49, 1.5, 2, 3, 4, 5, 9], bands=(0, 1.5))
    assert data["x"].variable.categories == ("0 to <1.5", "1.5+")
    assert data["x"].values.tolist() == [0, 0, 1, 1, 1, 1, 1, 1]
    assert _one([0.5] * 8, bands=(0, 2))["x"].variable.categories == ("0 to <2", "2+")


def test_the_codebook_can_name_the_bands() -> None:
    data = _one(AGES, bands=(0, 18, 65), categories=("child", "adult", "old"))
    assert _back(data) == ["child"] * 3 + ["adult"] * 3 + ["old"] * 2


@settings(examples(60))
@given(
    bands=st.lists(st.integers(-50, 50), min_size=1, max_size=6, unique=True).map(sorted),
    numbers=st.lists(st.one_of(st.none(), st.integers(0, 200)), min_size=1, max_size=30),
)
def test_every_number_lies_in_its_band_and_empty_fields_stay_empty(bands: list[int], numbers: list[int | None]) -> None:
    values = [None if number is None else bands[0] + number for number in numbers]
    frame = pl.DataFrame({"x": pl.Series(values, dtype=pl.Int64), "y": ["a"] * len(values)})
    data = qd.from_frame(frame, codebook=Codebook((Variable("x", bands=tuple(bands)),)))
    labels = band_labels(bands, whole=True)
    of_band = [None if v is None else labels[sum(v >= low for low in bands) - 1] for v in values]
    assert data.frame()["x"].to_list() == of_band
    again = qd.from_frame(data.frame(), codebook=Codebook((Variable("x", bands=tuple(bands)),)))
    assert again == data, "a file that is recoded already stays as it is"


def test_missing_codes_are_no_numbers_to_recode(tmp_path: Path) -> None:
    data = _one([*AGES[:6], 999, None], bands=(0, 16, 25, 65), missing=(999,))
    assert data["x"].variable.missing == ("999",)
    assert data["x"].values.tolist() == [0, 0, 1, 1, 2, 2, 4, 5]
    path = tmp_path / "file.csv"
    path.write_text("x,y\n" + "".join(f"{cell},a\n" for cell in (3, 70, "refused", 999, 20, "")))
    book = Codebook.from_toml('[columns.x]\nbands = [0, 16]\nmissing = ["refused"]\nmissing_ranges = [[990, 999]]\n')
    told = qd.read(path, codebook=book)
    assert told["x"].variable.missing == ("refused", "999")
    assert _back(told) == ["0-15", "16+", "refused", "999", "16+", None]
    told.codebook.write(tmp_path / "book.toml")
    assert qd.read(path, codebook=tmp_path / "book.toml") == told, "the codebook after describes the file before"
    qd.write(told, tmp_path / "after.csv")
    assert qd.read(tmp_path / "after.csv", codebook=tmp_path / "book.toml") == told


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ([-5, *AGES[1:]], "lies below the first band in 1 row. Start the bands lower"),
        (["a", "b"] * 4, "is text; 8 rows do not hold a number"),
        ([True, False] * 4, "has the type Boolean, which is not numeric"),
    ],
)
def test_what_no_band_holds_is_refused_without_its_value(values: list[object], match: str) -> None:
    with pytest.raises(InputError, match=match) as caught:
        _one(values, bands=(0, 16))
    assert "-5" not in str(caught.value)


# --- top and bottom codes ---


@pytest.mark.parametrize("dtype", [pl.Int64, pl.Float64, pl.String])
def test_numbers_beyond_the_codes_are_set_to_them(dtype: type[pl.DataType]) -> None:
    series = pl.Series([1, 5, 50, 85, 86, 120, 999, None]).cast(dtype)
    if dtype == pl.String:
        series = series.set(pl.Series([False] * 6 + [True, False]), "refused")  # pyright: ignore[reportArgumentType]
    missing = ("refused",) if dtype == pl.String else (999,)
    data = _one(series, kind="numeric", top=85, bottom=5, missing=missing)
    assert data["x"].values[:6].tolist() == [5, 5, 50, 85, 85, 85]
    assert np.isnan(data["x"].values[6:]).all()
    assert data.recoded == (
        "x: numbers above the top code are set to it; numbers below the bottom code are set to it.",
    )


def test_the_kind_is_guessed_after_the_codes_are_set() -> None:
    frame = pl.DataFrame({"age": range(120), "y": ["a", "b"] * 60})
    book = Codebook.from_toml("[columns.age]\ntop = 30\n")
    assert qd.from_frame(frame)["age"].variable.kind == "numeric"
    assert qd.from_frame(frame, codebook=book)["age"].variable.categories == tuple(range(31))


def test_the_kind_is_guessed_beside_missing_codes_that_are_text(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text("x,y\n" + "".join(f"{cell},{cell}\n" for cell in (1, 7, 9, "refused")))
    for top, kind, categories in ((8, "ordinal", (1, 7, 8)), (8.5, "numeric", ())):
        book = Codebook.from_toml(f'[columns.x]\ntop = {top}\nmissing = ["refused"]\n')
        data = qd.read(path, codebook=book)
        assert (data["x"].variable.kind, data["x"].variable.categories) == (kind, categories)
        assert _back(data) == ["1", "7", str(top), "refused"]


def test_listed_categories_beyond_the_codes_go() -> None:
    data = _one([1, 2, 3, 4] * 2, kind="ordinal", categories=(1, 2, 3, 4, 5), labels=("a", "b", "c", "d", "e"), top=3)
    assert (data["x"].variable.categories, data["x"].variable.labels) == ((1, 2, 3), ("a", "b", "c"))


# --- merges ---


def test_texts_are_merged_under_the_new_name_in_the_place_of_the_first() -> None:
    data = _one(["x", "y", "work", "study"] * 2, merge={"Never worked": ["x", "y"]})
    assert data["x"].variable.categories == ("Never worked", "study", "work")
    listed = ("work", "x", "study", "y")
    data = _one(listed * 2, kind="ordinal", categories=listed, merge={"Never worked": ["x", "y"]})
    assert data["x"].variable.categories == ("work", "Never worked", "study")
    assert _back(data) == ["work", "Never worked", "study", "Never worked"] * 2
    assert qd.from_frame(data.frame(), codebook=Codebook((data["x"].variable,))) == data


def test_numbers_are_merged_into_the_first_with_the_name_as_label(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text("x,y\n" + "".join(f"{cell},a\n" for cell in (1, 2, 8, 9, 1, 99)))
    book = Codebook.from_toml('[columns.x]\nmerge = { "Never worked" = [8, 9] }\nmissing = [99]\n')
    data = qd.read(path, codebook=book)
    assert data["x"].variable.categories == (1, 2, 8) and data["x"].labels[:3] == ("1", "2", "Never worked")
    assert data["x"].variable.kind == "ordinal"
    assert _back(data) == [1, 2, 8, 8, 1, 99]


@pytest.mark.parametrize(
    ("merge", "match"),
    [
        ({"z": ["nowhere"]}, "holds no value of the merge into 'z'"),
        ({"z": [1, 2]}, "is text, and the merge into 'z' lists something else"),
        ({"z": ["gone"]}, "has a missing code that is merged"),
    ],
)
def test_a_merge_of_what_is_not_there_is_refused(merge: object, match: str) -> None:
    with pytest.raises(InputError, match=match):
        _one(["a", "b", "c", "gone"] * 2, merge=merge, missing=("gone",))


# --- the codebook file ---


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("bands = [0, 16, 16]", "do not ascend"),
        ("bands = []", "must be a list of numbers"),
        ('bands = ["a"]', "must be a list of numbers"),
        ("bands = 5", "must be a list of numbers"),
        ("bands = [nan]", "must be a list of numbers"),
        ('bands = [0, 5]\ncategories = ["a"]', "1 categories for 2 bands"),
        ("bands = [0, 5]\ntop = 9", "bands and another recoding"),
        ("top = 5\nbottom = 5", "not below the top code"),
        ('top = "x"', "'top' must be a number"),
        ("merge = 5", "'merge' must be a table"),
        ('merge = { "a" = "b" }', "'merge' must be a table"),
        ('merge = { "a" = [] }', "a merge is empty"),
        ('merge = { "a" = ["x"], "b" = ["x"] }', "a value is merged twice"),
        ('original = "z"', "'original' names the column"),
        ('top = 5\noriginal = "x"', "'original' names the column"),
    ],
)
def test_recoding_that_cannot_be_is_refused(text: str, match: str) -> None:
    with pytest.raises(InputError, match=match):
        Codebook.from_toml(f"[columns.x]\n{text}\n")


def test_recoding_is_kept_by_the_codebook_file() -> None:
    book = Codebook.from_toml(
        '[columns.a]\nbands = [0, 1.5]\noriginal = "z"\n[columns.b]\ntop = 5\nbottom = -1.5\n'
        '[columns.c]\nmerge = { "o p" = ["x", "y"], q = ["r"] }\n'
    )
    again = Codebook.from_toml(book.to_toml())
    for one, other in zip(book, again, strict=True):
        assert all(getattr(one, n) == getattr(other, n) for n in ("bands", "top", "bottom", "merge", "original"))
    assert book["c"].merge == (("o p", ("x", "y")), ("q", ("r",)))
    short = Codebook.from_toml(book.to_toml(guessed=Codebook()))
    assert [variable.merge for variable in short] == [variable.merge for variable in book]


# --- in every format, and in a release ---


def _survey(rows: int = 200) -> pl.DataFrame:
    i = np.arange(rows)
    return pl.DataFrame({"age": i * 7 % 97, "work": np.array(["a", "b", "x", "y"])[i % 4], "pay": i * 37.5 % 1000})


BOOK = """
[columns.age]
bands = [0, 16, 25, 65]
role = "key"
[columns.work]
merge = { "none" = ["x", "y"] }
role = "key"
[columns.pay]
top = 500
role = "outcome"
"""


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "sav", "dta", "xpt"])
def test_every_format_is_recoded_alike(tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quadrille.io.parquet.BATCH", 50)
    qd.write(qd.from_frame(_survey()), tmp_path / f"survey.{ending}")
    data = qd.read(tmp_path / f"survey.{ending}", codebook=Codebook.from_toml(BOOK))
    plain = qd.from_frame(_survey(), codebook=Codebook.from_toml(BOOK))
    for name in ("age", "work", "pay"):
        assert data[name].variable.categories == plain[name].variable.categories
        assert np.array_equal(data[name].values, plain[name].values)
    assert data.recoded == plain.recoded and len(data.recoded) == 3


def test_a_release_holds_the_recoded_file_and_not_how_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    qd.write(qd.from_frame(_survey()), "survey.csv")
    Path("book.toml").write_text(BOOK)

    def run(words: str) -> str:
        done = CliRunner().invoke(app, words.split())
        assert done.exit_code == 0, done.output
        return done.stdout

    shown = " ".join(run("inspect survey.csv --codebook book.toml").split())
    assert "recoded age: numbers are recoded into 4 bands." in shown
    assert len(json.loads(run("inspect survey.csv --codebook book.toml --json"))["recoded"]) == 3
    run("release survey.csv --codebook book.toml --swap age --rate 0.2 --measures hellinger --out released")
    public = Path("released/public")
    book = (public / "codebook.toml").read_text()
    assert not any(word in book for word in ("bands", "merge", "top =", '"x"', '"y"'))
    released = qd.read(public / "data.csv", codebook=public / "codebook.toml")
    assert released.columns == ["age", "work", "pay"]
    assert released.frame()["age"].unique().sort().to_list() == ["0-15", "16-24", "25-64", "65+"]
    assert released.frame()["pay"].max() == 500
    note = next(public.glob("methods*.md")).read_text()
    assert "age: numbers are recoded into 4 bands." in note
    run("swap survey.csv --codebook book.toml --swap age --rate 0.2 --out swapped.csv --measures hellinger")
    run("score survey.csv swapped.csv --codebook book.toml --measures hellinger")


def test_the_original_is_kept_where_it_is_asked_for() -> None:
    data = _one(AGES, bands=(0, 65), original="x_before")
    assert data.columns == ["x", "y", "x_before"]
    assert data.frame()["x_before"].to_list() == AGES
    assert data.recoded == ("x: numbers are recoded into 2 bands, and kept as it was in 'x_before'.",)
    with pytest.raises(InputError, match="'y' of the frame exists already"):
        _one(AGES, bands=(0, 65), original="y")
