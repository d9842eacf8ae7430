"""The classes within which records change places, and drawing so many of each: shared by permutation swapping."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Column, Data, require_columns
from quadrille.errors import InputError, infeasible
from quadrille.plan import Move
from quadrille.randomness import Stream, Words, draw_until_enough
from quadrille.swap.cells import Floats, constant_within, numbers_of
from quadrille.swap.groups import Ints, group_ids

Kind = Literal["cycles", "pairs", "across"]

_WORDS = 4
"""Random words per record that is permuted, as a first guess: e - 1 are needed on average."""


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of a file: class of each record, and per class its records n, its rate, and the k that move.

    A rate that gives a single record moves none: k is 0.
    """

    data: Data = field(repr=False)
    columns: Sequence[str]
    of: Ints = field(repr=False)
    n: Ints
    rate: Floats
    k: Ints

    @cached_property
    def labels(self) -> list[str]:
        """The values of the columns that make each class."""
        if not self.columns:
            return ["all records"]
        leader = np.zeros(len(self.n), dtype=np.int64)
        leader[self.of] = np.arange(len(self.of))
        parts = [_labels(self.data[name], leader) for name in self.columns]
        return [", ".join(row) for row in zip(*parts, strict=True)]

    def facts(self, kind: Kind) -> dict[str, object]:
        """Return what the plan remembers: every class, and how many are left as they are, by reason."""
        given = records_of(kind, self.rate, self.n)
        columns = (self.labels, self.n.tolist(), self.rate.tolist(), self.k.tolist(), given.tolist())
        rows = [
            {"class": label, "n": n, "rate": rate, "k": k, "left_out": "" if k else _reason(n, rate, asked)}
            for label, n, rate, k, asked in zip(*columns, strict=True)
        ]
        left = Counter(row["left_out"] for row in rows if row["left_out"])
        return {"kind": kind, "records": int(self.k.sum()), "classes": rows, "classes_left_out": dict(left)}


@dataclass(frozen=True, eq=False)
class Blocks:
    """Records sorted into blocks, and how many of each block are chosen."""

    order: NDArray[np.int32]
    start: Ints
    count: Ints

    @classmethod
    def of(cls, block: Ints, blocks: int, count: Ints) -> Blocks:
        """Sort the records by their block."""
        start, order = np.zeros(blocks + 1, dtype=np.int64), np.empty(len(block), dtype=np.int32)
        kernels.sort_into_groups(block, blocks, start, order)
        return cls(order, start, count.astype(np.int64))

    def draw(self, stream: Stream, columns: tuple[str, ...], kind: Kind) -> tuple[Move, int | None]:
        """Draw the move, and say how many pairs it has; None when it is not made of pairs."""
        chosen = self._chosen(stream.sub("records"))
        if kind == "cycles":
            return Move(columns, (chosen, chosen[self._deranged(stream.sub("cycles"))])), None
        pairs = chosen.reshape(-1, 2) if kind == "pairs" else np.ascontiguousarray(chosen.reshape(2, -1).T)
        return Move.exchange(columns, pairs), len(pairs)

    def _chosen(self, stream: Stream) -> Ints:
        """Choose the records, uniformly and in random order within each block."""
        chosen = np.empty(int(self.count.sum()), dtype=np.int64)

        def attempt(words: Words) -> Ints | None:
            dice = kernels.dice(words)
            kernels.choose(self.order, self.start, self.count, dice, chosen)
            return None if dice.cursor[1] else chosen

        return draw_until_enough(attempt, stream, guess=len(chosen) + len(chosen) // 8)

    def _deranged(self, stream: Stream) -> Ints:
        """Permute the places of the records chosen, so that none stays, class by class."""
        places = np.empty(int(self.count.sum()), dtype=np.int64)

        def attempt(words: Words) -> Ints | None:
            dice = kernels.dice(words)
            kernels.derange(places, self.count, dice)
            return None if dice.cursor[1] else places

        return draw_until_enough(attempt, stream, guess=_WORDS * len(places))


def records_of(kind: Kind, rate: Floats, n: Ints) -> Ints:
    """Return how many of n records a rate moves; never more than can move."""
    if kind == "cycles":
        return np.minimum(np.floor(rate * n + 0.5), n).astype(np.int64)
    return 2 * np.minimum(np.floor(rate * n / 2 + 0.5), n // 2).astype(np.int64)


def class_rates(data: Data, name: str, of: Ints, count: int, owner: str) -> Floats:
    """Return the rate of each class from the column that holds it."""
    require_columns(data, [name], f"'rate' of {owner}")
    place = f"Column {name!r}, given as 'rate' of {owner},"
    values = numbers_of(data[name])
    if values is None:
        raise InputError(f"{place} must hold numbers. It holds text.")
    bad = int((~((values >= 0) & (values <= 1))).sum())
    if bad:
        raise InputError(f"{place} is missing or outside [0, 1] in {bad:,} rows. It must be a share of records.")
    rate, varies = constant_within(values, of, count)
    if varies:
        raise InputError(f"{place} varies within {varies:,} of {count:,} classes. Give each class one rate.")
    return rate


def _reason(n: int, rate: float, asked: int) -> str:
    if rate == 0:
        return "its rate is 0"
    if n == 1:
        return "it has a single record"
    return "its rate gives a single record, which cannot move alone" if asked else "its rate gives no record"


def _labels(column: Column, rows: Ints) -> list[str]:
    values, name = column.values[rows], column.variable.name
    if column.variable.coded:
        return [f"{name} = {column.labels[code]}" for code in values]
    return [f"{name} = {value:g}" for value in values]


def two_groups(data: Data, name: str, owner: str) -> Ints:
    """Return the group of every record, 0 or 1."""
    require_columns(data, [name], f"'groups' of {owner}")
    column = data.coded(name, purpose=f"'groups' of {owner}")
    place = f"Column {name!r}, given as 'groups' of {owner},"
    missing = int((column.values >= column.valid).sum())
    if missing:
        raise InputError(f"{place} is missing in {missing:,} rows. Every record needs a group.")
    group, count = group_ids([(column.values, column.size)], data.n)
    if count != 2:
        raise InputError(f'{place} has {count:,} categories that occur. kind="across" needs exactly two.')
    return group


def refuse_small_groups(sizes: Ints, half: Ints, name: str) -> None:
    """Refuse to choose more records of a group than it has."""
    smaller = sizes.min(axis=0)
    short = np.flatnonzero(half > smaller)
    if len(short):
        c = int(short[0])
        where = f" in {len(short):,} of {len(half):,} classes" if len(half) > 1 else ""
        message = (
            f"The groups of column {name!r} are too small{where}: {half[c]:,} records of each are asked for, "
            f"and the smaller group has {smaller[c]:,}. Ask for fewer records or a lower rate."
        )
        raise infeasible(message, int(half.sum()), int(np.minimum(half, smaller).sum()), exact=True)
