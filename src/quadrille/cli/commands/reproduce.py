"""`quadrille reproduce`: the published numbers of a paper beside ours."""

from __future__ import annotations

from typing import Annotated

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.cli.inputs import check_folder, writing
from quadrille.errors import ParameterError


def reproduce(
    paper: opt.Paper,
    draws: opt.Draws = None,
    sampler: Annotated[
        str | None,
        opt.value("WORD", "first-uniform or pair-uniform; cells, records or both for lemons-2014."),
    ] = None,
    charts: opt.Charts = None,
    as_json: opt.Json = False,
) -> None:
    """Set the published numbers of a paper beside ours."""
    from quadrille import papers

    module = papers.get(paper)
    if charts is not None and not hasattr(module, "write_figures"):
        raise ParameterError(f"The paper {paper} has no figures to draw. Leave --charts out.")
    if charts is not None:
        check_folder(charts)
    count, rule = module.DEFAULT_SEEDS if draws is None else draws, sampler or module.DEFAULT_SAMPLER
    with show.progress_bar(f"Reproducing {paper}") as progress:
        reproduction = module.reproduce(seeds=count, sampler=rule, progress=progress)
    with writing(charts):
        drawn = [] if charts is None else [str(path) for path in module.write_figures(reproduction, charts)]
    if as_json:
        show.emit({**reproduction.as_dict(), "figures_written": drawn})
        return
    reproduction.render(show.console())
    if drawn:
        show.title("Figures")
        show.facts([("", path) for path in drawn])
