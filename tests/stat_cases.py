"""Files of SPSS, Stata and SAS with everything in them that must survive, written by pyreadstat alone."""

from __future__ import annotations

import datetime as dt
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyreadstat

LONG = "Łódź " + "x" * 300 + "."
SHORT = "Łódź"
READERS: dict[str, Any] = {
    ".sav": pyreadstat.read_sav,
    ".zsav": pyreadstat.read_sav,
    ".por": pyreadstat.read_por,
    ".dta": pyreadstat.read_dta,
    ".xpt": pyreadstat.read_xport,
}

SPSS: dict[str, Any] = {
    "column_labels": {"Sex": "Geschlecht", "ageGrp": "Age, grouped", "Place": "Wohnort ü", "Born": "Date of birth"},
    "variable_value_labels": {
        "Sex": {1: "männlich", 2: "weiblich", 3: "divers"},
        "ageGrp": {1: "<20", 2: "20-39", 99: "no answer"},
        "Income": {-9.0: "refused", 0.0: "none"},
        "Place": {"Bâle": "Basel"},
    },
    "missing_ranges": {"ageGrp": [{"lo": 90, "hi": 99}], "Income": [-9.0, -8.0], "Grade": ["x"]},
    "variable_measure": {"Sex": "nominal", "ageGrp": "ordinal", "Income": "scale"},
    "variable_format": {"Income": "F12.2", "Sex": "F2.0", "Born": "EDATE10"},
    "variable_display_width": {"Sex": 5, "Income": 14},
}
STATA: dict[str, Any] = {
    "column_labels": {"Sex": "Geschlecht", "Place": "Wohnort ü"},
    "variable_value_labels": {
        "Sex": {1: "männlich", 2: "weiblich"},
        "ageGrp": {1: "<20", "a": "refused", "c": "never used"},
        "Income": {"b": "no answer"},
    },
    "missing_user_values": {"ageGrp": ["a", "c", "z"], "Income": ["b"]},
    "variable_format": {"Income": "%12.2f", "Born": "%td"},
}


@lru_cache(maxsize=8)
def frame(rows: int, long: str = LONG) -> pl.DataFrame:
    """A survey: codes, amounts, texts with signs, dates, moments, times of day, fractions, empty fields."""
    rng = np.random.default_rng(1)
    grades = np.array(["a", "b", "x"])
    table = pl.DataFrame(
        {
            "caseid": np.arange(rows) + 1000.0,
            "Sex": rng.integers(1, 3, rows).astype(float),
            "ageGrp": np.where(rng.random(rows) < 0.05, 99.0, rng.integers(1, 7, rows)),
            "Income": np.where(rng.random(rows) < 0.1, -9.0, np.round(rng.lognormal(9, 1, rows), 2)),
            "Place": np.array(["Zürich", "Bâle", long])[rng.integers(0, 3, rows)],
            "Grade": grades[rng.integers(0, 3, rows)],
            "Born": [dt.date(1950, 1, 1) + dt.timedelta(days=int(day)) for day in rng.integers(0, 90, rows)],
            "Seen": [dt.datetime(2020, 1, 1, 12) + dt.timedelta(minutes=int(m)) for m in rng.integers(0, 40, rows)],
            "At": [dt.time(int(hour), 30) for hour in rng.integers(0, 24, rows)],
            "Half": rng.integers(0, 4, rows) / 2.0,
        }
    )
    empty = pl.Series(rng.random(rows) < 0.1)
    return table.with_columns(
        pl.when(~empty).then(pl.col("Half")),
        pl.when(~empty).then(pl.col("Place")),
        pl.when(~empty).then(pl.col("Born")),
    )


def with_tags(table: pl.DataFrame, seed: int = 2) -> pl.DataFrame:
    """The same survey as Stata has it: missing answers are .a, .b and .z, and whole numbers are whole."""
    rng = np.random.default_rng(seed)
    ages = ["az"[i % 2] if code == 99 else int(code) for i, code in enumerate(table["ageGrp"])]
    amounts = ["b" if amount == -9 else amount for amount in table["Income"]]
    hours = rng.integers(0, 60, table.height).astype(np.int32)
    return table.with_columns(
        pl.col("Sex").cast(pl.Int32),
        pl.Series("ageGrp", ages, dtype=pl.Object),
        pl.Series("Income", amounts, dtype=pl.Object),
        pl.col("Place").fill_null(""),
        pl.Series("Hours", hours),
    )


def write_case(path: Path, rows: int, long: str = LONG) -> None:
    """Write the survey in the format that the ending names."""
    table = frame(rows, long)
    if path.suffix in (".sav", ".zsav"):
        pyreadstat.write_sav(table, path, compress=path.suffix == ".zsav", **SPSS)
    elif path.suffix == ".por":
        pyreadstat.write_por(as_portable(table), path, column_labels={"SEX": "Geschlecht", "AGEGRP": "Age, grouped"})
    elif path.suffix == ".dta":
        pyreadstat.write_dta(with_tags(table), path, **STATA)
    elif path.suffix == ".xpt":
        labels = SPSS["column_labels"]
        pyreadstat.write_xport(table, path, column_labels=labels, variable_format={"Born": "DATE9", "Income": "F12.2"})
    elif path.suffix == ".csv":
        table.write_csv(path)
    else:
        table.write_parquet(path)


def as_portable(table: pl.DataFrame) -> pl.DataFrame:
    """Some of the same survey as a portable file holds it: names in capitals, plain letters. Reading it is slow."""
    places = {"Zürich": "Zurich", "Bâle": "Bale", SHORT: "Lodz", LONG: "Lodz"}
    kept = table.select("Sex", "ageGrp", "Place", "Half")
    return kept.with_columns(pl.col("Place").replace(places)).rename(str.upper)


def portable(path: Path) -> None:
    """Write a portable file by hand: pyreadstat writes neither labels nor missing codes into one."""
    pyreadstat.write_por(pl.DataFrame({"INC": [1.0, 99.0, 2.5, None], "WHO": ["a", "b", "c", "d"]}), path)
    lines = path.read_text(encoding="latin-1").splitlines()
    text = "".join(line.ljust(80) for line in lines).rstrip("Z")
    first = text.index("70/3/INC5/8/2/5/8/2/") + len("70/3/INC5/8/2/5/8/2/")
    text = text[:first] + "839/" + "C6/Income" + text[first:]  # 99 is missing (base 30: 39), then the label
    start = text.index("F1/1/a")
    text = text[:start] + "D1/3/INC2/1/3/one39/7/refused" + text[start:]
    text += "Z" * (80 - len(text) % 80)
    wrapped = "\r\n".join(text[i : i + 80] for i in range(0, len(text), 80)) + "\r\n"
    path.write_bytes(wrapped.encode("latin-1"))
