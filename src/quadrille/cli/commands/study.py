"""`quadrille frontier`, `pick` and `report`: what a study found, which candidate is chosen and why, its report."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.cli.guard import tell
from quadrille.cli.inputs import (
    check_new,
    check_readers,
    load,
    names,
    open_study,
    published_tables,
    refuse_sources,
    release_command,
    source_of,
)
from quadrille.errors import InputError, OutputError, ParameterError, QuadrilleError

if TYPE_CHECKING:
    from quadrille.cli.study_show import Overview
    from quadrille.report.frontier_chart import FrontierPredictions
    from quadrille.score.published import TableChanges
    from quadrille.study.choose import Choice
    from quadrille.study.study import Study


MOST_RUNS = 7
"""So many runs fit a terminal; a table of more shows their spread instead."""
MOST_DESIGNS = 20


def frontier(
    study: opt.StudyFile,
    risk: opt.Risk = None,
    loss: opt.Loss = None,
    chart: opt.Chart = None,
    runs: Annotated[
        bool, opt.flag("--runs", "Compare the runs of one design instead, which differ by seed only.")
    ] = False,
    design: Annotated[int | None, opt.value("NUMBER", "The design of --runs, where there are several: --json.")] = None,
    file: Annotated[
        str | None,
        opt.value(
            "FILE",
            "The data of the study, to predict its frontier in the chart. [default: its job's]",
            "--data",
            panel=opt.ABOUT_THE_FILE,
        ),
    ] = None,
    codebook: opt.Codebook = None,
    weight: opt.Weight = None,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
) -> None:
    """Show the candidates that no other one dominates."""
    from quadrille.cli import study_show
    from quadrille.cli.study_show import choice_document, compared_document, designs_in_words, overview

    if chart is None and (file or codebook or weight):
        raise ParameterError("--data, --codebook and --weight serve the prediction in a chart: add --chart FILE.")
    if design is not None and not runs:
        raise ParameterError("--design names the design whose runs to compare: add --runs.")
    check_new(chart, overwrite=overwrite, source=str(study))
    with show.working("Reading"):
        known = open_study(study)
        refuse_sources(known, chart)
        if runs:
            _runs(known, design, chart, as_json=as_json)
            return
        seen = overview(known, risk, loss)
        rows = seen.rows()
        ahead = None if chart is None else _draw(seen, (file, codebook, weight), chart)
    if not as_json:
        study_show.show_frontier(seen, rows)
        if ahead is not None:
            show.note(f"\nDrew {chart}. {ahead.text}")
        return
    show.emit(
        {
            "study": str(study),
            "axes": seen.axes,
            "candidates": len(seen.points),
            "left_out": len(seen.study) - len(seen.points),
            "frontier": rows,
            "designs": [{"design": number, "words": words} for number, words in designs_in_words(known).items()],
            "knee": None if seen.knee is None else choice_document(seen.knee),
            **compared_document(seen),
            "warnings": list(seen.warnings),
            "chart": chart and str(chart),
            "predicted": None if ahead is None else ahead.as_dict(),
        }
    )


def _draw(seen: Overview, given: tuple[str | None, Path | None, str | None], path: Path) -> FrontierPredictions:
    """Draw the frontier of a study, with what theory predicts where data and recipes allow."""
    from quadrille import chart
    from quadrille.report.frontier_chart import FrontierPredictions, draw_frontier, predictions_of, rows_of, scored

    study = seen.study
    if not len(seen.points):
        raise InputError("No candidate has a score on both axes, so there is nothing to draw.")
    found = scored(study, seen.axes, rows_of(study))
    try:
        data = load(*source_of(study, *given, command="frontier STUDY --chart FILE --data FILE"))
        study.compare_with(data)
        ahead = predictions_of(study, data, seen.axes, found)
    except QuadrilleError as error:
        if given[0] is not None:
            raise
        ahead = FrontierPredictions(why_none=str(error).rstrip("."))
    chart.save(draw_frontier(study, seen.axes, found, seen.picked, ahead), path)
    return ahead


def _runs(study: Study, design: int | None, chart: Path | None, *, as_json: bool) -> None:
    """Lay the runs of a design side by side: measures down, runs across."""
    from quadrille.cli.study_show import designs_in_words
    from quadrille.present.scores import short_names

    designs = designs_in_words(study)
    if design not in designs and (design is not None or len(designs) > 1):
        first = "; ".join(f"{number}: {words}" for number, words in [*designs.items()][:MOST_DESIGNS])
        more = f"; and {len(designs) - MOST_DESIGNS:,} more, see --json" if len(designs) > MOST_DESIGNS else ""
        has = f"{len(designs):,} designs, and runs differ by seed only" if design is None else f"no design {design}"
        raise ParameterError(f"The study {str(study.path)!r} has {has}. Name one with --design N. {first}{more}.")
    table = study.runs(design)
    if chart is not None:
        from quadrille import chart as charts

        charts.save(charts.runs(table), chart)
    rows = table.to_dicts()
    if as_json:
        show.emit({"study": str(study.path), "runs": rows, "chart": chart and str(chart)})
        return
    names = [name for name in table.columns if name.startswith("run ")]
    show.title(f"{len(names):,} runs of one design")
    for row, name in zip(rows, short_names([row["measure"] for row in rows]), strict=True):
        row["measure"] = name
    if len(names) <= MOST_RUNS:
        lines = [[row["measure"], *(show.number(row[name]) for name in names)] for row in rows]
        show.grid(("measure", *names), lines, numbers=range(1, len(names) + 1))
    else:
        show.note("  Least, mean and largest value over the runs; --json lists all.\n")
        show.grid(
            ("measure", "least", "mean", "largest", "run with the least"), _spread(rows, names), numbers=range(1, 5)
        )
    if chart is not None:
        show.note(f"\nDrew {chart}.")


def _spread(rows: list[dict[str, Any]], names: list[str]) -> list[list[str]]:
    lines: list[list[str]] = []
    for row in rows:
        values = {name: abs(row[name]) for name in names if row[name] is not None}
        if not values:
            lines.append([row["measure"], *["undefined"] * 3, ""])
            continue
        best = min(values, key=values.__getitem__)
        mean = sum(values.values()) / len(values)
        numbers = [values[best], mean, max(values.values())]
        lines.append([row["measure"], *(show.number(number) for number in numbers), best.removeprefix("run ")])
    return lines


CRITERIA = (
    "gentle",
    "balanced",
    "safe",
    "knee",
    "least-loss",
    "least-risk",
    "linear",
    "ideal",
    "lexicographic",
    "dohrmann",
)


def pick(
    study: opt.StudyFile,
    criterion: Annotated[
        str | None,
        opt.value("WORD", f"{', '.join(CRITERIA)}. [default: what a limit implies; without one, show three]"),
    ] = None,
    max_risk: Annotated[float | None, opt.value("NUMBER", "Least loss with at most this risk.")] = None,
    max_loss: Annotated[float | None, opt.value("NUMBER", "Least risk with at most this loss.")] = None,
    trade: Annotated[float | None, opt.value("NUMBER", "Least risk + NUMBER * loss.")] = None,
    weights: Annotated[str | None, opt.value("A,B", "Nearest to the ideal point, risk weighted A and loss B.")] = None,
    ignore_hd: Annotated[
        bool,
        opt.flag("--ignore-hd", "With --criterion dohrmann: many cells are small, leave HD out.", panel=opt.RARELY),
    ] = False,
    risk: opt.Risk = None,
    loss: opt.Loss = None,
    tables: opt.Tables = None,
    note: Annotated[str | None, opt.value("TEXT", "Pin this note to the candidate.")] = None,
    save_recipe: opt.SaveRecipe = None,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
) -> None:
    """Choose a candidate and say why; without a limit show three to choose from."""
    from quadrille.cli import study_show
    from quadrille.cli.study_show import candidate_row, choice_document, overview
    from quadrille.io.atomic import new_file

    check_new(save_recipe, overwrite=overwrite, source=str(study))
    rule, pair = _checked(criterion, trade, weights)
    known = open_study(study)
    refuse_sources(known, save_recipe)
    if ignore_hd and rule != "dohrmann":
        raise ParameterError("--ignore-hd goes with --criterion dohrmann.")
    if (criterion, max_risk, max_loss, trade, weights) == (None,) * 5:
        needs: dict[str, object] = {"--tables": tables, "--note": note, "--save-recipe": save_recipe}
        _show_three(known, risk, loss, needs, as_json=as_json)
        return
    limits = {"max_risk": max_risk, "max_loss": max_loss}
    chosen = known.pick(rule, risk=risk, loss=loss, **limits, trade=trade, weights=pair, ignore_hd=ignore_hd)
    changes = _table_changes(known, chosen, tables)
    if save_recipe is not None:
        with new_file(save_recipe, (chosen.recipe.to_json() + "\n").encode(), private=True):
            pass
    if note is not None:
        known.note(chosen.candidate, note)
    _keep(known, chosen)
    row, warnings = candidate_row(known, chosen.candidate), overview(known, *chosen.axes).warnings
    if as_json:
        saved = save_recipe and str(save_recipe)
        written = {"note": row["note"], "save_recipe": saved, "warnings": list(warnings)}
        written["tables"] = changes and changes.as_dict()
        show.emit({"study": str(study), **choice_document(chosen), "scores": row["scores"], **written})
    else:
        study_show.show_choice(chosen, row, warnings, release_command(known), known.unswapped, changes)


def _show_three(study: Study, risk: str | None, loss: str | None, needs: dict[str, object], *, as_json: bool) -> None:
    """Show a gentle, a balanced and a safe candidate: which one is right is not the software's to say."""
    from quadrille.cli.study_show import compared_document, overview, show_recommended, show_warnings
    from quadrille.study.choose import nothing_scored

    for option, value in needs.items():
        if value is not None:
            raise ParameterError(
                f"{option} needs a choice: set a limit (--max-risk, --max-loss) or name a --criterion."
            )
    seen = overview(study, risk, loss)
    if not len(seen.points):
        raise QuadrilleError(nothing_scored(seen.axes))
    if as_json:
        told = "Nothing was picked: the limit is the agency's to set."
        document = {"study": str(study.path), "axes": seen.axes, **compared_document(seen), "told": told}
        show.emit({**document, "warnings": list(seen.warnings)})
    else:
        show_recommended(seen)
        show_warnings(seen.warnings)


