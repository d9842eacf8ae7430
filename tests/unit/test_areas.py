"""Measures by area: worked values, levels and crosses, spread, ranking, flows, rates, and what is refused."""

from __future__ import annotations

import json
from math import inf, log
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import polars as pl
import pytest

import quadrille as qd
from quadrille import chart
from quadrille.data import Data
from quadrille.errors import InputError, ParameterError
from quadrille.io.atomic import as_json, write_table
from quadrille.measure.difference import MEASURES
from strategies import column, file_of

SIX = [kind.name for kind in MEASURES]


def records(*cells: tuple[str, str, str, int]) -> Data:
    """County, tract, race and how many."""
    rows = [cell[:3] for cell in cells for _ in range(cell[3])]
    return qd.from_frame(pl.DataFrame(rows, schema=["county", "tract", "race"], orient="row"))


BEFORE = records(("X", "a", "u", 4), ("X", "a", "v", 4), ("X", "b", "u", 6), ("Y", "c", "u", 5), ("Y", "c", "v", 5))
AFTER = records(
    ("X", "a", "u", 6),
    ("X", "a", "v", 2),
    ("X", "b", "u", 4),
    ("X", "b", "v", 2),
    ("Y", "c", "u", 5),
    ("Y", "c", "v", 5),
)


def column_of(scores: qd.Scores, address: str, by: str, name: str = "value") -> list[object]:
    return scores.by(address, by)[name].to_list()


def state(n: int = 6000, tracts: int = 40, seed: int = 1) -> Data:
    random = np.random.default_rng(seed)
    tract = random.choice(tracts, n, p=random.dirichlet(np.full(tracts, 2.0)))
    race = (random.random(n) ** (1 + tract % 3) * 4).astype(int)
    return file_of(
        county=tract // 8, tract=tract, race=race, sex=random.integers(0, 2, n), age=random.integers(0, 6, n)
    )


def swap(data: Data, pairs: int = 300, seed: int = 1) -> qd.Plan:
    return qd.RandomSwap(["tract", "county"], differ="any", pairs=pairs, seed=seed).plan(data)


def test_worked_values_of_three_tracts() -> None:
    scores = qd.score(BEFORE, AFTER, by=["county", "tract"])
    assert scores.levels == ("county", "tract")
    assert scores.by("chi_square(race)", "tract").to_dicts() == [
        {"level": "tract", "area": area, "address": "chi_square(race)", "before": n, "after": n, "changed": changed}
        | {"value": value, "zero_cells": zero, "note": note}
        for area, n, changed, value, zero, note in [
            ("a", 8, 2, 2.0, 0, ""),
            ("b", 6, 2, 4 / 6, 1, "1 cell was empty before and not after: left out"),
            ("c", 10, 0, 0.0, 0, "nothing changed"),
        ]
    ]
    by_tract = {name: column_of(scores, f"{name}(race)", "tract") for name in SIX}
    assert by_tract["effective_swap_rate"] == pytest.approx([2 / 8, 2 / 6, 0])
    assert by_tract["deviance"] == pytest.approx([2 * (6 * log(6 / 4) + 2 * log(2 / 4)), 2 * 4 * log(4 / 6), 0])
    assert by_tract["gini_difference"] == pytest.approx([10 / 16 - 1 / 2, 5 / 9 - 1, 0])
    entropies = [0.75 * log(0.75) + 0.25 * log(0.25) - log(0.5), 2 / 3 * log(2 / 3) + 1 / 3 * log(1 / 3), 0]
    assert by_tract["shannon_difference"] == pytest.approx(entropies)
    assert by_tract["renyi_difference"] == pytest.approx([log((28 / 64) / (1 / 4)) / 2, log(9 / 27) / 2, 0])
    # Within a county the races of both tracts together: 10 u, 4 v before and after.
    assert column_of(scores, "chi_square(race)", "county") == [0.0, 0.0]
    assert column_of(scores, "chi_square(race)", "county", "note") == ["nothing changed"] * 2


