"""The kinds of jobs: what each is asked for, and what comes of it. Pages and API rely on these shapes.

A job is asked for with `submit(store, user, project, kind, spec)`, which checks `spec` and fills in what it leaves out;
`store.result(job)` is its result once `job.state` is "done". Fields of a result may be added, none is renamed. Where a
result has `blocks`, it is HTML made by `present` (escaped; classes facts, scroll, number, finding), and where it has
`charts`, each is {"name", "title", "reading", "spec"}, `spec` being Vega-Lite with its data. `command` is the same on
the command line, to be shown with `commands(...)`. No result holds a seed, a row number or a value of a record; labels
of categories occur in `codebook` and in tables and charts.

Every spec is stored with `codebook`, `job` and `policy`: the versions of these documents that it works with, or None.

profile     spec    {}
            result  {"fingerprint", "file", "records", "columns": [{"name", "kind", "role", "key", "categories",
                    "missing", "level", "labels", "label", "reason"}], "weight": {"column", "total", "exact"} or None,
                    "keys": [name], "cells": {"possible", "occupied", "ones", "twos"} or None, "hints": [text],
                    "hints_of": {column: [text]}, "geography", "dependencies", "read_as", "recoded", "sample", "risk",
                    "codebook": TOML of the whole codebook, "variables": the same as
                    [{"name", "kind", "role", "level", "categories", "labels", "missing", "label"}], "blocks"}
            The first profile of a project also keeps the codebook that it has guessed, as version 1.

risk        spec    {"sets": [[column, ...], ...], "n": 3, "attack": false}; no sets: the key variables
            result  {"n", "sets": [{"columns", "cells": {"possible", "occupied", "ones", "twos"},
                    "sizes": [{"size", "cells", "records"}], "exposed", "small_cells",
                    "limits": {measure: "at most .."}}],
                    "apart": [{"column", "alone"}]: how many records are alone only because this key is known,
                    most first, "attack": {"blocks"} or None, "charts", "blocks", "command"}

forecast    spec    {}; works with the newest job document
            result  what `Forecast.as_dict()` has (candidates, designs, checked, refused: [{"design", "reason",
                    "hint"}], timed, seconds_each, seconds, workers, predicted: {"axes", "designs":
                    [{"design", "values", "basis",
                    "reason", "on_frontier"}]}, warnings: [{"warning", "designs", "first"}], seeds), and
                    {"measures": [{"address", "side", "direction"}], "axes": [risk, loss] or None, "blocks", "command"}

search      spec    {"workers": number or None}, and after submit {"study": id}; to go on with an earlier one
                    {"study": id} is given
            result  {"study", "candidates", "counts": {"done", "infeasible", "failed", "pending"}, "reasons":
                    [{"status", "reason", "candidates"}], "measures": [{"address", "side", "direction"}],
                    "axes": [risk, loss] or None,
                    "frontier": number, "recommended": {word: {"candidate", "reason", "explanation"}}, "warnings",
                    "unswapped": {measure: value}, "command"}
            While it runs `job.done`, `job.total` and the study itself tell how far it is; see `live`.

compare     spec    {"study": id, "candidates": [number, ... up to 4], "risk", "loss": measures or None,
                    "attack": false}
            result  {"study", "axes", "measures": [{"address", "side", "direction", "limit"}],
                    "candidates": [{"candidate", "design": words, "method", "parameters", "scores": {measure: value},
                    "dominates", "dominated_by", "account": {"pairs", "records", "rate", ...},
                    "kept": [what stayed exactly the same], "traces": [text],
                    "blocks", "attack": {"blocks"} or None, "charts"}], "differences": [parameter that is not the same],
                    "best": {measure: candidate}, "charts", "command"}

policy      spec    {"study": id, "candidate": number or None, "pick": {"risk", "loss", "max_risk", "max_loss",
                    "criterion"} or None, "format": "csv", "shuffle": true}; without a candidate `pick` chooses it
            result  {"study", "candidate", "choice": {"candidate", "rule", "reason", "explanation", "risk", "loss",
                    "axes"},
                    "verdict": "pass", "review", "fail" or "none" (no policy), "lines": [{"rule", "asked", "found",
                    "verdict", "why"}], "warnings": [text], "policy_sha256", "recipe_hash", "account": blocks,
                    "scores": {measure: value}, "design", "fingerprint", "blocks", "command"}
            Sign-off rests on it: `recipe_hash` is SHA-256 of the project's salt and the recipe with its seed.

report      spec    {"study": id, "candidate": number, "risk", "loss": measures or None}
            result  {"file": job id, "bytes", "command"}; the page is `home.report(project, job.id)`

release     spec    {"study": id, "candidate": number, "format", "shuffle"}; only for approved projects, see `signoff`
            result  {"files": {"public": [name], "confidential": [name]}, "sha256": {name: hash}, "warnings": [text],
                    "not_held": [text], "left_out": [column], "verdict", "blocks", "command", "forgotten": number}

shred       spec    {"what": one of RETAINED, "names": [name, ...] or None}
            result  {"files": number, "bytes": number, "sha256": {name: hash}}
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any, cast

import tomli_w

from quadrille.errors import InputError, ParameterError, QuadrilleError
from quadrille.studio.store import Home, Job, Project, Store, User, toml

KINDS = ("profile", "risk", "forecast", "search", "compare", "policy", "report", "release", "shred")
RETAINED = ("source", "studies", "reports", "releases")
"""What is kept for a time, and can be shredded."""
MOST_COMPARED = 4
RISKS = ("exposed", "small_cells")
"""The measures of the page Risk today."""
ENDINGS = (".csv", ".csv.gz", ".tsv", ".parquet", ".xlsx", ".sav", ".zsav", ".por", ".dta", ".sas7bdat", ".xpt", ".zip")
"""Files that can be opened; a test compares them with those that the product reads."""
FORMATS = ("csv", "parquet", "sav", "dta", "xpt")
"""What the public file can be; a test compares them with those of the product."""

_Spec = dict[str, Any]


def submit(
    store: Store, by: User, project: Project, kind: str, spec: Mapping[str, object] | None = None, *, key: str = ""
) -> Job:
    """Queue a job after a check of what it is asked for; the same key stands for the same job."""
    asked = checked(store, project, kind, dict(spec or {}))
    for name in ("codebook", "job", "policy"):
        document = store.document(project.id, name)
        asked[name] = None if document is None or not document.text else document.version
    return store.add_job(by, project.id, kind, asked, key)


def checked(store: Store, project: Project, kind: str, spec: _Spec) -> _Spec:
    """Return a spec with everything filled in; refuse what no job could do."""
    if kind not in KINDS:
        raise ParameterError(f"There is no job {kind!r}. Known: {', '.join(KINDS)}.")
    if not project.source and kind != "shred":
        raise ParameterError("This project has no data yet. Open a file first.")
    known = kind == "search" and spec.get("study") is not None  # one that was opened, or that goes on
    if kind in ("forecast", "search") and not known and store.document(project.id, "job") is None:
        raise ParameterError("This project has no design yet. Make one on the page Design.")
    return _CHECKS.get(kind, _nothing)(store, project, _Fields(kind, spec))


class _Fields:
    """The fields of a spec, each taken out once; what is left over is unknown."""

    def __init__(self, kind: str, spec: _Spec) -> None:
        self._kind = kind
        self._spec = spec

    def refuse(self, name: str, must: str) -> ParameterError:
        """Build the message for a bad field."""
        error = ParameterError(f"The field {name!r} of a {self._kind} job must be {must}.")
        error.parameter, error.must = name, must
        return error

    def number(self, name: str, default: int | None = None, *, needed: bool = False, least: int = 1) -> int | None:
        """Take a whole number."""
        value = self._spec.pop(name, default)
        if (value is None and needed) or (value is not None and (type(value) is not int or value < least)):
            raise self.refuse(name, f"a whole number of {least} or more")
        return value

    def limit(self, name: str) -> float | None:
        """Take a number."""
        value = self._spec.pop(name, None)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or isnan(value)):
            raise self.refuse(name, "a number")
        return None if value is None else float(value)

    def flag(self, name: str, default: bool) -> bool:
        """Take true or false."""
        value = self._spec.pop(name, default)
        if not isinstance(value, bool):
            raise self.refuse(name, "true or false")
        return value

    def text(self, name: str, known: Sequence[str] = ()) -> str | None:
        """Take a text, or nothing."""
        value = self._spec.pop(name, None)
        if value is None or value == "":
            return None
        if not isinstance(value, str) or len(value) > 2000 or (known and value not in known):
            raise self.refuse(name, f"one of {', '.join(known)}" if known else "a text")
        return value

    def listed(self, name: str) -> list[Any]:
        """Take a list."""
        value = self._spec.pop(name, None)
        if not isinstance(value, list | None):
            raise self.refuse(name, "a list")
        return cast("list[Any]", value or [])

    def done(self) -> None:
        """Refuse what is left over."""
        for name in ("codebook", "job", "policy"):
            self._spec.pop(name, None)
        if self._spec:
            raise ParameterError(f"A {self._kind} job has no field {next(iter(self._spec))!r}.")


def _nothing(_store: Store, _project: Project, fields: _Fields) -> _Spec:
    fields.done()
    return {}


def _risk(_store: Store, _project: Project, fields: _Fields) -> _Spec:
    sets = fields.listed("sets")
    if len(sets) > 20 or not all(_is_names(each) for each in sets):
        raise fields.refuse("sets", "up to 20 lists of columns")
    spec = {"sets": sets, "n": fields.number("n", 3, least=2), "attack": fields.flag("attack", default=False)}
    fields.done()
    return spec


def _is_names(value: object) -> bool:
    if not isinstance(value, list) or not 0 < len(cast("list[object]", value)) <= 100:
        return False
    return all(isinstance(each, str) and len(each) <= 300 for each in cast("list[object]", value))


def _search(store: Store, project: Project, fields: _Fields) -> _Spec:
    workers = fields.number("workers")
    study = fields.number("study")
    fields.done()
    if study is not None:
        _own_study(store, project, study)
    return {"workers": workers, **({} if study is None else {"study": study})}


def _own_study(store: Store, project: Project, study: int) -> None:
    if study not in {each.id for each in store.studies(project.id)}:
        raise ParameterError(f"This project has no study {study}. Search first.")


def _of_study(store: Store, project: Project, fields: _Fields) -> _Spec:
    study = cast("int", fields.number("study", needed=True))
    _own_study(store, project, study)
    return {"study": study}


def _axes(fields: _Fields) -> _Spec:
    return {"risk": fields.text("risk"), "loss": fields.text("loss")}


def _compare(store: Store, project: Project, fields: _Fields) -> _Spec:
    spec = _of_study(store, project, fields)
    candidates = fields.listed("candidates")
    whole = all(type(each) is int and each > 0 for each in candidates)
    if not whole or not 0 < len(candidates) <= MOST_COMPARED or len(set(candidates)) < len(candidates):
        raise fields.refuse("candidates", f"1 to {MOST_COMPARED} different numbers")
    spec |= {"candidates": candidates, **_axes(fields), "attack": fields.flag("attack", default=False)}
    fields.done()
    return spec


def _policy(store: Store, project: Project, fields: _Fields) -> _Spec:
    spec = _of_study(store, project, fields)
    candidate, pick = fields.number("candidate"), fields.__dict__["_spec"].pop("pick", None)
    if pick is not None and not isinstance(pick, dict):
        raise fields.refuse("pick", "the fields risk, loss, max_risk, max_loss and criterion")
    if candidate is None:
        inner = _Fields("policy", dict(cast("_Spec", pick or {})))
        pick = {**_axes(inner), "max_risk": inner.limit("max_risk"), "max_loss": inner.limit("max_loss")}
        pick["criterion"] = inner.text("criterion")
        inner.done()
    spec |= {"candidate": candidate, "pick": None if candidate is not None else pick, **_public(fields)}
    fields.done()
    return spec


def _public(fields: _Fields) -> _Spec:
    return {"format": fields.text("format", FORMATS) or "csv", "shuffle": fields.flag("shuffle", default=True)}


def _report(store: Store, project: Project, fields: _Fields) -> _Spec:
    spec = _of_study(store, project, fields)
    spec |= {"candidate": fields.number("candidate", needed=True), **_axes(fields)}
    fields.done()
    return spec


def _release(store: Store, project: Project, fields: _Fields) -> _Spec:
    spec = _of_study(store, project, fields)
    spec |= {"candidate": fields.number("candidate", needed=True), **_public(fields)}
    fields.done()
    return spec


def _shred(_store: Store, _project: Project, fields: _Fields) -> _Spec:
    what = fields.text("what", RETAINED)
    if what is None:
        raise fields.refuse("what", f"one of {', '.join(RETAINED)}")
    names = fields.listed("names")
    if not all(isinstance(each, str) for each in names):
        raise fields.refuse("names", "a list of names")
    fields.done()
    return {"what": what, "names": names or None}


_CHECKS = {
    "risk": _risk,
    "search": _search,
    "compare": _compare,
    "policy": _policy,
    "report": _report,
    "release": _release,
    "shred": _shred,
}


def commands(project: Project, kind: str, spec: Mapping[str, Any], *, own_codebook: bool = True) -> list[str]:
    """Return the commands that give the same result, run next to the user's file, `job.toml` and `codebook.toml`."""
    file, lines = project_file(project, own_codebook), list[str]()
    if project.source.startswith("dataset:") and own_codebook:
        lines.append(f"quadrille convert {project.source} {shlex.quote(file)}")
    options = " --codebook codebook.toml" if own_codebook else ""
    named = shlex.quote(file)
    candidate = f"--candidate {spec.get('candidate')}"
    match kind:
        case "profile":
            lines.append(f"quadrille inspect {named}{options} --reasons --categories")
        case "risk":
            lines += _risk_commands(named, options, spec)
        case "forecast":
            lines.append("quadrille search job.toml --dry-run")
        case "search":
            lines += ["quadrille search job.toml --out study", "quadrille frontier study"]
        case "compare":
            lines += ["quadrille search job.toml --out study"]
            lines += [
                f"quadrille report study --candidate {each} --out report-{each}.html" for each in spec["candidates"]
            ]
        case "policy":
            lines.append(f"quadrille release {named}{options} --study study {candidate} --check{_public_words(spec)}")
        case "report":
            lines.append(f"quadrille report study {candidate} --out report.html")
        case "release":
            words = f"--out release{_public_words(spec)}"
            lines.append(f"quadrille release {named}{options} --study study {candidate} {words}")
            lines.append("# the same release record for record, with recipe.json of its confidential folder:")
            lines.append(f"quadrille release {named}{options} --recipe recipe.json {words}")
        case _:
            return []
    return lines


