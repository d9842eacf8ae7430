"""What a targeted swap did: who was at risk before and after, who moved how far, who was left and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from quadrille.data import Flags, Floats, Ints, Rows
from quadrille.plan import DeferredFacts, Details
from quadrille.swap.pairing import rules_facts
from quadrille.swap.targeted.draw import AT_RISK, Drawn
from quadrille.swap.targeted.problem import Problem
from quadrille.swap.targeted.risk import MANY_LEFT, NOT_AT_RISK, level_at_risk

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
            f"{100 * taking / n:.3g} % take part"
            + (f", and {100 * asked:.3g} % were asked for" if asked else "")
            + ". "
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
