"""A release: what is in it, and that nothing public helps to undo it."""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
from contextlib import nullcontext
from dataclasses import replace
from hashlib import sha256
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from release_case import PAIRS, make_data, make_recipe, tree

import quadrille as qd
from quadrille.codebook import Role
from quadrille.errors import InputError, ParameterError
from quadrille.present.profile import column_table, profile_facts
from quadrille.present.words import LIMITS
from quadrille.release import release
from quadrille.release.order import fresh_order
from quadrille.release.release import DEFAULT, GuessableSeedWarning, ReleaseWarning, default_measures

PUBLIC = {"data.csv", "codebook.toml", "methods.md"}
PLAN = {"plan.parquet", "order.parquet"}
CONFIDENTIAL = PLAN | {"recipe.json", "account.json", "scores.json", "hashes.json", "dossier.md"}


def public_order(made: release.Release) -> np.ndarray:
    """The original row of each public one, as the confidential folder keeps it."""
    return pl.read_parquet(made.confidential / "order.parquet")["row"].to_numpy()


@pytest.fixture(scope="module")
def data() -> qd.Data:
    return make_data()


@pytest.fixture(scope="module")
def recipe() -> qd.RandomSwap:
    return make_recipe()


@pytest.fixture(scope="module")
def made(data: qd.Data, recipe: qd.RandomSwap, tmp_path_factory: pytest.TempPathFactory) -> release.Release:
    return qd.release(data, recipe, tmp_path_factory.mktemp("made") / "release")


# What is written


def test_the_two_folders_hold_exactly_the_promised_files(made: release.Release) -> None:
    assert {file.name for file in made.public.iterdir()} == PUBLIC
    assert {file.name for file in made.confidential.iterdir()} == CONFIDENTIAL
    assert set(made.path.iterdir()) == {made.public, made.confidential}
    assert set(made.files) == {*made.public.iterdir(), *made.confidential.iterdir()}
    assert [entry.name for entry in made.path.parent.iterdir()] == ["release"]


def test_the_public_file_is_the_swapped_file_shuffled_without_identifiers(
    made: release.Release, data: qd.Data, recipe: qd.RandomSwap
) -> None:
    public = qd.read(made.public / "data.csv", codebook=made.public / "codebook.toml").frame()
    swapped = recipe.plan(data).apply(data).frame().drop("Serial")
    assert "Serial" not in public.columns
    assert public.columns == swapped.columns
    assert public.sort(public.columns).equals(swapped.sort(swapped.columns))
    assert not public.equals(swapped)


def test_the_confidential_plan_rebuilds_and_undoes_the_release(
    made: release.Release, data: qd.Data, recipe: qd.RandomSwap
) -> None:
    stored = pl.read_parquet(made.confidential / "plan.parquet")
    columns = json.loads((made.confidential / "account.json").read_text())["moves"]
    moves = [
        qd.Move(tuple(names), (part["row"].to_numpy(), part["source"].to_numpy()))
        for i, names in enumerate(columns)
        for part in [stored.filter(pl.col("move") == i)]
    ]
    assert stored.columns == ["move", "row", "source"]
    plan = qd.Plan(moves, data=data)
    assert plan == recipe.plan(data)
    swapped = plan.apply(data)
    assert plan.inverse().apply(swapped) == data
    public = qd.read(made.public / "data.csv", codebook=made.public / "codebook.toml").frame()
    assert public.equals(swapped.frame().drop("Serial")[public_order(made)])


def test_the_stored_recipe_makes_the_same_public_rows_again_in_another_order(
    made: release.Release, data: qd.Data, tmp_path: Path
) -> None:
    again = qd.release(data, qd.Recipe.from_json((made.confidential / "recipe.json").read_text()), tmp_path / "b")
    for name in PUBLIC - {"data.csv"}:
        assert (again.public / name).read_bytes() == (made.public / name).read_bytes()
    one, other = ((each.public / "data.csv").read_text().splitlines() for each in (made, again))
    assert one[0] == other[0] and sorted(one) == sorted(other) and one != other
    hashes = [json.loads((each.confidential / "hashes.json").read_text()) for each in (made, again)]
    assert hashes[0]["fingerprint"] == hashes[1]["fingerprint"], "the same plan"


