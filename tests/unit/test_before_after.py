"""Before and after: percents from whole ticks, means, standard errors and flags, and a reason for what is undefined."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from math import sqrt

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quadrille as qd
from effort import examples
from quadrille.data import Data
from quadrille.errors import InputError, MismatchError, ParameterError
from quadrille.plan import Move, Plan
from quadrille.score import estimates
from quadrille.score.estimates import before_after
from strategies import file_of, numbers

SEEDS = st.integers(0, 2**32 - 1)
BOOK = qd.Codebook(
    (
        qd.Variable("race", "nominal", ("a", "b", "c"), missing=("?",)),
        qd.Variable("age", "ordinal", (1, 2, 3, 10)),
        qd.Variable("score", "numeric", missing=(-9.0,), role="outcome"),
        qd.Variable("reading", "numeric", role="outcome"),
    )
)


def school(seed: int, n: int = 300) -> Data:
    dice = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "race": dice.choice(["a", "b", "c", "?"], n, p=[0.6, 0.25, 0.1, 0.05]),
            "age": dice.choice([1, 2, 3, 10], n),
            "score": np.where(dice.random(n) < 0.1, -9.0, dice.normal(250, 40, n)),
            "reading": dice.normal(0, 1, n),
            "h": dice.integers(0, 5, n).astype(str),
            "p": dice.integers(0, 3, n).astype(str),
            "w": dice.integers(1, 90_000, n) / 100,
        }
    )
    frame = frame.with_columns(reading=pl.when(pl.int_range(n) % 7 == 0).then(None).otherwise("reading"))
    return qd.from_frame(frame, codebook=BOOK, weight="w")


def swap(data: Data, *columns: str, pairs: int = 40, seed: int = 1) -> Plan:
    return qd.RandomSwap(list(columns or ("race", "age")), pairs=pairs, seed=seed).plan(data)


def recomputed(data: Data, name: str, outcome: str | None) -> dict[str, float]:
    """Percents or means from the frame of a file, by a query."""
    frame = data.frame().with_columns(pl.col(name).cast(pl.String))
    if outcome is None:
        total = frame["w"].sum()
        rows = frame.group_by(name).agg(value=100 * pl.col("w").sum() / total)
    else:
        known = frame.filter(pl.col(outcome).is_not_null() & (pl.col(outcome) != -9.0))
        rows = known.group_by(name).agg(value=(pl.col("w") * pl.col(outcome)).sum() / pl.col("w").sum())
    return dict(rows.rows())


@examples(16)
@given(SEEDS, st.sampled_from([("race",), ("age", "race"), ("score",), ("race", "reading")]))
def test_percents_and_means_equal_those_of_the_two_files(seed: int, columns: tuple[str, ...]) -> None:
    data = school(seed)
    plan = swap(data, *columns, seed=seed % 1000)
    found = before_after(data, plan, variables=["race", "age"])
    after = plan.apply(data)
    assert len(found.estimates) == found.percents().height + found.means().height
    for name in ("race", "age"):
        for outcome in (None, "score", "reading"):
            was, now = recomputed(data, name, outcome), recomputed(after, name, outcome)
            rows = [e for e in found.estimates if (e.variable, e.outcome) == (name, outcome)]
            assert {e.category for e in rows} == set(was)
            for e in rows:
                assert e.before == pytest.approx(was[e.category], rel=1e-9, abs=1e-9)
                assert e.after == pytest.approx(now[e.category], rel=1e-9, abs=1e-9)


def oracle_se(data: Data, name: str, category: str, outcome: str | None) -> float:
    """The standard error from the frame, record by record and unit by unit."""
    frame = data.frame()
    w, here = frame["w"].to_numpy(), frame[name].cast(pl.String).to_numpy() == category
    x = np.ones(len(w)) if outcome is None else here.astype(float)
    y = here.astype(float)
    if outcome is not None:
        values = frame[outcome].to_numpy()
        known = ~np.isnan(values) & (values != -9.0)
        x, y = x * known, np.where(known, values, 0) * here
    ratio = (w @ y) / (w @ x)
    units: dict[tuple[str, str], float] = {}
    for h, p, u in zip(frame["h"], frame["p"], w * (y - ratio * x) / (w @ x), strict=True):
        units[h, p] = units.get((h, p), 0.0) + u
    variance = 0.0
    for h in set(frame["h"]):
        totals = np.array([total for (stratum, _), total in units.items() if stratum == h])
        variance += 0.0 if len(totals) < 2 else len(totals) * totals.var(ddof=1)
    return float(np.sqrt(variance)) * (100 if outcome is None else 1)


@examples(16)
@given(SEEDS)
def test_standard_errors_are_those_of_the_design_and_grow_with_the_change(seed: int) -> None:
    data = school(seed, 200)
    found = before_after(data, swap(data, pairs=20), stratum="h", cluster="p")
    for e in found.estimates:
        if e.se_before is None or e.after is None:  # too few records of a rare category have a value
            assert e.reason and e.n < 10 and e.se_ratio is None
            continue
        assert e.se_before == pytest.approx(oracle_se(data, e.variable, e.category, e.outcome), rel=1e-6)
        assert e.before is not None and e.se_after is not None and e.se_ratio is not None
        assert e.se_after == pytest.approx(np.sqrt(e.se_before**2 + (e.after - e.before) ** 2), rel=1e-12)
        assert e.se_ratio == pytest.approx(e.se_after / e.se_before, rel=1e-12)
        assert e.se_ratio >= 1


@examples(16)
@given(SEEDS, st.integers(0, 100), st.floats(0, 0.3), st.floats(1, 1.5))
def test_flags_follow_their_limits(seed: int, min_cell: int, relative: float, ratio: float) -> None:
    data = school(seed, 150)
    found = before_after(data, swap(data), min_cell=min_cell, relative=relative, se_ratio=ratio)
    for e in found.estimates:
        if e.before is None or e.after is None:
            assert e.reason and e.n < 10 and not e.flagged
            continue
        gap = abs(e.after - e.before) / abs(e.before)
        assert e.differs == (gap > relative and e.n > min_cell)
        assert e.se_high == (None if e.se_ratio is None else e.se_ratio > ratio)
    marked = [e for e in found.estimates if e.differs or e.se_high]
    assert found.flags().height == len(marked)
    assert found.points()["flagged"].sum() == len(marked)


def test_the_usual_limits_are_ten_per_cent_45_records_and_1_1() -> None:
    # 46 records of weight 1 in category 1 and 46 in category 2; one heavy record moves a quarter of the weight.
    def flagged(n: int, heavy: float) -> tuple[bool | None, ...]:
        weight = np.ones(2 * n)
        weight[0] = heavy
        data = file_of(weight, A=np.repeat([0, 1], n))
        plan = Plan.of_pairs(data, ["A"], np.array([[0, n]]))
        return tuple(e.differs for e in before_after(data, plan).estimates)

    assert flagged(46, 6.0) == (False, True)  # 51 -> 46 is 9.8 %, 46 -> 51 is 10.9 %
    assert flagged(46, 7.0) == (True, True)  # 52 -> 46 is 11.5 %
    assert flagged(45, 7.0) == (False, False)


def test_nothing_moved_is_nothing_changed() -> None:
    data = school(3)
    found = before_after(data, Plan([], data=data), variables=["race"])
    assert all(e.before == e.after and e.se_ratio in (1.0, None) and not e.flagged for e in found.estimates)
    assert found.flags().is_empty() and "variable" in found.flags().columns
    empty = before_after(data, Plan([], data=data))
    assert empty.estimates == () and empty.percents().is_empty() and empty.flags().is_empty()
    assert "moves no categorical column" in empty.notes[0]


def test_percents_are_exact_in_whole_ticks() -> None:
    weight = np.array([0.1, 0.2, 0.3, 0.4])
    data = file_of(weight, A=[0, 0, 1, 1])
    found = before_after(data, Plan.of_pairs(data, ["A"], np.array([[0, 2]])))
    assert [(e.before, e.after) for e in found.estimates] == [(30.0, 50.0), (70.0, 50.0)]
    assert [e.relative for e in found.estimates] == [20 / 30, 20 / 70]


def test_missing_codes_are_rows_of_their_own_and_missing_outcomes_are_left_out_pair_by_pair() -> None:
    data = school(5)
    found = before_after(data, swap(data))
    rows = {e.category: e for e in found.estimates if e.variable == "race" and e.outcome is None}
    assert [name for name, e in rows.items() if e.missing] == ["?"]
    assert sum(e.before or 0 for e in rows.values()) == pytest.approx(100, abs=1e-9)
    frame = data.frame()
    for outcome in ("score", "reading"):
        for e in found.estimates:
            if (e.outcome, e.variable) == (outcome, "race"):
                here = frame.filter((pl.col("race") == e.category) & pl.col(outcome).is_not_null())
                assert e.n == here.filter(pl.col(outcome) != -9.0).height
                assert e.n < rows[e.category].n


def reasons(data: Data, plan: Plan, **design: str) -> dict[tuple[str, str | None], estimates.Estimate]:
    return {(e.category, e.outcome): e for e in before_after(data, plan, **design).estimates}  # type: ignore[arg-type]


def with_outcome(data: Data, values: object) -> Data:
    return Data([*(data[name] for name in data.columns), numbers("y", values, role="outcome")], weight=data.weight)


def test_what_cannot_be_computed_is_none_with_the_reason() -> None:
    data = file_of([1, 1, 0, 1, 1, 1, 1], A=[0, 0, 1, 2, 2, 3, 4])
    data = with_outcome(data, [5.0, 5.0, 7.0, 1.0, 4.0, 2.0, np.nan])
    rows = reasons(data, Plan([Move.exchange(["A"], np.array([[5, 3]]))], data=data))
    assert rows["A0", "y"].reason == estimates.ONE_VALUE and rows["A0", "y"].before == 5.0
    assert rows["A1", None].reason == estimates.NO_WEIGHT and rows["A1", None].before == 0.0
    assert rows["A1", None].se_before is None and rows["A1", None].differs is None
    assert rows["A1", "y"].reason == estimates.NO_WEIGHT and rows["A1", "y"].before is None
    assert rows["A2", "y"].reason == "" and rows["A2", "y"].se_before is not None
    assert rows["A3", "y"].reason == estimates.ONE_RECORD and rows["A3", "y"].se_ratio is None
    assert rows["A4", "y"].reason == estimates.NO_VALUE and rows["A4", "y"].before is None
    assert all(e.se_before != 0 and e.se_after != 0 for e in rows.values())


def test_degenerate_designs_give_a_reason_and_not_a_zero() -> None:
    data = file_of([1, 2, 3, 4], A=[0, 0, 1, 1], H=[0, 1, 2, 3], P=[0, 0, 1, 1])
    data = with_outcome(data, [1.0, 2.0, 4.0, 8.0])
    plan = Plan.of_pairs(data, ["A"], np.array([[0, 2]]))
    assert {e.reason for e in reasons(data, plan, stratum="H").values()} == {estimates.LONELY}
    inside = reasons(data, plan, cluster="P")
    assert inside["A0", "y"].reason == estimates.NO_VARIATION and inside["A0", "y"].se_before is None
    assert inside["A0", None].se_before is not None
    alone = file_of([1, 2, 3, 4], A=[0, 0, 0, 0], B=[0, 1, 0, 1])
    found = before_after(alone, Plan([], data=alone), variables=["A"])
    assert found.estimates[0].reason == estimates.EVERYBODY and found.estimates[0].se_before is None


def test_a_mean_of_zero_has_no_relative_difference_and_infinite_values_are_told() -> None:
    data = with_outcome(file_of([1, 1, 1, 1], A=[0, 0, 1, 1]), [-1.0, 1.0, 3.0, 4.0])
    rows = reasons(data, Plan.of_pairs(data, ["A"], np.array([[0, 2]])))
    assert (rows["A0", "y"].relative, rows["A0", "y"].differs) == (None, None)
    assert rows["A0", "y"].reason == estimates.FROM_ZERO and rows["A0", "y"].se_high is True
    endless = with_outcome(file_of([1, 1, 1, 1], A=[0, 0, 1, 1]), [np.inf, 1.0, 3.0, 4.0])
    assert reasons(endless, Plan([Move.exchange(["A"], np.array([[1, 2]]))], data=endless))["A0", "y"].reason == (
        estimates.NOT_FINITE
    )
    moved = reasons(endless, Plan([Move.exchange(["A"], np.array([[0, 2]]))], data=endless))
    assert (moved["A1", "y"].after, moved["A1", "y"].reason) == (None, estimates.NOT_FINITE_AFTER)
    unweighted = with_outcome(file_of([0, 1, 1, 1], A=[0, 0, 1, 1]), [np.inf, 1.0, 3.0, 4.0])
    rows = reasons(unweighted, Plan([Move.exchange(["A"], np.array([[1, 2]]))], data=unweighted))
    assert (rows["A0", "y"].before, rows["A0", "y"].reason) == (1.0, estimates.ONE_RECORD), "it has no weight"


def test_a_category_that_loses_its_weight_has_no_mean_after() -> None:
    data = with_outcome(file_of([1, 2, 0, 4], A=[0, 1, 1, 1]), [-1.0, 1.0, 3.0, 4.0])
    rows = reasons(data, Plan.of_pairs(data, ["A"], np.array([[0, 2]])))
    assert rows["A0", "y"].after is None and estimates.ONE_RECORD in rows["A0", "y"].reason
    assert rows["A0", None].after == 0.0


def test_a_large_offset_costs_no_digits() -> None:
    dice = np.random.default_rng(1)
    y = dice.normal(0, 1, 500)
    data = file_of(np.ones(500), A=dice.integers(0, 3, 500))
    plan = swap(data, "A")
    near, far = (
        before_after(with_outcome(data, y + offset), replan(plan, with_outcome(data, y + offset)))
        for offset in (0.0, 1e9)
    )
    for a, b in zip(near.estimates, far.estimates, strict=True):
        assert a.se_before == pytest.approx(b.se_before, rel=1e-6)


@pytest.mark.parametrize(("start", "step"), [(1.7e9, 1e-6), (1.7e18, 1000.0), (-4e15, 1.0), (0.0, 1e-100)])
def test_a_standard_error_far_below_the_size_of_the_values_is_found(start: float, step: float) -> None:
    # A timestamp: its spread is real, though a trillion times smaller than its distance from 0.
    places = np.random.default_rng(2).integers(0, 900, 400)
    y = start + step * places
    data = file_of(np.ones(400), A=np.arange(400) % 2)
    measured = with_outcome(data, y)
    found = before_after(measured, replan(swap(data, "A"), measured), variables=["A"])
    for code, mean in enumerate(e for e in found.estimates if e.outcome == "y"):
        inside = [Fraction(value) for value in y[code::2].tolist()]
        centre = sum(inside) / len(inside)
        # The linearised error of a mean, when the size of the category varies, in exact fractions.
        total = sum((value - centre) ** 2 for value in inside) * 400 / 399 / len(inside) ** 2
        scale = Fraction(step) ** 2
        assert mean.reason == ""
        assert mean.se_before is not None and mean.se_before / step == pytest.approx(sqrt(total / scale), rel=1e-9)


@pytest.mark.parametrize("heavy", [1e13, 1e15])
def test_the_percent_of_a_category_of_almost_no_weight_has_a_standard_error(heavy: float) -> None:
    data = file_of([heavy, heavy, heavy, 1, 2], A=[0, 0, 0, 1, 1])
    found = before_after(data, Plan([], data=data), variables=["A"])
    share = 3 / (3 * heavy + 3)
    z = [-share * heavy] * 3 + [1 - share, 2 * (1 - share)]
    truth = 100 * sqrt(5 / 4 * sum((value / (3 * heavy + 3)) ** 2 for value in z))
    assert found.estimates[1].reason == "" and found.estimates[1].se_before == pytest.approx(truth, rel=1e-3)


def replan(plan: Plan, data: Data) -> Plan:
    return Plan(plan.moves, data=data)


def test_the_result_says_which_design_it_assumes_and_writes_plain_json() -> None:
    data = school(7)
    found = before_after(data, swap(data))
    assert "no cluster was given" in found.design
    text = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert text["rules"] == {"min_cell": 45, "relative": 0.10, "se_ratio": 1.1}
    assert len(text["estimates"]) == len(found.estimates)
    assert list(found.percents().columns)[:4] == ["variable", "category", "missing", "n"]
    assert found.means().columns[0] == "outcome"


def test_outcomes_default_to_numeric_columns_with_that_role() -> None:
    data = school(7)
    plan = swap(data)
    assert set(before_after(data, plan).means()["outcome"]) == {"score", "reading"}
    assert set(before_after(data, plan, outcomes=["w"]).means()["outcome"]) == {"w"}
    assert before_after(data, plan, outcomes=[]).means().is_empty()
    bare = qd.datasets.cps8d()
    assert "no means" in before_after(bare, swap(bare, "MS")).notes[0]
    coded = Data([replace(data["race"], variable=replace(data["race"].variable, role="outcome")), data["age"]])
    assert "race: the outcome is categorical" in before_after(coded, swap(coded, "age")).notes[0]


def test_bad_calls_are_refused() -> None:
    data = school(7)
    plan = swap(data)
    with pytest.raises(InputError, match=r"no column 'agee' in before_after.*'age'"):
        before_after(data, plan, variables=["agee"])
    with pytest.raises(InputError, match="'score' is numeric"):
        before_after(data, plan, variables=["score"])
    with pytest.raises(InputError, match="'race' is categorical"):
        before_after(data, plan, outcomes=["race"])
    with pytest.raises(ParameterError, match="'variables'"):
        before_after(data, plan, variables="race")
    with pytest.raises(ParameterError, match="twice"):
        before_after(data, plan, variables=["race", "race"])
    with pytest.raises(ParameterError, match="'se_ratio'"):
        before_after(data, plan, se_ratio=0.9)
    with pytest.raises(ParameterError, match="'relative'"):
        before_after(data, plan, relative=float("nan"))
    with pytest.raises(ParameterError, match="'min_cell'"):
        before_after(data, plan, min_cell=-1)
    with pytest.raises(InputError, match="needs a plan"):
        before_after(data, qd.RandomSwap(["race"], pairs=3))  # type: ignore[arg-type]
    with pytest.raises(MismatchError):
        before_after(school(8), plan)
