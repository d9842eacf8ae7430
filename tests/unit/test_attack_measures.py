"""What an intruder finds, as measures: by hand, in every place where measures are used, and with bad addresses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import quadrille as qd
from quadrille.cli.app import app
from quadrille.data import Data
from quadrille.delta import Delta
from quadrille.errors import InputError, QuadrilleError
from quadrille.measure import MEASURES
from quadrille.measure.attack import NOBODY_UNIQUE, TOO_MANY
from quadrille.score.evaluator import NOT_ALIGNED
from quadrille.study import run
from quadrille.study.workers import FusedScorer
from quadrille.summary import Arrival, Change, Counted, Table, Tally
from strategies import column, file_of, numbers

NEW = ("linked", "linked_small", "attributed", "attributed_unique")


def exchanged(data: Data, columns: list[str], *pairs: tuple[int, int]) -> qd.Plan:
    return qd.Plan.of_pairs(data, columns, np.array(pairs))


def with_keys(data: Data, *keys: str) -> Data:
    columns = [data[name] for name in data.columns]
    roles = ["key" if column.variable.name in keys else None for column in columns]
    return Data([replace(c, variable=replace(c.variable, role=role)) for c, role in zip(columns, roles, strict=True)])


# Keys A and B, six persons. Records 0 and 3 exchange A: (0, 0) and (1, 1) lose one, (1, 0) and (0, 1) gain one.
PEOPLE = file_of(A=[0, 0, 0, 1, 1, 2], B=[0, 0, 1, 1, 1, 0])
SWAP = exchanged(PEOPLE, ["A"], (0, 3))


def test_links_by_hand() -> None:
    scores = qd.score(PEOPLE, SWAP, ["linked", "linked_small(n=2)"])
    # f: 00 2, 01 1, 11 2, 20 1. Still there: 1, 1, 1, 1. g: 00 1, 01 2, 10 1, 11 1, 20 1.
    assert scores["linked"] == (1 + 1 / 2 + 1 + 1) / 6
    assert scores["linked_small(n=2)"] == (1 / 2 + 1) / 2
    assert dict(scores.results["linked"][1].detail) == {
        "links": 3.5,
        "before": 4 / 6,
        "chance": 1 / 6,
        "unique_links": 5,  # the two persons of 00, the two of 11, the one of 20
        "unique_links_right": 3,
    }


def test_attributes_by_hand() -> None:
    file = file_of(K=[0, 1, 2, 3, 4, 4], T=[0, 1, 0, 1, 0, 1])
    # K of record 0 goes to a record with T = 1 and back: its claim becomes wrong, as that of record 1.
    plan = exchanged(file, ["K"], (0, 1))
    scores = qd.score(file, plan, ["attributed(K, target=T)", "attributed_unique(K, target=T)"])
    assert scores["attributed(K, target=T)"] == 2 / 6
    assert scores.detail("attributed(K, target=T)").to_dicts() == [
        {
            "target": "T",
            "value": 2 / 6,
            "before": 4 / 6,
            "chance": 1 / 2,
            "claims": 4,
            "right": 2,
            "right_among_claims": 1 / 2,
            "commonest_value": 2 / 4,
            "everybody": (2 + 1 / 2 + 1 / 2) / 6,
        }
    ]
    assert scores["attributed_unique(K, target=T)"] == 2 / 4
    (row,) = scores.detail("attributed_unique(K, target=T)").to_dicts()
    assert (row["persons"], row["right"], row["wrong"], row["undecided"], row["gone"]) == (4, 2, 2, 0, 0)
    assert (row["before"], row["chance"], row["right_among_claims"]) == (1, 1 / 2, 1 / 2)


def test_a_person_whose_keys_are_gone_and_one_who_is_undecided_are_told_apart() -> None:
    file = file_of(A=[0, 1, 2, 2], B=[0, 1, 2, 2], T=[0, 1, 0, 0])
    address = "attributed_unique(A*B, target=T)"
    gone = qd.score(file, exchanged(file, ["A"], (0, 1)), [address])
    assert gone[address] == 0
    assert dict(gone.results[address][1].detail) == {"persons": 2, "right": 0, "wrong": 0, "undecided": 0, "gone": 2}
    mixed = qd.score(file, exchanged(file, ["A", "B"], (0, 2)), [address])  # 0 and 2 have the same T: nothing is lost
    assert mixed[address] == 1
    other = file_of(A=[0, 0, 1, 1], B=[0, 0, 1, 1], T=[0, 1, 0, 1])
    both = qd.score(file, other, [address])
    assert both[address] == 1 / 2
    assert dict(both.results[address][1].detail)["undecided"] == 2


def test_without_a_target_each_variable_is_inferred_from_the_others_in_turn(cps8d: qd.Data) -> None:
    plan = qd.RandomSwap(["Edu"], rate=0.05, seed=3).plan(cps8d)
    targets = cps8d.keys
    addresses = [f"{name}(target={target})" for name in ("attributed", "attributed_unique") for target in targets]
    scores = qd.score(cps8d, plan, ["attributed", "attributed_unique", *addresses])
    assert scores["attributed"] == pytest.approx(np.mean([scores[f"attributed(target={t})"] for t in targets]))
    rows = scores.detail("attributed_unique")
    assert rows["target"].to_list() == list(targets)
    assert rows["value"].to_list() == [scores[f"attributed_unique(target={t})"] for t in targets]
    pooled = (rows["value"] * rows["persons"]).sum() / rows["persons"].sum()
    assert scores["attributed_unique"] == pytest.approx(pooled)
    outcomes = dict(scores.results["attributed_unique"][1].detail)
    assert all(outcomes[name] == rows[name].sum() for name in ("persons", "right", "wrong", "undecided", "gone"))


def test_a_target_need_not_be_a_key_and_keys_may_be_few(cps8d: qd.Data) -> None:
    data = with_keys(cps8d, "Age", "Edu", "Race")
    plan = qd.RandomSwap(["Edu"], rate=0.05, seed=3).plan(data)
    scores = qd.score(data, plan, ["attributed(target=AnnSal)", "attributed(Age*Edu*Race, target=AnnSal)"])
    assert len(set(scores.values())) == 1


def test_claims_that_nearly_all_name_one_value_come_with_a_warning(cps8d: qd.Data) -> None:
    plan = qd.RandomSwap(["Edu"], rate=0.05, seed=3).plan(cps8d)
    scores = qd.score(cps8d, plan, ["attributed(target=AnnSal)", "attributed(target=Edu)", "attributed"])
    assert scores.note("attributed(target=AnnSal)") == "one value makes more than 90 % of the claims"
    assert scores.note("attributed(target=Edu)") == ""
    assert scores.note("attributed").startswith("one value makes more than 90 % of the claims, for ")
    shares = scores.detail("attributed")["commonest_value"]
    assert f"for {(shares > 0.9).sum()} of 8 targets" in scores.note("attributed")


# Undefined, with a reason


def test_a_file_whose_rows_are_not_aligned_has_no_links_but_attributes(cps8d: qd.Data) -> None:
    plan = qd.RandomSwap(["Edu"], rate=0.05, seed=3).plan(cps8d)
    after = plan.apply(cps8d)
    aligned = qd.score(cps8d, after, list(NEW))
    assert dict(aligned) == pytest.approx(dict(qd.score(cps8d, plan, list(NEW))), abs=1e-12)
    mixed = qd.score(cps8d, after.take(np.random.default_rng(1).permutation(after.n)), list(NEW))
    assert [mixed[name] for name in NEW[:2]] == [None, None]
    assert {mixed.note(name) for name in NEW[:2]} == {NOT_ALIGNED}
    assert [mixed[name] for name in NEW[2:]] == [aligned[name] for name in NEW[2:]]


def test_what_has_no_case_is_undefined_with_the_reason() -> None:
    file = file_of(A=[0, 0, 1, 1], B=[0, 0, 1, 1])
    scores = qd.score(file, exchanged(file, ["A"], (0, 2)), ["attributed_unique", "linked_small(n=2)", "linked"])
    assert (scores["attributed_unique"], scores.note("attributed_unique")) == (None, NOBODY_UNIQUE)
    assert scores.note("linked_small(n=2)") == "no cell of the original has 1 to 1 records"
    nobody = qd.score(file, exchanged(file, ["A"], (0, 2)), list(NEW), where=np.zeros(4, dtype=bool))
    assert all(value is None for value in nobody.values())
    assert all(nobody.note(name) for name in NEW)


def test_tables_beyond_all_numbers_have_links_but_no_inferences() -> None:
    random = np.random.default_rng(2)
    data = Data([column(f"V{i}", random.integers(0, 3, 60), 3) for i in range(70)])
    plan = qd.RandomSwap(["V1"], pairs=10, seed=1).plan(data)
    scores = qd.score(data, plan, list(NEW))
    assert scores["linked"] == 40 / 60
    assert [scores.note(name) for name in NEW[2:]] == [TOO_MANY, TOO_MANY]


# One table, kept in two ways


def sparse(tally: Tally, change: Change) -> tuple[Tally, Change]:
    """The same table with its occupied cells only."""
    keys = tally.occupied()
    return replace(tally, keys=keys, count=tally.at(keys)[0], _known={}), change


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", NEW)
def test_tables_of_all_cells_and_of_occupied_cells_say_the_same(cps8d: qd.Data, name: str, seed: int) -> None:
    data = cps8d.take(np.arange(seed, cps8d.n, 50))
    plan = qd.RandomSwap(["Edu", "Race"], rate=0.15, order="one-by-one", seed=seed).plan(data)
    summary: Counted = (Arrival if name.startswith("linked") else Table)(data.keys)
    before = summary.of(data)
    change = before.change(Delta(data, plan))
    kind = MEASURES[name]
    whole = kind.score(before, change, **kind.options)
    part = kind.score(*sparse(before, change), **kind.options)
    complete = kind.score(before, before.complete(change), **kind.options)
    assert whole.value == pytest.approx(part.value, abs=1e-12)
    assert dict(whole.detail) == pytest.approx(dict(part.detail))
    assert dict(whole.detail) == pytest.approx(dict(complete.detail))
    if whole.explain and part.explain:
        for one, other in zip(whole.explain(), part.explain(), strict=True):
            assert one == pytest.approx(other)


# Addresses


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("attributed(Age*Sex, target=Edv)", "Did you mean: 'Edu'?"),
        ("attributed(Age*Sex, target=Sex)", "also a variable that is known"),
        ("attributed(2-way, target=Sex)", "name the variables that are known"),
        ("attributed_unique(Age)", "needs two variables or more; there is 1"),
        ("linked(2-way)", "compares record by record"),
        ("linked(target=Sex)", "target"),
        ("linked_small(n=0)", "a whole number of 1 or more"),
        ("attributed(Age, goal=Sex)", "goal"),
    ],
)
def test_an_address_that_makes_no_sense_is_refused(cps8d: qd.Data, address: str, says: str) -> None:
    with pytest.raises(QuadrilleError) as error:
        qd.score(cps8d, qd.Plan([], data=cps8d), [address])
    assert says in str(error.value)


def test_a_numeric_target_is_refused() -> None:
    data = Data([column("A", [0, 1, 1, 0]), numbers("x", [1, 2, 3, 4])])
    with pytest.raises(InputError, match="numeric"):
        qd.score(data, qd.Plan([], data=data), ["attributed(A, target=x)"])


def test_a_target_with_spaces_or_signs_is_written_in_backticks() -> None:
    data = Data([column("A", [0, 1, 1, 0]), column("B, or = C", [0, 1, 0, 1])])
    plan = exchanged(data, ["A"], (0, 1))
    scores = qd.score(data, plan, ["attributed(A, target=`B, or = C`)"])
    assert list(scores.values()) == [2 / 4]


def test_pairs_of_keys_infer_each_other(cps8d: qd.Data) -> None:
    plan = qd.RandomSwap(["Edu"], rate=0.05, seed=3).plan(cps8d)
    scores = qd.score(cps8d, plan, ["attributed(2-way)", "attributed(Age*EmpTyp)"])
    parts = scores.results["attributed(2-way)"][1].parts
    assert len(parts) == 28
    assert parts["Age", "EmpTyp"] == scores["attributed(Age*EmpTyp)"]


def test_the_n_rule_too_can_be_taken_over_pairs_of_keys(cps8d: qd.Data) -> None:
    plan = qd.RandomSwap(["Edu"], rate=0.05, seed=3).plan(cps8d)
    scores = qd.score(cps8d, plan, ["small_cells(2-way, n=50)", "small_cells(Age*Edu, n=50)"])
    assert scores.results["small_cells(2-way, n=50)"][1].parts["Age", "Edu"] == scores["small_cells(Age*Edu, n=50)"]


def test_the_form_of_a_measure_has_its_target() -> None:
    target = qd.schema("attributed")["properties"]["target"]
    assert (target["type"], target["default"], target["x-kind"]) == (["string", "null"], None, "column")
    listed = {row["name"]: row for row in qd.measures().to_dicts()}
    assert {name: listed[name]["side"] for name in NEW} == dict.fromkeys(NEW, "risk")
    assert listed["attributed"]["options"].startswith("target=each variable in turn: ")


# Everywhere


def test_by_area_they_are_those_of_the_records_of_the_area() -> None:
    data = qd.datasets.state(records=3_200)
    plan = qd.RandomSwap(["race"], rate=0.2, seed=1).plan(data)
    known = ["linked(race*sex)", "linked_small(race*sex)", "attributed(race*sex)", "attributed(race, target=sex)"]
    scores = qd.score(data, plan, known, by=["county"])
    files = qd.score(data, plan.apply(data), known, by=["county"], swapped=np.isin(np.arange(data.n), plan.rows))
    for address in known:
        areas = scores.by(address).head(6)
        assert scores.by(address).equals(files.by(address))
        for area, value in zip(areas["area"], areas["value"], strict=True):
            assert value == qd.score(data, plan, [address], where=f"county={area}")[address]
    with pytest.raises(InputError, match="is what the measure"):
        qd.score(data, plan, ["attributed(race*sex, target=county)"], by=["county"])


def test_a_search_scores_them_with_and_without_plans_alike(
    cps8d: qd.Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "IN_PROCESS_SECONDS", 0.0)
    monkeypatch.setattr(run, "_CHUNK", 2)
    recipes = qd.grid(qd.RandomSwap, swap=[["Edu"], ["Edu", "MS"]], rate=[0.01, 0.05], seed=range(2))
    quick = [*NEW, "attributed_unique(target=AnnSal)", "hellinger"]
    plain = [*quick, "attributed(Age*Edu, target=AnnSal)"]
    assert FusedScorer.build(cps8d, quick) is not None
    assert FusedScorer.build(cps8d, plain) is None
    assert FusedScorer.build(with_keys(cps8d, "Age", "Edu"), quick) is None  # the target is not in the table
    one = qd.search(cps8d, recipes, quick, out=tmp_path / "quick", workers=1, progress=False)
    two = qd.search(cps8d, recipes, plain, out=tmp_path / "plain", workers=2, progress=False)
    for recipe, mine, theirs in zip(recipes, one.frame().to_dicts(), two.frame().to_dicts(), strict=True):
        scores = qd.score(cps8d, recipe.plan(cps8d), plain)
        assert {name: mine[name] for name in quick} == pytest.approx({name: scores[name] for name in quick}, abs=1e-12)
        assert {name: theirs[name] for name in plain} == dict(scores)
    assert len(one.frontier(risk="attributed_unique", loss="hellinger")) > 0
    assert one.pick("knee", risk="linked_small", loss="hellinger").candidate in range(1, 9)


def test_a_policy_limits_them(cps8d: qd.Data, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(
        '[measures]\n"linked_small(n=3)" = {most = 0.6}\n"attributed_unique(target=AnnSal)" = {most = 0.85}\n'
    )
    recipe = qd.RandomSwap(["Edu", "MS"], rate=0.10, seed=1)
    lines = {line.rule: line.verdict for line in qd.check_policy(cps8d, recipe, qd.Policy.read(path)).lines}
    assert lines["[measures] linked_small(n=3)"] == "pass"
    assert lines["[measures] attributed_unique(target=AnnSal)"] == "fail"


def test_the_command_line_scores_them(tmp_path: Path) -> None:
    measures = "linked,attributed(Age*Sex, target=Edu),attributed_unique(target=AnnSal)"
    called = ["swap", "dataset:cps8d", "--swap", "Edu,MS", "--rate", "0.1", "--seed", "1", "--measures", measures]
    result = CliRunner().invoke(app, [*called, "--out", str(tmp_path / "out.csv"), "--json"])
    assert result.exit_code == 0, result.output
    assert f"{json.loads(result.stdout)['scores']['attributed_unique(target=AnnSal)']['value']:.3f}" == "0.898"
