"""A candidate of a search against plain pandas and vectorised numpy; workers; a million candidates."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from bench.timing import Result, best, memory
from quadrille.data import Cross
from quadrille.datasets import cps8d
from quadrille.study.grid import grid
from quadrille.study.run import search
from quadrille.study.store import Pending
from quadrille.study.workers import Scorer
from quadrille.swap.random import RandomSwap

MEASURES = ["small_cells", "hellinger"]
PAIRS = 488
COLUMN = "Edu"


def candidate_ratios() -> list[Result]:
    """Compare one candidate, draw included: 488 pairs of one variable, small_cells and 8-way Hellinger."""
    data = cps8d()
    scorer = Scorer(data, MEASURES)
    design = RandomSwap([COLUMN], pairs=PAIRS, sampler="pair-uniform", seed=1).design_json()
    chunk = ([Pending(i, 1, f"number {i}") for i in range(64)], {1: design})
    frame = data.frame().to_pandas()
    cross = Cross.of(data, data.keys)
    cells, codes = cross.cells(data), data[COLUMN].values.astype(np.int64)
    before = np.bincount(cells, minlength=cross.possible)
    rng = np.random.default_rng(1)
    ours, vectorised, plain = best(
        lambda: scorer.run(chunk),
        lambda: [with_numpy(rng, cells, codes, cross.stride(COLUMN), before) for _ in range(16)],
        lambda: with_pandas(rng, frame),
        repeats=7,
    )
    ours, vectorised = ours / 64, vectorised / 16
    return [
        Result(
            "candidate, against plain pandas, times faster",
            plain / ours,
            ">= 150",
            plain >= 150 * ours,
            f"{ours * 1e6:.0f} us per candidate",
        ),
        Result(
            "candidate, against vectorised numpy, times faster",
            vectorised / ours,
            ">= 4",
            vectorised >= 4 * ours,
            f"{ours / (2 * PAIRS) * 1e9:.0f} ns per touched record",
        ),
    ]


def with_numpy(
    rng: np.random.Generator, cells: np.ndarray, codes: np.ndarray, stride: int, before: np.ndarray
) -> tuple[float, float]:
    """Draw without replacement, exchange in the fused code, recount, compare."""
    chosen = rng.choice(len(cells), 2 * PAIRS, replace=False)
    a, b = chosen[:PAIRS], chosen[PAIRS:]
    step = (codes[b] - codes[a]) * stride
    after_cells = cells.copy()
    after_cells[a] += step
    after_cells[b] -= step
    after = np.bincount(after_cells, minlength=len(before))
    n = len(cells)
    hellinger = np.sqrt(((np.sqrt(before / n) - np.sqrt(after / n)) ** 2).sum() / 2)
    unswapped = np.ones(n, dtype=bool)
    unswapped[chosen] = False
    size = after[after_cells]
    return float((unswapped & (size < 3)).sum() / unswapped.sum()), float(hellinger)


def with_pandas(rng: np.random.Generator, frame: pd.DataFrame) -> tuple[float, float]:
    """Copy the table, exchange, group, compare."""
    keys = list(frame.columns)
    after = frame.copy()
    chosen = rng.choice(len(frame), 2 * PAIRS, replace=False)
    a, b = chosen[:PAIRS], chosen[PAIRS:]
    column = frame[COLUMN].to_numpy().copy()
    column[a], column[b] = column[b], column[a]
    after[COLUMN] = column
    f = frame.groupby(keys, observed=True).size() / len(frame)
    g = after.groupby(keys, observed=True).size() / len(frame)
    both = pd.concat([f, g], axis=1).fillna(0).to_numpy()
    size = after.groupby(keys, observed=True)[COLUMN].transform("size")
    unswapped = ~after.index.isin(chosen)
    return float(((size < 3) & unswapped).sum() / unswapped.sum()), float(
        np.sqrt(((np.sqrt(both[:, 0]) - np.sqrt(both[:, 1])) ** 2).sum() / 2)
    )


def _grid(seeds: int) -> object:
    names = cps8d().columns
    swaps = [[name] for name in names] + [list(pair) for pair in combinations(names, 2)]
    return grid(RandomSwap, swap=swaps, pairs=[244, 488, 2442], sampler="pair-uniform", seed=range(seeds))


class Timed(NamedTuple):
    """A search: seconds in all, candidates, and candidates per second once it is under way."""

    seconds: float
    count: int
    pace: float


def timed_search(seeds: int, workers: int) -> Timed:
    """Time a search over 108 designs, store included."""
    marks: list[tuple[float, int]] = []
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        search(
            cps8d(),
            _grid(seeds),
            MEASURES,
            out=Path(folder) / "study",
            workers=workers,
            progress=lambda _results, done, _total: marks.append((time.perf_counter(), done)),
        )
        seconds = time.perf_counter() - started
    (end, count), (begin, first) = marks[-1], next(mark for mark in marks if mark[1] > marks[-1][1] / 3)
    return Timed(seconds, count, (count - first) / (end - begin))


def search_results() -> list[Result]:
    """Time a million candidates, and the pace of two workers against that of one."""
    two, one = timed_search(9260, 2), timed_search(1000, 1)
    gain = two.pace / one.pace
    pace = f"{two.count / two.seconds:,.0f} per second"
    paces = f"steady state: {two.pace:,.0f} against {one.pace:,.0f} per second"
    name = f"{two.count:,} candidates on two cores, store included, seconds"
    return [
        Result(name, two.seconds, "< 60", two.seconds < 60, pace),
        Result("two workers against one, times faster", gain, ">= 1.7", gain >= 1.7, paces),
    ]


def memory_result(count: int = 10**6) -> Result:
    """Measure how much peak memory a million candidates add, per candidate, in processes of their own."""
    peaks = []
    for seeds in (1, count):
        script = f"from bench.search import run_many; run_many({seeds})"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        peaks.append(float(done.stdout))
    extra = (peaks[1] - peaks[0]) / count
    return Result(f"peak memory per candidate, {count:,} candidates, bytes", extra, "<= 200", extra <= 200)


def run_many(seeds: int) -> None:
    """Search over many seeds of one small swap and print the peak memory in bytes."""
    with tempfile.TemporaryDirectory() as folder:
        recipes = grid(RandomSwap, swap=[["MS"]], pairs=1, seed=range(seeds))
        search(cps8d(), recipes, ["hellinger"], out=Path(folder) / "study", workers=1, progress=False)
    print(memory("VmHWM"))
