"""Proposing, submitting, approving: what a project may become, and what an approval is bound to.

Pages and API call these; each is one transaction with its row of the audit, and raises StateError where the state of
the project, or the role of the user, does not allow it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from quadrille.studio import audit, jobs
from quadrille.studio.store import ChangedError, Job, Project, Store, User, canonical, hashed


class StateError(Exception):
    """What a project is does not allow this: `error` says what, `do` what helps."""

    def __init__(self, error: str, do: str) -> None:
        super().__init__(error)
        self.error, self.do = error, do


def propose(store: Store, by: User, project: Project, checked: Job, *, note: str = "") -> Project:
    """Take the candidate of a policy job as the one to be released; an earlier sign-off is void."""
    result = store.result(checked)
    if checked.project != project.id or checked.kind != "policy" or result is None:
        raise StateError("The candidate has not been checked yet.", "Check it against the policy first.")
    names = ("study", "candidate", "format", "shuffle", "verdict", "policy_sha256", "recipe_hash", "fingerprint")
    choice: dict[str, Any] = {name: result[name] for name in names}
    choice |= {"job": checked.id, "reason": note or result["choice"]["reason"], "policy": checked.spec["policy"]}
    choice["codebook"] = checked.spec["codebook"]
    values = {"study": result["study"], "candidate": result["candidate"], "choice": choice}
    return store.change_project(by, project.id, "candidate proposed", values, detail=_bound(choice))


def obstacle(store: Store, project: Project) -> str:
    """Say why the proposed candidate cannot be submitted or released; nothing if it can."""
    choice = project.choice
    if not choice:
        return "No candidate is proposed yet."
    if choice["verdict"] == "fail":
        result = store.result(store.job(choice["job"])) or {}
        failed = [line for line in result.get("lines", []) if line["verdict"] == "fail"]
        first = failed[0] if failed else {"rule": "a rule", "asked": "", "found": ""}
        return f"The policy is failed: {first['rule']} asks {first['asked']}, found {first['found']}."
    for kind in ("policy", "codebook"):
        held = store.document(project.id, kind)
        version = None if held is None or not held.text else held.version
        if version != choice[kind]:
            return f"The {kind} has changed since the candidate was checked. Check it again."
    if project.fingerprint != choice["fingerprint"]:
        return "The data have changed since the candidate was checked. Check it again."
    return ""


def submit(store: Store, by: User, project: Project) -> Project:
    """Hand a project to the reviewers."""
    with store.writing():
        project = _in_state(store, project, by, ("draft", "rejected"), own=True)
        if reason := obstacle(store, project):
            raise StateError(reason, "See the page Release.")
        return _move(store, by, project, "submitted", "submitted")


def withdraw(store: Store, by: User, project: Project) -> Project:
    """Take a project back."""
    with store.writing():
        project = _in_state(store, project, by, ("submitted", "approved", "rejected"), own=True)
        return _move(store, by, project, "draft", "withdrawn", approval={})


def approve(
    store: Store, by: User, project: Project, reason: str, *, local: bool = False, expected: int | None = None
) -> Project:
    """Approve the release of a project, with a reason; nobody approves an own one, but for the only user there is.

    `expected` is the version of the project that was read: what somebody has not seen, they do not sign.
    """
    with store.writing():
        project = _reviewed(store, by, project, local=local, expected=expected)
        if why := obstacle(store, project):
            raise StateError(why, "Reject it, with this as the reason.")
        approval = {
            **_bound(project.choice),
            "by": by.name,
            "time": datetime.fromtimestamp(store.now(), UTC).isoformat(timespec="seconds"),
            "reason": reason,
            "by_owner": by.id == project.owner,
        }
        return _move(store, by, project, "approved", "approved", approval=approval, detail=approval)


def reject(
    store: Store, by: User, project: Project, reason: str, *, local: bool = False, expected: int | None = None
) -> Project:
    """Reject the release of a project, with a reason."""
    if not reason.strip():
        raise StateError("A rejection needs a reason.", "Say what has to change.")
    with store.writing():
        project = _reviewed(store, by, project, local=local, expected=expected)
        store.add_comment(by, project.id, reason)
        return _move(store, by, project, "rejected", "rejected", approval={}, detail={"reason": reason})


def release(store: Store, by: User, project: Project, *, key: str = "") -> Job:
    """Queue the release of an approved project."""
    with store.writing():
        project = _in_state(store, project, by, ("approved", "released"), own=True)
        names = ("study", "candidate", "format", "shuffle")
        spec = {name: project.choice[name] for name in names}
        return jobs.submit(store, by, project, "release", spec, key=key or f"release-{project.id}-{project.version}")


def require_approved(store: Store, project: Project, fingerprint: str, recipe_hash: str) -> dict[str, Any]:
    """Return the approval of a release that is about to be written, if it is of these data and this recipe."""
    project, approval = store.project(project.id), store.project(project.id).approval
    fits = project.state in ("approved", "released") and approval
    if not fits or (approval["fingerprint"], approval["recipe_hash"]) != (fingerprint, recipe_hash):
        raise jobs.refused("This release is not approved, or something has changed since. Have it signed off again.")
    if why := obstacle(store, project):
        raise jobs.refused(f"{why} Have it signed off again.")
    return approval


def released(store: Store, project: Project, job: Job, hashes: dict[str, str]) -> None:
    """Note that the release is written."""
    detail = {"job": job.id, "sha256": hashes}
    store.change_project("worker", project.id, "released", {"state": "released"}, keeps_state=True, detail=detail)


def sign_dossier(store: Store, project: Project, dossier: Path, approval: dict[str, Any]) -> None:
    """Add to the dossier who approved what, when, and the head of the audit as it stands."""
    owner = store.user(project.owner)
    number, head = audit.head(store.db)
    alone = " The same person proposed it: there is one user." if approval["by_owner"] else ""
    lines = [
        "",
        "## Sign-off",
        "",
        f"- proposed by: {'' if owner is None else owner.name}",
        f"- approved by: {approval['by']}, {approval['time']}.{alone}",
        f"- reason: {' '.join(str(approval['reason']).split()) or 'none given'}",
        f"- approval binds: data {approval['fingerprint']}, recipe {approval['recipe_hash']}, "
        f"policy {approval['policy_sha256'] or 'none'}, verdict {approval['verdict']}",
        f"- head of the audit: event {number:,}, {head}",
        "",
    ]
    with dossier.open("a", encoding="utf-8") as file:
        file.write("\n".join(lines))


def _bound(choice: dict[str, Any]) -> dict[str, Any]:
    """Return what an approval is bound to."""
    names = ("study", "candidate", "fingerprint", "recipe_hash", "policy_sha256", "verdict", "format", "shuffle")
    bound = {name: choice[name] for name in names}
    return {**bound, "bound": hashed(canonical(bound))}


def _in_state(store: Store, project: Project, by: User, states: tuple[str, ...], *, own: bool) -> Project:
    """Return the project as it is now, in the transaction that is open."""
    project = store.project(project.id)
    if own and (project.owner != by.id or not by.has("analyst")):
        raise StateError("Only the analyst of the project can do this.", "Ask them.")
    if project.state not in states:
        raise StateError(f"The project is {project.state}.", f"This is for projects that are {' or '.join(states)}.")
    return project


def _reviewed(store: Store, by: User, project: Project, *, local: bool, expected: int | None) -> Project:
    project = _in_state(store, project, by, ("submitted",), own=False)
    if expected is not None and project.version != expected:
        raise ChangedError(project.version)
    if not by.has("reviewer"):
        raise StateError("Only a reviewer can do this.", "Ask one.")
    if project.owner == by.id and not local:
        raise StateError("Nobody approves an own project.", "Ask another reviewer.")
    return project


def _move(
    store: Store,
    by: User,
    project: Project,
    state: str,
    action: str,
    *,
    approval: dict[str, Any] | None = None,
    detail: dict[str, Any] | None = None,
) -> Project:
    values: dict[str, object] = {"state": state, **({} if approval is None else {"approval": approval})}
    return store.change_project(by, project.id, action, values, keeps_state=True, detail=detail)
