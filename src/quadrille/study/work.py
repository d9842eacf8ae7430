"""Scoring candidates: in this process, or in workers that hold the data and watch their parent."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from quadrille.data import Data
from quadrille.errors import InfeasibleError, QuadrilleError
from quadrille.randomness import Stream
from quadrille.recipe import Drawer
from quadrille.study.fastlane import FastLane
from quadrille.study.score import Evaluator
from quadrille.study.store import DONE, FAILED, INFEASIBLE, Pending, Result, seed_of
from quadrille.swap import recipe_from_json

Task = TypeVar("Task")
Done = TypeVar("Done")

Chunk = tuple[Sequence[Pending], dict[int, str]]


class Bench:
    """The data, prepared for some measures and for the design at hand."""

    def __init__(self, data: Data, measures: Sequence[str]) -> None:
        self._data = data
        self._evaluator = Evaluator(data, measures)
        self._blank = (None,) * len(measures)
        self._lane = FastLane.build(data, measures)
        self._design = ""
        self._latest: Drawer | None = None

    def run(self, chunk: Chunk) -> list[Result]:
        """Score the candidates of a chunk."""
        candidates, designs = chunk
        return [self._score(candidate, designs[candidate.design]) for candidate in candidates]

    def _drawer(self, design: str) -> Drawer:
        if self._latest is None or design != self._design:
            self._latest = recipe_from_json(design).drawer(self._data)
            self._design = design
        return self._latest

    def _score(self, candidate: Pending, design: str) -> Result:
        started = time.perf_counter()
        try:
            drawer, stream = self._drawer(design), Stream.of(seed_of(candidate.seed), design)
            quick = self._lane.run(drawer.exchange, stream) if self._lane and drawer.exchange else None
            values, reason = (quick, "") if quick else self._evaluator.values(drawer.draw(stream))
            status = DONE
        except QuadrilleError as error:
            values, reason = self._blank, str(error)
            status = INFEASIBLE if isinstance(error, InfeasibleError) else FAILED
        return Result(candidate.id, status, reason, time.perf_counter() - started, values)


@contextmanager
def workshop(
    workers: int, begin: Callable[..., None], given: tuple[object, ...], run: Callable[[Task], Done]
) -> Generator[Callable[[Task], Callable[[], Done]]]:
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


_bench: Bench | None = None


def begin(parent: int, data: Data, measures: Sequence[str]) -> None:
    """Prepare a worker."""
    global _bench  # noqa: PLW0603  # the one object a worker process holds
    end_with(parent)
    _bench = Bench(data, measures)


def run(chunk: Chunk) -> list[Result]:
    """Score a chunk in a worker."""
    assert _bench is not None
    return _bench.run(chunk)


def end_with(parent: int) -> None:
    """Let this process end with its parent, however that ends."""
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
