"""When a draw comes to a dead end: re-pair along random alternating paths until enough pairs are found.

Records of one group are interchangeable, so the search runs on a small graph: of every kind of pair drawn
(group, group) and of every group with unused records two copies suffice, because a shortest augmenting path passes
a kind of pair at most once in each direction. When a class has no such path its number of pairs is the largest
possible (Berge 1957); when no class has one, so is the total.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.plan import Pairs
from quadrille.randomness import Chooser, Stream

Kind = tuple[int, int]
Ints = NDArray[np.int64]
_FREE = -1
_WORDS = 256
_PARTING_WORDS = 40_000
_AT_ONCE = 8
"""Of the pairs still missing, one in this many may follow the same path."""


def repair(pool: kernels.Pool, log: Ints, pairs: Pairs, drawn: int, stream: Stream) -> int:
    """Extend the first `drawn` pairs to all of `pairs`, or as far as possible; return how many there are."""
    places = np.empty_like(pairs)
    places[:drawn] = log[: 2 * drawn].reshape(-1, 2)
    drawn = _part_pairs(pool, log, pairs, places, drawn, Chooser(stream.sub("parting")))
    chooser = Chooser(stream.sub("choices"))
    classes = _classes(pool, places, pairs, drawn) if drawn < len(pairs) else {}
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


def _part_pairs(pool: kernels.Pool, log: Ints, pairs: Pairs, places: Ints, drawn: int, chooser: Chooser) -> int:
    """Take the shortest paths first, which part one pair only, as long as they are easily found."""
    before = -1
    while before < drawn < len(pairs):
        before = drawn
        words = chooser.words(_PARTING_WORDS + 80 * min(len(pairs) - drawn, 1 << 16))
        drawn = int(kernels.part_pairs(pairs, places, drawn, pool, log, kernels.dice(words)))
    return drawn


def _classes(pool: kernels.Pool, places: Ints, pairs: Pairs, drawn: int) -> dict[int, dict[Kind, list[int]]]:
    """Sort the pairs drawn by class and kind; only classes with two unused records can gain a pair."""
    left = np.bincount(pool.class_of, weights=pool.unused)
    classes: dict[int, dict[Kind, list[int]]] = {int(c): defaultdict(list) for c in np.flatnonzero(left >= 2)}
    groups = np.searchsorted(pool.start, places[:drawn], side="right") - 1
    for i, (g, h) in enumerate(groups.tolist()):
        number = int(pool.class_of[g])
        if number in classes:
            if g > h:
                pairs[i] = pairs[i, ::-1]
            classes[number][min(g, h), max(g, h)].append(i)
    return classes


class _Vertex(NamedTuple):
    """A record of the small graph: its group, and which copy of a pair it is which side of; copy -1 is unused."""

    group: int
    copy: int
    side: int


class _Path(NamedTuple):
    """One augmentation: kinds of pair to take apart, groups to draw from, ends to join, how often it can be done.

    In `joins` a vertex names its place in `kinds` (copy) or, with copy -1, its place in `free` (side).
    """

    kinds: list[Kind]
    free: list[int]
    joins: list[tuple[_Vertex, _Vertex]]
    most: int


def _find_path(pool: kernels.Pool, number: int, kinds: dict[Kind, list[int]], stream: Stream) -> _Path | None:
    """Find an augmenting path in one class, the vertices in random order; None when there is none."""
    copies = [kind for kind, members in kinds.items() for _ in range(min(2, len(members)))]
    groups = range(int(pool.first[number]), int(pool.first[number + 1]))
    vertices = [_Vertex(g, _FREE, 0) for g in groups for _ in range(min(2, int(pool.unused[g])))]
    vertices += [_Vertex(kind[side], copy, side) for copy, kind in enumerate(copies) for side in (0, 1)]
    order: list[int] = np.argsort(stream.words(len(vertices)), kind="stable").tolist()
    vertices = [vertices[v] for v in order]
    place = {(vertex.copy, vertex.side): v for v, vertex in enumerate(vertices)}
    before = np.array([_FREE if v.copy == _FREE else place[v.copy, 1 - v.side] for v in vertices], dtype=np.int64)
    mate = before.copy()
    if not kernels.augment(np.array([v.group for v in vertices], dtype=np.int64), mate, pool):
        return None
    touched: list[int] = np.flatnonzero(before != mate).tolist()
    free = [v for v in touched if before[v] == _FREE]
    used = sorted({vertices[v].copy for v in touched} - {_FREE})

    def end(v: int) -> _Vertex:
        group, copy, side = vertices[v]
        return _Vertex(group, _FREE, free.index(v)) if copy == _FREE else _Vertex(group, used.index(copy), side)

    joins = [(end(v), end(int(mate[v]))) for v in touched if v < mate[v]]
    path = _Path([copies[copy] for copy in used], [vertices[v].group for v in free], joins, 0)
    return path._replace(most=_most(path, pool, kinds))


def _most(path: _Path, pool: kernels.Pool, kinds: dict[Kind, list[int]]) -> int:
    """Return how often a path can be followed with the pairs and unused records there are."""
    taken = [len(kinds[kind]) // times for kind, times in Counter(path.kinds).items()]
    return min(taken + [int(pool.unused[g]) // times for g, times in Counter(path.free).items()])


def _follow(
    path: _Path,
    pool: kernels.Pool,
    log: Ints,
    pairs: Pairs,
    drawn: int,
    kinds: dict[Kind, list[int]],
    chooser: Chooser,
) -> None:
    """Take pairs of the right kinds apart, draw two unused records, and join them along the path."""
    slots = [kinds[kind].pop() for kind in path.kinds]
    record = {(copy, side): int(pairs[slot, side]) for copy, slot in enumerate(slots) for side in (0, 1)}
    for i, g in enumerate(path.free):
        record[_FREE, i] = int(kernels.take_any(g, pool, log, kernels.dice(chooser.words(_WORDS))))
    for slot, join in zip([*slots, drawn], path.joins, strict=True):
        first, second = sorted(join)
        pairs[slot] = record[first.copy, first.side], record[second.copy, second.side]
        kinds[first.group, second.group].append(slot)
