"""Simulating a design into a folder: replicates as Parquet, the analysis beside them, resumed where it stopped."""

from __future__ import annotations

import fcntl
import io
import json
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from quadrille.errors import InputError, MismatchError, OutputError, ParameterError
from quadrille.io.atomic import new_file
from quadrille.io.simulated_tables import document, tables
from quadrille.randomness import fresh_seed
from quadrille.recipe import whole
from quadrille.study.simulate import COUNTS, METRICS, cores
from quadrille.study.trials.analysis import Analysis, analyse
from quadrille.study.trials.design import Design
from quadrille.study.trials.ledger import opened, remove
from quadrille.study.trials.run import Progress, seconds_for, simulate_missing

Floats = NDArray[np.float64]

MOST_REPLICATES = 10_000_000
"""More are not simulated: the results would not fit the memory of an ordinary machine."""
DESIGN, REPLICATES, ANALYSIS = "design.json", "replicates.parquet", "analysis.json"
LEDGER = "unfinished.sqlite"
_BYTES = 8 * (len(METRICS) + len(COUNTS))


@dataclass(frozen=True)
class Simulation:
    """A finished simulation: its folder, design, seed and analysis."""

    path: Path
    design: Design
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


def simulate_design(
    design: Design | Mapping[str, object] | str | Path,
    out: str | Path,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Simulation:
    """Simulate every setting of a full factorial design and analyse the results; an unfinished simulation is resumed.

    The folder has `replicates.parquet` with a row per replicate, `analysis.json` and its tables as CSV. The rows of a
    setting are those of `simulate` with the same seed: they depend neither on the other settings nor on the workers.

    Parameters
    ----------
    design : a design file, its contents, or a Design.
    out : the folder; it belongs to one design. When it is unfinished, the settings done are not simulated again.
    workers : processes to use; all cores by default.
    progress : a function that is told of the replicates done and of all.

    Example
    -------
    >>> import quadrille as qd
    >>> design = {
    ...     "design": {"replicates": 200, "seed": 1},
    ...     "areas": {"equal": ["4 x 1000"], "skewed": ["3 x 500", 2500]},
    ...     "levels": {"even": [0.5, 0.5], "uneven": [0.8, 0.2]},
    ...     "rates": {"low": 0.01, "high": 0.05},
    ... }
    >>> done = qd.simulate_design(design, "simulated")
    >>> done.frame().shape
    (1600, 13)
    >>> done.analysis.models["chi_square"].factors
    ('areas', 'rates')
    """
    workers = cores() if workers is None else whole("simulate_design", "workers", workers, least=1)
    asked = _design(design)
    if asked.total > MOST_REPLICATES:
        raise _too_many(asked, workers)
    folder = Path(out)
    with _held(folder):
        seed = _claimed(folder, asked)
        values = _finished(folder, asked)
        if values is None:
            values = _simulated(folder, asked, seed, workers, progress)
        remove(folder / LEDGER)
        made = Simulation(folder, asked, seed, analyse(asked, values))
        _write_analysis(made)
    return made


def _design(given: Design | Mapping[str, object] | str | Path) -> Design:
    if isinstance(given, Design):
        return given
    return Design.read(given) if isinstance(given, str | Path) else Design.of(given)


def _too_many(design: Design, workers: int) -> ParameterError:
    hours = seconds_for(design, workers) / 3600
    long = f"{hours:,.0f} hours" if hours < 48 else f"{hours / 24:,.0f} days"
    return ParameterError(
        f"{design.place}: {len(design.trials):,} settings with {design.replicates:,} replicates each are "
        f"{design.total:,} in all, which would take about {long} on {workers:,} cores and "
        f"{design.total * _BYTES / 1e9:,.0f} GB. {MOST_REPLICATES:,} are the most. Ask for fewer replicates."
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


def _claimed(folder: Path, design: Design) -> int | str:
    """Check that the folder is for this design, and return its seed; a new folder gets both."""
    note = folder / DESIGN
    if note.exists():
        try:
            found = json.loads(note.read_text(encoding="utf-8"))
            identity, seed = str(found["identity"]), cast("int | str", found["seed"])
        except (OSError, ValueError, KeyError, TypeError):
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


def _finished(folder: Path, design: Design) -> Floats | None:
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


def _simulated(folder: Path, design: Design, seed: int | str, workers: int, progress: Progress | None) -> Floats:
    """Simulate what is missing, and write all replicates."""
    with opened(folder / LEDGER) as ledger:
        simulate_missing(design, seed, ledger, workers, progress or (lambda _done, _total: None))
        values = ledger.collect(len(design.trials), design.replicates)
    buffer = io.BytesIO()
    replicates_frame(design, values).write_parquet(buffer)
    _write(folder / REPLICATES, buffer.getbuffer())
    return values


def replicates_frame(design: Design, values: Floats) -> pl.DataFrame:
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
