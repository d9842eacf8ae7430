"""Texts from outside: read with care, and shown so that they can neither steer a terminal nor break a line."""

from __future__ import annotations

import re
import stat
from math import log10
from pathlib import Path

from quadrille.errors import InputError

MOST_BYTES = 100_000_000
"""No codebook, job, policy, recipe or note is larger; what is larger is another file, named by mistake."""

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def read_text(path: str | Path, what: str) -> str:
    """Read a file that a person wrote, UTF-8; the mark that some editors put at its start is no part of it.

    What it is goes into the message, as in "the codebook".
    """
    try:
        text = read_bytes(path, what).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _unreadable(path, what, "not UTF-8 text") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


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


def _unreadable(path: str | Path, what: str, reason: str) -> InputError:
    return InputError(f"Cannot read {what} {str(path)!r}: {reason}. Check the path.")


def shown(text: str, *, keep: str = "") -> str:
    r"""Escape the control characters of a text, but for those in `keep`; names of columns can hold any.

    Signs that turn the direction of writing, and separators of lines, count among them.

    >>> from quadrille.texts import shown
    >>> print(shown("Age\n\x1b[31m"))
    Age\n\x1b[31m
    """
    return _CONTROL.sub(lambda found: found[0] if found[0] in keep else _escaped(found[0]), text)


def _escaped(sign: str) -> str:
    return sign.encode("unicode_escape").decode()


def large(value: int) -> str:
    """Write a count: in full below a million millions, as a power of ten where no float holds it.

    >>> from quadrille.texts import large
    >>> large(2**20), large(2**50), large(2**20_000)
    ('1,048,576', '1.13e+15', 'about 10^6021')
    """
    if value < 10**12:
        return f"{value:,}"
    power = log10(value)
    return f"{float(value):.2e}" if power < 300 else f"about 10^{power:.0f}"
