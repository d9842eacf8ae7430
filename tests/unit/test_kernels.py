"""Each compiled loop against a few lines of plain Python or numpy that say the same."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from scipy.stats.contingency import association

import quadrille as qd
from oracles import admissible, largest, sequential
from quadrille import kernels
from quadrille.kernels.draw import admissible as admissible_groups
from quadrille.kernels.draw import below_large
from quadrille.randomness import Stream
from quadrille.swap import pairing
from quadrille.swap.groups import Roster
from quadrille.swap.pairing import Rule
from strategies import cases, file_of

NONE = np.empty(0, dtype=np.int64)
small = st.integers(0, 2**32 - 1)


def roll(*words: int) -> kernels.Dice:
    return kernels.dice(np.array(words, dtype=np.uint32))


def words(name: str, count: int) -> np.ndarray:
    return Stream.of(0, name).words(count)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 6, 7, 1000, 48_842, 2**16 + 1, 10**7, 2**31 - 1, 2**31])
def test_below_gives_every_number_to_exactly_the_same_count_of_words(n: int) -> None:
    whole, rejected = 2**32, 2**32 % n
    for value in {0, 1 % n, n // 2, n - 1}:
        first = -(-(value * whole + rejected) // n)
        last = -(-(value + 1) * whole // n) - 1
        assert last - first + 1 == whole // n
        assert [kernels.below(n, roll(w)) for w in (first, (first + last) // 2, last)] == [value] * 3
        between = range(-(-value * whole // n), first)  # these words are passed over, and the next one decides
        for word in list(between)[:3]:
            dice = roll(word, last)
            assert kernels.below(n, dice) == value
            assert dice.cursor.tolist() == [2, 0]


@given(st.integers(1, 2**31), st.lists(small, min_size=1, max_size=20))
def test_below_is_the_high_half_of_a_product_with_rejection(n: int, drawn: list[int]) -> None:
    kept = [w * n >> 32 for w in drawn if (w * n) % 2**32 >= 2**32 % n]
    dice = roll(*drawn)
    assert [kernels.below(n, dice) for _ in kept] == kept
    assert dice.cursor[1] == 0
    kernels.below(n, dice)
    assert dice.cursor.tolist() == [len(drawn), 1]


@given(st.integers(1, 2**62), st.lists(small, max_size=20))
def test_below_large_is_the_remainder_of_62_bits_with_rejection(n: int, drawn: list[int]) -> None:
    values = [(a >> 1) << 31 | b >> 1 for a, b in zip(drawn[::2], drawn[1::2], strict=False)]
    kept = [value % n for value in values if value < 2**62 - 2**62 % n]
    dice = roll(*drawn)
    assert [below_large(n, dice) for _ in kept] == kept
    below_large(n, dice)
    assert dice.cursor[1] == 1


def test_shuffle_gives_every_order_the_same_chance() -> None:
    dice = kernels.dice(words("shuffle", 200_000))
    orders = Counter()
    for _ in range(24_000):
        items = np.arange(4)
        kernels.shuffle(items, dice)
        orders[tuple(items.tolist())] += 1
    assert dice.cursor[1] == 0
    assert len(orders) == 24
    assert chisquare(list(orders.values())).pvalue > 1e-3  # 1,000 expected of each


def twin_net(old: list[int], new: list[int], ticks: list[int]) -> dict[int, tuple[int, int]]:
    """Count and ticks that enter minus those that leave, per cell that changes."""
    count, weight = Counter(), Counter()
    for was, now, w in zip(old, new, ticks or [0] * len(old), strict=True):
        for cell, sign in ((was, -1), (now, 1)):
            count[cell] += sign
            weight[cell] += sign * w
    return {c: (count[c], weight[c]) for c in sorted(count) if c >= 0 and (count[c] or weight[c])}


rows = st.lists(st.tuples(st.integers(-1, 39), st.integers(-1, 39), st.integers(0, 2**50)), max_size=40)


@given(rows, st.booleans(), st.sampled_from([40, 41, 1000]))
def test_net_of_rows_is_what_enters_minus_what_leaves(moved: list[tuple], weighted: bool, possible: int) -> None:
    old, new, ticks = (list(part) for part in zip(*moved, strict=True)) if moved else ([], [], [])
    scratch = np.zeros((3, possible), dtype=np.int64)
    given_ticks = np.array(ticks, dtype=np.int64) if weighted else NONE
    for dtype in (np.int64, np.int32):
        arrays = np.array(old, dtype=dtype), np.array(new, dtype=dtype)
        cells, net = kernels.net_of_rows(*arrays, given_ticks, scratch, possible)
        assert dict(zip(cells.tolist(), map(tuple, net.T.tolist()), strict=True)) == twin_net(
            old, new, ticks if weighted else []
        )
        assert (np.diff(cells) > 0).all()
        assert not scratch.any()


@given(st.dictionaries(st.integers(0, 29), st.tuples(st.integers(-5, 5), st.integers(-99, 99))), st.data())
def test_net_of_cells_adds_up_by_the_cells_of_the_margin(changes: dict, draw: st.DataObject) -> None:
    lookup = draw.draw(st.lists(st.integers(-1, 5), min_size=30, max_size=30))
    possible = draw.draw(st.sampled_from([6, 500]))
    scratch = np.zeros((3, possible), dtype=np.int64)
    cells = np.array(sorted(changes), dtype=np.int64)
    net = np.array([changes[c] for c in sorted(changes)], dtype=np.int64).reshape(-1, 2).T.copy()
    found, sums = kernels.net_of_cells(cells, net, np.array(lookup, dtype=np.int32), scratch, possible)
    twin = {m: sum((np.array(changes[c]) for c in changes if lookup[c] == m), np.zeros(2, int)) for m in range(6)}
    expected = {m: tuple(total.tolist()) for m, total in twin.items() if total.any()}
    assert dict(zip(found.tolist(), map(tuple, sums.T.tolist()), strict=True)) == expected
    assert not scratch.any()


@given(st.lists(st.integers(0, 7), max_size=60))
def test_sort_into_groups_is_a_stable_sort(group: list[int]) -> None:
    start, order = np.zeros(9, dtype=np.int64), np.empty(len(group), dtype=np.int32)
    kernels.sort_into_groups(np.array(group, dtype=np.int64), 8, start, order)
    assert order.tolist() == sorted(range(len(group)), key=lambda i: group[i])
    assert start.tolist() == [sum(g < bound for g in group) for bound in range(9)]


@given(st.lists(st.tuples(st.integers(-1, 5), st.integers(0, 2**55)), max_size=60))
def test_add_ticks_is_an_exact_weighted_count(records: list[tuple[int, int]]) -> None:
    out = np.zeros(6, dtype=np.int64)
    cells, ticks = (np.array([r[i] for r in records], dtype=np.int64) for i in (0, 1))
    kernels.add_ticks(cells, ticks, out)
    assert out.tolist() == [sum(t for c, t in records if c == cell) for cell in range(6)]


@given(st.integers(1, 5), st.integers(1, 5), st.data())
def test_chi_square_agrees_with_its_definition_and_with_scipy(m: int, n: int, draw: st.DataObject) -> None:
    counts = draw.draw(st.lists(st.integers(0, 30), min_size=m * n, max_size=m * n).filter(any))
    table = np.array(counts, dtype=float).reshape(m, n)
    share, row_count, column_count = kernels.chi_square(table)
    kept = table[table.any(axis=1)][:, table.any(axis=0)]
    assert (row_count, column_count) == kept.shape
    expected = np.outer(kept.sum(axis=1), kept.sum(axis=0)) / kept.sum()
    assert abs(share - ((kept - expected) ** 2 / expected).sum() / kept.sum()) < 1e-13
    if min(kept.shape) > 1:
        v = association(kept.astype(int), method="cramer")
        assert abs((share / (min(kept.shape) - 1)) ** 0.5 - v) < 1e-12


def pool_of(data: qd.Data, recipe: qd.RandomSwap) -> tuple[kernels.Pool, Roster]:
    rule = Rule(recipe.swap, recipe.same, recipe.different, recipe.differ)
    return pairing.pool_of(pairing.group_records(data, rule), rule)


def groups_of(pool: kernels.Pool, roster: Roster) -> dict[int, int]:
    """The group of every record in the pool."""
    assert np.array_equal(pool.start, roster.start)
    return {row: int(np.searchsorted(pool.start, i, side="right")) - 1 for i, row in enumerate(roster.order.tolist())}


@given(cases(largest=20))
def test_groups_are_admissible_when_their_records_are_and_the_pool_holds_all_that_have_partners(case: object) -> None:
    (pool, roster), allowed = pool_of(case.data, case.recipe), admissible(case.data, case.recipe, case.recipe.swap)
    group = groups_of(pool, roster)
    assert set(group) == set(np.flatnonzero(allowed.any(axis=1)).tolist())
    assert kernels.has_partner(pool).all()
    for i, g in group.items():
        for j, h in group.items():
            if i != j and pool.class_of[g] == pool.class_of[h]:
                assert bool(admissible_groups(g, h, pool)) == bool(allowed[i, j])
            elif i != j:
                assert not allowed[i, j]


def state(pool: kernels.Pool) -> list[object]:
    return [part.tolist() if isinstance(part, np.ndarray) else part for part in pool]


@given(cases(largest=30), st.booleans(), st.sampled_from([0, 1, 7, 100, 4000]), st.sampled_from([None, 0, 1]))
def test_putting_back_restores_the_pool_exactly_however_the_draw_ends(
    case: object, pair_uniform: bool, count: int, patience: int | None
) -> None:
    (pool, roster), allowed = pool_of(case.data, case.recipe), admissible(case.data, case.recipe, case.recipe.swap)
    pool = pool if patience is None else pool._replace(patience=patience)
    before = state(pool)
    pairs = np.full((case.data.n // 2, 2), -1, dtype=np.int64)
    log = np.zeros(2 * len(pairs) + 2, dtype=np.int64)
    dice = kernels.dice(words("pool", count))
    drawn = int(kernels.draw_pairs(pairs, pair_uniform, pool, log, dice))
    if not dice.cursor[1]:
        found = roster.rows(pairs[:drawn])
        assert len(np.unique(found)) == found.size
        assert allowed[found[:, 0], found[:, 1]].all()
        left = np.setdiff1d(np.arange(case.data.n), found)
        assert drawn == len(pairs) or not allowed[np.ix_(left, left)].any()
    kernels.put_back(0, pool, log)
    assert state(pool) == before


@pytest.mark.parametrize("pair_uniform", [False, True])
@pytest.mark.parametrize("patience", [0, 1, 2])
def test_counting_what_is_left_draws_with_the_same_chances_as_rejection(patience: int, pair_uniform: bool) -> None:
    data = file_of(A=[0, 0, 0, 1, 1, 2, 2, 0], C=[0, 0, 0, 0, 0, 0, 1, 1])
    recipe = qd.RandomSwap("A", pairs=2, same=["C"], seed=0)
    sampler = "pair-uniform" if pair_uniform else "first-uniform"
    expected = sequential(admissible(data, recipe, ["A"]), 2, sampler)
    pool, roster = pool_of(data, recipe)
    pool = pool._replace(patience=patience)
    pairs, log = np.empty((2, 2), dtype=np.int64), np.zeros(6, dtype=np.int64)
    dice = kernels.dice(words(f"careful {patience} {sampler}", 400_000))
    found = Counter()
    for _ in range(15_000):
        assert kernels.draw_pairs(pairs, pair_uniform, pool, log, dice) == 2
        found[frozenset(frozenset(pair) for pair in roster.rows(pairs).tolist())] += 1
        kernels.put_back(0, pool, log)
    assert dice.cursor[1] == 0
    # six tests with fixed words, each p > 1e-3
    assert chisquare([found[plan] for plan in expected], [15_000 * p for p in expected.values()]).pvalue > 1e-3


@given(st.integers(0, 2**32), st.sampled_from(["A", "AB", "ABC"]), st.sampled_from(["all", "all", "any", "none"]))
def test_augmenting_until_no_path_is_left_gives_a_maximum_matching(seed: int, swap: str, differ: str) -> None:
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 12))
    data = file_of(**{name: random.integers(0, 3, n) for name in "ABCD"})
    different = ["D"] if random.random() < 0.4 else []
    recipe = qd.RandomSwap(list(swap), pairs=1, differ=differ, different=different, seed=0)
    (pool, roster), allowed = pool_of(data, recipe), admissible(data, recipe, recipe.swap)
    group = groups_of(pool, roster)
    records = [int(i) for i in random.permutation(list(group))] if group else []
    mate = np.full(len(records), -1, dtype=np.int64)
    size = 0
    while kernels.augment(np.array([group[i] for i in records], dtype=np.int64), mate, pool):
        size += 1
        matched = np.flatnonzero(mate >= 0)
        assert len(matched) == 2 * size
        assert (mate[mate[matched]] == matched).all()
        assert all(allowed[records[v], records[mate[v]]] for v in matched)
    assert size == largest(allowed)


@pytest.mark.parametrize("seed", range(40))
def test_repair_on_groups_finds_as_many_pairs_as_the_search_among_all_records(seed: int) -> None:
    random = np.random.default_rng(seed)
    n, shares = int(random.integers(40, 160)), random.dirichlet(np.full(9, 0.4))
    kinds = random.choice(9, size=n, p=shares)
    data = file_of(A=kinds // 3, B=kinds % 3, C=random.integers(0, 2 + seed % 3, n))
    different = [(), ("C",)][seed % 2]
    recipe = qd.RandomSwap(["A", "B"], pairs=n, different=different, seed=seed)
    pool, _ = pool_of(data, recipe)
    group = np.repeat(np.arange(len(pool.unused)), pool.unused)
    mate = np.full(len(group), -1, dtype=np.int64)
    while kernels.augment(group, mate, pool):
        pass
    with pytest.raises(qd.InfeasibleError) as caught:
        recipe.plan(data)
    assert (caught.value.maximum, caught.value.exact) == ((mate >= 0).sum() // 2, True)
    if caught.value.maximum:
        pairs = qd.RandomSwap(["A", "B"], pairs=caught.value.maximum, different=different, seed=seed).plan(data).pairs
        assert admissible(data, recipe, recipe.swap)[pairs[:, 0], pairs[:, 1]].all()


def test_augmenting_passes_through_odd_cycles() -> None:
    # the first three combinations form a triangle: they differ in both variables from one another
    data = file_of(A=[0, 1, 2, 0, 1, 0], B=[0, 1, 2, 1, 0, 2])
    recipe = qd.RandomSwap(["A", "B"], pairs=1, seed=0)
    (pool, roster), allowed = pool_of(data, recipe), admissible(data, recipe, recipe.swap)
    group = groups_of(pool, roster)
    for seed in range(50):
        records = np.random.default_rng(seed).permutation(list(group)).tolist()
        mate = np.full(len(records), -1, dtype=np.int64)
        while kernels.augment(np.array([group[i] for i in records], dtype=np.int64), mate, pool):
            pass
        assert (mate >= 0).sum() == 2 * largest(allowed)


def test_a_step_can_be_called_from_python_too() -> None:
    """It is compiled without a way in, and without one numba would jump to where no code is."""
    assert [kernels.below(n, roll(2**31 + 1)) for n in (2, 10)] == [1, 5]


@given(st.lists(st.integers(0, 59), min_size=1, unique=True), st.sampled_from([(1, 3), (3, 5), (15, 4)]), st.data())
def test_groups_are_found_where_a_search_in_their_list_finds_them(
    listed: list[int], axis: tuple[int, int], data: st.DataObject
) -> None:
    """A table of 3 x 5 x 4 cells; groups that have no cell are found, too, as empty ones."""
    stride, size = axis
    cells = np.array(sorted(listed), dtype=np.int64)
    group = cells - cells // stride % size * stride
    order = np.argsort(group, kind="stable")
    every = np.flatnonzero(np.arange(60) // stride % size == 0)
    asked = np.array(sorted(data.draw(st.sets(st.sampled_from(every.tolist())))), dtype=np.int64)
    start, end = np.empty_like(asked), np.empty_like(asked)
    kernels.find_groups(asked, cells, order.astype(np.uint32), stride, size, start, end)
    assert start.tolist() == np.searchsorted(group[order], asked).tolist()
    assert end.tolist() == np.searchsorted(group[order], asked, side="right").tolist()


def test_kernels_that_make_no_array_ask_for_no_least_and_no_largest() -> None:
    """The compiler has an array for these, so they compile only after another kernel has asked for the same.

    A first run that is ended half-way leaves some kernels on disk, and then nobody asks.
    """
    found, looked = set(), 0
    for path in Path(kernels.__file__).parent.rglob("*.py"):
        for each in ast.parse(path.read_text(encoding="utf-8")).body:
            marks = {getattr(mark, "id", "") for mark in getattr(each, "decorator_list", ())}
            if "no_alloc" in marks:
                looked += 1
                asked = {node.attr for node in ast.walk(each) if isinstance(node, ast.Attribute)}
                found |= {(path.name, name) for name in asked & {"min", "max", "copy", "ravel"}}
    assert looked > 20 and not found
