"""A column of Data becomes a polars series again, with its original values and type."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from quadrille.codebook import Value
from quadrille.data import Column
from quadrille.frames.dtypes import FORMATS, type_of
from quadrille.frames.numeric import missing_positions


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
    values: NDArray[np.float64] = column.values
    numbers = pl.Series(column.variable.name, values, nan_to_null=True)
    if column.dtype == "String":
        numbers = numbers.cast(pl.String).str.strip_suffix(".0")
    else:
        numbers = numbers.cast(type_of(column.dtype))
    positions = missing_positions(values)
    for position, value in enumerate(column.variable.missing):
        at = pl.Series(positions == position)
        if at.any():
            code = str(value) if column.dtype == "String" else value
            numbers = numbers.set(at, code)  # pyright: ignore[reportArgumentType]  # the stubs leave text out
    return numbers