def test_a_margin_that_begins_with_geography_is_over_the_smaller_areas_within() -> None:
    addresses = [f"{name}(tract*race)" for name in SIX]
    scores = qd.score(BEFORE, AFTER, addresses, by=["county", "tract"])
    parts = qd.score(BEFORE, AFTER, by=["tract"])
    for name, address in zip(SIX, addresses, strict=True):
        county = column_of(scores, address, "county")
        tracts = column_of(parts, f"{name}(race)", "tract")
        assert column_of(scores, address, "tract") == tracts  # the area itself adds nothing
        if name == "effective_swap_rate":
            assert county == pytest.approx([(2 + 2) / 14, 0])
        elif name == "renyi_difference":
            cubes = [(28 / 64 + 9 / 27), (1 / 4 + 1)]
            assert county == pytest.approx([log(cubes[0] / cubes[1]) / 2, 0])
        else:
            assert county == pytest.approx([tracts[0] + tracts[1], tracts[2]])
        whole = qd.score(BEFORE, AFTER, [address])[address]
        spread = scores.spread().filter(pl.col("address") == address)["whole"].to_list()
        assert spread == pytest.approx([whole] * 2)


def test_a_cross_of_variables_has_levels_of_its_own_and_crosses_of_areas_too() -> None:
    data = state()
    plan = swap(data)
    after = plan.apply(data)
    scores = qd.score(data, plan, ["shannon_difference(race*sex)", "chi_square(race)"], by=["tract", "county*sex"])
    codes = [
        np.ravel_multi_index([file[v].values for v in ("tract", "race", "sex")], (40, 4, 2)) for file in (data, after)
    ]
    f, g = (np.bincount(code, minlength=320).reshape(40, 8) for code in codes)
    r, s = f / f.sum(axis=1, keepdims=True), g / g.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        truth = (np.nan_to_num(s * np.log(s)) - np.nan_to_num(r * np.log(r))).sum(axis=1)
    assert column_of(scores, "shannon_difference(race*sex)", "tract") == pytest.approx(truth.tolist(), abs=1e-13)
    areas = column_of(scores, "chi_square(race)", "county*sex", "area")
    assert areas == [f"county{i} × sex{j}" for i in range(5) for j in range(2)]
    alone = "chi_square(race, where=county=county3 & sex=sex1)"
    assert column_of(scores, "chi_square(race)", "county*sex")[7] == qd.score(data, plan, [alone])[alone]


def test_the_spread_is_that_of_numpy_over_the_areas() -> None:
    data = state()
    scores = qd.score(data, swap(data), by=["tract"])
    for row in scores.spread().to_dicts():
        value = np.array(column_of(scores, row["address"], "tract"))
        assert row["areas"] == 40
        assert row["undefined"] == 0
        assert row["mean"] == pytest.approx(value.mean())
        assert row["sd"] == pytest.approx(value.std(ddof=1))
        assert [row["p5"], row["p95"]] == pytest.approx(np.percentile(value, [5, 95]).tolist())
        assert ("larger is not more perturbed" in row["note"]) == (row["measure"] in SIX[3:])
    assert scores.spread()["variable"].unique(maintain_order=True).to_list() == ["county", "race", "sex", "age"]


def test_geography_is_no_variable_unless_it_is_asked_for() -> None:
    book = qd.Codebook(
        (qd.Variable("county", role="geography", level=1), qd.Variable("tract", role="geography", level=2))
    )
    data = qd.from_frame(BEFORE.frame(), codebook=book)
    assert list(qd.score(data, AFTER, by="tract")) == [f"{name}(race)" for name in SIX]
    with pytest.raises(InputError, match="no key variable to score by area"):
        qd.score(data, AFTER, by=["race"])


