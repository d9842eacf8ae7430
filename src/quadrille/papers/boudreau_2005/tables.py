"""Tables 2 to 4: two regions, age by marital status; what swapping and rounding do to each cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, permutations
from math import floor
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from quadrille.papers.reproduction import Claim, Listing, published
from quadrille.theory import Error, equivalent_records, rounding_error, swap_error

Kind = Literal["cycles", "pairs"]
KINDS: tuple[Kind, ...] = ("cycles", "pairs")

WEIGHTS = ("5.800281", "9.760256", "6.531695", "8.829931", "9.805243", "8.347917", "5.952525")
IN_P = (0, 1, 1, 0, 0, 1, 1)
IN_F = (1, 1, 0, 0, 1, 1, 1)
MOVED = 4

A = tuple(Fraction(weight) * member for weight, member in zip(WEIGHTS, IN_P, strict=True))
"""The weight moves with the variable of P, so it stands on that side."""

PUBLISHED: dict[str, int] = {
    "12.48422": 4,
    "14.30044": 22,
    "14.87961": 4,
    "15.71278": 22,
    "16.29195": 4,
    "18.10817": 22,
    "20.83214": 30,
    "22.24448": 30,
    "24.06070": 99,
    "24.63987": 30,
    "30.59239": 48,
}
"""X' and how many of the 315 permutations give it."""


@dataclass(frozen=True)
class Enumerated:
    """All values of X' for one kind of permutation, with exact moments, and the same by the formula."""

    kind: Kind
    values: tuple[Fraction, ...]
    formula: Error

    @property
    def mean(self) -> Fraction:
        """The mean of X' over all permutations."""
        return sum(self.values, Fraction(0)) / len(self.values)

    @property
    def variance(self) -> Fraction:
        """The variance of X' over all permutations."""
        mean = self.mean
        return sum(((value - mean) ** 2 for value in self.values), Fraction(0)) / len(self.values)

    @property
    def rmse(self) -> float:
        """The root mean square error of X'."""
        return float(self.variance + (self.mean - before()) ** 2) ** 0.5

    @property
    def off(self) -> float:
        """The largest difference between the formula and the enumeration."""
        pairs = (
            (self.formula.expected, self.mean),
            (self.formula.variance, self.variance),
            (self.formula.rmse, self.rmse),
        )
        return max(abs(ours - float(exact)) for ours, exact in pairs)

    def counts(self) -> Counter[str]:
        """Count the permutations by the value of X', printed with five decimals."""
        return Counter(f"{float(value):.5f}" for value in self.values)


def before() -> Fraction:
    """Return X, the estimate before any swap.

    >>> from quadrille.papers.boudreau_2005.tables import before
    >>> float(before())
    24.060698
    """
    return sum((a for a, b in zip(A, IN_F, strict=True) if b), Fraction(0))


def enumerated(kind: Kind) -> Enumerated:
    """Apply every permutation of a kind that moves exactly four of the seven records.

    >>> from quadrille.papers.boudreau_2005.tables import enumerated
    >>> len(enumerated("cycles").values), len(enumerated("pairs").values)
    (315, 105)
    """
    values = [sum((A[u] for u in range(len(A)) if IN_F[source[u]]), Fraction(0)) for source in _permutations(kind)]
    return Enumerated(kind, tuple(values), swap_error([float(a) for a in A], IN_F, MOVED, kind))


def _permutations(kind: Kind) -> Iterator[list[int]]:
    for chosen in combinations(range(len(A)), MOVED):
        for order in permutations(chosen):
            if any(u == v for u, v in zip(chosen, order, strict=True)):
                continue
            source = list(range(len(A)))
            for u, v in zip(chosen, order, strict=True):
                source[u] = v
            if kind == "cycles" or all(source[source[u]] == u for u in chosen):
                yield source


def listings(found: tuple[Enumerated, ...]) -> list[Listing]:
    """Return the distribution of X' beside the published one, and the moments by both ways."""
    counts = {each.kind: each.counts() for each in found}
    values = sorted({value for each in counts.values() for value in each} | set(PUBLISHED), key=float)
    rows = tuple((value, PUBLISHED.get(value, 0), counts["cycles"][value], counts["pairs"][value]) for value in values)
    moments = tuple(
        (
            f"{each.kind}, {way}",
            len(each.values) if way == "enumerated" else "",
            *(f"{float(number):.5f}" for number in numbers),
        )
        for each in found
        for way, numbers in (
            ("enumerated", (each.mean, each.variance, each.rmse)),
            ("by formula", (each.formula.expected, each.formula.variance, each.formula.rmse)),
        )
    )
    return [
        Listing(
            "Table 1: X' when 4 of 7 records move, number of permutations",
            ("X'", "published", "cycles", "pairs"),
            rows,
            f"Published: kind (a), 315 permutations without a fixed record. X = {float(before()):.6f} before.",
        ),
        Listing(
            "Table 1: moments of X'",
            ("kind", "permutations", "mean", "variance", "RMSE"),
            moments,
            "The paper calls the RMSE of the cycles the MSE, and prints 5.03.",
        ),
    ]


