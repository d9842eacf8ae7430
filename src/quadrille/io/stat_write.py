"""Data become a file of SPSS, Stata or SAS; what comes back from it is compared with what went in."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import polars as pl

from quadrille.codebook import Stored, Value, Variable
from quadrille.data import Column, Data
from quadrille.errors import OutputError
from quadrille.io.atomic import scratch
from quadrille.io.frames import NotHeld, orders_left, restore, split
from quadrille.io.frames.values import (
    DEFAULT,
    EXACT,
    counted_in,
    from_moments,
    is_coarse,
    is_text,
    kind_of_moment,
    moment_of,
    too_large,
)
from quadrille.io.stat_library import no_pyreadstat
from quadrille.io.stat_read import Raw, is_tag, moments_in, number_of, parse, was_moment, within

_SPSS_WORDS = frozenset("ALL AND BY EQ GE GT LE LT NE NOT OR TO WITH".split())  # noqa: SIM905
_STATA_WORDS = frozenset(
    "_all _b byte _coef _cons double float if in int long _n _N _pi _pred _rc _skip strL using with".split()  # noqa: SIM905
)


@dataclass(frozen=True)
class Target:
    """A format that can be written: what its names, labels, codes and numbers may be."""

    name: str
    program: str
    pattern: str
    longest_name: int
    reserved: frozenset[str]
    label: int
    value_label: int
    labels: Literal["all", "whole numbers", "none"]
    codes: Literal["declared", "tags", "none"]
    text: int
    largest: float
    smallest: float = 0.0
    keeps_blanks: bool = False
    one_case: bool = True


TARGETS = {
    ".sav": Target(
        name="SPSS",
        program="spss",
        pattern=r"[^\W\d_][\w.$#@]*(?<!\.)",
        longest_name=64,
        reserved=_SPSS_WORDS,
        label=256,
        value_label=120,
        labels="all",
        codes="declared",
        text=32_767,
        largest=1.7e308,
    ),
    ".dta": Target(
        name="Stata",
        program="stata",
        pattern=r"(?!str[0-9]+$)[^\W\d]\w*",
        longest_name=32,
        reserved=_STATA_WORDS,
        label=80,
        value_label=32_000,
        labels="whole numbers",
        codes="tags",
        text=2_000_000,
        largest=8.9e307,
        keeps_blanks=True,
        one_case=False,
    ),
    ".xpt": Target(
        name="SAS transport",
        program="sas",
        pattern=r"[A-Za-z_][A-Za-z0-9_]*",
        longest_name=32,
        reserved=frozenset(),
        label=256,
        value_label=0,
        labels="none",
        codes="none",
        text=32_767,
        largest=7.2e75,
        smallest=5.4e-79,
    ),
}
"""By ending. Nobody but SAS writes sas7bdat, and a por file holds less than a sav file."""


def check_names(names: Sequence[str], target: Target) -> None:
    """Refuse column names that a format cannot hold: renaming them is not for a program to decide."""
    bad = [name for name in names if not _fits(name, target)]
    if bad:
        listed = ", ".join(map(repr, bad[:5])) + (f" and {len(bad) - 5} more" if len(bad) > 5 else "")
        raise OutputError(
            f"{target.name} files cannot hold the column names {listed}. Rename these columns (letters, digits and _, "
            f"at most {target.longest_name} characters), or write CSV or Parquet."
        )
    folded = [name.lower() for name in names]
    if target.one_case and len(set(folded)) < len(folded):
        twice = next(name for name, low in zip(names, folded, strict=True) if folded.count(low) > 1)
        raise OutputError(
            f"{target.name} files do not tell {twice!r} from another column whose name differs by case only. "
            "Rename one of the two, or write CSV or Parquet."
        )


def _fits(name: str, target: Target) -> bool:
    size = len(name) if target.program == "stata" else len(name.encode())
    word = name.upper() if target.program == "spss" else name
    return (
        size <= target.longest_name and re.fullmatch(target.pattern, name) is not None and word not in target.reserved
    )


def cut(text: str, target: Target, size: int) -> str:
    """Return as much of a label as fits; Stata counts characters, the others bytes and drop blanks at the end."""
    if target.program == "stata":
        return text[:size]
    return text.encode()[:size].decode(errors="ignore").rstrip(" ")


_FIXED = {"spss": r"F([0-9]+)(?:\.([0-9]+))?", "stata": r"%([0-9]+)\.([0-9]+)f", "sas": r"F?([0-9]+)\.?([0-9]*)"}


def format_for(stored: Stored, program: str) -> str | None:
    """Return the display format in the language of a program; None when it has no counterpart."""
    if stored.program == program or not stored.format:
        return stored.format
    if re.fullmatch(r"%[0-9]+\.0g|BEST[0-9]*\.?", stored.format):
        return ""  # what Stata and SAS use where nobody chose a format
    match = re.fullmatch(_FIXED[stored.program], stored.format)
    if match is None:
        return None
    width, decimals = int(match[1]), int(match[2] or 0)
    return f"%{width}.{decimals}f" if program == "stata" else f"F{width}.{decimals}"


_PLAIN_TEXT = {"spss": r"A[0-9]+", "stata": r"%-?[0-9]+s", "sas": r"\$[0-9]*\.?"}


def text_format_for(stored: Stored, program: str) -> str | None:
    """Return the display format of a text column; None when it says more than a width and is not kept.

    SPSS makes the format from the width of the column, in which the writer leaves no choice.
    """
    if stored.program == program != "spss":
        return stored.format
    return "" if re.fullmatch(_PLAIN_TEXT[stored.program], stored.format) else None


_LONG = (-2_147_483_647, 2_147_483_620)
"""What a Stata long holds; the numbers above are its missing values."""


_USUAL_WIDTH = 8
"""How wide SPSS shows a column where nobody chose a width."""


@dataclass(frozen=True, eq=False)
class Outgoing:
    """One column on its way out: numbers or text, `tags` Stata's missing values, `codes` SPSS's missing codes."""

    series: pl.Series
    tags: pl.Series | None
    label: str
    labels: Mapping[Value, str]
    codes: tuple[Value | tuple[float, float], ...]
    format: str
    measure: str
    display: int

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.series.name


def outgoing(column: Column, target: Target, not_held: NotHeld) -> Outgoing:
    """Fit one column to a format: refuse values that it cannot hold, note everything else that it cannot."""
    variable = column.variable
    values, tags = (restore(column), None) if _only_texts(variable) else split(column)
    if is_text(values):
        values, tags = _moments_in(values.cast(pl.String), variable, not_held)
    format = _format(variable, values, target, not_held)
    if is_text(values):
        series, tags = _text(values, variable, target, not_held), None
    else:
        series = _numbers(values, variable, target, not_held)
        tags = _tags(tags, variable, target, not_held)
    label = cut(variable.label, target, target.label)
    if label != variable.label:
        not_held.add(variable.name, f"the label is cut to what {target.name} holds")
    labels = _labels(variable, values, target, not_held)
    codes = _codes(variable, values, target, not_held)
    measure, display = _on_screen(variable, target, not_held)
    return Outgoing(series.alias(variable.name), tags, label, labels, codes, format, measure, display)


def _only_texts(variable: Variable) -> bool:
    """Whether a column that holds nothing but missing codes is one of texts, not of numbers with .a to .z."""
    was_text = variable.stored is not None and variable.stored.type == "string"
    texts = any(isinstance(code, str) and not is_tag(code) for code in variable.missing)
    return variable.coded and not variable.categories and (was_text or texts)


def _moments_in(text: pl.Series, variable: Variable, not_held: NotHeld) -> tuple[pl.Series, pl.Series | None]:
    """Return text that was dates or times in a statistics program as such; other text as it is."""
    found = moments_in(text, variable)
    if found is None and was_moment(variable):
        not_held.add(
            variable.name, "dates or times are written as text, since some of them are not in the form of ISO 8601"
        )
    return (text, None) if found is None else found


def _format(variable: Variable, values: pl.Series, target: Target, not_held: NotHeld) -> str:
    """Return the display format of a column; what a program shows differently is noted."""
    stored, moment = variable.stored, kind_of_moment(values.dtype)
    same = stored is not None and stored.program == target.program
    if stored is None or not stored.format:
        found = DEFAULT[target.program][moment] if moment else ""
    elif is_text(values):
        found = text_format_for(stored, target.program)
    elif moment is None:
        found = format_for(stored, target.program)
        unit = "" if same else counted_in(stored.program, stored.format)
        if unit:
            not_held.add(variable.name, f"dates or times are written as numbers: {unit}")
    elif same and moment_of(stored.program, stored.format) == moment:
        found = stored.format
    else:
        found = DEFAULT[target.program][moment]
        shown = "in full, where the original shows months, quarters or weeks" if is_coarse(stored.format) else ""
        shown = shown or f"in the usual form of {target.name}, not in that of the original"
        not_held.add(variable.name, f"dates or times are shown {shown}")
    if found is None:
        not_held.add(variable.name, f"the display format has no counterpart in {target.name}")
    if not found and target.program == "spss" and values.dtype.is_integer():
        return "F8.0"
    return found or ""


def _on_screen(variable: Variable, target: Target, not_held: NotHeld) -> tuple[str, int]:
    """Return the level of measurement and the width on the screen, which SPSS alone has."""
    stored = variable.stored if variable.stored and variable.stored.program == "spss" else None
    if target.program == "spss":
        guessed = {"nominal": "nominal", "ordinal": "ordinal"}.get(variable.kind, "scale")
        return (guessed, 0) if stored is None else (stored.measure, stored.display)
    if stored and stored.measure:
        not_held.add(variable.name, f"{target.name} holds no level of measurement")
    if stored and stored.display not in (0, _USUAL_WIDTH):
        not_held.add(variable.name, f"{target.name} holds no width of a column on the screen")
    return "", 0


def _text(text: pl.Series, variable: Variable, target: Target, not_held: NotHeld) -> pl.Series:
    present = text.drop_nulls().unique()
    if present.str.contains("\0", literal=True).any():
        raise _unfit(variable, target, "text with zero bytes")
    if (present.str.len_bytes() > target.text).any():
        raise _unfit(variable, target, f"texts of more than {target.text:,} bytes")
    if (present == "").any():
        not_held.add(variable.name, "an empty text and a missing value look alike")
    if not target.keeps_blanks and (present != present.str.strip_chars_end(" ")).any():
        raise _unfit(variable, target, "texts that end in blanks,")
    stored, longest = variable.stored, int(cast("int | None", present.str.len_bytes().max()) or 0)
    spare = 1 if target.program == "stata" else 0  # its widths count the byte that ends a text
    if stored is not None and stored.width > max(longest, 1) + spare and stored.program == target.program:
        not_held.add(variable.name, "the column is as wide as its longest text, narrower than in the original")
    return text.fill_null("")


def _numbers(values: pl.Series, variable: Variable, target: Target, not_held: NotHeld) -> pl.Series:
    """Return numbers as a format stores them; what it cannot hold exactly is refused."""
    if kind_of_moment(values.dtype) is not None:
        return _moments(values, variable, target, not_held)
    if values.dtype == pl.Boolean:
        not_held.add(variable.name, "true and false are written as 1 and 0")
        values = values.cast(pl.Int32)
    if values.dtype.is_integer() and too_large(values):
        raise _unfit(variable, target, f"whole numbers beyond {EXACT:,} (2^53)")
    floats = values.cast(pl.Float64).fill_nan(None)
    if values.dtype.is_decimal() and not floats.cast(values.dtype, strict=False).equals(values):
        raise _unfit(variable, target, "decimal numbers of more than 15 digits")
    size = floats.drop_nulls().abs()
    if not (size <= target.largest).all() or not ((size >= target.smallest) | (size == 0)).all():
        raise _unfit(variable, target, "numbers that are too large or too small, or infinite,")
    return _stata_storage(values, floats, variable, not_held) if target.program == "stata" else floats


def _stata_storage(values: pl.Series, floats: pl.Series, variable: Variable, not_held: NotHeld) -> pl.Series:
    """Write whole numbers as long, others as double: the two types of number that the writer knows."""
    stored = variable.stored.type if variable.stored and variable.stored.program == "stata" else ""
    low, high = floats.min(), floats.max()
    fits = low is None or (cast("float", low) >= _LONG[0] and cast("float", high) <= _LONG[1])
    whole = values.dtype.is_integer() or stored.startswith("int")
    if stored in ("int8", "int16"):
        not_held.add(
            variable.name, f"stored as long instead of {'byte' if stored == 'int8' else 'int'}, which takes room"
        )
    if stored == "float":
        not_held.add(variable.name, "stored as double instead of float, which takes room")
    return floats.cast(pl.Int32) if whole and fits and stored not in ("float", "double") else floats


def _moments(values: pl.Series, variable: Variable, target: Target, not_held: NotHeld) -> pl.Series:
    if isinstance(values.dtype, pl.Datetime) and values.dtype.time_zone:
        not_held.add(variable.name, "the time zone is not kept; the moments are in UTC")
        values = values.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    numbers = from_moments(values, target.program)
    if not isinstance(values.dtype, pl.Date) and not _whole_units(
        values, 1_000_000 if target.program == "sas" else 1000
    ):
        kept = {"spss": "two microseconds", "stata": "milliseconds", "sas": "microseconds"}[target.program]
        not_held.add(variable.name, f"fractions of a second are kept to {kept}")
        numbers = numbers.round() if target.program == "stata" else numbers
    if target.program == "spss" and (numbers.drop_nulls() < 0).any():
        raise _unfit(variable, target, "dates before 1582")
    return _stata_storage(numbers, numbers, variable, not_held) if target.program == "stata" else numbers


def _whole_units(moments: pl.Series, per_second: int) -> bool:
    """Whether no moment has a finer fraction of a second; nanoseconds hold the years 1677 to 2262 alone."""
    fine = moments.dtype in (pl.Time, pl.Datetime("ns"))
    counts = (moments if fine else moments.dt.cast_time_unit("us")).cast(pl.Int64)
    return bool((counts % ((10**9 if fine else 10**6) // per_second) == 0).all())


def _tags(tags: pl.Series | None, variable: Variable, target: Target, not_held: NotHeld) -> pl.Series | None:
    """Return Stata's missing values; texts among numbers that a format cannot hold become empty."""
    if tags is None:
        return None
    if target.codes == "tags":
        lower = tags.str.to_lowercase()
        kept = lower.set(~lower.str.contains(r"^\.[a-z]$").fill_null(value=False), None)
        if kept.count() < tags.count():
            not_held.add(variable.name, "some missing codes become empty values")
        return kept
    if tags.count():
        not_held.add(variable.name, "missing codes such as .a become empty values")
    return None


