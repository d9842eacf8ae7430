"""The cells of a table with the error that a swap would put into them, and the charts of these errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quadrille.cli import show

if TYPE_CHECKING:
    import polars as pl

    from quadrille.chart.theme import Figure
    from quadrille.data import Data
    from quadrille.swap.permutation import PermutationSwap

Cell = dict[str, Any]

NoTotals = Annotated[
    bool, typer.Option("--no-totals", help="No row or column is a total, even if one equals the sum of the others.")
]

MOST_ROWS = 60
NUMBERS = ("before", "bias", "sd", "rmse", "relative_rmse", "rounding_rmse", "records", "sampling")
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


def read_table(file: str) -> pl.DataFrame:
    """Read a table of counts, labels in the first column; it may have any number of columns."""
    import quadrille as qd

    return qd.read(file).frame()


def errors_of_file(
    data: Data, recipe: PermutationSwap, margin: str, base: int, sampling: float | None = None
) -> Errors:
    """Work out the cells of a margin of a file; `sampling` is the share of the population that the file holds."""
    import quadrille as qd

    cells = qd.theory.table_error(data, recipe, margin).to_dicts()
    if sampling is not None:
        sampled = qd.theory.sampling_table(data, margin, fraction=sampling).drop("total").to_dicts()
        of_sampling = {labels(row): row["sampling"] for row in sampled}
        for cell in cells:
            cell["sampling"] = of_sampling[labels(cell)]
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


def errors_of_table(
    table: pl.DataFrame, given: Mapping[str, Any], base: int, sampling: float | None = None, *, no_totals: bool
) -> Errors:
    """Work out the cells of a table of counts."""
    import quadrille as qd

    cells = qd.theory.error_of_counts(table, **given, base=base, no_totals=no_totals).to_dicts()
    if sampling is not None:
        n = sum(cell["before"] for cell in cells)
        for cell in cells:
            cell["sampling"] = qd.theory.sampling_error(cell["before"], n, fraction=sampling).sd
    return Errors(cells, {})


def sizes_chart(found: Errors, group: str) -> Figure:
    """Draw error against the size of the cell; `group` says what swap it is."""
    from quadrille import chart, frames

    points = [
        {
            "label": ", ".join(map(str, labels(cell))),
            "group": group,
            "count": cell["before"],
            "rmse": cell["rmse"],
            "rounding": cell.get("rounding_rmse"),
            "sampling": cell.get("sampling"),
        }
        for cell in found.cells
        if cell["rmse"] is not None
    ]
    size = "Weighted total of the cell" if found.weighted else "Records in the cell"
    return chart.error_by_size(frames.tidy(points).drop(_missing(points)), size=size)


def _missing(points: list[Cell]) -> list[str]:
    """Return the columns that no point has."""
    return [name for name in ("rounding", "sampling") if all(point[name] is None for point in points)]


def realised_chart(cells: pl.DataFrame, draws: int) -> Figure:
    """Draw predicted against realised change."""
    from quadrille import chart

    return chart.predicted_realised(cells.select("label", "bias", "sd", "realised"), draws=draws)


_LEAST_LABEL, _MOST_LABEL = 10, 24
_DROPPED = ("rounding", "k", "sampling", "sd", "bias", "share")
"""The columns that go first where the terminal is narrow."""


def show_cells(label_heads: list[str], number_heads: list[str], lines: list[list[str]]) -> list[str]:
    """Print cells so that they fit the terminal; return the columns of numbers that had no room.

    Where the labels do not fit side by side they share a column; where that does not do either, numbers are left out.
    """
    width, labels_ = show.console().width - 2, len(label_heads)
    table = [[*label_heads, *number_heads], *lines]
    wide = [max(len(line[place]) for line in table) for place in range(len(table[0]))]
    if sum(wide) + 3 * (len(wide) - 1) <= width:
        right = range(labels_, len(wide))
        show.grid(table[0], lines, numbers=right, whole=right)
        return []
    longest = min(max(max(wide[:labels_]) + 1, _LEAST_LABEL), _MOST_LABEL)
    kept = list(range(labels_, len(wide)))
    for name in _DROPPED:
        if longest + sum(wide[place] + 3 for place in kept) > width:
            kept = [place for place in kept if table[0][place] != name]
    joined = [[", ".join(line[:labels_]), *(line[place] for place in kept)] for line in table]
    right = range(1, len(kept) + 1)
    show.grid(joined[0], joined[1:], numbers=right, whole=right)
    return [name for place, name in enumerate(table[0]) if place >= labels_ and place not in kept]
