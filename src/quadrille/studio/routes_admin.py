"""Pages of an administrator: users and audit. An admin sees no data."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter, Request, Response

from quadrille.errors import QuadrilleError
from quadrille.studio import audit, users
from quadrille.studio.forms import gathered
from quadrille.studio.pages import page
from quadrille.studio.web import current, form_of, not_found, redirect, require, settings_of, store_of

router = APIRouter(include_in_schema=False)
_ROLES = (
    ("analyst", "own projects, from data to submission"),
    ("reviewer", "submitted projects of others; approve or reject"),
    ("admin", "users and audit; sees no data"),
)
ON_PAGE = 200


def _people(
    request: Request,
    *,
    status: int = 200,
    fault: str = "",
    sent: Mapping[str, str] | None = None,
    one_time: tuple[str, str] | None = None,
) -> Response:
    return page(
        request,
        "users.html.j2",
        title="Users",
        status=status,
        people=store_of(request).users(),
        roles=_ROLES,
        command="quadrille studio user add NAME --role analyst",
        fault=fault,
        sent=sent or {},
        one_time=one_time,
    )


@router.get("/users")
def people(request: Request) -> Response:
    """Show who may do what."""
    require(request, "admin")
    return _people(request)


@router.post("/users")
def add(request: Request) -> Response:
    """Add a user."""
    by = require(request, "admin").user
    sent = gathered(form_of(request))
    name, password = sent.get("name", [""])[0].strip(), sent.get("password", [""])[0]
    try:
        users.add(store_of(request), by, name, sent.get("role", []), password or None)
    except QuadrilleError as error:
        return _people(request, status=422, fault=str(error), sent={"name": name})
    return redirect("/users?said=user")


@router.post("/users/{number}")
def change(request: Request, number: int) -> Response:
    """Lock a user out, let them in again, or make a one-time address for them."""
    by, store = require(request, "admin").user, store_of(request)
    person = store.user(number)
    if person is None or person.id == by.id:
        not_found("user")
    wish = dict(form_of(request)).get("do", "")
    if wish == "address":
        with store.writing():
            secret = users.ticket(store, person)
            store.record(by, "one-time address made", detail={"name": person.name})
        return _people(request, one_time=(person.name, f"{settings_of(request).origins[0]}/open/{secret}"))
    if wish in ("lock", "unlock"):
        users.change(store, by, person, active=wish == "unlock")
    return redirect("/users?said=user")


def _rows(request: Request, verified: audit.Checked | None = None) -> Response:
    store = store_of(request)
    total, _ = audit.head(store.db)
    given = request.query_params.get("after", "")
    after = int(given) if given.isdecimal() and len(given) < 12 else max(0, total - ON_PAGE)
    found = list(audit.events(store.db, after, ON_PAGE))
    return page(
        request,
        "audit.html.j2",
        title="Audit",
        events=found,
        total=total,
        earlier=max(0, after - ON_PAGE) if after > 0 else None,
        later=after + ON_PAGE if after + ON_PAGE < total else None,
        verified=verified,
        command="quadrille studio audit --verify",
    )


@router.get("/audit")
def rows(request: Request) -> Response:
    """Show the audit, the latest rows unless another place is asked for."""
    current(request)
    require(request, "admin")
    return _rows(request)


@router.post("/audit/verify")
def verify(request: Request) -> Response:
    """Go through the chain."""
    require(request, "admin")
    return _rows(request, audit.verify(store_of(request).db))
