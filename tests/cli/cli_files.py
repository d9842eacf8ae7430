"""Small files, good and bad, to run commands on. Values that must never be shown begin with ZQ."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
from typer.testing import Result

import quadrille as qd
from quadrille.study.job import Job

Run = Callable[..., Result]

SECRET = "ZQ"
RECORDS = 60

CODEBOOK = """
[columns.Name]
kind = "nominal"
role = "id"

[columns.Sex]
kind = "nominal"
categories = ["ZQm", "ZQf"]
labels = ["Male", "Female"]

[columns.Age]
kind = "ordinal"
categories = [1, 2, 3]

[columns.Weight]
kind = "numeric"
role = "weight"
"""


JOB = """
[data]
file = "good.csv"
codebook = "book.toml"

[search]
measures = ["small_cells", "exposed", "hellinger"]
out = "new.study"

[[grid]]
method = "RandomSwap"
swap = "singles and pairs"
rate = [0.1, 0.3]
seeds = 3

[[grid]]
method = "RandomSwap"
swap = ["Sex"]
pairs = [5, 21]
same = [[], ["Age"]]
seeds = 3
"""


def table() -> pl.DataFrame:
    rows = range(RECORDS)
    return pl.DataFrame(
        {
            "Name": [f"ZQname{i}" for i in rows],
            "Sex": ["ZQm" if i % 3 else "ZQf" for i in rows],
            "Age": [1 + i % 7 % 3 for i in rows],
            "Region": [f"ZQr{i % 2}" for i in rows],
            "Weight": [0.5 + i % 5 for i in rows],
        }
    )


def make_files(folder: Path) -> None:
    """Write good and bad files."""
    frame = table()
    frame.write_csv(folder / "good.csv")
    frame.write_parquet(folder / "good.parquet")
    (folder / "good.csv.gz").write_bytes(gzip.compress((folder / "good.csv").read_bytes()))
    (folder / "book.toml").write_text(CODEBOOK)
    (folder / "filled").mkdir()
    (folder / "filled-readers").write_text("ZQ")
    (folder / "filled" / "notes.txt").write_text("ZQ")
    _bad_tables(folder, frame)
    _bad_bytes(folder)
    _bad_codebooks(folder)
    _bad_recipes(folder)
    _jobs(folder)


@cache
def study() -> bytes:
    """Search the good job, with secret seeds, pick the knee, and return the study."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        table().write_csv(folder / "good.csv")
        (folder / "book.toml").write_text(CODEBOOK)
        (folder / "job.toml").write_text(JOB)
        job = Job.read(folder / "job.toml")
        data = qd.read(job.file, codebook=job.codebook)
        found = qd.search(data, job.recipes(data), job.measures, out=job.out, workers=1)
        found.keep_pick(found.pick("knee"))
        return job.out.read_bytes()


def _jobs(folder: Path) -> None:
    jobs = {
        "job": JOB,
        "bad_rate": JOB.replace("[0.1, 0.3]", "[0.1, 1.5]"),
        "bad_toml": JOB.replace("[search]", "[search"),
        "bad_data": JOB.replace("good.csv", "nowhere.csv"),
        "bad_column": JOB.replace('["Sex"]', '["Sexx"]'),
        "bad_measure": JOB.replace('"exposed"', '"exposd"'),
        "other_data": JOB.replace("good.csv", "constant.csv"),
        "other_measures": JOB.replace('"hellinger"', '"total_variation"'),
        "n_rule": JOB.replace('"exposed", ', ""),
    }
    for name, text in jobs.items():
        (folder / ("job.toml" if name == "job" else f"{name}_job.toml")).write_text(text)
    (folder / "small.study").write_bytes(study())


def _bad_tables(folder: Path, frame: pl.DataFrame) -> None:
    weights = {
        "nan_weight": pl.when(pl.col("Age") == 2).then(None).otherwise(pl.col("Weight")),
        "negative_weight": pl.when(pl.col("Age") == 2).then(-77.125).otherwise(pl.col("Weight")),
        "infinite_weight": pl.lit("inf"),
        "text_weight": pl.lit("ZQheavy"),
        "zero_weight": pl.lit(0.0),
        "huge_weight": pl.lit(2**63, dtype=pl.UInt64),
    }
    for name, weight in weights.items():
        frame.with_columns(weight.alias("Weight")).write_csv(folder / f"{name}.csv")
    once = frame.with_columns(pl.Series("Region", ["ZQalone", *["ZQrest"] * (RECORDS - 1)]))
    once.write_csv(folder / "once.csv")
    many = pl.DataFrame({"Code": [f"ZQ{i:05d}" for i in range(10_000)], "Sex": ["ZQm", "ZQf"] * 5_000})
    many.write_csv(folder / "many.csv")
    (folder / "many.toml").write_text('[columns.Code]\nkind = "nominal"\nrole = "key"\n')
    frame.with_columns(Sex=pl.lit("ZQm")).write_csv(folder / "constant.csv")


