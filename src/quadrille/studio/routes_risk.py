"""Step 3, Risk today: how many stand alone in the file as it is, by what they are known, and what an intruder finds."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from quadrille.errors import QuadrilleError
from quadrille.studio import jobs
from quadrille.studio.forms import gathered
from quadrille.studio.pages import page, working
from quadrille.studio.web import current, form_of, own_project, redirect, store_of

router = APIRouter(include_in_schema=False)
MOST_SETS = 4


@router.get("/projects/{project}/risk")
def risk(request: Request, project: str) -> Response:
    """Show the risk of the file as it is."""
    return shown(request, project)


def shown(request: Request, project: str, fault: str = "") -> Response:
    """Show the page, with what was wrong with the wish."""
    store, found = store_of(request), own_project(request, project)
    job = store.latest_job(found.id, "risk")
    finished = store.latest_job(found.id, "risk", done=True)
    result = store.result(finished)
    profile = store.result(store.latest_job(found.id, "profile", done=True))
    if profile is None:
        return redirect(f"/projects/{found.id}/data")
    asked = finished.spec if finished else {}
    keys = list(profile["keys"])
    names = [
        each["name"]
        for each in profile["columns"]
        if each["role"] not in ("id", "weight") and each["categories"] is not None
    ]
    sets = [list(each) for each in asked.get("sets") or [keys]][:MOST_SETS]
    codebook, held = store.document(found.id, "codebook"), None if finished is None else finished.spec.get("codebook")
    policy = store.document(found.id, "policy")
    command, written = jobs.drawer(store, found, "risk", {})
    if result is not None:
        command = "\n".join(result["command"])
    return page(
        request,
        "risk.html.j2",
        title="Risk today",
        project=found,
        step="risk",
        status=422 if fault else 200,
        job=job,
        working=working(job),
        result=result,
        fault=fault,
        names=names,
        sets=[*sets, []][:MOST_SETS],
        keys=keys,
        n=asked.get("n", 3),
        attack=bool(asked.get("attack")),
        stale=bool(result) and codebook is not None and held != codebook.version,
        policy="" if policy is None else policy.text,
        command=command,
        files=written,
    )


@router.post("/projects/{project}/risk")
def look(request: Request, project: str) -> Response:
    """Ask for the risk of some key sets, and for the intruder's attacks."""
    store, found, user = store_of(request), own_project(request, project), current(request).user
    sent = gathered(form_of(request))
    sets = [[name for name in sent.get(f"set{number}", []) if name] for number in range(MOST_SETS)]
    n = sent.get("n", ["3"])[0].strip()
    spec: dict[str, object] = {
        "sets": [each for each in sets if each],
        "n": int(n) if n.isdecimal() and len(n) < 7 else n,
        "attack": "attack" in sent,
    }
    try:
        jobs.submit(store, user, found, "risk", spec)
    except QuadrilleError as error:
        return shown(request, project, str(error))
    return redirect(f"/projects/{found.id}/risk")