def _table_changes(study: Study, chosen: Choice, tables: list[str] | None) -> TableChanges | None:
    """Return what the candidate does to the published tables, where any are named; that needs the data of the study.

    The choice itself needs no data: where they cannot be read and nobody named tables in this call, that is reported.
    """
    import quadrille as qd

    published = published_tables(tables, study)
    if not published:
        return None
    try:
        data = load(*source_of(study, None, None, None))
        study.require(data)
    except QuadrilleError as error:
        if tables:
            raise
        tell(f"the published tables are not shown, because the data of the study cannot be used: {error}")
        return None
    return qd.table_changes(data, chosen.recipe.plan(data), published)


def _keep(study: Study, chosen: Choice) -> None:
    """Keep the choice with the study; one that cannot be written to still has its choice shown."""
    try:
        study.keep_pick(chosen)
    except OutputError as error:
        tell(f"the choice is not kept with the study: {error}")


def _checked(
    criterion: str | None, trade: float | None, weights: str | None
) -> tuple[str | None, tuple[float, float] | None]:
    """Check the criterion and what goes with it."""
    if criterion is not None and criterion not in CRITERIA:
        raise ParameterError(f"--criterion must be one of {', '.join(CRITERIA)}. Got {criterion!r}.")
    for option, value, needs in (("--trade", trade, "linear"), ("--weights", weights, "ideal")):
        if value is not None and criterion not in (None, needs):
            raise ParameterError(f"{option} goes with --criterion {needs}, not with --criterion {criterion}.")
    if trade is not None and weights is not None:
        raise ParameterError("Give --trade or --weights, not both: they are two criteria.")
    if trade is not None and not (isfinite(trade) and trade >= 0):
        raise ParameterError(f"--trade must be a number of 0 or more. Got {trade}.")
    return None if criterion is None else criterion.replace("-", " "), _weights(weights)


