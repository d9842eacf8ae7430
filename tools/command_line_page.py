"""Writes docs/command-line.md: every command and every option, read from the program itself.

    .venv/bin/python tools/command_line_page.py

What an option means is its help text; of a method, all that its parameters declare. The examples of a command are those
of its help. What a command is for stands in `command_line.toml` next to this file. Nothing on the page depends on the
machine: no number of cores, no width of a terminal, no folder.
"""

from __future__ import annotations

import re
import sys
import textwrap
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typer.main

from quadrille.cli.app import app
from quadrille.cli.options import DesignCommand, method_options
from quadrille.recipe import Recipe, known_methods

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "command-line.md"
WORDS: dict[str, Any] = tomllib.loads((HERE / "command_line.toml").read_text(encoding="utf-8"))

HEAD = ("option", "default", "meaning")
_DEFAULT = re.compile(r" *\[default: ([^]]*)\]")
_CODE = re.compile(r"\bquadrille [a-z]+|(?<![\w-])--[a-z][a-z-]*")


def methods() -> list[type[Recipe]]:
    """Return the methods of the package, in the order in which the texts describe them."""
    by_word = {
        method.word(): method for method in known_methods().values() if method.__module__.startswith("quadrille.")
    }
    if missing := sorted(set(by_word) - set(WORDS["method"])):
        raise SystemExit(f"Write a text for the methods {', '.join(missing)} into tools/command_line.toml.")
    return [by_word[word] for word in WORDS["method"]]


def page() -> str:
    """Return the page as Markdown."""
    commands: dict[str, Any] = typer.main.get_command(app).commands  # pyright: ignore[reportAttributeAccessIssue]
    if missing := sorted(set(commands) - set(WORDS["command"])):
        raise SystemExit(f"Write a text for {', '.join(missing)} into tools/command_line.toml.")
    parts = [WORDS["page"]["opening"], _overview(commands), WORDS["page"]["common"], _designs(commands)]
    parts += [_command(name, command) for name, command in commands.items()]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _overview(commands: dict[str, Any]) -> str:
    return _table(
        ("command", "what it does"), ((f"[`{name}`](#{name})", _first(each)) for name, each in commands.items())
    )


def _first(command: Any) -> str:
    """Return the line that `quadrille --help` shows."""
    return _marked(command.help.strip().splitlines()[0])


def _designs(commands: dict[str, Any]) -> str:
    """List the options that describe a recipe, by method."""
    *others, last = (f"[`{name}`](#{name})" for name, command in commands.items() if isinstance(command, DesignCommand))
    text = WORDS["design"]["text"].format(commands=f"{', '.join(others)} and {last}")
    lines = ["## Options of a design", _filled(text)]
    for method in methods():
        lines += [f"### --method {method.word()}", _filled(WORDS["method"][method.word()]), _declared(method)]
    return "\n\n".join(lines)


def _declared(method: type[Recipe]) -> str:
    """Return a table of the options of a method: what the program says in its help, and the rest of the declaration."""
    rows: list[tuple[str, ...]] = []
    for option, param in zip(method_options(method), method.params().values(), strict=True):
        written, default, meaning = _row(option)
        rest = re.split(r"\. |; ", param.help, maxsplit=1)[1:]
        more = "".join(f" {_marked(text[:1].upper() + text[1:].rstrip('.'))}." for text in rest)
        rows.append((written, "*needed*" if param.required else default, meaning + more))
    return _table(HEAD, rows)


def _command(name: str, command: Any) -> str:
    said = _filled(f"**{_first(command)}** {WORDS['command'][name]}")
    if isinstance(command, DesignCommand):
        said += "\n\nIt takes the [options of a design](#options-of-a-design), and these:"
    examples = "\n".join(f"    {line}" for line in command.epilog.splitlines())
    return "\n\n".join((f"## {name}", said, _options(command.params), "For example:", examples))


def _filled(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 120, break_long_words=False, break_on_hyphens=False)


def _options(params: Iterable[Any]) -> str:
    """Return a table, the arguments first."""
    ordered = sorted(params, key=lambda param: param.param_type_name != "argument")
    return _table(HEAD, (tuple(_row(param)) for param in ordered))


def _row(param: Any) -> Iterator[str]:
    """Return the option as it is written, its default and its meaning."""
    text: str = param.help
    default = next(iter(_DEFAULT.findall(text)), "")
    flag = getattr(param, "is_flag", False)
    if param.param_type_name == "argument":
        yield f"`{param.metavar.strip('[]')}`"
    else:
        yield f"`{', '.join(param.opts)}{'' if flag else f' {param.metavar}'}`"
    if not default and param.default is not None and not flag:
        default = f"`{param.default}`"
    if param.envvar:
        default = f"the variable `{param.envvar}`"
    yield "*needed*" if param.required else default
    meaning = _marked(_DEFAULT.sub("", text))
    yield meaning if param.metavar == "WORD" or meaning[1] == " " else meaning[0].upper() + meaning[1:]


def _marked(text: str) -> str:
    """Return text as Markdown that reads the same: signs escaped, commands and options as code.

    >>> _marked("A*B instead of --rate")
    'A\\\\*B instead of `--rate`'
    """
    text = re.sub(r"([*|\\])", r"\\\1", text).replace("&", "&amp;").replace("<", "&lt;")
    return _CODE.sub(r"`\g<0>`", text)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines).replace("|  |", "| |")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"Wrote {PAGE.relative_to(HERE.parent)}.\n")
