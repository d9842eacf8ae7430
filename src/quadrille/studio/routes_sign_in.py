"""Signing in with a password, and out."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from quadrille.studio import users
from quadrille.studio.web import form_of, log_in, log_out, redirect, render, session_of, settings_of, store_of

router = APIRouter(include_in_schema=False)


@router.get("/login")
def login(request: Request) -> Response:
    """Ask for name and password."""
    if session_of(request) is not None:
        return redirect("/")
    return render(request, "login.html.j2", then="/", problem=None)


@router.post("/login")
def enter(request: Request) -> Response:
    """Begin a session, and go on where it ended."""
    sent = dict(form_of(request))
    then = _inside(sent.get("then", "/"))
    address = request.client.host if request.client else ""
    try:
        user = users.check_password(store_of(request), sent.get("name", "").strip(), sent.get("password", ""), address)
    except users.WaitError as error:
        problem = f"Too many wrong passwords. Try again in {error.seconds:.0f} seconds."
        return render(request, "login.html.j2", status=429, then=then, problem=problem)
    if user is None:
        return render(request, "login.html.j2", status=401, then=then, problem="Name or password is wrong. Try again.")
    return log_in(request, redirect(then), user, "password")


@router.post("/logout")
def leave(request: Request) -> Response:
    """End the session."""
    return log_out(request, redirect("/login" if settings_of(request).team else "/"))


def _inside(address: str) -> str:
    """Return an address of the studio itself; anything else leads to the first page."""
    return address if address.startswith("/") and not address.startswith(("//", "/\\")) and "\n" not in address else "/"
