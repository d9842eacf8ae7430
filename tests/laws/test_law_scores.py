"""Law 4: the score from the change is the score of the two full files, and what the definitions say it is."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy
from scipy.stats.contingency import association

import oracles
import quadrille as qd
from oracles import PAIR_MEASURES, TABLE_MEASURES, close
from quadrille.data import Column
from quadrille.measure.base import NOTHING_CHANGED
from strategies import Case, cases, coded, file_of, restrictions, rows_of

SCALE = 10.0
"""Entropies of these small files stay below 10 nats; every other statistic is at most 1."""


def expected(
    measure: str, case: Case, after: qd.Data, names: tuple[str, ...], keep: tuple = (None, None)
) -> float | None:
    """Score a table by its definition; what nothing changed in is 0 wherever anything is counted."""
    before, now = oracles.table(case.data, names, keep[0]), oracles.table(after, names, keep[1])
    same = +before == +now  # records of weight 0 do not count
    if same and sum(before.values()):
        return 0.0
    return {**TABLE_MEASURES, **PAIR_MEASURES}[measure](before, now)


def margin(draw: st.DataObject, data: qd.Data, least: int = 1, most: int = 8) -> tuple[str, ...]:
    few = st.lists(st.sampled_from(coded(data)), min_size=least, max_size=most, unique=True)
    return tuple(draw.draw(few))


def both(case: Case, measures: list[str], **options: object) -> tuple[qd.Scores, qd.Scores, qd.Data]:
    """Scores of the plan and of the two files, and the second file."""
    after = case.plan.apply(case.data)
    swapped = np.isin(np.arange(case.data.n), case.plan.rows)
    plan = qd.score(case.data, case.plan, measures, **options)
    return plan, qd.score(case.data, after, measures, swapped=swapped, **options), after


def agree(found: float | None, again: float | None, truth: float | None) -> bool:
    return close(found, truth, SCALE) and close(again, truth, SCALE)


@given(cases(), st.data())
def test_distances_of_a_margin_follow_their_definitions(case: Case, draw: st.DataObject) -> None:
    names = margin(draw, case.data)
    addresses = {measure: f"{measure}({'*'.join(names)})" for measure in TABLE_MEASURES}
    plan, files, after = both(case, list(addresses.values()))
    for measure, address in addresses.items():
        assert agree(plan[address], files[address], expected(measure, case, after, names)), address
        assert plan.note(address) == files.note(address)


@given(cases(least=2), st.data())
def test_associations_of_two_variables_follow_their_definitions(case: Case, draw: st.DataObject) -> None:
    names = margin(draw, case.data, 2, 2)
    addresses = {measure: f"{measure}({'*'.join(names)})" for measure in PAIR_MEASURES}
    plan, files, after = both(case, list(addresses.values()))
    for measure, address in addresses.items():
        assert agree(plan[address], files[address], expected(measure, case, after, names)), address


@given(cases(least=2))
def test_without_a_margin_tables_are_full_and_associations_take_all_pairs(case: Case) -> None:
    plan, files, after = both(case, [*TABLE_MEASURES, *PAIR_MEASURES])
    keys = tuple(coded(case.data))
    for measure in TABLE_MEASURES:
        assert agree(plan[measure], files[measure], expected(measure, case, after, keys)), measure
    for measure in PAIR_MEASURES:
        mean = oracles.mean(expected(measure, case, after, pair) for pair in combinations(keys, 2))
        assert agree(plan[measure], files[measure], mean), measure


@given(cases(least=2, most=5))
def test_two_way_scores_are_the_mean_over_all_pairs_with_the_parts_in_the_detail(case: Case) -> None:
    measures = {**TABLE_MEASURES, **PAIR_MEASURES}
    addresses = {measure: f"{measure}(2-way)" for measure in measures}
    plan, files, after = both(case, list(addresses.values()))
    pairs = list(combinations(coded(case.data), 2))
    for measure, address in addresses.items():
        values = [expected(measure, case, after, pair) for pair in pairs]
        assert agree(plan[address], files[address], oracles.mean(values)), address
        matrix = {row["variable"]: row for row in plan.detail(address).to_dicts()}
        assert all(close(matrix[a][b], value, SCALE) for (a, b), value in zip(pairs, values, strict=True))
        assert all(matrix[a][b] == matrix[b][a] for a, b in pairs)


@given(cases(), st.data())
def test_record_by_record_measures_follow_their_definitions(case: Case, draw: st.DataObject) -> None:
    names = margin(draw, case.data, 1, 3)
    ordinal = [name for name in names if case.data[name].variable.kind == "ordinal"]
    joint, shift = f"conditional_entropy({'*'.join(names)})", f"ordinal_shift({'*'.join(ordinal)})"
    plan, files, after = both(case, [joint, shift] if ordinal else [joint])
    assert agree(plan[joint], files[joint], oracles.conditional_entropy(case.data, after, names))
    if ordinal:
        shifts = oracles.mean(oracles.ordinal_shift(case.data, after, name) for name in ordinal)
        assert agree(plan[shift], files[shift], shifts)


@given(cases(least=2), st.data())
def test_a_condition_restricts_tables_before_and_after_each_by_its_own_values(case: Case, draw: st.DataObject) -> None:
    condition = draw.draw(restrictions(case.data))
    names, pair = margin(draw, case.data, 1, 4), margin(draw, case.data, 2, 2)
    wanted = [(m, names) for m in TABLE_MEASURES] + [(m, pair) for m in PAIR_MEASURES]
    inside = {(m, v): f"{m}({'*'.join(v)}, where={condition.text})" for m, v in wanted}
    plan, files, after = both(case, list(inside.values()))
    keep = oracles.meets(case.data, condition.allowed), oracles.meets(after, condition.allowed)
    outside = qd.score(case.data, case.plan, [f"{m}({'*'.join(v)})" for m, v in wanted], where=condition.text)
    for (measure, variables), address in inside.items():
        truth = expected(measure, case, after, variables, keep)
        assert agree(plan[address], files[address], truth), address
        assert outside[f"{measure}({'*'.join(variables)})"] == plan[address]


@given(cases(least=2), st.data())
def test_a_mask_restricts_every_measure_to_the_same_records(case: Case, draw: st.DataObject) -> None:
    mask = np.array(draw.draw(st.lists(st.booleans(), min_size=case.data.n, max_size=case.data.n)))
    names, pair = margin(draw, case.data, 1, 4), margin(draw, case.data, 2, 2)
    wanted = [(m, names) for m in TABLE_MEASURES] + [(m, pair) for m in PAIR_MEASURES]
    joint = f"conditional_entropy({'*'.join(names)})"
    plan, files, after = both(case, [*(f"{m}({'*'.join(v)})" for m, v in wanted), joint], where=mask)
    for measure, variables in wanted:
        address = f"{measure}({'*'.join(variables)})"
        assert agree(plan[address], files[address], expected(measure, case, after, variables, (mask, mask))), address
    assert agree(plan[joint], files[joint], oracles.conditional_entropy(case.data, after, names, mask))


@given(cases(), st.data())
def test_a_condition_on_record_measures_looks_at_the_original_values(case: Case, draw: st.DataObject) -> None:
    condition = draw.draw(restrictions(case.data))
    names = margin(draw, case.data, 1, 2)
    address = f"conditional_entropy({'*'.join(names)}, where={condition.text})"
    plan, files, after = both(case, [address])
    keep = oracles.meets(case.data, condition.allowed)
    assert agree(plan[address], files[address], oracles.conditional_entropy(case.data, after, names, keep))


@given(cases(least=2, weights=(None,), wide=False), st.data())
def test_unweighted_scores_agree_with_scipy(case: Case, draw: st.DataObject) -> None:
    names = margin(draw, case.data, 2, 2)
    after = case.plan.apply(case.data)
    addresses = {m: f"{m}({'*'.join(names)})" for m in ("entropy_change", *PAIR_MEASURES)}
    scores = qd.score(case.data, case.plan, list(addresses.values()))
    was, now = (as_matrix(oracles.counts(data, names)) for data in (case.data, after))
    assert close(scores[addresses["entropy_change"]], entropy(now.ravel()) - entropy(was.ravel()), SCALE)
    if min(was.shape) > 1 and scores.note(addresses["cramers_v_change"]) != NOTHING_CHANGED:
        for measure, method in (("cramers_v_change", "cramer"), ("contingency_change", "pearson")):
            truth = association(was, method=method) - association(now, method=method)
            assert close(scores[addresses[measure]], truth)


def as_matrix(cells: Counter) -> np.ndarray:
    rows = sorted({cell[0] for cell in cells}, key=str)
    columns = sorted({cell[1] for cell in cells}, key=str)
    return np.array([[cells[row, column] for column in columns] for row in rows])


@given(cases(), st.data())
def test_a_second_file_may_have_its_rows_in_any_order(case: Case, draw: st.DataObject) -> None:
    after = case.plan.apply(case.data)
    shuffled = rows_of(after, draw.draw(st.permutations(range(case.data.n))))
    measures = [*TABLE_MEASURES, *(PAIR_MEASURES if len(coded(case.data)) > 1 else ())]
    plan, files = qd.score(case.data, case.plan, measures), qd.score(case.data, shuffled, measures)
    assert all(close(plan[measure], files[measure], SCALE) for measure in measures)


@pytest.mark.parametrize("measure", ["conditional_entropy", "ordinal_shift"])
def test_record_measures_without_a_margin_are_about_the_columns_that_moved(measure: str) -> None:
    data = file_of(A=[0, 1, 2, 0, 1, 2], B=[0, 0, 1, 1, 2, 2], C=[0, 1, 0, 1, 0, 1])
    columns = [Column(qd.Variable(n, "ordinal", data[n].variable.categories), data[n].values) for n in "ABC"]
    data = qd.Data(columns)
    plan = qd.RandomSwap(["A", "B"], pairs=2, seed=3).plan(data)
    assert qd.score(data, plan, [measure])[measure] == qd.score(data, plan, [f"{measure}(A*B)"])[f"{measure}(A*B)"]
