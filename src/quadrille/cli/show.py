"""Results as tables that fit a terminal of 80 columns; progress on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from math import isnan
from typing import TYPE_CHECKING, Any, cast

import typer

from quadrille.cli.inputs import addresses
from quadrille.text import large, shown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import Console

    from quadrille.data import Data
    from quadrille.delta import PlanReport
    from quadrille.inspect import ColumnProfile, Profile
    from quadrille.recipe import Recipe
    from quadrille.score.evaluator import Scores
    from quadrille.simulation.effects import Analysis, Model, Stratum
    from quadrille.simulation.run import Simulation


Progress = Callable[[int, int], None]
MOST_LABELS = 30
MOST_NAMES = 20


def emit(document: object) -> None:
    """Print one JSON document."""
    from quadrille.io.results import as_json

    typer.echo(as_json(document))


def console(*, stderr: bool = False) -> Console:
    """Return a console that prints names as they are: no markup, no emoji, no colouring of numbers."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)


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


def title(text: str) -> None:
    """Print a heading."""
    console().print(f"\n{shown(text)}", style="bold")


def note(text: str) -> None:
    """Print a paragraph."""
    console().print(shown(text, keep="\n"))


def facts(pairs: Iterable[tuple[str, str]]) -> None:
    """Print names and what they stand for, long texts wrapped beside their name."""
    from textwrap import fill

    from rich.text import Text

    screen, listed = console(), [(shown(name), shown(value, keep="\n")) for name, value in pairs]
    indent = 4 + max(len(name) for name, _ in listed)
    for name, value in listed:
        start = f"  {name}".ljust(indent)
        wrapped = fill(value, max(screen.width, indent + 20), initial_indent=start, subsequent_indent=" " * indent)
        line = Text(wrapped or start)
        line.stylize("dim", 0, indent)
        screen.print(line, soft_wrap=True)


def shell(line: str) -> None:
    """Print a command to be copied: on one line, however long."""
    console().print(shown(line), soft_wrap=True)


def grid(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Iterable[int] = (), whole: Iterable[int] = ()
) -> None:
    """Print a table; the columns listed in `numbers` are aligned to the right, those in `whole` are never broken."""
    from rich import box
    from rich.padding import Padding
    from rich.table import Table

    right, unbroken = set(numbers), set(whole)
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False, padding=(0, 1))
    for position, name in enumerate(head):
        justify = "right" if position in right else "left"
        table.add_column(shown(name), justify=justify, overflow="fold", no_wrap=position in unbroken)
    for row in rows:
        table.add_row(*map(shown, row))
    console().print(Padding(table, (0, 0, 0, 2), expand=False))


def show_profile(file: str, found: Profile) -> None:
    """Print what `inspect` found."""
    title(file)
    weight = "none"
    if found.weight is not None:
        exactness = "exact" if found.weight.exact else "rounded"
        weight = f"{found.weight.column}, total {found.weight.total:,.10g} ({exactness})"
    lines = [("records", f"{found.records:,}"), ("weight", weight), ("key variables", _names(found.keys))]
    if found.geography:
        lines.append(("geography", "; ".join(map(str, found.geography))))
    if found.cells is not None:
        cells = found.cells
        lines += [
            ("cells", f"{large(cells.possible)} possible, {cells.occupied:,} occupied"),
            ("small cells", f"{cells.ones:,} of one record, {cells.twos:,} of two"),
        ]
    facts(lines)
    note("")
    head = ("column", "kind", "role", "categories", "missing")
    grid(head, [_profile_row(column) for column in found.columns], numbers=(3, 4))
    listed = [(column.name, _labels(column.labels)) for column in found.columns if column.labels is not None]
    if listed:
        title("Categories")
        facts(listed)
    for hint in found.hints:
        note(f"\nHint: {hint}")


def _profile_row(column: ColumnProfile) -> tuple[str, ...]:
    role = column.role or ("key" if column.key else "")
    role += "" if column.level is None else f" {column.level}"
    categories = "" if column.categories is None else f"{column.categories:,}"
    return column.name, column.kind, role, categories, percent(column.missing)


