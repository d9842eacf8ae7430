"""Small files whose swaps can be enumerated by hand: frequencies over seeds against exact probabilities."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import chi2

import quadrille as qd
from effort import tries
from quadrille.data import Data

DRAWS = tries(800, nightly=20_000)
LEAST_P = 1e-6
"""The seeds are fixed, so a test that passes goes on to pass; a wrong law of these gives far less."""

Outcome = frozenset[tuple[int, int]]


def persons(areas: str, values: list[int], profile: list[int] | None = None) -> Data:
    """Households of one person in areas written N.a for a in N, by value and by profile."""
    parts = [area.split(".") for area in areas.split()]
    levels = [f"level{h}" for h in range(1, len(parts[0]) + 1)]
    columns: dict[str, Any] = {name: [".".join(part[: h + 1]) for part in parts] for h, name in enumerate(levels)} | {
        "v": values
    }
    if profile is not None:
        columns["profile"] = profile
    return qd.from_frame(pl.DataFrame(columns)).with_roles(geography=levels)


def frequencies(data: Data, **parameters: Any) -> Counter[Outcome]:
    """Draw many plans, and count the sets of pairs."""
    given: dict[str, Any] = {"risk": ["v"], "similar": [[]], **parameters}
    recipe = qd.TargetedSwap(**given, seed=0)
    prepared = recipe.prepare(data)
    found: Counter[Outcome] = Counter()
    for seed in range(DRAWS):
        pairs = prepared.draw(recipe.stream_of(seed)).pairs
        assert pairs is not None
        found[frozenset((min(pair), max(pair)) for pair in pairs.tolist())] += 1
    return found


def outcome(*pairs: str) -> Outcome:
    """Write pairs like 0-5."""
    return frozenset((int(pair[0]), int(pair[2])) for pair in pairs)


def fits(found: Counter[Outcome], expected: dict[Outcome, Fraction]) -> None:
    """Check that nothing else occurs, and that the frequencies fit."""
    assert sum(expected.values()) == 1
    assert set(found) <= set(expected)
    if len(expected) > 1:
        observed = [found[each] for each in expected]
        wanted = [DRAWS * float(chance) for chance in expected.values()]
        statistic = sum((o - e) ** 2 / e for o, e in zip(observed, wanted, strict=True))
        assert chi2.sf(statistic, len(expected) - 1) > LEAST_P


def moved(found: Counter[Outcome], chances: list[Fraction]) -> None:
    """Check the chance of each household to take part, within four and a half standard errors."""
    share = np.zeros(len(chances))
    for pairs, times in found.items():
        for pair in pairs:
            share[list(pair)] += times / DRAWS
    exact = np.array([float(each) for each in chances])
    room = 4.5 * np.sqrt(exact * (1 - exact) / DRAWS) + 1e-12
    assert (np.abs(share - exact) <= room).all(), (share, exact)


def number_of_pairs(found: Counter[Outcome]) -> dict[int, float]:
    sizes: Counter[int] = Counter()
    for pairs, times in found.items():
        sizes[len(pairs)] += times
    return {size: times / DRAWS for size, times in sizes.items()}


F = Fraction


def test_a_partner_is_drawn_in_proportion_to_its_risk() -> None:
    found = frequencies(persons("A A A B B C C C", [0, 1, 1, 1, 1, 1, 1, 1]), k=2)
    chances = {outcome("0-3"): F(1, 4), outcome("0-4"): F(1, 4)}
    fits(found, chances | {outcome(f"0-{d}"): F(1, 6) for d in (5, 6, 7)})


SIX = "A A A B B C", [0, 0, 1, 0, 0, 0]


def test_quotas_of_units_give_every_area_its_share_exactly() -> None:
    found = frequencies(persons(*SIX), k=1, rate=2 / 6)
    moved(found, [F(1, 4), F(1, 4), F(1, 2), F(1, 3), F(1, 3), F(1, 3)])
    assert number_of_pairs(found) == {1: 1.0}
    found = frequencies(persons(*SIX), k=1, rate=4 / 6)
    moved(found, [F(59, 108), F(59, 108), F(43, 54), F(13, 18), F(13, 18), F(2, 3)])
    assert number_of_pairs(found) == {2: 1.0}


def test_quotas_of_pairs_begun_favour_small_areas() -> None:
    found = frequencies(persons(*SIX), k=1, rate=2 / 6, quota="initiated")
    moved(found, [F(5, 24), F(5, 24), F(5, 12), F(23, 72), F(23, 72), F(19, 36)])
    found = frequencies(persons(*SIX), k=1, rate=4 / 6, quota="initiated")
    one = number_of_pairs(found)[1]
    assert abs(one - 1 / 12) <= 4.5 * np.sqrt(11 / 144 / DRAWS)
    assert set(number_of_pairs(found)) == {1, 2}


NESTED = "N.a N.a N.b S.c S.c S.d", [0, 1, 1, 1, 1, 1]


def test_levels_are_served_from_the_coarsest_down() -> None:
    found = frequencies(persons(*NESTED), k=2)
    assert len(found) == 9
    mean = sum(len(pairs) * times for pairs, times in found.items()) / DRAWS
    assert abs(mean - 17 / 6) < 4.5 * np.sqrt(5 / 36 / DRAWS)
    for pairs, chance in ((["0-5"], F(1, 3)), (["1-2"], F(7, 18)), (["0-5", "1-2"], F(1, 6))):
        share = sum(times for each, times in found.items() if outcome(*pairs) <= each) / DRAWS
        assert abs(share - chance) <= 4.5 * np.sqrt(float(chance * (1 - chance)) / DRAWS)


def test_near_parent_prefers_the_own_parent_for_certain() -> None:
    found = frequencies(persons(*NESTED), k=2, near="parent")
    listed = (["0-5", "1-2"], ["0-3", "1-2", "4-5"], ["0-4", "1-2", "3-5"])
    fits(found, {outcome(*pairs): F(1, 3) for pairs in listed})


def test_those_at_risk_first_leaves_no_choice() -> None:
    found = frequencies(persons(*NESTED), k=2, donors="at-risk-first")
    fits(found, {outcome("0-5", "1-2"): F(1)})


FOUR = "A A B B C C", [0, 1, 1, 1, 0, 0], [0, 1, 1, 2, 2, 3]


def test_profiles_are_tried_in_order() -> None:
    found = frequencies(persons(*FOUR), k=2, rate=2 / 6, similar=[["profile"], []])
    chances = {outcome(f"0-{d}", "1-2"): F(7, 24) for d in (3, 4, 5)}
    fits(found, chances | {outcome("0-2", f"1-{d}"): F(1, 24) for d in (3, 4, 5)})
    moved(found, [F(1), F(1), F(1), F(1, 3), F(1, 3), F(1, 3)])


def test_a_cap_serves_the_most_at_risk_until_it_is_reached() -> None:
    found = frequencies(persons(*FOUR), k=2, rate=2 / 6, similar=[["profile"], []], mode="cap")
    fits(found, {outcome("1-2"): F(1, 2)} | {outcome(f"0-{d}"): F(1, 8) for d in (2, 3, 4, 5)})


def test_the_nearest_on_either_side_are_drawn_in_proportion_to_risk() -> None:
    """Alone in their areas are 3, 4 and 7, and one pair is drawn: for 4, one of 3 (weight 1) and 5 (one of two)."""
    data = persons("A A A A B C C D", [1, 1, 1, 2, 0, 1, 1, 1])
    found = frequencies(data, k=2, near=1, mode="cap", rate=2 / 8)
    fits(found, {outcome("3-4"): F(5, 9), outcome("4-5"): F(1, 9), outcome("6-7"): F(1, 3)})


def test_of_some_donors_the_cheapest_is_taken() -> None:
    """Donors 1, 2 and 3 of equal weight cost nothing, once and twice: two are drawn, so 5/9, 3/9 and 1/9."""
    columns = {"place": list("ABCD"), "x": [0, 0, 1, 1], "y": [0, 0, 0, 1], "score": [2.0, 1.0, 1.0, 1.0]}
    data = qd.from_frame(pl.DataFrame(columns)).with_roles(geography=["place"])
    loss = {"total_variation(place*x)": 1.0, "total_variation(place*y)": 1.0}
    by_score = {"risk": [], "scores": ["score"], "threshold": 1.5}
    found = frequencies(data, **by_score, near="loss", loss=loss, donors_drawn=2)
    fits(found, {outcome("0-1"): F(5, 9), outcome("0-2"): F(3, 9), outcome("0-3"): F(1, 9)})


@pytest.mark.parametrize("near", ["any", 3])
def test_a_rule_leaves_the_other_partners_their_proportions(near: str | int) -> None:
    data = persons("A A A B B C C C", [0, 1, 1, 1, 1, 1, 1, 1])
    found = frequencies(data, k=2, near=near, rules=["v=0 & level1=B"])
    fits(found, {outcome(f"0-{d}"): F(1, 3) for d in (5, 6, 7)})
