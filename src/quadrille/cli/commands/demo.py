"""`quadrille demo` and `quadrille reproduce`: the whole path on bundled data, and the published numbers of a paper."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

from quadrille.cli import options as opt
from quadrille.cli import show
from quadrille.cli.guard import warnings_told
from quadrille.cli.inputs import check_folder, writing
from quadrille.errors import OutputError, ParameterError

if TYPE_CHECKING:
    from quadrille.data import Data
    from quadrille.release.release import Release
    from quadrille.study.choose import Choice
    from quadrille.study.grid import Grid
    from quadrille.study.study import Study

FILE = "dataset:cps8d"
MEASURES = ("exposed", "attributed_unique", "small_cells", "hellinger")
AXES = ("exposed", "hellinger")
INFERRED = "attributed_unique"
MOST_EXPOSED = 0.001
PAIRS = (244, 488, 2442)
SEEDS = 5
EFFORT = 0.3


def demo(
    out: Annotated[Path, opt.value("FOLDER", "The folder to write to.")] = Path("demo"),
    seed: opt.Seed = None,
    as_json: opt.Json = False,
) -> None:
    """Walk the whole path on a bundled file: inspect, search, choose, report, release."""
    from quadrille.io.atomic import check_free

    check_free(out / "release", overwrite=True, holds=("public", "confidential"))
    with _tidy(out, ["frontier.png", "frontier-inferred.png", "report.html", _study_name(seed)]):
        _walk(out, seed, as_json=as_json)


@contextmanager
def _tidy(out: Path, names: Sequence[str]) -> Generator[None]:
    """Where the demo cannot be written, on a full disk for one, remove what it has made: it is in nobody's way."""
    made = [out / name for name in names if not (out / name).exists()]
    folders = [each for each in (out, *out.absolute().parents) if not each.exists()]
    try:
        yield
    except OutputError:
        with suppress(OSError):
            for path in made:
                path.unlink(missing_ok=True)
            for folder in folders:
                folder.rmdir()
        raise


def _walk(out: Path, seed: int | None, *, as_json: bool) -> None:
    import quadrille as qd
    from quadrille.cli import study_show
    from quadrille.cli.commands.release import verdict_shown
    from quadrille.cli.study_show import choice_document, overview, search_document

    data = qd.datasets.cps8d()
    found = qd.inspect(data)
    with show.working("Preparing: the first run compiles what must be fast, once, in about half a minute"):
        qd.DesignedSwap(effort=0.01, seed=0).plan(data)
    study = _search(data, out, seed)
    choice = study.pick(risk=AXES[0], loss=AXES[1], max_risk=MOST_EXPOSED)
    study.keep_pick(choice)
    seen = overview(study, *AXES)
    with verdict_shown(as_json=as_json), warnings_told(), show.working("Writing the report and the release"):
        pictures, report = _pictures(study, choice, data, out)
        made = qd.release(
            *(data, choice.recipe, out / "release"), measures=MEASURES, overwrite=True, insecure=seed is not None
        )
    gained = study.gains(*AXES)
    if as_json:
        document = {
            "inspect": {"file": FILE, **found.as_dict()},
            "search": search_document(study),
            "choice": choice_document(choice),
        }
        drawn = {"report": report and str(report), "charts": list(map(str, pictures))}
        show.emit({**document, "gains": gained.as_dict(), **drawn, "release": made.as_dict()})
        return
    show.show_profile(FILE, found)
    study_show.show_frontier(seen, seen.rows())
    show.title("What designed swaps gained")
    show.facts(gained.facts())
    show.title(f"The choice: exposed at most {MOST_EXPOSED}, then the least loss")
    show.note(study_show.indented(choice.explain()))
    show.show_account(made.account)
    _show_where(study, pictures, report, made)


def _search(data: Data, out: Path, seed: int | None) -> Study:
    """Search random swaps of one or two variables and the curve of designed swaps, in one study."""
    import quadrille as qd

    path = out / _study_name(seed)
    study = qd.search(data, [_grid(data, seed), qd.DesignedSwap.curve(effort=EFFORT, seed=seed)], MEASURES, out=path)
    study.remember(FILE, None, None)  # so that the studio finds it
    return study


def _study_name(seed: int | None) -> str:
    return "study" if seed is None else f"study-{seed}"


