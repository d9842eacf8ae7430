"""From the parameters of a targeted swap and a file to units, areas, risk, profiles and quotas: all but the draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Data, Flags, Floats, Ints, Units
from quadrille.errors import InputError, OverlapError, ParameterError
from quadrille.expressions import Rules
from quadrille.recipe import half_up
from quadrille.swap.controlled.frame import flags_of, numbers_of
from quadrille.swap.groups import codes_of, group_ids, sorted_by
from quadrille.swap.pairing import Candidates, RuleCounts, count_pairs
from quadrille.swap.targeted.risk import (
    Areas,
    Combinations,
    Counts,
    areas_of,
    level_at_risk,
    levels_of,
    refuse_carried,
    refuse_within,
    units_of,
)

if TYPE_CHECKING:
    from quadrille.swap.targeted import TargetedSwap

OWNER = "TargetedSwap"
_SCALE = 1 << 30
"""Weights are whole numbers up to this."""
_TABLE = 4
"""A class looks up the first place of each area in a table where that has up to this many entries per unit."""


class Quota(NamedTuple):
    """How many units, or pairs, the lowest areas get: `total` in proportion to `share`, whose sum is `whole`."""

    pairs: int
    total: int
    share: Ints

    def of(self, u: int) -> Ints:
        """Return the quota of each area for a number u from 0 to the sum of the shares, less one.

        Q_a = floor((C_a T + u) / X) - floor((C_(a-1) T + u) / X), C_a the running sum of the shares and X the last.
        """
        running: list[int] = [0, *np.cumsum(self.share).tolist()]
        whole = running[-1]
        if not whole:
            return np.zeros(len(self.share), dtype=np.int64)
        return np.diff(np.array([(each * self.total + u) // whole for each in running], dtype=np.int64))

    @property
    def whole(self) -> int:
        """The sum of the shares."""
        return int(self.share.sum())


@dataclass(frozen=True, eq=False)
class Problem:
    """What a targeted swap is about; `m` or `score` is given by level and unit, `level` is the coarsest at risk.

    `place` are the profiles as the kernels see them, `areas_as_classes` the lowest areas in the same form.
    """

    recipe: TargetedSwap
    data: Data
    units: Units
    unit: str | None
    columns: tuple[str, ...]
    areas: Areas
    never: Flags
    takes_part: Flags
    combinations: Combinations | None
    m: Counts | None
    score: Floats | None
    level: NDArray[np.int8]
    place: kernels.Profiles
    areas_as_classes: kernels.Profiles
    rules: kernels.UnitRules
    rule_texts: Rules
    rule_counts: RuleCounts | None
    quota: Quota

    def weight(self, level: int) -> Counts:
        """Return w_h of each unit: its risk as a whole number up to 2^30."""
        if self.m is not None:
            return np.maximum(1, _SCALE // self.m[level]).astype(np.int32)
        assert self.score is not None
        score = self.score[level]
        top = score.max(initial=0.0)
        if not top:
            return np.zeros(len(score), dtype=np.int32)
        return np.where(score > 0, np.maximum(1, np.floor(_SCALE * (score / top))), 0).astype(np.int32)

    def urgency(self, level: int, targets: Ints) -> NDArray[np.floating | np.integer]:
        """Return what sorts targets, those at the highest risk first."""
        if self.m is not None:
            return self.m[level][targets]
        assert self.score is not None
        return -self.score[level][targets]


def problem_of(recipe: TargetedSwap, data: Data) -> Problem:
    """Look at a file for a recipe, and refuse what cannot be done."""
    units, unit = units_of(data, recipe.unit, OWNER)
    levels = levels_of(data, recipe.levels, OWNER)
    columns = moved_columns(recipe, data)
    profiles = _profiles(recipe, data, levels)
    refuse_carried(data, recipe.carry, (*recipe.risk, *recipe.scores), columns, unit, OWNER)
    refuse_within(data, units, [*columns, *(name for profile in profiles for name in profile)], OWNER)
    areas = areas_of(data, levels, units, OWNER)
    never = np.zeros(units.count, dtype=np.bool_)
    never[units.of[flags_of(data, recipe.never, "never", OWNER)]] = True
    takes_part = areas.known & ~never
    combinations, m, score, level = _risk(recipe, data, areas, units)
    along = _along_the_map(areas, takes_part)
    classes = [group_ids([_first(data, name, units) for name in profile], units.count) for profile in profiles]
    rules = Rules.of(data, recipe.rules, OWNER)
    edits, counts = _edits(rules, columns, units, takes_part, classes[-1][0], areas.path)
    quota = _quota(recipe, data, units, areas)
    _refuse_nothing(recipe, quota, level, m, levels)
    return Problem(
        recipe=recipe,
        data=data,
        units=units,
        unit=unit,
        columns=columns,
        areas=areas,
        never=never,
        takes_part=takes_part,
        combinations=combinations,
        m=m,
        score=score,
        level=level,
        place=places(classes, along, areas),
        areas_as_classes=places([(areas.path, areas.count)], along, areas),
        rules=edits,
        rule_texts=rules,
        rule_counts=counts,
        quota=quota,
    )


def _risk(
    recipe: TargetedSwap, data: Data, areas: Areas, units: Units
) -> tuple[Combinations | None, Counts | None, Floats | None, NDArray[np.int8]]:
    """Return the combinations and their least counts, or the scores, and the level at which each unit is at risk."""
    if recipe.scores:
        score = _scores(recipe, data, areas.levels, units)
        return None, None, score, level_at_risk(score > (recipe.threshold or 0.0))
    combinations = Combinations.find(data, recipe.risk, OWNER)
    m = combinations.least(areas, units)
    return combinations, m, None, level_at_risk(m < recipe.k)


def risk_of(recipe: TargetedSwap, data: Data) -> tuple[Units, Areas, NDArray[np.int8]]:
    """Return units, areas and the coarsest level at which each unit is at risk, before any draw."""
    units, _ = units_of(data, recipe.unit, OWNER)
    areas = areas_of(data, levels_of(data, recipe.levels, OWNER), units, OWNER)
    return units, areas, _risk(recipe, data, areas, units)[-1]


def moved_columns(recipe: TargetedSwap, data: Data) -> tuple[str, ...]:
    """Return all columns that move: every level of geography, and what is carried along."""
    levels = levels_of(data, (), OWNER)
    return (*levels, *(name for name in recipe.carry if name not in levels))


def _profiles(recipe: TargetedSwap, data: Data, levels: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the profiles; refuse a level of geography within which nobody has a partner."""
    known = levels_of(data, (), OWNER)
    fine = known[known.index(levels[-1]) :]
    for profile in recipe.similar:
        for name in profile:
            if name in fine:
                raise OverlapError(
                    f"'similar' of {OWNER} names {name!r}, the lowest level of geography that counts, or one below it. "
                    "Partners come from different areas of that level, so no pair could exist. Leave it out."
                )
    return tuple(map(tuple, recipe.similar))


