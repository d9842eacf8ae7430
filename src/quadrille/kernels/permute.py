"""Choosing records uniformly, block by block, and permuting them so that none stays; cost as records chosen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quadrille.kernels.compile import kernel
from quadrille.kernels.pool import Dice, Ints
from quadrille.kernels.words import below


@kernel
def choose(order: NDArray[np.int32], start: Ints, count: Ints, dice: Dice, chosen: Ints) -> None:
    """Choose count[b] of the records of each block, one block after the other, uniformly and in random order.

    Block b owns the places start[b] to start[b+1] of `order`, which is left as it was found.
    """
    done = 0
    for b in range(len(count)):
        low, size = start[b], start[b + 1] - start[b]
        for i in range(count[b]):
            chosen[done + i] = i + below(size - i, dice)
            place, other = low + i, low + chosen[done + i]
            order[place], order[other] = order[other], order[place]
        for i in range(count[b] - 1, -1, -1):
            place, other = low + i, low + chosen[done + i]
            chosen[done + i] = order[place]
            order[place], order[other] = order[other], order[place]
        done += count[b]


@kernel
def derange(places: Ints, count: Ints, dice: Dice) -> None:
    """Permute the places of each class uniformly among the permutations that leave none where it is.

    Uniform permutations are drawn until one has no fixed point, and given up at the first fixed point. A shuffle is
    uniform whatever it starts from, so a new attempt goes on from the order that the last one left.
    """
    low = 0
    for c in range(len(count)):
        size, i = count[c], count[c] - 1
        for k in range(size):
            places[low + k] = low + k
        while size > 1 and i >= 0 and dice.cursor[1] == 0:
            j = below(i + 1, dice)
            places[low + i], places[low + j] = places[low + j], places[low + i]
            i = size - 1 if places[low + i] == low + i else i - 1
        low += size
