"""Boudreau (2005), Statistics Canada: the error that swapping puts into a table, and that of random rounding.

Table 1 by enumeration, Tables 2 to 4 for both regions with the errors of every cell, the worked cell, the swap that is
equivalent to rounding, and the paper's conclusion in numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log, nan
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from quadrille.data import tidy
from quadrille.papers.boudreau_2005.run import (
    BASE,
    KINDS,
    PUBLISHED,
    RATE,
    REGIONS,
    WORKED,
    Cell,
    Drawn,
    Enumerated,
    Kind,
    Region,
    before,
    cells,
    draw,
    enumerated,
    equivalent_for_large_n,
    region,
    weight_for_two,
)
from quadrille.papers.reproduction import (
    ABOUT,
    MOST_ERRORS,
    Check,
    Claim,
    Columns,
    Listing,
    Progress,
    Reproduction,
    adding_up,
    check_arguments,
    save_figures,
)

if TYPE_CHECKING:
    import polars as pl

DEFAULT_SEEDS = 1000
DEFAULT_SAMPLER = "pairs"

ERRATA = (
    "What the paper calls MSE is its root: 5.03 for the small file, which should be 5.04. Its bias is X - E X', ours "
    "E X' - X.",
    "f2 - f1^2 is said to be about -tau/n. It is about -3 tau (1 - tau) / n for kind (a), where records move in "
    "cycles, and -tau (2 - 3 tau) / n for kind (b), where they move in pairs.",
    "The second-order probability that two records both leave needs the delta' of the complement, the records that "
    "move, and not that of the records that stay.",
    "Section 3 derives the error for kind (a) only, and section 4 uses kind (b). The bias is the same for both, the "
    "variance is not: Table 1 has 23.20468 for (a), and (b) gives 21.61678.",
    "P is the domain of the permuted variables, here age, and F that of the fixed ones, here status; the cell holds "
    "the records that are in both.",
    "The figure of 5,800 for the worked cell of Region I does not follow from equal weights: see the claim. For the "
    "bias alone to be that large, 5.4 % of the records would have to move.",
    "Table 3 of Region I keeps the totals of age and changes those of status. Records that all count 1 cannot do that: "
    "its counts seem to be weighted estimates, the weights travelling with age. Our errors for it are those of a "
    "file of 907,999 records that count 1 each; with fewer, heavier records the bias is about the same and "
    "the variance larger.",
    "The equivalent k of the worked cell is printed as 2 in Region I and 30 in Region II. With records that count 1 it "
    "is 18 and 28. When each record counts 4.5 or more it is 2, so for weights near 5; the formula for large n gives "
    "30.",
    "Rounding leaves an empty cell empty. Swapping does not: of the children under 16 of Region I none is or was "
    "married, and after the swap 4,660 are expected to be.",
)


def reproduce(
    seeds: int = DEFAULT_SEEDS, sampler: str = DEFAULT_SAMPLER, progress: Progress | None = None
) -> Reproduction:
    """Enumerate Table 1, work out the errors of Tables 2 to 4, check them by draws, and judge the conclusion.

    `sampler` is the kind of permutation for Tables 2 to 4: "pairs", as in the paper, or "cycles".
    """
    check_arguments(seeds, sampler, KINDS)
    kind = cast("Kind", sampler)
    small = [enumerated(one) for one in KINDS]
    places = [region(name) for name in REGIONS]
    every = [cells(place, kind) for place in places]
    done = adding_up(progress, len(REGIONS) * seeds)
    drawn = [draw(place, own, kind, seeds, done) for place, own in zip(places, every, strict=True)]
    both = [one for made in drawn for one in made]
    checks = numbers(small, places, every, kind)
    shown = small_file(small)
    for place, made in zip(places, drawn, strict=True):
        shown += region_tables(place, kind, made, seeds)
    return Reproduction(
        paper="boudreau-2005",
        title="Boudreau (2005), Statistics Canada: the error of data swapping, and of random rounding",
        setting={
            "records swapped": f"{100 * RATE:.0f} %",
            "kind": sampler,
            "rounding to base": BASE,
            "draws": f"{seeds:,} per region",
        },
        checks=checks,
        claims=(
            *small_file_claims(small),
            *(Claim.of(f"{check.row}: {check.column} is {check.shown[0]}", [check]) for check in checks),
            *conclusion(every[0], every[1]),
            *tables(places, every),
        ),
        errata=ERRATA,
        figures=_figures(every, both),
        listings=tuple(shown),
        points=tuple(map(point, both)),
    )


def figures(reproduction: Reproduction) -> dict[str, pl.DataFrame]:
    """Return the frames of the charts: error by size in both regions, and Table 3 of Region I against prediction."""
    sizes: list[dict[str, object]] = []
    changes: list[dict[str, object]] = []
    for point in reproduction.points:
        label = f"{point['status']} {point['age']}"
        size = {name: point[name] for name in ("count", "rmse", "rounding")}
        named = (point["age"], point["status"]) == WORKED
        sizes.append({"label": label, "group": f"Region {point['region']}", **size, "named": named})
        if point["region"] == REGIONS[0]:
            change = cast("int", point["swapped"]) - cast("int", point["count"])
            changes.append({"label": label, "bias": point["bias"], "sd": point["sd"], "realised": change})
    return {"error-by-size": tidy(sizes), "table-3-region-I": tidy(changes)}


def write_figures(reproduction: Reproduction, folder: str | Path) -> list[Path]:
    """Draw the charts as PNG files in a folder; return their paths."""
    from quadrille import chart

    charts = (chart.error_by_size, chart.predicted_realised)
    frames = figures(reproduction).items()
    return save_figures({name: draw(frame) for draw, (name, frame) in zip(charts, frames, strict=True)}, folder)


def _figures(every: Sequence[Sequence[Cell]], drawn: Sequence[Drawn]) -> dict[str, float]:
    z = [abs(value) for one in drawn for value in (one.z_mean, one.z_variance)]
    children = [cell for cell in every[0] if cell.age == "0-15"]
    married = sum(cell.swap.expected for cell in children if not cell.count)
    return {
        **{
            f"worked cell, Region {cell.region}, RMSE of {word} / count": error.rmse / cell.count
            for cell in map(worked, every)
            for word, error in (("swapping", cell.swap), ("rounding", cell.rounding))
        },
        "Region I, share of the children under 16 expected to be or have been married": married
        / sum(cell.count for cell in children),
        "biases and variances compared with draws": float(len(z)),
        "their largest difference in standard errors": max(z),
    }


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


_LARGE = 1000


def numbers(
    small: Sequence[Enumerated], places: Sequence[Region], every: Sequence[Sequence[Cell]], kind: Kind
) -> tuple[Check, ...]:
    """Set the figures of the text beside ours: the error of the small file, and the worked cell of both regions."""
    one, two = map(worked, every)
    heavier = (
        f"equal weights give bias {one.swap.bias:,.2f} and standard deviation {one.swap.sd:.2f}; Table 3 itself "
        f"changes the cell by {one.swapped - one.count:+,} ({one.z:+.2f} standard deviations from that bias)"
    )
    weight, large = weight_for_two(places[0], one), equivalent_for_large_n(places[1], two, kind)
    light = f"two records are enough when each counts {weight:.1f} or more, as with weights near 5"
    few = f"the formula for large n, here with 89 records, gives {large}"
    share = 100 * abs(two.swap.bias) / two.swap.rmse
    places_of = "worked cell, Region I", "worked cell, Region II"
    rows: tuple[tuple[str, str, str, float, str], ...] = (
        ("small file", "error", "5.03", _cycles(small).rmse, "rounded it is 5.04"),
        (places_of[0], "error", "5.8e3", one.swap.rmse, heavier),
        (places_of[0], "equivalent k", "2", one.equivalent or nan, light),
        (places_of[1], "error", "0.66", two.swap.rmse, ""),
        (places_of[1], "bias, % of the error", "42", share, ""),
        (places_of[1], "equivalent k", "30", two.equivalent or nan, few),
    )
    return tuple(Check("Figures of the text", *row[:4], reason=row[4]) for row in rows)


def _cycles(found: Sequence[Enumerated]) -> Enumerated:
    return next(one for one in found if one.kind == "cycles")


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
            all(abs(power - 1) <= ABOUT for power in powers),
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
        shares[most] <= (1 + ABOUT) * shares[least],
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
        f"{far} of {len(cells)} cells are beyond {MOST_ERRORS:g} standard deviations (root mean square {root:.2f}); "
        f"{totals}",
    )


def small_file_claims(found: Sequence[Enumerated]) -> list[Claim]:
    """Judge the published distribution of Table 1 and the formulas."""
    cycles = _cycles(found)
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
    ]
