"""Seeds that look secret and are not: patterns that an operating system all but never draws."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import pairwise
from math import comb

_FEWEST_DIGITS = 9
_FEWEST_BYTES = 16
_EQUAL_STEPS = 14
_LARGEST_LAG = 32
_CHANCE = 1e-15
_PRINTABLE = range(0x20, 0x7F)


def pattern_of(seed: str) -> str:
    """Say which pattern a seed of 64 hexadecimal digits has; nothing when it has none.

    Of 64 random digits, the chance of each pattern is at most

    - fewer than 9 different digits: C(16, 8) (8/16)^64, that is 7e-16;
    - fewer than 16 different bytes among the 32: C(256, 15) (15/256)^32, that is 2.5e-16;
    - no letter among the digits: (10/16)^64, that is 9e-14;
    - 32 printable characters, which are a text written as hexadecimal digits: (95/256)^32, that is 2e-14;
    - 15 digits in a row with one and the same step from digit to digit, modulo 16, as in 000... or 0123...:
      50 places times 16 steps times 16^-14, that is 1e-14;
    - one and the same difference, modulo 16, between too many of the digits that are 1, 2, ... or 32 places apart (a
      difference of 0 is a period), or too many of the digits the same when read from the end. The differences at one
      distance are independent and uniform, so their number has a binomial distribution; it is too large where the
      chance is at most 1e-15 for all 16 differences together. 33 such tests: 3.3e-14.

    Together less than 1.6e-13: of six million million seeds from the operating system, about one is refused.

    >>> from quadrille.io.seed_patterns import pattern_of
    >>> pattern_of("0123456789abcdef" * 4)
    'fewer than 16 different bytes'
    >>> pattern_of("8d0f6c2b91e47a53d85b1f09c7e2643aa1f7309bde58c4621b0e97f4538acd26")
    ''
    """
    digits, raw = [int(digit, 16) for digit in seed], bytes.fromhex(seed)
    if len(set(digits)) < _FEWEST_DIGITS:
        return f"fewer than {_FEWEST_DIGITS} different digits"
    if len(set(raw)) < _FEWEST_BYTES:
        return f"fewer than {_FEWEST_BYTES} different bytes"
    if seed.isdecimal():
        return "no letter among the digits"
    if all(byte in _PRINTABLE for byte in raw):
        return "a text written as hexadecimal digits"
    if _longest_run(digits) >= _EQUAL_STEPS:
        return f"a run of {_EQUAL_STEPS + 1} digits or more"
    return _repetition(digits)


def _longest_run(digits: list[int]) -> int:
    """Return the length of the longest run of equal steps."""
    longest = length = 0
    previous = None
    for a, b in pairwise(digits):
        step = (b - a) % 16
        length = length + 1 if step == previous else 1
        longest, previous = max(longest, length), step
    return longest


def _repetition(digits: list[int]) -> str:
    """Say at which distance digits differ by the same too often."""
    for lag in range(1, _LARGEST_LAG + 1):
        steps = Counter((b - a) % 16 for a, b in zip(digits, digits[lag:], strict=False))
        if max(steps.values()) >= too_many(len(digits) - lag):
            return f"digits that repeat, or go on alike, every {lag} places"
    half = len(digits) // 2
    mirrored = sum(a == b for a, b in zip(digits[:half], reversed(digits), strict=False))
    return "digits that read the same from the end" if mirrored >= too_many(half) else ""


@cache
def too_many(places: int) -> int:
    """Return the least number of equal differences, of so many, that chance alone all but excludes."""
    tail, least = 0.0, places + 1
    while 16 * (tail := tail + comb(places, least - 1) * 15 ** (places - least + 1) / 16**places) <= _CHANCE:
        least -= 1
    return least
