"""Frames in and out: exact round trips, stated guesses, and errors without data values."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from quadrille.codebook import Codebook, Variable
from quadrille.data import tidy
from quadrille.errors import InputError
from quadrille.io.frames import from_frame, to_frame
from quadrille.io.frames.columns import build
from quadrille.io.parquet import Batches, build_streamed

SECRET = "Zebedee"
WORDS = st.text(st.characters(codec="utf-8"), max_size=5)


def _integers(low: int, high: int) -> st.SearchStrategy[int]:
    return st.integers(low, high)


def _finite(width: int) -> st.SearchStrategy[float]:
    return st.floats(allow_nan=False, width=width)  # pyright: ignore[reportArgumentType]


_DATES = st.dates(dt.date(1, 1, 2), dt.date(9999, 12, 30))
_MOMENTS = st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1))
DTYPES: list[tuple[pl.DataType, st.SearchStrategy[object]]] = [
    (pl.String(), WORDS),
    (pl.Categorical(), WORDS),
    (pl.Categorical(pl.Categories("pool", "tests", pl.UInt16)), WORDS),
    (pl.Enum(["z", "", "a", "m"]), st.sampled_from(["z", "", "a", "m"])),
    (pl.Boolean(), st.booleans()),
    (pl.Int8(), _integers(-128, 127)),
    (pl.Int16(), _integers(-(2**15), 2**15 - 1)),
    (pl.Int32(), _integers(-(2**31), 2**31 - 1)),
    (pl.Int64(), _integers(-(2**63), 2**63 - 1)),
    (pl.Int128(), _integers(-(2**100), 2**100)),
    (pl.UInt8(), _integers(0, 255)),
    (pl.UInt16(), _integers(0, 2**16 - 1)),
    (pl.UInt32(), _integers(0, 2**32 - 1)),
    (pl.UInt64(), _integers(0, 2**64 - 1)),
    (pl.Float32(), _finite(32)),
    (pl.Float64(), _finite(64)),
    (pl.Decimal(12, 3), st.decimals(-(10**8), 10**8, places=3)),
    (pl.Decimal(30, 2), st.decimals(-(10**27), 10**27, places=2)),
    (pl.Date(), _DATES),
    (pl.Datetime("ms"), _MOMENTS.map(lambda moment: moment.replace(microsecond=1000))),
    (pl.Datetime("us"), _MOMENTS),
    (pl.Datetime("ns"), _MOMENTS),
    (pl.Datetime("us", "Europe/Paris"), _MOMENTS.map(lambda moment: moment.replace(tzinfo=dt.UTC))),
    (pl.Time(), st.times()),
    (pl.Null(), st.none()),
]


@pytest.mark.parametrize(("dtype", "values"), DTYPES, ids=lambda value: str(value)[:40])
@given(data=st.data())
@examples(24)
def test_a_frame_comes_back_exactly_with_its_types(
    dtype: pl.DataType, values: st.SearchStrategy[object], data: st.DataObject
) -> None:
    cells = data.draw(st.lists(st.none() | values, min_size=1, max_size=80))
    frame = pl.DataFrame({"x": pl.Series(cells, dtype=dtype)})
    back = to_frame(from_frame(frame))
    assert back.schema == frame.schema
    assert back.equals(frame)


@given(st.lists(st.none() | st.sampled_from(["b", "a", "c"]), min_size=1, max_size=30))
def test_codes_are_positions_in_sorted_categories_and_null_is_the_last_code(cells: list[str | None]) -> None:
    column = from_frame(pl.DataFrame({"x": pl.Series(cells, dtype=pl.String)}))["x"]
    values = [*column.variable.values, None]
    assert [values[code] for code in column.values] == cells
    assert column.variable.categories == tuple(sorted({cell for cell in cells if cell is not None}))
    assert column.nullable == (None in cells)
    assert column.values.max() < column.size


def test_text_is_nominal_in_code_point_order() -> None:
    variable = from_frame(pl.DataFrame({"x": ["é", "b", "Z", "a", "😀", "￿"]}))["x"].variable
    assert variable == Variable("x", "nominal", ("Z", "a", "b", "é", "￿", "😀"))


def test_categorical_codes_do_not_depend_on_what_was_seen_before() -> None:
    first = from_frame(pl.DataFrame({"x": pl.Series(["b", "a"], dtype=pl.Categorical)}))
    second = from_frame(pl.DataFrame({"x": pl.Series(["c", "b", "a"], dtype=pl.Categorical)[1:]}))
    assert first == second
    assert first["x"].values.tolist() == [1, 0]


def test_enum_keeps_all_its_categories_in_its_order() -> None:
    dtype = pl.Enum(["low", "mid", "high"])
    column = from_frame(pl.DataFrame({"x": pl.Series(["high", "low"], dtype=dtype)}))["x"]
    assert column.variable.categories == ("low", "mid", "high")
    assert column.values.tolist() == [2, 0]


def test_booleans_are_nominal_false_first() -> None:
    column = from_frame(pl.DataFrame({"x": [True, True]}))["x"]
    assert column.variable == Variable("x", "nominal", (False, True))
    assert column.values.tolist() == [1, 1]


def test_dates_are_nominal_and_read_as_iso_text() -> None:
    column = from_frame(pl.DataFrame({"x": [dt.date(2021, 5, 1), dt.date(1999, 12, 31)]}))["x"]
    assert column.variable == Variable("x", "nominal", ("1999-12-31", "2021-05-01"))


@pytest.mark.parametrize(("distinct", "kind"), [(50, "ordinal"), (51, "numeric")])
def test_integers_are_ordinal_up_to_50_distinct_values(distinct: int, kind: str) -> None:
    cells = [-7, *range(distinct - 1), None, 0]
    column = from_frame(pl.DataFrame({"x": pl.Series(cells, dtype=pl.Int16)}))["x"]
    assert column.variable.kind == kind
    assert column.variable.categories == ((-7, *range(distinct - 1)) if kind == "ordinal" else ())


def test_numbers_are_float64_with_nan_for_null() -> None:
    column = from_frame(pl.DataFrame({"x": [1.5, None, float("nan")]}))["x"]
    assert column.variable.kind == "numeric"
    assert column.values.dtype == np.float64
    assert np.isnan(column.values).tolist() == [False, True, True]


@pytest.mark.parametrize("size", [2**53 + 1, -(2**53) - 1, 2**63 - 1])
def test_integers_that_float64_cannot_hold_are_nominal_ids(size: int) -> None:
    data = from_frame(pl.DataFrame({"x": [1, size]}))
    assert data["x"].variable.kind == "nominal"
    assert data["x"].variable.role == "id"
    assert to_frame(data)["x"].to_list() == [1, size]


def test_integers_of_exactly_2_to_the_53_are_not_ids() -> None:
    assert from_frame(pl.DataFrame({"x": [1, 2**53]}))["x"].variable.role is None


@pytest.mark.parametrize(("rows", "role"), [(50, None), (51, "id")])
def test_text_that_differs_in_every_row_is_an_id_beyond_50_rows(rows: int, role: str | None) -> None:
    data = from_frame(pl.DataFrame({"x": [f"n{i}" for i in range(rows)]}))
    assert data["x"].variable.role == role
    assert data.keys == (() if role else ("x",))


@pytest.mark.parametrize(("size", "dtype"), [(255, np.uint8), (256, np.uint8), (257, np.uint16), (70_000, np.uint32)])
@pytest.mark.parametrize("null", [False, True])
def test_codes_use_the_smallest_type_that_holds_them(size: int, dtype: type, null: bool) -> None:
    cells = [f"{i:06}" for i in range(size - null)] + [None] * null
    data = from_frame(pl.DataFrame({"x": cells}))
    assert data["x"].values.dtype == dtype
    assert to_frame(data)["x"].to_list() == cells


def test_columns_cannot_be_written_to() -> None:
    data = from_frame(pl.DataFrame({"x": ["a", "b"], "y": [1.5, 2.5]}))
    for name in data.columns:
        with pytest.raises(ValueError, match="read-only"):
            data[name].values[0] = 0


def test_every_kind_of_frame_gives_the_same_data() -> None:
    table = pa.table({"s": ["m", "f", None], "n": [1, 2, 3], "x": [0.5, None, 2.5]})
    frame = pl.DataFrame(table)
    expected = from_frame(frame)
    assert from_frame(frame.lazy()) == expected
    assert from_frame(table) == expected
    assert from_frame(table.to_batches()[0]) == expected
    assert from_frame(table.to_pandas()) == expected


def test_a_pandas_index_is_not_a_column_and_ordered_categories_keep_their_order() -> None:
    levels = pd.Categorical(["lo", "hi"], categories=["lo", "mid", "hi"], ordered=True)
    data = from_frame(pd.DataFrame({"x": levels}, index=[7, 3]))
    assert data.columns == ["x"]
    assert data["x"].variable.categories == ("lo", "mid", "hi")


@pytest.mark.parametrize(
    "thing", [[1, 2], {"a": [1]}, None, pl.Series([1]), pa.array([1]), pd.Series([1]), np.ones(3), SECRET]
)
def test_what_is_no_frame_is_refused(thing: object) -> None:
    with pytest.raises(InputError, match="polars, pandas or Arrow") as caught:
        from_frame(thing)  # pyright: ignore[reportArgumentType]
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("frame", [pd.DataFrame([[1, 2]], columns=["a", "a"]), pa.table([[1], [2]], names=["a", "a"])])
def test_duplicate_names_are_refused(frame: object) -> None:
    with pytest.raises(InputError, match="'a' occurs more than once"):
        from_frame(frame)  # pyright: ignore[reportArgumentType]


def test_mixed_objects_are_refused_by_column_name_without_their_values() -> None:
    with pytest.raises(InputError, match="Column 'bad'") as caught:
        from_frame(pd.DataFrame({"good": [1, 2], "bad": pd.Series([SECRET, 3], dtype=object)}))
    assert SECRET not in str(caught.value)


def test_a_failing_query_is_refused_without_its_values() -> None:
    query = pl.LazyFrame({"x": [SECRET]}).with_columns(pl.col("x").cast(pl.Int64))
    with pytest.raises(InputError, match="LazyFrame") as caught:
        from_frame(query)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "series",
    [
        pl.Series("x", [[1, 2]]),
        pl.Series("x", [{"a": 1}]),
        pl.Series("x", [b"raw"]),
        pl.Series("x", [dt.timedelta(1)]),
    ],
    ids=["list", "struct", "binary", "duration"],
)
def test_unsupported_types_are_refused_by_column_name(series: pl.Series) -> None:
    with pytest.raises(InputError, match=r"Column 'x' of the frame has the type \w+, which is not supported"):
        from_frame(series.to_frame())


@pytest.mark.parametrize(("frame", "what"), [(pl.DataFrame(), "columns"), (pl.DataFrame({"x": []}), "records")])
def test_an_empty_frame_is_refused(frame: pl.DataFrame, what: str) -> None:
    with pytest.raises(InputError, match=f"no {what}"):
        from_frame(frame)


def test_a_column_without_a_name_is_refused() -> None:
    with pytest.raises(InputError, match="no name"):
        from_frame(pl.DataFrame({"": [1]}))


# --- with a codebook ---


def test_the_codebook_decides_order_labels_and_missing_codes_come_after_categories() -> None:
    edu = Variable("edu", "ordinal", ("none", "school"), ("No", "Yes"), missing=("refused",), role="key")
    frame = pl.DataFrame({"edu": ["refused", "school", None, "none"], "other": ["b", "a", "a", "b"]})
    data = from_frame(frame, codebook=Codebook((edu,)))
    assert data["edu"].variable == edu
    assert data["edu"].values.tolist() == [2, 1, 3, 0]
    assert data["edu"].valid == 2
    assert data["other"].variable.categories == ("a", "b")
    assert to_frame(data).equals(frame)


def test_open_categories_are_guessed_and_the_rest_of_the_codebook_is_kept() -> None:
    level = Variable("n", missing=(9,), role="geography", level=2)
    book = Codebook((Variable("x", "ordinal", missing=("?",), role="stratum"), level))
    data = from_frame(pl.DataFrame({"x": ["b", "?", "a"], "n": [9, 10, 1]}), codebook=book)
    assert data["x"].variable == Variable("x", "ordinal", ("a", "b"), missing=("?",), role="stratum")
    assert data["n"].variable == Variable("n", "nominal", (1, 10), missing=(9,), role="geography", level=2)
    assert data["n"].values.tolist() == [2, 1, 0]


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum(["c", "b", "a"])])
def test_text_types_follow_the_codebook_and_come_back_as_they_were(dtype: pl.DataType) -> None:
    frame = pl.DataFrame({"x": pl.Series(["a", "c", None], dtype=dtype)})
    data = from_frame(frame, codebook=Codebook((Variable("x", categories=("c", "a")),)))
    assert data["x"].values.tolist() == [1, 0, 2]
    assert to_frame(data).equals(frame)
    assert to_frame(data).schema == frame.schema


def test_whole_float_categories_match_integers_and_the_other_way_round() -> None:
    book = Codebook((Variable("i", categories=(2.0, 1.0)), Variable("f", categories=(1, 2))))
    frame = pl.DataFrame({"i": [1, 2], "f": [1.0, 2.0]})
    data = from_frame(frame, codebook=book)
    assert data["i"].values.tolist() == [1, 0]
    assert data["f"].values.tolist() == [0, 1]
    assert to_frame(data).equals(frame)


def test_a_category_that_the_type_cannot_hold_is_allowed_as_long_as_it_does_not_occur() -> None:
    frame = pl.DataFrame({"x": pl.Series([1, None], dtype=pl.Int8)})
    data = from_frame(frame, codebook=Codebook((Variable("x", "ordinal", (1, 3000)),)))
    assert to_frame(data).equals(frame)


def test_text_is_taken_for_the_numbers_or_booleans_that_the_codebook_lists() -> None:
    book = Codebook(
        (
            Variable("i", categories=(10, 9)),
            Variable("f", categories=(1.5, 2.0)),
            Variable("b", categories=(True, False)),
        )
    )
    frame = pl.DataFrame({"i": ["9", "10"], "f": ["1.50", "2"], "b": ["false", "true"]})
    data = from_frame(frame, codebook=book)
    assert [data[name].values.tolist() for name in "ifb"] == [[1, 0], [0, 1], [1, 0]]
    assert to_frame(data).rows() == [(9, 1.5, False), (10, 2.0, True)]


@pytest.mark.parametrize(
    ("cells", "categories"),
    [
        ([SECRET, SECRET, "a", None], ("a", "b")),
        ([77, 77, 1, None], (1, 2)),
        (["077", "x77", "1", None], (1, 2)),
        ([77.5, 77.5, 1.0, float("nan")], (1, 2)),
        ([True, True, False, None], (False,)),
        ([dt.date(1977, 1, 1)] * 2 + [dt.date(2000, 1, 1), None], ("2000-01-01",)),
        (pl.Series([SECRET, SECRET, "a", None], dtype=pl.Categorical), ("a",)),
        ([1, 1, None, None], ("1",)),
    ],
)
def test_a_value_outside_the_codebook_is_counted_and_never_shown(cells: object, categories: tuple[object]) -> None:
    frame = pl.DataFrame({"x": cells})
    with pytest.raises(InputError, match=r"Column 'x' of the frame .* in 2 rows") as caught:
        from_frame(frame, codebook=Codebook((Variable("x", categories=categories),)))  # pyright: ignore[reportArgumentType]
    assert SECRET not in str(caught.value)
    assert "77" not in str(caught.value)


def test_a_codebook_column_that_the_frame_lacks_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match=r"no column 'Edo' in the frame\. Did you mean: 'Edu'"):
        from_frame(pl.DataFrame({"Edu": ["a"]}), codebook=Codebook((Variable("Edo"),)))


def test_a_codebook_may_be_a_path(tmp_path: object) -> None:
    path = f"{tmp_path}/book.toml"
    with open(path, "w") as file:  # noqa: PTH123
        file.write('[columns.x]\ncategories = ["b", "a"]\n')
    assert from_frame(pl.DataFrame({"x": ["a"]}), codebook=path)["x"].values.tolist() == [1]
    with pytest.raises(InputError, match="Cannot read the codebook"):
        from_frame(pl.DataFrame({"x": ["a"]}), codebook=path + ".gone")


# --- numeric columns ---


def test_declared_numeric_text_must_parse_and_the_error_counts_rows() -> None:
    book = Codebook((Variable("x", "numeric"),))
    data = from_frame(pl.DataFrame({"x": ["007", "+1.5", None, "-2e1"]}), codebook=book)
    assert data["x"].values[[0, 1, 3]].tolist() == [7.0, 1.5, -20.0]
    with pytest.raises(InputError, match=r"Column 'x' of the frame is text; 3 rows do not hold a number") as caught:
        from_frame(pl.DataFrame({"x": [SECRET, "inf", "1", None, "nan"]}), codebook=book)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("cells", [[True, False], [dt.date(2020, 1, 1)] * 2])
def test_what_cannot_be_numeric_is_refused(cells: list[object]) -> None:
    with pytest.raises(InputError, match=r"'x' of the frame has the type .* not numeric"):
        from_frame(pl.DataFrame({"x": cells}), codebook=Codebook((Variable("x", "numeric"),)))


@pytest.mark.parametrize("cells", [[2**53 + 1, 1], [str(2**53 + 1), "1"], [str(2**53 + 1), "1.5"], ["9" * 30, "01"]])
def test_declared_numbers_that_would_be_rounded_are_refused(cells: list[object]) -> None:
    with pytest.raises(InputError, match=r"'x' of the frame holds numbers too large .* in 1 rows"):
        from_frame(pl.DataFrame({"x": cells}), codebook=Codebook((Variable("x", "numeric"),)))


def test_missing_codes_of_numbers_are_nan_and_come_back_each_as_itself() -> None:
    book = Codebook((Variable("i", "numeric", missing=(-9, -8)), Variable("t", "numeric", missing=("NA", "refused"))))
    frame = pl.DataFrame({"i": pl.Series([5, -9, None, -8], dtype=pl.Int16), "t": ["refused", "1.5", "NA", None]})
    data = from_frame(frame, codebook=book)
    assert np.isnan(data["i"].values).tolist() == [False, True, True, True]
    assert np.isnan(data["t"].values).tolist() == [True, False, True, True]
    assert to_frame(data).equals(frame)
    moved = data.with_values({"i": (np.array([0, 1]), data["i"].values[[1, 0]])})
    assert to_frame(moved)["i"].to_list() == [-9, 5, None, -8]
    assert moved.fingerprint != data.fingerprint


# --- weights ---


def test_the_weight_column_is_numeric_and_never_a_key() -> None:
    data = from_frame(pl.DataFrame({"x": ["a", "b"], "w": [1, 2]}), weight="w")
    assert data["w"].variable == Variable("w", "numeric", role="weight")
    assert data.keys == ("x",)
    assert data.ticks is not None
    assert data.ticks.values.tolist() == [1, 2]
    assert to_frame(data)["w"].to_list() == [1, 2]


def test_a_weight_declared_in_the_codebook_is_numeric_even_when_it_has_categories() -> None:
    frame = pl.DataFrame({"w": ["1", "2"]})
    data = from_frame(frame, codebook=Codebook((Variable("w", "ordinal", ("1", "2"), role="weight"),)))
    assert data.weight == "w"
    assert data["w"].values.tolist() == [1.0, 2.0]


def test_an_unknown_weight_gets_the_nearest_name() -> None:
    with pytest.raises(InputError, match=r"no column 'wieght' in the frame\. Did you mean: 'weight'"):
        from_frame(pl.DataFrame({"weight": [1.0]}), weight="wieght")


def test_a_weight_of_text_is_refused_without_its_values() -> None:
    with pytest.raises(InputError, match=r"Weight column 'w' of the frame is text; 1 rows") as caught:
        from_frame(pl.DataFrame({"w": [SECRET, "1"]}), weight="w")
    assert SECRET not in str(caught.value)
    with pytest.raises(InputError, match=r"Weight column 'w' of the frame has the type Boolean"):
        from_frame(pl.DataFrame({"w": [True]}), weight="w")


# --- small tables ---


def test_tidy_makes_one_row_per_mapping_and_fills_gaps_with_null() -> None:
    frame = tidy([{"name": "a", "value": 1}, {"name": "b", "value": 2.5, "note": "x"}, {"value": None}])
    assert frame.columns == ["name", "value", "note"]
    assert frame.rows() == [("a", 1.0, None), ("b", 2.5, "x"), (None, None, None)]
    assert tidy([]).shape == (0, 0)


def test_categories_are_the_same_in_every_process() -> None:
    program = (
        "import polars as pl; from quadrille.io.frames import from_frame;"
        "x = pl.Series('x', ['q', 'b', 'é', 'b'], dtype=pl.Categorical);"
        "print(from_frame(x.to_frame()).fingerprint)"
    )
    prints = {
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert len(prints) == 1


def test_ordered_categories_of_pandas_are_ordinal_unless_the_codebook_says_otherwise() -> None:
    levels = pd.Categorical(["lo", "hi", None], categories=["lo", "mid", "hi"], ordered=True)
    frame = pd.DataFrame({"level": levels, "plain": pd.Categorical(["a", "b", "a"])})
    data = from_frame(frame)
    assert (data["level"].variable.kind, data["plain"].variable.kind) == ("ordinal", "nominal")
    assert data["level"].variable.categories == ("lo", "mid", "hi")
    book = Codebook((Variable("level", "nominal"),))
    assert from_frame(frame, codebook=book)["level"].variable.kind == "nominal"


@pytest.mark.parametrize("dtype", [pl.Categorical(), pl.Enum(["c", "b", "a"]), pl.String])
@pytest.mark.parametrize("listed", [False, True])
def test_text_of_any_type_is_the_same_in_batches(dtype: pl.DataType, listed: bool) -> None:
    table = pl.DataFrame({"x": pl.Series(["b", None, "a", "c", "a", "b"], dtype=dtype)})
    whole = build(table, codebook=None, weight=None, where="the table")
    batches = Batches(
        table.clear(), table.height, lambda name: iter([table[name][:2], table[name][2:5], table[name][5:]])
    )
    book = whole.codebook if listed else None
    assert build_streamed(batches, codebook=book, weight=None, where="the table") == whole


def test_ordered_categories_that_tell_every_record_apart_are_an_id() -> None:
    frame = pd.DataFrame({"key": pd.Categorical([f"x{i:03}" for i in range(60)], ordered=True)})
    assert from_frame(frame)["key"].variable.role == "id"


def test_nan_is_remarked_unless_it_is_the_empty_field_of_pandas() -> None:
    cells = {"x": [1.5, float("nan"), None], "y": [1.0, None, 2.0]}
    assert from_frame(pl.DataFrame(cells)).remarks == ("x: not-a-number becomes an empty value.",)
    assert from_frame(pa.table(cells)).remarks == ("x: not-a-number becomes an empty value.",)
    assert from_frame(pd.DataFrame(cells)).remarks == ()


@pytest.mark.parametrize("dtype", [pl.Datetime("ms"), pl.Datetime("us", "UTC"), pl.Date])
@pytest.mark.parametrize("sign", [1, -1])
def test_dates_beyond_all_calendars_are_refused_with_a_count(dtype: pl.DataType, sign: int) -> None:
    most = 2**31 - 1 if dtype == pl.Date else 2**63 - 1
    cells = pl.Series("d", [0, sign * most, None, sign * most], dtype=pl.Int32 if dtype == pl.Date else pl.Int64)
    with pytest.raises(InputError, match=r"Column 'd' of the frame .* in 2 rows\."):
        from_frame(cells.cast(dtype).to_frame())
