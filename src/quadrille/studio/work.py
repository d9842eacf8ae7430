"""What each kind of job does: product functions on the data of a project. It has no statistics of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from quadrille.errors import InputError
from quadrille.studio.store import Home, Job, Project, Store

if TYPE_CHECKING:
    from quadrille.codebook import Codebook
    from quadrille.data import Data

Progress = Callable[[int, int], None]
Stop = Callable[[], bool]
Result = dict[str, Any]


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

    def folder(self) -> Path:
        """Return a folder for the files of this job alone."""
        path = self.home.project(self.project.id) / "work" / str(self.job.id)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path

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
        catalogs = [*path.parent.glob("catalog.sas7bcat")] if path.suffix == ".sas7bdat" else []
        return qd.read(path, codebook=codebook, catalog=catalogs[0] if catalogs else None)


_LATEST: dict[str, Any] = {}
"""The data that were read last: jobs of one project follow one another."""


def do(store: Store, job: Job, progress: Progress, stop: Stop) -> Result:
    """Do a job and return its result, in plain values."""
    return plain(_WORK[job.kind](Task(store, job, progress, stop)))


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
    own = task.spec.get("codebook") is not None
    newest = task.store.document(task.project.id, "codebook", 1)
    declared = data.columns if own and not (newest is not None and newest.version == task.spec["codebook"]) else ()
    found = qd.inspect(data, labels=True, declared=declared)
    result: Result = {**found.as_dict(), "fingerprint": data.fingerprint, "file": task.project.file}
    result["hints_of"] = {
        name: [hint for hint in found.hints if repr(name) in hint]
        for name in data.columns
        if any(repr(name) in hint for hint in found.hints)
    }
    result["codebook"] = data.codebook.to_toml()
    result["variables"] = [
        {
            "name": variable.name,
            "kind": variable.kind,
            "role": variable.role,
            "level": variable.level,
            "categories": list(variable.categories),
            "labels": list(variable.names) if variable.coded else [],
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
    if not own and task.store.document(task.project.id, "codebook") is None:
        task.store.put_document("worker", task.project.id, "codebook", result["codebook"], expected=0)
    return result


_WORK: dict[str, Callable[[Task], Result]] = {"profile": profile}


def warm(home: Home) -> None:
    """Import the product, load the kernels and write what forms are built from."""
    import quadrille as qd

    write_catalogue(home)
    data = qd.datasets.cps8d()
    qd.score(data, qd.RandomSwap(["Edu"], pairs=2, seed=1).plan(data), ["exposed", "small_cells", "hellinger"])


def write_catalogue(home: Home) -> None:
    """Write what forms are built from: methods, measures, bundled files."""
    import quadrille as qd
    from quadrille.io import RELEASED
    from quadrille.io.atomic import write_file
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
    recipes = {name: method.schema() for name, method in known_methods().items()}
    document = {"recipes": recipes, "measures": measures, "datasets": datasets, "formats": RELEASED}
    write_file(home.run / "catalogue.json", json.dumps(plain(document)).encode(), private=True)
