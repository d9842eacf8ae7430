"""Scoring candidates in this process or in workers, by plans or by the kernel that draws and scores at once."""

from __future__ import annotations

import mmap
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from quadrille import kernels
from quadrille.data import Codes, Cross, Data
from quadrille.errors import InfeasibleError, OutputError, QuadrilleError
from quadrille.io.atomic import scratch
from quadrille.measure import attack, measure_of
from quadrille.measure.base import Address, Measure
from quadrille.randomness import Stream
from quadrille.recipe import Exchange, Prepared, Recipe
from quadrille.score.evaluator import Evaluator
from quadrille.study.store import DONE, FAILED, INFEASIBLE, Pending, Result, seed_of
from quadrille.summary import Table, Tally

_CODES = {
    "hellinger": kernels.HELLINGER,
    "total_variation": kernels.TOTAL_VARIATION,
    "entropy_change": kernels.ENTROPY_CHANGE,
    "small_cells": kernels.SMALL_CELLS,
    "exposed": kernels.EXPOSED,
    "confidence": kernels.CONFIDENCE,
    "linked": kernels.LINKED,
    "linked_small": kernels.LINKED,
    "attributed": kernels.ATTRIBUTED,
    "attributed_unique": kernels.ATTRIBUTED_UNIQUE,
}
PACKAGE = __name__.partition(".")[0]
_SMALL = (kernels.SMALL_CELLS, kernels.EXPOSED, kernels.CONFIDENCE)


class FusedScorer:
    """The full table of the key variables before, ready for any exchange of random pairs."""

    def __init__(self, data: Data, measures: Sequence[Measure]) -> None:
        self._cross = Cross.of(data, data.keys)
        self._cells = self._cross.cells(data).astype(np.int32)
        before = Table(data.keys).of(data)
        starts = [_start(kind, before) for kind in measures]
        cells = np.zeros((self._cross.possible, 5), dtype=np.int32)
        cells[:, 0] = before.count
        self._table = kernels.FullTable(
            cells=cells,
            total=float(data.n),
            roots=np.sqrt(np.arange(data.n + 1)),
            axes=np.array([self._cross.strides, self._cross.sizes], dtype=np.int64).T.copy(),
            measures=np.array([_coded(kind, data) for kind in measures], dtype=np.int64).T.copy(),
            start=np.array([start for start, _ in starts]),
            persons=np.array([persons for _, persons in starts]),
        )
        self._words = 0  # what the last draw of this exchange needed
        self._latest: tuple[Exchange, Codes, Codes, Codes] | None = None

    @classmethod
    def build(cls, data: Data, measures: Sequence[str]) -> FusedScorer | None:
        """Return the scorer of these measures, or None if they need a plan."""
        calls = [Address.parse(address) for address in measures]
        plain = any(call.margin or call.where or call.name not in _CODES for call in calls)
        if plain or data.weight is not None or not Cross.of(data, data.keys).dense:
            return None
        kinds = [measure_of(address).with_options(call) for address, call in zip(measures, calls, strict=True)]
        targets = {target for kind in kinds if (target := kind.options.get("target")) is not None}
        return cls(data, kinds) if targets <= set(data.keys) else None

    def run(self, exchange: Exchange, stream: Stream) -> tuple[float, ...] | None:
        """Draw and score one candidate; None when that needs a plan."""
        log, part, cell_at = self._prepared(exchange)
        out = np.empty(len(self._table.start))
        _, pool, _, pair_uniform, pairs, name = exchange
        source = stream.sub(name)
        while True:
            dice = kernels.dice(source.words(self._words))
            done = kernels.score_candidate(pairs, pair_uniform, pool, log, dice, self._table, part, cell_at, out)
            if done >= 0:
                return tuple(out.tolist()) if done else None
            self._words *= 2

    def _prepared(self, exchange: Exchange) -> tuple[Codes, Codes, Codes]:
        """Return a log, the part of each cell's number that moves, and the cell at each place of the pool."""
        if self._latest is None or self._latest[0] is not exchange:
            self._words = 64 + 6 * exchange.pairs
            log = np.zeros(2 * exchange.pairs + 2, dtype=np.int64)
            self._latest = exchange, log, self._cross.part(exchange.columns), self._cells[exchange.order()]
        return self._latest[1:]


def _coded(kind: Measure, data: Data) -> tuple[int, int, int, int]:
    """Return the code of a measure, its n, and which of the key variables are its targets, from and to."""
    n = data.n + 1 if kind.name == "linked" else kind.options.get("n", 0)
    target = kind.options.get("target")
    first, end = (0, len(data.keys)) if target is None else (data.keys.index(target), data.keys.index(target) + 1)
    return _CODES[kind.name], n, first, end


def _start(kind: Measure, before: Tally) -> tuple[float, float]:
    """Return the sum of a measure over the file before, and the number of persons, or cases, that it is about."""
    if kind.layout in ("arrival", "target"):
        return attack.at_start(kind, before)
    small = before.count[before.count < kind.options["n"]].sum() if _CODES[kind.name] in _SMALL else 0
    return float(small), float(before.records)


Task = TypeVar("Task")
Done = TypeVar("Done")

Chunk = tuple[Sequence[Pending], dict[int, str]]


