"""Memory for large columns: plain arrays as long as they fit, else files without a name that the system pages.

A file loses its name as soon as it is open, so whatever ends the process takes it along. Its room on the disk is taken
at once: a disk that is too small is reported before anything is written, and not in the middle.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quadrille.errors import OutputError, ParameterError
from quadrille.io.atomic import PRIVATE_FILE, hidden, temporary_folder

MEMORY = "QUADRILLE_MEMORY"
"""The variable that says how much memory columns may take; without it, half of what is free."""

_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT]?)(i?)B?", re.IGNORECASE)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def bytes_of(text: str, name: str = MEMORY) -> int:
    """Return how many bytes a size such as "8GB" or "1.5 GiB" is.

    >>> from quadrille.io.space import bytes_of
    >>> bytes_of("8GB"), bytes_of("1.5 GiB"), bytes_of("4096")
    (8000000000, 1610612736, 4096)
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ParameterError(f"{name} must be a size such as 8GB or 500MB. Got {text!r}.")
    number, power, binary = found.groups()
    return round(float(number) * (1024 if binary else 1000) ** _POWERS[power.upper()])


def memory_limit() -> int:
    """Return how many bytes columns may take: what the user says, else half of what is free."""
    said = os.environ.get(MEMORY, "")
    return bytes_of(said) if said else free_memory() // 2


def free_memory() -> int:
    """Return how many bytes the machine, or the container that this process is in, has left."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            free = int(line.split()[1]) * 1024
    most, used = (" ".join(_lines(f"/sys/fs/cgroup/memory.{name}")) for name in ("max", "current"))
    return max(min(free, int(most) - int(used)), 0) if most.isdigit() and used.isdigit() else free


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return []


def give_back() -> None:
    """Give freed memory back to the system where the C library can; by itself it keeps what was had in small parts."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


class Space:
    """Arrays for one piece of work: in memory up to `limit` bytes, then in files of a folder."""

    def __init__(self, limit: int | None = None, folder: Path | None = None) -> None:
        self._left = memory_limit() if limit is None else limit
        self._folder = folder

    def empty(self, n: int, dtype: Any) -> NDArray[Any]:
        """Return an array whose values are still to be written."""
        size = n * np.dtype(dtype).itemsize
        if size <= max(self._left, 0) or not size:
            self._left -= size
            return np.empty(n, dtype=dtype)
        return np.frombuffer(_unnamed(self._folder or temporary_folder(), size), dtype=dtype)


def _unnamed(folder: Path, size: int) -> mmap.mmap:
    """Return a file of this size that only this process can reach, and that is gone when the process is."""
    path = hidden(folder)
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
        try:
            path.unlink()
            os.posix_fallocate(handle, 0, size)  # a file with holes would end the process when the disk is full
            return mmap.mmap(handle, size)
        finally:
            os.close(handle)
    except OSError as error:
        raise OutputError(
            f"The columns are larger than the memory that they may take, and the folder {str(folder)!r} cannot hold "
            f"{size / 1e9:.1f} GB for them: {error.strerror or type(error).__name__}. Make room there, name another "
            f"folder by TMPDIR, or allow more memory ({MEMORY})."
        ) from None
