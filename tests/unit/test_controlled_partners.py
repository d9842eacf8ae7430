"""The search for partners against a plain one: same pairs, same rounds, and equal chances where there are ties."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import permutations
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quadrille as qd
from controlled_oracle import DonorIndex, Pair, outcomes, replay
from controlled_strategies import Case, alike, controlled, flag, flags_of
from oracles import records, weights
from quadrille import kernels
from quadrille.data import Column, Data
from strategies import numbers

Search = tuple[set[int], list[Pair]]  # targets and donors of one search; its pairs with their rounds


@contextmanager
def watched(again: list[int] | None = None) -> Iterator[list[Search]]:
    """Record who is paired in which round of each search; `again` counts rounds begun anew for want of words."""
    real, searches, current = kernels.pair_round, [], []

    def pair_round(
        active: int, state: object, asked: object, line: object, stock: object, market: object, dice: object
    ) -> int:
        if not current or current[0] is not market:
            current[:] = [market, 0]
            searches.append(({*market.targets.tolist(), *market.donors.tolist()}, []))
        before = np.flatnonzero(asked.partner < 0)
        left = real(active, state, asked, line, stock, market, dice)
        if left < 0:
            again is not None and again.append(1)
            return left
        current[1] += 1
        for t in before[asked.partner[before] >= 0]:
            searches[-1][1].append((int(market.targets[t]), int(asked.partner[t]), current[1]))
        return left

    kernels.pair_round = pair_round
    try:
        yield searches
    finally:
        kernels.pair_round = real


def x_of(data: Data, name: str) -> list[Fraction]:
    """Numeric categories as they are, else positions; all kinds of missing are one step above."""
    column = data[name]
    known = list(column.variable.categories)
    if any(isinstance(value, str) for value in known):
        known = list(range(len(known)))
    last = max(known, default=-1)
    scale = [*known, *[last + 1] * (len(column.variable.missing) + 1)]
    return [Fraction(scale[code]) for code in column.values]


def market_of(case: Case, swap: list[str] | tuple[str, ...], bias: str, inside: set[int]) -> DonorIndex:
    never = flags_of(case.data, case.recipe.never)
    donors = {i for i in inside if not never[i]} - case.targets
    return DonorIndex(
        records(case.data, case.recipe.boundary),
        alike(case.data, swap),
        x_of(case.data, bias),
        weights(case.data),
        frozenset(case.targets & inside),
        frozenset(donors),
    )


EXACT = ("integers", "decimals", "zeros", None)
PLAIN = {"matching": "greedy", "on_missing": "category"}


@given(controlled(weights=EXACT, fixed={**PLAIN, "method": "standard"}))
def test_every_round_of_the_standard_search_obeys_its_rules(case: Case) -> None:
    with watched() as searches:
        plan = case.recipe.plan(case.data)
    ((_, pairs),) = searches
    bias = case.recipe.bias or case.recipe.swap[-1]
    market = market_of(case, case.recipe.swap, bias, set(range(case.data.n)))
    replay(market, pairs)
    assert sorted((t, d) for t, d, _ in pairs) == sorted(map(tuple, plan.pairs.tolist()))
    facts = plan.details.facts
    assert facts["bias"] == pytest.approx(float(sum(market.bias(t, d) for t, d, _ in pairs)), rel=1e-12)
    last = max((number for *_, number in pairs), default=0)
    assert facts["rounds"] in (last, last + 1), (
        "after the last pair there is at most one round, in which nobody is found"
    )


@given(controlled(weights=EXACT, fixed={**PLAIN, "method": "balanced"}))
def test_the_balanced_search_obeys_the_rules_in_groups_with_each_variable_right_most_in_turn(case: Case) -> None:
    with watched() as searches:
        plan = case.recipe.plan(case.data)
    swap = case.recipe.swap
    assert sorted(pair[:2] for _, pairs in searches for pair in pairs) == sorted(map(tuple, plan.pairs.tolist()))
    bias = Fraction(0)
    last = iter(swap) if len(searches) == len(swap) else None
    for inside, pairs in searches:
        rightmost = [next(last)] if last else list(swap)
        fits = [fit for name in rightmost for fit in [_fitting(case, name, inside, pairs)] if fit is not None]
        assert fits, "no order of the variables explains the pairs of a group"
        bias += fits[0]
    if last:
        assert plan.details.facts["bias"] == pytest.approx(float(bias), rel=1e-12)


def _fitting(case: Case, rightmost: str, inside: set[int], pairs: list[Pair]) -> Fraction | None:
    """The bias of a group if some order of the other variables explains its pairs."""
    others = [name for name in case.recipe.swap if name != rightmost]
    bias = rightmost if len(case.recipe.swap) > 1 else case.recipe.bias or rightmost
    for order in permutations(others):
        market = market_of(case, [*order, rightmost], bias, inside)
        try:
            replay(market, pairs)
        except AssertionError:
            continue
        return sum((market.bias(t, d) for t, d, _ in pairs), Fraction(0))
    return None


def file_with(cells: list[tuple[int, ...]], weight: list[float], targets: list[int]) -> Data:
    n = len(cells)
    variables = []
    for v, name in enumerate("ABC"[: len(cells[0])]):
        codes = np.array([cell[v] for cell in cells])
        variables.append(Column(qd.Variable(name, "ordinal", tuple(range(6))), codes.astype(np.uint8)))
    chosen = np.isin(np.arange(n), targets)
    return Data([*variables, flag("T", chosen), numbers("w", weight, role="weight")])


def swap_of(data: Data, seed: int, **more: object) -> qd.ControlledSwap:
    variables = [name for name in "ABC" if name in data.columns]
    return qd.ControlledSwap(variables, targets=0, must="T", seed=seed, **more)


def exact_market(data: Data, targets: list[int]) -> DonorIndex:
    variables = [name for name in "ABC" if name in data.columns]
    everyone = frozenset(range(data.n))
    cell = alike(data, variables)
    x = x_of(data, variables[-1])
    return DonorIndex([()] * data.n, cell, x, weights(data), frozenset(targets), everyone - set(targets))


@st.composite
def untied(draw: st.DrawFn) -> tuple[Data, list[int]]:
    """Weights 1, 2, 4, ..., so that no two differences of weights are equal; the cells are drawn."""
    n = draw(st.integers(3, 24))
    width = draw(st.integers(1, 3))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    cells = [tuple(row) for row in random.integers(0, draw(st.integers(2, 6)), (n, width)).tolist()]
    weight = (2.0 ** random.permutation(n)).tolist()
    targets = random.permutation(n)[: draw(st.integers(1, n - 1))].tolist()
    return file_with(cells, weight, targets), targets


@given(untied(), st.integers(0, 99))
def test_without_ties_pairs_biases_and_rounds_are_those_of_the_plain_search(
    made: tuple[Data, list[int]], seed: int
) -> None:
    data, targets = made
    market = exact_market(data, targets)
    results = outcomes(market)
    # A bias of 0 on both sides is a tie that no choice of weights can avoid.
    with watched() as searches:
        plan = swap_of(data, seed).plan(data)
    found = frozenset(searches[0][1])
    assert found in results
    if len(results) == 1:
        assert found == next(iter(results))
        assert frozenset(map(tuple, plan.pairs.tolist())) == {(t, d) for t, d, _ in found}
        assert plan.details.facts["bias"] == float(sum(market.bias(t, d) for t, d, _ in found))


TIED = {
    "equally close weights in one cell": ([(0,), (1,), (1,), (1,), (1,)], [5, 4, 6, 6, 9], [0]),
    "equal biases on both sides": ([(1,), (0,), (0,), (2,)], [5, 4, 6, 6], [0]),
    "two targets want one donor": ([(0,), (0,), (1,), (2,)], [5, 5, 7, 7], [0, 1]),
    "three targets, equal weights": ([(0,), (1,), (1,), (2,), (2,), (3,)], [1] * 6, [0, 2, 4]),
    "losers search again": ([(1,), (1,), (1,), (0,), (2,), (3,), (3,)], [4, 4, 2, 3, 3, 5, 1], [0, 1, 2]),
    "two variables, bias 0 across": ([(0, 1), (0, 0), (1, 1), (1, 1), (0, 2), (1, 0)], [2, 3, 3, 1, 3, 2], [0, 5]),
    "three targets want one donor": ([(0,), (0,), (0,), (1,)], [1, 1, 1, 2], [0, 1, 2]),
    "more targets than donors": ([(0,), (0,), (0,), (1,), (1,)], [1, 1, 1, 2, 2], [0, 1, 2]),
}
DRAWS = 1000


@pytest.mark.parametrize("name", TIED)
def test_ties_are_broken_with_equal_chances(name: str) -> None:
    cells, weight, targets = TIED[name]
    data = file_with(cells, weight, targets)
    exact: Counter[frozenset[tuple[int, int]]] = Counter()
    for result, chance in outcomes(exact_market(data, targets)).items():
        exact[frozenset((t, d) for t, d, _ in result)] += chance
    assert len(exact) > 1, "the example has no ties"
    seen = Counter(frozenset(map(tuple, swap_of(data, s).plan(data).pairs.tolist())) for s in range(DRAWS))
    assert set(seen) <= set(exact)
    for result, chance in exact.items():
        error = sqrt(DRAWS * chance * (1 - chance))
        assert abs(seen[result] - DRAWS * chance) <= 4 * error + 1e-9, (name, result)


def test_a_search_that_needs_more_words_than_expected_breaks_no_rule_and_is_reproducible() -> None:
    # All targets want the lightest donor of the left or of the right, so that two at most are paired in a round.
    cells = [(2,)] * 60 + [(0,)] * 40 + [(4,)] * 40
    data = file_with(cells, [1.0] * 60 + [2.0 + i for i in range(40)] * 2, list(range(60)))
    again: list[int] = []
    with watched(again) as searches:
        plan = swap_of(data, 3).plan(data)
    assert again, "the example does not run out of words"
    replay(exact_market(data, list(range(60))), searches[0][1])
    assert len(plan.pairs) == 60
    assert plan == swap_of(data, 3).plan(data)


@pytest.mark.parametrize("method", ["standard", "balanced"])
def test_a_zone_of_one_record_leaves_its_target_alone_with_a_reason(method: str) -> None:
    data = file_with([(0, 0), (1, 0), (1, 1), (1, 2)], [1, 2, 3, 4], [0, 1])
    recipe = qd.ControlledSwap("B", targets=0, must="T", boundary="A", method=method, seed=1)
    details = recipe.plan(data).details
    assert details.rows["without partner"].tolist() == [0]
    assert details.facts["reasons"] == {"no donor in another cell of its zone": 1}
    with pytest.raises(qd.InfeasibleError) as caught:
        qd.ControlledSwap("B", targets=0, must="T", boundary="A", method=method, strict=True, seed=1).plan(data)
    assert (caught.value.asked, caught.value.maximum) == (2, 1)


def test_with_more_targets_than_donors_the_rest_stays_alone_with_a_reason() -> None:
    data = file_with([(0,), (0,), (0,), (1,), (1,)], [1, 2, 3, 4, 5], [0, 1, 2])
    plan = swap_of(data, 1).plan(data)
    facts = plan.details.facts
    assert (facts["pairs"], facts["without_partner"]) == (2, 1)
    assert facts["reasons"] == {"every donor in another cell of its zone is taken": 1}
    assert {d for _, d in plan.pairs.tolist()} == {3, 4}


def test_when_the_other_cells_of_the_zone_hold_only_targets_nothing_is_said_to_be_taken() -> None:
    data = file_with([(0,), (1,)], [1, 1], [0, 1])
    assert swap_of(data, 1).plan(data).details.facts["reasons"] == {"no donor in another cell of its zone": 2}


def test_one_compiled_search_serves_all_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search is compiled anew, which takes seconds, for arrays of another type or that may not be written to."""
    cells, weight = [(0,), (1,), (2,)], [1.0, 2.0, 3.0]
    weighted = file_with(cells, weight, [0])
    plain = Data([weighted["A"], weighted["T"], numbers("x", weight)])
    real, kinds = kernels.pair_round, []

    def pair_round(
        active: int, state: object, asked: object, line: object, stock: object, market: object, dice: object
    ) -> int:
        kinds.append([(a.dtype, a.flags.writeable) for a in market if isinstance(a, np.ndarray)])
        return real(active, state, asked, line, stock, market, dice)

    monkeypatch.setattr(kernels, "pair_round", pair_round)
    for data, bias in ((weighted, None), (weighted, "w"), (plain, None), (plain, "x")):
        swap_of(data, 1, bias=bias).plan(data)
    assert len(kinds) == 4
    assert all(kind == kinds[0] for kind in kinds)


