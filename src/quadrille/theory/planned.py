"""The expected table of a planned swap and its variance, cell by cell, for the recipes that have closed forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from quadrille.cross import Cross
from quadrille.data import Data, require_columns, require_data
from quadrille.errors import InputError, ParameterError
from quadrille.recipe import Recipe, carried, refuse_fixed
from quadrille.swap.classes import records_of, refuse_small_groups, two_groups
from quadrille.swap.groups import codes_of, group_ids
from quadrille.swap.permutation import PermutationSwap
from quadrille.swap.random import RandomSwap
from quadrille.theory.flows import flow_moments
from quadrille.theory.joint import ClassIndex, Joint, tally
from quadrille.theory.margin import Ints, Margin, margin_of
from quadrille.theory.spread import Floats, Kind, factors

EXACT = "exact"
_SMALL_CROSS = 1024
UNTOUCHED = "exact: the margin holds no swapped variable"


@dataclass(frozen=True, eq=False)
class Planned:
    """Every possible cell of a margin, moved part first: total before, bias and variance; `idle` classes stay."""

    margin: Margin
    count: Ints
    before: Floats
    bias: Floats
    variance: Floats
    note: str
    idle: int = 0

    @property
    def rmse(self) -> Floats:
        """The root mean square error of every cell."""
        return np.sqrt(self.variance + self.bias**2)

    @property
    def listed(self) -> Ints:
        """The cells that a swap can reach: moved part and stayed part both occur. In the order of the margin."""
        table = self.count.reshape(self.margin.moved.possible, self.margin.stayed.possible)
        open_cells = (table.sum(axis=1) > 0)[:, None] & (table.sum(axis=0) > 0)[None, :]
        return self.margin.ordered(np.flatnonzero(open_cells.ravel()))


def planned(data: Data, recipe: Recipe, margin: str | Sequence[str], where: str) -> Planned:
    """Work out expectation and variance of every cell of a margin."""
    require_data(data, where)
    if isinstance(recipe, PermutationSwap | RandomSwap):
        require_columns(data, recipe.swap, f"'swap' of {type(recipe).__name__}")
        refuse_fixed(data, recipe.swap)
        if recipe.rules:
            raise ParameterError(f"{where} has no closed form for a swap under plausibility rules. Draw plans instead.")
    if isinstance(recipe, PermutationSwap):
        return _permuted(data, recipe, margin, where)
    if isinstance(recipe, RandomSwap):
        return _random(data, recipe, margin, where)
    raise ParameterError(
        f"{where} has closed forms for PermutationSwap and RandomSwap. Draw plans of {type(recipe).__name__} instead."
    )


def approximate(levels: int) -> str:
    """Return the note of a mean-field result: the pairs between levels take their expected numbers."""
    return (
        f"approximate: mean field, because the pairs spread over {levels:,} levels "
        "(combinations of the values that decide who may be paired)"
    )


def is_exact(recipe: Recipe, levels: int) -> bool:
    """Tell whether expectation and variance of a recipe's tables are exact; `levels` decide who may be paired."""
    if isinstance(recipe, RandomSwap):
        free = recipe.differ == "none" and not recipe.same and not recipe.different
        return free or (levels == 2 and recipe.differ != "none")
    return isinstance(recipe, PermutationSwap)


def joint_of(
    data: Data,
    margin: Margin,
    *,
    classes: ClassIndex | None = None,
    groups: str | None = None,
    weight: str = "stays",
) -> Joint:
    """Tally a margin for a permutation within classes, perhaps across two groups."""
    if weight == "moves" and data.weight is None:
        raise InputError('weight="moves" needs a weight, and the file has none. Name it, or let it stay.')
    group = None if groups is None else two_groups(data, groups, "PermutationSwap")
    heavy = None if data.weight is None else "moved" if weight == "moves" else "stayed"
    return tally(data, margin, classes=classes, group=group, heavy=heavy)


