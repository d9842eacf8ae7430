"""How long things are kept, and how they are destroyed.

Overwriting reaches what the file system lets it reach: on flash storage and on systems that write copies, only an
encrypted volume whose key is destroyed is sure.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from quadrille.studio import jobs
from quadrille.studio.jobs import RETAINED
from quadrille.studio.store import Project, Store, User

_FOLDERS = {
    "source": ("source", "work", "results"),
    "studies": ("studies",),
    "reports": ("reports",),
    "releases": ("releases",),
}
_CHUNK = 1 << 20
LIMIT_NOTE = (
    "Files were overwritten and removed. On flash storage and on file systems that write copies, only an encrypted "
    "volume whose key is destroyed is sure."
)


def days(store: Store) -> dict[str, int]:
    """Return for how many days each kind is kept; 0 is for ever."""
    return {kind: int(store.setting(f"keep {kind}", "0")) for kind in RETAINED}


def set_days(store: Store, by: User | str, kind: str, number: int) -> None:
    """Keep a kind for some days, or 0 for ever."""
    with store.writing():
        store.set(f"keep {kind}", str(number))
        store.record(by, "retention changed", detail={"kind": kind, "days": number})


def queue(store: Store) -> int:
    """Ask for what was kept long enough to be shredded; return how many projects that concerns."""
    asked = 0
    for kind, number in days(store).items():
        if not number:
            continue
        before = store.now() - 86_400 * number
        for row in store.db.execute("SELECT id FROM projects WHERE changed < ?", (before,)).fetchall():
            project = store.project(row["id"])
            owner = store.user(project.owner)
            if owner is not None and any(files(store, project, kind)):
                key = f"retention-{project.id}-{kind}-{project.version}"
                jobs.submit(store, owner, project, "shred", {"what": kind}, key=key)
                asked += 1
    return asked


def files(store: Store, project: Project, what: str, names: Sequence[str] | None = None) -> Iterator[Path]:
    """Yield the files of a kind; `names` are the first parts of their paths."""
    for name in _FOLDERS[what]:
        folder = store.home.project(project.id) / name
        for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
            if path.is_file() and not path.is_symlink():
                first = path.relative_to(folder).parts[0]
                if names is None or first in names or first.partition(".")[0] in names:
                    yield path


def shred(path: Path) -> tuple[int, str]:
    """Overwrite and remove a file; return its size and SHA-256 as it was."""
    digest, size = hashlib.sha256(), path.stat().st_size
    with path.open("r+b") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
        file.seek(0)
        left = size
        while left > 0:
            file.write(os.urandom(min(_CHUNK, left)))
            left -= _CHUNK
        file.flush()
        os.fsync(file.fileno())
    path.unlink()
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return size, digest.hexdigest()


def shred_all(store: Store, project: Project, what: str, names: Sequence[str] | None = None) -> dict[str, object]:
    """Shred the files of a kind and return what they were."""
    hashes: dict[str, str] = {}
    total = 0
    base = store.home.project(project.id)
    for path in list(files(store, project, what, names)):
        size, digest = shred(path)
        hashes[str(path.relative_to(base))] = digest
        total += size
    for folder in _FOLDERS[what]:
        for each in sorted((base / folder).rglob("*"), reverse=True):
            if each.is_dir():
                with suppress(OSError):
                    each.rmdir()
    with store.writing() as db:
        if what == "source" and names is None and hashes:
            db.execute("UPDATE projects SET source = '', version = version + 1 WHERE id = ?", (project.id,))
        if what == "studies":
            gone = [
                row["id"] for row in db.execute("SELECT id FROM studies WHERE project = ?", (project.id,)).fetchall()
            ]
            for study in gone:
                if not (base / "studies" / str(study)).exists():
                    db.execute("DELETE FROM studies WHERE id = ?", (study,))
        store.record("worker", "shredded", project.id, {"what": what, "sha256": hashes})
    return {"files": len(hashes), "bytes": total, "sha256": hashes, "note": LIMIT_NOTE}


def remove_project(store: Store, by: User, project: Project) -> None:
    """Shred everything of a project and forget it; the audit keeps that it was there."""
    for what in RETAINED:
        shred_all(store, project, what)
    shutil.rmtree(store.home.project(project.id), ignore_errors=True)
    with store.writing() as db:
        for table in ("documents", "studies", "jobs", "comments"):
            db.execute(f"DELETE FROM {table} WHERE project = ?", (project.id,))
        db.execute("DELETE FROM projects WHERE id = ?", (project.id,))
        store.record(by, "project removed", project.id)
