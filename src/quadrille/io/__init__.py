"""Microdata files in and out, their formats each declared once: messages, options and releases know them from here.

What is not understood is refused, and nothing is left half-written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, BinaryIO

from quadrille.errors import InputError, OutputError

if TYPE_CHECKING:
    from quadrille.codebook import Codebook
    from quadrille.data import Column, Data
    from quadrille.io.layout import Layout

__all__ = ["SUFFIXES", "WRITABLE", "file_bytes", "left_to_codebook", "read", "write"]


@dataclass(frozen=True)
class Format:
    """A format: the ending of its file names, what to call it, and which modules of this package know it.

    The module that reads it has `read_file(path, ending, *, codebook, weight)`, and takes the `layout` that the user
    says where it has one. The one that writes it, if any, has
    `file_bytes(data, ending)`, which returns the file and line by line what it cannot hold, and
    `left_to_codebook(data)`, the lines that only matter when no codebook is written too. Where it can write a file
    piece by piece, it has `write_pieces(file, columns, pieces)` and `not_held(data)` too.
    """

    ending: str
    name: str
    reader: str
    writer: str | None = None
    released: bool = False
    """Whether the public file of a release can have it."""
    program: str = ""
    """The statistics program that it belongs to."""
    also: tuple[str, ...] = ()
    """Other endings for the same."""

    @property
    def endings(self) -> tuple[str, ...]:
        """All endings."""
        return (*self.also, self.ending)


_ALL = (
    Format(".csv", "CSV", "csv", "csv", released=True),
    Format(".csv.gz", "CSV, packed", "csv", "csv"),
    Format(".tsv", "text with tabs", "csv", "csv"),
    Format(".parquet", "Parquet", "parquet", "parquet", released=True),
    Format(".xlsx", "Excel", "excel"),
    Format(".sav", "SPSS", "stat_read", "stat_write", released=True, program="spss"),
    Format(".zsav", "SPSS", "stat_read", program="spss"),
    Format(".por", "SPSS portable", "stat_read", program="spss"),
    Format(".dta", "Stata", "stat_read", "stat_write", released=True, program="stata"),
    Format(".sas7bdat", "SAS", "stat_read", program="sas"),
    Format(".xpt", "SAS transport", "stat_read", "stat_write", released=True, program="sas", also=(".xport",)),
    Format(".zip", "zip archive", "raw"),
)
FORMATS = {form.ending: form for form in _ALL}
"""By ending, in the order in which they are listed to users."""

SUFFIXES = tuple(ending for form in _ALL for ending in form.endings)
"""File names that `read` understands, by their ending."""

WRITABLE = tuple(ending for form in _ALL if form.writer for ending in form.endings)
"""File names that `write` understands, by their ending."""

RELEASED = tuple(form.ending[1:] for form in _ALL if form.released)
"""What the public file of a release can be written as, in the words of the option."""


def format_of(name: str) -> Format | None:
    """Return the format that the ending of a file name tells."""
    return next((form for form in _ALL if name.lower().endswith(form.endings)), None)


def read(
    path: str | Path,
    *,
    codebook: Codebook | str | Path | None = None,
    weight: str | None = None,
    geography: Sequence[str] = (),
    catalog: str | Path | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    quote: str | None = None,
    dates: str | None = None,
    sheet: str | int | None = None,
    sampling: float | None = None,
) -> Data:
    """Read a microdata file; the ending of its name tells the format.

    `codebook` is a Codebook or the path of a TOML file; none is ever read without being named. `weight` names
    the weight column, `geography` nested levels of geography, the coarsest first. What the codebook leaves open is
    guessed, see `from_frame`; files of SPSS, Stata and SAS bring labels, missing codes and formats along. `catalog`
    is the SAS catalog (.sas7bcat) with the value labels of a .sas7bdat file. `sampling` is the share of the population
    that is in the file, where it is a sample and the weights do not count persons; a codebook can say it, too.

    How delimited text is written is detected, and a file that can be read in two ways is refused; these say it:
    `separator` (`,` `;` `|` or `tab`), `decimal` (`.` or `,`), `encoding` (as Python calls it), `quote` (`"`, `'` or
    `none`), and for dates in numbers `dates` (`dmy`, `mdy` or `ymd`). Of a workbook, `sheet` names the sheet, or its
    number from 1, where there are several. In a zip archive there must be one data file.

    Example
    -------
    >>> from pathlib import Path
    >>> import quadrille as qd
    >>> _ = Path("people.csv").write_text("sex,health,w\\nf,good,1.5\\nm,poor,2\\n")
    >>> qd.read("people.csv", weight="w")
    Data(2 records, 3 columns, weight='w')
    >>> _ = Path("leute.csv").write_bytes("Größe;Ort\\n1,5;Köln\\n1,75;Bonn\\n".encode("latin-1"))
    >>> data = qd.read("leute.csv")
    >>> data["Größe"].values.tolist(), data.read_as
    ([1.5, 1.75], ('fields separated by semicolons', 'encoding cp1252', 'decimal comma'))
    """
    from quadrille.codebook import Codebook
    from quadrille.io.layout import Layout

    book = codebook if isinstance(codebook, Codebook | None) else Codebook.read(codebook)
    if geography:
        book = (book or Codebook()).with_geography(geography)
    more: dict[str, Any] = {} if catalog is None else {"catalog": Path(catalog)}
    layout = Layout(separator, decimal, encoding, quote, dates, sheet)
    more |= {"layout": layout} if layout else {}
    data = read_as(Path(path), codebook=book, weight=weight, **more)
    said = book.sampling if book is not None and sampling is None else sampling
    return data if said is None else data.with_sampling(said)


def read_as(file: Path, *, codebook: Codebook | None, weight: str | None, **more: Any) -> Data:
    """Read a file in the format that the ending of its name tells; `more` are a layout and a catalog."""
    form = format_of(file.name)
    if form is None:
        raise InputError(f"Cannot tell the format of {str(file)!r}. Supported are {', '.join(SUFFIXES)}.")
    if "catalog" in more and form.ending not in (".sas7bdat", ".zip"):
        raise InputError("A catalog belongs to a file of SAS (.sas7bdat). Leave the catalog out.")
    if "layout" in more:
        _check_layout(more["layout"], form)
    reader = import_module(f"quadrille.io.{form.reader}")  # only now: formats are known without loading polars
    return reader.read_file(file, form.ending, codebook=codebook, weight=weight, **more)


def _check_layout(layout: Layout, form: Format) -> None:
    """Refuse settings that a format does not have."""
    text_only = replace(layout, sheet=None)
    if text_only and form.reader not in ("csv", "raw"):
        raise InputError("Separator, decimal, encoding, quote and dates are for delimited text. Leave them out.")
    if layout.sheet is not None and form.reader not in ("excel", "raw"):
        raise InputError("A sheet is part of an Excel workbook (.xlsx). Leave the sheet out.")


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
    from quadrille.io.atomic import new_file

    file = Path(path)
    contents, not_held = file_bytes(data, file.name)
    with new_file(file, contents, private=private):
        pass
    return (*not_held, *left_to_codebook(data, file.name))


def left_to_codebook(data: Data, name: str) -> tuple[str, ...]:
    """Say which words, orders and formats a file leaves to the codebook."""
    return _writer(name)[0].left_to_codebook(data)


def file_bytes(data: Data, name: str) -> tuple[bytes | memoryview, tuple[str, ...]]:
    """Return the file of that name, and line by line what its format cannot hold."""
    from quadrille.io.frames import remarked

    writer, ending = _writer(name)
    contents, not_held = writer.file_bytes(data, ending)
    return contents, (*remarked(data), *not_held)


def streamed(name: str) -> bool:
    """Tell whether a file of that name can be written piece by piece, so that it is never whole in memory."""
    return hasattr(_writer(name)[0], "write_pieces")


def not_held(data: Data, name: str) -> tuple[str, ...]:
    """Say line by line what a file that is written piece by piece cannot hold."""
    from quadrille.io.frames import remarked

    return (*remarked(data), *_writer(name)[0].not_held(data))


def write_pieces(file: BinaryIO, name: str, columns: Sequence[Column], pieces: Iterable[Sequence[Column]]) -> None:
    """Write the records that come piece by piece into a file of that name; `columns` have their names and types."""
    _writer(name)[0].write_pieces(file, columns, pieces)


def _writer(name: str) -> tuple[ModuleType, str]:
    """Return the module that writes a file of that name, and the ending that the module knows it by."""
    form = format_of(name)
    if form is None or form.writer is None:
        only_sas = form is FORMATS[".sas7bdat"]
        what = "Only SAS writes .sas7bdat." if only_sas else f"Cannot write {name!r} in that format."
        raise OutputError(f"{what} Supported are {', '.join(WRITABLE)}.")
    return import_module(f"quadrille.io.{form.writer}"), form.ending
