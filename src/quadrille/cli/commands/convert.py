"""`quadrille convert`: from one file format to another, and what does not fit on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.cli.guard import tell
from quadrille.cli.inputs import check_new, load
from quadrille.io.formats import FORMATS

_WRITTEN = [ending for ending, form in FORMATS.items() if form.writer]


def convert(
    file: opt.File,
    out: Annotated[Path, typer.Argument(metavar="OUT", help=f"The file to write: {', '.join(_WRITTEN)}.")],
    codebook: opt.Codebook = None,
    layout: opt.Layout = None,
    catalog: opt.Catalog = None,
    write_codebook: opt.WriteCodebook = None,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
) -> None:
    """Write a file in another format, labels included."""
    from quadrille.io import file_bytes, left_to_codebook
    from quadrille.io.atomic import new_file

    check_new(out, write_codebook, overwrite=overwrite, source=file)
    with show.working("Reading and writing"):
        data = load(file, codebook, layout=layout, catalog=catalog)
        contents, not_held = file_bytes(data, out.name)
        not_held = (*not_held, *(left_to_codebook(data, out.name) if write_codebook is None else ()))
        with new_file(out, contents, private=True):
            if write_codebook is not None:
                data.codebook.write(write_codebook)
    identifiers = [variable.name for variable in data.codebook if variable.role == "id"]
    if identifiers:
        tell(f"warning: identifiers are kept ({', '.join(identifiers)}). This file is not a release.")
    if as_json:
        book = None if write_codebook is None else str(write_codebook)
        show.emit({"out": str(out), "codebook": book, "records": data.n, "not_held": list(not_held)})
        return
    written = f"{out}" if write_codebook is None else f"{out} and {write_codebook}"
    show.note(f"Wrote {written}: {data.n:,} records, {len(data.columns):,} columns.")
    show.not_held(not_held)
