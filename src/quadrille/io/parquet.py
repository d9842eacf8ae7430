"""Parquet files in and out; types come from the file."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl

from quadrille.codebook import Codebook
from quadrille.data import Data
from quadrille.errors import InputError
from quadrille.frames import build, to_frame
from quadrille.io.files import read_bytes


def read_parquet(path: Path, *, codebook: Codebook | None, weight: str | None) -> Data:
    """Read a Parquet file."""
    raw = read_bytes(path)
    try:
        table = pl.read_parquet(raw)
    except Exception:
        raise InputError(
            f"The file {str(path)!r} is not intact Parquet. Copy it again or check its name."
        ) from None
    return build(table, codebook=codebook, weight=weight, where=f"the file {str(path)!r}")


def parquet_bytes(data: Data) -> memoryview:
    """Return the records as a Parquet file."""
    buffer = io.BytesIO()
    to_frame(data).write_parquet(buffer)
    return buffer.getbuffer()
