"""`quadrille guarantee`: what a private swap promises of a file and what that costs, before any draw."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.cli.inputs import check_new
from quadrille.cli.options import recipe_of
from quadrille.errors import ParameterError

if TYPE_CHECKING:
    from quadrille.swap.private import PrivateSwap


def guarantee(
    ctx: typer.Context,
    file: opt.File,
    recipe: opt.RecipeFile = None,
    method: Annotated[str | None, opt.value("WORD", "private: no other method promises anything.")] = None,
    chart: opt.Chart = None,
    about: opt.FileOptions = opt.NOTHING_SAID,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
) -> None:
    """Say what a private swap promises, and what each epsilon costs. Draws nothing."""
    import quadrille as qd

    check_new(chart, overwrite=overwrite, source=file)
    swap = _private(ctx, method, recipe)
    with show.working("Working out what is promised and what it costs"):
        data = about.load(file)
        found, curve = swap.guarantee(data), qd.theory.epsilon_curve(data, swap)
        if chart is not None:
            from quadrille import chart as charts

            charts.save(charts.epsilon_loss(curve), chart)
    if as_json:
        told = {"guarantee": found.as_dict(), "curve": curve.to_dicts()}
        show.emit({"file": file, **told, "chart": chart and str(chart)})
        return
    from quadrille.present import methods

    show.render([*methods.guarantee(found), *methods.curve_blocks(curve.to_dicts())])
    if chart is not None:
        show.note(f"\nDrew {chart}.")


def _private(ctx: typer.Context, method: str | None, file: Path | None) -> PrivateSwap:
    """Return the recipe; refuse one of a method that promises nothing."""
    from quadrille.swap.private import PrivateSwap

    made = recipe_of(ctx, method if method or file else PrivateSwap.word(), file)
    if not isinstance(made, PrivateSwap):
        raise ParameterError(
            f"{made.method_name} promises nothing: some of its releases are possible for one file and impossible for "
            "another that differs by one exchange, so it has no epsilon. Give the options or the recipe of a private "
            "swap; `quadrille attack` measures what an intruder finds in any release."
        )
    return made
