"""Step 8, Sign-off: a second person reads, decides and says why; then the release can be fetched."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from quadrille.studio import audit, jobs, signoff
from quadrille.studio.pages import page, working
from quadrille.studio.routes_release import report_of
from quadrille.studio.routes_search import in_words
from quadrille.studio.store import ChangedError, Project, Store
from quadrille.studio.web import (
    Problem,
    current,
    form_of,
    own_project,
    redirect,
    require,
    seen_project,
    settings_of,
    store_of,
)

router = APIRouter(include_in_schema=False)
MOST_TEXT = 5000
_HISTORY = 60


@router.get("/projects/{project}/sign-off")
def sign_off(request: Request, project: str) -> Response:
    """Show what is to be signed, or was."""
    return shown(request, project)


def shown(request: Request, project: str, fault: str = "", status: int = 200) -> Response:
    """Show the page, with what was wrong with a decision."""
    store, settings, found = store_of(request), settings_of(request), seen_project(request, project)
    user = current(request).user
    mine = found.owner == user.id
    if not mine:
        with store.writing():
            store.record(user, "looked at", found.id, {"page": "sign-off"})
    choice = found.choice
    checked = store.result(store.job(choice["job"])) if choice else None
    _, report = report_of(store, found, checked)
    release_job = store.latest_job(found.id, "release")
    released = store.result(store.latest_job(found.id, "release", done=True)) if found.state == "released" else None
    said = [each for each in _history(store, found) if each.action == "rejected"]
    reason, decided_by = _rejected(said)
    command, written = jobs.drawer(store, found, "release", choice) if choice and mine else ("", [])
    return page(
        request,
        "sign_off.html.j2",
        title="Sign-off",
        project=found,
        step="sign-off",
        status=status,
        fault=fault,
        mine=mine,
        may_sign=user.has("reviewer") and (not mine or not settings.team),
        checked=checked,
        design="" if checked is None else in_words(checked["design"]),
        report=report,
        released=released,
        release_job=release_job,
        waiting=found.state == "approved" and working(release_job),
        reason=reason,
        decided_by=decided_by,
        comments=store.comments(found.id),
        history=_history(store, found)[:_HISTORY],
        command=command or "quadrille release FILE --study study --candidate NUMBER",
        files=written,
    )


def _history(store: Store, project: Project) -> list[audit.Event]:
    """Return the rows of the audit about a project, the latest first."""
    query = (
        "SELECT number, time, who, role, action, project, detail, previous, hash FROM audit WHERE project = ? "
        "ORDER BY number DESC LIMIT 500"
    )
    return [audit.Event(*row) for row in store.db.execute(query, (project.id,)).fetchall()]


def _rejected(events: list[audit.Event]) -> tuple[str, str]:
    """Return the reason of the last rejection, and who gave it."""
    import json

    if not events:
        return "", ""
    return str(json.loads(events[0].detail).get("reason", "")), events[0].who


@router.post("/projects/{project}/decide")
def decide(request: Request, project: str) -> Response:
    """Approve or reject; an approval starts the release."""
    store, settings, found = store_of(request), settings_of(request), seen_project(request, project)
    user, sent = require(request, "reviewer").user, dict(form_of(request))
    version = sent.get("version", "")
    expected = int(version) if version.isdecimal() and len(version) < 12 else 0
    reason = sent.get("reason", "").strip()[:MOST_TEXT]
    try:
        if sent.get("decision") == "reject":
            signoff.reject(store, user, found, reason, local=not settings.team, expected=expected)
            return redirect(f"/projects/{found.id}/sign-off?said=rejected")
        approved = signoff.approve(store, user, found, reason, local=not settings.team, expected=expected)
        owner = store.user(approved.owner)
        if owner is not None:
            signoff.release(store, owner, approved)
    except ChangedError:
        return shown(request, project, "The project has changed since this page was loaded. Look again.", 412)
    except signoff.StateError as error:
        return shown(request, project, f"{error.error} {error.do}", 409)
    return redirect(f"/projects/{found.id}/sign-off?said=approved")


@router.post("/projects/{project}/withdraw")
def withdraw(request: Request, project: str) -> Response:
    """Take a project back."""
    store, found = store_of(request), own_project(request, project)
    try:
        signoff.withdraw(store, current(request).user, found)
    except signoff.StateError as error:
        raise Problem(409, error.error, do=error.do) from None
    return redirect(f"/projects/{found.id}/release?said=withdrawn")


@router.post("/projects/{project}/comment")
def comment(request: Request, project: str) -> Response:
    """Keep a comment."""
    store, found = store_of(request), seen_project(request, project)
    text = dict(form_of(request)).get("text", "").strip()[:MOST_TEXT]
    if text:
        store.add_comment(current(request).user, found.id, text)
    return redirect(f"/projects/{found.id}/sign-off?said=comment")
