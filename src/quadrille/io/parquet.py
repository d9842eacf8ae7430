"""Parquet files in and out; types come from the file."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from quadrille.codebook import Codebook
from quadrille.data import Data
from quadrille.errors import InputError
from quadrille.frames import build, to_frame
from quadrille.frames.columns import no_patterns
from quadrille.frames.convert import has_nan, nan_remarks, scale, with_nan
from quadrille.frames.stream import Batches, build_streamed
from quadrille.io.files import contents, no_panic_shown
from quadrille.io.parquet_order import Orders, orders_in

BATCH = 1 << 18
"""Files with more rows than this are read in batches of as many, so that they are never whole in memory."""


def read_parquet(path: Path, *, codebook: Codebook | None, weight: str | None) -> Data:
    """Read a Parquet file; a large one batch by batch."""
    contents(path)  # a file that is missing or not readable is refused here
    where = f"the file {str(path)!r}"
    scan = pl.scan_parquet(path.absolute(), glob=False, hive_partitioning=False)
    rows = int(_collected(scan.select(pl.len()), path).item())
    empty = _collected(scan.head(0), path)
    orders = orders_in(path, empty)
    no_patterns(orders.known, where)
    enums: dict[Any, pl.Enum] = {name: pl.Enum(categories) for name, categories in orders.known.items()}
    scan, empty = scan.cast(dict(enums)), empty.cast(dict(enums))
    book = _with_scales(codebook, orders, rows, weight)
    nans: dict[str, None] = {}

    def batches(name: str) -> Iterator[pl.Series]:
        for start in range(0, rows, BATCH):
            batch = _collected(scan.select(name).slice(start, BATCH), path).to_series()
            if has_nan(batch):
                nans[name] = None
            yield batch

    if rows <= BATCH or (weight is not None and weight in empty.columns and not empty[weight].dtype.is_numeric()):
        table = _collected(scan, path)
        data = build(table, codebook=book, weight=weight, where=where)
        nans = dict.fromkeys(with_nan(table, table))
    else:
        data = build_streamed(Batches(empty, rows, batches), codebook=book, weight=weight, where=where)
    data.remarks = (*orders.remarks, *nan_remarks(nans))
    return data


def _with_scales(codebook: Codebook | None, orders: Orders, rows: int, weight: str | None) -> Codebook | None:
    """Add the ordered categories of the file to the codebook, which comes first."""
    known = [weight, *([] if codebook is None else codebook.names)]
    scales = [scale(name, values, rows) for name, values in orders.known.items() if name not in known]
    return Codebook((*(codebook or ()), *scales)) if scales else codebook


def _collected(scan: pl.LazyFrame, path: Path) -> pl.DataFrame:
    """Let polars read; its error texts hold data values and must not get out."""
    try:
        with no_panic_shown():
            return scan.collect()
    except (Exception, pl.exceptions.PanicException):
        raise InputError(f"The file {str(path)!r} is not intact Parquet. Copy it again or check its name.") from None


def parquet_bytes(data: Data) -> memoryview:
    """Return the records as a Parquet file."""
    buffer = io.BytesIO()
    to_frame(data).write_parquet(buffer)
    return buffer.getbuffer()
