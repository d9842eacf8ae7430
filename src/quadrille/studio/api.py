"""The interface for programs: /api/v1, JSON. Its description is at /api/openapi.json.

What goes wrong is {"error", "where", "do"}. A browser sends its cookie and the header X-CSRF-Token, a program
`Authorization: Bearer TOKEN`. A header If-Match holds the version, as ETag gave it, that a change was made from.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, cast
from urllib.parse import unquote

import tomli_w
from fastapi import APIRouter, Header, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, model_validator

from quadrille.errors import QuadrilleError
from quadrille.studio import audit, files, jobs, live, retention, signoff, users
from quadrille.studio.store import Comment, Document, Job, Project, User, toml
from quadrille.studio.web import (
    RESPONSES,
    Problem,
    address_of,
    current,
    log_in,
    log_out,
    not_found,
    own_project,
    person,
    require,
    seen_project,
    settings_of,
    store_of,
)

MOST_DOCUMENT = 5_000_000


router = APIRouter(prefix="/api/v1", tags=["studio"], responses=RESPONSES)

ProjectId = Annotated[str, Path(pattern="^[0-9a-f]{32}$", description="The number of a project.")]
Number = Annotated[int, Path(ge=1, le=2**53)]
Key = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        min_length=8,
        max_length=200,
        pattern="^[!-~]+$",
        description="The same key stands for the same job, however often it is sent.",
    ),
]
IfMatch = Annotated[str, Header(alias="If-Match", pattern=r'^(\*|(W/)?"?[0-9]{1,15}"?)?$')]


class Strict(BaseModel):
    """A body: nothing but its fields, each of its type."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _whole(cls, given: object) -> object:
        """Take 3.0 for the whole number that it is in JSON."""
        return _with_whole_numbers(given)


def _with_whole_numbers(given: object) -> object:
    if isinstance(given, dict):
        return {key: _with_whole_numbers(each) for key, each in cast("dict[str, object]", given).items()}
    if isinstance(given, list):
        return [_with_whole_numbers(each) for each in cast("list[object]", given)]
    return int(given) if isinstance(given, float) and given.is_integer() else given


# --- who is there ----------------------------------------------------------------------------------------------------


class Login(Strict):
    """A name and a password."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    password: Annotated[str, Field(min_length=1, max_length=1024)]


class NewUser(Strict):
    """A user to be added."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.@+-]{1,100}$")]
    roles: Annotated[list[Literal["analyst", "reviewer", "admin"]], Field(min_length=1, max_length=3)]
    password: Annotated[str, Field(min_length=12, max_length=1024)]


