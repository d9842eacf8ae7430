"""Files and folders that appear whole or not at all, whatever happens on the way; results as such files."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from io import BytesIO
from math import isfinite, isnan
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, BinaryIO, cast

from quadrille.errors import OutputError, unless
from quadrille.io import RELEASED
from quadrille.text import large

if TYPE_CHECKING:
    import polars as pl

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


PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600

NOTE, INSECURE_NOTE = "methods.md", "methods.INSECURE.md"
"""The methods note of a release; its name says so where the seed can be guessed."""

CONTENTS = {
    "public": (*(f"data.{word}" for word in RELEASED), "codebook.toml", NOTE, INSECURE_NOTE),
    "confidential": (
        *("recipe.json", "account.json", "scores.json", "hashes.json", "policy.json", "guarantee.json"),
        *("plan.parquet", "order.parquet", "order.json", "targets.parquet", "units.parquet", "tables.parquet"),
        *("dossier.md", "readers"),
    ),
    "readers": ("analyst.html", "chair.html", "board.html"),
}
"""What the folders of a release hold. Nothing else is ever deleted with them."""


Contents = bytes | memoryview | Callable[[BinaryIO], None]
"""What a file is to hold, or what writes it piece by piece."""


@contextmanager
def new_folder(path: Path, *, overwrite: bool = False, holds: Collection[str] = ()) -> Generator[Path]:
    """Yield an empty folder that takes the place of `path` when the block ends well, and else disappears.

    A folder that is not empty stands in the way unless `overwrite` is set and it holds nothing but `holds`, where the
    name of a folder of a release stands for what that holds. Everything is prepared in a hidden folder
    next to `path` that only its owner can enter.
    """
    check_free(path, overwrite=overwrite, holds=holds)
    path = path.resolve()
    staging = hidden(path.parent)
    parents = [parent for parent in path.parents if not parent.exists()]
    try:
        with _told(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            fresh = private_folder(staging) / "new"
            fresh.mkdir()
            yield fresh
            sync_tree(fresh)
            _put_in_place(fresh, path, aside=staging / OLD / path.name if overwrite else None)
        parents = []
    finally:
        _clear_away(staging, path, parents)
    sweep(path.parent)


def check_free(path: Path, *, overwrite: bool, holds: Collection[str]) -> None:
    """Refuse a place where something else already is."""
    with _told(path):
        _check_parents(path.absolute())
        if not path.exists():
            _check_waiting(path.absolute())
            return
        if not path.is_dir():
            raise OutputError(
                f"Cannot write the folder {str(path)!r}: a file of that name exists. Choose another name."
            )
        if path.resolve() == Path.cwd():
            raise OutputError("Cannot write into the current folder itself. Name a folder inside it.")
        if not overwrite and any(path.iterdir()):
            text = f"The folder {str(path)!r} exists and is not empty. Choose another one, or overwrite it with"
            raise unless(OutputError, text, "overwrite")
        other = next(_others(path, holds), None)
    if other is not None:
        raise OutputError(
            f"The folder {str(path)!r} holds other files than a release does, such as "
            f"{str(other.relative_to(path))!r}, so it is not overwritten. Choose another folder."
        )


def _others(folder: Path, holds: Collection[str]) -> Iterator[Path]:
    """Yield what a folder holds besides what it should, at all levels."""
    for entry in sorted(folder.iterdir()):
        known = entry.name in CONTENTS
        if entry.name not in holds or entry.is_symlink() or entry.is_dir() != known:
            yield entry
        elif known:
            yield from _others(entry, CONTENTS[entry.name])


def _check_parents(path: Path) -> None:
    nearest = next((parent for parent in path.parents if parent.exists()), path)
    if not nearest.is_dir():
        raise OutputError(f"Cannot write {str(path)!r}: {str(nearest)!r} is a file. Choose another place.")


def _check_waiting(path: Path) -> None:
    """Refuse to go on where a run was killed at the one moment between moving the old folder and the new one."""
    old = waiting(path)
    if old is not None:
        raise OutputError(
            f"An earlier run was killed while it replaced {str(path)!r}. What was there is whole, in {str(old)!r}: "
            f"move it back, or delete {str(old.parents[1])!r}, then run again."
        )


def write_file(path: Path, contents: Contents, *, private: bool = False) -> str:
    """Write a new file and wait until it is on the disk; a private one is readable by its owner only.

    Returned is its SHA-256, worked out while it is written.
    """
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE if private else 0o666)
    with os.fdopen(handle, "wb") as file:
        if private:
            os.fchmod(handle, PRIVATE_FILE)
        hashed = _Hashed(file)
        if callable(contents):
            contents(cast("BinaryIO", hashed))
        else:
            hashed.write(contents)
        file.flush()
        os.fsync(handle)
    return hashed.digest.hexdigest()


class _Hashed:
    """A file to write to, and the hash of what was written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.digest = file, hashlib.sha256()

    def write(self, part: bytes | memoryview) -> int:
        """Write some bytes."""
        self.digest.update(part)
        return self._file.write(part)

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self._file.tell()


