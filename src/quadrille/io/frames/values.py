"""The values of a column: names of types, text that is numbers, missing codes, dates of statistics programs."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date
from typing import Literal, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from quadrille.codebook import Value, Variable
from quadrille.data import FIRST_MISSING, Column
from quadrille.errors import InputError
from quadrille.io.frames.identifiers import MOST_ORDINAL

FORMATS: dict[object, str] = {
    pl.Date: "%Y-%m-%d",
    pl.Datetime: "%Y-%m-%dT%H:%M:%S%.f",
    pl.Time: "%H:%M:%S%.f",
}
"""How dates and times are written as categories: ISO 8601, in UTC when there is a time zone."""


def moments_as_text(series: pl.Series) -> pl.Series:
    """Write dates and times as the codebook lists them; values of another type stay as they are."""
    form = FORMATS.get(series.dtype.base_type())
    if form is None:
        return series
    if isinstance(series.dtype, pl.Datetime) and series.dtype.time_zone:
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return series.dt.strftime(form)


def moments_from_text(text: pl.Series, dtype: pl.DataType) -> pl.Series:
    """Read dates and times as the codebook lists them; null where a text is none."""
    form = FORMATS[dtype.base_type()]
    if isinstance(dtype, pl.Date):
        return text.str.to_date(form, strict=False)
    if not isinstance(dtype, pl.Datetime):
        return text.str.to_time(form, strict=False)
    moments, zone = text.str.to_datetime(form, time_unit=dtype.time_unit, strict=False), dtype.time_zone
    return moments.dt.replace_time_zone("UTC").dt.convert_time_zone(zone) if zone else moments


_DAYS = 95_000_000
"""Days before or after 1970 that can be written as text: some 260,000 years."""
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


Marks = list[tuple[int, pl.Series]]
"""Positions of missing codes in `Variable.missing`, each with the rows that hold it."""


def with_found_codes(variable: Variable, numbers: pl.Series) -> Variable:
    """Add the numbers found inside the missing ranges to the missing codes, in ascending order."""
    if not variable.missing_ranges or not numbers.dtype.is_numeric():
        return variable
    inside = pl.Series([False]).new_from_index(0, len(numbers))
    for low, high in variable.missing_ranges:
        inside |= ((numbers >= low) & (numbers <= high)).fill_null(value=False)
    known = {code for code in variable.missing if not isinstance(code, str)}
    found: list[Value] = [code for code in numbers.filter(inside).unique().sort().to_list() if code not in known]
    if not found:
        return variable
    labels = (*(variable.missing_labels or [""] * len(variable.missing)), *[""] * len(found))
    return replace(variable, missing=(*variable.missing, *found), missing_labels=labels if any(labels) else ())


def without_marks(text: pl.Series, variable: Variable) -> tuple[pl.Series, Marks]:
    """Take missing codes that are text out of a column of numbers; return the rest and where each code was."""
    marks = [
        (position, (text == code).fill_null(value=False))
        for position, code in enumerate(variable.missing)
        if isinstance(code, str)
    ]
    for _, mark in marks:
        text = text.set(mark, None)
    return text, [(position, mark) for position, mark in marks if mark.any()]


def mark_numbers(values: NDArray[np.float64], missing: tuple[Value, ...], marks: Marks) -> None:
    """Replace missing codes by NaNs that carry their position, in place."""
    codes = sorted((float(code), position) for position, code in enumerate(missing) if not isinstance(code, str))
    if codes:
        numbers, positions = np.array([code for code, _ in codes]), np.array([position for _, position in codes])
        nearest = np.minimum(np.searchsorted(numbers, values), len(numbers) - 1)
        at = np.flatnonzero(numbers[nearest] == values)
        values[at] = (positions[nearest[at]] + FIRST_MISSING).astype(np.int64).view(np.float64)
    for position, mark in marks:
        values[mark.to_numpy()] = np.int64(FIRST_MISSING + position).view(np.float64)


def text_of(value: Value) -> str:
    """Write a value as text; a whole float without its decimals, as the text of a file has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


EXACT = 2**53
"""Whole numbers up to this size are kept exactly by float64."""

