"""Blocks as Markdown, for the dossier."""

from __future__ import annotations

import re
from collections.abc import Iterable

from quadrille.present.blocks import Alert, Block, Facts, Items, Table, Text, Title
from quadrille.text import shown

_TAG = re.compile(r"<(?=[A-Za-z/!?])")


def render(blocks: Iterable[Block]) -> str:
    """Return blocks as Markdown, an empty line between them.

    >>> from quadrille.present.blocks import Text, Title
    >>> from quadrille.present.markdown import render
    >>> print(render([Title("Scores"), Text("None.")]))
    ## Scores
    <BLANKLINE>
    None.
    """
    return "\n\n".join("\n".join(_lines(block)) for block in blocks)


def _lines(block: Block) -> list[str]:
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
            return ["| " + " | ".join(map(_cell, line)) + " |" for line in ruled]


def plain(text: str) -> str:
    r"""Return a text from outside so that it is read as it stands: no control characters, no tags of HTML.

    >>> from quadrille.present.markdown import plain
    >>> print(plain("Age=<25 & <b>"))
    Age=<25 & \<b>
    """
    return _TAG.sub(r"\\<", shown(text))


def _cell(text: str) -> str:
    return plain(text).replace("|", "\\|")