def _names(names: tuple[str, ...]) -> str:
    """Return names in a row; of very many the first two, the last and the number, as a table below has all."""
    if len(names) > MOST_NAMES:
        return f"{names[0]}, {names[1]}, ... {names[-1]} ({len(names):,})"
    return ", ".join(names) or "none"


def _labels(labels: tuple[str, ...]) -> str:
    more = f" and {len(labels) - MOST_LABELS:,} more" if len(labels) > MOST_LABELS else ""
    return ", ".join(labels[:MOST_LABELS]) + more


def show_account(account: PlanReport) -> None:
    """Print what a plan does: asked, paired, changed."""
    from quadrille.expressions import rules_told

    title("What is swapped")
    facts(
        [
            ("pairs", _pairs(account)),
            ("records", f"{account.records:,} of {account.n:,} take part, {account.changed:,} change"),
            ("false swaps", f"{account.false_swaps:,} (nothing changes)"),
            ("compensating", f"{account.compensating:,} (records change, the full table does not show it)"),
            *_targets(account.details),
            *rules_told(account.details),
        ]
    )
    note("")
    rows = [
        (
            m.variable,
            _count(m.pairs),
            f"{m.records:,}",
            f"{m.changed:,}",
            percent(m.rate_paired),
            percent(m.rate_changed),
        )
        for m in account.variables
    ]
    grid(("variable", "pairs", "records", "changed", "share paired", "share changed"), rows, numbers=range(1, 6))

    show_diagnosis(account)


def _pairs(account: PlanReport) -> str:
    """Say how many pairs were asked for and drawn; a designed swap may be asked for none in particular."""
    free = account.asked is None and "camouflaged" in account.details
    return f"{_count(account.pairs)} drawn" if free else f"{_count(account.asked)} asked, {_count(account.pairs)} drawn"


