"""Uniform whole numbers and orders from random words. When the words run out the result means nothing."""

from __future__ import annotations

import numpy as np

from quadrille.kernels.compile import kernel, step
from quadrille.kernels.pool import Dice, Ints, Whole


@step
def below(n: Whole, dice: Dice) -> Whole:
    """Return a uniform number in 0..n-1, for n up to 2^31, by multiplication with exact rejection."""
    words, cursor = dice
    while cursor[0] < len(words):
        product = np.int64(words[cursor[0]]) * np.int64(n)
        cursor[0] += 1
        low = product & np.int64(0xFFFFFFFF)
        if low >= n or low >= np.int64(0x100000000) % n:
            return product >> 32
    cursor[1] = 1
    return np.int64(0)


@kernel
def below_large(n: Whole, dice: Dice) -> Whole:
    """Return a uniform number in 0..n-1, for n up to 2^62, from two words with exact rejection."""
    words, cursor = dice
    whole = np.int64(1) << 62
    while cursor[0] + 1 < len(words):
        value = (np.int64(words[cursor[0]] >> 1) << 31) | np.int64(words[cursor[0] + 1] >> 1)
        cursor[0] += 2
        if value < whole - whole % n:
            return value % n
    cursor[1] = 1
    return np.int64(0)


@kernel
def shuffle(items: Ints, dice: Dice) -> None:
    """Put items in uniformly random order."""
    for i in range(len(items) - 1, 0, -1):
        j = below(i + 1, dice)
        items[i], items[j] = items[j], items[i]
