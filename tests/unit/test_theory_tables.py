"""The error of whole margins before any draw: against single cells, enumeration and drawn plans."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest

import oracles
import quadrille as qd
from quadrille.theory import (
    compare_errors,
    equivalent_table,
    expected_chi_square,
    expected_table,
    pairs_between,
    rate_for,
    rounding_error,
    sampling_error,
    sampling_table,
    swap_error,
    table_error,
)
from strategies import column, file_of, numbers
from theory_oracle import moving

DRAWS = 300


def tables_of(data: qd.Data, plans: list[qd.Plan], names: tuple[str, str]) -> np.ndarray:
    """The table of two variables after each plan, counted with numpy alone."""
    shape = tuple(data[name].size for name in names)
    found = []
    for plan in plans:
        values = {name: data[name].values.copy() for name in names}
        weight = None if data.weight is None else data[data.weight].values.copy()
        for move in plan.moves:
            rows, source = move.given
            for name in set(names) & set(move.columns):
                values[name][rows] = data[name].values[source]
            if data.weight in move.columns:
                weight[rows] = data[data.weight].values[source]
        cells = np.ravel_multi_index([values[name] for name in names], shape)
        found.append(np.bincount(cells, weights=weight, minlength=shape[0] * shape[1]))
    return np.array(found)


def within_four_errors(drawn: np.ndarray, expected: np.ndarray, sd: np.ndarray, slack: float = 0.0) -> None:
    """Means within 4 standard errors; standard deviations within 4 of theirs, plus a stated share."""
    assert (np.abs(drawn.mean(axis=0) - expected) <= 4 * sd / len(drawn) ** 0.5 + 1e-9).all()
    spread = drawn.std(axis=0, ddof=1)
    assert (np.abs(spread - sd) <= sd * (4 / (2 * (len(drawn) - 1)) ** 0.5 + slack) + 1e-9).all()


RECIPES = {
    "pairs": {"rate": 0.05},
    "cycles": {"rate": 0.1, "kind": "cycles"},
    "across": {"rate": 0.05, "kind": "across", "groups": "Sex"},
    "within": {"rate": 0.05, "within": ["Sex", "EmpTyp"]},
    "records": {"records": 5000},
}


@pytest.mark.parametrize("case", RECIPES)
def test_drawn_tables_scatter_as_predicted(cps8d: qd.Data, case: str) -> None:
    plans = [qd.PermutationSwap(["Age"], seed=seed, **RECIPES[case]).plan(cps8d) for seed in range(DRAWS)]
    frame = table_error(cps8d, qd.PermutationSwap(["Age"], seed=1, **RECIPES[case]), "Age*MS")
    drawn = tables_of(cps8d, plans, ("Age", "MS"))
    within_four_errors(drawn, frame["expected"].to_numpy(), frame["sd"].to_numpy())
    assert set(frame["note"]) == {"exact"}
    before = oracles.counts(cps8d, ["Age", "MS"])
    assert frame["before"].to_list() == [float(before[cell]) for cell in zip(frame["Age"], frame["MS"], strict=True)]


@pytest.mark.parametrize("weight", ["stays", "moves"])
def test_drawn_weighted_tables_scatter_as_predicted(cps8d: qd.Data, weight: str) -> None:
    rng = np.random.default_rng(4)
    rows = rng.choice(cps8d.n, 3000, replace=False)
    some = cps8d.take(rows)
    heavy = 1 + 3.0 * (some["Age"].values == 1) + rng.integers(0, 100, some.n) / 50
    data = qd.Data([*(some[name] for name in ("Age", "MS", "Sex")), numbers("w", heavy, role="weight")])
    recipes = [qd.PermutationSwap(["Age"], rate=0.2, weight=weight, within=["Sex"], seed=i) for i in range(DRAWS)]
    frame = table_error(data, recipes[0], "Age*MS")
    drawn = tables_of(data, [recipe.plan(data) for recipe in recipes], ("Age", "MS"))
    within_four_errors(drawn, frame["expected"].to_numpy(), frame["sd"].to_numpy())


@pytest.mark.parametrize(
    ("swap", "other", "slack"), [("MS", "Race", 0.0), ("Age", "MS", 0.05), ("Edu", "AnnSal", 0.05)]
)
@pytest.mark.parametrize("sampler", ["first-uniform", "pair-uniform"])
def test_drawn_true_swaps_scatter_as_predicted(
    cps8d: qd.Data, swap: str, other: str, slack: float, sampler: str
) -> None:
    """Mean field beyond two levels: the means still agree, the deviations to 5 %."""
    recipes = [qd.RandomSwap([swap], rate=0.1, sampler=sampler, seed=i) for i in range(DRAWS)]
    frame = table_error(cps8d, recipes[0], f"{swap}*{other}")
    drawn = tables_of(cps8d, [recipe.plan(cps8d) for recipe in recipes], (swap, other))
    within_four_errors(drawn, frame["expected"].to_numpy(), frame["sd"].to_numpy(), slack)
    assert ("exact" in frame["note"][0]) == (swap == "MS")


@pytest.mark.parametrize("sampler", ["first-uniform", "pair-uniform"])
def test_three_levels_scatter_as_pairs_drawn_without_replacement(sampler: str) -> None:
    """B tells level 0, so only numbers of pairs scatter: within 4 errors of 400 draws; multinomial ones are not."""
    level = np.repeat([0, 1, 2], [200, 300, 250])
    data = file_of(A=level.tolist(), B=(level == 0).astype(int).tolist())
    recipes = [qd.RandomSwap(["A"], rate=0.6, sampler=sampler, seed=seed) for seed in range(400)]
    found = table_error(data, recipes[0], "A*B")["sd"].to_numpy()
    drawn = tables_of(data, [recipe.plan(data) for recipe in recipes], ("A", "B"))
    scatter = np.std(drawn, axis=0, ddof=1).ravel()
    assert found == pytest.approx(scatter, rel=4 / (2 * 400) ** 0.5)


def test_constrained_true_swaps_have_an_expected_table(cps8d: qd.Data) -> None:
    make = {"rate": 0.1, "same": ["Sex"], "different": ["Race"]}
    plans = [qd.RandomSwap(["MS"], seed=seed, **make).plan(cps8d) for seed in range(60)]
    frame = expected_table(cps8d, qd.RandomSwap(["MS"], seed=0, **make), "MS*AnnSal")
    drawn = tables_of(cps8d, plans, ("MS", "AnnSal"))
    error = drawn.std(axis=0, ddof=1) / len(plans) ** 0.5
    assert (np.abs(drawn.mean(axis=0) - frame["expected"].to_numpy()) <= 4 * error).all()
    assert (np.abs(frame["expected"] - frame["before"]).to_numpy() > 20 * error).all()


@pytest.mark.parametrize("sampler", ["first-uniform", "pair-uniform"])
def test_two_levels_are_exact(sampler: str) -> None:
    data = file_of(A=[0, 0, 0, 1, 1, 1, 1], B=[0, 1, 1, 0, 0, 0, 2])
    recipe = qd.RandomSwap(["A"], pairs=2, sampler=sampler, seed=1)
    found = table_error(data, recipe, "A*B")
    chances = oracles.sequential(oracles.admissible(data, recipe, ["A"]), 2, sampler)
    mean, square = np.zeros(6), np.zeros(6)
    for plan, chance in chances.items():
        source = np.arange(7)
        for i, j in map(tuple, plan):
            source[[i, j]] = j, i
        table = np.bincount(data["A"].values[source] * 3 + data["B"].values, minlength=6)
        mean, square = mean + chance * table, square + chance * table**2
    assert found["expected"].to_numpy() == pytest.approx(mean, abs=1e-12)
    assert found["sd"].to_numpy() ** 2 == pytest.approx(square - mean**2, abs=1e-12)


def test_pairs_that_need_not_differ_are_exact() -> None:
    data = file_of(A=[0, 0, 1, 1, 2], B=[0, 1, 1, 0, 1])
    random = table_error(data, qd.RandomSwap(["A"], pairs=2, differ="none", seed=1), "A*B")
    permuted = table_error(data, qd.PermutationSwap(["A"], records=4, seed=1), "A*B")
    assert random.equals(permuted)


@pytest.mark.parametrize("weight", ["stays", "moves"])
def test_margins_of_moved_or_stayed_variables_alone(weight: str) -> None:
    """Only weights can change them, and only on the other side."""
    data = file_of([1.0, 2.0, 4.0, 8.0, 3.0], A=[0, 0, 1, 1, 1], B=[0, 1, 0, 1, 1])
    recipe = qd.PermutationSwap(["A"], records=2, weight=weight, seed=1)
    source = moving(5, 2, "pairs")
    w = np.array([1.0, 2.0, 4.0, 8.0, 3.0])
    for name in ("A", "B"):
        frame = table_error(data, recipe, name)
        codes = np.broadcast_to(data[name].values, source.shape)
        codes = codes[0][source] if name == "A" else codes
        heavy = w[source] if weight == "moves" else np.broadcast_to(w, source.shape)
        values = np.array([((codes == level) * heavy).sum(axis=1) for level in range(2)])
        assert frame["expected"].to_numpy() == pytest.approx(values.mean(axis=1), abs=1e-12)
        assert frame["sd"].to_numpy() == pytest.approx(values.std(axis=1), abs=1e-7)
        assert (frame["sd"].to_numpy() > 0.1).all() == ((name == "A") == (weight == "stays"))


@pytest.mark.parametrize("weight", ["stays", "moves"])
@pytest.mark.parametrize("within", [[], ["R"]])
def test_weighted_cells_across_groups_have_the_error_of_their_indicators(weight: str, within: list[str]) -> None:
    rng = np.random.default_rng(9)
    n = 120
    codes = {"A": rng.integers(0, 3, n), "B": rng.integers(0, 3, n), "G": rng.integers(0, 2, n), "R": np.arange(n) % 2}
    w = 1000 + rng.integers(0, 500, n) / 100 + 50 * codes["R"]
    data = file_of(w, **codes)
    recipe = qd.PermutationSwap(["A"], rate=0.3, kind="across", groups="G", within=within, weight=weight, seed=1)
    k = recipe.classes(data).k.tolist()
    for row in table_error(data, recipe, "B*A").iter_rows(named=True):
        a, b = ((codes[name] == int(row[name][1:])) * 1.0 for name in ("A", "B"))
        a, b = (a * w, b) if weight == "moves" else (a, b * w)
        classes = codes["R"] if within else np.zeros(n, dtype=int)
        cell = swap_error(a, b, k, "across", groups=codes["G"], within=classes)
        assert (row["before"], row["bias"], row["sd"]) == pytest.approx((cell.value, cell.bias, cell.sd), rel=1e-9)


def test_nearly_equal_weights_keep_their_digits() -> None:
    """Weights of a million that differ by a thousandth: totals of moved variables alone scatter by those only."""
    rng = np.random.default_rng(2)
    a, gap = rng.integers(0, 2, 500), rng.integers(0, 5, 500)
    data = file_of(1e6 + gap / 1000, A=a, B=rng.integers(0, 2, 500))
    frame = table_error(data, qd.PermutationSwap(["A"], records=100, seed=1), "A")
    exact = [swap_error(a == level, gap / 1000, 100).sd for level in range(2)]
    assert frame["sd"].to_list() == pytest.approx(exact, rel=1e-6)


def test_classes_that_cannot_move_are_said() -> None:
    data = file_of(A=[0, 1, 0, 1, 0, 1, 0], B=[0, 0, 1, 1, 0, 1, 1], C=[0, 0, 0, 0, 0, 1, 1])
    frame = table_error(data, qd.PermutationSwap(["A"], rate=0.4, kind="cycles", within=["C"], seed=1), "A*B")
    assert "1 classes stay" in frame["note"][0]


def test_rates_of_classes_come_from_a_column() -> None:
    rng = np.random.default_rng(0)
    region = rng.integers(0, 3, 200)
    columns = [column("A", rng.integers(0, 2, 200)), column("B", rng.integers(0, 2, 200)), column("R", region)]
    data = qd.Data([*columns, numbers("rate", np.array([0.1, 0.5, 0.0])[region])])
    frame = table_error(data, qd.PermutationSwap(["A"], rate="rate", within=["R"], seed=1), "A*B")
    k = [2 * int(rate * (region == r).sum() / 2 + 0.5) for r, rate in enumerate((0.1, 0.5, 0.0))]
    for row in frame.iter_rows(named=True):
        a, b = ((data[name].values == int(row[name][1:])) * 1.0 for name in ("A", "B"))
        cell = swap_error(a, b, k, within=region)
        assert (row["bias"], row["rmse"]) == pytest.approx((cell.bias, cell.rmse))


@pytest.mark.parametrize(
    ("recipe", "margin", "says"),
    [
        (qd.PermutationSwap(["A"], records=2, seed=1), "A*Z", "no column 'Z'"),
        (qd.PermutationSwap(["A"], records=2, seed=1), "A*A", "occurs twice"),
        (qd.PermutationSwap(["A"], records=8, seed=1), "A*B", "cannot move"),
        (qd.PermutationSwap(["A"], rate=0.01, seed=1), "A*B", "no record at all"),
        (qd.PermutationSwap(["A"], records=6, kind="across", groups="B", seed=1), "A*B", "too small"),
        (qd.RandomSwap(["A", "B"], pairs=1, order="one-by-one", seed=1), "A*B", "one by one"),
        (qd.RandomSwap(["A"], pairs=3, seed=1), "A*B", "no record has a partner"),
        (qd.RandomSwap(["Z"], pairs=1, seed=1), "A*B", "no column 'Z'"),
        (qd.PermutationSwap(["A"], records=2, weight="moves", seed=1), "A*B", "needs a weight"),
        (qd.ControlledSwap(["A"], targets=0.2, seed=1), "A*B", "closed forms"),
    ],
)
def test_what_cannot_be_predicted_is_refused(recipe: qd.Recipe, margin: str, says: str) -> None:
    data = file_of(A=[0, 0, 0, 0, 1, 1], B=[0, 1, 1, 0, 1, 1])
    with pytest.raises(qd.QuadrilleError, match=says):
        table_error(data, recipe, margin)


def test_loading_the_theory_loads_no_frames() -> None:
    code = "import sys, quadrille.theory; sys.exit('polars' in sys.modules or 'altair' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_large_steps_are_as_near_as_stated() -> None:
    """256 steps of the midpoint rule against the recursion pair by pair: below 6e-5."""
    counts = np.array([8432.0, 33541.0, 6869.0])
    for sampler in ("first-uniform", "pair-uniform"):
        unused, found = counts.copy(), np.zeros((3, 3))
        for _ in range(2442):
            total, step = unused.sum(), np.zeros((3, 3))
            for a, b in ((0, 1), (0, 2), (1, 2)):
                x, y = unused[a], unused[b]
                both = x * y if sampler == "pair-uniform" else x * y / (total - x) + x * y / (total - y)
                step[a, b] = step[b, a] = both
            step /= step.sum() / 2
            found += step
            unused -= step.sum(axis=1)
        assert pairs_between(counts, 2442, sampler) == pytest.approx(found, rel=6e-5)


def test_a_random_swap_leaves_other_margins_alone(cps8d: qd.Data) -> None:
    frame = table_error(cps8d, qd.RandomSwap(["Age"], rate=0.1, seed=1), "MS*Race")
    assert (frame["rmse"] == 0).all()
    assert (frame["before"] == frame["expected"]).all()
    assert frame["before"].sum() == cps8d.n


def test_expected_chi_squares_equal_those_of_all_permutations() -> None:
    rng = np.random.default_rng(6)
    a, b = np.array([0, 0, 0, 1, 1, 2, 2]), rng.integers(0, 2, 7)
    data = file_of(A=a, B=b)
    found = expected_chi_square(data, qd.PermutationSwap(["A"], records=4, seed=1), "A*B")
    before = np.bincount(a * 2 + b, minlength=6)
    even = np.outer(np.bincount(a), np.bincount(b)).ravel() / 7
    after = np.array([np.bincount(a[s] * 2 + b, minlength=6) for s in moving(7, 4, "pairs")])
    kept = before > 0
    assert found.distance == pytest.approx((((after - before) ** 2)[:, kept] / before[kept]).sum(axis=1).mean())
    assert found.left_out == (~kept).sum()
    assert found.association == pytest.approx(((after - even) ** 2 / even).sum(axis=1).mean())
    assert found.association_before == pytest.approx(((before - even) ** 2 / even).sum())


def test_pairs_between_levels_in_large_steps_agree_with_single_steps() -> None:
    counts = np.array([30_000.0, 50_000.0, 20_000.0, 7_000.0])
    for sampler in ("first-uniform", "pair-uniform"):
        coarse = pairs_between(counts * 10, 20_000 * 10, sampler) / 10
        fine = pairs_between(counts / 10, 2_000, sampler) * 10
        assert coarse == pytest.approx(fine, rel=2e-3)
        assert np.triu(coarse).sum() == pytest.approx(20_000)


@pytest.mark.parametrize("kind", ["pairs", "cycles", "across"])
@pytest.mark.parametrize("relative", [False, True])
def test_the_rate_found_keeps_the_budget_and_the_next_does_not(kind: str, relative: bool) -> None:
    rng = np.random.default_rng(11)
    a = rng.integers(0, 3, 300)
    data = file_of(A=a, B=(a + rng.integers(0, 2, 300)) % 3, C=rng.integers(0, 2, 300))
    groups = "C" if kind == "across" else None
    for budget in (0.02, 0.1, 0.3, 0.6) if relative else (0.2, 1.0, 5.0, 17.0, 100.0):
        found = rate_for(
            data, "A*B", swap=["A"], budget=budget, relative=relative, kind=kind, groups=groups, cells="A=A0|A1"
        )

        def worst(k: int) -> float:
            if k == 0:
                return 0.0
            recipe = qd.PermutationSwap(["A"], records=k, kind=kind, groups=groups, seed=1)
            frame = table_error(data, recipe, "A*B")
            frame = frame.filter(frame["A"].is_in(["A0", "A1"]) & (frame["before"] >= 1))
            return float(frame["relative_rmse" if relative else "rmse"].max())

        step = 1 if kind == "cycles" else 2
        most = 2 * min(np.bincount(data["C"].values)) if kind == "across" else 300
        tried = [0, *range(2, most + 1, step)]
        fine = 0
        for k in tried:
            if worst(k) > budget * (1 + 1e-12):
                break
            fine = k
        assert found.records == fine
        assert found.rate == pytest.approx(fine / 300)
        assert (found.cell is None) == (fine == tried[-1])


def test_a_rate_within_classes_keeps_the_budget(cps8d: qd.Data) -> None:
    found = rate_for(cps8d, "Age*MS", swap=["Age"], budget=100, within=["Sex"])

    def worst(rate: float) -> float:
        recipe = qd.PermutationSwap(["Age"], rate=rate, within=["Sex"], seed=1)
        return float(table_error(cps8d, recipe, "Age*MS")["rmse"].max())

    assert worst(found.rate) <= 100 < worst(found.rate + 0.001)
    assert found.rmse == pytest.approx(worst(found.rate))
    assert found.cell == {"Age": "<25", "MS": "Married"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"budget": -1}, "0 or more"),
        ({"budget": 1, "cells": "Sex=Male"}, "not about the margin"),
        ({"budget": 1, "least": 10**6}, "No cell"),
        ({"budget": 1, "kind": "across"}, "groups"),
        ({"budget": 1, "within": ["Nowhere"]}, "no column"),
        ({"budget": "3"}, "a number of 0 or more"),
        ({"budget": None}, "a number of 0 or more"),
        ({"budget": 1, "within": ["Age"]}, "in both 'within' and 'swap'"),
        ({"budget": 1, "step": 0}, "must be a number in"),
        ({"budget": 1, "least": -3}, "whole number of 0 or more"),
        ({"budget": 1, "cells": 4}, "a condition such as"),
        ({"budget": 1, "kind": "across", "groups": 7}, "the name of a column"),
    ],
)
def test_bad_budgets_are_refused(cps8d: qd.Data, options: dict, says: str) -> None:
    with pytest.raises(qd.QuadrilleError, match=says):
        rate_for(cps8d, "Age*MS", swap=["Age"], **options)


@pytest.mark.parametrize("fraction", [0.01, 0.5])
def test_sampling_errors_are_those_of_samples_from_the_population(fraction: float) -> None:
    """A population of known weights, 600 samples: the estimate is unbiased within 4 standard errors."""
    rng = np.random.default_rng(7)
    population = rng.integers(1, 9, 20_000).astype(float) * (rng.random(20_000) < 0.3)
    n = int(20_000 * fraction)
    drawn, stated = [], []
    for _ in range(600):
        sample = rng.permutation(population)[:n]
        drawn.append(sample.sum())
        found = sampling_error(sample.sum(), n, fraction=fraction, squares=(sample**2).sum())
        stated.append(found.variance)
    scatter = np.var(drawn, ddof=1)
    assert np.mean(stated) == pytest.approx(scatter, rel=4 * (2 / 600) ** 0.5)


def test_sampling_errors_of_counts_and_of_weighted_files(cps8d: qd.Data) -> None:
    p = 779 / 48842
    assert sampling_error(779, 48842, fraction=0.2).variance == pytest.approx(0.8 * 48842**2 / 48841 * p * (1 - p))
    assert sampling_error(779, 48842, fraction=1.0).sd == 0
    data = qd.Data([column("A", np.arange(60) % 2), numbers("w", np.arange(60) + 1.0, role="weight")])
    table = sampling_table(data, "A", fraction=0.25)
    w = (np.arange(60) + 1.0) * (np.arange(60) % 2 == 0)
    assert table["sampling"][0] == pytest.approx((0.75 * 60 * w.var(ddof=1)) ** 0.5)
    assert sampling_table(cps8d, ["Age", "MS"], fraction=0.2)["total"].sum() == cps8d.n


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ((-1, 10, 0.1), "'total'"),
        ((11, 10, 0.1), "'total'"),
        ((float("nan"), 10, 0.1), "'total'"),
        ((3, 1, 0.1), "'n'"),
        ((3, 10, 0.0), "'fraction'"),
        ((3, 10, 1.5), "'fraction'"),
    ],
)
def test_sampling_errors_refuse_what_cannot_be(values: tuple[float, int, float], says: str) -> None:
    with pytest.raises(qd.QuadrilleError, match=says):
        sampling_error(values[0], values[1], fraction=values[2])


def test_a_margin_without_variables_is_refused_by_its_name(cps8d: qd.Data) -> None:
    for margin in ([], "", ["Age", 3]):
        with pytest.raises(qd.QuadrilleError, match="'margin' parameter of table_error must be at least one variable"):
            table_error(cps8d, qd.PermutationSwap(["Age"], rate=0.1), margin)


def by_labels(frame: pl.DataFrame, names: Sequence[str]) -> dict[tuple[object, ...], dict[str, object]]:
    return {tuple(row[name] for name in names): row for row in frame.to_dicts()}


@pytest.mark.parametrize("case", ["file", "table"])
def test_errors_side_by_side_are_those_of_each_function_by_itself(cps8d: qd.Data, case: str) -> None:
    table = pl.DataFrame({"age": ["young", "middle", "old"], "never": [165, 73, 8], "married": [0, 294, 65]})
    if case == "file":
        table, margin, swap = cps8d, "Age*MS", ["Age"]
    else:
        margin, swap = None, ["column"]
    recipe = qd.PermutationSwap(swap, rate=0.05, kind="cycles")
    found = compare_errors(table, recipe, margin, base=3, sampling=0.25)
    assert found.labels == (("Age", "MS") if case == "file" else ("age", "column"))
    assert not found.not_given and not found.weighted
    columns = ["before", "expected", "bias", "sd", "rmse", "relative_rmse", "note"]
    assert found.frame().select(*found.labels, *columns).equals(table_error(table, recipe, margin))
    sampled = by_labels(sampling_table(table, margin, fraction=0.25), found.labels)
    equal = equivalent_table(table, margin, swap=swap if case == "file" else (), base=3, kind="cycles")
    for labels, row in by_labels(found.frame(), found.labels).items():
        assert row["sampling"] == sampled[labels]["sampling"]
        assert row["rounding_rmse"] == rounding_error(int(row["before"]), 3).rmse
        alike = by_labels(equal, found.labels)[labels]
        assert (row["records"], row["closest"]) == (alike["records"], alike["closest"])


@pytest.mark.parametrize(
    ("recipe", "missing", "says"),
    [
        (qd.PermutationSwap(["A"], rate=0.5, within=["B"]), {"records"}, "within classes"),
        (qd.PermutationSwap(["A"], rate=0.5, kind="across", groups="B"), {"records"}, "across two groups"),
        (qd.RandomSwap(["A"], rate=0.5), {"records"}, "true swaps"),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_errors_side_by_side_say_what_is_not_given(
    recipe: qd.Recipe, missing: set[str], says: str, weighted: bool
) -> None:
    weights = [1.0, 2.0, 1.0, 2.0, 3.0, 1.0] if weighted else None
    found = compare_errors(file_of(weights, A=[0, 0, 0, 1, 1, 1], B=[0, 1, 1, 0, 1, 0]), recipe, "A*B")
    if weighted:
        missing, says = {"records", "rounding_rmse"}, "weighted totals"
    assert found.weighted is weighted
    assert set(found.not_given) == missing and all(says in why for why in found.not_given.values())
    assert all(not missing & set(cell) for cell in found.cells)


@pytest.mark.parametrize(
    ("recipe", "says"),
    [
        (qd.RandomSwap(["column"], rate=0.5), "takes a PermutationSwap"),
        (qd.PermutationSwap(["column"], rate=0.5, within=["row"]), "without classes"),
        (qd.PermutationSwap(["colum"], rate=0.5), "no variable 'colum' in the table of table_error"),
        (qd.PermutationSwap(["column", "row"], rate=0.5), "one swapped variable"),
        (qd.PermutationSwap(["row"], rate="r"), "no column of class rates"),
        (qd.PermutationSwap(["row"], records=12), "at most the number of records, 10"),
        (qd.PermutationSwap(["row"], rate=0.01), "moves no record of the table's 10"),
    ],
)
def test_a_table_of_counts_takes_permutations_of_one_of_its_variables(recipe: qd.Recipe, says: str) -> None:
    with pytest.raises(qd.QuadrilleError, match=says):
        table_error([[1, 2], [3, 4]], recipe)


def test_a_table_needs_no_margin_and_a_file_does(cps8d: qd.Data) -> None:
    recipe = qd.PermutationSwap("column", rate=0.5)
    with pytest.raises(qd.QuadrilleError, match="needs Data"):
        table_error([[1, 2], [3, 4]], recipe, "row*column")
    with pytest.raises(qd.QuadrilleError, match="'margin' parameter of table_error"):
        table_error(cps8d, qd.PermutationSwap("Age", rate=0.1))


def test_old_names_for_tables_of_counts_still_work_and_say_what_to_call() -> None:
    table = [[30, 20], [20, 30]]
    with pytest.warns(DeprecationWarning, match=r'compare_errors\(table, PermutationSwap\("column", ...\)\)'):
        old = qd.theory.error_of_counts(table, rate=0.1)
    assert old.equals(compare_errors(table, qd.PermutationSwap("column", rate=0.1)).frame())
    with pytest.warns(DeprecationWarning, match="realised"):
        assert qd.theory.realised_of_counts(table, records=10, draws=2).height == 4
    with pytest.raises(AttributeError, match="no attribute 'error_of'"):
        _ = qd.theory.error_of
