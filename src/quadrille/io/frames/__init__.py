"""Frames become data and data become frames again, as they came; and what plain tables do not hold of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from quadrille.codebook import Codebook, Value, Variable
from quadrille.data import Column, Data, missing_positions
from quadrille.errors import InputError
from quadrille.io.frames.columns import build
from quadrille.io.frames.identifiers import identifies, tells_apart
from quadrille.io.frames.values import FORMATS, counted_in, few_whole, moments_from_text, text_of, type_of

__all__ = ["Frame", "build", "from_frame", "to_frame"]


class ArrowStream(Protocol):
    """Anything that hands out its columns through the Arrow C stream interface, as pandas and pyarrow do."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Frame = pl.DataFrame | pl.LazyFrame | ArrowStream


def from_frame(
    frame: Frame,
    *,
    codebook: Codebook | str | Path | None = None,
    weight: str | None = None,
    geography: Sequence[str] = (),
    sampling: float | None = None,
) -> Data:
    """Turn a polars, pandas or Arrow frame into Data; what the codebook leaves open is guessed.

    Text, booleans and dates are nominal in sorted order, an Enum in its own order; categories that pandas calls
    ordered are ordinal; integers with at most 50 distinct values are ordinal, also those that pandas keeps as floats
    because of empty fields; other numbers are numeric, and NaN is an empty field like null. Identifiers get the role id
    and are not released: columns that are called like a name, an address or a number of a person or a record and do not
    have few values, text that is different in nearly every one of more than 50 rows, whole numbers beyond 2^53. A
    column that the codebook describes is what the codebook says; where it says no kind, the kind is guessed. A pandas
    index is not a column. `geography` names nested levels of geography, the coarsest first. `sampling` is the share of
    the population that is in the file; a codebook can say it, too.

    >>> import polars as pl
    >>> import quadrille as qd
    >>> data = qd.from_frame(pl.DataFrame({"sex": ["m", "f"], "age": [31, 47]}))
    >>> data["sex"].variable.categories, data["age"].variable.kind
    (('f', 'm'), 'ordinal')
    """
    book = codebook if isinstance(codebook, Codebook | None) else Codebook.read(codebook)
    said = book.sampling if book is not None and sampling is None else sampling
    table = to_polars(frame)
    if _is_pandas(frame):
        table = table.with_columns(map(few_whole, table.get_columns()))
    book = with_scales(book, _pandas_orders(table, frame), table.height)
    if geography:
        book = (book or Codebook()).with_geography(geography)
    data = build(table, codebook=book, weight=weight, where="the frame")
    data.remarks += nan_remarks(with_nan(table, frame))
    return data if said is None else data.with_sampling(said)


def to_frame(data: Data) -> pl.DataFrame:
    """Return the records as a polars frame with their original values and types.

    NaN and null of a float column both mean "missing" and come back as null. Text that a codebook declares to
    be numbers comes back as numbers.
    """
    return pl.DataFrame([restore(data[name]) for name in data.columns])


NOT_A_NUMBER = "not-a-number becomes an empty value"
"""What is said of a column of floats with NaN, which is a missing value here."""


def to_polars(frame: object) -> pl.DataFrame:
    """Return a polars, pandas or Arrow frame as a polars DataFrame."""
    if isinstance(frame, pl.DataFrame):
        return frame
    if isinstance(frame, pl.LazyFrame):
        return _collect(frame)
    arrow = hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "__arrow_c_array__")
    if isinstance(frame, pl.Series) or not arrow:
        raise InputError(
            f"Expected a polars, pandas or Arrow frame, got an object of type {type(frame).__name__!r}. "
            "Convert it into one of these first."
        )
    table = _converted(frame)
    if table is None and _is_pandas(frame):
        table = _column_by_column(frame)
    if table is None:
        raise InputError(_failure(frame))
    # The conversion drops the order of pandas' ordered categories.
    return table.cast({name: pl.Enum(found) for name, found in _pandas_orders(table, frame).items()})


def _collect(frame: pl.LazyFrame) -> pl.DataFrame:
    try:
        return frame.collect()
    except Exception:
        raise InputError("The query of the LazyFrame fails. Call its collect() to see why.") from None


def _converted(frame: object) -> pl.DataFrame | None:
    """Convert, or return None: the texts of conversion errors hold data values and must not get out."""
    try:
        return pl.DataFrame(frame)  # pyright: ignore[reportArgumentType]  # tried, not known
    except Exception:
        return None


