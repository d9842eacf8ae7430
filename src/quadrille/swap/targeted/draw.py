"""Drawing the pairs: those at risk first, level by level, then what quotas ask for; near="loss" keeps tables close."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Flags, Ints, require_columns
from quadrille.errors import ParameterError
from quadrille.measure.base import Address
from quadrille.plan import Pairs
from quadrille.randomness import Chooser, Stream, Words, draw_until_enough
from quadrille.swap.designed.problem import LOSSES
from quadrille.swap.groups import group_ids
from quadrille.swap.targeted.problem import OWNER, Problem
from quadrille.swap.targeted.risk import NOT_AT_RISK

AT_RISK, QUOTA = 1, 2
"""The two phases."""
_NEAR = {"any": kernels.ANY, "parent": kernels.PARENT, "loss": kernels.LEAST_LOSS}


@dataclass(frozen=True, eq=False)
class Drawn:
    """The pairs, target first, with phase, level and profile of each; quotas, and what could not be done.

    `failed` are those at risk that found nobody at some level, `aside` targets of the second phase that did not.
    `quota` is what each area was to get, `exhausted` what was still wanted of it when no target was left.
    """

    pairs: Pairs
    phase: Ints
    level: Ints
    profile: Ints
    used: Flags
    failed: Flags
    quota: Ints
    aside: Flags
    exhausted: Ints


class _Dice(NamedTuple):
    """The random words of an attempt, by what they decide."""

    order: kernels.Dice
    donors: kernels.Dice
    slots: kernels.Dice

    @property
    def spent(self) -> bool:
        """Whether any ran out."""
        return any(bool(each.cursor[1]) for each in self)


class Draw:
    """The prepared draw: a plan per stream."""

    def __init__(self, problem: Problem, tables: kernels.LossTables) -> None:
        self._problem, self._tables = problem, tables
        recipe = problem.recipe
        self._near = _NEAR[recipe.near] if isinstance(recipe.near, str) else kernels.NEAREST
        self._most = recipe.donors_drawn if isinstance(recipe.near, str) else recipe.near
        # One more than there can be stops nothing: whoever has no partner is tried, and known to have none.
        self._limit = problem.quota.pairs if recipe.mode == "cap" else problem.units.count // 2 + 1
        at_risk = int(((problem.level >= 0) & problem.takes_part).sum())
        pairs = min(self._limit, at_risk + problem.quota.pairs)
        times = recipe.donors_drawn if recipe.near == "loss" else 1
        self._words = 256 + max(len(problem.areas.levels) * at_risk, 5 * times * pairs // 2)

    def draw(self, stream: Stream) -> Drawn:
        """Draw the pairs that belong to a stream."""
        problem = self._problem
        quota = problem.quota
        u = Chooser(stream.sub("quota")).below(quota.whole) if quota.whole else 0
        wanted = quota.of(u)

        def attempt(words: Words) -> Drawn | None:
            others = (stream.sub(name).words(len(words)) for name in ("order", "slots"))
            order, slots = map(kernels.dice, others)
            return self._attempt(wanted, _Dice(order, kernels.dice(words), slots))

        return draw_until_enough(attempt, stream.sub("donors"), guess=self._words)

    def _attempt(self, quota: Ints, dice: _Dice) -> Drawn | None:
        swapped = self._nothing_swapped()
        trees = self._trees()
        tables = self._tables._replace(now=self._tables.before.copy())
        self._swap_those_at_risk(swapped, trees, tables, dice)
        aside, exhausted = np.zeros(len(swapped.used), dtype=np.uint8), np.zeros_like(quota)
        if not dice.spent and swapped.made[0] < self._limit and quota.any():
            self._fill_quotas(quota, swapped, trees, tables, dice, aside, exhausted)
        if dice.spent:
            return None
        made = int(swapped.made[0])
        phase, level, profile = swapped.notes[:made].T.astype(np.int64)
        pairs = swapped.pairs[:made].copy()
        return Drawn(pairs, phase, level, profile, swapped.used == 1, swapped.failed == 1, quota, aside == 1, exhausted)

    def _nothing_swapped(self) -> kernels.Swapped:
        units = self._problem.units.count
        room = min(self._limit, units // 2) + 1
        return kernels.Swapped(
            used=np.zeros(units, dtype=np.uint8),
            failed=np.zeros(units, dtype=np.uint8),
            pairs=np.empty((room, 2), dtype=np.int64),
            notes=np.empty((room, 3), dtype=np.int8),
            made=np.zeros(1, dtype=np.int64),
        )

    def _trees(self) -> kernels.SumTrees:
        """Make room for the trees: those of the favoured and of numbers only where they are needed."""
        recipe, nodes = self._problem.recipe, int(self._problem.place.tree[-1])
        counting = self._near == kernels.NEAREST
        tiers = recipe.donors == "at-risk-first" or recipe.quota == "area"

        def room(wanted: bool) -> Ints:
            return np.zeros(nodes if wanted else 0, dtype=np.int64)

        return kernels.SumTrees(
            built=np.zeros(len(recipe.similar), dtype=np.uint8),
            weights=room(True),
            favoured=room(tiers),
            numbers=room(counting),
            favoured_numbers=room(counting and tiers),
            path=np.zeros(16, dtype=np.int64),
            nearest=np.zeros(2 * self._most, dtype=np.int64),
        )

    def _terms(self, level: int, favoured: NDArray[np.uint8] | None) -> kernels.Terms:
        return kernels.Terms(
            level=level,
            near=self._near,
            most=self._most,
            tiers=favoured is not None,
            weight=self._problem.weight(level),
            favoured=np.zeros(0, dtype=np.uint8) if favoured is None else favoured,
        )

    def _swap_those_at_risk(
        self, swapped: kernels.Swapped, trees: kernels.SumTrees, tables: kernels.LossTables, dice: _Dice
    ) -> None:
        """Phase 1: those at risk, level by level, in random order; with `retry` those left at coarser levels, too."""
        problem, recipe = self._problem, self._problem.recipe
        for h in range(len(problem.areas.levels)):
            here = problem.level == h
            if recipe.retry:
                here = (problem.level <= h) & (problem.level != NOT_AT_RISK)
            targets = np.flatnonzero(here & problem.takes_part & (swapped.used == 0))
            if not len(targets) or dice.spent or swapped.made[0] >= self._limit:
                continue
            kernels.shuffle(targets, dice.order)
            if recipe.mode == "cap":
                targets = targets[np.argsort(problem.urgency(h, targets), kind="stable")]
            favoured = (problem.level != NOT_AT_RISK).astype(np.uint8) if recipe.donors == "at-risk-first" else None
            trees.built[:] = 0
            kernels.swap_targets(
                targets,
                AT_RISK,
                self._limit,
                self._terms(h, favoured),
                trees,
                problem.rules,
                tables,
                swapped,
                problem.place,
                dice.donors,
            )

    def _fill_quotas(
        self,
        quota: Ints,
        swapped: kernels.Swapped,
        trees: kernels.SumTrees,
        tables: kernels.LossTables,
        dice: _Dice,
        aside: NDArray[np.uint8],
        exhausted: Ints,
    ) -> None:
        """Phase 2: more units of areas that have not had their quota, at the lowest level."""
        problem, recipe = self._problem, self._problem.recipe
        by_units = recipe.quota == "area"
        path, lowest = problem.areas.path, len(problem.areas.levels) - 1
        made = int(swapped.made[0])
        had = swapped.used == 1 if by_units else swapped.pairs[:made, 0]
        still = np.maximum(0, quota - np.bincount(path[had], minlength=len(quota)))
        weight = problem.weight(lowest)
        areas = problem.areas_as_classes
        slots = kernels.Slots(
            areas=areas,
            weights=np.zeros(int(areas.tree[-1]), dtype=np.int64),
            open=still,
            aside=aside,
            exhausted=exhausted,
            path=np.zeros(16, dtype=np.int64),
        )
        kernels.plant(slots.weights, weight, swapped.used, areas)
        favoured = (still[path] > 0).astype(np.uint8) if by_units else None
        listed = np.repeat(np.arange(len(quota)), still) if by_units else np.flatnonzero(still)
        kernels.shuffle(listed, dice.slots)
        trees.built[:] = 0
        (kernels.fill_quotas if by_units else kernels.begin_in_areas)(
            listed,
            QUOTA,
            self._limit,
            slots,
            self._terms(lowest, favoured),
            trees,
            problem.rules,
            tables,
            swapped,
            problem.place,
            dice.donors,
            dice.slots,
        )


_MOST_CELLS = 1 << 26


def loss_tables(problem: Problem) -> kernels.LossTables:
    """Lay the tables out, with nothing moved; empty ones where no loss is named."""
    data, units, loss = problem.data, problem.units, problem.recipe.loss or {}
    prices = {loss: 1.0} if isinstance(loss, str) else dict(loss)
    rows = data.n if prices else 0
    weight = np.ones(rows) if data.ticks is None else data.ticks.values[:rows] / data.ticks.per_unit
    stay = np.zeros((len(prices), data.n), dtype=np.int64)
    move = np.zeros((len(prices), units.count), dtype=np.int64)
    kind: list[int] = []
    cells = 0
    for number, address in enumerate(prices):
        margin, measure = _margin(problem, address)
        kind.append(measure)
        places, staying = ([name for name in margin if (name in problem.columns) is here] for here in (True, False))
        place, moving = _ids(problem, places)
        rest, count = _ids(problem, staying)
        move[number] = place[units.first]
        if cells + count * moving > _MOST_CELLS:
            raise ParameterError(
                f"The tables in 'loss' of {OWNER} have more than {_MOST_CELLS:,} cells. Name tables of fewer variables."
            )
        stay[number] = cells + rest * moving
        cells += count * moving
    before = np.zeros(cells)
    for number in range(len(prices)):
        before += np.bincount(stay[number] + move[number][units.of], weights=weight, minlength=cells)
    return kernels.LossTables(
        stay=stay,
        move=move,
        kind=np.array(kind, dtype=np.int64),
        price=np.array(list(prices.values()), dtype=np.float64),
        now=before,
        before=before,
        weight=weight,
        total=float(weight.sum()),
        rows=units.rows,
        first=units.start,
        sizes=units.sizes,
    )


def _ids(problem: Problem, names: list[str]) -> tuple[Ints, int]:
    data = problem.data
    columns = [data.coded(name, purpose=f"'loss' of {OWNER}") for name in names]
    return group_ids([(column.values, column.size) for column in columns], data.n)


def _margin(problem: Problem, address: str) -> tuple[tuple[str, ...], int]:
    """Return the table of a loss, which must have a column that moves, and the number of its measure."""
    call = Address.parse(address)
    fine = call.name in LOSSES and call.margin and call.margin != ("2-way",)
    if not fine or call.where or call.options or call.models:
        raise ParameterError(
            f"'loss' of {OWNER} has {address!r}. It takes {', '.join(LOSSES)}, each with one margin, "
            'like "hellinger(region*age)".'
        )
    assert call.margin is not None
    require_columns(problem.data, call.margin, f"'loss' of {OWNER}")
    if not set(call.margin) & set(problem.columns):
        raise ParameterError(
            f"'loss' of {OWNER} has {address!r}, a table in which nothing moves. Cross it with a level of geography: "
            f"{', '.join(problem.columns)}."
        )
    return call.margin, LOSSES[call.name]
