"""Step 2, Roles: what each column is, and how it is recoded; the profile is worked out anew after each change."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from quadrille.codebook import KINDS, ROLES
from quadrille.studio import jobs, roles_form
from quadrille.studio.pages import page, working
from quadrille.studio.store import ChangedError
from quadrille.studio.web import current, form_of, own_project, redirect, store_of

router = APIRouter(include_in_schema=False)


@router.get("/projects/{project}/roles")
def roles(request: Request, project: str) -> Response:
    """Show the columns."""
    return shown(request, project)


def shown(
    request: Request,
    project: str,
    *,
    status: int = 200,
    text: str | None = None,
    fault: tuple[str, str] | None = None,
    conflict: bool = False,
) -> Response:
    """Show the page; `text` is a codebook that could not be kept, with what is wrong with it."""
    store, found = store_of(request), own_project(request, project)
    job = store.latest_job(found.id, "profile")
    profile = store.result(store.latest_job(found.id, "profile", done=True))
    held = store.document(found.id, "codebook")
    if profile is None:
        return redirect(f"/projects/{found.id}/data")
    start = _start(request, len(profile["columns"]))
    book = roles_form.document(text if text is not None else held.text if held else profile["codebook"])
    return page(
        request,
        "roles.html.j2",
        title="Roles",
        project=found,
        step="roles",
        status=status,
        job=job,
        working=working(job),
        rows=roles_form.rows(profile, book, start),
        columns=len(profile["columns"]),
        start=start,
        shown=roles_form.SHOWN,
        edit=_number(request.query_params.get("edit", "")),
        kinds=KINDS,
        roles=ROLES,
        version=0 if held is None else held.version,
        by="" if held is None or held.user == 0 else "you",
        fault=fault,
        conflict=conflict,
        theirs=held.text if conflict and held else "",
        ours=text or "",
        hints=profile["hints"],
        profile=profile,
        command="\n".join(jobs.commands(found, "profile", {})),
        files=[("codebook.toml", held.text if held else profile["codebook"])],
    )


def _start(request: Request, columns: int) -> int:
    given = request.query_params.get("from", "0")
    return min(int(given), max(columns - 1, 0)) if given.isdecimal() and len(given) < 7 else 0


@router.post("/projects/{project}/roles")
def save(request: Request, project: str) -> Response:
    """Keep a new version of the codebook and look at the file again."""
    store, found, user = store_of(request), own_project(request, project), current(request).user
    profile = store.result(store.latest_job(found.id, "profile", done=True))
    if profile is None:
        return redirect(f"/projects/{found.id}/data")
    sent, held = dict(form_of(request)), store.document(found.id, "codebook")
    base = None if held is None else store.document(found.id, "codebook", _version(sent.get("version", "")))
    book = roles_form.document(base.text if base else profile["codebook"])
    text = roles_form.changed(book, profile, sent)
    names = [each["name"] for each in profile["columns"]]
    fault = roles_form.fault(text, names)
    if fault is not None:
        return shown(request, project, status=422, text=text, fault=fault)
    if held is None or text != held.text:
        try:
            store.put_document(user, found.id, "codebook", text, expected=_version(sent.get("version", "")))
        except ChangedError:
            return shown(request, project, status=412, text=text, conflict=True)
        jobs.submit(store, user, store.project(found.id), "profile")
    if sent.get("then") == "risk":
        return redirect(f"/projects/{found.id}/risk")
    edit = _number(sent.get("edit", ""))
    place = "said=saved" if edit is None else f"edit={edit}#edit"
    return redirect(f"/projects/{found.id}/roles?from={_start(request, len(names))}&{place}")


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 7 else None


def _version(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 10 else 0
