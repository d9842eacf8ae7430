"""Law 4 for the risk measures that count records in small cells."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import oracles
import quadrille as qd
from oracles import close
from strategies import Case, cases, coded

RISK = ("small_cells", "exposed", "confidence")


def truth(case: Case, after: qd.Data, names: list[str], n: int, keep: np.ndarray) -> dict[str, float | None]:
    """The three measures by their definitions, over the records kept."""
    rows = np.flatnonzero(keep).tolist()
    old, new = oracles.records(case.data, names), oracles.records(after, names)
    f, g = Counter(old[i] for i in rows), Counter(new[i] for i in rows)
    swapped = set(case.plan.rows.tolist())
    unswapped = [i for i in rows if i not in swapped]
    small = [cell for cell in g if g[cell] < n]
    genuine, shown = sum(min(f[cell], g[cell]) for cell in small), sum(g[cell] for cell in small)
    return {
        "small_cells": sum(g[new[i]] < n for i in unswapped) / len(unswapped) if unswapped else None,
        "exposed": genuine / len(rows) if rows else None,
        "confidence": genuine / shown if shown else None,
    }


@given(cases(), st.data())
def test_risk_follows_its_definitions_for_any_margin_bound_and_mask(case: Case, draw: st.DataObject) -> None:
    names = draw.draw(st.lists(st.sampled_from(coded(case.data)), min_size=1, unique=True))
    n = draw.draw(st.integers(2, 6))
    some = draw.draw(st.lists(st.booleans(), min_size=case.data.n, max_size=case.data.n))
    keep = np.array(some) | draw.draw(st.booleans())
    after = case.plan.apply(case.data)
    swapped = np.isin(np.arange(case.data.n), case.plan.rows)
    addresses = {measure: f"{measure}({'*'.join(names)}, n={n})" for measure in RISK}
    plan = qd.score(case.data, case.plan, list(addresses.values()), where=keep)
    files = qd.score(case.data, after, list(addresses.values()), swapped=swapped, where=keep)
    expected = truth(case, after, names, n, keep)
    for measure, address in addresses.items():
        assert close(plan[address], expected[measure]), address
        assert close(files[address], expected[measure]), address
        assert plan[address] is not None or plan.note(address)


@given(cases(largest=30), st.sampled_from(RISK))
def test_risk_measures_pass_the_battery_for_measures(case: Case, measure: str) -> None:
    assert (
        qd.testing.check_measure(measure, case.data, case.plan)[measure]
        == qd.score(case.data, case.plan, [measure])[measure]
    )


@given(cases())
def test_without_knowing_who_was_swapped_the_n_rule_is_undefined_with_a_reason(case: Case) -> None:
    scores = qd.score(case.data, case.plan.apply(case.data), list(RISK))
    assert scores["small_cells"] is None
    assert "swapped" in scores.note("small_cells")
    assert scores["exposed"] is not None
