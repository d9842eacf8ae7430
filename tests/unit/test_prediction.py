"""Predictions: they agree with draws, with exact moments and with a plain count of chances; else they say why not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from typer.testing import CliRunner

import quadrille as qd
from effort import examples
from quadrille import chart
from quadrille.cli import app
from quadrille.errors import InputError, ParameterError, QuadrilleError
from quadrille.score.evaluator import Evaluator
from quadrille.theory.cells import Cells, cells_of, levels_of
from quadrille.theory.prediction import predict, predictions
from quadrille.theory.tables import expected_chi_square
from strategies import file_of

FULL = ("hellinger", "total_variation", "entropy_change", "small_cells", "small_cells(n=5)", "exposed", "confidence")
PAIRWISE = ("hellinger(2-way)", "total_variation(2-way)", "cramers_v_change(2-way)", "contingency_change(2-way)")
MODEL = {"hellinger": 0.01, "total_variation": 0.005, "entropy_change": 0.01, "confidence": 0.005}
"""What the model may be off, as a share; 0.3 % for all others. The rest of the tolerance is noise of the draws."""

DESIGNS: dict[str, qd.Recipe] = {
    "one variable": qd.RandomSwap(["Edu"], pairs=488, seed=0),
    "many pairs": qd.RandomSwap(["AnnSal"], pairs=2442, seed=0),
    "pair-uniform": qd.RandomSwap(["Age"], pairs=2442, sampler="pair-uniform", seed=0),
    "two variables": qd.RandomSwap(["MS", "Race"], pairs=2442, seed=0),
    "two, any": qd.RandomSwap(["Edu", "AvgHrs"], pairs=2442, differ="any", seed=0),
    "none": qd.RandomSwap(["EmpTyp"], pairs=2442, differ="none", seed=0),
    "same": qd.RandomSwap(["Edu"], pairs=2442, same=["Sex", "MS"], seed=0),
    "different": qd.RandomSwap(["Edu"], pairs=2442, different=["Age"], seed=0),
    "permuted pairs": qd.PermutationSwap(["Age", "Sex"], rate=0.1, seed=0),
    "permuted cycles": qd.PermutationSwap(["Edu"], rate=0.1, kind="cycles", seed=0),
    "within": qd.PermutationSwap(["Edu"], rate=0.1, within=["Sex"], seed=0),
    "across": qd.PermutationSwap(["Edu"], rate=0.1, kind="across", groups="Sex", seed=0),
}


def seeded(recipe: qd.Recipe, seed: int) -> qd.Recipe:
    return replace(recipe, seed=seed)  # type: ignore[call-arg]


def drawn(data: qd.Data, recipe: qd.Recipe, measures: tuple[str, ...], draws: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the means of measures over seeds, and their standard errors."""
    judge, drawer = Evaluator(data, measures), recipe.prepare(data)
    scores = np.array([judge.values(drawer.draw(seeded(recipe, s).stream()))[0] for s in range(draws)], dtype=float)
    return scores.mean(axis=0), scores.std(axis=0, ddof=1) / np.sqrt(draws)


@pytest.mark.parametrize("name", DESIGNS)
def test_the_full_table_is_predicted_within_the_noise_of_40_draws(cps8d: qd.Data, name: str) -> None:
    mean, noise = drawn(cps8d, DESIGNS[name], FULL, 40)
    expected = predict(cps8d, DESIGNS[name], FULL)
    for address, m, e in zip(FULL, mean, noise, strict=True):
        value = expected[address]
        assert value is not None
        assert abs(value - m) <= 4 * e + MODEL.get(address, 0.003) * abs(m), address
        assert e < 0.05 * abs(m)  # else the comparison says nothing


@pytest.mark.parametrize("name", ["many pairs", "pair-uniform", "two variables", "permuted pairs"])
def test_tables_of_two_variables_are_predicted_within_5_per_cent(cps8d: qd.Data, name: str) -> None:
    mean, noise = drawn(cps8d, DESIGNS[name], PAIRWISE, 40)
    expected = predict(cps8d, DESIGNS[name], PAIRWISE)
    for address, m, e in zip(PAIRWISE, mean, noise, strict=True):
        value = expected[address]
        assert value is not None
        assert abs(value - m) <= 4 * e + 0.03 * abs(m), address
        assert expected.detail(address).basis in ("mean field", "approximate")


