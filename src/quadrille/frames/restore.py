"""A column of Data becomes a polars series again, with its original values and type."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from quadrille.codebook import Value
from quadrille.data import Column, missing_positions
from quadrille.frames.dtypes import FORMATS, type_of
from quadrille.frames.missing import text_of


def restore(column: Column) -> pl.Series:
    """Return the column as a series: one value per code, gathered; or numbers in their original type."""
    variable = column.variable
    if not variable.coded:
        return _numbers(column)
    values = [*variable.values, *([None] if column.nullable else [])]
    return _per_code(values, type_of(column.dtype)).gather(pl.Series(column.values)).alias(variable.name)


def _per_code(values: list[Value | None], dtype: pl.DataType) -> pl.Series:
    """Return the value of each code; null stands for a listed category that the type cannot hold."""
    form = FORMATS.get(dtype.base_type())
    if form is not None:
        return _moments(pl.Series(values, dtype=pl.String), dtype, form)
    if dtype.is_decimal() or isinstance(dtype, pl.Enum | pl.Categorical):
        return pl.Series(values, dtype=pl.String, strict=False).cast(dtype, strict=False)
    if dtype == pl.String:
        return pl.Series([None if value is None else text_of(value) for value in values], dtype=dtype)
    return pl.Series(values, dtype=dtype, strict=False)


def _moments(text: pl.Series, dtype: pl.DataType, form: str) -> pl.Series:
    if isinstance(dtype, pl.Date):
        return text.str.to_date(form, strict=False)
    if not isinstance(dtype, pl.Datetime):
        return text.str.to_time(form, strict=False)
    moments = text.str.to_datetime(form, time_unit=dtype.time_unit, strict=False)
    zone = dtype.time_zone
    return moments.dt.replace_time_zone("UTC").dt.convert_time_zone(zone) if zone else moments


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
