"""What is done of a simulation, on disk: one SQLite file that survives being killed at any moment."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadrille.errors import InputError, OutputError
from quadrille.study.simulate import COUNTS, METRICS

Floats = NDArray[np.float64]
WIDTH = len(METRICS) + len(COUNTS)
_BESIDE = ("", "-wal", "-shm", "-journal")


class Part(NamedTuple):
    """Some replicates of one setting, by number; a setting is cut at the same places each time."""

    trial: int
    first: int
    stop: int


class Ledger:
    """The parts that are done. What is committed is kept; what is not is simulated again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._db = sqlite3.connect(path, timeout=30)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS parts "
                "(trial INTEGER, first INTEGER, stop INTEGER, rows BLOB NOT NULL, PRIMARY KEY (trial, first, stop))"
            )
        except sqlite3.OperationalError as error:
            raise self._cannot_write(error) from None
        except sqlite3.Error:
            raise self._broken() from None

    def done(self) -> set[Part]:
        """Return the parts that are done."""
        try:
            return {Part(*row) for row in self._db.execute("SELECT trial, first, stop FROM parts")}
        except sqlite3.Error:
            raise self._broken() from None

    def write(self, part: Part, rows: Floats) -> None:
        """Keep a part and commit."""
        try:
            with self._db:
                blob = rows.astype("<f8").tobytes()
                self._db.execute("INSERT OR REPLACE INTO parts VALUES (?, ?, ?, ?)", (*part, blob))
        except sqlite3.Error as error:
            raise self._cannot_write(error) from None

    def collect(self, trials: int, replicates: int) -> Floats:
        """Return all rows: setting by replicate by column."""
        values = np.full((trials, replicates, WIDTH), np.nan)
        try:
            for trial, first, stop, blob in self._db.execute("SELECT trial, first, stop, rows FROM parts"):
                values[trial, first:stop] = np.frombuffer(blob, dtype="<f8").reshape(stop - first, WIDTH)
        except (sqlite3.Error, ValueError, IndexError):
            raise self._broken() from None
        if np.isnan(values[:, :, -1]).any():
            raise self._broken()
        return values

    def close(self) -> None:
        """Stop writing; what is there stays for the next run."""
        self._db.close()

    def _cannot_write(self, error: sqlite3.Error) -> OutputError:
        return OutputError(
            f"Cannot write to {str(self.path)!r}: {error}. What was stored before is intact; make room, check the "
            "rights of the folder, and run the same command to go on."
        )

    def _broken(self) -> InputError:
        return InputError(
            f"The file {str(self.path)!r} with what was done so far is not intact. Delete it and run again: the "
            "simulation then starts anew."
        )


@contextmanager
def opened(path: Path) -> Generator[Ledger]:
    """Open a ledger, and close it whatever happens."""
    ledger = Ledger(path)
    try:
        yield ledger
    finally:
        ledger.close()


def remove(path: Path) -> None:
    """Delete a ledger, which must be closed, and what SQLite may have left beside it."""
    for end in _BESIDE:
        with suppress(OSError):
            path.with_name(path.name + end).unlink(missing_ok=True)
