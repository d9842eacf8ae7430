"""Killed at any moment, a command leaves whole files, closed leftovers and nothing else; the next run goes on.

Searches and simulations that resume are tested further in `test_search_crash.py` and `test_simulation_crash.py`.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import zipfile
from hashlib import sha256
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import quadrille as qd
from effort import tries
from quadrille.cli import app
from quadrille.errors import InputError

N = 6_000
JOB = """
[data]
file = "good.csv"
[search]
measures = ["exposed", "hellinger"]
workers = 1
[[grid]]
method = "RandomSwap"
swap = [["Region"], ["Band"]]
pairs = [50, 200]
seed = [1, 2, 3, 4, 5]
"""
DESIGN = """
[design]
replicates = 60
seed = 1
mechanism = ["cells"]
[areas]
equal = ["4 x 500"]
[levels]
even = [0.5, 0.5]
[rates]
low = 0.02
high = 0.1
"""
COMMANDS = {
    "release": "release {home}/good.csv --swap Region --pairs 200 --out {out}",
    "convert": "convert {home}/packed.zip {out}.csv",
    "search": "search {home}/job.toml --out {out}",
    "report": "report {home}/study {home}/good.csv --out {out}.html --readers",
    "simulate": "simulate {home}/design.toml --out {out}",
    "promise": "release {home}/good.csv --recipe {home}/private.json --out {out}",
    "attack": "attack {home}/good.csv --recipe {home}/random.json --chart {out}.png",
    "guarantee": "guarantee {home}/good.csv --recipe {home}/private.json --chart {out}.png",
    "large": "release {home}/good.csv --swap Region --pairs 200 --format parquet --out {out}",
    "plan": "plan {home}/good.csv --recipe {home}/random.json --out {out}.parquet",
    "codebook": "inspect {home}/good.csv --write-codebook {out}.toml",
    "swap": "swap {home}/good.csv --swap Region --pairs 99 --measures exposed --out {out}.csv --save-recipe {out}.json",
}
KILLS = {name: tries(1, nightly=40) for name in COMMANDS}
"""How often each command is killed: 480 times in all in a night."""
BY_DAY = ("release", "convert")
RELEASES, CHARTS = ("release", "promise", "large"), ("attack", "guarantee")
IN_PIECES = {"large": {"IN_PIECES": "1", "QUADRILLE_MEMORY": "1KB"}}
"""Released as a file of many records is: piece by piece, its columns in files without a name."""

SCRIPT = """
import itertools, os, sys, time
from typer.testing import CliRunner
from quadrille.cli import app
if os.environ.get("IN_PIECES"):
    from quadrille.release import order, release
    release.ONE_BUCKET, order.BUCKET, order.PIECE = 0, 500, 700
command, folder = sys.argv[1:]
run = lambda out: CliRunner().invoke(app, command.format(out=out).split())
run(folder + "/first")  # what a command loads is loaded then
started = time.monotonic()
run(folder + "/second")
print(time.monotonic() - started, flush=True)
for number in itertools.count():
    run(f"{folder}/{number}")
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home, rng = tmp_path_factory.mktemp("home"), np.random.default_rng(4)
    frame = pl.DataFrame(
        {
            "Region": rng.choice(["north", "south", "east"], N),
            "Band": rng.integers(0, 5, N),
            "Sex": rng.choice(["f", "m"], N),
        }
    )
    frame.write_csv(home / "good.csv")
    with zipfile.ZipFile(home / "packed.zip", "w") as archive:
        archive.write(home / "good.csv", "good.csv")
    (home / "job.toml").write_text(JOB)
    (home / "design.toml").write_text(DESIGN)
    (home / "private.json").write_text(qd.PrivateSwap(["Region"], epsilon=5).to_json())
    (home / "random.json").write_text(qd.RandomSwap(["Region"], pairs=200).to_json())
    done = CliRunner().invoke(app, ["search", str(home / "job.toml"), "--out", str(home / "study")])
    assert done.exit_code == 0, done.output
    return home