def _labels(variable: Variable, values: pl.Series, target: Target, not_held: NotHeld) -> dict[Value, str]:
    """Return the value labels that a format holds."""
    if not variable.value_labels:
        return {}
    if target.labels == "none" or (target.labels == "whole numbers" and is_text(values)):
        not_held.add(variable.name, f"{target.name} holds no value labels{' for text' if is_text(values) else ''}")
        return {}
    given = [(_number(v, values, target), label) for v, label in variable.value_labels.items()]
    kept = {plain_number(v): label for v, label in given if v is not None and _can_be_labelled(v, values, target)}
    if len(kept) < len(given):
        not_held.add(variable.name, "some value labels belong to values that cannot have one")
    short = {value: cut(label, target, target.value_label) for value, label in kept.items()}
    if short != kept:
        not_held.add(variable.name, f"value labels are cut to what {target.name} holds")
    return {value: label for value, label in short.items() if label}


def _can_be_labelled(value: Value, values: pl.Series, target: Target) -> bool:
    if is_text(values):
        return isinstance(value, str)
    if isinstance(value, str):
        return target.codes == "tags" and len(value) == 2 and value[0] == "." and value[1].islower()
    return target.labels == "all" or (float(value).is_integer() and _LONG[0] <= value <= _LONG[1])


