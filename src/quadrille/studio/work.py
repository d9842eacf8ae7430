"""What each kind of job does: product functions on the data of a project. It has no statistics of its own."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import tomli_w

from quadrille.errors import InputError, Place
from quadrille.randomness import is_secret
from quadrille.studio import jobs, retention, signoff
from quadrille.studio.store import Home, Job, Project, Store, canonical, private, toml
from quadrille.study.store import Store as StudyStore
from quadrille.text import Table

if TYPE_CHECKING:
    from quadrille.chart import Figure
    from quadrille.codebook import Codebook
    from quadrille.data import Data
    from quadrille.plan import Plan
    from quadrille.recipe import Recipe
    from quadrille.release.policy import Policy
    from quadrille.report.input import ReportInput
    from quadrille.study.job import Job as JobFile
    from quadrille.study.study import Study

Progress = Callable[[int, int], None]
Stop = Callable[[], bool]
Result = dict[str, Any]
MOST_CELLS, MOST_COLUMNS, MOST_COLUMN_NAME = 4 * 10**9, 10_000, 300
"""Of a file that is read: values, columns, characters of a name."""


class Stopped(Exception):
    """A job ends because it was asked to."""


class Task:
    """A job with all that it works on; data are read once for jobs that follow one another."""

    def __init__(self, store: Store, job: Job, progress: Progress, stop: Stop) -> None:
        self.store = store
        self.job = job
        self.project: Project = store.project(job.project)
        self.spec = job.spec
        self.progress = progress
        self.stop = stop

    @property
    def home(self) -> Home:
        """The folder of the studio."""
        return self.store.home

    def document(self, kind: str) -> str | None:
        """Return the codebook, job or policy in the version that the job was asked with."""
        version = self.spec.get(kind)
        found = None if version is None else self.store.document(self.project.id, kind, version)
        return None if found is None else found.text

    def codebook(self) -> Codebook | None:
        """Return the codebook in the version of the job; None before there is one."""
        from quadrille.codebook import Codebook

        text = self.document("codebook")
        if text is None:
            return None
        path = self.folder() / "codebook.toml"
        path.write_text(text, encoding="utf-8")
        return Codebook.read(path)

    def policy(self) -> Policy | None:
        """Return the policy in the version of the job."""
        from quadrille.release.policy import Policy

        text = self.document("policy")
        if text is None:
            return None
        path = self.folder() / "policy.toml"
        path.write_text(text, encoding="utf-8")
        try:
            return Policy.read(path)
        except InputError as error:
            error.place = error.place or Place(str(path), "", 0, "", str(error))
            raise

    def job_file(self) -> JobFile:
        """Return the job in its version; which file and codebook it is about, the project knows."""
        from quadrille.study.job import Job as JobFile

        try:
            document = toml(self.document("job") or "")
        except ValueError as error:
            raise InputError(f"job.toml: {error}. Correct it on the page Design.") from None
        about = cast("dict[str, Any]", found) if isinstance(found := document.get("data"), dict) else {}
        others = [name for name in about if name not in ("file", "codebook", "rules")]
        if others:
            text = f"in the studio {others[0]!r} stands in the codebook. Set it on the page Roles."
            Table("job.toml", "data", {}).refuse(text)
        rules = about.get("rules")
        document["data"] = {"file": self.project.file or "data", **({} if rules is None else {"rules": rules})}
        path = self.folder() / "job.toml"
        path.write_text(tomli_w.dumps(document), encoding="utf-8")
        return JobFile.read(path)

    def study(self) -> Study:
        """Return the study that the job is about."""
        import quadrille as qd

        row = self.store.study(int(self.spec["study"]))
        if row.project != self.project.id:
            raise InputError("This study is of another project.")
        return qd.Study(self.home.study(row))

    def workers(self) -> int:
        """Return how many processes a search may use."""
        from quadrille.study.workers import cores

        return int(self.spec.get("workers") or cores())

    def cleaned(self, text: str) -> str:
        """Return a text without the paths of this machine."""
        text = text.replace(f"{self.folder()}/", "")
        return text.replace(f"{self.home.project(self.project.id)}/releases/{self.job.id}", "release")

    def folder(self) -> Path:
        """Return a folder for the files of this job alone."""
        return private(private(self.home.project(self.project.id) / "work") / str(self.job.id))

    def data(self) -> Data:
        """Return the data as the codebook describes them."""
        key = (self.project.id, self.project.source, self.project.sha256, self.spec.get("codebook"))
        if _LATEST.get("key") != key:
            _LATEST.clear()
            _LATEST.update(data=self._read(), key=key)
        return _LATEST["data"]

    def _read(self) -> Data:
        import quadrille as qd

        source, codebook = self.project.source, self.codebook()
        if not source:
            raise InputError("This project has no data. Open a file first.")
        if source.startswith("dataset:"):
            data: Data = getattr(qd.datasets, source.removeprefix("dataset:"))()
            return (
                data
                if codebook is None or codebook == data.codebook
                else qd.from_frame(data.frame(), codebook=codebook)
            )
        path = self.home.source(self.project)
        if path.resolve() != path.absolute() and Path(source).is_absolute():  # it was no link when it was chosen
            raise InputError(f"The file {self.project.file!r} has become a link. Open it again.")
        _refuse_huge(path, self.project.file)
        catalogs = [*path.parent.glob("catalog.sas7bcat")] if path.suffix == ".sas7bdat" else []
        data = qd.read(path, codebook=codebook, catalog=catalogs[0] if catalogs else None)
        _refuse_wide(data.columns, self.project.file)
        return data


_LATEST: dict[str, Any] = {}
"""The data that were read last: jobs of one project follow one another."""


def do(store: Store, job: Job, progress: Progress, stop: Stop) -> Result:
    """Do a job and return its result, in plain values."""
    return plain(_WORK[job.kind](Task(store, job, progress, stop)))


def _refuse_huge(path: Path, name: str) -> None:
    """Refuse a Parquet file whose footer tells of more than any machine holds: one value can stand for a billion."""
    import polars as pl

    if path.suffix != ".parquet":
        return
    try:
        scan = pl.scan_parquet(path)
        rows, columns = int(scan.select(pl.len()).collect().item()), len(scan.collect_schema())
    except Exception:  # it is not intact, as the product says in its own words
        return
    if rows * columns > MOST_CELLS:
        raise InputError(
            f"The file {name!r} holds {rows:,} records of {columns:,} columns, and {MOST_CELLS:,} values are the most "
            "that a studio reads. Release it in parts, or on the command line."
        )


def _refuse_wide(columns: Sequence[str], name: str) -> None:
    """Refuse what no page can show."""
    if len(columns) > MOST_COLUMNS or any(len(each) > MOST_COLUMN_NAME for each in columns):
        raise InputError(
            f"The file {name!r} has more than {MOST_COLUMNS:,} columns, or a name of a column that is longer than "
            f"{MOST_COLUMN_NAME} characters. Leave columns out, or shorten the names."
        )


def plain(value: Any) -> Any:
    """Return values that JSON has: numbers that are none become null, tuples lists."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in cast("list[object]", value)]
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    if hasattr(value, "item"):
        return plain(value.item())
    return str(value)


