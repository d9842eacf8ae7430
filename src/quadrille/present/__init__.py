"""Every fact worded once: what there is to say, as plain data, which `render` shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Title:
    """A heading."""

    text: str


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Alert:
    """A paragraph that must not be missed, and the word or sentence that it opens with."""

    lead: str
    text: str


@dataclass(frozen=True)
class Facts:
    """Names and what they stand for."""

    pairs: Pairs


@dataclass(frozen=True)
class Items:
    """A list of sentences."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Rows of texts; the columns in `numbers` are set to the right, those in `whole` are never broken.

    The caption stands above the table in HTML, where every table needs one. Of the rows in `marked`, `mark` says why
    they stand out: as the chosen ones, or as flagged.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...] = ()
    whole: tuple[int, ...] = ()
    caption: str = ""
    marked: tuple[int, ...] = ()
    mark: str = "chosen"


Block = Title | Text | Alert | Facts | Items | Table
Blocks = Sequence[Block]


def table(
    head: Iterable[str],
    rows: Iterable[Iterable[str]],
    *,
    caption: str = "",
    numbers: Iterable[int] = (),
    whole: Iterable[int] = (),
    marked: Iterable[int] = (),
    mark: str = "chosen",
) -> Table:
    """Make a table of anything that can be gone through."""
    lines = tuple(tuple(row) for row in rows)
    return Table(tuple(head), lines, tuple(numbers), tuple(whole), caption, tuple(marked), mark)


def facts(pairs: Iterable[tuple[str, str]]) -> Facts:
    """Make facts of anything that can be gone through."""
    return Facts(tuple(pairs))
