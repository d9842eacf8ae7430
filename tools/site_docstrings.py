"""Turns docstrings into Markdown for the reference pages of the site, and marks sessions on all pages as such.

A docstring here is a line, paragraphs, `Parameters` with one `name : meaning` each, an `Example` of `>>>` lines and a
reference. mkdocs.yml loads this file twice: as an extension of griffe, which reads the docstrings, and as a hook.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import griffe

_RULE = re.compile(r"^-{3,}$")
_ENTRY = re.compile(r"^(?P<names>\w+(?:, \w+)*) : (?P<meaning>.*)$")


def to_markdown(text: str) -> str:
    """Return a docstring as Markdown: sections in bold, parameters as a list, examples as code.

    >>> to_markdown("Add.\\n\\nParameters\\n----------\\na, b : numbers.")
    'Add.\\n\\n**Parameters**\\n\\n- `a`, `b`: numbers.'
    """
    return "\n".join(_fenced(_sections(text.splitlines()))).strip()


def on_page_markdown(markdown: str, **_: object) -> str:
    """Mark blocks of Python that begin with a prompt as sessions: the copy button then leaves out what was printed.

    Blocks that only the tests run are left out.

    >>> on_page_markdown("```python\\n>>> 1\\n1\\n```").splitlines()[0]
    '```pycon'
    """
    shown = re.sub(r"<!-- invisible-code-block.*?-->\n", "", markdown, flags=re.DOTALL)
    return shown.replace("```python\n>>> ", "```pycon\n>>> ")


def _sections(lines: list[str]) -> Iterator[str]:
    """Replace underlined words by bold ones and `name : meaning` by list entries."""
    listing = False
    for place, line in enumerate(lines):
        below = lines[place + 1] if place + 1 < len(lines) else ""
        if _RULE.match(line):
            continue
        if line and _RULE.match(below):
            listing = line != "Example"
            yield from (f"**{line}**", "")
        elif listing and (entry := _ENTRY.match(line)):
            yield f"- {', '.join(f'`{name}`' for name in entry['names'].split(', '))}: {entry['meaning']}"
        else:
            yield line


def _fenced(lines: Iterator[str]) -> Iterator[str]:
    """Fence each example, from its first `>>>` to the empty line that ends it; neighbours join."""
    inside, waiting = False, False
    for line in lines:
        prompt = line.lstrip().startswith(">>>")
        if inside and not line:
            waiting = True
            continue
        if inside and waiting and not prompt:
            yield from ("```", "")
            inside = False
        if inside and waiting:
            yield ""
        waiting = False
        if prompt and not inside:
            inside = True
            yield "```pycon"
        yield line
    if inside:
        yield "```"


class Docstrings(griffe.Extension):
    """Rewrites every docstring when griffe has read it."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Turn the docstring of a module, class, function or attribute into Markdown."""
        if obj.docstring:
            obj.docstring.value = to_markdown(obj.docstring.value)