class NewToken(Strict):
    """A token for a program."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    scope: Literal["read", "run"] = "read"
    days: Annotated[int, Field(ge=1, le=366)] = 30


@router.post("/login")
def login(request: Request, body: Login) -> Response:
    """Begin a session: its cookie comes with the answer, and the token that changes need."""
    store = store_of(request)
    address = address_of(request)
    try:
        user = users.check_password(store, body.name, body.password, address)
    except users.WaitError as error:
        wait = {"Retry-After": str(int(error.seconds) + 1)}
        text = "There were too many wrong passwords."
        raise Problem(429, text, do=f"Wait {int(error.seconds) + 1} seconds.", headers=wait) from None
    if user is None:
        raise Problem(401, "The name or the password is wrong.", where="password", do="Try again.")
    return log_in(request, Response(status_code=204), user, "password")


@router.post("/logout", status_code=204)
def logout(request: Request) -> Response:
    """End the session."""
    current(request)
    return log_out(request, Response(status_code=204))


@router.get("/me")
def me(request: Request) -> dict[str, object]:
    """Say who asks, and give the token that changes of a browser need."""
    session = current(request)
    roles = list(session.user.roles)
    return {"name": session.user.name, "roles": roles, "csrf": session.csrf, "team": settings_of(request).team}


def _user(user: User) -> dict[str, object]:
    return {"name": user.name, "roles": list(user.roles), "active": user.active, "created": user.created}


@router.get("/users")
def list_users(request: Request) -> list[dict[str, object]]:
    """List the users."""
    require(request, "admin")
    return [_user(user) for user in store_of(request).users()]


@router.post("/users", status_code=201)
def add_user(request: Request, body: NewUser) -> dict[str, object]:
    """Add a user."""
    by = require(request, "admin").user
    if store_of(request).user_named(body.name) is not None:
        raise Problem(409, "There is a user of this name already.", where="name", do="Choose another name.")
    return _user(users.add(store_of(request), by, body.name, list(body.roles), body.password))


@router.delete("/users/{name}", status_code=204)
def lock_user(request: Request, name: Annotated[str, Path(max_length=100)]) -> Response:
    """Lock a user out; what they did stays."""
    by, store = require(request, "admin").user, store_of(request)
    user = store.user_named(name)
    if user is None:
        not_found("user")
    users.change(store, by, user, active=False)
    return Response(status_code=204)


@router.get("/tokens")
def list_tokens(request: Request) -> list[dict[str, object]]:
    """List the own tokens."""
    return users.tokens(store_of(request), current(request).user)


@router.post("/tokens", status_code=201)
def add_token(request: Request, body: NewToken) -> dict[str, str]:
    """Make a token; it is shown this once."""
    return {"token": users.add_token(store_of(request), person(request), body.name, body.scope, body.days)}


@router.delete("/tokens/{token}", status_code=204)
def remove_token(request: Request, token: Number) -> Response:
    """Take a token back."""
    if not users.remove_token(store_of(request), person(request), token):
        not_found("token")
    return Response(status_code=204)


# --- projects --------------------------------------------------------------------------------------------------------


class NewProject(Strict):
    """A project to be made, or its new name."""

    name: Annotated[str, Field(min_length=1, max_length=200)]


class Source(Strict):
    """A file of this machine, below the folder that may be opened, or a bundled one."""

    path: Annotated[str | None, Field(max_length=4000)] = None
    dataset: Annotated[str | None, Field(pattern="^[a-z0-9_]{1,40}$")] = None


def _project(project: Project) -> dict[str, object]:
    names = (
        "id",
        "name",
        "state",
        "version",
        "file",
        "size",
        "fingerprint",
        "records",
        "columns",
        "study",
        "candidate",
    )
    values: dict[str, object] = {name: getattr(project, name) for name in names}
    return {
        **values,
        "choice": project.choice or None,
        "approval": project.approval or None,
        "changed": project.changed,
    }


def _with_tag(response: Response, version: int) -> None:
    response.headers["ETag"] = f'"{version}"'


def _expected(if_match: str) -> int | None:
    """Return the version that a header If-Match holds; none, or a star, is any."""
    text = if_match.removeprefix("W/").strip('"')
    return int(text) if text.isdigit() else None


@router.post("/projects", status_code=201)
def make_project(request: Request, body: NewProject) -> dict[str, object]:
    """Make a project."""
    by = require(request, "analyst").user
    return _project(store_of(request).create_project(by, body.name))


@router.get("/projects")
def list_projects(
    request: Request, state: Literal["draft", "submitted", "approved", "rejected", "released"] | None = None
) -> list[dict[str, object]]:
    """List the projects that the user may look at: own ones, and for a reviewer those that were submitted."""
    return [_project(each) for each in store_of(request).projects(current(request).user, state)]


@router.get("/projects/{project}")
def get_project(request: Request, response: Response, project: ProjectId) -> dict[str, object]:
    """Return a project."""
    found = seen_project(request, project)
    _with_tag(response, found.version)
    return _project(found)


@router.patch("/projects/{project}")
def rename_project(
    request: Request, response: Response, project: ProjectId, body: NewProject, if_match: IfMatch = ""
) -> dict[str, object]:
    """Rename a project."""
    found = own_project(request, project)
    made = store_of(request).change_project(
        current(request).user,
        found.id,
        "project renamed",
        {"name": body.name},
        expected=_expected(if_match),
        keeps_state=True,
    )
    _with_tag(response, made.version)
    return _project(made)


@router.delete("/projects/{project}", status_code=204)
def remove_project(request: Request, project: ProjectId) -> Response:
    """Shred all of a project."""
    found, store = own_project(request, project), store_of(request)
    if any(job.state == "running" for job in store.jobs(found.id)):
        raise Problem(409, "A job of this project is running.", do="Cancel it first.")
    retention.remove_project(store, current(request).user, found)
    return Response(status_code=204)


@router.put(
    "/projects/{project}/source",
    status_code=202,
    openapi_extra={
        "requestBody": {"required": True, "content": {"application/octet-stream": {"schema": {"type": "string"}}}}
    },
)
async def put_source(
    request: Request,
    project: ProjectId,
    name: Annotated[str, Query(max_length=300)] = "",
    x_file_name: Annotated[str, Header(max_length=3000)] = "",
) -> dict[str, object]:
    """Send a file as the data: its bytes are the body, its name stands in the address or, encoded, in X-File-Name."""
    from anyio import to_thread

    found = await to_thread.run_sync(own_project, request, project)
    by, store = current(request).user, store_of(request)
    given = name or unquote(x_file_name)
    made = await files.take_upload(request, store, by, found, given, settings_of(request).limit)
    job = await to_thread.run_sync(jobs.submit, store, by, made, "profile")
    return {"job": job.id}


@router.post("/projects/{project}/source", status_code=202)
def open_source(request: Request, project: ProjectId, body: Source) -> dict[str, object]:
    """Open a file of this machine, or a bundled one, as the data."""
    found, store, by = own_project(request, project), store_of(request), current(request).user
    if body.dataset is not None and body.path is None:
        known = (jobs.catalogue(settings_of(request).home) or {"datasets": []})["datasets"]
        if body.dataset not in {each["name"] for each in known}:
            raise Problem(422, "There is no such bundled file.", where="dataset", do="Choose one of the catalogue.")
        made = files.open_bundled(store, by, found, body.dataset)
    elif body.path is not None and body.dataset is None:
        made = files.open_path(store, by, found, body.path, settings_of(request).root)
    else:
        raise Problem(422, "Give a path or a dataset.", where="path", do="Send one of the two.")
    return {"job": jobs.submit(store, by, made, "profile").id}


@router.get("/catalogue")
def get_catalogue(request: Request) -> dict[str, Any]:
    """Return what forms are built from: methods with their schemas, measures, bundled files."""
    current(request)
    found = jobs.catalogue(settings_of(request).home)
    if found is None:
        raise Problem(409, "The worker has not started yet.", do="Ask again in a few seconds.")
    return found


def _comment(comment: Comment) -> dict[str, object]:
    return {"id": comment.id, "user": comment.user, "text": comment.text, "created": comment.created}


@router.get("/projects/{project}/comments")
def list_comments(request: Request, project: ProjectId) -> list[dict[str, object]]:
    """List the comments on a project."""
    return [_comment(each) for each in store_of(request).comments(seen_project(request, project).id)]


# --- codebook, job, policy -------------------------------------------------------------------------------------------

Kind = Literal["codebook", "job", "policy"]
_TOML = {
    "requestBody": {
        "required": True,
        "content": {
            "application/toml": {"schema": {"type": "string"}},
            "application/json": {"schema": {"type": "object"}},
        },
    }
}


def _document(kind: Kind) -> None:
    """Make the routes of a kind of document: each has an address of its own, so that others are not found there."""
    path = f"/projects/{{project}}/{kind}"

    @router.get(
        path,
        operation_id=f"get_{kind}",
        response_class=Response,
        responses={
            200: {
                "content": {"text/plain": {}, "application/json": {}},
                "description": "TOML, or JSON where it is accepted.",
            }
        },
    )
    def get_document(
        request: Request, project: ProjectId, version: Annotated[int | None, Query(ge=1, le=2**53)] = None
    ) -> Response:
        """Return the newest version, or an earlier one."""
        held = store_of(request).document(seen_project(request, project).id, kind, version)
        if held is None or not held.text:
            not_found(kind)
        tag = {"ETag": f'"{held.version}"'}
        if request.headers.get("accept", "").startswith("application/json"):
            try:
                return Response(_as_json(held), media_type="application/json", headers=tag)
            except ValueError:
                pass
        return Response(held.text, media_type="text/plain; charset=utf-8", headers=tag)

    @router.put(path, operation_id=f"put_{kind}", openapi_extra=_TOML)
    async def put_document(
        request: Request, response: Response, project: ProjectId, if_match: IfMatch = ""
    ) -> dict[str, int]:
        """Keep a new version: TOML, or JSON with the same contents."""
        from anyio import to_thread

        found = await to_thread.run_sync(own_project, request, project)
        text = _toml(await _small_body(request), request.headers.get("content-type", ""))

        def keep() -> Document:
            by, expected = current(request).user, _expected(if_match)
            return store_of(request).put_document(by, found.id, kind, text, expected=expected)

        made = await to_thread.run_sync(keep)
        _with_tag(response, made.version)
        return {"version": made.version}

    _ = get_document, put_document


def _as_json(held: Document) -> str:
    return json.dumps(toml(held.text), ensure_ascii=False, default=str)


async def _small_body(request: Request) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_DOCUMENT:
            raise Problem(413, f"This is larger than {MOST_DOCUMENT:,} bytes.", do="Send less.")
    return body


def _toml(body: bytes, kind: str) -> str:
    """Return the text of a document; what is no TOML is refused."""
    try:
        text = body.decode()
        if kind.startswith("application/json"):
            document = json.loads(text)
            if not isinstance(document, dict):
                raise ValueError("the document must be an object")
            text = tomli_w.dumps(cast("dict[str, Any]", document))
        toml(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise Problem(422, f"This is no TOML: {str(error)[:300]}.", where="body", do="Correct it.") from None
    if not text.strip():
        raise Problem(422, "This document is empty.", where="body", do="Send its contents.")
    return text


_document("codebook")
_document("job")
_document("policy")


# --- jobs ------------------------------------------------------------------------------------------------------------


class Risk(Strict):
    """Who is at risk today, by sets of key variables."""

    sets: Annotated[
        list[Annotated[list[Annotated[str, Field(max_length=300)]], Field(min_length=1, max_length=100)]],
        Field(max_length=20),
    ] = []
    n: Annotated[int, Field(ge=2, le=1000)] = 3
    attack: bool = False


class Nothing(Strict):
    """Nothing needs to be said."""


class Search(Strict):
    """A search over the candidates of the newest job; `study` goes on with an earlier one."""

    workers: Annotated[int | None, Field(ge=1, le=1024)] = None
    study: Annotated[int | None, Field(ge=1, le=2**53)] = None


class Comparison(Strict):
    """Candidates of a study side by side."""

    study: Annotated[int, Field(ge=1, le=2**53)]
    candidates: Annotated[list[Annotated[int, Field(ge=1, le=2**53)]], Field(min_length=1, max_length=4)]
    risk: Annotated[str | None, Field(max_length=2000)] = None
    loss: Annotated[str | None, Field(max_length=2000)] = None
    attack: bool = False


class Pick(Strict):
    """A rule by which a candidate is chosen."""

    risk: Annotated[str | None, Field(max_length=2000)] = None
    loss: Annotated[str | None, Field(max_length=2000)] = None
    max_risk: float | None = None
    max_loss: float | None = None
    criterion: Annotated[str | None, Field(max_length=100)] = None


class PolicyCheck(Strict):
    """What the policy says to a candidate, or to the one that a rule chooses."""

    study: Annotated[int, Field(ge=1, le=2**53)]
    candidate: Annotated[int | None, Field(ge=1, le=2**53)] = None
    pick: Pick | None = None
    format: Literal["csv", "parquet", "sav", "dta", "xpt"] = "csv"
    shuffle: bool = True


class Report(Strict):
    """The report to the board on a candidate."""

    study: Annotated[int, Field(ge=1, le=2**53)]
    candidate: Annotated[int, Field(ge=1, le=2**53)]
    risk: Annotated[str | None, Field(max_length=2000)] = None
    loss: Annotated[str | None, Field(max_length=2000)] = None


def _submitted(request: Request, project: str, kind: str, body: BaseModel, key: str) -> dict[str, int]:
    found, store, by = own_project(request, project), store_of(request), current(request).user
    return {"job": jobs.submit(store, by, found, kind, body.model_dump(exclude_none=kind == "search"), key=key).id}


@router.post("/projects/{project}/profiles", status_code=202)
def ask_profile(request: Request, project: ProjectId, body: Nothing, key: Key) -> dict[str, int]:
    """Look at the file again, with the newest codebook."""
    return _submitted(request, project, "profile", body, key)


@router.post("/projects/{project}/risks", status_code=202)
def ask_risk(request: Request, project: ProjectId, body: Risk, key: Key) -> dict[str, int]:
    """Ask who is at risk in the file as it is."""
    return _submitted(request, project, "risk", body, key)


@router.post("/projects/{project}/forecast", status_code=202)
def ask_forecast(request: Request, project: ProjectId, body: Nothing, key: Key) -> dict[str, int]:
    """Ask what a search would do."""
    return _submitted(request, project, "forecast", body, key)


@router.post("/projects/{project}/searches", status_code=202)
def ask_search(request: Request, project: ProjectId, body: Search, key: Key) -> dict[str, int]:
    """Search."""
    return _submitted(request, project, "search", body, key)


@router.post("/projects/{project}/comparisons", status_code=202)
def ask_comparison(request: Request, project: ProjectId, body: Comparison, key: Key) -> dict[str, int]:
    """Compare candidates."""
    return _submitted(request, project, "compare", body, key)


@router.post("/projects/{project}/policy-checks", status_code=202)
def ask_policy(request: Request, project: ProjectId, body: PolicyCheck, key: Key) -> dict[str, int]:
    """Check a candidate against the policy."""
    return _submitted(request, project, "policy", body, key)


@router.post("/projects/{project}/reports", status_code=202)
def ask_report(request: Request, project: ProjectId, body: Report, key: Key) -> dict[str, int]:
    """Write the report to the board."""
    return _submitted(request, project, "report", body, key)


@router.post("/projects/{project}/releases", status_code=202)
def ask_release(request: Request, project: ProjectId, body: Nothing, key: Key) -> dict[str, int]:
    """Write the release that was approved."""
    found = own_project(request, project)
    return {"job": signoff.release(store_of(request), current(request).user, found, key=key).id}


def _job(job: Job) -> dict[str, object]:
    names = ("id", "project", "kind", "state", "wish", "attempts", "done", "total", "message", "created")
    values: dict[str, object] = {name: getattr(job, name) for name in names}
    return {**values, "started": job.started, "ended": job.ended, "spec": job.spec}


@router.get("/jobs")
def list_jobs(
    request: Request,
    state: Literal["queued", "running", "paused", "done", "failed", "cancelled"] | None = None,
) -> list[dict[str, object]]:
    """List the own jobs, the latest first, at most 100."""
    return [_job(job) for job in store_of(request).jobs_of(current(request).user, state)]


@router.get("/jobs/{job}")
def get_job(request: Request, job: Number) -> dict[str, object]:
    """Return a job."""
    return _job(live.job_of(request, job))


@router.get("/jobs/{job}/result")
def get_result(request: Request, job: Number) -> dict[str, Any]:
    """Return the result of a job that is done."""
    found = store_of(request).result(live.job_of(request, job))
    if found is None:
        raise Problem(409, "This job has no result.", do="Wait until it is done, or ask again.")
    return found


def _wish(wish: Literal["pause", "resume", "cancel"]) -> None:
    @router.post(f"/jobs/{{job}}/{wish}", operation_id=f"{wish}_job", summary=f"{wish.capitalize()} a job.")
    def wish_job(request: Request, job: Number) -> dict[str, object]:
        found, store = live.job_of(request, job), store_of(request)
        own_project(request, found.project)
        try:
            return _job(store.wish(current(request).user, found.id, wish))
        except ValueError:
            raise Problem(
                409, f"A {found.kind} job that is {found.state} cannot {wish}.", do="Look at it again."
            ) from None

    _ = wish_job


_wish("pause")
_wish("resume")
_wish("cancel")


# --- sign-off --------------------------------------------------------------------------------------------------------


class Proposal(Strict):
    """The policy job whose candidate is to be released, and why."""

    job: Annotated[int, Field(ge=1, le=2**53)]
    reason: Annotated[str, Field(max_length=4000)] = ""


class Reason(Strict):
    """A reason, or a remark."""

    text: Annotated[str, Field(min_length=1, max_length=4000)]


@router.post("/projects/{project}/propose")
def propose(request: Request, project: ProjectId, body: Proposal) -> dict[str, object]:
    """Propose the candidate that a policy job has checked."""
    found, store = own_project(request, project), store_of(request)
    checked = next((each for each in store.jobs(found.id, "policy", most=10_000) if each.id == body.job), None)
    if checked is None:
        raise Problem(409, "There is no such policy check.", where="job", do="Ask for one first.")
    return _project(signoff.propose(store, current(request).user, found, checked, note=body.reason))


@router.post("/projects/{project}/submit")
def submit(request: Request, project: ProjectId) -> dict[str, object]:
    """Hand the project to the reviewers."""
    return _project(signoff.submit(store_of(request), current(request).user, own_project(request, project)))


@router.post("/projects/{project}/withdraw")
def withdraw(request: Request, project: ProjectId) -> dict[str, object]:
    """Take the project back."""
    return _project(signoff.withdraw(store_of(request), current(request).user, own_project(request, project)))


@router.post("/projects/{project}/approve")
def approve(request: Request, project: ProjectId, body: Reason, if_match: IfMatch = "") -> dict[str, object]:
    """Approve the release, with a reason; If-Match holds the version of the project that was read."""
    found, by = seen_project(request, project), current(request).user
    local = not settings_of(request).team
    return _project(signoff.approve(store_of(request), by, found, body.text, local=local, expected=_expected(if_match)))


@router.post("/projects/{project}/reject")
def reject(request: Request, project: ProjectId, body: Reason, if_match: IfMatch = "") -> dict[str, object]:
    """Reject the release, with a reason; If-Match holds the version of the project that was read."""
    found, by = seen_project(request, project), current(request).user
    local = not settings_of(request).team
    return _project(signoff.reject(store_of(request), by, found, body.text, local=local, expected=_expected(if_match)))


@router.post("/projects/{project}/comments", status_code=204)
def add_comment(request: Request, project: ProjectId, body: Reason) -> Response:
    """Add a comment."""
    store_of(request).add_comment(current(request).user, seen_project(request, project).id, body.text)
    return Response(status_code=204)


@router.get(
    "/projects/{project}/files/{kind}/{name}",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}, "description": "The file."}},
)
def get_file(
    request: Request,
    project: ProjectId,
    kind: Literal["document", "report", "public", "confidential"],
    name: Annotated[str, Path(max_length=200)],
    sure: bool = False,
) -> Response:
    """Fetch a document, a report or a file of the release; a confidential one must be asked for with `sure`."""
    found = seen_project(request, project)
    return files.fetch(store_of(request), current(request).user, found, kind, name, sure=sure)


# --- studies ---------------------------------------------------------------------------------------------------------


@router.get("/studies/{study}/candidates/{number}")
def get_candidate(request: Request, study: Number, number: Number) -> dict[str, object]:
    """Return a candidate with its scores; never its seed."""
    row = live.study_of(request, study)
    held = live.opened(store_of(request), row)
    if held is None:
        raise Problem(409, "This study has no results yet.", do="Wait for its search.")
    with held as look:
        try:
            found = look.candidate(number)
        except QuadrilleError:
            not_found("candidate")
        names = (*look.header.measures, *look.header.then)
        axes = live.axes_of(row)
        dominance = None
        if axes is not None:
            dominance = look.dominance(number, axes[0]["address"], axes[1]["address"], live.directions(axes))
    state = None if found.status is None else ("done", "infeasible", "failed")[found.status]
    return {
        "id": found.id,
        "design": json.loads(found.design),
        "state": state,
        "reason": found.reason,
        "note": found.note,
        "scores": dict(zip(names, found.values, strict=True)),
        "dominates": None if dominance is None else dominance[0],
        "dominated_by": None if dominance is None else dominance[1],
    }


@router.get("/studies/{study}/frontier")
def get_frontier(
    request: Request,
    study: Number,
    risk: Annotated[str | None, Query(max_length=2000)] = None,
    loss: Annotated[str | None, Query(max_length=2000)] = None,
) -> dict[str, object]:
    """Return the candidates that no other dominates on two measures."""
    row = live.study_of(request, study)
    axes, held = live.axes_of(row, risk, loss), live.opened(store_of(request), row)
    if axes is None:
        raise Problem(409, "This study has no such measures of risk and loss.", do="Choose two that it has.")
    if held is None:
        raise Problem(409, "This study has no results yet.", do="Wait for its search.")
    with held as look:
        found = look.frontier(axes[0]["address"], axes[1]["address"], live.directions(axes))
    rows = [{"id": each.id, "risk": each.x, "loss": each.y} for each in found]
    return {"axes": [axis["address"] for axis in axes], "candidates": rows}


@router.get("/studies/{study}/clouds")
def get_cloud(request: Request, study: Number, candidate: Annotated[int, Query(ge=1, le=2**53)]) -> list[int]:
    """Return the numbers of the candidates that differ from one by their seed only."""
    held = live.opened(store_of(request), live.study_of(request, study))
    if held is None:
        raise Problem(409, "This study has no results yet.", do="Wait for its search.")
    with held as look:
        return look.same_design(candidate)


@router.put("/studies/{study}/candidates/{number}/note", status_code=204)
def put_note(request: Request, study: Number, number: Number, body: Reason) -> Response:
    """Pin a note to a candidate."""
    row, store = live.study_of(request, study), store_of(request)
    own_project(request, row.project)
    live.note(store, row, current(request).user, number, body.text)
    return Response(status_code=204)


# --- retention -------------------------------------------------------------------------------------------------------


Days = Annotated[int, Field(ge=0, le=36_500)]


class Retention(Strict):
    """For how many days each kind of file is kept; 0 is for ever."""

    source: Days
    studies: Days
    reports: Days
    releases: Days


@router.get("/retention")
def get_retention(request: Request) -> dict[str, int]:
    """Say for how many days each kind of file is kept; 0 is for ever."""
    require(request, "admin")
    return retention.days(store_of(request))


@router.put("/retention")
def put_retention(request: Request, body: Retention) -> dict[str, int]:
    """Change how long each kind of file is kept; what is older is shredded."""
    by, store = require(request, "admin").user, store_of(request)
    for kind, number in body.model_dump().items():
        if number != retention.days(store)[kind]:
            retention.set_days(store, by, kind, number)
    retention.queue(store)
    return retention.days(store)


# --- audit -----------------------------------------------------------------------------------------------------------


@router.get("/audit")
def list_events(request: Request, after: Annotated[int, Query(ge=0, le=2**53)] = 0) -> list[dict[str, object]]:
    """List the events of the audit after a number, at most 1,000."""
    require(request, "admin")
    return [event.as_dict() for event in audit.events(store_of(request).db, after, 1000)]


@router.post("/audit/verify")
def verify_audit(request: Request) -> dict[str, object]:
    """Work out the chain of the audit anew."""
    require(request, "admin")
    checked = audit.verify(store_of(request).db)
    return {"events": checked.events, "head": checked.head, "broken": checked.broken}