def _bad_bytes(folder: Path) -> None:
    good = (folder / "good.csv").read_bytes()
    (folder / "empty.csv").write_bytes(b"")
    (folder / "header.csv").write_bytes(good.split(b"\n")[0] + b"\n")
    (folder / "duplicate.csv").write_bytes(b"Sex,Age,Sex\nZQm,1,ZQf\n")
    (folder / "nameless.csv").write_bytes(b"Sex,,Age\nZQm,1,2\n")
    (folder / "ragged.csv").write_bytes(b"Sex,Age\nZQm,1\nZQf,2,3\nZQm,1\n")
    (folder / "short.csv").write_bytes(b"Sex,Age\nZQm,1\nZQf\nZQm,1\n")
    (folder / "quotes.csv").write_bytes(b'Sex,Age\n"ZQm,1\nZQf,2\n')
    (folder / "encoding.csv").write_bytes(b"Sex,Age\nZQm\xb3,1\nZQf,2\n")
    (folder / "separators.csv").write_bytes(b"Sex;Age,Edu\nZQm;1,2\nZQf;2,3\n")
    (folder / "thousands.csv").write_bytes(b"Sex;Pay\nZQm;1,234\nZQf;2,500\n")
    (folder / "cut.csv.gz").write_bytes((folder / "good.csv.gz").read_bytes()[:-20])
    (folder / "plain.csv.gz").write_bytes(good)
    (folder / "cut.parquet").write_bytes((folder / "good.parquet").read_bytes()[:-30])
    (folder / "text.parquet").write_bytes(good)
    (folder / "data.xlsx").write_bytes(b"ZQ")
    (folder / "subfolder.csv").mkdir()


def _bad_codebooks(folder: Path) -> None:
    books = {
        "broken": "[columns.Sex\nkind = 1",
        "kind": '[columns.Sex]\nkind = "nominall"',
        "role": '[columns.Sex]\nkind = "nominal"\nrole = "kee"',
        "setting": '[columns.Sex]\nkind = "nominal"\ncategoriess = ["a"]',
        "column": '[columns.Sexx]\nkind = "nominal"',
        "value": '[columns.Sex]\nkind = "nominal"\ncategories = ["ZQm"]',
        "labels": '[columns.Sex]\nkind = "nominal"\ncategories = ["ZQm", "ZQf"]\nlabels = ["one"]',
        "numeric": '[columns.Sex]\nkind = "numeric"',
        "twice": "".join(f'[columns.{name}]\nrole = "weight"\nkind = "numeric"\n' for name in ("Age", "Weight")),
        "top": 'title = "mine"',
    }
    for name, text in books.items():
        (folder / f"{name}.toml").write_text(text)


def _bad_recipes(folder: Path) -> None:
    recipes = {
        "good": '{"method":"RandomSwap","version":1,"swap":["Sex"],"pairs":5,"seed":7}',
        "ruled": '{"method":"RandomSwap","swap":["Sex"],"rate":0.3,"rules":["Age<2 & Sex=Female"],"seed":3}',
        "broken": '{"method": "RandomSwap", ',
        "list": "[1, 2]",
        "method": '{"method":"RandomSwop","version":1,"swap":["Sex"],"pairs":5}',
        "version": '{"method":"RandomSwap","version":99,"swap":["Sex"],"pairs":5}',
        "parameter": '{"method":"RandomSwap","version":1,"swap":["Sex"],"pair":5}',
        "repeated": '{"method":"RandomSwap","swap":["Sex"],"pairs":5,"pairs":6}',
        "rate": '{"method":"RandomSwap","swap":["Sex"],"rate":2}',
        "missing": '{"method":"RandomSwap","version":1,"pairs":5}',
        "type": '{"method":"RandomSwap","version":1,"swap":[1],"pairs":5}',
    }
    for name, text in recipes.items():
        (folder / f"{name}.json").write_text(text)
