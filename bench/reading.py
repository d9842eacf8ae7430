"""How long `read` takes, as a ratio to polars' own reading of the same file in the same run."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from quadrille.codebook import Codebook, Variable
from quadrille.io import read

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
    for name, ratio, target in reading_ratios():
        print(f"{name}: {ratio:.2f} (target: {target})")
