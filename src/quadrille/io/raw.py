"""The bytes of a file, with clear errors for what cannot be read; and the data file inside a zip archive."""

from __future__ import annotations

import gzip
import mmap
import os
import re
import resource
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from shutil import copyfileobj
from typing import Any

from quadrille.codebook import Codebook
from quadrille.data import Data
from quadrille.errors import InputError, QuadrilleError
from quadrille.io import format_of
from quadrille.io.atomic import scratch

MOST_UNPACKED = 200
SMALL = 100 * 2**20
"""Packed files that unpack to more bytes than this, and to more than 200 times their size, are refused as bombs."""
MOST_CELLS = 2_000
"""So are tables of as many cells, where one byte of the file stands for more cells than this."""
_CHUNK = 1 << 20

Buffer = bytes | mmap.mmap


def contents(path: Path) -> Buffer:
    """Return the contents of a file: mapped, not copied; or unpacked when its name ends in .gz."""
    try:
        with path.open("rb") as file:
            if path.name.lower().endswith(".gz"):
                return _unpacked(path, os.fstat(file.fileno()).st_size)
            size = os.fstat(file.fileno()).st_size
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
    except EOFError:
        raise InputError(f"The file {str(path)!r} is cut off: its gzip data end too early. Copy it again.") from None
    except MemoryError:
        raise InputError(f"The file {str(path)!r} does not fit into memory when it is unpacked.") from None
    except (gzip.BadGzipFile, zlib.error):
        raise InputError(f"The file {str(path)!r} is not intact gzip. Copy it again or check its name.") from None
    except OSError as error:
        raise InputError(
            f"Cannot read the file {str(path)!r}: {error.strerror or type(error).__name__}. Check the path."
        ) from None


_SYSTEM = re.compile(r"\(os error (\d+)\)")


def refuse_for_the_system(path: Path, error: BaseException) -> None:
    """Refuse a file that the system does not let a library read, which is no fault of the file."""
    if found := _SYSTEM.search(str(error)):
        raise InputError(f"Cannot read the file {str(path)!r}: {os.strerror(int(found[1]))}.") from None


def _unpacked(path: Path, packed: int) -> bytes:
    """Unpack a file, and stop where it becomes monstrous."""
    most, made = max(SMALL, MOST_UNPACKED * packed), bytearray()
    with gzip.open(path) as file:
        while chunk := file.read(_CHUNK):
            made += chunk
            if len(made) > most:
                raise _monstrous(f"The file {str(path)!r}")
    return bytes(made)


def _monstrous(where: str) -> InputError:
    return InputError(
        f"{where} unpacks to more than {MOST_UNPACKED} times its size, which is how harmful files are made. "
        "Unpack it yourself if you trust it."
    )


def refuse_too_many_cells(path: Path, rows: int, columns: int) -> None:
    """Refuse a table that is out of all proportion to its file: runs of one value take next to no room there."""
    if rows * columns > SMALL and rows * columns > MOST_CELLS * path.stat().st_size:
        raise InputError(
            f"The file {str(path)!r} says that it holds {rows:,} records of {columns:,} columns, more than "
            f"{MOST_CELLS:,} values for each of its bytes, which is how harmful files are made. If you trust it, write "
            "it again without compression."
        )


ADDRESSES = 7 << 28
"""Bytes of addresses that the libraries take; `guard.LEAST_ADDRESSES` is the same number."""


def refuse_for_addresses(path: Path, more: int) -> None:
    """Refuse a file for which the process may not have enough addresses: libraries end it then, without a word."""
    limit, wanted = resource.getrlimit(resource.RLIMIT_AS)[0], ADDRESSES + more
    if limit != resource.RLIM_INFINITY and wanted > limit:
        raise InputError(
            f"The file {str(path)!r} takes about {wanted >> 20:,} MiB of addresses, and this process may use "
            f"{limit >> 20:,} MiB (ulimit -v). Raise the limit, or take it away: ulimit -v unlimited."
        )


def open_zip(path: Path) -> zipfile.ZipFile:
    """Open a zip archive, of which every part is intact and none unpacks to something monstrous."""
    contents(path)  # a file that is missing or not readable is refused here
    where = f"The file {str(path)!r}"
    try:
        archive = zipfile.ZipFile(path)
        parts = archive.infolist()
        if any(part.flag_bits & 1 for part in parts):
            raise InputError(f"{where} is protected by a password. Unpack it, or save it without one.")
        packed, size = sum(part.compress_size for part in parts), sum(part.file_size for part in parts)
        if size > SMALL and size > MOST_UNPACKED * packed:
            raise _monstrous(where)
        damaged = archive.testzip() is not None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError, ValueError):
        damaged, archive = True, None
    if damaged or archive is None:
        raise InputError(f"{where} is not an intact zip archive. Copy it again or check its name.")
    return archive


def read_file(path: Path, _ending: str, *, codebook: Codebook | None, weight: str | None, **more: Any) -> Data:
    """Read the one data file of an archive; other files, such as a description, do not matter."""
    from quadrille.io import read_as

    with open_zip(path) as archive, scratch() as folder:
        names = [name for name in archive.namelist() if _is_data(name)]
        if len(names) != 1:
            what = f"holds {len(names):,} data files, and one is read" if names else "holds no data file"
            raise InputError(f"The archive {str(path)!r} {what}. Unpack it, and name the file.")
        inside = folder / PurePosixPath(names[0]).name
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