def profile(task: Task) -> Result:
    """Read the file and say what is in it; keep the codebook that was guessed."""
    import quadrille as qd
    from quadrille.present.profile import profile as blocks
    from quadrille.present.render import as_html

    data = task.data()
    version = task.spec.get("codebook")
    book = None if version is None else task.store.document(task.project.id, "codebook", version)
    declared = data.columns if book is not None and book.user else ()
    found = qd.inspect(data, labels=True, declared=declared)
    result: Result = {**found.as_dict(), "fingerprint": data.fingerprint, "file": task.project.file}
    result["hints_of"] = {
        name: [hint for hint in found.hints if repr(name) in hint]
        for name in data.columns
        if any(repr(name) in hint for hint in found.hints)
    }
    result["codebook"] = _codebook(data)
    result["variables"] = [
        {
            "name": variable.name,
            "kind": variable.kind,
            "role": variable.role,
            "level": variable.level,
            "categories": [] if variable.role == "id" else list(variable.categories),
            "labels": list(variable.names) if variable.coded and variable.role != "id" else [],
            "missing": list(variable.missing),
            "label": variable.label,
        }
        for variable in data.codebook
    ]
    result["blocks"] = as_html(blocks(found, task.project.file))
    task.store.change_project(
        "worker",
        task.project.id,
        "profiled",
        {"fingerprint": data.fingerprint, "records": data.n, "columns": len(data.columns)},
        keeps_state=True,
        detail={"fingerprint": data.fingerprint},
    )
    newest = task.store.document(task.project.id, "codebook")
    if book is None and (newest is None or not newest.text):
        task.store.put_document("worker", task.project.id, "codebook", result["codebook"])
    return result


