"""The formats of microdata files, each declared once; it is from here that messages, options and releases know them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Format:
    """A format: the ending of its file names, what to call it, and which modules of this package know it.

    The module that reads it has `read_file(path, ending, *, codebook, weight)`, and takes the `layout` that the user
    says where it has one. The one that writes it, if any, has
    `file_bytes(data, ending)`, which returns the file and line by line what it cannot hold, and
    `left_to_codebook(data)`, the lines that only matter when no codebook is written too.
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
