"""The only source of random numbers: a keyed cipher stream, the same everywhere, unpredictable without the key.

A stream is AES-256 in counter mode. Its key is a keyed hash of the recipe, with the seed as hash key, so two
recipes that differ in anything have unrelated streams. `sub` derives an independent named stream.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from operator import index
from typing import TYPE_CHECKING, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import NDArray

from quadrille.errors import bad_parameter

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import CipherContext

Seed = int | str | None
Words = NDArray[np.uint32]
T = TypeVar("T")

SECRET_BITS = 256
_HEX_DIGITS = SECRET_BITS // 4


def fresh_seed() -> str:
    """Return 256 secret bits from the operating system, as 64 hexadecimal digits."""
    return secrets.token_hex(SECRET_BITS // 8)


def checked_seed(seed: object, owner: str) -> int | str:
    """Return a usable seed; None becomes a fresh secret one."""
    if seed is None:
        return fresh_seed()
    if isinstance(seed, str) and len(seed) == _HEX_DIGITS and set(seed) <= set("0123456789abcdef"):
        return seed
    if type(seed) is int and seed >= 0:  # the protocol below takes its time
        return seed
    if isinstance(seed, SupportsIndex) and not isinstance(seed, bool) and index(seed) >= 0:
        return index(seed)
    must = f"a whole number of 0 or more, or {_HEX_DIGITS} hexadecimal digits"
    raise bad_parameter(owner, "seed", must, f"a text of {len(seed)} characters" if isinstance(seed, str) else seed)


def is_secret(seed: Seed) -> bool:
    """Tell whether a seed is a 256-bit secret rather than a small number for tests and papers."""
    return isinstance(seed, str)


@dataclass(frozen=True)
class Stream:
    """A reproducible, unpredictable sequence of 32-bit words."""

    key: bytes = field(repr=False)

    @classmethod
    def of(cls, seed: int | str, identity: str) -> Stream:
        """Make the stream of a recipe, given its seed and its canonical text without the seed."""
        secret = bytes.fromhex(seed) if isinstance(seed, str) else _digest(b"number", b"", str(seed).encode())
        return cls(_digest(b"recipe", secret, identity.encode()))

    def sub(self, name: str) -> Stream:
        """Return the independent stream of that name."""
        return Stream(_digest(b"sub", self.key, name.encode()))

    def words(self, count: int, start: int = 0) -> Words:
        """Return `count` words from word number `start` on: always part of one and the same sequence.

        >>> from quadrille.randomness import Stream
        >>> stream = Stream.of(7, "")
        >>> stream.words(2, start=10**9 + 1).tolist() == stream.words(3, start=10**9).tolist()[1:]
        True
        """
        block, skipped = divmod(start, _WORDS_PER_BLOCK)
        drawn = _start_cipher(block)(self.key).update(bytes(4 * (skipped + count)))
        return np.frombuffer(drawn, dtype="<u4")[skipped:].astype(np.uint32, copy=False)

    def blocks(self, size: int) -> Iterator[Words]:
        """Yield the same sequence in blocks of `size` words, without end: what is read needs no memory.

        >>> from quadrille.randomness import Stream
        >>> stream = Stream.of(7, "")
        >>> blocks = stream.blocks(2)
        >>> [*next(blocks), *next(blocks)] == stream.words(4).tolist()
        True
        """
        cipher, zeros = _start_cipher()(self.key), bytes(4 * size)
        while True:
            yield np.frombuffer(cipher.update(zeros), dtype="<u4").astype(np.uint32, copy=False)


_WORDS_PER_BLOCK = 4
"""The cipher makes 16 bytes at a time."""


@lru_cache(maxsize=16)
def _start_cipher(block: int = 0) -> Callable[[bytes], CipherContext]:
    """Return what starts AES-256 in counter mode with a key, at a block; the library is loaded when first needed."""
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import AES
    from cryptography.hazmat.primitives.ciphers.modes import CTR

    counter = CTR(block.to_bytes(16, "big"))
    return lambda key: Cipher(AES(key), counter).encryptor()


def _digest(purpose: bytes, key: bytes, text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=32, key=key, person=b"quadrille " + purpose).digest()


def draw_until_enough(attempt: Callable[[Words], T | None], stream: Stream, guess: int) -> T:
    """Call `attempt` with words, from the start with twice as many each time it returns None."""
    count = max(64, guess)
    while (result := attempt(stream.words(count))) is None:
        count *= 2
    return result


class Chooser:
    """Uniform whole numbers, one at a time, for the rare steps that are not compiled."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._words = stream.words(256)
        self._next = 0

    def words(self, count: int) -> Words:
        """Return the next words."""
        while self._next + count > len(self._words):
            self._words = self._stream.words(2 * len(self._words))
        self._next += count
        return self._words[self._next - count : self._next]

    def below(self, n: int) -> int:
        """Return a uniform number in 0..n-1, for n up to 2^64, by exact rejection."""
        count, whole = (1, 1 << 32) if n <= 1 << 32 else (2, 1 << 64)
        while True:
            value = int.from_bytes(self.words(count).astype("<u4").tobytes(), "little")
            if value < whole - whole % n:
                return value % n

    def chance(self, p: float) -> bool:
        """Return true with this chance, to within 2^-32."""
        return self.below(1 << 32) < round(p * (1 << 32))
