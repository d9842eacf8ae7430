"""Text in and out: files read with clear errors, TOML with the place of a fault, names and objects fit to be shown."""

from __future__ import annotations

import json
import re
import stat
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, log10
from pathlib import Path
from typing import NoReturn, cast

from quadrille.errors import InputError, Place, unknown_name

MOST_BYTES = 100_000_000
"""No codebook, job, policy, recipe or note is larger; what is larger is another file, named by mistake."""


class Shown:
    """Something to look at: a line in a terminal, a page in a notebook.

    Neither holds a seed, the rows of a plan or values of records. What they say is worded in `present`, which is
    loaded when somebody looks.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        from quadrille.present.notebook import line

        return line(self)

    def _repr_html_(self) -> str:
        from quadrille.present.notebook import page

        return page(self)


UNSEEN = "\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f"
"""Signs that nobody sees and that change what is seen, as a part of a pattern; joiners are not among them."""
_CONTROL = re.compile(f"[\x00-\x1f{UNSEEN}]")


def read_text(path: str | Path, what: str) -> str:
    """Read a file that a person wrote, UTF-8; the mark that some editors put at its start is no part of it.

    What it is goes into the message, as in "the codebook".
    """
    return _decoded(read_bytes(path, what), path, what)


def read_bytes(path: str | Path, what: str, *, most: int = MOST_BYTES) -> bytes:
    """Read a file, once; devices and pipes are refused, and one of more than `most` bytes without reading on."""
    try:
        mode = Path(path).stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise _unreadable(path, what, "it is a device or a pipe, not a file")
        with Path(path).open("rb") as file:
            contents = file.read(most + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not the name of a file"
        raise _unreadable(path, what, reason or type(error).__name__) from None
    if len(contents) > most:
        raise _unreadable(path, what, f"it has more than {most:,} bytes")
    return contents


def _decoded(raw: bytes, path: str | Path, what: str) -> str:
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise _unreadable(path, what, "not UTF-8 text") from None


def _unreadable(path: str | Path, what: str, reason: str) -> InputError:
    return InputError(f"Cannot read {what} {str(path)!r}: {reason}. Check the path.")


def shown(text: str, *, keep: str = "") -> str:
    r"""Escape the control characters of a text, but for those in `keep`; names of columns can hold any.

    Signs that turn the direction of writing, and separators of lines, count among them.

    >>> from quadrille.text import shown
    >>> print(shown("Age\n\x1b[31m"))
    Age\n\x1b[31m
    """
    return _CONTROL.sub(lambda found: found[0] if found[0] in keep else _escaped(found[0]), text)


def _escaped(sign: str) -> str:
    return sign.encode("unicode_escape").decode()


def percent(value: float, digits: int = 4) -> str:
    """Write a share as per cent, wherever one is written; "0 %" is none and "100 %" is all, never nearly.

    >>> from quadrille.text import percent
    >>> percent(0.0150076), percent(0.99999)
    ('1.501 %', '99.999 %')
    """
    while (text := f"{100 * value:.{digits}g}") == "100" and value != 1 and digits < 17:
        digits += 1
    return f"{text} %"


def large(value: int) -> str:
    """Write a count: in full below a million millions, as a power of ten where no float holds it.

    >>> from quadrille.text import large
    >>> large(2**20), large(2**50), large(2**20_000)
    ('1,048,576', '1.13e+15', 'about 10^6021')
    """
    if value < 10**12:
        return f"{value:,}"
    power = log10(value)
    return f"{float(value):.2e}" if power < 300 else f"about 10^{power:.0f}"


MOST_TOML_BYTES = 1_000_000
"""A larger file is something else: jobs, designs and policies are written by hand."""

_AT = re.compile(r"(.*) \(at (?:(line \d+, column \d+)|end of document)\)", re.DOTALL)


def read_toml(path: Path, what: str) -> dict[str, object]:
    """Read a file of TOML; `what` it is goes into the message, as in "the design"."""
    return parse_toml(read_toml_bytes(path, what), path, what)


def read_toml_bytes(path: Path, what: str) -> bytes:
    """Read a file, once; one of more than `MOST_BYTES` is refused without reading on."""
    return read_bytes(path, what, most=MOST_TOML_BYTES)


def parse_toml(raw: bytes, path: Path, what: str) -> dict[str, object]:
    """Turn what was read into its tables; a byte order mark, which Windows editors put first, is skipped."""
    text = _decoded(raw, path, what)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _AT.fullmatch(str(error))
        told, line = (found[1], found[2]) if found else (str(error), None)
        place = line or f"line {len(text.splitlines())}"
        raise InputError(f"{path}, {place}: this is not valid TOML: {told}.") from None
    except (ValueError, RecursionError):  # what TOML allows and Python does not
        raise InputError(f"{path}: this is not valid TOML: it nests too deeply or a number is too long.") from None


def know_sections(document: Mapping[str, object], known: Sequence[str], place: str) -> None:
    """Refuse sections that do not exist."""
    for name in document:
        if name not in known:
            raise InputError(f"{place}: {unknown_name('section', name, known)}")


@dataclass(frozen=True)
class Table:
    """The settings of one table and where it stands, as in "job.toml, [grid 2]"; lists are tuples.

    `nth` tells sections of one name apart, from 1 on; `inside` is the setting that holds this table.
    """

    file: str
    section: str
    values: Mapping[str, object]
    nth: int = 0
    inside: str = ""

    @property
    def place(self) -> str:
        """The place in words."""
        number = f" {self.nth}" if self.nth else ""
        return f"{self.file}, [{self.section}{number}]" + (f" {self.inside}" if self.inside else "")

    def refuse(self, text: str, key: str = "", index: int | None = None, *, lacks: str = "") -> NoReturn:
        """Say what is wrong, and where; `index` counts from 0, its place in the message from 1.

        `lacks` is the setting that is not there.
        """
        at = f" {key}" if key else ""
        error = InputError(f"{self.place}{at}{'' if index is None else f'[{index + 1}]'}: {text}")
        error.place = Place(self.file, self.section, self.nth, self.inside or key or lacks, text)
        raise error

    def demand(self, must: str, got: object, key: str, index: int | None = None) -> NoReturn:
        """Say what a setting must be and what it is."""
        self.refuse(f"must be {must}. Got {as_written(got)}.", key, index)

    def know(self, known: Sequence[str]) -> None:
        """Refuse settings that do not exist."""
        for key in self.values:
            if key not in known:
                self.refuse(str(unknown_name("setting", key, known)))

    def require(self, key: str, example: str) -> None:
        """Refuse the lack of a setting."""
        if key not in self.values:
            self.refuse(f"'{key}' is missing, as in {key} = {example}.", lacks=key)

    def text(self, key: str) -> str | None:
        """Return a text that is not empty, or None when it is absent."""
        value = self.values.get(key)
        if value is None or (isinstance(value, str) and value.strip() and "\0" not in value):
            return value
        return self.demand("a text that is not empty", value, key)

    def number(self, key: str, most: int) -> int | None:
        """Return a whole number of 1 or more, or None when it is absent."""
        value = self.values.get(key)
        if value is None or (isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most):
            return value
        return self.demand(f"a whole number from 1 to {most:,}", value, key)

    def texts(self, key: str, what: str, *, least: int = 0) -> tuple[str, ...]:
        """Return a list of distinct texts; an empty one when it is absent."""
        value = self.values.get(key, ())
        listed = cast("tuple[object, ...]", value if isinstance(value, tuple) else ())
        if not isinstance(value, tuple) or len(listed) < least:
            self.demand(f"a list of {what}" + (f", at least {least}" if least else ""), self.values[key], key)
        for index, each in enumerate(listed):
            if not isinstance(each, str) or not each.strip():
                self.demand("a text that is not empty", each, key, index)
            if each in listed[:index]:
                self.refuse(f"{as_written(each)} is listed twice. Name it once.", key, index)
        return cast("tuple[str, ...]", listed)


def frozen(value: object) -> object:
    """Turn lists into tuples, also inside of lists."""
    return tuple(map(frozen, cast("list[object]", value))) if isinstance(value, list) else value


def as_written(value: object) -> str:
    """Write a value as the job file has it, or nearly so."""
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return json.dumps(value, ensure_ascii=False, default=str)
