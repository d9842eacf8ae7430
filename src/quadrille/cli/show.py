"""What commands print: results as tables that fit a terminal of 80 columns; progress on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from itertools import groupby
from math import isnan
from typing import TYPE_CHECKING, Any, cast

import typer

from quadrille.cli.inputs import addresses
from quadrille.present.numbers import count, counted, fixed, statistic
from quadrille.present.numbers import score as number
from quadrille.present.numbers import share as percent
from quadrille.present.render import console, facts, grid, note, render, shell, title

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from quadrille.attack.attack import Attack
    from quadrille.data import Data
    from quadrille.delta import PlanReport
    from quadrille.inspect import Profile
    from quadrille.recipe import Recipe
    from quadrille.release.judge import Verdict
    from quadrille.score.evaluator import Scores
    from quadrille.score.published import TableChanges
    from quadrille.simulation.effects import Analysis, Model, Stratum
    from quadrille.simulation.run import Simulation
    from quadrille.swap.private import Guarantee


__all__ = ["console", "count", "facts", "grid", "note", "number", "percent", "render", "shell", "statistic", "title"]

Progress = Callable[[int, int], None]


def emit(document: object) -> None:
    """Print one JSON document."""
    from quadrille.io.atomic import as_json

    typer.echo(as_json(document))


@contextmanager
def working(message: str) -> Generator[None]:
    """Show that something is being done, on a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    with console(stderr=True).status(message):
        yield