def test_a_file_with_one_cell_gives_a_plan_without_pairs() -> None:
    data = file_with([(0,), (0,), (0,)], [1, 2, 3], [1])
    plan = swap_of(data, 1).plan(data)
    assert len(plan.rows) == 0 and plan.apply(data) == data
    assert plan.details.facts["reasons"] == {"no donor in another cell of its zone": 1}


def test_more_variables_than_records_still_make_balanced_groups() -> None:
    data = file_with([(0, 1, 2), (1, 2, 0)], [1, 2], [0])
    assert len(swap_of(data, 1, method="balanced").plan(data).pairs) == 0


def groups_of(data: Data, recipe: qd.ControlledSwap) -> list[set[int]]:
    with watched() as searches:
        recipe.plan(data)
    return [inside for inside, _ in searches]


def test_balanced_groups_are_as_equal_as_possible_and_every_record_is_as_likely_in_each() -> None:
    n = 11
    cells = [(i % 3, i % 2, i % 5) for i in range(n)]
    data = file_with(cells, list(range(1, n + 1)), list(range(0, n, 2)))
    seen = np.zeros((3, n))
    draws = 600
    for seed in range(draws):
        groups = groups_of(data, swap_of(data, seed, method="balanced"))
        if len(groups) < 3:  # a group without targets is not searched
            continue
        assert sorted(map(len, groups)) == [3, 4, 4]
        assert sorted(row for group in groups for row in group) == list(range(n))
        for g, group in enumerate(groups):
            seen[g, list(group)] += 1
    total = seen[0].sum() / len(groups[0])
    share = seen / total
    size = seen.sum(axis=1, keepdims=True) / total / n
    assert total > draws / 2
    # Seeds in which a group has no target are left out, alike for all targets and alike for all others.
    for rows in (np.arange(0, n, 2), np.arange(1, n, 2)):
        mean = share[:, rows].mean(axis=1, keepdims=True)
        error = np.sqrt(mean * (1 - mean) / total)
        assert (abs(share[:, rows] - mean) <= 4 * error).all()
    assert (abs(size - np.array([[4], [4], [3]]) / n) < 1e-12).all()
