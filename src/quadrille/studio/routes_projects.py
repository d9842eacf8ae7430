"""Signing in with a password, and out; the first page: the projects of a user, and a new one."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from quadrille.studio import retention, users
from quadrille.studio.pages import page
from quadrille.studio.web import (
    Problem,
    address_of,
    current,
    form_of,
    log_in,
    log_out,
    not_found,
    own_project,
    redirect,
    render,
    require,
    session_of,
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


@router.post("/projects/{project}/remove")
def remove(request: Request, project: str) -> Response:
    """Shred all of a project."""
    found, store = own_project(request, project), store_of(request)
    if "sure" not in dict(form_of(request)):
        raise Problem(
            422, "The project was not removed.", where="sure", do="Tick the box that says so, then remove it."
        )
    if any(job.state == "running" for job in store.jobs(found.id)):
        raise Problem(409, "A job of this project is running.", do="Cancel it first.")
    retention.remove_project(store, current(request).user, found)
    return redirect("/?said=removed")


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


# --- signing in and out -----------------------------------------------------------------------------------------------


@router.get("/login")
def sign_in_page(request: Request) -> Response:
    """Ask for name and password."""
    if session_of(request) is not None:
        return redirect("/")
    return render(request, "login.html.j2", then="/", problem=None)


@router.post("/login")
def sign_in(request: Request) -> Response:
    """Begin a session, and go on where it ended."""
    sent = dict(form_of(request))
    then = _inside(sent.get("then", "/"))
    address = address_of(request)
    try:
        user = users.check_password(store_of(request), sent.get("name", "").strip(), sent.get("password", ""), address)
    except users.WaitError as error:
        problem = f"Too many wrong passwords. Try again in {error.seconds:.0f} seconds."
        return render(request, "login.html.j2", status=429, then=then, problem=problem)
    if user is None:
        return render(request, "login.html.j2", status=401, then=then, problem="Name or password is wrong. Try again.")
    return log_in(request, redirect(then), user, "password")


@router.post("/logout")
def sign_out(request: Request) -> Response:
    """End the session."""
    return log_out(request, redirect("/login" if settings_of(request).team else "/"))


def _inside(address: str) -> str:
    """Return an address of the studio itself; anything else leads to the first page."""
    return address if address.startswith("/") and not address.startswith(("//", "/\\")) and "\n" not in address else "/"
