"""Who is at risk, area by area and level by level, before any draw: what methods that move whole units begin with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Column, Data, Flags, Ints, Units, require_columns
from quadrille.errors import InputError, OverlapError, ParameterError, bad_parameter, infeasible
from quadrille.recipe import one_area, refuse_fixed
from quadrille.swap.groups import group_ids, sorted_by
from quadrille.text import Shown

Counts = NDArray[np.int32]
NOT_AT_RISK = -1
MANY_LEFT = 0.02
"""A larger share of those at risk that could not be swapped is worth a warning."""
_MOST_CELLS = 2
"""Counts stand in a table of up to this many cells per row; beyond, rows are sorted."""


def units_of(data: Data, unit: str | None, owner: str) -> tuple[Units, str | None]:
    """Return the units, and the column of their numbers: that named, or with the role unit; else every record is one.

    A record without a number of its unit is refused: nobody knows with whom it would move.
    """
    name = unit or next((variable.name for variable in data.codebook if variable.role == "unit"), None)
    if name is None:
        rows = np.arange(data.n)
        return Units(rows, rows, np.ones(data.n, dtype=np.int64), rows), None
    absent = int(_absent(data[name]).sum())
    if absent:
        raise InputError(
            f"Column {name!r} numbers the units that {owner} moves, and it is missing in {absent:,} rows. Give every "
            "record the number of its unit, or leave these records out."
        )
    return data.units(name), name


def levels_of(data: Data, levels: Sequence[str], owner: str) -> tuple[str, ...]:
    """Return the levels of geography that count, the coarsest first: those named, or all."""
    known = data.codebook.geography or _lone_level(data)
    if not known:
        raise InputError(
            f"The file has no levels of geography, and {owner} moves units between areas. Declare them: role geography "
            "with a level in the codebook, or with_roles(geography=[...]), the coarsest first (--geography)."
        )
    for name in levels:
        if name not in known:
            raise ParameterError(
                f"'levels' of {owner} names {name!r}, which is no level of geography. They are {', '.join(known)}."
            )
    chosen = tuple(name for name in known if name in levels or not levels)
    if levels and chosen != tuple(levels):
        raise ParameterError(f"'levels' of {owner} must list the coarsest first: {', '.join(chosen)}.")
    return chosen


def _lone_level(data: Data) -> tuple[str, ...]:
    """Return the only column of geography where it has no level: there is nothing that it could lie in."""
    alone = tuple(variable.name for variable in data.codebook if variable.role == "geography" and variable.coded)
    return alone if len(alone) == 1 else ()


@dataclass(frozen=True, eq=False, repr=False)
class Areas(Shown):
    """The areas of units. Lowest areas are numbered along the codebook, so every area of every level is a run of them.

    `path` is the lowest area of each unit, `known` whether all its levels are known, `of_level[h]` the area of level h
    that each lowest area lies in, numbered in the same order.
    """

    levels: tuple[str, ...]
    path: Ints = field(repr=False)
    known: Flags = field(repr=False)
    of_level: tuple[Ints, ...] = field(repr=False)

    @property
    def count(self) -> int:
        """The number of lowest areas."""
        return len(self.of_level[0])

    @cached_property
    def ends(self) -> tuple[Ints, ...]:
        """Level by level, where the run of lowest areas of each area begins, and the end of the last."""
        return tuple(np.searchsorted(of, np.arange(int(of[-1]) + 2)) for of in self.of_level)

    def at(self, level: int) -> Counts:
        """Return the area of each unit at a level."""
        return self.of_level[level].astype(np.int32)[self.path]


def areas_of(data: Data, levels: Sequence[str], units: Units, owner: str) -> Areas:
    """Return the areas of units; refuse levels on which members of a unit differ, and a file of one area."""
    refuse_within(data, units, levels, owner)
    columns = [data[name] for name in levels]
    codes = [(column.one_missing[units.first].astype(np.int64), column.valid + 1) for column in columns]
    path, count = group_ids(codes, units.count)
    leader = np.zeros(count, dtype=np.int64)
    leader[path] = np.arange(units.count)
    known = np.ones(units.count, dtype=np.bool_)
    for (values, _), column in zip(codes, columns, strict=True):
        known &= values < column.valid
    if len(np.unique(path[known])) < 2:
        raise infeasible(one_area(levels[-1]), 1, 0, exact=True)
    of_level = tuple(
        group_ids([(values[leader], size) for values, size in codes[: h + 1]], count)[0] for h in range(len(levels))
    )
    return Areas(tuple(levels), path, known, of_level)


def refuse_within(data: Data, units: Units, columns: Sequence[str], owner: str) -> None:
    """Refuse columns that belong to whole units and differ between the members of some."""
    for name in columns:
        mixed = int(units.mixed(data[name].values).sum())
        if mixed:
            raise InputError(
                f"Column {name!r} differs within {mixed:,} of {units.count:,} households, and {owner} moves whole "
                "households: areas, profiles and what travels along must be the same for all members. Correct the "
                "file, name another unit, or leave the column out."
            )


def refuse_carried(
    data: Data, carry: Sequence[str], counted: Sequence[str], columns: Sequence[str], unit: str | None, owner: str
) -> None:
    """Refuse to move what must stay: identifiers, weights, the number of the unit, and what tells who is at risk."""
    refuse_fixed(data, carry)
    for name in counted:
        if name in columns:
            raise OverlapError(
                f"Column {name!r} says who is at risk in {owner} and moves with the household. What moves cannot say "
                "who is at risk in an area, and all levels of geography travel."
            )
    for name in carry:
        if name == unit or data.codebook[name].role == "unit":
            raise InputError(f"Column {name!r} numbers the units, which move: it cannot be in 'carry' of {owner}.")


@dataclass(frozen=True, eq=False, repr=False)
class Combinations(Shown):
    """The combination of risk variables of each row, a missing value being a category of its own, and their number."""

    of: Counts = field(repr=False)
    count: int

    @classmethod
    def find(cls, data: Data, risk: Sequence[str], owner: str) -> Combinations:
        """Number the combinations that occur."""
        columns = [data.coded(name, purpose=f"'risk' of {owner}") for name in risk]
        of, count = group_ids([(column.one_missing, column.valid + 1) for column in columns], data.n)
        return cls(of.astype(np.int32), count)

    def least(self, areas: Areas, units: Units) -> Counts:
        """Return m[h, y], level by level: the least frequency in the unit's area of the combinations of its members."""
        rows = len(self.of)
        least = np.full((len(areas.levels), units.count), rows, dtype=np.int32)
        order: NDArray[np.int32] | None = None
        for h in range(len(areas.levels)):
            area, count = areas.at(h), len(areas.ends[h]) - 1
            if self.count * count <= _MOST_CELLS * rows:
                table = np.zeros(self.count * count, dtype=np.int32)
                kernels.least_in_table(self.of, units.of, area, count, table, least[h])
                continue
            if order is None:  # by combination, then along the map: one order for all levels
                along = sorted_by(areas.path[units.of], areas.count)[0]
                order = along[sorted_by(self.of[along].astype(np.int64), self.count)[0]].astype(np.int32)
            kernels.least_in_runs(order, self.of, units.of, area, least[h])
        return least


