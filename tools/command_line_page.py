"""Writes docs/command-line.md: every command and every option, read from the program itself.

    .venv/bin/python tools/command_line_page.py

What an option means is its help text; what a command is for, and its example, stand in `command_line.toml` beside this
file. Nothing on the page depends on the machine: no number of cores, no width of a terminal, no folder.
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
from quadrille.cli.designs import METHODS, OPTIONS

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "command-line.md"
WORDS: dict[str, Any] = tomllib.loads((HERE / "command_line.toml").read_text(encoding="utf-8"))
OF_NO_METHOD = [name for name in OPTIONS if not any(name in options for options in METHODS.values())]

_METHOD = re.compile(rf"^(?:{'|'.join(METHODS)})(?:, \w+)*: ", re.IGNORECASE)
_DEFAULT = re.compile(r" *\[default: ([^]]*)\]")
_DESIGNED = re.compile(r" \[designed: ([^]]*)\]")
_CODE = re.compile(r"\bquadrille [a-z]+|(?<![\w-])(?:frontier )?--[a-z][a-z-]*")


def page() -> str:
    """Return the page as Markdown."""
    commands: dict[str, Any] = typer.main.get_command(app).commands  # pyright: ignore[reportAttributeAccessIssue]
    if missing := sorted(set(commands) - set(WORDS["command"])):
        raise SystemExit(f"Write a text and an example for {', '.join(missing)} into tools/command_line.toml.")
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


def _takes_design(command: Any) -> bool:
    return set(OPTIONS) <= {param.name for param in command.params}


def _designs(commands: dict[str, Any]) -> str:
    """List the options that describe a recipe, by method; some commands have them all."""
    by_name = {param.name: param for param in commands["swap"].params}
    *others, last = (f"[`{name}`](#{name})" for name, command in commands.items() if _takes_design(command))
    text = WORDS["design"]["text"].format(commands=f"{', '.join(others)} and {last}")
    general = _options((by_name[name] for name in OF_NO_METHOD), designed=True)
    lines = ["## Options of a design", _filled(text), general]
    for method, options in METHODS.items():
        rows = _options((by_name[name] for name in options), designed=True)
        lines += [f"### --method {method}", _filled(WORDS["design"][method]), rows]
    return "\n\n".join(lines)


def _command(name: str, command: Any) -> str:
    words = WORDS["command"][name]
    designed = _takes_design(command)
    own = [param for param in command.params if not (designed and param.name in OPTIONS)]
    said = _filled(f"**{_first(command)}** {words['text']}")
    if designed:
        said += "\n\nIt takes the [options of a design](#options-of-a-design), and these:"
    examples = "\n".join(f"    {line}" for line in words["example"].strip().splitlines())
    return "\n\n".join((f"## {name}", said, _options(own, designed=designed), "For example:", examples))


def _filled(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 120, break_long_words=False, break_on_hyphens=False)


def _options(params: Iterable[Any], *, designed: bool) -> str:
    """Return a table, the arguments first."""
    ordered = sorted(params, key=lambda param: param.param_type_name != "argument")
    return _table(("option", "default", "meaning"), (tuple(_row(param, designed=designed)) for param in ordered))


def _row(param: Any, *, designed: bool) -> Iterator[str]:
    """Return the option as it is written, its default and its meaning."""
    text = _DESIGNED.sub(r" (designed: \1)" if designed else "", _METHOD.sub("", param.help))
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
