"""The design: four files, twelve scenarios, two rates, two methods, and seeds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Literal, NamedTuple

Source = Literal["simulated", "adult"]
Method = Literal["standard", "balanced"]

SOURCES: tuple[Source, ...] = ("simulated", "adult")
SIZES = (18_102, 8_153, 3_648, 1_156)
RATES = (0.03, 0.15)
"""Shares of records drawn as targets."""
METHODS: tuple[Method, ...] = ("standard", "balanced")
SEEDS = 10

SHAPES = (
    "2N 4N 4O 6O",
    "32N 5N 3O 2O",
    "2N 3N 4N 4O",
    "2N 2N 3N 4N 4O",
    "2N 3N 4N 4O 6O",
    "2N 2N 4N 4O 6O",
    "2N 4N 4O",
    "4N 6O 6O",
    "2N 36O",
    "30N 6O",
    "2N 6O",
    "6O 6O",
)
"""Categories of each scenario's variables, N nominal and O ordinal; the right-most changes most often."""

_VARIABLES: dict[Source, tuple[str, ...]] = {
    "simulated": (
        "N2a N4 O4 O6a",
        "N32 N5 O3 O2",
        "N2a N3 N4 O4",
        "N2a N2b N3 N4 O4",
        "N2a N3 N4 O4 O6a",
        "N2a N2b N4 O4 O6a",
        "N2a N4 O4",
        "N4 O6a O6b",
        "N2a O36",
        "N30 O6a",
        "N2a O6a",
        "O6a O6b",
    ),
    "adult": (
        "sex work age4 educ6",
        "country race5 age3 income",
        "sex marital work age4",
        "sex race2 marital work age4",
        "sex marital work age4 educ6",
        "sex race2 work age4 educ6",
        "sex work age4",
        "work educ6 age6",
        "sex age36",
        "jobsex educ6",
        "sex educ6",
        "educ6 age6",
    ),
}


@dataclass(frozen=True)
class Scenario:
    """What is swapped: variables in order, with the number of possible cells and of nominal categories."""

    number: int
    variables: tuple[str, ...]
    cells: int
    nominal: int


class Setting(NamedTuple):
    """One combination of the design, by position: file, scenario, rate, method."""

    size: int
    scenario: int
    rate: int
    method: int


def scenarios(source: Source) -> tuple[Scenario, ...]:
    """Return the twelve scenarios with the variables of a source.

    >>> from quadrille.papers.dohrmann_2009.design import scenarios
    >>> scenarios("adult")[9]
    Scenario(number=10, variables=('jobsex', 'educ6'), cells=180, nominal=30)
    """
    return tuple(
        Scenario(number, tuple(names.split()), *shape_of(shape))
        for number, (names, shape) in enumerate(zip(_VARIABLES[source], SHAPES, strict=True), 1)
    )


def shape_of(shape: str) -> tuple[int, int]:
    """Return the possible cells and the nominal categories of a shape.

    >>> from quadrille.papers.dohrmann_2009.design import shape_of
    >>> shape_of("2N 4N 4O 6O")
    (192, 6)
    """
    parts = [(int(part[:-1]), part[-1]) for part in shape.split()]
    return prod(count for count, _ in parts), sum(count for count, kind in parts if kind == "N")


def settings() -> Iterator[Setting]:
    """Yield the 192 settings in the order of the axes of a run table."""
    for size in range(len(SIZES)):
        for scenario in range(len(SHAPES)):
            for rate in range(len(RATES)):
                for method in range(len(METHODS)):
                    yield Setting(size, scenario, rate, method)
