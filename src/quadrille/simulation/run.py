"""Simulating a design into a folder: what is not done yet, on all cores; replicates as Parquet, the analysis as CSV."""

from __future__ import annotations

import fcntl
import io
import json
import os
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from quadrille.errors import InputError, MismatchError, OutputError, ParameterError
from quadrille.io.atomic import new_file
from quadrille.params import declared
from quadrille.randomness import Stream, fresh_seed
from quadrille.simulation import COUNTS, METRICS, Asked, Swapping
from quadrille.simulation.design import SimulationDesign
from quadrille.simulation.effects import Analysis, analyse, document, tables
from quadrille.study.workers import IN_PROCESS_SECONDS, cores, end_with, process_pool
from quadrille.text import Shown

Floats = NDArray[np.float64]
WIDTH = len(METRICS) + len(COUNTS)
_BESIDE = ("", "-wal", "-shm", "-journal")


class Part(NamedTuple):
    """Some replicates of one setting, by number; a setting is cut at the same places each time."""

    trial: int
    first: int
    stop: int


class ReplicateStore:
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


def remove(path: Path) -> None:
    """Delete a store, which must be closed, and what SQLite may have left next to it."""
    for end in _BESIDE:
        with suppress(OSError):
            path.with_name(path.name + end).unlink(missing_ok=True)


Progress = Callable[[int, int], None]
"""Told of the replicates done and of all."""

PART = 1_000
"""The most replicates of a setting that are simulated and stored together."""


def parts(design: SimulationDesign) -> Iterator[Part]:
    """Cut the design into parts, in order."""
    for trial in range(len(design.trials)):
        for first in range(0, design.replicates, PART):
            yield Part(trial, first, min(first + PART, design.replicates))


def simulate_missing(
    design: SimulationDesign, seed: int | str, store: ReplicateStore, workers: int, tell: Progress
) -> None:
    """Simulate the parts that the store lacks, and keep each as soon as it is done."""
    known = store.done()
    missing = [part for part in parts(design) if part not in known]
    done = design.total - sum(part.stop - part.first for part in missing)
    tell(done, design.total)

    def take(part: Part, rows: Floats) -> None:
        nonlocal done
        store.write(part, rows)
        done += part.stop - part.first
        tell(done, design.total)

    left = _alone(Simulator(design, seed), missing, workers, take)
    if left:
        _together(design, seed, left, workers, take)


