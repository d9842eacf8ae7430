"""The runs of one source: every setting of the design with every seed, scored, over several processes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quadrille.data import Data
from quadrille.papers.dohrmann_2009 import census, literacy
from quadrille.papers.dohrmann_2009.design import METHODS, RATES, SHAPES, SIZES, Method, Scenario, Source, scenarios
from quadrille.recipe import Recipe
from quadrille.score.evaluator import Evaluator
from quadrille.study.workers import end_with

OUTCOMES: dict[Source, tuple[str, ...]] = {"simulated": literacy.OUTCOMES, "adult": census.OUTCOMES}


@lru_cache(maxsize=2)
def file_of(source: Source, size: int) -> Data:
    """Return the file of that source and size: always the same one."""
    return literacy.simulated(size) if source == "simulated" else census.sample(size)


def file_for(source: Source, size: int, scenario: Scenario) -> Data:
    """Return the file with the variables of a scenario, the outcomes and the weight only."""
    data = file_of(source, size)
    assert data.weight is not None
    names = (*scenario.variables, *OUTCOMES[source], data.weight)
    return Data([data[name] for name in names], weight=data.weight, ticks=data.ticks)


Floats = NDArray[np.float64]
Make = Callable[[tuple[str, ...], float, Method, int], Recipe]
Addresses = Callable[[Source, Scenario], list[str]]
Done = Callable[[int], None]

NAMES = ("HD1", "HD2", "R_ASED", "C_ARD", "ASED_REG")
"""The measures of the study, in the order of the last axis of a table."""
MOST_LEVELS = 32
"""Nominal variables up to this many categories enter the correlations: the usual limit leaves one of 32 out."""


@dataclass(frozen=True)
class Runs:
    """Scores of one source: `values` by (size, scenario, rate, method, seed, measure), NaN where undefined.

    `reasons` counts the undefined scores by what is said of them.
    """

    source: Source
    values: Floats
    reasons: dict[str, int]

    @property
    def seeds(self) -> int:
        """Number of seeds."""
        return self.values.shape[4]

    @property
    def means(self) -> Floats:
        """Means over seeds: (size, scenario, rate, method, measure); NaN where a seed is undefined."""
        return self.values.mean(axis=4)

    @property
    def cv(self) -> Floats:
        """Coefficients of variation over seeds, in percent; NaN where a seed is undefined or all are 0."""
        means = self.means
        spread = self.values.std(axis=4, ddof=1)
        return 100 * np.divide(spread, means, out=np.full_like(means, np.nan), where=means > 0)


@dataclass(frozen=True)
class Task:
    """What a worker does at a time: one scenario on one file, both rates, both methods, all seeds."""

    source: Source
    size: int
    scenario: int
    seeds: int
    make: Make
    addresses: Addresses


def controlled(swap: tuple[str, ...], targets: float, method: Method, seed: int) -> Recipe:
    """Return the recipe of a run."""
    from quadrille.swap.controlled import ControlledSwap

    return ControlledSwap(swap, targets=targets, method=method, seed=seed)


def utility(source: Source, scenario: Scenario) -> list[str]:
    """Return the addresses of the five measures for a scenario."""
    every = "*".join((*scenario.variables, *OUTCOMES[source]))
    crossed = "*".join(scenario.variables)
    return [
        f"hd1({crossed})",
        f"hd2({crossed})",
        f"r_ased({every}, max_levels={MOST_LEVELS})",
        f"c_ard({crossed})",
        "ased_reg",
    ]


def run(
    source: Source,
    seeds: int,
    done: Done | None = None,
    *,
    workers: int = 2,
    sizes: Sequence[int] = SIZES,
    make: Make = controlled,
    addresses: Addresses = utility,
) -> Runs:
    """Draw and score every run of a source; `done` hears of every scenario and file, with its number of runs.

    `sizes` are the files to run, all by default; the others stay undefined.
    """
    tasks = [
        Task(source, size, scenario, seeds, make, addresses)
        for size in range(len(SIZES))  # the largest file first, so that no worker is left with it at the end
        if SIZES[size] in sizes
        for scenario in range(len(SHAPES))
    ]
    values = np.full((len(SIZES), len(SHAPES), len(RATES), len(METHODS), seeds, len(NAMES)), np.nan)
    reasons: Counter[str] = Counter()
    for task, (scores, said) in zip(tasks, _results(tasks, workers), strict=True):
        values[task.size, task.scenario] = scores
        reasons.update(said)
        if done:
            done(len(RATES) * len(METHODS) * seeds)
    return Runs(source, values, dict(reasons))


def work(task: Task) -> tuple[Floats, Counter[str]]:
    """Draw and score the runs of a task: (rate, method, seed, measure), and why any score is undefined."""
    scenario = scenarios(task.source)[task.scenario]
    data = file_for(task.source, SIZES[task.size], scenario)
    evaluator = Evaluator(data, task.addresses(task.source, scenario))
    found = np.empty((len(RATES), len(METHODS), task.seeds, len(NAMES)))
    said: Counter[str] = Counter()
    for r, rate in enumerate(RATES):
        for m, method in enumerate(METHODS):
            for seed in range(task.seeds):
                recipe = task.make(scenario.variables, rate, method, seed)
                found[r, m, seed] = _scores(evaluator, data, recipe, said)
    return found, said


def _scores(evaluator: Evaluator, data: Data, recipe: Recipe, said: Counter[str]) -> Floats:
    scores = evaluator.score(recipe.plan(data))
    for name, (address, value) in zip(NAMES, scores.items(), strict=True):
        if value is None:
            said[f"{name}: {scores.note(address)}"] += 1
    return np.array([np.nan if value is None else value for value in scores.values()])


def _results(tasks: list[Task], workers: int) -> Iterator[tuple[Floats, Counter[str]]]:
    """Work through the tasks in this process, or in workers that end with it."""
    if workers == 1:
        yield from map(work, tasks)
        return
    from loky import ProcessPoolExecutor  # pyright: ignore[reportUnknownVariableType]

    pool: Any = ProcessPoolExecutor(workers, initializer=end_with, initargs=(os.getpid(),))
    try:
        yield from pool.map(work, tasks)
    except BaseException:
        pool.shutdown(wait=False, kill_workers=True)
        raise
    pool.shutdown(wait=True)
