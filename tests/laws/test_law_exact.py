"""Laws of designed swaps that keep tables: what cannot change, who stays, what the account says."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quadrille as qd
from effort import examples
from exact_strategies import RULES, Exact, both, exact
from oracles import records
from quadrille import kernels
from quadrille.randomness import Stream
from quadrille.swap.designed.search import partners, plausibility, signs_of
from quadrille.testing import check_recipe

MANY, SOME = examples(60), examples(25)


@MANY
@given(exact())
def test_the_kept_tables_of_the_released_records_are_those_of_the_file(case: Exact) -> None:
    for table in case.kept():
        assert Counter(records(case.data, table)) == Counter(records(case.after, table)), table


@SOME
@given(exact())
def test_it_passes_the_battery_of_recipes_and_is_drawn_again_from_its_json(case: Exact) -> None:
    assert check_recipe(case.recipe, case.data) == case.plan
    again = qd.Recipe.from_json(case.recipe.to_json())
    assert again == case.recipe and again.plan(case.data) == case.plan


@SOME
@given(exact())
def test_nobody_moves_who_must_not_and_values_come_from_the_same_class(case: Exact) -> None:
    if case.recipe.never:
        assert not case.data["off"].values[case.plan.rows].any()
    assert set(case.plan.columns) <= case.moved
    same = records(case.data, case.recipe.same)
    for move in case.plan.moves:
        assert all(same[row] == same[source] for row, source in zip(*move.given, strict=True))
    for group in case.recipe.together:
        together = [move.columns for move in case.plan.moves if set(move.columns) & set(group)]
        assert all(set(group) <= set(columns) for columns in together)


@SOME
@given(exact(fixed={"rules": RULES}))
def test_no_record_meets_a_rule_that_it_did_not_meet(case: Exact) -> None:
    def met(data: qd.Data) -> np.ndarray:
        a, b, c, other = (np.array([value[0] for value in records(data, [name])]) for name in ("A", "B", "C", "other"))
        return np.stack([(a == "A0") & (b == "B1"), (c == "C0") & (b == "B0"), (a == "A1") & (other == "other1")])

    anew = met(case.after) & ~met(case.data)
    assert not anew.any()


@MANY
@given(exact())
def test_large_cells_stay_large_and_cells_of_nobody_stay_empty_unless_they_may_arise(case: Exact) -> None:
    n = case.recipe.n
    for f, g in case.counts():
        assert (g[f >= n] >= n).all()
        if not case.recipe.new_cells:
            assert g[f == 0].sum() == case.facts["displaced"] if case.recipe.coin else not g[f == 0].any()
        small = (f > 0) & (f < n)
        if case.recipe.treatment == "camouflage" and not case.recipe.coin:
            assert (g[small] > 0).all()
        if case.recipe.treatment == "empty":
            assert (g[small] <= f[small]).all()


@MANY
@given(exact())
def test_what_it_says_of_cells_equals_a_recount_of_the_two_files(case: Exact) -> None:
    n, facts = case.recipe.n, case.facts
    f, g = (np.concatenate(side) for side in zip(*case.counts(), strict=True))
    small = (f > 0) & (f < n)
    assert facts["small_cells"] == small.sum()
    assert facts["camouflaged"] == (g[small] >= n).sum()
    assert facts["emptied"] + facts["displaced"] == (g[small] == 0).sum()
    assert sum(facts["left"].values()) == ((g[small] > 0) & (g[small] < n)).sum()
    assert facts["new_cells"] == ((f == 0) & (g > 0)).sum()
    assert facts["exposed_before"] == f[small].sum()
    assert facts["exposed_after"] == np.minimum(f, g)[(g > 0) & (g < n)].sum() <= facts["exposed_before"]
    for row in facts["by_size"]:
        own = g[f == row["records"]]
        assert (row["cells"], row["camouflaged"], row["emptied"]) == (len(own), (own >= n).sum(), (own == 0).sum())
    for row in facts["just_large"]:
        assert row["cells_after"] == (g == row["records"]).sum()


@SOME
@given(exact())
def test_the_fewest_records_move_that_can_make_the_new_table(case: Exact) -> None:
    f, g = both(case.data, case.after, case.tabulated)
    assert len(case.plan.rows) == case.facts["records_moved"]
    if not case.recipe.rules:  # which may tell records apart that the tables do not
        assert len(case.plan.rows) == np.abs(g - f).sum() // 2
    if case.recipe.max_pairs is not None:
        assert len(case.plan.rows) <= case.recipe.max_pairs
    before, after = records(case.data, case.tabulated), records(case.after, case.tabulated)
    assert sum(a != b for a, b in zip(before, after, strict=True)) == len(case.plan.rows)


@SOME
@given(exact(fixed={"loss": "total_variation", "price": None}))
def test_its_loss_is_the_measure(case: Exact) -> None:
    tables = [both(case.data, case.after, list(table)) for table in case.protected]
    counted = np.mean([np.abs(g - f).sum() / 2 / case.data.n for f, g in tables])
    assert case.facts["design_loss"] == pytest.approx(counted), "the mean over the protected tables"
    if case.data.weight is None:
        scored = qd.score(case.data, case.plan, [f"total_variation({'*'.join(table)})" for table in case.protected])
        assert case.facts["design_loss"] == pytest.approx(np.mean(list(scored.values())))


@SOME
@given(exact(fixed={"coin": 0.0}))
def test_weighted_tables_change_by_no_more_than_the_weights_of_moved_records_differ(case: Exact) -> None:
    if case.data.weight is None:
        assert "weighted_change" not in case.facts
        return
    weight = case.data["w"].values
    largest = 0.0
    for table in case.kept():
        before, after = records(case.data, table), records(case.after, table)
        change: Counter[object] = Counter()
        for row in case.plan.rows.tolist():
            change[after[row]] += weight[row]
            change[before[row]] -= weight[row]
        bound = np.abs(weight[case.plan.rows] - np.median(weight)).sum()
        assert all(abs(value) <= bound + 1e-9 for value in change.values())
        if set(table) & set(case.plan.columns):
            largest = max([largest, *map(abs, change.values())])
    assert case.facts["weighted_change"] <= largest + 1e-9


@st.composite
def tables_of_few(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, Stream]:
    """A table of mostly small cells, the first axis running fastest, its sizes, and a stream."""
    sizes = np.array(draw(st.lists(st.integers(2, 4), min_size=1, max_size=4)))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    held = random.choice([0, 0, 1, 1, 2, 5, 40], int(np.prod(sizes)))
    return held, sizes, Stream.of(draw(st.integers(0, 99)), "law")


@MANY
@given(tables_of_few())
def test_whoever_of_two_partners_is_occupied_they_are_partners_of_each_other(
    case: tuple[np.ndarray, np.ndarray, Stream],
) -> None:
    """The kernel is reversible: each cell is the partner of its partner, as plausible, in whichever the record is."""
    held, sizes, stream = case
    turned = np.arange(len(sizes))
    score = plausibility(held, sizes, turned)
    partner = partners(score, sizes, turned, stream)
    cells = np.flatnonzero(partner >= 0)
    assert (partner[partner[cells]] == cells).all() and (partner[cells] != cells).all()
    assert (held[cells] <= 1).all() and (np.abs(score[partner[cells]] - score[cells]) <= np.log(1.2) + 1e-9).all()
    tossed = cells[(held[cells] == 1) & (held[partner[cells]] == 0)]
    shown = held.copy()
    shown[tossed], shown[partner[tossed]] = 0, 1
    assert (signs_of(shown, sizes, turned) == signs_of(held, sizes, turned)).all(), "nothing tells which it was"
    assert (partners(score, sizes, turned, stream) == partner).all()


@MANY
@given(tables_of_few(), st.data())
def test_an_image_in_a_mirror_has_the_cell_as_its_image(
    case: tuple[np.ndarray, np.ndarray, Stream], data: st.DataObject
) -> None:
    _, sizes, _ = case
    cells = int(np.prod(sizes))
    mirror = np.array([data.draw(st.integers(-1, int(size) - 1)) for size in sizes])
    partner = np.full(cells, -1)
    kernels.pair_images(np.arange(cells), np.zeros(cells), 0.1, sizes, mirror[None, :], partner)
    levels = np.array(np.unravel_index(np.arange(cells), tuple(sizes), order="F")).T
    image = np.where(mirror >= 0, (mirror - levels) % sizes, levels)
    expected = np.ravel_multi_index(tuple(image.T), tuple(sizes), order="F")
    assert (partner == np.where(expected == np.arange(cells), -1, expected)).all()
