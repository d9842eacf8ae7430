"""One target, many inputs, in a process of its own: it may die over an input, and then the input is known.

Memory and time are bounded for every input, and nothing may be written to stderr, where Python's warnings and the
panics of libraries go.
"""

from __future__ import annotations

import os
import resource
import sys
import time
import traceback
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from fuzz.mutation import mutate
from fuzz.store import Store
from fuzz.targets import TARGETS, Target, outcome

MOST_MEMORY = 400 << 20
"""Bytes that one small input may make the process grow by."""
MOST_SECONDS = 10.0
"""Processor time of one input."""
ADDRESS_SPACE = 3 << 30


def work(store: Store, seconds: float, inputs: int) -> None:
    """Try inputs until the time is up or so many are done; the first run of a target tries its seeds as they are."""
    target, done, first = TARGETS[store.target], store.count(), not store.count()
    seeds, until, goal = store.seeds(), time.monotonic() + seconds, done + inputs
    seen: set[str] = set()
    with TemporaryDirectory() as name, CaughtStderr() as told:
        folder = Path(name)
        for index, raw in enumerate(seeds):  # loads every library, and learns what is known
            seen.add(_tried(target, store, index if first else done, raw, folder, told, compiling=True) or "")
        _bound_memory()
        while done < goal and time.monotonic() < until:
            raw = mutate(seeds, Random(f"{store.target}/{done}"), target.words)
            word = _tried(target, store, done, raw, folder, told)
            done += 1
            if word is not None and word not in seen:
                seen.add(word)
                seeds.append(raw)
                store.keep(raw)
            if done % 200 == 0:
                store.counted(done)
    store.counted(done)


def _tried(
    target: Target,
    store: Store,
    number: int,
    raw: bytes,
    folder: Path,
    told: CaughtStderr,
    *,
    compiling: bool = False,
) -> str | None:
    """Try one input and write down what must not happen; return the word for what did.

    The first inputs may take their time: what they call is compiled then.
    """
    store.current.write_bytes(number.to_bytes(8, "little") + raw)
    size, start, word = _peak(), time.process_time(), None
    try:
        word = outcome(target, raw, folder)
    except BaseException as error:  # a panic of polars is no Exception
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        place = traceback.extract_tb(error.__traceback__)[-1]
        kind = f"{type(error).__name__} {place.filename}:{place.lineno}"
        store.find(raw, "".join(traceback.format_exception(error))[-4000:], kind + str(error)[:30])
    taken, grown, text = time.process_time() - start, _peak() - size, told.text()
    if taken > MOST_SECONDS and not compiling:
        store.find(raw, f"{taken:.1f} s of processor time", "slow")
    if grown > MOST_MEMORY:
        store.find(raw, f"the process grew by {grown >> 20} MB", "memory")
    if text:
        store.find(raw, f"written to stderr:\n{text[:2000]}", "stderr " + text[:60])
    return word


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _bound_memory() -> None:
    """Let no input ask for much more than the process holds once everything is loaded."""
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    if pages:
        limit = pages * resource.getpagesize() + ADDRESS_SPACE
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))


class CaughtStderr:
    """Catch what is written to file descriptor 2, by Python or by a library."""

    def __enter__(self) -> CaughtStderr:
        sys.stderr.flush()
        self._kept, self._file = os.dup(2), os.memfd_create("stderr")
        os.dup2(self._file, 2)
        return self

    def text(self) -> str:
        """Return what was written since the last time."""
        sys.stderr.flush()
        size = os.lseek(self._file, 0, os.SEEK_END)
        if not size:
            return ""
        found = os.pread(self._file, 1 << 16, 0).decode("utf-8", errors="replace")
        os.ftruncate(self._file, 0)
        os.lseek(self._file, 0, os.SEEK_SET)
        return found

    def __exit__(self, *_: object) -> None:
        os.dup2(self._kept, 2)
        os.close(self._kept)
        os.close(self._file)


if __name__ == "__main__":
    work(Store(Path(sys.argv[1]), sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
