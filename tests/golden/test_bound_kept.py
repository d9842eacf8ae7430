"""What it costs to keep tables of CPS-8d exactly: the least Hellinger distance, and how near designs come to it."""

from __future__ import annotations

import pytest

import quadrille as qd
from quadrille.theory import bound_for, least_loss

EXPOSED = [0.0074, 0.0021, 0.0010, 0.0001, 0.0]


@pytest.mark.parametrize(
    ("margins", "least"),
    [
        ("1-way", (0.0145, 0.0419, 0.0460, 0.0493, 0.0497)),
        ("2-way", (0.0169, 0.0465, 0.0512, 0.0547, 0.0551)),
        ("3-way", (0.0211, 0.0493, 0.0538, 0.0572, 0.0576)),
    ],
)
def test_what_exact_tables_cost(cps8d: qd.Data, margins: str, least: tuple[float, ...]) -> None:
    """The values that the page on designed swapping prints."""
    bound = least_loss(cps8d, EXPOSED, margins=margins)
    assert {point.status for point in bound.points} == {"bound"}
    assert bound.at(EXPOSED) == pytest.approx(least, abs=0.00006)


@pytest.mark.parametrize("keep", ["1-way", "2-way", "3-way", "logit(AnnSal)"])
def test_a_design_that_keeps_tables_is_above_their_bound(cps8d: qd.Data, keep: str) -> None:
    """A short search comes within a fifth of it."""
    recipe = qd.DesignedSwap(keep=keep, effort=0.1, seed=12)
    scores = qd.score(cps8d, recipe.plan(cps8d), ["exposed", "hellinger"])
    exposed, hellinger = scores["exposed"], scores["hellinger"]
    assert exposed is not None
    assert hellinger is not None
    bound = bound_for(recipe, cps8d, exposed)
    assert bound.margins == keep
    assert bound.points[0].status == "bound"
    assert 1 <= float(bound.gap(exposed, hellinger)) < 1.2
