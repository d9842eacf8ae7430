"""One look for all charts: sizes, fonts, colours that everybody can tell apart, number formats, titles."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

import altair as alt

from quadrille.present.numbers import counted

WIDTH, HEIGHT = 600, 400
LOWER_PANEL = 230
INK, GREY, PALE, AXIS = "#1f1f1f", "#8a8a8a", "#b8b8b8", "#5f5f5f"
HUES = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#000000")
"""Okabe & Ito (2008) without yellow, which paper swallows: distinct with every kind of colour vision."""
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right")
"""A shape for every hue, so that a grey print can be read too."""

Figure = alt.Chart | alt.LayerChart | alt.HConcatChart | alt.VConcatChart
"""What the functions of this package return: an Altair chart of one of these kinds."""
AnyFigure = TypeVar("AnyFigure", alt.Chart, alt.LayerChart, alt.HConcatChart, alt.VConcatChart)

Range = tuple[float, float]

SHARE, SCORE = ".4~p", ".6~g"
"""How Vega writes a share and a score: with the digits of `present.numbers`."""

_FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
_SHARES = frozenset({"small_cells", "exposed", "confidence"})
_DIVERSITIES = frozenset({"gini_difference", "shannon_difference", "renyi_difference"})
_LINE = 104


def finish(figure: AnyFigure, title: str, reading: str, notes: Iterable[str] = ()) -> AnyFigure:
    """Give a chart its title, the sentences on how to read it, the notes below them, and the common look."""
    lines = [line for text in (reading, " ".join(notes)) if text for line in textwrap.wrap(text, _LINE)]
    head = alt.TitleParams(text=title, subtitle=lines, anchor="start", frame="bounds", offset=14)
    text = " ".join([title, *lines])
    return figure.properties(title=head, description=text, padding=12, config=_look())


def _look() -> alt.Config:
    return alt.Config(
        background="white",
        font=_FONT,
        view=alt.ViewConfig(stroke="#d9d9d9"),
        title=alt.TitleConfig(
            fontSize=18, subtitleFontSize=13, subtitleColor="#444444", subtitleLineHeight=17, subtitlePadding=7
        ),
        axis=alt.AxisConfig(
            labelFontSize=12,
            titleFontSize=13,
            titleFontWeight="bold",
            titlePadding=9,
            labelColor=INK,
            titleColor=INK,
            gridColor="#ececec",
            domainColor=AXIS,
            tickColor=AXIS,
        ),
        legend=alt.LegendConfig(
            labelFontSize=12, titleFontSize=13, labelLimit=260, titleLimit=260, symbolSize=110, rowPadding=4
        ),
        header=alt.HeaderConfig(labelFontSize=13, titleFontSize=13),
    )


def layered(layers: Iterable[alt.Chart], width: int, height: int) -> alt.LayerChart:
    """Lay charts over one another on one area."""
    return alt.LayerChart(layer=list(layers), width=width, height=height)


def number_format(measure: str) -> str:
    """Return the axis format of a measure: per cent for a share of records, else plain."""
    return "%" if is_share(measure) else ""


def is_share(measure: str) -> bool:
    """Whether the measure, options aside, is a share of records."""
    return measure.split("(", maxsplit=1)[0].strip() in _SHARES


def is_diversity(measure: str) -> bool:
    """Whether the measure is a difference of diversities, whose larger values do not mean more perturbation."""
    return measure.split("(", maxsplit=1)[0].strip() in _DIVERSITIES


def extent(values: Iterable[float], margin: float = 0.05) -> Range:
    """Return the range of an axis: all values with some air around them, but none below zero for nothing."""
    values = list(values)
    low, high = min(values), max(values)
    air = (high - low) * margin or abs(high) * margin or 1.0
    return max(low - air, 0.0) if low >= 0 else low - air, high + air


def told_below(companion: str, what: str, unknown: int) -> list[str]:
    """Say what the second panel of a chart of risk and loss is for, and how many have no place there."""
    told = f"Below, the same {what} by {companion}: trust a lower risk only where both panels show it."
    return [told, *([f"Not below: {counted(unknown, 'candidate')} without {companion}."] if unknown else [])]


def text_width(text: str, size: int = 12) -> float:
    """Estimate how many pixels a text takes."""
    return 0.5 * size * len(text)


@dataclass(frozen=True)
class Plane:
    """Loss across and risk up: one pair of axes for everything drawn on it, whatever column it comes from."""

    risk: str
    loss: str
    across: Range
    up: Range
    width: int = WIDTH
    height: int = HEIGHT

    def x(self, field: str) -> alt.X:
        """Put a column on the axis of loss."""
        axis = alt.Axis(format=number_format(self.loss), tickCount=7)
        title = _axis_title(self.loss, "loss")
        return alt.X(field, type="quantitative", title=title, scale=fixed(self.across), axis=axis)

    def y(self, field: str) -> alt.Y:
        """Put a column on the axis of risk."""
        axis = alt.Axis(format=number_format(self.risk), tickCount=self.height // 55)
        title = _axis_title(self.risk, "risk")
        return alt.Y(field, type="quantitative", title=title, scale=fixed(self.up), axis=axis)

    def pixels(self, loss: float, risk: float) -> tuple[float, float]:
        """Return the place of a point, from the top left corner."""
        (left, right), (low, high) = self.across, self.up
        return (loss - left) / (right - left) * self.width, (high - risk) / (high - low) * self.height

    def values(self, x: float, y: float) -> tuple[float, float]:
        """Return the loss and the risk of a place."""
        (left, right), (low, high) = self.across, self.up
        return left + x / self.width * (right - left), high - y / self.height * (high - low)


def fixed(domain: Range) -> alt.Scale:
    """Return a scale that covers just this range."""
    return alt.Scale(domain=list(domain), nice=False, zero=False)


def _axis_title(measure: str, side: str) -> str:
    return f"{measure} ({side}, lower is better)"
