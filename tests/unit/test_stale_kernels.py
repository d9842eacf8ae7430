"""Compiled kernels of an older version of any file they depend on are not used, and no others are compiled anew.

What is on disk is code, so it is used only where nobody else can have put it.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from quadrille.kernels import compile as compiling
from quadrille.kernels.compile import stamp_of

FILES = {
    "constants.py": """
from typing import NamedTuple

class Before(NamedTuple):
    factor: int

Factor, NUMBER = Before, 1
""",
    "leaf.py": """
from quadrille.kernels.compile import kernel
from quadrille.kernels.constants import NUMBER

@kernel
def number(by):
    return by.factor * NUMBER
""",
    "far/deep.py": """
from quadrille.kernels.compile import kernel
from quadrille.kernels.leaf import (
    number,
)

@kernel
def twice(by):
    return 2 * number(by)
""",
    "other.py": """
from quadrille.kernels.compile import kernel

@kernel
def three(by):
    return 3
""",
}
RUN = """
import json
from quadrille.kernels.constants import Factor
from quadrille.kernels.far.deep import twice
from quadrille.kernels.leaf import number
from quadrille.kernels.other import three
calls = ((number, Factor(7)), (twice, Factor(7)), (three, 0))
print(json.dumps({f.__name__: [f(given), len(f.stats.cache_hits)] for f, given in calls}))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A package of a few kernels, compiled as ours are."""
    made = tmp_path / "here" / "quadrille" / "kernels"
    for name, text in {"__init__.py": "", "far/__init__.py": "", "../__init__.py": "", **FILES}.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text)
    shutil.copy(compiling.__file__, made / "compile.py")
    return made


def stamps(folder: Path) -> dict[str, str]:
    compiling._read.cache_clear()
    stamp_of.cache_clear()
    return {name: stamp_of(folder / name, folder) for name in FILES}


def changed(folder: Path, name: str) -> set[str]:
    before = stamps(folder)
    (folder / name).write_text((folder / name).read_text() + "# edited\n")
    return {name for name, stamp in stamps(folder).items() if stamp != before[name]}


def test_only_what_depends_on_an_edited_file_is_stale(folder: Path) -> None:
    assert changed(folder, "far/deep.py") == {"far/deep.py"}
    assert changed(folder, "other.py") == {"other.py"}
    assert changed(folder, "leaf.py") == {"leaf.py", "far/deep.py"}
    assert changed(folder, "constants.py") == {"constants.py", "leaf.py", "far/deep.py"}
    assert changed(folder, "compile.py") == {"leaf.py", "far/deep.py", "other.py"}


def test_every_file_of_ours_has_its_own_stamp() -> None:
    folder = Path(compiling.__file__).parent
    files = [path for path in folder.rglob("*.py") if path.name != "__init__.py"]
    assert len({stamp_of(path, folder) for path in files}) == len(files) > 8


@pytest.mark.usefixtures("folder")
def test_a_copy_uses_the_copied_cache_but_for_what_depends_on_an_edit(tmp_path: Path) -> None:
    def run(root: Path) -> dict[str, list[int]]:
        done = subprocess.run([sys.executable, "-c", RUN], cwd=root, env={}, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    assert run(tmp_path / "here") == {"number": [7, 0], "twice": [14, 0], "three": [3, 0]}
    there = tmp_path / "there" / "quadrille" / "kernels"
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    (there / "constants.py").write_text(FILES["constants.py"].replace("Before", "After").replace("1", "5"))
    before = {path: path.stat().st_mtime_ns for path in (there / "__pycache__").glob("other.*.nb?")}
    assert run(tmp_path / "there") == {"number": [35, 0], "twice": [70, 0], "three": [3, 1]}
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert len(before) == 2


def test_a_folder_that_cannot_be_written_is_left_alone(folder: Path, tmp_path: Path) -> None:
    (folder / "__pycache__").write_text("a file in its place")
    (folder / "far" / "__pycache__").write_text("a file in its place")
    command = [sys.executable, "-B", "-c", RUN]
    env = {"HOME": str(folder / "leaf.py"), "XDG_CACHE_HOME": str(folder / "leaf.py")}
    done = subprocess.run(command, cwd=tmp_path / "here", env=env, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"number": [7, 0], "twice": [14, 0], "three": [3, 0]}
    assert not list(tmp_path.rglob("*.nb?"))


class Poison:
    """What unpickles into a new folder: anybody who can write to the cache can make it do anything."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return (os.mkdir, (str(self.mark),))


