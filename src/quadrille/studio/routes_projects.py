"""The first page: the projects of a user, and a new one."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from quadrille.studio.pages import page
from quadrille.studio.web import (
    Problem,
    current,
    form_of,
    not_found,
    own_project,
    redirect,
    require,
    settings_of,
    store_of,
)

router = APIRouter(include_in_schema=False)
MOST_NAME = 200


@router.get("/")
def projects(request: Request) -> Response:
    """Show the projects: own ones, and for a reviewer those that wait."""
    user = current(request).user
    if user.has("admin"):
        return redirect("/users")
    store = store_of(request)
    found = store.projects(user)
    names = {each.id: each.name for each in store.users()}
    waiting = [
        each for each in found if each.state == "submitted" and (each.owner != user.id or not settings_of(request).team)
    ]
    return page(
        request,
        "projects.html.j2",
        title="Projects",
        own=[each for each in found if each.owner == user.id],
        waiting=[each for each in waiting if each.owner != user.id],
        others=[each for each in found if each.owner != user.id and each.state != "submitted"],
        names=names,
        analyst=user.has("analyst"),
        command="quadrille studio",
    )


@router.post("/projects")
def make(request: Request) -> Response:
    """Make a project and go to its data."""
    session = require(request, "analyst")
    name = dict(form_of(request)).get("name", "").strip()
    if len(name) > MOST_NAME:
        raise Problem(422, f"A name has at most {MOST_NAME} characters.", where="name", do="Choose a shorter one.")
    made = store_of(request).create_project(session.user, name or "New project")
    return redirect(f"/projects/{made.id}/data")


@router.post("/projects/{project}/name")
def rename(request: Request, project: str) -> Response:
    """Give a project another name."""
    found = own_project(request, project)
    name = dict(form_of(request)).get("name", "").strip()[:MOST_NAME]
    if name:
        store_of(request).change_project(
            current(request).user, found.id, "project renamed", {"name": name}, keeps_state=True
        )
    return redirect(f"/projects/{found.id}/data?said=saved")


_LAST = {"released": "sign-off", "submitted": "sign-off", "approved": "sign-off"}


@router.get("/projects/{project}")
def enter(request: Request, project: str) -> Response:
    """Go to the step of a project at which work goes on."""
    user, store = current(request).user, store_of(request)
    found = next((each for each in store.projects(user) if each.id == project), None)
    if found is None:
        not_found("project")
    if found.owner != user.id or found.state in _LAST:
        return redirect(f"/projects/{found.id}/sign-off")
    reached = "data" if not found.records else "search" if store.studies(found.id) else "roles"
    return redirect(f"/projects/{found.id}/{'release' if found.choice else reached}")
