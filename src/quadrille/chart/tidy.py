"""The frames that charts are drawn from: checked, cleaned of undefined values, thinned, handed to Altair."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Literal

import altair as alt
import polars as pl

from quadrille.errors import InputError

Kind = Literal["number", "text", "flag"]

MOST_ROWS = 5_000
"""More points than this are too many to tell apart, and slow."""


def checked(frame: pl.DataFrame, owner: str, columns: Mapping[str, Kind]) -> pl.DataFrame:
    """Return the columns a chart needs, in their types; NaN and infinite numbers become null."""
    for name in columns:
        if name not in frame.columns:
            raise InputError(_missing(owner, name, frame.columns, columns))
    if frame.is_empty():
        raise InputError(f"There is nothing to draw: the frame for {owner} has no rows.")
    return frame.select(_typed(frame[name], kind, owner) for name, kind in columns.items())


def _missing(owner: str, name: str, found: list[str], columns: Mapping[str, Kind]) -> str:
    near = difflib.get_close_matches(name, found, n=1, cutoff=0.6)
    hint = f" Rename {near[0]!r}?" if near else ""
    return f"The frame for {owner} has no column {name!r}. It needs: {', '.join(columns)}.{hint}"


def _typed(column: pl.Series, kind: Kind, owner: str) -> pl.Series:
    if kind == "text":
        return column.cast(pl.String).fill_null("")
    if kind == "flag":
        if column.dtype.base_type() not in (pl.Boolean, pl.Null):
            raise InputError(f"Column {column.name!r} of the frame for {owner} must hold true and false.")
        return column.cast(pl.Boolean).fill_null(False)
    if not (column.dtype.is_numeric() or column.dtype == pl.Null):
        raise InputError(f"Column {column.name!r} of the frame for {owner} must hold numbers.")
    numbers = column.cast(pl.Float64)
    return numbers.set(~numbers.is_finite().fill_null(False), None)


def prepared(frame: pl.DataFrame, owner: str, columns: Mapping[str, Kind], *needed: str) -> tuple[pl.DataFrame, int]:
    """Return the columns a chart needs, without rows that lack a value in the `needed` ones, and how many those are."""
    return defined(checked(frame, owner, columns), owner, *needed)


def defined(frame: pl.DataFrame, owner: str, *columns: str) -> tuple[pl.DataFrame, int]:
    """Return the rows that have a value in all of these columns, and how many were left out."""
    kept = frame.drop_nulls(list(columns))
    if kept.is_empty():
        raise InputError(f"There is nothing to draw: no row of the frame for {owner} has {' and '.join(columns)}.")
    return kept, frame.height - kept.height


def thinned(frame: pl.DataFrame, *, keep: pl.Expr, most: int = MOST_ROWS) -> pl.DataFrame:
    """Return at most `most` rows, or all that `keep` asks for; the others are thinned evenly along all values.

    Which rows stay depends on the values alone, not on their order or on chance.
    """
    if frame.height <= most:
        return frame
    must, rest = frame.filter(keep), frame.filter(~keep).sort(frame.columns)
    room = min(max(most - must.height, 0), rest.height)
    steps = pl.int_range(room, eager=True)
    spread = (steps * (rest.height - 1)) // max(room - 1, 1)
    return pl.concat([rest[spread], must])


def inline(frame: pl.DataFrame) -> alt.InlineData:
    """Hand the rows to Altair as they are; its own limit of rows is ours to keep.

    Altair copies lists and checks values row by row each time a chart is combined with another: most of the time that
    a report takes. A tuple is not copied, and values that are set later are not checked again; the chart is the same.
    """
    data = alt.InlineData(values=[])
    data.values = tuple(frame.to_dicts())
    return data