@pytest.mark.parametrize("mode", [0o777, pytest.param(0o700, marks=pytest.mark.nightly)])
def test_code_in_a_cache_that_others_can_write_to_is_not_run(mode: int, folder: Path, tmp_path: Path) -> None:
    cache, mark = tmp_path / "cache", tmp_path / "owned"
    command = [sys.executable, "-B", "-c", RUN]
    (folder / "__pycache__").write_text("a file in its place")
    (folder / "far" / "__pycache__").write_text("a file in its place")
    env = {"NUMBA_CACHE_DIR": str(cache)}

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=tmp_path / "here", env=env, capture_output=True, text=True, check=True)

    assert run().stderr == ""
    indices = list(cache.rglob("*.nbi"))
    assert len(indices) == 3
    for path in indices:
        path.write_bytes(pickle.dumps(Poison(mark)))
    for path in {index.parent for index in indices}:
        path.chmod(mode)
    done = run()
    assert json.loads(done.stdout) == {"number": [7, 0], "twice": [14, 0], "three": [3, 0]}
    assert mark.exists() == (mode == 0o700), "our own files are trusted"
    assert ("others can write there" in done.stderr) == (mode == 0o777)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    made = tmp_path / "above" / "cache"
    made.mkdir(parents=True)
    (made / "some.nbi").touch()
    made.chmod(0o755)
    return made


def test_a_folder_of_our_own_is_used_and_an_empty_one_is_closed_first(cache: Path, tmp_path: Path) -> None:
    assert compiling._ours_alone(cache)
    empty = tmp_path / "empty"
    empty.mkdir()
    empty.chmod(0o777)
    assert not compiling._ours_alone(empty)
    assert compiling._trusted(empty, tmp_path / "source")
    assert empty.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("whose", ["cache", "above"])
@pytest.mark.parametrize("mode", [0o777, 0o757])
def test_a_folder_that_others_can_write_to_is_not(cache: Path, tmp_path: Path, whose: str, mode: int) -> None:
    (cache if whose == "cache" else cache.parent).chmod(mode)
    with pytest.warns(RuntimeWarning, match="NUMBA_CACHE_DIR"):
        assert not compiling._trusted(cache, tmp_path / "source" / whose / oct(mode))


def test_above_it_a_sticky_folder_will_do_as_nobody_can_rename_there(cache: Path) -> None:
    cache.parent.chmod(0o1777)
    assert compiling._ours_alone(cache)
    cache.chmod(0o1777)
    assert not compiling._ours_alone(cache)


def test_a_link_is_not_followed_to_another_folder(cache: Path) -> None:
    link = cache.parent / "link"
    link.symlink_to(cache)
    assert not compiling._ours_alone(link)
    (link / "deeper").mkdir()
    assert compiling._ours_alone(link / "deeper")
    cache.parent.chmod(0o777)
    assert not compiling._ours_alone(link / "deeper"), "the link can be replaced"


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give a folder away")
def test_the_folder_of_another_user_is_not_trusted(cache: Path) -> None:
    os.chown(cache.parent, 65534, 65534)
    assert not compiling._ours_alone(cache)
    os.chown(cache.parent, 0, 0)
    os.chown(cache, 65534, 65534)
    assert not compiling._ours_alone(cache)


