"""The levels of a design's factors as written: lists of numbers, "6 x 5000" for six alike, nested by factor."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import product
from math import isfinite
from typing import TypeVar, cast

from quadrille.study.job.table import Table, frozen

Number = TypeVar("Number", int, float)
Read = Callable[[Table, str], tuple[Number, ...]]
Combination = tuple[str, ...]

MOST_ENTRIES = 50_000
_ALIKE = re.compile(r"\s*(\d{1,6})\s*x\s*(\S+)\s*")
_SIZES = "a list of the records of each area, as in [5000, 5000, 30000]"
_SHARES = "a list of the share of each level, as in [0.8, 0.2]"
_SIZE = 'a whole number of 1 or more, or several alike as in "6 x 5000"'
_SHARE = 'a number of 0 or more, or several alike as in "5 x 0.2"'


def nested(
    place: str, section: str, found: Mapping[str, object], names: tuple[str, ...], read: Read[Number]
) -> tuple[tuple[tuple[str, ...], ...], dict[Combination, tuple[Number, ...]]]:
    """Read a section whose tables are nested as deep as it has factors; return their levels, and every combination."""
    entries: dict[Combination, tuple[Number, ...]] = {}
    _walk(f"{place}, [{section}", found, names, (), read, entries)
    levels = tuple(tuple(dict.fromkeys(key[i] for key in entries)) for i in range(len(names)))
    for combination in product(*levels):
        if combination not in entries:
            at = ".".join((section, *combination[:-1]))
            Table(f"{place}, [{at}]", {}).refuse(
                f"{combination[-1]!r} is missing. The design needs every combination of {' and '.join(names)}."
            )
    return levels, entries


def _walk(
    place: str,
    found: Mapping[str, object],
    names: tuple[str, ...],
    above: Combination,
    read: Read[Number],
    entries: dict[Combination, tuple[Number, ...]],
) -> None:
    table = Table(f"{place}]", {key: frozen(value) for key, value in found.items()})
    if not found:
        table.refuse(f"there is no level of {names[len(above)]!r}. Give one or more.")
    for key, value in found.items():
        if not key.strip():
            table.refuse(f"a level of {names[len(above)]!r} has no name.")
        below = len(names) - len(above) - 1
        if below and not isinstance(value, dict):
            table.refuse(f"must be a table with the levels of {names[len(above) + 1]!r}.", key)
        if not below and isinstance(value, dict):
            table.refuse(
                "is a table, and one list is wanted. Levels of two factors need their names in [names], "
                'as in areas = ["tracts", "sizes"].',
                key,
            )
        if below:
            _walk(f"{place}.{key}", cast("dict[str, object]", value), names, (*above, key), read, entries)
        else:
            entries[(*above, key)] = read(table, key)


def sizes(table: Table, key: str) -> tuple[int, ...]:
    """Read the records of areas."""
    found: list[int] = []
    for index, value, count in _listed(
        table, key, "a list of the records of each area, as in [5000, 5000, 30000]", _SIZE
    ):
        number = int(value) if isinstance(value, str) and value.isdigit() else value
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            table.demand(_SIZE, _written(table, key, index), key, index)
        found += [number] * count
    return tuple(found)


def shares(table: Table, key: str) -> tuple[float, ...]:
    """Read the shares of levels, which need not sum to 1, but to more than 0."""
    found: list[float] = []
    for index, value, count in _listed(table, key, _SHARES, _SHARE):
        try:
            number = float("nan") if isinstance(value, bool) else float(cast("float | str", value))
        except (ValueError, TypeError, OverflowError):
            number = float("nan")
        if not (isfinite(number) and number >= 0):
            table.demand(_SHARE, _written(table, key, index), key, index)
        found += [number] * count
    if len(found) < 2:
        table.refuse("a variable has two levels or more. Give the share of each.", key)
    if sum(found) == 0:
        table.refuse("the shares sum to zero. Give at least one that is not 0.", key)
    if sum(found) == float("inf"):
        table.refuse("the shares are too large to be added up. Give smaller numbers: only their ratios count.", key)
    return tuple(found)


def rates(table: Table, key: str) -> tuple[float, ...]:
    """Read a rate, as a tuple of one."""
    value = table.values[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        table.demand("a number in (0, 1], the share of records that are swapped", value, key)
    return (float(value),)


def _listed(table: Table, key: str, what: str, each: str) -> list[tuple[int, object, int]]:
    """Return the entries of a list with their place and how many there are alike; at most 50,000 in all."""
    value = table.values[key]
    if not isinstance(value, tuple) or not value:
        table.demand(what, cast("object", value), key)
    found: list[tuple[int, object, int]] = []
    total = 0
    for index, entry in enumerate(cast("tuple[object, ...]", value)):
        alike = _ALIKE.fullmatch(entry) if isinstance(entry, str) else None
        if isinstance(entry, str) and alike is None:
            table.demand(each, entry, key, index)
        count, one = (1, entry) if alike is None else (int(alike[1]), alike[2])
        if count == 0:
            table.demand(each, entry, key, index)
        found.append((index, one, count))
        total += count
        if total > MOST_ENTRIES:
            table.refuse(f"has more than {MOST_ENTRIES:,} entries.", key)
    return found


def _written(table: Table, key: str, index: int) -> object:
    return cast("tuple[object, ...]", table.values[key])[index]
