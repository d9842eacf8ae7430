"""Charts: the right columns on the right channels, nothing thinned that matters, files that need no network."""

from __future__ import annotations

import inspect
import json
import re
import stat
import struct
import subprocess
import sys
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chart_specs import Spec, layers
from effort import examples
from quadrille import chart
from quadrille.chart.theme import HUES, MOST_ROWS, Figure, Spot, extent, free_spot, free_spots, inline
from quadrille.errors import InputError, OutputError, ParameterError, QuadrilleError

PNG = b"\x89PNG\r\n\x1a\n"


def candidates(count: int = 40, *, swaps: int = 4) -> pl.DataFrame:
    """Return candidates on falling lines: the lowest line is the frontier."""
    rows = [
        {
            "risk": 0.02 - 0.0001 * (i // 4) + 0.002 * (i % 4),
            "loss": 0.01 + 0.001 * (i // 4),
            "swap": f"V{i % swaps}",
            "rate": 0.01 * (1 + i % 3),
            "exposed": 0.02 - 0.00005 * (i // 4) + 0.001 * (i % 4),
            "on_frontier": i % 4 == 0 and i < 400,
            "chosen": i == 8,
            "label": f"candidate {i}",
        }
        for i in range(count)
    ]
    return pl.DataFrame(rows)


def seeds() -> pl.DataFrame:
    rows = [
        {
            "design": f"D{d}",
            "risk": 0.1 + d + 0.1 * s,
            "loss": 1.0 - d + 0.01 * s,
            "exposed": 0.5 + d + 0.3 * s,
            "on_frontier": s <= d < 2,
        }
        for d in range(3)
        for s in range(3)
    ]
    return pl.DataFrame(rows)


def effects(count: int = 10) -> pl.DataFrame:
    rows = [
        {"parameter": p, "level": level, "measure": m, "value": 0.1 * i}
        for p, levels in (("pairs", "10 9"), ("kind", "b a c"))
        for level in levels.split()
        for m in ("exposed", "hellinger")
        for i in range(count)
    ]
    return pl.DataFrame(rows)


def pairs(*values: float | None, names: str = "ABC") -> pl.DataFrame:
    both = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    return pl.DataFrame(
        [{"first": a, "second": b, "value": v} for (a, b), v in zip(both, values, strict=True)],
        schema={"first": pl.String, "second": pl.String, "value": pl.Float64},
    )


def cells() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "size": [2, 2, 1, 1],
            "when": ["after", "before", "after", "before"],
            "cells": [1204, 1100, 5, 7],
            "records": [2408, 2200, 5, 7],
            "genuine": [2406, None, 3, None],
        }
    )


def groups() -> pl.DataFrame:
    return pl.DataFrame(
        {"size": ["3-9", "1", "2"], "order": [3, 1, 2], "swapped": [0.1, 0.5, 0.25], "records": [800, 100, 100]}
    )


def sizes() -> pl.DataFrame:
    return pl.DataFrame(
        {"label": ["a", "b", "c"], "group": ["1 %", "5 %", "5 %"], "count": [0, 14, 2000], "rmse": [0.2, 0.5, 90.0]}
    )


def changes() -> pl.DataFrame:
    return pl.DataFrame({"label": ["a", "b"], "bias": [-9.0, 9.0], "sd": [2.0, 2.0], "realised": [-8.0, 30.0]})


def costs() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "treatment": ["empty", "camouflage", "empty", "camouflage"],
            "size": [1, 1, 2, 2],
            "cells": [361, 361, 186, 186],
            "treatable": [342, 328, 186, 0],
            "low": [0.5, 0.27, 0.5, None],
            "cost": [0.51, 0.29, 0.51, None],
            "high": [0.52, 0.33, 0.52, None],
            "theory": [0.5, 0.27, 0.5, 0.03],
        }
    )


def curve() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "epsilon": [12.0, 12.0, 8.0, 8.0],
            "design": ["one chance", "own chances"] * 2,
            "moved": [0.1, 0.07, 0.86, 0.74],
            "loss": [0.046, 0.030, 0.186, None],
            "measure": ["hellinger"] * 4,
        }
    )


def intruder() -> pl.DataFrame:
    """Return what attacks found: of three kinds, among them one without a value before."""
    columns = {
        "attack": ["linkage", "linkage", *["attribute"] * 5, *["undo"] * 5],
        "quantity": [
            "right links",
            "single rows",
            *(f"{i}: attributed" for i in range(5)),
            *(f"told {i}" for i in range(5)),
        ],
        "value": [1435.6, None, 0.14, 0.2, 0.0, 0.5, 0.6, 0.7, 0.7, 0.8, 0.8, 0.02],
        "before": [1695.0, 361.0, 0.15, 0.15, 0.0, 1.0, 1.0, None, None, None, None, 0.0],
        "chance": [1.0, 0.1, 0.01, 0.01, 0.0, 0.4, None, 0.5, 0.5, 0.5, None, 0.05],
    }
    return pl.DataFrame(columns)