@contextmanager
def progress_bar(message: str) -> Generator[Progress | None]:
    """Yield a function that moves a progress bar, on a terminal; None in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(message, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def show_profile(file: str, found: Profile) -> None:
    """Print what `inspect` found."""
    from quadrille.present.profile import profile

    render(profile(found, file))


def show_account(account: PlanReport, one_way: PlanReport | None = None) -> None:
    """Print what a plan does: asked, paired, changed; of a designed swap also which cells it treats, at what price."""
    from quadrille.present.account import account as blocks
    from quadrille.present.account import price_of_keeping

    render([*blocks(account), *([] if one_way is None else price_of_keeping(account, one_way))])


def show_guarantee(found: Guarantee) -> None:
    """Print what a private swap promises, or why it promises nothing."""
    from quadrille.present.words import guarantee

    render(guarantee(found))


def show_scores(scores: Scores) -> None:
    """Print the scores, and below them what must be said about some."""
    from quadrille.present.scores import scores as blocks

    render(blocks(scores))


def show_published(found: TableChanges | None, recipe: Recipe | None = None) -> None:
    """Print what becomes of the published tables by a recipe, where any are named."""
    from quadrille.present.scores import published_tables as blocks

    render([] if found is None else blocks(found, loss=recipe and recipe.parameters().get("loss")))


def show_attack(found: Attack) -> None:
    """Print what an intruder learns, attack by attack."""
    from quadrille.present.scores import attack

    render(attack(found))


def show_verdict(found: Verdict) -> None:
    """Print what each policy says, and, of several, the verdict of all."""
    from quadrille.present.scores import verdict

    render(verdict(found))


def written(paths: Iterable[Path]) -> None:
    """Say which files were written."""
    listed = [str(path) for path in paths]
    if listed:
        note(f"\nWrote {', '.join(listed)}.")


def not_held(lines: Sequence[str]) -> None:
    """Print line by line what a file does not hold."""
    if lines:
        title("Not in the file")
        facts([("-", line) for line in lines])


Rows = Sequence[dict[str, Any]]

_HEAD = ("measure", "mean", "sd", "5 %", "95 %", "all areas")
_LEGEND = (
    "Mean, sd (divisor: areas - 1) and percentiles (linear between order statistics) are over the areas; "
    "'all areas' is the measure of the one table that has the areas as a variable too."
)


def show_spread(scores: Scores) -> None:
    """Print, for each level and variable, how the measures spread over the areas."""
    from quadrille.measure.difference import DIVERSITIES, NOT_MONOTONE

    rows: Rows = scores.spread().to_dicts()
    for level, of_level in groupby(rows, key=lambda row: row["level"]):
        for variable, of_variable in groupby(of_level, key=lambda row: row["variable"]):
            _block(level, variable, list(of_variable))
    note("\n" + _LEGEND)
    if any(row["measure"] in DIVERSITIES for row in rows):
        note(NOT_MONOTONE)


def _block(level: str, variable: str, rows: Rows) -> None:
    areas = max(row["areas"] + row["undefined"] for row in rows)
    what = f"{variable} by {level}" if variable else f"by {level}"
    title(f"{what}: {areas:,} {'area' if areas == 1 else 'areas'}")
    names = [row["measure"] for row in rows]
    unique = len(set(names)) == len(names)
    lines = [
        [
            row["measure" if unique else "address"],
            *(statistic(row[name], 3) for name in ("mean", "sd", "p5", "p95", "whole")),
        ]
        for row in rows
    ]
    grid(_HEAD, lines, numbers=range(1, len(_HEAD)), whole=(0,) if unique else ())
    notes = list(_notes(rows))
    if notes:
        note("")
        facts(notes)


def _notes(rows: Rows) -> Iterable[tuple[str, str]]:
    """Say each note once, with the measures it is about; that of the diversities is said below all tables."""
    from quadrille.score.by_area import NOT_LARGER

    found: dict[str, list[str]] = {}
    for row in rows:
        for text in filter(None, row["note"].split("; ")):
            if text != NOT_LARGER:
                found.setdefault(text, []).append(row["measure"])
    for text, measures in found.items():
        yield "all" if len(measures) == len(rows) > 1 else ", ".join(measures), text


def show_ranking(rows: Rows) -> None:
    """Print the areas most and least affected, level by level."""
    if not rows:
        note("\nNo area has a value to rank by.")
    for level, of_level in groupby(rows, key=lambda row: row["level"]):
        listed = list(of_level)
        how = "" if listed[0]["ranked_by"] == "value" else f", by {listed[0]['ranked_by']}"
        title(f"Areas of {level} most and least affected: {listed[0]['address']}{how}")
        lines: list[list[str]] = []
        for row in listed:
            if lines and row["affected"] == "least" and row["rank"] > int(lines[-1][0].replace(",", "")) + 1:
                lines.append(["..."] + [""] * 5)
            counts = (count(row[key]) for key in ("before", "after", "changed"))
            lines.append([count(row["rank"]), row["area"], *counts, statistic(row["value"])])
        grid(("rank", "area", "before", "after", "changed", "value"), lines, numbers=(0, 2, 3, 4, 5))
        equal, shown = listed[-1]["equal"], sum(row["value"] == listed[-1]["value"] for row in listed)
        if equal > shown:
            note(f"\n  {equal:,} areas have the lowest value; of equals, the smaller area ranks first.")


def measured(recipe: Recipe, given: Sequence[str] | None, data: Data) -> Sequence[str]:
    """Return the measures to score; without any given, a designed swap is judged by its tables, too."""
    from quadrille.study.designed import default_measures
    from quadrille.swap.designed.pairs import DesignedPairs

    wanted = addresses(given, data, recipe)
    if given or not isinstance(recipe, DesignedPairs):
        return wanted
    return list(dict.fromkeys((*default_measures(recipe.n, recipe.tables), *wanted)))


MOST_STRATA = 24
_SIGNS = (
    "The last three are differences of diversity, original minus perturbed, and take either sign. Where areas differ "
    "in composition, swapping makes them more alike and these fall below 0: larger does not mean more perturbed."
)


def show_simulation(done: Simulation) -> None:
    """Print what was simulated, then spread, correlations and effects."""
    found, design = done.analysis, done.design
    title(design.title or design.place)
    zero, redrawn = (int(found.values[:, :, i].sum()) for i in (-2, -1))
    lines = [
        ("settings", f"{len(design.trials):,}, each with {counted(design.replicates, 'replicate')}"),
        ("factors", "; ".join(f"{f.name}: {', '.join(f.levels)}" for f in design.factors)),
    ]
    if zero:
        lines.append(("zero cells", f"{zero:,} empty cells are filled; chi_square and deviance leave them out"))
    if redrawn:
        lines.append(("drawn again", f"{redrawn:,} pairs"))
    facts(lines)
    _spread(found)
    _matrix(found)
    _strata(found.strata)
    _effects(found)


def _spread(found: Analysis) -> None:
    title("Metrics over all settings")
    rows = [row for row in found.summary if row["factor"] == "all"]
    names = ("mean", "sd", "p5", "median", "p95")
    lines = [[str(row["metric"]), *(statistic(cast("float | None", row[name])) for name in names)] for row in rows]
    grid(("metric", *names), lines, numbers=range(1, 6))
    note("")
    facts([("", _SIGNS)])


def _matrix(found: Analysis) -> None:
    title("Spearman correlations, all settings pooled")
    names = list(found.models)
    lines = [
        [f"{i + 1} {name}", *(fixed(float(found.pooled[i, j]), 2) for j in range(len(names)))]
        for i, name in enumerate(names)
    ]
    grid(("metric", *(str(i + 1) for i in range(len(names)))), lines, numbers=range(1, 7))


def _strata(strata: Sequence[Stratum]) -> None:
    if len(strata) < 2:
        return
    title("Spearman correlations by stratum, least to largest")
    lines = [
        [", ".join(each.levels.values()), *(_range(each.range(kind)) for kind in ("within A", "across", "within B"))]
        for each in strata[:MOST_STRATA]
    ]
    head = (", ".join(strata[0].levels), "within A", "A with B", "within B")
    grid(head, lines, numbers=range(1, 4), whole=range(1, 4))
    more = len(strata) - len(lines)
    families = "A: chi_square, effective_swap_rate, deviance. B: gini_, shannon_ and renyi_difference."
    note("")
    facts([("", families + (f" {more:,} more strata are in strata.csv." if more else ""))])


def _effects(found: Analysis) -> None:
    models = [model for model in found.models.values() if model]
    title("Main effects, stepwise selection (enter .10, stay .05)")
    if not models:
        note("  No metric varies.")
        return
    for start in range(0, len(models), 3):
        _effects_of(found, models[start : start + 3])
        note("")
    baseline = ", ".join(f"{f.name} {f.baseline}" for f in found.factors if len(f.levels) > 1)
    legend = "n.s.: not selected. R2 of settings: of a model with an effect of its own for every setting."
    facts([("", f"Baseline: {baseline or 'none'}. {legend}")])


def _effects_of(found: Analysis, models: Sequence[Model]) -> None:
    """Print the effects on some metrics, as many as have room."""
    lines = [["intercept", *(_effect(model, "intercept", "") for model in models)]]
    lines += [
        [f"{factor.name}: {level}", *(_effect(model, factor.name, level) for model in models)]
        for factor in found.factors
        for level in factor.levels
        if level != factor.baseline
    ]
    lines.append(["R2", *(statistic(model.r2) for model in models)])
    lines.append(["R2 of settings", *(statistic(model.ceiling) for model in models)])
    lines.append(["RMSE", *(statistic(model.rmse) for model in models)])
    numbers = range(1, len(models) + 1)
    grid(("", *(model.metric.replace("_", "\n", 1) for model in models)), lines, numbers=numbers, whole=numbers)


def _effect(model: Model, factor: str, level: str) -> str:
    value = model.effect(factor, level)
    return "n.s." if value is None else statistic(value)


def _range(ends: tuple[float, float]) -> str:
    return "-" if isnan(ends[0]) else f"{fixed(ends[0], 2)} to {fixed(ends[1], 2)}"