def test_areas_of_one_file_only_have_no_value_and_say_why() -> None:
    late = records(("X", "a", "u", 4), ("X", "a", "v", 4), ("Y", "c", "u", 9), ("Z", "d", "u", 3), ("Z", "d", "v", 1))
    scores = qd.score(BEFORE, late, ["chi_square(race)", "hellinger(race)", "exposed(race)"], by=["tract"])
    rows = scores.by("chi_square(race)").to_dicts()
    assert [(row["area"], row["before"], row["after"], row["value"]) for row in rows] == [
        ("a", 8, 8, 0.0), ("b", 6, 0, None), ("c", 10, 9, 16 / 5 + 5), ("d", 0, 4, None),
    ]  # fmt: skip
    assert [row["note"] for row in rows] == [
        "nothing changed", "no record, or no weight, after", "", "no record, or no weight, before",
    ]  # fmt: skip
    assert [row["changed"] for row in rows] == [0, 6, 5, 4]
    spread = scores.spread().to_dicts()[0]
    assert (spread["areas"], spread["undefined"], spread["zero_cells"]) == (2, 2, 2)
    assert "2 of 4 areas have no value" in spread["note"]
    assert "2 cells were empty before" in spread["note"]
    assert column_of(scores, "hellinger(race)", "tract")[1] is None
    assert scores.ranking("chi_square(race)")["area"].to_list() == ["c", "a"]


def test_weights_count_in_their_unit() -> None:
    frame = pl.DataFrame({"tract": [0, 0, 1, 1, 0], "race": list("uvuvu"), "w": [1.5, 2.5, 3.0, 1.25, 0.75]})
    other = frame.with_columns(race=pl.Series(list("vuuvu")), w=pl.col("w") * 2)
    before, after = (qd.from_frame(each, weight="w") for each in (frame, other))
    scores = qd.score(before, after, ["chi_square(race)", "total_variation(race)"], by=["tract"])
    first = (6.5 - 2.25) ** 2 / 2.25 + (3 - 2.5) ** 2 / 2.5
    assert column_of(scores, "chi_square(race)", "tract") == pytest.approx([first, 3.0 + 1.25])
    assert column_of(scores, "total_variation(race)", "tract") == pytest.approx([abs(6.5 / 9.5 - 2.25 / 4.75), 0.0])
    assert column_of(scores, "chi_square(race)", "tract", "before") == [3, 2]


def test_a_condition_chooses_the_records_of_every_area() -> None:
    data = state()
    plan = swap(data)
    address, narrow = "chi_square(race)", "chi_square(race, where=sex=sex1)"
    mask = data["sex"].values == 1
    scores = qd.score(data, plan, [address], by=["tract"], where="sex=sex1")
    assert column_of(scores, address, "tract") == column_of(
        qd.score(data, plan, [narrow], by=["tract"]), narrow, "tract"
    )
    assert (
        scores.by(address)
        .drop("address")
        .equals(qd.score(data, plan, [address], by=["tract"], where=mask).by(address).drop("address"))
    )
    assert sum(column_of(scores, address, "tract", "before")) == mask.sum()
    nobody = qd.score(BEFORE, AFTER, [address], by=["tract"], where="tract=b & race=v & county=Y")
    assert nobody.by(address).height == nobody.ranking(address).height == 0
    assert nobody.by(address).columns == scores.by(address).columns
    assert nobody.spread()["mean"].to_list() == [None]


def test_the_ranking_has_the_most_affected_first_and_the_smaller_of_equals() -> None:
    data = state()
    scores = qd.score(data, swap(data, pairs=30), by=["tract"])
    values = scores.by("effective_swap_rate(race)")
    ranking = scores.ranking("effective_swap_rate(race)", top=7)
    order = values.sort(["value", "before"], descending=[True, False])
    assert ranking["area"].to_list() == order["area"].to_list()[:7] + order["area"].to_list()[-7:]
    assert ranking["rank"].to_list() == [*range(1, 8), *range(34, 41)]
    assert ranking["affected"].to_list() == ["most"] * 7 + ["least"] * 7
    assert ranking["ranked_by"].unique().to_list() == ["value"]
    assert ranking["equal"][-1] == (values["value"] == 0).sum() > 7
    signed = scores.ranking("gini_difference(race)", top=40)
    assert signed["ranked_by"].unique().to_list() == ["absolute value"]
    assert signed["value"].abs().to_list() == sorted(signed["value"].abs().to_list(), reverse=True)
    assert signed["affected"].unique().to_list() == ["most"]  # everything is shown once
    assert signed["value"].min() < 0 < signed["value"].max()
    assert scores.ranking("chi_square(race)", top=30)["rank"].to_list() == list(range(1, 41))
    large = values.filter(pl.col("before") >= 150)
    assert 2 < large.height < 40
    chosen = scores.ranking("effective_swap_rate(race)", top=40, min_records=150)
    assert chosen["area"].to_list() == large.sort(["value", "before"], descending=[True, False])["area"].to_list()
    assert chosen["of"].unique().to_list() == [large.height]
    middle = sorted(values["before"].to_list())[20]  # an area of exactly so many records is ranked
    least = scores.ranking("effective_swap_rate(race)", top=40, min_records=middle)
    assert least["of"].unique().to_list() == [values.filter(pl.col("before") >= middle).height]


