"""The corrected table is unbiased, its standard errors are right, and what cannot be corrected is refused."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import oracles
import quadrille as qd
from effort import tries
from quadrille.theory import (
    correct,
    correct_published,
    equivalent_records,
    equivalent_table,
    swap_error,
    table_error,
)
from quadrille.theory.expected import pairs_between
from strategies import file_of
from theory_oracle import amounts, enumerated, moving


def tables_after(a: np.ndarray, b: np.ndarray, k: int, kind: str) -> np.ndarray:
    """The swapped table of every permutation."""
    shape = (a.max() + 1, b.max() + 1)
    size = shape[0] * shape[1]
    return np.array([np.bincount(a[s] * shape[1] + b, minlength=size).reshape(shape) for s in moving(len(a), k, kind)])


@pytest.mark.parametrize("kind", ["pairs", "cycles"])
def test_correction_is_unbiased_over_all_permutations(kind: str) -> None:
    rng = np.random.default_rng(3)
    a, b = np.array([0, 0, 0, 1, 1, 2, 2]), np.array([0, 0, 1, 1, 1, 0, 1])
    rng.shuffle(b[2:5])
    truth = np.bincount(a * 2 + b, minlength=6).reshape(3, 2)
    for k in amounts(7, kind):
        f = k / 6
        if f > 0.99:
            continue
        found = [correct(table, f, kind=kind) for table in tables_after(a, b, k, kind)]
        assert np.mean([each.table for each in found], axis=0) == pytest.approx(truth, abs=1e-10)
        scatter = np.std([each.table for each in found], axis=0)
        own = np.array([[swap_error(a == i, b == j, k, kind).sd / (1 - f) for j in range(2)] for i in range(3)])
        assert own == pytest.approx(scatter, abs=1e-10)


def test_classes_are_corrected_one_by_one() -> None:
    north, south = [[10, 2], [3, 9]], [[20, 7], [1, 5]]
    both = correct({"n": north, "s": south}, {"n": 0.1, "s": 0.4})
    apart = correct(north, 0.1), correct(south, 0.4)
    assert both.table == pytest.approx(apart[0].table + apart[1].table)
    assert both.se**2 == pytest.approx(apart[0].se ** 2 + apart[1].se ** 2)
    assert both.given.values.tolist() == [[30, 9], [4, 14]]
    assert correct({"n": north, "s": [[0, 1], [0, 0]]}, 0.2).table[0, 1] == pytest.approx(
        correct(north, 0.2).table[0, 1] + 1
    )


@pytest.mark.parametrize("sampler", ["first-uniform", "pair-uniform"])
def test_true_swaps_of_two_levels_are_undone_exactly(sampler: str) -> None:
    """Mean and scatter over all plans, each with its probability, the swapped variable in the columns."""
    data = file_of(A=[0, 0, 0, 1, 1, 1, 1, 1], B=[0, 1, 1, 0, 0, 0, 2, 2])
    recipe = qd.RandomSwap(["A"], pairs=1, sampler=sampler, seed=1)
    chances = oracles.sequential(oracles.admissible(data, recipe, ["A"]), 1, sampler)
    truth = np.bincount(data["B"].values * 2 + data["A"].values, minlength=6).reshape(3, 2)
    mean, square = np.zeros((3, 2)), np.zeros((3, 2))
    for plan, chance in chances.items():
        source = np.arange(8)
        for i, j in map(tuple, plan):
            source[[i, j]] = j, i
        table = np.bincount(data["B"].values * 2 + data["A"].values[source], minlength=6).reshape(3, 2)
        by_column = correct(table, recipe=recipe, swapped="column").table
        assert pytest.approx(by_column) == correct(table.T, recipe=recipe, swapped="row").table.T
        mean, square = mean + chance * by_column, square + chance * by_column**2
    assert mean == pytest.approx(truth, abs=1e-12)
    estimated = correct(truth, recipe=recipe)
    assert "approximate" not in estimated.note
    f = 8 / (3 * 5)
    sd = table_error(data, recipe, "B*A")["sd"].to_numpy().reshape(3, 2)
    assert square - mean**2 == pytest.approx((sd / (1 - f)) ** 2, abs=1e-12)
    row, column = truth.sum(axis=1, keepdims=True), truth.sum(axis=0, keepdims=True)
    assert estimated.table == pytest.approx((truth - f * row * column / 8) / (1 - f))


def test_true_swaps_of_age_lose_their_bias(cps8d: qd.Data) -> None:
    """Three levels, draws at 20 %: the bias goes, and the stated errors are right within 4 of their own."""
    draws = tries(40, nightly=200)
    truth = oracles.counts(cps8d, ["MS", "Age"])
    before = np.array([[truth[r, c] for c in ("<25", "25-55", ">55")] for r in ("Married", "Other")], dtype=float)
    swapped, found, stated = [], [], []
    for seed in range(draws):
        recipe = qd.RandomSwap(["Age"], rate=0.2, seed=seed)
        move = recipe.plan(cps8d).moves[0]
        age = cps8d["Age"].values.copy()
        age[move.given[0]] = cps8d["Age"].values[move.given[1]]
        table = np.bincount(cps8d["MS"].values.astype(int) * 3 + age, minlength=6).reshape(2, 3)
        result = correct(table, recipe=recipe)
        swapped.append(table)
        found.append(result.table)
        stated.append(result.se)
    error = np.std(found, axis=0, ddof=1)
    assert (np.abs(np.mean(swapped, axis=0) - before) > 100).all()
    assert (np.abs(np.mean(found, axis=0) - before) < 4 * error / draws**0.5).all()
    assert np.mean(stated, axis=0) == pytest.approx(error, rel=4 / (2 * draws) ** 0.5)


def test_a_recipe_gives_its_own_f() -> None:
    table = [[30, 20], [20, 31]]
    by_rate = correct(table, recipe=qd.PermutationSwap(["A"], rate=0.2, seed=1))
    assert by_rate.table == pytest.approx(correct(table, 20 / 100).table)
    by_records = correct(table, recipe=qd.PermutationSwap(["A"], records=21, kind="cycles", seed=1))
    assert by_records.table == pytest.approx(correct(table, 21 / 100).table)
    assert by_records.se == pytest.approx(correct(table, 21 / 100, kind="cycles").se)
    loose = correct(table, recipe=qd.RandomSwap(["A"], pairs=10, differ="none", seed=1))
    assert loose.table == pytest.approx(correct(table, 20 / 100).table)


def test_frames_keep_their_labels_and_negative_cells_are_said() -> None:
    frame = pl.DataFrame({"age": ["young", "old"], "single": [40, 1], "married": [0, 30]})
    found = correct(frame, 0.2, swapped="age", margins=([40, 31], [41, 30]))
    assert found.negative == 2
    assert "2 corrected cells are negative" in found.note
    out = found.frame()
    assert out.columns == ["age", "column", "swapped", "corrected", "se", "note"]
    assert out["age"].to_list() == ["young", "young", "old", "old"]
    assert out["column"].to_list() == ["single", "married"] * 2
    assert out["corrected"].sum() == pytest.approx(71)
    assert (out["corrected"] < 0).sum() == 2
    assert found.table.sum(axis=1) == pytest.approx([40, 31])
    assert (found.se > 0).all()


GOOD = [[5, 4], [3, 6]]
RANDOM = qd.RandomSwap(["A"], pairs=2, seed=1)


@pytest.mark.parametrize(
    ("table", "options", "says"),
    [
        (GOOD, {}, "one of 'f'"),
        (GOOD, {"f": 0.1, "recipe": RANDOM}, "one of 'f'"),
        (GOOD, {"f": 1.0}, "nothing to correct"),
        (GOOD, {"f": 0.9999}, "nothing to correct"),
        (GOOD, {"f": -0.1}, "from 0 to"),
        (GOOD, {"f": float("nan")}, "from 0 to"),
        (GOOD, {"f": "much"}, "from 0 to"),
        ([[5, -4], [3, 6]], {"f": 0.1}, "negative in 1 cells"),
        ([[10**19, 4], [3, 6]], {"f": 0.1}, "more than 9,007,199,254,740,992 records"),
        ([[1e308, 1e308], [1e308, 6]], {"f": 0.1}, "more than 9,007,199,254,740,992 records"),
        ([[50, 4], [3, 60]], {"f": 0.001}, "less than one of the table's 117"),
        (pl.DataFrame({"r": ["a", " "], "x": [5, 3], "y": [4, 6]}), {"f": 0.1}, "1 rows .* have no label"),
        (pl.DataFrame({"r": ["a", None], "x": [5, 3], "y": [4, 6]}), {"f": 0.1}, "1 rows .* have no label"),
        (pl.DataFrame({"r": ["a", "a "], "x": [5, 3], "y": [4, 6]}), {"f": 0.1}, "label of another row"),
        ([[50, 50], [1, 0]], {"recipe": qd.RandomSwap(["A"], pairs=25)}, "nothing to correct"),
        ([[19, 12, 19], [20, 26, 19]], {"recipe": qd.RandomSwap(["A"], rate=0.66)}, "nothing to correct"),
        ([[5, 4], [3]], {"f": 0.1}, "rows of equal length"),
        ([[5, 4], [3, np.nan]], {"f": 0.1}, "missing or infinite in 1 cells"),
        ([[5, 4.5], [3, 6]], {"f": 0.1}, "whole numbers"),
        ([1, 2, 3], {"f": 0.1}, "rows and columns"),
        (GOOD, {"f": 0.1, "margins": ([9, 9], [8, 11])}, "column totals"),
        (GOOD, {"f": 0.1, "margins": ([9, 9, 1], [8, 10])}, "row totals"),
        (GOOD, {"f": 0.1, "margins": 5}, "two lists of numbers"),
        (GOOD, {"f": 0.1, "margins": ("a", "b")}, "two lists of numbers"),
        (GOOD, {"f": 0.1, "margins": ([9, 9],)}, "two lists of numbers"),
        ([[5, 4, 9], [3, 6, 9], [8, 10, 18]], {"f": 0.1}, "equals the sum of the other rows"),
        ([[5, 4, 9], [3, 6, 9]], {"f": 0.1}, "equals the sum of the other columns"),
        ({"n": [[5, 4, 9], [3, 6, 9]], "s": [[1, 1, 2], [3, 0, 3]]}, {"f": 0.1}, "equals the sum of the other columns"),
        (pl.DataFrame({"age": ["old", " Total "], "x": [1, 2], "y": [2, 4]}), {"f": 0.1}, "looks like a total"),
        (GOOD, {"f": 0.1, "swapped": "income"}, "swapped"),
        (GOOD, {"f": 0.1, "kind": "across"}, "kind"),
        (GOOD, {"f": {"n": 0.1}}, "from 0 to"),
        ({"n": GOOD, "s": [[1, 2]]}, {"f": 0.1}, "differ in rows"),
        ({"n": GOOD}, {"f": {"s": 0.1}}, "each class"),
        ({"n": GOOD}, {"recipe": RANDOM}, "not a recipe"),
        (pl.DataFrame({"a": ["x"], "b": ["y"]}), {"f": 0.1}, "must hold counts"),
        (pl.DataFrame({"a": ["x"]}), {"f": 0.1}, "first column of labels"),
        (GOOD, {"recipe": qd.PermutationSwap(["A"], rate=0.1, within=["B"], seed=1)}, "within classes"),
        (GOOD, {"recipe": qd.PermutationSwap(["A"], rate=0.1, kind="across", groups="B", seed=1)}, "no single f"),
        (GOOD, {"recipe": qd.PermutationSwap(["A"], rate=1.0, seed=1)}, "nothing to correct"),
        (GOOD, {"recipe": qd.RandomSwap(["A"], pairs=2, same=["B"], seed=1)}, "one variable"),
        (GOOD, {"recipe": qd.RandomSwap(["A", "B"], pairs=2, seed=1)}, "one variable"),
        ([[5, 5], [5, 5]], {"recipe": qd.RandomSwap(["A"], pairs=5, seed=1)}, "nothing to correct"),
    ],
)
def test_what_cannot_be_corrected_is_refused(table: object, options: dict, says: str) -> None:
    with pytest.raises(qd.QuadrilleError, match=says):
        correct(table, **options)


def test_the_cost_of_correcting_grows_with_f() -> None:
    small, large = correct(GOOD, 0.1), correct(GOOD, 0.6)
    assert (large.se > small.se).all()
    assert correct(GOOD, 0.0).table == pytest.approx(np.array(GOOD))
    assert (correct(GOOD, 0.0).se == 0).all()


def test_predicted_tables_and_corrections_undo_each_other(cps8d: qd.Data) -> None:
    recipe = qd.PermutationSwap(["Age"], rate=0.3, seed=1)
    frame = table_error(cps8d, recipe, "Age*MS")
    expected = frame["expected"].to_numpy().reshape(3, 2)
    f = 14_652 / 48_841
    row, column = expected.sum(axis=1, keepdims=True), expected.sum(axis=0, keepdims=True)
    back = (expected - f * row * column / cps8d.n) / (1 - f)
    assert back.ravel() == pytest.approx(frame["before"].to_numpy())


@pytest.mark.parametrize("kind", ["pairs", "cycles", "across"])
def test_equivalent_records_are_the_first_to_reach_the_target(kind: str) -> None:
    rng = np.random.default_rng(12)
    for n in (5, 8, 30, 61, 200):
        a, b = rng.random(n) < 0.3, rng.random(n) < 0.5
        groups = np.arange(n) % 2 if kind == "across" else None
        errors = {k: swap_error(a, b, k, kind, groups=groups).rmse for k in amounts(n, kind, groups)}
        for target in (0.0, 0.3, 1.0, 2.449, 6.0, max(errors.values()), 1.01 * max(errors.values()) + 1e-9):
            first = next((k for k, rmse in errors.items() if rmse >= target * (1 - 1e-12)), None)
            assert equivalent_records(a, b, rmse=target, kind=kind, groups=groups) == first


def test_the_first_crossing_is_found_where_the_error_falls_again() -> None:
    """One record alone in its row and column: the RMSE of pairs rises to a half and falls with the bias left."""
    n = 400
    a = np.zeros(n)
    a[:200] = 1
    b = a.copy()
    errors = {k: swap_error(a, 1 - b, k).rmse for k in range(0, n + 1, 2)}
    spare = {k: swap_error(a[[0, *range(200, 399)]], a[[0, *range(200, 399)]] * 3, k).sd for k in range(0, 201, 2)}
    assert max(spare, key=spare.get) not in (0, 200)
    target = max(errors.values())
    found = equivalent_records(a, 1 - b, rmse=target)
    assert found == next(k for k, rmse in errors.items() if rmse >= target * (1 - 1e-12))


def test_closest_is_the_nearer_of_two_neighbours_or_the_peak() -> None:
    table = np.array([[12, 3, 1], [4, 9, 2], [1, 1, 30]])
    n = table.sum()
    for kind in ("pairs", "cycles"):
        for row in equivalent_table(table, base=5, kind=kind).iter_rows(named=True):
            i, j = int(row["row"]), int(row["column"])
            a, b = np.repeat(np.arange(3) == i, 3) * 1.0, np.tile(np.arange(3) == j, 3) * 1.0
            errors = {k: swap_error(a, b, k, kind, counts=table.ravel()).rmse for k in amounts(n, kind)}
            target, records = row["rounding_rmse"], row["records"]
            ks = list(errors)
            if records is None:
                assert errors[row["closest"]] == pytest.approx(max(errors.values()))
            else:
                near = [ks[max(ks.index(records) - 1, 0)], records]
                assert row["closest"] == min(near, key=lambda k: abs(errors[k] - target))
    with pytest.raises(qd.QuadrilleError, match="rmse"):
        equivalent_records([1, 0], [1, 0], rmse=-1)
    with pytest.raises(qd.QuadrilleError, match="base"):
        equivalent_table(table, base=0)


def test_a_file_has_the_equivalent_records_of_its_table(cps8d: qd.Data) -> None:
    counts = oracles.counts(cps8d, ["Age", "MS"])
    table = [[counts[r, c] for c in ("Married", "Other")] for r in ("<25", "25-55", ">55")]
    by_table = equivalent_table(table)
    by_file = equivalent_table(cps8d, "Age*MS", swap=["Age"])
    assert by_file.columns[:2] == ["Age", "MS"]
    assert by_file.drop("Age", "MS").equals(by_table.drop("row", "column"))
    turned = equivalent_table(cps8d, ["MS", "Age"], swap="MS")
    assert sorted(turned["records"].to_list()) == sorted(by_file["records"].to_list())
    for bad in ({"margin": "Age*MS"}, {"swap": "Age"}):
        with pytest.raises(qd.QuadrilleError):
            equivalent_table(table, **bad)
        with pytest.raises(qd.QuadrilleError):
            equivalent_table(cps8d, **bad)


def test_standard_errors_of_true_swaps_at_two_levels_are_those_of_the_prediction(cps8d: qd.Data) -> None:
    """A table whose correction is nearly the original: its error is that of the swapped table over 1 - f."""
    recipe = qd.RandomSwap(["MS"], rate=0.1, seed=1)
    frame = table_error(cps8d, recipe, "Race*MS")
    found = correct(np.rint(frame["expected"].to_numpy().reshape(2, 2)), recipe=recipe)
    f = 2442 * cps8d.n / (23_044 * 25_798)
    assert found.table.ravel() == pytest.approx(frame["before"].to_numpy(), abs=2)
    assert found.se.ravel() == pytest.approx(frame["sd"].to_numpy() / (1 - f), rel=1e-3)


def test_first_order_pairs_between_levels() -> None:
    counts = np.array([3000.0, 5000.0, 2000.0])
    m = pairs_between(counts, 50, "pair-uniform")
    share = np.outer(counts, counts)
    np.fill_diagonal(share, 0)
    assert m == pytest.approx(50 * share / (share.sum() / 2), rel=0.01)


def test_enumeration_of_the_oracle_is_complete() -> None:
    assert len(enumerated(np.zeros(6), np.zeros(6), 4, "cycles")) == 15 * 9
    assert len(enumerated(np.zeros(6), np.zeros(6), 4, "pairs")) == 15 * 3


def test_a_line_that_happens_to_be_a_sum_can_be_kept() -> None:
    table = [[5, 4, 9], [3, 6, 9]]
    kept = correct(table, 0.1, no_totals=True)
    assert kept.table.sum() == pytest.approx(36)
    by_class = correct({"n": table, "s": [[1, 0, 0], [0, 1, 5]]}, 0.1)  # a small class may look like a total by chance
    assert by_class.table.sum() == pytest.approx(43)
    assert correct([[5, 4], [5, 4]], 0.1).table.sum() == pytest.approx(18)  # two equal rows are no total


def drawn_corrections(table: list[list[int]], pairs: int, draws: int) -> tuple[np.ndarray, np.ndarray]:
    """Corrected tables and stated errors of single draws; the columns are swapped."""
    cells = np.repeat(np.arange(np.size(table)), np.ravel(table))
    width = len(table[0])
    data = file_of(A=(cells % width).tolist(), B=(cells // width).tolist())
    found = []
    for seed in range(draws):
        recipe = qd.RandomSwap(["A"], pairs=pairs, seed=seed)
        swapped = recipe.plan(data).apply(data)
        codes = swapped["B"].values.astype(int) * width + swapped["A"].values
        after = np.bincount(codes, minlength=np.size(table)).reshape(np.shape(table))
        found.append(correct(after, recipe=recipe, no_totals=True))
    return np.array([each.table for each in found]), np.array([each.se for each in found])


@pytest.mark.parametrize(
    ("table", "pairs"),
    [([[8, 2], [2, 9]], 1), ([[8, 2], [2, 9]], 2), ([[60, 50], [40, 60]], 45), ([[3, 0, 8], [5, 20, 4]], 4)],
)
def test_single_draws_of_small_tables_state_an_error_of_the_right_size(table: list[list[int]], pairs: int) -> None:
    """Never 0, and as root mean square within 20 % of the scatter of 300 draws, whose own error is 4 %."""
    found, stated = drawn_corrections(table, pairs, 300)
    assert stated.min() > 0.2 * stated.max()
    assert np.sqrt((stated**2).mean(axis=0)) == pytest.approx(found.std(axis=0, ddof=1), rel=0.2)


def test_a_level_that_seems_to_be_all_in_one_row_is_not_taken_to_be_so_for_certain() -> None:
    """One record of 100 lies in the other row; draws that happen to hide it state two thirds of the scatter or more."""
    found, stated = drawn_corrections([[99, 1], [1, 99]], 5, 300)
    assert (found[:, 0, 1] < 0.5).any()
    assert (stated > 2 / 3 * found.std(axis=0, ddof=1)).all()


def test_cells_corrected_beyond_their_totals_still_have_an_error() -> None:
    """Pairs of all 21 records but one: 400 draws scatter by 20, whatever the corrected cell is."""
    found, stated = drawn_corrections([[8, 2], [2, 9]], 5, 400)
    assert (found.min(), found.max()) < (0, 10)
    assert found.std(axis=0) == pytest.approx(20.3, abs=1)
    assert ((stated > 20) & (stated < 30)).all()
    said = correct([[60, 50], [40, 60]], recipe=qd.RandomSwap(["A"], pairs=50))
    assert said.se.min() > 50
    assert "negative" in said.note


def test_a_table_too_small_for_its_swaps_says_so() -> None:
    recipe = qd.RandomSwap(["A"], pairs=5)
    assert "the correction tells nothing" in correct([[8, 2], [2, 9]], recipe=recipe).note
    assert "tells nothing" not in correct([[800, 200], [200, 900]], recipe=recipe).note


BY_CLASS = {"Sex = Male": 0.05, "Sex = Female": 0.1}
BOTH = pl.DataFrame(
    {"MS": ["a", "b", "a"], "Sex": ["Male", "male", "Female"], "young": [50, 100, 90], "old": [100, 70, 62]}
)


def test_a_published_table_is_corrected_with_the_factor_of_its_class() -> None:
    men = pl.DataFrame({"MS": ["a", "b"], "young": [50, 100], "old": [100, 70]})
    for name in ("Sex = Male", "sex=male", "Male"):
        found = correct_published(men, BY_CLASS, sizes={"Sex = Male": 320}, of_class=name, kind="cycles")
        alone = correct(men, 0.05, kind="cycles")
        assert found.f == 0.05 and not found.unchecked
        assert (found.table == alone.table).all() and (found.se == alone.se).all()
    assert "does not say how many" in correct_published(men, BY_CLASS, of_class="Male").unchecked
    whole = correct_published(men, {"": 0.05}, records=320)
    assert (whole.table == correct(men, 0.05).table).all() and not whole.unchecked


def test_a_published_table_of_all_classes_is_split_by_the_column_that_holds_them() -> None:
    found = correct_published(BOTH, BY_CLASS, sizes={"Sex = Male": 320, "Sex = Female": 152}, class_column="Sex")
    parts = {"Sex = Male": [[50, 100], [100, 70]], "Sex = Female": [[90, 62], [0, 0]]}
    assert found.f == BY_CLASS and not found.unchecked
    assert found.table == pytest.approx(correct(parts, BY_CLASS).table)
    assert found.frame()["MS"].to_list() == ["a", "a", "b", "b"]


@pytest.mark.parametrize(
    ("table", "options", "says"),
    [
        (BOTH, {"class_column": "Sex", "of_class": "Male"}, "for a table of one class"),
        (BOTH, {"class_column": "sx"}, "no column 'sx'"),
        (BOTH, {"class_column": "MS"}, "no class 'a'"),
        (BOTH.select("Sex", "young"), {"class_column": "Sex"}, "one of labels and at least one of counts"),
        (BOTH.head(2), {"class_column": "Sex"}, "lacks 1 of the 2 classes"),
        (pl.concat([BOTH, BOTH.tail(1)]), {"class_column": "Sex"}, "two rows with the same label"),
        (BOTH, {"class_column": "Sex", "sizes": {"Sex = Male": 321}}, "all 321 records of the class 'Sex = Male'"),
        (BOTH.drop("Sex"), {}, "gives f by class: 'Sex = Male', 'Sex = Female'"),
        (BOTH.drop("Sex"), {"of_class": "M"}, "no class 'M'"),
        (BOTH.drop("Sex"), {"f": {"": 0.1}, "of_class": "Male"}, "no classes"),
        (BOTH.drop("Sex"), {"f": {"": 0.1}, "records": 99}, "all 99 records of the file"),
    ],
)
def test_published_tables_that_do_not_fit_the_note_are_refused(
    table: pl.DataFrame, options: dict[str, object], says: str
) -> None:
    with pytest.raises(qd.QuadrilleError, match=says):
        correct_published(table, **{"f": BY_CLASS, **options})
