"""The shape of CSV text, checked over its bytes: quotation marks that close, rows as wide as the header."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quadrille.errors import InputError
from quadrille.io.files import Buffer

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