def _risk_commands(file: str, options: str, spec: Mapping[str, Any]) -> list[str]:
    """A file that is scored against itself says what is at risk in it: `exposed`, which small cells equal so far."""
    sets: list[list[str]] = spec.get("sets") or []
    n = spec.get("n", 3)
    crosses: list[str] = []
    if sets:
        from quadrille.score.published import table_name  # with all that counts: only the worker names sets

        crosses = [table_name(columns) for columns in sets]
    measures = [f"exposed({f'{cross}, ' if cross else ''}n={n})" for cross in crosses or [""]]
    lines = [
        f"quadrille inspect {file}{options}",
        f"quadrille score {file} {file}{options} --measures {shlex.quote(','.join(measures))}",
    ]
    if spec.get("attack"):
        keys = f" --keys {shlex.quote(','.join(sets[0]))}" if sets else ""
        lines.append(f"quadrille attack {file} --release {file}{options}{keys} --small {n} --knows file")
    return lines


def _public_words(spec: Mapping[str, Any]) -> str:
    policy = "" if spec.get("policy") is None else " --policy policy.toml"
    form = "" if spec.get("format", "csv") == "csv" else f" --format {spec['format']}"
    return policy + form + ("" if spec.get("shuffle", True) else " --keep-order")


def project_file(project: Project, own_codebook: bool = True) -> str:
    """Return the name by which a job file of the user names the data; a bundled file brings its own codebook."""
    if not project.source.startswith("dataset:"):
        return project.file
    return f"{project.source.removeprefix('dataset:')}.parquet" if own_codebook else project.source


