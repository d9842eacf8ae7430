"""The invented household survey: what it holds, what follows from what, and that it is the same everywhere."""

from __future__ import annotations

import warnings
from pathlib import Path

import polars as pl
import pytest

import quadrille as qd
from quadrille.data import Data
from quadrille.datasets.invented import CLUSTERS, HOUSEHOLDS, PERSONS, REGIONS
from quadrille.inspect import of_design
from quadrille.measure.population import sample_of
from quadrille.release.dossier import ReleaseWarning

FINGERPRINT = "e04a4fced3b323e8f5945df077bbf309"
OF_HOUSEHOLDS = (
    *("region", "urban", "stratum", "cluster", "hh_size", "hh_type", "tenure", "hh_income", "eq_income", "poor"),
    "weight",
)


@pytest.fixture(scope="module")
def data() -> qd.Data:
    return qd.datasets.households()


@pytest.fixture(scope="module")
def frame(data: qd.Data) -> pl.DataFrame:
    return data.frame()


def test_it_is_the_same_in_every_call_and_on_every_machine(data: qd.Data) -> None:
    assert data == qd.datasets.households()
    assert data.fingerprint == FINGERPRINT


def test_there_are_15000_persons_in_6000_households_of_24_strata(data: qd.Data, frame: pl.DataFrame) -> None:
    assert (data.n, data.units("hh_id").count) == (PERSONS, HOUSEHOLDS) == (15_000, 6_000)
    assert frame["stratum"].n_unique() == 3 * len(REGIONS) and frame["cluster"].n_unique() == 24 * CLUSTERS
    assert frame.filter(pl.col("person") == 1).height == HOUSEHOLDS
    assert (
        frame.group_by("hh_id").agg(pl.col("person").sort() == pl.int_range(1, pl.len() + 1))["person"].list.all().all()
    )


def test_what_belongs_to_the_household_is_the_same_for_all_its_members(frame: pl.DataFrame) -> None:
    values = frame.group_by("hh_id").agg(pl.col(*OF_HOUSEHOLDS).n_unique())
    assert all(values[name].eq(1).all() for name in OF_HOUSEHOLDS)


def test_the_code_of_a_stratum_contains_the_region_and_that_of_a_cluster_the_stratum(frame: pl.DataFrame) -> None:
    assert (frame["stratum"].str.slice(0, 4) == frame["region"]).all()
    assert (frame["cluster"].str.slice(0, 6) == frame["stratum"]).all()
    places = pl.Enum(["city", "town", "rural"])
    assert (frame["stratum"].str.slice(5).cast(pl.Int64) == frame["urban"].cast(places).to_physical() + 1).all()


