"""`quadrille reproduce`: the published numbers of a paper beside ours."""

from __future__ import annotations

from types import ModuleType
from typing import Annotated, Any

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.cli.inputs import check_folder, writing
from quadrille.errors import ParameterError


def reproduce(
    paper: opt.Paper,
    draws: Annotated[
        int | None,
        opt.value("NUMBER", "How often each design is drawn. [default: as the paper's page]"),
    ] = None,
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
        reproduction = _reproduced(module, count, rule, progress)
    with writing(charts):
        drawn = [] if charts is None else [str(path) for path in module.write_figures(reproduction, charts)]
    if as_json:
        show.emit({**reproduction.as_dict(), "figures_written": drawn})
        return
    reproduction.render(show.console())
    if drawn:
        show.title("Figures")
        show.facts([("", path) for path in drawn])


def _reproduced(module: ModuleType, draws: int, sampler: str, progress: show.Progress | None) -> Any:
    """Reproduce a paper; a wrong number of draws is refused by the name of its option."""
    try:
        return module.reproduce(seeds=draws, sampler=sampler, progress=progress)
    except ParameterError as error:
        if error.parameter == "seeds":
            raise ParameterError(f"--draws must be {error.must}. Got {error.value!r}.") from None
        raise