DRAW: dict[str, tuple[Callable[[pl.DataFrame], Figure], pl.DataFrame]] = {
    "frontier": (lambda frame: chart.frontier(frame, risk="small_cells", loss="hellinger"), candidates()),
    "seed_cloud": (lambda frame: chart.seed_cloud(frame, risk="small_cells", loss="hellinger"), seeds()),
    "parameter_effects": (chart.parameter_effects, effects()),
    "distortion_heatmap": (lambda frame: chart.distortion_heatmap(frame, measure="hellinger"), pairs(0.1, 0.2, 0.3)),
    "small_cells": (chart.small_cells, cells()),
    "who_was_swapped": (chart.who_was_swapped, groups()),
    "treatment_costs": (chart.treatment_costs, costs()),
    "error_by_size": (chart.error_by_size, sizes()),
    "predicted_realised": (chart.predicted_realised, changes()),
    "attacks": (chart.attacks, intruder()),
    "epsilon_loss": (chart.epsilon_loss, curve()),
}
EVERY = pytest.mark.parametrize("name", DRAW)


def frontier(frame: pl.DataFrame) -> Figure:
    """Draw one panel: the n-rule would bring a second one."""
    return chart.frontier(frame, risk="confidence", loss="hellinger")


def seed_cloud(frame: pl.DataFrame) -> Figure:
    return chart.seed_cloud(frame, risk="confidence", loss="hellinger")


def rows(spec: Spec, layer: Spec) -> list[Spec]:
    return spec["datasets"][layer["data"]["name"]] if "name" in layer["data"] else layer["data"]["values"]


def of_kind(spec: Spec, mark: str) -> list[Spec]:
    return [layer for layer in layers(spec) if layer["mark"]["type"] == mark]


def plain(figure: Figure) -> Spec:
    """Return a specification as a file holds it: rows are lists."""
    return json.loads(json.dumps(figure.to_dict()))


def told(spec: Spec) -> str:
    return " ".join(spec["title"]["subtitle"])


@EVERY
def test_every_chart_has_a_title_a_sentence_on_how_to_read_it_and_readable_fonts(name: str) -> None:
    draw, frame = DRAW[name]
    spec = draw(frame).to_dict()
    assert len(spec["title"]["text"]) > 15
    assert told(spec).endswith(".") and len(told(spec)) > 60
    assert max(map(len, spec["title"]["subtitle"])) <= 104
    assert spec["description"].startswith(spec["title"]["text"])
    assert spec["config"]["axis"]["labelFontSize"] >= 12 and spec["config"]["legend"]["labelFontSize"] >= 12


@EVERY
def test_every_missing_column_is_named(name: str) -> None:
    draw, frame = DRAW[name]
    for column in frame.columns:
        with pytest.raises(QuadrilleError, match=rf"{name} (has|cannot).* no column '{column}'"):
            draw(frame.drop(column))


@EVERY
def test_an_empty_frame_is_refused(name: str) -> None:
    draw, frame = DRAW[name]
    with pytest.raises(QuadrilleError, match=r"nothing to draw.*no rows"):
        draw(frame.clear())


@EVERY
def test_extra_columns_do_not_get_into_the_chart(name: str) -> None:
    draw, frame = DRAW[name]
    assert "secret" not in json.dumps(draw(frame.with_columns(seed=pl.lit("secret"))).to_dict())


@EVERY
def test_the_same_frame_gives_the_same_chart(name: str) -> None:
    draw, frame = DRAW[name]
    assert draw(frame).to_dict() == draw(frame).to_dict()


def test_a_column_of_the_wrong_type_is_named_without_its_values() -> None:
    with pytest.raises(InputError, match=r"Column 'risk' .* must hold numbers") as error:
        frontier(candidates().with_columns(risk=pl.lit("Zebedee")))
    assert "Zebedee" not in str(error.value)
    with pytest.raises(InputError, match=r"Column 'chosen' .* true and false"):
        frontier(candidates().with_columns(chosen=pl.lit(1)))


def test_the_frontier_shows_loss_across_risk_up_swap_by_colour_and_rate_by_size() -> None:
    spec = frontier(candidates()).to_dict()
    pale, best = [layer for layer in of_kind(spec, "point") if layer["mark"]["filled"]]
    for layer in (pale, best):
        encoding = layer["encoding"]
        assert (encoding["x"]["field"], encoding["y"]["field"]) == ("loss", "risk")
        assert encoding["color"]["field"] == encoding["shape"]["field"] == "group"
        assert encoding["size"]["field"] == "rate"
        assert "hellinger" in encoding["x"]["title"] and "confidence" in encoding["y"]["title"]
        assert encoding["y"]["axis"]["format"] == "%" and encoding["x"]["axis"]["format"] == ""
    assert pale["mark"]["opacity"] < 0.5 < best["mark"]["opacity"]
    assert len(rows(spec, pale)) == 30 and len(rows(spec, best)) == 10
    assert "40 candidate releases" in spec["title"]["text"] and "10 candidates" in told(spec)


