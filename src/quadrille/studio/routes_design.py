"""Step 4, Design: which candidates are searched; the form of every method is made from its schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import tomli_w
from fastapi import APIRouter, Request, Response

from quadrille.errors import QuadrilleError
from quadrille.studio import forms, jobs
from quadrille.studio.pages import page, working
from quadrille.studio.store import ChangedError, Project, Store
from quadrille.studio.web import current, form_of, own_project, redirect, render, settings_of, store_of

router = APIRouter(include_in_schema=False)
MOST_GRIDS = 20
MOST_SINGLES = 8
_USUAL, _LEAST_DESIGNED = "RandomSwap", 3
_MEASURES = ("exposed", "small_cells", "hellinger")
"""Of a first job: two risks that belong together, and the loss of the whole table."""


def _profile(store: Store, project: Project) -> dict[str, Any] | None:
    return store.result(store.latest_job(project.id, "profile", done=True))


def _columns(profile: Mapping[str, Any]) -> list[str]:
    return [each["name"] for each in profile["columns"] if each["role"] not in ("id", "weight")]


@router.get("/projects/{project}/design")
def design(request: Request, project: str) -> Response:
    """Show the newest job as a form, or a first one that is sensible for these data."""
    return shown(request, own_project(request, project))


def shown(
    request: Request,
    project: Project,
    *,
    job: Mapping[str, Any] | None = None,
    faults: forms.Faults | None = None,
    status: int = 200,
    conflict: bool = False,
) -> Response:
    """Show the page; `job` is what was sent and not kept."""
    store, settings = store_of(request), settings_of(request)
    profile, catalogue = _profile(store, project), jobs.catalogue(settings.home)
    if profile is None:
        return redirect(f"/projects/{project.id}/data")
    held = store.document(project.id, "job")
    catalogue = catalogue or {"recipes": {}, "measures": []}
    document = job if job is not None else forms.document(held.text) if held else first(project, profile)
    ahead = _ahead(store, project, held.version if held else None)
    told = faults or ahead["faults"]
    columns = _columns(profile)
    search = cast("dict[str, Any]", document.get("search", {}))
    asked = [*search.get("measures", [])]
    command, written = jobs.drawer(store, project, "forecast", {}, first=tomli_w.dumps(document))
    known = {each["name"] for each in catalogue["measures"]}
    return page(
        request,
        "design.html.j2",
        title="Design",
        project=project,
        step="design",
        status=status,
        grids=[
            forms.grid_form(number, grid, catalogue["recipes"], columns)
            for number, grid in enumerate(forms.grids_of(document)[:MOST_GRIDS])
        ],
        methods=list(catalogue["recipes"]),
        measures=sorted(catalogue["measures"], key=lambda each: (*asked, each["name"]).index(each["name"])),
        asked=[each for each in asked if each in known],
        others="\n".join(each for each in asked if each not in known),
        then="\n".join(search.get("then", [])),
        tables="\n".join(forms.written([each]) for each in search.get("tables", [])),
        rules="\n".join(document.get("data", {}).get("rules", [])),
        sets=forms.SETS,
        faults=told,
        version=0 if held is None else held.version,
        conflict=conflict,
        starting=not catalogue["recipes"],
        kept=held is not None,
        **{key: value for key, value in ahead.items() if key != "faults"},
        command=command,
        files=written,
    )


def first(project: Project, profile: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job to begin with: random swaps of each key variable, at three rates, and a curve of designed swaps."""
    keys = list(profile["keys"])
    swap: object = "singles" if len(keys) <= MOST_SINGLES else [[name] for name in keys[:MOST_SINGLES]]
    grids: list[dict[str, Any]] = [{"method": _USUAL, "swap": swap, "rate": [0.01, 0.02, 0.05], "seeds": 5}]
    roles = {each["role"] for each in profile["columns"]}
    # Many key variables make it a matter of minutes; units, strata and geography restrict who may be exchanged.
    if _LEAST_DESIGNED <= len(keys) <= MOST_SINGLES and not roles & {"unit", "stratum", "geography"}:
        grids.append({"method": "DesignedSwap", "curve": True, "effort": 0.1, "seeds": 1})
    return {"data": _data(project), "search": {"measures": list(_MEASURES)}, "grid": grids}


def _data(project: Project) -> dict[str, Any]:
    return {"file": jobs.project_file(project), "codebook": "codebook.toml"}


