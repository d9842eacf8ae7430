"""The commands. Each reads its words, calls the library, and shows a table or prints JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ParamSpec

import typer

from quadrille import __version__
from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.cli.commands import search
from quadrille.cli.commands.convert import convert, show_not_held
from quadrille.cli.commands.correct import correct
from quadrille.cli.commands.error import error
from quadrille.cli.commands.inspect import codebook, inspect
from quadrille.cli.commands.policy import PolicyOption, policy, show_verdict, verdict_shown
from quadrille.cli.commands.rates import rates
from quadrille.cli.commands.rules import rules
from quadrille.cli.commands.runs import runs
from quadrille.cli.commands.score import score
from quadrille.cli.commands.simulate import simulate
from quadrille.cli.designs import Design, takes_design
from quadrille.cli.guard import (
    INTERRUPTED,
    flush_quietly,
    guarded,
    ignore_signals,
    prepare_process,
    tell,
    warnings_told,
)
from quadrille.cli.inputs import check_folder, check_new, load, seed_of, writing
from quadrille.cli.show import measured
from quadrille.errors import ParameterError

if TYPE_CHECKING:
    from quadrille.data import Data
    from quadrille.recipe import Recipe
    from quadrille.release.release import Release

P = ParamSpec("P")

app = typer.Typer(
    name="quadrille",
    help="Data swapping for confidential microdata: inspect, swap, search, choose, release.",
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def command(function: Callable[P, None]) -> Callable[P, None]:
    """Make a guarded function a command of the same name."""
    return app.command()(guarded(function))


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"quadrille {__version__}")
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Data swapping for confidential microdata: inspect, swap, search, choose, release."""


command(inspect)
command(codebook)
command(convert)


@command
def measures(as_json: opt.Json = False) -> None:
    """List the measures and their definitions."""
    import quadrille as qd

    rows = qd.measures().to_dicts()
    if as_json:
        show.emit(rows)
        return
    for row in rows:
        show.title(str(row["name"]))
        shown = ("definition", "options", "side", "better", "range", "reference")
        show.facts([(name, str(row[name])) for name in shown if row[name]])


@command
@takes_design
def swap(
    file: opt.File,
    design: Design,
    measures: opt.Measures = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the swapped file, rows and ids as they were. Not a release."),
    ] = None,
    save_recipe: opt.SaveRecipe = None,
    overwrite: opt.Overwrite = False,
    codebook: opt.Codebook = None,
    weight: opt.Weight = None,
    geography: opt.Geography = None,
    as_json: opt.Json = False,
) -> None:
    """Try a swap and score it. Writes nothing without --out."""
    import quadrille as qd

    check_new(out, save_recipe, overwrite=overwrite, source=file)
    with show.working("Reading, swapping and scoring"):
        made = design.recipe()
        data = load(file, codebook, weight, geography)
        plan = made.plan(data)
        account = plan.report(data)
        scores = qd.score(data, plan, measured(made, measures, data))
        _save(out, save_recipe, made, lambda: plan.apply(data))
    for warning in account.warnings:
        tell(f"warning: {warning}")
    if out is not None:
        _warn_not_a_release(seed_lost=save_recipe is None and not {"seed", "recipe"} & set(design.given))
    if as_json:
        chosen = json.loads(made.design_json())  # the seed stays out: it is a secret
        written = {"out": out and str(out), "save_recipe": save_recipe and str(save_recipe)}
        show.emit({"recipe": chosen, "account": account.as_dict(), "scores": scores.as_dict(), **written})
    else:
        show.show_account(account)
        show.show_scores(scores)


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


command(score)
command(search.search)
command(search.frontier)
command(search.pick)
command(runs)
command(rates)
command(rules)
command(error)
command(correct)
command(simulate)
command(search.report)
command(policy)


