"""Damaging an input: bytes turned, cut, doubled, joined with another input, words and numbers put in that hurt."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

MOST_BYTES = 1 << 17
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
_WORD = re.compile(rb"[A-Za-z_]{2,}")
NUMBERS = (
    *(b"0", b"-0", b"-1", b"1", b"2", b"1.5", b"-7.25", b"0.5", b"007", b"1e3", b"1e309", b"-1e309", b"1e-320"),
    *(b"nan", b"inf", b"-inf", b"true", b"null", b'""', b"[]", b"{}", b"[[]]"),
    *(str(n).encode() for n in (2**31, 2**53 + 1, 2**63, -(2**63) - 1, 2**64, 10**30, 10**400)),
)
SIGNS = (
    *(b'"', b"'", b"`", b",", b";", b"\t", b"\n", b"\r", b"\r\n", b"\0", b" ", b"(", b")", b"[", b"]", b"{", b"}"),
    *(b"=", b"!=", b"<=", b">", b"&", b"|", b"~", b"+", b"*", b":", b"#", b"\\", b"/", b"..", b"--", b"%s", b"{0}"),
    *(
        "é".encode(),
        "ß\u0301".encode(),
        "\u202e".encode(),
        "\u2028".encode(),
        "😀".encode(),
        b"\xff\xfe",
        b"\xed\xa0\x80",
    ),
    *(b"\xef\xbb\xbf", b"\x1b[31m", b"\x7f", b"\xc3", b"\x00\x00\x00\x00", b"\xff\xff\xff\xff", b"\x80"),
)


def mutate(seeds: Sequence[bytes], random: Random, words: Sequence[bytes] = ()) -> bytes:
    """Return one of the seeds, damaged in one to six ways."""
    raw = bytes(random.choice(seeds))
    for _ in range(random.choice((1, 1, 1, 2, 3, 6))):
        raw = random.choice(_WAYS)(raw, random, seeds, words)
    return raw[:MOST_BYTES]


def _place(raw: bytes, random: Random) -> int:
    return random.randint(0, len(raw))


def _span(raw: bytes, random: Random) -> tuple[int, int]:
    start = _place(raw, random)
    return start, min(len(raw), start + random.choice((1, 1, 2, 4, 8, 40, 400)))


def _turn(raw: bytes, random: Random, _seeds: Sequence[bytes], _words: Sequence[bytes]) -> bytes:
    at = _place(raw, random)
    new = bytes([random.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF, random.randint(0, 255)))])
    return raw[:at] + new + raw[at + 1 :]


def _put(raw: bytes, random: Random, _seeds: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    at = _place(raw, random)
    new = random.choice((random.choice(SIGNS), random.choice(NUMBERS), random.choice(words or SIGNS)))
    return raw[:at] + new + raw[at:]


def _over(raw: bytes, random: Random, _seeds: Sequence[bytes], _words: Sequence[bytes]) -> bytes:
    """Overwrite without moving what follows, as a damaged binary file has it."""
    at = _place(raw, random)
    new = random.choice((random.choice(SIGNS), random.randbytes(random.choice((1, 2, 4, 8)))))
    return raw[:at] + new + raw[at + len(new) :]


def _cut(raw: bytes, random: Random, _seeds: Sequence[bytes], _words: Sequence[bytes]) -> bytes:
    start, end = _span(raw, random)
    return raw[:start] + raw[end:]


def _end(raw: bytes, random: Random, _seeds: Sequence[bytes], _words: Sequence[bytes]) -> bytes:
    return raw[: _place(raw, random)]


def _double(raw: bytes, random: Random, _seeds: Sequence[bytes], _words: Sequence[bytes]) -> bytes:
    start, end = _span(raw, random)
    return raw[:end] + raw[start:end] * random.choice((1, 1, 2, 40)) + raw[end:]


def _join(raw: bytes, random: Random, seeds: Sequence[bytes], _words: Sequence[bytes]) -> bytes:
    other = random.choice(seeds)
    return raw[: _place(raw, random)] + other[_place(other, random) :]


def _line(raw: bytes, random: Random, seeds: Sequence[bytes], _words: Sequence[bytes]) -> bytes:
    """Put a line of another input somewhere."""
    lines, other = raw.split(b"\n"), random.choice(seeds).split(b"\n")
    lines.insert(random.randint(0, len(lines)), random.choice(other))
    return b"\n".join(lines)


def _shuffle(raw: bytes, random: Random, _seeds: Sequence[bytes], _words: Sequence[bytes]) -> bytes:
    lines = raw.split(b"\n")
    random.shuffle(lines)
    return b"\n".join(lines)


def _replace(pattern: re.Pattern[bytes], raw: bytes, new: bytes, random: Random) -> bytes:
    found = list(pattern.finditer(raw))
    if not found:
        return raw + new
    match = random.choice(found)
    return raw[: match.start()] + new + raw[match.end() :]


def _number(raw: bytes, random: Random, _seeds: Sequence[bytes], _words: Sequence[bytes]) -> bytes:
    return _replace(_NUMBER, raw, random.choice(NUMBERS), random)


def _word(raw: bytes, random: Random, _seeds: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    return _replace(_WORD, raw, random.choice(words or SIGNS), random)


_WAYS: tuple[Callable[[bytes, Random, Sequence[bytes], Sequence[bytes]], bytes], ...] = (
    *(_turn, _put, _put, _over, _over, _cut, _end, _double, _join, _line, _shuffle, _number, _number, _word, _word),
)
