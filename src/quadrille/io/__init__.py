"""Microdata files in and out: what is not understood is refused, and nothing is left half-written."""

from __future__ import annotations

import gzip
from pathlib import Path

from quadrille.codebook import Codebook
from quadrille.data import Data
from quadrille.errors import InputError, OutputError
from quadrille.io.atomic import new_file
from quadrille.io.csv import csv_bytes, read_csv
from quadrille.io.parquet import parquet_bytes, read_parquet

__all__ = ["SUFFIXES", "read", "write", "write_codebook"]

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".parquet")
"""File names that `read` and `write` understand, by their ending."""


def read(path: str | Path, *, codebook: Codebook | str | Path | None = None, weight: str | None = None) -> Data:
    """Read a microdata file; its format is told by the ending of its name.

    `codebook` is a Codebook or the path of a TOML file; none is ever read without being named. `weight` names
    the weight column. What the codebook leaves open is guessed, see `from_frame`.
    """
    file = Path(path)
    suffix = _suffix(file)
    if suffix is None:
        raise InputError(f"Cannot tell the format of {str(file)!r}. Supported are {', '.join(SUFFIXES)}.")
    book = codebook if isinstance(codebook, Codebook | None) else Codebook.read(codebook)
    if suffix == ".parquet":
        return read_parquet(file, codebook=book, weight=weight)
    return read_csv(file, _separator(suffix), codebook=book, weight=weight)


def write(data: Data, path: str | Path, *, private: bool = False) -> None:
    """Write the records with their original values, in the format told by the ending of the name.

    The file appears whole or not at all; a private one is readable by its owner only. In CSV a missing value and an
    empty text look alike.
    """
    file = Path(path)
    suffix = _suffix(file)
    if suffix is None:
        raise OutputError(f"Cannot write {str(file)!r} in a format of that name. Supported are {', '.join(SUFFIXES)}.")
    contents = parquet_bytes(data) if suffix == ".parquet" else csv_bytes(data, _separator(suffix))
    if suffix.endswith(".gz"):
        contents = gzip.compress(contents, mtime=0)  # no time stamp, so that equal data make equal files
    with new_file(file, contents, private=private):
        pass


def write_codebook(source: Data | Codebook, path: str | Path) -> None:
    """Write a codebook, or the codebook of these data, as TOML."""
    book = source if isinstance(source, Codebook) else source.codebook
    with new_file(Path(path), book.to_toml().encode("utf-8")):
        pass


def _suffix(path: Path) -> str | None:
    return next((suffix for suffix in SUFFIXES if path.name.lower().endswith(suffix)), None)


def _separator(suffix: str) -> str:
    return "\t" if suffix == ".tsv" else ","