def test_the_frontier_line_is_made_of_steps_through_the_frontier() -> None:
    spec = frontier(candidates()).to_dict()
    (line,) = of_kind(spec, "line")
    assert line["mark"]["interpolate"] == "step-after"
    corners = [(row["loss"], row["risk"]) for row in rows(spec, line)]
    best = candidates().filter("on_frontier").sort("loss")
    assert corners == list(best.select("loss", "risk").iter_rows())


def test_the_line_leaves_out_members_that_only_a_third_objective_puts_on_the_frontier() -> None:
    frame = candidates().with_columns(on_frontier=pl.col("on_frontier") | (pl.int_range(pl.len()) == 5))
    spec = frontier(frame).to_dict()
    assert len(rows(spec, of_kind(spec, "line")[0])) == 10
    assert len(rows(spec, of_kind(spec, "point")[1])) == 11


def test_the_chosen_candidate_has_a_ring_and_its_label() -> None:
    spec = frontier(candidates()).to_dict()
    (ring,) = [layer for layer in of_kind(spec, "point") if not layer["mark"]["filled"]]
    (row,) = rows(spec, ring)
    assert (row["label"], row["loss"]) == ("candidate 8", pytest.approx(0.012))
    assert {layer["encoding"]["text"]["field"] for layer in of_kind(spec, "text")} == {"label"}
    assert "The ring marks the chosen one: candidate 8." in told(spec)
    assert "ring" not in told(frontier(candidates().with_columns(chosen=pl.lit(False))).to_dict())


def test_candidates_without_a_value_are_left_out_and_counted() -> None:
    frame = candidates().with_columns(
        risk=pl.when(pl.int_range(pl.len()) == 1).then(None).otherwise("risk"),
        loss=pl.when(pl.int_range(pl.len()) == 2).then(float("nan")).otherwise("loss"),
    )
    spec = frontier(frame).to_dict()
    assert "Left out: 2 candidates without a value on both axes." in told(spec)
    assert "38 candidate releases" in spec["title"]["text"]
    assert not {"candidate 1", "candidate 2"} & {row["label"] for row in rows(spec, of_kind(spec, "point")[0])}
    with pytest.raises(InputError, match="no row of the frame for frontier has risk and loss"):
        frontier(candidates().with_columns(risk=pl.lit(None)))


@pytest.mark.parametrize("count", [MOST_ROWS + 1, 20_000])
def test_above_5000_candidates_only_beaten_ones_are_thinned(count: int) -> None:
    frame = candidates(count)
    spec = frontier(frame).to_dict()
    pale, best = of_kind(spec, "point")[:2]
    assert len(rows(spec, pale)) + len(rows(spec, best)) == MOST_ROWS
    expected = set(frame.filter("on_frontier")["label"])
    assert {row["label"] for row in rows(spec, best)} == expected
    assert f"Shown: 5,000 of {count:,}" in told(spec)
    mixed = frontier(frame.sample(fraction=1, shuffle=True, seed=1)).to_dict()
    assert {row["label"] for row in rows(mixed, of_kind(mixed, "point")[0])} == {r["label"] for r in rows(spec, pale)}


def test_a_frontier_of_more_than_5000_members_is_complete() -> None:
    frame = candidates(6000).with_columns(on_frontier=pl.lit(True))
    spec = frontier(frame).to_dict()
    assert len(rows(spec, of_kind(spec, "point")[1])) == 6000


def test_a_chosen_candidate_that_is_beaten_is_never_thinned() -> None:
    frame = candidates(20_000).with_columns(chosen=pl.int_range(pl.len()) == 12_345)
    spec = frontier(frame).to_dict()
    assert "candidate 12345" in {row["label"] for row in rows(spec, of_kind(spec, "point")[0])}


@pytest.mark.parametrize("swaps", [1, 7, 8, 36])
def test_there_are_never_more_than_eight_colours_and_the_frontier_has_them_first(swaps: int) -> None:
    frame = candidates(36 * 4, swaps=swaps).with_columns(on_frontier=pl.col("swap").is_in(["V0", "V4"]))
    spec = frontier(frame).to_dict()
    scale = of_kind(spec, "point")[0]["encoding"]["color"]["scale"]
    assert len(scale["domain"]) == len(set(scale["range"])) <= 8
    assert "V0" in scale["domain"]
    drawn = {row["group"] for layer in of_kind(spec, "point")[:2] for row in rows(spec, layer)}
    assert drawn == set(scale["domain"])
    assert ("other swaps" in drawn) == (swaps > len(HUES))


def test_a_frequent_swap_off_the_frontier_has_a_colour_and_rare_ones_share_grey() -> None:
    frame = candidates(200, swaps=50).with_columns(
        swap=pl.when(pl.int_range(pl.len()) % 3 == 0).then(pl.lit("often")).otherwise("swap"), on_frontier=pl.lit(False)
    )
    spec = frontier(frame).to_dict()
    assert of_kind(spec, "point")[0]["encoding"]["color"]["scale"]["domain"] == ["often", "other swaps"]


