"""Rank and cyclic swapping of files of millions of records: CPU seconds for a plan, preparation included."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from bench.timing import Result
from quadrille.codebook import Role, Variable
from quadrille.data import Column, Data, code_dtype
from quadrille.recipe import Recipe
from quadrille.swap.cycle import CycleSwap
from quadrille.swap.rank import RankSwap

RANKED = 3_495_993
RECORDS, FLAGGED, CELLS, AREAS = 3_000_000, 300_107, 20_000, 500

_KINDS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "uniform": lambda g, n: g.random(n),
    "lognormal": lambda g, n: g.lognormal(10, 1, n),
    "ten values": lambda g, n: g.integers(0, 10, n).astype(np.float64),
    "nine in ten are 0": lambda g, n: np.where(g.random(n) < 0.9, 0.0, g.lognormal(10, 1, n)),
    "constant": lambda g, n: np.ones(n),
}
_KERNELS: dict[str, dict[str, object]] = {
    "window 5 %": {"window": 0.05},
    "20 buckets": {"kernel": "buckets", "buckets": 20},
    "normal 5 %": {"kernel": "normal", "window": 0.05},
}


def seconds_of(recipe: Recipe, data: Data, repeats: int = 3) -> float:
    """Return the least CPU seconds that preparing and drawing a plan takes."""
    times: list[float] = []
    for _ in range(repeats):
        start = time.process_time()
        recipe.prepare(data).draw(recipe.stream())
        times.append(time.process_time() - start)
    return min(times)


def rank_results(n: int = RANKED) -> list[Result]:
    """Measure rank swaps of one variable, whatever its values."""
    g = np.random.default_rng(1)
    rows: list[Result] = []
    for kind, make in _KINDS.items():
        data = Data([Column(Variable("x", "numeric"), make(g, n), "Float64")])
        window, *others = (
            seconds_of(RankSwap(["x"], seed=1, **options), data)  # pyright: ignore[reportArgumentType]
            for options in _KERNELS.values()
        )
        remark = ", ".join(f"{name}: {t:.2f}" for name, t in zip(list(_KERNELS)[1:], others, strict=True))
        rows.append(
            Result(f"rank swap of {n:,} values, {kind}, CPU seconds", window, "<= 0.45", window <= 0.45, remark)
        )
    return rows


def cycle_results() -> list[Result]:
    """Measure cycles of a tenth of a large file."""
    data = flagged_file()
    spent = seconds_of(CycleSwap(flag="flag", same=["cell"], seed=1), data)
    return [
        Result(
            f"cycles, {RECORDS:,} records, {FLAGGED:,} flagged, {CELLS:,} key cells, CPU seconds",
            spent,
            "<= 1",
            spent <= 1,
            f"{spent / FLAGGED * 1e9:.0f} ns per flagged record",
        )
    ]


def flagged_file(n: int = RECORDS, flagged: int = FLAGGED) -> Data:
    """Return records in areas and key cells, so many of them flagged."""
    g = np.random.default_rng(1)
    flag = np.zeros(n, dtype=np.uint8)
    flag[g.choice(n, flagged, replace=False)] = 1
    columns: tuple[tuple[str, int, Role | None], ...] = (("area", AREAS, "geography"), ("cell", CELLS, None))
    made = [
        Column(
            Variable(name, "nominal", tuple(range(size)), role=role, level=None if role is None else 1),
            g.integers(0, size, n).astype(code_dtype(size)),
            "Int64",
        )
        for name, size, role in columns
    ]
    return Data([*made, Column(Variable("flag", "nominal", (0, 1)), flag, "Int64")])


__all__ = ["cycle_results", "rank_results"]
