"""What a reproduction of a paper yields: numbers beside ours, claims with verdicts, errata."""

from __future__ import annotations

import csv
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from quadrille.params import one_of, whole

if TYPE_CHECKING:
    from rich.console import Console

    from quadrille.chart import Figure

Progress = Callable[[int, int], None]
Entry = str | int | float
Item = TypeVar("Item")
Columns = Sequence[tuple[str, str, Callable[[Item], Entry]]]
"""The columns of a table of items: heading, format ("" leaves an entry as it is), and what is shown of an item."""

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
    rows: tuple[tuple[Entry, ...], ...]
    note: str = ""
    digits: int = 5

    @classmethod
    def of(cls, title: str, items: Iterable[Item], columns: Columns[Item], note: str = "") -> Listing:
        """Make a table with a row per item."""
        return cls(title, tuple(heading for heading, _, _ in columns), tuple(_rows(items, columns)), note)


def _rows(items: Iterable[Item], columns: Columns[Item]) -> list[tuple[Entry, ...]]:
    return [tuple(format(get(item), spec) if spec else get(item) for _, spec, get in columns) for item in items]


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """A paper reproduced."""

    paper: str
    title: str
    setting: dict[str, object]
    cells: tuple[Cell, ...] = ()
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
        """Print the tables, the claims with their verdicts, the errata and the summary figures, in this order."""
        _say(console, self.title, style="bold")
        _say(console, ", ".join(f"{name} {value}" for name, value in self.setting.items()), style="dim")
        for name in dict.fromkeys(cell.table for cell in self.cells):
            _cells(console, name, self.headings, [cell for cell in self.cells if cell.table == name])
        for listing in self.listings:
            _listing(console, listing)
        for name in dict.fromkeys(check.table for check in self.checks):
            _checks(console, name, [check for check in self.checks if check.table == name])
        if self.checks:
            _say(console, _CHECKED, style="dim")
        _claims(console, self.claims)
        _heading(console, "Errata and notes")
        for number, erratum in enumerate(self.errata, 1):
            _say(console, erratum, first=f"{number}. ")
        _heading(console, "Summary")
        for name, value in self.figures.items():
            _say(console, f"{name}: {value:.3g}")


def check_arguments(seeds: object, sampler: object, samplers: tuple[str, ...], *, least: int = 2) -> None:
    """Check what every paper is reproduced with: a number of seeds, and one of its samplers."""
    whole("reproduce", "seeds", seeds, least=least)
    one_of("reproduce", "sampler", sampler, samplers)


def adding_up(progress: Progress | None, total: int) -> Callable[[int], None]:
    """Return what is called with the steps just done, and reports those done so far."""
    so_far = 0

    def done(steps: int) -> None:
        nonlocal so_far
        so_far += steps
        if progress:
            progress(so_far, total)

    return done


def save_figures(charts: Mapping[str, Figure], folder: str | Path) -> list[Path]:
    """Write charts as PNG files in a folder, which is made if need be; return their paths."""
    from quadrille.chart import save

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return [save(picture, folder / f"{name}.png") for name, picture in charts.items()]


def published(name: str) -> list[dict[str, str]]:
    """Read a table of published numbers."""
    text = files("quadrille.papers").joinpath("published", name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


_FAR = 2
_MARKED = "bold yellow"
_CHECKED = (
    "error: standard error of the difference, from the seeds of both sides and the rounding. agrees: a mean within 4 "
    "standard errors, an end of a range within 2 %. noise: an end farther off than that, but within 4 standard errors."
)
_TOGETHER = re.compile(r"(?<=\d) (?=%)| (?=[=+x<>-] )|(?<= [=+x<>-]) ")


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


def _listing(console: Console, listing: Listing, styles: Sequence[str] = ()) -> None:
    """Print a table; a column is flush right when its first entry is a number or a range of numbers."""
    from rich.table import Table

    def shown(value: Entry) -> str:
        if isinstance(value, float):
            return f"{value:.{listing.digits}f}"
        return value if isinstance(value, str) else f"{value:,}"

    rows = [[shown(entry) for entry in row] for row in listing.rows]
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for heading, entry in zip(listing.headings, rows[0], strict=True):
        table.add_column(heading, justify="right" if re.fullmatch(r"[-+\d.,%]+", entry) else "left", no_wrap=True)
    for entries, style in zip(rows, styles or [""] * len(rows), strict=True):
        table.add_row(*entries, style=style)
    _heading(console, listing.title)
    console.print(table)
    if listing.note:
        _say(console, listing.note, style="dim")


def _cells(console: Console, title: str, headings: tuple[str, str], cells: Sequence[Cell]) -> None:
    columns: Columns[Cell] = (
        (headings[0], "", lambda cell: cell.column),
        (headings[1], "", lambda cell: cell.row),
        ("published", ".4f", lambda cell: cell.published),
        ("mean", ".5f", lambda cell: cell.mean),
        ("sd", ".5f", lambda cell: cell.sd),
        ("z", "+.2f", lambda cell: cell.z),
    )
    _listing(console, Listing.of(title, cells, columns), [_MARKED if abs(cell.z) > _FAR else "" for cell in cells])


def _checks(console: Console, title: str, checks: Sequence[Check]) -> None:
    columns: Columns[Check] = (
        ("", "", lambda check: check.what),
        ("reference", ".5f", lambda check: check.reference),
        ("ours", ".5f", lambda check: check.ours),
        ("error", ".5f", lambda check: check.error),
        ("z", "+.2f", lambda check: check.z),
        ("off", "+.1%", lambda check: check.off),
        ("", "", lambda check: check.verdict),
    )
    _listing(console, Listing.of(title, checks, columns), ["" if check.agrees else _MARKED for check in checks])


def _claims(console: Console, claims: Sequence[Claim]) -> None:
    from rich.text import Text

    _heading(console, "Claims")
    for claim in claims:
        verdict, colour = ("holds", "green") if claim.holds else ("does not hold", "red")
        lines = wrapped(f"{verdict}: {claim.text}", min(console.width, 100) - 1, indent=" " * 4)
        console.print(Text.assemble((verdict, colour), lines.removeprefix(verdict)), soft_wrap=True)
        _say(console, claim.evidence, first=" " * 4, style="dim")