def _number(value: Value, values: pl.Series, target: Target) -> Value | None:
    """Return a value as the file has it: the text of a date or time is a number there."""
    moment = kind_of_moment(values.dtype)
    return value if moment is None else number_of(value, moment, target.program)


def plain_number(value: Value) -> Value:
    """Return a whole number or a truth value as an integer, other values as they are."""
    return int(value) if isinstance(value, bool | float) and float(value).is_integer() else value


def _codes(variable: Variable, values: pl.Series, target: Target, not_held: NotHeld) -> tuple[Any, ...]:
    """Return the missing codes that SPSS can declare: three codes, or a range and a code."""
    given = [_number(code, values, target) for code in variable.missing]
    single = [code for code in given if code is not None and isinstance(code, str) == is_text(values)]
    single = [code for code in single if not within(code, variable.missing_ranges)]
    if not single and not variable.missing_ranges:
        return ()
    if target.codes != "declared":
        not_held.add(variable.name, f"{target.name} declares no missing codes; they are written as plain values")
        return ()
    ranges = () if is_text(values) else variable.missing_ranges[:1]
    fit = [code for code in single if not isinstance(code, str) or len(code.encode()) <= 8]
    kept = fit[: 1 if ranges else 3]
    if len(kept) < len(single) or len(ranges) < len(variable.missing_ranges):
        not_held.add(
            variable.name, "SPSS declares three missing codes or a range and a code; the others are plain values"
        )
    return (*ranges, *map(plain_number, kept))