def test_measures_of_who_was_swapped_need_to_know_it() -> None:
    data = state()
    plan = swap(data)
    address = "small_cells(race*age)"
    swapped = np.isin(np.arange(data.n), plan.rows)
    told = qd.score(data, plan.apply(data), [address], by=["tract"], swapped=swapped)
    assert column_of(told, address, "tract") == column_of(
        qd.score(data, plan, [address], by=["tract"]), address, "tract"
    )
    blind = qd.score(data, plan.apply(data), [address], by=["tract"])
    assert set(column_of(blind, address, "tract")) == {None}
    assert "needs to know who was swapped" in blind.spread()["note"][0]


def test_measures_of_several_tables_are_their_mean_in_each_area() -> None:
    data = state()
    plan = swap(data)
    scores = qd.score(data, plan, ["cramers_v_change(race*sex*age)"], by=["county"])
    for i, value in enumerate(column_of(scores, "cramers_v_change(race*sex*age)", "county")):
        alone = f"cramers_v_change(race*sex*age, where=county=county{i})"
        assert value == pytest.approx(qd.score(data, plan, [alone])[alone], abs=1e-14)


def test_measures_that_follow_the_plan_leave_out_the_area_itself() -> None:
    data = state()
    plan = swap(data)
    scores = qd.score(data, plan, ["hd3"], by=["tract"])
    assert column_of(scores, "hd3", "tract", "area")[0] == "tract0"
    only = qd.score(data, qd.RandomSwap(["tract"], pairs=30, seed=1).plan(data), ["hd3"], by=["tract"])
    assert set(column_of(only, "hd3", "tract", "note")) == {"only the area itself was moved"}
    nothing = qd.score(data, qd.Plan([], data=data), ["hd3"], by=["tract"])
    assert set(column_of(nothing, "hd3", "tract")) == {0.0}


@pytest.mark.parametrize(
    ("measures", "by", "message"),
    [
        (["chi_square(race)"], ["trat"], "Did you mean: 'tract'"),
        (["chi_square(race)"], ["race"], "is what the measure"),
        (["chi_square(race)"], [], "must be a list of columns"),
        (["chi_square(race)"], [3], "must be a list of columns"),
        (["chi_square(race)"], 5, "must be a list of columns"),
        (["chi_square(race, infinite=2)"], ["tract"], "'infinite' parameter of the measure chi_square must be 1"),
        (["chi_square(race)"], ["tract", "tract"], "A level occurs twice"),
        (["chi_square(race)"], ["tract*tract"], "A column occurs twice"),
        (["chi_square(race)"], ["x"], "'x' is numeric, and by= needs categories"),
        (["chi_square(race)"], ["name"], "identifies records"),
        (["cramers_v_change(tract*race)"], ["tract"], "is what the measure"),
        (["r_ased(race*tract)"], ["tract"], "is not computed from a table"),
        (["ordinal_shift(race)"], ["tract"], "is not computed from a table"),
        ([], ["tract"], "at least one"),
        (None, None, "at least one"),
    ],
)
def test_bad_levels_and_measures_are_refused(measures: list[str] | None, by: list[str] | None, message: str) -> None:
    n = BEFORE.n
    extra = pl.DataFrame({"x": np.arange(n) / 7, "name": [f"ZQ{i}" for i in range(n)]})
    book = qd.Codebook((qd.Variable("name", role="id"),))
    data = qd.from_frame(pl.concat([BEFORE.frame(), extra], how="horizontal"), codebook=book)
    with pytest.raises((InputError, ParameterError), match=message) as caught:
        qd.score(data, data, measures, by=by)
    assert "ZQ" not in str(caught.value)


