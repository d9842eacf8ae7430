"""The surface of the program: few commands, help on one screen, and one meaning for each option."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from math import ceil
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

import quadrille as qd
from quadrille.cli.app import app
from quadrille.cli.options import RARELY, DesignCommand, method_options, recipe_of
from quadrille.recipe import known_methods

MOST_COMMANDS = 20
MOST_LINES = 50
WIDTH = 80


def program_of(program: typer.Typer) -> dict[str, Any]:
    """Return the commands afresh: reading the words of a call gives a command the options of their method."""
    return typer.main.get_command(program).commands  # pyright: ignore[reportAttributeAccessIssue]


COMMANDS = program_of(app)
METHODS = [method for method in known_methods().values() if method.__module__.startswith("quadrille.")]
DESIGNED = {name for name, command in COMMANDS.items() if isinstance(command, DesignCommand)}
CALLS = [*COMMANDS, *(f"{name} --method {method.word()}" for name in sorted(DESIGNED) for method in METHODS)]

SAME_MEANING = {
    "--out": "where the result goes: a file, a folder or a study, as the command makes it",
    "--risk": "the risk: a measure of it, or the columns by whose combinations a method knows who is at risk",
}
"""Options whose metavar differs from command to command, and why they mean the same."""
RARE = {
    "--allow-contradictions",
    *("--json", "--overwrite", "--keep-order", "--publish-f", "--var-stratum", "--cluster", "--no-totals"),
    *("--ignore-hd", "--rank", "--top", "--min-records", "--chart-flows", "--insecure", "--publish-kept"),
}
"""Options that a first-time user does not need."""


def help_of(words: str) -> str:
    done = CliRunner().invoke(app, [*words.split(), "--help"], terminal_width=WIDTH, env={"COLUMNS": str(WIDTH)})
    assert done.exit_code == 0, done.output
    return done.stdout


def options(command: Any) -> Iterator[Any]:
    return (param for param in command.params if param.param_type_name == "option" and param.name != "help")


def everywhere() -> Iterator[tuple[str, Any]]:
    """Every option of every command and of every method, with the place where it stands."""
    for name, command in COMMANDS.items():
        yield from ((name, option) for option in options(command))
    for method in METHODS:
        yield from ((f"--method {method.word()}", option) for option in method_options(method))


def examples() -> list[tuple[str, str]]:
    return [(name, line) for name, command in COMMANDS.items() for line in command.epilog.splitlines()]


def test_there_are_few_commands() -> None:
    assert len(COMMANDS) <= MOST_COMMANDS
    shown = CliRunner().invoke(app, ["--help"]).stdout
    assert all(name in shown for name in COMMANDS)


@pytest.mark.parametrize("call", CALLS)
def test_help_fits_one_screen_and_ends_with_an_example(call: str) -> None:
    text = help_of(call)
    body, _, example = text.partition("\nExample:\n")
    assert max(map(len, body.splitlines())) <= WIDTH
    rows = sum(max(1, ceil(len(line) / WIDTH)) for line in text.splitlines())  # a command to be copied is not folded
    assert rows <= MOST_LINES, rows
    assert example.split()[:2] == ["quadrille", call.split(maxsplit=1)[0]]


@pytest.mark.parametrize(("name", "line"), examples())
def test_every_example_is_one_that_the_program_takes(name: str, line: str) -> None:
    program, command, *words = shlex.split(line)
    assert (program, command) == ("quadrille", name)
    program_of(app)[command].make_context(command, words)  # raises what a wrong word would be told


@pytest.mark.parametrize("name", COMMANDS)
def test_rarely_used_options_stand_in_their_own_section_at_the_end(name: str) -> None:
    for option in options(COMMANDS[name]):
        rare = getattr(option, "rich_help_panel", None) == RARELY
        assert rare == (option.opts[0] in RARE), option.opts[0]
    text = help_of(name)
    if any(option.opts[0] in RARE for option in options(COMMANDS[name])):
        often, _, rarely = text.partition(f"\n{RARELY}:\n")
        rarely = rarely.partition("\nExample:")[0]
        listed = {word for line in rarely.splitlines() for word in line.split()[:1] if word.startswith("--")}
        assert listed == {option.opts[0] for option in options(COMMANDS[name])} & RARE
        assert not any(line.startswith("  ") and line.split()[0] in RARE for line in often.splitlines() if line.strip())


def test_one_word_has_one_meaning_in_the_whole_program() -> None:
    kinds: dict[str, dict[tuple[str | None, bool], list[str]]] = {}
    for place, option in everywhere():
        flag = bool(getattr(option, "is_flag", False))
        for word in option.opts:
            kinds.setdefault(word, {}).setdefault((None if flag else option.metavar, flag), []).append(place)
    several = {word: found for word, found in kinds.items() if len(found) > 1}
    assert set(several) == set(SAME_MEANING), several
    assert all(len({flag for _, flag in found}) == 1 for found in several.values()), "a flag here, a value there"


def test_an_option_that_several_methods_have_means_the_same_in_all() -> None:
    kinds: dict[str, set[str]] = {}
    for method in METHODS:
        for param in method.params().values():
            kinds.setdefault(param.option, set()).add(param.kind)
    assert not {option: found for option, found in kinds.items() if len(found) > 1}


def test_no_option_of_a_method_is_one_of_a_command_as_well() -> None:
    of_methods = {word for method in METHODS for option in method_options(method) for word in option.opts}
    for name in DESIGNED:
        assert not of_methods & {word for option in COMMANDS[name].params for word in option.opts}, name


def test_options_of_a_design_exist_on_swap_and_release_only() -> None:
    assert {"swap", "release"} == DESIGNED
    shared = {"--seed", "--kind", "--sampler", "--risk", "--k"}  # of error, inspect, frontier, ..., meaning the same
    of_methods = {word for method in METHODS for option in method_options(method) for word in option.opts}
    for name in set(COMMANDS) - DESIGNED:
        assert not of_methods & {word for option in options(COMMANDS[name]) for word in option.opts} - shared, name


@pytest.mark.parametrize("name", sorted(DESIGNED))
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.word())
def test_the_help_of_a_method_lists_each_of_its_options_and_nothing_else(name: str, method: Any) -> None:
    text = help_of(f"{name} --method {method.word()}")
    assert f"Options of --method {method.word()}:" in text and "Arguments:" not in text and RARELY not in text
    listed = [line.split()[0] for line in text.splitlines() if line.startswith("  --")]
    assert listed == [f"--{param.option}" for param in method.params().values()]
    assert help_of(f"{name} --method={method.__name__}") == text, "the name of the class does as well"


@pytest.mark.parametrize("name", sorted(DESIGNED))
def test_asking_for_one_method_leaves_no_trace_in_the_next_call(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    program: Any = typer.main.get_command(app)

    def shown(*words: str) -> str:
        program.main([name, *words, "--help"], standalone_mode=False)
        return capsys.readouterr().out

    plain = shown()
    assert shown("--method", "designed") != plain
    assert shown() == plain


def test_without_a_method_swap_shows_the_options_of_random_swapping() -> None:
    text = help_of("swap")
    assert "Options of --method random:" in text and "--pairs" in text and "--targets" not in text
    assert "each has its --help" in " ".join(text.split())


def test_the_help_of_method_names_every_method_of_the_package() -> None:
    (option,) = [param for param in COMMANDS["swap"].params if param.name == "method"]
    ours = [method for method in known_methods().values() if method.__module__.startswith("quadrille.")]
    assert all(re.search(rf"\b{method.word()}\b", option.help) for method in ours)


@pytest.mark.parametrize("command", ["swap", "release"])
def test_the_help_of_a_method_that_does_not_exist_is_refused(command: str) -> None:
    done = CliRunner().invoke(app, [command, "--method", "magic", "--help"])
    assert done.exit_code == 2 and "There is no method 'magic'" in done.output


@pytest.mark.parametrize("name", sorted(DESIGNED))
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.word())
def test_the_help_of_a_method_ends_with_an_example_that_makes_a_recipe(name: str, method: Any) -> None:
    example = help_of(f"{name} --method {method.word()}").partition("\nExample:\n")[2].replace("\\\n", "")
    program, command, *words = shlex.split(example)
    assert (program, command) == ("quadrille", name)
    made = recipe_of(program_of(app)[command].make_context(command, list(words)), method.word(), None)
    assert isinstance(made, method)
    if name == "swap":
        file = words[0].removeprefix("dataset:")
        made.check_columns(getattr(qd.datasets, file)())  # and its columns are there
