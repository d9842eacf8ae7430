"""Law 7: the order of rows does not matter, weight 2 is the record twice, and no change says so."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quadrille as qd
from oracles import PAIR_MEASURES, TABLE_MEASURES, close
from quadrille.data import Data
from quadrille.measure.base import NOTHING_CHANGED
from strategies import Case, cases, coded, file_of, files, numbers, rows_of


def addresses(data: Data, moved: tuple[str, ...]) -> list[str]:
    """Every measure that the file allows, with the margin written out where the moved columns decide it."""
    listed = [*TABLE_MEASURES, "hellinger(2-way)", *PAIR_MEASURES]
    if len(coded(data)) < 2:
        listed = list(TABLE_MEASURES)
    names = [name for name in moved if data[name].variable.coded][:2]
    ordinal = [name for name in names if data[name].variable.kind == "ordinal"]
    listed += [f"conditional_entropy({'*'.join(names)})"] if names else []
    return listed + [f"ordinal_shift({name})" for name in ordinal]


def score(data: Data, after: Data, plan: qd.Plan, rows: np.ndarray, listed: list[str]) -> qd.Scores:
    """Score two files whose records are picked by `rows` from both."""
    swapped = np.isin(rows, plan.rows)
    return qd.score(rows_of(data, rows), rows_of(after, rows), listed, swapped=swapped)


@given(cases(), st.data())
def test_the_order_of_rows_does_not_change_a_score(case: Case, draw: st.DataObject) -> None:
    order = np.array(draw.draw(st.permutations(range(case.data.n))))
    after = case.plan.apply(case.data)
    listed = addresses(case.data, case.plan.columns)
    plan = qd.score(case.data, case.plan, listed)
    turned = score(case.data, after, case.plan, order, listed)
    assert all(close(plan[address], turned[address], 10) for address in listed)


@given(cases(weights=(None,)), st.data())
def test_weight_counts_as_so_many_records(case: Case, draw: st.DataObject) -> None:
    times = np.array(draw.draw(st.lists(st.integers(1, 3), min_size=case.data.n, max_size=case.data.n)))
    after = case.plan.apply(case.data)
    listed = addresses(case.data, case.plan.columns)
    repeated = score(case.data, after, case.plan, np.repeat(np.arange(case.data.n), times), listed)
    before, now = (
        Data([*(d[name] for name in d.columns), numbers("weight", times, role="weight")]) for d in (case.data, after)
    )
    swapped = np.isin(np.arange(case.data.n), case.plan.rows)
    weighted = qd.score(before, now, listed, swapped=swapped)
    assert all(close(weighted[address], repeated[address], 10) for address in listed)


def test_a_record_of_weight_0_counts_as_no_record() -> None:
    codes = {"A": [0, 1, 0, 1], "B": [0, 0, 1, 0]}
    weighted = file_of([2, 2, 0, 0], **codes)
    plan = qd.Plan.of_pairs(weighted, ["A"], [[2, 3]])
    without = rows_of(file_of(**codes), [0, 0, 1, 1])
    for measure in (*TABLE_MEASURES, *PAIR_MEASURES):
        expected = qd.score(without, without, [measure])
        assert qd.score(weighted, plan, [measure])[measure] == expected[measure]
        assert qd.score(weighted, plan, [measure]).note(measure) == expected.note(measure)


@given(cases(), st.data())
def test_the_unit_of_the_weight_does_not_change_a_score(case: Case, draw: st.DataObject) -> None:
    factor = draw.draw(st.sampled_from([2.0, 0.25, 1024.0]))
    data = case.data
    unit = np.ones(data.n) if data.weight is None else data[data.weight].values
    columns = [data[name] for name in data.columns if name != data.weight]
    scaled = [Data([*columns, numbers("w", unit * f, role="weight")]) for f in (1.0, factor)]
    listed = addresses(data, case.plan.columns)
    one, other = (qd.score(d, qd.Plan(case.plan.moves, data=d), listed) for d in scaled)
    assert all(close(one[address], other[address], 10) for address in listed)


@given(files())
def test_when_nothing_changed_the_score_is_0_and_says_so(data: Data) -> None:
    nothing = qd.Plan([], data=data)
    listed = addresses(data, tuple(coded(data)))
    for scores in (qd.score(data, nothing, listed), qd.score(data, data, listed)):
        for address in listed:
            if scores[address] is None:
                assert address.startswith("ordinal_shift")
                assert scores.note(address)
            else:
                assert scores[address] == 0
                assert scores.note(address) == NOTHING_CHANGED


@given(files(weights=(None,)))
def test_false_swaps_change_nothing_and_say_so(data: Data) -> None:
    same = coded(data)
    twice = rows_of(data, np.repeat(np.arange(data.n), 2))
    plan = qd.Plan.of_pairs(twice, same, np.arange(2 * data.n).reshape(-1, 2))
    listed = addresses(data, tuple(same))
    scores = qd.score(twice, plan, listed)
    assert all(scores[a] == 0 and scores.note(a) == NOTHING_CHANGED for a in listed if scores[a] is not None)


@pytest.mark.parametrize("address", ["hellinger(A*B)", "cramers_v_change(A*B)", "conditional_entropy(A)"])
def test_what_is_undefined_is_none_with_a_reason(address: str) -> None:
    data = file_of(A=[0, 1, 0, 1], B=[0, 0, 1, 1])
    plan = qd.RandomSwap("A", pairs=1, seed=1).plan(data)
    scores = qd.score(data, plan, [address], where=np.zeros(4, dtype=bool))
    assert scores[address] is None
    assert scores.note(address)


def test_an_association_with_a_single_category_is_undefined_unless_nothing_changed() -> None:
    data = file_of([1, 2, 3, 4], A=[0, 1, 0, 1], B=[0, 0, 0, 0])
    plan = qd.RandomSwap("A", pairs=1, seed=1).plan(data)
    scores = qd.score(data, plan, ["cramers_v_change", "contingency_change"])
    assert scores["cramers_v_change"] is None
    assert "single category" in scores.note("cramers_v_change")
    assert scores["contingency_change"] == 0
