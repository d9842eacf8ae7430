"""Matches to a population: against simulated samples, by hand, and the log-linear fit they are estimated by."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quadrille as qd
from effort import examples, tries
from quadrille.attack.input import NoClosedForm, attack_input, transition_of
from quadrille.attack.population import population, population_risk, population_section
from quadrille.errors import InputError, ParameterError
from quadrille.measure.population import all_margins, fit
from quadrille.randomness import Stream

DATA = qd.datasets.cps8d()
CELLS = 2_880


def cells_of(data: qd.Data) -> np.ndarray:
    cells = np.zeros(data.n, dtype=np.int64)
    for name in DATA.columns:
        cells = cells * data[name].size + data[name].values
    return cells


def sample_of(share: float, number: int) -> qd.Data:
    words = Stream.of(number, "sample").words(DATA.n)
    return DATA.take(np.flatnonzero(words < share * 2**32))


def right_matches(file: qd.Data, released: qd.Data) -> float:
    """What a match really gives: 1 / F where the record alone with some keys is that of a person with these keys."""
    true, shown, people = cells_of(file), cells_of(released), np.bincount(cells_of(DATA), minlength=CELLS)
    alone = np.bincount(shown, minlength=CELLS)[shown] == 1
    return float((1 / people[true[alone & (true == shown)]]).sum())


@pytest.mark.parametrize(
    ("share", "rate", "drawn", "error", "estimate"),
    [
        (0.1, 0.1, 84.4, 0.5, 91.2),
        (0.1, 0.3, 68.2, 0.5, 77.5),
        (0.5, 0.1, 220.4, 1.2, 232.9),
        (1.0, 0.1, 298.0, 1.2, None),
    ],
)
def test_formula_agrees_with_simulated_samples_within_four_standard_errors(
    share: float, rate: float, drawn: float, error: float, estimate: float | None
) -> None:
    truth, formula, model = [], [], []
    for number in range(tries(30, 200)):
        file = sample_of(share, number)
        recipe = qd.PermutationSwap(["Edu"], rate=rate, seed=number)
        released = recipe.plan(file).apply(file)
        truth.append(right_matches(file, released))
        formula.append(population_risk(file, released, recipe, population=DATA, sampling=share).expected)
        if estimate is not None:
            model.append(population_risk(file, released, recipe, sampling=share).expected)
    difference = np.array(truth) - formula
    assert abs(difference.mean()) < 4 * difference.std() / np.sqrt(len(truth))
    spread = np.hypot(np.std(truth) / np.sqrt(len(truth)), error)
    assert abs(np.mean(truth) - drawn) < 4 * spread
    if estimate is not None:
        assert abs(np.mean(model) - estimate) < 4 * spread
        assert 1.0 < np.mean(model) / np.mean(truth) < 1.2


def test_true_swaps_of_two_variables_agree_with_simulated_samples() -> None:
    difference = []
    for number in range(tries(30, 200)):
        file = sample_of(0.2, number)
        recipe = qd.RandomSwap(["Edu", "MS"], rate=0.2, same=["Sex"], seed=number)
        released = recipe.plan(file).apply(file)
        risk = population_risk(file, released, recipe, population=DATA)
        difference.append(right_matches(file, released) - risk.expected)
    assert abs(np.mean(difference)) < 4 * np.std(difference) / np.sqrt(len(difference))


def test_a_swap_of_other_columns_gives_one_in_f() -> None:
    file = sample_of(0.1, 1)
    keys = ["Age", "EmpTyp", "MS", "Race", "Sex", "AvgHrs"]
    for recipe in (qd.PermutationSwap(["Edu"], rate=0.5, seed=1), qd.RandomSwap(["Edu"], rate=0.5, seed=1)):
        risk = population_risk(file, file, recipe, keys, population=DATA)
        assert risk.chances == pytest.approx(risk.before, rel=1e-12)
    everybody = population_risk(DATA, DATA, recipe, keys, sampling=1)
    assert set(everybody.chances) == set(everybody.before) == {1.0}


def test_the_formula_by_hand() -> None:
    """Six records of a population of twelve, two keys; two records exchange the first."""
    frame = pl.DataFrame({"a": list("xxxyyy"), "b": list("pqqppp")})
    people = qd.from_frame(pl.concat([frame, frame]).with_columns(a=pl.Series(list("xxxxyyyyyyyy"))))
    file = qd.from_frame(frame)
    recipe = qd.PermutationSwap(["a"], records=2, seed=1)
    risk = population_risk(file, file, recipe, ["a", "b"], population=people)
    stays, comes = 1 - 2 / 6 + 2 / 6 * 2 / 5, 2 / 6 * 3 / 5
    # Alone in the release: (x, p). Of the population 2 have x and p, 6 have y and p.
    persons = people.frame().group_by("a", "b").len().sort("a", "b")["len"].to_list()
    assert persons == [2, 2, 6, 2]
    share = 6 / 12
    own, other = stays / (1 - share * stays), comes / (1 - share * comes)
    assert risk.chances.tolist() == pytest.approx([own / (2 * own + 6 * other)])
    assert risk.before.tolist() == [1 / 2]


def test_keys_that_nobody_of_the_population_has_are_never_matched_right() -> None:
    file = qd.from_frame(pl.DataFrame({"a": list("xxyy"), "b": list("pqpp")}))
    people = qd.from_frame(pl.DataFrame({"a": list("xxyyyy"), "b": list("pppppp")}))
    recipe = qd.PermutationSwap(["a"], records=2, seed=1)
    risk = population_risk(file, file, recipe, ["a", "b"], population=people)
    assert risk.chances.tolist()[1] == 0 and risk.chances.tolist()[0] > 0


def test_a_weight_of_the_population_counts_persons() -> None:
    file = sample_of(0.1, 1)
    recipe = qd.PermutationSwap(["Edu"], rate=0.1, seed=1)
    counted = DATA.frame().group_by(DATA.columns).len().sort(DATA.columns)
    people = qd.from_frame(counted.with_columns(pl.col("len").cast(pl.Float64)), weight="len")
    weighted = population_risk(file, file, recipe, DATA.columns, population=people)
    assert np.sort(weighted.chances) == pytest.approx(
        np.sort(population_risk(file, file, recipe, population=DATA).chances)
    )


@pytest.mark.parametrize(
    "recipe",
    [
        qd.RandomSwap(["Edu", "MS"], rate=0.3),
        qd.RandomSwap(["Edu"], rate=0.3, same=["Sex"], different=["MS"]),
        qd.PermutationSwap(["Edu", "AnnSal"], rate=0.4, within=["Age"]),
    ],
)
def test_chances_are_those_of_draws(recipe: qd.Recipe) -> None:
    """Records by what they were and what they show, over 40 draws; within 4 standard errors and .3 % for mean field."""
    keys = ["Age", "Edu", "Sex"]
    move = transition_of(DATA, recipe, keys)
    seen, expected, variance = np.zeros(5), np.zeros(5), np.zeros(5)
    inside = (DATA["Age"].values == 1) & (DATA["Sex"].values == 0) & (DATA["Edu"].values == 2)
    for seed in range(40):
        fields = {**vars(recipe), "seed": seed}
        released = type(recipe)(**fields).plan(DATA).apply(DATA)
        seen += np.bincount(released["Edu"].values[inside], minlength=5)
    origin = {"Age": np.full(5, 1), "Sex": np.full(5, 0), "Edu": np.full(5, 2)}
    chance = move.of(origin, {**origin, "Edu": np.arange(5)})
    expected = 40 * inside.sum() * chance
    variance = expected * (1 - chance)
    assert chance.sum() == pytest.approx(1)
    assert (np.abs(seen - expected) < 4 * np.sqrt(variance) + 0.003 * 40 * inside.sum()).all()


def test_undoing_gives_the_corrected_table_of_theory() -> None:
    recipe = qd.PermutationSwap(["AnnSal"], rate=0.1, seed=1)
    released = recipe.plan(DATA).apply(DATA)
    move = transition_of(DATA, recipe, ["Edu", "AnnSal"])
    table = np.zeros((5, 2))
    np.add.at(table, (released["Edu"].values, released["AnnSal"].values), 1)
    corrected = qd.theory.correct(table, recipe=recipe).table
    assert move.undo(table, {"Edu": np.arange(5)}) == pytest.approx(corrected)


def test_undoing_within_classes_is_right_on_average() -> None:
    """The expected table, M applied to the original, is undone to the original."""
    recipe = qd.PermutationSwap(["AnnSal"], rate=0.4, within=["Sex"])
    move = transition_of(DATA, recipe, ["Edu", "Sex", "AnnSal"])
    sex, edu = np.divmod(np.arange(10), 5)
    table = np.zeros((10, 2))
    np.add.at(table, (DATA["Sex"].values.astype(int) * 5 + DATA["Edu"].values, DATA["AnnSal"].values), 1)
    rows = {"Edu": edu, "Sex": sex}
    expected = np.zeros_like(table)
    for was in range(2):
        for shown in range(2):
            codes = {**rows, "AnnSal": np.full(10, was)}
            expected[:, shown] += table[:, was] * move.of(codes, {**codes, "AnnSal": np.full(10, shown)})
    assert move.undo(expected, rows) == pytest.approx(table)


DESIGNED = qd.DesignedSwap(seed=7, effort=0.02, coin=0.5, keep="1-way")


def test_a_design_without_closed_form_has_a_reason_where_nobody_knows_whose_row_is_which() -> None:
    with pytest.raises(NoClosedForm, match="DesignedSwap has no closed form"):
        population_risk(DATA, DATA, DESIGNED, sampling=0.5)
    others = DESIGNED.changed(seed=8).plan(DATA).apply(DATA).take(np.arange(DATA.n)[::-1])
    section = population(attack_input(DATA, others, None, None, 3, "design", None, DESIGNED, sampling=0.5))
    assert section.reason and not section.findings


def test_matches_to_a_designed_release_of_a_sample_are_counted_with_its_plan() -> None:
    file = sample_of(0.3, 1)
    plan = DESIGNED.plan(file)
    common = (None, None, 3, "design", None, DESIGNED)
    counted = population(attack_input(file, plan, *common, population=DATA)).findings[0]
    truth = right_matches(file, plan.apply(file))
    assert (counted.value, counted.before) == pytest.approx((truth, right_matches(file, file)))
    assert 0 < truth < counted.before
    estimated = population(attack_input(file, plan, *common, sampling=0.3)).findings[0]
    assert estimated.value == pytest.approx(truth, rel=0.3) and "with the plan" in estimated.note
    whole = population(attack_input(DATA, DESIGNED.plan(DATA), *common, sampling=1)).findings[0]
    assert whole.value == pytest.approx(right_matches(DATA, DESIGNED.plan(DATA).apply(DATA)))


def test_the_section_has_before_and_chance_next_to_each_value() -> None:
    recipe = qd.RandomSwap(["Edu", "MS"], rate=0.1, seed=1)
    section = population_section(population_risk(DATA, recipe.plan(DATA).apply(DATA), recipe, sampling=0.1))
    right = section.findings[0]
    assert right.value is not None and right.before is not None and right.chance is not None
    assert right.chance < right.value < right.before
    assert right.chance == pytest.approx(347 / (10 * DATA.n))
    assert "%" in section.story and section.advice


def test_bad_input_is_refused() -> None:
    recipe = qd.RandomSwap(["Edu"], rate=0.1, seed=1)
    with pytest.raises(InputError, match="population"):
        population_risk(DATA, DATA, recipe)
    with pytest.raises(ParameterError, match="'sampling' parameter of population_risk"):
        population_risk(DATA, DATA, recipe, sampling=0)
    with pytest.raises(InputError, match="'Aeg'"):
        population_risk(DATA, DATA, recipe, ["Aeg"], sampling=1)


@examples(24)
@given(
    st.lists(st.integers(2, 3), min_size=2, max_size=4).flatmap(
        lambda sizes: st.tuples(
            st.just(sizes),
            st.lists(st.integers(0, 9), min_size=int(np.prod(sizes)), max_size=int(np.prod(sizes))).filter(any),
        )
    )
)
def test_a_fit_agrees_with_every_two_way_margin(case: tuple[list[int], list[int]]) -> None:
    sizes, counts = case
    table = (np.array(counts) + 1.0).reshape(sizes)
    fitted = fit(table, all_margins(len(sizes), 2), 2_000, tolerance=1e-10)
    for pair in combinations(range(len(sizes)), 2):
        others = tuple(i for i in range(len(sizes)) if i not in pair)
        assert fitted.sum(axis=others) == pytest.approx(table.sum(axis=others), rel=1e-6)


def test_a_fit_ends_when_no_count_changes_any_more() -> None:
    table = np.bincount(cells_of(DATA), minlength=CELLS).reshape([DATA[name].size for name in DATA.columns]) * 1.0
    pairs = all_margins(8, 2)
    assert fit(table, pairs, 100, tolerance=1e-6) == pytest.approx(fit(table, pairs, 100), abs=1e-4)
    assert fit(table, [range(8)], 100, tolerance=0) == pytest.approx(table)


def test_more_combinations_than_a_table_holds_are_fitted_by_a_tree() -> None:
    file = DATA.frame().with_columns(pl.Series(f"x{i}", [str(i)] + ["0"] * (DATA.n - 1)) for i in range(1, 12))
    data = qd.from_frame(file)
    recipe = qd.RandomSwap(["Edu"], rate=0.1, seed=1)
    risk = population_risk(data, data, recipe, [*DATA.columns, *(f"x{i}" for i in range(1, 12))], sampling=0.1)
    assert risk.basis == "tree of 2-way margins"
    assert 0 < risk.expected < len(risk.chances)