def _unfit(variable: Variable, target: Target, what: str) -> OutputError:
    return OutputError(
        f"Column {variable.name!r} holds {what} which {target.name} files cannot hold. "
        "Leave the column out, recode it, or write CSV or Parquet."
    )


def file_bytes(data: Data, suffix: str) -> tuple[bytes, tuple[str, ...]]:
    """Return the file, and line by line what its format cannot hold."""
    target, not_held = TARGETS[suffix], NotHeld()
    check_names(data.columns, target)
    columns = [outgoing(data[name], target, not_held) for name in data.columns]
    if long := _too_long(columns) if suffix == ".xpt" else []:
        not_held.whole(_VERSION_8.format(columns=", ".join(long)))
    with _place(suffix) as path:
        _write(columns, suffix, path)
        _without_time(path, suffix)
        _verify(columns, parse(path, suffix, own=True).columns, target)
        return path.read_bytes(), not_held.lines()


def left_to_codebook(data: Data) -> tuple[str, ...]:
    """Say what the codebook has to tell about a file of a statistics program."""
    return orders_left(data)


_VERSION_8 = (
    "The file is of version 8 of the transport format: pandas and old SAS read version 5 only. For version 5 use names "
    "of at most 8 letters, labels of 40 bytes and texts of 200 bytes in: {columns}."
)


