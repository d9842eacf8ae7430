"""A release is written whole or not at all, whatever fails and whatever was there before."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from release_case import N, failing_at, make_data, make_recipe, table, tree

import quadrille as qd
from quadrille.errors import InputError, OutputError, ParameterError
from quadrille.io import RELEASED, atomic
from quadrille.io import atomic as hidden
from quadrille.release import release
from quadrille.report import readers


@pytest.fixture(scope="module")
def data() -> qd.Data:
    return make_data()


@pytest.fixture(scope="module")
def recipe() -> qd.RandomSwap:
    return make_recipe()


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
STEPS = [("write", i) for i in range(9)] + [("fsync", i) for i in range(12)] + [("rename", 0), ("mkdir", 0)]


def two_steps(*_: object) -> bool:
    """What a system says that cannot let two folders change places at once."""
    return False


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize(("step", "call"), STEPS)
def test_a_full_disk_at_any_step_leaves_everything_as_it_was(
    data: qd.Data,
    recipe: qd.RandomSwap,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    call: int,
    overwrite: bool,
) -> None:
    out = tmp_path / "deep" / "er" / "release"
    if overwrite:
        qd.release(data, qd.RandomSwap(["Band"], pairs=3), out)
    before = tree(tmp_path)
    owner, name = {
        "write": (release, "write_file"),
        "fsync": (os, "fsync"),
        "rename": (Path, "rename"),
        "mkdir": (Path, "mkdir"),
    }[step]
    monkeypatch.setattr(owner, name, failing_at(call, FULL, getattr(owner, name)))
    monkeypatch.setattr(atomic, "_exchange", two_steps)
    with pytest.raises(OutputError, match="No space left on device") as caught:
        qd.release(data, recipe, out, overwrite=overwrite)
    monkeypatch.undo()
    assert str(out) in str(caught.value)
    assert tree(tmp_path) == before


def test_the_old_release_comes_back_when_the_new_one_cannot_take_its_place(
    data: qd.Data, recipe: qd.RandomSwap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "release"
    qd.release(data, qd.RandomSwap(["Band"], pairs=3), out)
    before = tree(tmp_path)
    monkeypatch.setattr(atomic, "_exchange", two_steps)
    monkeypatch.setattr(Path, "rename", failing_at(1, FULL, Path.rename))
    with pytest.raises(OutputError, match="No space left"):
        qd.release(data, recipe, out, overwrite=True)
    monkeypatch.undo()
    assert tree(tmp_path) == before


def test_the_old_release_comes_back_after_an_interruption_between_the_two_steps(
    data: qd.Data, recipe: qd.RandomSwap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "release"
    qd.release(data, qd.RandomSwap(["Band"], pairs=3), out)
    before = tree(tmp_path)

    def interrupted(fresh: Path, path: Path, aside: Path) -> None:
        aside.parent.mkdir()
        path.rename(aside)
        raise KeyboardInterrupt

    monkeypatch.setattr(atomic, "_exchange", two_steps)
    monkeypatch.setattr(atomic, "_replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        qd.release(data, recipe, out, overwrite=True)
    assert tree(tmp_path) == before


def test_an_old_release_that_cannot_come_back_is_kept_and_its_place_told(
    data: qd.Data, recipe: qd.RandomSwap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, real = tmp_path / "release", Path.rename
    qd.release(data, qd.RandomSwap(["Band"], pairs=3), out)
    before = tree(out)

    def refuse(path: Path, target: Path) -> Path:
        if target == out:
            raise FULL
        return real(path, target)

    monkeypatch.setattr(atomic, "_exchange", two_steps)
    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(OutputError, match="cannot be moved back"):
        qd.release(data, recipe, out, overwrite=True)
    monkeypatch.undo()
    with pytest.raises(OutputError, match="move it back") as caught:  # the next run says so, too
        qd.release(data, recipe, out, overwrite=True)
    (old,) = tmp_path.glob(".quadrille-*/old/release")
    assert repr(str(old)) in str(caught.value)
    assert tree(old) == before
    old.rename(out)
    assert qd.release(data, recipe, out, overwrite=True).path == out


def test_two_folders_change_places_at_once(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    assert not atomic._exchange(tmp_path / "one", tmp_path / "three")
    if not atomic._exchange(tmp_path / "one", tmp_path / "two"):
        pytest.skip("this file system cannot do it")
    assert sorted(tree(tmp_path)) == ["one", "one/two", "two", "two/one"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError(), RuntimeError("unexpected")])
@pytest.mark.parametrize("call", [0, 4, 8])
def test_an_interruption_leaves_nothing(
    data: qd.Data,
    recipe: qd.RandomSwap,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    call: int,
) -> None:
    monkeypatch.setattr(release, "write_file", failing_at(call, error, release.write_file))
    with pytest.raises(type(error)):
        qd.release(data, recipe, tmp_path / "new" / "release")
    assert tree(tmp_path) == {}


def test_a_failed_draw_or_score_writes_nothing(data: qd.Data, tmp_path: Path) -> None:
    with pytest.raises(qd.InfeasibleError):
        qd.release(data, qd.RandomSwap(["Region"], pairs=N), tmp_path / "r")
    with pytest.raises(InputError, match="helinger"):
        qd.release(data, qd.RandomSwap(["Region"], pairs=3), tmp_path / "r", measures=["helinger"])
    with pytest.raises(ParameterError, match="'format'"):
        qd.release(data, qd.RandomSwap(["Region"], pairs=3), tmp_path / "r", format="xlsx")
    assert tree(tmp_path) == {}


def test_a_folder_below_a_file_is_refused_with_path_and_reason(
    data: qd.Data, recipe: qd.RandomSwap, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("here")
    out = tmp_path / "file" / "release"
    with pytest.raises(OutputError, match="is a file") as caught:
        qd.release(data, recipe, out)
    assert str(out) in str(caught.value)
    assert tree(tmp_path) == {"file": b"here"}


def test_an_unwritable_folder_is_refused_with_path_and_reason(
    data: qd.Data, recipe: qd.RandomSwap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    denied = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    # The file system does not stop the superuser, so the refusal is made here.
    monkeypatch.setattr(Path, "mkdir", failing_at(1, denied, Path.mkdir))
    with pytest.raises(OutputError, match="Permission denied"):
        qd.release(data, recipe, tmp_path / "release")
    monkeypatch.undo()
    assert tree(tmp_path) == {}


def test_a_folder_that_is_not_empty_stays_as_it_is(data: qd.Data, recipe: qd.RandomSwap, tmp_path: Path) -> None:
    out = tmp_path / "release"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match="not empty"):
        qd.release(data, recipe, out)
    with pytest.raises(OutputError, match="other files than a release"):
        qd.release(data, recipe, out, overwrite=True)
    assert tree(tmp_path) == {"release": None, "release/notes.txt": b"mine"}


@pytest.mark.parametrize(
    "name",
    [
        *("public/extra", "public/public/data.csv", "public/readers/chair.html", "readers/chair.html"),
        *("confidential/notes.md", "confidential/readers/notes.txt", "confidential/readers/public/data.csv"),
    ],
)
def test_a_file_of_somebody_else_at_any_depth_keeps_a_release_from_being_replaced(
    data: qd.Data, recipe: qd.RandomSwap, tmp_path: Path, name: str
) -> None:
    out = qd.release(data, recipe, tmp_path / "release").path
    (out / name).parent.mkdir(parents=True, exist_ok=True)
    (out / name).write_text("mine")
    before = tree(tmp_path)
    with pytest.raises(OutputError, match="other files than a release"):
        qd.release(data, recipe, out, overwrite=True)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("name", ["public", "public/data.csv", "confidential/readers"])
def test_a_link_or_a_folder_in_place_of_a_file_is_no_part_of_a_release(
    data: qd.Data, recipe: qd.RandomSwap, tmp_path: Path, name: str
) -> None:
    out = qd.release(data, recipe, tmp_path / "release").path
    elsewhere = tmp_path / "elsewhere"
    (out / name).rename(elsewhere) if (out / name).exists() else elsewhere.mkdir()
    (out / name).symlink_to(elsewhere)
    with pytest.raises(OutputError, match="other files than a release"):
        qd.release(data, recipe, out, overwrite=True)
    (out / name).unlink()
    (out / name).touch() if elsewhere.is_dir() else (out / name).mkdir()
    with pytest.raises(OutputError, match="other files than a release"):
        qd.release(data, recipe, out, overwrite=True)


@pytest.mark.parametrize("format", RELEASED)
def test_everything_that_a_release_writes_is_known_when_it_is_replaced(
    data: qd.Data, tmp_path: Path, format: str
) -> None:
    (tmp_path / "policy.toml").write_text("[measures]\nhellinger = {most = 0.9}\n")
    recipe = qd.ControlledSwap(["Region"], targets=0.05)
    for _ in range(2):
        made = qd.release(
            data,
            recipe,
            tmp_path / "out",
            format=format,
            policy=tmp_path / "policy.toml",
            publish_f=False,
            overwrite=True,
        )
        assert {path.name for path in made.confidential.iterdir()} >= {"policy.json", "targets.parquet"}
        (made.confidential / "readers").mkdir()
        for name in readers.FILES:
            (made.confidential / "readers" / name).touch()


def test_the_root_of_all_folders_is_refused(data: qd.Data, recipe: qd.RandomSwap) -> None:
    with pytest.raises(OutputError, match="not empty"):
        qd.release(data, recipe, "/")
    with pytest.raises(OutputError, match="other files than a release"):
        qd.release(data, recipe, "/", overwrite=True)


def test_a_file_in_the_way_and_the_current_folder_are_refused(
    data: qd.Data, recipe: qd.RandomSwap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "release").write_text("mine")
    with pytest.raises(OutputError, match="a file of that name exists"):
        qd.release(data, recipe, tmp_path / "release", overwrite=True)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(OutputError, match="current folder"):
        qd.release(data, recipe, ".")
    assert tree(tmp_path) == {"here": None, "release": b"mine"}


def test_an_empty_folder_is_used_and_a_release_replaced_when_asked(
    data: qd.Data, recipe: qd.RandomSwap, tmp_path: Path
) -> None:
    out = tmp_path / "release"
    out.mkdir()
    first = qd.release(data, recipe, out)
    old = tree(out)
    second = qd.release(data, qd.RandomSwap(["Band"], pairs=11), out, overwrite=True)
    assert first.path == second.path == out
    assert tree(out)["public/data.csv"] != old["public/data.csv"]
    assert json.loads((out / "confidential" / "recipe.json").read_text())["pairs"] == 11
    assert [entry.name for entry in tmp_path.iterdir()] == ["release"]


def test_leftovers_of_the_dead_are_removed_and_all_others_kept(tmp_path: Path) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    mine, token = hidden.hidden(tmp_path).name, "0" * 16
    here = mine.split("-")[1]
    names = {
        "dead": f".quadrille-{here}-{dead.pid}-{token}",
        "alive": f".quadrille-{here}-{os.getppid()}-{token}",
        "elsewhere": f".quadrille-{'0' * 12}-{dead.pid}-{token}",
        "of an older version": f".quadrille-{token}",
        "no process": f".quadrille-{here}-0-{token}",
        "with an old release": f".quadrille-{here}-{dead.pid}-{'1' * 16}",
    }
    for name in (mine, *names.values()):
        (tmp_path / name / "new").mkdir(parents=True)
    (tmp_path / names["with an old release"] / "old" / "other").mkdir(parents=True)
    (tmp_path / f".quadrille-{here}-{dead.pid}-{'2' * 16}").touch()  # a file that was to be renamed
    with atomic.new_folder(tmp_path / "done") as fresh:
        (fresh / "file").touch()
    assert {path.name for path in tmp_path.iterdir()} == {"done", mine, *names.values()} - {names["dead"]}


def test_a_leftover_that_cannot_be_removed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic.shutil, "rmtree", lambda *_, **__: None)
    with pytest.raises(OutputError, match="Delete it by hand"), atomic.new_folder(tmp_path / "new"):
        pass


@pytest.mark.filterwarnings("ignore::quadrille.release.dossier.ReleaseWarning")
def test_a_release_with_all_that_a_release_may_hold_can_be_replaced(tmp_path: Path) -> None:
    two = np.arange(N) // 2
    frame = table().with_columns(pl.Series("Household", two), pl.col("Region", "Smoker").gather(two))
    people = qd.from_frame(frame.drop("Serial"), weight="Factor").with_roles(unit="Household", geography=["Region"])
    rows = qd.from_frame(frame.drop("Serial", "Household"), weight="Factor")
    household = qd.CycleSwap(flag="Smoker", unit="Household", leftover="leave")
    made: dict[str, set[str]] = {}
    for name, file, how in (
        ("units", people, household),
        ("guarantee", rows, qd.PrivateSwap(["Band"], chance=0.3)),
        ("targets", rows, qd.ControlledSwap(["Band"], targets=0.05)),
    ):
        for overwrite in (False, True):
            done = qd.release(
                file, how, tmp_path / name, tables=["Band*Smoker"], allow_contradictions=True, overwrite=overwrite
            )
        made[name] = {path.name for path in done.confidential.iterdir()}
    held = set().union(*made.values())
    assert {f"{name}.parquet" for name in ("units", "targets", "tables")} | {"guarantee.json"} <= held
    assert held <= set(atomic.CONTENTS["confidential"])
