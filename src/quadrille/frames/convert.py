"""Any frame becomes a polars frame, or an error that names the column and shows no value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

import polars as pl

from quadrille.codebook import Variable
from quadrille.errors import InputError
from quadrille.frames.identifiers import identifies, tells_apart

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
    if table is None:
        raise InputError(_failure(frame))
    return _ordered_as_enum(table, frame) if _is_pandas(frame) else table


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


def _ordered_as_enum(table: pl.DataFrame, frame: object) -> pl.DataFrame:
    """Keep the order of pandas' ordered categories, which the conversion drops."""
    dtypes = list(cast("Iterable[object]", getattr(frame, "dtypes", ())))
    for name, dtype in zip(table.columns, dtypes, strict=True):
        if not getattr(dtype, "ordered", False):
            continue
        categories = list(cast("Iterable[object]", getattr(dtype, "categories", ())))
        if all(isinstance(value, str) for value in categories):
            table = table.with_columns(pl.col(name).cast(pl.Enum(cast("list[str]", categories))))
    return table


def ordered_scales(table: pl.DataFrame, frame: object) -> list[Variable]:
    """Return the columns that pandas calls ordered, as ordinal variables."""
    if not _is_pandas(frame):
        return []
    dtypes = list(cast("Iterable[object]", getattr(frame, "dtypes", ())))
    return [
        scale(series.name, series.dtype.categories.to_list(), table.height)
        for series, dtype in zip(table.get_columns(), dtypes, strict=True)
        if getattr(dtype, "ordered", False) and isinstance(series.dtype, pl.Enum)
    ]


def scale(name: str, categories: Sequence[str], rows: int) -> Variable:
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
