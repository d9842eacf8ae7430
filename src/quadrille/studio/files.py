"""What can be fetched from a project: documents, reports, releases. Names come from fixed lists, never from a path."""

from __future__ import annotations

import re
from pathlib import Path

from fastapi import Response
from fastapi.responses import FileResponse

from quadrille.studio import jobs
from quadrille.studio.store import Project, Store, User
from quadrille.studio.web import SANDBOX, Problem, not_found

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
