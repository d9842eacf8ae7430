"""Laws of targeted swapping, on random households in nested areas with every combination of the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

import quadrille as qd
from effort import examples
from oracles import counts, records
from quadrille.data import Data
from quadrille.errors import QuadrilleError
from quadrille.swap.targeted.draw import Draw, Drawn, loss_tables
from quadrille.swap.targeted.problem import Problem, Quota, problem_of
from targeted_strategies import RULE, Town, designs, is_refusal, recipe_of, towns

LEVELS = ("top", "mid", "low")


class Oracle:
    """What must be true of a draw, worked out household by household in plain Python."""

    def __init__(self, town: Town, design: dict[str, Any]) -> None:
        self.town, self.design = town, design
        self.levels = [LEVELS.index(name) for name in design["levels"]]
        self.areas = town.areas[self.levels]
        self.may = town.known & ~town.never if design["never"] else town.known

    @cached_property
    def m(self) -> np.ndarray:
        """The least frequency of the members' kinds in the area, by level and household."""
        town, found = self.town, np.zeros((len(self.levels), self.town.count), dtype=int)
        for h, level in enumerate(self.levels):
            name = LEVELS[level]
            place = town.data[name].values
            for y in range(town.count):
                mine = np.flatnonzero(town.of == y)
                found[h, y] = min(int(((place == place[i]) & (town.persons == town.persons[i])).sum()) for i in mine)
        return found

    @property
    def level(self) -> np.ndarray:
        """The first level at which each household is at risk, -1 for none."""
        at_risk = self.m < self.design["k"]
        return np.where(at_risk.any(axis=0), at_risk.argmax(axis=0), -1)

    def profile(self, y: int, columns: Sequence[str]) -> tuple[int, ...]:
        town = self.town
        values = {"size": town.size, "hhkind": town.kind, "top": town.areas[0]}
        return tuple(int(values[name][y]) for name in columns)

    def alike(self, t: int, d: int, p: int) -> bool:
        columns = self.design["similar"][p]
        return self.profile(t, columns) == self.profile(d, columns)

    def breaks(self, y: int, area: int) -> bool:
        """Whether a household would break the rule in an area, and does not where it is."""
        has = bool((self.town.persons[self.town.of == y] == 0).any())
        return bool(self.design["rules"]) and has and area == 1 and self.town.areas[2, y] != 1

    def admissible(self, t: int, d: int, h: int) -> bool:
        if self.areas[h, t] == self.areas[h, d] or t == d or not (self.may[t] and self.may[d]):
            return False
        lowest = self.town.areas[2]
        return not self.breaks(t, int(lowest[d])) and not self.breaks(d, int(lowest[t]))

    def partners(self, t: int, h: int, unused: np.ndarray) -> list[int]:
        return [
            d
            for d in np.flatnonzero(unused).tolist()
            if self.admissible(t, d, h) and any(self.alike(t, d, p) for p in range(len(self.design["similar"])))
        ]


def drawn_from(town: Town, design: dict[str, Any]) -> tuple[Problem, Drawn]:
    recipe = recipe_of(design)
    problem = problem_of(recipe, town.data)
    return problem, Draw(problem, loss_tables(problem)).draw(recipe.stream())


def made(town: Town, design: dict[str, Any]) -> tuple[Problem, Drawn]:
    try:
        return drawn_from(town, design)
    except QuadrilleError as error:
        assert is_refusal(error), error
        assume(False)
        raise


@examples(24)
@given(towns(), designs())
def test_the_battery_holds_or_the_refusal_says_why(town: Town, design: dict[str, Any]) -> None:
    try:
        plan = qd.testing.check_recipe(recipe_of(design), town.data)
    except QuadrilleError as error:
        assert is_refusal(error), error
        return
    after = plan.apply(town.data)
    assert set(plan.columns) == {*LEVELS, *design["carry"]}
    units = town.data.units("hh")
    assert not any(units.mixed(after[name].values).any() for name in LEVELS)
    assert {tuple(row) for row in records(after, LEVELS)} <= {tuple(row) for row in records(town.data, LEVELS)}
    still = [name for name in town.data.columns if name not in plan.columns]
    assert records(town.data, still) == records(after, still)
    for level in range(1, 4):
        one_each = [file.take(units.first) for file in (town.data, after)]
        assert counts(one_each[0], LEVELS[:level]) == counts(one_each[1], LEVELS[:level])
        if all("size" in profile for profile in design["similar"]):
            assert counts(town.data, LEVELS[:level]) == counts(after, LEVELS[:level])


@examples(24)
@given(towns(), designs())
def test_risk_is_the_least_count_of_a_member_in_the_area(town: Town, design: dict[str, Any]) -> None:
    problem, _ = made(town, design)
    oracle = Oracle(town, design)
    assert problem.m is not None
    known = town.known
    assert (problem.m[:, known] == oracle.m[:, known]).all()
    assert (problem.level[known] == oracle.level[known]).all()
    assert (problem.takes_part == oracle.may).all()
    assert problem.units.sizes.tolist() == town.size.tolist()


