"""What is shown and what is judged: Tables 1 to 4 next to the errors, and the paper's conclusion as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log

import numpy as np

from quadrille.papers.boudreau_2005.run import (
    BASE,
    PUBLISHED,
    RATE,
    WORKED,
    Cell,
    Drawn,
    Enumerated,
    Kind,
    Region,
    before,
)
from quadrille.papers.reproduction import MOST_ERRORS, Claim, Columns, Listing


def small_file(found: Sequence[Enumerated]) -> list[Listing]:
    """Return the distribution of X' beside the published one, and the moments by both ways."""
    counts = {one.kind: one.counts() for one in found}
    values = sorted({value for own in counts.values() for value in own} | set(PUBLISHED), key=float)
    rows = tuple((value, PUBLISHED.get(value, 0), counts["cycles"][value], counts["pairs"][value]) for value in values)
    moments = tuple(
        (f"{one.kind}, {way}", permutations, *(f"{float(number):.5f}" for number in numbers))
        for one in found
        for way, permutations, numbers in (
            ("enumerated", len(one.values), (one.mean, one.variance, one.rmse)),
            ("by formula", "", (one.formula.expected, one.formula.variance, one.formula.rmse)),
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


def region_tables(region: Region, kind: Kind, drawn: Sequence[Drawn], seeds: int) -> list[Listing]:
    """Set Tables 3 and 4 beside the errors of each cell of Table 2, and draws beside theory."""
    cells, digits = [one.cell for one in drawn], 1 if region.n > 1000 else 2
    swapping: Columns[Cell] = (
        ("cell", "", lambda cell: cell.label),
        ("count", "", lambda cell: cell.count),
        ("Table 3", "", lambda cell: cell.swapped),
        ("expected", f",.{digits}f", lambda cell: cell.swap.expected),
        ("bias", f"+,.{digits}f", lambda cell: cell.swap.bias),
        ("sd", f".{digits}f", lambda cell: cell.swap.sd),
        ("z", "+.2f", lambda cell: cell.z),
    )
    rounding: Columns[Cell] = (
        ("cell", "", lambda cell: cell.label),
        ("count", "", lambda cell: cell.count),
        ("RMSE", f",.{digits}f", lambda cell: cell.swap.rmse),
        ("share", "", lambda cell: f"{100 * cell.swap.rmse / cell.count:.1f}%" if cell.count else "empty"),
        ("Table 4", "", lambda cell: cell.rounded),
        ("rounding", ".3f", lambda cell: cell.rounding.rmse),
        ("equivalent k", "", lambda cell: "never" if cell.equivalent is None else f"{cell.equivalent:,}"),
    )
    finer = 1 if region.name == "I" else 3
    draws: Columns[Drawn] = (
        ("cell", "", lambda one: one.cell.label),
        ("bias", f"+.{finer}f", lambda one: one.cell.swap.bias),
        ("drawn", f"+.{finer}f", lambda one: one.mean),
        ("z", "+.2f", lambda one: one.z_mean),
        ("sd", f".{finer}f", lambda one: one.cell.swap.sd),
        ("drawn", f".{finer}f", lambda one: one.sd),
        ("z", "+.2f", lambda one: one.z_variance),
    )
    moved = f"{region.moved(kind):,} of {region.n:,} records move (tau = {RATE:.0%}, {kind}), each counts 1."
    equivalent = (
        f"Share: RMSE / count. Rounding: RMSE of unbiased random rounding to base {BASE}. Equivalent k: the least "
        f"number of records that must move ({kind}) for swapping to put as much error into the cell."
    )
    standard = "z: difference in standard errors, for the mean and for the variance."
    where = f"Region {region.name}"
    return [
        Listing.of(f"Tables 2 and 3, {where}: swapping", cells, swapping, f"{moved} z: (Table 3 - expected) / sd."),
        Listing.of(f"Tables 2 and 4, {where}: swapping and rounding", cells, rounding, equivalent),
        Listing.of(f"{where}: theory and {seeds:,} draws of PermutationSwap", drawn, draws, standard),
    ]


def point(drawn: Drawn) -> Mapping[str, object]:
    """Return everything about a cell, in plain values."""
    cell = drawn.cell
    return {
        **{name: getattr(cell, name) for name in ("region", "age", "status", "count", "swapped", "rounded")},
        **{name: getattr(cell.swap, name) for name in ("expected", "bias", "sd", "rmse")},
        "rmse_by_count": cell.swap.rmse / cell.count if cell.count else None,
        "z": cell.z,
        "rounding": cell.rounding.rmse,
        "equivalent_records": cell.equivalent,
        **{f"drawn_{name}": getattr(drawn, name) for name in ("mean", "sd", "z_mean", "z_variance")},
    }


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


def small_file_claims(found: Sequence[Enumerated]) -> list[Claim]:
    """Judge the published distribution of Table 1 and the formulas."""
    cycles = next(one for one in found if one.kind == "cycles")
    counts = cycles.counts()
    same = sum(counts[value] == times for value, times in PUBLISHED.items())
    worst = max(one.off for one in found)
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


def draws_agree(drawn: Sequence[Drawn], seeds: int) -> Claim:
    """Judge whether theory and draws agree in every cell."""
    agree = sum(one.agrees for one in drawn)
    worst = max(max(abs(one.z_mean), abs(one.z_variance)) for one in drawn)
    return Claim(
        f"the closed form agrees with {seeds:,} draws in bias and variance (within 4 standard errors)",
        agree == len(drawn),
        f"{agree} of {len(drawn)} cells; the largest difference is {worst:.2f} standard errors",
    )