def test_a_second_risk_has_a_panel_of_its_own_with_the_same_candidates() -> None:
    spec = chart.frontier(candidates(), risk="small_cells", loss="hellinger").to_dict()
    upper, lower = spec["vconcat"]
    points = of_kind(spec | {"vconcat": [lower]}, "point")
    assert points[0]["encoding"]["y"]["field"] == "companion"
    assert "exposed" in points[0]["encoding"]["y"]["title"] and "exposed" in told(spec)
    assert [row["companion"] for layer in points[:2] for row in rows(spec, layer)] == pytest.approx(
        [*candidates().filter(~pl.col("on_frontier"))["exposed"], *candidates().filter("on_frontier")["exposed"]]
    )
    assert upper["width"] == lower["width"]
    assert points[0]["encoding"]["x"]["scale"] == of_kind(upper, "point")[0]["encoding"]["x"]["scale"]


def test_any_second_risk_can_be_asked_for_by_its_own_column_or_by_companion() -> None:
    frame = candidates().drop("exposed")
    for name in ("confidence(n=5)", "companion"):
        given = frame.with_columns((pl.col("risk") * 2).alias(name))
        figure = chart.frontier(given, risk="confidence", loss="hellinger", companion="confidence(n=5)")
        lower = of_kind(figure.to_dict()["vconcat"][1], "point")
        assert lower[0]["encoding"]["y"]["title"].startswith("confidence(n=5)")
    with pytest.raises(InputError, match="no column 'companion'"):
        chart.frontier(frame, risk="confidence", loss="hellinger", companion="confidence(n=5)")


def chart_functions() -> set[str]:
    """Return the names of all functions that draw a frame."""
    functions = {name: vars(chart)[name] for name in chart.__all__}
    drawn = {name: list(inspect.signature(one).parameters.values()) for name, one in functions.items() if callable(one)}
    return {name for name, parameters in drawn.items() if parameters and "DataFrame" in str(parameters[0].annotation)}


TESTED_ELSEWHERE = {
    *("after_before", "correlation_matrix", "factor_distributions", "factor_effects", "flows", "metrics_by_rate"),
    *("ranking", "runs"),
}


def test_attacks_are_drawn_as_shares_of_what_was_before_and_tell_what_is_left_out() -> None:
    spec = chart.attacks(intruder()).to_dict()
    assert [panel["title"]["text"] for panel in spec["vconcat"]] == ["linkage", "attribute", "undo"]
    (points,) = of_kind(spec["vconcat"][0], "point")
    assert {row["what"]: row["x"] for row in rows(spec, points)} == pytest.approx(
        {"by chance": 1 / 1695, "before the swap": 1.0, "after the swap": 1435.6 / 1695}
    )
    assert spec["vconcat"][2]["layer"][1]["encoding"]["x"]["title"] == "value"
    assert "Left out: 3 lines" in told(spec) and "without a stroke" in told(spec)
    with pytest.raises(InputError, match="nothing to draw: no row of the frame for attacks has a value"):
        chart.attacks(intruder().with_columns(value=pl.lit(None, pl.Float64)))


def test_the_tests_of_every_chart_know_every_chart() -> None:
    assert set(DRAW) == chart_functions() - TESTED_ELSEWHERE


RULES = ["small_cells", "small_cells(n=5)", "small_cells(Age*Sex, n=2)", " small_cells(where=Sex=Male)"]
RULE = pytest.mark.parametrize("rule", RULES)
TWO_AXES = pytest.mark.parametrize(("draw", "frame"), [(chart.frontier, candidates()), (chart.seed_cloud, seeds())])


@RULE
@TWO_AXES
def test_a_chart_of_risk_and_loss_never_shows_the_n_rule_alone(
    rule: str, draw: Callable[..., Figure], frame: pl.DataFrame
) -> None:
    beside = rule.strip().replace("small_cells", "exposed")
    frame = frame.rename({"exposed": beside})
    both = ({"risk": rule, "loss": "hellinger"}, {"risk": "confidence", "loss": rule})
    for axes in both if rule in RULES[:2] else both[:1]:  # however it is written, it is found on either axis
        spec = draw(frame, **axes).to_dict()
        assert len(spec["vconcat"]) == 2
        assert of_kind(spec["vconcat"][1], "point")[0]["encoding"]["y"]["title"].startswith(beside + " (")
        for other in (frame.drop(beside), frame.rename({beside: "exposed(n=7)"}), frame.rename({beside: "companion"})):
            with pytest.raises(ParameterError, match=rf"no column '{re.escape(beside)}'.*search scores it by itself"):
                draw(other, **axes)
        with pytest.raises(ParameterError, match="Leave out companion='confidence'"):
            draw(frame.with_columns(confidence=0.5), **axes, companion="confidence")
        named = draw(frame.rename({beside: "companion"}), **axes, companion=beside).to_dict()
        assert named["vconcat"][1]["layer"][0]["encoding"] == spec["vconcat"][1]["layer"][0]["encoding"]
    shown = draw(frame.drop(beside), risk=rule, loss=beside).to_dict()
    assert "vconcat" not in shown


