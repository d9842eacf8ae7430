"""What a reproduction of a paper yields: published cells beside ours, claims with verdicts, errata."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


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

    def as_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return asdict(self)

    def render(self, console: Console) -> None:
        """Print the tables, the claims with their verdicts, the errata and the summary figures."""
        from rich.table import Table
        from rich.text import Text

        console.print(Text(self.title, style="bold"))
        console.print(Text(", ".join(f"{name} {value}" for name, value in self.setting.items()), style="dim"))
        for name in dict.fromkeys(cell.table for cell in self.cells):
            table = Table(title=name, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
            for heading in (*self.headings, "published", "mean", "sd", "z"):
                table.add_column(heading, justify="left" if heading in self.headings else "right")
            for cell in self.cells:
                if cell.table == name:
                    far = "bold yellow" if abs(cell.z) > 2 else ""
                    numbers = (
                        f"{cell.published:.4f}",
                        f"{cell.mean:.5f}",
                        f"{cell.sd:.5f}",
                        f"{cell.z:+.2f}",
                    )
                    table.add_row(cell.column, cell.row, *numbers, style=far)
            console.print()
            console.print(table)
        _render_claims(console, self.claims)
        console.print(Text("\nErrata of the paper", style="bold"))
        for number, erratum in enumerate(self.errata, 1):
            console.print(Text(f"{number}. {erratum}"))
        console.print(Text("\nSummary", style="bold"))
        for name, value in self.figures.items():
            console.print(Text(f"{name}: {value:.3g}"))


def _render_claims(console: Console, claims: Sequence[Claim]) -> None:
    from rich.text import Text

    console.print(Text("\nClaims", style="bold"))
    for claim in claims:
        verdict = ("holds", "green") if claim.holds else ("does not hold", "red")
        console.print(Text.assemble(verdict, ": ", claim.text))
        console.print(Text(f"    {claim.evidence}", style="dim"))


def published(name: str) -> list[dict[str, str]]:
    """Read a table of published numbers."""
    text = files("quadrille.papers").joinpath("published", name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