def _codebook(data: Data) -> str:
    """Write the codebook without the values of identifiers, which are of one record each: names, numbers, addresses."""
    document = toml(data.codebook.to_toml())
    for entry in document["columns"].values():
        if entry.get("role") == "id":
            entry.pop("categories", None)
            entry.pop("labels", None)
    return tomli_w.dumps(document)


# --- risk today ------------------------------------------------------------------------------------------------------


def risk(task: Task) -> Result:
    """Say who is at risk in the file as it is, for each set of key variables."""
    from quadrille.present.render import as_html
    from quadrille.present.scores import exposure
    from quadrille.score.evaluator import Evaluator
    from quadrille.score.published import table_name

    data, n = task.data(), int(task.spec["n"])
    sets = [tuple(each) for each in task.spec["sets"]] or [data.keys]
    if not all(sets):
        raise InputError("The file has no key variable. Give columns the role key on the page Roles.")
    result: Result = {"n": n, "sets": [], "limits": _limits(task)}
    for columns in sets:
        margin = table_name(columns)
        addresses = [f"{name}({margin}, n={n})" for name in jobs.RISKS]
        scores = Evaluator(data, addresses).score(_unchanged(data))
        keyed = data.with_roles(key=columns)
        sizes = _sizes(keyed, n)
        row: Result = {"columns": columns, "cells": _cells(keyed), "sizes": sizes}
        row |= {name: scores[address] for name, address in zip(jobs.RISKS, addresses, strict=True)}
        result["sets"].append(row)
    result["apart"] = _apart(data, sets[0])
    keyed = data.with_roles(key=sets[0])
    blocks = exposure(keyed, _unchanged(keyed), n)
    result["charts"] = _charts({"Small cells": _size_chart(result["sets"][0]["sizes"])})
    attack = _attack(keyed, _unchanged(keyed), None, n) if task.spec["attack"] else None
    result["attack"] = None if attack is None else {"blocks": attack}
    return {**result, "blocks": as_html(blocks), "command": _command(task)}


def _unchanged(data: Data) -> Plan:
    from quadrille.plan import Plan

    return Plan([], data=data)


def _cells(data: Data) -> Result | None:
    from dataclasses import asdict

    from quadrille.inspect import cells_of

    found = cells_of(data)
    return None if found is None else asdict(found)


def _sizes(data: Data, n: int) -> list[Result]:
    """Count cells and records by the size of the cell, up to the small ones and a few more."""
    from quadrille.report.tables import FullTable

    rows = FullTable.of(data, data, data.keys).sizes(max(5, n - 1))
    return [{name: row[name] for name in ("size", "cells", "records")} for row in rows if row["when"] == "before"]


def _size_chart(sizes: Sequence[Mapping[str, object]]) -> Figure:
    from quadrille import chart
    from quadrille.data import tidy

    return chart.small_cells(tidy([{**row, "when": "before", "genuine": None} for row in sizes]))


_MOST_APART = 30


