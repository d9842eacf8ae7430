"""A plan that fools the n-rule: every record of a small cell is swapped, and the release is almost the file itself.

Write a record as (s, w): its swap values and the rest. A couple is (s, w) and (t, w). Two couples with the same s and t
and different w make two pairs, (s, w) with (t, w') and (t, w) with (s, w'): each pair changes two cells, and the other
pair puts both back. No pair compensates by itself. A record of a small cell without any partner for a couple is really
swapped, with a record of a large cell.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from quadrille.data import Cross, Data
from quadrille.papers.gomatam_karr_sanil_2003.experiment import Swap
from quadrille.plan import Plan

SWAP = ("Age", "EmpTyp", "MS")
_SMALL = 3

Place = tuple[int, int]
"""Two numbers that belong together: the rest and the swap value of a cell, two swap values, two records."""
Unused = dict[int, dict[int, list[int]]]


@dataclass(frozen=True)
class _Couple:
    """Two records that differ in the swap variables only: `low` has the smaller swap value."""

    rest: int
    low: int
    high: int


def fooling_plan(data: Data) -> Plan:
    """Swap all records of cells of one or two records, changing hardly any cell: the same plan every time."""
    unused = _by_place(data, SWAP)
    small = [(w, s) for w in sorted(unused) for s in sorted(unused[w]) if len(unused[w][s]) < _SMALL]
    pairs: list[Place] = []
    waiting: dict[Place, list[_Couple]] = defaultdict(list)
    alone: list[tuple[int, Place]] = []
    for w, s in small:
        while unused[w][s]:
            row = unused[w][s].pop()
            t = _partner(unused[w], s, w, waiting)
            if t is None:
                alone.append((row, (w, s)))
                continue
            pairs += _join(_couple(w, (s, row), (t, unused[w][t].pop())), waiting[_kind(s, t)])
    for (s, t), couples in waiting.items():
        for couple in couples:
            pairs += _pairs(couple, _helpers(unused, s, t, couple.rest))
    pairs += [(row, _stranger(unused, place)) for row, place in alone]
    return Plan.of_pairs(data, SWAP, np.array(pairs, dtype=np.int64))


def _by_place(data: Data, swap: Swap) -> Unused:
    """Sort the records by the rest and, within it, by the swap values."""
    values = Cross.of(data, swap).cells(data).tolist()
    rest = Cross.of(data, tuple(name for name in data.columns if name not in swap)).cells(data).tolist()
    unused: Unused = defaultdict(lambda: defaultdict(list))
    for row, (s, w) in enumerate(zip(values, rest, strict=True)):
        unused[w][s].append(row)
    return unused


def _kind(s: int, t: int) -> Place:
    return min(s, t), max(s, t)


def _partner(group: dict[int, list[int]], s: int, w: int, waiting: dict[Place, list[_Couple]]) -> int | None:
    """Choose the swap value of the other record: one for which a couple waits if possible, else the most frequent."""
    there = [t for t in sorted(group) if t != s and group[t]]
    fitting = [t for t in there if any(couple.rest != w for couple in waiting.get(_kind(s, t), ()))]
    return max(fitting or there, key=lambda t: len(group[t]), default=None)


def _couple(rest: int, one: Place, other: Place) -> _Couple:
    (_, low), (_, high) = sorted((one, other))
    return _Couple(rest, low, high)


def _join(couple: _Couple, waiting: list[_Couple]) -> list[Place]:
    """Join a couple with one that waits, whose rest must be another; without one, let it wait."""
    for other in waiting:
        if other.rest != couple.rest:
            waiting.remove(other)
            return _pairs(other, couple)
    waiting.append(couple)
    return []


def _helpers(unused: Unused, s: int, t: int, rest: int) -> _Couple:
    """Take a couple where both cells are large."""

    def left(w: int) -> int:
        return min(len(unused[w].get(s, ())), len(unused[w].get(t, ()))) if w != rest else -1

    w = max(unused, key=left)
    return _couple(w, (s, unused[w][s].pop()), (t, unused[w][t].pop()))


def _pairs(one: _Couple, other: _Couple) -> list[Place]:
    return [(one.low, other.high), (one.high, other.low)]


def _stranger(unused: Unused, place: Place) -> int:
    """Take a record of the largest cell that differs both in the swap variables and in the rest."""
    w, s = max(
        ((w, s) for w in unused if w != place[0] for s in unused[w] if s != place[1]),
        key=lambda at: len(unused[at[0]][at[1]]),
    )
    return unused[w][s].pop()
