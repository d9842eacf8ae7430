"""`quadrille score` and `quadrille measures`: what a swap did to a file, and every measure with its definition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.cli.inputs import addresses, check_new, names, published_tables, second
from quadrille.cli.options import read_recipe, value_of
from quadrille.cli.show import show_ranking, show_spread, statistic
from quadrille.errors import ParameterError, bad_parameter, unknown_name

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from quadrille.data import Data
    from quadrille.recipe import Recipe
    from quadrille.score.evaluator import Scores

    Compared = tuple[Data, Data, NDArray[np.bool_] | None]

TOP = 10
MOST_RECIPES = 5
"""How many recipes fit a terminal side by side."""


def score(
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="The original file, or dataset:NAME.")],
    after: Annotated[
        str | None,
        typer.Argument(metavar="AFTER", help="The file to compare; else recipes are drawn.", show_default=False),
    ] = None,
    recipe: Annotated[
        list[Path] | None,
        opt.value("FILE", "Of AFTER: the recipe that made it, rows in order. Without AFTER: recipes to compare."),
    ] = None,
    draws: Annotated[
        int | None,
        opt.value("NUMBER", "How often each recipe is drawn, with seeds that follow. [default: once, its own seed]"),
    ] = None,
    vary: Annotated[
        str | None,
        opt.value("NAME=VALUES", "Compare values of a parameter of the recipe: rate=0.01,0.05."),
    ] = None,
    without: Annotated[
        str | None,
        opt.value("NAME", "Compare the recipe with itself without a parameter: rules."),
    ] = None,
    measures: opt.Measures = None,
    tables: opt.Tables = None,
    where: opt.Where = None,
    by: Annotated[
        list[str] | None,
        opt.value("LEVELS", "By area: county,tract or crosses such as county*sex."),
    ] = None,
    rank: Annotated[
        str | None,
        opt.value("MEASURE", "By area: the measure to rank by. [default: effective_swap_rate]", panel=opt.RARELY),
    ] = None,
    top: Annotated[
        int | None,
        opt.value("NUMBER", f"By area: how many most and least affected. [default: {TOP}]", panel=opt.RARELY),
    ] = None,
    min_records: Annotated[
        int | None,
        opt.value("NUMBER", "By area: the least records of an area that is ranked.", panel=opt.RARELY),
    ] = None,
    out: Annotated[Path | None, opt.value("FILE", "Write every area, or every draw, to this .csv or .parquet.")] = None,
    chart: opt.Chart = None,
    chart_flows: Annotated[
        Path | None,
        opt.value("FILE", "By area: draw the flows between areas.", panel=opt.RARELY),
    ] = None,
    codebook_after: opt.CodebookAfter = None,
    about: opt.FileOptions = opt.NOTHING_SAID,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
) -> None:
    """Score a second file, or recipes drawn several times, against the original."""
    areas = {"rank": rank, "top": top, "min-records": min_records, "chart-flows": chart_flows}
    several = {"draws": draws, "vary": vary, "without": without}
    files = {"out": out, "chart": chart, "chart_flows": chart_flows}
    for source in filter(None, (before, after)):
        check_new(*files.values(), overwrite=overwrite, source=source)
    if draws is not None and draws < 1:
        raise ParameterError(f"--draws must be a whole number of 1 or more. Got {draws}.")
    if after is None:
        _refuse(
            {**areas, "where": where, "tables": tables or None, "codebook-after": codebook_after},
            "compares two files. Name the second one.",
        )
        data = about.load(before)
        _score_recipes(data, _compared(recipe or (), vary, without), measures, by, draws, files, as_json=as_json)
        return
    _refuse(several, "is about recipes that are drawn. Leave AFTER out.")
    if not by:
        _refuse(
            {**areas, "out": out, "chart": chart},
            "is about areas. Name their level with --by, as in --by county,tract.",
        )
    if len(recipe or ()) > 1:
        raise ParameterError("One recipe made the second file. Name that one.")
    with show.working("Reading and scoring"):
        data = about.load(before)
        other = second(after, data, codebook_after, about)
        swapped = _swapped_records(read_recipe(recipe[0]), data, other) if recipe else None
        ranked = (rank, top, min_records)
        _score_file((data, other, swapped), measures, tables, where, by, ranked, files, as_json=as_json)


def _refuse(options: Mapping[str, object], why: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise ParameterError(f"--{name} {why}")


def _score_file(
    compared: Compared,
    measures: Sequence[str] | None,
    tables: Sequence[str] | None,
    where: str | None,
    by: Sequence[str] | None,
    ranked: tuple[str | None, int | None, int | None],
    files: Mapping[str, Path | None],
    *,
    as_json: bool,
) -> None:
    import quadrille as qd

    data, other, swapped = compared
    levels = names(by) if by else None
    wanted = addresses(measures, data) if levels is None else _by_area(measures, data, levels)
    published = published_tables(tables)
    changes = qd.table_changes(data, other, published) if published else None
    scores = qd.score(data, other, wanted, swapped=swapped, where=where, by=levels)
    ranking = _ranking(scores, *ranked) if levels else None
    if ranking is not None:
        _write(scores, compared, ranking, files)
    written = {name: path and str(path) for name, path in files.items()}
    if as_json:
        more: dict[str, object] = (
            {} if ranking is None else {"spread": scores.spread().to_dicts(), "ranking": ranking.to_dicts(), **written}
        )
        show.emit({"scores": scores.as_dict(), "tables": changes and changes.as_dict(), **more})
        return
    if ranking is not None:
        show_spread(scores)
        show_ranking(ranking.to_dicts())
        show.written(path for path in files.values() if path is not None)
    else:
        show.show_scores(scores)
    show.show_published(changes)


def _compared(recipes: Sequence[Path], vary: str | None, without: str | None) -> dict[str, Recipe]:
    """Return the recipes to compare, by name: those of the files, or one of them changed in a parameter."""
    if not recipes:
        raise ParameterError("Name a second file, or recipes to be drawn with --recipe FILE.")
    read = [read_recipe(path) for path in recipes]
    if vary is None and without is None:
        return {str(path): recipe for path, recipe in zip(recipes, read, strict=True)}
    if len(read) > 1 or (vary is not None and without is not None):
        raise ParameterError(
            "--vary or --without changes one parameter of one recipe. Give one --recipe and one of them."
        )
    (recipe,) = read
    if vary is None:
        name = _parameter(recipe, str(without), "--without")
        if recipe.parameters()[name] == recipe.params()[name].default:
            raise ParameterError(f"The recipe has no {without!r} to do without. Name a parameter that it gives.")
        free = recipe.changed(**{name: recipe.params()[name].default})
        return {f"without {without}": free, f"with {without}": recipe}
    from quadrille.expressions import split_outside_quotes

    option, _, values = vary.partition("=")
    name = _parameter(recipe, option, "--vary")
    param = recipe.params()[name]
    listed = [part for part in split_outside_quotes(values, ",") if part]
    if not listed:
        raise bad_parameter("the command", "--vary", "a parameter and its values, like rate=0.01,0.05", vary)
    return {
        f"{option} {part}": recipe.changed(**{name: value_of(param, [part] if param.repeated else part)})
        for part in listed
    }


def _parameter(recipe: Recipe, option: str, given_by: str) -> str:
    """Return the name of a parameter that an option names, of a method that has it."""
    params = {param.option: name for name, param in recipe.params().items()} | {name: name for name in recipe.params()}
    if option not in params:
        recipe.refuse([option])
        raise unknown_name("parameter", option, params, where=f"{recipe.method_name} ({given_by})")
    if recipe.params()[params[option]].required and given_by == "--without":
        raise ParameterError(f"{recipe.method_name} cannot do without '{option}'.")
    return params[option]


def _score_recipes(
    data: Data,
    recipes: Mapping[str, Recipe],
    measures: Sequence[str] | None,
    by: Sequence[str] | None,
    draws: int | None,
    files: Mapping[str, Path | None],
    *,
    as_json: bool,
) -> None:
    """Draw recipes several times each, and compare the means of the measures."""
    import quadrille as qd
    from quadrille.io.atomic import check_table, write_table

    out, chart, _ = files.values()
    if out is not None:
        check_table(out)
    wanted = ["pairs", *_wanted(data, measures, names(by), recipes.values())]
    with show.progress_bar("Swapping and scoring") as progress:
        scores = qd.score_recipes(data, recipes, wanted, draws=draws, progress=progress)
    if chart is not None:
        from quadrille import chart as charts

        charts.save(charts.metrics_by_rate(scores.runs.filter(scores.runs["measure"] != "pairs")), chart)
    if out is not None:
        write_table(scores.runs, out)
    rows = scores.frame().to_dicts()
    rules = {name: _rule_facts(recipe, data) for name, recipe in recipes.items()}
    if as_json:
        listed = {name: facts for name, facts in rules.items() if facts}
        notes = dict(scores.notes())
        written = {"out": out and str(out), "chart": chart and str(chart)}
        show.emit({"draws": draws or 1, "measures": rows, "notes": notes, "rules": listed, **written})
        return
    show_recipes(rows, rules, scores.notes())
    show.written(path for path in (out, chart) if path is not None)


def _rule_facts(recipe: Recipe, data: Data) -> dict[str, object]:
    """Return what the rules of a recipe exclude."""
    details = recipe.plan(data).details if recipe.parameters().get("rules") else None
    kept = ("rules", "pairs_excluded", "pairs_without_rules")
    return {} if details is None else {name: details.facts[name] for name in kept if name in details.facts}


def _wanted(
    data: Data, measures: Sequence[str] | None, levels: Sequence[str], recipes: Iterable[Recipe]
) -> Sequence[str]:
    """Return the measures; what is swapped travels with the area and is not measured against it."""
    from quadrille.score.by_area import joint_measures

    if not levels:
        return addresses(measures, data)
    swapped = list(dict.fromkeys(name for recipe in recipes for name in recipe.moved(recipe.parameters())))
    by_level = [address for level in levels for address in joint_measures(data, level, swapped)]
    return list(dict.fromkeys([*(addresses(measures, data) if measures else []), *by_level]))


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


def _write(scores: Scores, compared: Compared, ranked: pl.DataFrame, files: Mapping[str, Path | None]) -> None:
    """Write the table of all areas and draw the charts that were asked for."""
    from quadrille.io.atomic import check_table, write_table

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


def show_recipes(
    rows: Sequence[Mapping[str, Any]],
    rules: Mapping[str, Mapping[str, object]],
    notes: Sequence[tuple[str, str]],
) -> None:
    """Print the means of several recipes side by side, and how they differ from the first one."""
    from quadrille.measure.difference import DIVERSITIES, NOT_MONOTONE
    from quadrille.present.account import rule_facts

    for name, facts in rules.items():
        if facts:
            show.title(f"What the rules exclude, {name}")
            show.facts(rule_facts(facts))
    recipes = list(dict.fromkeys(row["recipe"] for row in rows))
    draws = max(row["draws"] for row in rows)
    cells = {(row["measure"], row["recipe"]): row for row in rows}
    measures = list(dict.fromkeys(row["measure"] for row in rows))
    show.title(f"Means over {draws:,} {'draw' if draws == 1 else 'draws'} of each recipe")
    for start in range(0, len(recipes), MOST_RECIPES):
        some = recipes[start : start + MOST_RECIPES]
        written = {name: show.count if name == "pairs" else show.number for name in measures}
        lines = [[name, *(written[name](cells[name, each]["mean"]) for each in some)] for name in measures]
        show.grid(("measure", *some), lines, numbers=range(1, len(some) + 1))
    if notes:
        show.note("")
        show.facts(notes)
    if len(recipes) == 2 and draws > 1:
        named = ("difference", "difference_error")
        lines = [
            [row["measure"], row["better"], *(statistic(row[key]) for key in named)]
            for row in (cells[name, recipes[1]] for name in measures if name != "pairs")
        ]
        show.title(f"{recipes[1]}, minus {recipes[0]}")
        show.grid(("measure", "better", "difference", "its s.e."), lines, numbers=(2, 3))
        show.note("\nA difference within two of its standard errors (s.e.) may be chance: more --draws tell.")
    if any(name.split("(")[0] in DIVERSITIES for name in measures):
        show.note("\n" + NOT_MONOTONE)


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
