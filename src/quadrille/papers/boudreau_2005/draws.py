"""Draws of the swap on the two regions: do their means and variances agree with the closed form?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from quadrille.codebook import Variable
from quadrille.data import Column, Data, code_dtype
from quadrille.papers.boudreau_2005.tables import AGES, RATE, STATUS, Cell, Kind, Region
from quadrille.papers.reproduction import MOST_ERRORS, Claim, Listing
from quadrille.swap.permutation import PermutationSwap

Floats = NDArray[np.float64]


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

    @property
    def agrees(self) -> bool:
        """Whether both are within four standard errors."""
        return max(abs(self.z_mean), abs(self.z_variance)) <= MOST_ERRORS


def file_of(region: Region) -> Data:
    """Return a region as records: age and status."""
    columns: list[Column] = []
    places = np.indices(region.counts.shape)
    for name, categories, codes in zip(("age", "status"), (AGES, STATUS), places, strict=True):
        values = np.repeat(codes.ravel(), region.counts.ravel()).astype(code_dtype(len(categories)))
        columns.append(Column(Variable(name, "ordinal" if name == "age" else "nominal", categories), values))
    return Data(columns)


def draw(
    region: Region, cells: Sequence[Cell], kind: Kind, seeds: int, done: Callable[[], None] | None = None
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
            done()
    return [_compared(cell, changes[:, c]) for c, cell in enumerate(cells)]


def _compared(cell: Cell, changes: Floats) -> Drawn:
    bias, variance, draws = cell.swap.bias, cell.swap.variance, len(changes)
    # The change is a whole number that goes up and down by rare events: its fourth cumulant is near its variance.
    error = sqrt((variance + 2 * variance**2) / draws)
    z_mean = (float(changes.mean()) - bias) / (cell.swap.sd / sqrt(draws))
    z_variance = (float(((changes - bias) ** 2).mean()) - variance) / error
    return Drawn(cell, float(changes.mean()), float(changes.std(ddof=1)), z_mean, z_variance)


def listing(region: str, drawn: Sequence[Drawn], seeds: int) -> Listing:
    """Return the table of a region's draws beside theory."""
    digits = 1 if region == "I" else 3
    rows = tuple(
        (
            each.cell.label,
            f"{each.cell.swap.bias:+.{digits}f}",
            f"{each.mean:+.{digits}f}",
            f"{each.z_mean:+.2f}",
            f"{each.cell.swap.sd:.{digits}f}",
            f"{each.sd:.{digits}f}",
            f"{each.z_variance:+.2f}",
        )
        for each in drawn
    )
    return Listing(
        f"Region {region}: theory and {seeds:,} draws of PermutationSwap",
        ("cell", "bias", "drawn", "z", "sd", "drawn", "z"),
        rows,
        "z: difference in standard errors, for the mean and for the variance.",
    )


def claim(drawn: Sequence[Drawn], seeds: int) -> Claim:
    """Judge whether theory and draws agree in every cell."""
    agree = sum(each.agrees for each in drawn)
    worst = max(max(abs(each.z_mean), abs(each.z_variance)) for each in drawn)
    return Claim(
        f"the closed form agrees with {seeds:,} draws in bias and variance (within 4 standard errors)",
        agree == len(drawn),
        f"{agree} of {len(drawn)} cells; the largest difference is {worst:.2f} standard errors",
    )
