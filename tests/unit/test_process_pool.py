"""Workers start whole or not at all, and end with whoever started them."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl
import pytest

import quadrille as qd
from quadrille.errors import OutputError
from quadrille.study import run, workers
from quadrille.study.workers import process_pool, undisturbed


class Interrupting:
    """Interrupts its process while it is being sent to the second worker: the first runs, the second does not yet."""

    sent = 0

    def __reduce__(self) -> tuple[type[int], tuple[()]]:
        self.sent += 1
        if self.sent == 2:
            time.sleep(1.5)
            os.kill(os.getpid(), signal.SIGINT)
        return int, ()


def begin(parent: int, given: object) -> None:
    pass


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_while_workers_start_ends_them_all() -> None:
    with pytest.raises(KeyboardInterrupt), process_pool(2, begin, (Interrupting(),), abs):
        pass
    patience = time.monotonic() + 120
    while multiprocessing.active_children() and time.monotonic() < patience:
        time.sleep(0.05)
    left = multiprocessing.active_children()
    for child in left:
        child.kill()
    assert left == []


@pytest.mark.usefixtures("interruptible")
def test_a_signal_waits_for_the_end_of_the_block_and_comes_then() -> None:
    reached = False
    with pytest.raises(KeyboardInterrupt), undisturbed():
        os.kill(os.getpid(), signal.SIGINT)
        reached = True
    assert reached
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_scripts_in_the_current_folder_are_not_taken_for_modules(tmp_path: Path) -> None:
    """Nor does a person's own `json.py` beside the data make a sound file look damaged."""
    qd.write(qd.from_frame(pl.DataFrame({"a": [1, 2] * 50})), tmp_path / "file.sav")
    for name in ("json", "argparse", "pickle", "polars", "struct"):
        (tmp_path / f"{name}.py").write_text("open('RAN', 'w').close()\nraise SystemExit(1)\n")
    script = (
        "import os, quadrille as qd\n"
        "from quadrille.study.workers import end_with, process_pool\n"
        "with process_pool(2, end_with, (), abs) as send:\n"
        "    print(send(-3)(), qd.read('file.sav').n)\n"
    )
    call = [sys.executable, "-P", "-c", script]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("3 100\n", "")
    assert not (tmp_path / "RAN").exists()


def test_large_data_are_shared_as_files_that_go_with_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    data = qd.datasets.households()
    assert data.weight is not None
    with workers.shared(data) as small:
        assert small is data
    monkeypatch.setattr(workers, "SHARED", 0)
    with workers.shared(data) as sent:
        assert isinstance(sent, workers.SharedData)
        assert len(pickle.dumps(sent)) < 20_000
        (folder,) = tmp_path.iterdir()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        opened = pickle.loads(pickle.dumps(sent)).open()
        assert opened == data and opened.ticks is not None and (opened.ticks.values == data.ticks.values).all()
        assert not any(opened[name].values.flags.writeable for name in opened.columns)
    assert not list(tmp_path.iterdir())


def test_a_disk_too_small_for_shared_columns_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(workers, "SHARED", 0)
    monkeypatch.setattr(Path, "write_bytes", full)
    with (
        pytest.raises(OutputError, match="that the workers share: No space left on device"),
        workers.shared(qd.datasets.households()),
    ):
        pass
    assert not list(tmp_path.iterdir())


def test_a_search_finds_the_same_on_shared_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = qd.datasets.cps8d()
    recipes = qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"]], rate=[0.02], seed=range(3))
    monkeypatch.setattr(workers, "SHARED", 0)
    monkeypatch.setattr(run, "IN_PROCESS_SECONDS", 0.0)
    found = [
        qd.search(data, recipes, ["exposed", "hellinger"], out=tmp_path / f"{count}.study", workers=count).frame()
        for count in (1, 2)
    ]
    assert found[0].select("exposed", "hellinger").equals(found[1].select("exposed", "hellinger"))
