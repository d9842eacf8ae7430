"""The web process: takes requests, looks at the data base, queues jobs. It never opens a file of data."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
import threading
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import cast

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.staticfiles import StaticFiles

from quadrille import __version__
from quadrille.errors import QuadrilleError
from quadrille.studio import users, web
from quadrille.studio.signoff import StateError
from quadrille.studio.store import ChangedError, KeyUsedError, Store
from quadrille.studio.web import Gate, Problem, Settings, answer, log_in, render

ROUTES = (
    "api",
    "live",
    "routes_projects",
    "routes_data",
    "routes_roles",
    "routes_risk",
    "routes_design",
    "routes_search",
    "routes_compare",
    "routes_release",
    "routes_sign_off",
    "routes_admin",
)
"""The modules that have a `router`: the interface for programs, what is told live, and one per page (`routes_...`)."""


def make_app(settings: Settings, store: Store | None = None) -> FastAPI:
    """Make the application; tests and the command use it alike."""
    store = store or Store(settings.home)
    app = FastAPI(
        title="Quadrille studio",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
    )
    app.state.settings, app.state.store, app.state.templates = settings, store, web.templates()
    for name in ROUTES:
        app.include_router(import_module(f"quadrille.studio.{name}").router)
    app.add_api_route("/open/{secret}", _open, include_in_schema=False, response_class=HTMLResponse)
    app.add_api_route("/favicon.ico", _icon, include_in_schema=False)
    app.add_api_route("/static/vega.js", _vega, include_in_schema=False)
    if web.STATIC.is_dir():
        app.mount("/static", GZipMiddleware(StaticFiles(directory=web.STATIC)), name="static")
    kinds = (Problem, QuadrilleError, StateError, ChangedError, KeyUsedError, RequestValidationError, HTTPException)
    for kind in (*kinds, Exception):
        app.add_exception_handler(kind, _refused)
    app.add_middleware(Gate, settings=settings, store=store)
    return app


def _open(request: Request, secret: str, to: str = "/") -> Response:
    """Let in whoever has the one-time address, once."""
    user = users.redeem(web.store_of(request), secret)
    if user is None:
        raise Problem(401, "This address was used before, or is too old.", do="Get a new one: quadrille studio url.")
    # No redirect: the cookie is only sent where the studio itself leads on, not where the address was opened from.
    page = HTMLResponse('<!doctype html><title>Quadrille studio</title><a href="/">Go to the studio</a>')
    page.headers["Refresh"] = f"0; url={to if re.fullmatch(r'/[a-z0-9/-]*', to) and '//' not in to else '/'}"
    return log_in(request, page, user, "one-time address")


def problem_of(error: Exception) -> Problem:
    """Return what went wrong as it is shown."""
    match error:
        case Problem():
            return error
        case ChangedError():
            text = "Somebody else has changed this in the meantime."
            return Problem(
                412, text, do="Look at both versions, then save again.", headers={"ETag": f'"{error.newest}"'}
            )
        case StateError():
            return Problem(409, error.error, do=error.do)
        case KeyUsedError():
            return Problem(409, "This Idempotency-Key stands for another request.", do="Use a new key.")
        case RequestValidationError():
            first = error.errors()[0]
            return Problem(
                422, str(first["msg"]), where=".".join(map(str, first["loc"][1:])), do="Send what is asked for."
            )
        case HTTPException():
            return Problem(error.status_code, str(error.detail), do="Check the address.", headers=error.headers or {})
        case QuadrilleError():
            return Problem(422, error.reason, do=error.hint)
        case _:
            return Problem(500, "This went wrong inside the studio.", do="Try again; if it stays so, report it.")


def _methods(request: Request) -> set[str]:
    """Return the methods of an address of the interface, of all the routes that have it."""
    paths = cast("dict[str, dict[str, object]]", request.app.openapi()["paths"])
    fitting = [held for path, held in paths.items() if re.fullmatch(re.sub("{[^}]*}", "[^/]+", path), request.url.path)]
    return {method.upper() for held in fitting for method in held}


async def _refused(request: Request, error: Exception) -> Response:
    problem = problem_of(error)
    if problem.status == 405 and (known := _methods(request)):
        problem.headers = {"Allow": ", ".join(sorted(known))}
    browser = "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/api/")
    template = cast("list[str]", request.app.state.templates.list_templates())
    if browser and problem.status == 401 and request.method == "GET" and "login.html.j2" in template:
        return render(request, "login.html.j2", status=401, then=str(request.url.path), problem=None)
    if browser and "problem.html.j2" in template:
        page = render(request, "problem.html.j2", status=problem.status, problem=problem)
        page.headers.update(problem.headers)
        return page
    return answer(request.url.path, problem, dict(request.headers))


# --- the script that draws charts: the bundle of vl-convert in a function of its own, made once and kept --------------

_MAKING = threading.Lock()
_MAKE = (
    "import sys, vl_convert; sys.stdout.reconfigure(encoding='utf-8'); "
    "bundle = vl_convert.javascript_bundle('globalThis.quadrilleVega = { vegaEmbed };'); "
    "print(f'(() => {{{bundle}}})();')"
)


def _icon() -> Response:
    """Return the sign of the studio to browsers that ask for it by its old name."""
    return FileResponse(web.STATIC / "logo.svg", media_type="image/svg+xml")


def _vega(request: Request) -> Response:
    """Return the bundle; it declares names such as `$`, which must not become those of the page."""
    path = web.settings_of(request).home.run / f"vega-{version('vl-convert-python')}.js.gz"
    with _MAKING:
        if not path.exists():
            _make(path)
    packed = path.read_bytes()
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(gzip.decompress(packed), media_type="text/javascript")
    return Response(packed, media_type="text/javascript", headers={"Content-Encoding": "gzip"})


def _make(path: Path) -> None:
    """Let another process make it: the bundler takes seconds and much memory, which it gives back at its end."""
    made = subprocess.run([sys.executable, "-c", _MAKE], capture_output=True, check=False, timeout=120)
    if made.returncode:
        raise Problem(
            500, "The script that draws charts could not be made.", do="Install the extra: quadrille[studio]."
        )
    fresh = path.with_suffix(".new")
    fresh.write_bytes(gzip.compress(made.stdout))
    fresh.replace(path)
