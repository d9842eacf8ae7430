"""The command that lays the runs of one design side by side: measures down, runs across."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.cli.inputs import check_new

if TYPE_CHECKING:
    from quadrille.study.study import Study

MOST_RUNS = 7
"""So many runs fit a terminal; a table of more shows their spread instead."""


def runs(
    study: opt.StudyFile,
    design: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", help="The design, where there are several: frontier --json."),
    ] = None,
    chart: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the runs into this file: .png, .svg or .html.")
    ] = None,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
) -> None:
    """Compare the runs of one design, which differ by seed only."""
    from quadrille.cli.study_show import open_study, short_names

    check_new(chart, overwrite=overwrite, source=str(study))
    known = open_study(study)
    table = known.runs(design)
    if chart is not None:
        _draw(known, design, chart)
    rows = table.to_dicts()
    if as_json:
        show.emit({"study": str(study), "runs": rows, "chart": chart and str(chart)})
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


def _draw(study: Study, design: int | None, path: Path) -> None:
    from quadrille import chart

    chart.save(chart.runs(study.runs(design)), path)
