"""Nested levels of geography: declared, checked, read, carried, refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import quadrille as qd
from geography_strategies import area
from quadrille.codebook import Codebook, Variable
from quadrille.data import Column, Data
from quadrille.errors import InfeasibleError, InputError, OverlapError
from strategies import column, numbers

TOML = """
[columns.county]
role = "geography"
level = 1

[columns.tract]
role = "geography"
level = 2
"""


@pytest.fixture
def frame() -> pl.DataFrame:
    return pl.DataFrame({"tract": [11, 12, 21, 22], "county": ["a", "a", "b", "b"], "x": ["u", "v", "u", "v"]})


@pytest.fixture
def data() -> Data:
    """Three counties of two tracts each, 60 records."""
    tract = np.arange(60) % 6
    other = [column("A", np.arange(60) // 7 % 3, 3, kind="ordinal"), column("B", np.arange(60) // 4 % 2, 2)]
    return Data([area("county", tract // 2, 3, 1), area("tract", tract, 6, 2), *other])


def test_levels_come_from_a_codebook_or_from_their_names(frame: pl.DataFrame, tmp_path: Path) -> None:
    csv, toml = tmp_path / "f.csv", tmp_path / "book.toml"
    frame.write_csv(csv)
    frame.write_parquet(tmp_path / "f.parquet")
    toml.write_text(TOML, encoding="utf-8")
    made = [
        qd.from_frame(frame, codebook=toml),
        qd.from_frame(frame, geography=["county", "tract"]),
        qd.read(csv, codebook=toml),
        qd.read(csv, geography=["county", "tract"]),
        qd.read(tmp_path / "f.parquet", geography=["county", "tract"]),
        qd.read(csv, codebook=toml, geography=["county", "tract"]),
    ]
    for each in made:
        assert each.codebook.geography == ("county", "tract")
        assert each["tract"].variable.kind == "nominal"
        assert each.frame()["tract"].to_list() == [11, 12, 21, 22]
    again = Codebook.from_toml(made[0].codebook.to_toml())
    assert again == made[0].codebook
    assert again.geography == ("county", "tract")


def test_the_order_of_levels_is_that_of_their_numbers_not_that_of_the_columns() -> None:
    levels = {"tract": 9, "state": 2, "county": 4}
    book = Codebook(tuple(Variable(name, role="geography", level=level) for name, level in levels.items()))
    assert book.geography == ("state", "county", "tract")


def test_a_geography_column_without_a_level_stands_alone() -> None:
    region = area("region", np.arange(60) % 4, 4, None)
    county = area("county", np.arange(60) % 6, 6, None)
    data = Data([region, county, column("A", np.arange(60) % 5, 5)])  # not nested, and nothing claims that it is
    assert data.codebook.geography == ()
    assert qd.RandomSwap(["county"], pairs=5, seed=1).plan(data).columns == ("county",)


@pytest.mark.parametrize(
    ("book", "levels", "message"),
    [
        (None, ["county", "county"], "named twice"),
        (None, ["county", "trakt"], "Did you mean: 'tract'"),
        (TOML, ["tract", "county"], "has levels of geography already"),
        ('[columns.county]\nrole = "id"', ["county", "tract"], "has the role id"),
        ('[columns.tract]\nkind = "numeric"', ["county", "tract"], "declare it nominal"),
    ],
)
def test_levels_that_cannot_be_are_refused(
    frame: pl.DataFrame, book: str | None, levels: list[str], message: str
) -> None:
    codebook = None if book is None else Codebook.from_toml(book)
    with pytest.raises(InputError, match=message):
        qd.from_frame(frame, codebook=codebook, geography=levels)


def test_two_columns_of_one_level_are_refused() -> None:
    with pytest.raises(InputError, match="'a' and 'b' have the same level of geography, 2"):
        Codebook((Variable("a", role="geography", level=2), Variable("b", role="geography", level=2)))


def test_tract_numbers_that_start_anew_in_each_county_are_told_to_be_joined() -> None:
    frame = pl.DataFrame({"county": ["Kent", "Kent", "Essex", "Essex"], "tract": ["9001", "9002", "9001", "9003"]})
    with pytest.raises(
        InputError, match=r"1 of 3 areas of 'tract' lie in more than one area of 'county'.*join"
    ) as told:
        qd.from_frame(frame, geography=["county", "tract"])
    assert not any(value in str(told.value) for value in ("Kent", "Essex", "9001"))
    joined = frame.with_columns(tract=pl.col("county") + pl.col("tract"))
    assert qd.from_frame(joined, geography=["county", "tract"])["tract"].valid == 4


def test_levels_the_wrong_way_round_are_told_so(frame: pl.DataFrame) -> None:
    with pytest.raises(InputError, match="other way round: level 1 is the coarsest, so 'county' comes before 'tract'"):
        qd.from_frame(frame, geography=["tract", "county"])


def test_a_level_two_steps_up_is_checked_too() -> None:
    """County is unknown everywhere, so it says nothing; the tract lies in two states all the same."""
    county = Column(
        Variable("county", "nominal", ("c",), role="geography", level=2), np.ones(4, np.uint8), nullable=True
    )
    state, tract = area("state", [0, 1, 1, 1], 2, 1), area("tract", [0, 0, 1, 1], 2, 3)
    with pytest.raises(InputError, match="1 of 2 areas of 'tract' lie in more than one area of 'state'"):
        Data([state, county, tract])


def test_missing_values_are_no_areas_and_a_county_is_known_for_all_of_a_tract_or_none() -> None:
    lost = area("tract", [0, 0, 1, 2, 2], 2, 2, nullable=True)  # the last two have no tract, in two counties
    assert Data([area("county", [0, 0, 1, 0, 1], 2, 1), lost]).n == 5
    unknown = area("county", [2, 2, 1, 0, 1], 2, 1, nullable=True)
    assert Data([unknown, lost]).n == 5
    partly = area("county", [0, 2, 1, 0, 1], 2, 1, nullable=True)
    with pytest.raises(InputError, match="in 1 of 2 areas of 'tract' the value of 'county' is missing for some"):
        Data([partly, lost])


@pytest.mark.parametrize("size", [256, 65_536])
def test_as_many_areas_as_a_type_can_hold_are_fine(size: int) -> None:
    """The number of areas does not fit into the type of their codes."""
    codes = np.repeat(np.arange(size), 2)
    data = Data([area("county", codes % 2, 2, 1), area("tract", codes, size, 2)])
    assert qd.ControlledSwap(["tract"], targets=0.01, seed=1).plan(data).columns == ("tract", "county")
    with pytest.raises(InputError, match=f"{size:,} of {size:,} areas"):
        Data([area("county", np.arange(2 * size) % 2, 2, 1), area("tract", codes, size, 2)])


def test_an_area_without_records_is_allowed_and_stays_empty() -> None:
    tract = np.arange(40) % 4
    data = Data([area("county", tract // 2, 3, 1), area("tract", tract, 9, 2)])
    after = qd.RandomSwap(["tract"], pairs=20, seed=1).plan(data).apply(data)
    assert np.bincount(after["tract"].values, minlength=9).tolist() == [10, 10, 10, 10, 0, 0, 0, 0, 0]


def test_a_tract_swapped_within_or_between_counties(data: Data) -> None:
    near = qd.RandomSwap(["tract"], pairs=20, same=["county"], seed=1).plan(data)
    assert near.columns == ("tract",)
    far = qd.RandomSwap(["tract"], pairs=20, different=["county"], seed=1).plan(data)
    assert far.columns == ("tract", "county")
    changed = {moved.variable: moved.changed for moved in far.report(data).variables}
    assert changed == {"tract": 40, "county": 40}
    assert far.report(data).details == {"carried_along": "county"}


def test_a_county_swapped_carries_its_tracts(data: Data) -> None:
    plan = qd.PermutationSwap(["county"], records=20, seed=1).plan(data)
    assert plan.columns == ("county", "tract")
    assert plan.details is not None
    assert plan.details.facts["carried_along"] == "tract"


def test_linked_geography_takes_the_other_levels_along(data: Data) -> None:
    recipe = qd.ControlledSwap(["A"], targets=0.2, linked={"A": ["county"]}, seed=1)
    plan = recipe.plan(data)
    assert [move.columns for move in plan.moves] == [("A",), ("county", "tract")]
    plan.apply(data)


@pytest.mark.parametrize(
    "parts",
    [
        {"swap": ["tract"], "linked": {"tract": ["county"]}},
        {"swap": ["A", "tract"], "linked": {"A": ["county"]}},
    ],
)
def test_levels_that_would_move_in_different_pairs_are_refused(data: Data, parts: dict[str, object]) -> None:
    with pytest.raises(
        OverlapError, match=r"levels of one geography, which move together.*leave 'county' out of 'linked'"
    ):
        qd.ControlledSwap(**parts, targets=0.2, seed=1).plan(data)


def test_the_weight_may_travel_with_the_levels() -> None:
    tract = np.arange(40) % 4
    data = Data([area("county", tract // 2, 2, 1), area("tract", tract, 4, 2), numbers("w", tract + 1, role="weight")])
    assert qd.PermutationSwap(["tract"], records=8, weight="moves", seed=1).plan(data).columns == (
        "tract",
        "county",
        "w",
    )


@pytest.mark.parametrize(
    "recipe",
    [
        qd.RandomSwap(["tract"], pairs=2, seed=1),
        qd.RandomSwap(["tract"], pairs=2, differ="none", seed=1),
        qd.RandomSwap(["tract", "A"], pairs=2, seed=1),
        qd.PermutationSwap(["tract"], records=4, seed=1),
        qd.ControlledSwap(["tract"], targets=0.2, seed=1),
    ],
)
@pytest.mark.parametrize("level", [1, None])
def test_one_area_only_is_refused_for_want_of_partners(recipe: qd.Recipe, level: int | None) -> None:
    data = Data([area("tract", np.zeros(20), 1, level), column("A", np.arange(20) % 2, 2)])
    with pytest.raises(
        InfeasibleError, match=r"All records lie in one area of 'tract'.*needs two areas or more"
    ) as told:
        recipe.plan(data)
    assert (told.value.maximum, told.value.exact) == (0, True)


def test_other_variables_may_be_swapped_in_a_single_area() -> None:
    data = Data([area("tract", np.zeros(20), 1, 1), column("A", np.arange(20) % 2, 2)])
    assert qd.PermutationSwap(["tract", "A"], records=4, seed=1).plan(data).columns == ("tract", "A")
    assert len(qd.RandomSwap(["tract", "A"], pairs=3, differ="any", seed=1).plan(data).pairs) == 3


def test_no_pair_at_all_is_explained(data: Data) -> None:
    alone = replace(data["county"], values=data["tract"].values // 2)
    one_each = Data([alone, area("tract", data["county"].values, 3, 2), data["A"]])
    with pytest.raises(InfeasibleError, match="the maximum is 0, because no two records meet the conditions"):
        qd.RandomSwap(["tract"], pairs=1, same=["county"], seed=1).plan(one_each)
    constant = Data([column("A", np.zeros(6), 1), column("B", np.arange(6), 6)])
    with pytest.raises(InfeasibleError, match="the maximum is 0, because 'A' has the same value in every record"):
        qd.RandomSwap(["A"], pairs=1, seed=1).plan(constant)


@pytest.mark.parametrize("level", ["county", "tract"])
def test_the_battery_asks_only_the_swapped_level_to_differ(data: Data, level: str) -> None:
    plan = qd.testing.check_recipe(qd.RandomSwap([level], pairs=25, seed=1), data)
    assert set(plan.columns) == {"county", "tract"}
    qd.testing.check_recipe(qd.PermutationSwap([level], rate=0.8, kind="cycles", seed=1), data)
    qd.testing.check_recipe(qd.ControlledSwap([level], targets=0.3, seed=1), data)
