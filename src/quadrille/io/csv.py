"""Delimited text in and out: read as text, every malformed file refused; columns of text become numbers and dates."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from quadrille.codebook import Codebook, Variable
from quadrille.data import Column, Data
from quadrille.errors import InputError
from quadrille.io.frames import (
    moments_left,
    not_in_text,
    numbers_of_moments,
    orders_left,
    restore,
    to_frame,
    words_left,
)
from quadrille.io.frames.columns import build, no_patterns, settled, wants_in_file
from quadrille.io.frames.values import NUMBER, few_whole, moments_as_text, parse_numbers, too_large, without_marks
from quadrille.io.layout import Layout, Shape, in_utf8, say, shape_of, words_of
from quadrille.io.raw import Buffer, contents, refuse_for_addresses, refuse_for_the_system

_NOTHING = r"^(?:NA|NaN|\.|\s+)$"
"""Words for a missing value that R, Python, SAS and Stata write among numbers, and blanks."""

_COMMA = r"^-?(?:(?:0|[1-9][0-9]*)(?:,[0-9]*)?|,[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_GROUPS = r"^-?[1-9][0-9]{0,2}(?:,[0-9]{3})+$"
_SAMPLE = 1000


def settled_by_text(variable: Variable, table: pl.DataFrame) -> Variable:
    """Tell numbers among which missing codes are text by the rest of the column, where the codebook says no kind."""
    codes = [code for code in variable.missing if isinstance(code, str)]
    if not variable.kind_open or variable.recodes or not codes or variable.name not in table.columns:
        return variable
    rest = parse_numbers(without_marks(table[variable.name], variable)[0])
    if not rest.dtype.is_numeric():
        return variable
    told, others = settled(variable, rest), [code for code in variable.missing if code not in codes]
    found = rest.drop_nulls().unique().sort().to_list() if told.coded else []
    return replace(told, categories=tuple(value for value in found if value not in others))


@dataclass
class ParsedText:
    """A table of text with numbers and dates parsed where the codebook leaves the type open, and what was found.

    A decimal mark, and whether the day or the month comes first, holds for the whole file.
    """

    table: pl.DataFrame
    given: Mapping[str, Variable]
    said: Layout
    where: str
    decimal: str = "."
    dates: str = ""
    remarks: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.given = {name: settled_by_text(variable, self.table) for name, variable in self.given.items()}
        texts = {series.name: series for series in self.table.get_columns() if series.dtype == pl.String}
        wanted = {name: wants_in_file(self.given.get(name)) for name in texts}
        void: list[str] = []
        columns = dict(texts)
        numbers = {name: parse_numbers(text) for name, text in texts.items() if wanted[name] in ("any", "number")}
        for name in [name for name, series in numbers.items() if series.dtype == pl.String]:
            columns[name], emptied = _without_words(texts[name], self.given.get(name))
            if emptied:
                void.append(name)
                numbers[name] = parse_numbers(columns[name])
        self.decimal = self.said.decimal or self._decimal(columns, numbers)
        if self.decimal == ",":
            swapped = {name: _with_points(columns[name], self.given.get(name)) for name in numbers}
            columns |= {name: text for name, text in swapped.items() if wanted[name] == "number"}
            numbers = {name: parse_numbers(text) for name, text in swapped.items()}
        for name, text in columns.items():
            variable = self.given.get(name)
            if variable is not None and "" in variable.missing:
                columns[name] = text.fill_null("")
            elif wanted[name] == "number":
                columns[name] = _with_infinite(text)
            elif wanted[name] == "any" and numbers[name].dtype.is_numeric():
                columns[name] = few_whole(numbers[name])
        loose = [text for name, text in columns.items() if text.dtype == pl.String and wanted[name] == "any"]
        dates = dates_of(loose, self.said.dates)
        columns |= {series.name: series for series in dates.columns}
        self.dates = dates.order
        names = [name for name in void if wanted[name] == "number" or columns[name].dtype.is_numeric()]
        told = [f"NA, NaN, . and blanks are missing in: {', '.join(names)}"] if names else []
        self.remarks += [*dates.remarks, *told]
        self.table = self.table.with_columns(list(columns.values()))

    def data(self, path: Path, weight: str | None, dtypes: Mapping[str, str] | None = None) -> Data:
        """Return the data of a file; `dtypes` are the types that columns are said to have had."""
        book = Codebook(tuple(self.given.values()))
        return build(self.table, codebook=book, weight=weight, where=f"the file {str(path)!r}", dtypes=dtypes)

    def _decimal(self, texts: Mapping[str, pl.Series], numbers: Mapping[str, pl.Series]) -> str:
        """Tell whether the numbers have decimal commas; refuse a file that leaves it open."""
        open_ones = [texts[name] for name, series in numbers.items() if series.dtype == pl.String]
        commas = [text for text in open_ones if _has_commas(text)]
        if not commas:
            return "."
        clear = [text for text in commas if not text.drop_nulls().str.contains(_GROUPS + "|^-?[0-9]*$").all()]
        floats = [name for name, series in numbers.items() if series.dtype.is_float()]
        points = [name for name in floats if texts[name].str.contains(".", literal=True).any()]
        if clear and not points:
            return ","
        names = ", ".join(repr(text.name) for text in commas[:5])
        why = (
            f"and points in {', '.join(map(repr, points[:5]))}: one of the two marks decimals"
            if points
            else "with three digits after each, so that they mark decimals or thousands"
        )
        raise InputError(
            f"{self.where} has numbers with commas in {names}, {why}. {say('decimal', ',', '.')} "
            "What is no number then stays text."
        )


def _has_commas(text: pl.Series) -> bool:
    """Whether every text is a number, some of them with a comma."""
    present = text.drop_nulls()
    sample = present.gather_every(max(1, len(present) // _SAMPLE))
    numbers = sample.str.contains(_COMMA).all() and present.str.contains(_COMMA).all()
    return numbers and bool(present.str.contains(",", literal=True).any())


def _with_points(text: pl.Series, variable: Variable | None) -> pl.Series:
    """Write decimals with a point instead of a comma, and a point, which is then none, with a comma."""
    codes = [code for code in (() if variable is None else variable.missing) if isinstance(code, str)]
    return text.str.replace_many([",", "."], [".", ","]).zip_with(~text.is_in(codes).fill_null(value=False), text)


def _without_words(text: pl.Series, variable: Variable | None) -> tuple[pl.Series, bool]:
    """Empty the fields that hold a word for a missing value, or blanks, where all the others are numbers."""
    wanted, missing = wants_in_file(variable), () if variable is None else variable.missing
    sample = text.gather_every(max(1, len(text) // _SAMPLE)).drop_nulls()
    if wanted not in ("any", "number") or not sample.str.contains(f"{NUMBER}|{_COMMA}|{_NOTHING}").all():
        return text, False
    listed = text.is_in([code for code in missing if isinstance(code, str)])
    void = (text.str.contains(_NOTHING) & ~listed).fill_null(value=False)
    if not void.any():
        return text, False
    rest = text.set(void, None)
    numeric = wanted == "number" or parse_numbers(rest).dtype.is_numeric() or _has_commas(rest)
    return (rest, True) if numeric else (text, False)


def _with_infinite(text: pl.Series) -> pl.Series:
    """Return declared numbers as such when some of them are infinite, else the text, which is checked later."""
    infinite = text.is_in(["inf", "-inf"]).fill_null(value=False)
    if not infinite.any():
        return text
    rest = text.filter(~infinite).drop_nulls()
    numbers = parse_numbers(rest)
    plain = rest.is_empty() or numbers.dtype.is_float() or (numbers.dtype.is_integer() and not too_large(numbers))
    return text.cast(pl.Float64) if plain else text


_YEAR_LAST = r"^(\d{1,2})([./-])(\d{1,2})([./-])(\d{4})$"
_YEAR_FIRST = r"^(\d{4})([./-])(\d{1,2})([./-])(\d{1,2})$"
_ISO = r"^\d{4}-\d{2}-\d{2}$"


@dataclass(frozen=True)
class Dates:
    """The columns that are dates, written as in ISO 8601; which part came first; what stays open."""

    columns: list[pl.Series]
    order: str
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class _Column:
    """A column of dates, and the orders of day, month and year in which all of them exist."""

    text: pl.Series
    orders: dict[str, pl.Series]


def dates_of(texts: list[pl.Series], said: str | None) -> Dates:
    """Read the columns in which every text is a date; ISO dates stay as they are.

    With dots the day comes before the month. With slashes or hyphens, one column with a day beyond the twelfth tells
    it for all. Where none does, the dates stay text.
    """
    found = [column for text in texts if (column := _column(text)) is not None]
    clear = {next(iter(column.orders)) for column in found if len(column.orders) == 1} - {"ymd"}
    open_ones = [column for column in found if len(column.orders) > 1]
    order = said if said in ("dmy", "mdy") else next(iter(clear)) if len(clear) == 1 else None
    read: list[pl.Series] = []
    remarks: list[str] = []
    used: list[str] = []
    for column in found:
        orders = column.orders if len(column.orders) == 1 else {k: v for k, v in column.orders.items() if k == order}
        if said is not None and said not in column.orders:
            orders = {}
        for name, days in orders.items():
            read.append(days)
            used.append(name)
    if open_ones and order is None:
        names = ", ".join(column.text.name for column in open_ones)
        remarks.append(
            f"dates stay text, since the day or the month may come first, in: {names}. {say('dates', 'dmy', 'mdy')}"
        )
    if len(set(used)) > 1:
        remarks.append("dates are written in more than one order; each column is read in its own")
    return Dates(read, used[0] if len(set(used)) == 1 else "", tuple(remarks))


def _column(text: pl.Series) -> _Column | None:
    present = text.drop_nulls()
    sample = present.gather_every(max(1, len(present) // _SAMPLE))
    for pattern in (_YEAR_LAST, _YEAR_FIRST):
        if not present.is_empty() and sample.str.contains(pattern).all() and present.str.contains(pattern).all():
            orders = _orders(text, year_first=pattern == _YEAR_FIRST)
            return _Column(text, orders) if orders and not sample.str.contains(_ISO).all() else None
    return None


def _orders(text: pl.Series, *, year_first: bool) -> dict[str, pl.Series]:
    parts = text.str.replace_all("[./]", "-")
    if year_first:
        forms = {"ymd": "%Y-%m-%d"}
    elif text.str.contains(".", literal=True).any():
        forms = {"dmy": "%d-%m-%Y"}
    else:
        forms = {"dmy": "%d-%m-%Y", "mdy": "%m-%d-%Y"}
    days = {order: parts.str.to_date(form, strict=False) for order, form in forms.items()}
    return {order: d.dt.strftime("%Y-%m-%d") for order, d in days.items() if d.null_count() == text.null_count()}


Bytes = NDArray[np.uint8]

_CHUNK = 1 << 24
_NEWLINE, _RETURN = b"\n"[0], b"\r"[0]


def check_quotes(raw: Buffer, shape: Shape, where: str) -> None:
    """Refuse quotation marks that do not enclose a whole field, with the line of the first.

    Counting from 0, an even mark opens a field (or is the second of a doubled mark) and an odd one closes it.
    """
    if not _has_quotes(raw, shape):
        return
    start, separator, quote = shape.start, shape.separator, ord(shape.quote)
    data = np.frombuffer(raw, np.uint8)
    seen, last = 0, 0
    for chunk in range(start, len(data), _CHUNK):
        marks = np.flatnonzero(data[chunk : chunk + _CHUNK] == quote) + chunk
        opening, closing = marks[seen % 2 :: 2], marks[1 - seen % 2 :: 2]
        before = np.where(opening > start, data[opening - 1], _NEWLINE)
        after = np.where(closing < len(data) - 1, data[np.minimum(closing + 1, len(data) - 1)], _NEWLINE)
        bad = np.concatenate(
            [
                opening[~np.isin(before, (ord(separator), _NEWLINE, quote))],
                closing[~np.isin(after, (ord(separator), _NEWLINE, _RETURN, quote))],
            ]
        )
        if len(bad):
            raise _bad_quote(raw, int(bad.min()), where)
        seen += len(marks)
        last = int(marks[-1]) if len(marks) else last
    if seen % 2:
        raise _bad_quote(raw, last, where)


def _has_quotes(raw: Buffer, shape: Shape) -> bool:
    return shape.quote != "none" and raw.find(shape.quote.encode()) >= 0


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


def check_widths(raw: Buffer, body: int, width: int, shape: Shape, where: str) -> None:
    """Refuse rows from position `body` on that have fewer or more than `width` fields."""
    data = np.frombuffer(raw, np.uint8)
    short, long = _Odd(), _Odd()
    inside, fields, row = False, 1, body
    for start in range(body, len(data), _CHUNK):
        part = data[start : start + _CHUNK]
        outside, inside = _outside(part, inside, shape.quote)
        ends = np.flatnonzero((part == _NEWLINE) & outside)
        separators = np.flatnonzero((part == ord(shape.separator)) & outside)
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


def _outside(part: Bytes, inside: bool, quote: str) -> tuple[NDArray[np.bool_], bool]:
    """Tell which bytes are outside quotation marks, and whether the part ends inside."""
    marks = part == ord(quote) if quote != "none" else np.zeros(len(part), dtype=np.bool_)
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


_GLANCE = 10_000


def refuse_few_addresses(path: Path, size: int) -> None:
    """Refuse text for which the process may not have enough addresses: a byte takes 12, all work included."""
    refuse_for_addresses(path, 12 * size)


class _Text(NamedTuple):
    """A file in memory with the names in its header and the position where the records start."""

    raw: Buffer
    source: Path | bytes
    names: list[str]
    body: int
    shape: Shape
    where: str


def read_file(
    path: Path, ending: str, *, codebook: Codebook | None, weight: str | None, layout: Layout | None = None
) -> Data:
    """Read delimited text with a header line; an empty field is missing.

    A quoted empty field is missing too, unless the codebook lists the empty text among the categories.
    """
    return parse(contents(path), path, ending, codebook=codebook, weight=weight, layout=layout)


def parse(
    packed: Buffer,
    path: Path,
    ending: str,
    *,
    codebook: Codebook | None = None,
    weight: str | None = None,
    layout: Layout | None = None,
) -> Data:
    """Read the bytes of a file, or the first lines of it."""
    where, said = f"File {str(path)!r}", layout or Layout()
    raw, start, encoding = in_utf8(packed, said.encoding, where)
    shape = shape_of(raw, start, _separator(ending), said, where)
    check_quotes(raw, shape, where)
    refuse_few_addresses(path, len(raw))
    names, body, unnamed = _header(raw, shape, where)
    no_patterns(names, f"the file {str(path)!r}")
    raw = _without_blank_end(raw) if len(names) > 1 else raw
    text = _Text(raw, raw if isinstance(raw, bytes) else path.absolute(), names, body, shape, where)
    given = {variable.name: variable for variable in codebook or ()}
    table = _table(text, given)
    if len(names) > 1 and table.to_series(-1).null_count():
        # polars fills short rows with nulls; they can hide only where the last column is empty.
        check_widths(raw, body, len(names), shape, where)
    if _has_quotes(raw, shape):
        kept = {name for name, variable in given.items() if "" in variable.categories}
        texts = [name for name, dtype in table.schema.items() if dtype == pl.String and name not in kept]
        table = table.with_columns(pl.col(texts).replace({"": None}))
    parsed = ParsedText(table, given, said, where)
    listed = {name: "String" for name, dtype in table.schema.items() if isinstance(dtype, pl.Enum)}
    data = parsed.data(path, weight, dtypes=listed)
    facts = {"separator": shape.separator, "encoding": encoding, "quote": shape.quote, "decimal": parsed.decimal}
    usual = {"separator": ","} if ending == ".tsv" and shape.separator == "\t" else {}
    data.read_as = (*words_of({**facts, **usual, "dates": parsed.dates}), *unnamed, *parsed.remarks)
    return data


def file_bytes(data: Data, ending: str) -> tuple[bytes | memoryview, tuple[str, ...]]:
    """Return the records as delimited text, and what it does not hold.

    What is missing is written as nothing, an empty text as two quotes.
    """
    buffer = io.BytesIO()
    _write_text(buffer, to_frame(data), separator=_separator(ending))
    text = buffer.getbuffer()
    packed = gzip.compress(text, mtime=0) if ending.endswith(".gz") else text  # no time stamp: equal data, equal files
    return packed, not_held(data)


def not_held(data: Data) -> tuple[str, ...]:
    """Say what delimited text does not hold of these data, also with the codebook."""
    return (*numbers_of_moments(data), *not_in_text(data))


def write_pieces(file: BinaryIO, columns: Sequence[Column], pieces: Iterable[Sequence[Column]]) -> None:
    """Write records piece by piece; `columns` have their names."""
    _write_text(file, pl.DataFrame([restore(replace(column, values=column.values[:0])) for column in columns]))
    for piece in pieces:
        for start in range(0, len(piece[0].values), _LINES):
            part = [restore(replace(column, values=column.values[start : start + _LINES])) for column in piece]
            _write_text(file, pl.DataFrame(part), header=False)


_LINES = 1 << 17
"""Lines that are made at a time."""


def _write_text(file: BinaryIO, table: pl.DataFrame, *, header: bool = True, separator: str = ",") -> None:
    # Dates and times are written as the codebook lists them, so that the two can be read together.
    text = io.BytesIO()
    table.with_columns(map(moments_as_text, table.get_columns())).write_csv(
        text, separator=separator, include_header=header
    )
    file.write(text.getbuffer())


def left_to_codebook(data: Data) -> tuple[str, ...]:
    """Say what the codebook has to tell about delimited text."""
    return (*orders_left(data), *moments_left(data), *words_left(data))


def _separator(ending: str) -> str:
    return "\t" if ending == ".tsv" else ","


def _without_blank_end(raw: Buffer) -> Buffer:
    """Drop blank lines at the end of a file; in a file of one column they are empty fields and stay."""
    end = raw[-4:]
    return raw[:].rstrip(b"\r\n") + b"\n" if end.endswith((b"\n\n", b"\n\r\n")) else raw


def _header(raw: Buffer, shape: Shape, where: str) -> tuple[list[str], int, list[str]]:
    """Return the names, where the records start, and what was done about the names.

    Polars would rename duplicate names without a word.
    """
    start, quote = shape.start, shape.quote.encode()
    if not raw[start : start + _GLANCE].strip() and not raw[start:].strip():
        raise InputError(f"{where} is empty. It must hold a line of column names, then one line per record.")
    end = raw.find(b"\n", start)
    while end >= 0 and shape.quote != "none" and raw[start:end].count(quote) % 2:
        end = raw.find(b"\n", end + 1)
    body = len(raw) if end < 0 else end + 1
    header = io.StringIO(raw[start:body].decode("utf-8"), newline="")
    quoting = csv.QUOTE_NONE if shape.quote == "none" else csv.QUOTE_MINIMAL
    mark = None if shape.quote == "none" else shape.quote
    lines = list(csv.reader(header, delimiter=shape.separator, quotechar=mark, quoting=quoting))
    unnamed = _name_rows(lines)
    _check_header(lines, where)
    if body == len(raw):
        raise InputError(f"{where} holds column names but no records.")
    return lines[0], body, unnamed


ROWS = "row"


def _name_rows(lines: list[list[str]]) -> list[str]:
    """Name a first column without a name, in which R and pandas write the names or numbers of the rows."""
    names = lines[0] if lines else []
    if len(names) < 2 or names[0] or ROWS in names:
        return []
    names[0] = ROWS
    return [f"the first column has no name and is called {ROWS!r}"]


def _check_header(lines: list[list[str]], where: str) -> None:
    if len(lines) != 1:
        raise InputError(f"{where}: lines end in a carriage return alone. Save the file with usual line ends.")
    names = lines[0]
    if not names:
        raise InputError(f"{where}: the first line is empty. It must hold the column names.")
    if any("\0" in name for name in names):
        raise _not_text(where, "the header line")
    for position, name in enumerate(names, start=1):
        if not name.strip():
            raise InputError(f"{where}: column {position} has no name. Give each column a name in the first line.")
        if names.index(name) != position - 1:
            raise InputError(f"{where}: the column name {name!r} occurs more than once. Give each its own name.")


def _not_text(where: str, place: str) -> InputError:
    return InputError(f"{where} is not text: see {place}. Save it as plain CSV in UTF-8, or say its encoding.")


def _table(text: _Text, given: Mapping[str, Variable]) -> pl.DataFrame:
    """Read all columns as text; those with known categories straight into their Enum, which is faster."""
    strings: dict[str, pl.DataType] = {name: pl.String() for name in text.names}
    enums = {
        name: pl.Enum(cast("list[str]", list(given[name].values)))
        for name in text.names
        if wants_in_file(given.get(name)) == "text" and given[name].categories and "" not in given[name].values
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
            separator=text.shape.separator,
            quote_char=None if text.shape.quote == "none" else text.shape.quote,
        )
    except (Exception, pl.exceptions.PanicException) as error:
        if isinstance(text.source, Path):
            refuse_for_the_system(text.source, error)
        return None


def _diagnose(text: _Text) -> pl.DataFrame:
    """Say why polars could not read the file."""
    check_widths(text.raw, text.body, len(text.names), text.shape, text.where)
    raise InputError(f"{text.where} cannot be read as delimited text. Save it again as plain CSV in UTF-8.")