def test_asking_for_what_was_not_scored_is_refused() -> None:
    scores = qd.score(BEFORE, AFTER, ["chi_square(race)"], by=["tract"])
    for ask, message in [
        (lambda: scores.by("chi_square(sex)"), "was not scored"),
        (lambda: scores.by("chi_square(race)", "county"), "There is no level 'county'"),
        (lambda: scores.ranking("chi_square(race)", top=0), "'top' parameter of ranking"),
        (lambda: scores.ranking("chi_square(race)", min_records=-1), "'min_records' parameter of ranking"),
        (lambda: qd.score(BEFORE, AFTER, ["chi_square(race)"]).spread(), "Nothing was scored by area"),
    ]:
        with pytest.raises((InputError, ParameterError), match=message):
            ask()


def test_a_table_of_too_many_cells_to_take_apart_is_refused() -> None:
    random = np.random.default_rng(1)
    data = Data([column(f"V{i}", random.integers(0, 9, 50), 2000) for i in range(7)])
    names = "*".join(f"V{i}" for i in range(1, 7))
    with pytest.raises(InputError, match="too many possible cells"):
        qd.score(data, qd.RandomSwap(["V1"], pairs=3, seed=1).plan(data), [f"hellinger({names})"], by=["V0"])


def test_3200_tracts_six_measures_and_six_variables_take_about_a_second() -> None:
    data = qd.datasets.state()
    plan = qd.RandomSwap(["tract"], pairs=3200, seed=1).plan(data)
    qd.score(data, plan, ["chi_square(race)"], by=["tract"])  # compiles
    start = process_time()
    scores = qd.score(data, plan, by=["county", "tract"])
    assert process_time() - start < 5  # about 0.3 s on a quiet machine
    assert scores.spread().height == 2 * 6 * 6
    assert scores.spread()["areas"].unique().sort().to_list() == [67, 3200]


def test_infinite_values_are_said_and_written_as_json_knows_them() -> None:
    scores = qd.score(BEFORE, AFTER, ["chi_square(race, infinite=1)"], by=["tract"])
    assert column_of(scores, "chi_square(race, infinite=1)", "tract") == [2.0, inf, 0.0]
    row = scores.spread().to_dicts()[0]
    assert (row["mean"], row["sd"], row["p95"], row["whole"]) == (inf, None, inf, inf)
    assert row["note"] == "1 cell was empty before and not after"
    document = json.loads(as_json({"rows": [row], "other": (float("nan"), -inf, 1.5)}))
    assert document["rows"][0]["mean"] == "Infinity"
    assert document["other"] == [None, "-Infinity", 1.5]
    assert scores.ranking(top=1)["area"][0] == "b"


def test_a_release_with_an_infinite_score_writes_valid_json(tmp_path: Path) -> None:
    data = state(600)
    done = qd.release(
        data,
        qd.RandomSwap(["tract"], pairs=60),
        out=tmp_path / "release",
        measures=["chi_square(tract*race*age, infinite=1)", "exposed"],
        allow_contradictions=True,  # its county is no level of geography, and stays
    )
    text = (done.confidential / "scores.json").read_text()
    found = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert found["chi_square(tract*race*age, infinite=1)"]["value"] == "Infinity"


def test_a_mean_over_tables_counts_the_tables_that_come_with_a_note() -> None:
    data = state(400)
    plan = swap(data, pairs=60)
    scores = qd.score(data, plan, ["chi_square(2-way)"])
    pairs = [(a, b) for i, a in enumerate(data.columns) for b in data.columns[i + 1 :]]
    single = qd.score(data, plan, [f"chi_square({a}*{b})" for a, b in pairs])
    noted = [address for address in single if "empty before" in single.note(address)]
    assert 0 < len(noted) < len(pairs)
    assert scores.note("chi_square(2-way)").startswith(
        f"{len(noted)} of {len(pairs)} tables come with a note, such as: "
    )
    total = sum(int(single.results[address][1].detail["zero_cells"]) for address in single)
    assert scores.results["chi_square(2-way)"][1].detail["zero_cells"] == total > 0


