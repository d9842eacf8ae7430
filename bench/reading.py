"""How long `read` and `inspect` take, as ratios to reading the same file in the same run."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import polars as pl

from quadrille.codebook import Codebook, Variable
from quadrille.inspect import inspect
from quadrille.io import read
from quadrille.score.dependencies import dependencies

T = TypeVar("T")

ROWS = 1_000_000
COLUMNS = 8
CATEGORIES = tuple(f"level {letter}" for letter in "abcde")
ROUNDS = 5


def reading_ratios() -> list[tuple[str, float, str]]:
    """Return (name, ratio to pl.read_csv, target); each time is the best of several, taken in turn."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text.csv"
        _write(path)
        book = Codebook(tuple(Variable(f"v{i}", categories=CATEGORIES) for i in range(COLUMNS)))
        times = _best_in_turn([lambda: pl.read_csv(path), lambda: read(path, codebook=book), lambda: read(path)])
    return [
        ("read CSV with codebook / pl.read_csv", times[1] / times[0], "at most 1.5"),
        ("read CSV without codebook / pl.read_csv", times[2] / times[0], "at most 2.5"),
    ]


def inspecting_ratios() -> list[tuple[str, float, str]]:
    """Return (name, ratio to read, target) in CPU time, of employees with wage, hours and what follows from them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "earnings.parquet"
        _earnings().write_parquet(path)
        times = np.full((2, 3), np.inf)
        for each in times:
            data, each[0] = _timed(lambda: read(path))
            found, each[2] = _timed(partial(dependencies, data))
            assert len(found) > 3
            _, each[1] = _timed(partial(inspect, data))  # the dependencies are kept with the data
        reading, looking, searching = times.min(axis=0)
    return [
        ("read and inspect, no dependencies / read", 1 + float(looking / reading), "at most 1.5"),
        ("read and inspect / read", 1 + float((looking + searching) / reading), "at most 4"),
    ]


def _timed(task: Callable[[], T]) -> tuple[T, float]:
    start = time.process_time()
    made = task()
    return made, time.process_time() - start


def _earnings(n: int = 3_000_000) -> pl.DataFrame:
    rng = np.random.default_rng(5)
    industry, hours, age = rng.integers(0, 20, n), rng.integers(8, 60, n), rng.integers(16, 70, n)
    wage = rng.lognormal(3, 0.4, n).round(2)
    return pl.DataFrame(
        {
            "industry": np.array([f"I{i:02}" for i in range(20)])[industry],
            "sector": np.array(["farming", "making", "trade", "services"])[industry // 5],
            "region": np.array([f"R{i}" for i in range(12)])[rng.integers(0, 12, n)],
            "occupation": rng.integers(1, 10, n),
            "education": rng.integers(1, 6, n),
            "sex": np.array(["f", "m"])[rng.integers(0, 2, n)],
            "hours": hours,
            "full_time": np.where(hours >= 35, "full", "part"),
            "wage": wage,
            "pay": (hours * wage).round(2),
            "age": age,
            "age_group": np.array([f"{10 * i:02}+" for i in range(8)])[age // 10],
            "tenure": rng.integers(0, 40, n),
            "size": np.array(["S", "M", "L"])[rng.integers(0, 3, n)],
            "year": rng.integers(2015, 2020, n),
        }
    )


def _write(path: Path) -> None:
    rng = np.random.default_rng(1)
    values = np.array(CATEGORIES)
    columns = {f"v{i}": values[rng.integers(0, len(values), ROWS)] for i in range(COLUMNS)}
    pl.DataFrame(columns).write_csv(path)


def _best_in_turn(tasks: list[Callable[[], object]]) -> list[float]:
    best = [float("inf")] * len(tasks)
    for _ in range(ROUNDS):
        for i, task in enumerate(tasks):
            start = time.perf_counter()
            task()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


if __name__ == "__main__":
    for name, ratio, target in [*reading_ratios(), *inspecting_ratios()]:
        print(f"{name}: {ratio:.2f} (target: {target})")