def class_index(data: Data, within: Sequence[str]) -> ClassIndex | None:
    """Return the classes of some columns: their cross when it is small, else the combinations that occur."""
    require_columns(data, within, "'within'")
    if not within:
        return None
    if all(data[name].variable.coded for name in within):
        cross = Cross.of(data, tuple(within))
        if cross.possible <= _SMALL_CROSS:
            return ClassIndex(cross.possible, cross=cross)
    of, count = group_ids([codes_of(data, name) for name in within], data.n)
    return ClassIndex(count, listed=of)


def add_up(joint: Joint, kind: Kind, k: Ints) -> tuple[Floats, Floats, Floats]:
    """Return total before, bias and variance of every cell, added over classes in which k records move."""
    cells = joint.count[0, 0].size
    before, bias, variance = np.zeros(cells), np.zeros(cells), np.zeros(cells)
    for part, spread in joint.spreads():
        moved = k[part, None].astype(float)
        found = factors(kind, tuple(size.astype(float) for size in spread.sizes), moved)
        before += spread.value.sum(axis=0)
        bias += (found.bias * spread.lean).sum(axis=0)
        terms = sum(f * p for f, p in zip(found.parts, spread.parts, strict=True))
        variance += np.maximum(terms, 0.0).sum(axis=0)
    return before, bias, variance


def _permuted(data: Data, recipe: PermutationSwap, margin: str | Sequence[str], where: str) -> Planned:
    split = margin_of(data, margin, (*recipe.swap, *carried(data, recipe.swap, recipe.within)), where)
    if isinstance(recipe.rate, float):
        classes = class_index(data, recipe.within)
        joint = joint_of(data, split, classes=classes, groups=recipe.groups, weight=recipe.weight)
        n = joint.count.sum(axis=(0, 2, 3))
        k = records_of(recipe.kind, np.full(len(n), recipe.rate), n)
    else:
        given = recipe.classes(data)
        classes, k = ClassIndex(len(given.n), listed=given.of) if recipe.within else None, given.k
        joint = joint_of(data, split, classes=classes, groups=recipe.groups, weight=recipe.weight)
    if not (k > 1).any():
        recipe.classes(data)  # says which rate would move two records
    moved = np.where(k > 1, k, 0)
    if recipe.groups is not None:
        refuse_small_groups(joint.count.sum(axis=(2, 3)), moved // 2, recipe.groups)
    before, bias, variance = add_up(joint, recipe.kind, moved)
    count = joint.count.sum(axis=(0, 1)).ravel()
    return Planned(split, count, before, bias, variance, EXACT, int((k == 1).sum()))


def _random(data: Data, recipe: RandomSwap, margin: str | Sequence[str], where: str) -> Planned:
    groups = [(group, carried(data, group, recipe.same)) for group in recipe.groups(data)]
    split = margin_of(data, margin, [name for group, along in groups for name in (*group, *along)], where)
    moved = [each for each in groups if set(split.moved.variables) & set(each[0] + each[1])]
    if not moved:
        joint = joint_of(data, split)
        before, _, _ = add_up(joint, "pairs", np.zeros(1, dtype=np.int64))
        nothing = np.zeros(split.cells)
        return Planned(split, joint.count.ravel(), before, nothing, nothing, UNTOUCHED)
    if len(moved) > 1:
        raise InputError(
            f"{where} has no closed form for several variables swapped one by one. Name a margin with one of them."
        )
    pairs = recipe.count(data.n)
    if recipe.differ == "none" and not recipe.same and not recipe.different:
        joint = joint_of(data, split)
        before, bias, variance = add_up(joint, "pairs", np.array([2 * pairs]))
        return Planned(split, joint.count.sum(axis=(0, 1)).ravel(), before, bias, variance, EXACT)
    found = flow_moments(data, recipe, moved[0], split, pairs)
    note = EXACT if found.exact else approximate(found.levels)
    return Planned(split, found.count, found.before, found.expected - found.before, found.variance, note)
