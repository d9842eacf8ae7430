"""Writing the report: look, fill the templates, put the file in its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from quadrille import __version__, chart
from quadrille.data import Data
from quadrille.errors import OutputError, unless
from quadrille.io.atomic import new_file
from quadrille.present import Block, Items, facts, words
from quadrille.present.render import as_html
from quadrille.present.words import TITLE
from quadrille.report import sections, tables
from quadrille.report.input import ReportInput, Row, look
from quadrille.score.published import Tables, tables_of
from quadrille.study.study import Study
from quadrille.text import shown


def place(name: str, figure: chart.Figure) -> Markup:
    """Return the place of a chart, described in words to those who cannot see it."""
    text = str(figure.description)  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
    return Markup('<figure aria-label="{}">{}</figure>').format(_tame(text), Markup(chart.place(name)))


def templates() -> Environment:
    """Return templates that escape everything and refuse names that do not exist."""
    loader = PackageLoader("quadrille.report")
    return Environment(loader=loader, autoescape=True, finalize=_tame, undefined=StrictUndefined, trim_blocks=True)


def _show(*blocks: Block) -> Markup:
    return Markup(as_html(blocks))


def _tame(value: object) -> object:
    """Escape what steers a terminal or turns the direction of writing; markup of our own stays as it is."""
    return shown(value, keep="\n\r\t") if type(value) is str else value


_SECTIONS: dict[str, tuple[str, Callable[[ReportInput], Row]]] = {
    "summary": ("Summary", sections.summary),
    "guarantee": (TITLE, sections.promised),
    "profile": ("The data", sections.profile),
    "design": ("What was searched", sections.design),
    "frontier": ("The frontier", sections.frontier),
    "rivals": ("The chosen candidate and its rivals", sections.rivals),
    "tables": ("Its tables before and after", tables.tables),
    "designed": ("Designed swap", sections.designed),
    "flows": ("Who moved between areas", sections.flows),
    "intruder": ("The intruder's view", tables.intruder),
    "seeds": ("How much the seed matters", sections.seeds),
    "measures": ("The measures", sections.measures),
    "limits": (words.NOT_PROTECTED, lambda _: {"blocks": [Items(words.LIMITS)]}),
}


def write_report(
    study: Study,
    data: Data,
    out: str | Path,
    *,
    candidate: int | None = None,
    risk: str | None = None,
    loss: str | None = None,
    tables: Tables | None = None,
    overwrite: bool = False,
) -> Path:
    """Write the report on a study for the review board: one HTML file that needs no network.

    It is confidential and readable by its owner only. It holds no seed, no pairs and no row numbers.

    Parameters
    ----------
    study : the study to report on.
    data : the data it was made for; others are refused.
    out : the file to write.
    candidate : the number of the candidate to report on; by default the one that was picked (`study.keep_pick`). As
        long as nobody has picked, the report says so and shows the balanced candidate as an example.
    risk, loss : the axes of the frontier; the study's first measure of each side by default.
    tables : the published tables, such as "Age*Edu", whose cells are compared before and after; those that the search
        was told of by default.
    overwrite : whether a file may be replaced.

    Example
    -------
    >>> import tempfile
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> recipes = qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"]], pairs=[244, 488], seeds=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = qd.search(data, recipes, ["small_cells", "exposed", "hellinger"], out=f"{folder}/study")
    ...     qd.report.write_report(study, data, f"{folder}/report.html").name
    'report.html'
    """
    out = Path(out)
    if out.exists() and (out.is_dir() or not overwrite):
        raise unless(OutputError, f"{str(out)!r} exists. Choose another name, or overwrite it with", "overwrite")
    _keep_apart(out, study)
    check_suffix(out)
    study.require(data)
    published = study.tables if tables is None else tables_of("write_report", tables)
    page = render(look(study, data, candidate, risk, loss, published), datetime.now(UTC))
    with new_file(out, page.encode(), private=True):
        pass
    return out


def check_suffix(out: Path) -> None:
    """Refuse a name that promises another kind of file."""
    if out.suffix.lower() not in (".html", ".htm"):
        raise OutputError(f"The report is a page of HTML, and {str(out)!r} is no name for one. End it with .html.")


def _keep_apart(out: Path, study: Study) -> None:
    """Refuse to write over the study, and over the files that it knows it was made from."""
    known = study.source
    for what, path in (("study itself", study.path), ("data", known.get("file")), ("codebook", known.get("codebook"))):
        if path is not None and out.exists() and Path(path).exists() and out.samefile(path):
            raise OutputError(f"{str(out)!r} is the {what}. Choose another name for the report.")


def render(scope: ReportInput, written: datetime) -> str:
    """Return the page."""
    wanted = {
        "designed": sections.has_designed(scope),
        "flows": sections.has_flows(scope),
        "guarantee": sections.has_promise(scope),
    }
    left_out = [name for name, needed in wanted.items() if not needed]
    filled: dict[str, Row] = {
        name: {"title": title, **fill(scope)} for name, (title, fill) in _SECTIONS.items() if name not in left_out
    }
    known = [("Study", scope.study.path.name)]
    return render_page(filled, written, scope.data, known, title=_TITLE, warning=_WARNING)


_TITLE = "Data swapping: report to the review board"
_WARNING = (
    "This report shows counts of the original file, small ones among them, and what was swapped. It is for the review "
    "board alone and must not be published, in whole or in part."
)


def render_page(
    sections: Mapping[str, Row],
    written: datetime,
    data: Data,
    known: Sequence[tuple[str, str]],
    *,
    folder: str = "",
    **texts: object,
) -> str:
    """Fill the template of a page; each section has one of its own, whose name starts with `folder`, or is blocks."""
    charts: dict[str, chart.Figure] = {}
    for section in sections.values():
        charts |= section.get("charts", {})

    def draw(name: str) -> Markup:
        return place(name, charts[name])

    at = f"{written:%Y-%m-%d, %H:%M} UTC"
    header = facts(
        [
            *known,
            ("Written", at),
            ("Quadrille", f"version {__version__}"),
            ("Fingerprint of the data", data.fingerprint),
        ]
    )
    footer = f"Confidential. Written by Quadrille {__version__} on {at}."
    scripts = Markup(f"{chart.runtime()}\n{chart.script(charts)}") if charts else Markup("")
    page = templates().get_template("page.html.j2")
    return page.render(
        sections=sections, header=header, footer=footer, draw=draw, show=_show, scripts=scripts, folder=folder, **texts
    )
