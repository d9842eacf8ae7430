"""A file with something to hide in every column, a recipe of every method, and all that a file can be read for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import numpy as np
import polars as pl

import quadrille as qd

N = 613
RATE, TARGETS, SHARE, PRICE, EFFORT, WINDOW, TAIL = 0.1173, 0.0877, 0.917, 3.0239, 0.0143, 0.0793, 0.2193
IDS = ("Serial", "Phone")
STEERING = ("Forced", "Spared")
POLICY = """
[policy]
name = "CANARY-POLICY"
[swap]
rate = {least = 0.00137, most = 0.98763}
[release]
warnings = "pass"
[measures]
"hellinger(Age*Edu)" = {most = 0.97531}
"""


def table() -> pl.DataFrame:
    rng = np.random.default_rng(8)
    return pl.DataFrame(
        {
            "Serial": [f"CANARY-{i:05d}" for i in range(N)],
            "Phone": 7_700_000_000 + rng.permutation(N) * 13,
            "Region": rng.choice(["north", "south", "east"], N),
            "Age": rng.choice([1, 2, 3, 4, 9], N),
            "Edu": rng.integers(1, 6, N),
            "Income": np.round(rng.lognormal(9, 1, N), 2),
            "Forced": np.arange(N) % 101 == 5,
            "Spared": np.arange(N) % 47 == 3,
            "W": rng.choice([1.25, 0.5, 2.0], N),
        }
    )


BOOK = qd.Codebook(
    (
        qd.Variable("Serial", role="id"),
        qd.Variable("Phone", "numeric", role="id"),
        qd.Variable("Region", "nominal", ("north", "south", "east"), ("North", "South", "East"), role="geography"),
        qd.Variable("Age", "ordinal", (1, 2, 3, 4), ("young", "fair", "old", "very old"), missing=(9,)),
        qd.Variable("Edu", "ordinal", (1, 2, 3, 4, 5)),
        qd.Variable("Income", "numeric", role="outcome"),
        qd.Variable("W", "numeric", role="weight"),
    )
)

BY_RISK = ["--risk", "Age,Edu", "--similar", "Age", "--similar", ""]
STEERED = ["--must", "Forced", "--never", "Spared"]
METHODS: dict[str, list[str]] = {
    "random": ["--swap", "Region,Edu", "--rate", str(RATE), "--differ", "any"],
    "controlled": ["--method", "controlled", "--swap", "Edu", "--targets", str(TARGETS), *STEERED],
    "permutation": ["--method", "permutation", "--swap", "Age", "--rate", str(RATE)],
    "private": ["--method", "private", "--swap", "Age", "--chance", str(RATE)],
    "designed": f"--method designed --effort {EFFORT} --n 4 --share {SHARE} --price {PRICE} --never Spared".split(),
    "cycle": ["--method", "cycle", "--flag", "Forced", "--same", "Age", "--length", "4"],
    "rank": f"--method rank --swap Income,Age --window {WINDOW} --tails leave --tail {TAIL}".split(),
    "targeted": [*f"--method targeted --rate {RATE} --k 3 --never Spared".split(), *BY_RISK],
}
"""The words of the command line for a recipe of every method; every number in them is a secret."""


def dropped(method: str) -> set[str]:
    """The columns that must not be public: identifiers, and what steered the draw."""
    return {*IDS, *(name for name in STEERING if name in METHODS[method])}


def contents(path: Path) -> Iterator[tuple[str, bytes]]:
    """Return a public file as it is, and everything that its format can be read for, unpacked."""
    yield "as it is", path.read_bytes()
    yield "its name", str(path.name).encode()
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        file = pq.ParquetFile(path)
        yield (
            "schema",
            f"{file.schema_arrow} {file.schema_arrow.metadata} {file.metadata} {file.metadata.metadata}".encode(),
        )
        groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
        yield "statistics", str([each.to_dict() for each in groups]).encode()
        yield "values", pl.read_parquet(path).write_csv().encode()
    if path.suffix in (".sav", ".dta", ".xpt"):
        import pyreadstat

        reader = {".sav": pyreadstat.read_sav, ".dta": pyreadstat.read_dta, ".xpt": pyreadstat.read_xport}[path.suffix]
        frame, meta = reader(str(path))
        yield "description", str(vars(meta)).encode()
        yield "values", frame.to_csv(index=False).encode()


def secrets(made: Path, data: qd.Data) -> dict[str, bytes]:
    """Return what no public file may hold, by what it is: texts, and the same as bytes of integers."""
    inside = made / "confidential"
    recipe = qd.Recipe.from_json((inside / "recipe.json").read_text(encoding="utf-8"))
    plan = recipe.plan(data)
    seed = str(recipe.seed)
    found = {
        "seed": seed.encode(),
        "seed in capitals": seed.upper().encode(),
        "seed as bytes": bytes.fromhex(seed),
        "seed as bytes, backwards": bytes.fromhex(seed)[::-1],
        "fingerprint before": data.fingerprint.encode(),
        "fingerprint after": plan.after.encode(),
        "recipe": recipe.to_json().encode(),
        "design": recipe.design_json().encode(),
        "identifier": b"CANARY",
        "telephone": b"77000",
        "policy": sha256(POLICY.encode()).hexdigest().encode(),
        "place": str(made.parent).encode(),
    }
    for name, rows in (("rows", plan.rows), *((("pairs", plan.pairs),) if plan.pairs is not None else ())):
        head = np.asarray(rows).ravel()[:6]
        found |= {f"{name} as {kind}": head.astype(kind).tobytes() for kind in ("<i4", "<i8", ">i4", "<f8", ">f8")}
        found |= {
            f"{name} as text": ",".join(map(str, head)).encode(),
            f"{name} spaced": " ".join(map(str, head)).encode(),
        }
    for file in inside.iterdir():
        if file.is_file():
            digest = sha256(file.read_bytes())
            found |= {
                f"hash of {file.name}": digest.digest(),
                f"hash of {file.name} as text": digest.hexdigest().encode(),
            }
    return found


def numbers_in(text: str) -> set[float]:
    """Return every number that a text holds; a percentage also as a share."""
    found = [float(each.replace(",", "")) for each in re.findall(r"\d[\d,]*\.?\d*", text) if each.strip(",")]
    return {*found, *(round(each / 100, 12) for each in found)}