def test_risk_falls_and_loss_grows_with_the_number_of_pairs(cps8d: qd.Data) -> None:
    designs = [qd.RandomSwap(["Race"], pairs=k, seed=0) for k in (100, 300, 1000, 3000)]
    frame = predictions(cps8d, designs, ["small_cells", "exposed", "hellinger", "total_variation"])
    for name in ("small_cells", "exposed"):
        assert frame[name].is_sorted(descending=True)
    for name in ("hellinger", "total_variation"):
        assert frame[name].is_sorted()
    assert frame["rate"].to_list() == pytest.approx([2 * k / cps8d.n for k in (100, 300, 1000, 3000)])


# The chances of a cell, counted another way


def chances(cells: Cells, part: int, less: int | None = None) -> np.ndarray:
    """Return P(T' = 0, 1, 2) of the cells of a moved part, by binomials; without one record of level `less`."""
    found = np.zeros((3, cells.inside.shape[1]))
    found[0] = 1.0
    for level, inside in enumerate(cells.inside):
        records = np.maximum(inside - (level == less), 0)
        own = binom.pmf(np.arange(3)[:, None], records, cells.reach[level, part])
        found = np.array([sum(found[i] * own[j - i] for i in range(j + 1)) for j in range(3)])
    return found


def test_small_counts_have_the_chances_of_independent_records(cps8d: qd.Data) -> None:
    recipe = qd.RandomSwap(["Edu"], pairs=2442, seed=0)
    cells = cells_of(cps8d, recipe, levels_of(cps8d, recipe), cps8d.keys, 3)
    # Exchanges within a stayed part, which independence misses, are below 0.2 % here.
    for count in range(3):
        own = sum(chances(cells, part)[count].sum() for part in range(cells.shape[0]))
        assert cells.expected(lambda f, g, count=count: (g == count) * 1.0)[0] == pytest.approx(own, rel=2e-3)
    risk = sum(
        (cells.inside[level] * cells.levels.kept[level] * chances(cells, part, less=level)[:2].sum(axis=0)).sum()
        for level, part in enumerate(cells.part)
    )
    assert cells.at_risk(3) == pytest.approx(risk, rel=2e-3)


COLUMN = st.lists(st.integers(0, 2), min_size=24, max_size=24)


@given(COLUMN, COLUMN, COLUMN, st.integers(2, 8))
@examples(24)
def test_the_chances_have_the_expectation_and_variance_of_the_theory(
    a: list[int], b: list[int], c: list[int], records: int
) -> None:
    data = file_of(A=[0, 1, *a], B=[0, 1, *b], C=[0, 1, *c])
    recipe = qd.PermutationSwap(["A"], records=2 * records, seed=0)
    cells = cells_of(data, recipe, levels_of(data, recipe), ("A", "B", "C"))
    assert cells.mean.sum() == pytest.approx(data.n)
    assert cells.expected(lambda f, g: np.ones_like(f * g))[0] == pytest.approx(cells.before.size, abs=1e-6)
    assert cells.expected(lambda f, g: 0 * f + g)[0] == pytest.approx(data.n, rel=0.02)
    (chi,) = (predict(data, recipe, ["chi_square_distance(A*B*C)"]),)
    exact = expected_chi_square(data, recipe, "A*B*C").distance
    assert chi["chi_square_distance(A*B*C)"] == pytest.approx(exact, rel=1e-9, abs=1e-12)


