"""Law 4 for the six differences between tables of areas and levels, and their sums over areas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
import quadrille as qd
from effort import examples
from oracles import close, differences, matrices
from quadrille.data import Data
from quadrille.measure.base import EMPTY, NOTHING_CHANGED
from strategies import Case, cases, coded, file_of, restrictions

CELLS = ("chi_square", "effective_swap_rate", "deviance")
DIVERSITY = ("gini_difference", "shannon_difference", "renyi_difference")
DIFFERENCE = (*CELLS, *DIVERSITY)
EXACT = (None, None, "integers", "decimals", "zeros")
"""Weights that are whole numbers of ticks; others are rounded before anything is counted."""


def agrees(plan: qd.Scores, files: qd.Scores, address: str, f: np.ndarray, g: np.ndarray) -> None:
    if not f.sum() or not g.sum():
        assert plan[address] is files[address] is None
        assert plan.note(address) == EMPTY
        return
    truth, scale = differences(f, g)[address.partition("(")[0]]
    assert close(plan[address], truth, scale), address
    assert close(files[address], truth, scale), address
    assert plan.note(address) == files.note(address)
    assert (plan.note(address) == NOTHING_CHANGED) == np.array_equal(f, g)


@examples(36)
@given(cases(weights=EXACT), st.data())
def test_differences_follow_their_definitions(case: Case, draw: st.DataObject) -> None:
    names = draw.draw(st.lists(st.sampled_from(coded(case.data)), min_size=1, max_size=4, unique=True))
    condition = draw.draw(st.one_of(st.none(), restrictions(case.data)))
    after = case.plan.apply(case.data)
    keep = [condition and oracles.meets(data, condition.allowed) for data in (case.data, after)]
    rest = f", where={condition.text}" if condition else ""
    addresses = [f"{measure}({'*'.join(names)}{rest})" for measure in DIFFERENCE]
    plan, files = qd.score(case.data, case.plan, addresses), qd.score(case.data, after, addresses)
    tables = (oracles.table(data, names, some) for data, some in zip((case.data, after), keep, strict=True))
    f, g = matrices(*tables)
    for address in addresses:
        agrees(plan, files, address, f, g)
    if f.sum() and g.sum():
        for address in (addresses[0], addresses[2]):
            assert plan.results[address][1].detail["zero_cells"] == ((f == 0) & (g > 0)).sum()


@examples(24)
@given(cases(weights=EXACT))
def test_without_a_margin_the_first_key_variable_is_the_area(case: Case) -> None:
    after = case.plan.apply(case.data)
    plan, files = qd.score(case.data, case.plan, DIFFERENCE), qd.score(case.data, after, DIFFERENCE)
    keys = coded(case.data)
    for measure in DIFFERENCE:
        agrees(plan, files, measure, *matrices(oracles.table(case.data, keys), oracles.table(after, keys)))


@examples(24)
@given(cases(least=2, most=5, largest=30), st.data())
def test_differences_pass_the_battery_for_measures(case: Case, draw: st.DataObject) -> None:
    names = draw.draw(st.lists(st.sampled_from(coded(case.data)), min_size=1, max_size=3, unique=True))
    for measure in DIFFERENCE:
        for address in (measure, f"{measure}({'*'.join(names)})"):
            qd.testing.check_measure(address, case.data, case.plan)
    qd.testing.check_measure(f"{draw.draw(st.sampled_from(DIFFERENCE))}(2-way)", case.data, case.plan)


@examples(24)
@given(cases(least=2, most=3, weights=EXACT, wide=False), st.data())
def test_sums_over_the_areas_are_the_whole(case: Case, draw: st.DataObject) -> None:
    area, level = draw.draw(st.permutations(coded(case.data)))[:2]
    after = case.plan.apply(case.data)
    before, now = (oracles.table(data, (area, level)) for data in (case.data, after))
    totals = [{a: sum(v for c, v in t.items() if c[0] == a) for a, _ in t} for t in (before, now)]
    areas = [a for a in totals[0] if totals[0][a]]
    if {a for a in totals[1] if totals[1][a]} != set(areas):  # an area that comes or goes has no score of its own
        return
    whole = {m: qd.score(case.data, case.plan, [f"{m}({area}*{level})"])[f"{m}({area}*{level})"] for m in DIFFERENCE}
    parts = dict.fromkeys(DIFFERENCE, 0.0)
    total = float(sum(totals[0].values()))
    cubes = 0.0
    for a in areas:
        value = "" if a is None else a
        address = {m: f"{m}({area}*{level}, where=`{area}`='{value}')" for m in DIFFERENCE}
        scores = qd.score(case.data, case.plan, list(address.values()))
        for m in ("chi_square", "deviance", "gini_difference", "shannon_difference"):
            parts[m] += scores[address[m]]
        parts["effective_swap_rate"] += scores[address["effective_swap_rate"]] * float(totals[0][a]) / total
        own = sum((float(v) / float(totals[0][a])) ** 3 for c, v in before.items() if c[0] == a)
        cubes += own
        parts["renyi_difference"] += own * np.exp(2 * scores[address["renyi_difference"]])
    parts["renyi_difference"] = np.log(parts["renyi_difference"] / cubes) / 2
    for m in DIFFERENCE:
        size = max(total, abs(whole[m])) if m in CELLS else len(areas) * 10
        assert close(parts[m], whole[m], size), m


@pytest.mark.parametrize("weighted", [False, True])
def test_an_infinite_difference_is_one_with_zero_cells(weighted: bool) -> None:
    random = np.random.default_rng(5)
    seen = set()
    for seed in range(30):
        data = table_file(random, weighted=weighted)
        plan = qd.RandomSwap(["tract"], pairs=3, seed=seed).plan(data)
        for measure in ("chi_square", "deviance"):
            plain, endless = f"{measure}(tract*race)", f"{measure}(tract*race, infinite=1)"
            scores = qd.score(data, plan, [plain, endless])
            zero = scores.results[plain][1].detail["zero_cells"]
            assert np.isfinite(scores[plain])
            assert scores[endless] == (np.inf if zero else scores[plain])
            assert ("empty before" in scores.note(plain)) == (zero > 0)
            seen.add(zero > 0)
    assert seen == {False, True}


def table_file(random: np.random.Generator, *, weighted: bool) -> Data:
    weight = random.integers(1, 9, 40) if weighted else None
    return file_of(weight, tract=np.arange(40) % 4, race=random.choice(5, 40, p=[0.5, 0.3, 0.1, 0.07, 0.03]))
