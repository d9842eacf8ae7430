"""Files and folders that appear whole or not at all, whatever happens on the way."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Collection, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from quadrille.errors import OutputError

PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600


@contextmanager
def new_folder(path: Path, *, overwrite: bool = False, holds: Collection[str] = ()) -> Generator[Path]:
    """Yield an empty folder that takes the place of `path` when the block ends well, and else disappears.

    A folder that is not empty stands in the way unless `overwrite` is set and it holds nothing but `holds`.
    Everything is prepared in a hidden folder beside `path` that only its owner can enter.
    """
    check_free(path, overwrite=overwrite, holds=holds)
    path = path.resolve()
    workshop = path.parent / f".quadrille-{secrets.token_hex(8)}"
    parents = [parent for parent in path.parents if not parent.exists()]
    try:
        with _told(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            fresh = private_folder(workshop) / "new"
            fresh.mkdir()
            yield fresh
            sync_tree(fresh)
            _put_in_place(fresh, path, aside=workshop / "old" if overwrite else None)
        parents = []
    finally:
        _clear_away(workshop, parents)


def check_free(path: Path, *, overwrite: bool, holds: Collection[str]) -> None:
    """Refuse a place where something else already is."""
    with _told(path):
        _check_parents(path.absolute())
        if not path.exists():
            return
        if not path.is_dir():
            raise OutputError(
                f"Cannot write the folder {str(path)!r}: a file of that name exists. Choose another name."
            )
        if path.resolve() == Path.cwd():
            raise OutputError("Cannot write into the current folder itself. Name a folder inside it.")
        found = {entry.name for entry in path.iterdir()}
    if found and not overwrite:
        raise OutputError(
            f"The folder {str(path)!r} exists and is not empty. Choose another one, or ask to overwrite it."
        )
    if found - set(holds):
        raise OutputError(
            f"The folder {str(path)!r} holds other files than a release does, so it is not overwritten. "
            "Choose another folder."
        )


def _check_parents(path: Path) -> None:
    nearest = next(parent for parent in path.parents if parent.exists())
    if not nearest.is_dir():
        raise OutputError(f"Cannot write {str(path)!r}: {str(nearest)!r} is a file. Choose another place.")


def write_file(path: Path, contents: bytes | memoryview, *, private: bool = False) -> None:
    """Write a new file and wait until it is on the disk; a private one is readable by its owner only."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE if private else 0o666)
    with os.fdopen(handle, "wb") as file:
        if private:
            os.fchmod(handle, PRIVATE_FILE)
        file.write(contents)
        file.flush()
        os.fsync(handle)


@contextmanager
def new_file(path: Path, contents: bytes | memoryview, *, private: bool = False) -> Generator[None]:
    """Write a file that takes the place of `path` when the block ends well, and else disappears."""
    temporary = path.parent / f".quadrille-{secrets.token_hex(8)}"
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


def private_folder(path: Path) -> Path:
    """Make a folder that only its owner can enter, whatever the umask is."""
    path.mkdir(mode=PRIVATE_FOLDER)
    path.chmod(PRIVATE_FOLDER)
    return path


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
    """Rename the finished folder; what it replaces waits aside and comes back when that fails."""
    if aside is not None and path.exists():
        path.rename(aside)
        try:
            fresh.rename(path)
        except BaseException:
            aside.rename(path)
            raise
    else:
        fresh.rename(path)
    with suppress(OSError):  # The release stands already; some file systems cannot sync a folder.
        _sync(path.parent)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _clear_away(workshop: Path, parents: list[Path]) -> None:
    """Remove the hidden folder and the empty parents that were made for nothing."""
    shutil.rmtree(workshop, ignore_errors=True)
    for parent in parents:
        with suppress(OSError):
            parent.rmdir()
    if workshop.exists():
        raise OutputError(
            f"The folder {str(workshop)!r} cannot be removed. Delete it by hand: it may hold confidential files."
        )