def smallest_counts(data: Data, risk: Sequence[str], areas: Areas, units: Units, owner: str) -> Counts:
    """Return m[h, y]: the least frequency, in the unit's area of level h, of the risk combinations of its members.

    c_h(i) counts the rows with the area of level h and the values of all `risk` columns of row i, where a missing value
    is a category of its own; m_h(y) is the least c_h over the members of y.

    >>> import polars as pl
    >>> import quadrille as qd
    >>> from quadrille.swap.targeted.risk import areas_of, smallest_counts
    >>> frame = pl.DataFrame({"area": ["N", "N", "S", "S", "S"], "hh": [1, 1, 2, 3, 3], "age": [4, 5, 4, 4, 5]})
    >>> data = qd.from_frame(frame).with_roles(unit="hh", geography=["area"])
    >>> units = data.units("hh")
    >>> smallest_counts(data, ["age"], areas_of(data, ["area"], units, "this"), units, "this").tolist()
    [[1, 2, 1]]
    """
    return Combinations.find(data, risk, owner).least(areas, units)


def level_at_risk(at_risk: Flags) -> NDArray[np.int8]:
    """Return the coarsest level at which each unit is at risk, given as at_risk[h, y]; NOT_AT_RISK for none."""
    return np.where(at_risk.any(axis=0), at_risk.argmax(axis=0), NOT_AT_RISK).astype(np.int8)


