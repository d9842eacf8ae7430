"""Data become a file of SPSS, Stata or SAS; what comes back from it is compared with what went in."""

from __future__ import annotations

import os
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np
import polars as pl

from quadrille.codebook import Value
from quadrille.data import Data
from quadrille.errors import OutputError
from quadrille.frames.dtypes import is_text
from quadrille.io.stat_fit import Outgoing, outgoing, plain_number
from quadrille.io.stat_library import no_pyreadstat
from quadrille.io.stat_parse import Raw, parse
from quadrille.io.stat_targets import TARGETS, Losses, Target, check_names


def stat_bytes(data: Data, suffix: str) -> tuple[bytes, tuple[str, ...]]:
    """Return the file, and line by line what its format cannot hold."""
    target, losses = TARGETS[suffix], Losses()
    check_names(data.columns, target)
    columns = [outgoing(data[name], target, losses) for name in data.columns]
    if long := _too_long(columns) if suffix == ".xpt" else []:
        losses.whole(_VERSION_8.format(columns=", ".join(long)))
    with _place(suffix) as path:
        _write(columns, suffix, path)
        _verify(columns, parse(path, suffix, own=True).columns, target)
        return path.read_bytes(), losses.lines()


_VERSION_8 = (
    "The file is of version 8 of the transport format: pandas and old SAS read version 5 only. For version 5 use names "
    "of at most 8 letters, labels of 40 bytes and texts of 200 bytes in: {columns}."
)


def _too_long(columns: list[Outgoing]) -> list[str]:
    """Name the columns whose name, label or texts are too long for version 5, which every program reads."""
    return [
        column.name
        for column in columns
        if len(column.name) > 8
        or len(column.label.encode()) > 40
        or (is_text(column.series) and (column.series.str.len_bytes() > 200).any())
    ]


@contextmanager
def _place(suffix: str) -> Generator[Path]:
    """Yield a file to write to: in memory where the system allows it, else in a folder that only its owner enters."""
    if hasattr(os, "memfd_create") and Path("/proc/self/fd").is_dir():
        handle = os.memfd_create("quadrille")
        try:
            yield Path(f"/proc/self/fd/{handle}")
        finally:
            os.close(handle)
        return
    with TemporaryDirectory() as folder:
        yield Path(folder) / f"file{suffix}"


def _write(columns: list[Outgoing], suffix: str, path: Path) -> None:
    try:
        import pyreadstat
    except ImportError:
        raise OutputError(str(no_pyreadstat())) from None
    table = pl.DataFrame([_with_tags(column) for column in columns])
    common: dict[str, Any] = {
        "column_labels": {column.name: column.label for column in columns if column.label},
        "variable_format": {column.name: column.format for column in columns if column.format},
    }
    labels = {column.name: dict(_bare(column)) for column in columns if column.labels}
    functions = cast("Any", pyreadstat)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if suffix == ".sav":
                functions.write_sav(
                    table,
                    str(path),
                    variable_value_labels=labels,
                    missing_ranges={column.name: _ranges(column) for column in columns if column.codes},
                    variable_measure={column.name: column.measure for column in columns if column.measure},
                    variable_display_width={column.name: column.display for column in columns if column.display},
                    **common,
                )
            elif suffix == ".dta":
                used = {column.name: _letters(column, labels) for column in columns}
                functions.write_dta(
                    table,
                    str(path),
                    version=14,  # what every Stata since then reads; the next format is for its largest edition only
                    variable_value_labels=labels,
                    missing_user_values={name: letters for name, letters in used.items() if letters},
                    **common,
                )
            else:
                functions.write_xport(table, str(path), file_format_version=8 if _too_long(columns) else 5, **common)
    except OSError as error:
        raise OutputError(f"Cannot write the file: {error.strerror or type(error).__name__}.") from None
    except Exception:  # its text can hold data values
        name = TARGETS[suffix].name
        raise OutputError(f"The data cannot be written as a file of {name}. Write CSV or Parquet.") from None


def _letters(column: Outgoing, labels: Mapping[str, Mapping[Value, str]]) -> list[str]:
    """Return the letters of Stata's missing values that a column of numbers holds or labels."""
    if is_text(column.series):
        return []
    held: list[str] = [] if column.tags is None else [tag[1:] for tag in column.tags.drop_nulls().unique().to_list()]
    return sorted({*held, *(value for value in labels.get(column.name, {}) if isinstance(value, str))})


def _bare(column: Outgoing) -> list[tuple[Value, str]]:
    """Return value labels with tags as pyreadstat wants them: a for .a."""
    numbers = not is_text(column.series)
    return [(v[1:] if numbers and isinstance(v, str) else v, label) for v, label in column.labels.items()]


def _ranges(column: Outgoing) -> list[object]:
    return [{"lo": code[0], "hi": code[1]} if isinstance(code, tuple) else code for code in column.codes]


def _with_tags(column: Outgoing) -> pl.Series:
    """Return a column as pyreadstat takes it: numbers and tags together as objects."""
    labelled = not is_text(column.series) and any(isinstance(value, str) for value in column.labels)
    if not labelled and (column.tags is None or not column.tags.count()):
        return column.series
    numbers = column.series.to_list()
    tags = [None] * len(numbers) if column.tags is None else column.tags.to_list()
    mixed = [number if tag is None else tag[1:] for number, tag in zip(numbers, tags, strict=True)]
    return pl.Series(column.name, mixed, dtype=pl.Object)


def _verify(sent: list[Outgoing], back: tuple[Raw, ...], target: Target) -> None:
    """Compare what was written with what is read back; a file that differs is never handed out."""
    for column, raw in zip(sent, back, strict=True):
        same = column.name == raw.name and column.label == raw.label and _same_values(column, raw, target)
        labels = {plain_number(value): label for value, label in raw.value_labels.items()}
        if not same or labels != dict(column.labels) or _bounds(column.codes) != _bounds(raw.ranges):
            raise OutputError(
                f"Column {column.name!r} does not come back from the {target.name} file as it was written, "
                "so the file is not kept. Write CSV or Parquet."
            )


def _same_values(column: Outgoing, raw: Raw, target: Target) -> bool:
    if is_text(column.series):
        text = column.series if target.keeps_blanks else column.series.str.strip_chars_end(" ")
        return text.equals(raw.series.cast(pl.String).fill_null(""), check_names=False)
    tags = column.tags if column.tags is not None and column.tags.count() else None
    if tags is None or raw.tags is None:
        if tags is not raw.tags:
            return False
    elif not tags.equals(raw.tags, check_names=False):
        return False
    sent, back = column.series.cast(pl.Float64).to_numpy(), raw.series.cast(pl.Float64).to_numpy()
    return np.array_equal(sent, back, equal_nan=True)


def _bounds(codes: tuple[Any, ...]) -> set[tuple[Value, Value]]:
    return {code if isinstance(code, tuple) else (code, code) for code in codes}
