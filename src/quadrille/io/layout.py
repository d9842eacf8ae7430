"""How a file is laid out: encoding, separator, quotation mark, decimal mark and dates of text; the sheet of a workbook.

Each is detected, or said by the user. What could be read in two ways is refused with what to say: a wrong guess would
change the data without a word.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from quadrille.errors import InputError, ParameterError, bad_parameter, unknown_name
from quadrille.io.raw import Buffer

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_WORDS = {
    "separator": {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"},
    "decimal": {"point": ".", "comma": ","},
    "quote": {"double": '"', "single": "'"},
}
_MUST = {
    "separator": "one of , ; | tab",
    "decimal": "a point or a comma",
    "quote": "\" or ' or none",
    "dates": "dmy, mdy or ymd",
}
_ALLOWED = {
    "separator": tuple(SEPARATORS),
    "decimal": (".", ","),
    "quote": ('"', "'", "none"),
    "dates": ("dmy", "mdy", "ymd"),
}


@dataclass(frozen=True)
class Layout:
    """What the user says about how a file is laid out; None is detected."""

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    quote: str | None = None
    dates: str | None = None
    sheet: str | int | None = None

    def __post_init__(self) -> None:
        for name, allowed in _ALLOWED.items():
            value = getattr(self, name)
            plain = _WORDS.get(name, {}).get(str(value), value)
            if plain is not None and plain not in allowed:
                raise bad_parameter("the layout", name, _MUST[name], value)
            object.__setattr__(self, name, plain)
        if self.encoding is not None:
            _check_encoding(self.encoding)

    @classmethod
    def parse(cls, words: str) -> Layout:
        """Read the words of the option --layout.

        >>> from quadrille.io.layout import Layout
        >>> Layout.parse("separator=; decimal=, encoding=latin-1")
        Layout(separator=';', decimal=',', encoding='latin-1', quote=None, dates=None, sheet=None)
        """
        found: dict[str, str] = {}
        for word in words.split():
            name, mark, value = word.partition("=")
            if not mark or not value or name in found:
                example = "separator=; decimal=, encoding=latin-1"
                raise ParameterError(f"--layout takes settings such as {example}, each once, with blanks between.")
            if name not in asdict(cls()):
                raise unknown_name("setting", name, asdict(cls()), where="--layout")
            found[name] = value
        sheet = found.pop("sheet", None)
        return cls(**found, sheet=int(sheet) if sheet is not None and sheet.isdigit() else sheet)

    def __bool__(self) -> bool:
        return self != Layout()


def _check_encoding(name: str) -> None:
    try:
        known = codecs.lookup(name)
        "a".encode(known.name).decode(known.name)  # a codec that turns bytes into bytes is no encoding of text
    except (LookupError, ValueError, TypeError):
        raise bad_parameter("the layout", "encoding", "the name of one, such as utf-8, utf-16, cp1252", name) from None


def say(name: str, *values: str) -> str:
    """Say how to decide what a file leaves open, on the command line and in Python."""
    options = " or ".join(f'--layout "{name}={value}"' for value in values)
    return f"Say which: {options}; in Python {name}=."


# --- encoding ---

_UTF_8, _UTF_16 = codecs.BOM_UTF8, (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CHUNK = 1 << 24
_GLANCE = 4096
_WESTERN = "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜßàáâãäåæçèéêëìíîïñòóôõöøùúûüÿŠšŽžŒœŸ"
_SIGNS = "€…‘’“”–—§°«» \N{NO-BREAK SPACE}"
_ELSEWHERE = (("øØ", "èìòùÈÌÒÙ"), ("õÕ", "ûÛ"))
"""Letters that occur together in no western language, but stand for those of Czech and Hungarian in cp1250."""


def in_utf8(raw: Buffer, encoding: str | None, where: str) -> tuple[Buffer, int, str]:
    """Return a file as UTF-8, where its text starts, and the name of the encoding that it had."""
    name = encoding or _marked(raw)
    if name is None or codecs.lookup(name).name in ("utf-8", "utf-8-sig"):
        fault = _fault(raw)
        if fault is None:
            return raw, len(_UTF_8) if raw[: len(_UTF_8)] == _UTF_8 else 0, "utf-8"
        if name is not None:
            raise InputError(f"{where} is not UTF-8 text: see line {_line(raw, fault):,}. Say another encoding.")
        name = _single_byte(raw, fault, where)
    try:
        text = raw[:].decode(name)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{where} is not text in the encoding {name}: see line {_line(raw, error.start):,}. Say another encoding."
        ) from None
    return text.removeprefix("\ufeff").encode("utf-8", "surrogatepass"), 0, name


def _marked(raw: Buffer) -> str | None:
    """Return UTF-16 where a mark at the start, or a zero in every second byte of it, says so."""
    if raw[:2] in _UTF_16 and raw[:4] != codecs.BOM_UTF32_LE:
        return "utf-16"
    start = raw[: min(len(raw), _GLANCE) // 2 * 2]
    zeros = start[::2].count(0), start[1::2].count(0)
    if min(zeros) == 0 and 4 * max(zeros) > len(start):
        return "utf-16-le" if zeros[1] else "utf-16-be"
    return None


def _fault(raw: Buffer) -> int | None:
    """Return the first position at which a file is not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(raw), _CHUNK):
        pending = len(decoder.getstate()[0])
        try:
            decoder.decode(raw[start : start + _CHUNK], final=start + _CHUNK >= len(raw))
        except UnicodeDecodeError as error:
            return start - pending + error.start
    return None