@given(COLUMN, COLUMN, st.integers(1, 8), st.sampled_from(["all", "none"]))
@examples(24)
def test_predictions_stay_in_the_range_of_their_measure(a: list[int], b: list[int], pairs: int, differ: Any) -> None:
    data = file_of(A=[0, 1, *a], B=[0, 1, *b])
    asked = ["hellinger", "total_variation", "small_cells", "exposed", "confidence", "hellinger(A)", "exposed(B)"]
    expected = predict(data, qd.RandomSwap(["A"], pairs=pairs, differ=differ, seed=0), asked)
    for address, found in expected.found.items():
        assert (found.value is None) == bool(found.reason)
        assert found.value is None or -1e-9 <= found.value <= 1 + 1e-9, address
    assert expected["hellinger(A)"] in (0.0, None)


def test_a_table_without_a_swapped_variable_or_of_swapped_ones_only_is_known_exactly(cps8d: qd.Data) -> None:
    recipe = qd.RandomSwap(["Race", "Sex"], pairs=488, seed=0)
    asked = ["hellinger(Age*Edu)", "total_variation(Race*Sex)", "entropy_change(Race)", "cramers_v_change(Age*Edu)"]
    expected = predict(cps8d, recipe, asked)
    assert [expected.detail(address).basis for address in asked] == ["exact"] * 4
    assert [expected[address] for address in asked] == pytest.approx([0.0] * 4, abs=1e-12)
    before = qd.score(cps8d, recipe.plan(cps8d), ["exposed(Age*Edu*EmpTyp)"])["exposed(Age*Edu*EmpTyp)"]
    assert predict(cps8d, recipe, "exposed(Age*Edu*EmpTyp)")["exposed(Age*Edu*EmpTyp)"] == pytest.approx(before)


# What has no prediction


@pytest.mark.parametrize(
    ("recipe", "measure", "reason"),
    [
        (qd.RandomSwap(["Edu", "Sex"], pairs=9, order="one-by-one", seed=0), "hellinger", "one by one"),
        (qd.RandomSwap(["Edu"], pairs=9, seed=0), "ordinal_shift(Edu)", "ordinal_shift has no prediction"),
        (qd.RandomSwap(["Edu"], pairs=9, seed=0), "hellinger(Edu*Age, where=Sex=Male)", "where="),
        (qd.RandomSwap(["Race"], pairs=7081, seed=0), "hellinger", "more pairs are asked for"),
        (qd.PermutationSwap(["Race"], rate=1.0, seed=0), "small_cells", "undefined"),
    ],
)
def test_what_has_no_prediction_is_none_with_the_reason(
    cps8d: qd.Data, recipe: qd.Recipe, measure: str, reason: str
) -> None:
    found = predict(cps8d, recipe, measure).detail(measure)
    assert found.value is None and found.basis is None
    assert reason in found.reason


def with_weights(data: qd.Data) -> qd.Data:
    """Weights that depend on age, so that weighted totals by age change."""
    rng = np.random.default_rng(0)
    weights = np.round(rng.gamma(4, 0.25, data.n) * (1 + data["Age"].values) + 0.2, 2)
    return qd.from_frame(data.frame().with_columns(w=pl.Series(weights)), weight="w")


def test_weighted_tables_of_few_records_have_no_prediction_but_counts_of_records_do(cps8d: qd.Data) -> None:
    data = with_weights(cps8d)
    measures = ["hellinger", "exposed", "cramers_v_change(Age*MS)", "hd1"]
    expected = predict(data, qd.RandomSwap(["Age"], pairs=500, seed=0), measures)
    assert "weighted cells of fewer than 10 records" in expected.detail("hellinger").reason
    assert "weighted tables is not predicted" in expected.detail("cramers_v_change(Age*MS)").reason
    assert expected["exposed"] is not None
    assert expected["hd1"] is not None


