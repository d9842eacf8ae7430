"""Results as tables that fit a terminal of 80 columns; progress on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from quadrille.texts import large, shown

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from quadrille.account import Account
    from quadrille.cli.profile import ColumnProfile, Profile
    from quadrille.study.score import Scores

Progress = Callable[[int, int], None]
MOST_LABELS = 30
MOST_NAMES = 20


def emit(document: object) -> None:
    """Print one JSON document."""
    from quadrille.io.documents import as_json

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


def show_profile(found: Profile) -> None:
    """Print what `inspect` found."""
    title(found.file)
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


def show_account(account: Account) -> None:
    """Print what a plan does: asked, paired, changed."""
    from quadrille.rules import rules_told

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
    from quadrille.cli.designed_show import show_diagnosis

    show_diagnosis(account)


def _pairs(account: Account) -> str:
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


def percent(share: float) -> str:
    """Format a share."""
    return f"{share:.2%}".replace("%", " %") if share else "0 %"


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
