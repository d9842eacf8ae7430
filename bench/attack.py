"""Attacks on a small file and on a million records, and special uniques of a million records by twenty keys.

Seconds are those of the processor, so that a busy machine measures the same. Run: python -m bench.attack (minutes)
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

import quadrille as qd
from bench.timing import Result, memory
from quadrille.attack.suda import special_uniques
from quadrille.codebook import Variable
from quadrille.data import Column, Data, code_dtype

MILLION, EIGHT, TWENTY = 1_000_000, (10, 7, 6, 5, 4, 5, 4, 2), (2, 3, 4, 5, 6, 8, 10)
GB = 1e9


def attack_results() -> list[Result]:
    """Attack default releases, given their plans, and score special uniques."""
    small, large = qd.datasets.cps8d(), survey(MILLION, EIGHT)
    quick = qd.DesignedSwap(effort=0.1, seed=1)
    _attacked(small, quick)  # loads the kernels
    return [
        _result("attack on CPS-8d, processor seconds", _attacked(small, qd.DesignedSwap(seed=7)), 5),
        _result("attack on 10^6 records by 8 keys, processor seconds", _attacked(large, quick), 60),
        *_special(),
    ]


def _attacked(data: Data, recipe: qd.Recipe) -> float:
    plan = recipe.plan(data)
    return _seconds(lambda: qd.attack(data, plan, recipe=recipe))


def _special() -> list[Result]:
    data = survey(MILLION, [TWENTY[i % len(TWENTY)] for i in range(20)])
    found = _seconds(lambda: special_uniques(data))
    held = memory("VmHWM") / GB
    return [
        _result("special uniques of 10^6 records by 20 keys, processor seconds", found, 120),
        Result("its memory with the file, GB", held, "<= 4", held <= 4, "the most this program has taken"),
    ]


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _result(name: str, seconds: float, most: float) -> Result:
    return Result(
        name, seconds, f"<= {most:g}", seconds <= most, "the plan is drawn before" if "attack" in name else ""
    )


def survey(n: int, sizes: tuple[int, ...] | list[int]) -> Data:
    """Variables of uneven shares that lean on one that nobody sees, with many rare combinations."""
    random = np.random.default_rng(1)
    hidden = random.integers(0, 6, n)
    columns: list[Column] = []
    for i, size in enumerate(sizes):
        share = 1.0 / np.arange(1, size + 1)
        codes = random.choice(size, n, p=share / share.sum())
        codes = np.where(random.random(n) < 0.3, hidden % size, codes)
        columns.append(Column(Variable(f"v{i}", "nominal", tuple(range(size))), codes.astype(code_dtype(size))))
    return Data(columns)


if __name__ == "__main__":
    results = attack_results()
    for result in results:
        print(f"{result.name}: {result.value:.2f} ({result.target}) {'yes' if result.met else 'NO'}; {result.remark}")
    sys.exit(not all(result.met for result in results))
