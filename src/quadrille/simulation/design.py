"""A design as read from its file: entries, factors with named levels, every combination as a setting."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TypeVar, cast

from quadrille.errors import InputError, ParameterError, QuadrilleError
from quadrille.params import declared
from quadrille.simulation import COUNTS, LEVEL_SHARE, MECHANISMS, METRICS, SIZE, Mechanism, Setting
from quadrille.text import Shown, Table, frozen, know_sections, read_toml

Number = TypeVar("Number", int, float)
Read = Callable[[Table, str], tuple[Number, ...]]
Combination = tuple[str, ...]

MOST_ENTRIES = 50_000
_ALIKE = re.compile(r"\s*(\d{1,6})\s*x\s*(\S+)\s*")
_SIZES = "a list of the records of each area, as in [5000, 5000, 30000]"
_SHARES = "a list of the share of each level, as in [0.8, 0.2]"
_PARAMS = declared(Setting)


def nested(
    place: str, section: str, found: Mapping[str, object], names: tuple[str, ...], read: Read[Number]
) -> tuple[tuple[tuple[str, ...], ...], dict[Combination, tuple[Number, ...]]]:
    """Read a section whose tables are nested as deep as it has factors; return their levels, and every combination."""
    entries: dict[Combination, tuple[Number, ...]] = {}
    _walk(place, section, found, names, (), read, entries)
    levels = tuple(tuple(dict.fromkeys(key[i] for key in entries)) for i in range(len(names)))
    for combination in product(*levels):
        if combination not in entries:
            at = ".".join((section, *combination[:-1]))
            Table(place, at, {}).refuse(
                f"{combination[-1]!r} is missing. The design needs every combination of {' and '.join(names)}."
            )
    return levels, entries


def _walk(
    place: str,
    section: str,
    found: Mapping[str, object],
    names: tuple[str, ...],
    above: Combination,
    read: Read[Number],
    entries: dict[Combination, tuple[Number, ...]],
) -> None:
    table = Table(place, section, {key: frozen(value) for key, value in found.items()})
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
            _walk(place, f"{section}.{key}", cast("dict[str, object]", value), names, (*above, key), read, entries)
        else:
            entries[(*above, key)] = read(table, key)


def size_entries(table: Table, key: str) -> tuple[int, ...]:
    """Read the records of areas."""
    return _entries(table, key, SIZE.check, _SIZES, "6 x 5000")


def share_entries(table: Table, key: str) -> tuple[float, ...]:
    """Read the shares of levels, which need not sum to 1, but to more than 0."""
    found = _entries(table, key, LEVEL_SHARE.as_number, _SHARES, "5 x 0.2")
    if len(found) < 2:
        table.refuse("a variable has two levels or more. Give the share of each.", key)
    if sum(found) == 0:
        table.refuse("the shares sum to zero. Give at least one that is not 0.", key)
    if sum(found) == float("inf"):
        table.refuse("the shares are too large to be added up. Give smaller numbers: only their ratios count.", key)
    return found


def rate_entries(table: Table, key: str) -> tuple[float, ...]:
    """Read a rate, as a tuple of one."""
    rate = _PARAMS["rate"]
    try:
        return (cast("float", rate.check(table.place, key, table.values[key])),)
    except ParameterError as error:
        table.demand(f"{error.must}, the {rate.help}", error.value, key)


def _entries(
    table: Table, key: str, check: Callable[[str, str, object], Number], what: str, example: str
) -> tuple[Number, ...]:
    """Read a list of values, each one or, as in "6 x 5000", several alike; at most 50,000 in all."""
    listed = table.values[key]
    if not isinstance(listed, tuple) or not listed:
        table.demand(what, cast("object", listed), key)
    found: list[Number] = []
    for index, entry in enumerate(cast("tuple[object, ...]", listed)):
        try:
            count, value = _alike(entry)
            checked = check(table.place, key, value if count else None)
        except ParameterError as error:
            table.demand(f'{error.must}, or several alike as in "{example}"', entry, key, index)
        if len(found) + count > MOST_ENTRIES:
            table.refuse(f"has more than {MOST_ENTRIES:,} entries.", key)
        found += [checked] * count
    return tuple(found)


def _alike(entry: object) -> tuple[int, object]:
    """Return how many values an entry stands for, and the value."""
    if not isinstance(entry, str):
        return 1, entry
    alike = _ALIKE.fullmatch(entry)
    if alike is None:
        return 1, entry
    try:
        return int(alike[1]), int(alike[2]) if alike[2].isdigit() else float(alike[2])
    except ValueError:
        return 1, entry


MOST_SETTINGS = 20_000
MOST_WRITTEN = 10**12
RESERVED = ("replicate", *METRICS, *COUNTS)
MECHANISM = "mechanism"
_SECTIONS = ("design", "names", "areas", "levels", "rates", "baseline")
_SETTINGS = ("title", "replicates", "seed", MECHANISM, "counties", "strata")


@dataclass(frozen=True, repr=False)
class Factor(Shown):
    """A factor, the names of its levels in order, and the one that effects are measured against."""

    name: str
    levels: tuple[str, ...]
    baseline: str


@dataclass(frozen=True, repr=False)
class Trial(Shown):
    """One setting: the level of every factor by position, and what is simulated."""

    levels: tuple[int, ...]
    areas: tuple[int, ...]
    shares: tuple[float, ...]
    rate: float
    mechanism: Mechanism

    def setting(self) -> Setting:
        """Build the table and count the pairs."""
        return Setting(self.areas, self.shares, self.rate, self.mechanism)


@dataclass(frozen=True, repr=False)
class SimulationDesign(Shown):
    """A full factorial design of simulated swaps.

    Example
    -------
    >>> from quadrille.simulation.design import SimulationDesign
    >>> design = SimulationDesign.of({
    ...     "design": {"replicates": 100, "seed": 1, "mechanism": ["records", "cells"]},
    ...     "areas": {"equal": ["4 x 1000"], "skewed": ["3 x 500", 2500]},
    ...     "levels": {"two": [0.8, 0.2]},
    ...     "rates": {"low": 0.01, "high": 0.05},
    ... })
    >>> [(factor.name, factor.levels) for factor in design.factors][:2]
    [('areas', ('equal', 'skewed')), ('levels', ('two',))]
    >>> len(design.trials), design.total
    (8, 800)
    """

    place: str
    title: str
    replicates: int
    seed: int | None
    factors: tuple[Factor, ...]
    strata: tuple[str, ...]
    trials: tuple[Trial, ...]

    @classmethod
    def read(cls, path: str | Path) -> SimulationDesign:
        """Read a design file and check it; the first fault is reported with its place."""
        path = Path(path)
        return cls.of(read_toml(path, "the design"), place=str(path))

    @classmethod
    def of(cls, document: Mapping[str, object], *, place: str = "the design") -> SimulationDesign:
        """Check a design that is given as the contents of its file."""
        know_sections(document, _SECTIONS, place)
        head = _section(place, document, "design", _SETTINGS)
        head.require("replicates", "1000")
        names = _names(place, document)
        factors, trials = _factorial(place, document, names, head)
        made = cls(
            place=place,
            title=head.text("title") or "",
            replicates=head.number("replicates", MOST_WRITTEN) or 1,
            seed=_seed(head),
            factors=factors,
            strata=_strata(head, factors),
            trials=trials,
        )
        made._check_settings()
        return made

    @property
    def total(self) -> int:
        """The number of replicates in all."""
        return self.replicates * len(self.trials)

    @cached_property
    def identity(self) -> str:
        """A hash of what decides the results, seed aside: settings in order, with their names, and replicates."""
        parts = {
            "version": max(trial.setting().version for trial in self.trials),
            "replicates": self.replicates,
            "factors": [(factor.name, factor.levels) for factor in self.factors],
            "settings": [(t.levels, t.areas, t.shares, t.rate, t.mechanism) for t in self.trials],
        }
        return hashlib.blake2b(json.dumps(parts).encode(), digest_size=32).hexdigest()

    def named(self, trial: Trial) -> str:
        """Say which setting it is: "five, skewed, two, uniform, low"."""
        several = [(f, level) for f, level in zip(self.factors, trial.levels, strict=True) if len(f.levels) > 1]
        return ", ".join(factor.levels[level] for factor, level in several) or "the only one"

    def _check_settings(self) -> None:
        """Try every setting; two that are the same swap would repeat the same numbers."""
        seen: dict[bytes, Trial] = {}
        for trial in self.trials:
            try:
                identity = trial.setting().identity
            except QuadrilleError as error:
                raise InputError(f"{self.place}, setting {self.named(trial)}: {error}") from None
            key = hashlib.blake2b(identity.encode(), digest_size=16).digest()
            if key in seen:
                raise InputError(
                    f"{self.place}: the settings {self.named(seen[key])!r} and {self.named(trial)!r} are the same "
                    "table, rate and mechanism. Leave one of the levels out."
                )
            seen[key] = trial


def _section(place: str, document: Mapping[str, object], name: str, known: tuple[str, ...] | None = None) -> Table:
    """Return a section, checked for unknown settings; it must not be missing or empty."""
    found = document.get(name)
    if found is not None and not isinstance(found, dict):
        raise InputError(f"{place}: {name} must be a section, headed [{name}].")
    if not found:
        raise InputError(f"{place}: the section [{name}] is missing or empty.")
    values = cast("dict[str, object]", found)
    table = Table(place, name, {key: frozen(value) for key, value in values.items()})
    if known is not None:
        table.know(known)
    return table


def _names(place: str, document: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
    """Return the factors of each section; without a name of its own, a section is one factor of its name."""
    found: dict[str, tuple[str, ...]] = {each: (each,) for each in ("areas", "levels", "rates")}
    if "names" in document:
        table = _section(place, document, "names", tuple(found))
        for key, value in table.values.items():
            found[key] = (table.text(key) or "",) if isinstance(value, str) else table.texts(key, "names", least=1)
        if len(found["rates"]) > 1:
            table.refuse("rates are the levels of one factor. Give one name.", "rates")
    every = [name for names in found.values() for name in names]
    for name in every:
        if every.count(name) > 1:
            raise InputError(f"{place}, [names]: two factors have the name {name!r}. Give each its own.")
        if name in RESERVED or name == MECHANISM:
            raise InputError(f"{place}, [names]: {name!r} is a column of the results. Choose another name.")
    return found


def _factorial(
    place: str, document: Mapping[str, object], names: dict[str, tuple[str, ...]], head: Table
) -> tuple[tuple[Factor, ...], tuple[Trial, ...]]:
    """Read the levels of all factors, and cross them."""
    raw = {name: _raw(place, document, name) for name in names}
    counties = head.number("counties", MOST_ENTRIES) or 1
    area_levels, areas = nested(place, "areas", raw["areas"], names["areas"], size_entries)
    share_levels, shares = nested(place, "levels", raw["levels"], names["levels"], share_entries)
    rate_levels, rates = nested(place, "rates", raw["rates"], names["rates"], rate_entries)
    mechanisms = _mechanisms(head)
    levels = (*area_levels, *share_levels, *rate_levels, mechanisms)
    names_in_order = (*names["areas"], *names["levels"], *names["rates"], MECHANISM)
    factors = _with_baselines(place, document, dict(zip(names_in_order, levels, strict=True)))
    settings = 1
    for each in levels:
        settings *= len(each)
    if settings > MOST_SETTINGS:
        raise InputError(f"{place}: the design has {settings:,} settings; {MOST_SETTINGS:,} are the most.")
    for combination, each in areas.items():
        _check_areas(place, combination, len(each) * counties)
    cut = (len(area_levels), len(area_levels) + len(share_levels))
    trials: list[Trial] = []
    for chosen in product(*(range(len(each)) for each in levels)):
        words: Combination = tuple(levels[i][level] for i, level in enumerate(chosen))
        trials.append(
            Trial(
                chosen,
                areas[words[: cut[0]]] * counties,
                shares[words[cut[0] : cut[1]]],
                rates[words[cut[1] : -1]][0],
                cast("Mechanism", words[-1]),
            )
        )
    return factors, tuple(trials)


def _raw(place: str, document: Mapping[str, object], name: str) -> Mapping[str, object]:
    _section(place, document, name)
    return cast("dict[str, object]", document[name])


def _check_areas(place: str, combination: Combination, count: int) -> None:
    if count < 2:
        at = ".".join(("areas", *combination[:-1]))
        Table(place, at, {}).refuse(
            "there is one area only, and no partner outside it. Give two or more.", combination[-1]
        )
    if count > MOST_ENTRIES:
        raise InputError(f"{place}, [design] counties: {count:,} areas in all; {MOST_ENTRIES:,} are the most.")


def _mechanisms(head: Table) -> tuple[str, ...]:
    value = head.values.get(MECHANISM, MECHANISMS[0])
    listed = (value,) if isinstance(value, str) else head.texts(MECHANISM, "mechanisms", least=1)
    for index, each in enumerate(listed):
        if each not in MECHANISMS:
            head.demand(" or ".join(f'"{m}"' for m in MECHANISMS), each, MECHANISM, index if len(listed) > 1 else None)
    return listed


def _with_baselines(
    place: str, document: Mapping[str, object], levels: Mapping[str, tuple[str, ...]]
) -> tuple[Factor, ...]:
    """Return the factors; the baseline is the first level unless [baseline] names another."""
    baseline = {name: each[0] for name, each in levels.items()}
    if "baseline" in document:
        table = _section(place, document, "baseline", tuple(levels))
        for name in table.values:
            level = table.text(name) or ""
            if level not in levels[name]:
                table.demand(f"one of the levels {', '.join(levels[name])}", level, name)
            baseline[name] = level
    return tuple(Factor(name, each, baseline[name]) for name, each in levels.items())


def _seed(head: Table) -> int | None:
    value = head.values.get("seed")
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    return head.refuse("must be a whole number of 0 or more. Leave it out for a secret one.", "seed")


def _strata(head: Table, factors: tuple[Factor, ...]) -> tuple[str, ...]:
    """Return the factors whose combinations are looked at one by one: all of them by default."""
    known = [factor.name for factor in factors]
    listed = head.texts("strata", "factors")
    for index, name in enumerate(listed):
        if name not in known:
            head.demand(f"one of the factors {', '.join(known)}", name, "strata", index)
    if "strata" in head.values and not listed:
        head.demand("a list of one factor or more", (), "strata")
    return listed or tuple(known)
