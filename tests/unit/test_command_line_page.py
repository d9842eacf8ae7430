"""docs/command-line.md is what its generator makes now: every command, every option, the same on every machine."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer.main

from quadrille import datasets, papers
from quadrille.cli.app import app
from quadrille.cli.options import DesignCommand, method_options
from quadrille.recipe import known_methods

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools/command_line_page.py"
PAGE = (ROOT / "docs/command-line.md").read_text(encoding="utf-8")
COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # pyright: ignore[reportAttributeAccessIssue]
METHODS = [method for method in known_methods().values() if method.__module__.startswith("quadrille.")]


def section(name: str) -> str:
    """Return the part of the page below a heading of the second order."""
    return PAGE.split(f"\n## {name}\n")[1].split("\n## ")[0]


def test_the_page_is_what_the_generator_makes_now() -> None:
    made: str = runpy.run_path(str(TOOL))["page"]()
    assert made == PAGE, "Write it anew: .venv/bin/python tools/command_line_page.py"


def test_the_page_does_not_depend_on_the_machine(tmp_path: Path) -> None:
    code = f"import runpy, sys; sys.stdout.write(runpy.run_path({str(TOOL)!r})['page']())"
    odd = {"COLUMNS": "40", "HOME": str(tmp_path), "QUADRILLE_POLICY": str(tmp_path / "p.toml"), "LANG": "C"}
    made = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", code],
        capture_output=True,
        encoding="utf-8",
        check=True,
        cwd=tmp_path,
        env={**os.environ, **odd},
    )
    assert made.stdout == PAGE


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_is_in_its_table(name: str) -> None:
    shown = section(name)
    for param in COMMANDS[name].params:
        written = param.metavar.strip("[]") if param.param_type_name == "argument" else param.opts[0]
        assert f"| `{written}` |" in shown or f"| `{written} {param.metavar}` |" in shown, written
        assert param.help


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.word())
def test_every_option_of_a_method_is_in_its_table_in_order(method: Any) -> None:
    shown = section("Options of a design").split(f"\n### --method {method.word()}\n")[1].split("\n### ")[0]
    listed = [line.split("`")[1].split()[0] for line in shown.splitlines() if line.startswith("| `--")]
    assert listed == [option.opts[0] for option in method_options(method)]
    needed = [line.split("`")[1].split()[0] for line in shown.splitlines() if "| *needed* |" in line]
    assert needed == [f"--{param.option}" for param in method.params().values() if param.required]
    assert not any(option.required for option in method_options(method)), "the page leaves the program as it is"


def test_the_options_of_a_design_are_told_of_the_commands_that_have_them() -> None:
    having = {name for name, command in COMMANDS.items() if isinstance(command, DesignCommand)}
    assert {name for name in COMMANDS if "(#options-of-a-design)" in section(name)} == having
    assert having == {"swap", "release"}
    assert {name for name in COMMANDS if f"[`{name}`](#{name})" in section("Options of a design")} == having


@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_are_those_of_the_help(name: str) -> None:
    listed = section(name).split("For example:\n\n")[1].splitlines()
    assert [line.strip() for line in listed if line.strip()] == COMMANDS[name].epilog.splitlines()


def test_every_paper_and_every_bundled_file_is_named() -> None:
    assert all(f"`{paper}`" in section("reproduce") for paper in papers.PAPERS)
    assert all(f"`dataset:{name}`" in PAGE for name in datasets.__all__)


def test_every_command_and_method_has_a_text_and_every_text_its_command_or_method() -> None:
    words: dict[str, Any] = runpy.run_path(str(TOOL))["WORDS"]
    assert list(words["command"]) == list(COMMANDS)
    assert set(words["method"]) == {method.word() for method in METHODS}
    assert all(isinstance(text, str) for text in words["command"].values()), "an example stands in the program"
