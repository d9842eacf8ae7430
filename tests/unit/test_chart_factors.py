"""Charts of simulated designs: every number where it belongs, undefined ones told, frames checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from chart_specs import Spec, layers
from quadrille import chart
from quadrille.errors import InputError


def rows(spec: Spec, mark: str) -> list[list[Spec]]:
    found = [layer for layer in layers(spec) if layer["mark"]["type"] == mark]
    return [spec["datasets"][one["data"]["name"]] if "name" in one["data"] else one["data"]["values"] for one in found]


def told(spec: Spec) -> str:
    return " ".join([spec["title"]["text"], *spec["title"]["subtitle"]])


def pairs() -> pl.DataFrame:
    return pl.DataFrame({"first": ["a", "a", "b"], "second": ["b", "c", "c"], "spearman": [0.9, -0.25, None]})


def effects() -> pl.DataFrame:
    return pl.DataFrame(
        [
            ("m", "intercept", "", 5.0, 4.9, 5.1),
            ("m", "rate", "low", -2.0, -2.5, -1.5),
            ("m", "size", "skewed", 0.5, 0.1, 0.9),
            ("n", "intercept", "", 1.0, None, None),
            ("n", "rate", "low", -1.0, None, None),
        ],
        schema=["metric", "factor", "level", "effect", "low", "high"],
        orient="row",
    )


def summary() -> pl.DataFrame:
    return pl.DataFrame(
        [
            (metric, factor, level, 3.0, 1.0, 2.0, 2.8, 4.0, 6.0)
            for metric in ("m", "n")
            for factor, level in (("all", ""), ("rate", "low"), ("rate", "high"))
        ],
        schema=["metric", "factor", "level", "mean", "p5", "p25", "median", "p75", "p95"],
        orient="row",
    )


def test_a_matrix_has_both_triangles_a_diagonal_of_1_and_says_what_is_undefined() -> None:
    spec = chart.correlation_matrix(pairs()).to_dict()
    known, unknown = rows(spec, "rect")
    values = {(row["first"], row["second"]): row["value"] for row in known}
    assert values["a", "b"] == values["b", "a"] == 0.9
    assert values["c", "a"] == -0.25
    assert all(values[name, name] == 1 for name in "abc")
    assert {(row["first"], row["second"]) for row in unknown} == {("b", "c"), ("c", "b")}
    assert "grey cell is undefined" in told(spec)
    (texts,) = rows(spec, "text")
    assert {row["text"] for row in texts} == {"1.00", "0.90", "−0.25", "–"}


def test_the_scale_of_a_matrix_runs_from_minus_1_to_1_whatever_the_values() -> None:
    spec = chart.correlation_matrix(pairs().head(1)).to_dict()
    (colour,) = [layer["encoding"]["color"] for layer in layers(spec) if "scale" in layer["encoding"].get("color", {})]
    assert colour["scale"]["domain"] == [-1, -0.5, 0, 0.5, 1]
    assert "undefined" not in told(spec)


def test_effects_are_drawn_with_their_intervals_and_the_intercept_is_not() -> None:
    spec = chart.factor_effects(effects()).to_dict()
    dots = [{row["label"]: row["value"] for row in panel} for panel in rows(spec, "point")]
    assert dots == [{"rate: low": -2.0, "size: skewed": 0.5}, {"rate: low": -1.0}]
    bars = [
        panel
        for layer in layers(spec)
        if layer["mark"]["type"] == "rule" and "x2" in layer["encoding"]
        for panel in [spec["datasets"][layer["data"]["name"]] if "name" in layer["data"] else layer["data"]["values"]]
    ]
    assert [(row["low"], row["high"]) for panel in bars for row in panel] == [(-2.5, -1.5), (0.1, 0.9), (-1, -1)]
    assert "No dot: 1 effect that the selection left out." in told(spec)


def test_distributions_have_a_line_for_every_level_of_every_factor() -> None:
    spec = chart.factor_distributions(summary()).to_dict()
    panels = rows(spec, "tick")
    assert [[row["label"] for row in panel] for panel in panels] == [["all", "rate: low", "rate: high"]] * 2
    titles = {layer["encoding"]["x"]["title"] for layer in layers(spec)}
    assert titles == {"m", "n"}


@pytest.mark.parametrize(
    ("draw", "frame", "message"),
    [
        (chart.correlation_matrix, pairs().drop("spearman"), "no column 'spearman'"),
        (chart.correlation_matrix, pairs().with_columns(spearman=pl.lit(1.5)), r"3 values that are not in \[-1, 1\]"),
        (chart.factor_effects, effects().filter(pl.col("factor") == "intercept"), "nothing to draw"),
        (chart.factor_effects, effects().drop("low"), "no column 'low'"),
        (chart.factor_distributions, summary().drop("median"), "no column 'median'"),
        (chart.factor_distributions, summary().head(0), "nothing to draw"),
    ],
)
def test_frames_that_cannot_be_drawn_are_refused(draw: Any, frame: pl.DataFrame, message: str) -> None:
    with pytest.raises(InputError, match=message):
        draw(frame)


@pytest.mark.parametrize("suffix", ["png", "svg", "html", "json"])
def test_charts_are_saved_in_every_format(suffix: str, tmp_path: Path) -> None:
    for name, picture in (
        ("c", chart.correlation_matrix(pairs())),
        ("e", chart.factor_effects(effects())),
        ("d", chart.factor_distributions(summary())),
    ):
        assert chart.save(picture, tmp_path / f"{name}.{suffix}").stat().st_size > 1000
