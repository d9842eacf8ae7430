"""The commands on tables: the error that a swap would put into each cell, and the correction by the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.cli.inputs import check_new, load, names
from quadrille.errors import InputError, ParameterError, bad_parameter, unknown_name

if TYPE_CHECKING:
    import polars as pl

MOST_ROWS = 60
_NUMBERS = ("before", "bias", "sd", "rmse", "relative_rmse", "rounding_rmse", "records")
_NOT_LABELS = frozenset((*_NUMBERS, "expected", "closest", "count", "note"))

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
    rate: opt.Rate = None,
    records: Records = None,
    kind: Kind = "pairs",
    within: Within = None,
    groups: Groups = None,
    move_weight: opt.MoveWeight = False,
    swapped: Swapped = None,
    base: Base = 5,
    chart: Chart = None,
    overwrite: opt.Overwrite = False,
    codebook: opt.Codebook = None,
    weight: opt.Weight = None,
    as_json: opt.Json = False,
) -> None:
    """Predict the error of each cell of a table, before any swap."""
    check_new(chart, overwrite=overwrite, source=file)
    with show.working("Reading and working out the error"):
        if swapped is not None:
            _refuse_file_options(swap, margin, within, groups, weight, codebook, move_weight=move_weight)
            if swapped not in ("row", "column"):
                raise bad_parameter("the command", "--swapped", "one of 'row', 'column'", swapped)
            rows = _error_of_table(file, rate, records, kind, base)
        else:
            given = {"rate": rate, "records": records, "kind": kind, "within": names(within), "groups": groups}
            rows = _error_of_file(load(file, codebook, weight), swap, margin, given, base, moves=move_weight)
        if chart is not None:
            _draw(rows, chart)
    if as_json:
        show.emit({"file": file, "cells": rows, "chart": chart and str(chart)})
        return
    _show_errors(rows, base)
    if chart is not None:
        show.note(f"\nDrew {chart}.")


def _refuse_file_options(*given: object, move_weight: bool) -> None:
    """Refuse what a bare table cannot have."""
    if move_weight or any(value for value in given):
        raise ParameterError(
            "--swapped says that FILE is a table of counts. --swap, --margin, --within, --groups, --weight, --codebook "
            "and --move-weight are for a microdata file."
        )


def _error_of_file(
    data: Any, swap: Sequence[str] | None, margin: str | None, given: Mapping[str, Any], base: int, *, moves: bool
) -> list[dict[str, Any]]:
    import quadrille as qd

    if not swap or margin is None:
        raise ParameterError("Name the variables to swap with --swap and the table with --margin, as in Age*MS.")
    recipe = qd.PermutationSwap(names(swap), weight="moves" if moves else "stays", **given)
    rows = qd.theory.table_error(data, recipe, margin).to_dicts()
    if data.weight is not None:
        return rows  # rounding is for counts
    for row in rows:
        row["rounding_rmse"] = qd.theory.rounding_error(round(row["before"]), base).rmse
    if not recipe.within and recipe.kind != "across":
        equal = qd.theory.equivalent_table(data, margin, swap=recipe.swap, base=base, kind=recipe.kind).to_dicts()
        by_cell = {_labels(row): row["records"] for row in equal}
        for row in rows:
            row["records"] = by_cell.get(_labels(row))
    return rows


def _labels(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(value for name, value in row.items() if name not in _NOT_LABELS)


def _error_of_table(file: str, rate: float | None, records: int | None, kind: str, base: int) -> list[dict[str, Any]]:
    import quadrille as qd

    kind_given = cast("Any", kind)
    return qd.theory.error_of_counts(
        _read_table(file), rate=rate, records=records, kind=kind_given, base=base
    ).to_dicts()


def _read_table(file: str) -> pl.DataFrame:
    """Read a table of counts, labels in the first column; it may have any number of columns."""
    import quadrille as qd

    return qd.read(file).frame()


def _show_errors(rows: list[dict[str, Any]], base: int) -> None:
    if not rows:
        raise InputError("The table has no cell that can change.")
    labels = [name for name in rows[0] if name not in _NOT_LABELS]
    shown = [name for name in _NUMBERS if any(row.get(name) is not None for row in rows)]
    heads = {"relative_rmse": "share", "rounding_rmse": "rounding", "records": "k"}
    show.title("Expected error of each cell")
    lines = [[*(str(row[name]) for name in labels), *(_number(row.get(name), name) for name in shown)] for row in rows]
    head = [*labels, *(heads.get(name, name) for name in shown)]
    right = range(len(labels), len(head))
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
    show.facts([(name, text) for name, text in known.items() if name in head])
    for note in dict.fromkeys(str(row["note"]) for row in rows if row.get("note") not in (None, "", "exact")):
        show.note(f"\n{note}")


def _number(value: float | None, name: str) -> str:
    if value is None:
        return ""
    if name in ("before", "records"):
        return f"{value:,.0f}"
    if name == "relative_rmse":
        return show.percent(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.2f}"


def _draw(rows: list[dict[str, Any]], path: Path) -> None:
    from quadrille import chart, frames

    points = [
        {
            "label": ", ".join(map(str, _labels(row))),
            "group": "swapping",
            "count": row["before"],
            "rmse": row["rmse"],
            "rounding": row.get("rounding_rmse"),
        }
        for row in rows
        if row["rmse"] is not None
    ]
    chart.save(chart.error_by_size(frames.tidy(points)), path)


def correct(
    table: Table,
    f: Factor = None,
    note: Note = None,
    of_class: OfClass = None,
    swapped: Where = "column",
    kind: OwnKind = None,
    out: Out = None,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
) -> None:
    """Remove the bias of swapping from a published table."""
    import quadrille as qd

    check_new(out, overwrite=overwrite, source=str(table))
    given = _read_table(str(table))
    factor, how = _factor(f, note, of_class, given)
    found = qd.theory.correct(given, factor, swapped=swapped, kind=cast("Any", kind or how))
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
