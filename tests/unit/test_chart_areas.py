"""Charts of areas: flows, ranking, metrics against rate; what is drawn is what was given, and all of it is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import quadrille as qd
from chart_specs import Spec, layers, panels
from quadrille import chart
from quadrille.chart.matrices import OTHER
from quadrille.errors import InputError, ParameterError
from strategies import file_of


def values(spec: Spec, layer: Spec) -> list[dict[str, Any]]:
    data = layer["data"]
    return spec["datasets"][data["name"]] if "name" in data else data["values"]


def drawn(spec: Spec, panel: Spec, mark: str) -> list[dict[str, Any]]:
    return [row for layer in layers(panel) if layer["mark"]["type"] == mark for row in values(spec, layer)]


def told(spec: Spec) -> str:
    return " ".join(spec["title"]["subtitle"])


def moved(count: int) -> pl.DataFrame:
    """Flows between areas A00, A01, ...: the later an area, the larger its flows."""
    rows = [("county", f"A{i:02}", f"A{j:02}", i + j) for i in range(count) for j in range(count) if i != j]
    return pl.DataFrame(rows, schema=["level", "origin", "destination", "records"], orient="row")


def test_few_areas_have_a_cell_and_a_number_each() -> None:
    flows = moved(4)
    spec = chart.flows(flows).to_dict()
    cells = drawn(spec, spec, "text")
    assert {(row["origin"], row["destination"]): row["text"] for row in cells} == {
        row[1:3]: f"{row[3]:,}" for row in flows.iter_rows()
    }
    assert "36 records moved between 4 areas." in told(spec)
    assert spec["title"]["text"] == "Where records moved, by county"
    assert OTHER not in told(spec)


def test_the_largest_areas_are_shown_and_the_rest_share_a_row_without_losing_a_record() -> None:
    flows = moved(30)
    spec = chart.flows(flows, most=20).to_dict()
    squares = [row for row in drawn(spec, spec, "rect") if "records" in row]
    assert sum(row["records"] for row in squares) == flows["records"].sum()
    assert {row["origin"] for row in squares} == {f"A{i:02}" for i in range(10, 30)} | {OTHER}
    among = flows.filter(~pl.col("origin").str.contains("A[12]") & ~pl.col("destination").str.contains("A[12]"))
    rest = {(row["origin"], row["destination"]): row["records"] for row in squares}
    assert rest[OTHER, OTHER] == among["records"].sum()
    assert {row["text"] for row in drawn(spec, spec, "text")} == {
        f"{int(records):,}" for cell, records in rest.items() if OTHER in cell
    }
    assert "the 20 areas with the largest flows; 10 areas share 'all others'" in told(spec)
    scale = next(layer["encoding"]["color"]["scale"] for layer in spec["layer"] if "color" in layer["encoding"])
    assert scale["domain"][-1] == 28 + 29  # the colours are for the areas shown, not for what the rest add up to


def test_flows_without_a_record_or_with_a_bad_number_are_refused() -> None:
    with pytest.raises(InputError, match="no record moved"):
        chart.flows(moved(3).with_columns(records=0))
    with pytest.raises(InputError, match="no column 'origin'"):
        chart.flows(moved(3).rename({"origin": "from"}))
    with pytest.raises(ParameterError, match="'most' parameter of flows"):
        chart.flows(moved(3), most=0)


def scores() -> qd.Scores:
    random = np.random.default_rng(1)
    tract = random.integers(0, 40, 4000)
    data = file_of(county=tract // 8, tract=tract, race=(random.random(4000) ** (1 + tract % 3) * 4).astype(int))
    plan = qd.RandomSwap(["tract", "county"], differ="any", pairs=30, seed=1).plan(data)
    return qd.score(data, plan, by=["county", "tract"])


def test_each_ranked_area_has_a_bar_and_a_gap_says_how_many_are_between() -> None:
    ranking = scores().ranking("effective_swap_rate(race)", top=4)
    spec = chart.ranking(ranking).to_dict()
    for panel, level, between in zip(panels(spec), ("county", "tract"), (0, 32), strict=True):
        expected = ranking.filter(pl.col("level") == level)
        bars = drawn(spec, panel, "bar")
        assert [(row["area"], row["value"]) for row in bars] == expected.select("area", "value").rows()
        names = panel["layer"][0]["encoding"]["y"]["scale"]["domain"]
        assert len(names) == expected.height + bool(between)
        assert (f"… {between} between …" in names) == bool(between)
        assert names[0] == f"1. {expected['area'][0]} ({expected['before'][0]})"
        text = [row["text"] for row in drawn(spec, panel, "text")]
        assert set(text) == {f"{value:.4g}" for value in expected["value"]}
    equal = ranking.filter(pl.col("level") == "tract")["equal"][-1]
    assert equal > 4
    assert panels(spec)[1]["title"]["text"] == f"tract: 40 areas, {equal} of them at 0"
    assert "Ranked by" not in told(spec)


def test_a_signed_ranking_says_how_it_is_ranked_and_what_its_sign_means() -> None:
    ranking = scores().ranking("gini_difference(race)", by="tract", top=5)
    spec = chart.ranking(ranking).to_dict()
    assert "Ranked by absolute value." in told(spec)
    assert "not a stronger perturbation" in told(spec)
    low, high = panels(spec)[0]["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert low < ranking["value"].min() < 0 < ranking["value"].max() < high


def test_infinite_values_are_left_out_of_the_ranking_and_counted() -> None:
    ranking = scores().ranking("chi_square(race)", by="tract", top=3)
    worst = ranking.with_columns(value=pl.when(pl.col("rank") == 1).then(float("inf")).otherwise("value"))
    assert "Left out: 1 area with an infinite value." in told(chart.ranking(worst).to_dict())
    with pytest.raises(InputError, match="no area in the frame for ranking"):
        chart.ranking(worst.head(1))
    with pytest.raises(InputError, match="has 2 measures"):
        chart.ranking(pl.concat([ranking, ranking.with_columns(address=pl.lit("deviance(race)"))]))


def runs() -> pl.DataFrame:
    names = ["chi_square(A*B)", "gini_difference(A*B)", "exposed"]
    rows = [(r, m, k * r + s / 10 - 0.2) for k, m in enumerate(names) for r in (0.01, 0.05) for s in range(4)]
    return pl.DataFrame(rows, schema=["rate", "measure", "value"], orient="row")


def test_each_measure_has_a_panel_with_all_runs_and_their_mean_at_each_rate() -> None:
    frame = runs()
    spec = chart.metrics_by_rate(frame).to_dict()
    assert [panel["title"]["text"] for panel in panels(spec)] == frame["measure"].unique(maintain_order=True).to_list()
    for panel in panels(spec):
        here = frame.filter(pl.col("measure") == panel["title"]["text"])
        points = [row for row in drawn(spec, panel, "point") if "runs" not in row]
        assert [(row["rate"], row["value"]) for row in points] == here.select("rate", "value").rows()
        means = {row["rate"]: row["value"] for row in drawn(spec, panel, "line")}
        assert means == pytest.approx(dict(here.group_by("rate").agg(pl.col("value").mean()).rows()))
        zero = any(row.get("zero") == 0 for row in drawn(spec, panel, "rule"))
        assert zero == (here["value"].min() < 0)
    assert "larger is not more perturbed" in told(spec)


def test_undefined_values_are_counted_and_the_n_rule_is_not_shown_alone() -> None:
    frame = pl.concat(
        [runs(), pl.DataFrame({"rate": [0.01], "measure": ["exposed"], "value": [None]}, schema=runs().schema)]
    )
    assert "Left out: 1 value undefined or infinite." in told(chart.metrics_by_rate(frame).to_dict())
    alone = runs().with_columns(measure=pl.lit("small_cells"))
    with pytest.raises(ParameterError, match="cannot show small_cells alone"):
        chart.metrics_by_rate(alone)


def test_the_three_charts_are_written_as_pictures(tmp_path: Path) -> None:
    ranking = scores().ranking("chi_square(race)")
    figures = (chart.flows(moved(25)), chart.ranking(ranking), chart.metrics_by_rate(runs()))
    for name, figure in zip("abc", figures, strict=True):
        path = chart.save(figure, tmp_path / f"{name}.png")
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size > 10_000
