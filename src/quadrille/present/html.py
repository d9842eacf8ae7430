"""Blocks as HTML, for the reports."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from quadrille.present.blocks import Alert, Block, Facts, Items, Table, Text, Title
from quadrille.present.numbers import NONE
from quadrille.text import shown

_PER_CENT = re.compile(r"(?<=\d) %")
_MINUS = re.compile(r"(?<![\w.])-(?=[\d.])")


def render(blocks: Iterable[Block]) -> str:
    """Return blocks as HTML; every text is escaped.

    >>> from quadrille.present.blocks import Text
    >>> from quadrille.present.html import render
    >>> render([Text("Age <b>")])
    '<p>Age &lt;b&gt;</p>'
    """
    return "\n".join(map(_block, blocks))


def _block(block: Block) -> str:
    match block:
        case Title(text):
            return f"<h3>{_text(text)}</h3>"
        case Text(text):
            return f"<p>{_text(text)}</p>"
        case Alert(lead, text):
            return f'<div class="finding disagree"><p><strong>{_text(lead)}</strong> {_text(text)}</p></div>'
        case Facts(pairs):
            rows = (f"<div><dt>{_text(name)}</dt><dd>{_text(value)}</dd></div>" for name, value in pairs)
            return '<dl class="facts">\n' + "\n".join(rows) + "\n</dl>"
        case Items(lines):
            return "<ul>\n" + "\n".join(f"<li>{_text(line)}</li>" for line in lines) + "\n</ul>"
        case Table():
            return _table(block)


def _table(table: Table) -> str:
    numbers = set(table.numbers)
    head = "".join(f'<th scope="col"{_right(i in numbers)}>{_text(name)}</th>' for i, name in enumerate(table.head))
    lines = [
        f'<div class="scroll"><table>\n<caption>{_text(table.caption)}</caption>',
        f"<thead><tr>{head}</tr></thead>\n<tbody>",
    ]
    for place, row in enumerate(table.rows):
        mark = f' class="{table.mark}"' if place in table.marked else ""
        cells = "".join(_cell(text, first=i == 0, number=i in numbers) for i, text in enumerate(row))
        lines.append(f"<tr{mark}>{cells}</tr>")
    return "\n".join([*lines, "</tbody></table></div>"])


def _cell(text: str, *, first: bool, number: bool) -> str:
    tag, scope = ("th", ' scope="row"') if first else ("td", "")
    return f"<{tag}{scope}{_right(number)}>{_number(text) if number else _text(text)}</{tag}>"


def _right(number: bool) -> str:
    return ' class="number"' if number else ""


def _text(text: str) -> str:
    """Escape a text; a number and its per cent stay on one line."""
    return _PER_CENT.sub("\u00a0%", escape(shown(text, keep="\n\r\t")))


def _number(text: str) -> str:
    """Set a minus, and the sign for no value, as a printer would."""
    return "–" if text == NONE else _MINUS.sub("−", _text(text))
