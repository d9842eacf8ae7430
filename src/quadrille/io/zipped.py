"""A data file inside a zip archive: unpacked for the time of reading, into a folder that nobody else can read."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import Any

from quadrille.codebook import Codebook
from quadrille.data import Data
from quadrille.errors import InputError, QuadrilleError
from quadrille.io.formats import format_of
from quadrille.io.raw import open_zip


def read_file(path: Path, _ending: str, *, codebook: Codebook | None, weight: str | None, **more: Any) -> Data:
    """Read the one data file of an archive; other files, such as a description, do not matter."""
    from quadrille.io import read_as

    with open_zip(path) as archive, TemporaryDirectory(prefix="quadrille-") as folder:
        names = [name for name in archive.namelist() if _is_data(name)]
        if len(names) != 1:
            what = f"holds {len(names):,} data files, and one is read" if names else "holds no data file"
            raise InputError(f"The archive {str(path)!r} {what}. Unpack it, and name the file.")
        inside = Path(folder) / PurePosixPath(names[0]).name
        with archive.open(names[0]) as source, inside.open("wb") as target:
            copyfileobj(source, target)
        try:
            data = read_as(inside, codebook=codebook, weight=weight, **more)
        except QuadrilleError as error:
            # The folder is gone when the message is read.
            error.args = (str(error).replace(str(inside), f"{path}: {inside.name}"),)
            raise
    data.read_as = (f"{inside.name} of the archive", *data.read_as)
    return data


def _is_data(name: str) -> bool:
    """Whether a name in an archive is that of a data file; macOS adds files of its own."""
    parts, form = PurePosixPath(name).parts, format_of(name)
    hidden = not parts or parts[0] == "__MACOSX" or parts[-1].startswith(".")
    return not hidden and not name.endswith("/") and form is not None and form.ending != ".zip"