def test_labels_types_missing_values_and_weights_survive(made: release.Release, data: qd.Data) -> None:
    public = qd.read(made.public / "data.csv", codebook=made.public / "codebook.toml")
    kept = [name for name in data.columns if name != "Serial"]
    assert public.columns == kept
    assert "`Factor`" in (made.public / "methods.md").read_text(), "the note names the weight"
    for name in kept:
        mine, theirs = data[name].variable, public[name].variable
        assert (mine.kind, mine.labels, mine.missing) == (theirs.kind, theirs.labels, theirs.missing)
        before, after = data.frame()[name].sort(), public.frame()[name].sort()
        assert before.dtype == after.dtype
        assert before.equals(after)


@pytest.mark.parametrize("format", ["csv", "parquet", "sav", "dta"])
def test_no_public_file_tells_the_role_of_a_column(format: str, tmp_path: Path) -> None:
    roles: dict[str, Role] = {
        "key": "key",
        "outcome": "outcome",
        "stratum": "stratum",
        "unit": "unit",
        "area": "geography",
    }
    levels = {"key": 4, "outcome": 7, "stratum": 3, "unit": 250, "area": 5}
    frame = pl.DataFrame(
        {
            **{f"a_{name}": np.arange(500) * 7 // 3 % size for name, size in levels.items()},
            "w": np.arange(500) % 9 + 1.5,
        }
    )
    book = qd.Codebook(
        tuple(
            qd.Variable(
                f"a_{name}", "nominal", tuple(range(size)), role=roles[name], level=1 if name == "area" else None
            )
            for name, size in levels.items()
        )
    )
    data = qd.from_frame(frame, codebook=book, weight="w")
    recipe = qd.RandomSwap(["a_key"], rate=0.2)
    made = qd.release(data, recipe, tmp_path / "r", format=format, allow_contradictions=True)
    book = tomllib.loads((made.public / "codebook.toml").read_text())["columns"]
    assert all(not {"role", "level"} & set(entry) for entry in book.values())
    contents = (made.public / f"data.{format}").read_bytes()
    assert b"geography" not in contents and b'"role"' not in contents
    note = (made.public / "methods.md").read_text()
    assert "The weight is `w`" in note
    assert "`a_stratum` is the stratum" in note and "`a_unit` numbers the households" in note
    assert not any(name in note for name in ("a_key", "a_outcome", "a_area"))


def test_parquet_keeps_types_and_holds_no_identifier(data: qd.Data, recipe: qd.RandomSwap, tmp_path: Path) -> None:
    made = qd.release(data, recipe, tmp_path / "r", format="parquet")
    assert {file.name for file in made.public.iterdir()} == {"data.parquet", "codebook.toml", "methods.md"}
    raw = (made.public / "data.parquet").read_bytes()
    assert b"PERSON" not in raw and b"Serial" not in raw
    public = qd.read(made.public / "data.parquet", codebook=made.public / "codebook.toml").frame()
    swapped = recipe.plan(data).apply(data).frame().drop("Serial")
    assert public.schema == swapped.schema
    assert public.sort(public.columns).equals(swapped.sort(swapped.columns))


def test_scores_account_and_hashes_are_those_of_the_plan(
    made: release.Release, data: qd.Data, recipe: qd.RandomSwap
) -> None:
    plan = recipe.plan(data)
    scores = json.loads((made.confidential / "scores.json").read_text())
    assert {name: row["value"] for name, row in scores.items()} == dict(qd.score(data, plan, default_measures(data)))
    assert dict(made.scores) == dict(qd.score(data, plan, default_measures(data)))
    account = json.loads((made.confidential / "account.json").read_text())
    assert account.pop("moves") == [["Region", "Band"]]
    assert account == json.loads(json.dumps(plan.report(data).as_dict()))
    hashes = json.loads((made.confidential / "hashes.json").read_text())
    assert hashes["fingerprint"] == {"before": data.fingerprint, "after": plan.apply(data).fingerprint}
    assert hashes["sha256"] == {name: sha256((made.public / name).read_bytes()).hexdigest() for name in PUBLIC}


def test_the_dossier_tells_the_whole_story_but_not_the_seed(
    made: release.Release, data: qd.Data, recipe: qd.RandomSwap
) -> None:
    text, found = (made.confidential / "dossier.md").read_text(), qd.inspect(data)
    hashes = json.loads((made.confidential / "hashes.json").read_text())
    for part in (
        *hashes["sha256"].values(),
        *hashes["fingerprint"].values(),
        f"Quadrille {qd.__version__}",
        "UTC",
        "64 hexadecimal digits",
        *(f"- {name}: {value}" for name, value in profile_facts(found).pairs),
        *("| " + " | ".join(row) + " |" for row in column_table(found.columns).rows),
        "Left out as identifiers: Serial. To release one on purpose, give it another role in the codebook.",
        "| swap | Region, Band |",
        f"- pairs: {PAIRS} asked, {PAIRS} drawn",
        "does not protect against",
        *LIMITS,
        *DEFAULT,
    ):
        assert part in text
    assert str(recipe.seed) not in text
    assert str(recipe.seed) in (made.confidential / "recipe.json").read_text()


# What public/ does not tell


def public_bytes(made: release.Release) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in made.public.iterdir()}


