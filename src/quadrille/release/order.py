"""The order of the public rows, drawn from the operating system: a seed that leaks tells nothing about it.

Small files are shuffled as a whole. Of a large one each row draws a bucket, and each bucket is shuffled by itself:
given the sizes of the buckets all assignments of the rows have the same chance, and within a bucket all orders have, so
every order of the file has the same chance too. No row number is kept; the seed of the order finds it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import ceil

import numpy as np

from quadrille import kernels
from quadrille.data import Codes, Column, Ints, Rows, Units, read_only
from quadrille.io.space import Space
from quadrille.randomness import Stream, fresh_seed
from quadrille.recipe import random_order
from quadrille.text import Shown

ONE_BUCKET = 1 << 22
"""Files of up to so many records are shuffled as a whole, and made in memory."""
BUCKET = 1 << 19
"""Records of a bucket, about; they stay in the cache of a processor while they are shuffled."""
MOST_BUCKETS = 1 << 16
CHUNK = 1 << 16
"""Rows that are put into buckets at a time."""
PIECE = 1 << 20
"""Rows that are written at a time."""


def fresh_order(n: int, units: Sequence[Units] = ()) -> Rows:
    """Return the rows in random order.

    Units, such as households, stand in random order, and their members together, in random order too.
    """
    order = random_order(n, Stream.of(fresh_seed(), "public order"))
    for unit in sorted(units, key=lambda each: -each.count):  # of nested units the coarsest comes last
        place = random_order(unit.count, Stream.of(fresh_seed(), "public order of units"))
        order = order[np.argsort(place[unit.of[order]], kind="stable")]
    return order


@dataclass(frozen=True, repr=False)
class BucketOrder(Shown):
    """Order 2: rows in buckets, and each bucket in random order.

    >>> from quadrille.release.order import BucketOrder
    >>> order = BucketOrder(5_000_000)
    >>> rows = order.rows()
    >>> order.buckets, sorted(rows.tolist()) == list(range(5_000_000)), bool((order.rows() == rows).all())
    (16, True, True)
    """

    n: int
    seed: str = field(default_factory=fresh_seed, repr=False)

    @property
    def buckets(self) -> int:
        """How many buckets there are, a power of two."""
        return min(1 << (ceil(self.n / BUCKET) - 1).bit_length(), MOST_BUCKETS)

    def as_dict(self) -> dict[str, object]:
        """Return what finds the order again, for the confidential folder."""
        return {"order": 2, "records": self.n, "buckets": self.buckets, "seed": self.seed}

    def rows(self) -> Rows:
        """Return the original row of each public one."""
        numbers = np.arange(self.n, dtype=np.uint32)
        return np.concatenate([part for (part,) in self.parts([numbers], Space())]).astype(np.int64)

    def parts(self, columns: Sequence[Codes], space: Space) -> Iterator[list[Codes]]:
        """Yield the columns bucket by bucket, each in its order."""
        stream = Stream.of(self.seed, "public order 2")
        sizes = np.zeros(self.buckets, dtype=np.int64)
        for _ in self._places(stream, sizes):
            pass
        start = np.cumsum(sizes) - sizes
        scattered = [space.empty(self.n, codes.dtype) for codes in columns]
        place = start.copy()
        for first, places in self._places(stream, place):
            for codes, out in zip(columns, scattered, strict=True):
                kernels.scatter(read_only(codes[first : first + len(places)]), places, out)
        for bucket, (begin, end) in enumerate(zip(start.tolist(), place.tolist(), strict=True)):
            if begin < end:
                order = random_order(end - begin, stream.sub(f"bucket {bucket}"))
                yield [codes[begin:end][order] for codes in scattered]

    def _places(self, stream: Stream, place: Ints) -> Iterator[tuple[int, Ints]]:
        """Yield the places of one chunk of rows after the other; `place` is the next one of each bucket."""
        words, memory = stream.sub("buckets"), np.empty(min(self.n, CHUNK), dtype=np.int64)
        for first in range(0, self.n, CHUNK):
            places = memory[: min(CHUNK, self.n - first)]
            drawn = words.words((first + len(places) + 1) // 2 - first // 2, start=first // 2)
            kernels.put_in_buckets(drawn, first, self.buckets - 1, place, places)
            yield first, places


def pieces(columns: Sequence[Column], order: BucketOrder | None, space: Space) -> Iterator[list[Column]]:
    """Yield the public records, so many at a time: in their order, or in that which is drawn."""
    values = [column.values for column in columns]
    parts = iter([values]) if order is None else order.parts(values, space)
    for part in _cut(parts, PIECE):
        yield [replace(column, values=codes) for column, codes in zip(columns, part, strict=True)]


def _cut(parts: Iterator[list[Codes]], rows: int) -> Iterator[list[Codes]]:
    """Yield pieces of so many rows from parts of any length; the last piece may be shorter."""
    kept: list[list[Codes]] = []
    held = 0
    for part in parts:
        begin, end = 0, len(part[0])
        while held + end - begin >= rows:
            cut = begin + rows - held
            yield _joined([*kept, [codes[begin:cut] for codes in part]])
            kept, held, begin = [], 0, cut
        if begin < end:
            kept.append([codes[begin:] for codes in part])
            held += end - begin
    if kept:
        yield _joined(kept)


def _joined(parts: Sequence[list[Codes]]) -> list[Codes]:
    if len(parts) == 1:
        return parts[0]
    return [np.concatenate(column) for column in zip(*parts, strict=True)]
