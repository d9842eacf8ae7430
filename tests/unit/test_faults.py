"""A full disk, a closed folder, a kill, a wrong clock, a second process: nothing is ever half-written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import pytest
from release_case import BOOK, files_of_at_most, table, tree
from typer.testing import CliRunner, Result

import quadrille as qd
from quadrille.cli import app
from quadrille.cli.commands import demo
from quadrille.errors import OutputError

NOBODY = 65534
JOB = """
[data]
file = "good.csv"
codebook = "book.toml"
[search]
measures = ["exposed", "hellinger"]
[[grid]]
method = "RandomSwap"
swap = ["Region"]
pairs = [5, 20]
seeds = 3
"""
FUTURE = datetime(2199, 1, 1, tzinfo=UTC).timestamp()
COMMANDS = {
    "release": "release {home}/good.csv --codebook {home}/book.toml --swap Region --pairs 20 --out {out}",
    "convert csv": "convert {home}/good.csv {out}.csv --codebook {home}/book.toml",
    "convert sav": "convert {home}/good.csv {out}.sav --codebook {home}/book.toml",
    "plan": "plan {home}/good.csv --codebook {home}/book.toml --recipe {home}/random.json --out {out}.parquet",
    "search": "search {home}/job.toml --out {out}.study --workers 1",
    "report": "report {home}/study {home}/good.csv --codebook {home}/book.toml --out {out}.html",
}


@pytest.fixture(scope="module")
def home() -> Generator[Path]:
    """A folder that anybody may enter, owned by an ordinary user where there is a choice."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        table().write_csv(home / "good.csv")
        (home / "book.toml").write_text(BOOK.to_toml())
        (home / "job.toml").write_text(JOB)
        (home / "random.json").write_text(qd.RandomSwap(["Region"], pairs=40).to_json())
        data = qd.read(home / "good.csv", codebook=home / "book.toml")
        recipes = qd.grid(qd.RandomSwap, swap=[["Region"], ["Band"]], pairs=[5, 20], seed=range(3))
        qd.search(data, recipes, ["exposed", "hellinger"], out=home / "study", workers=1)
        home.chmod(0o755)
        if os.geteuid() == 0:
            for path in (home, *home.iterdir()):
                os.chown(path, NOBODY, NOBODY)
        yield home


@pytest.fixture(scope="module")
def sizes(home: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """Run every command where it can write, and return the size of the largest file; this loads all libraries too."""
    largest: dict[str, int] = {}
    for name in COMMANDS:
        folder = tmp_path_factory.mktemp("fine")
        assert command(name, home, folder / "out").exit_code == 0
        largest[name] = max(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return largest


def command(name: str, home: Path, out: Path) -> Result:
    return CliRunner().invoke(app, COMMANDS[name].format(home=home, out=out))


@contextmanager
def ordinary_user() -> Generator[None]:
    """The file system does not stop the superuser, so step down for a moment."""
    if os.geteuid():
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.usefixtures("sizes")
def test_a_folder_that_may_not_be_written_is_refused_and_left_as_it_is(name: str, home: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        closed = Path(folder)
        closed.chmod(0o555)
        with ordinary_user():
            done = command(name, home, closed / "out")
            deeper = command(name, home, closed / "deep" / "er" / "out")
        assert list(closed.iterdir()) == []
        closed.chmod(0o755)
    for each in (done, deeper):
        assert (each.exit_code, each.stdout) == (2, ""), each.output
        assert each.stderr.count("\n") == 1
    assert "Permission denied" in done.stderr


@pytest.mark.parametrize("size", [0, 1_000])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_is_told_and_leaves_nothing(
    name: str, size: int, home: Path, sizes: dict[str, int], tmp_path: Path
) -> None:
    assert sizes[name] > size, "the limit must bite"
    with files_of_at_most(size):
        done = command(name, home, tmp_path / "out")
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    assert done.stderr.count("\n") == 1
    if name not in ("convert sav", "search"):  # made in memory first, where the limit counts too; by SQLite
        assert "File too large" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [0, 5_000, 40_000, 60_000])
@pytest.mark.usefixtures("sizes")
def test_a_search_on_a_full_disk_leaves_neither_a_study_nor_its_folder(size: int, home: Path, tmp_path: Path) -> None:
    with files_of_at_most(size):
        done = command("search", home, tmp_path / "deep" / "er" / "out")
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    assert "Cannot write" in done.stderr
    assert list(tmp_path.iterdir()) == []
    assert command("search", home, tmp_path / "deep" / "er" / "out").exit_code == 0


def test_a_demo_that_cannot_be_written_leaves_what_was_there_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def small(data: qd.Data, out: Path, _seed: int | None) -> qd.Study:
        recipes = qd.grid(qd.RandomSwap, swap=[["MS"]], pairs=[5, 50], seed=range(2))
        return qd.search(data, recipes, ["exposed", "hellinger"], out=out / "study", progress=False)

    def full(_study: object, _choice: object, _data: object, out: Path) -> None:
        (out / "frontier.png").touch()
        raise OutputError("No space left on device.")

    monkeypatch.setattr(demo, "_search", small)
    monkeypatch.setattr(demo, "MOST_EXPOSED", 1.0)
    monkeypatch.setattr(demo, "_pictures", full)
    assert CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "new" / "demo")]).exit_code == 2
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "report.html").write_text("mine")
    assert CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "demo")]).exit_code == 2
    assert tree(tmp_path) == {"demo": None, "demo/report.html": b"mine"}


