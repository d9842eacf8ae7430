"""How records flow between the levels of a planned swap: what a prediction knows (derivations/prediction.md)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quadrille.data import Data, require_columns
from quadrille.errors import InfeasibleError
from quadrille.recipe import Recipe, carried, refuse_fixed
from quadrille.swap.classes import refuse_small_groups, two_groups
from quadrille.swap.groups import Ints, codes_of, group_ids
from quadrille.swap.permutation import PermutationSwap
from quadrille.swap.random import RandomSwap
from quadrille.theory.flows import pairs_between
from quadrille.theory.spread import Floats

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
    if isinstance(recipe, RandomSwap):
        return _paired(data, recipe)
    raise NotPredicted(f"{type(recipe).__name__} has no closed form")


def _paired(data: Data, recipe: RandomSwap) -> Levels:
    if recipe.rules:
        raise NotPredicted("a swap under plausibility rules has no closed form")
    if len(recipe.groups(data)) > 1:
        raise NotPredicted("several variables swapped one by one have no closed form")
    require_columns(data, (*recipe.swap, *recipe.same, *recipe.different), "RandomSwap")
    refuse_fixed(data, recipe.swap)
    moved = (*recipe.swap, *carried(data, recipe.swap, recipe.same))
    of, counts, codes = _levels(data, tuple(dict.fromkeys((*moved, *recipe.same, *recipe.different))))
    pairs = recipe.count(data.n)
    if recipe.differ == "none" and not recipe.same and not recipe.different:
        between = _uniform(counts, np.zeros(len(counts), dtype=np.int64), np.array([2 * pairs]))
    else:
        between = _flows(counts, pairs, recipe.sampler, _allowed(recipe, codes))
    return _moved(moved, of, counts, codes, between)


def _permuted(data: Data, recipe: PermutationSwap) -> Levels:
    require_columns(data, recipe.swap, "'swap' of PermutationSwap")
    refuse_fixed(data, recipe.swap)
    classes = recipe.classes(data)
    extra = () if recipe.groups is None else (recipe.groups,)
    moved = (*recipe.swap, *carried(data, recipe.swap, recipe.within))
    of, counts, codes = _levels(data, tuple(dict.fromkeys((*moved, *recipe.within, *extra))))
    own = np.zeros(len(counts), dtype=np.int64)
    own[of] = classes.of
    if recipe.groups is None:
        return _moved(moved, of, counts, codes, _uniform(counts, own, classes.k))
    group = two_groups(data, recipe.groups, "PermutationSwap")
    side = np.zeros(len(counts), dtype=np.int64)
    side[of] = group
    sizes = np.bincount(group * len(classes.n) + classes.of, minlength=2 * len(classes.n)).reshape(2, -1)
    refuse_small_groups(sizes, classes.k // 2, recipe.groups)
    across = (own[:, None] == own[None, :]) & (side[:, None] != side[None, :])
    share = (classes.k // 2) / np.maximum(sizes[0] * sizes[1], 1)
    return _moved(moved, of, counts, codes, across * np.outer(counts, counts) * share[own][:, None])


def _levels(data: Data, names: tuple[str, ...]) -> tuple[Ints, Floats, dict[str, Ints]]:
    """Number the combinations that occur; return that of each record, their counts and what they hold."""
    columns = [codes_of(data, name) for name in names]
    of, count = group_ids(columns, data.n)
    if count > MOST_LEVELS:
        raise NotPredicted(
            f"swapped and constraining variables have {count:,} combinations, and at most {MOST_LEVELS} are predicted"
        )
    leader = np.zeros(count, dtype=np.int64)
    leader[of] = np.arange(data.n)
    codes = {name: column[leader].astype(np.int64) for name, (column, _) in zip(names, columns, strict=True)}
    return of, np.bincount(of, minlength=count).astype(float), codes


def _allowed(recipe: RandomSwap, codes: dict[str, Ints]) -> NDArray[np.bool_]:
    """Tell which levels may be paired."""
    size = len(codes[recipe.swap[0]])
    equal = {name: column[:, None] == column[None, :] for name, column in codes.items()}
    some, every = np.zeros((size, size), dtype=bool), np.ones((size, size), dtype=bool)
    for name in recipe.swap:
        some |= equal[name]
        every &= equal[name]
    allowed = np.ones_like(some) if recipe.differ == "none" else ~some if recipe.differ == "all" else ~every
    for name in recipe.same:
        allowed &= equal[name]
    for name in recipe.different:
        allowed &= ~equal[name]
    return allowed


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


def _uniform(counts: Floats, own: Ints, k: Ints) -> Floats:
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