def whole(name: str, path: Path, first: Path) -> bool:
    """Tell whether what a command has written is all there; `first` is what it wrote undisturbed."""
    if name in RELEASES:
        hashes: dict[str, str] = json.loads((path / "confidential" / "hashes.json").read_text(encoding="utf-8"))
        found = {file.name: sha256(file.read_bytes()).hexdigest() for file in (path / "public").iterdir()}
        said = {key: value for key, value in hashes.items() if isinstance(value, str)} or hashes
        listed = json.dumps(said)
        inside = {file.name for file in (path / "confidential").iterdir()}
        return (
            all(value in listed for value in found.values())
            and len(found) == 3
            and (name == "large") == ("order.json" in inside)
            and inside == {file.name for file in (first / "confidential").iterdir()}
        )
    if name in ("convert", "report"):
        if path.is_dir():  # the pages for the readers
            return {file.name for file in path.iterdir()} == {"analyst.html", "board.html", "chair.html"}
        contents, expected = path.read_bytes(), first.with_suffix(path.suffix).read_bytes()
        return contents == expected if name == "convert" else contents.rstrip().endswith(b"</html>")
    if name == "swap":
        if path.suffix == ".json":
            return qd.Recipe.from_json(path.read_text()).swap == ("Region",)
        return qd.read(path).n == N and path.stat().st_size == first.with_suffix(".csv").stat().st_size
    if name == "plan":
        return pl.read_parquet(path).columns == ["row_index", "Region"] and pl.read_parquet(path).height == 400
    if name == "codebook":
        return path.read_bytes() == first.with_suffix(".toml").read_bytes()
    if name in CHARTS:
        return path.read_bytes().endswith(b"IEND\xaeB\x60\x82")
    if name == "search":
        try:
            qd.Study(path).frame()
        except InputError:  # killed before its first commit
            return path.stat().st_size < 100_000
    return True


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.nightly] * (name not in BY_DAY)) for name in COMMANDS]
)
def test_a_command_that_is_killed_at_a_random_moment_leaves_no_half(name: str, home: Path, tmp_path: Path) -> None:
    chance, before = random.Random(), os.umask(0o022)
    try:
        for turn in range(KILLS[name]):
            folder, scratch = tmp_path / str(turn), tmp_path / f"scratch {turn}"
            folder.mkdir()
            scratch.mkdir()
            command = COMMANDS[name].replace("{home}", str(home))
            left = killed(command, folder, scratch, chance, IN_PIECES.get(name, {}))
            assert_no_half(name, folder, scratch)
            again(name, command, left, folder)
    finally:
        os.umask(before)


def killed(command: str, folder: Path, scratch: Path, chance: random.Random, more: dict[str, str]) -> Path:
    """Run a command again and again until it is killed, and return where the last run wrote to."""
    words = [sys.executable, "-W", "ignore", "-c", SCRIPT, command, str(folder)]
    env = os.environ | {"TMPDIR": str(scratch)} | more
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=env, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        usual = float(process.stdout.readline())
        time.sleep(chance.uniform(0, 2.5 * usual))
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    made = [int(path.name.split(".")[0].split("-")[0]) for path in folder.iterdir() if path.name[0].isdigit()]
    return folder / str(max(made, default=0))


def assert_no_half(name: str, folder: Path, scratch: Path) -> None:
    seen = [path for path in folder.iterdir() if not path.name.startswith(".")]
    assert folder / "first" in {path.with_suffix("") for path in seen}
    for path in seen:
        side = path.name.endswith(("-wal", "-shm", "-journal"))
        assert side or whole(name, path, folder / "first"), path
        if name not in ("simulate", *CHARTS) and path.is_file():  # tables and pictures of aggregates
            assert path.stat().st_mode & 0o077 == 0, path
    for path in (*(path for path in folder.iterdir() if path.name.startswith(".")), *scratch.iterdir()):
        assert path.stat().st_mode & 0o077 == 0, path


def again(name: str, command: str, out: Path, folder: Path) -> None:
    """Run the command once more, to the place where it was killed: it ends well, and clears away what was left."""
    if name not in ("search", "simulate"):
        command += " --overwrite"
    done = CliRunner().invoke(app, command.format(out=out).split())
    if name in RELEASES and "moved" in done.stderr:
        raise AssertionError(done.stderr)
    assert done.exit_code == 0, done.output
    assert [path for path in folder.iterdir() if path.name.startswith(".quadrille-")] == []
    if name == "search":
        columns = ["id", "status", "exposed", "hellinger"]
        frames = [qd.Study(path).frame().select(columns) for path in (out, folder / "first")]
        assert frames[0].equals(frames[1])
    if name == "simulate":
        for file in folder.joinpath("first").iterdir():
            assert file.name.startswith(".") or (out / file.name).read_bytes() == file.read_bytes(), file.name


def test_files_that_are_unpacked_are_closed_and_what_a_killed_process_left_of_them_is_removed(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tempfile

    from quadrille.io import atomic

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dead = subprocess.Popen(["true"])
    dead.wait()
    left = Path(str(atomic.hidden(tmp_path)).replace(f"-{os.getpid()}-", f"-{dead.pid}-"))
    left.mkdir(mode=0o700)
    (left / "good.csv").write_text("CANARY")
    alive = atomic.hidden(tmp_path)
    alive.mkdir()
    seen: list[int] = []
    real = atomic.private_folder

    def noted(path: Path) -> Path:
        made = real(path)
        seen.append(made.stat().st_mode & 0o777)
        return made

    monkeypatch.setattr(atomic, "private_folder", noted)
    assert qd.read(home / "packed.zip").n == N
    assert seen == [0o700]
    assert list(tmp_path.iterdir()) == [alive], "what a living process works on stays"