def _column_by_column(frame: Any) -> pl.DataFrame | None:
    """Convert a pandas frame without pyarrow, which polars asks for as soon as a column has text or categories."""
    try:
        return pl.DataFrame([_by_value(frame.iloc[:, place], str(name)) for place, name in enumerate(frame.columns)])
    except Exception:
        return None


def _by_value(column: Any, name: str) -> pl.Series:
    """Convert a pandas column by its values; a missing one, however pandas writes it, is null."""
    plain = _converted(column.to_frame(name="x"))
    if plain is not None:
        return plain.to_series().alias(name)
    values = [value if present else None for value, present in zip(column.tolist(), column.notna(), strict=True)]
    if hasattr(column.dtype, "categories"):
        texts = all(isinstance(value, str) for value in column.dtype.categories)
        return pl.Series(name, values, dtype=pl.String).cast(pl.Categorical) if texts else pl.Series(name, values)
    return pl.Series(name, values, dtype=_PANDAS.get(str(column.dtype)))


_NUMBERS = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64")
_PANDAS: dict[str, Any] = {"str": pl.String, "string": pl.String, "boolean": pl.Boolean} | {
    name: getattr(pl, name) for name in _NUMBERS
}
"""The types of pandas that hold missing values as such, and text."""


def _is_pandas(frame: object) -> bool:
    return hasattr(frame, "loc") and hasattr(frame, "dtypes")


def _failure(frame: object) -> str:
    kind = type(frame).__name__
    names = _names(frame)
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        return f"The column name {twice[0]!r} occurs more than once. Give each column its own name."
    if _is_pandas(frame):
        for position, name in enumerate(names):
            if _converted(frame.iloc[:, [position]]) is None:  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]
                return f"Column {name!r} of the frame mixes types or holds objects. Make it text or numbers."
    return f"The {kind} is not a table of named columns. Convert it to a polars, pandas or Arrow table."


def _names(frame: object) -> list[str]:
    if _is_pandas(frame):
        return [str(name) for name in cast("Iterable[object]", getattr(frame, "columns", ()))]
    schema = getattr(frame, "schema", None)
    return [str(name) for name in cast("Iterable[object]", getattr(schema, "names", ()))]


def _pandas_orders(table: pl.DataFrame, frame: object) -> dict[str, list[str]]:
    """Return the categories, in their order, of the text columns that pandas calls ordered."""
    dtypes: list[Any] = list(getattr(frame, "dtypes", ())) if _is_pandas(frame) else [None] * table.width
    ordered = {
        name: list(dtype.categories)
        for name, dtype in zip(table.columns, dtypes, strict=True)
        if getattr(dtype, "ordered", False)
    }
    return {name: found for name, found in ordered.items() if all(isinstance(value, str) for value in found)}


def with_scales(
    codebook: Codebook | None, orders: Mapping[str, Sequence[str]], rows: int, weight: str | None = None
) -> Codebook | None:
    """Add the ordered categories that came with the data to the codebook, which comes first."""
    known = [weight, *(() if codebook is None else codebook.names)]
    scales = [_scale(name, categories, rows) for name, categories in orders.items() if name not in known]
    return Codebook((*(codebook or ()), *scales)) if scales else codebook


def _scale(name: str, categories: Sequence[str], rows: int) -> Variable:
    """Return a column of ordered categories as an ordinal variable; keys of records are one by mistake only."""
    key = identifies(name, len(categories), rows) or tells_apart(len(categories), rows)
    return Variable(name, "ordinal", tuple(categories), role="id" if key else None)


def nan_remarks(names: Iterable[str]) -> tuple[str, ...]:
    """Say of these columns that NaN becomes empty."""
    return tuple(f"{name}: {NOT_A_NUMBER}." for name in names)


def has_nan(series: pl.Series) -> bool:
    """Whether a column holds NaN, which is not null in polars and Arrow."""
    return series.dtype.is_float() and bool(series.is_nan().any())


def with_nan(table: pl.DataFrame, frame: object) -> list[str]:
    """Name the columns with NaN; in pandas it is the usual sign of an empty field, so nothing is lost there."""
    return [] if _is_pandas(frame) else [series.name for series in table.get_columns() if has_nan(series)]


def restore(column: Column) -> pl.Series:
    """Return the column as a series: one value per code, gathered; or numbers in their original type."""
    variable = column.variable
    if not variable.coded:
        return _numbers(column)
    values = [*variable.values, *([None] if column.nullable else [])]
    return _per_code(values, type_of(column.dtype)).gather(pl.Series(column.values)).alias(variable.name)