def _apart(data: Data, columns: Sequence[str]) -> list[Result]:
    """Say how many records are alone only because an intruder knows this key too."""
    from quadrille.inspect import cells_of

    if not 1 < len(columns) <= _MOST_APART:
        return []
    every = cells_of(data.with_roles(key=columns))
    rows: list[Result] = []
    for name in columns:
        without = cells_of(data.with_roles(key=[other for other in columns if other != name]))
        if every is not None and without is not None:
            rows.append({"column": name, "alone": every.ones - without.ones})
    return sorted(rows, key=lambda row: -row["alone"])


def _attack(data: Data, plan: Plan, recipe: Recipe | None, n: int) -> str:
    import quadrille as qd
    from quadrille.present.render import as_html
    from quadrille.present.scores import attack as blocks

    return as_html(blocks(qd.attack(data, plan, n=n, recipe=recipe)))


def _limits(task: Task) -> dict[str, str]:
    """Return what the policy asks of measures."""
    policy = task.policy()
    return {} if policy is None else {each.address: str(each.limit) for each in policy.measures}


# --- design, search --------------------------------------------------------------------------------------------------


def forecast(task: Task) -> Result:
    """Say what a search would do."""
    import quadrille as qd
    from quadrille.present import Facts
    from quadrille.present.render import as_html
    from quadrille.present.words import forecast_facts

    data, job = task.data(), task.job_file()
    candidates = job.recipes(data)
    found = qd.forecast(data, candidates, job.measures, workers=task.workers())
    result: Result = {**found.as_dict(), "measures": _described(candidates.measures), "command": _command(task)}
    return {**result, "axes": found.predicted.axes, "blocks": as_html([Facts(tuple(forecast_facts(found)))])}


def search(task: Task) -> Result:
    """Score every candidate of the job, as far as nobody asks to stop; a study that is there goes on."""
    import quadrille as qd
    from quadrille.study.store import Result as Scored

    row = task.store.study(int(task.spec["study"]))
    path = task.home.study(row)
    if task.document("job") is not None:
        data, job = task.data(), task.job_file()
        candidates = job.recipes(data)
        task.store.describe_study(row.id, _described((*candidates.measures, *candidates.then)))

        def tell(_results: Sequence[Scored], done: int, total: int) -> None:
            task.progress(done, total)

        study = qd.search(
            *(data, candidates, job.measures),
            out=path,
            workers=task.workers(),
            then=job.then,
            tables=job.tables,
            progress=tell,
            stop=task.stop,
        )
        _remember(task, study)
        if task.stop():
            raise Stopped
    else:
        study = qd.Study(path)
        study.require(task.data())
        task.store.describe_study(row.id, _described(study.measures))
    counts = study.counts()
    task.progress(len(study) - counts["pending"], len(study))
    return _summary(task, study, row.id)


def _remember(task: Task, study: Study) -> None:
    """Keep the name of the data with the study, as the user has it, so that reports find it."""
    own = jobs.has_own_codebook(task.store, task.project)
    study.remember(jobs.project_file(task.project, own), "codebook.toml" if own else None, None)


def _summary(task: Task, study: Study, number: int) -> Result:
    """Say what a search has found."""
    from quadrille.errors import QuadrilleError
    from quadrille.study.choose import seed_warning

    result: Result = {"study": number, "candidates": len(study), "counts": study.counts(), "command": _command(task)}
    result |= {"reasons": [each._asdict() for each in study.reasons()], "measures": _described(study.measures)}
    result |= {"unswapped": study.unswapped, "axes": None, "frontier": 0, "recommended": {}, "warnings": []}
    try:
        axes = (study.axis("risk", None), study.axis("loss", None))
        result["frontier"] = len(study.frontier(*axes))
        result["recommended"] = {
            word: {"candidate": choice.candidate, "reason": choice.reason, "explanation": choice.explain()}
            for word, choice in study.recommended(*axes).items()
        }
        result |= {"axes": axes, "warnings": [text for text in [seed_warning(study.clouds(*axes))] if text]}
    except QuadrilleError as error:  # a search by risk or by loss alone has no frontier
        result["warnings"] = [str(error)]
    return result