def _grid(data: Data, seed: int | None) -> Grid:
    import quadrille as qd

    swaps = [[name] for name in data.keys] + [list(pair) for pair in combinations(data.keys, 2)]
    if seed is None:
        return qd.grid(qd.RandomSwap, swap=swaps, pairs=PAIRS, seeds=SEEDS)
    return qd.grid(qd.RandomSwap, swap=swaps, pairs=PAIRS, seed=range(seed, seed + SEEDS))


def _pictures(study: Study, choice: Choice, data: Data, out: Path) -> tuple[list[Path], Path | None]:
    """Write the charts, by what is exposed and by what can be inferred, and the report, or say what they need."""
    from quadrille.cli.guard import tell
    from quadrille.errors import QuadrilleError

    try:
        from quadrille import chart
        from quadrille.report import write_report
    except QuadrilleError as error:
        tell(f"no report is written: {error}")
        return [], None
    from quadrille.report.frontier_chart import FrontierPredictions, draw_frontier, floor_of, rows_of, scored

    pictures: list[Path] = []
    for axes, name in ((AXES, "frontier.png"), ((INFERRED, AXES[1]), "frontier-inferred.png")):
        ahead = FrontierPredictions(floor=floor_of(data, study.measures, axes) if axes == AXES else None)
        drawn = draw_frontier(study, axes, scored(study, axes, rows_of(study)), choice.candidate, ahead)
        pictures.append(chart.save(drawn, out / name))
    report = write_report(
        study, data, out / "report.html", candidate=choice.candidate, risk=AXES[0], loss=AXES[1], overwrite=True
    )
    return pictures, report


def _show_where(study: Study, pictures: Sequence[Path], report: Path | None, made: Release) -> None:
    show.title("What to open")
    words = ("by exposed: random cloud, designed curve, the choice", "by what can be inferred of those who are alone")
    rows = [("the whole search", f"{path} ({told})") for path, told in zip(pictures, words, strict=False)]
    rows += [("for the review board", f"{report} (confidential)")] if report else []
    rows += [
        ("to publish", f"{made.public}/"),
        ("to lock away", f"{made.confidential}/ (it can undo the release)"),
        ("", f"{study.path} (it holds the seeds)"),
    ]
    show.facts(rows)
    show.title("Next")
    show.shell(f"  quadrille pick {study.path} --risk exposed --max-risk 0.001")
    show.shell("  quadrille search examples/designed.toml --dry-run")
    show.shell(f"  quadrille studio open {study.path}")


def reproduce(
    paper: opt.Paper,
    draws: Annotated[
        int | None,
        opt.value("NUMBER", "How often each design is drawn. [default: as the paper's page]"),
    ] = None,
    sampler: Annotated[
        str | None,
        opt.value("WORD", "first-uniform or pair-uniform; cells, records or both for lemons-2014."),
    ] = None,
    charts: opt.Charts = None,
    as_json: opt.Json = False,
) -> None:
    """Set the published numbers of a paper beside ours."""
    from quadrille import papers

    module = papers.get(paper)
    if charts is not None and not hasattr(module, "write_figures"):
        raise ParameterError(f"The paper {paper} has no figures to draw. Leave --charts out.")
    if charts is not None:
        check_folder(charts)
    count, rule = module.DEFAULT_SEEDS if draws is None else draws, sampler or module.DEFAULT_SAMPLER
    with show.progress_bar(f"Reproducing {paper}") as progress:
        reproduction = _reproduced(module, count, rule, progress)
    with writing(charts):
        drawn = [] if charts is None else [str(path) for path in module.write_figures(reproduction, charts)]
    if as_json:
        show.emit({**reproduction.as_dict(), "figures_written": drawn})
        return
    reproduction.render(show.console())
    if drawn:
        show.title("Figures")
        show.facts([("", path) for path in drawn])


def _reproduced(module: ModuleType, draws: int, sampler: str, progress: show.Progress | None) -> Any:
    """Reproduce a paper; a wrong number of draws is refused by the name of its option."""
    try:
        return module.reproduce(seeds=draws, sampler=sampler, progress=progress)
    except ParameterError as error:
        if error.parameter == "seeds":
            raise ParameterError(f"--draws must be {error.must}. Got {error.value!r}.") from None
        raise