def _too_long(columns: list[Outgoing]) -> list[str]:
    """Name the columns whose name, label or texts are too long for version 5, which every program reads."""
    return [
        column.name
        for column in columns
        if len(column.name) > 8
        or len(column.label.encode()) > 40
        or (is_text(column.series) and (column.series.str.len_bytes() > 200).any())
    ]


@contextmanager
def _place(suffix: str) -> Generator[Path]:
    """Yield a file to write to: in memory where the system allows it, else in a folder that only its owner enters."""
    if hasattr(os, "memfd_create") and Path("/proc/self/fd").is_dir():
        handle = os.memfd_create("quadrille")
        try:
            yield Path(f"/proc/self/fd/{handle}")
        finally:
            os.close(handle)
        return
    with scratch() as folder:
        yield folder / f"file{suffix}"


def _write(columns: list[Outgoing], suffix: str, path: Path) -> None:
    try:
        import pyreadstat
    except ImportError:
        raise OutputError(str(no_pyreadstat())) from None
    table = pl.DataFrame([_with_tags(column) for column in columns])
    functions = cast("Any", pyreadstat)
    write = {".sav": functions.write_sav, ".dta": functions.write_dta, ".xpt": functions.write_xport}[suffix]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            write(table, str(path), **_options(columns, suffix))
    except OSError as error:
        raise OutputError(f"Cannot write the file: {error.strerror or type(error).__name__}.") from None
    except Exception:  # its text can hold data values
        name = TARGETS[suffix].name
        raise OutputError(f"The data cannot be written as a file of {name}. Write CSV or Parquet.") from None


_HEAD = 1024
_TIMES = {
    ".sav": (rb"(?<=^.{92})[ \d]\d [A-Z][a-z]{2} \d\d\d\d:\d\d:\d\d", b"01 Jan 7000:00:00"),
    ".dta": (rb"(?<=<timestamp>\x11)[ \d]\d [A-Z][a-z]{2} \d{4} \d\d:\d\d(?=</timestamp>)", b"01 Jan 1970 00:00"),
    ".xpt": (rb"[ \d]\d[A-Z]{3}\d\d:\d\d:\d\d:\d\d", b"01JAN70:00:00:00"),
}
"""By ending: the time of writing as the head of a file has it, and what is written instead."""
_MOST_TIMES = 4
"""A transport file has the times at which file and table were made and changed, all before the first column."""


