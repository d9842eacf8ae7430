"""`quadrille inspect`, `convert`, `doctor`: what a file holds, the same in another format, what it takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.cli.guard import tell
from quadrille.cli.inputs import check_new, load, names
from quadrille.errors import InputError
from quadrille.io import FORMATS, RELEASED
from quadrille.present import Block, Facts, Table, Text, Title
from quadrille.present.numbers import count, duration

if TYPE_CHECKING:
    from quadrille.io.needs import Needs


def inspect(
    file: opt.File,
    about: opt.FileOptions = opt.NOTHING_SAID,
    catalog: opt.Catalog = None,
    categories: Annotated[bool, opt.flag("--categories", "List the categories of each column.")] = False,
    reasons: Annotated[
        bool, opt.flag("--reasons", "Say why each column has its kind and role, and its label.")
    ] = False,
    risk: Annotated[
        list[str] | None,
        opt.value("COLUMNS", "Count who is at risk in each area: whose combination of these is rare."),
    ] = None,
    k: Annotated[int | None, opt.value("NUMBER", "With --risk: rare is a count below it. [default: 3]", "--k")] = None,
    full: Annotated[bool, opt.flag("--full", "Write all of the codebook, not only what is no guess.")] = False,
    write_codebook: Annotated[
        Path | None,
        opt.value("FILE", "Write the codebook, TOML; - prints it and nothing else."),
    ] = None,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
) -> None:
    """Show what is in a file, without its values."""
    import quadrille as qd

    printed, codebook = write_codebook == Path("-"), about.codebook
    check_new(None if printed else write_codebook, overwrite=overwrite, source=file)
    with show.working("Reading"):
        data = about.load(file, catalog)
        declared = dict.fromkeys(about.roles.get("id", ()), "as an option says")
        declared |= {} if codebook is None else dict.fromkeys(qd.Codebook.read(codebook).names, "as the codebook says")
        found = qd.inspect(data, labels=categories, declared=declared, risk=names(risk) if risk else None, k=k)
        guessed = None
        if write_codebook is not None and not full:
            said = codebook is not None or about.weight is not None or about.geography or about.roles
            guessed = (load(file, layout=about.layout, catalog=catalog) if said else data).codebook
        if write_codebook is not None and not printed:
            data.codebook.write(write_codebook, guessed=guessed)
    text = data.codebook.to_toml(guessed=guessed)
    if as_json:
        book = None if write_codebook is None else str(write_codebook)
        show.emit({"file": file, **found.as_dict(), "codebook": text if printed else book})
        return
    if printed:
        typer.echo(text, nl=False)
        return
    show.show_profile(file, found)
    if reasons or write_codebook is not None:
        show.title("Why each column is taken for what it is")
        show.facts([(column.name, _words(column.reason, column.label)) for column in found.columns])
    if write_codebook is not None:
        show.note(f"\nWrote {write_codebook}. Check kinds, the order of categories and roles before you use it.")


def _words(reason: str, label: str) -> str:
    return f"{reason} ({label})" if label else reason


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


def doctor(
    file: opt.File,
    format: Annotated[
        str, opt.value("WORD", f"Public file: {', '.join(RELEASED[:-1])} or {RELEASED[-1]}.")
    ] = "parquet",
    as_json: opt.Json = False,
) -> None:
    """Say what a file takes: memory and time of each stage."""
    from quadrille.params import one_of

    one_of("doctor", "format", format, RELEASED)
    show_needs(file, format, as_json=as_json)


def show_needs(file: str, format: str, *, as_json: bool) -> None:
    """Print what a file takes; refuse what cannot be met."""
    from quadrille.io.needs import needs_of

    if file.startswith("dataset:"):
        raise InputError("Bundled data sets are small. Name a file.")
    found = needs_of(file, format)
    if as_json:
        show.emit(found.as_dict())
    else:
        show.render(_blocks(found))
    if found.refusal:
        raise InputError(found.refusal)


def _blocks(found: Needs) -> list[Block]:
    """Return the facts, a table of the stages, and what it rests on."""
    from quadrille.io.needs import gigabytes

    where = f"{gigabytes(found.columns)}, of which {gigabytes(found.limit)} may be in memory"
    if found.paged:
        where += f"; {gigabytes(found.paged)} will lie in {found.folder}, where {gigabytes(found.room)} is left"
    stages = [(stage.name, gigabytes(stage.memory), duration(stage.seconds)) for stage in found.stages]
    total = sum(stage.seconds for stage in found.stages)
    return [
        Title("What the file takes"),
        Facts(
            (
                ("file", found.file),
                ("records", f"{count(found.records)}, of {count(found.width)} bytes each as codes"),
                ("columns", where),
                ("memory", f"{gigabytes(found.peak)} at most; {gigabytes(found.free)} is free"),
                ("time", f"about {duration(total)} of one processor"),
            )
        ),
        Table(("stage", "memory", "time"), tuple(stages), numbers=(1, 2)),
        Text(
            f"Released as {found.format}. Estimated from the first records, for random and permutation swapping; "
            "controlled swapping takes 20 bytes a record more, and the time of a designed swap follows its small cells."
        ),
    ]
