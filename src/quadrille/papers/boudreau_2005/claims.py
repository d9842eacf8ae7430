"""The paper's conclusion as numbers: which errors grow with the cell, and what its published tables show."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np

from quadrille.papers.boudreau_2005.tables import BASE, WORKED, Cell, Region
from quadrille.papers.reproduction import MOST_ERRORS, Claim

PRINTED = 5800
"""The paper's figure for the error of the worked cell of Region I."""

_NEAR = (0.75, 1.25)
"""Powers of the count that are called proportional."""
_LARGE = 1000


def worked(cells: Sequence[Cell]) -> Cell:
    """Return the cell that the paper works through."""
    return next(cell for cell in cells if (cell.age, cell.status) == WORKED)


def exponents(first: Sequence[Cell], second: Sequence[Cell]) -> list[float]:
    """Return for each cell with records in both regions by which power of its count the error of swapping grows."""
    both = [(x, y) for x, y in zip(first, second, strict=True) if x.count > y.count > 0]
    return [log(x.swap.rmse / y.swap.rmse) / log(x.count / y.count) for x, y in both]


def conclusion(first: Sequence[Cell], second: Sequence[Cell]) -> list[Claim]:
    """Judge what the paper concludes from the two regions: `first` has large cells, `second` small ones."""
    powers = exponents(first, second)
    large = [cell for cell in first if cell.count >= _LARGE]
    small = [cell for cell in second if cell.count and cell.is_rounded]
    highest = [max(cell.rounding.rmse for cell in cells) for cells in (first, second)]
    grown = sum(x.swap.rmse > y.swap.rmse for x, y in zip(first, second, strict=True))
    too_much = sum(cell.swap.rmse > highest[0] for cell in large)
    too_little = sum(cell.swap.rmse < cell.rounding.rmse for cell in small)
    return [
        Claim(
            "swapping's error grows with the cell, from one region to the other",
            grown == len(first),
            f"larger in Region I for {grown} of {len(first)} cells",
        ),
        Claim(
            "it grows in proportion to the cell",
            all(_NEAR[0] <= power <= _NEAR[1] for power in powers),
            f"by the power {min(powers):.2f} to {max(powers):.2f} of the count (median {float(np.median(powers)):.2f}; "
            f"{len(powers)} cells with records in both regions). The bias grows in proportion to the table; in Region "
            "II chance counts for more, and it grows with the root",
        ),
        _same_share(first),
        Claim(
            "rounding's error does not grow",
            highest[0] == highest[1],
            f"at most {highest[0]:.3f} in Region I and {highest[1]:.3f} in Region II, whatever the count",
        ),
        Claim(
            "swapping is too much for large cells: more error than rounding ever makes",
            too_much == len(large),
            f"{too_much} of {len(large)} cells of {_LARGE:,} or more; from "
            f"{min(cell.swap.rmse for cell in large) / highest[0]:.0f} to "
            f"{max(cell.swap.rmse for cell in large) / highest[0]:,.0f} times as much",
        ),
        Claim(
            "swapping is too little for small cells: less error than rounding makes",
            too_little == len(small),
            f"{too_little} of {len(small)} cells of Region II that rounding changes; from "
            f"{min(cell.swap.rmse / cell.rounding.rmse for cell in small):.2f} to "
            f"{max(cell.swap.rmse / cell.rounding.rmse for cell in small):.2f} times as much",
        ),
    ]


def _same_share(cells: Sequence[Cell]) -> Claim:
    shares = {cell.label: cell.swap.rmse / cell.count for cell in cells if cell.count}
    least, most = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
    return Claim(
        "within a table the error is about the same share of every cell",
        shares[most] <= 2 * shares[least],
        f"Region I: from {100 * shares[least]:.1f} % ({least}) to {100 * shares[most]:.0f} % ({most}). What counts "
        "is how far the cell is from independence of age and status, not its size alone",
    )


def tables(regions: Sequence[Region], cells: Sequence[Sequence[Cell]]) -> list[Claim]:
    """Judge the published swapped and rounded tables."""
    found = [_one_draw(region, own) for region, own in zip(regions, cells, strict=True)]
    every = [cell for own in cells for cell in own]
    fits = sum(abs(cell.rounded - cell.count) < BASE and cell.rounded % BASE == 0 for cell in every)
    adds = sum(int((region.rounded.sum(axis=1) == region.totals[4]).sum()) for region in regions)
    rows = sum(len(region.rounded) for region in regions)
    rounded = Claim(
        f"every cell of Table 4 is one of the two nearest multiples of {BASE}",
        fits == len(every),
        f"{fits} of {len(every)} cells. Totals are rounded by themselves: {adds} of {rows} rows still add up",
    )
    return [*found, rounded]


def _one_draw(region: Region, cells: Sequence[Cell]) -> Claim:
    far = sum(abs(cell.z) > MOST_ERRORS for cell in cells)
    ages = int((region.swapped.sum(axis=1) != region.counts.sum(axis=1)).sum())
    status = region.swapped.sum(axis=0) - region.counts.sum(axis=0)
    kept = far == 0 and ages == 0 and not status.any()
    totals = "no total of age or status changes"
    if ages or status.any():
        totals = (
            f"{ages} totals of age and {int((status != 0).sum())} of {len(status)} totals of status change (by "
            f"{int(status.min()):+,} to {int(status.max()):+,}), as when weights travel with age"
        )
    root = float(np.sqrt(np.mean([cell.z**2 for cell in cells])))
    return Claim(
        f"Table 3, Region {region.name}, is a draw of the swap of records that all count 1",
        kept,
        f"{far} of {len(cells)} cells are beyond 4 standard deviations (root mean square {root:.2f}); {totals}",
    )


def worked_cell(cell: Cell) -> Claim:
    """Judge the figure of the worked cell."""
    return Claim(
        f"the error of the worked cell (married, 36-65, Region I) is {PRINTED:,}",
        round(cell.swap.rmse, -2) == PRINTED,
        f"with equal weights bias {cell.swap.bias:,.2f}, standard deviation {cell.swap.sd:.2f}, RMSE "
        f"{cell.swap.rmse:,.2f}; Table 3 itself changes the cell by {cell.swapped - cell.count:+,} ({cell.z:+.2f} "
        f"standard deviations from that bias)",
    )
