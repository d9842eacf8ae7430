"""A design as read from its file: factors with named levels, and every combination of them as a setting."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import cast

from quadrille.errors import InputError, QuadrilleError
from quadrille.study.job.table import Table, frozen
from quadrille.study.simulate import COUNTS, MECHANISMS, METRICS, Mechanism, Setting
from quadrille.study.toml import know_sections, read_toml
from quadrille.study.trials import entries
from quadrille.study.trials.entries import Combination

MOST_SETTINGS = 20_000
MOST_WRITTEN = 10**12
RESERVED = ("replicate", *METRICS, *COUNTS)
MECHANISM = "mechanism"
_SECTIONS = ("design", "names", "areas", "levels", "rates", "baseline")
_SETTINGS = ("title", "replicates", "seed", MECHANISM, "counties", "strata")


@dataclass(frozen=True)
class Factor:
    """A factor, the names of its levels in order, and the one that effects are measured against."""

    name: str
    levels: tuple[str, ...]
    baseline: str


@dataclass(frozen=True)
class Trial:
    """One setting: the level of every factor by position, and what is simulated."""

    levels: tuple[int, ...]
    areas: tuple[int, ...]
    shares: tuple[float, ...]
    rate: float
    mechanism: Mechanism

    def setting(self) -> Setting:
        """Build the table and count the pairs."""
        return Setting.of(self.areas, self.shares, self.rate, self.mechanism)


@dataclass(frozen=True)
class Design:
    """A full factorial design of simulated swaps.

    Example
    -------
    >>> from quadrille.study.trials.design import Design
    >>> design = Design.of({
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
    def read(cls, path: str | Path) -> Design:
        """Read a design file and check it; the first fault is told with its place."""
        path = Path(path)
        return cls.of(read_toml(path, "the design"), place=str(path))

    @classmethod
    def of(cls, document: Mapping[str, object], *, place: str = "the design") -> Design:
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
            "version": 1,
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
    table = Table(f"{place}, [{name}]", {key: frozen(value) for key, value in values.items()})
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
    counties = head.number("counties", entries.MOST_ENTRIES) or 1
    area_levels, areas = entries.nested(place, "areas", raw["areas"], names["areas"], entries.sizes)
    share_levels, shares = entries.nested(place, "levels", raw["levels"], names["levels"], entries.shares)
    rate_levels, rates = entries.nested(place, "rates", raw["rates"], names["rates"], entries.rates)
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
        Table(f"{place}, [{at}]", {}).refuse(
            "there is one area only, and no partner outside it. Give two or more.", combination[-1]
        )
    if count > entries.MOST_ENTRIES:
        raise InputError(f"{place}, [design] counties: {count:,} areas in all; {entries.MOST_ENTRIES:,} are the most.")


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
