"""Dates and times that have missing codes or labels: their texts stand in the codebook, their numbers in the file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

import polars as pl

from quadrille.codebook import Value, Variable
from quadrille.io.stat_dates import Moment, from_moments, from_texts, moment_of, to_moments, to_texts
from quadrille.io.stat_parse import Raw

_TAG = r"^\.[A-Za-z_]$"


def moments_of(raw: Raw) -> tuple[pl.Series, Raw] | None:
    """Read numbers as dates or times when their format says so and every value, code and labelled value is one.

    Returned are the moments and the column with texts for numbers, in the values, missing codes and labels alike.
    A range of missing codes becomes the codes that are found in it.
    """
    program = raw.stored.program
    what = moment_of(program, raw.stored.format)
    moments = to_moments(raw.series, what, program) if what else None
    if what is None or moments is None:
        return None
    single = [low for low, high in raw.ranges if low == high]
    inside = pl.Series(raw.series.drop_nulls().unique().sort())
    found: list[Value] = [
        value
        for low, high in raw.ranges
        if low != high
        for value in inside.filter(inside.is_between(low, high)).to_list()
    ]
    numbers = [*single, *found, *(value for value in raw.value_labels if not isinstance(value, str))]
    texts = _texts(numbers, what, program)
    if texts is None:
        return None
    tags: list[str] = [] if raw.tags is None else raw.tags.drop_nulls().unique().to_list()
    tags = sorted({*tags, *(value for value in raw.value_labels if isinstance(value, str))})
    codes = [*dict.fromkeys(texts[float(value)] for value in (*single, *found)), *tags]
    return moments, replace(
        raw,
        series=_with_tags(moments, raw) if codes or raw.value_labels else moments,
        value_labels={v if isinstance(v, str) else texts[float(v)]: label for v, label in raw.value_labels.items()},
        ranges=tuple((code, code) for code in codes),
    )


def _texts(numbers: Iterable[Value], what: Moment, program: str) -> dict[float, str] | None:
    """Return the text of each number, or None when one of them is no date or time."""
    floats = [float(number) for number in numbers]
    moments = to_moments(pl.Series(floats, dtype=pl.Float64), what, program)
    return None if moments is None else dict(zip(floats, to_texts(moments).to_list(), strict=True))


def _with_tags(moments: pl.Series, raw: Raw) -> pl.Series:
    text = to_texts(moments).alias(raw.name)
    return text if raw.tags is None else text.zip_with(raw.tags.is_null(), raw.tags)


def moments_in(text: pl.Series, variable: Variable) -> tuple[pl.Series, pl.Series | None] | None:
    """Read a text column that was dates or times in a statistics program as such again, apart from .a to .z.

    None when the column was something else, or when some text is neither.
    """
    what = was_moment(variable)
    if what is None:
        return None
    tagged = text.str.contains(_TAG).fill_null(value=False)
    moments = from_texts(text.set(tagged, None), what)
    if moments.null_count() > text.null_count() + int(tagged.sum()):
        return None
    return moments, text.set(~tagged, None) if tagged.any() else None


def was_moment(variable: Variable) -> Moment | None:
    """Tell whether a column was dates or times in the statistics program it comes from."""
    stored = variable.stored
    return moment_of(stored.program, stored.format) if stored and stored.type != "string" else None


def is_tag(code: str) -> bool:
    """Whether a missing code is one of Stata's or SAS's: .a to .z, .A to .Z, or ._"""
    return re.fullmatch(_TAG, code) is not None


def number_of(value: Value, what: Moment, program: str) -> Value | None:
    """Return the number that stands for the text of a date or time in a program; tags stay, None for other texts."""
    if not isinstance(value, str):
        return value
    if is_tag(value):
        return value
    number: float | None = from_moments(from_texts(pl.Series([value]), what), program).item()
    return None if number is None else int(number) if number.is_integer() else number
