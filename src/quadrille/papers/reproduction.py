"""What a reproduction of a paper yields: numbers beside ours, claims with verdicts, errata."""

from __future__ import annotations

import csv
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


Progress = Callable[[int, int], None]

MOST_ERRORS = 4.0
"""Differences up to this many standard errors are put down to the seeds."""


@dataclass(frozen=True)
class Cell:
    """One published number and what many seeds give: z = (published - mean) / sd, rounding of the print included."""

    table: str
    row: str
    column: str
    published: float
    mean: float
    sd: float
    z: float


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, whether it holds, and the numbers that decide."""

    text: str
    holds: bool
    evidence: str


@dataclass(frozen=True)
class Check:
    """A reference value beside ours: z = (ours - reference) / error, off = (ours - reference) / reference.

    `error` is the standard error of the difference: the spread over seeds of both, and the rounding of the reference.
    What does not agree by its tolerance may still be explained by that error.
    """

    table: str
    what: str
    reference: float
    ours: float
    error: float
    z: float
    off: float
    agrees: bool

    @property
    def verdict(self) -> str:
        """Whether it agrees, and if not, whether the seeds can explain it: "agrees", "noise" or "differs"."""
        if self.agrees:
            return "agrees"
        return "noise" if abs(self.z) <= MOST_ERRORS else "differs"


@dataclass(frozen=True)
class Listing:
    """A table of results: numbers are shown with `digits` decimals, everything else as it is."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str | int | float, ...], ...]
    note: str = ""
    digits: int = 5


@dataclass(frozen=True)
class Reproduction:
    """A paper reproduced."""

    paper: str
    title: str
    setting: dict[str, object]
    cells: tuple[Cell, ...]
    claims: tuple[Claim, ...]
    errata: tuple[str, ...]
    figures: dict[str, float]
    headings: tuple[str, str] = ("column", "row")
    listings: tuple[Listing, ...] = ()
    checks: tuple[Check, ...] = ()
    points: tuple[Mapping[str, object], ...] = ()
    """Candidates, one mapping each: what the charts are drawn from."""

    def as_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return asdict(self)

    def render(self, console: Console) -> None:
        """Print the tables, the claims with their verdicts, the errata and the summary figures."""

        render(self, console)


def published(name: str) -> list[dict[str, str]]:
    """Read a table of published numbers."""
    text = files("quadrille.papers").joinpath("published", name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


_FAR = 2
_CHECKED = (
    "error: standard error of the difference, from the seeds of both sides and the rounding. agrees: a mean within 4 "
    "standard errors, an end of a range within 2 %. noise: an end farther off than that, but within 4 standard errors."
)
_TOGETHER = re.compile(r"(?<=\d) (?=%)| (?=[=+x<>-] )|(?<= [=+x<>-]) ")


def render(found: Reproduction, console: Console) -> None:
    """Print everything a reproduction holds, in the order in which it is read."""
    _say(console, found.title, style="bold")
    _say(console, ", ".join(f"{name} {value}" for name, value in found.setting.items()), style="dim")
    for name in dict.fromkeys(cell.table for cell in found.cells):
        _cells(console, name, found.headings, [cell for cell in found.cells if cell.table == name])
    for listing in found.listings:
        _listing(console, listing)
    for name in dict.fromkeys(check.table for check in found.checks):
        _checks(console, name, [check for check in found.checks if check.table == name])
    if found.checks:
        _say(console, _CHECKED, style="dim")
    _claims(console, found.claims)
    _heading(console, "Errata and notes")
    for number, erratum in enumerate(found.errata, 1):
        _say(console, erratum, first=f"{number}. ")
    _heading(console, "Summary")
    for name, value in found.figures.items():
        _say(console, f"{name}: {value:.3g}")


def wrapped(text: str, width: int, *, first: str = "", indent: str | None = None) -> str:
    """Break a text into lines that start with `indent`; a number stays with its unit, a formula in one piece.

    >>> from quadrille.papers.reproduction import wrapped
    >>> print(wrapped("steps: from 1 % to 5 % to 10 %", 17, first="1. "))
    1. steps: from
       1 % to 5 %
       to 10 %
    """
    indent = " " * len(first) if indent is None else indent
    # Spaces that must not be broken are hidden from the wrapping, which breaks at plain spaces only.
    kept = _TOGETHER.sub("\N{NO-BREAK SPACE}", text)
    lines = textwrap.wrap(kept, width, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False)
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")


def _say(console: Console, text: str, *, first: str = "", indent: str | None = None, style: str = "") -> None:
    from rich.text import Text

    lines = wrapped(text, min(console.width, 100) - 1, first=first, indent=indent)
    console.print(Text(lines, style=style), soft_wrap=True)


def _heading(console: Console, text: str) -> None:
    console.print()
    _say(console, text, style="bold")


def _table(console: Console, title: str, headings: Sequence[str], rows: Iterable[tuple[Sequence[str], str]]) -> None:
    """Print a table; a column is flush right when its first entry is a number or a range of numbers."""
    from rich.table import Table

    rows = list(rows)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for heading, entry in zip(headings, rows[0][0], strict=True):
        table.add_column(heading, justify="right" if re.fullmatch(r"[-+\d.,%]+", entry) else "left", no_wrap=True)
    for entries, style in rows:
        table.add_row(*entries, style=style)
    _heading(console, title)
    console.print(table)


def _cells(console: Console, title: str, headings: tuple[str, str], cells: Iterable[Cell]) -> None:
    rows = [
        (
            (c.column, c.row, f"{c.published:.4f}", f"{c.mean:.5f}", f"{c.sd:.5f}", f"{c.z:+.2f}"),
            "bold yellow" if abs(c.z) > _FAR else "",
        )
        for c in cells
    ]
    _table(console, title, (*headings, "published", "mean", "sd", "z"), rows)


def _listing(console: Console, listing: Listing) -> None:
    def shown(value: str | float) -> str:
        if isinstance(value, float):
            return f"{value:.{listing.digits}f}"
        return value if isinstance(value, str) else f"{value:,}"

    _table(console, listing.title, listing.headings, [([shown(v) for v in row], "") for row in listing.rows])
    if listing.note:
        _say(console, listing.note, style="dim")


def _checks(console: Console, title: str, checks: Iterable[Check]) -> None:
    headings = ("", "reference", "ours", "error", "z", "off", "")
    rows = [
        (
            (
                c.what,
                f"{c.reference:.5f}",
                f"{c.ours:.5f}",
                f"{c.error:.5f}",
                f"{c.z:+.2f}",
                f"{c.off:+.1%}",
                c.verdict,
            ),
            "" if c.agrees else "bold yellow",
        )
        for c in checks
    ]
    _table(console, title, headings, rows)


def _claims(console: Console, claims: Sequence[Claim]) -> None:
    from rich.text import Text

    _heading(console, "Claims")
    for claim in claims:
        verdict, colour = ("holds", "green") if claim.holds else ("does not hold", "red")
        lines = wrapped(f"{verdict}: {claim.text}", min(console.width, 100) - 1, indent=" " * 4)
        console.print(Text.assemble((verdict, colour), lines.removeprefix(verdict)), soft_wrap=True)
        _say(console, claim.evidence, first=" " * 4, style="dim")
