"""A search that is killed at any moment loses nothing that was committed, repeats nothing, and leaves no process."""

from __future__ import annotations

import json
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

KILLS = tries(2, nightly=20)
SEEDS = list(range(tries(30, nightly=200)))
GRID = {"swap": [["Edu"], ["MS"], ["Race", "AnnSal"]], "pairs": [200, 2000, 7081], "seed": SEEDS}
TOTAL = 9 * len(SEEDS)
MEASURES = ["small_cells", "hellinger", "cramers_v_change"]
SCRIPT = """
import json, sys, time
import quadrille as qd
from quadrille.study import run
run.IN_PROCESS_SECONDS, run._CHUNK, run._COMMIT_ROWS, run._COMMIT_SECONDS = 0.0, 16, 32, 0.05
path, workers, grid, measures = sys.argv[1], *map(json.loads, sys.argv[2:])
print(0, flush=True)
def tell(_results, done, _total):
    print(done, flush=True)
    time.sleep(0.04)  # so that whoever waits for a result can be in time, also on a busy machine
qd.search(qd.datasets.cps8d(), qd.grid(qd.RandomSwap, **grid), measures, out=path, workers=workers, progress=tell)
"""


def start(study: Path, workers: int, seeds: int = len(SEEDS)) -> subprocess.Popen[str]:
    grid = {**GRID, "seed": list(range(seeds))}
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(study), str(workers), json.dumps(grid), json.dumps(MEASURES)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "0\n"
    return process


def wait_for(process: subprocess.Popen[str], count: int) -> None:
    """Wait until so many results are there, of which some may not be committed yet."""
    assert process.stdout is not None
    while (line := process.stdout.readline()) and int(line) < count:
        pass


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
    for _ in range(1_200):
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


def test_killed_many_times_the_finished_study_is_that_of_an_uninterrupted_run(
    cps8d: qd.Data, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole = tmp_path_factory.mktemp("whole") / "study"
    qd.search(cps8d, qd.grid(qd.RandomSwap, **GRID), MEASURES, out=whole, workers=1)
    path, chance, before, at_work = tmp_path / "study", random.Random(1), 0, 0
    for turn in range(KILLS):
        process = start(path, 2 - turn % 2)
        wait_for(process, min(before + chance.randrange(32, TOTAL // KILLS), TOTAL - 64))
        time.sleep(chance.uniform(0.0, 0.02))
        os.kill(process.pid, signal.SIGKILL)
        at_work += process.wait() == -signal.SIGKILL
        assert nobody_left(process.pid)
        done = finished(path)
        assert done >= before
        before = done
    assert at_work, "a slow machine may miss one of several, but not all"
    process = start(path, tries(1, nightly=2))
    told, error = process.communicate()
    assert process.returncode == 0, error
    assert int(told.split()[-1]) == TOTAL
    assert content(path) == content(whole)
    assert [each.name for each in tmp_path.iterdir() if not each.name.startswith(".")] == ["study"]


@pytest.mark.usefixtures("interruptible")
def test_a_search_that_is_interrupted_by_hand_leaves_no_worker(tmp_path: Path) -> None:
    process = start(tmp_path / "study", 2, seeds=100)
    while len(members(process.pid)) < 3:  # itself and two workers
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    process.wait(timeout=300)
    assert nobody_left(process.pid)