def test_two_n_rules_do_not_share_a_chart_and_one_is_found_however_it_is_written() -> None:
    with pytest.raises(ParameterError, match="room for one n-rule"):
        chart.frontier(candidates(), risk="small_cells", loss="small_cells(n=5)")
    frame = candidates().rename({"exposed": "exposed(Sex*Age, n=3)"})
    assert "vconcat" in chart.frontier(frame, risk="small_cells(Age*Sex)", loss="hellinger").to_dict()


def test_an_n_rule_without_any_value_of_exposed_is_refused_and_some_missing_ones_are_counted() -> None:
    empty = candidates().with_columns(exposed=pl.lit(None, dtype=pl.Float64))
    with pytest.raises(InputError, match="nothing to draw"):
        chart.frontier(empty, risk="small_cells", loss="hellinger")
    frame = candidates().with_columns(exposed=pl.when(pl.int_range(pl.len()) > 2).then("exposed"))
    spec = chart.frontier(frame, risk="small_cells", loss="hellinger").to_dict()
    assert "Not below: 3 candidates without exposed." in told(spec)


@RULE
def test_parameter_effects_and_heatmaps_never_show_the_n_rule_alone(rule: str) -> None:
    beside = rule.strip().replace("small_cells", "exposed")
    alone = effects().with_columns(measure=pl.col("measure").replace("exposed", rule))
    both = pl.concat([alone, effects().with_columns(measure=pl.col("measure").replace("exposed", beside))])
    panels = chart.parameter_effects(both).to_dict()["vconcat"][0]["hconcat"]
    assert {rule, beside} <= {of_kind(panel, "tick")[0]["encoding"]["x"]["title"] for panel in panels}
    half = both.filter((pl.col("parameter") == "pairs") | (pl.col("measure") != beside))
    for frame, parameter in ((alone, "pairs"), (half, "kind")):
        with pytest.raises(ParameterError, match=rf"no '{re.escape(beside)}' .*parameter '{parameter}'"):
            chart.parameter_effects(frame)
    with pytest.raises(ParameterError, match="no place for it: draw exposed by itself"):
        chart.distortion_heatmap(pairs(0.1, 0.2, 0.3), measure=rule)


def test_small_cells_are_never_shown_without_the_genuine_ones() -> None:
    with pytest.raises(ParameterError, match=r"no column 'genuine'.*min\(f, g\)"):
        chart.small_cells(cells().drop("genuine"))
    with pytest.raises(ParameterError, match=r"'genuine' .* is empty in a row 'after'"):
        chart.small_cells(cells().with_columns(genuine=pl.lit(None, dtype=pl.Int64)))


POINTS = st.lists(st.tuples(st.floats(0, 600), st.floats(0, 400)), max_size=30)


@given(POINTS, st.tuples(st.floats(0, 600), st.floats(0, 400)))
def test_a_label_covers_no_point_and_stays_inside(taken: list[tuple[float, float]], point: tuple[float, float]) -> None:
    spot = free_spot(point, 150.0, [*taken, point], (600, 400))
    assert 150 <= spot.x <= 600 and 0 <= spot.y <= 400
    assert not any(spot.x - 150 < x < spot.x and abs(y - spot.y) < 10 for x, y in taken)


def boxes_of(spots: list[Spot]) -> list[tuple[float, float, float, float]]:
    """The boxes of labels: left, right, top, bottom."""
    return [(spot.x - spot.width, spot.x, spot.y - 8, spot.y + 8) for spot in spots]


def overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]


AT = st.tuples(st.floats(0, 600), st.floats(0, 400))


@examples(24)
@given(POINTS, st.lists(st.tuples(AT, st.sampled_from([30.0, 120.0, 260.0])), min_size=2, max_size=4))
def test_labels_overlap_neither_one_another_nor_rings(
    taken: list[tuple[float, float]], labels: list[tuple[tuple[float, float], float]]
) -> None:
    """Whatever is chosen by however many rules, at one point or at several."""
    crowd = [(float(x), float(y)) for x in range(0, 601, 8) for y in range(0, 401, 8)]
    for busy in (taken, crowd):
        spots = free_spots(labels, busy, (600, 400), ring=13.0)
        boxes = boxes_of(spots)
        assert not any(overlap(a, b) for a, b in combinations(boxes, 2))
        assert all(left >= 0 and right <= 600 for left, right, *_ in boxes)
    rings = [(x - 13, x + 13, y - 13, y + 13) for (x, y), _ in labels]
    assert not any(overlap(a, b) for a in boxes_of(free_spots(labels, [], (600, 400), ring=13.0)) for b in rings)


def test_two_rules_that_choose_alike_share_a_ring_and_a_label() -> None:
    long = "No. 8: designed swap of all key variables, keep 2-way, effort 0.3, price 0.315"
    two = candidates().with_columns(chosen=pl.col("label").is_in(["candidate 8", "candidate 12"]))
    again = two.filter(pl.col("label") == "candidate 8").with_columns(label=pl.lit(long))
    spec = frontier(pl.concat([two, again, again])).to_dict()
    (ring,) = [layer for layer in of_kind(spec, "point") if not layer["mark"]["filled"]]
    assert [row["label"] for row in rows(spec, ring)] == ["candidate 8, No. 8", "candidate 12"]
    assert f"The rings mark the chosen ones: candidate 8; candidate 12; {long}." in told(spec)