def restore_as_categories(column: Column) -> pl.Series:
    """Return the column as a series; text as categories, which are made and written in a fraction of the time."""
    values = [*column.variable.values, *([None] if column.nullable else [])] if column.variable.coded else []
    if column.dtype != "String" or not 0 < len(values) <= _MOST_CATEGORIES:
        return restore(column)
    texts = _per_code(values, pl.String())
    listed = texts.drop_nulls()
    if listed.n_unique() < len(listed):
        return restore(column)
    return texts.cast(pl.Enum(listed)).gather(pl.Series(column.values)).alias(column.variable.name)


_MOST_CATEGORIES = 1 << 12


def _per_code(values: list[Value | None], dtype: pl.DataType) -> pl.Series:
    """Return the value of each code; null stands for a listed category that the type cannot hold."""
    if dtype.base_type() in FORMATS:
        return moments_from_text(pl.Series(values, dtype=pl.String), dtype)
    if dtype.is_decimal() or isinstance(dtype, pl.Enum | pl.Categorical):
        return pl.Series(values, dtype=pl.String, strict=False).cast(dtype, strict=False)
    if dtype == pl.String:
        return pl.Series([None if value is None else text_of(value) for value in values], dtype=dtype)
    return pl.Series(values, dtype=dtype, strict=False)


def _numbers(column: Column) -> pl.Series:
    numbers, positions = _with_codes(column)
    if column.dtype != "String":
        return numbers.cast(type_of(column.dtype))
    text = numbers.cast(pl.String).str.strip_suffix(".0")
    for position, value in enumerate(column.variable.missing):
        if isinstance(value, str) and (at := pl.Series(positions == position)).any():
            text = text.set(at, value)  # pyright: ignore[reportArgumentType]  # the stubs leave text out
    return text


def _with_codes(column: Column) -> tuple[pl.Series, NDArray[np.int64]]:
    """Return the numbers with their missing codes back in place, null for texts; and the positions of the codes."""
    values: NDArray[np.float64] = column.values
    positions = missing_positions(values)
    missing = column.variable.missing
    if missing:
        codes = np.array([np.nan if isinstance(code, str) else float(code) for code in missing])
        values = np.where(positions >= 0, codes[np.maximum(positions, 0)], values)
    return pl.Series(column.variable.name, values, nan_to_null=True), positions


def split(column: Column) -> tuple[pl.Series, pl.Series | None]:
    """Return a column without missing codes that are text among numbers, and these texts, null elsewhere."""
    variable = column.variable
    texts = [code if isinstance(code, str) else None for code in variable.missing]
    if not any(texts) or any(isinstance(value, str) for value in variable.categories):
        return restore(column), None
    if not variable.coded:
        numbers, positions = _with_codes(column)
        places = pl.Series(np.where(positions < 0, len(texts), positions))
        return numbers, pl.Series([*texts, None], dtype=pl.String).gather(places)
    numbers = [None if isinstance(value, str) else value for value in variable.values]
    codes = pl.Series(column.values)
    per_code = pl.Series(variable.name, [*numbers, None], strict=False)
    per_tag = pl.Series([*[None] * len(variable.categories), *texts, None], dtype=pl.String)
    return per_code.gather(codes), per_tag.gather(codes)


_LOOK_ALIKE = "the missing code that is an empty text and a missing value look alike"
_EMPTY = 'an empty text is written as "" and a missing value as nothing; only the codebook tells the two apart'
_INFINITE = "infinite numbers are written as inf, which is a number with the codebook only"
_ZONE = "the time zone is not kept; the moments are in UTC"
_MOMENTS = "dates and times are written as text (ISO 8601) and read back as text"
_ORDER = "the order of the categories is not in the file; write the codebook too"
_KINDS_OF_MOMENTS = ("Date", "Datetime", "Time")
_NARROW = "numbers of fewer than 64 bits are read back with 64 bits"
_DECIMALS = "decimal numbers are read back as binary ones or as text"
_WORDS = "labels and missing codes are not in the file; write the codebook too"
_FORMATS = (
    "Display formats, storage types and levels of measurement of the original are not in the file; "
    "write the codebook too."
)

