"""Every `quadrille ...` command in the README and the docs, run there or not, is one that the program takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from quadrille.cli.app import app
from quadrille.cli.options import DesignCommand, method_options
from quadrille.papers import PAPERS
from quadrille.recipe import known_methods

ROOT = Path(__file__).parents[2]
PAGES = [
    *ROOT.glob("*.md"),
    ROOT / "examples/README.md",
    *sorted(page for room in ("docs", "src") for page in (ROOT / room).rglob("*.md")),
]
PROGRAM: Any = typer.main.get_command(app)
OF_METHODS = {
    flag
    for method in known_methods().values()
    if method.__module__.startswith("quadrille.")
    for param in method_options(method)
    for flag in param.opts
}
OPTIONS = OF_METHODS | {
    flag for command in (PROGRAM, *PROGRAM.commands.values()) for param in command.params for flag in param.opts
}
OF_OTHERS = {"--help"}  # every command has it; it is no parameter

FENCED = re.compile(r"^```(?P<kind>\w*)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"(?<!`)`(?!`)(?P<code>(?:[^`\n]|\n(?!\n))+)`(?!`)")
LINE = re.compile(r"^(?:\s*\$ |\s{2,}|)(?:\S*/bin/)?(?P<code>quadrille .*)$", re.MULTILINE)
INDENTED = re.compile(r"^ {4}(?:\$ )?(?:\S*/bin/)?(?P<code>quadrille .*)$", re.MULTILINE)
CONTINUED = re.compile(r"\s*\\\n\s*")
ENDS = {"|", "||", "&&", ";", ">", ">>", "2>", "#"}
VALUES = {"ID": "1", "NUMBER": "1", "SHARE": "0.5"}
"""Placeholders that stand for a number."""


def commands_in(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each command of a page, and whether it is inline code, which may name a command without its arguments."""
    for block in FENCED.finditer(text):
        if block["kind"] in ("console", "sh", "bash", "shell", ""):
            yield from ((found["code"], False) for found in LINE.finditer(CONTINUED.sub(" ", block["code"])))
    prose = FENCED.sub("\n", text)
    for found in INDENTED.finditer(CONTINUED.sub(" ", prose)):
        yield re.split(r" {2,}", found["code"])[0], False  # what follows two spaces explains it
    for found in INLINE.finditer(re.sub(r"^ {4}.*$", "", prose, flags=re.MULTILINE)):
        code = " ".join(found["code"].split())
        if re.match(rf"(?:{'|'.join(PROGRAM.commands)}) (?:\S+ )*--\w", code):  # such as `release --policy`
            code = f"quadrille {code}"
        if code.startswith("quadrille "):
            yield code, True


def fault(command: str, *, inline: bool = False) -> str | None:
    """Say what is wrong with a command; None when the program would take it. Nothing is run."""
    words = shlex.split(re.sub(r"\[(--[^\]]*)\]", r"\1", command))[1:]
    words = words[: next((place for place, word in enumerate(words) if word in ENDS), len(words))]
    name = next((word for word in words if not word.startswith("-")), None)
    if name is None:
        return next((f"no option {word}" for word in words if word not in OPTIONS | OF_OTHERS), None)
    if name not in PROGRAM.commands:
        return f"no command {name}"
    known: Any = PROGRAM.commands[name]
    rest = [VALUES.get(word, word) for word in words[words.index(name) + 1 :]]
    flags = {flag for param in known.params for flag in param.opts} | OF_OTHERS
    flags |= OF_METHODS if isinstance(known, DesignCommand) else set()
    if inline and all(word.startswith("-") for word in rest):
        return next((f"{name} has no option {word}" for word in rest if word not in flags), None)
    if name == "reproduce" and rest[0] not in (*PAPERS, "PAPER"):
        return f"no paper {rest[0]}"
    if OF_OTHERS & set(rest):  # help is shown whatever else is missing
        return next((f"{name} has no option {word}" for word in rest if word[:2] == "--" and word not in flags), None)
    try:
        known.make_context(name, rest, resilient_parsing=False)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_on_the_page_is_one_that_the_program_takes(page: Path) -> None:
    found = list(commands_in(page.read_text(encoding="utf-8")))
    wrong = [(command, said) for command, inline in found if (said := fault(command, inline=inline))]
    assert not wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_option_named_on_the_page_is_one_of_the_program(page: Path) -> None:
    prose = re.sub(r"^ {4}.*$", "", FENCED.sub("\n", page.read_text(encoding="utf-8")), flags=re.MULTILINE)
    named = {word for found in INLINE.finditer(prose) for word in re.findall(r"^--[a-z][\w-]*", found["code"])}
    assert named <= OPTIONS | OF_OTHERS


