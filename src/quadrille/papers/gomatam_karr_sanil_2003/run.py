"""All candidates drawn and scored, the points of the figures, what one pass finds, a plan that fools the n-rule."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from quadrille.data import Cross, Data, tidy
from quadrille.errors import InfeasibleError
from quadrille.papers.reproduction import Floats
from quadrille.plan import Plan
from quadrille.randomness import Stream
from quadrille.score.evaluator import Evaluator
from quadrille.study.choose import non_dominated
from quadrille.swap.pairing import Sampler
from quadrille.swap.random import RandomSwap

if TYPE_CHECKING:
    import polars as pl

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

    >>> from quadrille.papers.gomatam_karr_sanil_2003.run import name_of
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


def draw_all(data: Data, sampler: Sampler, seeds: int, done: Callable[[int], None]) -> Experiment:
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


# The designs as points, from means over seeds: Figures 2, 3 and 4 are drawn from them.

FREE = ""
"""The name of no constraint."""


class Point(TypedDict):
    """A design: means over seeds; whether it is on the frontier of the means, and in which share of the seeds.

    `rate` is the share of records that take part, twice the paper's.
    """

    swap: str
    variables: int
    pairs: int
    rate: float
    constraint: str
    risk: float
    exposed: float
    confidence: float
    loss: float
    on_own_frontier: bool
    on_frontier: bool
    share_own: float
    share: float


def points_of(found: Experiment, records: int) -> tuple[Point, ...]:
    """Return all designs, those without constraint first. Constrained designs have a frontier among themselves."""
    seeds = [found.frontiers(found.free[:, :, seed]) for seed in range(found.seeds)]
    own_share, share = (np.mean([flags[i] for flags in seeds], axis=0) for i in (0, 1))
    own, combined = found.frontiers(found.means)

    def point(
        swap: int, pairs: int, constraint: str, means: Floats, front: Sequence[np.bool_], shares: Sequence[np.float64]
    ) -> Point:
        risk, exposed, confidence, loss = means.tolist()
        return Point(
            swap=name_of(found.swaps[swap]),
            variables=len(found.swaps[swap]),
            pairs=pairs,
            rate=2 * pairs / records,
            constraint=constraint,
            risk=risk,
            exposed=exposed,
            confidence=confidence,
            loss=loss,
            on_own_frontier=bool(front[0]),
            on_frontier=bool(front[1]),
            share_own=float(shares[0]),
            share=float(shares[1]),
        )

    listed = [
        point(i, pairs, FREE, found.means[r, i], (own[r, i], combined[r, i]), (own_share[r, i], share[r, i]))
        for r, pairs in enumerate(PAIRS)
        for i in range(len(found.swaps))
    ]
    for name in CONSTRAINTS:
        scores = found.constrained[name]
        means = scores.mean(axis=1)
        among = non_dominated(means[:, AXES])
        in_seeds = np.mean([non_dominated(scores[:, seed][:, AXES]) for seed in range(found.seeds)], axis=0)
        listed += [
            point(i, PAIRS[CONSTRAINED_RATE], name, means[j], (among[j],) * 2, (in_seeds[j],) * 2)
            for j, i in enumerate(found.left_by(name))
        ]
    return tuple(listed)


def frames_of(given: Iterable[Mapping[str, object]]) -> dict[str, pl.DataFrame]:
    """Lay the points out for the chart of the frontier, a frame per picture.

    Figure 2: all candidates without constraint. Figure 3: the frontier of each rate and of all together. Figure 4:
    constrained beside unconstrained swaps, the same designs in both.
    """
    listed = cast("list[Point]", list(given))
    free = [point for point in listed if point["constraint"] == FREE]
    words = {1: "one", 2: "two"}
    found = {"figure-2": tidy([_row(p, words[p["variables"]], on=p["on_frontier"]) for p in free])}
    for pairs in PAIRS:
        rows = [_row(p, p["swap"], on=p["on_own_frontier"]) for p in free if p["pairs"] == pairs]
        found[f"figure-3-{pairs}-pairs"] = tidy(rows)
    found["figure-3-combined"] = tidy([_row(p, p["swap"], on=p["on_frontier"]) for p in free])
    for constraint in CONSTRAINTS:
        found[f"figure-4-{constraint.lower().replace(' ', '-')}"] = tidy(_beside(listed, constraint))
    return found


def _row(point: Point, swap: str, *, on: bool) -> dict[str, object]:
    label = f"{point['swap']}, {point['pairs']:,} pairs" + (f", {point['constraint']}" if point["constraint"] else "")
    return {
        "risk": point["risk"],
        "loss": point["loss"],
        "swap": swap,
        "rate": point["rate"],
        "on_frontier": on,
        "chosen": False,
        "label": label,
        "exposed": point["exposed"],
    }


def _beside(listed: list[Point], constraint: str) -> list[dict[str, object]]:
    bound = [point for point in listed if point["constraint"] == constraint]
    names = {point["swap"] for point in bound}
    pairs = PAIRS[CONSTRAINED_RATE]
    free = [p for p in listed if p["constraint"] == FREE and p["pairs"] == pairs and p["swap"] in names]
    both = [*free, *bound]
    on = non_dominated(np.array([[point["risk"], point["loss"]] for point in both]))
    words = {FREE: f"{len(names)} swaps, no constraint", constraint: f"{len(names)} swaps, {constraint}"}
    return [_row(p, words[p["constraint"]], on=bool(flag)) for p, flag in zip(both, on, strict=True)]


# How many admissible pairs a single pass over the file finds: why the paper calls a feasible swap "not feasible". Put
# the records in random order and cut the sequence into N/2 pairs; keep those that differ in every swap variable. Let E
# be the number of admissible pairs of records in the file and d_i that of the partners of record i. The number kept,
# X, has
#
#     E[X] = E / (N - 1),    E[X (X - 1)] = (E (E - 1) - sum_i d_i (d_i - 1)) / ((N - 1)(N - 3)).


class Yield(NamedTuple):
    """Mean and standard deviation of the number of admissible pairs.

    `sd` is for a random order cut into pairs, `sd_independent` for as many pairs drawn independently of one another.
    """

    mean: float
    sd: float
    sd_independent: float


def expected(data: Data, swap: Swap) -> Yield:
    """Work out what a single pass finds, for an even number of records."""
    cross = Cross.of(data, swap)
    groups, counts = np.unique(cross.cells(data), return_counts=True)
    differs = np.ones((len(groups), len(groups)), dtype=bool)
    for name in swap:
        codes = cross.codes(groups, name)
        differs &= codes[:, None] != codes[None, :]
    partners = differs @ counts
    edges = int(counts @ partners) // 2
    n = data.n
    mean = edges / (n - 1)
    disjoint = edges * (edges - 1) - int(counts @ (partners * (partners - 1)))
    share = mean / (n // 2)
    sd = sqrt(disjoint / ((n - 1) * (n - 3)) + mean - mean**2)
    return Yield(mean, sd, sqrt(mean * (1 - share)))


def simulated(data: Data, swap: Swap, passes: int) -> tuple[float, float]:
    """Return mean and standard deviation over simulated passes."""
    found: list[int] = []
    half = data.n // 2
    for seed in range(passes):
        order = np.argsort(Stream.of(seed, "single pass").words(data.n), kind="stable")
        first, second = order[:half], order[half : 2 * half]
        kept = np.ones(half, dtype=bool)
        for name in swap:
            kept &= data[name].values[first] != data[name].values[second]
        found.append(int(kept.sum()))
    return float(np.mean(found)), float(np.std(found, ddof=1))


def most_pairs(data: Data, swap: Swap) -> int:
    """Return the largest possible number of pairs that differ in every swap variable."""
    try:
        RandomSwap(swap, pairs=data.n // 2, seed=0).plan(data)
    except InfeasibleError as error:
        return error.maximum
    return data.n // 2


# A plan that fools the n-rule: every record of a small cell is swapped, and the release is almost the file itself.
# Write a record as (s, w): its swap values and the rest. A couple is (s, w) and (t, w). Two couples with the same s
# and t and different w make two pairs, (s, w) with (t, w') and (t, w) with (s, w'): each pair changes two cells, and
# the other pair puts both back. No pair compensates by itself. A record of a small cell without any partner for a
# couple is really swapped, with a record of a large cell.

SWAP = ("Age", "EmpTyp", "MS")
_SMALL = 3

Place = tuple[int, int]
"""Two numbers that belong together: the rest and the swap value of a cell, two swap values, two records."""
Unused = dict[int, dict[int, list[int]]]


@dataclass(frozen=True)
class _Couple:
    """Two records that differ in the swap variables only: `low` has the smaller swap value."""

    rest: int
    low: int
    high: int


def fooling_plan(data: Data) -> Plan:
    """Swap all records of cells of one or two records, changing hardly any cell: the same plan every time."""
    unused = _by_place(data, SWAP)
    small = [(w, s) for w in sorted(unused) for s in sorted(unused[w]) if len(unused[w][s]) < _SMALL]
    pairs: list[Place] = []
    waiting: dict[Place, list[_Couple]] = defaultdict(list)
    alone: list[tuple[int, Place]] = []
    for w, s in small:
        while unused[w][s]:
            row = unused[w][s].pop()
            t = _partner(unused[w], s, w, waiting)
            if t is None:
                alone.append((row, (w, s)))
                continue
            pairs += _join(_couple(w, (s, row), (t, unused[w][t].pop())), waiting[_kind(s, t)])
    for (s, t), couples in waiting.items():
        for couple in couples:
            pairs += _pairs(couple, _helpers(unused, s, t, couple.rest))
    pairs += [(row, _stranger(unused, place)) for row, place in alone]
    return Plan.of_pairs(data, SWAP, np.array(pairs, dtype=np.int64))


def _by_place(data: Data, swap: Swap) -> Unused:
    """Sort the records by the rest and, within it, by the swap values."""
    values = Cross.of(data, swap).cells(data).tolist()
    rest = Cross.of(data, tuple(name for name in data.columns if name not in swap)).cells(data).tolist()
    unused: Unused = defaultdict(lambda: defaultdict(list))
    for row, (s, w) in enumerate(zip(values, rest, strict=True)):
        unused[w][s].append(row)
    return unused


def _kind(s: int, t: int) -> Place:
    return min(s, t), max(s, t)


def _partner(group: dict[int, list[int]], s: int, w: int, waiting: dict[Place, list[_Couple]]) -> int | None:
    """Choose the swap value of the other record: one for which a couple waits if possible, else the most frequent."""
    there = [t for t in sorted(group) if t != s and group[t]]
    fitting = [t for t in there if any(couple.rest != w for couple in waiting.get(_kind(s, t), ()))]
    return max(fitting or there, key=lambda t: len(group[t]), default=None)


def _couple(rest: int, one: Place, other: Place) -> _Couple:
    (_, low), (_, high) = sorted((one, other))
    return _Couple(rest, low, high)


def _join(couple: _Couple, waiting: list[_Couple]) -> list[Place]:
    """Join a couple with one that waits, whose rest must be another; without one, let it wait."""
    for other in waiting:
        if other.rest != couple.rest:
            waiting.remove(other)
            return _pairs(other, couple)
    waiting.append(couple)
    return []


def _helpers(unused: Unused, s: int, t: int, rest: int) -> _Couple:
    """Take a couple where both cells are large."""

    def left(w: int) -> int:
        return min(len(unused[w].get(s, ())), len(unused[w].get(t, ()))) if w != rest else -1

    w = max(unused, key=left)
    return _couple(w, (s, unused[w][s].pop()), (t, unused[w][t].pop()))


def _pairs(one: _Couple, other: _Couple) -> list[Place]:
    return [(one.low, other.high), (one.high, other.low)]


def _stranger(unused: Unused, place: Place) -> int:
    """Take a record of the largest cell that differs both in the swap variables and in the rest."""
    w, s = max(
        ((w, s) for w in unused if w != place[0] for s in unused[w] if s != place[1]),
        key=lambda at: len(unused[at[0]][at[1]]),
    )
    return unused[w][s].pop()
