"""Rank swapping: exact laws of small files, the theory of ranks, windows from other wishes, bad input, edge cases."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from math import ceil, floor, inf, log, nan
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import chisquare, spearmanr
from typer.testing import CliRunner

import quadrille as qd
from effort import tries
from quadrille import kernels
from quadrille.attack.linkage import rank_intersection
from quadrille.cli import app
from quadrille.data import Column, Data
from quadrille.errors import InfeasibleError, InputError, OverlapError, ParameterError
from quadrille.present.account import account
from quadrille.present.render import as_markdown
from quadrille.swap.rank.expected import Ties, mean_square, possible_share, smallest_window, window_of_formula
from strategies import column, numbers

Pairs = frozenset[tuple[int, int]]
RECKONED = 1e-4
"""A chi-square test with fixed seeds fails below this chance."""


def file_of(*values: float, name: str = "x") -> Data:
    return Data([numbers(name, values)])


def ranks_of(plan: qd.Plan, order: list[int]) -> Pairs:
    """The pairs of a plan as ranks; `order` lists the rows by rank."""
    rank = {row: place for place, row in enumerate(order)}
    return frozenset(tuple(sorted((rank[a], rank[b]))) for a, b in plan.moves[0].pairs.tolist())


def outcomes(m: int, choices: Callable[[int, frozenset[int]], dict[int, Fraction]]) -> dict[Pairs, Fraction]:
    """Every set of pairs with its chance: each free rank in turn chooses among free ones above it."""

    def go(i: int, free: frozenset[int]) -> Iterator[tuple[Pairs, Fraction]]:
        while i < m and i not in free:
            i += 1
        if i >= m:
            yield frozenset(), Fraction(1)
            return
        chances = choices(i, free)
        if not chances:
            yield from go(i + 1, free)
        for j, chance in chances.items():
            for rest, then in go(i + 1, free - {j}):
                yield rest | {(i, j)}, chance * then

    made: Counter[Pairs] = Counter()
    for pairs, chance in go(0, frozenset(range(m))):
        made[pairs] += chance
    return dict(made)


def in_window(m: int, width: int) -> dict[Pairs, Fraction]:
    def choices(i: int, free: frozenset[int]) -> dict[int, Fraction]:
        above = [j for j in range(i + 1, min(i + width, m - 1) + 1) if j in free]
        return {j: Fraction(1, len(above)) for j in above}

    return outcomes(m, choices)


def in_buckets(m: int, buckets: int) -> dict[Pairs, Fraction]:
    def choices(i: int, free: frozenset[int]) -> dict[int, Fraction]:
        own = i * buckets // m
        held = {s: [j for j in free if j > i and j * buckets // m == s] for s in range(own, buckets)}
        weight = {s: Fraction(1, 2 ** (s - own)) for s, members in held.items() if members}
        total = sum(weight.values())
        return {j: weight[s] / total / len(held[s]) for s in weight for j in held[s]}

    return outcomes(m, choices)


def mean_squared(chances: dict[Pairs, Fraction], m: int) -> Fraction:
    return sum((p * 2 * sum((b - a) ** 2 for a, b in pairs) for pairs, p in chances.items()), Fraction(0)) / m


def test_the_enumeration_gives_the_printed_chances() -> None:
    half, quarter = Fraction(1, 2), Fraction(1, 4)
    assert in_window(4, 1) == {frozenset({(0, 1), (2, 3)}): 1}
    assert in_window(4, 2) == {frozenset({(0, 1), (2, 3)}): half, frozenset({(0, 2), (1, 3)}): half}
    assert in_window(5, 2) == {
        frozenset({(0, 1), (2, 3)}): quarter,
        frozenset({(0, 1), (2, 4)}): quarter,
        frozenset({(0, 2), (1, 3)}): half,
    }
    assert len(in_window(6, 3)) == 7 and mean_squared(in_window(6, 3), 6) == Fraction(119, 27)
    assert set(in_window(6, 5).values()) == {Fraction(1, 15)} and mean_squared(in_window(6, 5), 6) == 7
    assert mean_squared(in_buckets(4, 2), 4) == Fraction(13, 6) and mean_squared(in_buckets(6, 3), 6) == Fraction(
        80, 21
    )
    first = {j: sum(p for pairs, p in in_buckets(6, 3).items() if (0, j) in pairs) for j in range(1, 6)}
    assert list(first.values()) == [Fraction(4, 7), Fraction(1, 7), Fraction(1, 7), Fraction(1, 14), Fraction(1, 14)]


@pytest.mark.parametrize(
    ("m", "options", "chances"),
    [
        (4, {"window": 0.5}, in_window(4, 2)),
        (5, {"window": 0.4}, in_window(5, 2)),
        (6, {"window": 0.5}, in_window(6, 3)),
        (6, {"window": 1.0}, in_window(6, 5)),
        (4, {"kernel": "buckets", "buckets": 2}, in_buckets(4, 2)),
        (6, {"kernel": "buckets", "buckets": 3}, in_buckets(6, 3)),
        (7, {"kernel": "buckets", "buckets": 4}, in_buckets(7, 4)),
    ],
)
def test_small_files_have_the_enumerated_chances(
    m: int, options: dict[str, object], chances: dict[Pairs, Fraction]
) -> None:
    order = list(np.random.default_rng(m).permutation(m))
    values = np.empty(m)
    values[order] = np.arange(m) * 1.5 - 2
    recipe, draws = qd.RankSwap(["x"], seed=1, **options), tries(1_500, nightly=20_000)
    prepared = recipe.prepared(data := file_of(*values))
    assert data.n == m
    found = Counter(ranks_of(prepared.draw(recipe.stream_of(seed)), order) for seed in range(draws))
    assert set(found) <= set(chances)
    expected = [float(p) * draws for p in chances.values()]
    assert chisquare([found[each] for each in chances], expected).pvalue > RECKONED


def naive(values: np.ndarray, options: dict[str, object], random: np.random.Generator) -> tuple[float, int]:
    """Follow the law step by step: the mean squared distance in ranks, and how many ranks are left over."""
    m, free, square, left = len(values), set(range(len(values))), 0, 0
    for i in range(m):
        if i not in free:
            continue
        above = [j for j in sorted(free) if j > i and (options.get("differ") != "any" or values[i] != values[j])]
        if options.get("kernel") == "buckets":
            b = options["buckets"]
            held = {s: [j for j in above if j * b // m == s] for s in range(b)}
            weight = np.array([2.0**-s if held[s] else 0.0 for s in range(b)])
            above = held[random.choice(b, p=weight / weight.sum())] if weight.any() else []
        elif options.get("kernel") != "normal":
            above = [j for j in above if j <= i + floor(options["window"] * m)]
        elif above:  # the last resort of the 256 tries is seldom needed here
            for _ in range(256):
                j = i + ceil(m * options["window"] * (1 + random.normal()) / 2)
                if j in above:
                    above = [j]
                    break
        free.discard(i)
        left += not above
        if above:
            j = int(random.choice(above))
            free.discard(j)
            square += 2 * (j - i) ** 2
    return square / m, left


@pytest.mark.parametrize(
    "options",
    [
        {"window": 0.25},
        {"window": 0.25, "differ": "any"},
        {"kernel": "buckets", "buckets": 2},
        {"kernel": "buckets", "buckets": 8},
        {"kernel": "buckets", "buckets": 3, "differ": "any"},
        {"kernel": "normal", "window": 0.3},
        {"kernel": "normal", "window": 0.3, "differ": "any"},
    ],
)
def test_draws_agree_with_the_law_followed_step_by_step(options: dict[str, object]) -> None:
    random, draws = np.random.default_rng(1), tries(600, nightly=6_000)
    values = np.sort(random.choice(np.arange(9.0), 48)) if "differ" in options else np.arange(48.0)
    recipe = qd.RankSwap(["x"], seed=1, **options)
    prepared = recipe.prepared(file_of(*values))
    kept = [prepared.draw(recipe.stream_of(seed)) for seed in range(draws)]
    facts = [plan.details.facts["ranks"][0] for plan in kept]
    total = 48 * (48**2 - 1) / 6
    found = np.array([[(1 - row["rank_correlation"]) * total / 48, row["left_over"]] for row in facts])
    twin = np.array([naive(values, options, random) for _ in range(draws)])
    se = np.sqrt((found.var(axis=0) + twin.var(axis=0)) / draws)
    assert (np.abs(found.mean(axis=0) - twin.mean(axis=0)) <= 4 * se + 1e-9).all()


def test_a_bucket_with_a_single_partner_keeps_its_chance() -> None:
    """Two buckets of 30 ranks. The rules leave rank 0 one partner in its own bucket, and all 30 of the other."""
    group = ["d", *("c" if rank == 17 or rank >= 30 else "b" for rank in range(1, 60))]
    frame = pl.DataFrame({"x": np.arange(60.0), "g": group})
    data = qd.from_frame(frame, codebook=qd.Codebook((qd.Variable("x", "numeric"), qd.Variable("g", "nominal"))))
    recipe = qd.RankSwap(["x"], kernel="buckets", buckets=2, rules=["g=b & x<0.5"], seed=1)
    prepared, draws = recipe.prepared(data), tries(600, nightly=6_000)
    partner = [dict(prepared.draw(recipe.stream_of(seed)).pairs.tolist())[0] for seed in range(draws)]
    own = sum(each == 17 for each in partner)
    assert chisquare([own, draws - own], [draws * 2 / 3, draws / 3]).pvalue > RECKONED
    assert all(each == 17 or each >= 30 for each in partner)


def test_equal_values_are_in_uniformly_random_order() -> None:
    """Rows 0, 1, 2 and 4 hold one value, row 3 a smaller one: with a window of one rank it meets each of them alike."""
    data, draws = file_of(7, 7, 7, 1, 7), tries(1_000, nightly=20_000)
    recipe = qd.RankSwap(["x"], window=0.2, seed=1)
    prepared = recipe.prepared(data)
    found: Counter[int] = Counter()
    for seed in range(draws):
        (partner,) = (set(pair) - {3} for pair in prepared.draw(recipe.stream_of(seed)).pairs.tolist() if 3 in pair)
        found[partner.pop()] += 1
    assert chisquare([found[row] for row in (0, 1, 2, 4)]).pvalue > RECKONED


def test_a_partner_with_another_value_is_uniform_among_those_in_the_window() -> None:
    """Values 1 1 1 2 2 3: rank 0 may take the ranks 3 and 4 of a window of four."""
    data, draws = file_of(1, 1, 1, 2, 2, 3), tries(1_000, nightly=20_000)
    recipe = qd.RankSwap(["x"], window=0.67, differ="any", seed=1)
    prepared, found = recipe.prepared(data), Counter[tuple[float, ...]]()
    values = data["x"].values
    for seed in range(draws):
        plan = prepared.draw(recipe.stream_of(seed))
        assert all(values[a] != values[b] for a, b in plan.pairs.tolist())
        found[tuple(sorted(values[a] * 10 + values[b] for a, b in np.sort(plan.pairs, axis=1).tolist()))] += 1
    # Rank 0 takes a 2; rank 1 the other 2 or the 3, and rank 2 what is left.
    assert set(found) == {(12.0, 12.0, 13.0)}


@pytest.mark.parametrize("options", [{"window": 0.5}, {"kernel": "buckets", "buckets": 3}])
def test_rules_leave_the_chances_of_the_partners_that_they_allow(options: dict[str, object]) -> None:
    """Six ranks; ranks 0 and 3 belong to a group that may not come to hold more than 2.5."""
    group, draws = [True, False, False, True, False, False], tries(1_500, nightly=20_000)
    frame = pl.DataFrame({"x": [float(i) for i in range(6)], "g": ["a" if one else "b" for one in group]})
    data = qd.from_frame(frame, codebook=qd.Codebook((qd.Variable("x", "numeric"), qd.Variable("g", "nominal"))))

    def allowed(i: int, j: int) -> bool:
        return not any(group[one] and other > 2.5 and one <= 2.5 for one, other in ((i, j), (j, i)))

    def in_reach(i: int, free: frozenset[int]) -> dict[int, Fraction]:
        above = [j for j in sorted(free) if j > i and allowed(i, j)]
        if "window" in options:
            above = [j for j in above if j <= i + 3]
            return {j: Fraction(1, len(above)) for j in above}
        held = {s: [j for j in above if j // 2 == s] for s in range(i // 2, 3)}
        weight = {s: Fraction(1, 2**s) for s, members in held.items() if members}
        return {j: weight[s] / sum(weight.values()) / len(held[s]) for s in weight for j in held[s]}

    chances = outcomes(6, in_reach)
    recipe = qd.RankSwap(["x"], rules=["g=a & x>2.5"], seed=1, **options)
    assert qd.testing.check_recipe(recipe, data).details is not None
    prepared = recipe.prepared(data)
    found = Counter(ranks_of(prepared.draw(recipe.stream_of(s)), list(range(6))) for s in range(draws))
    assert set(found) <= set(chances)
    assert chisquare([found[each] for each in chances], [float(p) * draws for p in chances.values()]).pvalue > RECKONED


@pytest.mark.parametrize("m", [2, 3, 10, 37])
def test_the_normal_kernel_pairs_all_but_one(m: int) -> None:
    plan = qd.RankSwap(["x"], kernel="normal", window=0.1, seed=2).plan(file_of(*range(m)))
    assert len(plan.pairs) == m // 2


def test_normal_distances_are_those_of_their_definition() -> None:
    """The first rank of a large file shifts by ceil(m p (1 + z) / 2), z nearly normal, where that is above 0."""
    m, p, draws = 400, 0.5, tries(1_500, nightly=20_000)
    recipe = qd.RankSwap(["x"], kernel="normal", window=p, seed=1)
    prepared = recipe.prepared(file_of(*range(m)))
    first = [min(prepared.draw(recipe.stream_of(s)).pairs.tolist())[1] for s in range(draws)]
    words = np.random.default_rng(1).integers(0, 2**32, (200_000, 5), dtype=np.uint64)
    bits = sum(np.bitwise_count(words[:, k]) for k in range(4)).astype(float)
    z = (bits - 64 + (words[:, 4] + 0.5) / 2**32 - 0.5) / np.sqrt(32 + 1 / 12)
    shift = np.ceil(m * p * (1 + z) / 2)
    shift = shift[(shift >= 1) & (shift < m)]
    se = shift.std() / np.sqrt(draws)
    assert abs(np.mean(first) - shift.mean()) < 4 * se
    assert abs(np.mean(np.array(first) <= 100) - (shift <= 100).mean()) < 4 * 0.5 / np.sqrt(draws)
    assert abs(z.mean()) < 4 / np.sqrt(len(z)) and abs(z.std() - 1) < 4 / np.sqrt(2 * len(z))


def test_a_weighted_window_is_a_share_of_the_weight() -> None:
    """By hand: ticks 5 1 1 1 2, window .3 of 10: at most 3 ticks above the own rank."""
    ticks = np.array([5, 1, 1, 1, 2])
    reach = kernels.reach_by_weight(np.arange(5, dtype=np.int32), np.array([0, 5]), ticks, np.array([3]))
    assert reach.tolist() == [3, 3, 4, 4, 4]
    rng = np.random.default_rng(2)
    for _ in range(30):
        n, limit = int(rng.integers(1, 30)), int(rng.integers(0, 30))
        ticks, order = rng.integers(0, 9, n), rng.permutation(n).astype(np.int32)
        above = np.cumsum(ticks[order])
        twin = [max(j for j in range(i, n) if above[j] - above[i] <= limit) for i in range(n)]
        assert kernels.reach_by_weight(order, np.array([0, n]), ticks, np.array([limit])).tolist() == twin
    data = Data([numbers("x", rng.normal(size=300)), numbers("w", rng.integers(1, 50, 300), role="weight")])
    plan = qd.testing.check_recipe(qd.RankSwap(["x"], window=0.1, weighted=True, seed=1), data)
    order = np.argsort(data["x"].values)
    total, place = np.cumsum(data["w"].values[order]), np.argsort(order)
    spans = [abs(total[place[a]] - total[place[b]]) for a, b in plan.pairs.tolist()]
    assert max(spans) <= 0.1 * total[-1] and len(plan.pairs) > 140


@pytest.mark.parametrize("seed", range(5))
def test_sorting_is_that_of_numpy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 400))
    values = [
        rng.normal(size=n) * 10.0 ** rng.integers(-300, 300, n),
        rng.integers(-3, 3, n).astype(float),
        rng.choice([0.0, -0.0, inf, -inf, 1e-320, -1e-320, 1.0], n),
    ][seed % 3]
    keys, order = kernels.sort_keys(kernels.keys_of(values))
    assert order.tolist() == np.argsort(values, kind="stable").tolist()
    assert (np.diff(keys.astype(np.float64)) >= 0).all()
    ends = kernels.runs_end(keys, np.array([0, n]))
    found = np.sort(values)
    assert ends.tolist() == np.searchsorted(found, found, side="right").tolist()


@pytest.mark.parametrize(
    ("window", "printed", "error"), [(0.01, 0.999766, 1e-6), (0.05, 0.994271, 2e-5), (0.1, 0.977646, 5e-5)]
)
def test_the_theory_gives_the_printed_correlations(window: float, printed: float, error: float) -> None:
    found = qd.theory.rank_correlation(window)
    assert found == pytest.approx(printed, abs=error)
    assert found == pytest.approx(1 - 6 * window**2 * (0.391958 - 0.1941 * window), abs=3e-6)


def test_far_from_the_ends_distances_have_the_printed_moments() -> None:
    c = 2 - 4 / log(2) + 2 / log(2) ** 2
    assert c == pytest.approx(0.391958, abs=1e-6)
    for width in (200, 1_000):  # in ranks, ends and whole ranks still count a little
        ranks = 20_000
        assert mean_square(ranks, width) / width**2 == pytest.approx(c - 0.1941 * width / ranks, rel=2 / width)
    assert mean_square(6, 5) == 7 and mean_square(3_000_000, 3_000_000) == pytest.approx(3e6 * (3e6 + 1) / 6)
    assert mean_square(1, 1) == mean_square(5, 0) == 0
    assert qd.theory.rank_correlation(1, n=100) == pytest.approx(-1 / 99)


@pytest.mark.parametrize(("m", "width"), list(itertools.product([4, 6, 8], [1, 2, 3])))
def test_expected_distances_are_near_those_of_tiny_files(m: int, width: int) -> None:
    """The recursion takes chances as expected: of a few ranks it is a fifth too low at most."""
    exact = float(mean_squared(in_window(m, width), m))
    assert 0.8 * exact <= mean_square(m, width) <= 1.02 * exact


@pytest.mark.parametrize("window", [0.01, 0.05, 0.1, 0.3, 0.7])
def test_the_theory_agrees_with_draws(window: float) -> None:
    _against_theory(window, m=20_000, draws=6)


@pytest.mark.nightly
@pytest.mark.parametrize("window", [0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0])
def test_the_theory_agrees_with_large_draws(window: float) -> None:
    _against_theory(window, m=400_000, draws=40)


def _against_theory(window: float, m: int, draws: int) -> None:
    data = file_of(*np.random.default_rng(1).random(m))
    recipe = qd.RankSwap(["x"], window=window, seed=1)
    prepared = recipe.prepared(data)
    rows = [prepared.draw(recipe.stream_of(s)).details.facts["ranks"][0] for s in range(draws)]
    found = np.array([row["rank_correlation"] for row in rows])
    expected = qd.theory.rank_correlation(window, n=m)
    assert rows[0]["rank_correlation_expected"] == pytest.approx(expected, abs=1e-9)
    se = found.std(ddof=1) / np.sqrt(draws)
    bias = 0.02 * (1 - expected) / np.sqrt(window * m)  # what chances as expected leave out
    assert abs(found.mean() - expected) < (4 if draws > 20 else 6) * se + bias


@pytest.mark.parametrize(("buckets", "printed"), [(10, 0.8681), (20, 0.9584), (50, 0.9925)])
def test_buckets_spread_as_printed(buckets: int, printed: float) -> None:
    _spread({"kernel": "buckets", "buckets": buckets}, printed)


@pytest.mark.parametrize(("window", "printed"), [(0.02, 0.9984), (0.05, 0.9901), (0.1, 0.9619)])
def test_normal_distances_spread_as_printed(window: float, printed: float) -> None:
    _spread({"kernel": "normal", "window": window}, printed)


def _spread(options: dict[str, object], printed: float) -> None:
    data = file_of(*np.random.default_rng(1).random(50_000))
    found = [qd.RankSwap(["x"], seed=s, **options).plan(data).details.facts["ranks"][0] for s in range(3)]
    assert np.mean([row["rank_correlation"] for row in found]) == pytest.approx(printed, abs=0.0015)


def test_the_realised_correlations_are_those_of_scipy() -> None:
    rng = np.random.default_rng(3)
    data = Data([numbers("x", rng.lognormal(size=500)), column("o", rng.integers(0, 5, 500), 5, kind="ordinal")])
    for tails in ({}, {"tails": "shuffle", "tail": 0.1}):
        plan = qd.RankSwap(["x", "o"], window=0.2, seed=1, **tails).plan(data)
        after = plan.apply(data)
        for row in plan.details.facts["ranks"]:
            was, now = (file[row["variable"]].values.astype(float) for file in (data, after))
            assert row["correlation"] == pytest.approx(np.corrcoef(was, now)[0, 1], abs=1e-12)
            assert row["changed"] == int((was != now).sum())
        x = plan.details.facts["ranks"][0]
        assert x["rank_correlation"] == pytest.approx(
            spearmanr(data["x"].values, after["x"].values).statistic, abs=1e-12
        )


@pytest.mark.parametrize(("wish", "window", "width"), [({"r0": 0.95}, 0.0912962, 912), ({"k0": 0.01}, 0.0081666, 81)])
def test_formulas_for_wishes_give_the_printed_windows(wish: dict[str, float], window: float, width: int) -> None:
    plan = qd.RankSwap(["x"], seed=1, **wish).plan(file_of(*range(1, 10_001)))
    (row,) = plan.details.facts["ranks"]
    assert row["window"] == pytest.approx(window, abs=5e-8) and row["width"] == width and row["farthest"] <= width


def test_formulas_leave_the_tails_out() -> None:
    """By hand: 1..20 and two far values; tails of one rank in 22 leave 1..20, between -100 and 1000."""
    values = [-100.0, *range(1, 21), 1000.0]
    middle = np.arange(1, 21)
    found = window_of_formula(np.array(values), 0.05, 0.5, None, "x")
    assert found == pytest.approx(np.sqrt(2 * middle.var() * 0.5) / (1000 - -100))
    found = window_of_formula(np.array(values), 0.05, None, 0.5, "x")
    assert found == pytest.approx(np.sqrt(8 / 3) * 0.5 * middle.mean() / (1000 - -100))


KINDS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "uniform": lambda g, n: g.random(n),
    "normal": lambda g, n: g.normal(size=n),
    "lognormal": lambda g, n: g.lognormal(10, 1, n),
    "ten values": lambda g, n: g.integers(0, 10, n).astype(float),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wanted", [0.99, 0.9])
def test_a_wanted_correlation_is_reached(kind: str, wanted: float) -> None:
    data = file_of(*KINDS[kind](np.random.default_rng(5), 20_000))
    (row,) = qd.RankSwap(["x"], correlation=wanted, seed=2).plan(data).details.facts["ranks"]
    assert row["correlation"] == pytest.approx(wanted, abs=0.02 if kind == "lognormal" else 0.002)


def test_ten_values_change_in_a_quarter_of_the_pairs_and_the_account_says_so() -> None:
    data = file_of(*np.repeat(np.arange(10.0), 1_000))
    report = qd.RankSwap(["x"], window=0.05, seed=1).plan(data).report(data)
    (row,) = report.details["ranks"]
    assert row["pairs_that_change_expected"] == pytest.approx(0.251, abs=5e-4)
    assert row["changed"] / data.n == pytest.approx(0.251, abs=0.01)
    half = row["window_for_half"]
    again = qd.RankSwap(["x"], window=round(half, 4), seed=1).plan(data).report(data)
    assert again.changed / data.n == pytest.approx(0.5, abs=0.02)
    said = as_markdown(account(report))
    assert "Many values are equal: about 25.1 % of the pairs change anything; at a window of" in said
    apart = qd.RankSwap(["x"], window=0.05, differ="any", seed=1).plan(data).report(data)
    assert "Many values are equal" not in as_markdown(account(apart))
    assert Ties.of(np.array([2, 2], dtype=np.int32)).share_changed(0.5) == 0
    coin = Ties.of(np.repeat([500, 1000], 500).astype(np.int32))
    assert coin.window_for_half() is None and coin.share_changed(0.2) == pytest.approx(0.2 * (2 - 1 / log(2)), abs=1e-4)


def test_the_share_of_possible_rows_by_hand() -> None:
    """Ranks 0..5 hold 1 1 2 3 3 4. Within one rank of a 1 lie 1, 1, 2; of the 2 the ranks 1..3, whose values are all of
    1 1 2 3 3; of a 3 the ranks 2..5; of the 4 the ranks 4 and 5, so 3 3 4."""
    ends = np.array([2, 2, 3, 5, 5, 6], dtype=np.int32)
    assert possible_share(ends, 1) == pytest.approx((3 + 3 + 5 + 4 + 4 + 3) / 36)


BAD: list[tuple[dict[str, object], str]] = [
    ({"window": 5}, r"must be a share in \(0, 1\], never a percentage: 0.05\?. Got 5"),
    ({"window": 0}, r"'window' parameter of RankSwap must be a number in \(0, 1\]. Got 0"),
    ({"window": 500}, r"must be a number in \(0, 1\]"),
    ({}, r"needs exactly one of 'window' .* Got none of them"),
    ({"window": 0.1, "r0": 0.9}, r"Got 'window' and 'r0'"),
    ({"correlation": 1}, r"'correlation' parameter .* \(0, 1\)"),
    ({"r0": 1}, r"'r0' parameter .* \(0, 1\)"),
    ({"k0": 0}, r"'k0' parameter"),
    ({"window": 0.1, "kernel": "triangle"}, r"one of 'window', 'buckets', 'normal'"),
    ({"kernel": "buckets"}, r"needs the number of 'buckets'"),
    (
        {"kernel": "buckets", "buckets": 5, "window": 0.1},
        r"no other measure of how far to swap. Got 'window' and 'buckets'",
    ),
    ({"window": 0.1, "buckets": 5}, r"'buckets' parameter of RankSwap belongs to kernel=\"buckets\""),
    ({"kernel": "buckets", "buckets": 0}, r"a whole number of 1 or more"),
    ({"kernel": "normal", "r0": 0.9}, r"kernel=\"normal\" needs a 'window' alone. Got 'r0'"),
    ({"window": 0.1, "tail": 0.1}, r"Give both, or neither"),
    ({"window": 0.1, "tails": "leave"}, r"Give both, or neither"),
    ({"window": 0.1, "tail": 0.6, "tails": "leave"}, r"'tail' parameter .* \[0, 0.5\]"),
    ({"window": 0.1, "tail": 0.1, "tails": "shuffle", "differ": "any"}, r"which differ=\"any\" does not allow"),
    ({"window": 0.1, "tail": 0.1, "tails": "shuffle", "rules": ["x>1"]}, r"which 'rules' does not allow"),
    ({"r0": 0.9, "weighted": True}, r"'weighted' parameter"),
    ({"kernel": "normal", "window": 0.1, "weighted": True}, r"'weighted' parameter"),
    ({"window": 0.1, "differ": "all"}, r"one of 'any', 'none'"),
]


@pytest.mark.parametrize(("options", "said"), BAD)
def test_bad_parameters_are_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        qd.RankSwap(["x"], **options)


def test_columns_without_ranks_are_refused() -> None:
    data = qd.datasets.state(records=3_200)
    with pytest.raises(InputError, match="'race' has categories without an order, so its values have no ranks"):
        qd.RankSwap(["race"], window=0.1).plan(data)
    with pytest.raises(InputError, match="'tract' is a level of geography, and areas have no ranks"):
        qd.RankSwap(["tract"], window=0.1).plan(data)
    with pytest.raises(OverlapError, match="'age' is in both 'swap' and 'within'"):
        qd.RankSwap(["age"], window=0.1, within=["age"])
    with pytest.raises(InputError, match="'fnlwgt' is the weight"):
        qd.RankSwap(["fnlwgt"], window=0.1).plan(qd.datasets.adult())
    with pytest.raises(InputError, match="needs a weight, and the file has none"):
        qd.RankSwap(["age"], window=0.1, weighted=True).plan(data)


def test_windows_of_no_rank_name_the_smallest_that_has_one() -> None:
    data = file_of(*range(12))
    with pytest.raises(ParameterError, match=r"a window of 0 ranks for the 12 values of 'x'. .* is 0.0834\."):
        qd.RankSwap(["x"], window=0.08).plan(data)
    assert qd.RankSwap(["x"], window=0.0834, seed=1).plan(data).details.facts["ranks"][0]["width"] == 1
    for n in (2, 3, 7, 12, 99, 1000, 48_842):
        assert floor(Fraction(smallest_window(n)) * n) == 1
    with pytest.raises(ParameterError, match="The 'r0' parameter of RankSwap gives a window of 0 ranks"):
        qd.RankSwap(["x"], r0=0.9999).plan(data)


def test_a_share_counts_as_the_decimal_that_it_is_written_as() -> None:
    """0.29 * 100 is 28.999999999999996 in floats."""
    assert qd.RankSwap(["x"], window=0.29, seed=1).plan(file_of(*range(100))).details.facts["ranks"][0]["width"] == 29


def test_constants_go_through_and_the_account_warns() -> None:
    data = file_of(*[3.0] * 50)
    report = qd.RankSwap(["x"], window=0.1, seed=1).plan(data).report(data)
    assert report.changed == 0 and report.warnings == ("Column 'x' is swapped, and no record gets another value.",)
    (row,) = report.details["ranks"]
    assert row["correlation"] is None and row["rank_correlation"] < 1
    with pytest.raises(InfeasibleError, match="No rank finds a partner"):
        qd.RankSwap(["x"], window=0.1, differ="any", seed=1).plan(data)
    for wish, said in (({"correlation": 0.9}, "no correlation can be reached"), ({"k0": 0.1}, "'k0' needs several")):
        with pytest.raises(InputError, match=said):
            qd.RankSwap(["x"], seed=1, **wish).plan(data)


def test_missing_values_stay_and_two_values_are_enough() -> None:
    data = file_of(nan, 4.0, nan, 2.0, nan)
    plan = qd.testing.check_recipe(qd.RankSwap(["x"], window=1.0, seed=1), data)
    assert sorted(plan.pairs[0].tolist()) == [1, 3]
    assert plan.details.facts["ranks"][0]["missing"] == 3
    for values, said in (([nan, nan], "no value at all"), ([nan, 1.0], "no class with two values or more")):
        with pytest.raises(InputError, match=said):
            qd.RankSwap(["x"], window=1.0).plan(file_of(*values))


def test_missing_codes_of_ordered_categories_have_no_rank() -> None:
    variable = qd.Variable("o", "ordinal", (1, 2, 3), missing=(9,))
    data = Data([Column(variable, np.array([0, 3, 1, 4, 2, 3, 0], dtype=np.uint8), nullable=True)])
    plan = qd.RankSwap(["o"], window=1.0, seed=1).plan(data)
    assert not set(plan.rows.tolist()) & {1, 3, 5} and plan.details.facts["ranks"][0]["missing"] == 3


def test_infinite_values_have_ranks_and_zeros_are_equal() -> None:
    data = file_of(-inf, 5.0, inf, 0.0, -0.0, 1.0)
    plan = qd.RankSwap(["x"], window=0.2, seed=1).plan(data)
    assert frozenset(map(frozenset, plan.pairs.tolist())) <= {
        frozenset(pair) for pair in [(0, 3), (0, 4), (3, 4), (3, 5), (4, 5), (1, 2)]
    }
    assert plan.details.facts["ranks"][0]["correlation"] is None
    with pytest.raises(InputError, match="infinite"):
        qd.RankSwap(["x"], r0=0.9).plan(data)
    with pytest.raises(InputError, match="infinite"):
        qd.RankSwap(["x"], correlation=0.9).plan(data)
    zeros = file_of(0.0, -0.0, 0.0, -0.0)
    with pytest.raises(InfeasibleError):
        qd.RankSwap(["x"], window=1.0, differ="any").plan(zeros)


def test_classes_have_windows_of_their_own() -> None:
    rng = np.random.default_rng(6)
    data = Data([numbers("x", rng.normal(size=223)), column("g", np.repeat([0, 1, 2], [200, 20, 3]), 3)])
    plan = qd.testing.check_recipe(qd.RankSwap(["x"], window=0.05, within=["g"], seed=1), data)
    (row,) = plan.details.facts["ranks"]
    assert (row["classes"], row["width"], row["without_window"], row["left_over"]) == (3, 10, 3, 3)
    for size, rows in ((200, range(200)), (20, range(200, 220))):
        rank = np.argsort(np.argsort(data["x"].values[list(rows)]))
        moved = [abs(rank[a - rows[0]] - rank[b - rows[0]]) for a, b in plan.pairs.tolist() if a in rows]
        assert max(moved) <= ceil(0.05 * size)


def test_rules_that_tie_variables_are_judged_one_after_the_other() -> None:
    rng = np.random.default_rng(7)
    data = Data([numbers("a", rng.integers(0, 30, 200)), numbers("b", rng.integers(0, 30, 200))])
    plan = qd.testing.check_recipe(qd.RankSwap(["a", "b"], window=0.3, rules=["a<8 & b>20"], seed=1), data)
    assert len(plan.moves) == 2


def test_windows_that_leave_a_person_alone_are_warned_of() -> None:
    rng = np.random.default_rng(8)
    data = Data([numbers(f"v{i}", rng.random(1_000)) for i in range(4)])
    names = data.columns
    few = Data([*(data[name] for name in names), column("k", rng.integers(0, 3, 1_000), 3)])
    warned = qd.RankSwap(names, window=0.05, seed=1).plan(few).report(few).warnings
    assert len(warned) == 1 and "knows the 4 true values of a person" in warned[0] and "0.1 others" in warned[0]
    for calm in ({"window": 0.3}, {"window": 0.05, "together": True}, {"window": 0.05, "kernel": "normal"}):
        assert not qd.RankSwap(names, seed=1, **calm).plan(few).report(few).warnings


def intersected(variables: int, radius: float, seed: int, **options: object) -> tuple[float, float]:
    """Return the shares of a thousand persons with a single possible row, and with a single one that is theirs."""
    rng = np.random.default_rng(seed)
    data = Data([numbers(f"v{i}", rng.random(1_000)) for i in range(variables)])
    after = qd.RankSwap(data.columns, seed=seed, **options).plan(data).apply(data)
    found = rank_intersection(*([file[name].values for name in data.columns] for file in (data, after)), radius)
    alone = found.size == 1
    return float(alone.mean()), float((alone & found.inside).mean())


@pytest.mark.parametrize(
    ("variables", "window", "single", "spread"),
    [
        (2, 0.05, 0.0, 0.001),
        (4, 0.05, 0.92, 0.007),
        (6, 0.05, 0.999, 0.001),
        (4, 0.1, 0.279, 0.019),
        (6, 0.1, 0.956, 0.008),
    ],
)
def test_windows_of_several_variables_leave_a_single_row_as_printed(
    variables: int, window: float, single: float, spread: float
) -> None:
    """The printed means are those of five files; the spread is theirs, or ours where that is larger."""
    seeds = tries(3, nightly=20)
    alone, right = np.mean([intersected(variables, window, seed, window=window) for seed in range(seeds)], axis=0)
    assert alone == right
    assert abs(alone - single) < 4 * spread * np.sqrt(1 / 5 + 1 / seeds) + 0.0005


@pytest.mark.parametrize(
    ("radius", "kernel", "single", "right"),
    [
        (0.05, {"kernel": "buckets", "buckets": 20}, 0.218, 0.145),
        (0.05, {"kernel": "normal", "window": 0.05}, 0.368, 0.305),
        (0.1, {"kernel": "normal", "window": 0.05}, 0.274, 0.273),
    ],
)
def test_unbounded_distances_take_away_certainty_and_not_risk(
    radius: float, kernel: dict[str, object], single: float, right: float
) -> None:
    """Four variables; of those left single by buckets two thirds are right."""
    seeds = tries(3, nightly=20)
    found = np.mean([intersected(4, radius, seed, **kernel) for seed in range(seeds)], axis=0)
    assert np.abs(found - (single, right)).max() < 4 * 0.025 * np.sqrt(1 / 5 + 1 / seeds)


def test_the_attack_knows_the_window() -> None:
    rng = np.random.default_rng(9)
    data = Data([*(numbers(f"v{i}", rng.random(1_000)) for i in range(4)), column("k", rng.integers(0, 3, 1_000), 3)])
    names = data.columns[:4]
    data = data.with_roles(key=["k"])
    single = []
    for seed in range(5):
        section = qd.attack(data, qd.RankSwap(names, window=0.1, seed=seed), ["k"])["rank"]
        found = {finding.quantity: finding.value for finding in section.findings}
        assert found["true row among the possible"] == 1
        single.append(found["a single possible row"])
    assert np.mean(single) == pytest.approx(0.279, abs=4 * 0.006 / np.sqrt(5) + 0.01)
    unbounded = qd.attack(data, qd.RankSwap(names, kernel="buckets", buckets=20, seed=1), ["k"])["rank"]
    found = {finding.quantity: finding.value for finding in unbounded.findings}
    assert found["true row among the possible"] == pytest.approx(0.16, abs=0.05)
    assert found["a single possible row"] == pytest.approx(0.218, abs=0.05)
    assert "how far most ranks moved" in unbounded.story
    recipe = qd.RankSwap(names, window=0.1, together=True, seed=1)
    assert dict(recipe.radius(data)) == {"v0": 0.1}
    assert qd.attack(data, recipe, ["k"])["rank"].story.startswith("Somebody knows 1 true value of a person")
    assert not qd.RankSwap(names, correlation=0.9).radius(data)


def test_contradictions_are_looked_for_within_the_window() -> None:
    """Minors have no income: a random exchange of age contradicts that often, a narrow window seldom."""
    rng = np.random.default_rng(10)
    age = rng.integers(0, 90, 4_000)
    frame = pl.DataFrame({"age": age.astype(float), "minor": np.where(age < 18, "yes", "no")})
    data = qd.from_frame(frame, codebook=qd.Codebook((qd.Variable("age", "numeric"), qd.Variable("minor", "nominal"))))
    shares = {
        recipe.method_name: [each.share for each in qd.contradictions(data, recipe)]
        for recipe in (qd.RandomSwap(["age"], rate=0.5, seed=1), qd.RankSwap(["age"], window=0.02, seed=1))
    }
    assert shares["RandomSwap"] and shares["RankSwap"]
    assert max(shares["RankSwap"]) < 0.1 * max(shares["RandomSwap"])
    assert not qd.contradictions(data, qd.RankSwap(["age"], window=0.02, within=["minor"]))


def test_a_swap_of_numbers_is_scored_by_what_it_changes(tmp_path: Path) -> None:
    """Tables of categories would all say that nothing is lost."""
    rng = np.random.default_rng(1)
    pl.DataFrame({"pay": rng.random(99), "age": rng.random(99), "sex": rng.choice(["f", "m"], 99)}).write_csv(
        tmp_path / "file.csv"
    )
    words = ["swap", str(tmp_path / "file.csv"), "--method", "rank", "--swap", "pay", "--window", "0.2", "--json"]
    done = CliRunner().invoke(app, words)
    scores = json.loads(done.stdout)["scores"]
    assert list(scores) == ["r_ased"] and scores["r_ased"]["value"] > 0


def test_recoding_that_keeps_the_order_leaves_the_pairs() -> None:
    values = np.random.default_rng(11).normal(size=200).round(1)
    recipe = qd.RankSwap(["x"], window=0.1, seed=5)
    one, other = (recipe.plan(file_of(*each)) for each in (values, np.exp(values) * 7 - 3))
    assert one.pairs.tolist() == other.pairs.tolist()


def test_expected_ranks_need_a_rank_swap_and_name_what_has_no_closed_form() -> None:
    data = qd.datasets.adult()
    with pytest.raises(ParameterError, match="needs a recipe of RankSwap"):
        qd.theory.expected_ranks(data, qd.RandomSwap(["age"], rate=0.1))
    frame = qd.theory.expected_ranks(data, qd.RankSwap(["age", "race"], together=True, kernel="buckets", buckets=9))
    assert frame["correlation"].to_list() == [None, None] and frame["moves_with"].to_list() == [None, "age"]
    with pytest.raises(ParameterError, match="takes in none of 10 ranks"):
        qd.theory.rank_correlation(0.05, n=10)