@pytest.mark.parametrize("seed", [None, 918273645])
@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_public_files_hold_no_seed_plan_fingerprint_or_identifier(
    data: qd.Data, tmp_path: Path, seed: int | None, format: str
) -> None:
    recipe = qd.RandomSwap(["Region", "Band"], pairs=PAIRS, same=["Smoker"], differ="any", seed=seed)
    with pytest.warns(GuessableSeedWarning) if seed is not None else nullcontext():
        made = qd.release(data, recipe, tmp_path / "r", format=format, insecure=seed is not None)
    plan = recipe.plan(data)
    secrets = [
        str(recipe.seed),
        data.fingerprint,
        plan.after,
        recipe.to_json(),
        recipe.design_json(),
        "PERSON",
        "Serial",
    ]
    if isinstance(recipe.seed, int):
        secrets.append(f"{recipe.seed:x}")
        binary = [recipe.seed.to_bytes(4, order) for order in ("little", "big")]
    else:
        binary = [bytes.fromhex(str(recipe.seed))]
    binary += [sha256((made.confidential / name).read_bytes()).digest() for name in CONFIDENTIAL]
    binary += [plan.rows.tobytes(), plan.pairs.tobytes()] if plan.pairs is not None else [plan.rows.tobytes()]
    binary.append(public_order(made).tobytes())
    for name, raw in public_bytes(made).items():
        for secret in secrets:
            assert secret.encode() not in raw, (name, secret)
        for secret in binary:
            assert secret not in raw, name


def test_public_texts_hold_no_number_of_the_recipe_the_account_or_the_scores(cps8d: qd.Data, tmp_path: Path) -> None:
    made = qd.release(cps8d, qd.RandomSwap(["MS"], rate=0.0371, same=["Sex"]), tmp_path / "r")
    account = made.account
    numbers = [account.pairs, account.records, account.changed, account.compensating, 0.0371, 3.71]
    texts = [f"{n}" for n in numbers] + [f"{n:,}" for n in numbers]
    texts += [f"{value:.{digits}f}" for value in made.scores.values() if value for digits in range(3, 7)]
    for name in ("methods.md", "codebook.toml"):
        text = (made.public / name).read_text()
        for number in texts:
            assert not re.search(rf"(?<![\w.]){re.escape(number)}(?![\w])", text), (name, number)
        assert not re.search(r"\b(seed|rate|pairs?|plan|share)\b\W*\d", text, re.IGNORECASE), name