def test_names_in_a_legend_are_broken_into_lines_and_never_cut() -> None:
    """Cut off, names that begin alike would be alike."""
    for name in ("frontier", "seed_cloud", "treatment_costs", "error_by_size"):
        draw, frame = DRAW[name]
        used = [channel for layer in layers(draw(frame).to_dict()) for channel in layer["encoding"].values()]
        legends = [channel["legend"] for channel in used if isinstance(channel, dict) and channel.get("legend")]
        named = [legend for legend in legends if legend.get("title") not in ("Records taking part", "Frontier")]
        assert named
        assert all(legend["labelLimit"] == 0 and "split(" in legend["labelExpr"] for legend in named), name


def test_a_label_without_any_room_is_still_drawn() -> None:
    taken = [(float(x), float(y)) for x in range(0, 601, 10) for y in range(0, 401, 10)]
    spot = free_spot((300.0, 200.0), 100.0, taken, (600, 400))
    assert 100 <= spot.x <= 600 and 0 <= spot.y <= 400


def test_the_seed_cloud_shows_means_and_one_standard_deviation_of_all_seeds() -> None:
    spec = seed_cloud(seeds()).to_dict()
    means = {row["design"]: row for layer in of_kind(spec, "rule") for row in rows(spec, layer)}
    assert set(means) == {"D0", "D1", "D2"}
    assert means["D1"]["risk"] == pytest.approx(1.2) and means["D1"]["loss"] == pytest.approx(0.01)
    assert means["D1"]["high"] - means["D1"]["risk"] == pytest.approx(0.1)
    assert means["D1"]["right"] - means["D1"]["left"] == pytest.approx(0.02)
    bars = {(layer["encoding"]["x"]["field"], layer["encoding"]["y"]["field"]) for layer in of_kind(spec, "rule")}
    assert bars == {("left", "risk"), ("loss", "low")}


def test_the_seed_cloud_colours_designs_on_the_frontier_and_says_with_how_many_seeds() -> None:
    spec = seed_cloud(seeds()).to_dict()
    scale = of_kind(spec, "point")[0]["encoding"]["color"]["scale"]
    assert scale["domain"] == ["D1 (2 of 3)", "D0 (1 of 3)", "designs never on it"]
    assert set(scale["range"][:2]) <= set(HUES)
    assert "with some seed: 2 designs; with every seed: 0" in told(spec)


def test_the_seed_cloud_has_a_second_panel_with_means_and_bars_of_the_second_risk() -> None:
    spec = chart.seed_cloud(seeds(), risk="small_cells", loss="hellinger").to_dict()
    upper, lower = spec["vconcat"]
    means = {row["design"]: row for layer in of_kind(lower, "rule") for row in rows(spec, layer)}
    assert means["D1"]["risk"] == pytest.approx(1.8) and means["D1"]["high"] == pytest.approx(2.1)
    colours = [of_kind(panel, "point")[0]["encoding"]["color"] for panel in (upper, lower)]
    assert colours[0] == colours[1]
    groups = [{row["design"]: row["group"] for row in rows(spec, of_kind(p, "point")[0])} for p in (upper, lower)]
    assert groups[0] == groups[1]
    assert "same designs by exposed" in told(spec)


def test_a_design_with_one_seed_has_no_bars_and_a_large_cloud_is_thinned() -> None:
    spec = seed_cloud(seeds().head(1)).to_dict()
    (row,) = [row for row in rows(spec, of_kind(spec, "rule")[2]) if row["design"] == "D0"]
    assert row["low"] == row["high"] == row["risk"]
    many = pl.concat([seeds()] * 1000)
    spec = seed_cloud(many).to_dict()
    assert len(rows(spec, of_kind(spec, "point")[0])) == MOST_ROWS
    assert {row["seeds"] for row in rows(spec, of_kind(spec, "rule")[0])} <= {3000}


def test_parameter_effects_have_a_panel_per_parameter_and_measure_with_levels_in_their_order() -> None:
    spec = chart.parameter_effects(effects()).to_dict()
    assert [row["title"]["text"] for row in spec["vconcat"]] == ["pairs", "kind"]
    for row, levels in zip(spec["vconcat"], (["10", "9"], ["b", "a", "c"]), strict=True):
        assert [of_kind(panel, "tick")[0]["encoding"]["x"]["title"] for panel in row["hconcat"]] == [
            "exposed",
            "hellinger",
        ]
        for panel in row["hconcat"]:
            (points,), (means,) = of_kind(panel, "point"), of_kind(panel, "tick")
            assert points["encoding"]["y"]["scale"]["domain"] == levels
            assert points["encoding"]["yOffset"]["field"] == "jitter"
            assert len(rows(spec, points)) == 10 * len(levels)
            assert [r["value"] for r in rows(spec, means)] == pytest.approx([0.45] * len(levels))
            assert all(-1 <= r["jitter"] <= 1 for r in rows(spec, points))


