"""Writing the report: look, fill the templates, put the file in its place."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from quadrille import __version__, chart
from quadrille.data import Data
from quadrille.errors import MismatchError, OutputError
from quadrille.io.atomic import new_file
from quadrille.report import sections_choice, sections_data, sections_designed, sections_study
from quadrille.report.input import ReportInput, Row, look
from quadrille.study.study import Study
from quadrille.text import shown


def place(name: str, figure: chart.Figure) -> Markup:
    """Return the place of a chart, told in words to those who cannot see it."""
    told = str(figure.description)  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
    return Markup('<figure aria-label="{}">{}</figure>').format(_tame(told), Markup(chart.place(name)))


def templates() -> Environment:
    """Return templates that escape everything and refuse names that do not exist."""
    loader = PackageLoader("quadrille.report")
    return Environment(loader=loader, autoescape=True, finalize=_tame, undefined=StrictUndefined, trim_blocks=True)


def _tame(value: object) -> object:
    """Escape what steers a terminal or turns the direction of writing; markup of our own stays as it is."""
    return shown(value, keep="\n\r\t") if type(value) is str else value


_SECTIONS: dict[str, tuple[str, Callable[[ReportInput], Row]]] = {
    "summary": ("Summary", sections_choice.summary),
    "profile": ("The data", sections_data.profile),
    "design": ("What was searched", sections_study.design),
    "frontier": ("The frontier", sections_study.frontier),
    "rivals": ("The chosen candidate beside its rivals", sections_choice.rivals),
    "tables": ("Its tables before and after", sections_data.tables),
    "designed": ("Designed swap", sections_designed.designed),
    "seeds": ("How much the seed matters", sections_choice.seeds),
    "measures": ("The measures", sections_choice.measures),
    "limits": ("What the swap does not protect against", lambda _: Row()),
}


def write_report(
    study: Study,
    data: Data,
    out: str | Path,
    *,
    candidate: int | None = None,
    risk: str | None = None,
    loss: str | None = None,
    overwrite: bool = False,
) -> Path:
    """Write the report on a study for the review board: one HTML file that needs no network.

    It is confidential and readable by its owner only. It holds no seed, no pairs and no row numbers.

    Parameters
    ----------
    study : the study to report on.
    data : the data it was made for; others are refused.
    out : the file to write.
    candidate : the number of the candidate to report on; the knee of the frontier by default.
    risk, loss : the axes of the frontier; the study's first measure of each side by default.
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
        raise OutputError(f"{str(out)!r} exists. Choose another name, or ask to overwrite it.")
    _keep_apart(out, study)
    if data.fingerprint != study.header.fingerprint:
        raise MismatchError(
            f"The study {str(study.path)!r} was made for other data. "
            "Use the file, codebook and weight that it was made with."
        )
    page = render(look(study, data, candidate, risk, loss), datetime.now(UTC))
    with new_file(out, page.encode(), private=True):
        pass
    return out


def _keep_apart(out: Path, study: Study) -> None:
    """Refuse to write over the study, and over the files that it knows it was made from."""
    known = study.source
    for what, path in (("study itself", study.path), ("data", known.get("file")), ("codebook", known.get("codebook"))):
        if path is not None and out.exists() and Path(path).exists() and out.samefile(path):
            raise OutputError(f"{str(out)!r} is the {what}. Choose another name for the report.")


def render(scope: ReportInput, written: datetime) -> str:
    """Return the page."""
    left_out = () if sections_designed.has_designed(scope) else ("designed",)
    sections: dict[str, Row] = {
        name: {"title": title, **fill(scope)} for name, (title, fill) in _SECTIONS.items() if name not in left_out
    }
    charts: dict[str, chart.Figure] = {}
    for section in sections.values():
        charts |= section.get("charts", {})
    header = {
        "study": scope.study.path.name,
        "written": f"{written:%Y-%m-%d, %H:%M} UTC",
        "version": __version__,
        "fingerprint": scope.data.fingerprint,
    }

    def draw(name: str) -> Markup:
        return place(name, charts[name])

    page = templates().get_template("report.html.j2")
    return page.render(
        header=header,
        sections=sections,
        axes=scope.axes,
        n=scope.n,
        draw=draw,
        runtime=Markup(chart.runtime()),
        script=Markup(chart.script(charts)),
    )
