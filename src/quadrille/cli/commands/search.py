"""`quadrille search`: score every candidate of a job; with --dry-run say what to expect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.cli.guard import refuse, tell
from quadrille.cli.inputs import load, open_study, written_names
from quadrille.cli.study_show import DOMINATED, FRONTIER, evenly, scatter, show_reasons
from quadrille.errors import InputError, MismatchError, OutputError, ParameterError, QuadrilleError

if TYPE_CHECKING:
    from quadrille.data import Data
    from quadrille.study.forecast import Candidates, Forecast, PredictedDesign, Predictions
    from quadrille.study.job import Job
    from quadrille.study.study import Study


def search(
    job: opt.JobFile,
    out: Annotated[Path | None, opt.value("STUDY", "The study to write or go on with, instead of the job's.")] = None,
    workers: opt.Workers = None,
    seeds: Annotated[int | None, opt.value("NUMBER", "Secret seeds per design, instead of the job's seeds.")] = None,
    dry_run: Annotated[
        bool,
        opt.flag("--dry-run", "Say how many candidates, how long, what is infeasible and what to expect."),
    ] = False,
    allow_contradictions: opt.AllowContradictions = False,
    as_json: opt.Json = False,
) -> None:
    """Score every candidate release of a job; resumes."""
    from quadrille.cli import study_show
    from quadrille.cli.study_show import search_document
    from quadrille.study.forecast import without_contradictions
    from quadrille.study.job import Job

    asked = Job.read(job)
    seeds, workers = _count("--seeds", seeds), _count("--workers", workers) or asked.workers
    with show.working("Reading"):
        data = _data(asked)
        grids = asked.recipes(data, seeds=seeds)
        if not allow_contradictions:
            grids = without_contradictions(grids)
    path = asked.out if out is None else out
    for source, what in ((asked.path, "job"), (asked.file, "original file"), (asked.codebook, "codebook of the job")):
        refuse([path], source, what)
    if path.is_dir():
        raise OutputError(f"Cannot write the study {str(path)!r}: it is a folder. Name a file.")
    if dry_run:
        _foretell(asked, data, grids, path, workers, as_json=as_json)
        return
    study = _run(asked, data, grids, path, workers)
    document = search_document(study)
    document["warnings"] = [*cast("list[str]", document["warnings"]), *_traces(study, data, document["recommended"])]
    if as_json:
        show.emit(document)
    else:
        study_show.show_search(study, document)


def _traces(study: Study, data: Data, recommended: object) -> list[str]:
    """Say what speaks against the balanced candidate, or the first that is recommended: its traces above all."""
    from quadrille.delta import traces, warnings_of

    three = cast("dict[str, Any]", recommended)
    if not three:
        return []
    candidate = int(three.get("balanced", next(iter(three.values())))["candidate"])
    plan = study.recipe(candidate).plan(data)
    left = traces(data, plan)
    return [
        f"Candidate {candidate} leaves a trace. {text}" if text in left else f"Candidate {candidate}: {text}"
        for text in warnings_of(data, plan)
    ]


def _count(option: str, value: int | None) -> int | None:
    if value is not None and value < 1:
        raise ParameterError(f"{option} must be a whole number of 1 or more. Got {value}.")
    return value


def _data(job: Job) -> Data:
    """Read the data of a job, and say where the job names what cannot be read."""
    try:
        return load(job.file, job.codebook, job.weight, written_names(job.geography), job.roles, job.layout)
    except QuadrilleError as error:
        raise InputError(f"{job.path}, [data]: {error}") from None


def _run(job: Job, data: Data, grids: Candidates, path: Path, workers: int | None) -> Study:
    import quadrille as qd

    try:
        found = qd.search(
            data,
            grids,
            job.measures,
            out=path,
            workers=workers,
            then=job.then,
            tables=job.tables,
            allow_contradictions=True,
        )
    except (KeyboardInterrupt, SystemExit):
        tell(f"stopped. The results so far are in {str(path)!r}; the same command goes on from there.")
        raise
    codebook = None if job.codebook is None else str(job.codebook.absolute())
    found.remember(_absolute(job.file), codebook, job.weight, job.geography, job.roles, job.layout)
    return found


def _absolute(file: str) -> str:
    return file if file.startswith("dataset:") else str(Path(file).absolute())


def _foretell(job: Job, data: Data, grids: Candidates, path: Path, workers: int | None, *, as_json: bool) -> None:
    import quadrille as qd
    from quadrille.study.forecast import with_exposed
    from quadrille.study.workers import cores

    known = open_study(path) if path.exists() else None
    if known is not None:
        known.require(data)
        if (known.header.measures, known.header.then) != with_exposed(job.measures, job.then, data, path):
            listed = ", ".join(known.measures)
            raise MismatchError(f"The study {str(path)!r} has other measures: {listed}. Use these, or another name.")
    with show.working("Trying designs"):
        found = qd.forecast(data, grids, job.measures, workers=workers or cores())
    results = 0 if known is None else len(known) - known.counts()["pending"]
    document = {"study": str(path), "results": results, "measures": [*job.measures], "then": [*job.then]}
    document |= {"data": job.file, "records": data.n, **found.as_dict()}
    if as_json:
        show.emit(document)
    else:
        _show_forecast(found, document)
        for each in found.warnings:
            few = f"{each.designs:,} of {found.checked:,} designs" if each.designs > 1 else "1 design"
            show.note(f"\nWarning, {few} ({each.first}): {each.warning}")


MOST_PREDICTED = 25
MOST_UNPREDICTED = 5


def _show_forecast(found: Forecast, document: Mapping[str, Any]) -> None:
    """Print what a search would do."""
    from quadrille.present.words import forecast_facts

    show.title("Dry run: nothing is written")
    exists = f"exists with {document['results']:,} results, which are kept" if document["results"] else "new"
    then = f"; then {', '.join(document['then'])} near the frontier" if document["then"] else ""
    candidates, time, infeasible = forecast_facts(found)
    show.facts(
        [
            ("data", f"{document['data']}, {document['records']:,} records"),
            ("measures", ", ".join(document["measures"]) + then),
            candidates,
            ("study", f"{document['study']} ({exists})"),
            time,
            infeasible,
        ]
    )
    show_reasons(Counter(each.reason for each in found.refused).most_common(), "design")
    _show_predicted(found.predicted, found.designs)


def _show_predicted(seen: Predictions, designs: int) -> None:
    """Print the predicted frontier, and how many designs have no prediction and why."""
    if seen.axes is None or not seen.designs:
        return
    missing, front = seen.missing, seen.frontier
    known = len(seen.designs) - len(missing)
    show.title(f"Predicted frontier of {seen.axes[0]} and {seen.axes[1]}, before any draw")
    if known:
        few = f", {designs:,} in all" if known < designs else ""
        best = f"{len(front):,} design{'s' * (len(front) > 1)}"
        show.note(f"  {best} that no other is expected to dominate, of {known:,} predicted{few}.")
        show.note("  Values are means over seeds: the luckiest of many draws do better.")
        _picture(seen)
        kept = evenly(len(front), MOST_PREDICTED)
        _predicted_table([front[place] for place in kept], list(seen.designs[0].values))
        if any("rough" in each.basis.values() for each in front):
            show.note("  Where fewer than 100 records move, roots such as hellinger are rough; --json says which.")
        if len(front) > MOST_PREDICTED:
            show.note(f"  {MOST_PREDICTED} of the {len(front):,} are shown; --json lists all.")
    if missing:
        show.note("")
        show.note(f"  No prediction for {len(missing):,} design{'s' * (len(missing) > 1)}:")
        reasons = Counter(each.reason for each in missing).most_common(MOST_UNPREDICTED)
        show.facts([(f"{count:,}", reason) for reason, count in reasons])


def _picture(seen: Predictions) -> None:
    """Draw the predicted designs in text, where there are several."""
    import numpy as np

    from quadrille.measure import orient

    assert seen.axes is not None
    known = [each for each in seen.designs if all(each.values[axis] is not None for axis in seen.axes)]
    if len(known) > 1:
        points = np.array([[orient(axis, each.values[axis] or 0.0) for axis in seen.axes] for each in known])
        show.note("")
        for line in scatter(points, np.array([each.on_frontier for each in known]), seen.axes).splitlines():
            show.note(f"  {line}")
        show.note(f"  {FRONTIER} expected frontier   {DOMINATED} expected to be dominated")
        show.note("")


def _predicted_table(front: Sequence[PredictedDesign], measures: Sequence[str]) -> None:
    """Print designs; what all of them ask for is said once, above."""
    known = [address for address in measures if any(each.values[address] is not None for each in front)]
    parts = [each.design.split(", ") for each in front]
    shared = [part for part in parts[0] if len(parts) > 1 and all(part in others for others in parts)]
    if shared:
        show.note(f"  All have {', '.join(shared)}.")
    show.note("")
    rows = [
        (", ".join(part for part in own if part not in shared), *(show.number(each.values[a]) for a in known))
        for own, each in zip(parts, front, strict=True)
    ]
    show.grid(("design", *known), rows, numbers=range(1, len(known) + 1))