@pytest.mark.parametrize(
    "recipe",
    [
        qd.RandomSwap(["Age"], rate=0.05, seed=1),
        qd.PermutationSwap(["Age"], rate=0.1, within=["Sex"], seed=1),
        qd.PermutationSwap(["Age"], rate=0.1, weight="moves", seed=1),
    ],
)
def test_weighted_tables_of_many_records_agree_with_draws(cps8d: qd.Data, recipe: Any) -> None:
    """40 draws: within 4 standard errors, plus 1 % for the normal cells."""
    data = with_weights(cps8d)
    measures = ["hellinger(Age*MS)", "total_variation(Age*MS)", "entropy_change(Age*MS)", "hd1", "hd4", "hd3_norm"]
    judge = Evaluator(data, measures)
    expected = predict(data, recipe, measures)
    draws = [judge.score(replace(recipe, seed=seed).plan(data)) for seed in range(40)]
    for address in measures:
        values = np.array([scores[address] for scores in draws], dtype=float)
        error = values.std(ddof=1) / 40**0.5
        assert expected[address] == pytest.approx(values.mean(), abs=4 * error + 0.01 * abs(values.mean()))


def test_the_chi_square_distance_is_exact_where_its_moments_are(cps8d: qd.Data) -> None:
    address = "chi_square_distance(MS*Sex)"
    bases = {
        "exact": [
            qd.PermutationSwap(["MS"], rate=0.05, seed=0),
            qd.PermutationSwap(["MS"], rate=0.05, within=["Race"], seed=0),
            qd.RandomSwap(["MS"], rate=0.05, seed=0),
            qd.RandomSwap(["MS"], rate=0.05, differ="none", seed=0),
        ],
        "mean field": [qd.RandomSwap(["MS"], rate=0.05, same=["Race"], seed=0)],
    }
    for basis, recipes in bases.items():
        for recipe in recipes:
            found = predict(cps8d, recipe, address).detail(address)
            assert found.basis == basis
            assert found.value == pytest.approx(expected_chi_square(cps8d, recipe, "MS*Sex").distance, rel=1e-3)
    weighted_file = with_weights(cps8d)
    permutation = qd.PermutationSwap(["Age"], rate=0.05, seed=0)
    found = predict(weighted_file, permutation, "chi_square_distance(Age*MS)").detail("chi_square_distance(Age*MS)")
    assert found.basis == "exact"
    assert found.value == pytest.approx(expected_chi_square(weighted_file, permutation, "Age*MS").distance, rel=1e-12)


@pytest.mark.parametrize("recipe", [qd.RandomSwap(["Edu"], pairs=500), qd.PermutationSwap(["Edu"], rate=0.02)])
def test_the_difference_measures_are_predicted_under_their_own_names(cps8d: qd.Data, recipe: Any) -> None:
    """Within 4 standard errors of the mean of 80 draws."""
    table = "(Edu*AnnSal)"
    measures = [f"{name}{table}" for name in ("chi_square", "deviance", "effective_swap_rate")]
    found = predict(cps8d, recipe, [*measures, f"chi_square_distance{table}", f"total_variation{table}"])
    judge = Evaluator(cps8d, measures)
    drawn = [judge.score(replace(recipe, seed=seed).plan(cps8d)) for seed in range(80)]
    for name in measures:
        values = np.array([each[name] for each in drawn])
        assert abs(values.mean() - found[name]) < 4 * values.std(ddof=1) / 80**0.5
    assert found[f"chi_square_distance{table}"] == found[f"chi_square{table}"]
    assert found[f"total_variation{table}"] == found[f"effective_swap_rate{table}"]
    assert (found.detail(f"chi_square{table}").basis == "exact") == isinstance(recipe, qd.PermutationSwap)
    assert "infinite=1" in predict(cps8d, recipe, "deviance(Edu, infinite=1)").found["deviance(Edu, infinite=1)"].reason


@pytest.mark.parametrize("recipe", [qd.RandomSwap(["A"], pairs=10), qd.PermutationSwap(["A"], rate=0.2)])
def test_records_that_leave_for_empty_cells_lower_the_deviance(recipe: qd.Recipe) -> None:
    """The deviance looks at cells that were not empty; within 4 standard errors of 200 draws, and 3 %."""
    data = file_of(A=[0] * 50 + [1] * 50, B=[0] * 70 + [1] * 30)  # no record with A = 0 and B = 1
    (mean,), (error,) = drawn(data, seeded(recipe, 0), ("deviance(A*B)",), 200)
    assert mean < -3
    assert predict(data, recipe, "deviance(A*B)")["deviance(A*B)"] == pytest.approx(mean, abs=4 * error - 0.03 * mean)


