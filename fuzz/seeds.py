"""The seed corpus: one folder per target. `python -m fuzz.seeds` writes the binary seeds anew from the survey."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

import quadrille as qd

CORPUS = Path(__file__).parent / "corpus"
SURVEY, BOOK = CORPUS / "csv" / "survey.csv", CORPUS / "codebook" / "survey.toml"


@cache
def survey() -> qd.Data:
    """The small file that parsers are tried on. Its values begin with ZQ, or are numbers found nowhere else."""
    return qd.read(SURVEY, codebook=BOOK)


@cache
def areas() -> qd.Data:
    """The same file with areas, between which some methods move records."""
    return survey().with_roles(geography=["Region"])


def seeds_of(target: str) -> list[bytes]:
    """Return the inputs of a target's seed corpus, in the order of their names."""
    return [path.read_bytes() for path in sorted((CORPUS / target).iterdir())]


def _write_binary() -> None:
    import pyreadstat

    data, frame = survey(), survey().frame()
    for suffix in ("parquet", "sav", "dta", "xpt"):
        (CORPUS / suffix).mkdir(exist_ok=True)
        qd.write(data, CORPUS / suffix / f"survey.{suffix}")
    frame.write_parquet(CORPUS / "parquet" / "plain.parquet", compression="uncompressed", statistics=False)
    (CORPUS / "csv_gz").mkdir(exist_ok=True)
    (CORPUS / "csv_gz" / "survey.csv.gz").write_bytes(gzip.compress(SURVEY.read_bytes(), mtime=0))
    small = frame.select("Age", "Income", "Sex", "Born").to_pandas()
    labels = {"Age": {1: "young", 2: "middle", 3: "old"}}
    for name in ("por", "zsav"):
        (CORPUS / name).mkdir(exist_ok=True)
    pyreadstat.write_por(small, str(CORPUS / "por" / "small.por"), variable_format={"Income": "F12.2"})
    pyreadstat.write_sav(small, str(CORPUS / "zsav" / "small.zsav"), compress=True, variable_value_labels=labels)
    pyreadstat.write_dta(small, str(CORPUS / "dta" / "old.dta"), version=10, variable_value_labels=labels)
    pyreadstat.write_xport(small, str(CORPUS / "xpt" / "old.xpt"), file_format_version=5)
    _write_sas()
    _write_study()


def _write_sas() -> None:
    """Nobody writes sas7bdat: the magic number and an empty page are all that a seed can hold."""
    (CORPUS / "sas7bdat").mkdir(exist_ok=True)
    magic = bytes.fromhex("000000000000000000000000c2ea8160b31411cfbd92080009c7318c181f1011")
    head = bytearray(magic + b"\x33\x22\x00\x33\x33\x01\x02\x22" + bytes(1024 - 40))
    head[37], head[39], head[70] = 1, ord("1"), 20  # little endian, Unix, UTF-8
    head[84:92] = b"SAS FILE"
    head[196:204] = (1024).to_bytes(4, "little") + (1024).to_bytes(4, "little")
    head[204:208] = (1).to_bytes(4, "little")
    (CORPUS / "sas7bdat" / "empty.sas7bdat").write_bytes(bytes(head) + bytes(1024))


def _write_study() -> None:
    (CORPUS / "study").mkdir(exist_ok=True)
    out = CORPUS / "study" / "small.db"
    out.unlink(missing_ok=True)
    recipes = qd.grid(qd.RandomSwap, swap=[["Sex"], ["Region"]], pairs=[3, 6], seed=range(2))
    qd.search(survey(), recipes, ["small_cells", "exposed", "hellinger"], out=out, workers=1, progress=False)
    for other in out.parent.glob("small.db?*"):
        other.unlink()


if __name__ == "__main__":
    _write_binary()
