"""Tables 2 to 4: two regions, age by marital status; what swapping and rounding do to each cell."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import floor

import numpy as np
from numpy.typing import NDArray

from quadrille.papers.boudreau2005.small_file import Kind
from quadrille.papers.reproduction import published
from quadrille.theory import Error, equivalent_records, rounding_error, swap_error

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

    >>> from quadrille.papers.boudreau2005.regions import region
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