def test_the_methods_note_is_the_same_whatever_was_swapped(cps8d: qd.Data, tmp_path: Path) -> None:
    recipes = [
        qd.RandomSwap(["MS"], rate=0.01),
        qd.RandomSwap(["AnnSal", "Edu"], pairs=500, same=["Sex"], order="one-by-one", sampler="pair-uniform"),
    ]
    notes = [
        (qd.release(cps8d, recipe, tmp_path / str(i)).public / "methods.md").read_text()
        for i, recipe in enumerate(recipes)
    ]
    assert notes[0] == notes[1]
    for name in cps8d.columns:
        assert not re.search(rf"\b{name}\b", notes[0])
    for word in ("RandomSwap", "hellinger", "first-uniform", "seed", "fingerprint"):
        assert word not in notes[0]
    assert qd.__version__ in notes[0]


def test_the_public_codebook_is_that_of_the_original_without_identifiers_and_roles(
    made: release.Release, data: qd.Data
) -> None:
    book = qd.Codebook.read(made.public / "codebook.toml")
    assert book == qd.Codebook(tuple(replace(v, role=None, level=None) for v in data.codebook if v.role != "id"))


def test_the_row_order_is_a_permutation_and_every_release_has_its_own() -> None:
    identity = np.arange(5000)
    orders = [identity, *(fresh_order(5000) for _ in range(3))]
    for order in orders:
        assert np.array_equal(np.sort(order), identity)
    # Two unrelated permutations agree in one place on average (Poisson): 15 or more has probability below 1e-12.
    for one, other in combinations(orders, 2):
        assert (one == other).sum() < 15
        # Spearman correlation of an unrelated order has standard error 1/sqrt(n); beyond 7 of them: below 1e-11.
        assert abs(np.corrcoef(one, other)[0, 1]) < 7 / np.sqrt(5000)


def test_the_row_order_does_not_follow_the_plan(cps8d: qd.Data, tmp_path: Path) -> None:
    recipe = qd.RandomSwap(["MS"], pairs=2000)
    place = np.argsort(public_order(qd.release(cps8d, recipe, tmp_path / "r", measures=[])))
    pairs = recipe.plan(cps8d).pairs
    assert pairs is not None
    distance = np.abs(place[pairs[:, 0]] - place[pairs[:, 1]])
    # Distance of two random places: mean n/3, standard deviation n/sqrt(18). Seven of them, as it is drawn afresh.
    assert abs(distance.mean() - cps8d.n / 3) < 7 * cps8d.n / np.sqrt(18 * len(pairs))
    assert abs(place[pairs.ravel()].mean() - cps8d.n / 2) < 7 * cps8d.n / np.sqrt(12 * pairs.size)


def test_rows_keep_their_order_only_when_asked(data: qd.Data, recipe: qd.RandomSwap, tmp_path: Path) -> None:
    made = qd.release(data, recipe, tmp_path / "r", shuffle=False)
    public = qd.read(made.public / "data.csv", codebook=made.public / "codebook.toml").frame()
    assert public.equals(recipe.plan(data).apply(data).frame().drop("Serial"))
    assert "order of the records" not in (made.public / "methods.md").read_text()
    assert "original order" in (made.confidential / "dossier.md").read_text()
    assert not (made.confidential / "order.parquet").exists()


# Modes


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_confidential_is_closed_whatever_the_umask(
    data: qd.Data, recipe: qd.RandomSwap, tmp_path: Path, umask: int
) -> None:
    before = os.umask(umask)
    try:
        made = qd.release(data, recipe, tmp_path / "r")
    finally:
        os.umask(before)
    assert stat.S_IMODE(made.confidential.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in made.confidential.iterdir()} == {0o600}
    assert stat.S_IMODE(made.public.stat().st_mode) == 0o777 & ~umask
    assert {stat.S_IMODE(file.stat().st_mode) for file in made.public.iterdir()} == {0o666 & ~umask}


