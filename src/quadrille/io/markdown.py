"""Tables and numbers as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quadrille.texts import shown


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(map(_cell, line)) + " |" for line in lines]


def _cell(text: str) -> str:
    return shown(text).replace("|", "\\|")


def value_text(value: float | None) -> str:
    """Return a score as text."""
    return "undefined" if value is None else f"{value:.6g}"