def claims(found: tuple[Enumerated, ...]) -> list[Claim]:
    """Judge the published distribution and the formulas."""
    cycles = next(each for each in found if each.kind == "cycles")
    counts = cycles.counts()
    same = sum(counts[value] == times for value, times in PUBLISHED.items())
    worst = max(each.off for each in found)
    return [
        Claim(
            "Table 1 lists all values of X' with their frequencies",
            dict(counts) == PUBLISHED,
            f"{same} of {len(counts)} values as enumerated; {len(cycles.values)} permutations",
        ),
        Claim(
            "mean, variance and RMSE follow from the closed form",
            worst < 1e-10,
            f"largest difference from the enumeration, both kinds: {worst:.0e}",
        ),
        Claim(
            "the error of the small file is 5.03",
            f"{cycles.rmse:.2f}" == "5.03",
            f"the RMSE is {cycles.rmse:.4f}, which rounds to {cycles.rmse:.2f}; the MSE is {cycles.rmse**2:.4f}",
        ),
    ]


Ints = NDArray[np.int64]

REGIONS = ("I", "II")
AGES = ("0-15", "16-35", "36-65", "65+")
STATUS = ("never married", "married", "separated", "divorced", "widowed")
WORKED = ("36-65", "married")
RATE = 0.05
BASE = 5
_FILE = "boudreau_tables_2_3_4.csv"


@dataclass(frozen=True)
class Region:
    """A region's three published tables, ages down and status across; `totals` are the printed ones by age."""

    name: str
    counts: Ints
    swapped: Ints
    rounded: Ints
    totals: dict[int, Ints]

    @property
    def n(self) -> int:
        """The number of records."""
        return int(self.counts.sum())

    def moved(self, kind: Kind) -> int:
        """Return k for the rate of the paper."""
        return 2 * floor(RATE * self.n / 2 + 0.5) if kind == "pairs" else floor(RATE * self.n + 0.5)


@dataclass(frozen=True)
class Cell:
    """One cell: its count, what the paper made of it, and the errors of swapping and of rounding.

    `equivalent` is the least number of moved records whose error reaches that of rounding; None: never.
    """

    region: str
    age: str
    status: str
    count: int
    swapped: int
    rounded: int
    swap: Error
    rounding: Error
    equivalent: int | None

    @property
    def label(self) -> str:
        """Age and status."""
        return f"{self.age} {self.status}"

    @property
    def z(self) -> float:
        """How many standard deviations the published change is from the expected one."""
        return (self.swapped - self.swap.expected) / self.swap.sd

    @property
    def is_rounded(self) -> bool:
        """Whether rounding can change the cell."""
        return self.rounding.rmse > 0


@cache
def region(name: str) -> Region:
    """Read a region's tables.

    >>> from quadrille.papers.boudreau_2005.tables import region
    >>> region("I").n, region("II").n
    (907999, 89)
    """
    rows = [row for row in published(_FILE) if row["region"] == name]
    columns = [status.replace(" ", "_") for status in STATUS]
    tables = {
        number: np.array([[int(row[c]) for c in columns] for row in rows if row["table"] == str(number)])
        for number in (2, 3, 4)
    }
    totals = {
        number: np.array([int(row["total"]) for row in rows if row["table"] == str(number)]) for number in (2, 3, 4)
    }
    return Region(name, tables[2], tables[3], tables[4], totals)


def cells(found: Region, kind: Kind) -> list[Cell]:
    """Return every cell of a region with its errors, age by age."""
    return [_cell(found, kind, i, j) for i in range(len(AGES)) for j in range(len(STATUS))]


def _cell(found: Region, kind: Kind, i: int, j: int) -> Cell:
    # The four kinds of records, by age as in the cell or not, and by status: all that the error depends on.
    counts = found.counts
    here, row, column = int(counts[i, j]), int(counts[i].sum()), int(counts[:, j].sum())
    times = [here, row - here, column - here, found.n - row - column + here]
    a, b = [1, 1, 0, 0], [1, 0, 1, 0]
    rounding = rounding_error(here, base=BASE)
    return Cell(
        region=found.name,
        age=AGES[i],
        status=STATUS[j],
        count=here,
        swapped=int(found.swapped[i, j]),
        rounded=int(found.rounded[i, j]),
        swap=swap_error(a, b, found.moved(kind), kind, counts=times),
        rounding=rounding,
        equivalent=equivalent_records(a, b, rmse=rounding.rmse, kind=kind, counts=times),
    )