@pytest.mark.parametrize("name", ["release", "convert csv"])
def test_a_full_disk_leaves_what_an_earlier_run_has_written(name: str, home: Path, tmp_path: Path) -> None:
    assert command(name, home, tmp_path / "out").exit_code == 0
    before = tree(tmp_path)
    with files_of_at_most(100):
        done = CliRunner().invoke(app, COMMANDS[name].format(home=home, out=tmp_path / "out") + " --overwrite")
    assert done.exit_code == 2
    assert tree(tmp_path) == before


@pytest.mark.filterwarnings("ignore::quadrille.release.dossier.GuessableSeedWarning")
@pytest.mark.parametrize("seconds", [0.0, FUTURE])
def test_file_times_do_not_matter(seconds: float, home: Path, tmp_path: Path) -> None:
    for path in home.iterdir():
        os.utime(path, (seconds, seconds))
    data = qd.read(home / "good.csv", codebook=home / "book.toml")
    study = qd.Study(home / "study")
    recipe = study.recipe(1)
    assert study.counts()["done"] == 12
    exact = {"insecure": True, "shuffle": False}  # a number seed, rows in order: they are equal
    made = [qd.release(data, recipe, tmp_path / name, **exact) for name in ("one", "two")]
    for path in (tmp_path / "one").rglob("*"):
        os.utime(path, (FUTURE, FUTURE))
    again = qd.release(data, recipe, tmp_path / "one", overwrite=True, **exact)
    assert tree(again.public) == tree(made[1].public)
    assert all(path.stat().st_mtime < FUTURE for path in again.public.iterdir())


