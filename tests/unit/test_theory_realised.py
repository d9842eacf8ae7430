"""Predicted against realised, from a file and from a table; carried geography is predicted as it moves."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import quadrille as qd
from quadrille import chart
from quadrille.errors import QuadrilleError
from quadrille.theory import predict, realised, table_error


def gaps(frame: pl.DataFrame) -> np.ndarray:
    known = frame.filter(pl.col("sd") > 0)
    return ((known["realised"] - known["bias"]) / known["sd"]).to_numpy()


def test_draws_agree_with_the_prediction_within_four_standard_errors(cps8d: qd.Data) -> None:
    recipe = qd.PermutationSwap(["Age"], rate=0.05, within=["Sex"])
    made = realised(cps8d, recipe, "Age*MS*Sex", draws=25, seed=3)
    assert np.abs(gaps(made)).max() < 4
    ahead = table_error(cps8d, recipe, "Age*MS*Sex")
    assert made["bias"].to_list() == ahead["bias"].to_list()
    assert (made["sd"] * 5).to_list() == pytest.approx(ahead["sd"].to_list())


def test_one_draw_is_the_change_of_the_plan(cps8d: qd.Data) -> None:
    recipe = qd.RandomSwap(["Edu"], pairs=300, seed=8)
    made = realised(cps8d, recipe, "Edu*Sex", draws=1, seed=8)
    swapped = recipe.plan(cps8d).apply(cps8d)
    for row in made.to_dicts():
        was, now = (
            each.frame().filter((pl.col("Edu") == row["Edu"]) & (pl.col("Sex") == row["Sex"])).height
            for each in (cps8d, swapped)
        )
        assert row["realised"] == now - was


def test_a_table_is_spread_out_into_records() -> None:
    table = pl.DataFrame({"column": ["a", "b", "c"], "x": [300, 200, 41], "y": [100, 0, 500]})
    recipe = qd.PermutationSwap("column", rate=0.1)
    made = realised(table, recipe, draws=40, seed=2)
    assert made["bias"].to_list() == pytest.approx(table_error(table, recipe)["bias"].to_list())
    assert np.abs(gaps(made)).max() < 4
    assert "mean of 40 draws" in str(chart.predicted_realised(made, draws=40).to_dict()["title"])


def test_weights_that_move_are_realised_too() -> None:
    rng = np.random.default_rng(4)
    frame = pl.DataFrame({"A": rng.integers(0, 3, 900), "B": rng.integers(0, 2, 900), "w": rng.integers(1, 9, 900)})
    data = qd.from_frame(frame, weight="w")
    for weight in ("stays", "moves"):
        made = realised(data, qd.PermutationSwap(["A"], rate=0.2, weight=weight), "A*B", draws=30)
        assert np.abs(gaps(made)).max() < 4


@pytest.mark.parametrize("options", [{"draws": 0}, {"draws": "3"}, {"seed": -1}, {"seed": None}])
def test_bad_numbers_of_draws_are_refused(cps8d: qd.Data, options: dict[str, object]) -> None:
    with pytest.raises(QuadrilleError, match="whole number"):
        realised(cps8d, qd.PermutationSwap(["Age"], rate=0.05), "Age*MS", **options)  # type: ignore[arg-type]


def geography() -> qd.Data:
    """Four counties of three areas each, and two other variables that depend on them."""
    rng = np.random.default_rng(5)
    area = rng.integers(0, 12, 4000)
    rich = (rng.random(4000) < 0.1 + area / 15).astype(int)
    frame = pl.DataFrame({"county": area // 3, "area": area, "rich": rich, "sex": rng.integers(0, 2, 4000)})
    levels = {"county": 1, "area": 2}
    book = [
        qd.Variable(name, "nominal", tuple(range(size)), role="geography" if name in levels else None, level=level)
        for name, size, level in (("county", 4, 1), ("area", 12, 2), ("rich", 2, None), ("sex", 2, None))
    ]
    return qd.from_frame(frame, codebook=qd.Codebook(tuple(book)))


@pytest.mark.parametrize(
    "recipe",
    [
        qd.PermutationSwap(["area"], rate=0.2),
        qd.RandomSwap(["area"], rate=0.2),
        qd.RandomSwap(["county"], rate=0.2),
        qd.RandomSwap(["area"], rate=0.2, same=["county"]),
    ],
)
def test_levels_of_geography_that_travel_along_are_predicted_as_they_move(recipe: qd.Recipe) -> None:
    data = geography()
    made = realised(data, recipe, "county*rich", draws=60)
    still = getattr(recipe, "same", ()) == ("county",)
    assert (made["sd"].max() == 0) is still
    assert still or np.abs(gaps(made)).max() < 4
    address = "total_variation(county*rich)"
    expected = predict(data, recipe, address)[address]
    scores = [
        qd.score(data, type(recipe)(**{**recipe.parameters(), "seed": seed}).plan(data), [address])[address]
        for seed in range(60)
    ]
    error = np.std(scores, ddof=1) / 60**0.5
    assert expected == pytest.approx(np.mean(scores), abs=4 * error + 0.02 * np.mean(scores))