@examples(24)
@given(towns(), designs())
def test_partners_fit_the_profile_noted_and_come_from_outside(town: Town, design: dict[str, Any]) -> None:
    _, drawn = made(town, design)
    oracle = Oracle(town, design)
    assert len(np.unique(drawn.pairs)) == drawn.pairs.size == drawn.used.sum()
    for (t, d), h, p, phase in zip(drawn.pairs.tolist(), drawn.level, drawn.profile, drawn.phase, strict=True):
        assert oracle.alike(t, d, int(p)) and oracle.admissible(t, d, int(h))
        if phase == 1:
            assert oracle.level[t] == h or (design["retry"] and 0 <= oracle.level[t] <= h)
        else:
            assert h == len(oracle.levels) - 1


@examples(24)
@given(towns(), designs())
def test_nobody_at_risk_is_left_who_had_a_partner(town: Town, design: dict[str, Any]) -> None:
    design = {**design, "mode": "floor"}
    _, drawn = made(town, design)
    oracle = Oracle(town, design)
    for t in np.flatnonzero((oracle.level >= 0) & oracle.may & ~drawn.used):
        assert not oracle.partners(int(t), int(oracle.level[t]), ~drawn.used)
        assert drawn.failed[t]


@examples(24)
@given(towns(), designs())
def test_quotas_are_filled_where_that_can_be_done(town: Town, design: dict[str, Any]) -> None:
    problem, drawn = made(town, design)
    oracle = Oracle(town, design)
    if design["mode"] == "cap":
        assert len(drawn.pairs) <= problem.quota.pairs
        return
    if design["quota"] != "area":
        return
    lowest = len(oracle.levels) - 1
    path = problem.areas.path
    part = np.bincount(path[drawn.used], minlength=problem.areas.count)
    for a in np.flatnonzero(part < drawn.quota):
        for t in np.flatnonzero((path == a) & ~drawn.used & oracle.may):
            assert not oracle.partners(int(t), lowest, ~drawn.used)


@examples(36)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=12), st.integers(0, 40), st.data())
def test_quotas_add_up_and_are_exact_on_average(share: list[int], total: int, data: st.DataObject) -> None:
    whole = sum(share)
    assume(whole)
    quota = Quota(total, total, np.array(share))
    every = np.stack([quota.of(u) for u in range(whole)])
    assert (every.sum(axis=1) == total).all()
    assert every.sum(axis=0).tolist() == [total * each for each in share]
    begin = data.draw(st.integers(0, len(share)))
    end = data.draw(st.integers(begin, len(share)))
    exact = total * sum(share[begin:end]) / whole
    assert (np.abs(every[:, begin:end].sum(axis=1) - exact) < 1).all()


@examples(24)
@given(towns(), designs())
def test_near_parent_crosses_as_few_levels_as_it_can(town: Town, design: dict[str, Any]) -> None:
    design = {**design, "near": "parent", "loss": None, "donors": "risk"}
    _, drawn = made(town, design)
    oracle = Oracle(town, design)
    first = drawn.phase == 1
    for (t, d), h, p in zip(drawn.pairs[first].tolist(), drawn.level[first], drawn.profile[first], strict=True):
        common = int((oracle.areas[:, t] == oracle.areas[:, d]).sum())  # the number of levels in common
        for closer in range(common, int(h)):
            left = [
                x
                for x in np.flatnonzero(~drawn.used).tolist()
                if oracle.alike(t, x, int(p)) and oracle.admissible(t, x, int(h))
            ]
            assert not any(oracle.areas[closer, x] == oracle.areas[closer, t] for x in left)


@examples(24)
@given(towns(), designs(), st.integers(1, 3))
def test_near_m_takes_one_of_the_m_nearest_on_either_side(town: Town, design: dict[str, Any], m: int) -> None:
    """Replayed pair by pair: the donors are known from who is used already."""
    design = {**design, "near": m, "loss": None, "donors": "risk", "quota": "initiated"}
    problem, drawn = made(town, design)
    oracle = Oracle(town, design)
    unused = oracle.may.copy()
    path = problem.areas.path
    for (t, d), h, p in zip(drawn.pairs.tolist(), drawn.level, drawn.profile, strict=True):
        fits = [
            x for x in np.flatnonzero(unused).tolist() if oracle.alike(t, x, int(p)) and oracle.admissible(t, x, int(h))
        ]
        before = sorted((x for x in fits if path[x] < path[t]), key=lambda x: (-path[x], -x))
        after = sorted((x for x in fits if path[x] > path[t]), key=lambda x: (path[x], x))
        assert d in before[:m] + after[:m]
        for earlier in range(int(p)):
            others = np.flatnonzero(unused).tolist()
            assert not any(oracle.alike(t, x, earlier) and oracle.admissible(t, x, int(h)) for x in others)
        unused[[t, d]] = False


