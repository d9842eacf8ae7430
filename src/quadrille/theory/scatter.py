"""How the numbers of pairs between levels scatter from draw to draw (derivations/correction.md, section 3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quadrille.theory.flows import chances, taken
from quadrille.theory.spread import Floats

_STEPS = 64


def pair_scatter(counts: Floats, pairs: int, sampler: str, gain: Floats) -> Floats:
    """Return the covariances of y_a = sum_b m_ab g_ab over draws, m_ab the number of pairs between levels a and b.

    `gain` holds g, antisymmetric, (..., level, level); the result has the same shape. Every pair is a step of a random
    walk whose chances depend on the records left over: the covariances follow from its chances and their slopes.
    """
    unused = counts.astype(float).copy()
    own = np.zeros((len(counts), len(counts)))
    cross, found = np.zeros(gain.shape), np.zeros(gain.shape)
    steps = max(1, min(pairs, _STEPS))
    size = pairs / steps
    for _ in range(steps):
        middle = _left(unused, unused, size / 2, sampler) if size > 1 else unused
        walk = _Walk.at(middle, sampler, gain)
        if size > 1:
            first, second, _ = walk.grow(own, cross)
            grown = walk.grow(own + size / 2 * first, cross + size / 2 * second)
        else:
            grown = walk.step(own, cross)
        own, cross, found = (old + size * more for old, more in zip((own, cross, found), grown, strict=True))
        unused = _left(unused, middle, size, sampler)
    return found


def _left(unused: Floats, at: Floats, pairs: float, sampler: str) -> Floats:
    """Return the records left after some pairs, at the chances that hold where `at` are left."""
    return np.maximum(unused - pairs * taken(_chances(at, sampler)), 0.0)


def _chances(unused: Floats, sampler: str) -> Floats:
    return chances(unused, ~np.eye(len(unused), dtype=bool), sampler)


@dataclass(frozen=True, eq=False)
class _Walk:
    """The next pair: slopes of the records left and of the gains by the records left, covariances that it adds."""

    slopes: Floats
    turns: Floats
    noise: tuple[Floats, Floats, Floats]

    @classmethod
    def at(cls, unused: Floats, sampler: str, gain: Floats) -> _Walk:
        """Linearise the walk where so many records are left."""
        chance = _chances(unused, sampler)
        loss, weighted, square = taken(chance), chance * gain, chance * gain**2
        mean = weighted.sum(axis=-1)
        noise = (
            np.diag(loss) + chance - np.outer(loss, loss),
            mean[..., :, None] * loss - weighted - _diagonal(mean),
            _diagonal(square.sum(axis=-1)) - square - mean[..., :, None] * mean[..., None, :],
        )
        return cls(-_slopes(unused, sampler, np.ones_like(chance)), _slopes(unused, sampler, gain), noise)

    def grow(self, own: Floats, cross: Floats) -> tuple[Floats, Floats, Floats]:
        """Return how fast covariances grow: of the records left, of gains with them, of the gains."""
        both = self.turns @ np.swapaxes(cross, -1, -2)
        return (
            self.slopes @ own + own @ self.slopes.T + self.noise[0],
            cross @ self.slopes.T + self.turns @ own + self.noise[1],
            both + np.swapaxes(both, -1, -2) + self.noise[2],
        )

    def step(self, own: Floats, cross: Floats) -> tuple[Floats, Floats, Floats]:
        """Return by how much covariances grow with one pair, the products of slopes included."""
        grown = self.grow(own, cross)
        return (
            grown[0] + self.slopes @ own @ self.slopes.T,
            grown[1] + self.turns @ own @ self.slopes.T,
            grown[2] + self.turns @ own @ np.swapaxes(self.turns, -1, -2),
        )


def _slopes(unused: Floats, sampler: str, weight: Floats) -> Floats:
    """Return the derivative of sum_b weight_ab p_ab by the records left in level c, as (..., a, c)."""
    x = np.maximum(unused, 1e-9)
    total = x.sum()
    apart = 1 - np.eye(len(x))
    if sampler == "pair-uniform":
        every = total**2 - (x**2).sum()
        chance = weight * apart * 2 * np.outer(x, x) / every
        row = chance.sum(axis=-1)
        return _diagonal(row / x) + chance / x - row[..., :, None] * 2 * (total - x) / every
    rest = np.maximum(total - x, 1e-9)
    start = apart * np.outer(x / rest, x) / total
    leaving, coming = weight * start, weight * start.T
    out, back = leaving.sum(axis=-1), coming.sum(axis=-1)
    late = (coming / rest).sum(axis=-1)
    return (
        _diagonal(out * (1 / x + 1 / rest) + back / x)
        + leaving / x
        + coming * (1 / x + 1 / rest)
        - (out * (1 / total + 1 / rest) + back / total + late)[..., :, None]
    )


def _diagonal(values: Floats) -> Floats:
    return values[..., :, None] * np.eye(values.shape[-1])
