"""What a reproduction of a paper yields: numbers beside ours, claims with verdicts, errata."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
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
        from quadrille.papers.render import render

        render(self, console)


def published(name: str) -> list[dict[str, str]]:
    """Read a table of published numbers."""
    text = files("quadrille.papers").joinpath("published", name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
