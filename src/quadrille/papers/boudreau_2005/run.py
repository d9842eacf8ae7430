"""The paper's tables and ours: a small file by enumeration; two regions by theory and by draws of the swap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, permutations
from math import floor, sqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from quadrille.codebook import Variable
from quadrille.data import Column, Data, code_dtype
from quadrille.papers.reproduction import Floats, published
from quadrille.swap.permutation import PermutationSwap
from quadrille.theory import Error, equivalent_records, large_n_error, rounding_error, swap_error

Ints = NDArray[np.int64]
Kind = Literal["cycles", "pairs"]
KINDS: tuple[Kind, ...] = ("cycles", "pairs")

WEIGHTS = ("5.800281", "9.760256", "6.531695", "8.829931", "9.805243", "8.347917", "5.952525")
IN_P = (0, 1, 1, 0, 0, 1, 1)
"""Records in P, the domain of the variables that are permuted."""
IN_F = (1, 1, 0, 0, 1, 1, 1)
"""Records in F, the domain of the fixed variables. X counts the records that are in both."""
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

    >>> from quadrille.papers.boudreau_2005.run import before
    >>> float(before())
    24.060698
    """
    return sum((a for a, b in zip(A, IN_F, strict=True) if b), Fraction(0))


def enumerated(kind: Kind) -> Enumerated:
    """Apply every permutation of a kind that moves exactly four of the seven records.

    >>> from quadrille.papers.boudreau_2005.run import enumerated
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

    >>> from quadrille.papers.boudreau_2005.run import region
    >>> region("I").n, region("II").n
    (907999, 89)
    """
    rows = [row for row in published(_FILE) if row["region"] == name]
    columns = [status.replace(" ", "_") for status in STATUS]
    tables = {number: [row for row in rows if row["table"] == str(number)] for number in (2, 3, 4)}
    counts, swapped, rounded = (np.array([[int(row[c]) for c in columns] for row in tables[i]]) for i in (2, 3, 4))
    totals = {number: np.array([int(row["total"]) for row in table]) for number, table in tables.items()}
    return Region(name, counts, swapped, rounded, totals)


def cells(found: Region, kind: Kind) -> list[Cell]:
    """Return every cell of a region with its errors, age by age."""
    return [_cell(found, kind, i, j) for i in range(len(AGES)) for j in range(len(STATUS))]


_IN_AGE, _IN_STATUS = (1, 1, 0, 0), (1, 0, 1, 0)
"""The four kinds of records that the error of a cell depends on: by age as in the cell or not, and by status."""


def _kinds(found: Region, i: int, j: int) -> list[int]:
    """Count the four kinds of records."""
    here, row, column = int(found.counts[i, j]), int(found.counts[i].sum()), int(found.counts[:, j].sum())
    return [here, row - here, column - here, found.n - row - column + here]


def _cell(found: Region, kind: Kind, i: int, j: int) -> Cell:
    times, count = _kinds(found, i, j), int(found.counts[i, j])
    rounding = rounding_error(count, base=BASE)
    return Cell(
        region=found.name,
        age=AGES[i],
        status=STATUS[j],
        count=count,
        swapped=int(found.swapped[i, j]),
        rounded=int(found.rounded[i, j]),
        swap=swap_error(_IN_AGE, _IN_STATUS, found.moved(kind), kind, counts=times),
        rounding=rounding,
        equivalent=equivalent_records(_IN_AGE, _IN_STATUS, rmse=rounding.rmse, kind=kind, counts=times),
    )


def weight_for_two(found: Region, cell: Cell) -> float:
    """Return the weight of each record from which two moved records put as much error into a cell as rounding does."""
    times = _kinds(found, AGES.index(cell.age), STATUS.index(cell.status))
    return cell.rounding.rmse / swap_error(_IN_AGE, _IN_STATUS, 2, counts=times).rmse


def equivalent_for_large_n(found: Region, cell: Cell, kind: Kind) -> int | None:
    """Return the least number of moved records by the formula for large n, as the paper has it, or None."""
    here, row, column = (number / found.n for number in _margins(found, cell))
    step = 2 if kind == "pairs" else 1
    errors = (
        (k, large_n_error(found.n, here, row, column, rate=k / found.n, kind=kind).rmse)
        for k in range(2, found.n + 1, step)
    )
    return next((k for k, rmse in errors if rmse >= cell.rounding.rmse), None)


def _margins(found: Region, cell: Cell) -> tuple[int, int, int]:
    """Return a cell with the totals of its age, which moves, and of its status, which stays."""
    here, age, status, _ = _kinds(found, AGES.index(cell.age), STATUS.index(cell.status))
    return here, here + age, here + status


@dataclass(frozen=True)
class Drawn:
    """What many draws did to a cell: mean and standard deviation of its change, and how far they are from theory.

    `z_mean` and `z_variance` are differences from theory in standard errors.
    """

    cell: Cell
    mean: float
    sd: float
    z_mean: float
    z_variance: float


def file_of(region: Region) -> Data:
    """Return a region as records: age and status."""
    columns: list[Column] = []
    places = np.indices(region.counts.shape)
    for name, categories, codes in zip(("age", "status"), (AGES, STATUS), places, strict=True):
        values = np.repeat(codes.ravel(), region.counts.ravel()).astype(code_dtype(len(categories)))
        columns.append(Column(Variable(name, "ordinal" if name == "age" else "nominal", categories), values))
    return Data(columns)


def draw(
    region: Region, cells: Sequence[Cell], kind: Kind, seeds: int, done: Callable[[int], None] | None = None
) -> list[Drawn]:
    """Swap age between random records with many seeds, and compare the changes of every cell with theory."""
    data = file_of(region)
    age, status = (data[name].values.astype(np.int64) for name in ("age", "status"))
    changes = np.empty((seeds, len(cells)))
    for seed in range(seeds):
        (move,) = PermutationSwap(["age"], rate=RATE, kind=kind, seed=seed).plan(data).moves
        stays = status[move.rows]
        after = np.bincount(age[move.source] * len(STATUS) + stays, minlength=len(cells))
        changes[seed] = after - np.bincount(age[move.rows] * len(STATUS) + stays, minlength=len(cells))
        if done:
            done(1)
    return [_compared(cell, changes[:, c]) for c, cell in enumerate(cells)]


def _compared(cell: Cell, changes: Floats) -> Drawn:
    bias, variance, draws = cell.swap.bias, cell.swap.variance, len(changes)
    # The change is a whole number that goes up and down by rare events: its fourth cumulant is near its variance.
    error = sqrt((variance + 2 * variance**2) / draws)
    z_mean = (float(changes.mean()) - bias) / (cell.swap.sd / sqrt(draws))
    z_variance = (float(((changes - bias) ** 2).mean()) - variance) / error
    return Drawn(cell, float(changes.mean()), float(changes.std(ddof=1)), z_mean, z_variance)
