"""Cyclic swapping: the flagged units of a cell send their areas round, so that nobody else has to move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np

from quadrille import kernels
from quadrille.data import Data, Flags, Ints, Units
from quadrille.errors import InfeasibleError, InputError, OverlapError, ParameterError, infeasible
from quadrille.params import SEED, ColumnName, Columns, Count, RuleList, Word
from quadrille.plan import Details, Move, Plan
from quadrille.randomness import Seed, Stream, Words, draw_until_enough
from quadrille.recipe import Movement, Prepared, Recipe, random_order, refuse_overlap, require_one
from quadrille.swap.controlled.frame import flags_of
from quadrille.swap.groups import codes_of, group_ids
from quadrille.swap.targeted.risk import (
    MANY_LEFT,
    Areas,
    areas_of,
    levels_of,
    refuse_carried,
    refuse_within,
    smallest_counts,
    units_of,
)

_OWNER = "CycleSwap"
_REASONS = {
    kernels.ALONE: "alone in the key cell",
    kernels.ONE_AREA: "one area only in the key cell",
    kernels.DOMINATED: "the own area dominates the key cell",
}
_WORDS = 4
"""Random words per flagged unit, as a first guess."""


@dataclass(frozen=True)
class CycleSwap(Recipe):
    """Send the areas of flagged units round in cycles of units that agree on key columns: nobody else moves.

    All levels of geography travel. The members of a cycle are from different areas; cycles have n units, or n - 1 and
    n + 1, but where one area has so many of a key cell that shorter ones are needed. What no cycle can take borrows a
    partner who is not flagged.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.households()
    >>> plan = qd.CycleSwap(risk=["status", "citizen", "sex"], k=3, same=["hh_size"], seed=7).plan(data)
    >>> facts = plan.report(data).details
    >>> facts["flagged"], facts["moved_in_cycles"], facts["borrowed"], facts["left"]
    (69, 69, 0, 0)

    Reference: DePersio, Lemons, Ramanayake, Tsay & Zayatz, n-cycle swapping for the American Community Survey, Privacy
    in Statistical Databases, 2012.
    """

    always_moves: ClassVar[str] = "all levels of geography"

    _: KW_ONLY
    flag: Annotated[
        str | None,
        ColumnName(
            "column that is true for what must move; a unit moves if any of its members is flagged", steers=True
        ),
    ] = None
    risk: Annotated[
        Sequence[str],
        Columns("instead of a flag, columns whose combination is counted in each area; below k it is at risk"),
    ] = ()
    k: Annotated[int, Count("at risk: a combination that fewer than k records of the area have", unit="records")] = 3
    same: Annotated[Sequence[str], Columns("key columns on which the members of a cycle agree")] = ()
    area: Annotated[
        str | None,
        ColumnName(
            "level of geography that members of a cycle differ on, and that risk is counted in. All levels travel",
            otherwise="the lowest",
        ),
    ] = None
    carry: Annotated[Sequence[str], Columns("further columns that travel with the geography", moves=True)] = ()
    n: Annotated[int, Count("units in a cycle", least=2, unit="units", option="length")] = 3
    leftover: Annotated[
        Literal["borrow", "leave"],
        Word(
            "borrow or leave: the outcome for flagged units that no cycle can take. Borrow: each exchanges with one of "
            "its key cell that is not flagged and lies in another area"
        ),
    ] = "borrow"
    unit: Annotated[
        str | None,
        ColumnName(
            "number of the household or other unit that moves as one",
            otherwise="the column with the role unit, if any",
            option="household",
        ),
    ] = None
    rules: Annotated[
        Sequence[str],
        RuleList("none may be given. Cycles are made of all flagged units of a key cell", option="rule"),
    ] = ()
    seed: Annotated[Seed, SEED] = field(default=None, repr=False)

    def check(self) -> None:
        """Refuse both or neither of flag and risk, rules, and columns with two parts."""
        require_one(self, flag="a column that is true for what must move", risk="columns to count")
        if self.rules:
            raise ParameterError(
                f"{_OWNER} takes no 'rules': the members of a cycle are drawn at random. Put what must fit into "
                "'same', or swap with TargetedSwap, which obeys rules."
            )
        refuse_overlap(
            self,
            (("carry", "same"), ("carry", "risk")),
            "What travels with the geography can be neither what members agree on nor what is counted.",
        )

    def prepare(self, data: Data) -> Prepared:
        """Find the flagged units and sort them by key cell and area."""
        cells = self._cells(data)
        flagged = cells.sorted(cells.flagged & cells.areas.known)
        without_area = int((cells.flagged & ~cells.areas.known).sum())

        def draw(stream: Stream) -> Plan:
            made = _cycles(flagged, self.n, stream.sub("cycles"))
            to, of = made.to[: made.counts[0]], made.of[: made.counts[0]]
            places, why = made.aside[: made.counts[1]], made.why[: made.counts[1]]
            aside = flagged.unit[places]
            partner = np.full(len(aside), -1, dtype=np.int64)
            if self.leftover == "borrow" and len(aside):
                partner = _borrowed(cells, aside, stream.sub("borrow"))
            lent = partner >= 0
            to = np.concatenate((to, aside[lent], partner[lent]))
            of = np.concatenate((of, partner[lent], aside[lent]))
            if not len(to):
                raise _nothing_moves(cells, why, borrowing=self.leftover == "borrow")
            count, staying = int(cells.flagged.sum()), int((~lent).sum()) + without_area
            facts: dict[str, object] = {
                "what": cells.what,
                "flagged": count,
                "cells": len(flagged.start) - 1,
                "cycles": {size: int(made.lengths[size]) for size in np.flatnonzero(made.lengths).tolist()},
                "moved_in_cycles": int(made.counts[0]),
                "set_aside": {
                    **{reason: int((why == code).sum()) for code, reason in _REASONS.items()},
                    **({"no area": without_area} if without_area else {}),
                },
                "borrowed": int(lent.sum()),
                "left": staying,
                "carried_along": ", ".join(cells.columns),
                "warnings": self._warnings(cells.what, count, staying),
            }
            left = {
                f"left, {reason}": cells.units.members(np.sort(aside[(why == code) & ~lent]))[0]
                for code, reason in _REASONS.items()
            }
            move = Move(cells.columns, (to, of), units=cells.units if cells.unit else None)
            details = Details(facts, {name: rows for name, rows in left.items() if len(rows)})
            return Plan([move], data=data, details=details, steering_columns=self.steering_columns)

        return Prepared(draw)

    def _warnings(self, what: str, flagged: int, left: int) -> list[str]:
        """Return what whoever judges the swap should know."""
        if left <= MANY_LEFT * flagged:
            return []
        borrow = "" if self.leftover == "borrow" else ', or leftover="borrow",'
        return [
            f"{left:,} of {flagged:,} flagged {what}s stay where they are; the account has the reasons. Fewer columns "
            f"in 'same'{borrow} move more of them."
        ]

    def movement(self, data: Data) -> Movement:
        """Return all levels of geography and what is carried, which move with whole units.

        >>> import quadrille as qd
        >>> recipe = qd.CycleSwap(risk=["status"], same=["hh_size"])
        >>> recipe.movement(qd.datasets.households())
        Movement(together=(('region',),), same=('hh_size',), closed=(), unit='hh_id')
        """
        unit = units_of(data, self.unit, _OWNER)[1]
        return Movement((self._moved(levels_of(data, (), _OWNER)),), tuple(self.same), unit=unit)

    def _moved(self, levels: Sequence[str]) -> tuple[str, ...]:
        return (*(name for name in levels if name not in self.same), *self.carry)

    def _cells(self, data: Data) -> _Cells:
        levels = levels_of(data, (), _OWNER)
        level = self._level(levels)
        units, unit = units_of(data, self.unit, _OWNER)
        areas = areas_of(data, levels, units, _OWNER)
        both = [name for name in self.carry if name in levels]
        if both:
            raise OverlapError(f"Column {both[0]!r} in 'carry' of {_OWNER} is a level of geography, and all travel.")
        refuse_carried(data, self.carry, self.risk, self._moved(levels), unit, _OWNER)
        refuse_within(data, units, (*self.same, *self.carry), _OWNER)
        if self.flag is not None:
            rows = flags_of(data, self.flag, "flag", _OWNER)
            flagged = np.zeros(units.count, dtype=np.bool_)
            flagged[units.of[rows]] = True
            none = f"Column {self.flag!r}, given as 'flag' of {_OWNER}, is true for nobody, so nothing is swapped."
        else:
            counts = smallest_counts(data, self.risk, areas, units, _OWNER)[level]
            flagged = counts < self.k
            none = (
                f"Nobody is at risk: in every area of {levels[level]!r} each combination of 'risk' has at least "
                f"{int(counts.min()):,} records, and 'k' of {_OWNER} is {self.k:,}. Count more columns, or raise k."
            )
        if not flagged.any():
            raise InputError(none)
        keys = [(values[units.first], size) for values, size in (codes_of(data, name) for name in self.same)]
        return _Cells(
            units,
            unit,
            areas,
            group_ids(keys, units.count)[0],
            areas.at(level).astype(np.int64),
            flagged,
            self._moved(levels),
        )

    def _level(self, levels: Sequence[str]) -> int:
        """Return the place of the level of geography that counts."""
        if self.area is not None and self.area not in levels:
            raise ParameterError(
                f"'area' of {_OWNER} names {self.area!r}, which is no level of geography. They are {', '.join(levels)}."
            )
        level = len(levels) - 1 if self.area is None else list(levels).index(self.area)
        for name in self.same:
            if name in levels[level:]:
                raise OverlapError(
                    f"Column {name!r} in 'same' of {_OWNER} is the level of geography on which the members of a cycle "
                    f"differ, or lies in it. Keep coarser levels than {levels[level]!r} the same, or none."
                )
        return level


class _Cells(NamedTuple):
    """The units of a file: key cell and area of each, who is flagged, and what moves."""

    units: Units
    unit: str | None
    areas: Areas
    cell: Ints
    area: Ints
    flagged: Flags
    columns: tuple[str, ...]

    @property
    def what(self) -> str:
        return "unit" if self.unit else "record"

    def sorted(self, chosen: Flags) -> kernels.Flagged:
        """Return some units sorted by key cell and area, and where each cell begins."""
        which = np.flatnonzero(chosen)
        key, count = group_ids([(self.cell[which], int(self.cell.max()) + 1)], len(which))
        order = np.lexsort((self.area[which], key))
        start = np.searchsorted(key[order], np.arange(count + 1))
        return kernels.Flagged(which[order], self.area[which][order], start)


def _cycles(flagged: kernels.Flagged, length: int, stream: Stream) -> kernels.Cycles:
    def attempt(words: Words) -> kernels.Cycles | None:
        dice = kernels.dice(words)
        made = kernels.make_cycles(flagged, length, dice)
        return None if dice.cursor[1] else made

    return draw_until_enough(attempt, stream, guess=_WORDS * len(flagged.unit))


def _borrowed(cells: _Cells, aside: Ints, stream: Stream) -> Ints:
    """Return the partner that each unit which is set aside borrows, -1 where there is none."""
    needed = np.zeros(int(cells.cell.max()) + 1, dtype=np.bool_)
    needed[cells.cell[aside]] = True
    lenders = np.flatnonzero(~cells.flagged & cells.areas.known & needed[cells.cell])
    areas = int(cells.area.max()) + 1
    key = cells.cell[lenders] * areas + cells.area[lenders]
    order = np.argsort(key, kind="stable")
    runs, run = np.unique(key[order], return_index=True)
    wanted = cells.cell[aside] * areas + cells.area[aside]
    own = np.minimum(np.searchsorted(runs, wanted), max(len(runs) - 1, 0))
    own = np.where(runs[own] == wanted, own, -1) if len(runs) else np.full(len(aside), -1)
    of_cell = np.searchsorted(runs, np.arange(len(needed) + 1) * areas)
    ends = np.append(run, len(lenders)).astype(np.int64)
    turn = random_order(len(aside), stream.sub("order"))

    def attempt(words: Words) -> Ints | None:
        dice = kernels.dice(words)
        listed = kernels.Lenders(lenders[order], of_cell, ends, np.diff(ends))
        partner = np.empty(len(aside), dtype=np.int64)
        kernels.borrow(cells.cell[aside], own, turn, listed, np.zeros(len(lenders), dtype=np.bool_), partner, dice)
        return None if dice.cursor[1] else partner

    return draw_until_enough(attempt, stream.sub("partners"), guess=_WORDS * len(aside))


def _nothing_moves(cells: _Cells, why: Ints, *, borrowing: bool) -> InfeasibleError:
    reasons = ", ".join(f"{reason}: {int((why == code).sum()):,}" for code, reason in _REASONS.items() if code in why)
    return infeasible(
        f"None of the {int(cells.flagged.sum()):,} flagged {cells.what}s can move ({reasons or 'no area'}).",
        1,
        0,
        exact=True,
        hint="Name fewer columns in 'same'"
        + ("." if borrowing else ', or let them borrow a partner (leftover="borrow").'),
    )
