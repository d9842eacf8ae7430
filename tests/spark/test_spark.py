"""On a cluster the plans and scores are those of one machine, and what is released holds the same records."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import quadrille as qd
from quadrille import spark as module
from quadrille.codebook import Codebook
from quadrille.errors import InputError, OutputError, ParameterError
from quadrille.spark import Source

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::FutureWarning")]

RECORDS = 6_000
SEED = "5eed" * 16
RECIPES = (
    qd.RandomSwap(["edu"], rate=0.05, same=["sex"], seed=1),
    qd.RandomSwap(["edu", "area"], rate=0.1, differ="any", different=["kids"], sampler="pair-uniform", seed=2),
    qd.RandomSwap(["edu", "area"], rate=0.05, order="one-by-one", same=["sex", "kids"], seed=3),
    qd.RandomSwap(["edu"], rate=0.05, rules=["age=a0 & edu=e4"], seed=4),
    qd.PermutationSwap(["age"], rate=0.1, within=["sex"], kind="cycles", seed=5),
    qd.PermutationSwap(["age", "edu"], rate=0.02, seed=6),
    qd.PermutationSwap(["age"], rate=0.02, kind="across", groups="owner", within=["kids"], seed=7),
    qd.PermutationSwap(["age"], records=40, seed=8),
    qd.PrivateSwap(["edu"], chance=0.1, within=["sex", "age"], seed=9),
    qd.DesignedSwap(tables=[["age", "kids", "area"]], keep="1-way", effort=0.1, seed=12),
)
FROM_RECORDS = (
    qd.RankSwap(["income"], window=0.02, seed=10),
    qd.RandomSwap(["edu", "area"], rate=0.05, order="one-by-one", rules=["edu=e4 & area=r0"], seed=11),
)
MEASURES = (
    "exposed",
    "hellinger",
    "hellinger(2-way)",
    "total_variation(age*edu)",
    "cramers_v_change",
    "conditional_entropy",
    "linked_small(age*sex*edu)",
    "hellinger(age*area, where=sex=f)",
)


def people() -> pl.DataFrame:
    """Text, whole numbers, decimals and gaps; a column with a sign in its name that Spark and SQL read as another."""
    rng = np.random.default_rng(3)
    return pl.DataFrame(
        {
            "person": [f"p{number:05}" for number in range(RECORDS)],
            "age": rng.choice([f"a{i}" for i in range(9)], RECORDS),
            "sex": rng.choice(["m", "f", None], RECORDS, p=[0.5, 0.4, 0.1]),
            "kids": rng.integers(0, 4, RECORDS),
            "edu": rng.choice([f"e{i}" for i in range(5)], RECORDS),
            "income": np.where(rng.random(RECORDS) < 0.1, None, rng.normal(size=RECORDS).round(2)).astype(float),
            "owner": rng.random(RECORDS) < 0.4,
            "area": rng.choice([f"r{i}" for i in range(30)], RECORDS),
            "a.`b": rng.choice(["x", "y"], RECORDS),
        }
    ).with_columns(pl.col("income").fill_nan(None))


COLUMNS = [name for name in people().columns if name != "person"]


def one_file(spark: Any, folder: Path) -> Source:
    people().write_parquet(folder / "people.parquet")
    return Source(spark, folder / "people.parquet", columns=COLUMNS)


def small_row_groups(spark: Any, folder: Path) -> Source:
    people().write_parquet(folder / "people.parquet", row_group_size=1_000)
    spark.conf.set("spark.sql.files.maxPartitionBytes", "40000")  # splits that cut across row groups
    return Source(spark, str(folder / "people.parquet"), columns=COLUMNS)


def three_files(spark: Any, folder: Path) -> Source:
    for name, start, stop in (("b", 2_000, 2_100), ("c", 2_100, RECORDS), ("a", 0, 2_000)):
        people()[start:stop].write_parquet(folder / f"{name}.parquet")
    return Source(spark, folder, columns=COLUMNS)


def by_identifier(spark: Any, folder: Path) -> Source:
    people().sample(fraction=1, shuffle=True, seed=1).write_parquet(folder / "shuffled.parquet")
    return Source(spark, spark.read.parquet(str(folder)), columns=COLUMNS, order="person")


Layout = Callable[[Any, Path], Source]


@pytest.fixture(autouse=True)
def few_records_in_a_block(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK_ROWS", 1_500)
    spark.conf.unset("spark.sql.files.maxPartitionBytes")


@pytest.fixture(scope="module")
def data() -> qd.Data:
    return qd.from_frame(people().select(COLUMNS))


@pytest.mark.parametrize(
    ("layout", "recipes"),
    [
        (one_file, (*RECIPES, *FROM_RECORDS)),
        (small_row_groups, (*RECIPES[2::3], FROM_RECORDS[0])),
        (three_files, (*RECIPES[2::3], FROM_RECORDS[0])),
        (by_identifier, (*RECIPES[2::3], FROM_RECORDS[0])),
    ],
)
def test_plans_and_scores_are_those_of_one_machine(
    layout: Layout, recipes: tuple[qd.Recipe, ...], spark: Any, tmp_path: Path, data: qd.Data
) -> None:
    source = layout(spark, tmp_path)
    assert (source.n, source.codebook, source.fingerprint) == (RECORDS, data.codebook, data.fingerprint)
    for recipe in recipes:
        plan, expected = source.plan(recipe), recipe.plan(data)
        assert len(plan.rows)
        assert plan == expected, recipe.to_json()
        assert [m.given[0].tolist() for m in plan.moves] == [m.given[0].tolist() for m in expected.moves]
        assert plan.asked == expected.asked
        assert source.score(plan, MEASURES).as_dict() == qd.score(data, expected, MEASURES).as_dict()
    assert plan.after == expected.after


def test_counts_are_enough_for_methods_that_draw_from_them(spark: Any, tmp_path: Path, data: qd.Data) -> None:
    people().write_parquet(tmp_path / "people.parquet")
    source = Source(spark, tmp_path, columns=COLUMNS, memory="1KB")
    for recipe in RECIPES[-2:]:
        plan = source.plan(recipe)
        assert plan == recipe.plan(data)
        assert source.score(plan, MEASURES)["exposed"] == qd.score(data, recipe.plan(data), ["exposed"])["exposed"]
    with pytest.raises(InputError, match=r"RankSwap looks at records, so 1 columns of 6,000 records must be collected"):
        source.plan(FROM_RECORDS[0])
    with pytest.raises(InputError, match="measures look at records"):
        source.score(source.plan(RECIPES[0]), ["r_ased(kids*income)"])


def test_measures_of_records_and_by_area_are_those_of_one_machine(spark: Any, tmp_path: Path, data: qd.Data) -> None:
    source, recipe = one_file(spark, tmp_path), qd.RandomSwap(["kids"], rate=0.1, seed=1)
    plan, expected = source.plan(recipe), recipe.plan(data)
    for measures, by in ((["r_ased(kids*income)"], None), (["hellinger(kids*sex)"], ["area"])):
        found, wanted = source.score(plan, measures, by=by), qd.score(data, expected, measures, by=by)
        assert found.as_dict() == wanted.as_dict()
        if by:
            assert found.by().equals(wanted.by())


def test_weights_and_codebooks_are_those_of_one_machine(spark: Any, tmp_path: Path) -> None:
    frame = people().select(COLUMNS).with_columns(w=pl.Series(np.random.default_rng(1).integers(1, 90, RECORDS) / 4))
    frame.write_parquet(tmp_path / "people.parquet")
    book = tmp_path / "people.toml"
    book.write_text('[columns.kids]\nkind = "nominal"\nrole = "key"\n[columns.income]\nrole = "id"\n')
    data = qd.from_frame(
        frame.drop("income"), codebook=Codebook(tuple(v for v in Codebook.read(book) if v.role != "id")), weight="w"
    )
    source = Source(spark, tmp_path / "people.parquet", codebook=book, weight="w")
    recipe = qd.RandomSwap(["edu"], rate=0.05, same=["kids"], seed=1)
    assert source.weight == "w"
    assert source.plan(recipe) == recipe.plan(data)
    assert source.score(source.plan(recipe), ["hellinger(edu*sex)"]).as_dict() == (
        qd.score(data, recipe.plan(data), ["hellinger(edu*sex)"]).as_dict()
    )


def sorted_rows(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.sort(frame.columns, nulls_last=True)


@pytest.mark.parametrize("layout", [three_files, by_identifier])
def test_a_release_holds_the_swapped_records_and_nothing_else(
    layout: Layout, spark: Any, logs: Path, tmp_path: Path, data: qd.Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "table").mkdir()
    source, recipe = layout(spark, tmp_path / "table"), qd.RandomSwap(["edu"], rate=0.05, same=["sex"], seed=SEED)
    monkeypatch.setattr(module, "fresh_seed", lambda: "0dde" * 16)
    plan = source.release(recipe, tmp_path / "release", measures=["exposed"], files=3)
    public = tmp_path / "release" / "public"
    files = sorted(path.relative_to(public).as_posix() for path in public.rglob("*") if path.is_file())
    assert files == ["codebook.toml", *(f"data/part-0000{i}.parquet" for i in range(3)), "methods.md"]
    released = pl.read_parquet(public / "data" / "*.parquet")
    expected = recipe.plan(data).apply(data).frame()
    assert released.columns == expected.columns
    assert sorted_rows(released).equals(sorted_rows(expected))
    assert not released.equals(expected)
    manifest = json.loads((tmp_path / "release" / "confidential" / "manifest.json").read_text())
    assert set(manifest["sha256"]) == set(files)
    assert manifest["fingerprint"] == {"before": data.fingerprint, "after": plan.after}
    again = qd.read(public / "data" / "part-00000.parquet", codebook=public / "codebook.toml")
    assert again.columns == data.columns
    written = "".join(path.read_text(encoding="utf-8") for path in logs.rglob("*") if path.is_file())
    assert "SparkListenerTaskEnd" in written
    for secret in (SEED, "0dde" * 16, str(bytes.fromhex("0dde" * 16)), "p00017", str(plan.rows[:3].tolist())[1:-1]):
        assert secret not in written


def failing_once(work: Callable[..., Any], flag: Path) -> Callable[..., Any]:
    """Return the same function, in which the first task that has something to do is killed."""

    def work_or_die(*given: Any, **named: Any) -> Any:
        made = work(*given, **named)
        if made is not None and not flag.exists():
            flag.touch()
            raise RuntimeError("killed")
        return made

    return work_or_die


@pytest.mark.parametrize(
    ("layout", "killed"),
    [
        (small_row_groups, "_find_batch"),
        (by_identifier, "_find_batch"),
        (three_files, "_pick_batch"),
        (small_row_groups, "_whole_batch"),
    ],
)
def test_a_task_that_is_killed_changes_nothing(
    layout: Layout, killed: str, spark: Any, tmp_path: Path, data: qd.Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "table").mkdir()
    source, flag = layout(spark, tmp_path / "table"), tmp_path / "flag"
    recipe = FROM_RECORDS[0] if killed == "_whole_batch" else RECIPES[0]
    monkeypatch.setattr(module, killed, failing_once(getattr(module, killed), flag))
    plan = source.plan(recipe)
    assert plan == recipe.plan(data)
    assert source.score(plan, MEASURES).as_dict() == qd.score(data, recipe.plan(data), MEASURES).as_dict()
    assert flag.exists()


def test_a_task_that_is_killed_while_the_release_is_written_changes_nothing(
    spark: Any, tmp_path: Path, data: qd.Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "table").mkdir()
    source, flag, recipe = three_files(spark, tmp_path / "table"), tmp_path / "flag", RECIPES[0]
    made = module._keyed

    def keyed(key: bytes) -> Callable[[Any], Any]:
        place = made(key)
        failing = failing_once(place, flag)

        def place_or_die(row: Any) -> Any:
            return failing(row)

        place_or_die.__annotations__ = place.__annotations__
        return place_or_die

    monkeypatch.setattr(module, "_keyed", keyed)
    source.release(recipe, tmp_path / "release", measures=["exposed"], insecure=True)
    assert flag.exists()
    released = pl.read_parquet(tmp_path / "release" / "public" / "data" / "*.parquet")
    assert sorted_rows(released).equals(sorted_rows(recipe.plan(data).apply(data).frame()))


def test_a_release_that_fails_leaves_nothing(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "table").mkdir()
    source = one_file(spark, tmp_path / "table")

    def broken(_: object) -> bytes:
        raise OSError

    monkeypatch.setattr(module, "plan_bytes", broken)
    with pytest.raises(OutputError, match="Nothing was changed there"):
        source.release(RECIPES[0], tmp_path / "release", measures=["exposed"], insecure=True)
    assert [path.name for path in tmp_path.iterdir()] == ["table"]


def test_what_cannot_be_done_is_refused(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    people().write_parquet(tmp_path / "people.parquet")
    frame = spark.read.parquet(str(tmp_path))
    with pytest.raises(ParameterError, match="no order of its own"):
        Source(spark, frame)
    with pytest.raises(InputError, match=r"'sex' is missing or has a value twice in 5,998 records"):
        Source(spark, frame, order="sex")
    with pytest.raises(InputError, match="needs whole numbers or text"):
        Source(spark, frame, order="income")
    with pytest.raises(InputError, match="Did you mean: 'edu'"):
        Source(spark, frame, columns=["edv"], order="person")
    source = Source(spark, tmp_path, columns=COLUMNS)
    with pytest.raises(InputError, match="Did you mean: 'edu'"):
        source.plan(qd.RandomSwap(["edv"], rate=0.1))
    with pytest.raises(ParameterError, match="can be guessed"):
        source.release(RECIPES[0], tmp_path / "release")
    with pytest.raises(InputError, match="guarantee of PrivateSwap"):
        source.release(qd.PrivateSwap(["edu"], chance=0.1), tmp_path / "release")
    (tmp_path / "policy.toml").write_text("[measures]\nhellinger = {most = 0.5}\n")
    monkeypatch.setenv("QUADRILLE_POLICY", str(tmp_path / "policy.toml"))
    with pytest.raises(InputError, match="A policy is checked on one machine only"):
        source.release(qd.RandomSwap(["edu"], rate=0.1), tmp_path / "release")
    assert not (tmp_path / "release").exists()