def _weights(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        risk, loss = map(float, text.split(","))
        usable = isfinite(risk + loss) and min(risk, loss) >= 0 and max(risk, loss) > 0
    except ValueError:
        usable = False
        risk = loss = 0.0
    if not usable:
        raise ParameterError("--weights must be two numbers of 0 or more, not both 0, as in 2,1.")
    return risk, loss


def report(
    study: opt.StudyFile,
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="The data of the study. [default: what its job named]", show_default=False),
    ] = None,
    candidate: opt.Candidate = None,
    risk: opt.Risk = None,
    loss: opt.Loss = None,
    tables: opt.Tables = None,
    out: Annotated[Path, opt.value("FILE", "The HTML file to write.")] = Path("report.html"),
    readers: opt.Readers = False,
    var_stratum: opt.VarStratum = None,
    cluster: opt.Cluster = None,
    codebook: opt.Codebook = None,
    weight: opt.Weight = None,
    sampling: opt.Sampling = None,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
) -> None:
    """Write the report for the review board, as one HTML file."""
    from quadrille.report import write_readers, write_report
    from quadrille.report.build import check_suffix
    from quadrille.report.input import reported

    check_readers(readers, var_stratum, cluster)
    known, folder = open_study(study), out.with_name(f"{out.stem}-readers") if readers else None
    source = source_of(known, file, codebook, weight)
    check_new(out, overwrite=overwrite, source=source[0])
    refuse_sources(known, out, folder, replaces=overwrite)
    check_suffix(out)
    with show.working("Reading and writing the report"):
        data = load(*source, sampling=sampling)
        if folder is not None:  # first, because a folder can fail in more ways than a file whose place was checked
            known.compare_with(data)
            about = reported(known, candidate, (known.axis("risk", risk), known.axis("loss", loss)))
            write_readers(
                data, about.choice.recipe, folder, stratum=names(var_stratum), cluster=cluster, overwrite=overwrite
            )
        axes, published = {"risk": risk, "loss": loss}, published_tables(tables, known)
        path = write_report(known, data, out, candidate=candidate, tables=published, **axes, overwrite=overwrite)
    if as_json:
        show.emit({"study": str(study), "report": str(path), "readers": folder and str(folder)})
    else:
        also = "" if folder is None else f" and {folder}/"
        if candidate is None and known.picked is None:
            show.note("Nobody has picked a candidate yet: the report shows one as an example, and says so.")
        show.note(f"Wrote {path}{also}. It is confidential; open it in a browser, no network is needed.")
