"""Results as files that any program reads: JSON without what JSON does not know, and tables as CSV or Parquet."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from math import isfinite, isnan
from pathlib import Path
from typing import cast

import polars as pl

from quadrille.errors import OutputError
from quadrille.io.atomic import new_file
from quadrille.text import large

_MOST_BITS = 14_000
"""Python writes whole numbers of up to 4,300 digits."""

TABLES = (".csv", ".parquet")
"""The endings of result tables."""


def as_json(document: object) -> str:
    """Write a document as JSON: an infinite number as the text "Infinity" or "-Infinity", NaN as null.

    A count too long for Python to write in digits is a text, too, such as "about 10^4515".

    >>> from quadrille.io.results import as_json
    >>> as_json({"value": float("inf")}).split()
    ['{', '"value":', '"Infinity"', '}']
    """
    return json.dumps(_finite(document), indent=2, ensure_ascii=False, allow_nan=False)


def _finite(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _finite(each) for name, each in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in cast("list[object]", value)]
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return large(value)
    if isinstance(value, float) and not isfinite(value):
        return None if isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def check_table(path: Path) -> None:
    """Refuse a name that does not end as a result table does."""
    if path.suffix.lower() not in TABLES:
        raise OutputError(f"Cannot write a table to {path.name!r}. The name must end in {' or '.join(TABLES)}.")


def write_table(frame: pl.DataFrame, path: Path) -> None:
    """Write a table of results, readable by its owner only; it appears whole or not at all."""
    check_table(path)
    buffer = io.BytesIO()
    write = frame.write_csv if path.suffix.lower() == ".csv" else frame.write_parquet
    write(buffer)
    with new_file(path, buffer.getvalue(), private=True):
        pass
