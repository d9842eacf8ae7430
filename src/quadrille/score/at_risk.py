"""Who is at risk at each level of geography, before any draw: what a targeted swap would have to move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from quadrille.data import Data, Ints, Units, require_columns
from quadrille.errors import InputError, OverlapError, bad_parameter
from quadrille.swap.targeted.risk import Areas, Combinations, areas_of, level_at_risk, levels_of, units_of
from quadrille.text import Shown

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
    >>> from quadrille.score.at_risk import risk_by_level
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
