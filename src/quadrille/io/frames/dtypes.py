"""Names of column types, such that the type can be made again from its name."""

from __future__ import annotations

import json
from typing import cast

import polars as pl

from quadrille.errors import InputError

FORMATS: dict[object, str] = {
    pl.Date: "%Y-%m-%d",
    pl.Datetime: "%Y-%m-%dT%H:%M:%S%.f",
    pl.Time: "%H:%M:%S%.f",
}
"""How dates and times are written as categories: ISO 8601, in UTC when there is a time zone."""


_DAYS = 95_000_000
"""So many days before or after 1970 can be written as text: some 260,000 years."""
_PER_DAY = {"ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def no_far_moments(series: pl.Series, where: str) -> None:
    """Refuse dates so far away that they are damaged; polars would panic over them."""
    dtype = series.dtype
    if not isinstance(dtype, pl.Date | pl.Datetime):
        return
    per_day = 1 if isinstance(dtype, pl.Date) else _PER_DAY[dtype.time_unit]
    far = int((series.to_physical().cast(pl.Int64) // per_day).is_between(-_DAYS, _DAYS).not_().sum())
    if far:
        raise InputError(
            f"Column {series.name!r} of {where} holds dates of more than 260,000 years ago or ahead in {far:,} "
            f"row{'' if far == 1 else 's'}. Correct these rows, or drop the column."
        )


def is_text(series: pl.Series) -> bool:
    """Whether the values are text, however they are stored."""
    return isinstance(series.dtype, pl.String | pl.Categorical | pl.Enum)


def type_name(series: pl.Series, where: str) -> str:
    """Name the type of a column: its polars name, then its arguments as JSON where it has any."""
    dtype = series.dtype
    name = dtype.base_type().__name__
    if isinstance(dtype, pl.Datetime):
        return name + json.dumps([dtype.time_unit, dtype.time_zone])
    if isinstance(dtype, pl.Decimal):
        return name + json.dumps([dtype.precision, dtype.scale])
    if isinstance(dtype, pl.Enum):
        return name + json.dumps(dtype.categories.to_list(), ensure_ascii=False)
    if isinstance(dtype, pl.Categorical):
        pool = dtype.categories
        return name if pool.is_global() else name + json.dumps([pool.name(), pool.namespace(), str(pool.physical())])
    if dtype.is_numeric() or isinstance(dtype, pl.String | pl.Boolean | pl.Date | pl.Time | pl.Null):
        return name
    raise InputError(
        f"Column {series.name!r} of {where} has the type {name}, which is not supported. "
        "Turn it into text, numbers or several columns, or drop it."
    )


def type_of(name: str) -> pl.DataType:
    """Make the type that `type_name` named."""
    base, bracket, rest = name.partition("[")
    arguments = cast("list[str]", json.loads(bracket + rest)) if bracket else []
    if base == "Enum":
        return pl.Enum(arguments)
    if base == "Categorical" and arguments:
        pool, namespace, physical = arguments
        return pl.Categorical(pl.Categories(pool, namespace, getattr(pl, physical)))
    return getattr(pl, base)(*arguments)
