"""What the columns of a file say about one another: a swap that moves some of them alone contradicts the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast

import numpy as np

from quadrille.data import Data, Rows, require_columns, require_data, unequal
from quadrille.score.dependencies.coded import CLEARLY, Coded, Flags
from quadrille.score.dependencies.functions import breaks_function, breaks_range, paired, ranges, single
from quadrille.score.dependencies.never import breaks_never, never_together
from quadrille.score.dependencies.sums import breaks_product, breaks_sum, products, sums
from quadrille.text import Shown

_KEPT = "dependencies"
_TOLD = (1, 100)
"""Constants that say nothing about the data: dummies and percentages add up to them."""
_MOST_COLUMNS = 300
"""In wider files, the columns with the fewest values are looked at."""

DependencyKind = Literal["determines", "constant within", "follows", "sum", "product", "never together"]


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
    """How many combinations never occur, or almost never."""

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
        if self.kind == "follows":
            return f"{column} follows from {given}, range by range"
        if self.kind == "sum":
            return _sum_in_words(self)
        if self.kind == "product":
            first, second = self.given
            parts = (first, second) if self.terms[0] > 0 else (second, first)
            return f"{column} is a multiple of {parts[0]} {'*' if sum(self.terms) > 0 else '/'} {parts[1]}"
        many = "a combination" if self.combinations == 1 else f"{self.combinations:,} combinations"
        return f"{many} of {given} and {column} never {'occurs' if self.combinations == 1 else 'occur'}, or hardly"


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
        found = _search(Coded(data, [name for name in names if name in few]))
        data.prepared[_KEPT] = Dependencies(_once([*_within_units(data), *found]))
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
    found += [_function(coded.data, *each) for each in paired(coded, alone, list(repeating))]
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
        case "determines" | "constant within":
            return breaks_function(coded, given, column, source)
        case "follows":
            return breaks_range(coded, given[0], column, source)
        case "sum":
            return breaks_sum(coded, dependency.columns, dependency.terms, dependency.constant, source)
        case "product":
            return breaks_product(coded, given, column, dependency.terms, source)
        case "never together":
            return breaks_never(coded, given[0], column, source)
