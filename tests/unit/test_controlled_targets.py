"""Targets are drawn with the probabilities that their sizes ask for, exactly as many as asked; missing values."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quadrille as qd
from controlled_oracle import inclusion, systematic_draw, target_count
from controlled_strategies import flag
from quadrille.data import Column, Data
from quadrille.errors import InputError
from quadrille.randomness import Chooser, Stream
from quadrille.swap.controlled import draw
from quadrille.swap.controlled.frame import draw_stratum, systematic
from strategies import column, numbers

DRAWS = 2000


def chooser(seed: int) -> Chooser:
    return Chooser(Stream.of(seed, "targets"))


def frequencies(data: Data, **settings: object) -> np.ndarray:
    """How often each record is a target over many seeds."""
    seen = np.zeros(data.n)
    for seed in range(DRAWS):
        seen[qd.ControlledSwap("A", **settings, seed=seed).plan(data).details.rows["targets"]] += 1
    return seen / DRAWS


def assert_inclusion(seen: np.ndarray, expected: Sequence[Fraction]) -> None:
    pi = np.array([float(p) for p in expected])
    error = np.sqrt(pi * (1 - pi) / DRAWS)
    assert (abs(seen - pi) <= 4 * error + 1e-12).all(), np.round((seen - pi) / np.maximum(error, 1e-12), 1)


# ---- inclusion probabilities ----


def test_each_record_is_drawn_as_often_as_its_size_asks_for_in_every_stratum() -> None:
    n = 24
    stratum = np.arange(n) % 2
    size = np.array([0.1, 0.3, 7.0, 1.0, 0.7, 40.0, 2.5, 1.0, 0.2, 1.0, 3.0, 2.0] * 2)
    must, never = np.isin(np.arange(n), [3, 8]), np.isin(np.arange(n), [4, 11, 13])
    share = np.where(stratum == 0, 0.25, 0.45)
    columns = [column("A", np.arange(n) % 3, kind="ordinal"), column("S", stratum), column("B", np.arange(n) // 5)]
    extra = [numbers("z", size), numbers("share", share), flag("must", must), flag("never", never)]
    data = Data([*columns, *extra])
    expected = [Fraction(0)] * n
    for h in (0, 1):
        free = [i for i in range(n) if stratum[i] == h and not must[i] and not never[i]]
        sure = [i for i in range(n) if stratum[i] == h and must[i]]
        asked = target_count(share[h], len(free) + len(sure))
        for i, p in zip(free, inclusion(size[free], asked - len(sure)), strict=True):
            expected[i] = p
        for i in sure:
            expected[i] = Fraction(1)
    assert 1 in {p for i, p in enumerate(expected) if not must[i]}, "the example has no certainty"
    seen = frequencies(data, targets="share", size="z", stratum="S", sort=["B"], must="must", never="never")
    assert_inclusion(seen, expected)


def test_without_sizes_every_record_is_equally_likely() -> None:
    data = Data([column("A", np.arange(17) % 5, kind="ordinal")])
    assert_inclusion(frequencies(data, targets=0.3), [Fraction(5, 17)] * 17)


def test_records_of_one_cell_are_in_random_order_so_that_any_two_can_be_drawn_together() -> None:
    data = Data([column("A", [0] * 6 + [1], kind="ordinal")])
    together = set()
    for seed in range(400):
        rows = qd.ControlledSwap("A", targets=0.3, seed=seed).plan(data).details.rows["targets"]
        together.add(tuple(rows.tolist()))
    assert {(i, j) for i in range(6) for j in range(i + 1, 6)} <= together


def test_the_draw_goes_through_the_file_in_the_order_asked_for() -> None:
    """With equal sizes exactly one of every ten neighbours in the order is drawn."""
    n = 200
    random = np.random.default_rng(5)
    rank = random.permutation(n)
    data = Data([column("A", random.integers(0, 3, n), kind="ordinal"), numbers("rank", rank)])
    for seed in range(20):
        by_rank = qd.ControlledSwap("A", targets=0.1, sort="rank", seed=seed).plan(data).details.rows["targets"]
        assert sorted(rank[by_rank] // 10) == list(range(20))
        by_cell = qd.ControlledSwap("A", targets=0.1, seed=seed).plan(data).details.rows["targets"]
        drawn = np.bincount(data["A"].values[by_cell], minlength=3)
        assert (abs(drawn - np.bincount(data["A"].values) / 10) < 1).all()


# ---- exactly as many as asked ----


@given(
    st.lists(st.integers(1, 1000), min_size=1, max_size=12),
    st.integers(1, 6),
    st.integers(0, 10**6),
)
def test_the_systematic_draw_is_that_of_exact_fractions(sizes: list[int], m: int, where: int) -> None:
    total = sum(sizes)
    sizes = [s for s in sizes if m * s < total]
    if not sizes or any(m * s > sum(sizes) for s in sizes):
        return
    total = sum(sizes)
    start = 1 + where % total
    taken = systematic(np.cumsum(sizes), m, start).tolist()
    assert taken == systematic_draw([Fraction(m * s, total) for s in sizes], Fraction(start, total))
    assert len(taken) == m


@pytest.mark.parametrize("edge", ["first", "last"])
@pytest.mark.parametrize("sizes", [[1] * 7, [2**58] * 15, [2**58 - 1, *[2**57 + 1] * 9], [1, 2**59, 2**59, 2**59 + 3]])
def test_the_first_and_the_last_start_take_as_many_as_asked_even_close_to_64_bits(sizes: list[int], edge: str) -> None:
    m = 3 if len(sizes) > 4 else 2
    start = 1 if edge == "first" else sum(sizes)
    taken = systematic(np.cumsum(np.array(sizes)), m, start).tolist()
    assert taken == systematic_draw([Fraction(m * s, sum(sizes)) for s in sizes], Fraction(start, sum(sizes)))
    assert len(set(taken)) == m


NASTY = {
    "spread beyond all digits": lambda r, n: 10.0 ** r.uniform(-300, 300, n),
    "tenths": lambda _r, n: np.full(n, 0.1),
    "thirds": lambda r, n: r.integers(1, 4, n) / 3,
    "tiny": lambda r, n: 1e-280 * r.uniform(1, 2, n),
    "one giant": lambda _r, n: np.where(np.arange(n) == n // 2, 1e300, 1e-300),
    "powers of two": lambda _r, n: 2.0 ** (np.arange(n) % 60),
}


@pytest.mark.parametrize("name", NASTY)
def test_exactly_as_many_are_drawn_as_asked_for_whatever_the_sizes(name: str) -> None:
    random = np.random.default_rng(1)
    for n in (3, 10, 101, 1000):
        data = Data([column("A", np.arange(n) % 3, kind="ordinal"), numbers("z", NASTY[name](random, n))])
        for share in (0.49, 0.2, 0.145):
            asked = target_count(share, n)
            if asked:
                rows = qd.ControlledSwap("A", targets=share, size="z", seed=n).plan(data).details.rows["targets"]
                assert len(set(rows.tolist())) == asked


def test_exactly_as_many_are_drawn_of_a_million_records() -> None:
    n = 10**6
    size = np.random.default_rng(2).lognormal(0, 3, n)
    data = Data([column("A", np.arange(n) % 3, kind="ordinal"), numbers("z", size)])
    rows = qd.ControlledSwap("A", targets=0.0314155, size="z", seed=1).plan(data).details.rows
    assert len(np.unique(rows["targets"])) == 31416
    certain = np.zeros(n, dtype=bool)
    certain[rows["certain"]] = True
    drawn = 31416 - certain.sum()
    pi = drawn * size / size[~certain].sum()
    assert certain.sum() > 0 and (pi[certain] >= 1).all() and (pi[~certain] < 1).all()


@pytest.mark.parametrize(
    ("share", "n", "expected"),
    [(0.145, 100, 15), (0.285, 100, 29), (0.005, 100, 1), (0.35, 10, 4), (0.115, 1000, 115), (0.25, 2, 1), (0.1, 4, 0)],
)
def test_halves_go_up_as_the_share_is_written(share: float, n: int, expected: int) -> None:
    assert target_count(share, n) == expected
    chosen = np.arange(n) == 0
    codes = [column("A", np.arange(n) % 2, kind="ordinal"), column("S", np.zeros(n), 1), numbers("p", [share] * n)]
    data = Data([*codes, flag("must", chosen)])
    for targets in (share, "p"):
        plan = qd.ControlledSwap("A", targets=targets, stratum="S", must="must", seed=1).plan(data)
        assert len(plan.details.rows["targets"]) == max(1, expected)
        assert plan.details.facts["strata"][0]["asked"] == expected


def test_never_records_do_not_count_towards_the_share_and_must_records_do() -> None:
    n = 40
    columns = [column("A", np.arange(n) % 4, kind="ordinal")]
    flags = [flag("must", np.arange(n) < 3), flag("never", np.arange(n) >= 20)]
    facts = qd.ControlledSwap("A", targets=0.25, must="must", never="never", seed=1).plan(Data([*columns, *flags]))
    (row,) = facts.details.facts["strata"]
    counted = {key: row[key] for key in ("records", "never", "asked", "must", "certain", "drawn")}
    assert counted == {"records": 40, "never": 20, "asked": 5, "must": 3, "certain": 0, "drawn": 2}


@given(st.lists(st.integers(1, 40), min_size=1, max_size=15), st.data())
def test_certainties_are_those_of_the_walk_by_descending_size(sizes: list[int], data: st.DataObject) -> None:
    m = data.draw(st.integers(0, len(sizes)))
    sure, drawn = draw_stratum(np.arange(len(sizes)), np.array(sizes), m, chooser(1))
    expected = [i for i, p in enumerate(inclusion(sizes, m)) if p == 1]
    assert sorted(sure.tolist()) == expected
    assert len({*sure.tolist(), *drawn.tolist()}) == m


@pytest.mark.parametrize("scale", [1e-250, 1e-20, 1.0, 1e12, 1e250])
@pytest.mark.parametrize("apart", ["never", "must"])
def test_the_unit_of_the_sizes_does_not_matter_when_some_records_are_set_apart(scale: float, apart: str) -> None:
    """A record that is a hundred times as large as the others is a certainty in any unit."""
    size = np.array([1.0] * 8 + [100.0, 1.0]) * scale
    columns = [column("A", np.arange(10) % 2, kind="ordinal"), numbers("z", size), flag("set", np.arange(10) == 9)]
    plan = qd.ControlledSwap("A", targets=0.3, size="z", **{apart: "set"}, seed=1).plan(Data(columns))
    assert plan.details.rows["certain"].tolist() == [8]


# ---- missing values ----


def with_gaps() -> Data:
    """Two zones; the first has values 0 (three times), 1 and 2 and three gaps, the second only 2 and one gap."""
    variable = qd.Variable("A", "ordinal", (10, 20, 40), missing=(-9,))
    codes = np.array([0, 0, 0, 1, 2, 3, 3, 4, 2, 2, 3, 2])
    zone = column("Z", [0] * 8 + [1] * 4)
    target = flag("T", np.isin(np.arange(12), [5, 10]))
    return Data([Column(variable, codes.astype(np.uint8), nullable=True), zone, target])


def imputed_codes(monkeypatch: pytest.MonkeyPatch, data: Data, seeds: int) -> np.ndarray:
    """What the cells are made of, seed by seed."""
    real, seen = draw.impute, []

    def impute(*arguments: object) -> object:
        seen.append(real(*arguments))
        return seen[-1]

    monkeypatch.setattr(draw, "impute", impute)
    for seed in range(seeds):
        qd.ControlledSwap("A", targets=0, must="T", boundary="Z", seed=seed).plan(data)
    return np.array(seen)


def test_gaps_are_filled_by_values_drawn_uniformly_from_the_records_of_the_zone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = with_gaps()
    seen = imputed_codes(monkeypatch, data, DRAWS)
    known = data["A"].values < 3
    assert (seen[:, known] == data["A"].values[known]).all()
    assert (seen[:, 10] == 2).all()
    for place in (5, 6, 7):
        share = np.bincount(seen[:, place], minlength=3) / DRAWS
        assert len(share) == 3, "a gap is filled by a missing code"
        expected = np.array([0.6, 0.2, 0.2])
        assert (abs(share - expected) <= 4 * np.sqrt(expected * (1 - expected) / DRAWS)).all()
    both = np.mean((seen[:, 5] == 0) & (seen[:, 6] == 0))
    assert abs(both - 0.36) <= 4 * np.sqrt(0.36 * 0.64 / DRAWS), "two gaps are not filled independently"


def test_imputed_values_never_reach_the_result() -> None:
    data = with_gaps()
    before = np.sort(data["A"].values)
    moved = set()
    for seed in range(100):
        plan = qd.ControlledSwap("A", targets=0, must="T", boundary="Z", seed=seed).plan(data)
        after = plan.apply(data)["A"].values
        assert np.array_equal(np.sort(after), before)
        for t, d in plan.pairs.tolist():
            assert after[d] == data["A"].values[t] and after[t] == data["A"].values[d] != after[d]
            moved.add((int(after[d]), int(after[t])))
    assert {old for old, _ in moved} == {3}, "missing codes of targets go to their partners"


def test_a_zone_without_any_value_is_a_clear_error_unless_missing_is_a_category() -> None:
    variable = qd.Variable("A", "ordinal", (10, 20), missing=(-9,))
    target = flag("T", [1, 0, 0, 0, 0])
    data = Data([Column(variable, np.array([0, 1, 1, 2, 2], np.uint8)), column("Z", [0, 0, 0, 1, 1]), target])
    settings = {"targets": 0, "must": "T", "boundary": "Z", "seed": 1}
    with pytest.raises(InputError, match=r"'A' has no value at all in a zone .* for 2 records.* on_missing"):
        qd.ControlledSwap("A", **settings).plan(data)
    assert len(qd.ControlledSwap("A", **settings, on_missing="category").plan(data).pairs) == 1


def test_as_a_category_missing_comes_last_in_order() -> None:
    """The target of the largest category has missing ones as its right neighbours, and closest weights decide."""
    variable = qd.Variable("A", "ordinal", (-1, 0, 2, 10), missing=(-9,))
    codes = np.array([3, 2, 4, 0], np.uint8)
    target = flag("T", [1, 0, 0, 0])
    near_missing = [5.0, 9.0, 5.0, 5.0]
    data = Data([Column(variable, codes), target, numbers("w", near_missing, role="weight")])
    recipe = qd.ControlledSwap("A", targets=0, must="T", on_missing="category", seed=1)
    assert recipe.plan(data).pairs.tolist() == [[0, 2]]
    first = Data([Column(variable, codes), flag("T", [0, 0, 0, 1]), numbers("w", near_missing, role="weight")])
    assert recipe.plan(first).pairs.tolist() == [[3, 1]], "nothing is on the left of the smallest category"
