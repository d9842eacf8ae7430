"""A simulation that is killed at any moment loses nothing that was stored, and ends as if nothing had happened."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

import quadrille as qd
from quadrille.simulation import run

PART, REPLICATES = 10, 300
PARTS = 16 * REPLICATES // PART
DESIGN = {
    "design": {"replicates": REPLICATES, "seed": 1, "mechanism": ["records", "cells"]},
    "areas": {"equal": ["20 x 5000"], "skewed": ["19 x 2000", 62000]},
    "levels": {"two": [0.5, 0.5], "five": ["5 x 0.2"]},
    "rates": {"low": 0.02, "high": 0.3},
}
SCRIPT = """
import json, sys, time
import quadrille as qd
from quadrille.simulation import run

def tell(done, total):
    seen.append(done)
    if len(seen) == 2:
        print("at work", flush=True)
    if len(seen) >= 2:
        time.sleep(0.02)  # so that whoever waits for this can be in time, also on a busy machine

seen = []
run.IN_PROCESS_SECONDS, run.PART = 0.0, int(sys.argv[4])
qd.simulate(design=json.loads(sys.argv[3]), out=sys.argv[1], workers=int(sys.argv[2]), progress=tell)
"""


def killed(folder: Path, workers: int, after: float) -> int:
    """Kill a simulation some time after it began to work; return how many parts are stored then."""
    words = [sys.executable, "-c", SCRIPT, str(folder), str(workers), json.dumps(DESIGN), str(PART)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "at work\n"
        time.sleep(after)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert nobody_left(process.pid)
    with sqlite3.connect(folder / "unfinished.sqlite", timeout=5) as db:
        return int(db.execute("SELECT COUNT(*) FROM parts").fetchone()[0])


def nobody_left(session: int) -> bool:
    for _ in range(1_200):
        try:
            os.killpg(session, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def test_killed_twice_the_result_is_that_of_an_uninterrupted_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    first = killed(broken, 1, after=0.05)
    second = killed(broken, 2, after=0.0)
    assert 0 < first < second < PARTS
    monkeypatch.setattr(run, "PART", PART)
    qd.simulate(design=DESIGN, out=broken, workers=1)
    qd.simulate(design=DESIGN, out=whole, workers=1)
    for name in ("replicates.parquet", "analysis.json", "effects.csv"):
        assert (broken / name).read_bytes() == (whole / name).read_bytes()
    assert pl.read_parquet(broken / "replicates.parquet").height == 16 * REPLICATES
    assert not list(broken.glob("unfinished*"))
