"""Drawing the pairs, those at risk first, level by level, then for quotas and kept tables; and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Flags, Floats, Ints, Rows, require_columns
from quadrille.errors import ParameterError
from quadrille.measure.base import Address
from quadrille.plan import DeferredFacts, Details, Pairs
from quadrille.randomness import Chooser, Stream, Words, draw_until_enough
from quadrille.swap.designed.problem import LOSSES
from quadrille.swap.groups import group_ids
from quadrille.swap.pairing import rules_facts
from quadrille.swap.targeted.problem import OWNER, Problem
from quadrille.swap.targeted.risk import MANY_LEFT, NOT_AT_RISK, level_at_risk
from quadrille.text import percent

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


NO_PARTNER, CAP, NEVER, NO_AREA = (
    "no partner in any profile",
    "the cap was reached",
    "named by 'never'",
    "an area is missing",
)
Whole = TypeVar("Whole", np.int32, np.int64)
_MUCH, _MANY = 2, 0.25
"""Taking part more often than the rate times the one is worth a warning, or than the other where no rate was given."""


def outcome(problem: Problem, drawn: Drawn) -> Details:
    """Return what a plan remembers of its draw. The facts are worked out when they are first looked at."""
    return Details(DeferredFacts(lambda: facts(problem, drawn)), _rows(problem, drawn))


def facts(problem: Problem, drawn: Drawn) -> dict[str, object]:
    """Return the report of a draw, plain values only."""
    area = [problem.areas.at(h) for h in range(len(problem.areas.levels))]
    new_area = [_after(each, drawn) for each in area]
    stayed = np.array([was == now for was, now in zip(area, new_area, strict=True)])
    made: dict[str, object] = {
        "households": problem.units.count,
        "level_names": list(problem.areas.levels),
        "who": _who(problem),
        "at_risk": _at_risk(problem, drawn, stayed),
        "treated": _treated(problem, drawn, stayed),
        "pairs_by_phase": _pairs_by_phase(problem, drawn),
        "pairs_by_profile": _pairs_by_profile(problem, drawn),
        "pairs_crossing": _crossing(problem, drawn, stayed),
        "set_aside": int(drawn.aside.sum()),
        "areas_exhausted": int((drawn.exhausted > 0).sum()),
        "wanted_of_exhausted": int(drawn.exhausted.sum()),
        "areas": _by_area(problem, drawn),
        **rules_facts(problem.rule_texts, [problem.rule_counts] if problem.rule_counts else []),
    }
    return made | {"warnings": _warnings(problem, drawn)}


def _who(problem: Problem) -> str:
    """Say in words whom the recipe takes for being at risk."""
    recipe = problem.recipe
    if recipe.scores:
        return f"whoever has a member with a score above {recipe.threshold or 0:g}: {', '.join(recipe.scores)}"
    return f"whoever has a member whose {', '.join(recipe.risk)} fewer than {recipe.k:,} persons of the area have"


def _after(values: NDArray[Whole], drawn: Drawn) -> NDArray[Whole]:
    """Return what each unit has after the exchange."""
    made = values.copy()
    made[drawn.pairs] = values[drawn.pairs[:, ::-1]]
    return made


def _at_risk(problem: Problem, drawn: Drawn, stayed: Flags) -> list[dict[str, object]]:
    """Count, by level, the units at risk there and at no coarser level: before, after, and those that did not leave."""
    after: Sequence[int | None] = [None] * len(problem.areas.levels)  # a score belongs to where the unit was
    if problem.combinations is not None:
        moved = replace(problem.areas, path=_after(problem.areas.path, drawn))
        m = problem.combinations.least(moved, problem.units)
        after = [int((level_at_risk(m < problem.recipe.k) == h).sum()) for h in range(len(m))]
    return [
        {
            "level": name,
            "before": int((problem.level == h).sum()),
            "after": after[h],
            "in_place": int(((problem.level == h) & stayed[h]).sum()),
        }
        for h, name in enumerate(problem.areas.levels)
    ]


def reasons(problem: Problem, drawn: Drawn) -> dict[str, Ints]:
    """Return the units at risk that took no part, by reason."""
    left = (problem.level != NOT_AT_RISK) & ~drawn.used
    made: dict[str, Ints] = {}
    for reason, flags in (
        (NEVER, problem.never),
        (NO_AREA, ~problem.areas.known),
        (NO_PARTNER, drawn.failed),
        (CAP, np.ones_like(left)),
    ):
        made[reason] = np.flatnonzero(left & flags)
        left &= ~flags
    return {reason: units for reason, units in made.items() if len(units)}


def _rows(problem: Problem, drawn: Drawn) -> dict[str, Rows]:
    """Return the first row of each unit that was to be swapped and was not, by reason."""
    listed = {f"at risk, left: {reason}": units for reason, units in reasons(problem, drawn).items()}
    listed["drawn for the quota, without a partner"] = np.flatnonzero(drawn.aside & ~drawn.used)
    return {name: problem.units.first[units] for name, units in listed.items() if len(units)}


def _treated(problem: Problem, drawn: Drawn, stayed: Flags) -> dict[str, object]:
    """Count the units at risk that moved across their level, that moved but not across it, and that were left."""
    at_risk = np.flatnonzero(problem.level != NOT_AT_RISK)
    same = stayed[problem.level[at_risk], at_risk]
    used = drawn.used[at_risk]
    left = {reason: len(units) for reason, units in reasons(problem, drawn).items()}
    return {
        "at_risk": len(at_risk),
        "across": int((used & ~same).sum()),
        "not_across": int((used & same).sum()),
        "left": int((~used).sum()),
        "reasons": left,
        "bystanders": int(drawn.used.sum()) - int(used.sum()),
    }


def _pairs_by_phase(problem: Problem, drawn: Drawn) -> list[dict[str, object]]:
    both = (problem.level[drawn.pairs] != NOT_AT_RISK).all(axis=1)
    rows: list[dict[str, object]] = []
    for phase, word in ((AT_RISK, "at risk"), (AT_RISK + 1, "quota")):
        for h, name in enumerate(problem.areas.levels):
            here = (drawn.phase == phase) & (drawn.level == h)
            if here.any():
                rows.append(
                    {"phase": word, "level": name, "pairs": int(here.sum()), "both_at_risk": int(both[here].sum())}
                )
    return rows


def _pairs_by_profile(problem: Problem, drawn: Drawn) -> list[dict[str, object]]:
    count = np.bincount(drawn.profile, minlength=len(problem.recipe.similar)).tolist()
    return [
        {"profile": ", ".join(profile) or "anybody", "pairs": pairs}
        for profile, pairs in zip(problem.recipe.similar, count, strict=True)
    ]


def _crossing(problem: Problem, drawn: Drawn, stayed: Flags) -> list[dict[str, object]]:
    """Count the pairs by the coarsest level that they cross."""
    crossed = (~stayed[:, drawn.pairs[:, 0]]).argmax(axis=0)
    count = np.bincount(crossed, minlength=len(stayed)).tolist()
    return [
        {"level": name, "pairs": pairs, "units": 2 * pairs}
        for name, pairs in zip(problem.areas.levels, count, strict=True)
    ]


def _by_area(problem: Problem, drawn: Drawn) -> list[dict[str, object]]:
    """Return how the lowest areas vary: in units, quota, units taking part, and their share of the units."""
    areas, known = problem.areas, problem.areas.known
    units = np.bincount(areas.path[known], minlength=areas.count)
    held = units > 0
    part = np.bincount(areas.path[drawn.used], minlength=areas.count)
    quota = 2 * drawn.quota if problem.recipe.quota == "initiated" else drawn.quota
    rows = (("households", units), ("quota", quota), ("taking part", part), ("share", part / np.maximum(units, 1)))
    return [{"of": name, **_spread(values[held])} for name, values in rows]


def _spread(values: Ints | Floats) -> dict[str, float]:
    ordered = np.sort(values)
    middle = float(np.median(ordered))
    low, high = float(ordered[0]), float(ordered[-1])
    return {"least": low, "median": middle, "most": high, "deviation": float(ordered.std())}


def _warnings(problem: Problem, drawn: Drawn) -> list[str]:
    """Return what whoever judges the swap should know."""
    recipe, n = problem.recipe, problem.units.count
    levels, at_risk = problem.areas.levels, int((problem.level != NOT_AT_RISK).sum())
    warnings: list[str] = []
    if not at_risk:
        what = "Raise 'k', or name more risk variables or finer levels" if recipe.risk else "Look at the scores"
        warnings.append(f"Nobody is at risk: all pairs are drawn for the rate alone. {what}.")
    taking = int(drawn.used.sum())
    asked = 2 * problem.quota.pairs / n
    if recipe.mode == "floor" and at_risk and taking / n > (_MUCH * asked or _MANY):
        by_level = np.bincount(problem.level[problem.level != NOT_AT_RISK], minlength=len(levels))
        worst = int(by_level.argmax())
        warnings.append(
            f"{int(by_level[worst]):,} of {n:,} households are at risk at level {levels[worst]}; "
            f"{percent(taking / n)} take part" + (f", and {percent(asked)} were asked for" if asked else "") + ". "
            "Coarsen the risk variables, raise the level, or use mode='cap'."
        )
    left = {reason: len(units) for reason, units in reasons(problem, drawn).items() if reason in (NO_PARTNER, NO_AREA)}
    if (many := sum(left.values())) > MANY_LEFT * at_risk:
        why = ", ".join(f"{reason}: {households:,}" for reason, households in left.items())
        warnings.append(
            f"{many:,} of {at_risk:,} households at risk stay where they are ({why}). A further profile in 'similar' "
            "with fewer columns finds partners, such as [] for anybody."
        )
    if recipe.donors == "at-risk-first":
        warnings.append(
            "Households that are not at risk are hardly ever moved: somebody who knows that one is at risk knows that "
            "it was swapped, and that the others are where they were."
        )
    if recipe.near == "loss":
        warnings.append(
            f"Of {recipe.donors_drawn} partners drawn in proportion to risk the one that changes the tables least was "
            "taken: somebody who knows the tables before could tell likelier partners from others."
        )
    if problem.unit is not None and problem.data.codebook[problem.unit].role != "unit":
        warnings.append(
            f"Column {problem.unit!r} numbers the households and has no role, so a release publishes its numbers as "
            "they are, and they may tell the area. Give it the role unit: then they are drawn anew."
        )
    zero = _never_donors(problem)
    if zero:
        warnings.append(f"{zero:,} households have a score of 0 at the lowest level, so none of them is ever a donor.")
    return warnings


def _never_donors(problem: Problem) -> int:
    return 0 if problem.score is None else int((problem.score[-1] == 0).sum())
