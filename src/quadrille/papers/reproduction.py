"""What a reproduction of a paper yields: numbers beside ours, claims with verdicts, errata."""

from __future__ import annotations

import csv
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from importlib.resources import files
from math import isfinite, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from quadrille.params import one_of, whole

if TYPE_CHECKING:
    from rich.console import Console

    from quadrille.chart import Figure

Floats = NDArray[np.float64]
Progress = Callable[[int, int], None]
Entry = str | int | float
Item = TypeVar("Item")
Columns = Sequence[tuple[str, str, Callable[[Item], Entry]]]
"""The columns of a table of items: heading, format ("" leaves an entry as it is), and what is shown of an item."""

MOST_ERRORS = 3.0
"""The one rule for numbers, in all papers: ours agrees with a published number that lies within this many standard
errors of the difference, or that is ours rounded as in print."""
ABOUT = 0.15
"""The one tolerance, for what a paper itself calls "about" or "approximately": shares of the number it is near."""


def agrees(printed: str, ours: float, error: float = 0.0) -> bool:
    """Tell whether our number is the published one, by the rule for all papers.

    `printed` has the digits of the print, which tell how far rounding moves a number: "5800" is exact to one unit,
    "5.8e3" to a hundred. `error` is the standard error of the difference, 0 where nothing is drawn.

    >>> from quadrille.papers.reproduction import agrees
    >>> agrees("5.03", 5.0349), agrees("5.03", 5.0372), agrees("5.03", 5.0372, error=0.01)
    (True, False, True)
    """
    number = Decimal(printed)
    half = Decimal(5).scaleb(int(number.as_tuple().exponent) - 1)
    apart = abs(Decimal(ours) - number) if isfinite(ours) else Decimal("Infinity")
    return apart <= max(half, Decimal(MOST_ERRORS * error))


@dataclass(frozen=True)
class Check:
    """A published number as printed and ours, with the standard error of their difference.

    `row` and `column` say where it stands in its table; `reason` is why it may differ, where it does.
    """

    table: str
    row: str
    column: str
    printed: str
    ours: float
    error: float = 0.0
    reason: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """Table, row, column."""
        return self.table, self.row, self.column

    @property
    def published(self) -> float:
        """The published number."""
        return float(self.printed)

    @property
    def z(self) -> float | None:
        """How many standard errors the published number lies above ours; None where nothing is drawn."""
        return (self.published - self.ours) / self.error if self.error else None

    @property
    def agrees(self) -> bool:
        """Whether it is the published number, by the rule for all papers."""
        return agrees(self.printed, self.ours, self.error)

    @property
    def shown(self) -> tuple[str, str, str, str]:
        """The published number, ours with one digit more, z and the verdict."""
        digits = -int(Decimal(self.printed).as_tuple().exponent)
        shown = min(max(digits + 1, 0), max(digits, _MOST_DIGITS)) if digits > 0 or self.ours % 1 else 0
        ours = f"{self.ours:,.{shown}f}" if isfinite(self.ours) else "none"
        printed = self.printed if digits > 0 else f"{self.published:,.0f}"
        z = "" if self.z is None or not isfinite(self.z) else f"{self.z:+.2f}" if abs(self.z) < _FAR else "far"
        return printed, ours, z, "agrees" if self.agrees else "differs"

    def as_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        derived = {"published": self.published, "z": self.z, "agrees": self.agrees}
        return {**asdict(self), "ours": self.ours if isfinite(self.ours) else None, **derived}


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, whether it holds, and the numbers that decide."""

    text: str
    holds: bool
    evidence: str

    @classmethod
    def of(cls, text: str, checks: Sequence[Check], more: str = "") -> Claim:
        """Judge a statement about numbers: it holds when all of them agree. The farthest off is named, and its reason.

        Where nothing is drawn the numbers themselves are named.
        """
        differing = [check for check in checks if not check.agrees]
        words: list[str] = []
        if any(check.z is None for check in checks):
            for check in checks:
                printed, ours, _, verdict = check.shown
                words.append(f"{', '.join(filter(None, check.key[1:]))}: published {printed}, ours {ours}, {verdict}")
        else:
            worst = max(differing or checks, key=lambda check: abs(check.z or 0.0))
            printed, ours, z, _ = worst.shown
            where = ", ".join(filter(None, worst.key[1:]))
            words.append(f"{len(checks) - len(differing)} of {len(checks)} agree")
            words.append(f"farthest {where}: published {printed}, ours {ours}, z {z}")
        words += dict.fromkeys(check.reason for check in differing if check.reason)
        return cls(text, not differing, "; ".join([*words, *([more] if more else [])]))


def over_seeds(values: Floats, seeds_of_the_paper: float = 1.0) -> tuple[float, float]:
    """Return the mean over seeds, and the standard error of its difference from the paper's, of its own seeds."""
    return float(values.mean()), float(values.std(ddof=1)) * sqrt(1 / len(values) + 1 / seeds_of_the_paper)


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
    claims: tuple[Claim, ...]
    errata: tuple[str, ...]
    figures: dict[str, float]
    headings: tuple[str, str] = ("", "")
    listings: tuple[Listing, ...] = ()
    checks: tuple[Check, ...] = ()
    points: tuple[Mapping[str, object], ...] = ()
    """Candidates, one mapping each: what the charts are drawn from."""

    def as_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return {**asdict(self), "checks": [check.as_dict() for check in self.checks]}

    def render(self, console: Console) -> None:
        """Print the tables, the claims with their verdicts, the errata and the summary figures, in this order."""
        _say(console, self.title, style="bold")
        _say(console, ", ".join(f"{name} {value}" for name, value in self.setting.items()), style="dim")
        for name in dict.fromkeys(check.table for check in self.checks):
            _checks(console, name, self.headings, [check for check in self.checks if check.table == name])
        if self.checks:
            _heading(console, "The rule for all numbers")
            _say(console, RULE, style="dim")
        for listing in self.listings:
            _listing(console, listing)
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


