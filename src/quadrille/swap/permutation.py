"""Permutation swapping: exactly k records change places by a random permutation (Boudreau 2005)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Annotated, ClassVar, Literal

import numpy as np

from quadrille import kernels
from quadrille.data import Column, Data
from quadrille.errors import InputError, OverlapError, ParameterError, bad_parameter, infeasible
from quadrille.params import SEED, ColumnName, Columns, Count, RuleList, Share, Word
from quadrille.plan import Details, Move, Plan
from quadrille.randomness import Seed, Stream, Words, draw_until_enough
from quadrille.recipe import (
    Movement,
    Prepared,
    Recipe,
    carried,
    carried_fact,
    half_up,
    refuse_one_area,
    refuse_overlap,
    require_one,
)
from quadrille.swap.controlled.frame import Floats, constant_within, numbers_of
from quadrille.swap.groups import Grouping, Ints, Roster, codes_of
from quadrille.text import Shown

Kind = Literal["cycles", "pairs", "across"]

_WORDS = 4
"""Random words per record that is permuted, as a first guess: e - 1 are needed on average."""


@dataclass(frozen=True, eq=False, repr=False)
class Parts(Shown):
    """The parts of a file within which records change places, and per part its records n."""

    data: Data = field(repr=False)
    columns: Sequence[str]
    grouping: Grouping = field(repr=False)
    n: Ints

    @property
    def of(self) -> Ints:
        """The part of each record."""
        return self.grouping.of

    @cached_property
    def labels(self) -> list[str]:
        """The values of the columns that make each part."""
        if not self.columns:
            return ["all records"]
        parts = [_labels(self.data[name], self.grouping.first) for name in self.columns]
        return [", ".join(row) for row in zip(*parts, strict=True)]


@dataclass(frozen=True, eq=False, repr=False)
class Classes(Parts):
    """The classes of a file, and per class its records n, its rate, and the k that move.

    A rate that gives a single record moves none: k is 0.
    """

    rate: Floats
    k: Ints

    def facts(self, kind: Kind, given: Ints) -> dict[str, object]:
        """Return what the plan remembers: every class, and how many are left as they are, by reason.

        `given` are the records that the rate of each class gives, though one alone does not move.
        """
        columns = (self.labels, self.n.tolist(), self.rate.tolist(), self.k.tolist(), given.tolist())
        rows = [
            {"class": label, "n": n, "rate": rate, "k": k, "left_out": "" if k else _reason(n, rate, asked)}
            for label, n, rate, k, asked in zip(*columns, strict=True)
        ]
        left = Counter(row["left_out"] for row in rows if row["left_out"])
        return {"kind": kind, "records": int(self.k.sum()), "classes": rows, "classes_left_out": dict(left)}


@dataclass(frozen=True, eq=False)
class Blocks:
    """Records by block, and how many of each block are chosen."""

    roster: Roster
    count: Ints

    def draw(self, stream: Stream, columns: tuple[str, ...], kind: Kind) -> tuple[Move, int | None]:
        """Draw the move, and say how many pairs it has; None when it is not made of pairs."""
        chosen = self.roster.rows(self._chosen(stream.sub("records")))
        if kind == "cycles":
            return Move(columns, (chosen, chosen[deranged(self.count, stream.sub("cycles"))])), None
        pairs = chosen.reshape(-1, 2) if kind == "pairs" else np.ascontiguousarray(chosen.reshape(2, -1).T)
        return Move.exchange(columns, pairs), len(pairs)

    def _chosen(self, stream: Stream) -> Ints:
        """Choose the places, uniformly and in random order within each block."""
        chosen = np.empty(int(self.count.sum()), dtype=np.int64)

        def attempt(words: Words) -> Ints | None:
            dice = kernels.dice(words)
            kernels.choose(self.roster.start, self.count, dice, chosen)
            return None if dice.cursor[1] else chosen

        return draw_until_enough(attempt, stream, guess=len(chosen) + len(chosen) // 8)


def deranged(count: Ints, stream: Stream) -> Ints:
    """Permute the places of the records chosen, so that none stays, class by class."""
    places = np.empty(int(count.sum()), dtype=np.int64)

    def attempt(words: Words) -> Ints | None:
        dice = kernels.dice(words)
        kernels.derange(places, count, dice)
        return None if dice.cursor[1] else places

    return draw_until_enough(attempt, stream, guess=_WORDS * len(places))


def records_of(kind: Kind, rate: Floats, n: Ints, *, floats: bool = False) -> Ints:
    """Return how many of n records a rate moves; never more than can move. `floats` rounds as version 1 did."""
    each = 1 if kind == "cycles" else 2
    wanted = rate * n / each
    groups = np.floor(wanted + 0.5).astype(np.int64)
    near = np.flatnonzero(np.abs(wanted - np.floor(wanted) - 0.5) < 1e-6) if not floats else ()
    for i in near:  # only next to a half may floats and decimals differ
        groups[i] = half_up(float(rate[i]), int(n[i]), of=each)
    return each * np.minimum(groups, n // each)


def class_rates(data: Data, name: str, of: Ints, count: int, owner: str) -> Floats:
    """Return the rate of each class from the column that holds it."""
    place = f"Column {name!r}, given as 'rate' of {owner},"
    values = numbers_of(data[name])
    if values is None:
        raise InputError(f"{place} must hold numbers. It holds text.")
    bad = data.records_in(~((values >= 0) & (values <= 1)))
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


def refuse_weight(data: Data, swap: Sequence[str]) -> None:
    """Refuse to swap the weight by itself."""
    if data.weight in swap:
        raise InputError(
            f"Column {data.weight!r} is the weight and is not swapped by itself. "
            "Leave it out of 'swap', and set weight=\"moves\" if it shall travel with the swap variables."
        )


def permuted_columns(data: Data, swap: Sequence[str], within: Sequence[str], weight: str) -> tuple[str, ...]:
    """Return the columns that move by one permutation within classes; refuse what cannot."""
    moved = (*swap, *carried(data, swap, within))
    refuse_one_area(data, moved)
    if weight == "stays":
        return moved
    if data.weight is None:
        raise InputError('weight="moves" needs a weight, and the file has none. Name it with weight=, or let it stay.')
    if data.weight in within:
        raise OverlapError(f"Column {data.weight!r} is the weight, which moves: it cannot be in 'within'.")
    return (*moved, data.weight)


def two_groups(data: Data, name: str, owner: str) -> Grouping:
    """Return the two groups that a column makes."""
    column = data.coded(name, purpose=f"'groups' of {owner}")
    place = f"Column {name!r}, given as 'groups' of {owner},"
    missing = data.records_in(column.values >= column.valid)
    if missing:
        raise InputError(f"{place} is missing in {missing:,} rows. Every record needs a group.")
    groups = Grouping([(column.values, column.size)], data)
    if len(groups) != 2:
        raise InputError(f'{place} has {len(groups):,} categories that occur. kind="across" needs exactly two.')
    return groups


def refuse_small_groups(sizes: Ints, half: Ints, name: str) -> None:
    """Refuse to choose more records of a group than it has."""
    smaller = sizes.min(axis=0)
    short = np.flatnonzero(half > smaller)
    if len(short):
        c = int(short[0])
        where = f" in {len(short):,} of {len(half):,} classes" if len(half) > 1 else ""
        reason = (
            f"The groups of column {name!r} are too small{where}: {half[c]:,} records of each are asked for, "
            f"and the smaller group has {smaller[c]:,}."
        )
        most = int(np.minimum(half, smaller).sum())
        raise infeasible(reason, int(half.sum()), most, exact=True, hint="Ask for fewer records or a lower rate.")


_OWNER = "PermutationSwap"


@dataclass(frozen=True)
class PermutationSwap(Recipe):
    """Move the swap variables of exactly k records by a random permutation; every other record keeps its own.

    A rate gives k = 2 floor(rate * n / 2 + 1/2) for pairs and across, floor(rate * n + 1/2) for cycles. Levels of
    geography travel together: swapping one carries the others along, but for those in `within`.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> plan = qd.PermutationSwap(["Age"], rate=0.05, within=["Sex"], seed=7).plan(data)
    >>> len(plan.rows), len(plan.pairs)
    (2442, 1221)

    Reference: Boudreau, Statistics Canada, 2005.
    """

    version: ClassVar[int] = 2
    stream_version: ClassVar[int] = 1

    swap: Annotated[Sequence[str], Columns("the variables that move, all by one permutation", least=1, moves=True)]
    _: KW_ONLY
    rate: Annotated[
        float | str | None,
        Share(
            "share of the records that move, or a column of class rates",
            unit="share of the records",
            or_column=True,
            steers=True,
        ),
    ] = None
    records: Annotated[
        int | None,
        Count("number of records that move, instead of a rate; for the whole file only", least=2, unit="records"),
    ] = None
    kind: Annotated[
        Kind,
        Word(
            "cycles, pairs or across. Cycles: uniform among the permutations that leave none of the records in its "
            "place; pairs: uniform among the pairings; across: half of the records from each of two groups, paired "
            "across"
        ),
    ] = "pairs"
    within: Annotated[
        Sequence[str],
        Columns(
            "classes within which to swap. Partners agree on these columns, and each class moves at its own rate; a "
            "missing value is a class of its own"
        ),
    ] = ()
    groups: Annotated[str | None, ColumnName('the two groups of kind="across": a column of two categories')] = None
    weight: Annotated[
        Literal["stays", "moves"],
        Word(
            "the weight moves with the swap variables; otherwise it stays with its record",
            option="move-weight",
            switched="moves",
        ),
    ] = "stays"
    rules: Annotated[
        Sequence[str],
        RuleList(
            "none may be given. Every permutation must have the same chance, or its closed forms would not hold",
            option="rule",
        ),
    ] = ()
    seed: Annotated[Seed, SEED] = field(default=None, repr=False)

    def check(self) -> None:
        """Refuse parameters that do not go together."""
        require_one(self, rate="share of records", records="number that move")
        if self.rules:
            raise ParameterError(
                f"{_OWNER} takes no 'rules': every permutation has the same chance, and the closed forms of its errors "
                "rest on that. Swap with RandomSwap, ControlledSwap or DesignedSwap, which obey rules."
            )
        if self.records is not None and self.within:
            raise ParameterError(
                f"The 'records' parameter of {_OWNER} is for the whole file. Give a 'rate' with 'within', or leave "
                "'within' out."
            )
        if self.records is not None and self.records % 2 and self.kind != "cycles":
            must = f'even for kind="{self.kind}": records move in pairs'
            raise bad_parameter(_OWNER, "records", must, self.records)
        if (self.groups is not None) != (self.kind == "across"):
            raise ParameterError(
                f"The 'groups' parameter of {_OWNER} names the two groups of kind=\"across\". Give both, or neither."
            )
        refuse_overlap(
            self,
            (("swap", "within"), ("swap", "rate"), ("within", "groups")),
            "A column that moves can neither bound the classes nor give their rates, and groups that bound the classes "
            "cannot be crossed.",
        )

    def prepare(self, data: Data) -> Prepared:
        """Sort the records by class and group, and work out how many of each will move."""
        columns = self._columns(data)
        classes = self.classes(data)
        blocks = self._blocks(data, classes)
        along = carried(data, self.swap, self.within)
        details = Details({**classes.facts(self.kind, self.records_at(classes.rate, classes.n)), **carried_fact(along)})

        def draw(stream: Stream) -> Plan:
            move, asked = blocks.draw(stream, columns, self.kind)
            return Plan([move], data=data, asked=asked, details=details, steering_columns=self.steering_columns)

        return Prepared(draw)

    def movement(self, data: Data) -> Movement:
        """Return all that moves, by one permutation within the classes.

        >>> import quadrille as qd
        >>> qd.PermutationSwap(["Age", "MS"], rate=0.05, within=["Sex"]).movement(qd.datasets.cps8d())
        Movement(together=(('Age', 'MS'),), same=('Sex',), closed=(), unit=None)
        """
        return Movement((self._columns(data),), tuple(self.within))

    def classes(self, data: Data) -> Classes:
        """Return the classes of a file: their records, their rates and how many of their records move.

        >>> import quadrille as qd
        >>> data = qd.datasets.cps8d()
        >>> classes = qd.PermutationSwap(["Age"], rate=0.05, within=["Sex"]).classes(data)
        >>> classes.n.tolist(), classes.rate.tolist(), classes.k.tolist()
        ([32650, 16192], [0.05, 0.05], [1632, 810])
        """
        found = Grouping([codes_of(data, name) for name in self.within], data)
        n = found.counts
        if self.records is not None:
            if self.records > data.records:
                reason = f"{self.records:,} records cannot move in a file of {data.records:,}."
                raise infeasible(reason, self.records, data.records, exact=True, hint="Ask for fewer.")
            rate = np.array([self.records / data.records])
            return Classes(data, self.within, found, n, rate, np.array([self.records]))
        column = self.rate if isinstance(self.rate, str) else None
        rate = np.full(len(n), self.rate) if column is None else class_rates(data, column, found.of, len(n), _OWNER)
        k = self.records_at(rate, n)
        if not (k > 1).any():
            raise self._nothing(n, k)
        return Classes(data, self.within, found, n, rate, np.where(k > 1, k, 0))

    def records_at(self, rate: Floats, n: Ints) -> Ints:
        """Return how many records move of classes of n records at some rates.

        >>> import numpy as np
        >>> import quadrille as qd
        >>> qd.PermutationSwap(["Age"], rate=0.29).records_at(np.array([0.29]), np.array([100])).tolist()
        [30]
        """
        return records_of(self.kind, rate, n)

    def check_columns(self, data: Data) -> None:
        """Refuse columns that the data lack, and to swap what must stay with its record."""
        refuse_weight(data, self.swap)
        super().check_columns(data)

    def _columns(self, data: Data) -> tuple[str, ...]:
        """Return the columns that move; refuse what cannot."""
        if self.weight == "moves" and data.weight is not None and data.weight == self.rate:
            raise OverlapError(f"Column {data.weight!r} is the weight, which moves: it cannot be in 'rate'.")
        return permuted_columns(data, self.swap, self.within, self.weight)

    def _nothing(self, n: Ints, k: Ints) -> ParameterError:
        """Say that no record can move, and from which rate on some do."""
        given = "a single record, which cannot move alone," if k.any() else "no record at all"
        place = f"{n[0]:,} records" if len(n) == 1 else f"any of {len(n):,} classes"
        largest = int(n.max())
        least = f"{(1.5 if self.kind == 'cycles' else 1) / largest:.3g}"
        hint = (
            f"The smallest rate that moves two is about {least}."
            if largest > 1
            else "Moving takes two records or more."
        )
        return ParameterError(f"The 'rate' parameter of {_OWNER} gives {given} for {place}. {hint}")

    def _blocks(self, data: Data, classes: Classes) -> Blocks:
        """Return the blocks that records are chosen from: classes; for "across" those of the first group come first."""
        count, half = len(classes.n), classes.k // 2
        if self.groups is None:
            return Blocks(classes.grouping.roster(), classes.k.astype(np.int64))
        roster = classes.grouping.within(two_groups(data, self.groups, _OWNER))
        refuse_small_groups(roster.counts.reshape(2, count), half, self.groups)
        return Blocks(roster, np.tile(half, 2).astype(np.int64))


@dataclass(frozen=True)
class PermutationSwapOfFloats(PermutationSwap, earlier_version_of="PermutationSwap"):
    """Permutation swapping as version 1 had it: rates are rounded as floats, which may fall just short of a half."""

    version: ClassVar[int] = 1

    def records_at(self, rate: Floats, n: Ints) -> Ints:
        """Return how many records move of classes of n records at some rates."""
        return records_of(self.kind, rate, n, floats=True)