@pytest.mark.parametrize(("weight", "table"), [("stays", "A"), ("moves", "B")])
def test_two_weighted_totals_that_sum_to_a_fixed_one_have_one_degree_of_freedom(weight: Any, table: str) -> None:
    """Half of 1,200 draws shift weight one way, half the other: E |Z| is 0.80 of the root of E Z^2, not 0.89."""
    values = np.round(np.random.default_rng(1).gamma(4, 0.25, 200) + 0.2, 2)
    frame = pl.DataFrame({"A": [0] * 120 + [1] * 80, "B": [0, 1] * 100, "w": values})
    data, recipe = qd.from_frame(frame, weight="w"), qd.PermutationSwap(["A"], rate=0.3, weight=weight, seed=0)
    (mean,), (error,) = drawn(data, recipe, (f"hellinger({table})",), 1200)
    assert error < 0.025 * mean
    assert predict(data, recipe, f"hellinger({table})")[f"hellinger({table})"] == pytest.approx(mean, abs=3 * error)


def test_roots_of_the_change_of_few_records_are_called_rough(cps8d: qd.Data) -> None:
    few, many = (predict(cps8d, qd.RandomSwap(["Edu"], pairs=pairs), ["hellinger", "chi_square"]) for pairs in (49, 50))
    assert [few.detail(name).basis for name in ("hellinger", "chi_square")] == ["rough", "mean field"]
    assert many.detail("hellinger").basis == "approximate"


def test_totals_that_no_swap_changes_are_exactly_0(cps8d: qd.Data) -> None:
    found = predict(cps8d, qd.RandomSwap(["Edu"], pairs=500), "hd1").detail("hd1")
    assert (found.value, found.basis) == (0.0, "exact")


def test_the_note_of_a_mean_field_table_counts_its_levels(cps8d: qd.Data) -> None:
    of_two = qd.RandomSwap(["MS"], rate=0.05, same=["Race"], seed=0)
    note = qd.theory.table_error(cps8d, of_two, "MS*Sex")["note"][0]
    assert note.startswith("approximate: mean field, because the pairs spread over 4 levels")
    assert qd.theory.table_error(cps8d, qd.RandomSwap(["MS"], rate=0.05), "MS*Sex")["note"][0] == "exact"


def test_unknown_names_and_things_that_are_no_recipe_are_refused(cps8d: qd.Data) -> None:
    recipe = qd.RandomSwap(["Edu"], pairs=9, seed=0)
    with pytest.raises(QuadrilleError, match="hellinger"):
        predict(cps8d, recipe, "helinger")
    with pytest.raises(ParameterError, match="needs a recipe"):
        predict(cps8d, recipe.plan(cps8d), "hellinger")  # type: ignore[arg-type]
    with pytest.raises(QuadrilleError, match="hellinger"):
        predict(cps8d, recipe, "hellinger")["helinger"]
    frame = predictions(cps8d, [recipe, qd.RandomSwap(["Edux"], pairs=9, seed=0)], ["hellinger"])
    assert frame["hellinger"].is_null().to_list() == [False, True]
    assert "Edux" in frame["reason"][1]


# The chart and the dry run


def points() -> pl.DataFrame:
    rows = [
        {
            "risk": r,
            "exposed": r,
            "loss": x,
            "swap": "A",
            "rate": 0.1,
            "on_frontier": i < 2,
            "chosen": i == 0,
            "label": "a",
        }
        for i, (r, x) in enumerate([(0.2, 0.3), (0.3, 0.2), (0.4, 0.4)])
    ]
    return pl.DataFrame(rows)


def ahead() -> pl.DataFrame:
    rows = [
        {"label": "p", "small_cells": r, "exposed": r, "hellinger": x}
        for r, x in ((0.1, 0.5), (0.3, 0.3), (0.5, 0.5), (None, 0.1))
    ]
    return pl.DataFrame(rows)


