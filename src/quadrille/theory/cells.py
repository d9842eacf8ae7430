"""The cells of a table after a planned swap, by level and with weights: what predictions rest on (prediction.md)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from quadrille.data import Data, Floats, Ints
from quadrille.errors import InfeasibleError, QuadrilleError
from quadrille.recipe import Recipe, carried
from quadrille.swap.groups import codes_of, group_ids
from quadrille.swap.permutation import PermutationSwap, refuse_small_groups, two_groups
from quadrille.swap.private import PrivateSwap
from quadrille.swap.random import RandomSwap
from quadrille.text import percent
from quadrille.theory.expected import admissible, combinations, pairs_between
from quadrille.theory.tables import EXACT, is_exact, moments_of

MOST_LEVELS = 500
"""More combinations of swapped and constraining variables are not predicted: their flows take too long."""

_STEPS = 128
_TOO_MANY = "more pairs are asked for than its levels allow"


class NotPredicted(Exception):
    """Why a design or a measure has no prediction; never leaves `predict`."""


@dataclass(frozen=True, eq=False)
class Levels:
    """The combinations of swapped and constraining variables, and what a swap is expected to do with them.

    `of` is the level of each record, `counts` the records of each level, `codes` what each level holds. `reach[a, b]`
    is the chance that a record of level a holds the values of level b afterwards, `kept[a]` the chance that it takes
    part in no swap. `between[a, b]` are the expected pairs of the two levels.
    """

    swap: tuple[str, ...]
    of: Ints
    counts: Floats
    codes: dict[str, Ints]
    reach: Floats
    kept: Floats
    between: Floats

    @property
    def unswapped(self) -> float:
        """Records that take part in no swap."""
        return float(self.kept @ self.counts)


def levels_of(data: Data, recipe: Recipe) -> Levels:
    """Return the levels of a design with their expected flows."""
    if isinstance(recipe, PermutationSwap):
        return _permuted(data, recipe)
    if isinstance(recipe, PrivateSwap):
        return _by_chance(data, recipe)
    if isinstance(recipe, RandomSwap):
        return _paired(data, recipe)
    raise NotPredicted(f"{recipe.method_name} has no closed form")


def _paired(data: Data, recipe: RandomSwap) -> Levels:
    if recipe.rules:
        raise NotPredicted("a swap under plausibility rules has no closed form")
    if len(recipe.groups(data)) > 1:
        raise NotPredicted("several variables swapped one by one have no closed form")
    recipe.check_columns(data)
    moved = (*recipe.swap, *carried(data, recipe.swap, recipe.same))
    of, counts, codes = _levels(data, (*moved, *recipe.same, *recipe.different))
    pairs = recipe.count(data.n)
    if recipe.differ == "none" and not recipe.same and not recipe.different:
        between = _uniform(counts, np.zeros(len(counts), dtype=np.int64), np.array([2 * pairs]))
    else:
        between = _flows(counts, pairs, recipe.sampler, admissible(recipe, recipe.swap, codes))
    return _moved(moved, of, counts, codes, between)


def _permuted(data: Data, recipe: PermutationSwap) -> Levels:
    recipe.check_columns(data)
    classes = recipe.classes(data)
    extra = () if recipe.groups is None else (recipe.groups,)
    moved = (*recipe.swap, *carried(data, recipe.swap, recipe.within))
    of, counts, codes = _levels(data, (*moved, *recipe.within, *extra))
    own = np.zeros(len(counts), dtype=np.int64)
    own[of] = classes.of
    if recipe.groups is None:
        return _moved(moved, of, counts, codes, _uniform(counts, own, classes.k))
    group = two_groups(data, recipe.groups, "PermutationSwap").of
    side = np.zeros(len(counts), dtype=np.int64)
    side[of] = group
    sizes = np.bincount(group * len(classes.n) + classes.of, minlength=2 * len(classes.n)).reshape(2, -1)
    refuse_small_groups(sizes, classes.k // 2, recipe.groups)
    across = (own[:, None] == own[None, :]) & (side[:, None] != side[None, :])
    share = (classes.k // 2) / np.maximum(sizes[0] * sizes[1], 1)
    return _moved(moved, of, counts, codes, across * np.outer(counts, counts) * share[own][:, None])


def _by_chance(data: Data, recipe: PrivateSwap) -> Levels:
    recipe.check_columns(data)
    strata, moved = recipe.strata(data), recipe.columns_moved(data)
    moving = tuple(name for name in moved if name != data.weight)
    of, counts, codes = _levels(data, (*moving, *recipe.within))
    own = np.zeros(len(counts), dtype=np.int64)
    own[of] = strata.of
    return _moved(moving, of, counts, codes, _uniform(counts, own, strata.expected))


def _levels(data: Data, names: tuple[str, ...]) -> tuple[Ints, Floats, dict[str, Ints]]:
    """Return the combinations of values that occur, unless they are too many."""
    of, counts, codes = combinations(data, names)
    if len(counts) > MOST_LEVELS:
        raise NotPredicted(
            f"swapped and constraining variables have {len(counts):,} combinations, and at most {MOST_LEVELS} are "
            "predicted"
        )
    return of, counts, codes


def _flows(counts: Floats, pairs: int, sampler: str, allowed: NDArray[np.bool_]) -> Floats:
    """Return m_ab. When no record pairs within its own level only shares matter: a file scaled down does as well."""
    scale = 1.0 if allowed.diagonal().any() else max(1.0, pairs / _STEPS)
    try:
        found = scale * pairs_between(counts / scale, round(pairs / scale), sampler, allowed)
    except InfeasibleError:
        raise NotPredicted(_TOO_MANY) from None
    if not allowed[~np.eye(len(counts), dtype=bool)].all():
        return found
    # Every two levels may be paired: then the largest number of pairs is known, and the last step can miss it.
    if pairs > min(counts.sum() // 2, counts.sum() - counts.max()):
        raise NotPredicted(_TOO_MANY)
    return found


def _uniform(counts: Floats, own: Ints, k: Ints | Floats) -> Floats:
    """Return m_ab when k records of each class change places at random; on the diagonal the pairs within a level."""
    n = np.bincount(own, weights=counts)
    share = k / np.maximum(n * (n - 1), 1)
    between = (own[:, None] == own[None, :]) * np.outer(counts, counts) * share[own][:, None]
    np.fill_diagonal(between, share[own] * counts * (counts - 1) / 2)
    return between


def _moved(swap: tuple[str, ...], of: Ints, counts: Floats, codes: dict[str, Ints], between: Floats) -> Levels:
    reach = between / counts[:, None]
    np.fill_diagonal(reach, 2 * np.diag(reach))
    kept = np.clip(1 - reach.sum(axis=1), 0.0, 1.0)
    np.fill_diagonal(reach, np.diag(reach) + kept)
    return Levels(swap, of, counts, codes, np.clip(reach, 0.0, 1.0), kept, between)


MOST_CELLS = 1 << 18
"""Larger tables (values that move times combinations that stay) are not predicted."""

_MOST_EXACT = 1 << 20
_WINDOW = 64
_SPREADS = 6.0
_TINY = 1e-12
_NOISE = 1e-14
"""Smaller chances are rounding errors of the transform."""

_NODES, _MASS = np.polynomial.hermite_e.hermegauss(21)
_WEIGHTS = _MASS / _MASS.sum()

Effect = Callable[[Floats, Floats], Floats]
"""A function of a cell's count before and after."""


