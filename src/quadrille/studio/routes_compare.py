"""Step 6, Compare: up to four pinned candidates side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request, Response

from quadrille.errors import QuadrilleError
from quadrille.studio import forms, jobs
from quadrille.studio.pages import page, working
from quadrille.studio.routes_search import look, notes
from quadrille.studio.web import current, form_of, own_project, redirect, store_of

router = APIRouter(include_in_schema=False)


@router.get("/projects/{project}/compare")
def compare(request: Request, project: str) -> Response:
    """Show what was compared last, and what is pinned."""
    return shown(request, project)


def shown(request: Request, project: str, fault: str = "") -> Response:
    """Show the page, with what was wrong with the wish."""
    store, found = store_of(request), own_project(request, project)
    seen = look(request, found)
    pins = [] if seen is None else list(notes(seen.path))
    mine = [each for each in store.jobs(found.id, "compare") if seen and each.spec["study"] == seen.row.id]
    job = mine[0] if mine else None
    finished = next((each for each in mine if each.state == "done"), None)
    result = store.result(finished)
    compared: list[int] = finished.spec["candidates"] if finished else []
    spec = finished.spec if finished else {"candidates": sorted(pins)[: jobs.MOST_COMPARED]}
    command, written = jobs.drawer(store, found, "compare", spec)
    return page(
        request,
        "compare.html.j2",
        title="Compare",
        project=found,
        step="compare",
        status=422 if fault else 200,
        fault=fault,
        job=job,
        working=working(job),
        result=result,
        study=0 if seen is None else seen.row.id,
        pins=sorted({*pins, *compared}),
        compared=compared,
        attack=bool(finished and finished.spec.get("attack")),
        stale=bool(finished) and set(pins) != set(compared) and bool(pins),
        tops={} if result is None else _tops(result),
        written=_written,
        command=command,
        files=written,
    )


def _written(value: object) -> str:
    return "–" if value is None else forms.written(value) or "none"


def _tops(result: Mapping[str, Any]) -> dict[str, float]:
    """Return the largest amount in each row, to which its bars are drawn."""
    return {
        measure["address"]: max(
            (abs(each["scores"].get(measure["address"]) or 0.0) for each in result["candidates"]), default=0.0
        )
        for measure in result["measures"]
    }


@router.post("/projects/{project}/compare")
def ask(request: Request, project: str) -> Response:
    """Ask for a comparison."""
    store, found = store_of(request), own_project(request, project)
    sent = forms.gathered(form_of(request))
    study = sent.get("study", [""])[0]
    candidates = [int(each) for each in sent.get("candidate", []) if each.isdecimal() and len(each) < 12]
    spec: dict[str, object] = {
        "study": int(study) if study.isdecimal() and len(study) < 12 else 0,
        "candidates": candidates,
        "attack": "attack" in sent,
    }
    try:
        jobs.submit(store, current(request).user, found, "compare", spec)
    except QuadrilleError as error:
        return shown(request, project, str(error))
    return redirect(f"/projects/{found.id}/compare?study={spec['study']}")