def _described(measures: Sequence[str]) -> list[dict[str, str]]:
    from quadrille.measure import measure_of

    kinds = [(address, measure_of(address)) for address in measures]
    return [{"address": address, "side": kind.side, "direction": kind.direction} for address, kind in kinds]


# --- compare, policy, report, release --------------------------------------------------------------------------------


def compare(task: Task) -> Result:
    """Set candidates of a study side by side."""
    from quadrille.report.input import look

    data, study = task.data(), task.study()
    axes = (study.axis("risk", task.spec["risk"]), study.axis("loss", task.spec["loss"]))
    numbers: list[int] = task.spec["candidates"]
    rows: list[Result] = []
    for place, number in enumerate(numbers):
        task.progress(place, len(numbers))
        rows.append(_compared(task, look(study, data, number, *axes)))
        if task.stop():
            raise Stopped
    limits = _limits(task)
    described = _described(study.measures)
    measures = [{**each, "limit": limits.get(each["address"])} for each in described]
    names = dict.fromkeys(name for row in rows for name in row["parameters"])
    differing = [name for name in names if len({canonical(row["parameters"].get(name)) for row in rows}) > 1]
    best = {each["address"]: _best(each["address"], rows) for each in described}
    result: Result = {"study": task.spec["study"], "axes": axes, "measures": measures, "candidates": rows}
    return {**result, "differences": differing, "best": best, "charts": [], "command": _command(task)}


def _best(address: str, rows: Sequence[Result]) -> int | None:
    from quadrille.measure import orient

    scored: list[tuple[float, int]] = [
        (orient(address, float(row["scores"][address])), row["candidate"]) for row in rows if _known(row, address)
    ]
    return min(scored)[1] if scored else None


def _known(row: Result, address: str) -> bool:
    return row["scores"].get(address) is not None


def _compared(task: Task, scope: ReportInput) -> Result:
    """Describe a candidate as the report to the board does."""
    from quadrille.present.account import account
    from quadrille.present.profile import contradiction_alerts
    from quadrille.present.render import as_html
    from quadrille.report import tables
    from quadrille.report.sections import traces

    chosen, choice = scope.chosen, scope.choice
    found = tables.tables(scope)
    parameters = {name: value for name, value in choice.recipe.parameters().items() if name != "seed"}
    with closing(StudyStore.open(scope.study.path)) as store:
        dominance = store.dominance(chosen.number, *scope.axes)
    alerts = [*traces(chosen.account), *contradiction_alerts(scope.contradicted)]
    attack = _attack(scope.data, chosen.plan, choice.recipe, scope.n) if task.spec["attack"] else None
    return {
        "candidate": chosen.number,
        "design": chosen.design["name"],
        "note": chosen.design["note"],
        "method": choice.recipe.method_name,
        "parameters": parameters,
        "scores": {address: chosen.scores[address] for address in scope.measures},
        "before": {address: scope.before[address] for address in scope.measures},
        "dominates": None if dominance is None else dominance[0],
        "dominated_by": None if dominance is None else dominance[1],
        "account": chosen.account.as_dict(),
        "kept": _kept(scope.data, chosen.plan) if found["exact"] else [],
        "traces": [f"{each.lead} {each.text}" for each in alerts],
        "explanation": choice.explain(),
        "blocks": as_html([*account(chosen.account), *found["kept"], *found["published"]]),
        "attack": None if attack is None else {"blocks": attack},
        "charts": _charts(found["charts"]),
    }


def _kept(data: Data, plan: Plan) -> list[str]:
    """Say what a plan leaves exactly as it was: whole values change places, so counts of what moves together stay."""
    moved = [tuple(move.columns) for move in plan.moves]
    still = tuple(name for name in data.columns if not any(name in columns for columns in moved))
    together = [
        f"The joint table of what moves together: {', '.join(columns)}" for columns in moved if len(columns) > 1
    ]
    unmoved = [f"The joint table of all that does not move: {', '.join(still)}"] if still else []
    return ["The number of records in every category of every variable", *together, *unmoved]


