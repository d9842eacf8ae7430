"""`PrivateSwap`: its parameters and refusals at every door, what it promises of a file, and the frame of the curve."""

from __future__ import annotations

import json
import pickle
from math import exp
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner, Result

import quadrille as qd
from quadrille.cli import app
from quadrille.data import Data
from quadrille.errors import InfeasibleError, InputError, OverlapError, ParameterError
from quadrille.present.numbers import epsilon, odds
from quadrille.present.render import as_markdown
from quadrille.present.words import guarantee, meaning, promise
from quadrille.study.job import Job
from quadrille.swap.private import GIVEN_SEED, NUMBER_SEED
from strategies import file_of

REFUSED = ("rules", "rate", "records", "pairs", "differ", "same", "different", "never")
DESIGN = {"within": ["MS", "Race", "Sex"], "epsilon": 12}


@pytest.fixture(scope="module")
def cps8d() -> Data:
    return qd.datasets.cps8d()


def call(*words: str) -> Result:
    return CliRunner().invoke(app, words)


@pytest.mark.parametrize("name", REFUSED)
def test_what_breaks_the_guarantee_is_refused_with_the_reason_at_every_door(name: str, tmp_path: Path) -> None:
    says = rf"PrivateSwap takes no '{name}': .*\."
    with pytest.raises(ParameterError, match=says) as by_keyword:
        qd.PrivateSwap(["Edu"], chance=0.1, **{name: 1})  # type: ignore[arg-type]
    reason = str(by_keyword.value)
    document = {"method": "private", "swap": ["Edu"], "chance": 0.1, name: 1}
    doors = {
        "json": lambda: qd.Recipe.from_json(json.dumps(document)),
        "grid": lambda: qd.grid(qd.PrivateSwap, swap=["Edu"], chance=0.1, **{name: [1]}),
        "changed": lambda: qd.PrivateSwap(["Edu"], chance=0.1).changed(**{name: 1}),
    }
    for door in doors.values():
        with pytest.raises(ParameterError) as refused:
            door()
        assert str(refused.value) == reason
    job = tmp_path / "job.toml"
    job.write_text(
        '[data]\nfile = "dataset:cps8d"\n[search]\nmeasures = ["hellinger"]\n'
        '[[grid]]\nmethod = "PrivateSwap"\nswap = [["Edu"]]\n'
        f"chance = 0.1\n{name} = 1\n"
    )
    with pytest.raises(InputError) as refused:
        Job.read(job)
    assert reason in str(refused.value) and "grid" in str(refused.value)


@pytest.mark.parametrize(
    ("option", "value", "name"),
    [("--rule", "Age<25", "rules"), ("--pairs", "3", "pairs"), ("--same", "Sex", "same"), ("--never", "Sex", "never")],
)
def test_the_command_line_says_why_too(option: str, value: str, name: str) -> None:
    words = ("--method", "private", "--swap", "Edu", "--chance", "0.1", option, value)
    done = call("swap", "dataset:cps8d", *words)
    assert done.exit_code == 2 and f"PrivateSwap takes no '{name}':" in " ".join(done.output.split())