def _single_byte(raw: Buffer, fault: int, where: str) -> str:
    """Return cp1252, of which Latin-1 is a part, where every letter beyond ASCII is one of western Europe.

    One such letter or two stand beside ASCII letters there; other scripts are made of nothing else.
    """
    text = raw[:].decode("cp1252", "replace")
    beyond = set(text) - set(map(chr, range(128)))
    runs = re.search(f"[{_WESTERN}]{{4}}", text)
    odd = any(beyond & set(one) and beyond & set(other) for one, other in _ELSEWHERE)
    if runs or odd or not beyond <= set(_WESTERN + _SIGNS):
        raise InputError(
            f"{where} is not UTF-8 text: see line {_line(raw, fault):,}. Its letters do not tell the encoding. "
            + say("encoding", "cp1252", "cp1250", "cp1251")
        )
    return "cp1252"


def _line(raw: Buffer, at: int) -> int:
    return raw[:at].count(b"\n") + 1


# --- separator and quotation mark ---

_SAMPLE = 1 << 16
_DECLARED = re.compile(r'^"?sep=(.)"?\r?\n', re.IGNORECASE)


@dataclass(frozen=True)
class Shape:
    """How the fields of a file are told apart, and where its header starts."""

    separator: str
    quote: str
    start: int


def shape_of(raw: Buffer, start: int, usual: str, said: Layout, where: str) -> Shape:
    """Detect separator and quotation mark from the first lines; `usual` is the separator that the name promises."""
    sample = raw[start : start + _SAMPLE].decode("utf-8", "ignore")
    whole = start + _SAMPLE >= len(raw)
    declared = _DECLARED.match(sample)
    if declared and declared[1] in SEPARATORS:
        # The first line is a word of Excel to itself.
        start += len(declared[0])
        sample = sample[len(declared[0]) :]
        usual, said = declared[1], said if said.separator else Layout(**{**asdict(said), "separator": declared[1]})
    quote = said.quote or _quote(raw, sample, whole)
    separator = said.separator or _separator(sample, quote, usual, where, whole=whole)
    return Shape(separator, quote, start)


def _rows(sample: str, separator: str, quote: str, *, whole: bool) -> list[list[str]]:
    """Return the rows of a sample, without the last one where it may be cut off."""
    quoting = csv.QUOTE_NONE if quote == "none" else csv.QUOTE_MINIMAL
    mark = None if quote == "none" else quote
    try:
        rows = list(csv.reader(io.StringIO(sample, newline=""), delimiter=separator, quotechar=mark, quoting=quoting))
    except csv.Error:
        return []
    return rows if whole else rows[:-1]


def _quote(raw: Buffer, sample: str, whole: bool) -> str:
    """Return a single quote where it encloses all names or all values of some column, and no double one occurs."""
    if "'" not in sample or raw.find(b'"') >= 0:
        return '"'
    for separator in SEPARATORS:
        rows = _as_written(sample, separator)
        rows = rows if whole else rows[:-1]
        if _even(rows) and any(map(_enclosed, (rows[0], *zip(*rows[1:], strict=False)))):
            return "'"
    return '"'


def _as_written(sample: str, separator: str) -> list[list[str]]:
    """Return the rows with their single quotes."""
    field = re.compile(rf"('(?:[^']|'')*'(?=[{re.escape(separator)}\r\n]|$)|[^{re.escape(separator)}\r\n]*)(.|\r?\n|$)")
    rows: list[list[str]] = [[]]
    for value, end in field.findall(sample):
        rows[-1].append(value)
        if end != separator:
            rows.append([])
    return [row for row in rows if any(row)]


def _enclosed(values: tuple[str, ...] | list[str]) -> bool:
    present = [value for value in values if value]
    return bool(present) and all(len(v) > 1 and v.startswith("'") and v.endswith("'") for v in present)


def _separator(sample: str, quote: str, usual: str, where: str, *, whole: bool) -> str:
    """Return the one separator that the header holds and every line holds as often."""
    tables = {mark: _rows(sample, mark, quote, whole=whole) for mark in SEPARATORS}
    named = [mark for mark, rows in tables.items() if rows and len(rows[0]) > 1]
    even = [mark for mark in named if _even(tables[mark])]
    if len(even) == 1:
        return even[0]
    if len(even) > 1:
        words = " or ".join(SEPARATORS[mark] for mark in even)
        names = ["tab" if mark == "\t" else mark for mark in even]
        raise InputError(f"{where} could be separated by {words}. {say('separator', *names)}")
    if usual in named or not named:
        return usual
    # Rows of the wrong width are refused by their number later; a mark that no record has is part of a name.
    used = [mark for mark in named if any(len(row) > 1 for row in tables[mark][1:])]
    return used[0] if len(used) == 1 else usual


def _even(rows: list[list[str]]) -> bool:
    return len(rows) > 1 and all(len(row) == len(rows[0]) for row in rows[1:] if row)


# --- what is told ---

_QUOTES = {"'": "single quotes", "none": "no quotation marks"}
_DATES = {"dmy": "day first", "mdy": "month first", "ymd": "year first"}


def words_of(found: Mapping[str, str]) -> list[str]:
    """Say what is not the usual: UTF-8, commas, double quotes, points."""
    lines: list[str] = []
    if found["separator"] != ",":
        lines.append(f"fields separated by {SEPARATORS[found['separator']]}")
    if found["encoding"] != "utf-8":
        lines.append(f"encoding {found['encoding']}")
    if found["quote"] != '"':
        lines.append(_QUOTES[found["quote"]])
    if found["decimal"] != ".":
        lines.append("decimal comma")
    if found["dates"]:
        lines.append(f"dates with the {_DATES[found['dates']]}")
    return lines
