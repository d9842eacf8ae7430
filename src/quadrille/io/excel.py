"""A sheet of an Excel workbook: names in its first row, one record per row."""

from __future__ import annotations

from datetime import time
from pathlib import Path
from typing import Any

import polars as pl

from quadrille.codebook import Codebook
from quadrille.data import Data
from quadrille.errors import InputError
from quadrille.io.csv import ParsedText
from quadrille.io.frames.columns import no_patterns
from quadrille.io.frames.values import EXACT
from quadrille.io.layout import Layout, say
from quadrille.io.parquet import no_panic_shown
from quadrille.io.raw import open_zip


def read_file(
    path: Path, _ending: str, *, codebook: Codebook | None, weight: str | None, layout: Layout | None = None
) -> Data:
    """Read a sheet; text is parsed as that of a CSV file, whole numbers are whole, days are dates."""
    where, said = f"The file {str(path)!r}", layout or Layout()
    faulty = _has_errors(path)
    book = _workbook(path, where)
    sheet = _sheet(book, said.sheet, where)
    header = _table(book, sheet, where, n_rows=1, dtypes="string")
    names = _names(header, where)
    body = _table(book, sheet, where, skip_rows=1, schema_sample_rows=None)
    if not body.height:
        raise InputError(f"{where} holds column names but no records.")
    as_text = _table(book, sheet, where, skip_rows=1, dtypes="string")
    table = pl.DataFrame(
        [
            _plain(body.to_series(i), as_text.to_series(i), f"Column {name!r} of {where}").alias(name)
            for i, name in enumerate(names)
        ]
    )
    parsed = ParsedText(table, {variable.name: variable for variable in codebook or ()}, said, where)
    data = parsed.data(path, weight)
    told = [f"sheet {sheet!r}"] if len(book.sheet_names) > 1 else []
    told += ["cells in which Excel shows an error are missing"] if faulty else []
    data.read_as = (*told, *parsed.remarks)
    return data


_ERROR = b't="e"'
_CHUNK = 1 << 20


def _has_errors(path: Path) -> bool:
    """Whether some cell holds an error such as a division by zero; the library reads it as empty without a word."""
    with open_zip(path) as archive:
        for name in archive.namelist():
            if name.startswith("xl/worksheets/"):
                with archive.open(name) as part:
                    end = b""
                    while chunk := part.read(_CHUNK):
                        if _ERROR in end + chunk:
                            return True
                        end = chunk[-len(_ERROR) :]
    return False


def _workbook(path: Path, where: str) -> Any:
    try:
        import fastexcel
    except ImportError:
        raise InputError(
            "Excel files need the library fastexcel. Install it with: pip install 'quadrille[excel]'"
        ) from None
    try:
        with no_panic_shown():
            return fastexcel.read_excel(str(path.absolute()))
    except (Exception, pl.exceptions.PanicException):
        raise InputError(f"{where} is not an intact Excel workbook. Copy it again or check its name.") from None


def _sheet(book: Any, said: str | int | None, where: str) -> str:
    names: list[str] = list(book.sheet_names)
    if isinstance(said, int) and str(said) not in names:
        if not 1 <= said <= len(names):
            raise InputError(f"{where} has no sheet {said}: it has {len(names):,}.")
        return names[said - 1]
    if said is not None:
        if str(said) not in names:
            raise InputError(f"{where} has no sheet {said!r}. Its sheets are {', '.join(map(repr, names))}.")
        return str(said)
    filled = [name for name in names if _table(book, name, where, n_rows=1, dtypes="string").width]
    if not filled:
        raise InputError(f"{where} is empty. Its sheet must hold a row of column names, then one row per record.")
    if len(filled) > 1:
        numbers = [str(names.index(name) + 1) for name in filled[:2]]
        raise InputError(f"{where} has {len(filled):,} sheets with data. {say('sheet', *numbers)}")
    return filled[0]


def _table(book: Any, sheet: str, where: str, **how: Any) -> pl.DataFrame:
    """Let the library read; its error texts can hold data values and must not get out."""
    try:
        with no_panic_shown():
            return book.load_sheet(sheet, header_row=None, **how).to_polars()
    except (Exception, pl.exceptions.PanicException):
        raise InputError(f"{where} is not an intact Excel workbook. Copy it again or check its name.") from None


def _names(header: pl.DataFrame, where: str) -> list[str]:
    names: list[str | None] = list(header.row(0)) if header.height else []
    for position, name in enumerate(names, start=1):
        if name is None or not name.strip():
            raise InputError(f"{where}: column {position} has no name. Give each column a name in the first row.")
        if names.index(name) != position - 1:
            raise InputError(f"{where}: the column name {name!r} occurs more than once. Give each its own name.")
    found = [name for name in names if name is not None]
    no_patterns(found, where)
    return found


def _plain(series: pl.Series, text: pl.Series, place: str) -> pl.Series:
    """Return whole floats as integers, moments at midnight as dates, and a column of several types as text."""
    mixed = series.dtype.is_float() and bool(text.is_in(["true", "false"]).any())
    if mixed or series.null_count() > text.null_count():
        series = text
    if series.dtype.is_float():
        fits = ((series == series.floor()) & (series.abs() <= EXACT)).all()
        return series.cast(pl.Int64) if fits else series
    if isinstance(series.dtype, pl.Datetime) and bool((series.dt.time() == time(0)).all()):
        return series.dt.date()
    if isinstance(series.dtype, pl.Duration):
        raise InputError(f"{place} holds lengths of time. Write them as numbers.")
    return series