def test_other_wrong_words_are_still_unexpected() -> None:
    with pytest.raises(TypeError, match="unexpected keyword"):
        qd.PrivateSwap(["Edu"], chance=0.1, chances=1)  # type: ignore[call-arg]
    with pytest.raises(InputError, match="Did you mean: 'chance'"):
        qd.Recipe.from_json('{"method": "private", "swap": ["Edu"], "chanc": 0.1}')


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({}, ParameterError, "Got neither"),
        ({"chance": 0.1, "epsilon": 3}, ParameterError, "Got both"),
        ({"chance": 0}, ParameterError, "'chance' parameter of PrivateSwap"),
        ({"chance": 1}, ParameterError, "'chance' parameter of PrivateSwap"),
        ({"epsilon": -1}, ParameterError, "'epsilon' parameter of PrivateSwap"),
        ({"chance": 0.1, "within": ["Edu"]}, OverlapError, "cannot bound the strata"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(given: dict[str, object], error: type, says: str) -> None:
    with pytest.raises(error, match=says):
        qd.PrivateSwap(["Edu"], **given)  # type: ignore[arg-type]


def test_an_epsilon_out_of_reach_names_the_stratum_and_the_least(cps8d: Data) -> None:
    with pytest.raises(ParameterError, match=r"stratum of 18,245 records an epsilon of 4: the least is 4\.906"):
        qd.PrivateSwap(["Edu"], within=["MS", "Race", "Sex"], epsilon=4).plan(cps8d)
    found = qd.PrivateSwap(["Edu"], within=["MS", "Race", "Sex"], epsilon=4.906).guarantee(cps8d)
    assert 4.9 < found.epsilon <= 4.906


@pytest.mark.parametrize("columns", [{"A": [0, 0, 0]}, {"B": [1, 1, 1]}, {"C": [0, 1, 2]}])
def test_a_file_in_which_nothing_can_change_is_refused(columns: dict[str, list[int]]) -> None:
    data = file_of(**({"A": [0, 1, 0], "B": [0, 1, 0], "C": [0, 0, 0]} | columns))
    with pytest.raises(InfeasibleError, match="nothing can be swapped"):
        qd.PrivateSwap(["A"], within=["C"], chance=0.5).plan(data)


def test_strata_in_which_nothing_can_change_stay_and_identifiers_do_not_count() -> None:
    codes = {"A": [0, 1, 0, 1, 0, 0, 1], "B": [0, 0, 1, 1, 0, 1, 0], "C": [0, 0, 0, 0, 1, 1, 2]}
    frame = file_of(**codes).frame().with_columns(who=pl.Series([f"p{i}" for i in range(7)]))
    book = qd.Codebook((qd.Variable("who", role="id"),))
    found = qd.PrivateSwap(["A"], within=["C"], chance=0.5, seed=1).guarantee(qd.from_frame(frame, codebook=book))
    assert (found.largest, found.singles, found.few, found.still) == (4, 1, 6, 3)
    assert found.invariants == (("C", "B"), ("C", "A"))
    alike = file_of(A=[0, 1, 0, 1], B=[0, 0, 0, 0]).frame().with_columns(who=pl.Series([f"p{i}" for i in range(4)]))
    with pytest.raises(InfeasibleError, match="nothing can be swapped"):
        qd.PrivateSwap(["A"], chance=0.5).plan(qd.from_frame(alike, codebook=book))


def test_what_varies_is_found_wherever_in_a_long_file_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quadrille.data.CHUNK", 3)  # rows are looked at in parts, and the last ones tell
    stratum = [0, 1, 2, 3] * 5
    moving, staying = [0] * 20, [0] * 20
    moving[16] = moving[17] = moving[18] = staying[4] = staying[17] = staying[19] = 1
    data = file_of(stratum=stratum, moving=moving, staying=staying)
    strata = qd.PrivateSwap(["moving"], within=["stratum"], chance=0.5).strata(data)
    assert (strata.threshold > 0).tolist() == [True, True, False, False]


def test_the_weight_moves_or_stays_and_levels_travel_together() -> None:
    data = file_of([1.0, 2.0, 3.0, 4.0], A=[0, 1, 0, 1], B=[0, 0, 1, 1])
    stays, moves = (qd.PrivateSwap("A", chance=0.5, weight=each, seed=3) for each in ("stays", "moves"))
    assert stays.guarantee(data).invariants == (("B", "w"), ("A",))
    assert moves.guarantee(data).invariants == (("B",), ("A", "w"))
    assert moves.plan(data).columns == ("A", "w")
    state = qd.datasets.state(records=3_200)
    assert qd.PrivateSwap(["tract"], chance=0.1, seed=1).plan(state).columns == ("tract", "county")


def test_a_guarantee_holds_for_the_first_draw_of_a_secret_seed_only(cps8d: Data) -> None:
    recipe = qd.PrivateSwap(["Edu"], **DESIGN)  # type: ignore[arg-type]
    assert recipe.guarantee(cps8d).void == () and recipe.fresh
    assert pickle.loads(pickle.dumps(recipe)).fresh
    assert recipe.guarantee(cps8d).holds, "looking at the promise draws nothing"
    qd.theory.predict(cps8d, recipe, ["hellinger"])
    assert recipe.fresh
    recipe.plan(cps8d)
    assert recipe.guarantee(cps8d).void == (GIVEN_SEED,)
    assert recipe.changed(epsilon=11).guarantee(cps8d).void == (GIVEN_SEED,)
    assert recipe.changed(seed=None).guarantee(cps8d).holds
    assert recipe.changed(seed=5).guarantee(cps8d).void == (NUMBER_SEED,)
    assert qd.Recipe.from_json(recipe.to_json()).guarantee(cps8d).void == (GIVEN_SEED,)  # type: ignore[attr-defined]


def test_numbers_of_a_promise(cps8d: Data) -> None:
    found = qd.PrivateSwap(["Edu"], within=["MS", "Race", "Sex"], chance=0.05, seed=1).guarantee(cps8d)
    assert found.exchange_odds == pytest.approx(exp(2 * found.epsilon))
    assert found.strata.columns == ["n", "count", "chance", "moves", "epsilon"]
    assert found.strata["epsilon"].max() == found.epsilon == found.total
    assert found.chance == pytest.approx(0.05, abs=1e-9)
    table = as_markdown(guarantee(found))
    assert "| 18,245 | 1 |" in table and NUMBER_SEED in table
    share = found.own
    plans = [qd.PrivateSwap(["Edu"], within=["MS", "Race", "Sex"], chance=0.05, seed=s).plan(cps8d) for s in range(20)]
    kept = [1 - plan.report(cps8d).changed / cps8d.n for plan in plans]
    assert sum(kept) / 20 == pytest.approx(share, abs=0.0008)


def test_epsilon_is_never_written_smaller_than_it_is_and_odds_can_be_read() -> None:
    assert [epsilon(e) for e in (12.0, 12.001, 2.4849, 0.0, 11.9999999)] == ["12", "12.01", "2.49", "0", "12"]
    assert [odds(x) for x in (7.389, 22_026.47, 8.886e6, float("inf"))] == [
        "7.4",
        "22,026",
        "8.9e6",
        "more than any number that fits",
    ]


def test_the_words_of_the_promise_name_what_is_exact_and_what_is_not_covered(cps8d: Data) -> None:
    large = qd.PrivateSwap(["Edu"], **DESIGN).guarantee(cps8d)  # type: ignore[arg-type]
    text = promise(large)
    for part in ("Within each group of MS, Race and Sex, Edu was permuted", "a chance of its own", "2.6e10 times"):
        assert part in text
    assert "does not cover what the exact tables show" in text and "epsilons are added" in text
    assert "rules out nothing" in meaning(large)
    small = file_of(A=[0, 1, 0, 1], B=[0, 0, 1, 1])
    tight = qd.PrivateSwap("A", chance=0.5).guarantee(small)
    assert "rules out nothing" not in meaning(tight) and "with a chance 0.5" in promise(tight)


def test_a_curve_can_be_asked_for_anything_that_is_predicted(cps8d: Data) -> None:
    design = qd.PrivateSwap(["Edu"], **DESIGN)  # type: ignore[arg-type]
    curve = qd.theory.epsilon_curve(cps8d, design, loss="total_variation(Edu*AnnSal)")
    assert curve.height == 24 and curve["loss"].is_not_null().all()
    assert curve["epsilon"][0] == pytest.approx(4.906, abs=1e-3) and curve["epsilon"][-1] == 15
    paired = curve.pivot("design", index="epsilon", values="loss")
    assert (paired["own chances"] <= paired["one chance"] + 1e-12).all()
    unknown = qd.theory.epsilon_curve(cps8d, design, [12], loss="gini_difference")
    assert unknown["loss"].to_list() == [None, None] and "no prediction" in unknown["reason"][0]
    with pytest.raises(ParameterError, match="No chance reaches any"):
        qd.theory.epsilon_curve(cps8d, design, [1])
    with pytest.raises(ParameterError, match="needs a PrivateSwap"):
        qd.theory.epsilon_curve(cps8d, qd.RandomSwap(["Edu"], rate=0.1))  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="'epsilons'"):
        qd.theory.epsilon_curve(cps8d, design, [-1])
    assert design.fresh, "nothing was drawn"


