"""The commands on studies: search, frontier, pick; and the recipe of a candidate, to be released."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.cli.designs import Design
from quadrille.cli.guard import refuse, tell
from quadrille.cli.inputs import RULES, check_new, checked_rule, load
from quadrille.cli.study_show import DOMINATED, FRONTIER, evenly, scatter, show_reasons
from quadrille.errors import InputError, MismatchError, ParameterError, QuadrilleError

if TYPE_CHECKING:
    from quadrille.cli.study_show import Overview
    from quadrille.data import Data
    from quadrille.recipe import Recipe
    from quadrille.report.frontier_chart import FrontierPredictions
    from quadrille.study.forecast import Forecast, PredictedDesign, Predictions
    from quadrille.study.grid import Grid
    from quadrille.study.job import Job
    from quadrille.study.study import Study


def search(
    job: opt.JobFile,
    out: Annotated[
        Path | None, typer.Option(metavar="STUDY", help="The study to write or go on with, instead of the job's.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="Processes to use. [default: all cores]")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="Secret seeds per design, instead of the job's seeds.")
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say how many candidates, how long, what is infeasible and what to expect."),
    ] = False,
    as_json: opt.Json = False,
) -> None:
    """Score every candidate release of a job; resumes."""
    from quadrille.cli import study_show
    from quadrille.cli.study_show import search_document
    from quadrille.study.job import Job

    asked = Job.read(job)
    seeds, workers = _count("--seeds", seeds), _count("--workers", workers) or asked.workers
    with show.working("Reading"):
        data = _data(asked)
        grids = asked.recipes(data, seeds=seeds)
    path = asked.out if out is None else out
    for source, what in ((asked.path, "job"), (asked.file, "original file"), (asked.codebook, "codebook of the job")):
        refuse([path], source, what)
    if dry_run:
        _foretell(asked, data, grids, path, workers, as_json=as_json)
        return
    study = _run(asked, data, grids, path, workers)
    document = search_document(study)
    document["warnings"] = [*cast("list[str]", document["warnings"]), *_traces(study, data, document["knee"])]
    if as_json:
        show.emit(document)
    else:
        study_show.show_search(document, _release_command(asked))


def _traces(study: Study, data: Data, knee: object) -> list[str]:
    """Say which traces the candidate at the knee leaves."""
    from quadrille.delta import traces

    if not isinstance(knee, dict):
        return []
    candidate = int(cast("dict[str, Any]", knee)["candidate"])
    found = traces(data, study.recipe(candidate).plan(data))
    return [f"Candidate {candidate} leaves a trace. {text}" for text in found]


def _count(option: str, value: int | None) -> int | None:
    if value is not None and value < 1:
        raise ParameterError(f"{option} must be a whole number of 1 or more. Got {value}.")
    return value


def _data(job: Job) -> Data:
    """Read the data of a job, and say where the job names what cannot be read."""
    try:
        return load(job.file, job.codebook, job.weight, _levels(job.geography))
    except QuadrilleError as error:
        raise InputError(f"{job.path}, [data]: {error}") from None


def _run(job: Job, data: Data, grids: list[Grid], path: Path, workers: int | None) -> Study:
    import quadrille as qd

    try:
        found = qd.search(data, grids, job.measures, out=path, workers=workers, then=job.then)
    except (KeyboardInterrupt, SystemExit):
        tell(f"stopped. The results so far are in {str(path)!r}; the same command goes on from there.")
        raise
    codebook = None if job.codebook is None else str(job.codebook.absolute())
    found.remember(_absolute(job.file), codebook, job.weight, job.geography)
    return found


def _levels(names: Sequence[str]) -> list[str]:
    """Write the names of columns as the command line has them, quoted where they hold a comma or a blank."""
    return [name if name.isidentifier() else f"`{name}`" for name in names]


def _absolute(file: str) -> str:
    return file if file.startswith("dataset:") else str(Path(file).absolute())


def _foretell(job: Job, data: Data, grids: list[Grid], path: Path, workers: int | None, *, as_json: bool) -> None:
    import os

    import quadrille as qd
    from quadrille.cli.study_show import open_study
    from quadrille.study.run import with_exposed

    known = open_study(path) if path.exists() else None
    if known is not None:
        require_data(known, data)
        if (known.header.measures, known.header.then) != tuple(map(tuple, with_exposed(job.measures, job.then))):
            listed = ", ".join(known.measures)
            raise MismatchError(f"The study {str(path)!r} has other measures: {listed}. Use these, or another name.")
    with show.working("Trying designs"):
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        found = qd.forecast(data, grids, job.measures, workers=workers or cores)
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
    show.title("Dry run: nothing is written")
    exists = f"exists with {document['results']:,} results, which are kept" if document["results"] else "new"
    then = f"; then {', '.join(document['then'])} near the frontier" if document["then"] else ""
    seeds = f"{found.candidates / found.designs:.3g} seeds" if found.candidates != found.designs else "1 seed"
    show.facts(
        [
            ("data", f"{document['data']}, {document['records']:,} records"),
            ("measures", ", ".join(document["measures"]) + then),
            ("candidates", f"{found.candidates:,}: {found.designs:,} designs with {seeds} each"),
            ("study", f"{document['study']} ({exists})"),
            ("time", _time(found)),
            ("infeasible", _refused(found)),
        ]
    )
    show_reasons(Counter(each.reason for each in found.refused).most_common(), "design")
    _show_predicted(found.predicted, found.designs)


def _time(found: Forecast) -> str:
    if found.seconds is None or found.seconds_each is None:
        return "unknown: no design could be drawn"
    return (
        f"about {_duration(found.seconds)} with {found.workers} worker{'s' * (found.workers > 1)}, an estimate from "
        f"{found.timed:,} candidates of {1000 * found.seconds_each:.2g} ms each"
    )


def _refused(found: Forecast) -> str:
    checked = "all" if found.checked == found.designs else f"{found.checked:,} of the"
    return f"{len(found.refused):,} designs ({checked} {found.designs:,} were checked)"


def _duration(seconds: float) -> str:
    """Write a time in the unit that suits it."""
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 6000 else f"{seconds / 3600:.1f} hours"


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

    from quadrille.measure.axes import orient

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


def frontier(
    study: opt.StudyFile,
    risk: opt.Risk = None,
    loss: opt.Loss = None,
    chart: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Draw the candidates, with the frontier that theory predicts: .png, .svg or .html."
        ),
    ] = None,
    file: Annotated[
        str | None,
        typer.Option("--data", metavar="FILE", help="The data of the study, for the prediction. [default: its job's]"),
    ] = None,
    codebook: opt.Codebook = None,
    weight: opt.Weight = None,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
) -> None:
    """Show the candidates that no other one dominates."""
    from quadrille.cli import study_show
    from quadrille.cli.study_show import choice_document, open_study, overview

    if chart is None and (file or codebook or weight):
        raise ParameterError("--data, --codebook and --weight serve the prediction in a chart: add --chart FILE.")
    check_new(chart, overwrite=overwrite, source=str(study))
    with show.working("Reading"):
        known = open_study(study)
        _refuse_sources(known, chart)
        seen = overview(known, risk, loss)
        rows = seen.rows()
        ahead = None if chart is None else _draw(seen, (file, codebook, weight), chart)
    if not as_json:
        study_show.show_frontier(seen, rows)
        if ahead is not None:
            show.note(f"\nDrew {chart}. {ahead.text}")
        return
    show.emit(
        {
            "study": str(study),
            "axes": seen.axes,
            "candidates": len(seen.points),
            "left_out": len(seen.study) - len(seen.points),
            "frontier": rows,
            "knee": None if seen.knee is None else choice_document(seen.knee),
            "warnings": list(seen.warnings),
            "chart": chart and str(chart),
            "predicted": None if ahead is None else ahead.as_dict(),
        }
    )


def _draw(seen: Overview, given: tuple[str | None, Path | None, str | None], path: Path) -> FrontierPredictions:
    """Draw the frontier of a study, with what theory predicts where data and recipes allow."""
    from quadrille import chart
    from quadrille.report.frontier_chart import FrontierPredictions, draw_frontier, predictions_of, rows_of, scored

    study = seen.study
    if not len(seen.points):
        raise InputError("No candidate has a score on both axes, so there is nothing to draw.")
    found = scored(study, seen.axes, rows_of(study))
    try:
        data = load(*_source(study, *given, command="frontier STUDY --chart FILE --data FILE"))
        require_data(study, data)
        ahead = predictions_of(study, data, seen.axes, found)
    except QuadrilleError as error:
        if given[0] is not None:
            raise
        ahead = FrontierPredictions(why_none=str(error).rstrip("."))
    knee = None if seen.knee is None else seen.knee.candidate
    chart.save(draw_frontier(study, seen.axes, found, knee, ahead), path)
    return ahead


def pick(
    study: opt.StudyFile,
    rule: Annotated[
        str | None, typer.Option(metavar="WORD", help=f"{', '.join(RULES)}. [default: knee, or what a limit implies]")
    ] = None,
    max_risk: Annotated[float | None, typer.Option(metavar="NUMBER", help="Least loss with at most this risk.")] = None,
    max_loss: Annotated[float | None, typer.Option(metavar="NUMBER", help="Least risk with at most this loss.")] = None,
    trade: Annotated[float | None, typer.Option(metavar="NUMBER", help="Least risk + NUMBER * loss.")] = None,
    weights: Annotated[
        str | None, typer.Option(metavar="A,B", help="Nearest to the ideal point, risk weighted A and loss B.")
    ] = None,
    ignore_hd: Annotated[
        bool, typer.Option("--ignore-hd", help="With --rule dohrmann: many cells are small, leave HD out.")
    ] = False,
    risk: opt.Risk = None,
    loss: opt.Loss = None,
    note: Annotated[str | None, typer.Option(metavar="TEXT", help="Pin this note to the candidate.")] = None,
    save_recipe: opt.SaveRecipe = None,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
) -> None:
    """Choose a candidate and say why."""
    from quadrille.cli import study_show
    from quadrille.cli.study_show import candidate_row, choice_document, open_study, overview
    from quadrille.io.atomic import new_file

    check_new(save_recipe, overwrite=overwrite, source=str(study))
    rule, pair = checked_rule(rule, trade, weights)
    known = open_study(study)
    _refuse_sources(known, save_recipe)
    if ignore_hd and rule != "dohrmann":
        raise ParameterError("--ignore-hd goes with --rule dohrmann.")
    limits = {"max_risk": max_risk, "max_loss": max_loss}
    chosen = known.pick(rule, risk=risk, loss=loss, **limits, trade=trade, weights=pair, ignore_hd=ignore_hd)
    if save_recipe is not None:
        with new_file(save_recipe, (chosen.recipe.to_json() + "\n").encode(), private=True):
            pass
    if note is not None:
        known.note(chosen.candidate, note)
    row, warnings = candidate_row(known, chosen.candidate), overview(known, *chosen.axes).warnings
    if as_json:
        saved = save_recipe and str(save_recipe)
        written = {"note": row["note"], "save_recipe": saved, "warnings": list(warnings)}
        show.emit({"study": str(study), **choice_document(chosen), "scores": row["scores"], **written})
    else:
        study_show.show_choice(chosen, row, warnings, f"quadrille release FILE --study {quote(str(study))}")


def report(
    study: opt.StudyFile,
    file: opt.ReportFile = None,
    candidate: opt.Candidate = None,
    risk: opt.Risk = None,
    loss: opt.Loss = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The HTML file to write.")] = Path("report.html"),
    readers: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Also write the reports for analyst, chair and board into this folder."),
    ] = None,
    var_stratum: opt.VarStratum = None,
    var_unit: opt.VarUnit = None,
    overwrite: opt.Overwrite = False,
    codebook: opt.Codebook = None,
    weight: opt.Weight = None,
    as_json: opt.Json = False,
) -> None:
    """Write the report for the review board, as one HTML file."""
    from quadrille.cli.study_show import open_study
    from quadrille.report import write_report

    known = open_study(study)
    source = _source(known, file, codebook, weight)
    check_new(out, overwrite=overwrite, source=source[0])
    _refuse_sources(known, out, readers, replaces=overwrite)
    with show.working("Reading and writing the report"):
        data = load(*source)
        if readers is not None:  # first, because a folder can fail in more ways than a file whose place was checked
            chosen = known.pick("knee", risk=risk, loss=loss).recipe if candidate is None else known.recipe(candidate)
            write_readers(data, chosen, readers, var_stratum, var_unit, overwrite=overwrite)
        path = write_report(known, data, out, candidate=candidate, risk=risk, loss=loss, overwrite=overwrite)
    if as_json:
        show.emit({"study": str(study), "report": str(path), "readers": readers and str(readers)})
    else:
        also = "" if readers is None else f" and {readers}/"
        show.note(f"Wrote {path}{also}. It is confidential; open it in a browser, no network is needed.")


def write_readers(
    data: Data,
    recipe: Recipe,
    folder: Path,
    var_stratum: Sequence[str] | None,
    var_unit: str | None,
    *,
    overwrite: bool = False,
) -> None:
    """Write the reports of the three readers."""
    from quadrille import report
    from quadrille.cli.inputs import names

    report.write_readers(data, recipe, folder, stratum=names(var_stratum), psu=var_unit, overwrite=overwrite)


def _source(
    study: Study,
    file: str | None,
    codebook: Path | None,
    weight: str | None,
    *,
    command: str = "report STUDY FILE",
) -> tuple[str, Path | None, str | None, list[str]]:
    """Return the data file of a study: the one given, or the one that its job named; levels are those of the job."""
    known = study.source
    levels = _levels(json.loads(known.get("geography") or "[]"))
    if file is not None:
        return file, codebook, weight, levels
    if not known:
        raise ParameterError(f"The study does not know its data file. Name it: quadrille {command}.")
    book = known["codebook"]
    return str(known["file"]), codebook or (Path(book) if book else None), weight or known["weight"], levels


def _refuse_sources(study: Study, *outputs: Path | None, replaces: bool = False) -> None:
    """Refuse to write over the data and the codebook of a study, also where they are not named again."""
    given, known = [path for path in outputs if path is not None], study.source if any(outputs) else {}
    refuse(given, known.get("file"), "original file of the study", replaces=replaces)
    refuse(given, known.get("codebook"), "codebook of the study", replaces=replaces)


def _release_command(job: Job) -> str:
    """Return the command that releases a candidate of a job's study, without the study and the candidate."""
    words = ["quadrille release", quote(job.file)]
    words += [] if job.codebook is None else ["--codebook", quote(str(job.codebook))]
    words += [] if job.weight is None else ["--weight", quote(job.weight)]
    words += [part for name in _levels(job.geography) for part in ("--geography", quote(name))]
    return " ".join(words)


