"""The bytes of a file, with clear errors for what cannot be read."""

from __future__ import annotations

import gzip
import mmap
import os
import zlib
from pathlib import Path

from quadrille.errors import InputError

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
