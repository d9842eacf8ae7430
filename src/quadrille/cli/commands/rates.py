"""The command that tries one design at several rates: what more swapping does to each measure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.cli.inputs import addresses, check_new, load, names, seed_of
from quadrille.cli.show import number_of_any_size as number
from quadrille.errors import ParameterError, bad_parameter

if TYPE_CHECKING:
    from quadrille.data import Data
    from quadrille.study.grid import Grid

MOST_RATES = 5
"""So many rates fit a terminal side by side."""


def rates(
    file: opt.File,
    swap: opt.Swap = None,
    rates: Annotated[
        str, typer.Option(metavar="SHARES", help="Shares of the records that take part: 0.01,0.03,0.05.")
    ] = "0.01,0.02,0.05,0.1",
    seeds: Annotated[int, typer.Option(metavar="NUMBER", help="Runs at each rate.")] = 5,
    seed: opt.Seed = None,
    same: opt.Same = None,
    different: opt.Different = None,
    differ: opt.Differ = None,
    by: Annotated[
        str | None, typer.Option(metavar="LEVEL", help="The six differences of LEVEL by each key variable.")
    ] = None,
    measures: opt.Measures = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write every run and measure to this .csv or .parquet.")
    ] = None,
    chart: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the measures against the rate: .png, .svg or .html.")
    ] = None,
    overwrite: opt.Overwrite = False,
    codebook: opt.Codebook = None,
    weight: opt.Weight = None,
    geography: opt.Geography = None,
    as_json: opt.Json = False,
) -> None:
    """Try random swaps at several rates and compare the measures."""
    import quadrille as qd
    from quadrille.io.results import check_table, write_table

    check_new(out, chart, overwrite=overwrite, source=file)
    if out is not None:
        check_table(out)
    constraints: dict[str, Any] = {"same": [names(same)], "different": [names(different)]}
    constraints |= {"differ": differ} if differ else {}
    recipes = _recipes(swap, rates, seeds, seed, constraints)
    data = load(file, codebook, weight, geography)
    wanted = _wanted(data, by, measures, names(swap))
    with show.progress_bar("Swapping and scoring") as progress:
        scores = qd.score_recipes(data, recipes, wanted, progress=progress)
    if chart is not None:
        from quadrille import chart as charts

        charts.save(charts.metrics_by_rate(scores.runs), chart)
    if out is not None:
        write_table(scores.runs, out)
    found = [
        {"measure": row["measure"], "rate": row["rate"], "runs": row["draws"], "mean": row["mean"], "sd": row["sd"]}
        for row in scores.frame().to_dicts()
    ]
    if as_json:
        show.emit({"file": file, "runs": seeds, "means": found, "out": out and str(out), "chart": chart and str(chart)})
        return
    _show(found, seeds)
    show.written(path for path in (out, chart) if path is not None)


def _recipes(swap: Sequence[str] | None, text: str, seeds: int, seed: str | None, constraints: dict[str, Any]) -> Grid:
    import quadrille as qd

    if not swap:
        raise ParameterError("Name the variables to swap with --swap, such as the finest level of geography.")
    try:
        shares = sorted({float(part) for part in text.split(",")})
    except ValueError:
        raise bad_parameter("the command", "--rates", "numbers such as 0.01,0.03", text) from None
    first = None if seed is None else seed_of(seed)
    if isinstance(first, str):
        raise ParameterError("--seed of several runs must be a whole number. Leave it out for secret seeds.")
    if seeds < 1:
        raise bad_parameter("the command", "--seeds", "a whole number of 1 or more", seeds)
    drawn: dict[str, Any] = {"seeds": seeds} if first is None else {"seed": range(first, first + seeds)}
    return qd.grid(qd.RandomSwap, swap=[names(swap)], rate=shares, **constraints, **drawn)


def _wanted(data: Data, by: str | None, measures: Sequence[str] | None, swapped: Sequence[str]) -> list[str]:
    """Return the measures; what is swapped travels with the area and is not measured against it."""
    from quadrille.score.by_area import joint_measures

    if by is None and not measures:
        raise ParameterError("Say what to measure: --by LEVEL for the six differences between areas, or --measures.")
    wanted = list(addresses(measures, data)) if measures else []
    return list(dict.fromkeys(wanted + (joint_measures(data, by, swapped) if by is not None else [])))


def _show(found: Sequence[dict[str, Any]], seeds: int) -> None:
    from quadrille.measure.difference import DIVERSITIES, NOT_MONOTONE

    every = sorted({row["rate"] for row in found})
    value = {(row["measure"], row["rate"]): row["mean"] for row in found}
    measures = list(dict.fromkeys(row["measure"] for row in found))
    show.title(f"Means over {seeds:,} {'run' if seeds == 1 else 'runs'} at each rate")
    for start in range(0, len(every), MOST_RATES):
        some = every[start : start + MOST_RATES]
        lines = [[name, *(number(value.get((name, rate)), 3) for rate in some)] for name in measures]
        show.grid(("measure", *(show.percent(rate) for rate in some)), lines, numbers=range(1, len(some) + 1))
    if any(name.split("(")[0] in DIVERSITIES for name in measures):
        show.note("\n" + NOT_MONOTONE)
