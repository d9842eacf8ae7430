"""A folder of small files, and a way to run commands in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shutil import copytree

import pytest
from cli_files import Run, make_files
from typer.testing import CliRunner, Result

from quadrille.cli import app


@pytest.fixture(scope="session")
def files_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Good and bad files, made once, to be copied."""
    folder = tmp_path_factory.mktemp("files_once")
    make_files(folder)
    return folder


@pytest.fixture
def folder(tmp_path: Path, files_once: Path) -> Path:
    """Good and bad files, afresh for each test."""
    copytree(files_once, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command inside the folder; words are split at blanks unless given as a list."""
    monkeypatch.chdir(folder)
    runner = CliRunner()

    def call(words: str | Sequence[str]) -> Result:
        return runner.invoke(app, words)

    return call
