"""Charts of after against before and of runs, and the table of runs: nothing lost, nothing hidden, all of it told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quadrille as qd
from chart_specs import Spec, layers, panels
from effort import examples
from quadrille import chart
from quadrille.errors import InputError, ParameterError
from quadrille.study.study import Study, family


def rows(spec: Spec, panel: Spec, mark: str) -> list[list[Spec]]:
    found = [layer for layer in layers(panel) if layer["mark"]["type"] == mark]
    return [spec["datasets"][one["data"]["name"]] if "name" in one["data"] else one["data"]["values"] for one in found]


def told(spec: Spec) -> str:
    return " ".join(spec["title"]["subtitle"])


def estimates() -> pl.DataFrame:
    points = [("percents", "race: a", 10.0, 10.5, False), ("percents", "race: b", 90.0, 89.5, True)]
    points += [("means of score", f"age: {i}", 200.0 + i, 201.0 + 2 * i, i > 1) for i in range(12)]
    points += [("correlations", "race × age", -0.5, -0.45, False), ("correlations", "age × score", None, 0.1, False)]
    return pl.DataFrame(points, schema=["kind", "label", "before", "after", "flagged"], orient="row")


def test_each_kind_has_a_square_panel_with_the_line_of_no_change_from_corner_to_corner() -> None:
    spec = chart.after_before(estimates()).to_dict()
    assert len(panels(spec)) == 3
    for panel, kind in zip(panels(spec), ("percents", "means of score", "correlations"), strict=True):
        assert panel["width"] == panel["height"]
        ((line,), *_) = rows(spec, panel, "rule")
        scales = []
        for layer in panel["layer"]:
            for side, when in (("x", "before"), ("y", "after")):
                assert layer["encoding"][side]["title"] == f"{kind}, {when}"
                scales.append(layer["encoding"][side]["scale"]["domain"])
        assert all(scale == [line["low"], line["high"]] for scale in scales)


def test_every_estimate_is_drawn_where_it_is_and_flagged_ones_differ_in_colour_and_shape() -> None:
    spec = chart.after_before(estimates()).to_dict()
    drawn = [
        (p["label"], p["before"], p["after"], p["state"] == "flagged")
        for panel in panels(spec)
        for part in rows(spec, panel, "point")
        for p in part
    ]
    known = estimates().drop_nulls("before").select("label", "before", "after", "flagged").rows()
    assert sorted(drawn) == sorted(known)
    for layer in layers(spec):
        if layer["mark"]["type"] == "point":
            encoding = layer["encoding"]
            assert (encoding["x"]["field"], encoding["y"]["field"]) == ("before", "after")
            for channel in ("color", "shape"):
                assert encoding[channel]["field"] == "state"
                assert len(set(encoding[channel]["scale"]["range"])) == 2


def test_flagged_points_are_named_the_worst_first_and_what_is_left_out_is_told() -> None:
    spec = chart.after_before(estimates()).to_dict()
    named = [[row["text"] for row in rows(spec, panel, "text")[0]] for panel in panels(spec)[:2]]
    assert named[0] == ["race: b"]
    assert named[1] == [f"age: {i}" for i in (11, 10, 9, 8, 7, 6)]
    assert not rows(spec, panels(spec)[2], "text")
    assert "Flagged: 11 of 15." in told(spec)
    assert "Named: in each panel the 6 flagged ones that changed most." in told(spec)
    assert "Left out: 1 estimate without a value before and after." in told(spec)
    assert "dashed line it is the same after the swap as before" in told(spec)
    assert "15 estimates" in spec["title"]["text"]


def test_many_points_are_thinned_but_never_a_flagged_one() -> None:
    many = pl.DataFrame(
        {
            "kind": "correlations",
            "label": [f"p{i}" for i in range(7000)],
            "before": np.linspace(-0.9, 0.9, 7000),
            "after": np.linspace(-0.9, 0.9, 7000) + 0.01,
            "flagged": np.arange(7000) % 1000 == 7,
        }
    )
    spec = chart.after_before(many).to_dict()
    plain, flagged = rows(spec, spec, "point")
    assert len(plain) + len(flagged) == 5000 and len(flagged) == 7
    assert "Shown: 5,000; points that are not flagged are thinned." in told(spec)


@pytest.mark.parametrize("column", ["kind", "label", "before", "after", "flagged"])
def test_a_frame_without_a_column_is_refused(column: str) -> None:
    with pytest.raises(InputError, match=f"after_before has no column '{column}'"):
        chart.after_before(estimates().drop(column))


def test_frames_without_any_point_are_refused() -> None:
    with pytest.raises(InputError, match="nothing to draw"):
        chart.after_before(estimates().clear())
    with pytest.raises(InputError, match="nothing to draw"):
        chart.after_before(estimates().with_columns(after=pl.lit(None)))


def table(runs: int = 7, *, seed: int = 1) -> pl.DataFrame:
    dice = np.random.default_rng(seed)
    names = [
        ("HD", "hd1", 0.7),
        ("HD", "hd1_norm", 0.002),
        ("pairwise", "r_ased", 0.3),
        ("regression", "ased_reg", 2.0),
    ]
    return pl.DataFrame(
        [
            {"family": f, "measure": m, "better": "lower", **{f"run {i + 1}": c * v for i, v in enumerate(row)}}
            for (f, m, c), row in zip(names, dice.uniform(0.5, 1.5, (4, runs)), strict=True)
        ]
    )


@examples(5)
@given(st.integers(1, 60), st.integers(0, 1000))
def test_runs_are_in_the_order_of_their_numbers_and_measures_average_one(runs: int, seed: int) -> None:
    frame = table(runs, seed=seed)
    mixed = frame.select("family", "measure", "better", *reversed(frame.columns[3:]))
    spec = chart.runs(mixed).to_dict()
    assert spec == chart.runs(frame).to_dict()
    assert len(spec["vconcat"]) == 3
    for panel in spec["vconcat"]:
        (points,) = rows(spec, panel, "point")
        (dots,) = [layer for layer in panel["layer"] if layer["mark"]["type"] == "point"]
        assert dots["encoding"]["x"]["scale"]["domain"] == [str(i + 1) for i in range(runs)]
        for measure in {point["measure"] for point in points}:
            mine = [point for point in points if point["measure"] == measure]
            assert len(mine) == runs
            assert np.mean([point["relative"] for point in mine]) == pytest.approx(1)
            values = frame.filter(pl.col("measure") == measure).select(frame.columns[3:]).row(0)
            assert {point["run"]: point["value"] for point in mine} == {str(i + 1): v for i, v in enumerate(values)}


def test_the_chosen_run_is_marked_in_every_family() -> None:
    spec = chart.runs(table(), chosen=4).to_dict()
    for panel in spec["vconcat"]:
        assert [{"run": "4"}] in map(list, rows(spec, panel, "rule"))
    assert "The grey band marks run 4, the chosen one." in told(spec)
    assert "chosen" not in told(chart.runs(table()).to_dict())
    with pytest.raises(InputError, match="no run 8"):
        chart.runs(table(), chosen=8)


def test_undefined_values_and_measures_that_are_always_zero_are_left_out_and_told() -> None:
    frame = table()
    frame = frame.with_columns(
        pl.when(pl.col("measure") == "hd1").then(None).otherwise("run 2").alias("run 2"),
        *(pl.when(pl.col("measure") == "ased_reg").then(0.0).otherwise(f"run {i}").alias(f"run {i}") for i in (1, 3)),
    )
    assert "Left out: 1 value not defined." in told(chart.runs(frame).to_dict())
    nothing = frame.with_columns(
        pl.when(pl.col("family") == "regression").then(0.0).otherwise(name).alias(name) for name in frame.columns[3:]
    )
    spec = chart.runs(nothing).to_dict()
    assert len(spec["vconcat"]) == 2 and "Left out: 1 measure that is 0 in every run." in told(spec)
    with pytest.raises(InputError, match="0 in every run"):
        chart.runs(frame.with_columns(pl.lit(0.0).alias(name) for name in frame.columns[3:]))


def test_signed_measures_count_by_size_and_higher_is_better_is_told() -> None:
    frame = pl.DataFrame(
        {"family": ["other", "other"], "measure": ["up", "signed"], "better": ["higher", "nearer 0"],
         "run 1": [2.0, -1.0], "run 2": [4.0, 3.0]}
    )  # fmt: skip
    spec = chart.runs(frame).to_dict()
    (points,) = rows(spec, spec["vconcat"][0], "point")
    assert {(p["measure"], p["run"]): p["relative"] for p in points}["signed", "1"] == 0.5
    assert {p["name"] for p in points} == {"up (mean 3, higher is better)", "signed (mean 2)"}
    assert "lower is better, unless its name says otherwise" in told(spec)


def test_the_n_rule_never_stands_alone_among_runs() -> None:
    frame = pl.DataFrame({"family": ["other"], "measure": ["small_cells"], "better": ["lower"], "run 1": [0.1]})
    with pytest.raises(ParameterError, match="exposed stands beside it"):
        chart.runs(frame)
    both = pl.concat([frame, frame.with_columns(measure=pl.lit("exposed"))])
    assert len(chart.runs(both).to_dict()["vconcat"]) == 1


def test_bad_tables_of_runs_are_refused() -> None:
    with pytest.raises(InputError, match="runs has no column 'run 1'"):
        chart.runs(table().select("family", "measure", "better"))
    for column in ("family", "measure", "better"):
        with pytest.raises(InputError, match=f"runs has no column '{column}'"):
            chart.runs(table().drop(column))


@pytest.mark.parametrize("draw", [lambda: chart.after_before(estimates()), lambda: chart.runs(table(), chosen=2)])
def test_both_charts_are_saved_as_pictures(draw: Any, tmp_path: Path) -> None:
    assert chart.save(draw(), tmp_path / "c.png").stat().st_size > 20_000


@pytest.mark.parametrize(
    ("address", "name"),
    [("hd1", "HD"), ("hd4_norm(A*B)", "HD"), ("r_ased", "pairwise"), ("v_ard(A*B)", "pairwise"), ("hellinger", "other"),
     ("ased_reg(y ~ a)", "regression"), ("exposed(n=5)", "other")],
)  # fmt: skip
def test_measures_belong_to_families(address: str, name: str) -> None:
    assert family(address) == name


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    dice = np.random.default_rng(7)
    frame = pl.DataFrame({name: dice.integers(0, 4, 300) for name in "abc"} | {"w": dice.integers(1, 9, 300) / 2})
    data = qd.from_frame(frame, weight="w")
    recipes = qd.grid(qd.RandomSwap, swap=[["a"], ["b"]], pairs=[30], seeds=5)
    measures = ["exposed", "hd1(a*b)", "c_ard(a*b*c)", "hd3(a*b)"]
    return qd.search(data, recipes, measures, out=tmp_path_factory.mktemp("runs") / "study", progress=False)


def test_the_table_of_runs_holds_every_score_of_one_design(study: Study) -> None:
    frame = study.frame()
    for design in frame["design"].unique():
        found = study.runs(design)
        members = frame.filter(pl.col("design") == design).sort("id")
        assert found.columns == ["family", "measure", "better", *(f"run {i}" for i in members["id"])]
        assert found["measure"].to_list() == ["hd1(a*b)", "hd3(a*b)", "c_ard(a*b*c)", "exposed", "population_risk"]
        assert found["family"].to_list() == ["HD", "HD", "pairwise", "other", "other"]
        for number, *scores in members.select("id", *found["measure"]).rows():
            assert found[f"run {number}"].to_list() == scores
        assert chart.runs(found, chosen=members["id"][0]).to_dict()


def test_a_study_of_several_designs_needs_one_named(study: Study) -> None:
    with pytest.raises(InputError, match=r"has 2 designs.*design="):
        study.runs()
    with pytest.raises(InputError, match="no design 77"):
        study.runs(77)
