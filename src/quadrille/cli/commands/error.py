"""`quadrille error`: the error that a swap would put into each cell of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.cli.designs import read_recipe
from quadrille.cli.inputs import check_new, load
from quadrille.errors import InputError, OutputError, ParameterError, bad_parameter

if TYPE_CHECKING:
    import polars as pl

    from quadrille.chart.theme import Figure
    from quadrille.data import Data
    from quadrille.swap.permutation import PermutationSwap


Cell = dict[str, Any]

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
    from quadrille import chart
    from quadrille.data import tidy

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
    return chart.error_by_size(tidy(points).drop(_missing(points)), size=size)


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


_SUFFIXES = (".png", ".svg", ".html", ".json")


def error(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A microdata file or dataset:NAME; with --swapped a table of counts.")
    ],
    recipe: Annotated[Path, opt.value("FILE", "A recipe of permutation swapping, JSON: see swap.", "--recipe")],
    margin: Annotated[str | None, opt.value("A*B", "The table of a file to look at.")] = None,
    swapped: opt.Swapped = None,
    chart: opt.Chart = None,
    base: Annotated[int, opt.value("NUMBER", "Base of random rounding, to compare with.")] = 5,
    sampling: Annotated[
        float | None,
        opt.value("SHARE", "The file is a random sample of this share of a population: its error, too."),
    ] = None,
    realised: Annotated[
        Path | None,
        opt.value("FILE", "Draw predicted against realised change into this .png, .svg or .html."),
    ] = None,
    draws: opt.Draws = None,
    seed: opt.Seed = None,
    no_totals: opt.NoTotals = False,
    codebook: opt.Codebook = None,
    weight: opt.Weight = None,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
) -> None:
    """Predict the error of each cell of a table, before any swap."""
    check_new(chart, realised, overwrite=overwrite, source=file)
    _check_suffixes(chart, realised)
    _check_numbers(base, sampling)
    asked = _drawn(realised, draws, seed)
    with show.working("Reading and working out the error"):
        made = _permutation(recipe)
        if swapped is not None:
            if margin or codebook or weight:
                raise ParameterError(
                    "--swapped says that FILE is a table of counts. --margin, --weight and --codebook are for a "
                    "microdata file."
                )
            if swapped not in ("row", "column"):
                raise bad_parameter("the command", "--swapped", "one of 'row', 'column'", swapped)
            found, figure = _of_table(file, made, (base, sampling), asked, no_totals=no_totals)
        else:
            if no_totals:
                raise ParameterError("--no-totals is for a table of counts, with --swapped.")
            if margin is None:
                raise ParameterError("Name the table with --margin, as in Age*MS.")
            found, figure = _of_file(load(file, codebook, weight), made, margin, (base, sampling), asked)
        sizes = None if chart is None else sizes_chart(found, _named(made))
        _save([(chart, sizes), (realised, figure)])
    if as_json:
        drawn = {"chart": chart and str(chart), "realised_chart": realised and str(realised)}
        show.emit({"file": file, "cells": found.cells, "not_given": found.not_given, **drawn})
        return
    _show_errors(found, base, sampling)
    for path in filter(None, (chart, realised)):
        show.note(f"\nDrew {path}.")


def _permutation(path: Path) -> PermutationSwap:
    from quadrille.swap.permutation import PermutationSwap

    recipe = read_recipe(path)
    if not isinstance(recipe, PermutationSwap):
        raise ParameterError(
            f"The error is known in closed form for permutation swapping, and the recipe {str(path)!r} is of "
            f"{type(recipe).__name__}. Keep one with: quadrille swap FILE --method permutation --save-recipe FILE."
        )
    return recipe


def _check_suffixes(*paths: Path | None) -> None:
    """Refuse a chart that cannot be saved before another one is written."""
    for path in filter(None, paths):
        if path.suffix.lower() not in _SUFFIXES:
            raise OutputError(
                f"A chart cannot be saved as {path.name!r}. The suffix must be one of: {', '.join(_SUFFIXES)}."
            )


def _check_numbers(base: int, sampling: float | None) -> None:
    """Check numbers by the names of their options."""
    from quadrille.theory.equivalent import MOST_BASE

    if not 1 <= base <= MOST_BASE:
        raise ParameterError(f"--base must be a whole number from 1 to {MOST_BASE:,}. Got {base}.")
    if sampling is not None and not 0 < sampling <= 1:
        raise ParameterError(f"--sampling must be a number in (0, 1]. Got {sampling}.")


def _save(figures: Sequence[tuple[Path | None, Figure | None]]) -> None:
    """Write all charts; nothing is written before all of them are drawn."""
    wanted = [(path, figure) for path, figure in figures if path is not None and figure is not None]
    if wanted:
        from quadrille import chart

        for path, figure in wanted:
            chart.save(figure, path)


def _named(recipe: PermutationSwap) -> str:
    """Name a swap in few words, for a legend."""
    rate, records = recipe.rate, recipe.records
    much = f"{records:,} records" if rate is None else f"{100 * rate:.4g} %" if isinstance(rate, float) else "by class"
    return f"{recipe.kind}, {much}"


@dataclass(frozen=True)
class _Drawn:
    """Where to draw predicted against realised change, and from how many draws."""

    path: Path | None
    draws: int
    seed: int


def _drawn(path: Path | None, draws: int | None, seed: int | None) -> _Drawn:
    for name, value, least in (("--draws", draws, 1), ("--seed", seed, 0)):
        if value is not None and path is None:
            raise ParameterError(f"{name} goes with --realised, which draws the swap. Without it nothing is drawn.")
        if value is not None and value < least:
            raise ParameterError(f"{name} must be a whole number of {least} or more. Got {value}.")
    return _Drawn(path, 1 if draws is None else draws, 1 if seed is None else seed)


def _of_file(
    data: Data, recipe: PermutationSwap, margin: str, beside: tuple[int, float | None], asked: _Drawn
) -> tuple[Errors, Figure | None]:
    import quadrille as qd

    found = errors_of_file(data, recipe, margin, *beside)
    if asked.path is None:
        return found, None
    made = qd.theory.realised(data, recipe, margin, draws=asked.draws, seed=asked.seed)
    return found, realised_chart(made, asked.draws)


def _of_table(
    file: str, recipe: PermutationSwap, beside: tuple[int, float | None], asked: _Drawn, *, no_totals: bool
) -> tuple[Errors, Figure | None]:
    import quadrille as qd

    given: dict[str, Any] = {"rate": recipe.rate, "records": recipe.records, "kind": recipe.kind}
    if isinstance(recipe.rate, str):
        raise ParameterError("A table of counts has no column of class rates: the rate of the recipe must be a number.")
    table = read_table(file)
    found = errors_of_table(table, given, *beside, no_totals=no_totals)
    if asked.path is None:
        return found, None
    made = qd.theory.realised_of_counts(table, **given, draws=asked.draws, seed=asked.seed)
    return found, realised_chart(made, asked.draws)


def _show_errors(found: Errors, base: int, sampling: float | None) -> None:
    cells = found.cells
    if not cells:
        raise InputError("The table has no cell that can change.")
    labelled = label_names(cells[0])
    shown = [name for name in NUMBERS if any(cell.get(name) is not None for cell in cells)]
    heads = {"relative_rmse": "share", "rounding_rmse": "rounding", "records": "k"}
    show.title("Expected error of each cell")
    lines = [
        [*(str(cell[name]) for name in labelled), *(_number(cell.get(name), name) for name in shown)] for cell in cells
    ]
    head = [heads.get(name, name) for name in shown]
    no_room = show_cells(labelled, head, lines[:MOST_ROWS])
    if len(lines) > MOST_ROWS:
        show.note(f"  {MOST_ROWS} of {len(lines):,} cells are shown; --json lists all.")
    known = {
        "rmse": "root of bias² + sd²",
        "share": "rmse / before",
        "rounding": f"error of random rounding to base {base}",
        "k": "so many records moved put as much error into the cell as rounding does",
        "sampling": f"standard error of a simple random sample of {100 * (sampling or 0):.4g} % of a population",
        "no room": f"for {', '.join(no_room)}; a wider terminal or --json shows all",
    }
    show.note("")
    listed = [name for name in head if name not in no_room] + ["no room"] * bool(no_room)
    said = [(name, text) for name, text in known.items() if name in listed]
    show.facts([*said, *((name, f"not given: {reason}") for name, reason in found.not_given.items())])
    for note in dict.fromkeys(str(cell["note"]) for cell in cells if cell.get("note") not in (None, "", "exact")):
        show.note(f"\n{note}")


def _number(value: float | None, name: str) -> str:
    if value is None:
        return "never" if name == "records" else ""
    if name in ("before", "records"):
        return f"{value:,.0f}"
    if name == "relative_rmse":
        return show.percent(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.2f}"