def test_a_curve_is_of_what_moves_where_no_key_variable_does() -> None:
    """By the keys alone every epsilon would seem to cost nothing."""
    random = np.random.default_rng(2)
    columns = {name: random.integers(0, size, 300) for name, size in (("a", 3), ("b", 4), ("c", 2), ("pay", 5))}
    data = qd.from_frame(pl.DataFrame(columns)).with_roles(key=["a", "b", "c"], outcome=["pay"])
    for moved, measure in ((["a"], "hellinger"), (["pay"], "hellinger(a*b*c*pay)")):
        curve = qd.theory.epsilon_curve(data, qd.PrivateSwap(moved, epsilon=6), [6, 8])
        assert set(curve["measure"]) == {measure} and min(curve["loss"]) > 0.01


def test_guarantee_says_what_is_promised_and_draws_what_it_costs(tmp_path: Path) -> None:
    file, picture, survey = tmp_path / "private.json", tmp_path / "curve.png", str(tmp_path / "survey.csv")
    random = np.random.default_rng(2)
    columns = {name: random.integers(0, size, 600) for name, size in (("a", 3), ("b", 4), ("c", 2))}
    pl.DataFrame(columns).write_csv(survey)
    file.write_text('{"method": "private", "swap": ["a"], "within": ["c"], "epsilon": 6}')
    done = call("guarantee", survey, "--recipe", str(file), "--chart", str(picture))
    assert done.exit_code == 0 and picture.read_bytes().startswith(b"\x89PNG")
    for part in (
        "What is guaranteed",
        "6 per record, at most",
        "own chances",
        "hellinger, predicted",
        "small strata are left alone",
    ):
        assert part in " ".join(done.output.split())
    told = json.loads(call("guarantee", survey, "--recipe", str(file), "--json").stdout)
    assert told["guarantee"]["void"] == [] and len(told["curve"]) == 24
    known = tmp_path / "known.json"
    known.write_text('{"method": "private", "swap": ["a"], "within": ["c"], "epsilon": 6, "seed": 1}')
    seeded = json.loads(call("guarantee", survey, "--recipe", str(known), "--json").stdout)
    assert seeded["guarantee"]["void"] == [NUMBER_SEED]
    cells = call("error", survey, "--recipe", str(file), "--margin", "a*b", "--json")
    assert cells.exit_code == 0 and "drawn by chance" in json.loads(cells.stdout)["not_given"]["k"]
    other = tmp_path / "random.json"
    other.write_text('{"method": "permutation", "swap": ["a"], "rate": 0.1}')
    for words, said in (
        (("guarantee", survey, "--recipe", str(other)), "PermutationSwap promises nothing: some of its releases"),
        (("error", survey, "--recipe", str(file)), "What a private swap promises: quadrille guarantee."),
    ):
        refused = call(*words)
        assert refused.exit_code == 2 and said in " ".join(refused.output.split())


def test_swap_shows_the_promise_and_its_json_has_it() -> None:
    words = ("swap", "dataset:cps8d", "--method", "private", "--swap", "Edu", "--within", "Sex", "--epsilon", "12")
    assert "What is guaranteed" in call(*words, "--measures", "hellinger").output
    told = json.loads(call(*words, "--measures", "hellinger", "--json").stdout)
    assert told["guarantee"]["void"] == [] and told["recipe"]["epsilon"] == 12 and "seed" not in told["recipe"]
