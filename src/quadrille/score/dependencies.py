"""What the columns of a file say about one another: a swap that moves some of them alone contradicts the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import lcm
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from quadrille.data import Data, Rows, Units, require_columns, require_data, unequal
from quadrille.score.coded import (
    CLEARLY,
    ENOUGH,
    NEARLY,
    PROBE,
    Coded,
    Flags,
    Floats,
    Groups,
    Ints,
    WholeKind,
    beyond_chance,
    breaks_function,
    breaks_never,
    breaks_range,
    breaks_whole,
    looked_at,
    never_together,
    paired,
    ranges,
    single,
    wholes,
)
from quadrille.text import Shown

_PRIME = (1 << 31) - 1
_LARGEST = 10**15
_MOST_TERMS = 24
_LARGEST_TERM = 1000
_LARGE_SAMPLE = 4096
_SMALL_SAMPLES = 5
_MANY_VALUES = 20
_RATIOS_ON = 400


class Sum(NamedTuple):
    """sum(terms * columns) = constant, in the share of the records that have all of these numbers."""

    columns: tuple[str, ...]
    terms: tuple[int, ...]
    constant: float
    share: float


class Product(NamedTuple):
    """column = constant * first ^ powers[0] * second ^ powers[1], but for rounding."""

    given: tuple[str, str]
    column: str
    powers: tuple[int, int]
    share: float


def whole_numbers(coded: Coded) -> tuple[dict[str, Ints], dict[str, Flags], float]:
    """Return what each code of a column stands for as a whole number of one unit, who has one, and units in one."""
    numbers = {name: values for name, values in coded.numbers_of_codes.items() if values is not None}
    decimals = {name: places for name in numbers if (places := coded.decimals(name)) is not None}
    scale = 10.0 ** max(decimals.values(), default=0)
    made: dict[str, Ints] = {}
    present: dict[str, Flags] = {}
    everywhere = np.ones(coded.n, dtype=np.bool_)
    for name in decimals:
        here = np.isfinite(numbers[name])
        values = np.where(here, numbers[name], 0.0)
        if np.abs(values).max() * scale <= _LARGEST:
            made[name] = np.rint(values * scale).astype(np.int64)
            present[name] = everywhere if here.all() else here[coded.codes[name]]
    return made, present, scale


def sums(coded: Coded) -> Iterator[Sum]:
    """Yield the sums that hold in all records, or nearly."""
    numbers, present, scale = whole_numbers(coded)
    told: set[frozenset[str]] = set()
    for names in _complete(coded, present):
        rows = coded.order[np.logical_and.reduce([present[name] for name in names])[coded.order]]
        for sample in _samples(rows, len(names)):
            values = np.stack([numbers[name][coded.codes[name][sample]] for name in names], axis=1)
            for terms in _relations(values, scale):
                columns = tuple(name for name, term in zip(names, terms, strict=True) if term)
                given = tuple(term for term in terms if term)
                if 1 < len(columns) <= _MOST_TERMS and frozenset(columns) not in told:
                    checked = _checked(columns, given, coded, numbers, present, scale)
                    if checked is not None:
                        told.add(frozenset(columns))
                        yield checked


def _complete(coded: Coded, present: Mapping[str, Flags]) -> list[list[str]]:
    """Return the columns to look at together: those without gaps, then all that leave enough complete records."""
    names = sorted(present, key=lambda name: -int(present[name].sum()))
    here, kept = np.ones(coded.n, dtype=bool), list[str]()
    for name in names:
        both = here & present[name]
        if int(both.sum()) >= max(2 * len(names) + 20, coded.n // 10):
            here, kept = both, [*kept, name]
    ordered = [name for name in coded.names if name in kept]
    return [ordered] if len(ordered) > 1 else []


def _samples(rows: Rows, columns: int) -> list[Rows]:
    """Return a large sample, for what always holds, and small ones, for what nearly always does."""
    small = 3 * columns + 20
    parts = [rows[i * small : (i + 1) * small] for i in range(_SMALL_SAMPLES)]
    return [rows[:_LARGE_SAMPLE], *(part for part in parts if len(part) == small)]


def _relations(values: Ints, scale: float) -> Iterator[tuple[int, ...]]:
    """Yield, for every column that those before it and a constant give, the terms of a sum that is constant."""
    one = np.full((len(values), 1), int(scale), dtype=np.int64)
    matrix = np.concatenate((one, values), axis=1) % _PRIME
    pivots: list[int] = []
    for column in range(matrix.shape[1]):
        rank = len(pivots)
        left = np.flatnonzero(matrix[rank:, column])
        if rank < len(matrix) and len(left):
            at = rank + int(left[0])
            matrix[[rank, at]] = matrix[[at, rank]]
            matrix[rank] = matrix[rank] * pow(int(matrix[rank, column]), -1, _PRIME) % _PRIME
            others = np.flatnonzero(matrix[:, column])
            others = others[others != rank]
            matrix[others] = (matrix[others] - matrix[others, column][:, None] * matrix[rank]) % _PRIME
            pivots.append(column)
        else:
            parts = [_fraction(int(matrix[row, column])) for row in range(rank)]
            if all(part is not None for part in parts[1:]):  # the constant may be any number
                terms = [Fraction(0)] * (matrix.shape[1] - 1)
                for pivot, part in zip(pivots[1:], parts[1:], strict=True):
                    assert part is not None
                    terms[pivot - 1] = part
                terms[column - 1] = Fraction(-1)
                times = lcm(*(term.denominator for term in terms))
                yield tuple(int(term * times) for term in terms)


def _fraction(residue: int) -> Fraction | None:
    """Return the fraction of small numbers that a residue stands for."""
    for below in range(1, _LARGEST_TERM + 1):
        above = residue * below % _PRIME
        above -= _PRIME if above > _PRIME // 2 else 0
        if abs(above) <= _LARGEST_TERM:
            return Fraction(above, below)
    return None


def _checked(
    columns: tuple[str, ...],
    terms: Sequence[int],
    coded: Coded,
    numbers: Mapping[str, Ints],
    present: Mapping[str, Flags],
    scale: float,
) -> Sum | None:
    """Check a sum on all records that have its numbers, and against numbers in random order."""
    here = np.flatnonzero(np.logical_and.reduce([present[name] for name in columns]))
    parts = [term * numbers[name][coded.codes[name][here]] for name, term in zip(columns, terms, strict=True)]
    total = np.sum(parts, axis=0)
    values, counts = np.unique(total, return_counts=True)
    constant = int(values[np.argmax(counts)])
    failures = int((total != constant).sum())
    if failures > NEARLY * len(here):
        return None
    turned = total - parts[-1] + np.roll(parts[-1][_mixing(coded, len(here))], 1)
    if int((turned != constant).sum()) < beyond_chance(failures):
        return None
    return Sum(columns, tuple(terms), constant / scale, 1 - failures / len(here))


def _mixing(coded: Coded, count: int) -> Rows:
    return coded.order[coded.order < count]


def products(coded: Coded) -> Iterator[Product]:
    """Yield numbers that are a product or a ratio of two others, but for rounding."""
    some = coded.order[: 8 * _RATIOS_ON]
    found = {name: coded.numbers(name, some) for name in coded.names if coded.sizes[name] > _MANY_VALUES}
    numbers = {name: values for name, values in found.items() if values is not None}
    names = list(numbers)
    told: set[frozenset[str]] = set()  # c = a * b is a = c / b, and is checked once
    with np.errstate(all="ignore"):
        known = [_usable(values) for values in numbers.values()]
        for a, b in combinations(range(len(names)), 2):
            here = np.flatnonzero(known[a] & known[b])[:_RATIOS_ON]
            if len(here) < _RATIOS_ON // 4:
                continue
            for powers in ((1, 1), (1, -1), (-1, 1)):
                for y, name in enumerate(names):
                    given = (names[a], names[b])
                    if y in (a, b) or frozenset((*given, name)) in told:
                        continue
                    part = here[known[y][here]]
                    if len(part) < _RATIOS_ON // 4 or _misses(
                        numbers, given, name, powers, coded.decimals(name), part
                    ) > 0.05 * len(part):
                        continue
                    checked = _checked_product(coded, given, name, powers)
                    if checked is not None:
                        told.add(frozenset((*given, name)))
                        yield checked


def _usable(values: Floats) -> Flags:
    return np.isfinite(values) & (values != 0)


def _misses(
    numbers: Mapping[str, Floats],
    given: tuple[str, str],
    column: str,
    powers: tuple[int, int],
    places: int | None,
    rows: Rows | slice = slice(None),
) -> int:
    y = numbers[column][rows]
    expected = numbers[given[0]][rows] ** powers[0] * numbers[given[1]][rows] ** powers[1]
    slack = _rounding(y, places)
    return int((np.abs(y - _factor(y, expected, slack) * expected) > slack).sum())


def _factor(y: Floats, expected: Floats, slack: Floats) -> float:
    """Return the factor that all numbers allow, rounded as they are, or nearly all of them."""
    one, other = (y - slack) / expected, (y + slack) / expected
    low, high = np.minimum(one, other), np.maximum(one, other)
    least, most = np.nanmax(low), np.nanmin(high)
    if least > most:
        least, most = np.nanquantile(low, 1 - NEARLY), np.nanquantile(high, NEARLY)
    return float(least + most) / 2


def _rounding(values: Floats, places: int | None) -> Floats:
    """Return how far a number that is rounded to so many decimals may be from what it is rounded from."""
    return 1e-9 * np.abs(values) + (0.0 if places is None else 0.51 * 10.0**-places)


def _checked_product(coded: Coded, given: tuple[str, str], column: str, powers: tuple[int, int]) -> Product | None:
    found = {name: coded.numbers(name) for name in (*given, column)}
    whole = {name: values for name, values in found.items() if values is not None}
    rows = np.flatnonzero(np.logical_and.reduce([_usable(values) for values in whole.values()]))
    numbers = whole if len(rows) == coded.n else {name: values[rows] for name, values in whole.items()}
    places = coded.decimals(column)
    some = _mixing(coded, len(rows))[:PROBE]
    part = {name: values[some] for name, values in numbers.items()}
    if len(rows) < max(40, coded.n // 50) or _misses(part, given, column, powers, places) > 2 * NEARLY * len(some) + 10:
        return None
    failures = _misses(numbers, given, column, powers, places)
    if failures > NEARLY * len(rows):
        return None
    part[column] = np.roll(part[column], 1)
    if len(rows) > PROBE and _misses(part, given, column, powers, places) >= beyond_chance(failures):
        return Product(given, column, powers, 1 - failures / len(rows))  # more would fail in all records
    numbers = {**numbers, column: np.roll(numbers[column][_mixing(coded, len(rows))], 1)}
    if _misses(numbers, given, column, powers, places) < beyond_chance(failures):
        return None
    return Product(given, column, powers, 1 - failures / len(rows))


def breaks_sum(
    coded: Coded, columns: Sequence[str], terms: Sequence[int], constant: float, source: Mapping[str, Rows]
) -> Flags:
    """Tell which records have all the numbers of a sum, and another sum."""
    total, here = 0.0, True
    for name, term in zip(columns, terms, strict=True):
        values = coded.numbers(name)
        assert values is not None
        total, here = total + term * values[source[name]], here & np.isfinite(values[source[name]])
    size = 1 + abs(constant)
    return np.asarray(here & (np.abs(total - constant) > 1e-7 * size))


def breaks_product(
    coded: Coded, given: Sequence[str], column: str, powers: Sequence[int], source: Mapping[str, Rows]
) -> Flags:
    """Tell which records have three numbers other than 0 of which one is not the product or ratio of the others."""
    first, second, y = (coded.numbers(name) for name in (*given, column))
    assert first is not None and second is not None and y is not None
    with np.errstate(all="ignore"):
        usual, slack = _finite(y), _rounding(y, coded.decimals(column))
        factor = _factor(usual, _finite(first ** powers[0] * second ** powers[1]), slack)
        now, left, right = y[source[column]], first[source[given[0]]], second[source[given[1]]]
        expected = left ** powers[0] * right ** powers[1]
        here = np.isfinite(expected) & (expected != 0) & np.isfinite(now) & (now != 0)
        return here & (np.abs(now - factor * expected) > slack[source[column]])


def _finite(values: Floats) -> Floats:
    return np.where(np.isfinite(values) & (values != 0), values, np.nan)


_KEPT = "dependencies"
_TOLD = (1, 100)
"""Constants that say nothing about the data: dummies and percentages add up to them."""
_MOST_COLUMNS = 300
"""In wider files, the columns with the fewest values are looked at."""

_PLAIN = Literal["determines", "constant within", "follows", "sum", "product", "never together"]
_LOOSE = Literal["nearly determines", "hardly changes"]
DependencyKind = _PLAIN | WholeKind | _LOOSE
"""The last two hold in fewer records than the others: they are looked for where a column is to move, and not listed."""


@dataclass(frozen=True, repr=False)
class Dependency(Shown):
    """Columns of which one follows from the others, or two with combinations that never occur.

    `share` is the share of the records in which it is so, among those that can tell; of combinations that never occur,
    of all records but those expected there. `terms` are the factors of a sum, in the order of `columns`, and `constant`
    what it comes to; of a product they are powers.
    """

    kind: DependencyKind
    given: tuple[str, ...]
    column: str
    share: float
    terms: tuple[int, ...] = ()
    constant: float = 0.0
    combinations: int = 0
    """How many combinations never occur, or almost never; how many categories are counted within groups."""

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that it is about."""
        return (*self.given, self.column)

    @property
    def exact(self) -> bool:
        """Whether it holds in every record; that a combination never occurs does not say so of the others."""
        return self.share == 1

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON, and the words; a constant may be a value of the data, and is left out."""
        made = {**asdict(self), "text": str(self)}
        del made["constant"]
        return made

    def __str__(self) -> str:
        given, column = " and ".join(self.given), self.column
        if self.kind == "constant within":
            return f"{column} is constant within {given}"
        if self.kind == "determines":
            return f"{given} together determine {column}" if len(self.given) > 1 else f"{given} determines {column}"
        if self.kind == "nearly determines":
            return (
                f"{given} {'together ' * (len(self.given) > 1)}nearly determine{'s' * (len(self.given) < 2)} {column}"
            )
        if self.kind == "follows":
            return f"{column} follows from {given}, range by range"
        if self.kind == "sum":
            return _sum_in_words(self)
        if self.kind == "product":
            first, second = self.given
            parts = (first, second) if self.terms[0] > 0 else (second, first)
            return f"{column} is a multiple of {parts[0]} {'*' if sum(self.terms) > 0 else '/'} {parts[1]}"
        if self.kind in ("one of each", "all different", "adds up"):
            return _whole_in_words(self)
        if self.kind == "hardly changes":
            return f"{column} hardly changes within {self.given[0]} in the order of {self.given[1]}"
        many = "a combination" if self.combinations == 1 else f"{self.combinations:,} combinations"
        return f"{many} of {given} and {column} never {'occurs' if self.combinations == 1 else 'occur'}, or hardly"


def _whole_in_words(found: Dependency) -> str:
    unit, column = found.given[0], found.column
    category = "a category" if found.combinations == 1 else f"each of {found.combinations} categories"
    match found.kind:
        case "one of each":
            return f"each {unit} has exactly one record with {category} of {column}"
        case "all different":
            return f"no two records of one {unit} have the same {column}" + ("" if found.exact else ", or hardly")
        case _ if found.combinations:
            return f"{found.given[1]} counts the records with {category} of {column} within {unit}"
        case _:
            return f"{found.given[1]} is the sum of {column} within {unit}"


def _sum_in_words(found: Dependency) -> str:
    """Write a sum: total = part + part."""
    own = found.terms[-1]
    parts = [(-term if own > 0 else term, name) for term, name in zip(found.terms, found.given, strict=False)]
    constant = found.constant if own > 0 else -found.constant
    left = found.column if abs(own) == 1 else f"{abs(own)} {found.column}"
    written = [(term, name if abs(term) == 1 else f"{abs(term)} {name}") for term, name in parts]
    named = f"{abs(constant):g}" if abs(constant) in _TOLD else "a constant"
    written += [(1 if constant > 0 else -1, named)] if constant else []
    written.sort(key=lambda each: each[0] < 0)
    first, *rest = written
    right = ("-" if first[0] < 0 else "") + first[1]
    return f"{left} = {right}" + "".join(f" {'-' if term < 0 else '+'} {text}" for term, text in rest)


class Dependencies(Shown, tuple[Dependency, ...]):
    """What the columns of a file say about one another, as `dependencies` finds it."""


def dependencies(data: Data, columns: Iterable[str] | None = None) -> Dependencies:
    """Find what the columns of a file say about one another; identifiers are left out, as they are from a release.

    One or two columns that determine another, exactly or nearly (in 99.5 % of the records, and clearly more often than
    by chance); columns constant within areas or units; columns that follow from another range by range; totals of
    parts, differences, multiples and dummies that add to one; products and ratios; combinations of two columns that
    never occur although ten records or more are expected, or less than once in 200 times as many.

    Parameters
    ----------
    data : the file.
    columns : only what is about any of these; by default all.

    Example
    -------
    >>> import quadrille as qd
    >>> found = qd.dependencies(qd.datasets.adult(), ["education"])
    >>> str(found[0]), found[0].exact
    ('education determines education-num', True)
    >>> qd.dependencies(qd.datasets.cps8d())
    Dependencies(0)
    """
    require_data(data, "dependencies")
    if _KEPT not in data.prepared:
        names = released_columns(data) if data.n >= CLEARLY else []  # fewer records tell nothing from chance
        few = sorted(names, key=lambda name: data[name].size if data.codebook[name].coded else data.n)[:_MOST_COLUMNS]
        ordered = [name for name in names if name in few]
        data.prepared[_KEPT] = Dependencies(_once([*_within_units(data), *_found(looked_at(data, names), ordered)]))
    found = cast("Dependencies", data.prepared[_KEPT])
    if columns is None:
        return found
    about = set(columns)
    require_columns(data, sorted(about), "dependencies")
    return Dependencies(each for each in found if about.intersection(each.columns))


def released_columns(data: Data, steering: Iterable[str] = ()) -> list[str]:
    """Return the columns of a public file: no identifiers, nothing that steers the draw."""
    return [name for name in data.columns if data.codebook[name].role != "id" and name not in steering]


def _within_units(data: Data) -> list[Dependency]:
    """Return what no unit of two members or more has two values of, and other units do: a household's, not a person's.

    The role of the unit is declared, so chance is no question; units are few in small files.
    """
    found: list[Dependency] = []
    names = released_columns(data)
    for unit in (name for name in names if data.codebook[name].role == "unit"):
        units = data.units(unit)
        if not units.several.any():
            continue
        for name in names:
            values = data[name].values
            if (
                name != unit
                and not units.mixed(values).any()
                and unequal(values, np.broadcast_to(values[:1], values.shape)).any()
            ):
                found.append(Dependency("constant within", (unit,), name, 1.0))
    return found


def _found(data: Data, names: list[str]) -> Iterator[Dependency]:
    """Search the units for what belongs to them, where there are any, and the records for all else.

    The members of a unit repeat what belongs to it: values that hardly two units share would seem to determine the
    others. So each unit counts once, for every combination of values that its members have.
    """
    units, shared = _units(data, names)
    if units is None:
        coded = Coded(data, names)
        yield from _wholes(coded)
        yield from _search(coded)
        return
    if units.count >= CLEARLY:
        yield from _search(Coded(data.take(units.first), shared))
    coded = Coded(data, names)
    yield from _wholes(coded)
    for each in _search(coded):
        if set(each.columns) <= {*shared}:
            continue
        if each.kind not in ("determines", "constant within"):
            yield each
            continue
        codes = (units.of, *(coded.codes[name] for name in each.columns))
        _, once = np.unique(np.stack(codes), axis=1, return_index=True)
        groups = Groups.of(coded, each.given, np.sort(once))
        share = groups.share(each.column, each.given if len(each.given) > 1 else ())
        if share is not None and len(groups.rows) >= ENOUGH * len(once):
            yield replace(each, share=share)


def _wholes(coded: Coded) -> Iterator[Dependency]:
    for kind, given, column, share, categories in wholes(coded):
        yield Dependency(kind, given, column, share, combinations=categories)


def _units(data: Data, names: list[str]) -> tuple[Units | None, list[str]]:
    """Return the units of two members or more, the largest of nested ones, and the columns that belong to them."""
    found = [data.units(name) for name in names if data.codebook[name].role == "unit"]
    units = min((each for each in found if each.several.any()), key=lambda each: each.count, default=None)
    if units is None:
        return None, []
    own = [name for name in names if data.codebook[name].role != "unit"]
    return units, [name for name in own if not units.mixed(data[name].values).any()]


def _search(coded: Coded) -> tuple[Dependency, ...]:
    alone, repeating = single(coded)
    found = [Dependency("follows", given, column, share) for given, column, share in ranges(coded, alone, repeating)]
    found += [_function(coded.data, *each) for each in alone]
    linked = {frozenset(each.columns) for each in found}
    found += [
        Dependency("sum", columns[:-1], columns[-1], share, terms, constant)
        for columns, terms, constant, share in sums(coded)
    ]
    found += [
        Dependency("product", given, column, share, powers)
        for given, column, powers, share in products(coded)
        if not any(pair <= {*given, column} for pair in linked)
    ]
    told = {frozenset(each.columns) for each in found}
    found += [_function(coded.data, *each) for each in paired(coded, alone, list(repeating), told)]
    found += [
        Dependency("never together", (a,), b, 1 - expected, combinations=count)
        for (a, b), count, expected in never_together(coded)
    ]
    return tuple(_once(found))


def _function(data: Data, given: tuple[str, ...], column: str, share: float) -> Dependency:
    within = len(given) == 1 and data.codebook[given[0]].role in ("unit", "geography", "stratum")
    return Dependency("constant within" if within else "determines", given, column, share)


def _once(found: list[Dependency]) -> list[Dependency]:
    """Of several about the same columns keep the first: a record that breaks one breaks the others."""
    seen: set[frozenset[str]] = set()
    kept: list[Dependency] = []
    for each in found:
        if frozenset(each.columns) not in seen:
            seen.add(frozenset(each.columns))
            kept.append(each)
    return kept


def broken(coded: Coded, dependency: Dependency, source: Mapping[str, Rows]) -> Flags:
    """Tell which records contradict a dependency of the original.

    Record i holds in column c what row `source[c][i]` held in the original.
    """
    given, column = dependency.given, dependency.column
    if any(name not in coded.codes for name in dependency.columns):
        return np.zeros(len(source[column]), dtype=np.bool_)
    match dependency.kind:
        case "determines" | "constant within" | "nearly determines":
            return breaks_function(coded, given, column, source)
        case "one of each" | "all different" | "adds up":
            return breaks_whole(coded, dependency.kind, given, column, source)
        case "hardly changes":
            return np.zeros(len(source[column]), dtype=np.bool_)  # no record shows by itself whether it is so
        case "follows":
            return breaks_range(coded, given[0], column, source)
        case "sum":
            return breaks_sum(coded, dependency.columns, dependency.terms, dependency.constant, source)
        case "product":
            return breaks_product(coded, given, column, dependency.terms, source)
        case "never together":
            return breaks_never(coded, given[0], column, source)
