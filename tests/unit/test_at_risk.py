"""The table of risk by level of geography before any draw: against counts by polars, in all three ways to show it."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples

import quadrille as qd
from quadrille.present import Table
from quadrille.present.profile import profile, risk_blocks
from quadrille.present.render import as_html, as_markdown
from quadrille.swap.targeted.risk import RiskByLevel, risk_by_level

LEVELS = ("north", "place")


@st.composite
def household_files(draw: st.DrawFn) -> pl.DataFrame:
    """Households of one to four persons in up to four places of two regions, rows in any order."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=2, max_size=12))
    place = draw(st.lists(st.integers(0, 3), min_size=len(sizes), max_size=len(sizes)))
    place[:2] = [0, 3]
    members = [(hh, place[hh]) for hh, size in enumerate(sizes) for _ in range(size)]
    ages = draw(st.lists(st.sampled_from(["a", "b", None]), min_size=len(members), max_size=len(members)))
    sexes = draw(st.lists(st.integers(0, 1), min_size=len(members), max_size=len(members)))
    rows = [
        {"hh": hh, "north": where // 2, "place": where, "age": age, "sex": sex}
        for (hh, where), age, sex in zip(members, ages, sexes, strict=True)
    ]
    return pl.DataFrame(draw(st.permutations(rows)), schema_overrides={"age": pl.String})


def by_polars(frame: pl.DataFrame, risk: list[str], k: int) -> list[tuple[int, int, int, int]]:
    """Smallest count, units first at risk, records at risk themselves first, and records of those units, by level."""
    known_units: set[int] = set()
    known_rows: set[int] = set()
    frame = frame.with_row_index("row")
    found: list[tuple[int, int, int, int]] = []
    for level in LEVELS:
        counted = frame.with_columns(c=pl.len().over([level, *risk]))
        rows = set(counted.filter(pl.col("c") < k)["row"]) - known_rows
        units = set(counted.filter(pl.col("c") < k)["hh"]) - known_units
        least = counted["c"].min()
        assert isinstance(least, int)
        found.append((least, len(units), len(rows), frame.filter(pl.col("hh").is_in(list(units))).height))
        known_units |= units
        known_rows |= rows
    return found


@given(household_files(), st.sampled_from([["age"], ["age", "sex"]]), st.integers(1, 4))
@examples(30)
def test_every_number_is_what_counting_gives(frame: pl.DataFrame, risk: list[str], k: int) -> None:
    data = qd.from_frame(frame).with_roles(unit="hh", geography=list(LEVELS))
    found = risk_by_level(data, risk, k)
    assert [(at.smallest, at.units, at.records, at.moved) for at in found.levels] == by_polars(frame, risk, k)
    assert found.levels[-1].share == pytest.approx(found.at_risk / frame["hh"].n_unique())


def test_it_counts_what_a_targeted_swap_calls_at_risk() -> None:
    data = qd.datasets.census(2_000)
    risk = ["gender", "ageGroup"]
    details: Any = qd.TargetedSwap(risk, similar=[["hsize"]], seed=7).plan(data).report(data).details
    assert [row["before"] for row in details["at_risk"]] == [at.units for at in risk_by_level(data, risk).levels]


def test_without_a_unit_every_record_is_one_and_is_counted_once() -> None:
    data = qd.from_frame(pl.DataFrame({"place": ["x", "x", "y"], "age": [1, 1, 2]}), geography=["place"])
    found = risk_by_level(data, ["age"], 2)
    assert (found.unit, found.units, found.at_risk) == (None, 3, 1)
    (table,) = (block for block in risk_blocks(found) if isinstance(block, Table))
    assert table.head == ("level", "areas", "smallest count", "records first here", "so far")


@pytest.mark.parametrize(
    ("risk", "k", "said"),
    [
        (["gender"], 3, "Nobody is at risk: the smallest count is"),
        (["national", "ageGroup"], 1, "With k = 1 nobody is at risk"),
        (
            ["national", "ageGroup"],
            3,
            "94.25 % are at risk, most of them first at lau2: a targeted swap would move them",
        ),
    ],
)
def test_the_advice_says_what_to_do(risk: list[str], k: int, said: str) -> None:
    data = qd.datasets.census()
    if risk == ["gender"]:
        data = qd.from_frame(data.frame().select("hid", "nuts2", "gender")).with_roles(unit="hid", geography=["nuts2"])
    assert said in as_markdown(risk_blocks(risk_by_level(data, risk, k)))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"risk": []}, "'risk' parameter of inspect"),
        ({"risk": "gender"}, "'risk' parameter of inspect"),
        ({"risk": ["gendre"]}, "Did you mean: 'gender'"),
        ({"risk": ["gender", "gender"]}, "occurs twice"),
        ({"risk": ["gender"], "k": 0}, "'k' parameter of inspect"),
        ({"risk": ["nuts3"]}, "is a level of geography"),
        ({"risk": ["hid"]}, "is an identifier"),
        ({"k": 3}, "Name them"),
    ],
)
def test_a_wrong_question_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(qd.QuadrilleError, match=said):
        qd.inspect(qd.datasets.census(100), **options)


def test_a_file_without_geography_or_of_one_area_is_refused_with_what_to_do() -> None:
    with pytest.raises(qd.QuadrilleError, match="no levels of geography"):
        qd.inspect(qd.datasets.cps8d(), risk=["Age"])
    alone = qd.from_frame(pl.DataFrame({"place": ["x", "x"], "age": [1, 1]}), geography=["place"])
    with pytest.raises(qd.QuadrilleError, match="'place'"):
        qd.inspect(alone, risk=["age"])


def test_terminal_notebook_and_json_show_the_same_table() -> None:
    found = qd.inspect(qd.datasets.census(500), risk=["gender", "ageGroup"])
    assert isinstance(found.risk, RiskByLevel)
    html = as_html(profile(found, "file"))
    plain: Any = json.loads(json.dumps(found.as_dict(), default=str))["risk"]
    for at, row in zip(found.risk.levels, plain["levels"], strict=True):
        assert (row["level"], row["units"], row["moved"]) == (at.level, at.units, at.moved)
        assert f">{at.moved:,}<" in html
    assert found.risk.k == plain["k"] == 3
