"""Every script in examples/ runs, prints something and leaves nothing behind."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_script_runs_prints_and_leaves_nothing_behind(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out.strip()
    assert not list(tmp_path.iterdir())


def test_there_are_eight_scripts_or_more_and_the_first_has_three_lines() -> None:
    assert len(SCRIPTS) >= 8
    code = [line for line in SCRIPTS[0].read_text().splitlines() if line and not line.startswith(('"""', "import"))]
    assert len(code) == 3


def test_the_readme_names_every_file_of_the_folder_and_no_other() -> None:
    readme = (EXAMPLES / "README.md").read_text()
    named = {word.strip("`") for word in readme.split() if word.strip("`").endswith((".py", ".toml"))}
    assert named == {path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".toml")}
