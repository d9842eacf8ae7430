"""Fuzz every target for a given time or number of inputs: `python -m fuzz --minutes 20 --inputs 100000`.

What a run learns stays in `.fuzz/`, and the next run goes on from there. Exit 1 when there is a finding.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from fuzz.store import Store

PATIENCE = 90.0
"""Seconds of processor time without a new input before a worker is taken to hang; of waiting, ten times as many."""


def main() -> int:
    """Run."""
    asked = _asked()
    from fuzz.targets import TARGETS

    names = asked.target or list(TARGETS)
    until, shares = time.monotonic() + 60 * asked.minutes, sum(TARGETS[name].share for name in names)
    for place, name in enumerate(names):
        store = Store(asked.folder, name)
        inputs = int(asked.inputs * TARGETS[name].share / shares) + 1
        left = (until - time.monotonic()) / (len(names) - place)
        before, start = store.count(), time.monotonic()
        fuzz_target(store, left, inputs)
        tried = store.count() - before
        _say(f"{name:9} {tried:8,} inputs in {time.monotonic() - start:5.0f} s, {store.count():9,} in all")
    _guide(asked.folder, [name for name in names if TARGETS[name].guided], asked.guided_seconds)
    found = [(name, *finding) for name in names for finding in Store(asked.folder, name).findings()]
    for name, path, what in found:
        _say(f"\nFINDING {name}: {path}\n{what}")
    _say(f"\n{sum(Store(asked.folder, name).count() for name in names):,} inputs in all runs, {len(found)} findings.")
    return 1 if found else 0


def fuzz_target(store: Store, seconds: float, inputs: int) -> None:
    """Let workers try inputs; one that dies or hangs has found something, and another goes on behind that input."""
    until, goal = time.monotonic() + seconds, store.count() + inputs
    while store.count() < goal and time.monotonic() < until:
        words = [str(store.folder), store.target, str(until - time.monotonic()), str(goal - store.count())]
        worker = subprocess.Popen([sys.executable, "-m", "fuzz.worker", *words])
        hung = not _ended(worker, store)
        if worker.returncode == 0:
            return
        raw = store.current.read_bytes() if store.current.exists() else bytes(8)
        number, raw = int.from_bytes(raw[:8], "little"), raw[8:]
        what = f"no answer in {PATIENCE:.0f} s" if hung else f"the process ended with {_ending(worker.returncode)}"
        if hung or not _contained(store.target, raw):
            store.find(raw, what, f"{what} {len(raw) if hung else ''}")
        store.counted(max(store.count(), number) + 1)


def _ended(worker: subprocess.Popen[bytes], store: Store) -> bool:
    """Wait for a worker; end it when it stays with one input. On a busy machine that takes long and is no fault."""
    last, since, used = b"", time.monotonic(), 0.0
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.wait(timeout=min(2.0, PATIENCE))
            return True
        now = store.current.read_bytes() if store.current.exists() else b""
        if now != last:
            last, since, used = now, time.monotonic(), _processor_time(worker.pid)
        elif _processor_time(worker.pid) - used > PATIENCE or time.monotonic() - since > 10 * PATIENCE:
            worker.kill()
            worker.wait()
            return False


def _processor_time(process: int) -> float:
    """Return the seconds of processor time of another process; those of the clock where the system does not tell."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return time.monotonic()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _ending(code: int) -> str:
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


def _contained(target: str, raw: bytes) -> bool:
    """Tell whether a file that crashes the library of statistics programs is refused when it is read as users do."""
    from fuzz.targets import STAT, isolated
    from quadrille.errors import InputError

    if target not in STAT:
        return False
    with TemporaryDirectory() as name:
        try:
            isolated(raw, Path(name), target)
        except InputError:
            return True
    return False


def _guide(folder: Path, names: list[str], seconds: int) -> None:
    """Fuzz the parsers by coverage, where the library atheris is installed."""
    if not seconds:
        return
    try:
        import atheris  # noqa: F401  # pyright: ignore
    except ImportError:
        _say("No atheris: coverage does not guide the parsers' inputs. Install it with: pip install atheris")
        return
    for name in names:
        store = Store(folder, name)
        before = store.count()
        words = [sys.executable, "-m", "fuzz.guided", str(folder), name, str(seconds)]
        subprocess.run(words, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _say(f"{name:9} {store.count() - before:8,} inputs guided by coverage")


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("target", nargs="*", help="which targets (all)")
    parser.add_argument("--minutes", type=float, default=20, help="how long, over all targets")
    parser.add_argument("--inputs", type=int, default=100_000, help="how many, over all targets")
    parser.add_argument("--guided-seconds", type=int, default=20, help="how long coverage guides each parser")
    parser.add_argument("--folder", type=Path, default=Path(".fuzz"), help="where to keep what was learnt")
    return parser.parse_args()


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