def test_nothing_can_be_read_by_others_while_it_is_written(
    data: qd.Data, recipe: qd.RandomSwap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    real = release.write_file

    def watch(path: Path, contents: bytes | memoryview, *, private: bool = False) -> str:
        process_pool = path.parents[2]
        assert process_pool.parent == tmp_path and process_pool.name.startswith(".")
        seen.append(stat.S_IMODE(process_pool.stat().st_mode))
        return real(path, contents, private=private)

    monkeypatch.setattr(release, "write_file", watch)
    qd.release(data, recipe, tmp_path / "r")
    assert seen == [0o700] * 10


# Warnings and odd files


def test_an_integer_seed_is_refused(data: qd.Data, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"Leave the seed out.*with insecure=True") as caught:
        qd.release(data, qd.RandomSwap(["Region"], pairs=5, seed=918273645), tmp_path / "r")
    assert "918273645" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_an_integer_seed_that_is_let_pass_is_warned_about_and_written_down(data: qd.Data, tmp_path: Path) -> None:
    recipe = qd.RandomSwap(["Region"], pairs=5, seed=7)
    with pytest.warns(GuessableSeedWarning, match="guessed"):
        made = qd.release(data, recipe, tmp_path / "r", insecure=True)
    assert {file.name for file in made.public.iterdir()} == PUBLIC - {"methods.md"} | {"methods.INSECURE.md"}
    assert "methods.INSECURE.md" in json.loads((made.confidential / "hashes.json").read_text())["sha256"]
    dossier = (made.confidential / "dossier.md").read_text()
    assert made.warnings[0] in dossier
    assert "INSECURE: a number that can be guessed" in dossier
    again = qd.release(data, recipe.changed(seed=None), tmp_path / "r", overwrite=True, insecure=True)
    assert {file.name for file in again.public.iterdir()} == PUBLIC, "a secret seed is not made worse by the word"


def test_a_secret_seed_gives_no_warning(made: release.Release, recwarn: pytest.WarningsRecorder) -> None:
    assert made.warnings == ()
    assert not recwarn.list


def test_a_column_with_a_different_value_in_every_record_is_warned_about(tmp_path: Path) -> None:
    frame = pl.DataFrame({"Code": [f"c{i}" for i in range(40)], "Sex": ["m", "f"] * 20})
    data = qd.from_frame(frame, codebook=qd.Codebook((qd.Variable("Code", role="stratum"),)))
    with pytest.warns(ReleaseWarning, match="'Code'"):
        made = qd.release(data, qd.RandomSwap(["Sex"], pairs=5), tmp_path / "r")
    assert "'Code'" in (made.confidential / "dossier.md").read_text()


def test_only_identifiers_is_nothing_to_release(tmp_path: Path) -> None:
    data = qd.from_frame(pl.DataFrame({"a": ["x", "y"]}), codebook=qd.Codebook((qd.Variable("a", role="id"),)))
    with pytest.raises(InputError):
        qd.release(data, qd.RandomSwap(["a"], pairs=1), tmp_path / "r")
    with pytest.raises(InputError, match="nothing can be released"):
        release._public(data, None)  # pyright: ignore[reportPrivateUsage]
    assert tree(tmp_path) == {}


def test_the_default_measures_are_those_that_the_data_can_have(cps8d: qd.Data, tmp_path: Path) -> None:
    assert default_measures(cps8d) == DEFAULT
    one = qd.from_frame(pl.DataFrame({"Sex": ["m", "f", "m"], "Age": [1.5, 2.5, 9.5]}))
    assert "cramers_v_change" not in default_measures(one)
    assert "hellinger" in default_measures(one)
    none = qd.from_frame(pl.DataFrame({"Height": [1.5, 2.5, 9.5, 9.5]}))
    assert default_measures(none) == ("ordinal_shift", "conditional_entropy")
    made = qd.release(none, qd.RandomSwap(["Height"], pairs=1), tmp_path / "r")
    assert dict(made.scores) == {"r_ased": 0.0}  # of numbers that move, by correlations; here there is no other column