NUMBER = r"^-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
"""A plainly written number."""
_SAMPLE = 1000


def parse_numbers(text: pl.Series) -> pl.Series:
    """Return text as Int64 or Float64 when every value is a plainly written number, else unchanged.

    A leading zero or plus means text ("007" is a code), and so does a whole number too large for float64.
    """
    present = text.drop_nulls()
    sample = present.gather_every(max(1, len(present) // _SAMPLE))
    if present.is_empty() or not sample.str.contains(NUMBER).all():
        return text
    if not sample.str.contains("[.eE]").any():
        integers = canonical_integers(text)
        if integers.null_count() == text.null_count():
            return integers
    if not present.str.contains(NUMBER).all() or _count_rounded(present):
        return text
    return text.cast(pl.Float64)


def few_whole(numbers: pl.Series) -> pl.Series:
    """Return floats as integers where they are integers with gaps: all whole, few different, some fields empty.

    Python keeps a column of integers with empty fields as floats, and so writes them to files.
    """
    if not numbers.dtype.is_float() or (numbers.is_not_nan().all() and not numbers.null_count()):
        return numbers
    present = numbers.fill_nan(None).drop_nulls()
    if present.is_empty() or present.head(_SAMPLE).n_unique() > MOST_ORDINAL:
        return numbers
    whole = bool(((present == present.floor()) & (present.abs() <= EXACT)).all())
    return numbers.fill_nan(None).cast(pl.Int64) if whole and present.n_unique() <= MOST_ORDINAL else numbers


def canonical_integers(text: pl.Series) -> pl.Series:
    """Read text as Int64; null where it is not the usual way to write a whole number."""
    integers = text.cast(pl.Int64, strict=False)
    same = integers.cast(pl.String) == text
    return integers if same.all() else integers.set(~same, None)


def finite_floats(text: pl.Series) -> pl.Series:
    """Read text as float64; null where it is not a finite number."""
    floats = text.cast(pl.Float64, strict=False)
    finite = floats.is_finite()
    return floats if finite.all() else floats.set(~finite, None)


def too_large(integers: pl.Series) -> bool:
    """Whether some of these whole numbers are too large for float64."""
    low, high = integers.min(), integers.max()
    return isinstance(low, int) and isinstance(high, int) and (low < -EXACT or high > EXACT)


def numeric_column(series: pl.Series, variable: Variable, dtype: str, where: str) -> Column:
    """Return a column of float64; missing code i is a NaN that carries i + 1, so that it can be restored."""
    place = f"Column {series.name!r} of {where}"
    marks: Marks = []
    if is_text(series):
        rest, marks = without_marks(series.cast(pl.String), variable)
        series = _declared_numbers(rest, place)
        dtype = "String" if marks else type_name(series, where)
    elif not series.dtype.is_numeric():
        raise InputError(not_numbers(place, series))
    elif series.dtype.is_integer() and too_large(series):
        count = sum(abs(int(value)) > EXACT for value in series.drop_nulls().to_list())
        raise InputError(_not_exact(place, count))
    variable = with_found_codes(variable, series)
    values: NDArray[np.float64] = series.cast(pl.Float64).to_numpy(writable=True)
    values[np.isnan(values)] = np.nan
    mark_numbers(values, variable.missing, marks)
    return Column(variable, values, dtype)


def _declared_numbers(text: pl.Series, place: str) -> pl.Series:
    """Read text as numbers because the codebook says so: leading zeros are allowed, other text is refused."""
    numbers = parse_numbers(text)
    if numbers.dtype.is_integer() and too_large(numbers):
        raise InputError(_not_exact(place, _count_rounded(text)))
    if numbers.dtype.is_numeric():
        return numbers
    floats = finite_floats(text)
    if floats.null_count() > text.null_count():
        raise InputError(not_numbers(place, text))
    rounded = _count_rounded(text)
    if rounded:
        raise InputError(_not_exact(place, rounded))
    return floats


def _count_rounded(text: pl.Series) -> int:
    """Count the texts that float64 cannot hold: whole numbers beyond 2^53, and anything beyond its range."""
    floats = text.cast(pl.Float64, strict=False)
    large = text.filter(floats.is_finite() & (floats.abs() >= EXACT))
    # The float of 2^53 + 1 is 2^53 already, so the size is taken from the digits.
    whole = large.filter(~large.str.contains("[.eE]")).cast(pl.Int128, strict=False)
    return whole.null_count() + int((whole.abs() > EXACT).sum()) + int(floats.is_infinite().sum())


def _not_exact(place: str, count: int) -> str:
    return (
        f"{place} holds numbers too large to be kept exactly in {count:,} rows. "
        "Declare it nominal with the role id in the codebook."
    )


def not_numbers(place: str, series: pl.Series) -> str:
    """Say that a column is not numeric, and in how many rows."""
    if series.dtype != pl.String:
        kind = series.dtype.base_type().__name__
        return f"{place} has the type {kind}, which is not numeric. Choose another column or kind."
    bad = finite_floats(series).null_count() - series.null_count()
    return f"{place} is text; {bad:,} rows do not hold a number. Correct these rows or declare missing codes."


Moment = Literal["date", "datetime", "time"]

# SPSS counts seconds since 14 October 1582; Stata days or milliseconds, SAS days or seconds since 1 January 1960.
_EPOCH = {"spss": date(1582, 10, 14), "stata": date(1960, 1, 1), "sas": date(1960, 1, 1)}
_UNIX_DAY = date(1970, 1, 1)
_FIRST, _LAST = date(1, 1, 1), date(9999, 12, 31)
_DAY = 86_400
_SPSS = {
    **dict.fromkeys(("DATE", "ADATE", "EDATE", "JDATE", "SDATE", "QYR", "MOYR", "WKYR"), "date"),
    **dict.fromkeys(("DATETIME", "YMDHMS"), "datetime"),
    "TIME": "time",
}
_SAS_DATES = (
    "DATE DDMMYY MMDDYY YYMMDD WEEKDATE WEEKDATX WORDDATE WORDDATX JULIAN MONYY E8601DA B8601DA IS8601DA NLDATE"
)
_SAS = {
    **dict.fromkeys(_SAS_DATES.split(), "date"),
    **dict.fromkeys(["DATETIME", "E8601DT", "B8601DT", "IS8601DT", "DATEAMPM", "MDYAMPM", "NLDATM"], "datetime"),
    **dict.fromkeys(["TIME", "HHMM", "TOD", "TIMEAMPM", "E8601TM", "B8601TM", "IS8601TM"], "time"),
}
DEFAULT = {
    "spss": {"date": "SDATE10", "datetime": "DATETIME23.3", "time": "TIME11.2"},
    "stata": {"date": "%td", "datetime": "%tc", "time": "%tcHH:MM:SS"},
    "sas": {"date": "DATE9", "datetime": "DATETIME20", "time": "TIME8"},
}
"""The format that a date, a moment or a time of day gets where the file gives none."""


def moment_of(program: str, format: str) -> Moment | None:
    """Tell from its format what a column of numbers stands for: a date, a moment, a time of day, or none of these."""
    if program == "stata":
        bare = format.lstrip("%-")
        found = "time" if bare.startswith("tcHH:MM") else "datetime" if bare.startswith("tc") else None
        found = "date" if bare.startswith(("td", "d")) else found
    else:
        bare = re.sub(r"[0-9]*\.?[0-9]*$", "", format.upper())
        found = (_SPSS if program == "spss" else _SAS).get(bare)
    return found  # pyright: ignore[reportReturnType]  # the tables hold these words only


def is_coarse(format: str) -> bool:
    """Whether a format shows months, quarters or weeks of what are full dates."""
    return format.upper().startswith(("QYR", "MOYR", "WKYR", "MONYY"))


_STATA_UNITS = {
    "tc": "milliseconds since 1 January 1960",
    "tC": "milliseconds since 1 January 1960, leap seconds counted",
    "td": "days since 1 January 1960",
    "tw": "weeks since the start of 1960",
    "tm": "months since January 1960",
    "tq": "quarters since the start of 1960",
    "th": "half-years since the start of 1960",
    "d": "days since 1 January 1960",
}


def counted_in(program: str, format: str) -> str:
    """Say what the numbers count in a column that its program shows as dates or times; nothing for other columns."""
    if program == "stata":
        bare = format.lstrip("%-")
        return next((unit for start, unit in _STATA_UNITS.items() if bare.startswith(start)), "")
    what = moment_of(program, format)
    if what == "time" or format.upper().startswith("DTIME"):
        return "seconds"
    if what is None:
        return ""
    if program == "spss":
        return "seconds since 14 October 1582"
    return f"{'days' if what == 'date' else 'seconds'} since 1 January 1960"


def to_moments(numbers: pl.Series, what: Moment, program: str) -> pl.Series | None:
    """Return numbers as dates, moments or times of day; None when some of them are none exactly."""
    floats = numbers.cast(pl.Float64)
    if floats.is_infinite().any():
        return None
    days = (_EPOCH[program] - _UNIX_DAY).days
    if what == "date":
        moments = floats / (_DAY if program == "spss" else 1) + days
        if not moments.drop_nulls().is_between((_FIRST - _UNIX_DAY).days, (_LAST - _UNIX_DAY).days).all():
            return None
        made = moments.round().cast(pl.Int32).cast(pl.Date)
    elif what == "datetime":
        if not floats.drop_nulls().is_between(-1e15, 1e15).all():
            return None
        made = (_to_micros(floats, program) + days * _DAY * 1_000_000).cast(pl.Datetime("us"))
        if not made.drop_nulls().dt.year().is_between(1, 9999).all():
            return None
    else:
        nanos = _to_micros(floats, program) * 1000 if floats.drop_nulls().is_between(-1e9, 1e9).all() else None
        if nanos is None or not nanos.drop_nulls().is_between(0, _DAY * 10**9 - 1).all():
            return None
        made = nanos.cast(pl.Time)
    return made if from_moments(made, program).equals(floats, check_names=False) else None


def from_moments(moments: pl.Series, program: str) -> pl.Series:
    """Return dates, moments or times of day as the numbers that a program stores."""
    days = (_EPOCH[program] - _UNIX_DAY).days
    if moments.dtype == pl.Date:
        return (moments.cast(pl.Int32).cast(pl.Float64) - days) * (_DAY if program == "spss" else 1)
    if moments.dtype == pl.Time:
        return _from_micros(moments.cast(pl.Int64) // 1000, program)
    return _from_micros(moments.dt.cast_time_unit("us").cast(pl.Int64) - days * _DAY * 1_000_000, program)


_TYPES: dict[Moment, pl.DataType] = {"date": pl.Date(), "datetime": pl.Datetime("us"), "time": pl.Time()}


def from_texts(text: pl.Series, what: Moment) -> pl.Series:
    """Read dates, moments or times of day as a codebook lists them; null where a text is none."""
    return moments_from_text(text, _TYPES[what])


def kind_of_moment(dtype: pl.DataType) -> Moment | None:
    """Tell what a polars type stands for."""
    return "date" if dtype == pl.Date else "time" if dtype == pl.Time else "datetime" if dtype == pl.Datetime else None


def _to_micros(numbers: pl.Series, program: str) -> pl.Series:
    """Return stored numbers as microseconds; a number that a whole millisecond is stored as stands for it."""
    unit = _micros(program)
    whole = numbers.floor()
    part = numbers - whole
    millis = (part * (unit // 1000)).round()
    plain = whole + millis / (unit // 1000) == numbers
    micros = (part * unit).round()
    rest = pl.select(pl.when(plain).then(millis * 1000).otherwise(micros)).to_series()
    return whole.cast(pl.Int64) * unit + rest.cast(pl.Int64)


def _from_micros(micros: pl.Series, program: str) -> pl.Series:
    """Return microseconds as stored numbers, the whole ones exactly."""
    unit = _micros(program)
    whole = micros // unit
    return whole.cast(pl.Float64) + (micros - whole * unit).cast(pl.Float64) / unit


def _micros(program: str) -> int:
    """Microseconds in the unit in which a program stores moments."""
    return 1_000 if program == "stata" else 1_000_000
