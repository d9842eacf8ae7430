"""Blocks on a terminal of 80 columns or more, as HTML for the reports, and as Markdown for the dossier."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from textwrap import fill
from typing import TYPE_CHECKING

from quadrille.present import Alert, Block, Facts, Items, Table, Text, Title
from quadrille.present.numbers import NONE
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


_PER_CENT = re.compile(r"(?<=\d) %")
_MINUS = re.compile(r"(?<![\w.])-(?=[\d.])")


def as_html(blocks: Iterable[Block]) -> str:
    """Return blocks as HTML; every text is escaped.

    >>> from quadrille.present import Text
    >>> from quadrille.present.render import as_html
    >>> as_html([Text("Age <b>")])
    '<p>Age &lt;b&gt;</p>'
    """
    return "\n".join(map(_html_block, blocks))


def _html_block(block: Block) -> str:
    match block:
        case Title(text):
            return f"<h3>{_escaped(text)}</h3>"
        case Text(text):
            return f"<p>{_escaped(text)}</p>"
        case Alert(lead, text):
            return f'<div class="finding disagree"><p><strong>{_escaped(lead)}</strong> {_escaped(text)}</p></div>'
        case Facts(pairs):
            rows = (f"<div><dt>{_escaped(name)}</dt><dd>{_escaped(value)}</dd></div>" for name, value in pairs)
            return '<dl class="facts">\n' + "\n".join(rows) + "\n</dl>"
        case Items(lines):
            return "<ul>\n" + "\n".join(f"<li>{_escaped(line)}</li>" for line in lines) + "\n</ul>"
        case Table():
            return _html_table(block)


def _html_table(table: Table) -> str:
    numbers = set(table.numbers)
    head = "".join(f'<th scope="col"{_right(i in numbers)}>{_escaped(name)}</th>' for i, name in enumerate(table.head))
    lines = [
        f'<div class="scroll"><table>\n<caption>{_escaped(table.caption)}</caption>',
        f"<thead><tr>{head}</tr></thead>\n<tbody>",
    ]
    for place, row in enumerate(table.rows):
        mark = f' class="{table.mark}"' if place in table.marked else ""
        cells = "".join(_html_cell(text, first=i == 0, number=i in numbers) for i, text in enumerate(row))
        lines.append(f"<tr{mark}>{cells}</tr>")
    return "\n".join([*lines, "</tbody></table></div>"])


def _html_cell(text: str, *, first: bool, number: bool) -> str:
    tag, scope = ("th", ' scope="row"') if first else ("td", "")
    return f"<{tag}{scope}{_right(number)}>{_printed(text) if number else _escaped(text)}</{tag}>"


def _right(number: bool) -> str:
    return ' class="number"' if number else ""


def _escaped(text: str) -> str:
    """Escape a text; a number and its per cent stay on one line."""
    return _PER_CENT.sub("\u00a0%", escape(shown(text, keep="\n\r\t")))


def _printed(text: str) -> str:
    """Set a minus, and the sign for no value, as a printer would."""
    return "–" if text == NONE else _MINUS.sub("−", _escaped(text))


_TAG = re.compile(r"<(?=[A-Za-z/!?])|\](?=[(\[:])")


def as_markdown(blocks: Iterable[Block]) -> str:
    """Return blocks as Markdown, an empty line between them.

    >>> from quadrille.present import Text, Title
    >>> from quadrille.present.render import as_markdown
    >>> print(as_markdown([Title("Scores"), Text("None.")]))
    ## Scores
    <BLANKLINE>
    None.
    """
    return "\n\n".join("\n".join(_markdown_lines(block)) for block in blocks)


def _markdown_lines(block: Block) -> list[str]:
    match block:
        case Title(text):
            return [f"## {plain(text)}"]
        case Text(text):
            return [plain(text)]
        case Alert(lead, text):
            return [f"**{plain(lead)}** {plain(text)}"]
        case Facts(pairs):
            return [f"- {plain(name)}: {plain(value)}" if name else f"- {plain(value)}" for name, value in pairs]
        case Items(lines):
            return [f"- {plain(line)}" for line in lines]
        case Table(head, rows):
            ruled = [head, ["---"] * len(head), *rows]
            return ["| " + " | ".join(map(_ruled, line)) + " |" for line in ruled]


def plain(text: str) -> str:
    r"""Return a text from outside so that it is read as it stands: no control characters, no tags of HTML, no links.

    >>> from quadrille.present.render import plain
    >>> print(plain("Age=<25 & <b>"))
    Age=<25 & \<b>
    """
    return _TAG.sub(r"\\\g<0>", shown(text))


def _ruled(text: str) -> str:
    return plain(text).replace("|", "\\|")
