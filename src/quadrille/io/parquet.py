"""Parquet files in and out; types come from the file."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl

from quadrille.codebook import Codebook
from quadrille.data import Data
from quadrille.errors import InputError
from quadrille.frames import build, to_frame
from quadrille.io.files import contents


def read_parquet(path: Path, *, codebook: Codebook | None, weight: str | None) -> Data:
    """Read a Parquet file."""
    contents(path)  # a file that is missing or not readable is refused here
    try:
        table = pl.read_parquet(path.absolute(), glob=False, hive_partitioning=False)
    except (Exception, pl.exceptions.PanicException):
        raise InputError(f"The file {str(path)!r} is not intact Parquet. Copy it again or check its name.") from None
    return build(table, codebook=codebook, weight=weight, where=f"the file {str(path)!r}")


def parquet_bytes(data: Data) -> memoryview:
    """Return the records as a Parquet file."""
    buffer = io.BytesIO()
    to_frame(data).write_parquet(buffer)
    return buffer.getbuffer()
