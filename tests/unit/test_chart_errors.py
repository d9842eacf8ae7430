"""Charts of errors: every cell where it belongs, the band of rounding flat, what is left out or too far off is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chart_specs import Spec, layers
from effort import examples
from quadrille import chart
from quadrille.chart.cell_sizes import _Logs
from quadrille.chart.theme import HUES
from quadrille.errors import InputError


def sizes() -> pl.DataFrame:
    rows = [
        {"label": f"cell {i}", "group": group, "count": count, "rmse": 0.05 * count + 0.1, "rounding": rounding}
        for group in ("Region I", "Region II")
        for i, (count, rounding) in enumerate(((0, 0.0), (3, 6**0.5), (14, 2.0), (1000, 0.0), (20_001, 2.0)))
    ]
    return pl.DataFrame(rows).with_columns(named=pl.col("count") == 20_001)


def changes() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "label": ["a", "b", "c", "d", "fixed", "fixed and wrong", "unknown"],
            "bias": [-10.0, 20.0, 0.0, 5.0, 1.5, 1.5, 1.0],
            "sd": [2.0, 2.0, 3.0, 1.0, 0.0, 0.0, 1.0],
            "realised": [-13.0, 28.0, 12.1, 1.0, 1.5, 2.5, None],
        }
    )


def rows(spec: Spec, mark: str, panel: Spec | None = None) -> list[list[Spec]]:
    found = [layer for layer in layers(panel or spec) if layer["mark"]["type"] == mark]
    return [spec["datasets"][one["data"]["name"]] if "name" in one["data"] else one["data"]["values"] for one in found]


def told(spec: Spec) -> str:
    return " ".join([spec["title"]["text"], *spec["title"]["subtitle"]])


def test_every_cell_is_drawn_by_count_and_error_in_the_colour_and_shape_of_its_group() -> None:
    spec = chart.error_by_size(sizes()).to_dict()
    (points,) = rows(spec, "point")
    drawn = sorted((p["label"], p["group"], p["count"], p["rmse"]) for p in points)
    assert drawn == sorted(sizes().select("label", "group", "count", "rmse").rows())
    (dots,) = [layer for layer in layers(spec) if layer["mark"]["type"] == "point"]
    encoding = dots["encoding"]
    assert (encoding["x"]["field"], encoding["x"]["scale"]["type"]) == ("count", "symlog")
    assert (encoding["y"]["field"], encoding["y"]["scale"]["type"]) == ("rmse", "log")
    for channel in ("color", "shape"):
        assert encoding[channel]["field"] == "group"
        assert encoding[channel]["scale"]["domain"] == ["Region I", "Region II"]
        assert len(set(encoding[channel]["scale"]["range"])) == 2
    assert "10 cells" in told(spec)


def test_the_band_of_rounding_is_flat_across_all_counts_and_told() -> None:
    spec = chart.error_by_size(sizes()).to_dict()
    ((band,),) = rows(spec, "rect")
    for layer in layers(spec):
        assert layer["encoding"]["x"]["scale"]["domain"] == [band["left"], band["right"]]
    assert band["low"] == pytest.approx(2.0, rel=0.03) and band["high"] == pytest.approx(6**0.5, rel=0.03)
    assert "(2 to 2.45)" in told(spec)
    plain = chart.error_by_size(sizes().drop("rounding")).to_dict()
    assert not rows(plain, "rect") and "rounding" not in told(plain)
    none = chart.error_by_size(sizes().with_columns(rounding=0.0)).to_dict()
    assert not rows(none, "rect") and "rounding" not in told(none)


def test_sampling_errors_are_dashes_of_their_own_and_named_cells_are_named() -> None:
    spec = chart.error_by_size(sizes().with_columns(sampling=pl.col("count").sqrt())).to_dict()
    dashes, points = rows(spec, "point")
    assert {round(p["sampling"] ** 2) for p in dashes} == {3, 14, 1000, 20_001} and len(points) == 10
    assert "standard errors of sampling" in told(spec)
    texts = [row["text"] for part in rows(spec, "text") for row in part]
    assert texts.count("cell 4") == 2 * 2, "both, each with its halo"
    assert "sampling" not in told(chart.error_by_size(sizes()).to_dict())


def test_weighted_totals_are_not_called_counts() -> None:
    spec = chart.error_by_size(sizes(), size="Weighted total of the cell").to_dict()
    assert "its weighted total to the right" in told(spec) and "its count" not in told(spec)
    assert "its count to the right" in told(chart.error_by_size(sizes()).to_dict())


def test_lines_of_equal_share_are_where_the_error_is_that_share_of_the_count() -> None:
    spec = chart.error_by_size(sizes()).to_dict()
    (line,) = rows(spec, "line")
    shares = {"1 %": 0.01, "10 %": 0.1, "100 %": 1.0}
    assert {point["share"] for point in line} == set(shares)
    for point in line:
        assert point["error"] == pytest.approx(shares[point["share"]] * point["count"])


@given(st.floats(10, 1e9), st.floats(1e-3, 1e3), st.floats(100, 1e6), st.floats(0, 600), st.floats(0, 400))
def test_places_and_values_of_the_logarithmic_area_are_inverse(
    most: float, low: float, ratio: float, x: float, y: float
) -> None:
    axes = _Logs(most, (low, low * ratio))
    assert axes.pixels(*axes.values(x, y)) == pytest.approx((x, y), abs=1e-6)


@examples(10)
@given(st.floats(1e-6, 1e6), st.integers(0, 10**9))
def test_a_single_cell_of_any_size_has_axes_with_ticks(rmse: float, count: int) -> None:
    frame = pl.DataFrame({"label": ["only"], "group": ["5 %"], "count": [count], "rmse": [rmse]})
    spec = chart.error_by_size(frame).to_dict()
    for layer in layers(spec):
        low, high = layer["encoding"]["y"]["scale"]["domain"]
        assert low < rmse < high
        ticks = layer["encoding"]["y"]["axis"]["values"]
        assert len(ticks) >= 2 and all(low <= tick <= high for tick in ticks)
        assert layer["encoding"]["x"]["scale"]["domain"][1] > count


def test_cells_that_cannot_change_are_left_out_and_counted_and_many_are_thinned() -> None:
    odd = sizes().with_columns(rmse=pl.when(pl.col("count") == 3).then(0.0).otherwise("rmse"))
    odd = odd.with_columns(count=pl.when(pl.col("count") == 14).then(None).otherwise("count"))
    spec = chart.error_by_size(odd).to_dict()
    assert "Left out: 4 cells" in told(spec) and "6 cells" in told(spec)
    dice = np.random.default_rng(3)
    many = pl.DataFrame({"label": "x", "group": "5 %", "count": dice.integers(0, 9999, 7000), "rmse": 1.0})
    spec = chart.error_by_size(many.with_columns(named=pl.int_range(pl.len()) == 17)).to_dict()
    assert len(rows(spec, "point")[0]) == 5000 and "Shown: 5,000 of 7,000 cells" in told(spec)


def test_bad_frames_of_sizes_are_refused() -> None:
    for column in ("label", "group", "count", "rmse"):
        with pytest.raises(InputError, match=f"error_by_size has no column '{column}'"):
            chart.error_by_size(sizes().drop(column))
    with pytest.raises(InputError, match="nothing to draw"):
        chart.error_by_size(sizes().clear())
    with pytest.raises(InputError, match="nothing to draw"):
        chart.error_by_size(sizes().with_columns(rmse=0.0))
    with pytest.raises(InputError, match="negative"):
        chart.error_by_size(sizes().with_columns(rmse=-pl.col("rmse")))
    crowd = pl.DataFrame({"label": "x", "group": [f"g{i}" for i in range(8)], "count": 5, "rmse": 1.0})
    assert len(crowd) == len(HUES) + 1
    with pytest.raises(InputError, match="8 groups"):
        chart.error_by_size(crowd)


def test_realised_changes_stand_against_predicted_ones_with_bars_of_two_deviations() -> None:
    spec = chart.predicted_realised(changes()).to_dict()
    left, right = spec["hconcat"]
    points = [p for part in rows(spec, "point", left) for p in part]
    known = changes().drop_nulls()
    assert sorted((p["label"], p["bias"], p["realised"]) for p in points) == sorted(
        known.select("label", "bias", "realised").rows()
    )
    line, bars = rows(spec, "rule", left)
    assert {(b["bias"], b["low"], b["high"]) for b in bars} == {
        (b, b - 2 * s, b + 2 * s) for b, s in known.select("bias", "sd").rows()
    }
    for layer in layers(left):
        for side in ("x", "y"):
            assert layer["encoding"][side]["scale"]["domain"] == [line[0]["low"], line[0]["high"]]
    scores = {p["label"]: p["z"] for part in rows(spec, "point", right) for p in part}
    assert scores == pytest.approx({"a": -1.5, "b": 4.0, "c": 12.1 / 3, "d": -4.0})


def test_cells_outside_four_deviations_are_flagged_named_and_counted() -> None:
    spec = chart.predicted_realised(changes()).to_dict()
    left, right = spec["hconcat"]
    states = {p["label"]: p["state"] for part in rows(spec, "point", left) for p in part}
    assert [name for name, state in states.items() if state == "outside 4 sd"] == ["c", "fixed and wrong"]
    assert [row["text"] for row in rows(spec, "text", right)[0]] == ["c"]
    assert "Outside 4 standard deviations: 2 of 6." in told(spec)
    assert "Within 2: 25 % (about 95 % are expected)." in told(spec)
    assert "Not on the right: 2 cells that cannot vary." in told(spec)
    assert "Left out: 1 cell without a value." in told(spec)
    bands = sorted((part[0]["low"], part[0]["high"]) for part in rows(spec, "rect", right))
    assert bands == [(-4.0, 4.0), (-2.0, 2.0)]


def test_tables_that_cannot_vary_at_all_are_drawn_too() -> None:
    still = pl.DataFrame({"label": ["a"], "bias": [0.0], "sd": [0.0], "realised": [0.0]})
    spec = chart.predicted_realised(still).to_dict()
    assert "Outside 4 standard deviations: 0 of 1." in told(spec) and "Within 2" not in told(spec)


def test_many_changes_are_thinned_but_never_a_flagged_one() -> None:
    z = np.random.default_rng(1).standard_normal(7000)
    z[::1000] = 9
    frame = pl.DataFrame({"label": "x", "bias": np.linspace(-50, 50, 7000), "sd": 1.0}).with_columns(
        realised=pl.col("bias") + pl.Series(z)
    )
    spec = chart.predicted_realised(frame).to_dict()
    plain, flagged = rows(spec, "point", spec["hconcat"][1])
    assert len(plain) + len(flagged) == 5000 and len(flagged) == 7
    assert "Named: the 6 furthest." in told(spec) and "Shown: 5,000" in told(spec)


def test_bad_frames_of_changes_are_refused() -> None:
    for column in ("label", "bias", "sd", "realised"):
        with pytest.raises(InputError, match=f"predicted_realised has no column '{column}'"):
            chart.predicted_realised(changes().drop(column))
    with pytest.raises(InputError, match="nothing to draw"):
        chart.predicted_realised(changes().with_columns(realised=pl.lit(None)))
    with pytest.raises(InputError, match="negative"):
        chart.predicted_realised(changes().with_columns(sd=-pl.col("sd")))


@pytest.mark.parametrize("draw", [lambda: chart.error_by_size(sizes()), lambda: chart.predicted_realised(changes())])
def test_both_charts_are_saved_as_pictures(draw: Any, tmp_path: Path) -> None:
    assert chart.save(draw(), tmp_path / "c.png").stat().st_size > 20_000
