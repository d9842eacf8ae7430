"""Every measure on files at the edge: extreme weights, infinite and missing numbers, cells that appear and vanish."""

from __future__ import annotations

import math
import warnings
from math import sqrt

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import oracles
import quadrille as qd
from effort import examples
from oracles import PAIR_MEASURES, TABLE_MEASURES, close, differences, matrices
from quadrille.data import Column, Data
from quadrille.errors import QuadrilleError
from quadrille.measure import MEASURES
from quadrille.measure.base import NOTHING_CHANGED
from quadrille.score.evaluator import Evaluator
from strategies import coded, column, feasible, files, numbers, recipes

EDGES = [0.0, -0.0, 1.0, -1.0, 1e-100, -1e-100, 1e-150, 1e300, -1e300, 1.7e308, math.inf, -math.inf, math.nan, 1 / 3]
"""Numbers whose squares leave the range of numbers, and small ones whose squares do not."""
ORDINARY = [0.0, 1.0, 2.5, -3.0, math.nan]


@st.composite
def extremes(draw: st.DrawFn) -> Data:
    """A file with two numbers, each ordinary or of any size, and with weights of any size or none."""
    weights = (None, "integers", "floats", "extreme", "zeros")
    data = draw(files(least=2, most=3, largest=24, wide=False, numeric=False, weights=weights))
    pools = [draw(st.sampled_from([EDGES, ORDINARY, EDGES[:10]])) for _ in "xy"]
    columns = [
        numbers(name, np.array(draw(st.lists(st.sampled_from(pool), min_size=data.n, max_size=data.n))), role="outcome")
        for name, pool in zip("xy", pools, strict=True)
    ]
    return Data([*(data[name] for name in data.columns), *columns], weight=data.weight)


def addresses(data: Data) -> list[str]:
    """Each measure as it is, and those of tables for a pair."""
    pair = "*".join(coded(data)[:2])
    return [
        *MEASURES,
        f"hellinger({pair})",
        f"total_variation({pair})",
        "r_ased(x*y)",
        "ased_reg(x ~ y)",
        "ordinal_shift",
    ]


def unchanged_beyond_range(address: str, data: Data, plan: qd.Plan) -> bool:
    """Where squares leave the range of numbers, only the plan knows that nothing of it changed; two files do not."""
    evaluator, swapped = Evaluator(data, [address]), np.isin(np.arange(data.n), plan.rows)
    scores, files = evaluator.score(plan), evaluator.compare(plan.apply(data), swapped, moved=plan.columns)
    beyond = any(np.abs(data[name].values[np.isfinite(data[name].values)]).max(initial=0) > 1e150 for name in "xy")
    return beyond and files[address] is None and scores.note(address) == NOTHING_CHANGED


@examples(10)
@given(extremes(), st.data())
def test_every_measure_obeys_its_laws_or_refuses_in_words_and_never_warns(data: Data, draw: st.DataObject) -> None:
    recipe = draw.draw(recipes(data))
    try:
        plan = feasible(recipe, data).plan(data)
    except QuadrilleError as error:  # a weight that counts as nothing, for instance
        assert str(error)
        return
    for address in addresses(data):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                scores = qd.testing.check_measure(address, data, plan)
            except qd.testing.LawError as error:
                assert unchanged_beyond_range(address, data, plan), f"{address}: {error}"
                continue
            except QuadrilleError as error:
                assert len(str(error)) > 10, address
                continue
        value = scores[address]
        assert value is None or not math.isnan(value), address
        assert value is not None or scores.note(address), address


@st.composite
def two_files(draw: st.DrawFn) -> tuple[Data, Data]:
    """Two files of the same columns whose cells, weights and numbers of records have little in common."""
    categories = draw(st.integers(2, 4))
    weighted = draw(st.booleans())

    def one() -> Data:
        n = draw(st.integers(1, 14))
        few = draw(st.lists(st.integers(0, categories - 1), min_size=1, max_size=categories, unique=True))
        made: list[Column] = [
            column(name, np.array(draw(st.lists(st.sampled_from(few), min_size=n, max_size=n))), categories)
            for name in "AB"
        ]
        if weighted:
            powers = draw(st.lists(st.integers(-6, 6), min_size=n, max_size=n))
            made.append(numbers("w", np.array([10.0**power for power in powers]), role="weight"))
        return Data(made, weight="w" if weighted else None)

    return one(), one()


@examples(36)
@given(two_files())
def test_cells_that_appear_and_vanish_are_counted_as_the_definitions_have_it(files: tuple[Data, Data]) -> None:
    before, after = files
    tables = oracles.table(before, "AB"), oracles.table(after, "AB")
    measures = {f"{name}(A*B)": how for name, how in (TABLE_MEASURES | PAIR_MEASURES).items()}
    scores = qd.score(before, after, list(measures))
    for address, how in measures.items():
        truth = 0.0 if +tables[0] == +tables[1] else how(*tables)
        assert close(scores[address], truth, 10.0), address


@examples(36)
@given(two_files())
def test_differences_of_cells_that_appear_and_vanish_are_those_of_the_definitions(files: tuple[Data, Data]) -> None:
    before, after = files
    tables = oracles.table(before, "AB"), oracles.table(after, "AB")
    f, g = matrices(*tables)
    truth = {f"{name}(A*B)": found for name, found in differences(f, g).items()}
    weights, largest = float(f.sum() + g.sum()), oracles.worst_cell(before, after, "AB", 10)
    whole = oracles.hd1(*tables)
    assert whole is not None and largest is not None
    truth |= {"hd1": (whole, sqrt(weights)), "hd1_norm": (whole / sqrt(weights / 2), 10.0)}
    truth |= {"worst_cell(A*B)": (largest, largest)}
    scores = qd.score(before, after, list(truth), moved=("A", "B"))
    for address, (value, scale) in truth.items():
        assert close(scores[address], value, 10 * scale), address