def test_parameter_effects_thin_the_points_and_not_the_means() -> None:
    spec = chart.parameter_effects(effects(2000)).to_dict()
    assert sum(len(rows(spec, layer)) for layer in of_kind(spec, "point")) == MOST_ROWS
    assert {r["values"] for layer in of_kind(spec, "tick") for r in rows(spec, layer)} == {2000}
    assert "Shown: 5,000 of 20,000" in told(spec)


def test_the_heatmap_is_symmetric_and_shows_what_is_undefined() -> None:
    spec = chart.distortion_heatmap(pairs(0.1, None, 0.25), measure="hellinger").to_dict()
    squares, blanks = of_kind(spec, "rect")
    values = {(row["first"], row["second"]): row["value"] for row in rows(spec, squares)}
    assert values == {("A", "B"): 0.1, ("B", "A"): 0.1, ("B", "C"): 0.25, ("C", "B"): 0.25}
    assert {(row["first"], row["second"]) for row in rows(spec, blanks)} == {("A", "C"), ("C", "A")}
    assert "undefined" in told(spec)
    matrix = pl.concat([pairs(0.1, 0.2, 0.3), pl.DataFrame({"first": ["A"], "second": ["A"], "value": [float("nan")]})])
    assert "undefined" not in told(chart.distortion_heatmap(matrix, measure="hellinger").to_dict())
    (numbers,) = of_kind(spec, "text")
    texts = {(row["first"], row["second"]): row["text"] for row in rows(spec, numbers)}
    assert (texts["A", "B"], texts["A", "C"], texts["B", "C"]) == ("0.10", "–", "0.25")


@pytest.mark.parametrize(
    ("values", "domain"),
    [((0.1, 0.2, 0.3), (0, 0.3)), ((0.1, -0.4, 0.3), (-0.4, 0.4)), ((0.0, 0.0, 0.0), (0, 1)), ((None,) * 3, (0, 1))],
)
def test_the_colours_run_from_zero_or_both_ways_around_it(
    values: tuple[float | None, ...], domain: tuple[float, float]
) -> None:
    spec = chart.distortion_heatmap(pairs(*values), measure="m").to_dict()
    stops = of_kind(spec, "rect")[0]["encoding"]["color"]["scale"]["domain"]
    assert (stops[0], stops[-1]) == domain
    assert ("below zero" in told(spec)) == (domain[0] < 0)