def _ahead(store: Store, project: Project, version: int | None) -> dict[str, Any]:
    """Return what is known of the newest job: the forecast, or what is wrong with it."""
    task = store.latest_job(project.id, "forecast")
    mine = task is not None and version is not None and task.spec.get("job") == version
    failed = task is not None and mine and task.state == "failed"
    return {
        "task": task if mine else None,
        "working": mine and working(task),
        "forecast": store.result(task) if mine else None,
        "faults": forms.faults(task.message, store.place(task)) if task is not None and failed else forms.Faults(),
    }


@router.get("/projects/{project}/design/ahead")
def ahead(request: Request, project: str) -> Response:
    """Return the part of the page that says what to expect."""
    store, found = store_of(request), own_project(request, project)
    held = store.document(found.id, "job")
    seen = _ahead(store, found, held.version if held else None)
    from quadrille.present.numbers import score

    return render(request, "ahead.html.j2", project=found, number=score, kept=held is not None, **seen)


@router.post("/projects/{project}/design")
def save(request: Request, project: str) -> Response:
    """Keep the job; add or take out a method, look ahead, or search."""
    store, found, user = store_of(request), own_project(request, project), current(request).user
    profile, catalogue = _profile(store, found), jobs.catalogue(settings_of(request).home)
    if profile is None or catalogue is None:
        return redirect(f"/projects/{found.id}/design")
    sent = forms.gathered(form_of(request))
    action = sent.get("action", ["save"])[0]
    job, faults = sent_job(found, sent, catalogue["recipes"], _columns(profile))
    grids = job["grid"]
    if action == "add" and len(grids) < MOST_GRIDS:
        usual = first(found, profile)["grid"][0]
        grids.append({**usual, "seeds": grids[-1].get("seeds", 5) if grids else 5})
    if action.startswith("remove-") and action[7:].isdecimal() and int(action[7:]) < len(grids):
        del grids[int(action[7:])]
    if faults.beside or faults.whole:
        return shown(request, found, job=job, faults=faults, status=422)
    expected = sent.get("version", ["0"])[0]
    try:
        document = store.put_document(
            user, found.id, "job", tomli_w.dumps(job), expected=int(expected) if expected.isdecimal() else 0
        )
    except ChangedError:
        return shown(request, found, job=job, status=412, conflict=True)
    found = store.project(found.id)
    try:
        if action == "search":
            jobs.submit(store, user, found, "search", {})
            return redirect(f"/projects/{found.id}/search")
        _cancel_earlier(request, found)
        jobs.submit(store, user, found, "forecast", {})
    except QuadrilleError as error:
        return shown(request, found, job=job, faults=forms.faults(str(error), error.place), status=422)
    if request.headers.get("x-live"):
        return Response(str(document.version), headers={"Content-Type": "text/plain"})
    place = f"#grid-{len(grids)}" if action == "add" else "#grids" if action in ("method", "remove") else ""
    return redirect(f"/projects/{found.id}/design{place}")


def _cancel_earlier(request: Request, project: Project) -> None:
    """Cancel a forecast that nobody waits for any more."""
    store = store_of(request)
    task = store.latest_job(project.id, "forecast")
    if task is not None and working(task):
        try:
            store.wish(current(request).user, task.id, "cancel")
        except ValueError:
            return


def sent_job(
    project: Project,
    sent: Mapping[str, Sequence[str]],
    schemas: Mapping[str, Mapping[str, Any]],
    columns: Sequence[str],
) -> tuple[dict[str, Any], forms.Faults]:
    """Return the job that a form says, and what of it cannot be read."""

    def lines(name: str) -> list[str]:
        return [line.strip() for line in next(iter(sent.get(name, ())), "").splitlines() if line.strip()]

    beside: dict[str, str] = {}
    grids: list[dict[str, Any]] = []
    for number in forms.grid_numbers(sent):
        grid, fault = forms.grid_of(number, sent, schemas, columns)
        if fault:
            beside[f"g{len(grids)}.rest"] = fault
        grids.append(grid)
    data = {**_data(project), **({"rules": lines("rules")} if lines("rules") else {})}
    search: dict[str, Any] = {"measures": [*sent.get("measure", ()), *lines("others")]}
    search |= {name: lines(name) for name in ("then", "tables") if lines(name)}
    return {"data": data, "search": search, "grid": grids}, forms.Faults(beside)
