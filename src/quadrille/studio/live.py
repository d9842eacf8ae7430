"""What is told while it happens: the events of a job, and the points of a study.

`GET /api/v1/jobs/{id}/events?after=&risk=&loss=` is a stream of server-sent events:

    state   {"state", "done", "total", "message", "attempts", "study", "rate": candidates a second or null,
            "left": seconds or null}                                 when it changes, at most four times a second
    points  base64 of the points that are new, as below, for `?risk=&loss=`; its id is the last: Last-Event-ID goes on
    end     {"state", "message"}                                         then the stream ends

A fifth stream of a session gets 204, which ends an EventSource for good: it then asks every two seconds.

`GET /api/v1/studies/{id}/points?after=&risk=&loss=` are 12 bytes a candidate, little-endian: u4 number, f4 loss, f4
risk, turned so that less is better on both; the header X-Last is the number to go on from. Candidates without both
scores are left out.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import struct
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import closing
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from quadrille.errors import QuadrilleError
from quadrille.studio import web
from quadrille.studio.store import Job, Store, StudyRow, User
from quadrille.study.store import Store as StudyStore

router = APIRouter(prefix="/api/v1", tags=["live"], responses=web.RESPONSES)

MOST_STREAMS = 4
LOOK_SECONDS = 0.25
MOST_POINTS = 200_000
_POINT = struct.Struct("<Iff")

_streams: Counter[str] = Counter()


def axes_of(
    study: StudyRow, risk: str | None = None, loss: str | None = None
) -> tuple[dict[str, str], dict[str, str]] | None:
    """Return the measures that are the axes: those named, else the first of each side; None where there is none."""
    found: list[dict[str, str]] = []
    for side, wanted in (("risk", risk), ("loss", loss)):
        fitting = [each for each in study.measures if (each["address"] == wanted if wanted else each["side"] == side)]
        if not fitting:
            return None
        found.append(fitting[0])
    return found[0], found[1]


def opened(store: Store, study: StudyRow) -> closing[StudyStore] | None:
    """Open a study for one short look that keeps nobody from writing; None while it is not there."""
    path = store.home.study(study)
    if not path.exists():
        return None
    try:
        return closing(StudyStore.look(path))
    except QuadrilleError:  # its search has not written the tables yet
        return None


def points(store: Store, study: StudyRow, after: int, risk: str | None, loss: str | None) -> tuple[bytes, int]:
    """Return the points after a number, and the number to go on from."""
    axes, look = axes_of(study, risk, loss), opened(store, study)
    if axes is None or look is None:
        return b"", after
    packed, number = bytearray(), after
    with look as held:
        try:
            last = held.last()  # first: what is stored between the two looks is among the rows
            rows = held.points(axes[0]["address"], axes[1]["address"], directions(axes), after, MOST_POINTS)
            for number, y, x in rows:  # the axes come as risk and loss, and go out as x and y
                packed += _POINT.pack(number, x, y)
        except (sqlite3.Error, QuadrilleError):
            return b"", after
    return bytes(packed), number if len(packed) == MOST_POINTS * _POINT.size else max(last, number)


def directions(axes: tuple[dict[str, str], dict[str, str]]) -> tuple[str, str]:
    """Return the directions of the measures of two axes."""
    return axes[0]["direction"], axes[1]["direction"]


@router.get(
    "/studies/{study}/points", response_class=Response, responses={200: {"content": {"application/octet-stream": {}}}}
)
def get_points(
    request: Request,
    study: int,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    risk: Annotated[str | None, Query(max_length=2000)] = None,
    loss: Annotated[str | None, Query(max_length=2000)] = None,
) -> Response:
    """Return the points of a study in the plane of two measures, 12 bytes each."""
    row = study_of(request, study)
    packed, last = points(web.store_of(request), row, after, risk, loss)
    return Response(packed, media_type="application/octet-stream", headers={"X-Last": str(last)})


def study_of(request: Request, study: int) -> StudyRow:
    """Return a study of a project that the user may look at."""
    store = web.store_of(request)
    try:
        row = store.study(study)
    except (KeyError, OverflowError):
        web.not_found("study")
    web.seen_project(request, row.project)
    return row


def job_of(request: Request, job: int) -> Job:
    """Return a job of a project that the user may look at."""
    store = web.store_of(request)
    try:
        found = store.job(job)
    except (KeyError, OverflowError):
        web.not_found("job")
    web.seen_project(request, found.project)
    return found


def note(store: Store, study: StudyRow, by: User, candidate: int, text: str) -> None:
    """Pin a note to a candidate of a study; it stands in the study itself, where reports find it."""
    path = store.home.study(study)
    look = opened(store, study)
    if look is None:
        raise web.Problem(409, "This study has no results yet.", do="Wait for its search.")
    with look, closing(StudyStore.open(path)) as held:
        try:
            held.candidate(candidate)
        except QuadrilleError:
            web.not_found("candidate")
        held.note(candidate, text)
    store.record(by, "candidate noted", study.project, {"study": study.id, "candidate": candidate})


@router.get("/jobs/{job}/events", response_class=Response, responses={200: {"content": {"text/event-stream": {}}}})
async def events(
    request: Request,
    job: int,
    risk: Annotated[str | None, Query(max_length=2000)] = None,
    loss: Annotated[str | None, Query(max_length=2000)] = None,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    last_event_id: Annotated[str, Header(max_length=40)] = "",
) -> Response:
    """Tell what happens to a job until it is over."""
    found = await to_thread.run_sync(job_of, request, job)
    session = web.current(request)
    key = session.hash or session.user.name
    if _streams[key] >= MOST_STREAMS:
        return Response(status_code=204)
    after = int(last_event_id) if last_event_id.isascii() and last_event_id.isdigit() else after
    stream = _told(request, key, found, after, risk, loss)
    return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def _told(
    request: Request, key: str, job: Job, after: int, risk: str | None, loss: str | None
) -> AsyncIterator[bytes]:
    store, told = web.store_of(request), ""
    pace = Pace()
    _streams[key] += 1
    try:
        yield b"retry: 1000\n\n"
        quiet = 0.0
        while not await request.is_disconnected():
            job, state, packed, last = await to_thread.run_sync(_look, store, job.id, after, risk, loss)
            text = json.dumps({**state, **pace.of(job)})
            if text != told:
                told, quiet = text, 0.0
                yield _event("state", text)
            if last > after:
                after = last
                yield _event("points", _base64(packed), after)
            if job.over:
                yield _event("end", json.dumps({"state": job.state, "message": job.message}))
                return
            quiet += LOOK_SECONDS
            if quiet > 10:
                quiet = 0.0
                yield b": still here\n\n"
            await asyncio.sleep(LOOK_SECONDS)
    finally:
        _streams[key] -= 1
        if not _streams[key]:
            del _streams[key]


class Pace:
    """How fast a job goes, over the last half minute."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, int]] = []

    def of(self, job: Job) -> dict[str, float | None]:
        """Take in how far a job is; return candidates a second and the seconds left."""
        now = asyncio.get_running_loop().time()
        if not self._seen or job.done != self._seen[-1][1]:
            self._seen = [(when, done) for when, done in self._seen if now - when < 30] + [(now, job.done)]
        (start, first), (end, last) = self._seen[0], self._seen[-1]
        if end - start < 0.5 or job.state != "running":
            return {"rate": None, "left": None}
        rate = (last - first) / (end - start)
        return {"rate": round(rate, 1), "left": round((job.total - job.done) / rate) if rate else None}


def _look(
    store: Store, number: int, after: int, risk: str | None, loss: str | None
) -> tuple[Job, dict[str, Any], bytes, int]:
    """Look at a job, and at its study where it has one."""
    job = store.job(number)
    state = {"state": job.state, "done": job.done, "total": job.total, "message": job.message, "attempts": job.attempts}
    study = job.spec.get("study") if job.kind == "search" else None
    if study is None:
        return job, {**state, "study": None}, b"", after
    try:
        packed, last = points(store, store.study(study), after, risk, loss)
    except KeyError:
        packed, last = b"", after
    return job, {**state, "study": study}, packed, last


def _base64(packed: bytes) -> str:
    from base64 import b64encode

    return b64encode(packed).decode()


def _event(kind: str, data: str, number: int | None = None) -> bytes:
    head = f"id: {number}\n" if number is not None else ""
    return f"{head}event: {kind}\ndata: {data}\n\n".encode()