def test_flows_count_the_records_that_changed_their_area() -> None:
    data = state()
    plan = swap(data)
    after = plan.apply(data)
    flows = qd.area_flows(data, plan, "county")
    table = np.zeros((5, 5), dtype=int)
    np.add.at(table, (data["county"].values, after["county"].values), 1)
    expected = {(f"county{i}", f"county{j}"): table[i, j] for i in range(5) for j in range(5) if i != j and table[i, j]}
    assert {row[1:3]: row[3] for row in flows.iter_rows()} == expected
    assert flows["records"].to_list() == sorted(flows["records"], reverse=True)
    swapped = np.isin(np.arange(data.n), plan.rows)
    told = qd.area_flows(data, after, "county", swapped=swapped)
    assert told.sort("origin", "destination").equals(flows.sort("origin", "destination"))
    assert set(qd.area_flows(data, plan, "county*sex")["level"]) == {"county*sex"}
    shuffled = after.take(np.random.default_rng(1).permutation(data.n))
    with pytest.raises(InputError, match="in the same order"):
        qd.area_flows(data, shuffled, "county")
    with pytest.raises(InputError, match="records that were not swapped have another area"):
        qd.area_flows(data, shuffled, "county", swapped=swapped)
    with pytest.raises(InputError, match=r"they have 6,000 and 5,999 rows"):
        qd.area_flows(data, after.take(np.arange(data.n - 1)), "county")
    with pytest.raises(ParameterError, match="true or false for each of the 6,000 rows"):
        qd.area_flows(data, after, "county", swapped=swapped[:-1])
    with pytest.raises(ParameterError, match="A plan knows who was swapped"):
        qd.area_flows(data, plan, "county", swapped=swapped)
    with pytest.raises(InputError, match="No record changes its area of 'sex'"):
        qd.area_flows(data, plan, "sex")
    with pytest.raises(ParameterError, match="one column or cross"):
        qd.area_flows(data, plan, ["county"])


def test_flows_of_units_count_units_and_the_coarsest_level_that_they_cross() -> None:
    data = qd.datasets.census(800)
    options: dict[str, Any] = {"levels": ["nuts1", "nuts2", "nuts3"], "similar": [[]], "rate": 0.2, "seed": 3}
    plan = qd.TargetedSwap(["gender"], **options).plan(data)
    assert plan.unit_pairs is not None and plan.units is not None
    before, after = data.frame(), plan.apply(data).frame()
    households = before.with_columns(new=after["nuts3"], new1=after["nuts1"], new2=after["nuts2"]).unique("hid")
    moved = households.filter(pl.col("nuts3") != pl.col("new"))
    crosses = pl.when(pl.col("nuts1") != pl.col("new1")).then(pl.lit("nuts1"))
    crosses = crosses.when(pl.col("nuts2") != pl.col("new2")).then(pl.lit("nuts2")).otherwise(pl.lit("nuts3"))
    counted = moved.group_by(pl.col("nuts3", "new").cast(pl.String)).agg(
        pl.len(), pl.col("hsize").sum(), crosses.first()
    )
    flows = qd.area_flows(data, plan, "nuts3")
    assert {row[1:] for row in flows.iter_rows()} == {(a, b, size, level, n) for a, b, n, size, level in counted.rows()}
    assert flows["units"].sum() == len(plan.units)
    details: Any = plan.report(data).details
    levels = flows.group_by("crosses").agg(pl.col("units").sum())
    assert dict(levels.rows()) == {row["level"]: row["units"] for row in details["pairs_crossing"] if row["units"]}
    assert "crosses" not in qd.area_flows(data, plan, "nuts1").columns  # nothing lies above
    notes = str(chart.flows(flows).to_dict()["title"])
    assert f"{flows['records'].sum():,} records of {flows['units'].sum():,} units moved" in notes
    assert f"nuts1 {dict(levels.rows())['nuts1']:,}" in notes


