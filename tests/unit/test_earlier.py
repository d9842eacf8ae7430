"""A second release of the same data: what it tells, with the figures of this file, or that it repeats the first."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from release_case import make_data, make_recipe, tree

import quadrille as qd
from quadrille.errors import InputError, OutputError, ParameterError
from quadrille.release.earlier import NUMBERS, ON_CPS8D, compare_aligned
from quadrille.release.release import ReleasedBeforeWarning
from quadrille.score.matching import crossed


@pytest.fixture(scope="module")
def data() -> qd.Data:
    return make_data()


@pytest.fixture(scope="module")
def first(data: qd.Data, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return qd.release(data, make_recipe(), tmp_path_factory.mktemp("register") / "first").path


def repeated(folder: Path) -> qd.Recipe:
    return qd.Recipe.from_json((folder / "confidential" / "recipe.json").read_text())


# What is said


def test_another_plan_is_warned_of_with_the_figures_of_this_file(data: qd.Data, first: Path, tmp_path: Path) -> None:
    before, recipe = tree(first), make_recipe()
    with pytest.warns(ReleasedBeforeWarning, match="released before by another plan") as caught:
        made = qd.release(data, recipe, tmp_path / "second", after=first)
    assert tree(first) == before, "nothing is written there"
    assert made.again is not None and made.again.repeats is None
    assert made.again.aligned == compare_aligned(data, [repeated(first).plan(data), recipe.plan(data)])
    (text,) = made.warnings
    assert text == str(caught[0].message)
    assert f"--recipe {first / 'confidential' / 'recipe.json'}" in text
    dossier = (made.confidential / "dossier.md").read_text()
    assert "## Released before" in dossier and "measured on CPS-8d" in dossier
    assert f"of them shown by a comparison of matched rows: {made.again.aligned.shown:,}" in dossier
    told = json.loads(json.dumps(made.as_dict()))["earlier"]
    assert told["others"] == [str(first)] and told["aligned"]["releases"] == 2
    files = [repeated(first).plan(data).apply(data), recipe.plan(data).apply(data)]
    keys = [name for name in data.keys if data[name].variable.coded]
    assert made.again.crossed == crossed(data, files, keys, 3) and "small before" not in text, "there is no small cell"
    assert told["crossed"] == made.again.crossed._asdict()
    for file in made.public.iterdir():
        assert str(first).encode() not in file.read_bytes()


def test_small_cells_that_two_releases_tell_together_are_counted_in_the_warning(cps8d: qd.Data, tmp_path: Path) -> None:
    first, second = (qd.DesignedSwap(effort=0.02, seed=f"{seed:064x}") for seed in (1, 2))
    folder = qd.release(cps8d, first, tmp_path / "first", measures=[]).path
    with pytest.warns(ReleasedBeforeWarning, match=r"were small before, which is [\d.]+ % of all small cells"):
        made = qd.release(cps8d, second, tmp_path / "second", measures=[], after=folder)
    assert made.again is not None and made.again.crossed is not None
    assert made.again.crossed.small == 547 and made.again.crossed.right == made.again.crossed.told > 30
    assert f"of them small before, of 547: {made.again.crossed.right}" in (made.confidential / "dossier.md").read_text()


def test_the_same_recipe_repeats_the_plan_and_is_no_new_risk(data: qd.Data, first: Path, tmp_path: Path) -> None:
    made = qd.release(data, repeated(first), tmp_path / "second", after=[str(first)])
    assert made.warnings == ()
    assert made.again is not None and made.again.repeats is not None and made.again.aligned is None
    assert "this release repeats it and tells nothing new" in (made.confidential / "dossier.md").read_text()
    assert json.loads(json.dumps(made.as_dict()))["earlier"]["repeats"] == str(first)


def test_other_data_and_no_earlier_release_are_not_mentioned(data: qd.Data, first: Path, tmp_path: Path) -> None:
    other = data.take(range(200))
    made = qd.release(other, qd.RandomSwap(["Region"], pairs=5), tmp_path / "other", after=first)
    assert made.again is None and not any("released before" in text for text in made.warnings)
    plain = qd.release(data, make_recipe(), tmp_path / "plain")
    assert plain.as_dict()["earlier"] is None
    assert "Released before" not in (plain.confidential / "dossier.md").read_text()


def test_each_plan_counts_once_and_a_repetition_among_others_is_one(data: qd.Data, first: Path, tmp_path: Path) -> None:
    again = qd.release(data, repeated(first), tmp_path / "again").path
    with pytest.warns(ReleasedBeforeWarning):
        second = qd.release(data, make_recipe(), tmp_path / "second", after=first).path
    with pytest.warns(ReleasedBeforeWarning):
        third = qd.release(data, make_recipe(), tmp_path / "third", after=[first, again, second])
    assert third.again is not None and third.again.aligned is not None
    assert third.again.aligned.releases == 3 and len(third.again.others) == 2
    fourth = qd.release(data, repeated(second), tmp_path / "fourth", after=[first, second])
    assert fourth.again is not None and fourth.again.repeats is not None
    assert fourth.again.repeats.folder == second


# The figures


@pytest.mark.parametrize("row", [0, pytest.param(1, marks=pytest.mark.nightly)])
def test_the_figures_of_cps8d_are_those_of_a_run(row: int, cps8d: qd.Data) -> None:
    """The first three numbers of releases; the rest takes longer and is no other path."""
    for number, share in zip(NUMBERS[:3], ON_CPS8D[row].shares, strict=False):
        recipe = qd.RandomSwap(["Edu", "MS"], rate=0.10) if row == 0 else qd.DesignedSwap()
        plans = [recipe.changed(seed=seed).plan(cps8d) for seed in range(1, number + 1)]
        found = compare_aligned(cps8d, plans)
        assert found.restored / found.records == pytest.approx(share, abs=2e-4)


def test_the_figures_of_tables_are_those_of_a_run(cps8d: qd.Data) -> None:
    """The mean of the tables of the swapped variable by all others, corrected by f and rounded."""
    others = np.stack([cps8d[name].values for name in cps8d.keys if name != "AnnSal"])
    cell = np.unique(others, axis=1, return_inverse=True)[1].ravel()

    def table(data: qd.Data) -> np.ndarray:
        counts = np.zeros((cell.max() + 1, len(data["AnnSal"].variable.categories)))
        np.add.at(counts, (cell, data["AnnSal"].values), 1)
        return counts

    true, recipe = table(cps8d), qd.PermutationSwap(["AnnSal"], rate=0.10)
    occupied, small = true > 0, (true > 0) & (true < 3)
    assert (occupied.sum(), small.sum()) == (1695, 547)
    for place, number in enumerate(NUMBERS[:3]):
        plans = [recipe.changed(seed=seed).plan(cps8d) for seed in range(1, number + 1)]
        mean, f = sum(table(plan.apply(cps8d)) for plan in plans) / number, len(plans[0].rows) / (cps8d.n - 1)
        corrected = (mean - f * np.outer(mean.sum(axis=1), mean.sum(axis=0)) / cps8d.n) / (1 - f)
        exact = np.rint(corrected) == true
        for cells, row in ((occupied, 2), (small, 3)):
            assert exact[cells].mean() == pytest.approx(ON_CPS8D[row].shares[place], abs=6e-4)


@given(st.lists(st.tuples(st.integers(1, 12), st.sampled_from(["A", "B", "AB"])), min_size=1, max_size=5), st.data())
def test_the_figures_are_those_of_a_count_record_by_record(given: list[tuple[int, str]], draw: st.DataObject) -> None:
    n = 30
    values = draw.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    floats = [None if value == 0 else value / 2 for value in values[::-1]]
    data = frame(values, floats)
    plans = [
        qd.PermutationSwap(list(names), records=2 * pairs, seed=place).plan(data)
        for place, (pairs, names) in enumerate(given)
    ]
    files = [plan.apply(data) for plan in plans]
    alone = restored = changed = shown = 0
    for row in range(n):
        true = tuple(_value(data, name, row) for name in "AB")
        seen = [tuple(_value(file, name, row) for name in "AB") for file in files]
        mode = tuple(max(column, key=column.count) for column in zip(*seen, strict=True))
        alone += seen[-1] == true
        restored += mode == true
        changed += seen[-1] != true
        shown += seen[-1] != true and any(each != seen[-1] for each in seen)
    assert compare_aligned(data, plans) == (n, len(plans), alone, restored, changed, shown)


def frame(values: list[int], floats: list[float | None]) -> qd.Data:
    book = qd.Codebook((qd.Variable("A", kind="nominal"), qd.Variable("B", kind="numeric")))
    return qd.from_frame(
        pl.DataFrame({"A": list(map(str, values)), "B": floats}, schema_overrides={"B": pl.Float64}), codebook=book
    )


def _value(data: qd.Data, name: str, row: int) -> object:
    value = data[name].values[row].item()
    return "missing" if isinstance(value, float) and np.isnan(value) else value


# By the policy


def policy(folder: Path, register: str) -> Path:
    path = folder / "policy.toml"
    path.write_text(f'[release]\nearlier = "{register}"\n')
    return path


def test_a_policy_names_the_folder_of_earlier_releases_from_its_own_place(
    data: qd.Data, first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rules = policy(first.parent.parent, first.parent.name)
    (first.parent / "no release").mkdir(exist_ok=True)
    line = qd.check_policy(data, repeated(first), rules).lines[0]
    assert (line.rule, line.found, line.verdict) == ("[release] earlier", "the same plan again", "pass")
    line = qd.check_policy(data.take(range(100)), qd.RandomSwap(["Region"], pairs=5), rules).lines[0]
    assert (line.found, line.verdict) == ("not released before", "pass")
    lines = qd.check_policy(data, make_recipe(), rules).lines
    assert (lines[0].found, lines[0].verdict) == ("released by another plan", "review")
    assert lines[1].rule == "[release] warnings" and "another plan" in lines[1].why
    with pytest.warns(UserWarning):
        made = qd.release(data, make_recipe(), "second", policy=rules, after=first)
    assert made.again is not None and len(made.again.others) == 1, "found twice, it is one"


def test_a_policy_whose_folder_is_not_there_is_an_error(data: qd.Data, tmp_path: Path) -> None:
    rules = policy(tmp_path, "nowhere")
    with pytest.raises(InputError, match=r"policy.toml.*nowhere.*No such file.*correct \[release\] earlier"):
        qd.check_policy(data, make_recipe(), rules)
    with pytest.raises(ParameterError, match="'earlier' parameter of Policy must be the name of a folder"):
        qd.Policy(earlier=Path("x"))  # type: ignore[arg-type]


# Faults


def test_an_earlier_release_is_never_replaced(data: qd.Data, first: Path) -> None:
    before = tree(first.parent)
    for after, rules in ((first, None), ((), policy(first.parent.parent, first.parent.name))):
        with pytest.raises(OutputError, match=r"An earlier release lies in .*another folder"):
            qd.release(data, make_recipe(), first, after=after, policy=rules, overwrite=True)
    assert tree(first.parent) == before


def _put(copy: Path, name: str, contents: bytes | None) -> Path:
    path = copy / "confidential" / name
    path.unlink(missing_ok=True)
    if contents is not None:
        path.write_bytes(contents)
    return copy


@pytest.mark.parametrize(
    ("name", "contents", "message"),
    [
        ("hashes.json", None, "Cannot read the earlier release .*hashes.json': No such file"),
        ("hashes.json", b"{", "hashes.json' is missing, damaged, or not what"),
        ("hashes.json", b"[]", "hashes.json' is missing, damaged"),
        ("hashes.json", b'{"fingerprint": 3}', "hashes.json' is missing, damaged"),
        ("account.json", b"\xff", "account.json' is missing, damaged"),
        ("account.json", b"{}", "plan.parquet' is missing, damaged"),
        ("account.json", b'{"moves": [["Nobody"]]}', "plan.parquet' is missing, damaged"),
        ("plan.parquet", None, "plan.parquet' is missing, damaged"),
        ("plan.parquet", b"", "plan.parquet' is missing, damaged"),
        ("plan.parquet", b"PAR1 and no more", "plan.parquet' is missing, damaged"),
    ],
)
def test_a_damaged_earlier_release_is_named(
    name: str, contents: bytes | None, message: str, data: qd.Data, first: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    (copy / "confidential").mkdir(parents=True)
    for file in (first / "confidential").iterdir():
        (copy / "confidential" / file.name).write_bytes(file.read_bytes())
    with pytest.raises(InputError, match=message):
        qd.release(data, make_recipe(), tmp_path / "out", after=_put(copy, name, contents))
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_a_closed_folder_is_named(data: qd.Data, first: Path, tmp_path: Path) -> None:
    first.joinpath("confidential").chmod(0)
    try:
        with pytest.raises(InputError, match="Permission denied"):
            qd.release(data, make_recipe(), tmp_path / "out", after=first)
    finally:
        first.joinpath("confidential").chmod(0o700)


@pytest.mark.parametrize("after", [3, [None], {"a": 1}])
def test_what_is_no_folder_is_refused(after: object, data: qd.Data, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="'after' parameter of release must be a folder, or a list of folders"):
        qd.release(data, make_recipe(), tmp_path / "out", after=after)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="Cannot read the earlier release"):
        qd.release(data, make_recipe(), tmp_path / "out", after=tmp_path / "nowhere")
