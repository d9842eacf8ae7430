"""Pages of an administrator, who sees no data: users, retention, the audit; and the own tokens of everybody."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from quadrille.errors import QuadrilleError
from quadrille.studio import audit, retention, users
from quadrille.studio.forms import gathered
from quadrille.studio.pages import page
from quadrille.studio.web import (
    address_of,
    current,
    form_of,
    log_in,
    not_found,
    person,
    redirect,
    require,
    settings_of,
    store_of,
)

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


@router.get("/audit/export")
def export(request: Request) -> Response:
    """Send the whole audit, a line of JSON per event."""
    by, store = require(request, "admin").user, store_of(request)
    store.record(by, "audit exported")

    def lines() -> Iterator[str]:
        after = 0
        while found := list(audit.events(store.db, after, 1000)):
            yield from (json.dumps(event.as_dict(), ensure_ascii=False) + "\n" for event in found)
            after = found[-1].number

    head = {"Content-Disposition": 'attachment; filename="audit.jsonl"'}
    return StreamingResponse(lines(), media_type="application/x-ndjson", headers=head)


# --- how long things are kept ----------------------------------------------------------------------------------------

_KINDS = {
    "source": "data files, and all that was worked out from them",
    "studies": "studies, with the seeds of their candidates",
    "reports": "reports for the board",
    "releases": "releases, public and confidential",
}


@router.get("/retention")
def kept(request: Request) -> Response:
    """Show how long each kind of file is kept."""
    require(request, "admin")
    return _kept(request)


def _kept(request: Request, faults: Mapping[str, str] | None = None, sent: Mapping[str, str] | None = None) -> Response:
    days = {kind: str(number or "") for kind, number in retention.days(store_of(request)).items()}
    return page(
        request,
        "retention.html.j2",
        title="Retention",
        status=422 if faults else 200,
        kinds=_KINDS,
        days={**days, **(sent or {})},
        faults=faults or {},
        limit=settings_of(request).limit,
        note=retention.LIMIT_NOTE,
        command="quadrille studio --limit 4096",
    )


@router.post("/retention")
def keep(request: Request) -> Response:
    """Change how long each kind of file is kept."""
    by, store, sent = require(request, "admin").user, store_of(request), dict(form_of(request))
    asked = {kind: sent.get(kind, "").strip() for kind in _KINDS}
    wrong = {
        kind: text for kind, text in asked.items() if text and not (text.isdecimal() and 0 < int(text[:9]) <= 36_500)
    }
    if wrong:
        return _kept(
            request, dict.fromkeys(wrong, "must be a number of days from 1 to 36,500, or empty: for ever."), asked
        )
    before = retention.days(store)
    for kind, text in asked.items():
        if int(text or 0) != before[kind]:
            retention.set_days(store, by, kind, int(text or 0))
    retention.queue(store)
    return redirect("/retention?said=limits")


# --- everybody's own: tokens for programs, and the password ----------------------------------------------------------


def _account(
    request: Request, *, token: str = "", fault: str = "", password_fault: str = "", status: int = 200
) -> Response:
    user, store = current(request).user, store_of(request)
    return page(
        request,
        "account.html.j2",
        title="Tokens" if not settings_of(request).team else "Your account",
        status=status,
        tokens=users.tokens(store, user),
        token=token,
        fault=fault,
        password_fault=password_fault,
        has_password=users.has_password(store, user),
        origin=settings_of(request).origins[-1 if not settings_of(request).team else 0],
        command=f'curl -H "Authorization: Bearer $TOKEN" {settings_of(request).origins[-1]}/api/v1/projects',
    )


@router.get("/account")
def account(request: Request) -> Response:
    """Show the own tokens."""
    current(request)
    return _account(request)


@router.post("/account/tokens")
def change_tokens(request: Request) -> Response:
    """Make a token, which is shown this once, or take one back."""
    user, store, sent = person(request), store_of(request), dict(form_of(request))
    if number := sent.get("remove", ""):
        if not (number.isdecimal() and len(number) < 12 and users.remove_token(store, user, int(number))):
            not_found("token")
        return redirect("/account?said=removed")
    days, name = sent.get("days", ""), sent.get("name", "").strip()[:100]
    try:
        if not name:
            raise QuadrilleError("A token needs a name, so that you know later what it is for.")
        secret = users.add_token(
            store, user, name, sent.get("scope", ""), int(days) if days.isdecimal() and len(days) < 6 else 0
        )
    except QuadrilleError as error:
        return _account(request, fault=str(error), status=422)
    return _account(request, token=secret)


@router.post("/account/password")
def change_password(request: Request) -> Response:
    """Change the own password; all sessions end, and this one begins anew."""
    user, store, sent = person(request), store_of(request), dict(form_of(request))
    try:
        right = users.check_password(store, user.name, sent.get("old", ""), address_of(request))
        if right is None:
            raise QuadrilleError("The password that you have now is another one. Try again.")
        users.change(store, user, user, password=sent.get("new", ""))
    except users.WaitError as error:
        return _account(request, password_fault=f"Too many wrong passwords. Wait {error.seconds:.0f} s.", status=429)
    except QuadrilleError as error:
        return _account(request, password_fault=str(error), status=422)
    return log_in(request, redirect("/account?said=saved"), user, "new password")