RULE = (
    f"Agrees: the published number lies within {MOST_ERRORS:g} standard errors of the difference from ours (z), or it "
    "is ours rounded as in print. Everything else differs. The error is that of the draws on both sides; where nothing "
    "is drawn, rounding alone decides."
)
_FAR = 10
_MOST_DIGITS = 7
"""A table is 80 columns wide: z from 10 on is "far", and ours has no more decimals than these or the print."""
_MARKED = "bold yellow"
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


def _checks(console: Console, title: str, headings: tuple[str, str], checks: Sequence[Check]) -> None:
    columns: Columns[Check] = (
        (headings[0], "", lambda check: check.row),
        (headings[1], "", lambda check: check.column),
        ("reference" if title.startswith("Reference") else "published", "", lambda check: check.shown[0]),
        ("ours", "", lambda check: check.shown[1]),
        ("z", "", lambda check: check.shown[2]),
        ("", "", lambda check: check.shown[3]),
    )
    if not any(check.column for check in checks):
        columns = (columns[0], *columns[2:])
    reasons = dict.fromkeys(check.reason for check in checks if check.reason and not check.agrees)
    note = " ".join(f"{reason[0].upper()}{reason[1:]}." for reason in reasons)
    table = Listing.of(title, checks, columns, note and f"Where they differ: {note}")
    _listing(console, table, ["" if check.agrees else _MARKED for check in checks])


def _claims(console: Console, claims: Sequence[Claim]) -> None:
    from rich.text import Text

    _heading(console, "Claims")
    for claim in claims:
        verdict, colour = ("holds", "green") if claim.holds else ("does not hold", "red")
        lines = wrapped(f"{verdict}: {claim.text}", min(console.width, 100) - 1, indent=" " * 4)
        console.print(Text.assemble((verdict, colour), lines.removeprefix(verdict)), soft_wrap=True)
        _say(console, claim.evidence, first=" " * 4, style="dim")
