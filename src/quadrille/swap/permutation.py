"""Permutation swapping: exactly k records change places by a random permutation (Boudreau 2005)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal, cast

import numpy as np

from quadrille.data import Data, require_columns
from quadrille.errors import InputError, OverlapError, ParameterError, bad_parameter, infeasible
from quadrille.plan import Details, Plan
from quadrille.randomness import Seed, Stream, checked_seed
from quadrille.recipe import (
    Drawer,
    Recipe,
    carried,
    carried_fact,
    names,
    one_of,
    refuse_fixed,
    refuse_one_area,
    settle,
    share,
    whole,
)
from quadrille.rules import rule_texts
from quadrille.swap.classes import Blocks, Classes, Kind, class_rates, records_of, refuse_small_groups, two_groups
from quadrille.swap.groups import Ints, codes_of, group_ids

_OWNER = "PermutationSwap"


@dataclass(frozen=True)
class PermutationSwap(Recipe):
    """Move the swap variables of exactly k records by a random permutation; every other record keeps its own.

    A rate gives k = 2 floor(rate * n / 2 + 1/2) for pairs and across, floor(rate * n + 1/2) for cycles. Levels of
    geography travel together: swapping one carries the others along, but for those in `within`.

    Parameters
    ----------
    swap : the variables that move, all by the same permutation.
    rate, records : how much to move; give one of the two. `rate` is a share of the records, or the name of a column
        with the rate of each class; `records` is k itself, for the whole file only.
    kind : "cycles" (uniform among the permutations of the k records that leave none in its place), "pairs" (uniform
        among the pairings of the k records) or "across" (k/2 records of each of two groups, paired across).
    within : columns on which all partners agree: each class of theirs is permuted apart, at its own rate. Never
        swapped. A missing value is a class of its own.
    groups : for "across", the column whose two categories are the groups.
    weight : "stays" with its record, or "moves" with the swap variables.
    rules : refused. Every permutation must have the same chance, or the closed forms of its errors would not hold.
    seed : None for 256 secret bits; a whole number only for tests and papers.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> plan = qd.PermutationSwap(["Age"], rate=0.05, within=["Sex"], seed=7).plan(data)
    >>> len(plan.rows), len(plan.pairs)
    (2442, 1221)

    Reference: Boudreau, Statistics Canada, 2005.
    """

    swap: Sequence[str]
    _: KW_ONLY
    rate: float | str | None = None
    records: int | None = None
    kind: Kind = "pairs"
    within: Sequence[str] = ()
    groups: str | None = None
    weight: Literal["stays", "moves"] = "stays"
    rules: Sequence[str] = ()
    seed: Seed = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if (self.rate is None) == (self.records is None):
            raise ParameterError(
                f"{_OWNER} needs one of 'rate' (share of records) and 'records' (number of records that move)."
            )
        one_of(_OWNER, "kind", self.kind, ("cycles", "pairs", "across"))
        one_of(_OWNER, "weight", self.weight, ("stays", "moves"))
        if rule_texts(_OWNER, self.rules):
            raise ParameterError(
                f"{_OWNER} takes no 'rules': every permutation has the same chance, and the closed forms of its errors "
                "rest on that. Swap with RandomSwap, ControlledSwap or DesignedSwap, which obey rules."
            )
        settle(
            self, {"swap": names(_OWNER, "swap", self.swap, least=1), "within": names(_OWNER, "within", self.within)}
        )
        settle(self, {"rate": _share_or_column(self.rate), "records": self._checked_records(), "rules": ()})
        if not isinstance(cast("object", self.groups), str | None):
            raise bad_parameter(_OWNER, "groups", "the name of a column", self.groups)
        if (self.groups is not None) != (self.kind == "across"):
            raise ParameterError(
                f"The 'groups' parameter of {_OWNER} names the two groups of kind=\"across\". Give both, or neither."
            )
        self._refuse_overlap()
        settle(self, {"seed": checked_seed(self.seed, _OWNER)})

    def _checked_records(self) -> int | None:
        if self.records is None:
            return None
        if self.within:
            raise ParameterError(
                f"The 'records' parameter of {_OWNER} is for the whole file. Give a 'rate' with 'within', or leave "
                "'within' out."
            )
        records = whole(_OWNER, "records", self.records, least=2)
        if records % 2 and self.kind != "cycles":
            raise ParameterError(
                f"The 'records' parameter of {_OWNER} must be even for kind=\"{self.kind}\": records move in pairs. "
                f"Got {records}."
            )
        return records

    def _refuse_overlap(self) -> None:
        parts = [
            ("swap", "within", list(self.within)),
            ("swap", "rate", [self.rate]),
            ("within", "groups", [self.groups]),
        ]
        for one, other, listed in parts:
            both = [name for name in getattr(self, one) if name in listed]
            if both:
                raise OverlapError(
                    f"Column {both[0]!r} is in both '{one}' and '{other}' of {_OWNER}. A column that moves can neither "
                    "bound the classes nor give their rates, and groups that bound the classes cannot be crossed."
                )

    @property
    def secret_columns(self) -> tuple[str, ...]:
        """The column that says at what rate each class is swapped."""
        return (self.rate,) if isinstance(self.rate, str) else ()

    def prepare(self, data: Data) -> Drawer:
        """Sort the records by class and group, and work out how many of each will move."""
        columns = self._columns(data)
        classes = self.classes(data)
        blocks = self._blocks(data, classes)
        along = carried(data, self.swap, self.within)
        details = Details({**classes.facts(self.kind), **carried_fact(along)})

        def draw(stream: Stream) -> Plan:
            move, asked = blocks.draw(stream, columns, self.kind)
            return Plan([move], data=data, asked=asked, details=details, aside=self.secret_columns)

        return Drawer(draw)

    def classes(self, data: Data) -> Classes:
        """Return the classes of a file: their records, their rates and how many of their records move.

        >>> import quadrille as qd
        >>> data = qd.datasets.cps8d()
        >>> classes = qd.PermutationSwap(["Age"], rate=0.05, within=["Sex"]).classes(data)
        >>> classes.n.tolist(), classes.rate.tolist(), classes.k.tolist()
        ([32650, 16192], [0.05, 0.05], [1632, 810])
        """
        require_columns(data, self.within, f"'within' of {_OWNER}")
        of, count = group_ids([codes_of(data, name) for name in self.within], data.n)
        n = np.bincount(of, minlength=count)
        if self.records is not None:
            if self.records > data.n:
                message = f"{self.records:,} records cannot move in a file of {data.n:,}. Ask for fewer."
                raise infeasible(message, self.records, data.n, exact=True)
            return Classes(data, self.within, of, n, np.array([self.records / data.n]), np.array([self.records]))
        column = self.rate if isinstance(self.rate, str) else None
        rate = np.full(count, self.rate) if column is None else class_rates(data, column, of, count, _OWNER)
        k = records_of(self.kind, rate, n)
        if not (k > 1).any():
            raise self._nothing(n, k)
        return Classes(data, self.within, of, n, rate, np.where(k > 1, k, 0))

    def _columns(self, data: Data) -> tuple[str, ...]:
        """Return the columns that move; refuse what cannot."""
        require_columns(data, self.swap, f"'swap' of {_OWNER}")
        if data.weight in self.swap:
            raise InputError(
                f"Column {data.weight!r} is the weight and is not swapped by itself. "
                "Leave it out of 'swap', and set weight=\"moves\" if it shall travel with the swap variables."
            )
        refuse_fixed(data, self.swap)
        moved = (*self.swap, *carried(data, self.swap, self.within))
        refuse_one_area(data, moved)
        if self.weight == "stays":
            return moved
        if data.weight is None:
            raise InputError(
                'weight="moves" needs a weight, and the file has none. Name it with weight=, or let it stay.'
            )
        if data.weight in (*self.within, self.rate):
            raise OverlapError(
                f"Column {data.weight!r} is the weight, which moves: it cannot be in 'within' or 'rate'."
            )
        return (*moved, data.weight)

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
        """Sort the records by class; for "across" those of the first group of all classes come first."""
        count, half = len(classes.n), classes.k // 2
        if self.groups is None:
            return Blocks.of(classes.of, count, classes.k)
        group = two_groups(data, self.groups, _OWNER)
        blocks = Blocks.of(group * count + classes.of, 2 * count, np.tile(half, 2))
        refuse_small_groups(np.diff(blocks.start).reshape(2, count), half, self.groups)
        return blocks


def _share_or_column(rate: object) -> float | str | None:
    return rate if rate is None or isinstance(rate, str) else share(_OWNER, "rate", rate)
