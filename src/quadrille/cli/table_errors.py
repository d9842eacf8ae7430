"""The cells of a table with the error that a swap would put into them, and the charts of these errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    from quadrille.data import Data
    from quadrille.swap.permutation import PermutationSwap

Cell = dict[str, Any]

NUMBERS = ("before", "bias", "sd", "rmse", "relative_rmse", "rounding_rmse", "records")
_NOT_LABELS = frozenset((*NUMBERS, "expected", "closest", "count", "note"))
_WEIGHTED = "the cells are weighted totals, and random rounding is for counts"
_CLASSES = "records move within classes, so there is no single number of records to compare with"
_ACROSS = "records move across two groups, and the number that equals rounding is for the whole file"


@dataclass(frozen=True)
class Errors:
    """The cells, and why the error of rounding or the equivalent number of records is not given."""

    cells: list[Cell]
    not_given: dict[str, str]
    weighted: bool = False


def labels(cell: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the labels of a cell."""
    return tuple(value for name, value in cell.items() if name not in _NOT_LABELS)


def label_names(cell: Mapping[str, Any]) -> list[str]:
    """Return the names of the columns that hold labels."""
    return [name for name in cell if name not in _NOT_LABELS]


def errors_of_file(data: Data, recipe: PermutationSwap, margin: str, base: int) -> Errors:
    """Work out the cells of a margin of a file."""
    import quadrille as qd

    cells = qd.theory.table_error(data, recipe, margin).to_dicts()
    if data.weight is not None:
        return Errors(cells, {"rounding": _WEIGHTED, "k": _WEIGHTED}, weighted=True)
    for cell in cells:
        cell["rounding_rmse"] = qd.theory.rounding_error(round(cell["before"]), base).rmse
    if recipe.within or recipe.kind == "across":
        return Errors(cells, {"k": _CLASSES if recipe.within else _ACROSS})
    equal = qd.theory.equivalent_table(data, margin, swap=recipe.swap, base=base, kind=recipe.kind).to_dicts()
    by_cell = {labels(row): row["records"] for row in equal}
    for cell in cells:
        cell["records"] = by_cell.get(labels(cell))
    return Errors(cells, {})


def errors_of_table(table: pl.DataFrame, given: Mapping[str, Any], base: int, *, no_totals: bool) -> Errors:
    """Work out the cells of a table of counts."""
    import quadrille as qd

    return Errors(qd.theory.error_of_counts(table, **given, base=base, no_totals=no_totals).to_dicts(), {})


def draw_sizes(found: Errors, group: str, path: Path) -> None:
    """Draw error against the size of the cell; `group` says what swap it is."""
    from quadrille import chart, frames

    points = [
        {
            "label": ", ".join(map(str, labels(cell))),
            "group": group,
            "count": cell["before"],
            "rmse": cell["rmse"],
            "rounding": cell.get("rounding_rmse"),
        }
        for cell in found.cells
        if cell["rmse"] is not None
    ]
    size = "Weighted total of the cell" if found.weighted else "Records in the cell"
    chart.save(chart.error_by_size(frames.tidy(points), size=size), path)


def draw_realised(cells: pl.DataFrame, draws: int, path: Path) -> None:
    """Draw predicted against realised change."""
    from quadrille import chart

    chart.save(chart.predicted_realised(cells.select("label", "bias", "sd", "realised"), draws=draws), path)