def test_flows_of_files_sorted_alike_are_refused_unless_an_identifier_agrees() -> None:
    """Sorted by all that agrees, rows look aligned and are not: the flows would be those of other records."""
    data = state(600)
    named = qd.from_frame(data.frame().with_columns(name=pl.int_range(600)))
    plan = swap(named, pairs=60)
    after = plan.apply(named).frame()
    columns = ["race", "sex", "age", "tract"]
    before = qd.from_frame(named.frame().sort(columns).drop("name"))
    with pytest.raises(InputError, match=r"what agrees row by row \(columns: 3\) tells .* apart.*--recipe"):
        qd.area_flows(before, qd.from_frame(after.sort(columns).drop("name")), "tract")
    flows = qd.area_flows(named, qd.from_frame(after), "tract")
    assert flows["records"].sum() == plan.report(named).variables[0].changed


def test_records_without_an_area_are_no_area_and_are_counted() -> None:
    tracts = ["a"] * 6 + ["b"] * 6 + [None] * 4
    frame = pl.DataFrame({"tract": tracts, "race": list("uuuvvv" * 2 + "uuvv")})
    other = frame.with_columns(race=pl.Series(list("uuvvvv" + "uuuvvv" + "uuuu")))
    scores = qd.score(qd.from_frame(frame), qd.from_frame(other), ["chi_square(race)"], by=["tract"])
    rows = scores.by("chi_square(race)").to_dicts()
    assert [(row["before"], row["note"]) for row in rows] == [
        (6, ""), (6, "nothing changed"), (4, "these records have no area"),
    ]  # fmt: skip
    spread = scores.spread().to_dicts()[0]
    assert (spread["areas"], spread["undefined"], spread["note"]) == (2, 0, "4 records have no area: left out")
    assert spread["mean"] == pytest.approx((1 / 3 + 1 / 3 + 0) / 2)
    assert scores.ranking("chi_square(race)")["area"].to_list() == ["a", "b"]
    assert scores.ranking("chi_square(race)")["of"].to_list() == [2, 2]
    short = qd.score(qd.from_frame(frame), qd.from_frame(other.head(15)), ["chi_square(race)"], by=["tract"])
    assert short.spread()["note"].to_list() == ["4 records before and 3 after have no area: left out"]


def test_declared_areas_without_a_record_are_counted_and_so_is_nobody() -> None:
    book = qd.Codebook((qd.Variable("tract", role="geography", level=1, categories=("a", "b", "c", "d", "e")),))
    before, after = (qd.from_frame(each.frame(), codebook=book) for each in (BEFORE, AFTER))
    scores = qd.score(before, after, ["chi_square(race)"], by=["tract", "tract*county"])
    notes = scores.spread()["note"].to_list()
    assert "2 declared areas have no record that counts" in notes[0]
    assert "declared" not in notes[1]  # nobody declares a cross
    one = qd.score(before, after, ["chi_square(race)"], by=["tract"], where="tract=b")
    assert "4 declared areas have no record that counts" in one.spread()["note"][0]
    nobody = qd.score(before, after, ["chi_square(race)"], by=["tract"], where="tract=e")
    assert nobody.spread()["note"].to_list() == ["no record to score: none fulfils the condition"]


def test_scores_of_several_rates_are_those_of_each_recipe() -> None:
    data = state()
    recipes = qd.grid(qd.RandomSwap, swap=[["tract"]], rate=[0.01, 0.05], seed=range(3))
    seen = []
    frame = qd.score_recipes(data, recipes, ["chi_square(tract*race)"], progress=lambda *done: seen.append(done)).runs
    assert frame["rate"].to_list() == [0.01] * 3 + [0.05] * 3
    for recipe, value in zip(recipes, frame["value"], strict=True):
        assert value == qd.score(data, recipe.plan(data), ["chi_square(tract*race)"])["chi_square(tract*race)"]
    assert seen[-1] == (6, 6)
    with pytest.raises(ParameterError, match="one recipe or more"):
        qd.score_recipes(data, [], ["chi_square(tract*race)"])


def test_tables_of_results_are_private_files(tmp_path: Path) -> None:
    frame = qd.score(BEFORE, AFTER, by=["tract"]).by()
    for name, read in (("a.csv", pl.read_csv), ("a.parquet", pl.read_parquet)):
        path = tmp_path / name
        write_table(frame, path)
        assert path.stat().st_mode & 0o777 == 0o600
        assert read(path).height == frame.height
    with pytest.raises(qd.QuadrilleError, match="must end in"):
        write_table(frame, tmp_path / "a.xlsx")
