"""What every request goes through, and what pages and API share: hosts, origins, sessions, headers, templates."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from http.cookies import CookieError, SimpleCookie
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast
from urllib.parse import parse_qsl, urlsplit

from anyio import to_thread
from fastapi import Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup
from pydantic import BaseModel

from quadrille.studio import users
from quadrille.studio.store import Home, Project, Session, Store, User, hashed
from quadrille.text import shown

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
SANDBOX = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'unsafe-inline'; img-src data: blob:; font-src data:; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'"
)
"""For documents with scripts of their own, such as the product's reports: no cookie, no origin, no request."""
MOST_FORM = 6_000_000
"""Bytes of a form or a JSON body; files of data are streamed and have a limit of their own."""
COOKIE, PLAIN_COOKIE = "__Host-studio", "studio-local"
STEPS = (
    ("data", "Data"),
    ("roles", "Roles"),
    ("risk", "Risk today"),
    ("design", "Design"),
    ("search", "Search"),
    ("compare", "Compare"),
    ("release", "Release"),
    ("sign-off", "Sign-off"),
)
"""The pages of a project: the last part of their address, and their name."""


@dataclass(frozen=True)
class Settings:
    """How the studio is run; `origins` are the addresses at which it is reached."""

    home: Home
    origins: tuple[str, ...] = ("http://testserver",)
    team: bool = False
    user_header: str = ""
    proxied: bool = False
    root: Path | None = None
    limit: int = 2 << 30
    jobs: int = 1

    @property
    def hosts(self) -> frozenset[str]:
        """What the header Host may say."""
        return frozenset(urlsplit(origin).netloc.lower() for origin in self.origins)

    @property
    def secure(self) -> bool:
        """Whether browsers reach it by TLS."""
        return all(origin.startswith("https:") for origin in self.origins)

    @property
    def idle(self) -> float:
        """How long a session may rest."""
        return users.TEAM_IDLE if self.team else users.LOCAL_IDLE


class Fault(BaseModel):
    """What went wrong: what happened, where, and what to do."""

    error: str
    where: str
    do: str


_FAULTS = {
    400: "The request cannot be understood.",
    401: "No session, or it has ended.",
    403: "Not from here, or not with this token.",
    404: "There is no such thing, or not for this user.",
    405: "Not by this method.",
    409: "The state does not allow it.",
    412: "Somebody else was faster.",
    413: "Too large.",
    415: "Not this kind of contents.",
    422: "A field is not as it must be.",
    429: "Too many failures: wait.",
    507: "The disk is full.",
}
RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": Fault, "description": text} for status, text in _FAULTS.items()
}
"""What every operation of the interface may answer when something is wrong."""


