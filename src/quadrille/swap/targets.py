"""Drawing the targets: in each stratum certainties first, then systematically, with probability in proportion to size.

Sizes are whole numbers of ticks and the start is a whole number too, so that exactly as many are drawn as asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor

import numpy as np
from numpy.typing import NDArray

from quadrille.randomness import Chooser, Stream
from quadrille.swap.groups import Ints, sorted_by

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Frame:
    """What the targets are drawn from: strata, the share of targets in each, sizes in ticks, must and never."""

    stratum: Ints
    share: Floats
    size: Ints
    must: Flags
    never: Flags

    def asked(self, h: int, records: int) -> int:
        """Return the number of targets of a stratum with so many records that may be drawn; halves go up."""
        return floor(Fraction(str(float(self.share[h]))) * records + Fraction(1, 2))


@dataclass(frozen=True, eq=False)
class Targets:
    """The rows drawn, ascending, which of them were certain by size, and the counts of each stratum."""

    rows: Ints
    certain: Ints
    strata: list[dict[str, int]]


def draw_targets(frame: Frame, order: Ints, stream: Stream) -> Targets:
    """Draw the targets; `order` lists all records in the order of the systematic draw."""
    by_stratum, start = sorted_by(frame.stratum[order], len(frame.share))
    chooser = Chooser(stream)
    rows: list[Ints] = [np.flatnonzero(frame.must)]
    certain: list[Ints] = []
    strata: list[dict[str, int]] = []
    for h in range(len(frame.share)):
        members = order[by_stratum[start[h] : start[h + 1]]]
        open_to = members[~frame.never[members]]
        must = int(frame.must[open_to].sum())
        asked = frame.asked(h, len(open_to))
        free = open_to[~frame.must[open_to]]
        sure, drawn = draw_stratum(free, frame.size[free], max(0, asked - must), chooser)
        rows += [sure, drawn]
        certain.append(sure)
        strata.append(
            {
                "records": len(members),
                "never": len(members) - len(open_to),
                "asked": asked,
                "must": must,
                "certain": len(sure),
                "drawn": len(drawn),
            }
        )
    return Targets(np.sort(np.concatenate(rows)), np.sort(np.concatenate(certain)), strata)


def draw_stratum(rows: Ints, size: Ints, count: int, chooser: Chooser) -> tuple[Ints, Ints]:
    """Return the rows that are certain by their size, and those drawn systematically, in the order given."""
    count = min(count, len(rows))
    sure = _certainties(size, count)
    rest = np.ones(len(rows), dtype=bool)
    rest[sure] = False
    left = count - len(sure)
    if left == 0:
        return rows[sure], rows[:0]
    total = int(size[rest].sum())
    start = 1 + chooser.below(total)
    return rows[sure], rows[rest][systematic(np.cumsum(size[rest]), left, start)]


def _certainties(size: Ints, count: int) -> Ints:
    """Take the largest while count * size is at least what is left of the total."""
    total = int(size.sum())
    if count * int(size.max(initial=0)) < total:
        return np.empty(0, dtype=np.int64)
    largest = np.argsort(-size, kind="stable")[:count]
    taken = 0
    for place in largest:
        if (count - taken) * int(size[place]) < total:
            break
        total -= int(size[place])
        taken += 1
    return largest[:taken]


def systematic(cumulated: Ints, count: int, start: int) -> Ints:
    """Return the places at which count * cumulated / total reaches start / total, 1 + start / total, ...

    `start` is in 1..total. With total = whole * count + part, the j-th point (start + j * total) / count is
    j * whole + (start + j * part) / count, which stays within 64 bits.
    """
    whole, part = divmod(int(cumulated[-1]), count)
    step = np.arange(count, dtype=np.int64)
    points = step * whole + -(-(start + step * part) // count)
    return np.searchsorted(cumulated, points, side="left")
