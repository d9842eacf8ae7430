"""Permutation swapping: how many records move, what is refused, and how it fits searches, grids and JSON."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import quadrille as qd
from quadrille.data import Data
from quadrille.errors import InputError, OverlapError, ParameterError, QuadrilleError
from quadrille.testing import LawError
from quadrille.testing import _check_constraints as check_constraints
from strategies import column, file_of, numbers


def survey(n: int = 40) -> Data:
    """Classes C of 1, 2 and n - 3 records, groups G, a rate per class and a weight."""
    c = np.array([0, 1, 1, *([2] * (n - 3))])
    return Data(
        [
            column("A", np.arange(n) % 5),
            column("B", np.arange(n) % 3),
            column("C", c),
            column("G", np.arange(n) % 2),
            column("T", np.arange(n) % 3),
            column("M", np.where(np.arange(n) == 4, 2, np.arange(n) % 2), 2, nullable=True),
            numbers("r", np.array([0.9, 0.0, 0.5])[c]),
            numbers("half", np.where(np.arange(n) < 20, 0.1, 0.2)),
            numbers("bad", np.where(np.arange(n) < 3, np.nan, 1.5)),
            numbers("w", 1.0 + np.arange(n) % 4, role="weight"),
        ]
    )


@pytest.mark.parametrize(
    ("n", "rate", "pairs", "cycles"),
    [
        (40, 0.05, 2, 2),
        (40, 0.125, 6, 5),
        (41, 0.0366, 2, 2),
        (41, 1, 40, 41),
        (7, 0.5, 4, 4),
        (3, 0.9, 2, 3),
    ],
)
def test_a_rate_is_rounded_half_up_to_pairs_or_to_records(n: int, rate: float, pairs: int, cycles: int) -> None:
    data = file_of(A=np.arange(n))
    for kind, k in (("pairs", pairs), ("cycles", cycles)):
        plan = qd.PermutationSwap("A", rate=rate, kind=kind, seed=1).plan(data)
        assert len(plan.rows) == k
        assert plan.details.facts["classes"] == [{"class": "all records", "n": n, "rate": rate, "k": k, "left_out": ""}]


def test_classes_that_cannot_move_are_left_out_with_the_reason() -> None:
    facts = qd.PermutationSwap("A", rate="r", within=["C"], kind="cycles", seed=1).plan(survey()).details.facts
    assert facts["classes"] == [
        {"class": "C = C0", "n": 1, "rate": 0.9, "k": 0, "left_out": "it has a single record"},
        {"class": "C = C1", "n": 2, "rate": 0.0, "k": 0, "left_out": "its rate is 0"},
        {"class": "C = C2", "n": 37, "rate": 0.5, "k": 19, "left_out": ""},
    ]
    assert facts["classes_left_out"] == {"it has a single record": 1, "its rate is 0": 1}
    low = qd.PermutationSwap("A", rate=0.25, within=["C"], kind="cycles", seed=1).plan(survey()).details.facts
    alone = "its rate gives a single record, which cannot move alone"
    assert low["classes_left_out"] == {"it has a single record": 1, alone: 1}
    least = qd.PermutationSwap("A", rate=0.2, within=["C"], seed=1).plan(survey()).details.facts
    assert least["classes_left_out"] == {"it has a single record": 1, "its rate gives no record": 1}


def test_a_missing_value_of_within_is_a_class_of_its_own_and_numbers_make_classes() -> None:
    data = survey()
    for within, expected in ((["M"], 3), (["w"], 4), (["C", "G"], 5)):
        assert (
            len(qd.PermutationSwap("A", rate=0.9, within=within, seed=1).plan(data).details.facts["classes"])
            == expected
        )


BAD_PARAMETERS = {
    "neither rate nor records": ({}, "needs one of 'rate'"),
    "both rate and records": ({"rate": 0.1, "records": 4}, "needs one of 'rate'"),
    "rate 0": ({"rate": 0}, r"must be a number in \(0, 1\]. Got 0"),
    "rate above 1": ({"rate": 1.5}, r"must be a number in \(0, 1\]"),
    "rate true": ({"rate": True}, r"must be a number in \(0, 1\]"),
    "one record": ({"records": 1, "kind": "cycles"}, "'records' .* must be a whole number of 2 or more. Got 1"),
    "half a record": ({"records": 2.5}, "must be a whole number"),
    "odd pairs": ({"records": 5}, 'must be even for kind="pairs".* Got 5'),
    "odd across": ({"records": 5, "kind": "across", "groups": "G"}, 'must be even for kind="across"'),
    "records within classes": ({"records": 4, "within": ["C"]}, "is for the whole file"),
    "unknown kind": ({"rate": 0.1, "kind": "circles"}, "one of 'cycles', 'pairs', 'across'"),
    "unknown weight": ({"rate": 0.1, "weight": "goes"}, "one of 'stays', 'moves'"),
    "across without groups": ({"rate": 0.1, "kind": "across"}, "Give both, or neither"),
    "groups without across": ({"rate": 0.1, "groups": "G"}, "Give both, or neither"),
    "groups of many columns": ({"rate": 0.1, "kind": "across", "groups": ["G"]}, "the name of a column"),
    "no swap variable": ({"swap": [], "rate": 0.1}, "at least 1"),
    "repeated within": ({"rate": 0.1, "within": ["C", "C"]}, "without repetitions"),
    "seed": ({"rate": 0.1, "seed": -1}, "'seed' parameter of PermutationSwap"),
}


@pytest.mark.parametrize("name", BAD_PARAMETERS)
def test_a_bad_parameter_is_refused_when_the_recipe_is_made(name: str) -> None:
    options, message = BAD_PARAMETERS[name]
    with pytest.raises(ParameterError, match=message):
        qd.PermutationSwap(**{"swap": ["A"], "seed": 1, **options})


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"within": ["A"]}, "'swap' and 'within'"),
        ({"rate": "A"}, "'swap' and 'rate'"),
        ({"kind": "across", "groups": "G", "within": ["G"]}, "'within' and 'groups'"),
    ],
)
def test_a_column_with_two_parts_is_an_overlap(options: dict, parts: str) -> None:
    with pytest.raises(OverlapError, match=parts):
        qd.PermutationSwap(**{"swap": ["A"], "rate": 0.5, "seed": 1, **options})


BAD_DATA = {
    "unknown swap": ({"swap": ["AA"]}, InputError, "no column 'AA' in 'swap' of PermutationSwap"),
    "unknown within": ({"within": ["CC"]}, InputError, "no column 'CC' in 'within' of PermutationSwap"),
    "unknown groups": ({"kind": "across", "groups": "GG"}, InputError, "no column 'GG' in 'groups'"),
    "unknown rate": ({"rate": "rr"}, InputError, "no column 'rr' in 'rate' of PermutationSwap"),
    "weight swapped": ({"swap": ["w"]}, InputError, 'is the weight.* set weight="moves"'),
    "weight moves within itself": ({"weight": "moves", "within": ["w"]}, OverlapError, "cannot be in 'within'"),
    "rate varies": ({"rate": "half"}, InputError, "varies within 1 of 1 classes"),
    "rate varies in a class": ({"rate": "half", "within": ["C"]}, InputError, "varies within 1 of 3 classes"),
    "rate out of range": ({"rate": "bad"}, InputError, r"missing or outside \[0, 1\] in 40 rows"),
    "rate is text": ({"rate": "T"}, InputError, "must hold numbers"),
    "three groups": ({"kind": "across", "groups": "T"}, InputError, "has 3 categories that occur"),
    "missing group": ({"kind": "across", "groups": "M"}, InputError, "missing in 1 rows"),
    "numeric groups": ({"kind": "across", "groups": "r"}, InputError, "is numeric"),
    "no record": ({"rate": 0.001}, ParameterError, "gives no record at all for 40 records. .* about 0.025"),
    "no record in cycles": ({"rate": 0.001, "kind": "cycles"}, ParameterError, "no record at all.* about 0.0375"),
    "k = 1": ({"rate": 0.025, "kind": "cycles"}, ParameterError, "a single record, which cannot move alone, for 40"),
    "no record in any class": ({"rate": 0.01, "within": ["C"]}, ParameterError, "no record at all for any of 3"),
    "more records than there are": ({"rate": None, "records": 42}, qd.InfeasibleError, "42 records .* a file of 40"),
    "group smaller than k/2": (
        {"swap": ["B"], "kind": "across", "groups": "A2", "rate": 0.6}, qd.InfeasibleError,
        "12 records of each are asked for, and the smaller group has 8",
    ),
    "group smaller than k/2 in a class": (
        {"swap": ["B"], "kind": "across", "groups": "G", "rate": 1, "within": ["C"]}, qd.InfeasibleError,
        "too small in 1 of 3 classes: 18 records of each are asked for, and the smaller group has 17",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_DATA)
def test_data_that_do_not_fit_are_refused_with_a_clear_message(name: str) -> None:
    options, error, message = BAD_DATA[name]
    data = survey()
    group = column("A2", np.arange(data.n) % 5 == 0)
    odd = column("G", [1, 0, 1, *([0] * 17), *([1] * 20)]) if name.endswith("in a class") else data["G"]
    data = Data([*(odd if each == "G" else data[each] for each in data.columns), group])
    with pytest.raises(error, match=message) as caught:
        qd.PermutationSwap(**{"swap": ["A"], "rate": 0.5, "seed": 1, **options}).plan(data)
    if isinstance(caught.value, qd.InfeasibleError):
        assert caught.value.maximum < caught.value.asked


def test_the_largest_draw_that_the_error_names_is_possible() -> None:
    data = file_of(A=np.arange(20), G=[0] * 6 + [1] * 14)
    recipe = qd.PermutationSwap("A", records=14, kind="across", groups="G", seed=1)
    with pytest.raises(qd.InfeasibleError) as caught:
        recipe.plan(data)
    assert (caught.value.asked, caught.value.maximum) == (7, 6)
    assert len(qd.PermutationSwap("A", records=12, kind="across", groups="G", seed=1).plan(data).pairs) == 6


def test_a_moving_weight_needs_a_weight() -> None:
    with pytest.raises(InputError, match="the file has none"):
        qd.PermutationSwap("A", rate=0.5, weight="moves", seed=1).plan(file_of(A=[0, 1, 2, 3]))


def test_no_identifier_moves() -> None:
    data = Data([qd.data.Column(qd.Variable("Id", "nominal", ("a", "b"), role="id"), np.array([0, 1], np.uint8))])
    with pytest.raises(InputError, match="role id"):
        qd.PermutationSwap("Id", rate=1, seed=1).plan(data)


def test_canonical_json_leaves_defaults_out_and_reads_back() -> None:
    recipe = qd.PermutationSwap(["A"], rate="r", within=["C"], weight="moves", seed=3)
    written = json.loads(recipe.to_json())
    design = {"swap": ["A"], "rate": "r", "within": ["C"], "weight": "moves", "seed": 3}
    assert written == {"method": "PermutationSwap", "version": 2, **design}
    assert qd.Recipe.from_json(recipe.to_json()) == recipe
    assert recipe.steering_columns == ("r",)
    assert qd.PermutationSwap(["A"], rate=1).steering_columns == ()


def test_the_group_itself_may_be_swapped_across() -> None:
    data = survey()
    plan = qd.PermutationSwap(["G"], records=10, kind="across", groups="G", seed=1).plan(data)
    after = plan.apply(data)
    assert (after["G"].values != data["G"].values).sum() == 10


def test_searches_and_grids_take_it_like_any_recipe(tmp_path: Path) -> None:
    recipes = qd.grid(
        qd.PermutationSwap,
        swap=[["A"], ["B", "C"]],
        rate=["r", 0.3, 0.5],
        within=[[], ["C"]],
        kind=["pairs", "cycles"],
        weight=["stays", "moves"],
        seed=range(3),
    )
    measures = ["small_cells", "hellinger(A*B)"]
    study = qd.search(survey(), recipes, measures, out=str(tmp_path / "study"), allow_contradictions=True)
    frame = study.frame()
    # swap B, C within C is left out; without classes column r is no rate of the whole file
    assert len(frame) == (2 * 3 * 1 + 1 * 3 * 1) * 4 * 3
    failed = frame.filter(frame["status"] != "done")
    assert len(failed) == 2 * 4 * 3
    assert all("varies within 1 of 1 classes" in reason for reason in failed["reason"])
    done = frame.filter(frame["status"] == "done")
    assert done["hellinger(A*B)"].null_count() == 0
    assert {0.3, 0.5} <= set(frame["rate"].drop_nulls())


def test_scores_of_a_search_are_those_of_the_plans(tmp_path: Path, cps8d: Data) -> None:
    recipes = [
        qd.PermutationSwap(["Age"], rate=0.02, kind=kind, within=["Sex"], seed=5) for kind in ("pairs", "cycles")
    ]
    measures = ["small_cells", "hellinger", "total_variation(2-way)"]
    study = qd.search(cps8d, recipes, measures=measures, out=str(tmp_path / "study"))
    for row, recipe in zip(study.frame().sort("id").to_dicts(), recipes, strict=True):
        truth = qd.score(cps8d, recipe.plan(cps8d), measures)
        assert [row[name] for name in measures] == [truth[name] for name in measures]


def test_errors_never_show_a_value_of_the_data() -> None:
    data = Data([column("A", [0, 1, 2, 3]), numbers("rate", [0.123, 0.123, 0.456, 7.0])])
    for rate in ("rate", "A"):
        with pytest.raises(QuadrilleError) as caught:
            qd.PermutationSwap("A" if rate == "rate" else "rate", rate=rate, seed=1).plan(data)
        assert not any(text in str(caught.value) for text in ("0.123", "0.456", "7", "A0"))


@pytest.mark.parametrize(
    ("pairs", "law"),
    [([[0, 5]], "outside its class of `within`"), ([[3, 5]], "its own group of `groups`"), ([[3, 4]], "")],
)
def test_the_battery_knows_classes_and_groups(pairs: list, law: str) -> None:
    data = survey()
    recipe = qd.PermutationSwap("A", rate=0.5, within=["C"], kind="across", groups="G", seed=1)
    move = qd.Move.exchange(["A"], np.array(pairs))
    if not law:
        check_constraints(recipe, move, data)
        return
    with pytest.raises(LawError, match=law):
        check_constraints(recipe, move, data)


def test_a_column_of_rates_is_no_key_variable_of_the_scores() -> None:
    frame = qd.datasets.cps8d().frame().with_columns(share=pl.when(pl.col("Sex") == "Male").then(0.02).otherwise(0.04))
    data = qd.from_frame(frame, codebook=qd.Codebook((qd.Variable("share", "ordinal", (0.02, 0.04)),)))
    assert "share" in data.keys
    plan = qd.PermutationSwap(["Age"], rate="share", within=["Sex"], seed=1).plan(data)
    named = "hellinger(" + "*".join(name for name in data.keys if name != "share") + ")"
    scores = qd.score(data, plan, ["hellinger", named])
    assert scores["hellinger"] == scores[named]
    every = "hellinger(" + "*".join(data.keys) + ")"
    assert qd.score(data, plan, [every])[every] == scores[named], "the rate is a function of the class"
    assert plan.steering_columns == ("share",)