def _absent(column: Column) -> Flags:
    return column.values >= column.valid if column.variable.coded else np.isnan(column.values)


_OWNER, _METHOD = "inspect", "TargetedSwap"


@dataclass(frozen=True, repr=False)
class AtRiskHere(Shown):
    """One level. Units and records are at risk here and at no coarser level; `share` is of the units, here or above.

    `moved` are all records of the units: when one member is at risk, the whole unit moves.
    """

    level: str
    areas: int
    smallest: int
    units: int
    records: int
    moved: int
    share: float


@dataclass(frozen=True, repr=False)
class RiskByLevel(Shown):
    """Who is at risk, level by level, the coarsest first: a combination of `risk` with a count below k in the area.

    `without_area` are the units of which a level of geography is missing: they count, and cannot be swapped.
    """

    risk: tuple[str, ...]
    k: int
    unit: str | None
    units: int
    records: int
    without_area: int
    levels: tuple[AtRiskHere, ...]

    @property
    def at_risk(self) -> int:
        """The number of units at risk at any level."""
        return sum(level.units for level in self.levels)


def risk_by_level(data: Data, risk: Sequence[str], k: int = 3) -> RiskByLevel:
    """Count the units and records at risk at each level of geography.

    A record is at risk at a level when its combination of the risk variables has a count below k in its area of that
    level, and so is its unit; each is counted at the coarsest such level.

    >>> import quadrille as qd
    >>> from quadrille.swap.targeted.risk import risk_by_level
    >>> found = risk_by_level(qd.datasets.census(), ["hincome", "ageGroup", "gender"])
    >>> [(level.level, level.smallest, level.units) for level in found.levels]
    [('nuts1', 58, 0), ('nuts2', 4, 0), ('nuts3', 1, 8837), ('lau2', 1, 1044)]
    """
    _check(data, risk, k)
    levels = levels_of(data, (), _METHOD)
    units, unit = units_of(data, None, _METHOD)
    areas = areas_of(data, levels, units, _METHOD)
    combinations = Combinations.find(data, risk, _METHOD)
    of_units = combinations.least(areas, units)
    rows = np.arange(data.n)
    each = Units(rows, rows, np.ones(data.n, dtype=np.int64), rows)
    of_rows = combinations.least(replace(areas, path=areas.path[units.of], known=areas.known[units.of]), each)
    first, first_of_rows = level_at_risk(of_units < k), level_at_risk(of_rows < k)
    here = [first == h for h in range(len(levels))]
    count = np.array([int(flags.sum()) for flags in here])
    return RiskByLevel(
        risk=tuple(risk),
        k=k,
        unit=unit,
        units=units.count,
        records=data.n,
        without_area=int((~areas.known).sum()),
        levels=tuple(
            AtRiskHere(
                level=name,
                areas=_occupied(areas, h),
                smallest=int(of_units[h].min()),
                units=int(count[h]),
                records=int((first_of_rows == h).sum()),
                moved=int(units.sizes[here[h]].sum()),
                share=int(count[: h + 1].sum()) / units.count,
            )
            for h, name in enumerate(levels)
        ),
    )


def _occupied(areas: Areas, level: int) -> int:
    """Return the number of areas of a level in which somebody lives."""
    found: Ints = np.unique(areas.of_level[level][areas.path[areas.known]])
    return len(found)


def _check(data: Data, risk: Sequence[str], k: int) -> None:
    if isinstance(risk, str) or not risk:
        raise bad_parameter(_OWNER, "risk", "a list of columns whose combination is counted", risk)
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise bad_parameter(_OWNER, "k", "a whole number of 1 or more", k)
    require_columns(data, risk, f"'risk' of {_OWNER}")
    if len(set(risk)) < len(risk):
        raise InputError(f"A column occurs twice in 'risk' of {_OWNER}. Name each once.")
    for name in risk:
        role = data.codebook[name].role
        if role == "geography":
            raise OverlapError(
                f"Column {name!r} is a level of geography, and {_OWNER} counts combinations within each area anyway. "
                "Leave it out of 'risk'."
            )
        if role in ("id", "unit") or name == data.weight:
            what = "the weight" if name == data.weight else "an identifier"
            raise InputError(f"Column {name!r} is {what}, so nobody is like another in it. Leave it out of 'risk'.")
