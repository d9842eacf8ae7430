"""Conditions choose records, in measures and in `score`."""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl
import pytest

import quadrille as qd
from quadrille.errors import InputError
from quadrille.expressions import Condition, Where


def test_conditions_are_read_with_signs_alternatives_and_quotes() -> None:
    where = Where.parse("Sex=Male & Age!=<25|25-55 & `a=b`='x & y'")
    assert where.conditions == (
        Condition("Sex", ("Male",)),
        Condition("Age", ("<25", "25-55"), negated=True),
        Condition("a=b", ("x & y",)),
    )


@pytest.mark.parametrize("text", ["", "Sex", "=Male", "Sex=", "Sex=Male &"])
def test_a_condition_that_is_not_one_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="not understood"):
        Where.parse(text)


def test_an_unknown_category_is_refused_without_naming_any(cps8d: qd.Data) -> None:
    plan = qd.RandomSwap(["MS"], pairs=10, seed=1).plan(cps8d)
    with pytest.raises(InputError, match="does not have") as caught:
        qd.score(cps8d, plan, ["hellinger(MS*Race)"], where="Sex=Mail")
    assert "Female" not in str(caught.value)


def test_where_equals_scoring_the_two_files_cut_down_to_the_condition(cps8d: qd.Data) -> None:
    plan = qd.RandomSwap(["MS", "Sex"], pairs=2000, seed=1).plan(cps8d)
    after = plan.apply(cps8d)
    frames = [
        frame.filter((frame["Sex"] == "Male") & (frame["Age"] != "<25")) for frame in (cps8d.frame(), after.frame())
    ]
    small = [qd.from_frame(frame) for frame in frames]
    for measure in ("hellinger", "entropy_change", "cramers_v_change"):
        address = f"{measure}(MS*Race, where=Sex=Male & Age!=<25)"
        cut = qd.score(small[0], small[1], [f"{measure}(MS*Race)"])[f"{measure}(MS*Race)"]
        assert qd.score(cps8d, plan, [address])[address] == pytest.approx(cut, abs=1e-12)


def test_a_condition_for_all_measures_joins_that_of_a_measure(cps8d: qd.Data) -> None:
    plan = qd.RandomSwap(["MS"], pairs=2000, seed=1).plan(cps8d)
    own, both = "hellinger(MS*Race, where=Age!=<25)", "hellinger(MS*Race, where=Sex=Male & Age!=<25)"
    joined = qd.score(cps8d, plan, [own, "hellinger(MS*Race)"], where="Sex=Male")
    assert joined[own] == qd.score(cps8d, plan, [both])[both] != joined["hellinger(MS*Race)"]


def test_a_mask_and_the_condition_it_stands_for_agree_when_its_variable_stays(cps8d: qd.Data) -> None:
    plan = qd.RandomSwap(["MS"], pairs=2000, seed=1).plan(cps8d)
    mask = cps8d["Sex"].values == 0
    by_mask = qd.score(cps8d, plan, ["hellinger", "conditional_entropy"], where=mask)
    by_text = qd.score(cps8d, plan, ["hellinger", "conditional_entropy"], where="Sex=Male")
    assert by_mask["hellinger"] == pytest.approx(by_text["hellinger"], abs=1e-15)
    assert by_mask["conditional_entropy"] == pytest.approx(by_text["conditional_entropy"], abs=1e-15)
    again = qd.score(cps8d, plan.apply(cps8d), ["hellinger"], where=mask)
    assert again["hellinger"] == pytest.approx(by_mask["hellinger"], abs=1e-15)


@pytest.mark.parametrize("mask", [np.ones(3, dtype=bool), np.ones(48_842), [1, 0]])
def test_a_mask_of_the_wrong_length_or_type_is_refused(cps8d: qd.Data, mask: object) -> None:
    plan = qd.RandomSwap(["MS"], pairs=10, seed=1).plan(cps8d)
    with pytest.raises(InputError, match="true or false for each"):
        qd.score(cps8d, plan, ["hellinger"], where=mask)  # type: ignore[arg-type]


def widowed_twice(kind: Literal["nominal", "ordinal"] = "nominal") -> qd.Data:
    status = qd.Variable("MS", kind, categories=(1, 3, 4), labels=("single", "widowed", "widowed"))
    return qd.from_frame(pl.DataFrame({"MS": [1, 3, 4, 4, 1]}), codebook=qd.Codebook((status,)))


def test_a_label_that_two_categories_share_means_both() -> None:
    assert Where.parse("MS=widowed").met(widowed_twice()).tolist() == [False, True, True, True, False]
    assert Where.parse("MS!=widowed").met(widowed_twice()).tolist() == [True, False, False, False, True]
    assert Where.parse("MS=3").met(widowed_twice()).tolist() == [False, True, False, False, False]


def test_a_comparison_with_a_label_that_two_categories_share_is_refused() -> None:
    with pytest.raises(InputError, match="2 categories share"):
        Where.parse("MS>=widowed").met(widowed_twice("ordinal"))


AGES = qd.Codebook((qd.Variable("Age", "numeric", missing=(-9, 99)),))


def ages() -> qd.Data:
    return qd.from_frame(pl.DataFrame({"Age": [-9.0, 4.5, 99.0, None, 31.0]}), codebook=AGES)


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("Age=-9", [0]),
        ("Age=-9|99", [0, 2]),
        ("Age!=-9", [1, 2, 3, 4]),
        ("Age=''", [3]),
        ("Age=4.5|''", [1, 3]),
        ("Age<16", [1]),
        ("Age>=16", [4]),
    ],
)
def test_missing_codes_of_numbers_can_be_named_and_lie_on_no_side_of_a_bound(text: str, met: list[int]) -> None:
    assert np.flatnonzero(Where.parse(text).met(ages())).tolist() == met


def test_a_comparison_with_a_missing_code_of_numbers_is_refused() -> None:
    with pytest.raises(InputError, match="neither small nor large"):
        Where.parse("Age>-9").met(ages())


def test_missing_codes_of_numbers_that_are_exchanged_have_changed() -> None:
    plan = qd.Plan.of_pairs(ages(), ["Age"], [[0, 2]])
    assert plan.report(ages()).changed == 2


def test_missing_codes_can_be_named_by_their_label() -> None:
    status = qd.Variable(
        "MS", categories=(1, 2), labels=("single", "widowed"), missing=(9,), missing_labels=("refused",)
    )
    age = qd.Variable("Age", "numeric", missing=(-9,), missing_labels=("not asked",))
    frame = pl.DataFrame({"MS": [1, 9, 2, 9], "Age": [-9.0, 4.5, 30.5, -9.0]})
    data = qd.from_frame(frame, codebook=qd.Codebook((status, age)))
    assert Where.parse("MS=refused").met(data).tolist() == [False, True, False, True]
    assert Where.parse("MS=9|widowed").met(data).tolist() == [False, True, True, True]
    assert Where.parse("Age='not asked'").met(data).tolist() == [True, False, False, True]
