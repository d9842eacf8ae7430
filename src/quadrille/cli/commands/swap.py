"""`quadrille swap` and `quadrille plan`: try a swap and score it; write who receives which values."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.cli.guard import tell
from quadrille.cli.inputs import check_new, published_tables
from quadrille.cli.options import design_words, read_recipe, recipe_of
from quadrille.cli.show import measured
from quadrille.errors import ParameterError

if TYPE_CHECKING:
    from quadrille.data import Data
    from quadrille.recipe import Recipe


def swap(
    ctx: typer.Context,
    file: opt.File,
    method: opt.Method = None,
    recipe: opt.RecipeFile = None,
    save_recipe: opt.SaveRecipe = None,
    measures: opt.Measures = None,
    tables: opt.Tables = None,
    out: Annotated[
        Path | None,
        opt.value("FILE", "Write the swapped file as it is: not a release."),
    ] = None,
    about: opt.FileOptions = opt.NOTHING_SAID,
    allow_contradictions: opt.AllowContradictions = False,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
) -> None:
    """Try a swap and score it. Writes nothing without --out."""
    import quadrille as qd
    from quadrille.cli.options import designed_for
    from quadrille.score.contradictions import refuse_contradictions
    from quadrille.study.designed import one_way_report
    from quadrille.swap.private import PrivateSwap

    check_new(out, save_recipe, overwrite=overwrite, source=file)
    with show.working("Reading, swapping and scoring"):
        made, published = recipe_of(ctx, method, recipe), published_tables(tables)
        data = about.load(file)
        made = designed_for(ctx, made, data, published)
        if not allow_contradictions:
            refuse_contradictions(data, made)
        promised = made.guarantee(data) if isinstance(made, PrivateSwap) else None  # before the draw
        plan = made.plan(data)
        account = plan.report(data)
        scores = qd.score(data, plan, measured(made, measures, data))
        changes = qd.table_changes(data, plan, published) if published else None
        one_way = None if as_json else one_way_report(data, made)
        _save(out, save_recipe, made, lambda: plan.apply(data))
    for warning in account.warnings:
        tell(f"warning: {warning}")
    if out is not None:
        _warn_not_a_release(seed_lost=save_recipe is None and recipe is None and "seed" not in design_words(ctx))
    if as_json:
        chosen = json.loads(made.design_json())  # the seed stays out: it is a secret
        written = {"out": out and str(out), "save_recipe": save_recipe and str(save_recipe)}
        told = {"account": account.as_dict(), "scores": scores.as_dict(), "tables": changes and changes.as_dict()}
        told |= {} if promised is None else {"guarantee": promised.as_dict()}
        show.emit({"recipe": chosen, **told, **written})
    else:
        show.show_account(account, one_way)
        show.show_scores(scores)
        show.show_published(changes, made)
        if promised is not None:
            show.show_guarantee(promised)


def _save(out: Path | None, save_recipe: Path | None, recipe: Recipe, swapped: Callable[[], Data]) -> None:
    """Write both files or neither."""
    import quadrille as qd
    from quadrille.io.atomic import new_file

    text = (recipe.to_json() + "\n").encode()
    with nullcontext() if save_recipe is None else new_file(save_recipe, text, private=True):
        for line in () if out is None else qd.write(swapped(), out, private=True):
            tell(f"not in the file: {line}")


def _warn_not_a_release(*, seed_lost: bool) -> None:
    tell("warning: this file keeps row order and identifiers. It is not a release; use `quadrille release`.")
    if seed_lost:
        tell("warning: the secret seed is not kept, so this swap cannot be repeated. Add --save-recipe FILE.")


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