def _first(data: Data, name: str, units: Units) -> tuple[Ints, int]:
    codes, count = codes_of(data, name)
    return codes[units.first], count


def _scores(recipe: TargetedSwap, data: Data, levels: Sequence[str], units: Units) -> Floats:
    """Return the score of each unit, level by level: the largest of its members."""
    if len(recipe.scores) != len(levels):
        raise ParameterError(
            f"'scores' of {OWNER} names {len(recipe.scores):,} columns, and {len(levels):,} levels of geography count: "
            f"{', '.join(levels)}. Name one column per level, the coarsest first, or say with 'levels' which count."
        )
    made = np.zeros((len(levels), units.count))
    for h, name in enumerate(recipe.scores):
        values = numbers_of(data[name])
        place = f"Column {name!r}, given as 'scores' of {OWNER},"
        if values is None:
            raise InputError(f"{place} must hold numbers. It holds text.")
        bad = int((~((values >= 0) & (values < np.inf))).sum())
        if bad:
            raise InputError(f"{place} is missing, negative or infinite in {bad:,} rows. Scores must be 0 or more.")
        np.maximum.at(made[h], units.of, values)
    return made


def _edits(
    rules: Rules, columns: Sequence[str], units: Units, takes_part: Flags, of_class: Ints, path: Ints
) -> tuple[kernels.UnitRules, RuleCounts | None]:
    """Return what units are to the rules: what stays with any of its members counts, what moves all have in common.

    Counted are the pairs of units in different lowest areas that the last profile allows.
    """
    about = rules.about(columns)
    if not about:
        nothing = np.zeros((units.count, 0), dtype=np.int64)
        return kernels.UnitRules(nothing, nothing), None
    edits = about.edits(columns)
    stay = np.bitwise_or.reduceat(edits.stay[units.rows], units.start, axis=0)
    of_units = edits.take(units.first)._replace(stay=stay)
    one = takes_part.astype(np.int64)
    counts = count_pairs(about, columns, of_units, Candidates(of_class, [path], one, one, both=True))
    return kernels.UnitRules(stay, of_units.move), counts


def _along_the_map(areas: Areas, takes_part: Flags) -> Ints:
    """Return the units that take part, sorted by lowest area; those of one area in the order of the file."""
    units = np.flatnonzero(takes_part)
    return units[sorted_by(areas.path[units], areas.count)[0]]


