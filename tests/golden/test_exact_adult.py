"""Designed swaps of two sparse files, Adult in eight and in nine variables: at least what a first search reached."""

from __future__ import annotations

from functools import cache

import pytest
from bench.compare_methods import adult_eight, adult_nine

import quadrille as qd

FIGURES = {
    "eight": [
        ("1-way", {}, 0.0039, 0.240),
        ("2-way", {}, 0.045, 0.218),
        ("2-way", {"price": 0.7}, 0.052, 0.194),
        ("3-way", {}, 0.110, 0.167),
        ("2-way", {"new_cells": True}, 0.0126, 0.279),
    ],
    "nine": [("1-way", {"price": 0.5}, 0.072, 0.291), ("2-way", {"price": 0.7}, 0.165, 0.228)],
}
"""What is kept, how, and what was printed for it: exposed, and the Hellinger distance of the table of all variables."""


@cache
def adult(variables: str) -> qd.Data:
    return adult_eight() if variables == "eight" else adult_nine()


@pytest.mark.parametrize(
    ("variables", "occupied", "small", "exposed"), [("eight", 10_170, 7_325, 0.182), ("nine", 16_576, 13_225, 0.317)]
)
def test_the_files_are_as_sparse_as_printed(variables: str, occupied: int, small: int, exposed: float) -> None:
    data = adult(variables)
    found = data.frame().group_by(data.columns).len()["len"]
    few = found.filter(found < 3)
    assert (len(found), len(few)) == (occupied, small)
    assert few.sum() / data.n == pytest.approx(exposed, abs=5e-4)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("variables", "keep", "settings", "exposed", "hellinger"),
    [(variables, *row) for variables, rows in FIGURES.items() for row in rows],
)
def test_neither_more_is_exposed_nor_more_lost_than_printed(
    variables: str, keep: str, settings: dict[str, object], exposed: float, hellinger: float
) -> None:
    data = adult(variables)
    plan = qd.DesignedSwap(keep=keep, inference=0.0, seed=1, **settings).plan(data)
    scores = qd.score(data, plan, ["exposed", "hellinger", "hellinger(2-way)"])
    assert scores["exposed"] <= exposed and scores["hellinger"] <= hellinger
    assert keep == "1-way" or scores["hellinger(2-way)"] == 0
