"""The commands on tables: the error that a swap would put into each cell, and the correction by the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.cli.designs import rate_of
from quadrille.cli.inputs import check_new, load, names
from quadrille.cli.table_errors import (
    NUMBERS,
    Errors,
    draw_realised,
    draw_sizes,
    errors_of_file,
    errors_of_table,
    label_names,
)
from quadrille.errors import InputError, ParameterError, bad_parameter, unknown_name

if TYPE_CHECKING:
    import polars as pl

MOST_ROWS = 60

TableOrFile = Annotated[
    str, typer.Argument(metavar="FILE", help="A microdata file or dataset:NAME; with --swapped a table of counts.")
]
Margin = Annotated[str | None, typer.Option(metavar="A*B", help="The table whose cells to look at.")]
Records = Annotated[int | None, typer.Option(metavar="NUMBER", help="Number of records moved, instead of --rate.")]
Kind = Annotated[str, typer.Option(metavar="WORD", help="pairs or cycles; with a file also across (--groups).")]
Within = Annotated[list[str] | None, typer.Option(metavar="COLUMNS", help="Classes within which to swap.")]
Groups = Annotated[str | None, typer.Option(metavar="COLUMN", help="The two groups of --kind across.")]
Swapped = Annotated[
    str | None, typer.Option(metavar="WORD", help="FILE is a table: the swapped variable is in its row or column.")
]
NoTotals = Annotated[
    bool, typer.Option("--no-totals", help="No row or column is a total, even if one equals the sum of the others.")
]
Rate = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE", help="Share of the records that move, in (0, 1]; of a file also a column of class rates."
    ),
]
Realised = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Draw predicted against realised change into this .png, .svg or .html."),
]
Draws = Annotated[int, typer.Option(metavar="NUMBER", help="Draws for --realised; their mean change is shown.")]
DrawSeed = Annotated[int, typer.Option("--seed", metavar="NUMBER", help="Seed of the first draw for --realised.")]
Base = Annotated[int, typer.Option(metavar="NUMBER", help="Base of random rounding, to compare with.")]
Chart = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Draw error against cell size into this .png, .svg or .html.")
]
Table = Annotated[Path, typer.Argument(metavar="TABLE", help="A table of counts, CSV; labels in the first column.")]
Factor = Annotated[float | None, typer.Option(metavar="NUMBER", help="The factor that the publisher gives.")]
Note = Annotated[Path | None, typer.Option(metavar="FILE", help="Read f from this methods note instead.")]
OfClass = Annotated[
    str | None,
    typer.Option("--class", metavar="LABEL", help="The class of the table, where the note has several."),
]
Where = Annotated[str, typer.Option(metavar="WORD", help="Where the swapped variable is: column or row.")]
OwnKind = Annotated[
    str | None, typer.Option(metavar="WORD", help="pairs or cycles. [default: what the note says, or pairs]")
]
Out = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the corrected table to this CSV file.")]


def error(
    file: TableOrFile,
    swap: opt.Swap = None,
    margin: Margin = None,
    rate: Rate = None,
    records: Records = None,
    kind: Kind = "pairs",
    within: Within = None,
    groups: Groups = None,
    move_weight: opt.MoveWeight = False,
    swapped: Swapped = None,
    no_totals: NoTotals = False,
    base: Base = 5,
    chart: Chart = None,
    realised: Realised = None,
    draws: Draws = 1,
    seed: DrawSeed = 1,
    overwrite: opt.Overwrite = False,
    codebook: opt.Codebook = None,
    weight: opt.Weight = None,
    as_json: opt.Json = False,
) -> None:
    """Predict the error of each cell of a table, before any swap."""
    check_new(chart, realised, overwrite=overwrite, source=file)
    given: dict[str, Any] = {"rate": rate, "records": records, "kind": kind}
    asked = _Drawn(realised, draws, seed)
    with show.working("Reading and working out the error"):
        if swapped is not None:
            _refuse_file_options(swap, margin, within, groups, weight, codebook, move_weight=move_weight)
            if swapped not in ("row", "column"):
                raise bad_parameter("the command", "--swapped", "one of 'row', 'column'", swapped)
            given["rate"] = None if rate is None else rate_of(rate, column=False)
            found = _of_table(file, given, base, asked, no_totals=no_totals)
        else:
            if no_totals:
                raise ParameterError("--no-totals is for a table of counts, with --swapped.")
            given |= {"rate": None if rate is None else rate_of(rate, column=True), "within": names(within)}
            given |= {"groups": groups, "weight": "moves" if move_weight else "stays"}
            found = _of_file(file, (codebook, weight), (swap, margin), given, base, asked)
        if chart is not None:
            draw_sizes(found, _named(given), chart)
    if as_json:
        drawn = {"chart": chart and str(chart), "realised_chart": realised and str(realised)}
        show.emit({"file": file, "cells": found.cells, "not_given": found.not_given, **drawn})
        return
    _show_errors(found, base)
    for path in filter(None, (chart, realised)):
        show.note(f"\nDrew {path}.")


def _named(given: Mapping[str, Any]) -> str:
    """Name a swap in few words, for a legend."""
    rate, records = given["rate"], given["records"]
    much = f"{records:,} records" if rate is None else f"{100 * rate:.4g} %" if isinstance(rate, float) else "by class"
    return f"{given['kind']}, {much}"


@dataclass(frozen=True)
class _Drawn:
    """Where to draw predicted against realised change, and from how many draws."""

    path: Path | None
    draws: int
    seed: int


def _refuse_file_options(*given: object, move_weight: bool) -> None:
    """Refuse what a bare table cannot have."""
    if move_weight or any(value for value in given):
        raise ParameterError(
            "--swapped says that FILE is a table of counts. --swap, --margin, --within, --groups, --weight, --codebook "
            "and --move-weight are for a microdata file."
        )


def _of_file(
    file: str,
    how: tuple[Path | None, str | None],
    what: tuple[Sequence[str] | None, str | None],
    given: Mapping[str, Any],
    base: int,
    asked: _Drawn,
) -> Errors:
    import quadrille as qd

    swap, margin = what
    if not swap or margin is None:
        raise ParameterError("Name the variables to swap with --swap and the table with --margin, as in Age*MS.")
    recipe = qd.PermutationSwap(names(swap), **given)
    data = load(file, *how)
    found = errors_of_file(data, recipe, margin, base)
    if asked.path is not None:
        made = qd.theory.realised(data, recipe, margin, draws=asked.draws, seed=asked.seed)
        draw_realised(made, asked.draws, asked.path)
    return found


def _of_table(file: str, given: Mapping[str, Any], base: int, asked: _Drawn, *, no_totals: bool) -> Errors:
    import quadrille as qd

    table = _read_table(file)
    found = errors_of_table(table, given, base, no_totals=no_totals)
    if asked.path is not None:
        made = qd.theory.realised_of_counts(table, **given, draws=asked.draws, seed=asked.seed)
        draw_realised(made, asked.draws, asked.path)
    return found


def _read_table(file: str) -> pl.DataFrame:
    """Read a table of counts, labels in the first column; it may have any number of columns."""
    import quadrille as qd

    return qd.read(file).frame()


def _show_errors(found: Errors, base: int) -> None:
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
    head = [*labelled, *(heads.get(name, name) for name in shown)]
    right = range(len(labelled), len(head))
    show.grid(head, lines[:MOST_ROWS], numbers=right, whole=right)
    if len(lines) > MOST_ROWS:
        show.note(f"  {MOST_ROWS} of {len(lines):,} cells are shown; --json lists all.")
    known = {
        "rmse": "root of bias² + sd²",
        "share": "rmse / before",
        "rounding": f"error of random rounding to base {base}",
        "k": "so many records moved put as much error into the cell as rounding does",
    }
    show.note("")
    said = [(name, text) for name, text in known.items() if name in head]
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


def correct(
    table: Table,
    f: Factor = None,
    note: Note = None,
    of_class: OfClass = None,
    swapped: Where = "column",
    kind: OwnKind = None,
    no_totals: NoTotals = False,
    out: Out = None,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
) -> None:
    """Remove the bias of swapping from a published table."""
    import quadrille as qd

    check_new(out, overwrite=overwrite, source=str(table))
    given = _read_table(str(table))
    factor, how = _factor(f, note, of_class, given)
    found = qd.theory.correct(given, factor, swapped=swapped, kind=cast("Any", kind or how), no_totals=no_totals)
    if out is not None:
        qd.write(qd.from_frame(found.frame()), out)
    rows = found.frame().to_dicts()
    if as_json:
        show.emit({"table": str(table), "f": factor, "cells": rows, "note": found.note, "out": out and str(out)})
        return
    show.title("Corrected table")
    head = [name for name in rows[0] if name != "note"]
    lines = [[str(row[name]) if isinstance(row[name], str) else f"{row[name]:,.2f}" for name in head] for row in rows]
    show.grid(head, lines[:MOST_ROWS], numbers=range(2, len(head)), whole=range(2, len(head)))
    if found.note:
        show.note(f"\n{found.note}")


def _factor(f: float | None, note: Path | None, of_class: str | None, table: pl.DataFrame) -> tuple[float, str]:
    if (f is None) == (note is None):
        raise ParameterError("Give the factor with --f, or the methods note that publishes it with --note.")
    if f is not None:
        return f, "pairs"
    assert note is not None
    from quadrille.io.published import read_published

    try:
        text = note.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "not UTF-8 text"
        raise InputError(f"Cannot read the note {str(note)!r}: {reason}. Check the path.") from None
    said = read_published(text, f"The note {str(note)!r}")
    label = of_class or ""
    if label not in said.f:
        raise unknown_name("class", label, said.f, where=f"the note {str(note)!r}; name it with --class")
    if not label and _total(table) != said.records:
        raise InputError(
            f"The table does not count all {said.records:,} records of the file, and f is for tables of all of them. "
            "Correct the whole table, then take the part you need."
        )
    return said.f[label], said.kind


def _total(table: pl.DataFrame) -> int | None:
    """Return the total of a table of counts; None when it holds anything else."""
    numbers = [value for row in table.rows() for value in row[1:]]
    return int(sum(numbers)) if all(isinstance(value, int | float) for value in numbers) else None
