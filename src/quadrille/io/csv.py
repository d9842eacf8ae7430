"""Delimited text in and out: read as text, numbers parsed second, every malformed file refused."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from quadrille.codebook import Codebook, Variable
from quadrille.data import Data
from quadrille.errors import InputError
from quadrille.io.frames import build, to_frame
from quadrille.io.frames.columns import no_patterns, wants
from quadrille.io.frames.values import moments_as_text, parse_numbers, too_large
from quadrille.io.not_held import moments_left, not_in_text, numbers_of_moments, orders_left, words_left
from quadrille.io.raw import Buffer, contents

Bytes = NDArray[np.uint8]

_CHUNK = 1 << 24
_QUOTE, _NEWLINE, _RETURN = b'"'[0], b"\n"[0], b"\r"[0]


def check_quotes(raw: Buffer, start: int, separator: str, where: str) -> None:
    """Refuse quotation marks after `start` that do not enclose a whole field, with the line of the first.

    Counting from 0, an even mark opens a field (or is the second of a doubled mark) and an odd one closes it.
    """
    if raw.find(b'"') < 0:
        return
    data = np.frombuffer(raw, np.uint8)
    seen, last = 0, 0
    for chunk in range(start, len(data), _CHUNK):
        marks = np.flatnonzero(data[chunk : chunk + _CHUNK] == _QUOTE) + chunk
        opening, closing = marks[seen % 2 :: 2], marks[1 - seen % 2 :: 2]
        before = np.where(opening > start, data[opening - 1], _NEWLINE)
        after = np.where(closing < len(data) - 1, data[np.minimum(closing + 1, len(data) - 1)], _NEWLINE)
        bad = np.concatenate(
            [
                opening[~np.isin(before, (ord(separator), _NEWLINE, _QUOTE))],
                closing[~np.isin(after, (ord(separator), _NEWLINE, _RETURN, _QUOTE))],
            ]
        )
        if len(bad):
            raise _bad_quote(raw, int(bad.min()), where)
        seen += len(marks)
        last = int(marks[-1]) if len(marks) else last
    if seen % 2:
        raise _bad_quote(raw, last, where)


def _bad_quote(raw: Buffer, at: int, where: str) -> InputError:
    return InputError(
        f"{where}: a quotation mark in line {line_at(raw, at):,} is not closed or stands inside a field. "
        "Enclose the whole field in quotation marks and double those inside it."
    )


def line_at(raw: Buffer, at: int) -> int:
    """Return the number of the line, from 1, that a position is in."""
    return raw[:at].count(b"\n") + 1


@dataclass
class _Odd:
    """Rows of the wrong width: how many, and where the first of them starts."""

    count: int = 0
    first: int = 0

    def add(self, starts: NDArray[np.int64]) -> None:
        if len(starts) and not self.count:
            self.first = int(starts[0])
        self.count += len(starts)


def check_widths(raw: Buffer, body: int, width: int, separator: str, where: str) -> None:
    """Refuse rows from position `body` on that have fewer or more than `width` fields."""
    data = np.frombuffer(raw, np.uint8)
    short, long = _Odd(), _Odd()
    inside, fields, row = False, 1, body
    for start in range(body, len(data), _CHUNK):
        part = data[start : start + _CHUNK]
        outside, inside = _outside(part, inside)
        ends = np.flatnonzero((part == _NEWLINE) & outside)
        separators = np.flatnonzero((part == ord(separator)) & outside)
        upto = np.searchsorted(separators, ends)
        if len(ends):
            widths = np.diff(upto, prepend=0) + 1
            widths[0] += fields - 1
            starts = np.concatenate([[row], ends[:-1] + start + 1])
            short.add(starts[widths < width])
            long.add(starts[widths > width])
            row, fields = int(ends[-1]) + start + 1, 1 + len(separators) - int(upto[-1])
        else:
            fields += len(separators)
    if row < len(data):
        (short if fields < width else long).add(np.array([row] if fields != width else [], dtype=np.int64))
    _refuse(raw, short, "fewer", "A blank line counts as one.", where)
    _refuse(raw, long, "more", "Fields that contain the separator need quotation marks.", where)


def _outside(part: Bytes, inside: bool) -> tuple[NDArray[np.bool_], bool]:
    """Tell which bytes are outside quotation marks, and whether the part ends inside."""
    marks = part == _QUOTE
    if not inside and not marks.any():
        return np.ones(len(part), dtype=np.bool_), False
    within = np.bitwise_xor.accumulate(marks) ^ inside
    return ~within, bool(within[-1])


def _refuse(raw: Buffer, odd: _Odd, what: str, hint: str, where: str) -> None:
    if odd.count:
        raise InputError(
            f"{where}: {odd.count:,} rows have {what} fields than the header has names, the first in line "
            f"{line_at(raw, odd.first):,}. Correct these rows. {hint}"
        )


_BOM = b"\xef\xbb\xbf"
_GLANCE = 10_000


class _Text(NamedTuple):
    """A file in memory with the names in its header and the position where the records start."""

    raw: Buffer
    source: Path | bytes
    names: list[str]
    body: int
    separator: str
    where: str


def read_file(path: Path, ending: str, *, codebook: Codebook | None, weight: str | None) -> Data:
    """Read delimited UTF-8 text with a header line; an empty field is missing.

    A quoted empty field is missing too, unless the codebook lists the empty text among the categories.
    """
    where, separator = f"File {str(path)!r}", _separator(ending)
    raw = contents(path)
    start = len(_BOM) if raw[: len(_BOM)] == _BOM else 0
    check_quotes(raw, start, separator, where)
    names, body = _header(raw, start, separator, where)
    no_patterns(names, f"the file {str(path)!r}")
    raw = _without_blank_end(raw) if len(names) > 1 else raw
    text = _Text(raw, raw if isinstance(raw, bytes) else path.absolute(), names, body, separator, where)
    given = {variable.name: variable for variable in codebook or ()}
    table = _table(text, given)
    if len(names) > 1 and table.to_series(-1).null_count():
        # polars fills short rows with nulls; they can hide only where the last column is empty.
        check_widths(raw, body, len(names), separator, where)
    if raw.find(b'"') >= 0:
        kept = {name for name, variable in given.items() if "" in variable.categories}
        texts = [name for name, dtype in table.schema.items() if dtype == pl.String and name not in kept]
        table = table.with_columns(pl.col(texts).replace({"": None}))
    table = table.with_columns(_parsed(series, given.get(series.name)) for series in table.get_columns())
    return build(
        table,
        codebook=codebook,
        weight=weight,
        where=f"the file {str(path)!r}",
        dtypes={name: "String" for name, dtype in table.schema.items() if isinstance(dtype, pl.Enum)},
    )


def file_bytes(data: Data, ending: str) -> tuple[bytes | memoryview, tuple[str, ...]]:
    """Return the records as delimited text, and what it does not hold.

    What is missing is written as nothing, an empty text as two quotes.
    """
    buffer = io.BytesIO()
    table = to_frame(data)
    # Dates and times are written as the codebook lists them, so that the two can be read together.
    table.with_columns(map(moments_as_text, table.get_columns())).write_csv(buffer, separator=_separator(ending))
    text = buffer.getbuffer()
    packed = gzip.compress(text, mtime=0) if ending.endswith(".gz") else text  # no time stamp: equal data, equal files
    return packed, (*numbers_of_moments(data), *not_in_text(data))


def left_to_codebook(data: Data) -> tuple[str, ...]:
    """Say what the codebook has to tell about delimited text."""
    return (*orders_left(data), *moments_left(data), *words_left(data))


def _separator(ending: str) -> str:
    return "\t" if ending == ".tsv" else ","


def _without_blank_end(raw: Buffer) -> Buffer:
    """Drop blank lines at the end of a file; in a file of one column they are empty fields and stay."""
    end = raw[-4:]
    return raw[:].rstrip(b"\r\n") + b"\n" if end.endswith((b"\n\n", b"\n\r\n")) else raw


def _header(raw: Buffer, start: int, separator: str, where: str) -> tuple[list[str], int]:
    """Return the names and where the records start. Polars would rename duplicate names without a word."""
    if not raw[start : start + _GLANCE].strip() and not raw[start:].strip():
        raise InputError(f"{where} is empty. It must hold a line of column names, then one line per record.")
    end = raw.find(b"\n", start)
    while end >= 0 and raw[start:end].count(b'"') % 2:
        end = raw.find(b"\n", end + 1)
    body = len(raw) if end < 0 else end + 1
    try:
        header = raw[start:body].decode("utf-8")
    except UnicodeDecodeError:
        raise _not_utf8(where, "the header line") from None
    lines = list(csv.reader(io.StringIO(header, newline=""), delimiter=separator))
    _check_header(lines, where)
    if body == len(raw):
        raise InputError(f"{where} holds column names but no records.")
    _check_separator(lines[0], raw[body : body + _GLANCE].split(b"\n")[0], where)
    return lines[0], body


def _check_header(lines: list[list[str]], where: str) -> None:
    if len(lines) != 1:
        raise InputError(f"{where}: lines end in a carriage return alone. Save the file with usual line ends.")
    names = lines[0]
    if not names:
        raise InputError(f"{where}: the first line is empty. It must hold the column names.")
    if any("\0" in name for name in names):
        raise _not_utf8(where, "the header line")
    for position, name in enumerate(names, start=1):
        if not name.strip():
            raise InputError(f"{where}: column {position} has no name. Give each column a name in the first line.")
        if names.index(name) != position - 1:
            raise InputError(f"{where}: the column name {name!r} occurs more than once. Give each its own name.")


def _check_separator(names: list[str], first: bytes, where: str) -> None:
    """Catch the usual mix-up: one column only, because the fields are separated by something else."""
    for mark, word in ((";", "semicolons"), ("\t", "tabs"), (",", "commas")):
        if len(names) == 1 and mark in names[0] and mark.encode() in first and b'"' not in first:
            raise InputError(
                f"{where} seems to be separated by {word}. Save it with commas as .csv or with tabs as .tsv."
            )


def _not_utf8(where: str, place: str) -> InputError:
    return InputError(f"{where} is not UTF-8 text: see {place}. Save it with the encoding UTF-8.")


def _table(text: _Text, given: Mapping[str, Variable]) -> pl.DataFrame:
    """Read all columns as text; those with known categories straight into their Enum, which is faster."""
    strings: dict[str, pl.DataType] = {name: pl.String() for name in text.names}
    enums = {
        name: pl.Enum(cast("list[str]", list(given[name].values)))
        for name in text.names
        if wants(given.get(name)) == "text" and given[name].categories and "" not in given[name].values
    }
    table = _parse(text, strings | enums) if enums else None
    # Some value is not listed, or the file is malformed: the text tells which.
    table = _parse(text, strings) if table is None else table
    return _diagnose(text) if table is None else table


def _parse(text: _Text, schema: Mapping[str, pl.DataType]) -> pl.DataFrame | None:
    """Let polars read, or return None: its error texts hold data values and must not get out."""
    try:
        return pl.read_csv(
            text.source,
            glob=False,
            has_header=False,
            skip_lines=line_at(text.raw, text.body) - 1,
            schema=schema,
            separator=text.separator,
        )
    except (Exception, pl.exceptions.PanicException):
        return None


def _diagnose(text: _Text) -> pl.DataFrame:
    """Say why polars could not read the file."""
    try:
        text.raw[:].decode("utf-8")
    except UnicodeDecodeError as error:
        raise _not_utf8(text.where, f"line {line_at(text.raw, error.start):,}") from None
    check_widths(text.raw, text.body, len(text.names), text.separator, text.where)
    raise InputError(f"{text.where} cannot be read as delimited text. Save it again as plain CSV in UTF-8.")


def _parsed(series: pl.Series, variable: Variable | None) -> pl.Series:
    """Parse numbers where the codebook leaves the type open; an empty missing code is the empty field."""
    if series.dtype != pl.String:
        return series
    if variable is not None and "" in variable.missing:
        return series.fill_null("")
    if wants(variable) == "number":
        return _with_infinite(series)
    return parse_numbers(series) if wants(variable) == "any" else series


def _with_infinite(text: pl.Series) -> pl.Series:
    """Return declared numbers as such when some of them are infinite, else the text, which is checked later."""
    infinite = text.is_in(["inf", "-inf"]).fill_null(value=False)
    if not infinite.any():
        return text
    rest = text.filter(~infinite).drop_nulls()
    numbers = parse_numbers(rest)
    plain = rest.is_empty() or numbers.dtype.is_float() or (numbers.dtype.is_integer() and not too_large(numbers))
    return text.cast(pl.Float64) if plain else text