def test_the_chart_draws_the_predicted_frontier_beside_the_draws() -> None:
    spec = chart.frontier(points(), risk="small_cells", loss="hellinger", predicted=ahead()).to_dict()
    upper = spec["vconcat"][0]["layer"]
    (line,) = [layer for layer in upper if layer["mark"].get("type") == "line"]
    rows = spec["datasets"][line["data"]["name"]] if "name" in line["data"] else line["data"]["values"]
    lines = {
        name: [(row["loss"], row["risk"]) for row in rows if row["line"].startswith(name)] for name in ("of", "pre")
    }
    assert lines == {"of": [(0.2, 0.3), (0.3, 0.2)], "pre": [(0.3, 0.3), (0.5, 0.1)]}
    assert line["encoding"]["strokeDash"]["legend"]["title"] == "Frontier"
    low, high = line["encoding"]["x"]["scale"]["domain"]
    assert low <= 0.2 and high >= 0.5
    for panel in spec["vconcat"]:
        assert any(layer["mark"].get("shape") == "diamond" for layer in panel["layer"])
    told = " ".join(spec["title"]["subtitle"])
    assert "2 designs of 3" in told and "Not predicted: 1 design." in told


def test_the_chart_without_predictions_has_no_second_line_and_refuses_a_lonely_n_rule() -> None:
    spec = json.dumps(chart.frontier(points(), risk="small_cells", loss="hellinger").to_dict())
    assert "strokeDash" not in spec and "predicted" not in spec
    with pytest.raises(ParameterError, match="exposed"):
        chart.frontier(points(), risk="small_cells", loss="hellinger", predicted=ahead().drop("exposed"))
    with pytest.raises(InputError, match="nothing to draw"):
        chart.frontier(points(), risk="small_cells", loss="hellinger", predicted=ahead().tail(1))


JOB = """
[data]
file = "dataset:cps8d"

[search]
measures = ["small_cells", "hellinger", "ordinal_shift"]
out = "new.study"

[[grid]]
method = "RandomSwap"
swap = [["Edu"], ["Race"], ["Race", "Sex"]]
pairs = [244, 488]
order = ["together", "one-by-one"]
seeds = 2
"""


def test_a_dry_run_shows_the_predicted_frontier_and_what_is_not_predicted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cps8d: qd.Data
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.toml").write_text(JOB)
    result = CliRunner().invoke(app, ["search", "job.toml", "--dry-run", "--json"])
    found = json.loads(result.stdout)["predicted"]
    assert found["axes"] == ["small_cells", "hellinger"]
    designs = {each["design"]: each for each in found["designs"]}
    assert len(designs) == 12
    values = designs["swap Edu, pairs 488"]["values"]
    expected = predict(cps8d, qd.RandomSwap(["Edu"], pairs=488, seed=0), ["small_cells", "exposed", "hellinger"])
    assert {name: values[name] for name in expected.found} == {name: expected[name] for name in expected.found}
    assert values["ordinal_shift"] is None
    missing = [name for name, each in designs.items() if each["values"]["hellinger"] is None]
    assert missing == [f"swap Race + Sex, pairs {pairs}, order one-by-one" for pairs in (244, 488)]
    known = [e["values"] for e in designs.values() if e["values"]["hellinger"] is not None]
    for each in designs.values():
        own = each["values"]
        better = [o for o in known if own["hellinger"] is not None and _beats(o, own)]
        assert each["on_frontier"] == (own["hellinger"] is not None and not better)
    text = " ".join(CliRunner().invoke(app, ["search", "job.toml", "--dry-run"]).stdout.split())
    assert "Predicted frontier of small_cells and hellinger" in text
    assert "of 10 predicted, 12 in all." in text
    assert "No prediction for 2 designs: 2 several variables swapped one by one have no closed form" in text
    assert not Path("new.study").exists()


def _beats(one: dict[str, float], other: dict[str, float]) -> bool:
    pairs = [(one[name], other[name]) for name in ("small_cells", "hellinger")]
    return all(x <= y for x, y in pairs) and any(x < y for x, y in pairs)
