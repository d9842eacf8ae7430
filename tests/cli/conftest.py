"""A folder of small files, and a way to run commands in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from cli_files import Run, make_files
from typer.testing import CliRunner, Result

from quadrille.cli import app


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Good and bad files, made afresh for each test."""
    make_files(tmp_path)
    return tmp_path


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command inside the folder; words are split at blanks unless given as a list."""
    monkeypatch.chdir(folder)
    runner = CliRunner()

    def call(words: str | Sequence[str]) -> Result:
        return runner.invoke(app, words)

    return call
