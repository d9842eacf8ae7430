"""Blocks on a terminal of 80 columns or more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import fill
from typing import TYPE_CHECKING

from quadrille.present.blocks import Alert, Block, Facts, Items, Table, Text, Title
from quadrille.text import shown

if TYPE_CHECKING:
    from rich.console import Console


def render(blocks: Iterable[Block]) -> None:
    """Print blocks, an empty line between them but not below a title."""
    below: Block | None = None
    for block in blocks:
        if below is not None and not isinstance(below, Title) and not isinstance(block, Title):
            note("")
        _print(block)
        below = block


def _print(block: Block) -> None:
    match block:
        case Title(text):
            title(text)
        case Text(text):
            note(text)
        case Alert(lead, text):
            note(f"{lead} {text}")
        case Facts(pairs):
            facts(pairs)
        case Items(lines):
            facts([("", line) for line in lines])
        case Table(head, rows, numbers, whole):
            grid(head, rows, numbers=numbers, whole=whole)


def console(*, stderr: bool = False) -> Console:
    """Return a console that prints names as they are: no markup, no emoji, no colouring of numbers."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)


def title(text: str) -> None:
    """Print a heading."""
    console().print(f"\n{shown(text)}", style="bold")


def note(text: str) -> None:
    """Print a paragraph."""
    console().print(shown(text, keep="\n"))


def shell(line: str) -> None:
    """Print a command to be copied: on one line, however long."""
    console().print(shown(line), soft_wrap=True)


def facts(pairs: Iterable[tuple[str, str]]) -> None:
    """Print names and what they stand for, long texts wrapped next to their name."""
    from rich.text import Text

    screen, listed = console(), [(shown(name), shown(value, keep="\n")) for name, value in pairs]
    indent = 4 + max(len(name) for name, _ in listed)
    for name, value in listed:
        start = f"  {name}".ljust(indent)
        wrapped = fill(value, max(screen.width, indent + 20), initial_indent=start, subsequent_indent=" " * indent)
        line = Text(wrapped or start)
        line.stylize("dim", 0, indent)
        screen.print(line, soft_wrap=True)


_INDENT, _GAP = 2, 3
_LEAST_TEXT = 10
"""A column of text is folded to no fewer characters than this."""


def grid(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Iterable[int] = (), whole: Iterable[int] = ()
) -> None:
    """Print a table; the columns listed in `numbers` are aligned to the right and never broken.

    Those in `whole` are not broken either, nor are their heads, where there is room.
    """
    from rich import box
    from rich.padding import Padding
    from rich.table import Table

    right, unbroken, heads = set(numbers), set(whole), [*map(shown, head)]
    lines, screen = [[*map(shown, row)] for row in rows], console()
    room = screen.width - _INDENT - _GAP * (len(heads) - 1)
    widths = _least_widths(heads, lines, right, unbroken, room)
    if sum(widths.values()) > room:
        screen.width += sum(widths.values()) - room
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False, padding=(0, 1))
    for place, name in enumerate(heads):
        width = widths.get(place) if place in right else None
        justify = "right" if place in right else "left"
        table.add_column(name, justify=justify, overflow="fold", width=width, no_wrap=not widths and place in unbroken)
    for line in lines:
        table.add_row(*line)
    screen.print(Padding(table, (0, 0, 0, _INDENT), expand=False))


def _least_widths(
    heads: Sequence[str], lines: Sequence[Sequence[str]], right: set[int], unbroken: set[int], room: int
) -> dict[int, int]:
    """Return how wide the columns of a table are at least; nothing where it fits as it is."""
    cells = [max((len(line[place]) for line in lines), default=0) for place in range(len(heads))]
    natural = [max(cell, len(head)) for cell, head in zip(cells, heads, strict=True)]
    if sum(natural) <= room:
        return {}
    words = [max(map(len, head.split()), default=0) for head in heads]
    texts = [
        max((len(word) for line in lines for word in line[place].split()), default=0) for place in range(len(heads))
    ]
    least = [cell if place in right else min(texts[place], _LEAST_TEXT) for place, cell in enumerate(cells)]
    for better in (natural, words):  # heads as they are, or else folded between words, or else anywhere
        wider = [max(better[p], width) if p in unbroken or p in right else width for p, width in enumerate(least)]
        if sum(wider) <= room:
            return dict(enumerate(wider))
    return dict(enumerate(least))