class Problem(Exception):
    """What cannot be done: a status, what happened, where (a field or a part of the address), and what to do."""

    def __init__(
        self, status: int, error: str, *, where: str = "", do: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(error)
        self.status, self.error, self.where, self.do, self.headers = status, error, where, do, dict(headers or {})

    def as_dict(self) -> dict[str, str]:
        """Return the document of the API."""
        return {"error": self.error, "where": self.where, "do": self.do}


def not_found(what: str = "page") -> NoReturn:
    """Say that something does not exist, or not for this user: both look the same."""
    raise Problem(404, f"There is no such {what}.", do="Check the address, or go back to your projects.")


# --- what every request goes through ---------------------------------------------------------------------------------


class Gate:
    """Check host, origin, session and token of a request; set the headers of its answer. Plain ASGI: it streams."""

    def __init__(self, app: ASGIApp, settings: Settings, store: Store) -> None:
        self._app = app
        self._settings = settings
        self._store = store

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        state: dict[str, Any] = scope.setdefault("state", {})
        state["session"], state["form"] = None, None
        static = (
            "" if not scope["path"].startswith("/static/") else "version" if b"v=" in scope["query_string"] else "plain"
        )

        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = _headers(message.get("headers", []), static=static, settings=self._settings)
            await send(message)

        try:
            receive = await self._checked(scope, headers, receive)
        except Problem as problem:
            await answer(scope["path"], problem, headers)(scope, receive, headed)
            return
        await self._app(scope, receive, headed)

    async def _checked(self, scope: Scope, headers: Mapping[str, str], receive: Receive) -> Receive:
        if headers.get("host", "").lower() not in self._settings.hosts:
            raise Problem(400, "This address is not that of the studio.", do="Use the address that it prints.")
        changes = scope["method"] not in ("GET", "HEAD", "OPTIONS")
        form: list[tuple[str, str]] | None = None
        if changes and not _UPLOAD.fullmatch(scope["path"]):
            body = await _body(receive, headers)
            receive = _replayed(body)
            if headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
                form = _fields(body)
        state = scope["state"]
        state["form"] = form
        bearer = headers.get("authorization", "")
        if bearer.startswith("Bearer "):
            state["session"] = await to_thread.run_sync(users.token, self._store, bearer.removeprefix("Bearer "))
            if state["session"] is None:
                raise Problem(401, "This token is unknown or has expired.", do="Make a new one.")
            if changes and state["session"].scope == "read":
                raise Problem(403, "This token may only read.", do="Make one with the scope run.")
            return receive
        state["session"] = await to_thread.run_sync(self._session, headers)
        if changes:
            self._same_origin(headers)
            self._from_own_page(state, headers)
        return receive

    def _session(self, headers: Mapping[str, str]) -> Session | None:
        cookies = SimpleCookie()
        try:
            cookies.load(headers.get("cookie", ""))
        except CookieError:
            return None
        # The plain name, which a neighbour's page may set for this one, counts only where there is no TLS.
        for name in (COOKIE,) if self._settings.secure else (COOKIE, PLAIN_COOKIE):
            if name in cookies and (found := users.session(self._store, cookies[name].value, self._settings.idle)):
                return found
        if self._settings.user_header and (name := headers.get(self._settings.user_header.lower())):
            user = self._store.user_named(name)
            if user is not None and user.active:
                return Session(user, self._proxy_token(user))
        return None

    def _proxy_token(self, user: User) -> str:
        """Return the token against foreign forms for a user whom the proxy has let in: bound to them by a secret."""
        with self._store.writing():
            secret = self._store.setting("secret")
            if not secret:
                secret = secrets.token_hex(32)
                self._store.set("secret", secret)
        return hashed(f"{secret} {user.id}")

    def _same_origin(self, headers: Mapping[str, str]) -> None:
        """Refuse a change that another page asks for."""
        site, origin = headers.get("sec-fetch-site", "none"), headers.get("origin")
        own = origin is None or origin.lower() in self._settings.origins
        # A form of a page that tells no referrer comes with the origin "null"; the browser vouches for it otherwise.
        if site not in ("same-origin", "none") or not (own or (origin == "null" and site == "same-origin")):
            raise Problem(403, "This came from another page.", do="Open the studio itself and try again.")

    def _from_own_page(self, state: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        session: Session | None = state["session"]
        form: list[tuple[str, str]] = state["form"] or []
        if session is None:
            return
        sent = headers.get("x-csrf-token") or dict(form).get("csrf", "")
        if not secrets.compare_digest(sent.encode(), session.csrf.encode()):
            raise Problem(403, "This page is out of date.", do="Load it again and repeat what you did.")


_UPLOAD = re.compile(r"/api/v1/projects/[0-9a-f]{32}/source")
"""What is streamed, and counted on its way; all other bodies are small and read at once."""


def _fields(body: bytes) -> list[tuple[str, str]]:
    """Read a form."""
    try:
        return parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=10_000)
    except ValueError:
        raise Problem(422, "The form cannot be read.", do="Send it again.") from None


async def _body(receive: Receive, headers: Mapping[str, str], most: int = MOST_FORM) -> bytes:
    """Read a body that must not be large."""
    length = headers.get("content-length", "0")
    if length.isdigit() and int(length) > most:
        raise Problem(413, f"This is larger than {most:,} bytes.", do="Send less.")
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Problem(400, "The connection was cut.", do="Try again.")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            raise Problem(413, f"This is larger than {most:,} bytes.", do="Send less.")
        if not message.get("more_body", False):
            return b"".join(parts)


def _replayed(body: bytes) -> Receive:
    sent = False

    async def receive() -> Message:
        nonlocal sent
        if sent:
            return {"type": "http.disconnect"}
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


_KEPT = {"": b"no-store", "plain": b"no-cache", "version": b"public, max-age=31536000, immutable"}
"""What browsers may keep: a file with its version for ever; scripts that others import are asked for again."""


def _headers(given: object, *, static: str, settings: Settings) -> list[tuple[bytes, bytes]]:
    """Add to the headers of an answer what all of them have; what a page says itself goes first."""
    held = [(bytes(name).lower(), value) for name, value in cast("list[tuple[bytes, bytes]]", given)]
    own = {
        b"content-security-policy": CSP.encode(),
        b"x-content-type-options": b"nosniff",
        b"referrer-policy": b"no-referrer",
        b"cross-origin-opener-policy": b"same-origin",
        b"cross-origin-resource-policy": b"same-origin",
        b"cache-control": _KEPT[static],
    }
    if settings.secure:
        own[b"strict-transport-security"] = b"max-age=31536000"
    known = {name for name, _ in held}
    return [*held, *((name, value) for name, value in own.items() if name not in known)]


# --- what pages and API share ----------------------------------------------------------------------------------------


def store_of(request: Request) -> Store:
    """Return the store."""
    return request.app.state.store


def settings_of(request: Request) -> Settings:
    """Return how the studio is run."""
    return request.app.state.settings


def address_of(request: Request) -> str:
    """Return where a request comes from: behind a proxy its last word on it, which nobody else can write."""
    if settings_of(request).proxied:
        return request.headers.get("x-forwarded-for", "").rpartition(",")[2].strip()
    return request.client.host if request.client else ""


def session_of(request: Request) -> Session | None:
    """Return the session of a request, if there is one."""
    return request.state.session


def current(request: Request) -> Session:
    """Return the session of a request; whoever has none must log in."""
    found = session_of(request)
    if found is None:
        raise Problem(401, "You are not logged in, or your session has ended.", do="Log in.")
    return found


def person(request: Request) -> User:
    """Return the user of a session of a browser: a token makes no tokens, and changes no password."""
    session = current(request)
    if session.hash == "" and not session.csrf:
        raise Problem(403, "A token cannot do this.", do="Log in.")
    return session.user


def require(request: Request, role: str) -> Session:
    """Return the session of a user who has a role; others see no such page."""
    found = current(request)
    if not found.user.has(role):
        not_found()
    return found


def form_of(request: Request) -> list[tuple[str, str]]:
    """Return the fields of a form that was sent, in order; `dict(form_of(request))` where none occurs twice."""
    return request.state.form or []


def own_project(request: Request, project: str) -> Project:
    """Return a project that the user works on; those of others do not exist."""
    session, found = current(request), _project(request, project)
    if found is None or found.owner != session.user.id or not session.user.has("analyst"):
        not_found("project")
    return found


def seen_project(request: Request, project: str) -> Project:
    """Return a project that the user may look at: an own one, or as a reviewer one that was submitted."""
    session, found = current(request), _project(request, project)
    if found is None or found.id not in {each.id for each in store_of(request).projects(session.user)}:
        not_found("project")
    return found


def _project(request: Request, project: str) -> Project | None:
    try:
        return store_of(request).project(project)
    except KeyError:
        return None


def redirect(address: str) -> RedirectResponse:
    """Lead on to another page after a form: its own address is never loaded twice."""
    return RedirectResponse(address, status_code=303)


def templates() -> Environment:
    """Return templates that escape everything and refuse names that do not exist."""
    loader = FileSystemLoader(Path(__file__).with_name("templates"))
    made = Environment(
        loader=loader,
        autoescape=select_autoescape(default=True),
        finalize=_tame,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    known = cast("dict[str, Any]", made.globals)
    known |= {"steps": STEPS, "static": static, "vega": f"/static/vega.js?v={version('vl-convert-python')}"}
    return made


def _tame(value: object) -> object:
    """Escape what steers a terminal or turns the direction of writing."""
    return shown(value, keep="\n\r\t") if type(value) is str else value


STATIC = Path(__file__).with_name("static")


@cache
def static(name: str) -> str:
    """Return the address of a static file, which changes with its contents: browsers keep it for ever."""
    return f"/static/{name}?v={hashed((STATIC / name).read_bytes().decode('latin-1'))[:12]}"


def render(request: Request, template: str, *, status: int = 200, **values: object) -> HTMLResponse:
    """Fill a template.

    It also finds session, csrf, csrf_field (a hidden input), settings, path, steps, static(name), and project and step.
    """
    session = session_of(request)
    csrf = "" if session is None else session.csrf
    known: dict[str, object] = {
        "session": session,
        "csrf": csrf,
        "csrf_field": Markup('<input type="hidden" name="csrf" value="{}">').format(csrf),
        "settings": settings_of(request),
        "path": request.url.path,
        "project": None,
        "step": None,
    }
    page = request.app.state.templates.get_template(template).render(**(known | values))
    return HTMLResponse(page, status_code=status)


def answer(path: str, problem: Problem, headers: Mapping[str, str]) -> Response:
    """Return a problem as the API or a browser takes it, without a template."""
    if path.startswith("/api/") or "text/html" not in headers.get("accept", ""):
        return JSONResponse(problem.as_dict(), problem.status, headers=problem.headers)
    page = Markup(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>{0}</title><h1>{0}</h1><p>{1}</p>'
        '<p><a href="/">Go to the studio</a></p></html>'
    ).format(problem.error, problem.do)
    return HTMLResponse(page, problem.status, headers=problem.headers)


def log_in(request: Request, response: Response, user: User, how: str) -> Response:
    """Begin a session and give its cookie to the browser.

    Some browsers refuse a secure cookie from this machine without TLS, so there it comes under a plain name, too.
    """
    secret, _ = users.begin(store_of(request), user, how)
    settings = settings_of(request)
    age = int(users.MOST_SESSION)
    options: dict[str, Any] = {"max_age": age, "path": "/", "httponly": True, "samesite": "strict"}
    response.set_cookie(COOKIE, secret, secure=True, **options)
    if not settings.secure:
        response.set_cookie(PLAIN_COOKIE, secret, secure=False, **options)
    return response


def log_out(request: Request, response: Response) -> Response:
    """End the session."""
    session = session_of(request)
    if session is not None and session.hash:
        users.end(store_of(request), session)
    response.delete_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="strict")
    response.delete_cookie(PLAIN_COOKIE, path="/", httponly=True, samesite="strict")
    return response
