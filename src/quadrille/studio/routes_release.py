"""Step 7, Release: a candidate is proposed, the policy judges it, the report is written, all of it is submitted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response

from quadrille.errors import QuadrilleError
from quadrille.studio import jobs, signoff
from quadrille.studio.pages import page, working
from quadrille.studio.routes_search import in_words, look
from quadrille.studio.store import ChangedError, Document, Job, Project, Store, toml
from quadrille.studio.web import Problem, current, form_of, own_project, redirect, settings_of, store_of

router = APIRouter(include_in_schema=False)
_CRITERIA = (
    ("balanced", "balanced: most risk taken away per loss, of those that halve it"),
    ("gentle", "gentle: least loss of those that clearly protect"),
    ("safe", "safe: least loss of those that take most of the risk away"),
    ("knee", "the knee of the frontier"),
    ("ideal", "closest to the ideal point"),
    ("least loss", "least loss"),
    ("least risk", "least risk"),
)


def proposal(store: Store, project: Project) -> tuple[Job | None, dict[str, Any] | None]:
    """Return the latest policy job of a project, and what the last one that is done has found."""
    return store.latest_job(project.id, "policy"), store.result(store.latest_job(project.id, "policy", done=True))


def report_of(store: Store, project: Project, checked: Mapping[str, Any] | None) -> tuple[Job | None, Job | None]:
    """Return the latest report job on a proposal, and the same if it is done."""
    if checked is None:
        return None, None
    wanted = (checked["study"], checked["candidate"])
    found = (each for each in store.jobs(project.id, "report"))
    job = next((each for each in found if (each.spec["study"], each.spec["candidate"]) == wanted), None)
    return job, job if job is not None and job.state == "done" else None


@router.get("/projects/{project}/release")
def release(request: Request, project: str) -> Response:
    """Show what is proposed and what the policy says."""
    return shown(request, project)


def shown(
    request: Request,
    project: str,
    *,
    fault: str = "",
    policy: str | None = None,
    policy_fault: str = "",
    status: int = 200,
) -> Response:
    """Show the page, with what was wrong beside its field."""
    store, found = store_of(request), own_project(request, project)
    seen = look(request, found)
    job, checked = proposal(store, found)
    report_job, report = report_of(store, found, checked)
    held = store.document(found.id, "policy")
    finished = store.latest_job(found.id, "policy", done=True)
    asked: dict[str, Any] = {} if finished is None else finished.spec
    picked: dict[str, Any] = asked.get("pick") or {}
    place = None if policy_fault or job is None else store.place(job)
    if place is not None and Path(place.file).name == "policy.toml":
        policy_fault = f"[{place.section}] {place.key}: {place.text}" if place.section else place.text
    catalogue = jobs.catalogue(settings_of(request).home) or {}
    command, written = jobs.drawer(store, found, "policy", {**asked, "candidate": checked and checked["candidate"]})
    return page(
        request,
        "release.html.j2",
        title="Release",
        project=found,
        step="release",
        status=status,
        fault=fault,
        policy_job=job,
        policy_working=working(job),
        checked=checked,
        design="" if checked is None else in_words(checked["design"]),
        asked=asked | picked,
        study=0 if seen is None else seen.row.id,
        axes=("", "") if seen is None else (seen.risk, seen.loss),
        criteria=_CRITERIA,
        formats=catalogue.get("formats", jobs.FORMATS),
        policy=policy if policy is not None else "" if held is None else held.text,
        policy_fault=policy_fault,
        policy_version=0 if held is None else held.version,
        report=report,
        report_job=report_job,
        waiting=working(job) or working(report_job),
        why_not=_why_not(found, checked, job, finished, _version(held), report),
        command=command if checked else "quadrille pick study",
        files=written,
    )


def _version(held: Document | None) -> int | None:
    return held.version if held is not None and held.text else None


def _why_not(
    project: Project,
    checked: Mapping[str, Any] | None,
    job: Job | None,
    finished: Job | None,
    policy: int | None,
    report: Job | None,
) -> str:
    """Say why a proposal cannot be submitted; nothing where it can."""
    if checked is None or job is None or finished is None:
        return "Nothing is proposed yet."
    if working(job):
        return "The policy is judging the proposal."
    if finished.spec.get("policy") != policy:
        return "The policy has changed since this was judged. Choose and judge again."
    if project.fingerprint and checked["fingerprint"] != project.fingerprint:
        return "The data or the roles have changed since this was judged. Choose and judge again."
    if checked["verdict"] == "fail":
        failed = [line for line in checked["lines"] if line["verdict"] == "fail"]
        said = "; ".join(f"{line['rule']} must be {line['asked']}, and is {line['found']}" for line in failed[:3])
        return f"The policy fails it: {said}."
    if report is None:
        return "Write the report for the board first: the one who signs reads it."
    return ""


@router.post("/projects/{project}/propose")
def propose(request: Request, project: str) -> Response:
    """Propose a candidate, by number or by a rule, and let the policy judge it."""
    store, found, user = store_of(request), own_project(request, project), current(request).user
    sent = dict(form_of(request))
    last = store.latest_job(found.id, "policy", done=True)
    public = {name: last.spec[name] for name in ("format", "shuffle")} if last else {"format": "csv", "shuffle": True}
    if "format" in sent:
        public = {"format": sent["format"], "shuffle": "shuffle" in sent}
    try:
        spec: dict[str, object] = {"study": _whole(sent.get("study", "")), **public}
        if number := sent.get("candidate", "").strip():
            spec["candidate"] = _whole(number)
        else:
            limits = {name: _limit(name, sent.get(name, "")) for name in ("max_risk", "max_loss")}
            spec["pick"] = {**limits, "criterion": sent.get("criterion") or None}
        jobs.submit(store, user, found, "policy", spec)
    except QuadrilleError as error:
        return shown(request, project, fault=str(error), status=422)
    return redirect(f"/projects/{found.id}/release")


def _whole(text: str) -> int:
    bare = text.strip().replace(",", "")
    if not bare.isdecimal() or len(bare) > 11:
        raise QuadrilleError("The number of a candidate must be a whole number.")
    return int(bare)


def _limit(name: str, text: str) -> float | None:
    if not text.strip():
        return None
    try:
        return float(text)
    except ValueError:
        raise QuadrilleError(f"{name.replace('_', ' ').capitalize()} must be a number, such as 0.0135.") from None


@router.post("/projects/{project}/policy")
def keep_policy(request: Request, project: str) -> Response:
    """Keep a new version of the policy; what is proposed is judged again."""
    store, found, user = store_of(request), own_project(request, project), current(request).user
    sent = dict(form_of(request))
    text, version = sent.get("policy", "").replace("\r\n", "\n").strip(), sent.get("version", "0")
    try:
        toml(text)
    except ValueError as error:
        fault = f"This is no TOML: {error}."
        return shown(request, project, policy=text, policy_fault=fault, status=422)
    try:
        store.put_document(
            user, found.id, "policy", text and text + "\n", expected=int(version) if version.isdecimal() else 0
        )
    except ChangedError:
        fault = "Another tab was faster: its version is kept. Compare, then save again."
        return shown(request, project, policy=text, policy_fault=fault, status=412)
    _, checked = proposal(store, found)
    last = store.latest_job(found.id, "policy", done=True)
    if checked is not None and last is not None:
        again = {name: last.spec[name] for name in ("study", "format", "shuffle")}
        jobs.submit(store, user, store.project(found.id), "policy", {**again, "candidate": checked["candidate"]})
    return redirect(f"/projects/{found.id}/release?said=saved")


@router.post("/projects/{project}/report")
def write_report(request: Request, project: str) -> Response:
    """Write the report for the board."""
    store, found, user = store_of(request), own_project(request, project), current(request).user
    _, checked = proposal(store, found)
    if checked is None:
        raise Problem(409, "Nothing is proposed yet.", do="Choose a candidate first.")
    jobs.submit(store, user, found, "report", {"study": checked["study"], "candidate": checked["candidate"]})
    return redirect(f"/projects/{found.id}/release")


@router.post("/projects/{project}/submit")
def submit(request: Request, project: str) -> Response:
    """Hand the proposal over for sign-off."""
    store, found = store_of(request), own_project(request, project)
    job, checked = proposal(store, found)
    _, report = report_of(store, found, checked)
    held = store.document(found.id, "policy")
    why_not = _why_not(found, checked, job, store.latest_job(found.id, "policy", done=True), _version(held), report)
    if why_not:
        return shown(request, project, status=409)
    user, finished = current(request).user, store.latest_job(found.id, "policy", done=True)
    try:
        if finished is not None and found.choice.get("job") != finished.id:
            found = signoff.propose(store, user, found, finished)
        signoff.submit(store, user, found)
    except signoff.StateError as error:
        return shown(request, project, fault=f"{error.error} {error.do}", status=409)
    return redirect(f"/projects/{found.id}/sign-off?said=submitted")
