"""What the records of a group have in common as a whole: one head each, so many children, every year once, a sum.

Groups are the members of a household, the years of a person: records that share a value of a column which may number
them. A record that leaves or joins spoils the whole, although no record of its own is impossible.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from quadrille.data import Flags, Floats, Ints, Rows
from quadrille.score.coded import NEARLY, Coded, Codes32, beyond_chance, some_groups

WholeKind = Literal["one of each", "all different", "adds up"]

_MOST_RECORDS = 200
"""Groups of more records on average are areas or classes, not units."""
_MOST_CATEGORIES = 60
"""Categories are counted one by one where a column has no more than these."""
_MOST_PLACES = 200
"""A column of more values puts no records in order: hardly two have the same by chance."""


class Whole(NamedTuple):
    """What groups have in common: `given` is the column of the groups, and the column that has the total.

    `categories` are how many categories of the column are counted so; 0 where its numbers are added up.
    """

    kind: WholeKind
    given: tuple[str, ...]
    column: str
    share: float
    categories: int = 0


def wholes(coded: Coded) -> Iterator[Whole]:
    """Yield what the groups of each column that may number units have in common, looking at some groups first."""
    for name in coded.names:
        if _may_number_units(coded, name):
            some = some_groups(coded, (name,))
            found = list(_of_groups(_Groups(coded, name, some), coded.names))
            if found and len(some) < coded.n:
                again = _Groups(coded, name, np.arange(coded.n))
                found = _of_groups(again, {name for each in found for name in (*each.given, each.column)})
            yield from found


def _may_number_units(coded: Coded, name: str) -> bool:
    role = coded.data.codebook[name].role
    if role == "unit":
        return True
    several = coded.n <= _MOST_RECORDS * coded.sizes[name] and 2 * coded.sizes[name] <= coded.n
    whole = coded.numbers_of_codes[name] is None or coded.decimals(name) == 0
    return several and whole and role != "weight" and name != coded.data.weight


class _Groups:
    """Some or all groups of the records that share a value of a column."""

    def __init__(self, coded: Coded, name: str, rows: Rows) -> None:
        self.coded, self.name, self.rows = coded, name, rows
        groups, self._first, self.of = np.unique(coded.codes[name][rows], return_index=True, return_inverse=True)
        self.count = len(groups)

    @cached_property
    def largest(self) -> int:
        """How many records the largest group has."""
        return int(np.bincount(self.of).max())

    def codes(self, column: str) -> Codes32:
        """Return the codes of a column."""
        return self.coded.codes[column][self.rows]

    def mixed(self, column: str) -> Codes32:
        """Return the codes of a column in random order: what chance gives."""
        codes = self.codes(column)
        return codes[self.coded.order[self.coded.order < len(codes)]]

    def agree(self, column: str) -> bool:
        """Whether all records of every group have the same value."""
        codes = self.codes(column)
        return bool((codes == codes[self._first][self.of]).all())

    def totals(self, weights: Floats | Flags) -> Floats:
        """Add up what each record has, group by group."""
        return np.bincount(self.of, weights=weights, minlength=self.count).astype(np.float64)

    def of_group(self, column: str) -> Floats | None:
        """Return the number of a column that its groups agree on; None where it has no numbers, or gaps."""
        numbers = self.coded.numbers_of_codes[column]
        values = None if numbers is None else numbers[self.codes(column)[self._first]]
        return None if values is None or np.isnan(values).any() else values


def _of_groups(groups: _Groups, names: Sequence[str] | set[str]) -> Iterator[Whole]:
    if groups.count < 2 or groups.largest < 2:
        return
    others = [name for name in groups.coded.names if name != groups.name and name in names]
    shared = {name: groups.of_group(name) for name in others if groups.agree(name)}
    wanted = {name: values for name, values in shared.items() if values is not None}
    for column in (name for name in others if name not in shared):
        share = _all_different(groups, column)
        if share is not None:
            yield Whole("all different", (groups.name,), column, share)
        yield from _adding_up(groups, column, wanted)


def _all_different(groups: _Groups, column: str) -> float | None:
    """Return the share of the records that no other one of their group is like; None if that is nothing."""
    size = groups.coded.sizes[column]
    if not groups.largest <= size <= _MOST_PLACES:
        return None
    failures = _repeated(groups.of, groups.codes(column), size)
    if failures > NEARLY * len(groups.rows):
        return None
    by_chance = _repeated(groups.of, groups.mixed(column), size)
    return 1 - failures / len(groups.rows) if by_chance >= beyond_chance(failures) else None


def _repeated(of: Ints, codes: Codes32, size: int) -> int:
    """Count the records with a value that another one of their group has."""
    counts = np.unique(of * size + codes, return_counts=True)[1]
    return int(counts[counts > 1].sum())


def _adding_up(groups: _Groups, column: str, wanted: Mapping[str, Floats]) -> Iterator[Whole]:
    """Yield the totals of a column: a category that each group has once, or as often as a number of the group says."""
    codes, mixed, size = groups.codes(column), groups.mixed(column), groups.coded.sizes[column]
    told: dict[str, list[float]] = {}
    for code in range(size if size <= _MOST_CATEGORIES else 0):
        held, by_chance = groups.totals(codes == code), groups.totals(mixed == code)
        for name, total in {"": np.ones(groups.count), **wanted}.items():
            share = _holds(held, by_chance, total)
            if share is not None:
                told.setdefault(name, []).append(share)
    for name, shares in told.items():
        kind: WholeKind = "adds up" if name else "one of each"
        yield Whole(kind, (groups.name, *[name] * bool(name)), column, min(shares), len(shares))
    numbers = groups.coded.numbers_of_codes[column]
    if numbers is not None:
        known = np.nan_to_num(numbers)
        held, by_chance = groups.totals(known[codes]), groups.totals(known[mixed])
        for name, total in wanted.items():
            share = _holds(held, by_chance, total) if name not in told else None
            if share is not None:
                yield Whole("adds up", (groups.name, name), column, share)


def _holds(held: Floats, by_chance: Floats, total: Floats) -> float | None:
    """Return the share of the groups whose records add up to a total; None if that is nothing."""
    failures = int(unlike(held, total).sum())
    if failures > NEARLY * len(total) or unlike(by_chance, total).sum() < beyond_chance(failures):
        return None
    return 1 - failures / len(total)


def unlike(held: Floats, total: Floats) -> Flags:
    """Tell which sums are not the totals, but for the last digits of a number."""
    return np.abs(held - total) > 1e-9 * (1 + np.abs(total))


def breaks_whole(coded: Coded, kind: WholeKind, given: Sequence[str], column: str, source: Mapping[str, Rows]) -> Flags:
    """Tell which records spoil what their group has in common, each by itself.

    A record stands in the group of row `source[given]`, in its place, and has the value of row `source[column]`.
    """
    groups = _Groups(coded, given[0], np.arange(coded.n))
    here, codes = source[given[0]], coded.codes[column]
    group, before, now = groups.of[here], codes[here], codes[source[column]]
    if kind == "all different":
        size = coded.sizes[column]
        keys, counts = np.unique(groups.of * size + codes, return_counts=True)
        key = group * size + now
        place = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
        return (keys[place] == key) & (counts[place] - (before == now) > 0)
    total = groups.of_group(given[1]) if len(given) > 1 else np.ones(groups.count)
    found = np.zeros(len(group), dtype=np.bool_)
    if total is None:
        return found
    for weights in _weights(groups, column, total):
        after = groups.totals(weights[codes])[group] - weights[before] + weights[now]
        found |= unlike(after, total[group])
    return found


def _weights(groups: _Groups, column: str, total: Floats) -> Iterator[Floats]:
    """Yield what each code of a column counts for in the totals that hold: a category alone, or its number."""
    codes, size = groups.codes(column), groups.coded.sizes[column]
    counted = 0
    for code in range(size if size <= _MOST_CATEGORIES else 0):
        held = groups.totals(codes == code)
        if unlike(held, total).sum() <= NEARLY * len(total) and (codes == code).any():
            counted += 1
            yield np.eye(1, size, code)[0]
    numbers = groups.coded.numbers_of_codes[column]
    if not counted and numbers is not None:
        yield np.nan_to_num(numbers)