def policy(task: Task) -> Result:
    """Choose a candidate, or take the one that was named, and say what the policy says to its release."""
    import quadrille as qd
    from quadrille.present.account import account
    from quadrille.present.render import as_html
    from quadrille.present.scores import verdict as blocks
    from quadrille.release.policy import machine_policy
    from quadrille.release.release import warnings_ahead

    data, study = task.data(), task.study()
    wanted = cast("dict[str, Any] | None", task.spec["pick"])
    if wanted is not None:
        choice = study.pick(
            wanted["criterion"],
            risk=wanted["risk"],
            loss=wanted["loss"],
            max_risk=wanted["max_risk"],
            max_loss=wanted["max_loss"],
        )
    else:
        choice = study.choice(task.spec["candidate"])
    report = choice.recipe.plan(data).report(data)
    public = {name: task.spec[name] for name in ("format", "shuffle")}
    agency = task.policy()
    result: Result = {"study": task.spec["study"], "candidate": choice.candidate, "verdict": "none", "lines": []}
    shown = list(account(report))
    if agency is not None or machine_policy() is not None:
        judged = qd.check_policy(data, choice.recipe, agency, tables=study.tables, **public)
        result |= {"verdict": judged.outcome, "lines": [asdict(line) for line in judged.lines]}
        shown = [*blocks(judged), *shown]
    described = {
        k: v for k, v in choice.as_dict().items() if k in ("candidate", "rule", "reason", "explanation", "axes")
    }
    with closing(StudyStore.open(study.path)) as store:
        scores = dict(zip(study.measures, store.candidate(choice.candidate).values, strict=True))
    return {
        **result,
        "choice": {**described, "risk": scores.get(choice.axes[0]), "loss": scores.get(choice.axes[1])},
        "warnings": list(warnings_ahead(data, choice.recipe, agency, tables=study.tables, **public)),
        "policy_sha256": None if agency is None else agency.sha256,
        "recipe_hash": recipe_hash(task.store, task.project, choice.recipe),
        "scores": scores,
        "design": choice.recipe.design_json(),
        "fingerprint": data.fingerprint,
        "account": as_html(account(report)),
        "blocks": task.cleaned(as_html(shown)),
        "command": _command({**task.spec, "candidate": choice.candidate}, task),
        "format": task.spec["format"],
        "shuffle": task.spec["shuffle"],
    }


def recipe_hash(store: Store, project: Project, recipe: Recipe) -> str:
    """Return what stands for a recipe with its seed: nobody can try seeds against it without the project's salt."""
    with store.writing():
        salt = store.setting(f"salt {project.id}")
        if not salt:
            salt = secrets.token_hex(32)
            store.set(f"salt {project.id}", salt)
    return hashlib.sha256(f"{salt}\n{recipe.to_json()}".encode()).hexdigest()


def report(task: Task) -> Result:
    """Write the report to the review board."""
    import quadrille as qd

    out = task.home.report(task.project.id, task.job.id)
    qd.report.write_report(
        *(task.study(), task.data(), out),
        candidate=task.spec["candidate"],
        risk=task.spec["risk"],
        loss=task.spec["loss"],
        overwrite=True,
    )
    return {"file": task.job.id, "bytes": out.stat().st_size, "command": _command(task)}


