"""Timing: the best of several interleaved runs, so that two sides meet the same machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class Result(NamedTuple):
    """One measured figure and what it must be."""

    name: str
    value: float
    target: str
    met: bool
    remark: str = ""


def best(*sides: Callable[[], object], repeats: int = 7, inner: int = 1) -> list[float]:
    """Return the shortest time of each side in seconds, sides taken in turn."""
    times = [float("inf")] * len(sides)
    for side in sides:
        side()
    for _ in range(repeats):
        for i, side in enumerate(sides):
            start = time.perf_counter()
            for _ in range(inner):
                side()
            times[i] = min(times[i], (time.perf_counter() - start) / inner)
    return times


def memory(field: str) -> float:
    """Return the memory of this process in bytes: "VmRSS" is what it holds now, "VmHWM" the most it ever held."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return float(next(line for line in lines if line.startswith(field)).split()[1]) * 1024
