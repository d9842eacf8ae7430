"""Reading a TOML file: what cannot be read, and what is not TOML, is told with its place."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from quadrille import texts
from quadrille.errors import InputError, unknown_name

MOST_BYTES = 1_000_000
"""A larger file is something else: jobs, designs and policies are written by hand."""

_AT = re.compile(r"(.*) \(at (?:(line \d+, column \d+)|end of document)\)", re.DOTALL)


def read_toml(path: Path, what: str) -> dict[str, object]:
    """Read a file of TOML; `what` it is goes into the message, as in "the design"."""
    return parse_toml(read_bytes(path, what), path, what)


def read_bytes(path: Path, what: str) -> bytes:
    """Read a file, once; one of more than `MOST_BYTES` is refused without reading on."""
    return texts.read_bytes(path, what, most=MOST_BYTES)


def parse_toml(raw: bytes, path: Path, what: str) -> dict[str, object]:
    """Turn what was read into its tables; a byte order mark, which Windows editors put first, is skipped."""
    try:
        text = raw.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise InputError(f"Cannot read {what} {str(path)!r}: not UTF-8 text. Check the path.") from None
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