def release(task: Task) -> Result:
    """Write the release that was approved, and forget the seeds of what was not released."""
    import warnings

    import quadrille as qd
    from quadrille.present.account import released
    from quadrille.present.render import as_html
    from quadrille.study.study import Study

    data, project = task.data(), task.project
    study = task.study()
    number = int(task.spec["candidate"])
    recipe = study.recipe(number)
    approval = signoff.require_approved(task.store, project, data.fingerprint, recipe_hash(task.store, project, recipe))
    out = task.home.release(project.id, task.job.id)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = qd.release(
            *(data, recipe, out),
            measures=study.measures,
            tables=study.tables,
            format=task.spec["format"],
            shuffle=task.spec["shuffle"],
            policy=task.policy(),
            overwrite=True,
            insecure=not is_secret(recipe.parameters()["seed"]),
        )
    signoff.sign_dossier(task.store, project, made.confidential / "dossier.md", approval)
    hashes = json.loads((made.confidential / "hashes.json").read_text(encoding="utf-8"))["sha256"]
    forgotten = Study(study.path).forget_seeds(keep=[number])
    files = {
        folder: sorted(path.name for path in (out / folder).iterdir() if path.is_file())
        for folder in ("public", "confidential")
    }
    result: Result = {"files": files, "sha256": hashes, "warnings": made.warnings, "not_held": made.not_held}
    result |= {"left_out": made.left_out, "verdict": "none" if made.verdict is None else made.verdict.outcome}
    signoff.released(task.store, project, task.job, hashes)
    blocks = task.cleaned(as_html(released(made)))
    return {**result, "blocks": blocks, "forgotten": forgotten, "command": _command(task)}


def shred(task: Task) -> Result:
    """Destroy files of the project."""
    return retention.shred_all(task.store, task.project, task.spec["what"], task.spec["names"])


def _command(given: Task | Mapping[str, Any], task: Task | None = None) -> list[str]:
    """Return the same on the command line."""
    task, spec = (given, given.spec) if isinstance(given, Task) else (cast("Task", task), given)
    return jobs.commands(
        task.project, task.job.kind, spec, own_codebook=jobs.has_own_codebook(task.store, task.project)
    )


def _charts(figures: Mapping[str, Figure]) -> list[Result]:
    """Return charts as they are drawn in the browser: Vega-Lite, its title and how to read it."""
    from quadrille.chart.theme import specification

    rows: list[Result] = []
    for name, figure in figures.items():
        spec = specification(figure)
        title: dict[str, Any] = spec.get("title") or {}
        lines: list[str] = title.get("subtitle") or []
        rows.append({"name": name, "title": title.get("text", name), "reading": " ".join(lines), "spec": spec})
    return rows


_WORK: dict[str, Callable[[Task], Result]] = {
    "profile": profile,
    "risk": risk,
    "forecast": forecast,
    "search": search,
    "compare": compare,
    "policy": policy,
    "report": report,
    "release": release,
    "shred": shred,
}


def warm(home: Home) -> None:
    """Import the product, load the kernels and write what forms are built from."""
    import quadrille as qd

    write_catalogue(home)
    data = qd.datasets.cps8d()
    qd.score(data, qd.RandomSwap(["Edu"], pairs=2, seed=1).plan(data), ["exposed", "small_cells", "hellinger"])


_CURVE = (
    "designs along the whole trade-off of this method: what is left empty among price, coin and inference is swept, at "
    "values that fit the data"
)


def write_catalogue(home: Home) -> None:
    """Write what forms are built from: methods, measures, bundled files."""
    import quadrille as qd
    from quadrille.io import RELEASED
    from quadrille.measure import MEASURES
    from quadrille.recipe import known_methods

    measures = [
        {
            "name": name,
            "side": measure.side,
            "direction": measure.direction,
            "definition": measure.definition,
            "reference": measure.reference,
            "schema": measure.schema(),
        }
        for name, measure in MEASURES.items()
    ]
    datasets = [
        {"name": name, "about": (getattr(qd.datasets, name).__doc__ or "").partition("\n")[0]}
        for name in qd.datasets.__all__
    ]
    recipes = {name: plain(method.schema()) for name, method in known_methods().items()}
    recipes["DesignedSwap"]["properties"]["curve"] = {"type": "boolean", "x-kind": "flag", "description": _CURVE}
    document = {"recipes": recipes, "measures": measures, "datasets": datasets, "formats": RELEASED}
    fresh = home.run / f"catalogue.{os.getpid()}"  # several workers may write it
    fresh.write_text(json.dumps(plain(document)), encoding="utf-8")
    fresh.replace(home.run / "catalogue.json")
