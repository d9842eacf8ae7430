"""Targeted swapping of a million households: CPU time and memory from the data to the rows of the plan."""

from __future__ import annotations

import subprocess
import sys
import time
from copy import copy
from typing import Any

from bench.core import reset_peak
from bench.timing import Result, memory
from quadrille.data import Data
from quadrille.datasets import census
from quadrille.swap.targeted import TargetedSwap

LEVELS = ("nuts1", "nuts2", "nuts3", "lau2")
FEW: dict[str, Any] = {"risk": ["hincome"], "levels": LEVELS[:3]}
"""Nobody is at risk: the rate alone, 5 %."""
MOST: dict[str, Any] = {"risk": ["hincome", "ageGroup", "gender", "national"], "levels": LEVELS, "k": 5}
"""Seven in ten households are at risk in their lowest area."""
_REPEATS = 3


def targeted_results(n: int = 10**6) -> list[Result]:
    """Measure the two cases, how the cost per pair grows, and the memory beyond the data."""
    large, small = census(n), census(n // 10)
    few, few_pairs = cpu_seconds(large, FEW)
    most, most_pairs = cpu_seconds(large, MOST)
    few_small, pairs_small = cpu_seconds(small, FEW)
    most_small, most_pairs_small = cpu_seconds(small, MOST)
    taken = memory_beyond(n)
    return [
        Result("targeted swap of 10^6 households at 5 %, CPU s", few, "<= 1", few <= 1, f"{few_pairs:,} pairs"),
        Result("the same, MB beyond the data", taken, "<= 200", taken <= 200),
        Result("targeted swap, most at risk, CPU s", most, "<= 3", most <= 3, f"{most_pairs:,} pairs"),
        _growth(
            "targeted swap at 5 %, cost per pair at ten times the households", few, few_pairs, few_small, pairs_small
        ),
        _growth("the same, most at risk", most, most_pairs, most_small, most_pairs_small),
    ]


def _growth(name: str, large: float, pairs: int, small: float, pairs_small: int) -> Result:
    growth = large / pairs / (small / pairs_small)
    return Result(name, growth, "< 3", growth < 3, f"{large / pairs * 1e6:.1f} us per pair")


def recipe_of(case: dict[str, Any]) -> TargetedSwap:
    """Make the recipe of a case."""
    return TargetedSwap(**case, similar=[["hsize"]], rate=0.05, seed=1)


def cpu_seconds(data: Data, case: dict[str, Any]) -> tuple[float, int]:
    """Return the least CPU time from the columns of the file to the rows of the plan, and its pairs."""
    recipe = recipe_of(case)
    recipe.plan(census(1_000))  # compiles
    least, pairs = float("inf"), 0
    for _ in range(_REPEATS):
        fresh = copy(data)
        fresh.prepared = {}  # units are found anew, too
        start = time.process_time()
        plan = recipe.prepare(fresh).draw(recipe.stream())
        assert len(plan.rows)
        least = min(least, time.process_time() - start)
        assert plan.unit_pairs is not None
        pairs = len(plan.unit_pairs)
    return least, pairs


def memory_beyond(n: int) -> float:
    """Return the peak memory of a plan beyond the data, in MB, in a process of its own."""
    script = f"from bench.targeted import print_memory; print_memory({n})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return float(done.stdout)


def print_memory(n: int) -> None:
    """Print the growth of peak memory, in MB, from holding the columns to the rows of a plan."""
    recipe = recipe_of(FEW)
    recipe.plan(census(1_000))
    data = census(n)
    resident = memory("VmRSS")
    reset_peak()
    assert len(recipe.plan(data).rows)
    print((memory("VmHWM") - resident) / 1e6)


if __name__ == "__main__":
    for result in targeted_results():
        print(f"{result.name}: {result.value:.2f} ({result.target}) {result.remark}")
