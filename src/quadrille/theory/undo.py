"""True swaps of one variable undone: the corrected table and its variance (derivations/correction.md, section 2)."""

from __future__ import annotations

import numpy as np

from quadrille.errors import ParameterError
from quadrille.theory.flows import pairs_between, transitions
from quadrille.theory.scatter import pair_scatter
from quadrille.theory.spread import Floats

LEAST_LEFT = 0.01
"""A contrast between levels that keeps less than this share of itself is lost; 1 - f of two levels."""

_UNIFORM = 12
"""The variance of a uniform number is the square of its range divided by this."""


def undone(values: Floats, pairs: int, sampler: str) -> tuple[Floats, Floats]:
    """Return corrected counts and variances; the swapped variable's levels, all of them held, are in the columns."""
    counts, row = values.sum(axis=0), values.sum(axis=1, keepdims=True)
    q = transitions(counts, pairs_between(counts, pairs, sampler))
    back = _inverse(q, counts)
    corrected = values @ back
    even = row * counts / counts.sum()
    low, high = np.maximum(row + counts - counts.sum(), 0.0), np.minimum(row, counts)

    def variance(cell: Floats) -> Floats:
        # One more record in every level, spread as the rows are: no level is surely all in one row or in none.
        mean = (cell + row / counts.sum()) / (counts + 1)
        scatter = counts**2 * mean * (1 - mean) / np.maximum(counts - 1, 1)
        spread = scatter @ (q @ back**2 - np.eye(len(counts)))
        if len(counts) > 2:  # two levels exchange exactly as many as there are pairs
            spread = spread + _varying_pairs(counts, pairs, sampler, mean, back)
        return np.maximum(spread, 0.0)

    # The noisier the correction is against the range that the totals leave, the nearer to independence the table is at
    # which its variance is taken; in a large table nothing is left of that.
    room = (high - low) ** 2 / _UNIFORM
    trust = np.divide(room, room + variance(even), out=np.ones_like(room), where=room > 0)
    pulled = even + trust * (np.clip(corrected, low, high) - even)
    return corrected, variance(np.clip(pulled, low, high))


def _varying_pairs(counts: Floats, pairs: int, sampler: str, mean: Floats, back: Floats) -> Floats:
    """Return what the scatter of the numbers of pairs adds to the variances (derivations/correction.md, formula 5)."""
    gain = mean[:, None, :] - mean[:, :, None]
    return np.einsum("rab,ac,bc->rc", pair_scatter(counts, pairs, sampler, gain), back, back)


def _inverse(q: Floats, counts: Floats) -> Floats:
    """Invert Q, unless some contrast between levels is all but gone from the swapped table."""
    root = np.sqrt(counts)
    kept = np.linalg.eigvalsh(root[:, None] * q / root[None, :])  # n_a Q_ab is symmetric
    if np.abs(kept).min() < LEAST_LEFT:
        raise ParameterError(
            "So many swaps leave nothing to correct: the swapped table does not tell levels apart. What a recipe keeps "
            f"of their differences must be at least {100 * LEAST_LEFT:g} %, as with f up to {1 - LEAST_LEFT:g}."
        )
    return np.linalg.inv(q).astype(np.float64)
