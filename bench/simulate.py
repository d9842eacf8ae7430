"""A replicate in count space against one that swaps the records and recounts them.

Run: python -m bench.simulate
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from bench.timing import Result, best
from quadrille import kernels
from quadrille.codebook import Variable
from quadrille.data import Column, Data
from quadrille.papers.lemons_2014 import design
from quadrille.randomness import Stream
from quadrille.simulation import Mechanism, Swapping, simulate, table_before
from quadrille.swap.pairing import Pairing, Rule

SKEWED_TRACTS = [5000, 5000, 10000, 10000, 10000, 20000, 20000, 20000]
RECORDS, COUNTIES, REPLICATES = 10**6, 10, 1000

Ints = NDArray[np.int64]


class Records:
    """The file with these counts, and replicates that swap its records."""

    def __init__(self, before: Ints, pairs: int) -> None:
        areas, self._levels = before.shape
        self._before, self._pairs = before, pairs
        self._area: Ints = np.repeat(np.arange(areas, dtype=np.int64), before.sum(axis=1))
        cell: Ints = np.repeat(np.arange(before.size, dtype=np.int64), before.ravel())
        self._level: Ints = cell % self._levels
        tract = Column(Variable("tract", "nominal", tuple(range(areas))), self._area.astype(np.uint8))
        self._pairing = Pairing(Data([tract]), Rule(("tract",), (), (), "all"), "first-uniform")
        self._ones = np.ones(len(cell), dtype=np.int8)
        self._cell = cell.astype(np.int32)
        self._out = np.empty(8)

    def compiled(self, stream: Stream) -> None:
        """Draw the pairs with the kernels of RandomSwap, exchange, recount all records with a kernel, and undo."""
        one, other = self._pairing.draw(self._pairs, stream).T
        was, also = self._cell[one], self._cell[other]
        self._cell[one] = also - also % self._levels + was % self._levels
        self._cell[other] = was - was % self._levels + also % self._levels
        after = np.zeros(self._before.size, dtype=np.int64)
        kernels.add_ticks(self._cell, self._ones, after)  # pyright: ignore[reportArgumentType]
        self._cell[one], self._cell[other] = was, also
        kernels.compare_tables(self._before.ravel(), after, self._levels, self._out)

    def vectorised(self, random: np.random.Generator) -> None:
        """Do it with numpy alone; pairs within an area change nothing, so this is not quite the same distribution."""
        one, other = random.choice(len(self._area), 2 * self._pairs, replace=False).reshape(2, -1)
        moved = self._area.copy()
        moved[one], moved[other] = self._area[other], self._area[one]
        after = np.bincount(moved * self._levels + self._level, minlength=self._before.size)
        kernels.compare_tables(self._before.ravel(), after, self._levels, self._out)


def replicate_times(areas: list[int], shares: list[float], rate: float) -> list[float]:
    """Return milliseconds a replicate: records and cells in count space, records compiled, records with numpy."""
    before, pairs = table_before(areas, shares), round(rate * sum(areas) / 2)
    stream, random = Stream.of(1, "bench"), np.random.default_rng(1)
    sides = [Swapping(before, pairs, "records"), Swapping(before, pairs, "cells")]
    file = Records(before, pairs)
    times = best(
        lambda: sides[0].replicate(stream),
        lambda: sides[1].replicate(stream),
        lambda: file.compiled(stream),
        lambda: file.vectorised(random),
        repeats=5,
        inner=10,
    )
    return [1000 * each for each in times]


def study_seconds(mechanism: Mechanism, workers: int) -> float:
    """Return the seconds of the whole study, 72,000 replicates into a folder, with the analysis."""
    with TemporaryDirectory() as folder:
        start = perf_counter()
        simulate(design=design(mechanism, REPLICATES), out=Path(folder) / "study", workers=workers)
        return perf_counter() - start


def simulate_results() -> list[Result]:
    """Compare for a small, a middling and a large setting, and time the whole study."""
    results: list[Result] = []
    for areas, shares, rate in (
        ([RECORDS // 50] * 50, [0.5, 0.5], 0.01),
        (SKEWED_TRACTS * COUNTIES, [0.8, 0.2], 0.03),
        ([RECORDS // 100] * 100, [0.4, 0.3, 0.15, 0.1, 0.05], 0.05),
    ):
        word = f"{len(areas)} x {len(shares)}, {rate:.0%}"
        records, cells, compiled, vectorised = replicate_times(areas, shares, rate)
        for name, value, least in (("compiled", compiled, 5), ("numpy", vectorised, 10)):
            ratio = value / records
            remark = f"{value:.2f} ms against {records:.3f} ms (cells: {cells:.3f} ms)"
            what = f"simulated replicate against records recounted, {name}, {word}"
            results.append(Result(what, ratio, f">= {least}", ratio >= least, remark))
    for mechanism in ("records", "cells"):
        seconds = study_seconds(mechanism, workers=2)
        what = f"study of 72,000 replicates, {mechanism}, 2 workers, seconds"
        results.append(Result(what, seconds, "<= 30", seconds <= 30))
    return results


if __name__ == "__main__":
    for each in simulate_results():
        print(f"{each.name}: {each.value:.3g} ({each.target}, {'met' if each.met else 'NOT met'}) {each.remark}")
