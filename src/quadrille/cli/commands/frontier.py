"""`quadrille frontier`: the candidates that no other one dominates; with --runs the draws of one design."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.cli.inputs import check_new, load, open_study, refuse_sources, source_of
from quadrille.errors import InputError, ParameterError, QuadrilleError

if TYPE_CHECKING:
    from quadrille.cli.study_show import Overview
    from quadrille.report.frontier_chart import FrontierPredictions
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
