"""What all pages share: templates that escape everything, and the place of a chart."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from quadrille import chart
from quadrille.texts import shown


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
