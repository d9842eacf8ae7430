"""A candidate's cost: drawing a plan, changing tables, scoring; against plain numpy recounts, and as N grows."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from bench.timing import Result, best, memory
from quadrille.data import Column, Cross, Data
from quadrille.datasets import cps8d
from quadrille.delta import Delta
from quadrille.score.evaluator import Evaluator
from quadrille.summary import Table
from quadrille.swap.random import RandomSwap

SWAP = ["Edu", "MS"]
TABLES = [
    "Age*EmpTyp*Edu*MS*Race*Sex*AvgHrs*AnnSal",
    "Edu*Age",
    "Edu*EmpTyp",
    "Edu*Race",
    "Edu*AnnSal",
    "MS*Age",
    "MS*Sex",
    "MS*Race",
    "MS*AnnSal",
]
ADDRESSES = [f"hellinger({table})" for table in TABLES]


def large_file(n: int) -> Data:
    """Return n records drawn with replacement from CPS-8d."""
    data = cps8d()
    rows = np.random.default_rng(1).integers(0, data.n, n)
    return Data(Column(data[name].variable, data[name].values[rows], data[name].dtype) for name in data.columns)


def candidate_results(n: int = 10**6) -> list[Result]:
    """Compare one candidate with recounting its nine tables by numpy."""
    data = large_file(n)
    codes = [Cross.of(data, tuple(table.split("*"))).cells(data) for table in TABLES]
    sizes = [Cross.of(data, tuple(table.split("*"))).possible for table in TABLES]
    recipe = RandomSwap(SWAP, rate=0.01, seed=1)
    drawer, stream = recipe.prepared(data), recipe.stream()
    plan = drawer.draw(stream)
    evaluator = Evaluator(data, ADDRESSES)
    evaluator.score(plan)
    tallies = [evaluator.before(Table(tuple(table.split("*")))) for table in TABLES]

    def recount() -> object:
        return [np.bincount(code, minlength=size) for code, size in zip(codes, sizes, strict=True)]

    def change() -> object:
        delta = Delta(data, plan, evaluator.fused)
        return [tally.change(delta) for tally in tallies]

    recounted, changed, scored, drawn = best(
        recount, change, lambda: evaluator.score(plan), lambda: drawer.draw(stream)
    )
    touched = len(plan.rows)
    return [
        Result(
            "nine tables changed, against numpy recounts, times faster",
            recounted / changed,
            ">= 15",
            recounted >= 15 * changed,
            f"{changed / touched * 1e9:.0f} ns per touched record",
        ),
        Result(
            "nine tables changed and scored, times faster",
            recounted / scored,
            ">= 10",
            recounted >= 10 * scored,
            f"{scored / touched * 1e9:.0f} ns per touched record",
        ),
        Result(
            "drawing the plan, as a multiple of changing the tables",
            drawn / changed,
            "<= 2",
            drawn <= 2 * changed,
            f"{drawn / touched * 1e9:.0f} ns per touched record",
        ),
    ]


def growth_results(sizes: tuple[int, ...] = (10**5, 10**6, 10**7), pairs: int = 5000) -> list[Result]:
    """Tell how the cost of a whole candidate grows with N at a fixed number of pairs."""
    sides = []
    for n in sizes:
        data = large_file(n)
        recipe = RandomSwap(SWAP, pairs=pairs, seed=1)
        drawer, stream, evaluator = recipe.prepared(data), recipe.stream(), Evaluator(data, ADDRESSES)
        sides.append(lambda d=drawer, s=stream, e=evaluator: e.score(d.draw(s)))
    times = best(*sides, repeats=15)
    growth = times[-1] / times[0]
    remark = ", ".join(
        f"N = 10^{len(str(n)) - 1}: {t / (2 * pairs) * 1e9:.0f} ns" for n, t in zip(sizes, times, strict=True)
    )
    return [
        Result(
            "time per candidate, N = 10^7 against 10^5, 5,000 pairs",
            growth,
            "< 3",
            growth < 3,
            remark + " per touched record",
        )
    ]


def memory_result(n: int = 10**7) -> Result:
    """Measure peak memory beyond the input codes, in a process of its own."""
    script = f"from bench.core import peak_memory; peak_memory({n})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    gib = float(done.stdout)
    return Result("memory beyond the input codes, N = 10^7, 8 variables, GiB", gib, "< 1", gib < 1)


def peak_memory(n: int) -> None:
    """Print the growth of peak memory, in GiB, from holding the codes to a scored candidate."""
    small = large_file(10**4)
    Evaluator(small, ADDRESSES).score(RandomSwap(SWAP, rate=0.01, seed=1).plan(small))
    data = large_file(n)
    resident = memory("VmRSS")
    reset_peak()
    evaluator = Evaluator(data, ADDRESSES)
    evaluator.score(RandomSwap(SWAP, rate=0.01, seed=1).plan(data))
    print((memory("VmHWM") - resident) / 2**30)


def reset_peak() -> None:
    with open("/proc/self/clear_refs", "w", encoding="ascii") as refs:  # noqa: PTH123
        refs.write("5")


__all__ = ["candidate_results", "growth_results", "memory_result", "peak_memory", "reset_peak"]
