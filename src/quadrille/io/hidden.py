"""The hidden names under which results are prepared, and what a process that was killed has left of them."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

PREFIX = ".quadrille-"
OLD = "old"
"""The folder inside a hidden one where that waits which is being replaced."""

_NAME = re.compile(re.escape(PREFIX) + r"([0-9a-f]{12})-([1-9]\d{0,8})-[0-9a-f]{16}")


def hidden(folder: Path) -> Path:
    """Return a new hidden name; it tells the machine and the process, so that leftovers can be recognised."""
    return folder / f"{PREFIX}{_here()}-{os.getpid()}-{secrets.token_hex(8)}"


@cache
def _here() -> str:
    """Return a mark of this machine and its name space of processes: elsewhere a process number means nothing."""
    parts = [os.uname().nodename]
    with suppress(OSError):
        parts.append(Path("/etc/machine-id").read_text(encoding="utf-8"))
    with suppress(OSError):
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def sweep(folder: Path) -> None:
    """Remove the leftovers of processes of this machine that are gone, unless one holds what was being replaced."""
    for path in _leftovers(folder):
        with suppress(OSError):
            if not _stale(path.name) or (path / OLD).exists():
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()


def waiting(path: Path) -> Path | None:
    """Return where the folder lies that a killed process has moved aside from `path`, if there is one."""
    for leftover in _leftovers(path.parent):
        with suppress(OSError):
            if (leftover / OLD / path.name).is_dir():
                return leftover / OLD / path.name
    return None


def _leftovers(folder: Path) -> Iterator[Path]:
    with suppress(OSError), os.scandir(folder) as entries:
        yield from [Path(entry.path) for entry in entries if entry.name.startswith(PREFIX)]


def _stale(name: str) -> bool:
    """Tell whether the process that made a name has certainly gone."""
    found = _NAME.fullmatch(name)
    if found is None or found[1] != _here():
        return False
    try:
        os.kill(int(found[2]), 0)
    except ProcessLookupError:
        return True
    except OSError:  # it is there, and belongs to somebody else
        return False
    return False
