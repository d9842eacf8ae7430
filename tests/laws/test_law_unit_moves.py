"""Moves of whole units: a permutation of units, expanded to rows once, which every measure follows."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quadrille as qd
from effort import examples
from oracles import counts, records
from quadrille.data import Data
from quadrille.errors import InputError, QuadrilleError
from quadrille.measure import MEASURES
from quadrille.plan import Move
from strategies import column, numbers

OF_UNITS = ("county", "tract", "type")
OF_FILES = {"population_risk", "ordinal_shift", "r_ased", "ased_reg", "c_ard", "v_ard"}
"""Measures with an address of their own here, or none: a sample's risk is that of a file whose sampling is known."""
ADDRESSES = [
    *(name + margin for name in MEASURES if name not in OF_FILES for margin in ("", "(type*sex*age)")),
    *("ordinal_shift(type)", "c_ard", "v_ard", "r_ased(type*age)", "hellinger(2-way)"),
]


def households(random: np.random.Generator, count: int, *, weight: bool = False, sizes: int = 5) -> Data:
    """Persons of some households whose rows are scattered; tracts lie in counties, and both belong to households."""
    of = random.permutation(np.repeat(np.arange(count), random.integers(1, sizes + 1, count)))
    tract, kind = random.integers(0, 6, count), random.integers(0, 3, count)
    columns = [
        column("hh", of),
        column("county", (tract // 2)[of], 3),
        column("tract", tract[of], 6),
        column("type", kind[of], 3, kind="ordinal"),
        column("age", random.integers(0, 4, len(of)), 4),
        column("sex", random.integers(0, 2, len(of)), 2),
    ]
    if weight:
        columns.append(numbers("w", random.integers(1, 9, len(of)) / 4, role="weight"))
    roles = {"hh": ("unit", None), "county": ("geography", 1), "tract": ("geography", 2)}
    return Data(
        [
            replace(c, variable=replace(c.variable, role=roles[c.variable.name][0], level=roles[c.variable.name][1]))
            if c.variable.name in roles
            else c
            for c in columns
        ]
    )


@st.composite
def moved(draw: st.DrawFn) -> tuple[Data, qd.Plan]:
    """A file of households and a plan that exchanges some of them, or sends them round."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    data = households(random, draw(st.integers(3, 25)), weight=draw(st.booleans()))
    units, columns = data.units("hh"), ("tract", "county") if draw(st.booleans()) else OF_UNITS
    drawn = random.permutation(units.count)[: draw(st.integers(2, units.count))]
    if draw(st.booleans()):
        plan = qd.Plan.of_unit_pairs(data, columns, "hh", drawn[: len(drawn) // 2 * 2].reshape(-1, 2))
    else:
        plan = qd.Plan([Move(columns, (drawn, np.roll(drawn, 1)), units=units)], data=data)
    return data, plan


@given(moved())
def test_units_move_whole_and_their_table_stays(case: tuple[Data, qd.Plan]) -> None:
    data, plan = case
    units, after = data.units("hh"), plan.apply(data)
    assert not any(units.mixed(after[name].values).any() for name in OF_UNITS)
    still = [name for name in data.columns if name not in plan.columns]
    assert records(data, still) == records(after, still)
    one_each = [file.take(units.first) for file in (data, after)]
    assert counts(one_each[0], plan.columns) == counts(one_each[1], plan.columns)
    assert {(row[0], row[1]) for row in records(after, ["county", "tract"])} <= set(records(data, ["county", "tract"]))
    assert plan.units is not None
    assert plan.rows.tolist() == np.flatnonzero(np.isin(units.of, plan.units)).tolist()
    assert plan.pairs is None


@given(moved())
def test_unit_plans_are_plain_algebra(case: tuple[Data, qd.Plan]) -> None:
    data, plan = case
    after = plan.apply(data)
    assert plan.after == after.fingerprint
    assert plan.inverse().apply(after) == data
    assert pickle.loads(pickle.dumps(plan)) == plan
    drawn = np.random.default_rng(1).permutation(data.units("hh").count)[:2].reshape(1, 2)
    second = qd.Plan.of_unit_pairs(after, ["type", "tract", "county"], "hh", drawn)
    both = plan.then(second)
    assert both.apply(data) == second.apply(after)
    assert plan.then(plan.inverse()).apply(data) == data


@given(moved())
def test_the_account_counts_units_and_records(case: tuple[Data, qd.Plan]) -> None:
    data, plan = case
    units, report, after = data.units("hh"), plan.report(data), plan.apply(data)
    assert report.units is not None and plan.units is not None
    was, now = (records(file, OF_UNITS) for file in (data, after))
    differs = [a != b for a, b in zip(was, now, strict=True)]
    assert report.changed == sum(differs)
    assert report.units.changed == int(np.array(differs)[units.first].sum())
    assert (report.units.n, report.units.units, report.records) == (units.count, len(plan.units), len(plan.rows))
    pairs = plan.unit_pairs
    assert report.pairs == report.units.pairs == (None if pairs is None else len(pairs))
    if pairs is not None:
        assert report.units.unequal == int((units.sizes[pairs[:, 0]] != units.sizes[pairs[:, 1]]).sum())


@examples(24)
@given(moved(), st.sampled_from(ADDRESSES))
def test_every_measure_follows_moves_of_units(case: tuple[Data, qd.Plan], address: str) -> None:
    qd.testing.check_measure(address, *case)


def test_what_members_do_not_share_cannot_move_with_units() -> None:
    data = households(np.random.default_rng(2), 20)
    mixed = int(data.units("hh").mixed(data["age"].values).sum())
    with pytest.raises(InputError, match=rf"Column 'age' differs within {mixed} of 20 units"):
        qd.Plan.of_unit_pairs(data, ["tract", "age"], "hh", np.array([[0, 1]]))


def test_rows_and_units_do_not_compose_on_one_column() -> None:
    data = households(np.random.default_rng(2), 20)
    first = qd.Plan.of_unit_pairs(data, ["type"], "hh", np.array([[0, 1]]))
    second = qd.Plan.of_pairs(first.apply(data), ["type"], np.array([[0, 5]]))
    with pytest.raises(QuadrilleError, match="'type' moves with units in one plan, and otherwise in the other"):
        first.then(second)
    apart = qd.Plan.of_pairs(first.apply(data), ["sex"], np.array([[0, 5]]))
    assert first.then(apart).apply(data) == apart.apply(first.apply(data))
