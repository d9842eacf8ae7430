"""Files on their way in and out: streamed, hashed and counted as they come; what can be fetched has names of a list."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import zlib
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from pathlib import Path

from anyio import to_thread
from fastapi import Request, Response
from fastapi.responses import FileResponse
from starlette.requests import ClientDisconnect

from quadrille.errors import InputError
from quadrille.studio import jobs, users
from quadrille.studio.jobs import ENDINGS, ending_of, is_below
from quadrille.studio.store import Project, Store, User, private
from quadrille.studio.web import SANDBOX, Problem, not_found
from quadrille.study.store import Store as StudyStore

MOST_UNPACKED, UNPACKED_TIMES, ALWAYS_UNPACKED = 8 << 30, 20, 256 << 20
"""A packed file may unpack to 8 GiB, and to no more than 20 times its size, or to 256 MiB where that is more."""
MOST_NAME = 300
CATALOG = "catalog.sas7bcat"


class Unpacked:
    """Counts what a gzip stream unpacks to, without keeping it."""

    def __init__(self) -> None:
        self._unpack = zlib.decompressobj(wbits=31)
        self.packed = self.size = 0

    def add(self, chunk: bytes) -> None:
        """Take in a part; refuse a file that unpacks to too much."""
        self.packed += len(chunk)
        left = chunk
        try:
            while left:
                self.size += len(self._unpack.decompress(left, 1 << 20))
                most = min(MOST_UNPACKED, max(UNPACKED_TIMES * self.packed, ALWAYS_UNPACKED))
                if self.size > most:
                    raise Problem(
                        413,
                        f"This file unpacks to more than {most >> 20:,} MiB.",
                        where="source",
                        do="Unpack it yourself and check what is in it, or have the limit of the studio raised.",
                    )
                left = self._unpack.unconsumed_tail
                if self._unpack.eof:
                    left = self._unpack.unused_data.lstrip(b"\0")
                    self._unpack = zlib.decompressobj(wbits=31)
        except zlib.error:
            raise Problem(
                422, "This file is not packed by gzip, or is damaged.", where="source", do="Pack it again."
            ) from None


def checked_name(name: str) -> str:
    """Refuse a name that no file to be read has; it is shown and never used as a path."""
    base = name.replace("\\", "/").rpartition("/")[2].strip()
    if not base or len(base) > MOST_NAME:
        raise Problem(422, f"A file needs a name of 1 to {MOST_NAME} characters.", where="name", do="Rename the file.")
    if ending_of(base) is None:
        text = f"This ending is not known. Known: {', '.join(ENDINGS)}."
        raise Problem(415, text, where="name", do="Convert the file, or give it its right ending.")
    return base


async def take_upload(request: Request, store: Store, by: User, project: Project, name: str, limit: int) -> Project:
    """Stream the body of a request into the project as its data; nothing is left of one that was cut or refused."""
    base = checked_name(name)
    size = request.headers.get("content-length", "")
    if size.isdigit() and int(size) > limit:
        raise _too_large(limit)
    folder = private(store.home.project(project.id) / "source")
    part = folder / f"{secrets.token_hex(8)}.part"
    try:
        size, digest = await _stream(request.stream(), part, limit, packed=base.lower().endswith(".gz"))
        asked = request.headers.get("digest", "")
        if asked and asked.lower() != f"sha-256={digest}":
            raise Problem(422, "The file did not arrive as it was sent.", where="Digest", do="Send it again.")
        if size == 0:
            raise Problem(422, "This file is empty.", where="source", do="Choose another one.")
        return await to_thread.run_sync(_put_in_place, store, by, project, part, base, size, digest)
    except ClientDisconnect:
        raise Problem(400, "The connection was cut.", do="Send the file again.") from None
    except OSError as error:
        text = f"The file cannot be kept: {error.strerror}."
        raise Problem(507, text, where="source", do="Make room on the disk of the studio.") from None
    finally:
        with suppress(OSError):
            part.unlink()


def _too_large(limit: int) -> Problem:
    text = f"This file is larger than {limit / (1 << 20):,.0f} MiB."
    return Problem(
        413, text, where="source", do="Have the limit of the studio raised, or open the file on its machine."
    )


async def _stream(chunks: AsyncIterator[bytes], part: Path, limit: int, *, packed: bool) -> tuple[int, str]:
    """Write what comes, and return its size and hash."""
    digest, size = hashlib.sha256(), 0
    unpacked = Unpacked() if packed else None
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:

        def keep(chunk: bytes) -> None:
            digest.update(chunk)
            if unpacked is not None:
                unpacked.add(chunk)
            file.write(chunk)

        async for chunk in chunks:
            size += len(chunk)
            if size > limit:
                raise _too_large(limit)
            await to_thread.run_sync(keep, chunk)
        file.flush()
        os.fsync(file.fileno())
    return size, digest.hexdigest()


def _put_in_place(store: Store, by: User, project: Project, part: Path, name: str, size: int, digest: str) -> Project:
    stored = f"data{ending_of(name)}"
    for old in part.parent.iterdir():
        if old.name.startswith("data.") and old.suffix != ".part":
            old.unlink()
    part.replace(part.parent / stored)
    return _opened(store, by, project, stored, name, size, digest)


def _opened(
    store: Store, by: User, project: Project, source: str, name: str, size: int = 0, digest: str = ""
) -> Project:
    """Note the data of a project; what was known of other data is void."""
    values: dict[str, object] = {"source": source, "file": name, "size": size, "sha256": digest, "fingerprint": ""}
    values |= {"records": 0, "columns": 0, "study": None, "candidate": None, "choice": {}}
    with store.writing():
        if store.document(project.id, "codebook") is not None:
            store.put_document("studio", project.id, "codebook", "")  # none: it is guessed anew
        detail = {"bytes": size, "sha256": digest}
        return store.change_project(by, project.id, "data opened", values, detail=detail)


def open_bundled(store: Store, by: User, project: Project, name: str) -> Project:
    """Take a bundled file as the data of a project."""
    if not name.isidentifier():
        raise Problem(422, "There is no such bundled file.", where="dataset", do="Choose one of the list.")
    return _opened(store, by, project, f"dataset:{name}", name)


def open_path(store: Store, by: User, project: Project, path: str, root: Path | None) -> Project:
    """Take a file of this machine as the data of a project, without a copy: only below the folder that is allowed."""
    if root is None:
        raise Problem(403, "Files of this machine cannot be opened here.", where="path", do="Upload the file.")
    named = Path(path) if Path(path).is_absolute() else root / path
    if "\0" in path or not is_below(named, root) or not named.is_file():
        raise Problem(422, "There is no such file below the folder that may be opened.", where="path", do="Check it.")
    real = named.resolve()
    return _opened(store, by, project, str(real), checked_name(real.name), real.stat().st_size)


def listed(root: Path | None, folder: str) -> list[dict[str, object]]:
    """Return what can be opened in a folder of this machine: [{"name", "path", "folder", "size"}]."""
    if root is None:
        return []
    here = root / folder
    if not is_below(here, root) or not here.is_dir():
        return []
    rows: list[dict[str, object]] = []
    with suppress(OSError):
        for path in sorted(here.iterdir(), key=lambda each: (not each.is_dir(), each.name.lower()))[:1000]:
            inside = not path.name.startswith(".") and is_below(path, root)
            if inside and (path.is_dir() or ending_of(path.name)):
                size = 0 if path.is_dir() else path.stat().st_size
                shown = str(path.relative_to(root))
                rows.append({"name": path.name, "path": shown, "folder": path.is_dir(), "size": size})
    return rows


# --- what is named on the command line -------------------------------------------------------------------------------

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
    project = _project_of(store, user, name if name.startswith(BUNDLED) else str(Path(name).resolve()))
    return f"/projects/{project.id}/data"


def _project_of(store: Store, user: User, source: str) -> Project:
    """Return the project of a source: the one that there is, or a new one."""
    for project in store.projects(user):
        if project.source == source and project.owner == user.id:
            return project
    return _new_project_of(store, user, source)


def _new_project_of(store: Store, user: User, source: str) -> Project:
    bundled = source.startswith(BUNDLED)
    file = source.removeprefix(BUNDLED) if bundled else checked_name(Path(source).name)
    project = store.create_project(user, file)
    values: dict[str, object] = {"source": source, "file": file, "size": 0 if bundled else Path(source).stat().st_size}
    project = store.change_project(user, project.id, "data opened", values)
    jobs.submit(store, user, project, "profile")
    return project


def _open_study(store: Store, user: User, path: Path) -> str:
    """Copy a study into a project of its own, where it can be looked at, compared and released from.

    A project of the same data may have another codebook and another job, which stay as they are.
    """
    with closing(StudyStore.open(path)) as study:
        known = study.source()
    if not known.get("file"):
        raise InputError(
            f"The study {str(path)!r} does not know its data file. Search with a job file, or open the data."
        )
    file = str(known["file"])
    project = _new_project_of(store, user, file if file.startswith(BUNDLED) else str(Path(file).resolve()))
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


# --- on their way out ------------------------------------------------------------------------------------------------

KINDS = ("document", "report", "public", "confidential")
"""document: codebook.toml, job.toml, policy.toml; report: NUMBER.html; public, confidential: files of the release."""
_DOCUMENTS = {"codebook.toml": "codebook", "job.toml": "job", "policy.toml": "policy"}
_TYPES = {".toml": "text/plain", ".md": "text/plain", ".json": "application/json", ".csv": "text/csv"}


def fetch(store: Store, by: User, project: Project, kind: str, name: str, *, sure: bool = False) -> Response:
    """Return a file of a project that the user may see; every look at a report or a release stands in the audit."""
    if kind not in KINDS:
        not_found("file")
    if kind == "document":
        return _document(store, project, name)
    if kind == "report":
        return _report(store, by, project, name)
    if kind == "confidential":
        if by.id != project.owner or not by.has("analyst"):
            not_found("file")
        if not sure:
            text = "This file undoes the protection of the release when it leaks."
            raise Problem(409, text, where="sure", do="Ask for it again with sure=true.")
    path = released_file(store, project, kind, name)
    store.record(by, f"{kind} file fetched", project.id, {"file": name})
    return _sent(path, name)


def released_file(store: Store, project: Project, kind: str, name: str) -> Path:
    """Return a file of the latest release."""
    job = store.latest_job(project.id, "release", done=True)
    result = store.result(job)
    if job is None or result is None or name not in result["files"].get(kind, []):
        not_found("file")
    path = store.home.release(project.id, job.id) / kind / name
    if not path.is_file():
        not_found("file")
    return path


def _document(store: Store, project: Project, name: str) -> Response:
    kind = _DOCUMENTS.get(name)
    document = None if kind is None else store.document(project.id, kind)
    if document is None or not document.text:
        not_found("file")
    text = jobs.job_text(store, project) if kind == "job" else document.text
    head = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type="text/plain; charset=utf-8", headers=head)


def _report(store: Store, by: User, project: Project, name: str) -> Response:
    """Return a report: it has scripts of its own, and so no origin, no cookie and no request."""
    found = re.fullmatch(r"([0-9]{1,15})\.html", name)
    path = None if found is None else store.home.report(project.id, int(found[1]))
    if path is None or not path.is_file():
        not_found("report")
    store.record(by, "report seen", project.id, {"report": name})
    return FileResponse(path, media_type="text/html; charset=utf-8", headers={"Content-Security-Policy": SANDBOX})


def _sent(path: Path, name: str) -> Response:
    kind = _TYPES.get(path.suffix, "application/octet-stream")
    return FileResponse(path, media_type=kind, filename=name)
