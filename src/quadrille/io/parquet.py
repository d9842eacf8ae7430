"""Parquet files in and out; types come from the file."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from quadrille.codebook import Codebook
from quadrille.data import Data
from quadrille.errors import InputError
from quadrille.frames import build, to_frame
from quadrille.frames.stream import Batches, build_streamed
from quadrille.io.files import contents, no_panic_shown

BATCH = 1 << 18
"""Files with more rows than this are read in batches of as many, so that they are never whole in memory."""


def read_parquet(path: Path, *, codebook: Codebook | None, weight: str | None) -> Data:
    """Read a Parquet file; a large one batch by batch."""
    contents(path)  # a file that is missing or not readable is refused here
    where = f"the file {str(path)!r}"
    scan = pl.scan_parquet(path.absolute(), glob=False, hive_partitioning=False)
    rows = int(_collected(scan.select(pl.len()), path).item())
    empty = _collected(scan.head(0), path)
    if rows <= BATCH or (weight is not None and weight in empty.columns and not empty[weight].dtype.is_numeric()):
        return build(_collected(scan, path), codebook=codebook, weight=weight, where=where)

    def batches(name: str) -> Iterator[pl.Series]:
        for start in range(0, rows, BATCH):
            yield _collected(scan.select(name).slice(start, BATCH), path).to_series()

    return build_streamed(Batches(empty, rows, batches), codebook=codebook, weight=weight, where=where)


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