@dataclass(frozen=True, eq=False)
class Totals(ABC):
    """A table, (moved part, stayed part): totals before, expected totals and variances after."""

    before: Floats
    mean: Floats
    variance: Floats

    @property
    def records(self) -> float:
        """The total of the table."""
        return float(self.before.sum())

    @property
    def shape(self) -> tuple[int, int]:
        """Moved parts and stayed parts that occur."""
        return self.before.shape[0], self.before.shape[1]

    @property
    @abstractmethod
    def together(self) -> float:
        """By how much fixed totals enlarge the variance of a sum over cells."""

    @abstractmethod
    def expected(self, effect: Effect) -> tuple[float, float]:
        """Return the sum over the cells of the mean of an effect, and the sum of its variances."""

    @abstractmethod
    def distance(self) -> float:
        """Return the expected sum of |T' - T|."""


@dataclass(frozen=True, eq=False)
class Cells(Totals):
    """A table of counts by level: moved part across levels, stayed part as columns.

    `inside[a, f]` are the records of level a and stayed part f, `part[a]` the moved part of level a, `reach[a, p]` the
    chance that a record of level a holds moved part p afterwards.
    """

    levels: Levels
    inside: Floats
    part: Ints
    reach: Floats
    window: int
    exact: bool = False
    """Whether mean and variance are exact."""

    @property
    def together(self) -> float:
        """By how much fixed totals of rows and columns enlarge the variance of a sum over cells."""
        parts, columns = self.shape
        return parts / max(parts - 1, 1) * columns / max(columns - 1, 1)

    @cached_property
    def _near(self) -> NDArray[np.bool_]:
        """Which cells keep so close to their expectation that the window holds their distribution."""
        return _SPREADS * np.sqrt(np.maximum(self.variance, self._free)) + 2 < self.window / 2

    @cached_property
    def _free(self) -> Floats:
        """The variance of every cell if records moved independently."""
        return (self.reach * (1 - self.reach)).T @ self.inside

    @cached_property
    def _centre(self) -> Floats:
        return np.round(self.mean)

    @cached_property
    def _log(self) -> tuple[Floats, NDArray[np.complex128], NDArray[np.complex128]]:
        """Angles; log of one record's characteristic function (level, part, angle); its sum over records."""
        angle = 2 * np.pi * np.arange(self.window // 2 + 1) / self.window
        one = 1 + self.reach[:, :, None] * (np.exp(-1j * angle) - 1)
        size, turn = np.log(np.maximum(np.abs(one), _TINY)), np.angle(one)
        # Not a matrix product: on a busy machine its threads wait for one another longer than this takes.
        total = np.zeros((one.shape[1], self.inside.shape[1], len(angle)), dtype=np.complex128)
        log = size.astype(np.complex128) + 1j * turn
        for here, level in zip(self.inside, log, strict=True):
            there = np.flatnonzero(here)
            total[:, there] += here[there, None] * level[:, None, :]
        return angle, log, total

    @cached_property
    def _paired(self) -> Floats:
        """Expected exchanges within a stayed part beyond independence: they change nothing, and narrow the cell."""
        staying = np.zeros_like(self.before)
        own = self.reach[np.arange(len(self.part)), self.part]
        np.add.at(staying, self.part, own[:, None] * self.inside)
        most = np.minimum(self.before - staying, self.mean - staying)
        return np.minimum((self._free - self.variance) / 2, np.maximum(most, 0.0))

    @cached_property
    def _steps(self) -> Ints:
        """The distances from the centre that the window holds, in the order of the transform."""
        return (np.arange(self.window) + self.window // 2) % self.window - self.window // 2

    @cached_property
    def _chances(self) -> Floats:
        """The chance of every count of the near cells, by its distance from the centre."""
        angle, _, total = self._log
        near = self._near
        centred = total[near] + 1j * angle * self._centre[near][:, None]
        centred -= 2 * self._paired[near][:, None] * (np.cos(angle) - 1)
        chances = np.fft.irfft(np.exp(centred), n=self.window, axis=1)
        chances[self._free[near] < _TINY] = self._steps == 0
        chances = np.where(chances > _NOISE, chances, 0.0)  # taking out exchanges can overdo it where a cell is a level
        return chances / chances.sum(axis=1, keepdims=True)

    def expected(self, effect: Effect) -> tuple[float, float]:
        """Return the sum over the cells of the mean of an effect, and the sum of its variances."""
        near = self._near
        before = self.before[near][:, None]
        value = effect(before, np.maximum(self._centre[near][:, None] + self._steps, 0.0))
        first, second = (self._chances * value).sum(axis=1), (self._chances * value**2).sum(axis=1)
        mean, variance = normal_mean(self.before[~near], self.mean[~near], self.variance[~near], effect)
        return float(first.sum()) + mean, float((second - first**2).sum()) + variance

    def distance(self) -> float:
        """Return the expected sum of |T' - T|."""
        near = self._near
        change = np.abs((self._centre - self.before)[near][:, None] + self._steps)
        close = float((self._chances * change).sum())
        return close + normal_distance((self.mean - self.before)[~near], self.variance[~near])

    def at_risk(self, n: int) -> float:
        """Return the expected number of records that no swap touches, in cells of 1 to n - 1 records afterwards."""
        angle, one, total = self._log
        small = self._near & (self._centre < self.window / 2)
        level, stayed = np.nonzero((self.inside > 0) & small[self.part])
        part = self.part[level]
        others = total[part, stayed] - one[level, part]
        others -= 2 * self._paired[part, stayed][:, None] * (np.cos(angle) - 1)
        chances = np.fft.irfft(np.exp(others), n=self.window, axis=1)[:, : n - 1].sum(axis=1)
        return float((self.inside[level, stayed] * self.levels.kept[level] * np.clip(chances, 0.0, 1.0)).sum())


def normal_mean(before: Floats, mean: Floats, variance: Floats, effect: Effect) -> tuple[float, float]:
    """Return the sum of the means of an effect, and of its variances, over cells that are normal."""
    spread = np.sqrt(variance)[:, None]
    value = effect(before[:, None], np.maximum(mean[:, None] + spread * _NODES, 0.0))
    wide, wider = value @ _WEIGHTS, value**2 @ _WEIGHTS
    return float(wide.sum()), float((wider - wide**2).sum())


def normal_distance(gap: Floats, variance: Floats) -> float:
    """Return the expected sum of |T' - T| over cells that are normal; `gap` is E T' - T."""
    from scipy.special import ndtr

    spread = np.maximum(np.sqrt(variance), _TINY)
    z = gap / spread
    folded = spread * np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2) + gap * (2 * ndtr(z) - 1)
    return float(folded.sum())


def is_kept(margin: tuple[str, ...], recipe: Recipe, levels: Levels) -> bool:
    """Tell whether no cell of a margin changes: none of it moves, or all of it but columns on which partners agree."""
    moving = set(margin) & set(levels.swap)
    agreed = {*getattr(recipe, "same", ()), *getattr(recipe, "within", ())}
    return not moving or set(margin) <= moving | agreed


def cells_of(data: Data, recipe: Recipe, levels: Levels, margin: tuple[str, ...], largest: int = 0) -> Cells:
    """Tabulate a margin by level; `largest` is the largest size of cell that a measure looks at."""
    moving = [name for name in margin if name in levels.swap]
    staying = tuple(name for name in margin if name not in levels.swap)
    part, parts = group_ids([(levels.codes[n], int(levels.codes[n].max()) + 1) for n in moving], len(levels.counts))
    kept = (
        f"combinations of {staying}"  # how many is remembered: the next recipe that moves the same is refused at once
    )
    _check_reached(cast("int", data.prepared.get(kept, 0)), parts, levels)
    stay, columns = group_ids([codes_of(data, name) for name in staying], data.n)
    data.prepared[kept] = columns
    _check_reached(columns, parts, levels)
    inside = np.bincount(levels.of * columns + stay, minlength=len(levels.counts) * columns)
    inside = inside.reshape(-1, columns).astype(float)
    own = (part[:, None] == np.arange(parts)) * 1.0
    before = own.T @ inside
    window = max(_WINDOW, 1 << (8 * largest).bit_length())
    if is_kept(margin, recipe, levels):
        return Cells(before, before, np.zeros_like(before), levels, inside, part, own, window, exact=True)
    reach = np.clip(levels.reach @ own, 0.0, 1.0)
    mean = reach.T @ inside
    known = None
    if data.weight is None and is_exact(recipe, len(levels.counts)):
        known = _exact_variance(data, recipe, margin, (stay, columns), (part, parts), levels)
    variance = _variance(levels, inside, own, reach, mean - before) if known is None else known
    return Cells(before, mean, variance, levels, inside, part, reach, window, exact=known is not None)


def _check_reached(columns: int, parts: int, levels: Levels) -> None:
    if max(parts, len(levels.counts)) * columns > MOST_CELLS:
        raise NotPredicted(f"its table has {parts * columns:,} cells that can be reached; {MOST_CELLS:,} are the limit")


def _variance(levels: Levels, inside: Floats, own: Floats, reach: Floats, bias: Floats) -> Floats:
    """Return the variance of every cell: who of a level moves, and how many pairs join each two levels (formula 3)."""
    n = levels.counts[:, None]
    who = (reach * (1 - reach)).T @ (inside * (n - inside) / np.maximum(n - 1, 1))
    pairs = np.triu(levels.between).sum()
    crossing = levels.between * (1 - own @ own.T)
    share = inside / n
    spread = share**2 * crossing.sum(axis=1)[:, None] - 2 * share * (crossing @ share) + crossing @ share**2
    return who + np.maximum(own.T @ spread - bias**2 / max(pairs, 1.0), 0.0)


def _exact_variance(
    data: Data,
    recipe: Recipe,
    margin: tuple[str, ...],
    stay: tuple[Ints, int],
    part: tuple[Ints, int],
    levels: Levels,
) -> Floats | None:
    """Return the variances where they are known exactly, for tables that are not too large."""
    sizes = [data.coded(name, purpose="a table").size for name in margin]
    if np.prod(np.array(sizes, dtype=float)) > _MOST_EXACT:
        return None
    found = moments_of(data, recipe, margin, "predict")
    split = found.margin
    leader = np.zeros(stay[1], dtype=np.int64)
    leader[stay[0]] = np.arange(data.n)
    first = np.zeros(part[1], dtype=np.int64)
    first[part[0]] = np.arange(len(part[0]))
    moved = np.zeros(part[1], dtype=np.int64)
    for name in split.moved.variables:
        moved += levels.codes[name][first] * split.moved.stride(name)
    place = moved[:, None] * split.stayed.possible + split.stayed.cells(data, leader)[None, :]
    return found.variance[place]


FEWEST = 10
"""Weighted cells of fewer records are far from normal."""

MOST_SMALL = 0.05
"""The largest share of the change that may be in such cells."""


@dataclass(frozen=True, eq=False)
class WeightedCells(Totals):
    """A table of weighted totals whose cells are taken as normal; `count` are records."""

    count: Floats
    exact: bool
    stays: bool

    @property
    def together(self) -> float:
        """The totals on the side of the weight are fixed, those on the other side are not."""
        lines = self.shape[0 if self.stays else 1]
        return lines / max(lines - 1, 1)

    @property
    def unmoved(self) -> bool:
        """Whether no total can change; what rounding leaves of that is no change."""
        tiny = 1e-12 * max(float(self.before.max(initial=0.0)), 1.0)
        return bool((self.variance <= tiny).all() and (np.abs(self.mean - self.before) <= tiny).all())

    def larger_than(self, least: int) -> WeightedCells:
        """Leave out what happens in cells of up to `least` records before."""
        kept = self.count > least
        mean, variance = np.where(kept, self.mean, self.before), np.where(kept, self.variance, 0.0)
        return replace(self, mean=mean, variance=variance)

    def expected(self, effect: Effect) -> tuple[float, float]:
        """Return the sum over the cells of the mean of an effect, and the sum of its variances."""
        self._refuse_small()
        return normal_mean(self.before.ravel(), self.mean.ravel(), self.variance.ravel(), effect)

    def distance(self) -> float:
        """Return the expected sum of |T' - T|."""
        self._refuse_small()
        return normal_distance((self.mean - self.before).ravel(), self.variance.ravel())

    def _refuse_small(self) -> None:
        """Refuse a table most of whose change is in cells of few records."""
        size = np.maximum(np.maximum(self.mean, self.before), 1e-12)
        change = (self.variance + (self.mean - self.before) ** 2) / size
        small = float(change[self.count < FEWEST].sum() / max(float(change.sum()), 1e-300))
        if small > MOST_SMALL:
            raise NotPredicted(
                f"{percent(small)} of the change is in weighted cells of fewer than {FEWEST} records, whose totals "
                "have no distribution in closed form"
            )


def weighted_cells(data: Data, recipe: Recipe, margin: tuple[str, ...]) -> WeightedCells:
    """Return the moments of a margin's totals; plain counts where the file has no weight."""
    try:
        found = moments_of(data, recipe, margin, "predict")
    except QuadrilleError as error:
        raise NotPredicted(str(error).rstrip(".")) from None
    shape = (found.margin.moved.possible, found.margin.stayed.possible)
    count = found.count.reshape(shape)
    rows, columns = np.flatnonzero(count.sum(axis=1)), np.flatnonzero(count.sum(axis=0))

    def kept(values: Floats | Ints) -> Floats:
        return values.reshape(shape)[np.ix_(rows, columns)].astype(np.float64)

    before, count = kept(found.before), kept(found.count)
    stays = not (isinstance(recipe, PermutationSwap | PrivateSwap) and recipe.weight == "moves")
    exact = found.note.startswith(EXACT)
    return WeightedCells(before, before + kept(found.bias), kept(found.variance), count, exact, stays)