def seconds_for(design: SimulationDesign, workers: int) -> float:
    """Estimate how long the whole design takes, from a replicate of a few settings."""
    stride = max(1, len(design.trials) // 8)
    chosen = range(0, len(design.trials), stride)
    simulator, spent = Simulator(design, 0), 0.0
    for trial in chosen:
        simulator.run(Part(trial, 0, 1))  # the first one prepares
        started = time.perf_counter()
        simulator.run(Part(trial, 1, 3))
        spent += (time.perf_counter() - started) / 2
    return spent / len(chosen) * design.total / workers


class Simulator:
    """A design and its seed, prepared for the setting at hand."""

    def __init__(self, design: SimulationDesign, seed: int | str) -> None:
        self._design = design
        self._seed = seed
        self._latest: tuple[int, Swapping, Stream] | None = None

    def run(self, part: Part) -> Floats:
        """Simulate a part; its rows do not depend on what was simulated before."""
        if self._latest is None or self._latest[0] != part.trial:
            setting = self._design.trials[part.trial].setting()
            self._latest = (part.trial, setting.swapping(), setting.stream(self._seed))
        _, swapping, stream = self._latest
        try:
            return swapping.replicates(stream, range(part.first, part.stop))
        except ParameterError as error:
            design = self._design
            where = f"{design.place}, setting {design.named(design.trials[part.trial])}"
            raise ParameterError(f"{where}: {error}") from None


def _alone(simulator: Simulator, missing: list[Part], workers: int, take: Callable[[Part, Floats], None]) -> list[Part]:
    """Work until all is done, or until it is clear that workers would help; return what is left."""
    if missing:
        simulator.run(
            missing[0]._replace(stop=missing[0].first + 1)
        )  # loads the kernels, and tells nothing about the pace
    started, simulated = time.perf_counter(), 0
    for position, part in enumerate(missing):
        take(part, simulator.run(part))
        simulated += part.stop - part.first
        rest = missing[position + 1 :] if workers > 1 else []
        pace = (time.perf_counter() - started) / simulated
        if pace * sum(each.stop - each.first for each in rest) > IN_PROCESS_SECONDS:
            return rest
    return []


def _together(
    design: SimulationDesign, seed: int | str, left: Iterable[Part], workers: int, take: Callable[[Part, Floats], None]
) -> None:
    """Keep every worker busy with three parts at a time, and store results as they come."""
    queue = iter(left)
    with process_pool(workers, begin, (design, seed), run) as send:
        flying = deque((part, send(part)) for part in islice(queue, 3 * workers))
        while flying:
            part, result = flying.popleft()
            rows = result()
            flying.extend((each, send(each)) for each in islice(queue, 1))
            take(part, rows)


_simulator: Simulator | None = None


def begin(parent: int, design: SimulationDesign, seed: int | str) -> None:
    """Prepare a worker."""
    global _simulator  # noqa: PLW0603  # the one object a worker process holds
    end_with(parent)
    _simulator = Simulator(design, seed)


def run(part: Part) -> Floats:
    """Simulate a part in a worker."""
    assert _simulator is not None
    return _simulator.run(part)


MOST_REPLICATES = 10_000_000
"""More are not simulated: the results would not fit the memory of an ordinary machine."""
DESIGN, REPLICATES, ANALYSIS = "design.json", "replicates.parquet", "analysis.json"
UNFINISHED = "unfinished.sqlite"


@dataclass(frozen=True, repr=False)
class Simulation(Shown):
    """A finished simulation: its folder, design, seed and analysis."""

    path: Path
    design: SimulationDesign
    seed: int | str
    analysis: Analysis

    def frame(self) -> pl.DataFrame:
        """Return a row per replicate: the levels of the factors, its number, six metrics and two counts."""
        return replicates_frame(self.design, self.analysis.values)

    def table(self, name: str) -> pl.DataFrame:
        """Return a table of the analysis: summary, settings, correlations, strata or effects."""
        found = tables(self.analysis)
        if name not in found:
            raise ParameterError(f"There is no table {name!r}. There are: {', '.join(found)}.")
        return found[name]

    def as_dict(self) -> dict[str, object]:
        """Return the analysis as plain values, for JSON."""
        return document(self.design, self.seed, self.analysis)


def run_design(
    design: SimulationDesign | Mapping[str, object] | str | Path,
    out: str | Path,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Simulation:
    """Simulate every setting of a design into a folder; see `simulate`."""
    if workers is None:
        workers = cores()
    declared(Asked)["workers"].check("simulate", "workers", workers)
    asked = _design(design)
    if asked.total > MOST_REPLICATES:
        raise _too_many(asked, workers)
    folder = Path(out)
    with _held(folder):
        seed = _claimed(folder, asked)
        values = _finished(folder, asked)
        if values is None:
            values = _simulated(folder, asked, seed, workers, progress)
        remove(folder / UNFINISHED)
        made = Simulation(folder, asked, seed, analyse(asked, values))
        _write_analysis(made)
    return made


def _design(given: SimulationDesign | Mapping[str, object] | str | Path) -> SimulationDesign:
    if isinstance(given, SimulationDesign):
        return given
    return SimulationDesign.read(given) if isinstance(given, str | Path) else SimulationDesign.of(given)


def _too_many(design: SimulationDesign, workers: int) -> ParameterError:
    hours = seconds_for(design, workers) / 3600
    long = f"{hours:,.0f} hours" if hours < 48 else f"{hours / 24:,.0f} days"
    return ParameterError(
        f"{design.place}: {len(design.trials):,} settings with {design.replicates:,} replicates each are "
        f"{design.total:,} in all, which would take about {long} on {workers:,} cores and "
        f"{design.total * 8 * WIDTH / 1e9:,.0f} GB. {MOST_REPLICATES:,} are the most. Ask for fewer replicates."
    )


@contextmanager
def _held(folder: Path) -> Generator[None]:
    """Make the folder, and keep a second simulation out while this one runs."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        blocked = isinstance(error, FileExistsError | NotADirectoryError)
        reason = "a file stands in its place" if blocked else error.strerror
        raise OutputError(f"Cannot write the folder {str(folder)!r}: {reason}. Choose another place.") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise OutputError(
            f"Another simulation is working on the folder {str(folder)!r}. Wait for it or stop it."
        ) from None
    finally:
        os.close(handle)


def _claimed(folder: Path, design: SimulationDesign) -> int | str:
    """Check that the folder is for this design, and return its seed; a new folder gets both."""
    note = folder / DESIGN
    if note.exists():
        try:
            found = json.loads(note.read_text(encoding="utf-8"))
            identity, seed = str(found["identity"]), cast("int | str", found["seed"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            raise InputError(f"The file {str(note)!r} is not intact. Choose another folder.") from None
        if identity != design.identity or design.seed not in (None, seed):
            raise MismatchError(
                f"The folder {str(folder)!r} holds another design: other settings, replicates or seed. "
                "Choose another folder, or delete it."
            )
        return seed
    if [each for each in folder.iterdir() if not each.name.startswith(".quadrille-")]:
        raise OutputError(f"The folder {str(folder)!r} is not empty and holds no simulation. Choose another one.")
    seed = fresh_seed() if design.seed is None else design.seed
    _write(note, json.dumps({"identity": design.identity, "seed": seed, "title": design.title}, indent=1).encode())
    return seed


def _finished(folder: Path, design: SimulationDesign) -> Floats | None:
    """Read the replicates of a simulation that is done."""
    path = folder / REPLICATES
    if not path.exists():
        return None
    try:
        frame = pl.read_parquet(path, glob=False, hive_partitioning=False)
        columns = [frame[name].to_numpy() for name in (*METRICS, *COUNTS)]
        return np.stack(columns, axis=1).astype(np.float64).reshape(len(design.trials), design.replicates, -1)
    except (Exception, pl.exceptions.PanicException):
        raise InputError(
            f"The file {str(path)!r} is not intact. Delete it and run again: its replicates are then simulated anew."
        ) from None


def _simulated(
    folder: Path, design: SimulationDesign, seed: int | str, workers: int, progress: Progress | None
) -> Floats:
    """Simulate what is missing, and write all replicates."""
    with closing(ReplicateStore(folder / UNFINISHED)) as store:
        simulate_missing(design, seed, store, workers, progress or (lambda _done, _total: None))
        values = store.collect(len(design.trials), design.replicates)
    buffer = io.BytesIO()
    replicates_frame(design, values).write_parquet(buffer)
    _write(folder / REPLICATES, buffer.getbuffer())
    return values


def replicates_frame(design: SimulationDesign, values: Floats) -> pl.DataFrame:
    """Return a row per replicate."""
    levels = np.array([trial.levels for trial in design.trials], dtype=np.uint32)
    columns = [
        pl.Series(factor.name, factor.levels, dtype=pl.Enum(factor.levels))[np.repeat(levels[:, i], design.replicates)]
        for i, factor in enumerate(design.factors)
    ]
    columns.append(pl.Series("replicate", np.tile(np.arange(1, design.replicates + 1), len(design.trials))))
    flat = values.reshape(-1, values.shape[-1])
    columns += [pl.Series(name, flat[:, i]) for i, name in enumerate(METRICS)]
    columns += [pl.Series(name, flat[:, i].astype(np.int64)) for i, name in enumerate(COUNTS, len(METRICS))]
    return pl.DataFrame(columns)


def _write_analysis(made: Simulation) -> None:
    text = json.dumps(made.as_dict(), indent=1, ensure_ascii=False, allow_nan=False)
    _write(made.path / ANALYSIS, text.encode() + b"\n")
    for name, frame in tables(made.analysis).items():
        _write(made.path / f"{name}.csv", frame.write_csv().encode())


def _write(path: Path, contents: bytes | memoryview) -> None:
    with new_file(path, contents):
        pass
