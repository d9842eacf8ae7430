"""Tables and numbers as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from quadrille.text import shown

_TAG = re.compile(r"<(?=[A-Za-z/!?])")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(map(_cell, line)) + " |" for line in lines]


def plain(text: str) -> str:
    r"""Return a text from outside so that it is read as it stands: no control characters, no tags of HTML.

    >>> from quadrille.present.markdown import plain
    >>> print(plain("Age=<25 & <b>"))
    Age=<25 & \<b>
    """
    return _TAG.sub(r"\\<", shown(text))


def _cell(text: str) -> str:
    return plain(text).replace("|", "\\|")


def value_text(value: float | None) -> str:
    """Return a score as text."""
    return "undefined" if value is None else f"{value:.6g}"