@examples(24)
@given(towns(), designs())
def test_those_at_risk_come_first_where_that_is_asked_for(town: Town, design: dict[str, Any]) -> None:
    design = {**design, "donors": "at-risk-first"}
    _, drawn = made(town, design)
    oracle = Oracle(town, design)
    unused = oracle.may.copy()
    for (t, d), h, p, phase in zip(drawn.pairs.tolist(), drawn.level, drawn.profile, drawn.phase, strict=True):
        if phase == 1 and oracle.level[d] < 0:
            others = np.flatnonzero(unused & (oracle.level >= 0)).tolist()
            assert not any(oracle.alike(t, x, int(p)) and oracle.admissible(t, x, int(h)) for x in others)
        unused[[t, d]] = False


@examples(24)
@given(towns(), designs())
def test_the_report_counts_what_happened(town: Town, design: dict[str, Any]) -> None:
    _, drawn = made(town, design)
    assume(len(drawn.pairs))
    plan = recipe_of(design).plan(town.data)
    assert plan.details
    facts: Any = plan.details.facts
    oracle = Oracle(town, design)
    level, known = oracle.level, town.known
    treated = facts["treated"]
    assert treated["across"] + treated["not_across"] + treated["left"] == treated["at_risk"]
    assert sum(treated["reasons"].values()) == treated["left"]
    assert sum(row["pairs"] for row in facts["pairs_crossing"]) == len(drawn.pairs)
    assert sum(row["pairs"] for row in facts["pairs_by_profile"]) == len(drawn.pairs)
    assert sum(row["pairs"] for row in facts["pairs_by_phase"]) == len(drawn.pairs)
    if known.all():
        assert [row["before"] for row in facts["at_risk"]] == [
            int((level == h).sum()) for h in range(len(oracle.levels))
        ]
        after = plan.apply(town.data)
        again = problem_of(recipe_of({**design, "rate": 1.0, "mode": "floor"}), after)
        found = [int((again.level == h).sum()) for h in range(len(oracle.levels))]
        assert [row["after"] for row in facts["at_risk"]] == found
    listed = {name: len(rows) for name, rows in plan.details.rows.items() if name.startswith("at risk")}
    assert listed == {f"at risk, left: {reason}": n for reason, n in treated["reasons"].items()}
    assert RULE not in design["rules"] or facts["rules"][0]["rule"] == RULE


@examples(30)
@given(towns(), designs())
def test_scores_of_zero_give_no_donor_and_a_score_above_the_threshold_is_at_risk(
    town: Town, design: dict[str, Any]
) -> None:
    assume(not design["carry"])
    random = np.random.default_rng(design["seed"])
    score = np.where(random.random(town.data.n) < 0.4, 0.0, random.integers(0, 5, town.data.n))
    data = with_ages(town.data, score)
    scored: dict[str, Any] = {**design, "levels": ["low"], "scores": ["age"], "threshold": 2.0}
    recipe = qd.TargetedSwap(**scored)
    try:
        plan = qd.testing.check_recipe(recipe, data)
        problem = problem_of(recipe, data)
        drawn = Draw(problem, loss_tables(problem)).draw(recipe.stream())
    except QuadrilleError as error:
        assert is_refusal(error), error
        return
    best = np.zeros(town.count)
    np.maximum.at(best, town.of, score)
    assert ((problem.level >= 0) == (best > 2)).all()
    assert (best[drawn.pairs[:, 1]] > 0).all()
    assert "age" in plan.steering_columns


@examples(30)
@given(towns(), designs())
def test_of_all_donors_the_cheapest_costs_the_tables_least(town: Town, design: dict[str, Any]) -> None:
    """Of so many donors drawn that none is left out, the exchange that changes the table least is taken."""
    plain: dict[str, Any] = {"rules": [], "donors": "risk", "quota": "initiated", "carry": [], "levels": ["low"]}
    plain |= {"risk": [], "scores": ["age"], "similar": [["hhkind"], []], "near": "loss", "donors_drawn": 2_500}
    design = {**design, **plain, "loss": {"total_variation(low*kind)": 1.0}}
    town = replace(town, data=with_ages(town.data, np.ones(town.data.n)))
    _, drawn = made(town, design)
    oracle = Oracle(town, design)
    unused, now = oracle.may.copy(), town.data["low"].values.astype(int).copy()
    before = table(now, town.persons)
    for (t, d), h, p in zip(drawn.pairs.tolist(), drawn.level, drawn.profile, strict=True):
        fits = [x for x in np.flatnonzero(unused) if oracle.alike(t, x, p) and oracle.admissible(t, x, int(h))]
        cost = {int(x): np.abs(table(exchanged(now, town.of, t, int(x)), town.persons) - before).sum() for x in fits}
        assert cost[d] == min(cost.values())
        now = exchanged(now, town.of, t, d)
        unused[[t, d]] = False


def with_ages(data: Data, values: np.ndarray) -> Data:
    """Put other numbers into the column of ages."""
    columns = [data[name] for name in data.columns]
    return Data([replace(each, values=values) if each.variable.name == "age" else each for each in columns])


def table(area: np.ndarray, persons: np.ndarray) -> np.ndarray:
    return np.bincount(area * 6 + persons, minlength=60)


def exchanged(area: np.ndarray, of: np.ndarray, t: int, d: int) -> np.ndarray:
    """Let two households change areas."""
    after = area.copy()
    after[of == t], after[of == d] = area[of == d][0], area[of == t][0]
    return after
