"""A survey file: say what its columns mean, read it with its weight, see what swapping does to weighted shares."""

from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

import quadrille as qd

CODEBOOK = """
[columns.id]
kind = "nominal"
role = "id"

[columns.health]
kind = "ordinal"
categories = ["poor", "fair", "good"]
missing = ["refused"]

[columns.region]
kind = "nominal"
role = "key"

[columns.weight]
kind = "numeric"
role = "weight"
"""

rows = [
    {
        "id": f"P{i:04}",
        "health": ["poor", "fair", "good", "good", "refused"][i % 5],
        "region": "NESW"[i % 4],
        "weight": 1 + i % 3,
    }
    for i in range(1000)
]

with TemporaryDirectory() as folder:
    file, codebook = Path(folder, "survey.csv"), Path(folder, "survey.toml")
    pl.DataFrame(rows).write_csv(file)
    codebook.write_text(CODEBOOK)
    data = qd.read(file, codebook=codebook)
    print(data)

    # Pairs of the same region and a different health. The weight stays with its record: counts of records
    # are exact, weighted shares move a little.
    plan = qd.RandomSwap(["health"], rate=0.10, same=["region"], seed=1).plan(data)
    account = plan.report(data)
    print(f"{account.pairs} pairs, {account.changed} of {data.n:,} records change")
    print(qd.score(data, plan, ["total_variation(health*region)", "total_variation(health)"]).frame())

    # Identifiers are not released, missing codes are.
    qd.release(data, qd.RandomSwap(["health"], rate=0.10, same=["region"]), Path(folder, "release"))
    print(pl.read_csv(Path(folder, "release", "public", "data.csv")).columns)
