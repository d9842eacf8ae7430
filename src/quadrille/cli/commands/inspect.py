"""`quadrille inspect`: what is in a file, and what each column is taken for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.cli.commands.convert import load_with
from quadrille.cli.inputs import check_new


def inspect(
    file: opt.File,
    codebook: opt.Codebook = None,
    weight: opt.Weight = None,
    geography: opt.Geography = None,
    catalog: opt.Catalog = None,
    categories: Annotated[bool, opt.flag("--categories", "List the categories of each column.")] = False,
    reasons: Annotated[
        bool, opt.flag("--reasons", "Say why each column has its kind and role, and its label.")
    ] = False,
    write_codebook: opt.WriteCodebook = None,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
) -> None:
    """Show what is in a file, without its values."""
    import quadrille as qd

    printed = write_codebook == Path("-")
    check_new(None if printed else write_codebook, overwrite=overwrite, source=file)
    with show.working("Reading"):
        data = load_with(file, codebook, weight, geography, catalog)
        declared = () if codebook is None else qd.Codebook.read(codebook).names
        found = qd.inspect(data, labels=categories, declared=declared)
        if write_codebook is not None and not printed:
            data.codebook.write(write_codebook)
    if printed:
        typer.echo(data.codebook.to_toml(), nl=False)
        return
    if as_json:
        show.emit(
            {"file": file, **found.as_dict(), "codebook": None if write_codebook is None else str(write_codebook)}
        )
        return
    show.show_profile(file, found)
    if reasons or write_codebook is not None:
        show.title("Why each column is taken for what it is")
        show.facts([(column.name, _words(column.reason, column.label)) for column in found.columns])
    if write_codebook is not None:
        show.note(f"\nWrote {write_codebook}. Check kinds, the order of categories and roles before you use it.")


def _words(reason: str, label: str) -> str:
    return f"{reason} ({label})" if label else reason
