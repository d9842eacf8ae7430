"""`quadrille plan`: draw a swap and write it as a table, for an engine that applies it where the data are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.cli.guard import tell
from quadrille.cli.inputs import check_new
from quadrille.cli.options import read_recipe
from quadrille.errors import ParameterError


def plan(
    file: opt.File,
    recipe: opt.RecipeFile = None,
    out: Annotated[Path | None, opt.value("FILE", "The Parquet file to write.")] = None,
    about: opt.FileOptions = opt.NOTHING_SAID,
    allow_contradictions: opt.AllowContradictions = False,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
) -> None:
    """Write who receives which values, for Spark, DuckDB and others."""
    import quadrille as qd
    from quadrille.io.plan_file import ROW
    from quadrille.score.contradictions import refuse_contradictions

    if recipe is None or out is None:
        raise ParameterError("Name the recipe with --recipe FILE and the file to write with --out FILE.")
    identifiers = about.roles.get("id", ())
    if len(identifiers) > 1:
        raise ParameterError("One identifier names the records of a plan: give --id one column.")
    check_new(out, overwrite=overwrite, source=file)
    with show.working("Reading and drawing"):
        made = read_recipe(recipe)
        data = about.load(file)
        if not allow_contradictions:
            refuse_contradictions(data, made)
        drawn = made.plan(data)
        qd.write_plan(drawn, data, out, *identifiers)
    for warning in drawn.report(data).warnings:
        tell(f"warning: {warning}")
    key, columns = identifiers[0] if identifiers else ROW, list(drawn.columns)
    if as_json:
        fingerprints = {"before": drawn.before, "after": drawn.after}
        show.emit({"out": str(out), "records": len(drawn.rows), "key": key, "columns": columns, **fingerprints})
        return
    show.note(f"Wrote {out}: {len(drawn.rows):,} records, named by {key}, receive values of {', '.join(columns)}.")
    show.note("It shows who was swapped: as confidential as the original.")