def has_own_codebook(store: Store, project: Project) -> bool:
    """Whether somebody has changed the codebook; one that was only guessed need not be named."""
    document = store.document(project.id, "codebook")
    return document is not None and bool(document.user and document.text)


def drawer(
    store: Store, project: Project, kind: str, spec: Mapping[str, Any], *, first: str | None = None
) -> tuple[str, list[tuple[str, str]]]:
    """Return what a page shows as the same on the command line: the commands, and the files that they are run next to.

    `first` is a job file that is not kept yet.
    """
    own, document = has_own_codebook(store, project), store.document(project.id, "codebook")
    policy, job = store.document(project.id, "policy"), job_text(store, project, first)
    files: list[tuple[str, str]] = []
    if kind in ("forecast", "search", "compare", "report", "policy", "release") and job:
        files.append(("job.toml", job))
    if kind in ("policy", "release") and policy is not None and policy.text:
        files.append(("policy.toml", policy.text))
    if document is not None and document.text and (own or kind == "profile"):
        files.append(("codebook.toml", document.text))
    return "\n".join(commands(project, kind, spec, own_codebook=own)), files


def job_text(store: Store, project: Project, first: str | None = None) -> str | None:
    """Return the job file as it runs on the command line, next to the user's file and `codebook.toml`."""
    document = store.document(project.id, "job")
    text = first if document is None else document.text
    if text is None:
        return None
    try:
        job = toml(text)
    except ValueError:  # a fault that forecast and search tell
        return text
    own = has_own_codebook(store, project)
    about = cast("_Spec", found) if isinstance(found := job.get("data"), dict) else {}
    named = {"file": project_file(project, own), **({"codebook": "codebook.toml"} if own else {})}
    rest = {name: value for name, value in job.items() if name != "data"}
    return tomli_w.dumps({"data": {**about, **named}, **rest})


def ending_of(name: str) -> str | None:
    """Return the ending of a file name that can be opened, in small letters."""
    found = [ending for ending in ENDINGS if name.lower().endswith(ending)]
    return max(found, key=len, default=None)


def catalogue(home: Home) -> dict[str, Any] | None:
    """Return what forms are built from; the worker writes it when it starts. None until then.

    {"recipes": {name: JSON Schema}, "measures": [{"name", "side", "direction", "definition", "reference", "schema"}],
    "datasets": [{"name", "about"}], "formats": [format]}
    """
    try:
        return json.loads((home.run / "catalogue.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def refused(text: str) -> QuadrilleError:
    """Build the error of a job that must not be done."""
    return InputError(text)


def is_below(path: Path, root: Path) -> bool:
    """Whether a path, with all links followed, lies in a folder."""
    try:
        return path.resolve(strict=True).is_relative_to(root.resolve(strict=True))
    except OSError:
        return False