def test_size_type_and_incomes_of_a_household_follow_from_its_members(frame: pl.DataFrame) -> None:
    age, over = pl.col("age"), {"partition_by": "hh_id"}
    children = (age < 18).sum()
    made = frame.with_columns(
        size=pl.len().over(**over),
        children=children.over(**over),
        seniors=(age >= 65).sum().over(**over),
        total=(pl.col("income").sum() + 2_400 * (age < 16).sum()).over(**over),
        scale=(1 + 0.5 * ((age >= 14).sum().cast(pl.Int64) - 1) + 0.3 * (age < 14).sum()).over(**over),
    )
    assert (made["size"] == made["hh_size"]).all() and (made["total"] == made["hh_income"]).all()
    assert ((made["total"] / made["scale"] - made["eq_income"]).abs() <= 0.5 + 1e-9).all()
    adults = made["size"] - made["children"]
    with_children = made["hh_type"].str.ends_with("with children")
    assert ((made["children"] > 0) == with_children).all()
    assert (made["hh_type"].str.starts_with("one adult") == (adults <= 1)).all()
    assert (made["hh_type"].str.starts_with("two adults") == (adults == 2)).all()
    assert ((made["hh_type"] == "one adult 65 or over") == ((made["size"] == 1) & (made["seniors"] == 1))).all()
    middle = made["eq_income"].sort()[PERSONS // 2]
    assert ((made["poor"] == "yes") == (made["eq_income"] < 0.6 * middle)).all()


def test_persons_are_of_the_kind_that_surveys_meet(frame: pl.DataFrame) -> None:
    young = frame["age"] < 16
    for name in ("education", "status"):
        assert ((frame[name] == "under 16") == young).all()
    working = frame["status"].is_in(["employed", "self-employed"])
    assert ((frame["hours"] > 0) == working).all() and frame.filter(young)["income"].sum() == 0
    employed = frame.filter(pl.col("status") == "employed")
    pay = employed.group_by("education").agg(pl.col("income").mean()).sort("education")["income"].to_list()
    assert pay == sorted(pay)
    hours = dict(employed.group_by("sex").agg(pl.col("hours").mean()).iter_rows())
    assert hours["female"] < hours["male"]
    owners = frame.group_by("urban").agg(pl.col("tenure").str.starts_with("owner").mean())
    shares = dict(owners.iter_rows())
    assert shares["city"] < shares["town"] < shares["rural"]


def test_the_weights_count_persons_and_differ_between_strata(data: qd.Data, frame: pl.DataFrame) -> None:
    sample = sample_of(data)
    assert sample is not None and sample.share == pytest.approx(PERSONS / frame["weight"].sum())
    assert 9e6 < sample.persons(PERSONS) < 9.5e6
    assert frame["weight"].max() > 5 * frame["weight"].min()


def test_contradictions_know_what_follows_from_what(data: qd.Data) -> None:
    found = [str(each) for each in qd.contradictions(data, qd.RandomSwap(["region"], rate=0.05, seed=1))]
    assert any("stratum" in each for each in found) and any("hh_id" in each for each in found)


# What a new user is told of such a file


def as_read(data: Data) -> Data:
    """The file as it is guessed: without a codebook."""
    return qd.from_frame(data.frame())


def test_columns_of_the_design_are_pointed_out_until_they_have_a_role(data: Data) -> None:
    listed = qd.inspect(as_read(data)).hints
    for name, role in (("stratum", "stratum"), ("cluster", "cluster"), ("hh_id", "unit"), ("person", "id")):
        assert any(f"Column '{name}'" in hint and f'role = "{role}"' in hint for hint in listed)
    assert any("--weight weight" in hint for hint in listed)
    left = [hint for hint in qd.inspect(data).hints if "called like" in hint or "numbers the members" in hint]
    assert len(left) == 1 and "'age', called like an age" in left[0]


def test_a_column_that_does_not_run_from_1_to_the_size_of_each_household_numbers_no_members() -> None:
    frame = pl.DataFrame(
        {"hh_id": [1, 1, 2, 2, 3] * 20, "children": [1, 1, 2, 2, 1] * 20, "line": [2, 1, 1, 2, 1] * 20}
    )
    frame = frame.with_columns(hh_id=pl.int_range(100) // 5 * 3 + pl.col("hh_id"))
    told = [hint for hint in of_design(qd.from_frame(frame)) if "numbers the members" in hint]
    assert len(told) == 1 and "'line'" in told[0]


def test_members_of_a_household_do_not_make_a_dependency(data: Data) -> None:
    """Income of the household and stratum nearly number it, so they seem to determine whatever its members share."""
    found = {str(each) for each in qd.dependencies(data)}
    guessed = {str(each) for each in qd.dependencies(as_read(data))}
    alone = "stratum and eq_income together determine tenure"
    assert alone in guessed and alone not in found
    assert {"tenure is constant within hh_id", "region and urban together determine stratum"} <= found
    assert {
        "hh_income and eq_income together determine hh_size",
        "poor follows from eq_income, range by range",
    } <= found
    assert len(found) < 0.8 * len(guessed)


def test_a_swap_of_what_the_household_shares_is_refused_and_one_of_what_persons_have_is_not(data: Data) -> None:
    for recipe in (qd.RandomSwap(["tenure"], rate=0.05), qd.RandomSwap(["region"], rate=0.05), qd.DesignedSwap()):
        assert any("constant within hh_id" in str(each) for each in qd.contradictions(data, recipe))
    assert qd.contradictions(data, qd.RandomSwap(["sex", "citizen"], rate=0.05)) == ()


def test_a_release_that_hides_nobody_or_forgets_the_weight_is_warned_of(data: Data, tmp_path: Path) -> None:
    few = as_read(data.take(range(1_500)))
    with pytest.warns(ReleaseWarning) as told:
        qd.release(few, qd.RandomSwap(["sex"], rate=0.05), tmp_path / "out", measures=["hellinger"])
    texts = " ".join(str(each.message) for each in told)
    assert "too many combinations for a swap to hide many" in texts and "called like a weight" in texts
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        kept = data.take(range(1_500)).with_roles(key=["sex", "citizen"])
        qd.release(kept, qd.RandomSwap(["sex"], rate=0.05), tmp_path / "again", measures=["hellinger"])
    assert not any("combinations" in str(each.message) or "like a weight" in str(each.message) for each in told)
