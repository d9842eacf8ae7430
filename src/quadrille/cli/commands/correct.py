"""`quadrille correct`: the bias of swapping removed from a published table, for data users."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.cli.commands.error import MOST_ROWS, read_table
from quadrille.cli.inputs import check_new
from quadrille.errors import InputError, ParameterError, unknown_name
from quadrille.text import read_text

if TYPE_CHECKING:
    import polars as pl

    from quadrille.release.note import Published


def correct(
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="A table of counts, CSV; labels in the first column.")],
    f: Annotated[float | None, opt.value("NUMBER", "The factor that the publisher gives.")] = None,
    methods_note: Annotated[Path | None, opt.value("FILE", "Read f from this methods note instead.")] = None,
    of_class: Annotated[
        str | None,
        opt.value("LABEL", "The class that TABLE counts, where the note gives f by class.", "--class"),
    ] = None,
    class_column: Annotated[
        str | None,
        opt.value("COLUMN", "The column of TABLE that holds the classes; the result is their sum."),
    ] = None,
    swapped: opt.Swapped = None,
    kind: Annotated[str | None, opt.value("WORD", "pairs or cycles. [default: what the note says, or pairs]")] = None,
    out: Annotated[Path | None, opt.value("FILE", "Write the corrected table to this CSV.")] = None,
    no_totals: opt.NoTotals = False,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
) -> None:
    """Remove the bias of swapping from a published table."""
    import quadrille as qd

    check_new(out, overwrite=overwrite, source=str(table))
    note = methods_note
    said = _said(f, note, of_class, class_column)
    given = read_table(str(table))
    if said is None:
        tables, factor, how = given, f, "pairs"
    elif class_column is not None:
        tables = _by_class(given, class_column, said, note)
        factor, how = cast("dict[object, float]", said.f), said.kind
    else:
        label = _class_of(of_class, said, note)
        _check_total(given, said, label)
        tables, factor, how = given, said.f[label], said.kind
    place = swapped or "column"
    found = qd.theory.correct(tables, factor, swapped=place, kind=cast("Any", kind or how), no_totals=no_totals)
    unchecked = _unchecked(said, class_column or of_class)
    if out is not None:
        qd.write(qd.from_frame(found.frame()), out)
    rows = found.frame().to_dicts()
    if as_json:
        told = {"note": found.note, "unchecked": unchecked, "out": out and str(out)}
        show.emit({"table": str(table), "f": factor, "cells": rows, **told})
        return
    _show(rows, [found.note, unchecked])


def _show(rows: list[dict[str, Any]], notes: list[str]) -> None:
    show.title("Corrected table")
    head = [name for name in rows[0] if name != "note"]
    lines = [[str(row[name]) if isinstance(row[name], str) else f"{row[name]:,.2f}" for name in head] for row in rows]
    show.grid(head, lines[:MOST_ROWS], numbers=range(2, len(head)), whole=range(2, len(head)))
    if len(lines) > MOST_ROWS:
        show.note(f"  {MOST_ROWS} of {len(lines):,} cells are shown; --json lists all.")
    for note in filter(None, notes):
        show.note(f"\n{note}")


def _said(f: float | None, note: Path | None, of_class: str | None, class_column: str | None) -> Published | None:
    """Return what the note says, None where f is given by itself."""
    if (f is None) == (note is None):
        raise ParameterError("Give the factor with --f, or the methods note that publishes it with --methods-note.")
    if of_class is not None and class_column is not None:
        raise ParameterError("Give --class for a table of one class, or --class-column for one of all of them.")
    if note is None:
        if of_class is not None or class_column is not None:
            option = "--class" if class_column is None else "--class-column"
            raise ParameterError(
                f"{option} needs --methods-note, which gives each class its own f. With --f leave it out."
            )
        return None
    from quadrille.release.note import read_published

    said = read_published(read_text(note, "the note"), f"The note {str(note)!r}")
    if (of_class is not None or class_column is not None) and "" in said.f:
        raise ParameterError(f"The note {str(note)!r} has one f for the whole file and no classes. Name none.")
    return said


def _class_of(of_class: str | None, said: Published, note: Path | None) -> str:
    """Return the class of a table as the note writes it; its values alone do where they are not ambiguous."""
    if of_class is None:
        if "" in said.f:
            return ""
        raise ParameterError(
            f"The note {str(note)!r} gives f by class: {_some(said)}. Name the class that the table counts with "
            "--class, or the column of the table that holds the classes with --class-column."
        )
    return _named(of_class, said, f"the note {str(note)!r}")


def _named(name: str, said: Published, where: str) -> str:
    plain = _plain(name)
    found = [label for label in said.f if plain in (_plain(label), _plain(_values(label)))]
    if len(found) != 1:
        raise unknown_name("class", name, said.f, where=where)
    return found[0]


def _values(label: str) -> str:
    """Take the names of the variables off a class such as "Region = north, Sex = Male"."""
    return ", ".join(part.partition(" = ")[2] or part for part in label.split(", "))


def _plain(label: str) -> str:
    return "".join(label.split()).casefold()


def _some(said: Published) -> str:
    labels = [repr(label) for label in said.f]
    return ", ".join(labels[:3]) + (f" and {len(labels) - 3:,} more" if len(labels) > 3 else "")


def _check_total(table: pl.DataFrame, said: Published, label: str) -> None:
    """Refuse a table that does not count all records of the file, or of its class."""
    expected = said.sizes.get(label) if label else said.records
    if expected is not None and _total(table) != expected:
        which = f"of the class {label!r}" if label else "of the file"
        raise InputError(
            f"The table does not count all {expected:,} records {which}, and f is for tables of all of them. "
            "Correct the whole table, then take the part you need."
        )


def _total(table: pl.DataFrame) -> int | None:
    """Return the total of a table of counts; None when it holds anything else."""
    numbers = [value for row in table.rows() for value in row[1:]]
    return int(sum(numbers)) if all(isinstance(value, int | float) for value in numbers) else None


def _by_class(table: pl.DataFrame, column: str, said: Published, note: Path | None) -> dict[str, pl.DataFrame]:
    """Split a table by its column of classes; a row that a class lacks counts none there."""
    from quadrille.data import tidy

    if column not in table.columns:
        raise unknown_name("column", column, table.columns, where="the table")
    if table.width <= 2:
        raise InputError("Besides the column of classes the table needs one of labels and at least one of counts.")
    rest = table.drop(column)
    head = rest.columns[0]
    names = ["" if value is None else str(value) for value in table[column].to_list()]
    labels = [_named(name, said, f"the note {str(note)!r}") for name in names]
    lacking = [label for label in said.f if label not in labels]
    if lacking:
        raise InputError(
            f"The table lacks {len(lacking):,} of the {len(said.f):,} classes of the note, such as {lacking[0]!r}. "
            "Give the table of all of them, or of one with --class."
        )
    none = dict.fromkeys(rest.columns[1:], 0)
    every = dict.fromkeys(rest[head].to_list())
    found: dict[str, pl.DataFrame] = {}
    for label in said.f:
        own = [row for row, of in zip(rest.to_dicts(), labels, strict=True) if of == label]
        by_row = {row[head]: row for row in own}
        if len(by_row) < len(own):
            raise InputError(f"The class {label!r} has two rows with the same label. Add them up, or name them apart.")
        found[label] = tidy([by_row.get(each, {head: each, **none}) for each in every])
        _check_total(found[label], said, label)
    return found


def _unchecked(said: Published | None, by_class: str | None) -> str:
    """Say what could not be checked."""
    if said is not None and by_class and not said.sizes:
        return "not checked: whether the table counts all records of the class; the note does not say how many"
    return ""
