"""A plan written as a table: any engine that applies it makes what `plan.apply` makes."""

from __future__ import annotations

import json
import re
import stat
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import quadrille as qd
from quadrille.errors import InputError, OutputError
from quadrille.io.plan_file import METADATA

PAGE = (Path(__file__).parents[2] / "docs" / "plan-file.md").read_text(encoding="utf-8")


def code_of(engine: str) -> str:
    """Return the lines of the page for an engine."""
    section = PAGE.partition(f"\n## {engine}\n")[2].partition("\n## ")[0]
    (code,) = re.findall(r"^```py(?:thon)?\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    return code


def people() -> pl.DataFrame:
    """Text, whole numbers, numbers and gaps; `day` and `note` do not move."""
    rng, n = np.random.default_rng(3), 600
    return pl.DataFrame(
        {
            "person": [f"p{number}" for number in rng.permutation(n)],
            "sex": rng.choice(["m", "f", None], n),
            "size of household": rng.integers(1, 7, n),
            "income": np.where(rng.random(n) < 0.2, None, rng.normal(size=n)).astype(float),
            "day": rng.choice(["mon", "tue"], n),
        },
    ).with_columns(pl.col("income").fill_nan(None))


RECIPES = (
    qd.RandomSwap(["sex", "size of household"], rate=0.4, seed=1),
    qd.RandomSwap(["sex", "income"], rate=0.4, order="one-by-one", seed=1),
    qd.PermutationSwap(["income"], rate=0.3, kind="cycles", seed=2),
)


@pytest.fixture(params=RECIPES, ids=["together", "one by one", "cycles"])
def expected(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pl.DataFrame:
    monkeypatch.chdir(tmp_path)
    people().write_parquet("people.parquet")
    data = qd.read("people.parquet")
    plan = request.param.plan(data)
    qd.write_plan(plan, data, "plan.parquet")
    swapped = plan.apply(data).frame()
    assert not swapped.equals(people())
    return swapped


def test_polars_applies_a_plan_as_the_page_says(expected: pl.DataFrame) -> None:
    exec(code_of("polars"), {})
    assert pl.read_parquet("swapped.parquet").equals(expected)


def test_duckdb_applies_a_plan_as_the_page_says(expected: pl.DataFrame) -> None:
    pytest.importorskip("duckdb")
    exec(code_of("DuckDB"), {})
    assert pl.read_parquet("swapped.parquet").equals(expected)


@pytest.mark.spark
def test_spark_applies_a_plan_as_the_page_says(
    expected: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    builder: Any = pytest.importorskip("pyspark.sql").SparkSession.builder.master("local[1]")
    for name, value in (("spark.driver.bindAddress", "127.0.0.1"), ("spark.driver.host", "127.0.0.1")):
        builder = builder.config(name, value)
    spark = builder.config("spark.ui.enabled", "false").getOrCreate()
    # Java stays in the folder that it was started in.
    code = code_of("Spark").replace('parquet("', f'parquet("{tmp_path}/')
    assert code.count(str(tmp_path)) == 3
    exec(code, {"spark": spark})
    found = pl.read_parquet("swapped/*.parquet")
    assert found.sort("person").equals(expected.sort("person"))


def test_a_plan_is_for_its_owner_and_says_for_which_data_it_is(tmp_path: Path) -> None:
    data = qd.from_frame(people())
    plan = RECIPES[0].plan(data)
    path = tmp_path / "plan.parquet"
    qd.write_plan(plan, data, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    facts = json.loads(pl.read_parquet_metadata(path)[METADATA])
    assert facts == {"before": plan.before, "after": plan.after, "records": 600, "columns": list(plan.columns)}


def test_an_identifier_names_the_records(tmp_path: Path) -> None:
    frame, path = people(), tmp_path / "plan.parquet"
    data = qd.from_frame(frame)
    plan = RECIPES[0].plan(data)
    qd.write_plan(plan, data, path, id="person")
    found = pl.read_parquet(path)
    assert found["person"].to_list() == frame["person"].gather(plan.rows).to_list()


@pytest.mark.parametrize(
    ("id", "message"),
    [
        ("day", "has a value twice in 598 records"),
        ("income", r"is missing in \d+ records"),
        ("sex", "'sex' moves, so it cannot name the records"),
        ("persn", "Did you mean: 'person'"),
    ],
)
def test_a_column_that_cannot_name_the_records_is_refused(tmp_path: Path, id: str, message: str) -> None:
    data = qd.from_frame(people())
    with pytest.raises(InputError, match=message):
        qd.write_plan(RECIPES[0].plan(data), data, tmp_path / "plan.parquet", id=id)
    assert not list(tmp_path.iterdir())


def test_recoded_columns_other_endings_and_other_data_are_refused(tmp_path: Path) -> None:
    data = qd.from_frame(people())
    plan = RECIPES[0].plan(data)
    with pytest.raises(OutputError, match=r"'plan\.csv' must end in \.parquet"):
        qd.write_plan(plan, data, tmp_path / "plan.csv")
    with pytest.raises(qd.QuadrilleError, match="fingerprints differ"):
        qd.write_plan(plan, data.take(range(10)), tmp_path / "plan.parquet")
    (tmp_path / "book.toml").write_text('[columns."size of household"]\ntop = 4\n')
    recoded = qd.from_frame(people(), codebook=tmp_path / "book.toml")
    with pytest.raises(InputError, match="recodes 'size of household'"):
        qd.write_plan(RECIPES[0].plan(recoded), recoded, tmp_path / "plan.parquet")
    clash = qd.from_frame(people().rename({"sex": "row_index"}))
    with pytest.raises(InputError, match="called 'row_index'"):
        qd.write_plan(qd.RandomSwap(["row_index"], rate=0.1, seed=1).plan(clash), clash, tmp_path / "plan.parquet")