@pytest.mark.filterwarnings("ignore::quadrille.release.dossier.GuessableSeedWarning")
@pytest.mark.parametrize("year", [1971, 2199])
def test_a_wrong_clock_changes_the_date_in_the_dossier_and_nothing_else(
    year: int, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:
            return datetime(year, 1, 2, 3, 4, 5, tzinfo=UTC)

    data = qd.read(home / "good.csv", codebook=home / "book.toml")
    recipe = qd.Study(home / "study").recipe(2)
    right = tree(qd.release(data, recipe, tmp_path / "right", insecure=True, shuffle=False).path)
    monkeypatch.setattr(import_module("quadrille.release.release"), "datetime", Clock)
    wrong = tree(qd.release(data, recipe, tmp_path / "wrong", insecure=True, shuffle=False).path)
    assert {name for name in right if right[name] != wrong[name]} == {"confidential/dossier.md"}
    assert f"on {year}-01-02".encode() in (wrong["confidential/dossier.md"] or b"")


STOPPED = """
import os, sys, warnings
warnings.simplefilter("ignore")
import quadrille as qd
from pathlib import Path
from importlib import import_module
from quadrille.io import atomic
bundle = import_module("quadrille.release.release")
out, step, overwrite = Path(sys.argv[1]), sys.argv[2], bool(int(sys.argv[3]))
data = qd.datasets.cps8d()
count = iter(range(100))
def dead(real, at):
    def step(*args, **kwargs):
        if next(count) == at:
            os.kill(os.getpid(), 9)
        return real(*args, **kwargs)
    return step
if step == "rename":
    atomic._put_in_place = dead(atomic._put_in_place, 0)
elif step == "between":
    atomic._exchange = lambda *_: False
    Path.rename = dead(Path.rename, 1)
else:
    bundle.write_file = dead(bundle.write_file, int(step))
qd.release(data, qd.RandomSwap(["MS"], pairs=5), out, overwrite=overwrite)
"""


@pytest.mark.parametrize(("step", "overwrite"), [("1", False), ("7", True), ("rename", True)])
def test_a_release_that_is_killed_leaves_no_half_and_the_next_one_works(
    step: str, overwrite: bool, cps8d: qd.Data, tmp_path: Path
) -> None:
    out, recipe = tmp_path / "release", qd.RandomSwap(["MS"], pairs=7)
    if overwrite:
        qd.release(cps8d, recipe, out)
    before = tree(tmp_path)
    words = [sys.executable, "-c", STOPPED, str(out), step, str(int(overwrite))]
    assert subprocess.run(words, capture_output=True, check=False).returncode == -signal.SIGKILL
    left = [path for path in tmp_path.iterdir() if path.name.startswith(".quadrille-")]
    assert len(left) == 1  # nobody was there to clear it away
    assert left[0].stat().st_mode & 0o777 == 0o700
    kept = {name: contents for name, contents in tree(tmp_path).items() if not name.startswith(".quadrille-")}
    assert kept == before
    made = qd.release(cps8d, recipe, out, overwrite=overwrite)
    assert {path.name for path in made.public.iterdir()} == {"data.csv", "codebook.toml", "methods.md"}
    assert [path.name for path in tmp_path.iterdir()] == ["release"]  # what the dead one left is removed


def test_a_release_that_is_killed_between_two_renames_can_be_recovered(cps8d: qd.Data, tmp_path: Path) -> None:
    out, recipe = tmp_path / "release", qd.RandomSwap(["MS"], pairs=7)
    qd.release(cps8d, recipe, out)
    before = tree(out)
    words = [sys.executable, "-c", STOPPED, str(out), "between", "1"]
    assert subprocess.run(words, capture_output=True, check=False).returncode == -signal.SIGKILL
    assert not out.exists()
    (old,) = tmp_path.glob(".quadrille-*/old/release")
    assert tree(old) == before
    for overwrite in (False, True):
        with pytest.raises(OutputError, match="move it back") as caught:
            qd.release(cps8d, recipe, out, overwrite=overwrite)
        assert repr(str(old)) in str(caught.value)
    qd.release(cps8d, recipe, tmp_path / "another")  # clears nothing away that is the only one
    assert tree(old) == before


TOGETHER = """
import os, sys, time, warnings
warnings.simplefilter("ignore")
import quadrille as qd
from pathlib import Path
from quadrille.errors import OutputError
from quadrille.io import atomic
out, overwrite, me = Path(sys.argv[1]), bool(int(sys.argv[2])), int(sys.argv[3])
data, place = qd.datasets.cps8d(), out.parent / "ready"
real = atomic._put_in_place
def wait(*args, **kwargs):
    (place / str(me)).touch()
    until = time.monotonic() + 60
    while len(list(place.iterdir())) < 2 and time.monotonic() < until:
        time.sleep(0.001)
    return real(*args, **kwargs)
atomic._put_in_place = wait
try:
    qd.release(data, qd.RandomSwap(["MS"], pairs=5 + me), out, overwrite=overwrite)
except OutputError as error:
    print(error)
    sys.exit(2)
"""


@pytest.mark.parametrize("overwrite", [False, True])
def test_of_two_processes_on_one_output_a_whole_release_of_one_is_left(
    overwrite: bool, cps8d: qd.Data, tmp_path: Path
) -> None:
    out = tmp_path / "release"
    (tmp_path / "ready").mkdir()
    if overwrite:
        qd.release(cps8d, qd.RandomSwap(["MS"], pairs=3), out)
    started = [
        subprocess.Popen(
            [sys.executable, "-c", TOGETHER, str(out), str(int(overwrite)), str(me)], stdout=subprocess.PIPE, text=True
        )
        for me in (0, 1)
    ]
    told = [process.communicate()[0] for process in started]
    codes = [process.returncode for process in started]
    assert set(codes) <= {0, 2} and 0 in codes, told
    if not overwrite:
        assert sorted(codes) == [0, 2]
        assert "Directory not empty" in "".join(told)
    recipe = json.loads((out / "confidential" / "recipe.json").read_text())
    assert codes[recipe["pairs"] - 5] == 0  # the one that is there says that it is
    again = qd.release(cps8d, qd.Recipe.from_json(json.dumps(recipe)), tmp_path / "again")
    files, same = tree(out / "public"), tree(again.public)
    assert sorted((files.pop("data.csv") or b"").splitlines()) == sorted((same.pop("data.csv") or b"").splitlines())
    assert files == same
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again", "ready", "release"]