@command
@takes_design
def release(
    file: opt.File,
    design: Design,
    study: opt.FromStudy = None,
    candidate: opt.Candidate = None,
    pick: opt.Pick = False,
    measures: opt.Measures = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder to make.")] = Path("release"),
    format: Annotated[str, typer.Option(metavar="WORD", help="Public file: csv, parquet, sav, dta or xpt.")] = "csv",
    keep_order: Annotated[bool, typer.Option("--keep-order", help="Do not shuffle the public rows.")] = False,
    publish_f: Annotated[
        bool, typer.Option("--publish-f", help="Put into the public note how users can correct tables.")
    ] = False,
    readers: Annotated[
        bool, typer.Option("--readers", help="Also write the reports for analyst, chair and board (confidential).")
    ] = False,
    var_stratum: opt.VarStratum = None,
    var_unit: opt.VarUnit = None,
    policy: PolicyOption = None,
    overwrite: opt.Overwrite = False,
    codebook: opt.Codebook = None,
    weight: opt.Weight = None,
    geography: opt.Geography = None,
    as_json: opt.Json = False,
) -> None:
    """Swap a file and write what to publish and to keep."""
    import quadrille as qd

    with verdict_shown(as_json=as_json), warnings_told(), show.working("Reading, swapping, scoring and writing"):
        chosen = search.candidate_of(study, candidate, pick, design)
        made = design.recipe() if chosen is None else chosen[1]
        data = load(file, codebook, weight, geography)
        wanted = measured(made, measures, data)
        if chosen is not None:
            search.require_data(chosen[0], data)
            wanted = wanted if measures else list(dict.fromkeys((*chosen[0].measures, *wanted)))
        done = qd.release(
            data,
            made,
            out,
            measures=wanted,
            format=format,
            shuffle=not keep_order,
            publish_f=publish_f,
            overwrite=overwrite,
            policy=policy,
        )
        if readers:
            search.write_readers(data, made, done.confidential / "readers", var_stratum, var_unit)
    if as_json:
        show.emit(done.as_dict())
    else:
        _show_release(done)


def _show_release(done: Release) -> None:
    show.show_account(done.account)
    show.show_scores(done.scores)
    if done.verdict is not None:
        show_verdict(done.verdict)
    show.title("Written")
    show.facts(
        [
            ("to publish", f"{done.public}/"),
            ("to lock away", f"{done.confidential}/ (it can undo the release)"),
        ]
    )
    if done.left_out:
        show.note(
            f"\nLeft out as identifiers: {', '.join(done.left_out)}. "
            "To release one on purpose, give it another role in the codebook."
        )
    show_not_held(done.not_held)


@command
def reproduce(
    paper: opt.Paper,
    seeds: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="Draws to compare with the paper. [default: as suits it]")
    ] = None,
    sampler: Annotated[
        str | None,
        typer.Option(metavar="WORD", help="first-uniform or pair-uniform; cells, records or both for lemons-2014."),
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also draw the paper's figures, as PNG, into this folder.")
    ] = None,
    as_json: opt.Json = False,
) -> None:
    """Set the published numbers of a paper beside ours."""
    from quadrille import papers

    module = papers.get(paper)
    if figures is not None and not hasattr(module, "write_figures"):
        raise ParameterError(f"The paper {paper} has no figures to draw. Leave --figures out.")
    if figures is not None:
        check_folder(figures)
    count, rule = module.DEFAULT_SEEDS if seeds is None else seeds, sampler or module.DEFAULT_SAMPLER
    with show.progress_bar(f"Reproducing {paper}") as progress:
        found = module.reproduce(seeds=count, sampler=rule, progress=progress)
    with writing(figures):
        drawn = [] if figures is None else [str(path) for path in module.write_figures(found, figures)]
    if as_json:
        show.emit({**found.as_dict(), "figures_written": drawn})
        return
    found.render(show.console())
    if drawn:
        show.title("Figures")
        show.facts([("", path) for path in drawn])


@command
def demo(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder to write to.")] = Path("demo"),
    seed: opt.Seed = None,
    as_json: opt.Json = False,
) -> None:
    """Walk the whole path on a bundled file."""
    from quadrille.cli.commands import demo as walk

    given = None if seed is None else seed_of(seed)
    if isinstance(given, str):
        raise ParameterError("--seed of the demo must be a whole number. Leave it out for secret seeds.")
    walk.run(out, given, as_json=as_json)


def main() -> None:
    """Run the program."""
    prepare_process()
    try:
        app(prog_name="quadrille")
    except KeyboardInterrupt:  # while the commands are put together; later they see to it themselves
        raise SystemExit(INTERRUPTED) from None
    finally:
        flush_quietly()
        ignore_signals()
