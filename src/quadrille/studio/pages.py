"""What all pages of the browser share: the rail of steps, the drawer, notices, dates, the tables of charts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from fastapi import Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from quadrille.present.numbers import count, score, share
from quadrille.studio.store import STATES
from quadrille.studio.web import STEPS, render, session_of, settings_of, store_of

if TYPE_CHECKING:
    from quadrille.studio.store import Job, Project, Store, User

WORKING = ("queued", "running", "paused")


@dataclass(frozen=True)
class Step:
    """A step of a project as the rail shows it; `why` says what is missing where it is not open yet."""

    name: str
    title: str
    href: str
    open: bool
    done: bool
    current: bool
    why: str


@dataclass(frozen=True)
class Notice:
    """A sentence above a page: `kind` is "", "good", "warn" or "bad"."""

    text: str
    kind: str = ""


_STATES = {
    "draft": ("draft", ""),
    "submitted": ("waits for sign-off", "warn"),
    "approved": ("approved", "good"),
    "rejected": ("rejected", "bad"),
    "released": ("released", "good"),
}


def state_tag(state: str) -> Markup:
    """Return the state of a project as a label."""
    text, kind = _STATES[state]
    return Markup('<span class="tag {}">{}</span>').format(kind, text)


def day(moment: float | None) -> str:
    """Write a moment: day and minute, in universal time."""
    return "" if moment is None else f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M} UTC"


def size(count: int) -> str:
    """Write a size in bytes."""
    number, unit = float(count), "bytes"
    for larger in ("KiB", "MiB", "GiB"):
        if number < 1024:
            break
        number, unit = number / 1024, larger
    return f"{number:,.4g} {unit}"


def rail(store: Store, project: Project, step: str, user: User) -> list[Step]:
    """Return the steps of a project: which are done, which are open, and what the others wait for."""
    kinds = ("risk", "search", "compare", "policy")
    done = {kind: store.latest_job(project.id, kind, done=True) is not None for kind in kinds}
    data = bool(project.source and project.records)
    job = store.document(project.id, "job") is not None
    searched = bool(store.studies(project.id))
    chosen = project.candidate is not None or bool(project.choice)
    sent = project.state in ("submitted", "approved", "released")
    book = store.document(project.id, "codebook")
    state: dict[str, tuple[bool, bool, str]] = {
        "data": (True, data, ""),
        "roles": (data, book is not None and (book.user != 0 or job), "choose data first"),
        "risk": (data, done["risk"], "choose data first"),
        "design": (data, job, "choose data first"),
        "search": (searched, done["search"], "design candidates first"),
        "compare": (done["search"] or searched, done["compare"] or chosen, "search first"),
        "release": (done["search"] or chosen, sent, "search first"),
        "sign-off": (sent or project.state == "rejected", project.state == "released", "submit a release first"),
    }
    mine = project.owner == user.id
    made: list[Step] = []
    for name, title in STEPS:
        opened, finished, why = state[name]
        if not mine and name != "sign-off":
            opened, why = False, "seen by the analyst of the project only"
        made.append(Step(name, title, f"/projects/{project.id}/{name}", opened, finished, name == step, why))
    return made


def page(
    request: Request,
    template: str,
    *,
    title: str,
    project: Project | None = None,
    step: str = "",
    command: str = "",
    files: Sequence[tuple[str, str]] = (),
    notices: Iterable[Notice] = (),
    status: int = 200,
    **values: object,
) -> HTMLResponse:
    """Fill the template of a page; `command` and `files` are what the drawer shows."""
    session, settings = session_of(request), settings_of(request)
    user = None if session is None else session.user
    steps = [] if project is None or user is None else rail(store_of(request), project, step, user)
    told = [*_kept(request, project), *notices]
    shared: Mapping[str, Any] = {
        "title": title,
        "project": project,
        "step": step,
        "rail": steps,
        "user": user,
        "team": settings.team,
        "command": command,
        "files": files,
        "notices": told,
        "day": day,
        "size": size,
        "state_tag": state_tag,
        "number": score,
        "share": share,
        "count": count,
        "rows_of": rows_of,
    }
    return render(request, template, status=status, **(dict(shared) | values))


_SAID = {
    "saved": Notice("Saved.", "good"),
    "pinned": Notice("Pinned. Pin up to four candidates and compare them.", "good"),
    "unpinned": Notice("No longer pinned."),
    "proposed": Notice("Proposed for release.", "good"),
    "submitted": Notice("Submitted. A reviewer can look at it now.", "good"),
    "withdrawn": Notice("Withdrawn. The project is a draft again."),
    "approved": Notice("Approved. The release is being written.", "good"),
    "rejected": Notice("Rejected. The analyst sees the reason."),
    "comment": Notice("The comment is kept.", "good"),
    "user": Notice("The user is changed.", "good"),
    "removed": Notice("Removed.", "good"),
    "cancelled": Notice("The search was cancelled. What was scored so far is kept."),
    "limits": Notice("The limits are changed.", "good"),
}


def _kept(request: Request, project: Project | None) -> list[Notice]:
    """Return what the form that led here has to say, a word of a fixed list; nothing that is over by now."""
    word = request.query_params.get("said", "")
    said = _SAID.get(word)
    over = word in STATES and project is not None and project.state != word
    return [] if said is None or over else [said]


def working(job: Job | None) -> bool:
    """Whether a job is under way."""
    return job is not None and job.state in WORKING


# --- the rows that a chart shows, for the table below it: the text twin of every picture ----------------------------

MOST_ROWS = 200


class Rows(NamedTuple):
    """Heads and rows of a table; `left` rows were left out."""

    head: list[str]
    rows: list[list[object]]
    left: int


def rows_of(spec: Mapping[str, Any]) -> Rows | None:
    """Return the largest table of values in a Vega-Lite specification; None where it holds none."""
    tables = list(_values(spec))
    if not tables:
        return None
    found = max(tables, key=len)
    head = list(dict.fromkeys(name for row in found[:MOST_ROWS] for name in row))
    shown = [[row.get(name) for name in head] for row in found[:MOST_ROWS]]
    return Rows(head, shown, len(found) - len(shown))


def _named(rows: object) -> dict[str, object]:
    return {"values": rows}


def _values(spec: object) -> Iterator[list[dict[str, object]]]:
    if isinstance(spec, list):
        for each in cast("list[object]", spec):
            yield from _values(each)
    if not isinstance(spec, Mapping):
        return
    for name, value in cast("Mapping[str, object]", spec).items():
        listed = cast("list[object]", value) if isinstance(value, list) else []
        if name == "values" and listed and all(isinstance(row, dict) for row in listed):
            yield cast("list[dict[str, object]]", listed)
        elif name == "datasets" and isinstance(value, Mapping):
            for rows in cast("Mapping[str, object]", value).values():
                yield from _values(_named(rows))
        else:
            yield from _values(cast("object", value))
