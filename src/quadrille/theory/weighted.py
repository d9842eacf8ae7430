"""Weighted tables after a planned swap: moments of every cell, which is taken as normal (derivations/prediction.md)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quadrille.data import Data
from quadrille.errors import QuadrilleError
from quadrille.recipe import Recipe
from quadrille.swap.permutation import PermutationSwap
from quadrille.theory.independent import Effect, normal_distance, normal_mean
from quadrille.theory.levels import NotPredicted
from quadrille.theory.planned import EXACT, planned
from quadrille.theory.spread import Floats

FEWEST = 10
"""Weighted cells of fewer records are far from normal."""

MOST_SMALL = 0.05
"""The largest share of the change that may be in such cells."""


@dataclass(frozen=True, eq=False)
class WeightedCells:
    """A table of weighted totals, (moved part, stayed part), whose cells are taken as normal; `count` are records."""

    count: Floats
    before: Floats
    mean: Floats
    variance: Floats
    exact: bool
    stays: bool

    @property
    def records(self) -> float:
        """The total weight."""
        return float(self.before.sum())

    @property
    def shape(self) -> tuple[int, int]:
        """Moved parts and stayed parts that occur."""
        return self.before.shape[0], self.before.shape[1]

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
        """Leave out what happens in cells of up to so many records before."""
        kept = self.count > least
        mean, variance = np.where(kept, self.mean, self.before), np.where(kept, self.variance, 0.0)
        return WeightedCells(self.count, self.before, mean, variance, self.exact, self.stays)

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
                f"{100 * small:.0f} % of the change is in weighted cells of fewer than {FEWEST} records, whose totals "
                "have no distribution in closed form"
            )


def weighted_cells(data: Data, recipe: Recipe, margin: tuple[str, ...]) -> WeightedCells:
    """Return the moments of a margin's totals; plain counts where the file has no weight."""
    try:
        found = planned(data, recipe, margin, "predict")
    except QuadrilleError as error:
        raise NotPredicted(str(error).rstrip(".")) from None
    shape = (found.margin.moved.possible, found.margin.stayed.possible)
    count = found.count.reshape(shape)
    rows, columns = np.flatnonzero(count.sum(axis=1)), np.flatnonzero(count.sum(axis=0))

    def kept(values: Floats) -> Floats:
        return values.reshape(shape)[np.ix_(rows, columns)]

    before, bias = kept(found.before), kept(found.bias)
    stays = not (isinstance(recipe, PermutationSwap) and recipe.weight == "moves")
    exact = found.note.startswith(EXACT)
    return WeightedCells(kept(found.count.astype(float)), before, before + bias, kept(found.variance), exact, stays)
