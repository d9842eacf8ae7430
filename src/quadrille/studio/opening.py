"""Opening a file or a study of this machine from the command line, in a project of its own."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

from quadrille.errors import InputError
from quadrille.studio import jobs, users
from quadrille.studio.limits import checked_name
from quadrille.studio.store import Project, Store, User
from quadrille.study.store import Store as StudyStore

BUNDLED = "dataset:"


def is_study(path: Path) -> bool:
    """Whether a file is a data base, as studies are."""
    with path.open("rb") as file:
        return file.read(15) == b"SQLite format 3"


def refuse_unknown(name: str) -> None:
    """Refuse what is not there, before anything is started."""
    if not name.startswith(BUNDLED) and not Path(name).is_file():
        raise InputError(f"There is no file {name!r}. Check the path, or name a bundled one such as dataset:cps8d.")
    if not name.startswith(BUNDLED) and not is_study(Path(name)) and jobs.ending_of(name) is None:
        raise InputError(f"The file {name!r} has no ending that is known: {', '.join(jobs.ENDINGS)}.")


def open_named(store: Store, name: str) -> str:
    """Open a bundled file, a data file or a study; return the page to begin with."""
    user = users.local_user(store)
    if not name.startswith(BUNDLED) and is_study(Path(name)):
        return _open_study(store, user, Path(name).absolute())
    project = _opened(store, user, name if name.startswith(BUNDLED) else str(Path(name).resolve()))
    return f"/projects/{project.id}/data"


def _opened(store: Store, user: User, source: str) -> Project:
    """Return the project of a source: the one that there is, or a new one."""
    for project in store.projects(user):
        if project.source == source and project.owner == user.id:
            return project
    bundled = source.startswith(BUNDLED)
    file = source.removeprefix(BUNDLED) if bundled else checked_name(Path(source).name)
    project = store.create_project(user, file)
    values: dict[str, object] = {"source": source, "file": file, "size": 0 if bundled else Path(source).stat().st_size}
    project = store.change_project(user, project.id, "data opened", values)
    jobs.submit(store, user, project, "profile")
    return project


def _open_study(store: Store, user: User, path: Path) -> str:
    """Copy a study into the project of its data, where it can be looked at, compared and released from."""
    with closing(StudyStore.open(path)) as study:
        known = study.source()
    if not known.get("file"):
        raise InputError(
            f"The study {str(path)!r} does not know its data file. Search with a job file, or open the data."
        )
    file = str(known["file"])
    project = _opened(store, user, file if file.startswith(BUNDLED) else str(Path(file).resolve()))
    book = known.get("codebook")
    with store.writing():
        if book:
            store.put_document(user, project.id, "codebook", Path(str(book)).read_text(encoding="utf-8"))
        row = store.add_study(project.id)
    target = store.home.study(row)
    shutil.copyfile(path, target)
    target.chmod(0o600)
    jobs.submit(store, user, project, "search", {"study": row.id})
    store.change_project(user, project.id, "study opened", {"study": row.id})
    return f"/projects/{project.id}/search"