@contextmanager
def new_file(path: Path, contents: bytes | memoryview, *, private: bool = False) -> Generator[None]:
    """Write a file that takes the place of `path` when the block ends well, and else disappears."""
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "a device or a pipe"
        raise OutputError(f"Cannot write {str(path)!r}: it is {kind}, not a file. Choose another name.")
    temporary = hidden(path.parent)
    try:
        with _told(path):
            write_file(temporary, contents, private=private)
        yield
        with _told(path):
            temporary.replace(path)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    with suppress(OSError):  # The file stands already; some file systems cannot sync a folder.
        _sync(path.parent)
    sweep(path.parent)


def private_folder(path: Path) -> Path:
    """Make a folder that only its owner can enter, whatever the umask is."""
    path.mkdir(mode=PRIVATE_FOLDER)
    path.chmod(PRIVATE_FOLDER)
    return path


def temporary_folder() -> Path:
    """Return the folder for files that must not stay."""
    try:
        return Path(gettempdir())
    except FileNotFoundError:
        raise OutputError(
            "No folder for temporary files can be written. Make one, and name it by the variable TMPDIR."
        ) from None


@contextmanager
def scratch() -> Generator[Path]:
    """Yield a folder for files that must not stay, closed to others; what a killed process left is removed, too."""
    place = temporary_folder()
    folder = private_folder(hidden(place))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        sweep(place)


def sync_tree(folder: Path) -> None:
    """Make the names inside a folder survive a power cut; its files are synced when they are written."""
    for each in (*(entry for entry in folder.iterdir() if entry.is_dir()), folder):
        _sync(each)


@contextmanager
def _told(path: Path) -> Generator[None]:
    """Turn what the operating system says into the path and the reason."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise OutputError(
            f"Cannot write {str(path)!r}: {reason}. Nothing was changed there; make room or choose another place."
        ) from None


def _put_in_place(fresh: Path, path: Path, *, aside: Path | None) -> None:
    """Rename the finished folder; it and what it replaces change places at once where the system can do that."""
    if aside is None or not path.exists():
        fresh.rename(path)
    elif not _exchange(fresh, path):
        _replace(fresh, path, aside)
    with suppress(OSError):  # The release stands already; some file systems cannot sync a folder.
        _sync(path.parent)


def _exchange(one: Path, other: Path) -> bool:
    """Let two folders change places in one step; tell whether that was possible."""
    call = getattr(ctypes.CDLL(None), "renameat2", None)  # Linux; Python has no function of its own for it
    here, at_once = -100, 2  # AT_FDCWD and RENAME_EXCHANGE
    return call is not None and call(here, os.fsencode(one), here, os.fsencode(other), at_once) == 0


def _replace(fresh: Path, path: Path, aside: Path) -> None:
    """Rename in two steps; what is replaced waits aside, and comes back when the second one fails."""
    aside.parent.mkdir()
    path.rename(aside)
    try:
        fresh.rename(path)
    except BaseException:
        aside.rename(path)
        raise


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _clear_away(staging: Path, path: Path, parents: list[Path]) -> None:
    """Remove the hidden folder and the empty parents that were made for nothing; never the only old folder."""
    aside = staging / OLD / path.name
    if aside.exists() and not path.exists():
        with suppress(OSError):
            aside.rename(path)
        if not path.exists():
            raise OutputError(f"{str(path)!r} was moved to {str(aside)!r} and cannot be moved back. Do so by hand.")
    shutil.rmtree(staging, ignore_errors=True)
    for parent in parents:
        with suppress(OSError):
            parent.rmdir()
    if staging.exists():
        raise OutputError(
            f"The folder {str(staging)!r} cannot be removed. Delete it by hand: it may hold confidential files."
        )


_MOST_BITS = 14_000
"""Python writes whole numbers of up to 4,300 digits."""

TABLES = (".csv", ".parquet")
"""The endings of result tables."""


def as_json(document: object) -> str:
    """Write a document as JSON: an infinite number as the text "Infinity" or "-Infinity", NaN as null.

    A count too long for Python to write in digits is a text, too, such as "about 10^4515".

    >>> from quadrille.io.atomic import as_json
    >>> as_json({"value": float("inf")}).split()
    ['{', '"value":', '"Infinity"', '}']
    """
    return json.dumps(_finite(document), indent=2, ensure_ascii=False, allow_nan=False)


def _finite(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _finite(each) for name, each in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in cast("list[object]", value)]
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return large(value)
    if isinstance(value, float) and not isfinite(value):
        return None if isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def check_table(path: Path) -> None:
    """Refuse a name that does not end as a result table does."""
    if path.suffix.lower() not in TABLES:
        raise OutputError(f"Cannot write a table to {path.name!r}. The name must end in {' or '.join(TABLES)}.")


def write_table(frame: pl.DataFrame, path: Path) -> None:
    """Write a table of results, readable by its owner only; it appears whole or not at all."""
    check_table(path)
    buffer = BytesIO()
    write = frame.write_csv if path.suffix.lower() == ".csv" else frame.write_parquet
    write(buffer)
    with new_file(path, buffer.getvalue(), private=True):
        pass
