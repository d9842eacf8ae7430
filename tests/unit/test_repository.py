"""What is in the repository belongs there: no data, no study, no output of a run; and the README can be pasted."""

from __future__ import annotations

import codeop
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = {".ci", "bench", "docs", "examples", "fuzz", "src", "tests", "tools"}
FILES = {
    ".gitignore",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "conftest.py",
    "constraints.txt",
    "hashes.txt",
    "mkdocs.yml",
    "pyproject.toml",
}
KINDS = {
    "bench": {".py"},
    "docs": {".md", ".png", ".svg", ".css", ".js", ".html", ".txt", ".woff2"},
    "examples": {".ipynb", ".md", ".py", ".toml"},
    "tools": {".py", ".toml"},
}
"""What some folders may hold; the others hold files for tests or data that the package brings along."""
SQLITE = b"SQLite format 3\x00"


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    """Return the files that git keeps, as far as they are still here."""
    if shutil.which("git") is None:
        pytest.skip("there is no git here")
    asked = ["git", "-C", str(ROOT), "ls-files", "-z"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    if done.returncode or not done.stdout:
        pytest.skip("this is no git repository")
    paths = [Path(name) for name in done.stdout.split("\0") if name]
    return [path for path in paths if (ROOT / path).is_file()]


def strangers(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files that do not belong where they are."""
    for path in paths:
        first = path.parts[0]
        if len(path.parts) == 1:
            known = first in FILES
        else:
            known = first in FOLDERS and path.suffix in KINDS.get(first, {path.suffix})
        if not known:
            yield path


def databases(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files that SQLite has written, whatever their names: a study holds seeds."""
    for path in paths:
        with path.open("rb") as file:
            if file.read(len(SQLITE)) == SQLITE:
                yield path


def test_every_file_lies_where_it_belongs(tracked: list[Path]) -> None:
    assert len(tracked) > 100
    assert not list(strangers(tracked))


def test_no_file_is_a_study(tracked: list[Path]) -> None:
    made_for_tests = {ROOT / "fuzz/corpus/study/small.db", ROOT / "tests/golden/frozen/study.db"}
    assert set(databases(ROOT / path for path in tracked)) <= made_for_tests


def test_a_stranger_and_a_study_are_seen(tmp_path: Path) -> None:
    names = ["study", "release/public/data.csv", "docs/people.csv", "tools/report.html", "README.md", "docs/start.md"]
    assert [str(path) for path in strangers(map(Path, names))] == names[:4]
    (tmp_path / "study").write_bytes(SQLITE + b"seeds")
    (tmp_path / "notes").write_text("SQLite")
    assert list(databases(sorted(tmp_path.iterdir()))) == [tmp_path / "study"]


def test_what_the_readme_writes_in_the_folder_of_the_project_is_ignored() -> None:
    written = re.findall(r'out="(\w+)"', (ROOT / "README.md").read_text())
    assert set(written) == {"release", "study", "chosen"}
    ignored = {line.strip("/") for line in (ROOT / ".gitignore").read_text().splitlines()}
    assert set(written) <= ignored


def pasted(text: str) -> Iterator[str]:
    """Yield what the session of a page gives when its statements are pasted into Python, without what is printed."""
    for block in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        yield from (line[4:] for line in block.splitlines() if line.startswith((">>> ", "... ")))


def broken(lines: Iterable[str]) -> list[str]:
    """Return the lines that the prompt of Python refuses; a block that needs an empty line to end is one."""
    found: list[str] = []
    waiting: list[str] = []
    for line in lines:
        waiting.append(line)
        try:
            complete = codeop.compile_command("\n".join(waiting)) is not None
        except SyntaxError:
            found.append(line)
            complete = True
        if complete:
            waiting.clear()
    return found + waiting


def test_the_readme_can_be_pasted_into_a_python_session() -> None:
    lines = list(pasted((ROOT / "README.md").read_text()))
    assert len(lines) > 15
    assert not broken(lines)


def test_a_session_that_cannot_be_pasted_is_seen() -> None:
    assert broken(["for i in range(3):", "    print(i)", "x = 1"]) == ["x = 1"]
    assert broken(["x = (1,", "2)", "x"]) == []
    assert broken(["x = (1,"]) == ["x = (1,"]
