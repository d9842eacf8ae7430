"""Step 1, Data: open a file, and what it was taken for."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from quadrille.studio import files, jobs
from quadrille.studio.pages import page, working
from quadrille.studio.web import Problem, current, form_of, own_project, redirect, settings_of, store_of

router = APIRouter(include_in_schema=False)


@router.get("/projects/{project}/data")
def data(request: Request, project: str) -> Response:
    """Show what is in the file, or how to open one."""
    return shown(request, project)


def shown(request: Request, project: str, *, problem: Problem | None = None, path: str = "") -> Response:
    """Show the page, with what went wrong beside its field."""
    store, settings = store_of(request), settings_of(request)
    folder = request.query_params.get("folder", "")[:1000]
    found = own_project(request, project)
    job = store.latest_job(found.id, "profile") if found.source else None
    profile = store.result(store.latest_job(found.id, "profile", done=True)) if found.source else None
    command, written = jobs.drawer(store, found, "profile", {})
    catalogue = jobs.catalogue(settings.home) or {"datasets": []}
    return page(
        request,
        "data.html.j2",
        title="Data",
        project=found,
        step="data",
        status=200 if problem is None else problem.status,
        job=job,
        working=working(job),
        profile=profile,
        datasets=catalogue["datasets"],
        listed=[
            each for each in files.listed(settings.root, folder) if not (each["folder"] and each["path"] == folder)
        ],
        folder=folder,
        about=_about,
        root=settings.root is not None,
        limit=settings.limit,
        endings=",".join(jobs.ENDINGS),
        problem=problem,
        path=path,
        opening=not found.source
        or "again" in request.query_params
        or (job is not None and job.state == "failed" and profile is None),
        command=command if found.source else "quadrille inspect FILE",
        files=written,
    )


@router.post("/projects/{project}/data")
def choose(request: Request, project: str) -> Response:
    """Open a bundled file, or one of this machine."""
    found, sent = own_project(request, project), dict(form_of(request))
    store, user = store_of(request), current(request).user
    try:
        if "dataset" in sent:
            files.open_bundled(store, user, found, sent["dataset"])
        else:
            files.open_path(store, user, found, sent.get("path", ""), settings_of(request).root)
    except Problem as problem:
        return shown(request, project, problem=problem, path=sent.get("path", ""))
    jobs.submit(store, user, store.project(found.id), "profile")
    return redirect(f"/projects/{found.id}/data")


def _about(text: str) -> str:
    """Say what a bundled file is, from the first line of its documentation."""
    said = text.removeprefix("Return ").replace("`", "")
    return said[:1].upper() + said[1:]
