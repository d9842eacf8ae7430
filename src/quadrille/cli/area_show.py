"""Scores by area on a terminal: their spread per level and variable, and the areas most and least affected."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from quadrille.cli import show

if TYPE_CHECKING:
    from quadrille.study.score import Scores

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
    show.note("\n" + _LEGEND)
    if any(row["measure"] in DIVERSITIES for row in rows):
        show.note(NOT_MONOTONE)


def _block(level: str, variable: str, rows: Rows) -> None:
    areas = max(row["areas"] + row["undefined"] for row in rows)
    what = f"{variable} by {level}" if variable else f"by {level}"
    show.title(f"{what}: {areas:,} {'area' if areas == 1 else 'areas'}")
    names = [row["measure"] for row in rows]
    unique = len(set(names)) == len(names)
    lines = [
        [
            row["measure" if unique else "address"],
            *(number(row[name], 3) for name in ("mean", "sd", "p5", "p95", "whole")),
        ]
        for row in rows
    ]
    show.grid(_HEAD, lines, numbers=range(1, len(_HEAD)), whole=(0,) if unique else ())
    notes = list(_notes(rows))
    if notes:
        show.note("")
        show.facts(notes)


def _notes(rows: Rows) -> Iterable[tuple[str, str]]:
    """Say each note once, with the measures it is about; that of the diversities is said below all tables."""
    from quadrille.study.by_area_frames import NOT_LARGER

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
        show.note("\nNo area has a value to rank by.")
    for level, of_level in groupby(rows, key=lambda row: row["level"]):
        listed = list(of_level)
        how = "" if listed[0]["ranked_by"] == "value" else f", by {listed[0]['ranked_by']}"
        show.title(f"Areas of {level} most and least affected: {listed[0]['address']}{how}")
        lines: list[list[str]] = []
        for row in listed:
            if lines and row["affected"] == "least" and row["rank"] > int(lines[-1][0].replace(",", "")) + 1:
                lines.append(["..."] + [""] * 5)
            counts = (f"{row[key]:,}" for key in ("before", "after", "changed"))
            lines.append([f"{row['rank']:,}", row["area"], *counts, number(row["value"])])
        show.grid(("rank", "area", "before", "after", "changed", "value"), lines, numbers=(0, 2, 3, 4, 5))
        equal, shown = listed[-1]["equal"], sum(row["value"] == listed[-1]["value"] for row in listed)
        if equal > shown:
            show.note(f"\n  {equal:,} areas have the lowest value; of equals, the smaller area ranks first.")


def number(value: float | None, digits: int = 4) -> str:
    """Format a value of any size with some digits.

    >>> from quadrille.cli.area_show import number
    >>> number(1234.5), number(-0.00012345), number(float("inf"))
    ('1,234.5', '-0.0001234', 'infinite')
    """
    if value is None:
        return "-"
    if value in (float("inf"), float("-inf")):
        return "infinite"
    return f"{value:,.1f}" if abs(value) >= 10 ** min(digits, 3) else f"{value:.{digits}g}"
