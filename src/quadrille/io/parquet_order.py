"""The order of ordered categories in Parquet files, which polars does not read: Arrow keeps it as a dictionary."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import polars as pl

from quadrille.io.files import no_panic_shown
from quadrille.io.plain_losses import NEEDS_ARROW, NO_ORDER


@dataclass(frozen=True)
class Orders:
    """Columns of ordered categories: the categories in their order, and remarks on those whose order is not known."""

    known: Mapping[str, tuple[str, ...]]
    remarks: tuple[str, ...]


def orders_in(path: Path, empty: pl.DataFrame) -> Orders:
    """Find the ordered categories of a Parquet file; `empty` has its names and types as polars reads them.

    An Enum, the type of polars for ordered categories, brings its order along already.
    """
    told = [name for name in _ordered_by_pandas(path) if name in empty.columns]
    if not told and not any(isinstance(dtype, pl.Categorical) for dtype in empty.dtypes):
        return Orders({}, ())  # most files; they do not wait for Arrow
    try:
        import pyarrow.parquet as pq
    except ImportError:
        return Orders({}, tuple(f"{name}: {NEEDS_ARROW}." for name in told))
    try:
        with cast("Any", pq).ParquetFile(path) as file:
            return _orders(file, empty, told)
    except Exception:  # polars reads the file, or refuses it
        return Orders({}, tuple(f"{name}: {NO_ORDER}." for name in told))


def _orders(file: Any, empty: pl.DataFrame, told: list[str]) -> Orders:
    known: dict[str, tuple[str, ...]] = {}
    remarks: list[str] = []
    ordered = [str(field.name) for field in file.schema_arrow if getattr(field.type, "ordered", False)]
    for name in dict.fromkeys([*ordered, *told]):
        dtype = empty[name].dtype
        if isinstance(dtype, pl.Enum):
            continue
        # Parquet has no dictionaries of numbers, so that the order of these is lost at writing already.
        if isinstance(dtype, pl.Categorical) and (categories := _categories(file, name)):
            known[name] = categories
        else:
            remarks.append(f"{name}: {NO_ORDER}.")
    return Orders(known, tuple(remarks))


def _ordered_by_pandas(path: Path) -> list[str]:
    """Name the columns that pandas calls ordered in the words that it adds to a file."""
    try:
        with no_panic_shown(), path.open("rb") as file:
            words: Any = json.loads(pl.read_parquet_metadata(file)["pandas"])
        facts = {str(column["name"]): column["metadata"] for column in words["columns"]}
        return [name for name, fact in facts.items() if fact and "ordered" in fact and fact["ordered"]]
    except (Exception, pl.exceptions.PanicException):
        return []


def _categories(file: Any, name: str) -> tuple[str, ...]:
    """Return the one list of categories of all groups of rows; nothing where they differ or are not written."""
    found: set[tuple[str, ...]] = set()
    for group in range(file.num_row_groups):
        if not _has_dictionary(file.metadata.row_group(group), name):
            return ()
        column = file.read_row_group(group, columns=[name]).column(name)
        found |= {tuple(chunk.dictionary.to_pylist()) for chunk in column.chunks if len(chunk)}
    categories = found.pop() if len(found) == 1 else ()
    return categories if len(set(categories)) == len(categories) else ()


def _has_dictionary(group: Any, name: str) -> bool:
    """Whether a group of rows holds the categories of a column, not only its values."""
    columns = map(group.column, range(group.num_columns))
    return any(column.path_in_schema == name and column.has_dictionary_page for column in columns)