def _targets(details: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Tell of methods that draw targets how many there are, and why some have no partner."""
    if "targets" not in details:
        return []
    drawn = f"{details['targets']:,} drawn, {details['certain']:,} of them certain by size"
    alone = f"{details['without_partner']:,} targets, left as they were"
    reasons = [f"{reason}: {count:,}" for reason, count in details["reasons"].items()]
    return [("targets", drawn), ("no partner", "; ".join((alone, *reasons)))]


def show_scores(scores: Scores) -> None:
    """Print the scores, and below them what must be said about some."""
    title("Scores")
    results = scores.results.items()
    rows = [(address, kind.side, kind.direction, number(score.value)) for address, (kind, score) in results]
    grid(("measure", "side", "better", "value"), rows, numbers=(3,))
    notes = [(address, score.note) for address, (_, score) in results if score.note]
    if notes:
        note("")
        facts(notes)
    from quadrille.measure.difference import DIVERSITIES, NOT_MONOTONE

    if any(kind.name in DIVERSITIES for _, (kind, _) in results):
        note("\n" + NOT_MONOTONE)


def number(value: float | None) -> str:
    """Format a score."""
    if value is None:
        return "undefined"
    return "infinite" if value in (float("inf"), float("-inf")) else f"{value:.6f}"


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


def percent(share: float) -> str:
    """Format a share."""
    return f"{share:.2%}".replace("%", " %") if share else "0 %"


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


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
            *(number_of_any_size(row[name], 3) for name in ("mean", "sd", "p5", "p95", "whole")),
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
            counts = (f"{row[key]:,}" for key in ("before", "after", "changed"))
            lines.append([f"{row['rank']:,}", row["area"], *counts, number_of_any_size(row["value"])])
        grid(("rank", "area", "before", "after", "changed", "value"), lines, numbers=(0, 2, 3, 4, 5))
        equal, shown = listed[-1]["equal"], sum(row["value"] == listed[-1]["value"] for row in listed)
        if equal > shown:
            note(f"\n  {equal:,} areas have the lowest value; of equals, the smaller area ranks first.")


def number_of_any_size(value: float | None, digits: int = 4) -> str:
    """Format a value of any size with some digits.

    >>> from quadrille.cli.show import number_of_any_size as number
    >>> number(1234.5), number(-0.00012345), number(float("inf"))
    ('1,234.5', '-0.0001234', 'infinite')
    """
    if value is None:
        return "-"
    if value in (float("inf"), float("-inf")):
        return "infinite"
    return f"{value:,.1f}" if abs(value) >= 10 ** min(digits, 3) else f"{value:.{digits}g}"


def measured(recipe: Recipe, given: Sequence[str] | None, data: Data) -> Sequence[str]:
    """Return the measures to score; without any given, a designed swap is judged by its tables, too."""
    from quadrille.study.designed import default_measures
    from quadrille.swap.designed import DesignedSwap

    wanted = addresses(given, data)
    if given or not isinstance(recipe, DesignedSwap):
        return wanted
    return list(dict.fromkeys((*default_measures(recipe.n, recipe.tables), *wanted)))


def show_diagnosis(account: PlanReport) -> None:
    """Print which cells were treated and how, which were left and why, and who is still exposed."""
    from quadrille.present.designed import NEAR_HEAD, SIZE_HEAD, diagnosis_of

    found = diagnosis_of(account)
    if found is None:
        return
    title("Small cells")
    left = [("left", f"{count} cells: {reason}") for reason, count in found.left]
    facts([("treated", found.treated), *left, ("exposed", found.exposed)])
    note("")
    grid(SIZE_HEAD, found.by_size, numbers=range(len(SIZE_HEAD)), whole=range(5))
    note("")
    facts([("just large", found.near)])
    note("")
    grid(NEAR_HEAD, found.just_large, numbers=range(len(NEAR_HEAD)))
    note(f"\nBeware: {found.n_rule}")


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
        ("settings", f"{len(design.trials):,}, each with {_counted(design.replicates, 'replicate')}"),
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
    lines = [[str(row["metric"]), *(_number(row[name]) for name in names)] for row in rows]
    grid(("metric", *names), lines, numbers=range(1, 6))
    note("")
    facts([("", _SIGNS)])


def _matrix(found: Analysis) -> None:
    title("Spearman correlations, all settings pooled")
    names = list(found.models)
    lines = [
        [f"{i + 1} {name}", *(_correlation(float(found.pooled[i, j])) for j in range(len(names)))]
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
    told = "A: chi_square, effective_swap_rate, deviance. B: gini_, shannon_ and renyi_difference."
    note("")
    facts([("", told + (f" {more:,} more strata are in strata.csv." if more else ""))])


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
    told = "n.s.: not selected. R2 of settings: of a model with an effect of its own for every setting."
    facts([("", f"Baseline: {baseline or 'none'}. {told}")])


def _effects_of(found: Analysis, models: Sequence[Model]) -> None:
    """Print the effects on some metrics, as many as have room."""
    lines = [["intercept", *(_effect(model, "intercept", "") for model in models)]]
    lines += [
        [f"{factor.name}: {level}", *(_effect(model, factor.name, level) for model in models)]
        for factor in found.factors
        for level in factor.levels
        if level != factor.baseline
    ]
    lines.append(["R2", *(f"{model.r2:.4f}" for model in models)])
    lines.append(["R2 of settings", *(f"{model.ceiling:.4f}" for model in models)])
    lines.append(["RMSE", *("-" if isnan(model.rmse) else _number(model.rmse) for model in models)])
    numbers = range(1, len(models) + 1)
    grid(("", *(model.metric.replace("_", "\n", 1) for model in models)), lines, numbers=numbers, whole=numbers)


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _effect(model: Model, factor: str, level: str) -> str:
    value = model.effect(factor, level)
    return "n.s." if value is None else _number(value)


def _number(value: object) -> str:
    if value is None:
        return "-"
    number = float(cast("Any", value))
    return f"{number:.3g}" if abs(number) < 1e-4 or abs(number) >= 1e6 else f"{number:.{3 if abs(number) >= 1 else 5}f}"


def _correlation(value: float) -> str:
    return "-" if isnan(value) else f"{value:.2f}"


def _range(found: tuple[float, float]) -> str:
    return "-" if isnan(found[0]) else f"{found[0]:.2f} to {found[1]:.2f}"