def _without_time(path: Path, suffix: str) -> None:
    """Put one fixed time in the place of that of writing: equal data, equal files, and nothing about where and when."""
    pattern, fixed = _TIMES[suffix]
    with path.open("r+b") as file:
        head = file.read(_HEAD)
        file.seek(0)
        file.write(re.sub(pattern, fixed, head, count=_MOST_TIMES if suffix == ".xpt" else 1, flags=re.DOTALL))


def _options(columns: list[Outgoing], suffix: str) -> dict[str, Any]:
    """Return what pyreadstat is told about the columns, by the names of its parameters."""
    common: dict[str, Any] = {
        "column_labels": {column.name: column.label for column in columns if column.label},
        "variable_format": {column.name: column.format for column in columns if column.format},
    }
    if suffix == ".xpt":
        return {**common, "file_format_version": 8 if _too_long(columns) else 5}
    common["variable_value_labels"] = {column.name: dict(_bare(column)) for column in columns if column.labels}
    if suffix == ".sav":
        return {
            **common,
            "missing_ranges": {column.name: _ranges(column) for column in columns if column.codes},
            "variable_measure": {column.name: column.measure for column in columns if column.measure},
            "variable_display_width": {column.name: column.display for column in columns if column.display},
        }
    used = {column.name: letters for column in columns if (letters := _letters(column))}
    # Version 14 is what every Stata since then reads; the next format is for its largest edition only.
    return {**common, "version": 14, "missing_user_values": used}


def _letters(column: Outgoing) -> list[str]:
    """Return the letters of Stata's missing values that a column of numbers holds or labels."""
    if is_text(column.series):
        return []
    held: list[str] = [] if column.tags is None else [tag[1:] for tag in column.tags.drop_nulls().unique().to_list()]
    return sorted({*held, *(value for value, _ in _bare(column) if isinstance(value, str))})


def _bare(column: Outgoing) -> list[tuple[Value, str]]:
    """Return value labels with tags as pyreadstat wants them: a for .a."""
    numbers = not is_text(column.series)
    return [(v[1:] if numbers and isinstance(v, str) else v, label) for v, label in column.labels.items()]


def _ranges(column: Outgoing) -> list[object]:
    return [{"lo": code[0], "hi": code[1]} if isinstance(code, tuple) else code for code in column.codes]


def _with_tags(column: Outgoing) -> pl.Series:
    """Return a column as pyreadstat takes it: numbers and tags together as objects."""
    labelled = not is_text(column.series) and any(isinstance(value, str) for value in column.labels)
    if not labelled and (column.tags is None or not column.tags.count()):
        return column.series
    numbers = column.series.to_list()
    tags = [None] * len(numbers) if column.tags is None else column.tags.to_list()
    mixed = [number if tag is None else tag[1:] for number, tag in zip(numbers, tags, strict=True)]
    return pl.Series(column.name, mixed, dtype=pl.Object)


def _verify(sent: list[Outgoing], back: tuple[Raw, ...], target: Target) -> None:
    """Compare what was written with what is read back; a file that differs is never handed out."""
    for column, raw in zip(sent, back, strict=True):
        same = column.name == raw.name and column.label == raw.label and _same_values(column, raw, target)
        labels = {plain_number(value): label for value, label in raw.value_labels.items()}
        if not same or labels != dict(column.labels) or _bounds(column.codes) != _bounds(raw.ranges):
            raise OutputError(
                f"Column {column.name!r} does not come back from the {target.name} file as it was written, "
                "so the file is not kept. Write CSV or Parquet."
            )


def _same_values(column: Outgoing, raw: Raw, target: Target) -> bool:
    if is_text(column.series):
        text = column.series if target.keeps_blanks else column.series.str.strip_chars_end(" ")
        return text.equals(raw.series.cast(pl.String).fill_null(""), check_names=False)
    tags = column.tags if column.tags is not None and column.tags.count() else None
    if tags is None or raw.tags is None:
        if tags is not raw.tags:
            return False
    elif not tags.equals(raw.tags, check_names=False):
        return False
    sent, back = column.series.cast(pl.Float64).to_numpy(), raw.series.cast(pl.Float64).to_numpy()
    return np.array_equal(sent, back, equal_nan=True)


def _bounds(codes: tuple[Any, ...]) -> set[tuple[Value, Value]]:
    return {code if isinstance(code, tuple) else (code, code) for code in codes}