def test_a_group_may_write_only_if_it_is_the_user_alone(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace as Entry

    cache.chmod(0o775)
    mine = Entry(pw_name="somebody", pw_gid=1234)
    monkeypatch.setattr(compiling.pwd, "getpwuid", lambda _: mine)
    facts = os.stat_result((0o40775, *cache.stat()[1:5], 1234, *cache.stat()[6:]))
    for entry, trusted in (
        (Entry(gr_name="somebody", gr_gid=1234, gr_mem=[]), True),
        (Entry(gr_name="somebody", gr_gid=1234, gr_mem=["another"]), False),
        (Entry(gr_name="staff", gr_gid=1234, gr_mem=[]), False),
    ):
        monkeypatch.setattr(compiling.grp, "getgrgid", lambda _, entry=entry: entry)
        assert compiling._open_to_others(facts) != trusted


def test_files_that_are_damaged_or_cannot_be_written_cost_time_and_nothing_else(cache: Path) -> None:
    files = compiling._Files(str(cache), "kernel", "stamp")
    files.save("key", "code")
    assert files.load("key") == "code" and files.load("other") is None
    for path in cache.glob("kernel-*"):
        whole = path.read_bytes()
        for damaged in (b"", whole[: len(whole) // 2], b"\x80\x05nonsense."):
            path.write_bytes(damaged)
            assert compiling._Files(str(cache), "kernel", "stamp").load("key") in (None, "code")
        path.write_bytes(whole)
    assert files.load("key") == "code"
    compiling._Files(str(cache / "missing"), "kernel", "stamp").save("key", "code")  # as on a full disk
    for path in cache.glob("kernel-*"):
        path.write_bytes(b"")
    files.save("key", "code")
    assert files.load("key") == "code", "a damaged index is written anew"


SORTING = """
import json, sys
import numba, numpy as np
from quadrille.kernels.ascending import ascending
from quadrille.kernels.ranked import ranked
values = np.random.default_rng(1).permutation(60)
for _ in range(int(sys.argv[1])):  # move on the numbers that numba gives to what it compiles
    numba.njit(lambda a: a)(1)
kernels = {"ascending": (ascending, np.sort), "ranked": (ranked, np.argsort)}
for name in sys.argv[2:]:
    ours, numpys = kernels[name]
    assert (ours(values) == numpys(values)).all(), name
"""


def test_no_two_processes_count_their_compiled_functions_from_the_same_number() -> None:
    tell = "import quadrille.kernels.compile as c; print(next(c.FunctionIdentity._unique_ids))"
    done = subprocess.run([sys.executable, "-c", tell], capture_output=True, text=True, check=True)
    ours = next(compiling.FunctionIdentity._unique_ids)
    assert min(int(done.stdout), ours) > 1 << 32
    assert abs(int(done.stdout) - ours) > 10_000, "two draws from 2^52 numbers"


@pytest.mark.nightly
def test_kernels_that_two_processes_compiled_work_together(folder: Path, tmp_path: Path) -> None:
    # Sorting and ranking need a function of one name each; counted from 1, some distance gives both one number.
    for name, call in (("ascending", "np.sort(values)"), ("ranked", "np.argsort(values)")):
        text = "import numpy as np\nfrom quadrille.kernels.compile import kernel\n\n@kernel\n"
        (folder / f"{name}.py").write_text(f"{text}def {name}(values):\n    return {call}\n")

    def run(moved_on: int, *names: str) -> None:
        command = [sys.executable, "-c", SORTING, str(moved_on), *names]
        subprocess.run(command, cwd=tmp_path / "here", env={}, capture_output=True, check=True)

    for moved_on in (2, 3, 4):  # with numba 0.68 it is 3
        for path in (folder / "__pycache__").glob("*.nb?"):
            path.unlink()
        run(moved_on, "ascending")
        run(0, "ranked")
        run(0, "ascending", "ranked")
        run(0, "ranked", "ascending")
