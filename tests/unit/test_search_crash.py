"""A search that is killed at any moment loses nothing that was committed, repeats nothing, and leaves no process."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import quadrille as qd
from effort import tries
from quadrille.errors import InputError

KILLS = tries(3, nightly=20)
SCRIPT = """
import sys
import quadrille as qd
from quadrille.study import run
run.IN_PROCESS_SECONDS, run._CHUNK, run._COMMIT_ROWS, run._COMMIT_SECONDS = 0.0, 16, 32, 0.05
grid = qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"], ["Race", "AnnSal"]], pairs=[200, 2000, 7081], seed=range(200))
measures = ["small_cells", "hellinger", "cramers_v_change"]
print("ready", flush=True)
qd.search(qd.datasets.cps8d(), grid, measures, out=sys.argv[1], workers=int(sys.argv[2]), progress=False)
"""


def start(study: Path, workers: int) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(study), str(workers)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def members(session: int) -> list[int]:
    """Return the living processes of a session."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, its_session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(its_session) == session and state != "Z":
            found.append(int(folder.name))
    return found


def nobody_left(session: int) -> bool:
    for _ in range(100):
        if not members(session):
            return True
        time.sleep(0.1)
    return False


def finished(path: Path) -> int:
    """Count the results that are committed; a study killed before its first commit has none."""
    try:
        counts = qd.Study(path).counts()
    except InputError:
        return 0
    return sum(counts.values()) - counts["pending"]


def content(path: Path) -> object:
    return qd.Study(path).frame().drop("seconds").rows()


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> object:
    path = tmp_path_factory.mktemp("whole") / "study"
    process = start(path, 1)
    assert process.wait(timeout=120) == 0, process.communicate()[1]
    return content(path)


def test_killed_many_times_the_finished_study_is_that_of_an_uninterrupted_run(
    uninterrupted: object, tmp_path: Path
) -> None:
    path, chance, before = tmp_path / "study", random.Random(1), 0
    for turn in range(KILLS):
        process = start(path, 1 + turn % 2)
        time.sleep(chance.uniform(0.0, 0.4 if turn % 2 == 0 else 2.0))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert nobody_left(process.pid)
        done = finished(path)
        assert done >= before
        before = done
    process = start(path, 2)
    assert process.wait(timeout=120) == 0, process.communicate()[1]
    assert content(path) == uninterrupted
    assert [each.name for each in tmp_path.iterdir() if not each.name.startswith(".")] == ["study"]


@pytest.mark.usefixtures("interruptible")
def test_a_search_that_is_interrupted_by_hand_leaves_no_worker(tmp_path: Path) -> None:
    process = start(tmp_path / "study", 2)
    time.sleep(2.0)
    process.send_signal(signal.SIGINT)
    process.wait(timeout=30)
    assert nobody_left(process.pid)
