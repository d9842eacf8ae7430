"""The distribution of a cell after a planned swap, as if records moved independently (derivations/prediction.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quadrille.data import Data
from quadrille.recipe import Recipe
from quadrille.swap.groups import Ints, codes_of, group_ids
from quadrille.theory.levels import Levels, NotPredicted
from quadrille.theory.planned import is_exact, planned
from quadrille.theory.spread import Floats

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
class Cells:
    """A table: moved part across levels, stayed part as columns; expectation and variance of every cell.

    `inside[a, f]` are the records of level a and stayed part f, `part[a]` the moved part of level a, `reach[a, p]` the
    chance that a record of level a holds moved part p afterwards. `before`, `mean` and `variance` are (part, f).
    """

    levels: Levels
    inside: Floats
    part: Ints
    reach: Floats
    before: Floats
    mean: Floats
    variance: Floats
    window: int
    exact: bool = False
    """Whether mean and variance are exact."""

    @property
    def records(self) -> float:
        """All records of the table."""
        return float(self.before.sum())

    @property
    def shape(self) -> tuple[int, int]:
        """Moved parts and stayed parts that occur."""
        return self.before.shape[0], self.before.shape[1]

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
    stay, columns = group_ids([codes_of(data, name) for name in margin if name not in levels.swap], data.n)
    part, parts = group_ids([(levels.codes[n], int(levels.codes[n].max()) + 1) for n in moving], len(levels.counts))
    if max(parts, len(levels.counts)) * columns > MOST_CELLS:
        raise NotPredicted(f"its table has {parts * columns:,} cells that can be reached; {MOST_CELLS:,} are the limit")
    inside = np.bincount(levels.of * columns + stay, minlength=len(levels.counts) * columns)
    inside = inside.reshape(-1, columns).astype(float)
    own = (part[:, None] == np.arange(parts)) * 1.0
    before = own.T @ inside
    window = max(_WINDOW, 1 << (8 * largest).bit_length())
    if is_kept(margin, recipe, levels):
        return Cells(levels, inside, part, own, before, before, np.zeros_like(before), window, exact=True)
    reach = np.clip(levels.reach @ own, 0.0, 1.0)
    mean = reach.T @ inside
    known = None
    if data.weight is None and is_exact(recipe, len(levels.counts)):
        known = _exact_variance(data, recipe, margin, (stay, columns), (part, parts), levels)
    variance = _variance(levels, inside, own, reach, mean - before) if known is None else known
    return Cells(levels, inside, part, reach, before, mean, variance, window, exact=known is not None)


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
    found = planned(data, recipe, margin, "predict")
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
