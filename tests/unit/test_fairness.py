"""Fair draws: small files against enumeration, dead ends against exhaustive search, CPS-8d against theory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chisquare

import quadrille as qd
from effort import tries
from oracles import PlanSet, admissible, largest, matchings, sequential
from quadrille.data import Data
from quadrille.randomness import Stream
from strategies import file_of

SAMPLERS = ("first-uniform", "pair-uniform")
DRAWS = tries(3_000, nightly=20_000)


def drawn(recipe: qd.RandomSwap, data: Data, draws: int) -> Iterator[PlanSet]:
    """Plans of the seeds 0, 1, ... as sets of unordered pairs."""
    drawer = recipe.prepared(data)
    for seed in range(draws):
        plan = drawer.draw(Stream.of(seed, recipe.design_json()))
        yield frozenset(frozenset(pair) for pair in plan.pairs.tolist())


FAIR = {
    "one variable, 3 levels": (file_of(A=[0, 0, 0, 1, 1, 2, 2]), {}, 2),
    "one variable, uneven levels": (file_of(A=[0, 0, 0, 0, 1, 2]), {}, 1),
    "two variables, all": (file_of(A=[0, 0, 1, 1, 2, 2, 0], B=[0, 1, 0, 1, 0, 1, 2]), {"swap": ["A", "B"]}, 2),
    "two variables, any": (file_of(A=[0, 0, 0, 1, 1], B=[0, 0, 1, 0, 0]), {"swap": ["A", "B"], "differ": "any"}, 2),
    "two variables, none": (file_of(A=[0, 0, 1, 1, 1], B=[0, 1, 0, 1, 1]), {"swap": ["A", "B"], "differ": "none"}, 2),
    "same classes of different sizes": (
        file_of(A=[0, 1, 0, 1, 2, 0, 1, 0, 1], C=[0, 0, 0, 0, 0, 1, 1, 2, 2]), {"same": ["C"]}, 2,
    ),
    "same classes, partners need not differ": (
        file_of(A=[0, 1, 0, 0, 0, 0, 0, 1], C=[0, 0, 0, 1, 1, 2, 2, 2]), {"same": ["C"], "differ": "none"}, 2,
    ),
    "different": (file_of(A=[0, 1, 0, 1, 2, 2], C=[0, 0, 1, 1, 0, 1]), {"different": ["C"]}, 2),
    "different only": (file_of(A=[0, 0, 0, 0, 1], C=[0, 0, 1, 1, 2]), {"different": ["C"], "differ": "none"}, 2),
    "same and different": (
        file_of(A=[0, 1, 0, 1, 0, 1, 1, 0], C=[0, 0, 0, 0, 1, 1, 1, 1], D=[0, 1, 2, 2, 0, 0, 1, 1]),
        {"same": ["C"], "different": ["D"]}, 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("name", FAIR)
def test_without_dead_ends_plans_occur_with_their_sequential_probabilities(name: str, sampler: str) -> None:
    data, options, k = FAIR[name]
    recipe = qd.RandomSwap(**{"swap": ["A"], "pairs": k, "sampler": sampler, "seed": 0} | options)
    expected = sequential(admissible(data, recipe, recipe.swap), k, sampler)
    found = Counter(drawn(recipe, data, DRAWS))
    assert set(found) <= set(expected)
    assert sum(expected.values()) == pytest.approx(1)
    counts = [DRAWS * chance for chance in expected.values()]
    assert min(counts) > 5
    # fixed seeds; 20 tests at p > 1e-3
    assert len(expected) == 1 or chisquare([found[plan] for plan in expected], counts).pvalue > 1e-3


def test_the_two_samplers_differ_where_theory_says_so() -> None:
    data, options, k = FAIR["one variable, uneven levels"]
    allowed = admissible(data, qd.RandomSwap("A", pairs=k, seed=0, **options), ["A"])
    first, pair = (sequential(allowed, k, sampler) for sampler in SAMPLERS)
    assert max(abs(first[plan] - pair[plan]) for plan in first) > 0.04


def random_case(number: int) -> tuple[Data, qd.RandomSwap]:
    """A small file and a rule; odd cycles of combinations are common with two or three swap variables."""
    random = np.random.default_rng(number)
    n, levels = int(random.integers(4, 12)), int(random.integers(2, 4))
    codes = {name: random.integers(0, levels, n) for name in "ABCDE"}
    swap = [["A"], ["A", "B"], ["A", "B", "C"]][random.integers(3)]
    constraint = [{}, {"same": ["D"]}, {"different": ["D"]}, {"same": ["E"], "different": ["D"]}][random.integers(4)]
    differ = ["all", "all", "any", "none"][random.integers(4)]
    sampler = SAMPLERS[random.integers(2)]
    recipe = qd.RandomSwap(swap, pairs=1, differ=differ, sampler=sampler, seed=number, **constraint)
    return file_of(**codes), recipe


@pytest.mark.parametrize("block", range(4))
def test_as_many_pairs_as_exist_are_always_found_and_one_more_is_refused_with_the_maximum(block: int) -> None:
    for number in range(200 * block, 200 * (block + 1)):
        data, recipe = random_case(number)
        allowed = admissible(data, recipe, recipe.swap)
        most = largest(allowed)
        for k in range(max(1, most - 1), most + 1):
            for seed in range(4):
                pairs = replace(recipe, pairs=k, seed=seed).plan(data).pairs if most else np.empty((0, 2), int)
                assert len(pairs) == k or not most
                assert len(np.unique(pairs)) == 2 * len(pairs)
                assert allowed[pairs[:, 0], pairs[:, 1]].all()
        for excess in (1, 5):
            with pytest.raises(qd.InfeasibleError) as caught:
                replace(recipe, pairs=most + excess).plan(data)
            assert (caught.value.maximum, caught.value.exact) == (most, True), number


DEAD_ENDS = {
    "one variable": (file_of(A=[0, 0, 0, 1, 1, 2]), {}),
    "two equal halves and a third": (file_of(A=[0, 0, 1, 1, 2, 2]), {}),
    "two variables, all": (file_of(A=[0, 0, 1, 1, 2, 2], B=[0, 1, 0, 1, 0, 1]), {"swap": ["A", "B"]}),
    "odd cycles": (
        file_of(A=[0, 0, 1, 1, 2, 2, 0], B=[0, 1, 1, 2, 2, 0, 2]), {"swap": ["A", "B"]},
    ),
    "any": (file_of(A=[0, 0, 0, 1, 1, 2], B=[0, 0, 0, 1, 1, 0]), {"swap": ["A", "B"], "differ": "any"}),
    "different": (file_of(A=[0, 0, 1, 1, 2, 2], C=[0, 1, 0, 1, 2, 2]), {"different": ["C"]}),
    "same classes": (file_of(A=[0, 0, 1, 2, 0, 1, 1, 0], C=[0, 0, 0, 0, 1, 1, 1, 1]), {"same": ["C"]}),
}  # fmt: skip


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("name", DEAD_ENDS)
def test_with_dead_ends_every_admissible_plan_occurs(name: str, sampler: str) -> None:
    data, options = DEAD_ENDS[name]
    recipe = qd.RandomSwap(**{"swap": ["A"], "pairs": 1, "sampler": sampler, "seed": 0} | options)
    allowed = admissible(data, recipe, recipe.swap)
    recipe = replace(recipe, pairs=largest(allowed))
    possible = matchings(allowed, recipe.pairs)
    found = Counter(drawn(recipe, data, 40 * len(possible) + 400))
    assert set(found) == possible


EXPECTED_PAIRS = {
    "first-uniform": {(0, 1): 1280.4, (0, 2): 129.7, (1, 2): 1031.9},
    "pair-uniform": {(0, 1): 1218.3, (0, 2): 234.7, (1, 2): 989.0},
}
K = 2442


def expected_pairs(counts: np.ndarray, k: int, sampler: str) -> np.ndarray:
    """Mean-field numbers m_ab of pairs between levels: recursion over the pairs drawn."""
    x, m = counts.astype(float), np.zeros((len(counts), len(counts)))
    off = ~np.eye(len(counts), dtype=bool)
    for _ in range(k):
        if sampler == "pair-uniform":
            chance = np.outer(x, x) * off
            chance /= chance.sum() / 2
        else:
            half = np.outer(x, x) / (x.sum() * (x.sum() - x))[:, None] * off
            chance = half + half.T
        m += chance
        x -= chance.sum(axis=1)
    return m


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_expected_pairs_between_age_groups_are_those_printed(sampler: str, cps8d: Data) -> None:
    m = expected_pairs(np.bincount(cps8d["Age"].values), K, sampler)
    assert {pair: round(float(m[pair]), 1) for pair in EXPECTED_PAIRS[sampler]} == EXPECTED_PAIRS[sampler]


def tables_with(data: Data, swapped: str, values: np.ndarray, rows: object = slice(None)) -> np.ndarray:
    """Counts of every two-way table that contains the swapped variable, one below the other: (cells, levels)."""
    levels = len(data[swapped].variable.categories)
    parts = []
    for other in data.columns:
        if other != swapped:
            size = len(data[other].variable.categories)
            cells = data[other].values[rows].astype(np.int64) * levels + values
            parts.append(np.bincount(cells, minlength=size * levels).reshape(size, levels))
    return np.concatenate(parts)


def standardised(swapped: str, sampler: str, theory: str, data: Data) -> np.ndarray:
    """Mean change of the two-way tables over 300 seeds minus the expected change, in standard errors of the mean."""
    values = data[swapped].values.astype(np.int64)
    share = tables_with(data, swapped, values) / np.bincount(values)
    m = expected_pairs(np.bincount(values), K, theory)
    expected = share @ m - share * m.sum(axis=1)
    recipe = qd.RandomSwap(swapped, pairs=K, sampler=sampler, seed=0)
    drawer = recipe.prepared(data)
    changes = []
    for seed in range(300):
        (move,) = drawer.draw(Stream.of(seed, recipe.design_json())).moves
        rows, source = move.given
        old, new = (tables_with(data, swapped, values[place], rows) for place in (rows, source))
        changes.append(new - old)
    return (np.mean(changes, axis=0) - expected) / (np.std(changes, axis=0, ddof=1) / 300**0.5)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("swapped", ["Age", "EmpTyp", "Edu", "MS", "Race", "Sex", "AvgHrs", "AnnSal"])
def test_two_way_tables_of_cps8d_average_to_the_expected_table(swapped: str, sampler: str, cps8d: Data) -> None:
    z = standardised(swapped, sampler, sampler, cps8d)
    assert np.abs(z).max() < 4
    # the cells depend on one another (margins are fixed), so the mean of z^2 is near 1 only loosely
    assert 0.3 < (z**2).mean() < 2.5


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_comparison_with_theory_tells_the_samplers_apart(sampler: str, cps8d: Data) -> None:
    other = SAMPLERS[1 - SAMPLERS.index(sampler)]
    assert np.abs(standardised("Age", sampler, other, cps8d)).max() > 10


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_race_and_salary_together_allow_7080_pairs_and_draw_2442(sampler: str, cps8d: Data) -> None:
    recipe = qd.RandomSwap(["Race", "AnnSal"], pairs=K, sampler=sampler, seed=3)
    assert len(recipe.plan(cps8d).pairs) == K
    assert len(replace(recipe, pairs=7080).plan(cps8d).pairs) == 7080
    with pytest.raises(qd.InfeasibleError, match="the maximum is 7,080") as caught:
        replace(recipe, pairs=7081).plan(cps8d)
    assert (caught.value.asked, caught.value.maximum, caught.value.exact) == (7081, 7080, True)


@pytest.mark.parametrize(
    ("swap", "differ"), [("MS", "all"), ("Race", "all"), ("Edu", "all"), ("Edu", "none"), ("Sex", "any")]
)
def test_one_variable_has_the_closed_form_maximum(swap: str, differ: str, cps8d: Data) -> None:
    counts = np.bincount(cps8d[swap].values)
    most = cps8d.n // 2 if differ == "none" else min(cps8d.n // 2, cps8d.n - int(counts.max()))
    recipe = qd.RandomSwap(swap, pairs=most, differ=differ, seed=1)
    assert len(recipe.plan(cps8d).pairs) == most
    with pytest.raises(qd.InfeasibleError) as caught:
        replace(recipe, pairs=most + 1).plan(cps8d)
    assert (caught.value.maximum, caught.value.exact) == (most, True)
