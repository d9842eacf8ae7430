"""Simulating what is not done yet: in this process, or on all cores when there is work for more than a moment."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from quadrille.errors import ParameterError
from quadrille.randomness import Stream
from quadrille.study.simulate import Swapping
from quadrille.study.trials.design import Design
from quadrille.study.trials.ledger import Ledger, Part
from quadrille.study.work import end_with, workshop

Floats = NDArray[np.float64]
Progress = Callable[[int, int], None]
"""Told of the replicates done and of all."""

IN_PROCESS_SECONDS = 2.0
"""Work that takes less than this is done in the process itself: starting workers costs about 0.7 s."""
PART = 1_000
"""The most replicates of a setting that are simulated and stored together."""


def parts(design: Design) -> Iterator[Part]:
    """Cut the design into parts, in order."""
    for trial in range(len(design.trials)):
        for first in range(0, design.replicates, PART):
            yield Part(trial, first, min(first + PART, design.replicates))


def simulate_missing(design: Design, seed: int | str, ledger: Ledger, workers: int, tell: Progress) -> None:
    """Simulate the parts that the ledger lacks, and keep each as soon as it is done."""
    known = ledger.done()
    missing = [part for part in parts(design) if part not in known]
    done = design.total - sum(part.stop - part.first for part in missing)
    tell(done, design.total)

    def take(part: Part, rows: Floats) -> None:
        nonlocal done
        ledger.write(part, rows)
        done += part.stop - part.first
        tell(done, design.total)

    left = _alone(Desk(design, seed), missing, workers, take)
    if left:
        _together(design, seed, left, workers, take)


def seconds_for(design: Design, workers: int) -> float:
    """Estimate how long the whole design takes, from a replicate of a few settings."""
    stride = max(1, len(design.trials) // 8)
    chosen = range(0, len(design.trials), stride)
    desk, spent = Desk(design, 0), 0.0
    for trial in chosen:
        desk.run(Part(trial, 0, 1))  # the first one prepares
        started = time.perf_counter()
        desk.run(Part(trial, 1, 3))
        spent += (time.perf_counter() - started) / 2
    return spent / len(chosen) * design.total / workers


class Desk:
    """A design and its seed, prepared for the setting at hand."""

    def __init__(self, design: Design, seed: int | str) -> None:
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


def _alone(desk: Desk, missing: list[Part], workers: int, take: Callable[[Part, Floats], None]) -> list[Part]:
    """Work until all is done, or until it is clear that workers would help; return what is left."""
    if missing:
        desk.run(missing[0]._replace(stop=missing[0].first + 1))  # loads the kernels, and tells nothing about the pace
    started, simulated = time.perf_counter(), 0
    for position, part in enumerate(missing):
        take(part, desk.run(part))
        simulated += part.stop - part.first
        rest = missing[position + 1 :] if workers > 1 else []
        pace = (time.perf_counter() - started) / simulated
        if pace * sum(each.stop - each.first for each in rest) > IN_PROCESS_SECONDS:
            return rest
    return []


def _together(
    design: Design, seed: int | str, left: Iterable[Part], workers: int, take: Callable[[Part, Floats], None]
) -> None:
    """Keep every worker busy with three parts at a time, and store results as they come."""
    queue = iter(left)
    with workshop(workers, begin, (design, seed), run) as send:
        flying = deque((part, send(part)) for part in islice(queue, 3 * workers))
        while flying:
            part, result = flying.popleft()
            rows = result()
            flying.extend((each, send(each)) for each in islice(queue, 1))
            take(part, rows)


_desk: Desk | None = None


def begin(parent: int, design: Design, seed: int | str) -> None:
    """Prepare a worker."""
    global _desk  # noqa: PLW0603  # the one object a worker process holds
    end_with(parent)
    _desk = Desk(design, seed)


def run(part: Part) -> Floats:
    """Simulate a part in a worker."""
    assert _desk is not None
    return _desk.run(part)
