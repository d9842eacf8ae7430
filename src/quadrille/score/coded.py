"""A file as codes: what one or two columns determine of others, what never occurs, what groups have in common."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from itertools import combinations
from math import ceil, log2, prod
from typing import Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Column, Data, Flags, Floats, Ints, Rows
from quadrille.randomness import Stream
from quadrille.recipe import random_order

Codes32 = NDArray[np.int32]

NEARLY = 0.005
"""A dependency may fail in so many of its records and still be one."""
ENOUGH = 0.02
"""So many of all records must share their group with another one, or a column tells records apart and nothing else."""
CLEARLY = 20
"""Values put into random order must fail at least so often, and ten times as often as the values as they are."""
_RECORDS_A_CLASS = 200
_FEWEST_CLASSES, _MOST_CLASSES = 10, 200
_MOST_DECIMALS = 6
_SPARSE = 4
"""Whole numbers are coded by counting them where their range is at most so many times the number of records."""
PROBE = 1 << 15
"""Rows that are looked at first; a dependency that fails among them needs no look at the others."""


def beyond_chance(failures: int) -> int:
    """Return how often values in random order must fail, where the values as they are fail so often."""
    return max(CLEARLY, 10 * failures)


LOOKED_AT = 1 << 21
"""Of larger files so many records are looked at, one from each stretch, where no column has many values."""
_MANY_CODES = 1 << 12
_PART = "the part that is looked at"


def looked_at(data: Data, names: Iterable[str]) -> Data:
    """Return what is searched for dependencies: the file, or of a very large one an even part of its records.

    Where every value of every column is held by hundreds of records of the part, what they say about one another shows
    in it; a column of many values, such as a number of households, needs all.
    """
    few = all(data.codebook[name].coded and data[name].size <= _MANY_CODES for name in names)
    if data.n <= LOOKED_AT or not few:
        return data
    if _PART not in data.prepared:
        words = Stream.of(0, "records that are looked at for dependencies").words(LOOKED_AT).astype(np.int64)
        start = np.arange(LOOKED_AT + 1) * data.n // LOOKED_AT
        data.prepared[_PART] = data.take(start[:-1] + (words * np.diff(start) >> 32))
    return cast("Data", data.prepared[_PART])


class Coded:
    """The columns of a file as codes from 0; a column with one value only is left out."""

    def __init__(self, data: Data, names: Iterable[str]) -> None:
        self.data, self.n = data, data.n
        made = {name: _codes(data[name]) for name in names}
        self.codes = {name: codes for name, (codes, held, _) in made.items() if len(held) > 1}
        self.sizes = {name: len(made[name][1]) for name in self.codes}
        self.held = {name: made[name][1] for name in self.codes}
        """How many records have each code."""
        self.numbers_of_codes = {name: made[name][2] for name in self.codes}
        """The number that each code stands for, NaN where missing; None for texts."""
        self.names = list(self.codes)
        self._as_read = {name for name in self.codes if not data[name].variable.coded}
        self._decimals: dict[str, int | None] = {}

    def exchanged(self, names: Iterable[str], rows: Rows, source: Rows) -> Coded:
        """Return the file after some rows have received columns from others."""
        made = copy(self)
        made.codes = dict(self.codes)
        moved = list(names)
        made._as_read = self._as_read.difference(moved)
        for name in moved:
            made.codes[name] = self.codes[name].copy()
            made.codes[name][rows] = self.codes[name][source]
        return made

    @cached_property
    def order(self) -> Rows:
        """All rows in an order that has nothing to do with the data, always the same."""
        return random_order(self.n, Stream.of(0, "rows in random order, to look for dependencies"))

    @property
    def probe(self) -> Rows:
        """Some rows, drawn at random."""
        return self.order[:PROBE]

    def shuffled(self, name: str) -> Codes32:
        """Return the codes of a column in random order: what chance gives."""
        return self.codes[name][self.order]

    def shuffled_within(self, name: str, given: str) -> Codes32:
        """Return the codes of a column in random order among the records that agree on another one."""
        return kernels.mixed_within(self.codes[name], self.codes[given], self.sizes[given], self.order)

    def shuffled_part(self, name: str, within: str, rows: Rows) -> Codes32:
        """Return the codes of a column, those of some rows in random order, among the records that agree on another."""
        order = self.order[self.order < len(rows)]
        codes, made = self.codes[name], self.codes[name].copy()
        given = self.codes[within][rows] if within else np.zeros(len(rows), dtype=np.int32)
        size = self.sizes[within] if within else 1
        made[rows] = kernels.mixed_within(codes[rows], given, size, order)
        return made

    def by_code(self, name: str, rows: Rows) -> Rows:
        """Return rows in the order of a column, stable."""
        codes, size = self.codes[name], self.sizes[name]
        if size > _SPARSE * len(rows):
            return rows[np.argsort(codes[rows], kind="stable")]
        return kernels.rows_by_code(rows, codes, size)

    def classes(self, name: str) -> tuple[Codes32, int]:
        """Return the codes of a column, or classes of similar size where numbers are many; frequent values stay."""
        codes, size = self.codes[name], self.sizes[name]
        most = min(max(self.n // _RECORDS_A_CLASS, _FEWEST_CLASSES), _MOST_CLASSES)
        variable = self.data[name].variable
        if size <= most or (variable.coded and self.numbers_of_codes[name] is None):
            return codes, size
        held = self.held[name]
        own = held > self.n // _FEWEST_CLASSES // 2
        others = np.where(own, 0, held)
        class_ = np.cumsum(others) * _FEWEST_CLASSES // max(int(others.sum()) + 1, 1)
        class_[own] = _FEWEST_CLASSES + np.arange(int(own.sum()))
        _, class_ = np.unique(class_, return_inverse=True)
        return class_[codes].astype(np.int32), int(class_.max()) + 1

    def key(self, names: tuple[str, ...]) -> Ints:
        """Return one number for the values of one or two columns."""
        key = np.zeros(self.n, dtype=np.int64)
        for name in names:
            key = key * self.sizes[name] + self.codes[name]
        return key

    def decimals(self, name: str) -> int | None:
        """Return how many decimals the numbers of a column have; None for texts and more than six."""
        if name not in self._decimals:
            numbers = self.numbers_of_codes[name]
            self._decimals[name] = None if numbers is None else decimals_of(numbers)
        return self._decimals[name]

    def numbers(self, name: str, rows: Rows | None = None) -> Floats | None:
        """Return a column of numbers, empty where missing; two categories are 0 and 1, other texts are no numbers."""
        if name in self._as_read:
            values = self.data[name].values
            return values if rows is None else values[rows]
        numbers, codes = self.numbers_of_codes[name], self.codes[name]
        return None if numbers is None else numbers[codes if rows is None else codes[rows]]


def _codes(column: Column) -> tuple[Codes32, Ints, Floats | None]:
    """Return codes from 0 for the values that occur, how many records each has, and the number that it stands for."""
    if not column.variable.coded:
        return _codes_of_numbers(column.values)
    held = np.bincount(column.values, minlength=column.size)
    present = held > 0
    whole = bool(present.all())
    codes = column.values.astype(np.int32) if whole else (np.cumsum(present, dtype=np.int32) - 1)[column.values]
    numbers = _numbers_of_categories(column)
    return codes, held[present], None if numbers is None else numbers[present]


def _codes_of_numbers(values: Floats) -> tuple[Codes32, Ints, Floats]:
    """Code numbers; those with few decimals in a small range are counted, which is quicker than sorting them."""
    places = None if np.isnan(values).any() else decimals_of(values)
    scale = 10.0 ** (places or 0)
    low, high = np.rint(float(values.min()) * scale), np.rint(float(values.max()) * scale)
    if places is not None and high - low <= _SPARSE * len(values):
        place = np.rint(values * scale - low).astype(np.int64)
        held = np.bincount(place)
        present = held > 0
        numbers = (np.flatnonzero(present) + low) / scale
        return (np.cumsum(present, dtype=np.int32) - 1)[place], held[present], numbers
    numbers, codes, held = np.unique(values + 0.0, return_inverse=True, return_counts=True)
    return codes.astype(np.int32), held, numbers


def decimals_of(values: Floats) -> int | None:
    """Return how many decimals the numbers have; None for more than six."""
    known = values[np.isfinite(values)]
    for places in range(_MOST_DECIMALS + 1) if len(known) else ():
        if all(bool((np.rint(part * 10.0**places) / 10.0**places == part).all()) for part in (known[:1000], known)):
            return places
    return None


def _numbers_of_categories(column: Column) -> Floats | None:
    categories, missing = column.variable.categories, column.size - column.valid
    if all(isinstance(value, int | float) for value in categories):
        return np.array([*(float(cast("float", value)) for value in categories), *[np.nan] * missing])
    return np.array([0.0, 1.0, *[np.nan] * missing]) if column.valid == 2 else None


Found = tuple[tuple[str, ...], str, float]
"""Columns that determine, the column determined, and the share of the records in which it is so."""

_FEW_CELLS = 4096
_MOST_COLUMNS = 64
"""In wider files, pairs are made of the columns with the fewest values."""
_MANY_VALUES = 50
"""A column of fewer values has no ranges: its values repeat."""
_MOSTLY = 0.9
"""A column that repeats the values of so many records says by its values what it determines, and needs no ranges."""
_FEW_VALUES = 1 / 20
"""A column changes rarely when it has fewer values than this share of the records."""


class Groups:
    """Records that agree on one or two columns, and what they make of any other."""

    def __init__(self, coded: Coded, given: tuple[str, ...], rows: Rows, start: Ints) -> None:
        self._coded, self._given, self.rows, self._start = coded, given, rows, start

    @classmethod
    def of(cls, coded: Coded, given: tuple[str, ...], rows: Rows | None = None) -> Groups:
        """Group all rows, or some."""
        rows = np.arange(coded.n) if rows is None else rows
        ordered = rows
        for name in reversed(given):
            ordered = coded.by_code(name, ordered)
        return cls(coded, given, *kernels.shared_groups(ordered, coded.codes[given[0]], coded.codes[given[-1]]))

    @property
    def sizes(self) -> Ints:
        """How many records each group has."""
        return np.diff(self._start)

    @property
    def enough(self) -> int:
        """How many failures are one too many for a dependency."""
        return int(NEARLY * len(self.rows)) + 1

    def lacking(self, values: Codes32, size: int, limit: int) -> int:
        """Count the records that lack the commonest value of their group, up to just above the limit."""
        return int(kernels.lacking_majority(self.rows, self._start, values, np.zeros(size, dtype=np.int64), limit))

    def share(self, column: str, than: Sequence[str] = ()) -> float | None:
        """Return the share of the records that have the commonest value of their group; None if that is nothing.

        It is nothing where chance gives the same: values in random order, and in random order within each column of
        `than`, which alone would say as much.
        """
        values, size = self._coded.codes[column], self._coded.sizes[column]
        failures = self.lacking(values, size, self.enough)
        if failures >= self.enough:
            return None
        needed = dict.fromkeys(than, max(CLEARLY, 2 * failures))
        if all(
            self._chance_fails(column, within, least)
            for within, least in {"": beyond_chance(failures), **needed}.items()
        ):
            return 1 - failures / len(self.rows)
        return None

    def _chance_fails(self, column: str, within: str, needed: int) -> bool:
        """Whether values in random order, within another column or in all, fail so often; some groups may do."""
        coded, size = self._coded, self._coded.sizes[column]
        if coded.n > 2 * PROBE:
            part = Groups.of(coded, self._given, some_groups(coded, self._given))
            if part.lacking(coded.shuffled_part(column, within, part.rows), size, needed) >= needed:
                return True
        mixed = coded.shuffled_within(column, within) if within else coded.shuffled(column)
        return self.lacking(mixed, size, needed) >= needed


def single(coded: Coded) -> tuple[list[Found], dict[str, float]]:
    """Return which columns determine which others, and the columns that can tell, with the share of repeated values."""
    found: list[Found] = []
    repeating: dict[str, float] = {}
    for x in coded.names:
        held = coded.held[x]
        shared = int(held[held > 1].sum())
        if shared < ENOUGH * coded.n:
            continue
        repeating[x] = shared / coded.n
        others = _surviving(coded, (x,), [y for y in coded.names if y != x])
        groups = Groups.of(coded, (x,)) if others else None
        shares = [(y, groups.share(y)) for y in others] if groups else []
        found += [((x,), y, share) for y, share in shares if share is not None]
    return found, repeating


def paired(
    coded: Coded, known: list[Found], repeating: Sequence[str], told: Collection[frozenset[str]] = ()
) -> Iterator[Found]:
    """Yield what two columns determine together and neither does alone, but for three of which that much is `told`.

    A column that says the same as an earlier one is left out: what it determines, the earlier one does.
    """
    alone = {(given[0], y) for given, y, _ in known}
    exact = {(given[0], y) for given, y, share in known if share == 1}
    first = [x for i, x in enumerate(repeating) if not any({(x, z), (z, x)} <= exact for z in repeating[:i])]
    few = sorted(sorted(first, key=coded.sizes.__getitem__)[:_MOST_COLUMNS], key=first.index)
    for a, b in combinations(few, 2):
        if {(a, b), (b, a)} & exact:
            continue
        others = [y for y in coded.names if y not in (a, b) and not {(a, y), (b, y)} & alone]
        others = [y for y in others if frozenset((a, b, y)) not in told]
        others = _surviving(coded, (a, b), others)
        if others:
            groups = Groups.of(coded, (a, b))
            shares = [(y, groups.share(y, than=(a, b))) for y in others] if len(groups.rows) >= ENOUGH * coded.n else []
            yield from (((a, b), y, share) for y, share in shares if share is not None)


def some_groups(coded: Coded, given: tuple[str, ...]) -> Rows:
    """Return all rows, or of a large file those of some groups; where groups are few, some rows of each."""
    if coded.n <= 2 * PROBE:
        return np.arange(coded.n)
    if prod(coded.sizes[name] for name in given) <= _FEW_CELLS:
        return coded.probe
    a, b = coded.codes[given[0]], coded.codes[given[-1]]  # one column twice makes the groups of the column
    return kernels.rows_of_whole_groups(a, b, coded.sizes[given[-1]], ceil(log2(coded.n / PROBE)))


def _surviving(coded: Coded, given: tuple[str, ...], others: list[str]) -> list[str]:
    """Return the columns that a part of the rows does not rule out."""
    if not others or coded.n <= 2 * PROBE:
        return others
    rows = some_groups(coded, given)
    groups = Groups.of(coded, given, rows)
    if len(groups.rows) < ENOUGH * len(rows) / 2:
        return []
    limit = 2 * groups.enough + 10
    return [y for y in others if groups.lacking(coded.codes[y], coded.sizes[y], limit) <= limit]


def ranges(coded: Coded, known: list[Found], repeating: Mapping[str, float]) -> Iterator[Found]:
    """Yield columns that follow the order of another one whose values hardly repeat; of two, once."""
    alone = {(given[0], y) for given, y, _ in known if repeating[given[0]] > _MOSTLY}
    told: set[frozenset[str]] = set()
    for x in coded.names:
        if coded.sizes[x] <= _MANY_VALUES:
            continue
        ordered = coded.by_code(x, coded.probe)
        whole: Rows | None = None
        for y in coded.names:
            pair = frozenset((x, y))
            if y == x or pair in told or {(x, y), (y, x)} & alone:
                continue
            share = _follows(coded, ordered, y)
            if share is not None and len(ordered) < coded.n:
                whole = coded.by_code(x, coded.order) if whole is None else whole
                share = _follows(coded, whole, y)
            if share is not None:
                told.add(pair)
                yield (x,), y, share


def _follows(coded: Coded, rows: Rows, y: str) -> float | None:
    """Return the share of the records of a column that are in line with their neighbours; None if that is nothing."""
    size, enough = coded.sizes[y], int(NEARLY * len(rows)) + 1
    failures = _out_of_line(coded.codes[y], size, rows, enough + size)
    if failures >= enough:
        return None
    needed = beyond_chance(failures)
    by_chance = _out_of_line(coded.shuffled(y), size, rows, needed + size)
    return 1 - failures / len(rows) if by_chance >= needed else None


def _out_of_line(values: Codes32, size: int, rows: Rows, limit: int) -> int:
    """Count the records that make a column change more often than it has values, or fall, or rise."""
    changes, falls, rises = kernels.changes_in_order(rows, values, limit)
    runs = max(0, (changes - size + 2) // 2) if size <= _FEW_VALUES * len(rows) else len(rows)
    return min(falls, rises, runs)


def breaks_function(coded: Coded, given: tuple[str, ...], column: str, source: Mapping[str, Rows]) -> Flags:
    """Tell which records lack the commonest value that records with the same given values had in the original."""
    key = coded.key(given)
    keys, group, count = np.unique(key, return_inverse=True, return_counts=True)
    usual = _commonest(group, coded.codes[column], coded.sizes[column])
    now = np.zeros(len(source[column]), dtype=np.int64)
    for name in given:
        now = now * coded.sizes[name] + coded.codes[name][source[name]]
    place = np.minimum(np.searchsorted(keys, now), len(keys) - 1)
    seen = (keys[place] == now) & (count[place] > 1)
    return seen & (usual[place] != coded.codes[column][source[column]])


def _commonest(group: Ints, values: Codes32, size: int) -> Ints:
    """Return the commonest value of each group; of several the first."""
    cells, count = np.unique(group * size + values, return_counts=True)
    order = np.lexsort((-cells, count, cells // size))
    usual = np.zeros(int(group.max()) + 1, dtype=np.int64)
    usual[cells[order] // size] = cells[order] % size  # the last of a group is the commonest
    return usual


def breaks_range(coded: Coded, given: str, column: str, source: Mapping[str, Rows]) -> Flags:
    """Tell which records are out of line with those that stood next to their given value in the original."""
    ordered = coded.by_code(given, coded.order)
    at = np.empty(coded.n, dtype=np.int64)
    at[ordered] = np.arange(coded.n)
    place, values = at[source[given]], coded.codes[column][ordered]
    near = [values[np.clip(place + step, 0, coded.n - 1)] for step in (-1, 0, 1)]
    now = coded.codes[column][source[column]]
    return (now < np.minimum.reduce(near)) | (now > np.maximum.reduce(near))


EXPECTED = 10
"""A combination is missed where so many records are expected of columns that have nothing to do with each other."""
_MOST_CELLS = 1 << 16


class Never(NamedTuple):
    """Two columns, how many of their combinations never occur, and the share of the records expected there."""

    columns: tuple[str, str]
    combinations: int
    expected: float


def never_together(coded: Coded) -> Iterator[Never]:
    """Yield the pairs of columns with combinations that never occur, or almost never."""
    classes = {name: coded.classes(name) for name in coded.names}
    for a, b in combinations(coded.names, 2):
        if classes[a][1] * classes[b][1] <= min(_MOST_CELLS, coded.n):
            held, expected = _tabulated(classes[a], classes[b])
            absent = absent_cells(held, expected)
            if absent.any():
                yield Never((a, b), int(absent.sum()), float(expected[absent].sum()) / coded.n)


def table_of(coded: Coded, a: str, b: str) -> tuple[Ints, Floats]:
    """Return the records of every combination, and those expected without any association."""
    return _tabulated(coded.classes(a), coded.classes(b))


def _tabulated(a: tuple[Codes32, int], b: tuple[Codes32, int]) -> tuple[Ints, Floats]:
    held = np.zeros(a[1] * b[1], dtype=np.int64)
    kernels.count_pairs_of_codes(a[0], b[0], b[1], held)
    held = held.reshape(a[1], b[1])
    return held, np.outer(held.sum(axis=1), held.sum(axis=0)) / len(a[0])


def absent_cells(held: Ints, expected: Floats) -> Flags:
    """Tell which combinations never occur, or almost never, where ten records or more are expected."""
    return (expected >= EXPECTED) & (held <= NEARLY * expected)


def scarce_share(coded: Coded, a: str, b: str, rate: float) -> float:
    """Return the share of the records in combinations as scarce as absent ones are after a swap at this rate."""
    held, expected = table_of(coded, a, b)
    return float(held[(expected >= EXPECTED) & (held <= 2 * rate * expected)].sum()) / coded.n


def breaks_never(coded: Coded, a: str, b: str, source: Mapping[str, Rows]) -> Flags:
    """Tell which records have a combination that never occurred in the original, or almost never."""
    first, second = coded.classes(a), coded.classes(b)
    return absent_cells(*_tabulated(first, second))[first[0][source[a]], second[0][source[b]]]


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
