"""The bytes of a file, with clear errors for what cannot be read."""

from __future__ import annotations

import gzip
import mmap
import os
import zipfile
import zlib
from pathlib import Path

from quadrille.errors import InputError

MOST_UNPACKED = 200
SMALL = 100 * 2**20
"""Packed files that unpack to more bytes than this, and to more than 200 times their size, are refused as bombs."""

Buffer = bytes | mmap.mmap


def contents(path: Path) -> Buffer:
    """Return the contents of a file: mapped, not copied; or unpacked when its name ends in .gz."""
    try:
        with path.open("rb") as file:
            if path.name.lower().endswith(".gz"):
                return gzip.decompress(file.read())
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
            raise InputError(
                f"{where} unpacks to more than {MOST_UNPACKED} times its size, which is how harmful files are made. "
                "Unpack it yourself if you trust it."
            )
        damaged = archive.testzip() is not None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError, ValueError):
        damaged, archive = True, None
    if damaged or archive is None:
        raise InputError(f"{where} is not an intact zip archive. Copy it again or check its name.")
    return archive
