"""Microdata files in and out: what is not understood is refused, and nothing is left half-written."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

from quadrille.codebook import Codebook
from quadrille.data import Data
from quadrille.errors import InputError, OutputError
from quadrille.io.atomic import new_file
from quadrille.io.csv import csv_bytes, read_csv
from quadrille.io.not_held import moments_left, not_in_text, numbers_of_moments, orders_left, remarked, words_left
from quadrille.io.parquet import parquet_bytes, read_parquet

__all__ = ["SUFFIXES", "WRITABLE", "file_bytes", "left_to_codebook", "read", "write"]

_STAT = (".sav", ".zsav", ".por", ".dta", ".sas7bdat", ".xport", ".xpt")
SUFFIXES = (".csv", ".csv.gz", ".tsv", ".parquet", *_STAT)
"""File names that `read` understands, by their ending."""

WRITABLE = (".csv", ".csv.gz", ".tsv", ".parquet", ".sav", ".dta", ".xport", ".xpt")
"""File names that `write` understands, by their ending."""


def read(
    path: str | Path,
    *,
    codebook: Codebook | str | Path | None = None,
    weight: str | None = None,
    geography: Sequence[str] = (),
    catalog: str | Path | None = None,
) -> Data:
    """Read a microdata file; the ending of its name tells the format.

    `codebook` is a Codebook or the path of a TOML file; none is ever read without being named. `weight` names
    the weight column, `geography` nested levels of geography, the coarsest first. What the codebook leaves open is
    guessed, see `from_frame`; files of SPSS, Stata and SAS bring labels, missing codes and formats along. `catalog`
    is the SAS catalog (.sas7bcat) with the value labels of a .sas7bdat file.

    Example
    -------
    >>> from pathlib import Path
    >>> import quadrille as qd
    >>> _ = Path("people.csv").write_text("sex,health,w\\nf,good,1.5\\nm,poor,2\\n")
    >>> qd.read("people.csv", weight="w")
    Data(2 records, 3 columns, weight='w')
    """
    file = Path(path)
    suffix = _suffix(file)
    if suffix is None:
        raise InputError(f"Cannot tell the format of {str(file)!r}. Supported are {', '.join(SUFFIXES)}.")
    book = codebook if isinstance(codebook, Codebook | None) else Codebook.read(codebook)
    if geography:
        book = (book or Codebook()).with_geography(geography)
    if catalog is not None and suffix != ".sas7bdat":
        raise InputError("A catalog belongs to a file of SAS (.sas7bdat). Leave the catalog out.")
    if suffix in _STAT:
        from quadrille.io.stat.read import read_stat

        return read_stat(file, suffix, codebook=book, weight=weight, catalog=None if catalog is None else Path(catalog))
    if suffix == ".parquet":
        return read_parquet(file, codebook=book, weight=weight)
    return read_csv(file, _separator(suffix), codebook=book, weight=weight)


def write(data: Data, path: str | Path, *, private: bool = False) -> tuple[str, ...]:
    """Write the records with their original values, in the format told by the ending of the name.

    The file appears whole or not at all; a private one is readable by its owner only. Returned is, line by line, what
    the format cannot hold; values that it cannot hold are refused.

    Example
    -------
    >>> import quadrille as qd
    >>> qd.write(qd.datasets.cps8d(), "people.parquet")
    ()
    >>> qd.read("people.parquet")
    Data(48,842 records, 8 columns)
    """
    file = Path(path)
    contents, not_held = file_bytes(data, file.name)
    with new_file(file, contents, private=private):
        pass
    return (*not_held, *left_to_codebook(data, file.name))


def left_to_codebook(data: Data, name: str) -> tuple[str, ...]:
    """Say which words, orders and formats a file leaves to the codebook."""
    suffix = _suffix(Path(name))
    if suffix == ".parquet":
        return words_left(data)
    return (*orders_left(data), *(() if suffix in _STAT else (*moments_left(data), *words_left(data))))


def file_bytes(data: Data, name: str) -> tuple[bytes | memoryview, tuple[str, ...]]:
    """Return the file of that name, and line by line what its format cannot hold."""
    suffix = _suffix(Path(name))
    if suffix not in WRITABLE:
        what = f"Only SAS writes {suffix}." if suffix == ".sas7bdat" else f"Cannot write {name!r} in that format."
        raise OutputError(f"{what} Supported are {', '.join(WRITABLE)}.")
    if suffix in _STAT:
        from quadrille.io.stat.write import stat_bytes

        contents, not_held = stat_bytes(data, suffix)
        return contents, (*remarked(data), *not_held)
    contents = parquet_bytes(data) if suffix == ".parquet" else csv_bytes(data, _separator(suffix))
    if suffix.endswith(".gz"):
        contents = gzip.compress(contents, mtime=0)  # no time stamp, so that equal data make equal files
    not_held = not_in_text(data) if suffix != ".parquet" else ()
    return contents, (*remarked(data), *numbers_of_moments(data), *not_held)


def _suffix(path: Path) -> str | None:
    found = next((suffix for suffix in SUFFIXES if path.name.lower().endswith(suffix)), None)
    return ".xpt" if found == ".xport" else found


def _separator(suffix: str) -> str:
    return "\t" if suffix == ".tsv" else ","
