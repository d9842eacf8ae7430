"""Levels of geography travel together: whatever is swapped, every area stays in its county."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import quadrille as qd
from effort import examples
from geography_strategies import area, areas_within, drawable, nested_files, places, swaps
from quadrille.codebook import records_in
from quadrille.data import Column, Data
from quadrille.errors import InputError
from quadrille.recipe import carried
from quadrille.study.workers import Scorer
from strategies import column


def stays(recipe: qd.Recipe) -> set[str]:
    """The columns on which partners agree."""
    parameters = recipe.parameters()
    return {name for key in ("same", "within", "boundary") for name in parameters.get(key, ())}


@given(nested_files(), st.data())
def test_every_recipe_moves_whole_places_and_leaves_the_levels_nested(data: Data, draw: st.DataObject) -> None:
    recipe, plan = drawable(draw.draw(swaps(data)), data)
    before, after = places(data), places(plan.apply(data))
    assert Counter(after) == Counter(before)
    for move in plan.moves:
        if set(move.columns) & set(data.codebook.geography):
            for row, source in zip(move.rows.tolist(), move.source.tolist(), strict=True):
                assert after[row] == before[source], "a record received part of a place"
    if plan.moves:
        expected = set(recipe.swap) | (set(data.codebook.geography) - stays(recipe))
        assert set(plan.columns) >= expected & set(data.codebook.geography)
        assert not set(plan.columns) & stays(recipe)


@given(nested_files(), st.data())
def test_every_recipe_on_nested_levels_passes_the_battery(data: Data, draw: st.DataObject) -> None:
    recipe, plan = drawable(draw.draw(swaps(data)), data)
    assert qd.testing.check_recipe(recipe, data) == plan


@examples(24)
@given(nested_files(largest=25), st.data())
def test_measures_of_a_swap_that_carries_levels_pass_the_battery(data: Data, draw: st.DataObject) -> None:
    _, plan = drawable(draw.draw(swaps(data)), data)
    levels = data.codebook.geography
    for address in ("hellinger", f"total_variation({levels[0]}*A)", "hellinger(2-way)"):
        qd.testing.check_measure(address, data, plan)


@examples(30)
@given(nested_files(weights=False, missing=False), st.data())
def test_columns_that_are_carried_do_not_decide_who_is_paired(data: Data, draw: st.DataObject) -> None:
    recipe, plan = drawable(draw.draw(swaps(data)), data)
    if isinstance(recipe, qd.RandomSwap) and recipe.order == "one-by-one":
        return  # levels of geography share their pairs there
    columns = [data[name] for name in data.columns]
    plain = Data([replaced(each) for each in columns])
    other = recipe.plan(plain)
    assert [move.rows.tolist() for move in other.moves] == [move.rows.tolist() for move in plan.moves]
    assert [move.source.tolist() for move in other.moves] == [move.source.tolist() for move in plan.moves]


def replaced(each: Column) -> Column:
    """The same column with a level of its own no longer declared."""
    return replace(each, variable=replace(each.variable, role=None, level=None))


@examples(24)
@given(nested_files(weights=False, missing=False), st.integers(0, 2**32))
def test_the_fast_lane_of_a_search_carries_levels_as_the_plan_does(data: Data, seed: int) -> None:
    recipe, plan = drawable(qd.RandomSwap([data.codebook.geography[-1]], pairs=2, seed=seed), data)
    measures = ["hellinger", "small_cells"]
    scorer = Scorer(data, measures)
    exchange = recipe.prepared(data).exchange
    assert exchange is not None
    assert set(exchange.columns) == set(plan.columns) == set(data.codebook.geography)
    fused = scorer._fused
    assert fused is not None
    quick = fused.run(exchange, recipe.stream())
    scores = qd.score(data, plan, measures)
    assume(quick is not None)  # the fused hands back what it cannot do
    for got, address in zip(quick, measures, strict=True):
        wanted = scores[address]
        assert got == wanted if wanted is None else got == pytest.approx(wanted, abs=1e-12)


@given(nested_files())
def test_one_by_one_all_levels_share_their_pairs(data: Data) -> None:
    levels = data.codebook.geography
    recipe, plan = drawable(
        qd.RandomSwap([levels[-1], "A", levels[0]], pairs=2, differ="none", order="one-by-one", seed=3), data
    )
    assert [set(move.columns) for move in plan.moves] == [set(levels), {"A"}]
    assert recipe.groups(data) == [(levels[-1], levels[0]), ("A",)]


@given(nested_files(), st.data())
def test_what_is_carried_is_every_other_level_that_may_differ(data: Data, draw: st.DataObject) -> None:
    levels = data.codebook.geography
    some = st.lists(st.sampled_from([*levels, "A"]), unique=True)
    swap, stay = draw.draw(some), draw.draw(some)
    found = carried(data, swap, stay)
    if set(swap) & set(levels):
        assert found == tuple(name for name in levels if name not in {*swap, *stay})
    else:
        assert found == ()


@given(nested_files(), st.integers(0, 2**32 - 1))
def test_levels_are_nested_exactly_when_each_area_lies_in_one(data: Data, seed: int) -> None:
    """Plain Python looks at all records; one of them gets another area at random."""
    random = np.random.default_rng(seed)
    fine, coarse = (data[name] for name in data.codebook.geography[-1:-3:-1])
    values = coarse.values.copy()
    values[random.integers(data.n)] = random.integers(coarse.valid)
    lies_in: dict[int, set[int]] = {}
    for one, other in zip(fine.values.tolist(), values.tolist(), strict=True):
        if one < fine.valid:
            lies_in.setdefault(one, set()).add(other)
    apart = sum(len(found) > 1 for found in lies_in.values())
    columns = [area("c", values, coarse.valid, 1), fine]
    if apart:
        with pytest.raises(InputError, match=f"not nested: {apart} of {fine.valid} areas of 'tract' lie in more"):
            Data(columns)
        return
    found = Data(columns)
    owner = areas_within(found["tract"], found["c"]).tolist()
    assert owner == [next(iter(lies_in[a])) if a in lies_in else -1 for a in range(fine.valid)]
    assert records_in(fine).tolist() == [int((fine.values == a).sum()) for a in range(fine.valid)]


def test_the_law_would_notice_a_plan_that_leaves_the_county_behind() -> None:
    data = Data([area("county", [0, 0, 1, 1], 2, 1), area("tract", [0, 1, 2, 2], 3, 2), column("A", [0, 1, 0, 1])])
    plan = qd.Plan.of_pairs(data, ["tract"], [[0, 2]])
    with pytest.raises(InputError, match="not nested"):
        plan.apply(data)
