"""Bytes in, bytes out: clear errors for what cannot be read, and no half-written file."""

from __future__ import annotations

import gzip
import mmap
import os
import secrets
import zlib
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from quadrille.errors import InputError, OutputError

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
    except (gzip.BadGzipFile, zlib.error):
        raise InputError(f"The file {str(path)!r} is not intact gzip. Copy it again or check its name.") from None
    except OSError as error:
        raise InputError(f"Cannot read the file {str(path)!r}: {_reason(error)}. Check the path.") from None


@contextmanager
def replacing(path: Path) -> Generator[BinaryIO]:
    """Open a temporary file beside `path` that takes its place only when everything is safely written."""
    temporary = path.parent / f".{secrets.token_hex(8)}.tmp"
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise OutputError(
            f"Cannot write the file {str(path)!r}: {_reason(error)}. "
            "Make room or choose another place; nothing half-written is left."
        ) from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    with suppress(OSError):  # The file stands already; some file systems cannot sync a folder.
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__
