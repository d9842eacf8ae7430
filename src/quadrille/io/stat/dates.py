"""Dates and times in the files of statistics programs: numbers since an epoch, told apart by their format.

SPSS counts seconds since 14 October 1582; Stata days or milliseconds, SAS days or seconds since 1 January 1960.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Literal

import polars as pl

from quadrille.io.frames.values import moments_from_text

Moment = Literal["date", "datetime", "time"]

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
