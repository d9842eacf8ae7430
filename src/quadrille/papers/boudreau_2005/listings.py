"""The tables of the reproduction: Tables 2 to 4 beside the errors, and the equivalent swap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quadrille.papers.boudreau_2005.draws import Drawn
from quadrille.papers.boudreau_2005.tables import BASE, RATE, Cell, Kind, Region
from quadrille.papers.reproduction import Listing


def swapping(region: Region, cells: Sequence[Cell], kind: Kind) -> Listing:
    """Set Table 3 beside the expectation, bias and standard deviation of each cell of Table 2."""
    digits = 1 if region.n > 1000 else 2
    rows = tuple(
        (
            cell.label,
            cell.count,
            cell.swapped,
            f"{cell.swap.expected:,.{digits}f}",
            f"{cell.swap.bias:+,.{digits}f}",
            f"{cell.swap.sd:.{digits}f}",
            f"{cell.z:+.2f}",
        )
        for cell in cells
    )
    return Listing(
        f"Tables 2 and 3, Region {region.name}: swapping",
        ("cell", "count", "Table 3", "expected", "bias", "sd", "z"),
        rows,
        f"{region.moved(kind):,} of {region.n:,} records move (tau = {RATE:.0%}, {kind}), each counts 1. z: "
        "(Table 3 - expected) / sd.",
    )


def comparison(region: Region, cells: Sequence[Cell], kind: Kind) -> Listing:
    """Set the errors of swapping and rounding side by side, with the swap that is equivalent to rounding."""
    digits = 1 if region.n > 1000 else 2
    rows = tuple(
        (
            cell.label,
            cell.count,
            f"{cell.swap.rmse:,.{digits}f}",
            _share(cell),
            cell.rounded,
            f"{cell.rounding.rmse:.3f}",
            "never" if cell.equivalent is None else f"{cell.equivalent:,}",
        )
        for cell in cells
    )
    return Listing(
        f"Tables 2 and 4, Region {region.name}: swapping and rounding",
        ("cell", "count", "RMSE", "share", "Table 4", "rounding", "equivalent k"),
        rows,
        f"Share: RMSE / count. Rounding: RMSE of unbiased random rounding to base {BASE}. Equivalent k: the least "
        f"number of records that must move ({kind}) for swapping to put as much error into the cell.",
    )


def _share(cell: Cell) -> str:
    return f"{100 * cell.swap.rmse / cell.count:.1f}%" if cell.count else "empty"


def point(cell: Cell, drawn: Drawn) -> Mapping[str, object]:
    """Return everything about a cell, in plain values."""
    return {
        "region": cell.region,
        "age": cell.age,
        "status": cell.status,
        "count": cell.count,
        "swapped": cell.swapped,
        "rounded": cell.rounded,
        "expected": cell.swap.expected,
        "bias": cell.swap.bias,
        "sd": cell.swap.sd,
        "rmse": cell.swap.rmse,
        "rmse_by_count": cell.swap.rmse / cell.count if cell.count else None,
        "z": cell.z,
        "rounding": cell.rounding.rmse,
        "equivalent_records": cell.equivalent,
        "drawn_mean": drawn.mean,
        "drawn_sd": drawn.sd,
        "drawn_z_mean": drawn.z_mean,
        "drawn_z_variance": drawn.z_variance,
    }
