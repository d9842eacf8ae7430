"""No command writes over what it reads: every option that writes against every file that is read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import typer
from cli_files import Run, study
from typer.testing import CliRunner

import quadrille as qd
from quadrille.cli import app
from quadrille.cli.guard import WRITTEN

# What each command reads, by option ("" for an argument), and the options by which it writes.
READS: dict[str, dict[str, str]] = {
    "inspect": {"file": "good.csv", "codebook": "book.toml", "catalog": "labels.sas7bcat"},
    "convert": {"file": "good.csv", "codebook": "book.toml", "catalog": "labels.sas7bcat"},
    "swap": {"file": "good.csv", "codebook": "book.toml", "recipe": "good.json"},
    "plan": {"file": "good.csv", "codebook": "book.toml", "recipe": "good.json"},
    "score": {
        "before": "good.csv",
        "after": "good.parquet",
        "recipe": "good.json",
        "codebook": "book.toml",
        "codebook_after": "twice.toml",
    },
    "search": {"job": "job.toml"},
    "frontier": {"study": "small.study", "file": "good.csv", "codebook": "book.toml"},
    "pick": {"study": "small.study"},
    "error": {"file": "good.csv", "codebook": "book.toml", "recipe": "good.json"},
    "guarantee": {"file": "good.csv", "codebook": "book.toml", "recipe": "good.json"},
    "attack": {
        "file": "good.csv",
        "codebook": "book.toml",
        "recipe": "good.json",
        "release": "good.parquet",
        "earlier": "good.json",
        "population": "good.csv",
        "codebook_after": "twice.toml",
    },
    "correct": {"table": "good.csv", "methods_note": "note.md"},
    "simulate": {"design": "job.toml"},
    "report": {"study": "small.study", "file": "good.csv", "codebook": "book.toml"},
    "release": {
        "file": "good.csv",
        "codebook": "book.toml",
        "recipe": "good.json",
        "study": "small.study",
        "policy": "kind.toml",
        "after": "earlier",
    },
    "studio": {"home": "place", "root": "files", "tls_cert": "cert.pem", "tls_key": "key.pem"},
}
_PATHS = ("FILE", "FOLDER", "STUDY", "JOB", "OUT", "BEFORE", "AFTER", "TABLE", "DESIGN")
COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # pyright: ignore[reportAttributeAccessIssue]


def parameters(command: str) -> dict[str, Any]:
    """The parameters of a command that name a file or a folder."""
    return {each.name: each for each in COMMANDS[command].params if str(each.metavar).strip("[]") in _PATHS}


def cases() -> list[tuple[str, str, str, str]]:
    """Every file that a command reads against every option by which it writes; links once for each option."""
    return [
        (command, read, output, link)
        for command, reads in READS.items()
        for output in parameters(command)
        if output in WRITTEN
        for read in reads
        for link in (("", "symbolic-", "hard-") if read == list(reads)[-1] else ("",))
    ]


def words(command: str, output: str, path: str) -> list[str]:
    """Return a call that reads every file it can and writes to a path."""
    known = parameters(command)
    given = {**READS[command], output: path}
    arguments = [given.get(name, "new.csv") for name, each in known.items() if each.param_type_name == "argument"]
    options = [
        word
        for name, value in given.items()
        if known[name].param_type_name != "argument"
        for word in (known[name].opts[0], value)
    ]
    more = ["--out", "new"] if command == "simulate" and output != "out" else []
    more += ["--by", "Region"] if command == "score" else []
    overwrite = [] if command in ("search", "simulate", "studio") else ["--overwrite"]
    return [command, *arguments, *options, *more, *overwrite]


def listing(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_path_of_every_command_is_known_as_read_or_written() -> None:
    for command in COMMANDS:
        found = set(parameters(command))
        if found & WRITTEN or command in READS:
            assert found - WRITTEN == set(READS.get(command, {})), command
            assert found & WRITTEN, command
    kinds = {str(each.metavar).strip("[]") for command in COMMANDS.values() for each in command.params}
    assert kinds >= set(_PATHS)
    assert len(cases()) > 80


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all cases: none of them may change it."""
    folder = tmp_path_factory.mktemp("files")
    for name in {name for reads in READS.values() for name in reads.values()}:
        (folder / name).write_text(name)
    for path in list(folder.iterdir()):
        (folder / f"symbolic-{path.name}").symlink_to(path)
        os.link(path, folder / f"hard-{path.name}")
    return folder


