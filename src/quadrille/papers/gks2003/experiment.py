"""The experiment: all swaps of one or two variables at three rates, and with two constraints, over many seeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from quadrille.data import Data
from quadrille.study.frontier import non_dominated
from quadrille.study.score import Evaluator
from quadrille.swap.pairing import Sampler
from quadrille.swap.random import RandomSwap

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Swap = tuple[str, ...]

MEASURES = ("small_cells", "exposed", "confidence", "hellinger")
RISK, EXPOSED, CONFIDENCE, LOSS = range(4)
AXES = [RISK, LOSS]
PAIRS = (244, 488, 2442)
"""The paper's rates k/N = 0.005, 0.01 and 0.05."""
CONSTRAINED_RATE = PAIRS.index(488)
CONSTRAINTS: dict[str, tuple[Swap, Swap]] = {"Sex same": (("Sex",), ()), "MS different": ((), ("MS",))}
"""By name: the columns that must agree within a pair, and those that must differ."""


def name_of(swap: Swap) -> str:
    """Name a swap by its variables.

    >>> from quadrille.papers.gks2003.experiment import name_of
    >>> name_of(("Race", "AnnSal"))
    'Race + AnnSal'
    """
    return " + ".join(swap)


@dataclass(frozen=True)
class Experiment:
    """Scores by seed: `free` (rate, swap, seed, measure), and per constraint (swap that it leaves, seed, measure)."""

    sampler: Sampler
    swaps: tuple[Swap, ...]
    free: Floats
    constrained: dict[str, Floats]

    @property
    def seeds(self) -> int:
        """Number of seeds."""
        return self.free.shape[2]

    @property
    def singles(self) -> int:
        """Number of swaps of one variable, which come first."""
        return sum(len(swap) == 1 for swap in self.swaps)

    @property
    def means(self) -> Floats:
        """Means over seeds: (rate, swap, measure)."""
        return self.free.mean(axis=2)

    def left_by(self, constraint: str) -> list[int]:
        """Return the swaps that do not use the constraining variable."""
        return swaps_left(self.swaps, constraint)

    def frontiers(self, scores: Floats) -> tuple[Flags, Flags]:
        """Return who is on the frontier of the own rate and of all rates, (rate, swap), from (rate, swap, measure)."""
        points = scores[:, :, AXES]
        own = np.stack([non_dominated(rate) for rate in points])
        return own, non_dominated(points.reshape(-1, 2)).reshape(own.shape)


def all_swaps(data: Data) -> tuple[Swap, ...]:
    """Return all swaps of one variable, then all of two."""
    return tuple(swap for size in (1, 2) for swap in combinations(data.columns, size))


def swaps_left(swaps: tuple[Swap, ...], constraint: str) -> list[int]:
    """Return the positions of the swaps that do not use the constraining variable."""
    constraining = {name for names in CONSTRAINTS[constraint] for name in names}
    return [i for i, swap in enumerate(swaps) if not constraining & set(swap)]


def designs(data: Data) -> int:
    """Count the designs of the experiment, with and without constraints."""
    swaps = all_swaps(data)
    return len(PAIRS) * len(swaps) + sum(len(swaps_left(swaps, name)) for name in CONSTRAINTS)


def run(data: Data, sampler: Sampler, seeds: int, done: Callable[[int], None]) -> Experiment:
    """Draw and score every candidate; `done` hears of every design, with its number of candidates."""
    evaluator = Evaluator(data, MEASURES)
    swaps = all_swaps(data)

    def scores(swap: Swap, pairs: int, same: Swap = (), different: Swap = ()) -> Floats:
        found = np.empty((seeds, len(MEASURES)))
        for seed in range(seeds):
            recipe = RandomSwap(swap, pairs=pairs, same=same, different=different, sampler=sampler, seed=seed)
            found[seed] = evaluator.values(recipe.plan(data))[0]
        done(seeds)
        return found

    free = np.stack([np.stack([scores(swap, pairs) for swap in swaps]) for pairs in PAIRS])
    constrained = {
        name: np.stack([scores(swaps[i], PAIRS[CONSTRAINED_RATE], *rule) for i in swaps_left(swaps, name)])
        for name, rule in CONSTRAINTS.items()
    }
    return Experiment(sampler, swaps, free, constrained)