def test_the_pages_have_commands_of_every_kind() -> None:
    found = [each for page in PAGES for each in commands_in(page.read_text(encoding="utf-8"))]
    assert sum(inline for _, inline in found) > 40 and sum(not inline for _, inline in found) > 60
    named = {shlex.split(command)[1] for command, _ in found}
    assert named >= set(PROGRAM.commands)
    written = {command for command, _ in found}
    assert "quadrille reproduce dohrmann-2009" in written  # four spaces
    assert "quadrille frontier STUDY --runs --chart FILE.png" in written  # inline, over two lines
    assert "quadrille convert dataset:cps8d people.csv" in written  # a console block


def test_commands_are_found_wherever_they_stand() -> None:
    text = """
Inline `quadrille swap FILE
--rate 0.1` and `release --policy` and `quadrille.theory`.

    ~/some/bin/quadrille demo      explains itself
    quadrille pick study \\
        --max-loss 0.05

```console
$ quadrille measures
quadrille: not a command but a message
  quadrille frontier study
```
"""
    assert dict(commands_in(text)) == {
        "quadrille measures": False,
        "quadrille frontier study": False,
        "quadrille demo": False,
        "quadrille pick study --max-loss 0.05": False,
        "quadrille swap FILE --rate 0.1": True,
        "quadrille release --policy": True,
    }


@pytest.mark.parametrize(
    "wrong",
    [
        "quadrille release FILE --study survey.study --candidate ID --readers reports",  # a flag that takes no value
        "quadrille release FILE --study survey.study --candidates ID",
        "quadrille swop FILE",
        "quadrille convert FILE",
        "quadrille pick STUDY OTHER",
        "quadrille pick STUDY --max-loss",
        "quadrille pick STUDY --max-loss much",
        "quadrille simulate DESIGN",
        "quadrille swap --metod designed --help",
        "quadrille rates FILE --swap MS",  # a command that is gone
        "quadrille score FILE --swap MS",  # an option of a design, which score does not take
        "quadrille report STUDY --readers FOLDER --out FILE.html OTHER",
        "quadrille report STUDY --candidate five",
        "quadrille reproduce gomatam-2003",
        "quadrille --verson",
    ],
)
def test_the_test_of_commands_sees_a_wrong_one(wrong: str) -> None:
    assert fault(wrong) is not None


@pytest.mark.parametrize(
    "wrong", ["quadrille swap --outt", "quadrille swop", "quadrille pick --readers", "quadrille score --rate"]
)
def test_the_test_of_commands_sees_a_wrong_mention(wrong: str) -> None:
    assert fault(wrong, inline=True) is not None


@pytest.mark.parametrize(
    "right",
    [
        "quadrille release FILE --study survey.study --candidate ID --readers",
        "quadrille reproduce boudreau-2005 [--charts FOLDER]",
        "quadrille release FILE --policy POLICY --check --swap ... --rate ...",
        "quadrille swap FILE --method designed --keep-low hellinger",
        "quadrille release --targets",
        'quadrille swap FILE --swap MS --rule "Age=<25 & MS=Married" > scores.txt',
        "quadrille search --help",
        "quadrille swap --method designed --help",
        "quadrille --version",
    ],
)
def test_the_test_of_commands_takes_a_right_one(right: str) -> None:
    assert fault(right, inline=True) is None