def places(classes: Sequence[tuple[Ints, int]], along: Ints, areas: Areas) -> kernels.Profiles:
    """Sort units, which are given along the map, by class, profile after profile."""
    units = len(areas.path)
    first_class = np.cumsum([0, *(count for _, count in classes)])
    order = np.empty(len(classes) * len(along), dtype=np.int32)
    of, place = (np.full((len(classes), units), -1, dtype=np.int32) for _ in range(2))
    start = np.zeros(int(first_class[-1]) + 1, dtype=np.int64)
    for p, (class_of, count) in enumerate(classes):
        sorted_places, begin = sorted_by(class_of[along], count)
        mine, offset = along[sorted_places], p * len(along)
        order[offset : offset + len(along)] = mine
        start[first_class[p] : first_class[p + 1] + 1] = offset + begin
        place[p, mine] = np.arange(len(along)) - begin[class_of[mine]]
        of[p, mine] = first_class[p] + class_of[mine]
    size = np.diff(start)
    nodes, left = size.copy(), size
    while bool((left > 8).any()):
        left = np.where(left > 8, (left + 7) >> 3, 0)
        nodes += left
    path = areas.path[order].astype(np.int32)
    tabled = areas.count + 1 <= _TABLE * size
    table = np.where(tabled, (np.cumsum(tabled) - 1) * (areas.count + 1), -1)
    first = np.zeros(int(tabled.sum()) * (areas.count + 1), dtype=np.int32)
    kernels.first_places(start, path, table, areas.count, first)
    low, high = (
        np.stack([ends[of_level + end] for ends, of_level in zip(areas.ends, areas.of_level, strict=True)])
        for end in (0, 1)
    )
    return kernels.Profiles(
        classes=first_class,
        start=start,
        tree=np.append(0, np.cumsum(nodes)),
        order=order,
        path=path,
        of=of,
        place=place,
        table=table,
        first=first,
        low=low.astype(np.int32),
        high=high.astype(np.int32),
    )


def _quota(recipe: TargetedSwap, data: Data, units: Units, areas: Areas) -> Quota:
    """Return how many pairs a rate asks for, and what each lowest area shall get."""
    share = np.bincount(areas.path[areas.known], minlength=areas.count)
    if isinstance(recipe.rate, str):
        rate = area_rates(data, recipe.rate, units, areas)
        asked = sum(
            (Fraction(str(each)) * count for each, count in zip(rate.tolist(), share.tolist(), strict=True)), Fraction()
        )
        pairs = floor(asked / 2 + Fraction(1, 2))
        share = share * np.rint(rate * 2.0**32).astype(np.int64)
    else:
        pairs = half_up(recipe.rate, units.count, of=2)
    pairs = min(pairs, units.count // 2)
    return Quota(pairs, 2 * pairs if recipe.quota == "area" else pairs, share)


def area_rates(data: Data, name: str, units: Units, areas: Areas) -> Floats:
    """Return the rate of each lowest area from the column that holds it; 0 where no unit is known to be."""
    place = f"Column {name!r}, given as 'rate' of {OWNER},"
    values = numbers_of(data[name])
    if values is None:
        raise InputError(f"{place} must hold numbers. It holds text.")
    rows = np.flatnonzero(areas.known[units.of])
    values, area = values[rows], areas.path[units.of[rows]]
    bad = int((~((values >= 0) & (values <= 1))).sum())
    if bad:
        raise InputError(f"{place} is missing or outside [0, 1] in {bad:,} rows. It must be a share of units.")
    low, high = np.full(areas.count, np.inf), np.zeros(areas.count)
    np.minimum.at(low, area, values)
    np.maximum.at(high, area, values)
    varies = int((low < high).sum())
    if varies:
        raise InputError(
            f"{place} varies within {varies:,} of {areas.count:,} areas of {areas.levels[-1]!r}. Give each one rate."
        )
    return high


def _refuse_nothing(
    recipe: TargetedSwap,
    quota: Quota,
    level: NDArray[np.int8],
    m: Counts | None,
    levels: Sequence[str],
) -> None:
    """Refuse a recipe that asks for nothing: nobody is at risk and the rate gives no pair, or a cap of no pair."""
    n = len(level)
    if quota.pairs or (recipe.mode == "floor" and bool((level >= 0).any())):
        return
    least = f"The smallest rate that gives one pair is {1 / n:.3g}." if n > 1 else "Swapping takes two units or more."
    if recipe.mode == "cap":
        raise ParameterError(f"The 'rate' parameter of {OWNER} with mode=\"cap\" allows no pair at all. {least}")
    if m is not None:
        counts = ", ".join(f"{int(each.min()):,} at {name}" for each, name in zip(m, levels, strict=True))
        why = f"no combination of 'risk' has a count below k = {recipe.k}; the smallest are {counts}"
        hint = "Raise 'k', add risk variables or a finer level"
    else:
        why = f"no score is above {recipe.threshold or 0:g}"
        hint = "Lower 'threshold'"
    raise ParameterError(
        f"{OWNER} has nothing to swap: nobody is at risk, and the rate gives no pair. That is, {why}. {hint}, or give "
        f"a rate. {least}"
    )