NO_ORDER = "the order of the categories cannot be read from the file; list them in the codebook"
NEEDS_ARROW = "the order of the categories is read with pyarrow only; install it, or list them in the codebook"
_OF_COLUMNS = (NOT_A_NUMBER, NO_ORDER, NEEDS_ARROW)
"""What reading says about single columns."""


@dataclass
class NotHeld:
    """What a file does not hold, by reason, with the columns that it concerns."""

    found: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    general: list[str] = field(default_factory=list[str])

    def add(self, column: str, reason: str) -> None:
        """Note what is not held of one column."""
        names = self.found.setdefault(reason, [])
        if column not in names:
            names.append(column)

    def whole(self, line: str) -> None:
        """Note something about the whole file."""
        self.general.append(line)

    def lines(self) -> tuple[str, ...]:
        """Return one line per reason."""
        return (*self.general, *(f"{', '.join(names)}: {reason}." for reason, names in self.found.items()))


def remarked(data: Data) -> tuple[str, ...]:
    """Say what was left behind at reading: about the file as a whole, and about the columns that are still there."""
    not_held = NotHeld()
    for line in data.remarks:
        reason = next((reason for reason in _OF_COLUMNS if line.endswith(f": {reason}.")), None)
        name = line.removesuffix(f": {reason}.")
        if reason is None:
            not_held.whole(line)
        elif name in data.columns:
            not_held.add(name, reason)
    return not_held.lines()


def lines_of(reasons: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return one line per reason from pairs of a column and a reason."""
    not_held = NotHeld()
    for name, reason in reasons:
        not_held.add(name, reason)
    return not_held.lines()


def not_in_text(data: Data) -> tuple[str, ...]:
    """Say what delimited text does not keep, also with the codebook."""
    return lines_of((name, reason) for name in data.columns for reason in _not_kept(data[name]))


def _not_kept(column: Column) -> Iterator[str]:
    """Yield what delimited text does not keep of one column."""
    variable, kind = column.variable, column.dtype.partition("[")[0]
    numbers = [value for value in variable.values if isinstance(value, float)] if variable.coded else column.values
    if np.isinf(numbers).any():
        yield _INFINITE
    if "" in variable.missing and column.nullable:
        yield _LOOK_ALIKE
    if "" in variable.categories and np.any(column.values == variable.categories.index("")):
        yield _EMPTY
    if kind == "Datetime" and "null" not in column.dtype:
        yield _ZONE
    if kind in _KINDS_OF_MOMENTS and variable.stored is None:
        yield _MOMENTS
    if kind in ("Float16", "Float32"):
        yield _NARROW
    if kind == "Decimal":
        yield _DECIMALS


def moments_left(data: Data) -> tuple[str, ...]:
    """Name the dates and times of a statistics program that delimited text leaves to the codebook."""
    reason = f"{_MOMENTS}; write the codebook too"
    stored = (name for name in data.columns if data[name].variable.stored is not None)
    return lines_of((name, reason) for name in stored if data[name].dtype.partition("[")[0] in _KINDS_OF_MOMENTS)


def orders_left(data: Data) -> tuple[str, ...]:
    """Name the columns whose ordered categories came with the data, which only Parquet and the codebook keep."""
    ordinal = (name for name in data.columns if data[name].variable.kind == "ordinal")
    return lines_of((name, _ORDER) for name in ordinal if data[name].dtype.startswith("Enum"))


def numbers_of_moments(data: Data) -> tuple[str, ...]:
    """Name the columns that a statistics program shows as dates or times, but that are numbers in a plain table."""
    units = [(v, counted_in(v.stored.program, v.stored.format)) for v in data.codebook if v.stored]
    return lines_of(
        (variable.name, f"dates or times are written as numbers: {unit}")
        for variable, unit in units
        if unit and not any(isinstance(value, str) for value in variable.categories) and _holds_numbers(data, variable)
    )


def _holds_numbers(data: Data, variable: Variable) -> bool:
    return not variable.coded or not data[variable.name].dtype.startswith(("Date", "Time", "String"))


def words_left(data: Data) -> tuple[str, ...]:
    """Say which words and formats of a statistics program a plain table leaves to the codebook."""
    stored = [variable for variable in data.codebook if variable.stored]
    described = (v for v in stored if v.label or v.value_labels or v.missing or v.missing_ranges)
    formatted = any(v.stored.format or v.stored.type or v.stored.measure for v in stored if v.stored)
    return (*lines_of((v.name, _WORDS) for v in described), *([_FORMATS] if formatted else []))
