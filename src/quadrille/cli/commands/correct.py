"""`quadrille correct`: the bias of swapping removed from a published table, for data users."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.cli.commands.error import MOST_ROWS, read_table
from quadrille.cli.inputs import check_new
from quadrille.errors import ParameterError
from quadrille.text import read_text

if TYPE_CHECKING:
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
    said = _published(f, methods_note, of_class, class_column)
    counts, place = read_table(str(table)), swapped or "column"
    how = cast(
        "Literal['pairs', 'cycles']", kind or ("pairs" if said is None else said.kind)
    )  # checked where it is used
    if said is None:
        corrected = qd.theory.correct(counts, f, swapped=place, kind=how, no_totals=no_totals)
    else:
        corrected = qd.theory.correct_published(
            counts,
            said.f,
            records=said.records,
            sizes=said.sizes,
            kind=how,
            of_class=of_class,
            class_column=class_column,
            swapped=place,
            no_totals=no_totals,
            where=f"the note {str(methods_note)!r}",
        )
    if out is not None:
        qd.write(qd.from_frame(corrected.frame()), out)
    rows = corrected.frame().to_dicts()
    if as_json:
        notes = {"note": corrected.note, "unchecked": corrected.unchecked, "out": out and str(out)}
        show.emit({"table": str(table), "f": f if said is None else corrected.f, "cells": rows, **notes})
        return
    _show(rows, [corrected.note, corrected.unchecked])


def _show(rows: list[dict[str, Any]], notes: list[str]) -> None:
    show.title("Corrected table")
    head = [name for name in rows[0] if name != "note"]
    lines = [[str(row[name]) if isinstance(row[name], str) else f"{row[name]:,.2f}" for name in head] for row in rows]
    show.grid(head, lines[:MOST_ROWS], numbers=range(2, len(head)), whole=range(2, len(head)))
    if len(lines) > MOST_ROWS:
        show.note(f"  {MOST_ROWS} of {len(lines):,} cells are shown; --json lists all.")
    for note in filter(None, notes):
        show.note(f"\n{note}")


def _published(f: float | None, note: Path | None, of_class: str | None, class_column: str | None) -> Published | None:
    """Return what the note says, None where f is given by itself."""
    if f is not None and note is not None:
        raise ParameterError("Give --f or --methods-note, not both: the note has its own f.")
    if f is None and note is None:
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
