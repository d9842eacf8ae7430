"""Three reports on one swap, each for one reader: the analyst, the chair of the review board, its members."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from markupsafe import Markup

from quadrille import __version__, chart
from quadrille.data import Data
from quadrille.io.atomic import PRIVATE_FOLDER, check_free, new_folder, write_file
from quadrille.measure.base import Measure
from quadrille.plan import Plan
from quadrille.recipe import Recipe
from quadrille.report import readers_sections as sections
from quadrille.report.build import place, templates
from quadrille.report.input import Row
from quadrille.report.readers_sections import Material, gather

Section = tuple[str, str, Callable[[Material], Row]]

_BEFORE_AFTER: tuple[Section, ...] = (
    ("flags", "What to look at first", sections.flags),
    ("scatter", "After against before", sections.scatter),
    ("percents", "Weighted percents", sections.percents),
    ("means", "Means of the outcomes", sections.means),
    ("associations", "Associations", sections.associations),
    ("regressions", "Regressions", sections.regressions),
)

_PAGES: dict[str, tuple[str, str, tuple[Section, ...]]] = {
    "analyst": (
        "Data swapping: report to the analyst",
        "Whoever has this page can undo the swap: it lists which records exchanged their values. It is for the analyst "
        "who makes the release, and for nobody else.",
        (
            ("account", "What was swapped", sections.account),
            ("targets", "How it was drawn", sections.drawn),
            *_BEFORE_AFTER,
            ("utility", "Utility measures", sections.utility_of_all),
            ("pairs", "Which records exchanged values", sections.pairs),
        ),
    ),
    "chair": (
        "Data swapping: report to the chair of the review board",
        "This page says how much of the file was changed, which would help to undo the protection. It is for the chair "
        "of the review board alone.",
        (("changed", "How much was changed", sections.changed),),
    ),
    "board": (
        "Data swapping: report to the members of the review board",
        "This page shows estimates and counts of the original file, small ones among them. It is for the members of "
        "the review board alone and must not be published, in whole or in part.",
        (*_BEFORE_AFTER, ("utility", "Utility measures", sections.utility)),
    ),
}

FILES = tuple(f"{name}.html" for name in _PAGES)


def write_readers(
    data: Data,
    swap: Plan | Recipe,
    out: str | Path,
    *,
    variables: Sequence[str] | None = None,
    outcomes: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    stratum: str | Sequence[str] | None = None,
    psu: str | None = None,
    measures: Sequence[str | Measure] | None = None,
    overwrite: bool = False,
) -> dict[str, Path]:
    """Write `analyst.html`, `chair.html` and `board.html` into a folder that only its owner can enter.

    The analyst sees everything but the seed: pairs, targets, what really changed, estimates before and after. The
    chair sees the percent changed per variable and overall. The members of the board see estimates before and after,
    associations, regressions and utility measures, and nothing about how the file was swapped. All three pages are
    confidential, need nothing but a browser, and make no request.

    Parameters
    ----------
    data : the file before.
    swap : the plan, or the recipe that draws it.
    out : the folder to make; it must not exist, or be empty.
    variables, outcomes, stratum, psu : as in `before_after`.
    models : further regressions to compare, such as "score ~ age + C(race)".
    measures : the utility measures; by default HD1, HD2, those of pairs and of regressions.
    overwrite : replace an earlier folder of such reports.

    Example
    -------
    >>> import tempfile
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sorted(qd.report.write_readers(data, qd.RandomSwap(["MS"], rate=0.02), f"{folder}/readers"))
    ['analyst', 'board', 'chair']
    """
    folder = Path(out)
    check_free(folder, overwrite=overwrite, holds=FILES)
    material = gather(data, swap, variables, outcomes, models, stratum, psu, measures)
    written = datetime.now(UTC)
    made: dict[str, Row] = {}
    pages = {name: render(material, name, written, made).encode() for name in _PAGES}
    with new_folder(folder, overwrite=overwrite, holds=FILES) as fresh:
        fresh.chmod(PRIVATE_FOLDER)
        for name, page in pages.items():
            write_file(fresh / f"{name}.html", page, private=True)
    return {name: folder / f"{name}.html" for name in pages}


def render(material: Material, reader: str, written: datetime, made: dict[str, Row]) -> str:
    """Return the page of one reader; `made` keeps the sections that two readers share."""
    title, warning, parts = _PAGES[reader]
    for _, _, fill in parts:
        if fill.__name__ not in made:
            made[fill.__name__] = fill(material)
    filled: dict[str, Row] = {name: {"title": heading, **made[fill.__name__]} for name, heading, fill in parts}
    charts: dict[str, chart.Figure] = {}
    for section in filled.values():
        charts |= section.get("charts", {})

    def draw(name: str) -> Markup:
        return place(name, charts[name])

    return (
        templates()
        .get_template("readers_page.html.j2")
        .render(
            title=title,
            warning=warning,
            header={
                "written": f"{written:%Y-%m-%d, %H:%M} UTC",
                "version": __version__,
                "fingerprint": material.data.fingerprint,
                "records": f"{material.data.n:,}",
            },
            sections=filled,
            draw=draw,
            scripts=_scripts(charts),
        )
    )


def _scripts(charts: Mapping[str, chart.Figure]) -> Markup:
    return Markup(f"{chart.runtime()}\n{chart.script(charts)}") if charts else Markup("")