def candidate_of(path: Path | None, candidate: int | None, pick: bool, design: Design) -> tuple[Study, Recipe] | None:
    """Return the study and the recipe of the candidate to release; None when no study is named."""
    from quadrille.cli.study_show import open_study

    if path is None:
        if candidate is not None or pick:
            option = "--pick" if pick else "--candidate"
            raise ParameterError(f"{option} chooses from a study: name it with --study.")
        return None
    if given := list(design.given):
        raise ParameterError(f"Give --study or --{given[0]}, not both: a candidate has its recipe.")
    if (candidate is None) == (not pick):
        raise ParameterError("Say which candidate of the study to release: --candidate ID, or --pick for the knee.")
    study = open_study(path)
    if candidate is None:
        return study, study.pick("knee").recipe
    if not (study.ids == candidate).any():
        raise InputError(
            f"The study {str(path)!r} has no candidate {candidate}. Its candidates are 1 to {len(study):,}."
        )
    return study, study.recipe(candidate)


def require_data(study: Study, data: Data) -> None:
    """Refuse data other than those of the study: a candidate would be another release there."""
    if study.header.fingerprint != data.fingerprint:
        raise MismatchError(
            f"The study {str(study.path)!r} was made for other data. "
            "Use the file, codebook and weight that it was made with."
        )
