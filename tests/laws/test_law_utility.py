"""Utility measures of weighted files: the change gives what the two files give, and what the definitions say."""

from __future__ import annotations

from itertools import combinations
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
import quadrille as qd
from effort import examples
from oracles import close
from quadrille.data import Data
from quadrille.measure.base import NOTHING_CHANGED
from quadrille.score.evaluator import Evaluator
from strategies import Case, cases, coded, feasible, files, numbers, recipes, restrictions

HD = [f"hd{i}{norm}" for i in (1, 2, 3, 4) for norm in ("", "_norm")]
UTILITY = [*HD, "c_ard", "v_ard", "r_ased", "ased_reg", "worst_cell"]


@st.composite
def surveys(draw: st.DrawFn, **options: object) -> Case:
    """A file with two outcomes, one of them with empty fields and far from 0, and a plan."""
    data = draw(files(least=2, most=4, largest=40, wide=False, **options))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    score = 500 + 3.0 * data[data.columns[0]].values + random.normal(0, 10, data.n)
    pay = random.lognormal(8, 1, data.n)
    pay[random.random(data.n) < draw(st.sampled_from([0, 0.3]))] = np.nan
    extra = [numbers("score", score, role="outcome"), numbers("pay", pay, role="outcome")]
    data = Data([*(data[name] for name in data.columns), *extra])
    recipe = feasible(draw(recipes(data, swappable=tuple(coded(data)))), data)
    return Case(data, recipe, recipe.plan(data))


@pytest.mark.parametrize("address", ["hd2(min_cell=3)", "hd4_norm(min_cell=3)", "worst_cell(2-way, floor=1)", *UTILITY])
@examples(16)
@given(case=surveys())
def test_every_utility_measure_passes_the_battery(address: str, case: Case) -> None:
    qd.testing.check_measure(address, case.data, case.plan)


@examples(24)
@given(surveys(), st.data())
def test_a_condition_counts_records_before_and_after_each_by_its_own_values(case: Case, draw: st.DataObject) -> None:
    condition = draw.draw(restrictions(case.data))
    after = case.plan.apply(case.data)
    for measure in ("hd1", "c_ard", "r_ased", "ased_reg"):
        address = f"{measure}(where={condition.text})"
        plan = qd.score(case.data, case.plan, [address])
        files = qd.score(case.data, after, [address], moved=case.plan.columns)
        assert close(plan[address], files[address], scale_of(plan, address)), address


def scale_of(scores: qd.Scores, address: str) -> float:
    score = scores.results[address][1]
    return max(score.scale, abs(score.value or 0))


@examples(24)
@given(surveys(), st.data())
def test_a_plan_and_its_rows_in_any_order_score_alike(case: Case, draw: st.DataObject) -> None:
    order = np.array(draw.draw(st.permutations(range(case.data.n))))
    after = case.plan.apply(case.data).take(order)
    for address in UTILITY:
        plan = qd.score(case.data, case.plan, [address])
        turned = qd.score(case.data, after, [address], moved=case.plan.columns)
        assert close(plan[address], turned[address], scale_of(plan, address)), address


@examples(24)
@given(surveys(), st.lists(st.integers(0, 2), min_size=40, max_size=40))
def test_moments_of_any_partition_of_the_rows_add_up(case: Case, part: list[int]) -> None:
    data = case.data
    rows = [np.flatnonzero(np.array(part[: data.n]) == k) for k in range(3)]
    for summary in Evaluator(data, ["r_ased", "ased_reg"]).summaries(case.plan.columns):
        whole = summary.of(data)
        pieces = [summary.of(data.take(some)) for some in rows if len(some)]
        merged = pieces[0]
        for piece in pieces[1:]:
            merged = merged.merge(piece)
        assert whole.against(merged).nothing_changed
        assert np.array_equal(merged.count, whole.count)


