"""What a swap does, as numbers: one file per family of measures, and here all of them, by name and as objectives."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, overload

from quadrille.data import Data
from quadrille.errors import unknown_name
from quadrille.expressions import split_outside_quotes
from quadrille.measure import association, attack, correlation, difference, regression, risk, tables
from quadrille.measure.areas import Floats
from quadrille.measure.base import ALL_PAIRS, Address, Measure
from quadrille.measure.population import sample_of
from quadrille.recipe import find_method

MEASURES: dict[str, Measure] = {
    measure.name: measure
    for family in (tables, association, difference, risk, attack, correlation, regression)
    for measure in family.MEASURES
}


def get(name: str) -> Measure:
    """Return the measure of that name."""
    if name not in MEASURES:
        raise unknown_name("measure", name, MEASURES)
    return MEASURES[name]


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a recipe, by the name of its method, or of a measure.

    It is made from the declarations of the parameters, and a form can be built from it: besides the usual keywords,
    `x-kind` says what a value is (columns, share, count, word, ...) and `x-unit` what a number counts.

    Example
    -------
    >>> import quadrille as qd
    >>> form = qd.schema("RandomSwap")
    >>> form["required"], form["properties"]["rate"]["maximum"], form["properties"]["differ"]["enum"]
    (['method', 'swap'], 1.0, ['all', 'any', 'none'])
    >>> qd.schema("small_cells")["properties"]["n"]["default"]
    3
    """
    return MEASURES[name].schema() if name in MEASURES else find_method(name).schema()


@cache
def measure_of(address: str) -> Measure:
    """Return the measure that an address names."""
    return get(Address.parse(address).name)


@overload
def orient(address: str, value: float) -> float: ...
@overload
def orient(address: str, value: Floats) -> Floats: ...
def orient(address: str, value: float | Floats) -> float | Floats:
    """Turn a value, or many, so that lower is better: signed measures by size, higher-is-better ones negated."""
    direction = measure_of(address).direction
    return abs(value) if direction == "nearer 0" else -value if direction == "higher" else value


def beside_the_n_rule(measures: Sequence[str]) -> list[str]:
    """Put `exposed` next to every `small_cells`, with the same margin and options: the n-rule alone can be fooled."""
    wanted: list[str] = []
    for address in measures:
        wanted.append(address)
        companion = "exposed" + address.strip().removeprefix("small_cells")
        if Address.parse(address).name == "small_cells" and companion not in (*measures, *wanted):
            wanted.append(companion)
    return wanted


def beside_exposed(measures: Sequence[str], data: Data) -> list[str]:
    """Put `population_risk` next to every `exposed`, with the same margin, where the data are a sample.

    >>> import quadrille as qd
    >>> from quadrille.measure import beside_exposed
    >>> beside_exposed(["exposed(Age*Sex, n=5)", "hellinger"], qd.datasets.cps8d().with_sampling(0.02))
    ['exposed(Age*Sex, n=5)', 'population_risk(Age*Sex)', 'hellinger']
    """
    if sample_of(data) is None:
        return list(measures)
    known, wanted = {Address.parse(address).name: address for address in measures}, list[str]()
    for address in measures:
        wanted.append(address)
        if Address.parse(address).name == "exposed" and "population_risk" not in known:
            inside = address.strip().removeprefix("exposed")[1:-1]
            kept = [part.strip() for part in split_outside_quotes(inside, ",") if not re.match(r"\s*n\s*=", part)]
            companion = f"population_risk({', '.join(kept)})" if any(kept) else "population_risk"
            if companion not in wanted and Address.parse(companion).margin != (ALL_PAIRS,):
                wanted.append(companion)
    return wanted


def sides(measures: Sequence[str]) -> tuple[int, int] | None:
    """Return the positions of the first risk and the first loss measure, if there are both."""
    listed = [measure_of(address).side for address in measures]
    return (listed.index("risk"), listed.index("loss")) if {"risk", "loss"} <= set(listed) else None