class Scorer:
    """The data, prepared for some measures and for the design at hand."""

    def __init__(self, data: Data, measures: Sequence[str], evaluator: Evaluator | None = None) -> None:
        self._data = data
        self._evaluator = evaluator or Evaluator(data, measures)
        self._blank = (None,) * len(measures)
        self._fused = FusedScorer.build(data, measures)
        self._design = ""
        self._latest: Prepared | None = None

    def run(self, chunk: Chunk) -> list[Result]:
        """Score the candidates of a chunk."""
        candidates, designs = chunk
        return [self._score(candidate, designs[candidate.design]) for candidate in candidates]

    def _prepared(self, design: str) -> Prepared:
        if self._latest is None or design != self._design:
            self._recipe = Recipe.from_json(design)
            self._latest = self._recipe.prepared(self._data)
            self._design = design
        return self._latest

    def _score(self, candidate: Pending, design: str) -> Result:
        started = time.perf_counter()
        try:
            prepared = self._prepared(design)
            stream = self._recipe.stream_of(seed_of(candidate.seed))
            quick = self._fused.run(prepared.exchange, stream) if self._fused and prepared.exchange else None
            values, reason = (quick, "") if quick else self._evaluator.values(prepared.draw(stream))
            status = DONE
        except QuadrilleError as error:
            values, reason = self._blank, f"{error.reason}\n{error.hint}".strip()
            status = INFEASIBLE if isinstance(error, InfeasibleError) else FAILED
        return Result(candidate.id, status, reason, time.perf_counter() - started, values)


IN_PROCESS_SECONDS = 2.0
"""Work that takes less than this is done in the process itself: starting workers costs about 0.7 s."""


def cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def process_pool(
    workers: int, begin: Callable[..., None], given: tuple[object, ...], run: Callable[[Task], Done]
) -> Generator[Callable[[Task], Callable[..., Done]]]:
    """Start workers, each prepared by `begin(parent, *given)`; yield what sends them a task and returns how to get it.

    `begin` and `run` are functions of a module: workers import them.
    """
    from loky import ProcessPoolExecutor  # pyright: ignore[reportUnknownVariableType]

    pool: Any = None
    try:
        with undisturbed(), _safe_path():
            pool = ProcessPoolExecutor(workers, initializer=begin, initargs=(os.getpid(), *given))
            pool.submit(os.getpid)  # the first task starts all workers and the thread that can end them
        yield lambda task: pool.submit(run, task).result
    except BaseException:
        if pool is not None:
            pool.shutdown(wait=False, kill_workers=True)
        raise
    pool.shutdown(wait=True)


@contextmanager
def undisturbed() -> Generator[None]:
    """Let a signal to stop wait for the end of the block: a half-started worker would wait for ever, and we for it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    usual = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in usual:
        signal.signal(number, lambda found, _: heard.append(found))
    try:
        yield
    finally:
        for number, handler in usual.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
    for number in heard:
        signal.raise_signal(number)


@contextmanager
def _safe_path() -> Generator[None]:
    """Keep new processes from taking a script in the current folder, such as json.py, for a module of Python."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before


SHARED = 1 << 26
"""Data of so many bytes are not sent to each worker: they lie in files that all of them map."""


@dataclass(frozen=True)
class SharedData:
    """Data whose columns lie in files: all workers that open them share one copy in memory."""

    files: tuple[Path, ...]
    types: tuple[np.dtype[Any], ...]
    rest: Data
    """The data with columns and ticks of no records."""

    def open(self) -> Data:
        """Return the data; their columns are read when they are first looked at, and cannot be written to."""
        return self.rest.with_arrays(list(map(_mapped, self.files, self.types)))


def _mapped(path: Path, kind: np.dtype[Any]) -> Codes:
    with path.open("rb") as file:
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), dtype=kind)


@contextmanager
def shared(data: Data) -> Generator[Data | SharedData]:
    """Yield what to send to workers: small data as they are, of large ones where they lie until the block ends."""
    parts = data.arrays()
    if sum(part.nbytes for part in parts) < SHARED:
        yield data
        return
    with scratch() as folder:
        files = tuple(folder / f"column-{number}" for number in range(len(parts)))
        try:
            for path, part in zip(files, parts, strict=True):
                path.write_bytes(np.ascontiguousarray(part).data)
        except OSError as error:
            raise OutputError(
                f"The folder {str(folder.parent)!r} cannot hold the columns that the workers share: "
                f"{error.strerror or type(error).__name__}. Make room there, name another folder by TMPDIR, or use "
                "workers=1."
            ) from None
        yield SharedData(files, tuple(part.dtype for part in parts), data.with_arrays([part[:0] for part in parts]))


_scorer: Scorer | None = None


def own_methods(designs: Iterable[str]) -> tuple[type[Recipe], ...]:
    """Return the methods of some designs that are not of this package: a worker knows them when it receives them."""
    texts = list(designs)
    outside = [method for method in Recipe.methods.values() if method.__module__.split(".")[0] != PACKAGE]
    return tuple(method for method in outside if any(f'"{method.method_name}"' in text for text in texts))


def begin(parent: int, data: Data | SharedData, measures: Sequence[str], _own: tuple[type[Recipe], ...]) -> None:
    """Prepare a worker."""
    global _scorer  # noqa: PLW0603  # the one object a worker process holds
    end_with(parent)
    _scorer = Scorer(data.open() if isinstance(data, SharedData) else data, measures)


def run(chunk: Chunk) -> list[Result]:
    """Score a chunk in a worker."""
    assert _scorer is not None
    return _scorer.run(chunk)


def end_with(parent: int) -> None:
    """Let this process end with its parent, however that ends."""
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