@pytest.mark.parametrize(("command", "read", "output", "link"), cases())
def test_what_is_read_is_never_written_over(
    command: str, read: str, output: str, link: str, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    before, path = listing(files), link + READS[command][read]
    done = CliRunner().invoke(app, words(command, output, path))
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    assert f"{path!r} is the " in done.stderr
    assert "original file" in done.stderr or "that this command reads" in done.stderr
    assert listing(files) == before


@pytest.mark.parametrize("target", ["good.csv", "book.toml", "small.study"])
@pytest.mark.parametrize("call", ["report small.study --out", "pick small.study --save-recipe"])
def test_what_a_study_was_made_from_is_safe_though_the_command_does_not_name_it(
    call: str, target: str, run: Run, folder: Path
) -> None:
    (folder / "small.study").write_bytes(study())
    qd.Study(folder / "small.study").remember(str(folder / "good.csv"), str(folder / "book.toml"), None)
    before = listing(folder)
    done = run(f"{call} {target} --overwrite")
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    assert listing(folder) == before
    known = qd.Study(folder / "small.study")
    data = qd.read(folder / "good.csv", codebook=folder / "book.toml")
    with pytest.raises(qd.QuadrilleError, match="Choose another name for the report"):
        qd.report.write_report(known, data, folder / target, overwrite=True)
    assert listing(folder) == before


@pytest.mark.parametrize("target", ["good.csv", "book.toml", "job.toml"])
def test_a_job_cannot_make_its_study_of_a_file_that_it_reads(target: str, run: Run, folder: Path) -> None:
    text = (folder / "job.toml").read_text().replace("new.study", target)
    (folder / "job.toml").write_text(text)
    before = listing(folder)
    done = run("search job.toml")
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    assert f"{target}' is the" in done.stderr
    assert listing(folder) == before


@pytest.mark.parametrize("option", ["file", "codebook", "recipe"])
def test_a_release_does_not_replace_the_folder_that_it_reads_from(option: str, run: Run, folder: Path) -> None:
    assert run("release good.csv --swap Sex --pairs 5 --codebook book.toml --out made").exit_code == 0
    before = listing(folder)
    calls = {
        "file": "made/public/data.csv --swap Sex --pairs 5",
        "codebook": "good.csv --swap Sex --pairs 5 --codebook made/public/codebook.toml",
        "recipe": "good.csv --recipe made/confidential/recipe.json",
    }
    done = run(f"release {calls[option]} --out made --overwrite")
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    assert "lies in the folder 'made'" in done.stderr
    assert listing(folder) == before


@pytest.mark.parametrize("blank", ["", " ", "\n"])
def test_the_policy_of_the_machine_is_safe_though_no_option_names_it(
    blank: str, run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUADRILLE_POLICY", f"{blank}{folder / 'kind.toml'}{blank}")
    before = listing(folder)
    done = run("swap good.csv --swap Sex --pairs 5 --out kind.toml --overwrite")
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    assert "is the policy of this machine that this command reads" in done.stderr
    assert listing(folder) == before


@pytest.mark.parametrize("inside", ["good.csv", "book.toml"])
def test_the_reports_for_readers_replace_no_folder_that_is_read_from(inside: str, run: Run, folder: Path) -> None:
    (folder / "report-readers").mkdir()
    names = {"good.csv": "good.csv", "book.toml": "book.toml"}
    names[inside] = f"report-readers/{inside}"
    (folder / inside).rename(folder / names[inside])
    before = listing(folder)
    words = f"report small.study {names['good.csv']} --codebook {names['book.toml']} --readers --overwrite"
    done = run(words)
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    assert "report-readers" in done.stderr and done.stderr.count("\n") == 1
    assert listing(folder) == before
