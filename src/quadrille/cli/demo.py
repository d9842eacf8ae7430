"""`quadrille demo`: what an agency does, on the bundled file: from a confidential file to a defended release."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from quadrille.cli import show
from quadrille.cli.guard import warnings_told

if TYPE_CHECKING:
    from quadrille.data import Data
    from quadrille.io.bundle import Release
    from quadrille.study.grid import Grid
    from quadrille.study.results import Study

MEASURES = ("small_cells", "exposed", "hellinger")
PAIRS = (244, 488, 2442)
SEEDS = 5


def run(out: Path, seed: int | None, *, as_json: bool) -> None:
    """Inspect CPS-8d, search all swaps of one or two variables, choose, report and release."""
    import quadrille as qd
    from quadrille.cli import study_show
    from quadrille.cli.overview import choice_document, overview, search_document
    from quadrille.cli.profile import profile
    from quadrille.io.atomic import check_free

    check_free(out / "release", overwrite=True, holds=("public", "confidential"))
    data = qd.datasets.cps8d()
    found = profile(data, "dataset:cps8d")
    study = qd.search(data, _grid(data, seed), MEASURES, out=out / ("study" if seed is None else f"study-{seed}"))
    seen = overview(study)
    assert seen.knee is not None
    with warnings_told(), show.working("Writing the report and the release"):
        report = _report(study, data, out / "report.html")
        made = qd.release(data, seen.knee.recipe, out / "release", measures=MEASURES, overwrite=True)
    if as_json:
        document = {"inspect": found.as_dict(), "search": search_document(study), "choice": choice_document(seen.knee)}
        show.emit({**document, "report": report and str(report), "release": made.as_dict()})
        return
    show.show_profile(found)
    study_show.show_frontier(seen, seen.rows())
    show.title("The choice: the knee of the frontier")
    show.note(study_show.indented(seen.knee.explain()))
    show.show_account(made.account)
    _show_where(study, report, made)


def _grid(data: Data, seed: int | None) -> Grid:
    import quadrille as qd

    swaps = [[name] for name in data.keys] + [list(pair) for pair in combinations(data.keys, 2)]
    if seed is None:
        return qd.grid(qd.RandomSwap, swap=swaps, pairs=PAIRS, seeds=SEEDS)
    return qd.grid(qd.RandomSwap, swap=swaps, pairs=PAIRS, seed=range(seed, seed + SEEDS))


def _report(study: Study, data: Data, path: Path) -> Path | None:
    """Write the report, or say what it needs."""
    from quadrille.cli.guard import tell
    from quadrille.errors import QuadrilleError

    try:
        from quadrille.report import write_report
    except QuadrilleError as error:
        tell(f"no report is written: {error}")
        return None
    return write_report(study, data, path, overwrite=True)


def _show_where(study: Study, report: Path | None, made: Release) -> None:
    show.title("What to open")
    rows = [("for the review board", f"{report} (confidential)")] if report else []
    rows += [
        ("to publish", f"{made.public}/"),
        ("to lock away", f"{made.confidential}/ (it can undo the release)"),
        ("", f"{study.path} (it holds the seeds)"),
    ]
    show.facts(rows)
    show.title("Next")
    show.shell(f"  quadrille pick {study.path} --max-loss 0.05")
    show.shell("  quadrille search examples/gomatam-karr-sanil-2003.toml --dry-run")
