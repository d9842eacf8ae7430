"""When a draw comes to a dead end: re-pair along random alternating paths until enough pairs are found.

Records of one group are interchangeable, so the search runs on a small graph: of every kind of pair drawn
(group, group) and of every group with unused records two copies suffice, because a shortest augmenting path passes
a kind of pair at most once in each direction. When a class has no such path its number of pairs is the largest
possible (Berge 1957); when no class has one, so is the total.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.plan import Pairs
from quadrille.randomness import Chooser, Stream

Kind = tuple[int, int]
_FREE = -1
_AT_ONCE = 8
"""Of the pairs still missing, one in this many may follow the same path."""


def repair(pool: kernels.Pool, log: NDArray[np.int64], pairs: Pairs, drawn: int, stream: Stream) -> int:
    """Extend the first `drawn` pairs to all of `pairs`, or as far as possible; return how many there are."""
    chooser = Chooser(stream.sub("choices"))
    classes = _classes(pool, log, pairs, drawn)
    turn = 0
    while drawn < len(pairs) and classes:
        number = list(classes)[chooser.below(len(classes))]
        path = _find_path(pool, number, classes[number], stream.sub(f"order {turn}"))
        turn += 1
        if path is None:
            del classes[number]
            continue
        for _ in range(min(path.most, max(1, (len(pairs) - drawn) // _AT_ONCE))):
            _follow(path, pool, log, pairs, drawn, classes[number], chooser)
            drawn += 1
    return drawn


def _classes(
    pool: kernels.Pool, log: NDArray[np.int64], pairs: Pairs, drawn: int
) -> dict[int, dict[Kind, list[int]]]:
    """Sort the pairs drawn by class and kind; only classes with two unused records can gain a pair."""
    left = np.bincount(pool.class_of, weights=pool.unused)
    classes: dict[int, dict[Kind, list[int]]] = {int(c): defaultdict(list) for c in np.flatnonzero(left >= 2)}
    groups = log[: 2 * drawn, 1].reshape(-1, 2)
    for i, (g, h) in enumerate(groups.tolist()):
        number = int(pool.class_of[g])
        if number in classes:
            if g > h:
                pairs[i] = pairs[i, ::-1]
            classes[number][min(g, h), max(g, h)].append(i)
    return classes


@dataclass(frozen=True)
class _Path:
    """One augmentation: kinds of pair to take apart, groups to draw from, and which ends to join."""

    kinds: list[Kind]
    joins: list[tuple[tuple[int, int], tuple[int, int]]]
    free: list[int]
    most: int
    group: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])


def _find_path(
    pool: kernels.Pool, number: int, kinds: dict[Kind, list[int]], stream: Stream
) -> _Path | None:
    """Find an augmenting path in one class, the vertices in random order; None when there is none."""
    ends: list[tuple[int, int]] = []  # (part, side): part -1 is an unused record, else the copy of a pair
    group: list[int] = []
    copies: list[Kind] = []
    for g in range(int(pool.first[number]), int(pool.first[number + 1])):
        for copy in range(min(2, int(pool.unused[g]))):
            ends.append((_FREE, copy))
            group.append(g)
    for kind, members in kinds.items():
        for _ in range(min(2, len(members))):
            ends += [(len(copies), 0), (len(copies), 1)]
            group += kind
            copies.append(kind)
    order = np.argsort(stream.words(len(ends)), kind="stable")
    place = {ends[v]: i for i, v in enumerate(order) if ends[v][0] != _FREE}
    groups = np.array(group, dtype=np.int64)[order]
    mate = np.full(len(ends), -1, dtype=np.int64)
    for copy in range(len(copies)):
        mate[place[copy, 0]], mate[place[copy, 1]] = place[copy, 1], place[copy, 0]
    before = mate.copy()
    if not kernels.augment(groups, mate, pool):
        return None
    return _path(order, ends, groups, copies, kinds, before, mate, pool)


def _path(
    order: NDArray[np.intp],
    ends: list[tuple[int, int]],
    groups: NDArray[np.int64],
    copies: list[Kind],
    kinds: dict[Kind, list[int]],
    before: NDArray[np.int64],
    mate: NDArray[np.int64],
    pool: kernels.Pool,
) -> _Path:
    """Describe what the search changed in terms that can be repeated with other records of the same groups."""
    touched = [int(v) for v in np.flatnonzero(before != mate)]
    free = [v for v in touched if before[v] < 0]
    used = sorted({ends[order[v]][0] for v in touched} - {_FREE})
    renumber = {copy: i for i, copy in enumerate(used)}

    def end(v: int) -> tuple[int, int]:
        copy, side = ends[order[v]]
        return (_FREE, free.index(v)) if copy == _FREE else (renumber[copy], side)

    joins = [(end(v), end(int(mate[v]))) for v in touched if v < mate[v]]
    wanted = Counter(copies[copy] for copy in used)
    drawn_from = Counter(int(groups[v]) for v in free)
    most = min(
        [len(kinds[kind]) // times for kind, times in wanted.items()]
        + [int(pool.unused[g]) // times for g, times in drawn_from.items()]
    )
    group = {end(v): int(groups[v]) for v in touched}
    return _Path([copies[copy] for copy in used], joins, [int(groups[v]) for v in free], most, group)


def _follow(
    path: _Path,
    pool: kernels.Pool,
    log: NDArray[np.int64],
    pairs: Pairs,
    drawn: int,
    kinds: dict[Kind, list[int]],
    chooser: Chooser,
) -> None:
    """Take pairs of the right kinds apart, draw two unused records, and join them along the path."""
    slots = [kinds[kind].pop() for kind in path.kinds]
    record = {(copy, side): int(pairs[slot, side]) for copy, slot in enumerate(slots) for side in (0, 1)}
    for i, g in enumerate(path.free):
        place = int(pool.start[g]) + chooser.below(int(pool.unused[g]))
        record[_FREE, i] = int(kernels.take(place, g, pool, log))
    for slot, (one, other) in zip([*slots, drawn], path.joins, strict=True):
        first, second = (one, other) if path.group[one] <= path.group[other] else (other, one)
        pairs[slot] = record[first], record[second]
        kinds[path.group[first], path.group[second]].append(slot)