@examples(24)
@given(cases(least=2))
def test_hellinger_distances_in_weights_follow_their_definition(case: Case) -> None:
    after = case.plan.apply(case.data)
    scores = qd.score(case.data, case.plan, ["hd1", "hd3", "hd1_norm", "hd2(min_cell=2)"])
    moved = tuple(name for name in case.plan.columns if case.data[name].variable.coded)
    if not moved:
        assert scores["hd1"] is None
        return
    total = float(sum(oracles.weights(case.data)))
    whole = hd(case.data, after, moved)
    assert close(scores["hd1"], whole, sqrt(total))
    assert close(scores["hd1_norm"], whole / sqrt(total))
    assert close(scores["hd3"], np.mean([hd(case.data, after, (name,)) for name in moved]), sqrt(total))
    assert close(scores["hd2(min_cell=2)"], hd(case.data, after, moved, 2), sqrt(total))


@examples(24)
@given(cases(least=2))
def test_the_worst_cell_follows_its_definition_and_of_several_tables_is_the_largest(case: Case) -> None:
    after, names = case.plan.apply(case.data), case.data.keys
    tables = {(first, second): f"worst_cell(`{first}`*`{second}`, floor=2)" for first, second in combinations(names, 2)}
    scores = qd.score(case.data, case.plan, ["worst_cell(2-way, floor=2)", *tables.values()] if tables else ["hd1"])
    truth = {address: oracles.worst_cell(case.data, after, pair, 2) for pair, address in tables.items()}
    for address, value in truth.items():
        assert close(scores[address], value, value or 0), address
    if tables:
        defined = [value for value in truth.values() if value is not None]
        largest = max(defined) if defined else None
        assert close(scores["worst_cell(2-way, floor=2)"], largest, largest or 0)


def hd(before: Data, after: Data, names: tuple[str, ...], least: int = 0) -> float | None:
    was, now, count = oracles.table(before, names), oracles.table(after, names), oracles.counts(before, names)
    cells = [cell for cell in was.keys() | now.keys() if count[cell] > least or not least]
    if not cells:
        return None
    return sqrt(sum((sqrt(was[cell]) - sqrt(now[cell])) ** 2 for cell in cells) / 2)


@examples(24)
@given(cases(least=2, most=5))
def test_relative_differences_of_associations_follow_their_definition(case: Case) -> None:
    after = case.plan.apply(case.data)
    scores = qd.score(case.data, case.plan, ["c_ard", "v_ard"])
    for address, coefficient in (("c_ard", oracles.contingency), ("v_ard", signed_v)):
        found = []
        for pair in combinations(coded(case.data), 2):
            was, now = known(case.data, pair), known(after, pair)
            if was == now or not was or not now:
                continue
            old, new = coefficient(was), coefficient(now)
            if old is None or new is None:
                continue
            if shape(was) != shape(now):
                old, new = abs(old), abs(new)
            if abs(old) > 1e-12 and abs(old - new) > 1e-12:
                found.append(abs(old - new) / abs(old))
        value = np.mean(found) if found else None
        assert close(scores[address] or None, value, scale_of(scores, address), 1e-10), address


def known(data: Data, pair: tuple[str, str]) -> dict:
    """A weighted table without records that miss either variable."""
    valid = [set(data[name].variable.categories) for name in pair]
    cells = oracles.table(data, pair)
    return type(cells)({cell: w for cell, w in cells.items() if w and cell[0] in valid[0] and cell[1] in valid[1]})


def shape(cells: dict) -> tuple[set, set]:
    return {cell[0] for cell in cells}, {cell[1] for cell in cells}


def signed_v(cells: dict) -> float | None:
    rows, columns = (sorted(side, key=str) for side in shape(cells))
    if len(rows) != 2 or len(columns) != 2:
        return oracles.cramers_v(cells)
    (a, b), (c, d) = [[float(cells[r, k]) for k in columns] for r in rows]
    return (a * d - b * c) / sqrt((a + b) * (c + d) * (a + c) * (b + d))


@examples(10)
@given(surveys())
def test_an_empty_plan_changes_nothing_and_says_so(case: Case) -> None:
    scores = qd.score(case.data, qd.Plan([], data=case.data), UTILITY)
    assert {scores[address] for address in UTILITY} == {0}
    assert {scores.note(address) for address in UTILITY} == {NOTHING_CHANGED}
