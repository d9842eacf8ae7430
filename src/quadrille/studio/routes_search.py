"""Step 5, Search: candidates as they come in, the frontier, pins; all of it read from the study by plain SQL."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from fastapi import APIRouter, Request, Response

from quadrille.errors import QuadrilleError
from quadrille.studio import forms, jobs, live
from quadrille.studio.pages import WORKING, page
from quadrille.studio.store import Job, Project, Store, StudyRow
from quadrille.studio.web import current, form_of, not_found, own_project, redirect, render, store_of
from quadrille.study.store import STATUS

router = APIRouter(include_in_schema=False)
MOST_ROWS = 200
"""Rows of the table of a frontier; longer ones are thinned evenly, and the ends stay."""


@dataclass(frozen=True)
class Look:
    """What is looked at: a study, its two axes and how each is better."""

    row: StudyRow
    path: Path
    risk: str
    loss: str
    better: tuple[str, str]

    @property
    def begun(self) -> bool:
        """Whether there is something to see yet."""
        return bool(self.risk and self.loss) and self.path.is_file()


def look(request: Request, project: Project) -> Look | None:
    """Return what a request looks at: the latest study and its first axes, unless it names others."""
    store = store_of(request)
    studies = {each.id: each for each in store.studies(project.id)}
    if not studies:
        return None
    asked = request.query_params.get("study", "")
    row = (
        studies.get(int(asked))
        if asked.isdecimal() and len(asked) < 12
        else max(studies.values(), key=lambda each: each.id)
    )
    if row is None:
        not_found("study")
    if not row.measures:  # its search has not begun yet
        row = replace(row, measures=_measures(store, project))
    risk = _axis(row, "risk", request.query_params.get("risk", ""))
    loss = _axis(row, "loss", request.query_params.get("loss", ""))
    ways = {each["address"]: each["direction"] for each in row.measures}
    return Look(row, store.home.study(row), risk, loss, (ways.get(loss, "lower"), ways.get(risk, "lower")))


def _measures(store: Store, project: Project) -> tuple[dict[str, str], ...]:
    """Return the measures that a search will score, from its job and the catalogue."""
    held, catalogue = store.document(project.id, "job"), jobs.catalogue(store.home)
    known = {each["name"]: each for each in catalogue["measures"]} if catalogue else {}
    search = forms.document(held.text if held else None).get("search", {})
    asked = [str(each) for each in search.get("measures", [])]
    found = ((address, known.get(address.partition("(")[0].strip())) for address in asked)
    return tuple(
        {"address": address, "side": each["side"], "direction": each["direction"]} for address, each in found if each
    )


def _axis(row: StudyRow, side: str, asked: str) -> str:
    own = [each["address"] for each in row.measures if each["side"] == side]
    return asked if asked in own else next(iter(own), "")


def notes(path: Path) -> dict[int, str]:
    """Return the candidates that are pinned, with their notes."""
    if not path.is_file():
        return {}
    from quadrille.studio.store import read_only

    with read_only(path) as db:
        return {
            number: note for number, note in db.execute("SELECT id, note FROM notes ORDER BY id").fetchall() if note
        }


def frontier(store: Store, seen: Look) -> tuple[list[dict[str, Any]], int]:
    """Return the rows of the frontier, evenly thinned where it is long, and how many it has."""
    if not seen.begun:
        return [], 0
    opened = live.opened(store, seen.row)
    if opened is None:
        return [], 0
    with opened as file:
        points = file.frontier(seen.loss, seen.risk, seen.better)
        count = len(points)
        if count > MOST_ROWS:
            points = [points[place * (count - 1) // (MOST_ROWS - 1)] for place in range(MOST_ROWS)]
        stored = [(point, file.candidate(point.id)) for point in points]
    return [
        {"id": point.id, "loss": point.x, "risk": point.y, "design": in_words(found.design), "note": found.note}
        for point, found in stored
    ], count


def in_words(design: str) -> str:
    """Name a design in one line, from its recipe without the seed."""
    known: dict[str, object] = json.loads(design)
    method = str(known.pop("method", ""))
    known.pop("version", None)
    parts = (f"{name.replace('_', ' ')} {forms.written(value)}" for name, value in known.items())
    return ", ".join([method.removesuffix("Swap"), *parts])


def candidate(store: Store, seen: Look, number: int) -> dict[str, Any] | None:
    """Return all that is known of a candidate; None where there is none."""
    if not seen.begun:
        return None
    opened = live.opened(store, seen.row)
    if opened is None:
        return None
    with opened as file:
        try:
            found = file.candidate(number)
        except QuadrilleError:
            return None
        counts = file.dominance(number, seen.loss, seen.risk, seen.better)
        addresses = [*file.header.measures, *file.header.then]
    parameters = cast("dict[str, object]", json.loads(found.design))
    return {
        "id": number,
        "design": in_words(found.design),
        "parameters": {
            name.replace("_", " "): forms.written(value) for name, value in parameters.items() if name != "version"
        },
        "status": "pending" if found.status is None else STATUS[found.status],
        "reason": found.reason,
        "note": found.note,
        "scores": dict(zip(addresses, found.values, strict=True)),
        "dominates": counts,
    }


def search_job(store: Store, project: Project, study: int) -> Job | None:
    """Return the latest job that works on a study."""
    return next((each for each in store.jobs(project.id, "search") if each.spec.get("study") == study), None)


@router.get("/projects/{project}/search")
def search(request: Request, project: str) -> Response:
    """Show a search while it runs, and after."""
    store, found = store_of(request), own_project(request, project)
    seen = look(request, found)
    job = None if seen is None else search_job(store, found, seen.row.id)
    chosen = _number(request.query_params.get("candidate", ""))
    rows, count = ([], 0) if seen is None else frontier(store, seen)
    pins = {} if seen is None else notes(seen.path)
    forecast = store.result(store.latest_job(found.id, "forecast", done=True))
    command, written = jobs.drawer(store, found, "search", {})
    return page(
        request,
        "search.html.j2",
        title="Search",
        project=found,
        step="search",
        seen=seen,
        job=job,
        active=job is not None and job.state in WORKING,
        result=store.result(job),
        rows=rows,
        total=count,
        pins=pins,
        studies=store.studies(found.id),
        chosen=None if seen is None or chosen is None else candidate(store, seen, chosen),
        plane=None if seen is None or job is None else _plane(found, seen, job, pins, forecast, chosen),
        command=command,
        files=written,
    )


def _plane(
    project: Project,
    seen: Look,
    job: Job,
    pins: Mapping[int, str],
    forecast: Mapping[str, Any] | None,
    chosen: int | None,
) -> dict[str, object]:
    """Return what the plane begins with."""
    predicted: list[tuple[float, float]] = []
    if forecast and forecast.get("axes") == [seen.risk, seen.loss]:
        best = [each["values"] for each in forecast["predicted"]["designs"] if each["on_frontier"]]
        places = [(each.get(seen.loss), each.get(seen.risk)) for each in best]
        predicted = sorted((x, y) for x, y in places if x is not None and y is not None)
    return {
        "project": project.id,
        "study": seen.row.id,
        "job": job.id,
        "state": job.state,
        "risk": seen.risk,
        "loss": seen.loss,
        "better": seen.better,
        "pins": list(pins),
        "predicted": predicted,
        "chosen": chosen,
    }


@router.get("/projects/{project}/search/candidate")
def details(request: Request, project: str) -> Response:
    """Return the part of the page about one candidate."""
    found = own_project(request, project)
    seen, number = look(request, found), _number(request.query_params.get("candidate", ""))
    chosen = None if seen is None or number is None else candidate(store_of(request), seen, number)
    if chosen is None:
        not_found("candidate")
    from quadrille.present.numbers import score

    return render(request, "candidate.html.j2", project=found, seen=seen, chosen=chosen, number=score)


@router.get("/projects/{project}/search/frontier")
def table(request: Request, project: str) -> Response:
    """Return the table of the frontier."""
    found = own_project(request, project)
    seen = look(request, found)
    if seen is None:
        not_found("study")
    rows, count = frontier(store_of(request), seen)
    from quadrille.present.numbers import score

    return render(
        request, "frontier.html.j2", project=found, seen=seen, rows=rows, total=count, number=score, chosen=None
    )


@router.post("/projects/{project}/pin")
def pin(request: Request, project: str) -> Response:
    """Pin a candidate with a note, or take its pin out."""
    found, sent = own_project(request, project), dict(form_of(request))
    study, number = _number(sent.get("study", "")), _number(sent.get("candidate", ""))
    row = next((each for each in store_of(request).studies(found.id) if each.id == study), None)
    if row is None or number is None:
        not_found("candidate")
    store = store_of(request)
    text = (sent.get("note", "").strip() or "pinned")[:500] if sent.get("pin", "1") == "1" else ""
    live.note(store, row, current(request).user, number, text)
    if request.headers.get("x-live"):
        return Response(status_code=204)
    said = "pinned" if text else "unpinned"
    return redirect(f"/projects/{found.id}/search?study={row.id}&candidate={number}&said={said}")


@router.post("/projects/{project}/search/{wish}")
def steer(request: Request, project: str, wish: str) -> Response:
    """Pause, resume or cancel a search, or go on with one that was stopped."""
    store, found, user = store_of(request), own_project(request, project), current(request).user
    study = _number(dict(form_of(request)).get("study", ""))
    job = None if study is None else search_job(store, found, study)
    if job is None or wish not in ("pause", "resume", "cancel", "again"):
        not_found("search")
    if wish == "again":
        jobs.submit(store, user, found, "search", {"study": study})
    else:
        try:
            store.wish(user, job.id, wish)
        except ValueError:
            return redirect(f"/projects/{found.id}/search?study={study}")
    return redirect(f"/projects/{found.id}/search?study={study}{'&said=cancelled' if wish == 'cancel' else ''}")


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 12 else None
