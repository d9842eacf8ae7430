"""Plausibility rules in designed pairs: no move creates a violation, and the plan tells what the rules exclude."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
import pytest

import quadrille as qd
from quadrille.errors import InputError, ParameterError
from quadrille.expressions import Rules
from quadrille.swap.designed.pairs import DesignedPairs

RULES = ["Age=<25 & AnnSal=50K+", "Edu=<HS & EmpTyp=Govt"]


@pytest.mark.parametrize("more", [{}, {"different": ["MS"]}, {"together": [["Age", "MS"]]}, {"treatment": "either"}])
@pytest.mark.parametrize("seed", [1, 2])
def test_no_record_comes_to_break_a_rule(cps8d: qd.Data, more: dict[str, object], seed: int) -> None:
    free = DesignedPairs(seed=seed, **more).plan(cps8d)
    ruled = DesignedPairs(rules=RULES, seed=seed, **more).plan(cps8d)
    rules = Rules.of(cps8d, RULES, "test")
    assert all(rules.created(free))
    assert rules.created(ruled) == (0, 0)
    assert ruled.details is not None
    assert free.details is not None
    assert ruled.details.facts["exposed_after"] >= free.details.facts["exposed_after"]


def test_the_excluded_pairs_are_counted_one_by_one() -> None:
    rng = np.random.default_rng(3)
    frame = pl.DataFrame({name: rng.integers(0, 3, 60) for name in "abc"})
    data = qd.from_frame(frame)
    rule = "a=0 & b=1"
    plan = DesignedPairs(["a"], n=2, rules=[rule], different=["c"], seed=1).plan(data)
    assert plan.details is not None
    a, b, c = (frame[name].to_numpy() for name in "abc")
    possible = excluded = 0
    for i, j in combinations(range(60), 2):
        if a[i] != a[j] and c[i] != c[j]:
            possible += 1
            new = [(a[j], b[i], a[i]), (a[i], b[j], a[j])]
            excluded += any(got == 0 and stays == 1 and had != 0 for got, stays, had in new)
    facts = plan.details.facts
    assert (facts["pairs_without_rules"], facts["pairs_excluded"]) == (possible, excluded)


def test_bad_rules_are_refused(cps8d: qd.Data) -> None:
    with pytest.raises(ParameterError, match="rules"):
        DesignedPairs(rules=[""])
    with pytest.raises(InputError, match="nobody"):
        DesignedPairs(rules=["nobody=1"], seed=1).plan(cps8d)


def test_recipes_without_rules_keep_their_identity() -> None:
    assert "rules" not in DesignedPairs(seed=1).to_json()
    assert qd.Recipe.from_json(DesignedPairs(rules=RULES, seed=1).to_json()) == DesignedPairs(rules=RULES, seed=1)
