"""A replicate in count space against one that swaps the records and recounts them.

Run: python -m bench.simulate
"""

from __future__ import annotations

from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from bench.timing import Result, best
from quadrille import kernels
from quadrille.codebook import Variable
from quadrille.data import Column, Data
from quadrille.randomness import Stream
from quadrille.study.simulate import Mechanism, Swapping, simulate, table_before
from quadrille.swap.pairing import Pairing, Rule

SKEWED_AREAS = {5: [5, 5, 30, 30, 30], 8: [5, 5, 10, 10, 10, 20, 20, 20], 10: [5] * 6 + [15, 15, 20, 20]}
SKEWED_SHARES = {2: [0.8, 0.2], 5: [0.4, 0.3, 0.15, 0.1, 0.05]}
RATES = (0.01, 0.03, 0.05)
RECORDS, COUNTIES, REPLICATES = 10**6, 10, 1000
SUBSET = 64
"""Replicates per worker that are timed of each of the 72 settings."""

Ints = NDArray[np.int64]


def settings() -> list[tuple[list[int], list[float], float]]:
    """Return areas, shares and rate of the 72 settings of the study."""
    return [
        (areas * COUNTIES, shares, rate)
        for tracts, skewed in SKEWED_AREAS.items()
        for areas in ([RECORDS // COUNTIES // tracts] * tracts, [1000 * size for size in skewed])
        for levels, uneven in SKEWED_SHARES.items()
        for shares in ([1 / levels] * levels, uneven)
        for rate in RATES
    ]


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
    """Return the seconds of the whole study, from a few replicates of every setting; fixed costs count in full."""
    spent, fixed = 0.0, 0.0
    simulate([10, 10], [0.5, 0.5], rate=0.5, mechanism=mechanism, replicates=2, seed=1)  # loads the kernels
    for areas, shares, rate in settings():
        for replicates in (1, 1 + SUBSET * workers):
            start = perf_counter()
            simulate(areas, shares, rate=rate, mechanism=mechanism, replicates=replicates, seed=1, workers=workers)
            seconds = perf_counter() - start
            if replicates == 1:
                fixed += seconds
            else:
                spent += seconds
    return fixed + (spent - fixed) * (REPLICATES - 1) / (SUBSET * workers)


def simulate_results() -> list[Result]:
    """Compare for a small and a large setting, and extrapolate to the 72,000 replicates of the study."""
    results: list[Result] = []
    for areas, shares, rate in (
        ([RECORDS // 50] * 50, [0.5, 0.5], 0.01),
        ([RECORDS // 100] * 100, SKEWED_SHARES[5], 0.05),
    ):
        word = f"{len(areas)} x {len(shares)}, {rate:.0%}"
        records, cells, compiled, vectorised = replicate_times(areas, shares, rate)
        results.append(Result(f"ms a replicate of records, {word}", records, "<= 0.28", records <= 0.28))
        results.append(Result(f"ms a replicate of cells, {word}", cells, "<= 0.28", cells <= 0.28))
        for name, value in (("compiled", compiled), ("numpy", vectorised)):
            ratio, remark = value / records, f"{value:.2f} ms"
            results.append(Result(f"records swapped and recounted, {name}, {word}", ratio, ">= 3", ratio >= 3, remark))
    for mechanism in ("records", "cells"):
        seconds = study_seconds(mechanism, workers=2)
        remark = f"from {SUBSET * 2} replicates of each of 72 settings"
        results.append(Result(f"s for 72,000 replicates of {mechanism}", seconds, "<= 60", seconds <= 60, remark))
    return results


if __name__ == "__main__":
    for each in simulate_results():
        print(f"{each.name}: {each.value:.3g} ({each.target}, {'met' if each.met else 'NOT met'}) {each.remark}")