@pytest.mark.parametrize(("count", "printed"), [(12, True), (13, False)])
def test_values_are_printed_up_to_twelve_variables(count: int, printed: bool) -> None:
    names = "ABCDEFGHIJKLM"[:count]
    frame = pairs(*[0.1] * (count * (count - 1) // 2), names=names)
    spec = chart.distortion_heatmap(frame, measure="m").to_dict()
    assert bool(of_kind(spec, "text")) == printed
    assert spec["width"] == spec["height"]


def test_a_heatmap_needs_a_pair_of_two_variables() -> None:
    frame = pl.DataFrame({"first": ["A"], "second": ["A"], "value": [None]})
    with pytest.raises(InputError, match="no pair of two variables"):
        chart.distortion_heatmap(frame, measure="m")


def test_small_cells_stand_side_by_side_before_first_in_order_of_size() -> None:
    spec = chart.small_cells(cells()).to_dict()
    left, right, _ = of_kind(spec, "bar")
    assert (left["encoding"]["y"]["field"], right["encoding"]["y"]["field"]) == ("cells", "records")
    for layer in (left, right):
        assert layer["encoding"]["x"]["sort"] == ["1", "2"]
        assert layer["encoding"]["xOffset"]["sort"] == ["before", "after"]
        assert layer["encoding"]["y"]["axis"]["format"] == ",.0f"
    with pytest.raises(InputError, match="'before' and 'after'"):
        chart.small_cells(cells().with_columns(when=pl.lit("later")))


def test_genuine_records_are_drawn_inside_the_bars_after_the_swap() -> None:
    spec = chart.small_cells(cells()).to_dict()
    genuine = of_kind(spec, "bar")[2]
    assert [(row["size"], row["genuine"], row["when"]) for row in rows(spec, genuine)] == [
        ("1", 3, "after"),
        ("2", 2406, "after"),
    ]
    assert genuine["encoding"]["y"]["scale"] == of_kind(spec, "bar")[1]["encoding"]["y"]["scale"]
    assert "dark part" in told(spec)


def test_who_was_swapped_is_in_order_with_the_share_of_all_records() -> None:
    spec = chart.who_was_swapped(groups()).to_dict()
    (bars,) = of_kind(spec, "bar")
    assert bars["encoding"]["x"]["sort"] == ["1", "2", "3-9"]
    assert (bars["encoding"]["y"]["field"], bars["encoding"]["y"]["axis"]["format"]) == ("swapped", "%")
    (line,) = of_kind(spec, "rule")
    assert rows(spec, line)[0]["share"] == pytest.approx(0.155)
    assert "800 records" in {row["below"] for row in rows(spec, bars)}


@EVERY
def test_every_chart_can_be_saved_in_every_format(name: str, tmp_path: Path) -> None:
    draw, frame = DRAW[name]
    figure = draw(frame)
    png = chart.save(figure, tmp_path / "chart.png").read_bytes()
    width, height = struct.unpack(">II", png[16:24])
    assert png.startswith(PNG) and width >= 600 and height >= 600
    assert chart.save(figure, tmp_path / "chart.svg").read_text("utf-8").startswith("<svg")
    assert json.loads(chart.save(figure, tmp_path / "chart.json").read_text("utf-8")) == plain(figure)
    assert "vegaEmbed" in chart.save(figure, str(tmp_path / "chart.HTML")).read_text("utf-8")
    assert len(list(tmp_path.iterdir())) == 4


def test_rows_are_handed_over_without_copying_them_and_checked_as_a_whole() -> None:
    frame = candidates(1000)
    data = inline(frame)
    assert data.copy().values is data.values
    spec = chart.frontier(frame, risk="small_cells", loss="hellinger").to_dict(validate=True)
    assert sum(len(rows) for rows in spec["datasets"].values()) >= 1000


def test_only_the_picture_can_be_read_by_others(tmp_path: Path) -> None:
    for suffix in ("png", "svg", "html", "json"):
        path = chart.save(chart.who_was_swapped(groups()), tmp_path / f"chart.{suffix}")
        assert (stat.S_IMODE(path.stat().st_mode) == 0o600) == (suffix != "png")


def test_an_unknown_suffix_and_an_impossible_place_are_refused_and_nothing_is_left(tmp_path: Path) -> None:
    figure = chart.who_was_swapped(groups())
    with pytest.raises(OutputError, match=r"'chart.gif'.*\.png, \.svg, \.html, \.json"):
        chart.save(figure, tmp_path / "chart.gif")
    with pytest.raises(OutputError, match="Cannot write"):
        chart.save(figure, tmp_path / "no" / "chart.json")
    assert not list(tmp_path.iterdir())


def test_a_page_asks_for_nothing_from_outside(tmp_path: Path) -> None:
    page = chart.save(frontier(candidates()), tmp_path / "chart.html").read_text("utf-8")
    outside = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"\b(src|href)\s*=|url\(|@import|http:|https:", outside)
    assert not re.search(r"<script\s", page)
    assert "default-src 'none'" in page
    assert page.count("<script") == page.count("</script>") == 2
    assert '"editor": false' in page


def test_fragments_hold_the_places_and_one_script_without_the_runtime() -> None:
    figure = chart.who_was_swapped(groups().with_columns(size=pl.lit("</script><!--<b>")))
    fragment = chart.inline_html({"Who?": figure, "Frontier": frontier(candidates())})
    assert fragment.count("<div") == 2 and fragment.count("<script>") == fragment.count("</script>") == 1
    assert 'id="chart-who"' in fragment and 'id="chart-frontier"' in fragment
    assert "<!--" not in fragment and "<b>" not in fragment and len(fragment) < 100_000
    specs = json.JSONDecoder().raw_decode(fragment, fragment.index('{"chart-who"'))[0]
    assert specs["chart-who"] == plain(figure)
    assert chart.runtime().count("<script>") == chart.runtime().count("</script>") == 1
    assert len(chart.runtime()) > 500_000
    with pytest.raises(InputError, match="Rename one"):
        chart.inline_html({"a b": figure, "A-B": figure})


def test_axes_leave_air_but_none_below_zero() -> None:
    assert extent([0.0, 1.0]) == (0.0, 1.05)
    assert extent([-1.0, 1.0]) == (-1.1, 1.1)
    assert extent([0.0, 0.0])[1] > 0
    low, high = extent([3.0])
    assert low < 3 < high


def test_import_quadrille_loads_neither_altair_nor_the_converter() -> None:
    script = "import sys, quadrille; print([m for m in ('altair', 'vl_convert') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_without_altair_the_message_says_what_to_install() -> None:
    script = (
        "import importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'altair' else find(name, *a)\n"
        "from quadrille.errors import QuadrilleError\n"
        "try: import quadrille.chart\n"
        "except QuadrilleError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "quadrille[report]" in done.stdout


@EVERY
def test_a_notebook_shows_a_picture_without_network_script_or_data(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quadrille.chart.theme.vl_convert.vegalite_to_png", lambda spec, scale: PNG + bytes(40))
    draw, frame = DRAW[name]
    figure = draw(frame)
    bundle, size = figure._repr_mimebundle_()
    assert list(bundle) == ["image/png"]
    assert set(size["image/png"]) == {"width", "height"}
    assert isinstance(figure, Figure)
    assert isinstance(figure.copy(), type(figure))


def test_the_picture_in_a_notebook_has_the_size_of_the_chart() -> None:
    draw, frame = DRAW["distortion_heatmap"]
    bundle, size = draw(frame)._repr_mimebundle_()
    assert bundle["image/png"].startswith(PNG)
    assert struct.unpack(">II", bundle["image/png"][16:24]) == pytest.approx(
        [2 * size["image/png"][side] for side in ("width", "height")], abs=1
    )
