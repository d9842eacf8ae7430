"""Targeted swapping of awkward files: a right result or a clear error."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import quadrille as qd
from effort import tries
from quadrille.cli import app
from quadrille.data import Data
from quadrille.errors import InfeasibleError, InputError, ParameterError, QuadrilleError
from quadrille.score.contradictions import contradicted
from quadrille.swap.targeted.problem import problem_of


def people(households: int = 60, most: int = 4, seed: int = 1, **more: Any) -> pl.DataFrame:
    """Persons of households in two regions of three areas each; their rows are scattered."""
    rng = np.random.default_rng(seed)
    of = rng.permutation(np.repeat(np.arange(households), rng.integers(1, most + 1, households)))
    area, kind = rng.integers(0, 6, households), rng.integers(0, 2, households)
    columns: dict[str, Any] = {
        "hh": of,
        "region": [f"r{a // 3}" for a in area[of]],
        "area": [f"a{a}" for a in area[of]],
        "size": np.bincount(of)[of],
        "kind": kind[of],
        "age": rng.integers(0, 5, len(of)),
        "sex": rng.choice(["f", "m"], len(of)),
        "income": rng.normal(10, 2, len(of)),
    }
    return pl.DataFrame(columns | more)


def file_of(frame: pl.DataFrame, **roles: Any) -> Data:
    return qd.from_frame(frame).with_roles(**({"unit": "hh", "geography": ["region", "area"]} | roles))


def recipe(**parameters: Any) -> qd.TargetedSwap:
    given: dict[str, Any] = {"risk": ["age", "sex"], "similar": [["size"], []], "rate": 0.2, "seed": 1}
    return qd.TargetedSwap(**(given | parameters))


BIG = 2**62


@pytest.mark.parametrize(
    "ids",
    [
        lambda hh: hh + BIG,
        lambda hh: [f"H-{n}" for n in hh],
        lambda hh: [str(n) for n in hh.astype(np.uint64) + np.uint64(2**63)],
        lambda hh: hh * 1.5,
    ],
    ids=["64 bits", "text", "text beyond 63 bits", "decimals"],
)
def test_numbers_of_households_may_be_anything_that_tells_them_apart(ids: Any) -> None:
    frame = people()
    plain = recipe().plan(file_of(frame))
    hh = frame["hh"].to_numpy()
    data = file_of(frame.with_columns(pl.Series("hh", ids(hh))))
    other = qd.testing.check_recipe(recipe(), data)
    assert other.unit_pairs is not None and plain.unit_pairs is not None
    if data["hh"].variable.coded or len(np.unique(data["hh"].values)) == 60:
        assert np.array_equal(plain.unit_pairs, other.unit_pairs)
    assert data.units("hh").count == 60


def test_rows_in_another_order_make_the_same_households_and_risks() -> None:
    frame = people()
    data, turned = file_of(frame), file_of(frame.sort("hh"))
    m = [problem_of(recipe(), file) for file in (data, turned)]
    by_household = [
        dict(zip(file["hh"].values[p.units.first].tolist(), p.level.tolist(), strict=True))
        for file, p in zip((data, turned), m, strict=True)
    ]
    assert by_household[0] == by_household[1]
    assert qd.testing.check_recipe(recipe(), turned).units is not None


def test_households_of_one_person_and_of_two_hundred() -> None:
    frame = people(most=1)
    alone = recipe().plan(file_of(frame))
    assert alone.unit_pairs is not None and len(alone.rows) == 2 * len(alone.unit_pairs)
    rng = np.random.default_rng(5)
    of = np.repeat(np.arange(6), 200)
    many = pl.DataFrame(
        {"hh": of, "region": [f"r{n // 3}" for n in of], "area": [f"a{n}" for n in of], "age": rng.integers(0, 9, 1200)}
    )
    plan = qd.testing.check_recipe(qd.TargetedSwap(["age"], similar=[[]], k=30, rate=1.0, seed=1), file_of(many))
    assert (len(plan.rows), plan.unit_pairs.shape if plan.unit_pairs is not None else None) == (1200, (3, 2))


def test_records_are_households_of_their_own_where_no_column_numbers_them() -> None:
    data = qd.from_frame(people().drop("hh")).with_roles(geography=["region", "area"])
    plan = qd.testing.check_recipe(recipe(similar=[[]]), data)
    assert plan.pairs is not None and plan.units is None
    assert plan.details is not None and plan.details.facts["households"] == data.n


def test_households_with_a_missing_area_stay_and_are_counted() -> None:
    frame = people()
    lost = frame["hh"].is_in([1, 2, 3])
    frame = frame.with_columns(area=pl.when(lost).then(None).otherwise(pl.col("area")))
    data = file_of(frame)
    plan = qd.testing.check_recipe(recipe(k=9), data)
    assert plan.details is not None and plan.units is not None
    facts: Any = plan.details.facts
    units = data.units("hh")
    numbers = data["hh"].values[units.first]
    assert not {1, 2, 3} & {data["hh"].labels[n] if data["hh"].variable.coded else n for n in numbers[plan.units]}
    assert facts["treated"]["reasons"]["an area is missing"] == 3 and facts["households"] == 60
    assert any("households at risk stay where they are (an area is missing: 3" in each for each in facts["warnings"])
    assert len(plan.details.rows["at risk, left: an area is missing"]) == 3


def test_a_missing_value_is_a_combination_of_its_own() -> None:
    frame = people().with_columns(age=pl.when(pl.col("age") == 0).then(None).otherwise(pl.col("age")))
    with_gaps = problem_of(recipe(), file_of(frame))
    filled = problem_of(recipe(), file_of(people()))
    assert with_gaps.m is not None and filled.m is not None
    assert np.array_equal(with_gaps.m, filled.m)


def test_one_area_is_refused() -> None:
    frame = people().with_columns(region=pl.lit("r"), area=pl.lit("a"))
    with pytest.raises(InfeasibleError, match="All records lie in one area of 'area'"):
        recipe().plan(file_of(frame))


def test_one_region_of_several_areas_is_no_obstacle() -> None:
    frame = people().with_columns(region=pl.lit("r"))
    plan = qd.testing.check_recipe(recipe(), file_of(frame))
    assert plan.details is not None
    facts: Any = plan.details.facts
    assert facts["pairs_crossing"][0]["pairs"] == 0 and facts["at_risk"][0]["in_place"] == facts["at_risk"][0]["before"]


def test_nobody_at_risk_and_no_rate_is_an_error_with_the_smallest_counts() -> None:
    with pytest.raises(ParameterError, match=r"nobody is at risk.*below k = 1; the smallest are \d+ at region, \d+ at"):
        recipe(k=1, rate=0.0).plan(file_of(people()))


def test_nobody_at_risk_and_a_rate_is_a_caution() -> None:
    plan = recipe(k=1).plan(file_of(people()))
    assert plan.details is not None
    warnings: Any = plan.details.facts["warnings"]
    assert len(plan.unit_pairs if plan.unit_pairs is not None else ()) >= 6
    assert warnings == [
        "Nobody is at risk: all pairs are drawn for the rate alone. Raise 'k', or name more risk variables or finer "
        "levels."
    ]


def test_everybody_at_risk_is_swapped_and_that_is_said() -> None:
    data = file_of(people(households=61))
    plan = qd.testing.check_recipe(recipe(k=10_000, rate=0.05, similar=[[]]), data)
    assert plan.units is not None and len(plan.units) == 60 and plan.details is not None
    facts: Any = plan.details.facts
    assert facts["treated"]["left"] == 1
    assert facts["treated"]["reasons"] == {"no partner in any profile": 1}
    (caution,) = facts["warnings"]
    assert caution.startswith("61 of 61 households are at risk at level region; 98.36 % take part, and")


def test_without_a_rate_only_many_are_worth_a_warning() -> None:
    plan = recipe(k=10_000, rate=0.0, similar=[[]]).plan(file_of(people(households=61)))
    assert plan.details is not None
    (caution,) = cast("list[str]", plan.details.facts["warnings"])
    assert "98.36 % take part. Coarsen" in caution
    few = qd.TargetedSwap(["age", "birth"], k=2, similar=[["hh_size"]], seed=1).plan(qd.datasets.island())
    assert few.details is not None and few.details.facts["warnings"] == []
    assert few.details.facts["who"] == "whoever has a member whose age, birth fewer than 2 persons of the area have"


def test_a_cap_names_who_was_not_reached() -> None:
    plan = recipe(k=10_000, rate=0.1, mode="cap", similar=[[]]).plan(file_of(people()))
    assert plan.units is not None and len(plan.units) == 6 and plan.details is not None
    facts: Any = plan.details.facts
    assert facts["treated"]["reasons"] == {"the cap was reached": 54}
    with pytest.raises(ParameterError, match="allows no pair at all"):
        recipe(mode="cap", rate=0.0).plan(file_of(people()))


def test_the_number_of_the_household_must_be_there() -> None:
    frame = people().with_row_index().with_columns(hh=pl.when(pl.col("index") < 4).then(None).otherwise(pl.col("hh")))
    with pytest.raises(InputError, match=r"Column 'hh' numbers the units .* missing in 4 rows"):
        recipe().plan(file_of(frame.drop("index")))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"risk": ["nothing"]}, "nothing"),
        ({"risk": ["income"]}, "Column 'income' is numeric, and 'risk' of TargetedSwap needs categories"),
        ({"risk": []}, "needs one of 'risk'"),
        ({"risk": ["area"]}, "Column 'area' says who is at risk in TargetedSwap and moves"),
        ({"similar": [["sex"]]}, r"Column 'sex' differs within \d+ of 60 households"),
        ({"similar": [["area"]]}, "'similar' of TargetedSwap names 'area', the lowest level"),
        ({"similar": [["area"]], "levels": ["region"]}, "'similar' of TargetedSwap names 'area', the lowest level"),
        ({"carry": ["age"]}, "Column 'age' is in both 'carry' and 'risk'"),
        ({"carry": ["sex"], "risk": ["age"]}, r"Column 'sex' differs within \d+ of 60 households"),
        ({"carry": ["hh"]}, "Column 'hh' numbers the units"),
        ({"levels": ["area", "region"]}, "must list the coarsest first: region, area"),
        ({"levels": ["size"]}, "names 'size', which is no level of geography. They are region, area"),
        ({"k": 0}, "whole number of 1 or more"),
        ({"rate": 1.5}, r"number in \[0, 1\]"),
        ({"rate": "income"}, "is missing or outside"),
        ({"rate": "sex"}, "must hold numbers"),
        ({"risk": [], "scores": ["income"]}, "names 1 columns, and 2 levels of geography count"),
        ({"near": 0}, "one of 'any', 'parent', 'loss', or a whole number of 1 or more"),
        ({"near": "loss"}, "Give both, or neither"),
        ({"near": "loss", "loss": "hellinger(age*sex)"}, "a table in which nothing moves"),
        ({"threshold": 0.5}, "is for 'scores'"),
        ({"never": "sex"}, "must hold true or false"),
        ({"rules": ["age<99"]}, "Every record meets|no category|do not"),
    ],
)
def test_what_cannot_be_done_is_said(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(QuadrilleError, match=message):
        recipe(**parameters).plan(file_of(people()))


def test_a_file_without_levels_of_geography_says_how_to_declare_them() -> None:
    with pytest.raises(InputError, match=r"no levels of geography.*--geography"):
        recipe().plan(qd.from_frame(people()).with_roles(unit="hh"))


def test_scores_must_be_there_and_not_below_zero() -> None:
    data = file_of(people().with_columns(score=pl.lit(-0.5)))
    with pytest.raises(InputError, match="missing, negative or infinite in"):
        recipe(risk=[], scores=["score"], levels=["area"]).plan(data)


def test_a_rate_that_varies_within_an_area_is_refused() -> None:
    frame = people()
    with pytest.raises(InputError, match=r"varies within \d+ of 6 areas of 'area'"):
        recipe(rate="share").plan(file_of(frame.with_columns(share=pl.Series(np.arange(len(frame)) / len(frame)))))


def test_profiles_that_find_few_partners_are_warned_of() -> None:
    """Sizes of their own for nine households in ten: those at risk among them stay, and a release says so."""
    frame = people(households=60, most=1).with_columns(size=pl.when(pl.col("hh") < 54).then("hh").otherwise(1))
    plan = recipe(similar=[["size"]], k=9, rate=0.0).plan(file_of(frame))
    assert plan.details is not None
    facts: Any = plan.details.facts
    left, at_risk = facts["treated"]["left"], facts["treated"]["at_risk"]
    said = f"{left} of {at_risk} households at risk stay where they are (no partner in any profile: {left})"
    assert left > 40 and any(said in each for each in plan.report(file_of(frame)).warnings)


def test_nobody_alike_is_an_error_that_says_what_to_relax() -> None:
    frame = people(households=6, most=1).with_columns(size=pl.col("hh"))
    with pytest.raises(InfeasibleError, match="found no partner for any household"):
        recipe(similar=[["size"]], k=9).plan(file_of(frame))


def test_households_named_by_never_take_no_part() -> None:
    frame = people()
    frame = frame.with_columns(spared=(pl.col("hh") % 3 == 0) & (pl.int_range(pl.len()) % 2 == 0))
    data = file_of(frame)
    plan = qd.testing.check_recipe(recipe(k=9, never="spared"), data)
    spared = set(frame.filter("spared")["hh"])
    moved = set(frame["hh"].gather(plan.rows.tolist()))
    assert moved and not moved & spared and "spared" in plan.steering_columns


def test_rates_of_areas_are_kept_on_average() -> None:
    frame = people(households=300, most=1).with_columns(
        share=pl.col("area").replace_strict({f"a{i}": 0.1 * i for i in range(6)})
    )
    data, made = file_of(frame), recipe(rate="share", k=1, similar=[[]])
    area = np.unique(frame["area"], return_inverse=True)[1]
    prepared, taking = made.prepare(data), np.zeros(6)
    seeds = tries(60, nightly=1_000)
    for seed in range(seeds):
        taking += np.bincount(area[prepared.draw(made.stream_of(seed)).rows], minlength=6)
    wanted = np.array([0.1 * i for i in range(6)]) * np.bincount(area)
    assert np.abs(taking / seeds - wanted).max() < 1.5  # a donor comes from an area whose quota is full where it must
    assert "share" in made.steering_columns


def test_the_rule_of_the_office_for_national_statistics() -> None:
    """Two parents: sizes 2 and 4 with one and no household at risk, sizes 3 and 3 with nobody at risk."""
    frame = pl.DataFrame(
        {
            "region": ["N"] * 6 + ["S"] * 6,
            "area": ["a"] * 2 + ["b"] * 4 + ["c"] * 3 + ["d"] * 3,
            "v": ["x", "y"] + ["x", "x", "x", "x"] + ["x"] * 6,
        }
    )
    data = qd.from_frame(frame).with_roles(geography=["region", "area"])
    made = qd.TargetedSwap(["v"], similar=[[]], k=2, rate=0.3, seed=1)
    rates = qd.theory.ons_rates(data, made, name="r")["r"].values
    # In a both households are alone with their value: p = 1; in b p = 0, so that a has all of the second term.
    a = 0.15 * 6 / 2 * ((1 / 2) / (1 / 2 + 1 / 4) + 1)
    b = 0.15 * 6 / 4 * ((1 / 4) / (1 / 2 + 1 / 4) + 0)
    assert rates == pytest.approx([a] * 2 + [b] * 4 + [0.3] * 6)
    assert (2 * a + 4 * b) / 6 == pytest.approx(0.3)


def test_the_report_of_a_plan_is_worked_out_when_it_is_looked_at() -> None:
    data = file_of(people())
    plan = recipe().plan(data)
    report = plan.report(data)
    assert report.as_dict()["details"]["households"] == 60
    assert report.units is not None and report.units.n == 60


def test_households_that_move_whole_contradict_nothing() -> None:
    data = file_of(people(households=300))
    made = recipe(rate=0.3)
    assert qd.contradictions(data, made) == ()
    assert contradicted(data, made.plan(data)).records == 0
    torn = qd.RandomSwap(["area"], rate=0.1, seed=1)
    assert contradicted(data, torn.plan(data)).records > 0


def test_a_grid_and_a_job_take_several_designs_and_several_profiles(tmp_path: Path) -> None:
    """A list of lists of columns is one value of `similar`; one deeper, it is several."""
    one = qd.grid(qd.TargetedSwap, risk=["age"], similar=[["size"], []], k=[2, 3], near=["any", "parent", 5], seed=1)
    assert len(list(one)) == 6
    deeper = [[["size"]], [["size", "kind"], ["size"]], [[]]]
    several = list(qd.grid(qd.TargetedSwap, risk=["age"], similar=deeper, rate=[0.0, 0.1], seed=1))
    assert len(several) == 6
    assert {made.parameters()["similar"] for made in several} == {(("size",),), (("size", "kind"), ("size",)), ((),)}
    assert all(qd.Recipe.from_json(made.to_json()) == made for made in several)
    file_of(people()).frame().write_csv(tmp_path / "file.csv")
    (tmp_path / "job.toml").write_text(JOB.format(folder=tmp_path), encoding="utf-8")
    done = CliRunner().invoke(app, ["search", str(tmp_path / "job.toml"), "--json"])
    assert done.exit_code == 0, done.output
    assert len(qd.Study(tmp_path / "study").frame()) == 8


JOB = """
[data]
file = "{folder}/file.csv"
geography = ["region", "area"]
unit = "hh"
[search]
measures = ["exposed(area*age*sex)", "hellinger(region*kind)"]
out = "{folder}/study"
[[grid]]
method = "targeted"
risk = ["age"]
k = [2, 3]
rate = [0.1, 0.3]
near = ["any", "parent"]
similar = [["size"], []]
"""
