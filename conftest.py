"""Executes every example in README, docs and docstrings, so that none of them can drift."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import tempfile
from bisect import bisect
from collections.abc import Iterable
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer.testing
from sybil import Document, Example, Region, Sybil
from sybil.document import PythonDocStringDocument
from sybil.example import NotEvaluated
from sybil.parsers.markdown import PythonCodeBlockParser
from sybil.parsers.rest import DocTestParser
from typer.testing import CliRunner

from quadrille.cli import app

# Two processes run the tests on two cores, and each would use two threads even for matrices as small as ours. Threads
# that wait for others keep their core busy. This is read when numpy or polars is first imported, also in processes of
# the tests.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("POLARS_MAX_THREADS", "1")

# Tests write thousands of small files, and have each on the disk before they go on: they write to memory where there is
# room. This is read by pytest, by the program and by its processes; whoever names a folder by TMPDIR has it.
MEMORY = Path("/dev/shm")
ROOM = 2 << 30


def in_memory() -> bool:
    """Tell whether files can be kept in memory: enough of them, and scripts among them."""
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK | os.X_OK):
        return False
    found = os.statvfs(MEMORY)
    return found.f_bavail * found.f_frsize >= ROOM and not found.f_flag & getattr(os, "ST_NOEXEC", 8)


if in_memory():
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

# Typer builds all commands anew for every call, which takes a hundred times as long as most calls do.
typer.testing._get_command = cache(typer.testing._get_command)  # pyright: ignore[reportPrivateUsage]

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def console_blocks(document: Document) -> Iterable[Region]:
    """Find blocks of `$ command` lines, each followed by what the command prints."""
    for match in CONSOLE.finditer(document.text):
        yield Region(match.start(), match.end(), match.group(1), run_console)


def run_console(example: Example) -> None:
    """Run the commands of a block in the folder of the test and compare what they print; `...` stands for anything."""
    for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", example.parsed, re.MULTILINE):
        code, printed = _call(command)
        assert code == 0, f"{command!r} exits with {code}:\n{printed}"
        assert doctest.OutputChecker().check_output(expected, printed, OPTIONS), (
            f"{command!r} prints\n{printed}\nand not\n{expected}"
        )


def _call(command: str) -> tuple[int, str]:
    """Run a command: ours in this process, which has its modules loaded, all others in a shell."""
    words = shlex.shlex(command, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    program, *rest = words
    if program == "quadrille" and not any(set(word) <= set("();<>|&") for word in rest):
        done = CliRunner().invoke(app, rest, env={"COLUMNS": "100", "FORCE_COLOR": None})
        return done.exit_code, done.stdout + done.stderr
    found = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    return found.returncode, found.stdout + found.stderr


def in_a_folder_of_its_own(namespace: dict[str, Any]) -> None:
    """Let examples write files without leaving any behind."""
    temporary = TemporaryDirectory()
    namespace.update(_folder=temporary, _home=str(Path.cwd()))
    os.chdir(temporary.name)


def leave_the_folder(namespace: dict[str, Any]) -> None:
    """Return to where the tests run."""
    os.chdir(namespace["_home"])
    namespace["_folder"].cleanup()


class Docstrings(PythonDocStringDocument):
    """Docstrings as a reader copies them: each starts in an empty session and in a folder of its own."""

    @cached_property
    def starts(self) -> list[int]:
        """Where each docstring of the file starts."""
        return sorted(start for start, _, _ in self.extract_docstrings(self.text))

    def import_document(self, example: Example) -> None:
        """Forget what earlier docstrings made, and give nothing of the module that the docstring stands in."""
        docstring = bisect(self.starts, example.region.start)
        if self.namespace.get("_docstring") != docstring:
            if self.namespace:
                leave_the_folder(self.namespace)
            self.namespace.clear()
            self.namespace.update(__name__="__main__", _docstring=docstring)
            in_a_folder_of_its_own(self.namespace)
        raise NotEvaluated


pages = Sybil(
    parsers=[PythonCodeBlockParser(doctest_optionflags=OPTIONS), console_blocks],
    patterns=["*.md"],
    setup=in_a_folder_of_its_own,
    teardown=leave_the_folder,
)
docstrings = Sybil(
    path="src",
    parsers=[DocTestParser(OPTIONS)],
    patterns=["*.py"],
    document_types={".py": Docstrings},
    teardown=lambda namespace: leave_the_folder(namespace) if namespace else None,
)
pytest_collect_file = (pages + docstrings).pytest()
