"""The command that scores a second file against the original, as a whole or by area."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.cli.inputs import addresses, check_new, load, load_after, names, read_recipe
from quadrille.cli.show import show_ranking, show_spread
from quadrille.errors import ParameterError, unknown_name

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from quadrille.data import Data
    from quadrille.recipe import Recipe
    from quadrille.score.evaluator import Scores

    Compared = tuple[Data, Data, NDArray[np.bool_] | None]

TOP = 10

By = Annotated[
    list[str] | None,
    typer.Option(metavar="LEVELS", help="Also by area: county,tract or crosses such as county*sex."),
]
Rank = Annotated[
    str | None,
    typer.Option(metavar="MEASURE", help="By area: the measure to rank by. [default: effective_swap_rate]"),
]
Top = Annotated[
    int | None, typer.Option(metavar="NUMBER", help=f"By area: so many most and least affected. [default: {TOP}]")
]
MinRecords = Annotated[
    int | None, typer.Option(metavar="NUMBER", help="By area: rank areas of so many records or more. [default: 0]")
]
Out = Annotated[
    Path | None, typer.Option(metavar="FILE", help="By area: write every area and measure to this .csv or .parquet.")
]
ChartRanking = Annotated[
    Path | None, typer.Option(metavar="FILE", help="By area: draw the ranking into this .png, .svg or .html.")
]
ChartFlows = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="By area: draw the flows between the areas of the first level. See --recipe."),
]


def score(
    before: opt.Before,
    after: opt.After,
    measures: opt.Measures = None,
    where: opt.Where = None,
    by: By = None,
    rank: Rank = None,
    top: Top = None,
    min_records: MinRecords = None,
    out: Out = None,
    chart_ranking: ChartRanking = None,
    chart_flows: ChartFlows = None,
    recipe: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The recipe that made AFTER, rows in order: tells who was swapped."),
    ] = None,
    overwrite: opt.Overwrite = False,
    codebook: opt.Codebook = None,
    codebook_after: opt.CodebookAfter = None,
    weight: opt.Weight = None,
    geography: opt.Geography = None,
    as_json: opt.Json = False,
) -> None:
    """Score a second file against the original."""
    import quadrille as qd

    words = {"rank": rank, "top": top, "min-records": min_records}
    _check_words(by, {**words, "out": out, "chart-ranking": chart_ranking, "chart-flows": chart_flows})
    files = {"out": out, "chart_ranking": chart_ranking, "chart_flows": chart_flows}
    for source in (before, after):
        check_new(*files.values(), overwrite=overwrite, source=source)
    with show.working("Reading and scoring"):
        data = load(before, codebook, weight, geography)
        other = _second(after, codebook, codebook_after, weight, geography)
        swapped = None if recipe is None else _swapped_records(read_recipe(recipe), data, other)
        levels = names(by) if by else None
        wanted = addresses(measures, data) if levels is None else _by_area(measures, data, levels)
        scores = qd.score(data, other, wanted, swapped=swapped, where=where, by=levels)
        ranking = _ranking(scores, rank, top, min_records) if levels else None
        if ranking is not None:
            _write(scores, (data, other, swapped), ranking, files)
    written = {name: path and str(path) for name, path in files.items()}
    if as_json:
        more = (
            {"spread": scores.spread().to_dicts(), "ranking": ranking.to_dicts(), **written}
            if ranking is not None
            else {}
        )
        show.emit({"scores": scores.as_dict(), **more})
    elif ranking is not None:
        show_spread(scores)
        show_ranking(ranking.to_dicts())
        show.written(path for path in files.values() if path is not None)
    else:
        show.show_scores(scores)


def _second(
    after: str, codebook: Path | None, own: Path | None, weight: str | None, geography: Sequence[str] | None
) -> Data:
    """Read the second file; the levels of geography are declared for both, unless a codebook describes it."""
    if geography and codebook is None and own is None:
        return load(after, None, weight, geography)
    return load_after(after, codebook, own, weight)


def _check_words(by: Sequence[str] | None, given: dict[str, object]) -> None:
    for name, value in given.items():
        if value is not None and not by:
            raise ParameterError(f"--{name} is about areas. Name their level with --by, as in --by county,tract.")


def _by_area(measures: Sequence[str] | None, data: Data, levels: Sequence[str]) -> Sequence[str]:
    """Return the measures by area; a difference without variables stands for those of every key variable."""
    from quadrille.measure.difference import MEASURES
    from quadrille.score.by_area import levels_of, usual_measures

    areas = levels_of(levels, data)
    if not measures:
        return usual_measures(data, areas)
    wanted: list[str] = []
    differences = {kind.name for kind in MEASURES}
    for address in addresses(measures, data):
        wanted += usual_measures(data, areas, [address]) if address in differences else [address]
    return list(dict.fromkeys(wanted))


def _ranking(scores: Scores, rank: str | None, top: int | None, min_records: int | None) -> pl.DataFrame:
    chosen = _chosen(scores, rank)
    return scores.ranking(chosen, top=TOP if top is None else top, min_records=min_records or 0)


def _chosen(scores: Scores, rank: str | None) -> str:
    """Return the address to rank by: as named, or of that name, or an effective swap rate, or the first."""
    for wanted in [rank] if rank is not None else ["effective_swap_rate"]:
        found = next((each for each in scores if each == wanted), None)
        found = found or next((each for each in scores if each.split("(")[0] == wanted), None)
        if found:
            return found
    if rank is not None:
        raise unknown_name("measure", rank, scores, where="what is scored")
    return next(iter(scores))


def _write(scores: Scores, compared: Compared, ranked: pl.DataFrame, files: dict[str, Path | None]) -> None:
    """Write the table of all areas and draw the charts that were asked for."""
    from quadrille.io.results import check_table, write_table

    out, ranking, flows = files.values()
    if out is not None:
        check_table(out)
    figures: list[tuple[Any, Path]] = []
    if ranking is not None or flows is not None:
        import quadrille as qd
        from quadrille import chart

        if ranking is not None:
            figures.append((chart.ranking(ranked), ranking))
        if flows is not None:
            data, other, swapped = compared
            figures.append((chart.flows(qd.area_flows(data, other, scores.levels[0], swapped=swapped)), flows))
        for figure, path in figures:
            chart.save(figure, path)
    if out is not None:
        write_table(scores.by(), out)


def _swapped_records(recipe: Recipe, data: Data, other: Data) -> NDArray[np.bool_]:
    """Tell which records the recipe swaps, after checking that it made the second file."""
    import numpy as np

    from quadrille.errors import MismatchError
    from quadrille.score.matching import changed_columns

    plan = recipe.plan(data)
    if changed_columns(plan.apply(data), other) != ():
        raise MismatchError(
            "The second file is not what the recipe makes of the first, row by row. "
            "Use the recipe that made it, on the same file, and do not shuffle the rows."
        )
    swapped = np.zeros(data.n, dtype=bool)
    swapped[plan.rows] = True
    return swapped
