"""`quadrille doctor`: what a file takes on this machine, before it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.errors import InputError
from quadrille.io import RELEASED
from quadrille.params import one_of
from quadrille.present.blocks import Block, Facts, Table, Text, Title
from quadrille.present.numbers import count, duration

if TYPE_CHECKING:
    from quadrille.io.needs import Needs


def doctor(
    file: opt.File,
    format: Annotated[
        str, opt.value("WORD", f"Public file: {', '.join(RELEASED[:-1])} or {RELEASED[-1]}.")
    ] = "parquet",
    as_json: opt.Json = False,
) -> None:
    """Say what a file takes: memory and time of each stage."""
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
