"""What all charts share: one look, in colours that everybody can tell apart; frames checked, cleaned and thinned."""

from __future__ import annotations

import difflib
import os
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

import altair as alt
import polars as pl
import vl_convert

from quadrille.errors import InputError
from quadrille.measure.difference import DIVERSITIES
from quadrille.present.numbers import counted

WIDTH, HEIGHT = 600, 400
INK, GREY, PALE, AXIS = "#1f1f1f", "#8a8a8a", "#b8b8b8", "#5f5f5f"
HUES = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#000000")
"""Okabe & Ito (2008) without yellow, which paper swallows: distinct with every kind of colour vision."""
SHARE, SCORE = ".4~p", ".6~g"
"""How Vega writes a share and a score: with the digits of `present.numbers`."""
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right")
"""A shape for every hue, so that a grey print can be read too."""

Figure = alt.Chart | alt.LayerChart | alt.HConcatChart | alt.VConcatChart
"""What the functions of this package return: an Altair chart of one of these kinds."""
AnyFigure = TypeVar("AnyFigure", alt.Chart, alt.LayerChart, alt.HConcatChart, alt.VConcatChart)

Range = tuple[float, float]

_FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
_SHARES = frozenset({"small_cells", "exposed", "confidence"})
_LINE = 104


def finish(figure: AnyFigure, title: str, reading: str, notes: Iterable[str] = ()) -> AnyFigure:
    """Give a chart its title, the sentences on how to read it, the notes that are not empty, and the common look."""
    lines = [line for text in (reading, " ".join(filter(None, notes))) for line in textwrap.wrap(text, _LINE)]
    head = alt.TitleParams(text=title, subtitle=lines, anchor="start", frame="bounds", offset=14)
    text = " ".join([title, *lines])
    made = figure.properties(title=head, description=text, padding=12, config=_look())
    object.__setattr__(made, "__class__", _PICTURES[type(made)])  # a plain assignment would be a property of the chart
    return made


PIXELS = 2.0
"""The number of pixels of a picture for each one of the chart, for sharp print."""


class Picture:
    """A chart that a notebook shows as a PNG: no network, no script, and no data in the notebook but what is seen.

    What Altair would show instead loads its scripts from the internet and stores the whole table with the output.
    """

    def _repr_mimebundle_(self, *_: object, **__: object) -> tuple[dict[str, bytes], dict[str, dict[str, int]]]:
        png = as_png(cast("Figure", self))
        width, height = (int(int.from_bytes(png[at : at + 4]) / PIXELS) for at in (16, 20))
        return {"image/png": png}, {"image/png": {"width": width, "height": height}}


_FILES = 16
"""How many more files the library opens to draw a chart."""


def require_files() -> None:
    """Refuse to draw where too few files can be opened: the library panics then, and what it prints holds data."""
    taken: list[int] = []
    try:
        for _ in range(_FILES):
            taken.append(os.open(os.devnull, os.O_RDONLY))
    finally:
        for handle in taken:
            os.close(handle)


def specification(figure: Figure) -> dict[str, Any]:
    """Return a chart as Vega-Lite, to be drawn.

    Altair would check the whole of it against its schema, which takes longer than all else that a chart is made of.
    That the charts of this package are valid does not depend on the data; the tests check it, and so does `to_dict`.
    """
    return figure.to_dict(validate=False)


def as_png(figure: Figure) -> bytes:
    """Draw a chart as a picture."""
    require_files()
    return vl_convert.vegalite_to_png(specification(figure), scale=PIXELS)


class _Single(Picture, alt.Chart): ...


class _Layers(Picture, alt.LayerChart): ...


class _Across(Picture, alt.HConcatChart): ...


class _Down(Picture, alt.VConcatChart): ...


_PICTURES: Mapping[type, type] = {kind.__mro__[2]: kind for kind in (_Single, _Layers, _Across, _Down)}


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


_LEGEND = 40
WRAPPED = f"split(trim(replace(datum.label, regexp('(.{{1,{_LEGEND}}})(?: |$)', 'g'), '$1' + '\\n')), '\\n')"
"""How Vega breaks the names of a legend into lines. Cut off they would be short, and alike where they begin alike."""


def legend(title: str | list[str] | None = None, **style: Any) -> alt.Legend:
    """Return a legend of names, which may be long: they are broken into lines between words, and never cut."""
    return alt.Legend(title=title, labelExpr=WRAPPED, labelLimit=0, **style)


def layered(
    layers: Iterable[alt.Chart], width: int, height: int, title: alt.TitleParams | None = None
) -> alt.LayerChart:
    """Lay charts over one another on one area."""
    figure = alt.LayerChart(layer=list(layers), width=width, height=height)
    return figure if title is None else figure.properties(title=title)


def heading(text: str, **style: Any) -> alt.TitleParams:
    """Return the title of one panel among several."""
    style = {"fontSize": 14, "offset": 4, "frame": "group", **style}
    return alt.TitleParams(text=text, anchor="start", **style)


def in_rows(panels: Sequence[alt.LayerChart], across: int, spacing: int, between: int) -> alt.VConcatChart:
    """Set panels side by side, `across` in a row, in as many rows as that takes."""
    rows = (panels[start : start + across] for start in range(0, len(panels), across))
    return alt.vconcat(*(alt.hconcat(*row, spacing=spacing) for row in rows), spacing=between)


def tooltips(*fields: str | alt.Tooltip) -> list[alt.Tooltip]:
    """Return what a mark shows under the pointer.

    Every channel of a chart is given as an object of its class: for a bare word Altair searches all its classes, which
    takes as long as all else that a chart is made of.
    """
    return [alt.Tooltip(field) if isinstance(field, str) else field for field in fields]


def looks(
    field: str, domain: Sequence[str], hues: Sequence[str], shapes: Sequence[str], legend: alt.Legend
) -> tuple[alt.Color, alt.Shape]:
    """Tell categories apart by colour and by shape, in order and, where there are more of them, again and again."""
    colours, forms = ([each[i % len(each)] for i in range(len(domain))] for each in (hues, shapes))
    names = list(domain)
    return (
        alt.Color(f"{field}:N", scale=alt.Scale(domain=names, range=colours), legend=legend),
        alt.Shape(f"{field}:N", scale=alt.Scale(domain=names, range=forms), legend=legend),
    )


def number_format(measure: str) -> str:
    """Return the axis format of a measure: per cent for a share of records, else plain."""
    return "%" if measure.split("(", maxsplit=1)[0].strip() in _SHARES else ""


def is_diversity(measure: str) -> bool:
    """Whether the measure is a difference of diversities, whose larger values do not mean more perturbation."""
    return measure.split("(", maxsplit=1)[0].strip() in DIVERSITIES


def extent(values: Iterable[float], margin: float = 0.05) -> Range:
    """Return the range of an axis: all values with some air around them, but none below zero for nothing."""
    values = list(values)
    low, high = min(values), max(values)
    air = (high - low) * margin or abs(high) * margin or 1.0
    return max(low - air, 0.0) if low >= 0 else low - air, high + air


def left_out(count: int, what: str, why: str) -> str:
    """Say how many have no place in the chart, and why; nothing when all have one."""
    return f"Left out: {counted(count, what)} {why}." if count else ""


_WIDTHS = {0.3: " ijltfI.,:;'|!()[]/-", 0.5: "rs", 0.57: "acekvxyzJ", 0.85: "mwMW%@"}
_WIDTH_OF = {letter: width for width, letters in _WIDTHS.items() for letter in letters}
_LETTER, _CAPITAL = 0.6, 0.72


def text_width(text: str, size: int = 12) -> float:
    """Estimate how many pixels a text takes, in a sans serif font: a line that leads to a label ends at its text."""
    widths = (_WIDTH_OF.get(letter, _CAPITAL if letter.isupper() else _LETTER) for letter in text)
    return size * sum(widths)


@dataclass(frozen=True)
class Plane:
    """One pair of axes for everything drawn on it, whatever column it comes from: titles and ranges across and up."""

    titles: tuple[str, str]
    across: Range
    up: Range
    axes: tuple[alt.Axis, alt.Axis]
    size: tuple[int, int] = (WIDTH, HEIGHT)

    def x(self, field: str) -> alt.X:
        """Put a column on the axis across."""
        return alt.X(f"{field}:Q", title=self.titles[0], scale=fixed(self.across), axis=self.axes[0])

    def y(self, field: str) -> alt.Y:
        """Put a column on the axis that goes up."""
        return alt.Y(f"{field}:Q", title=self.titles[1], scale=fixed(self.up), axis=self.axes[1])

    def pixels(self, x: float, y: float) -> tuple[float, float]:
        """Return the place of a point, from the top left corner."""
        (left, right), (low, high), (width, height) = self.across, self.up, self.size
        return (x - left) / (right - left) * width, (high - y) / (high - low) * height

    def values(self, x: float, y: float) -> tuple[float, float]:
        """Return the values of a place."""
        (left, right), (low, high), (width, height) = self.across, self.up, self.size
        return left + x / width * (right - left), high - y / height * (high - low)


def fixed(domain: Range) -> alt.Scale:
    """Return a scale that covers just this range."""
    return alt.Scale(domain=list(domain), nice=False, zero=False)


Kind = Literal["number", "text", "flag"]

MOST_ROWS = 5_000
"""More points than this are too many to tell apart, and slow."""


def checked(frame: pl.DataFrame, owner: str, columns: Mapping[str, Kind]) -> pl.DataFrame:
    """Return the columns a chart needs, in their types; NaN and infinite numbers become null."""
    for name in columns:
        if name not in frame.columns:
            raise InputError(_missing(owner, name, frame.columns, columns))
    if frame.is_empty():
        raise InputError(f"There is nothing to draw: the frame for {owner} has no rows.")
    return frame.select(_typed(frame[name], kind, owner) for name, kind in columns.items())


def _missing(owner: str, name: str, found: list[str], columns: Mapping[str, Kind]) -> str:
    near = difflib.get_close_matches(name, found, n=1, cutoff=0.6)
    hint = f" Rename {near[0]!r}?" if near else ""
    return f"The frame for {owner} has no column {name!r}. It needs: {', '.join(columns)}.{hint}"


def _typed(column: pl.Series, kind: Kind, owner: str) -> pl.Series:
    if kind == "text":
        return column.cast(pl.String).fill_null("")
    if kind == "flag":
        if column.dtype.base_type() not in (pl.Boolean, pl.Null):
            raise InputError(f"Column {column.name!r} of the frame for {owner} must hold true and false.")
        return column.cast(pl.Boolean).fill_null(False)
    if not (column.dtype.is_numeric() or column.dtype == pl.Null):
        raise InputError(f"Column {column.name!r} of the frame for {owner} must hold numbers.")
    numbers = column.cast(pl.Float64)
    return numbers.set(~numbers.is_finite().fill_null(False), None)


def prepared(frame: pl.DataFrame, owner: str, columns: Mapping[str, Kind], *needed: str) -> tuple[pl.DataFrame, int]:
    """Return the columns a chart needs, without rows that lack a value in the `needed` ones, and how many those are."""
    return defined(checked(frame, owner, columns), owner, *needed)


def defined(frame: pl.DataFrame, owner: str, *columns: str) -> tuple[pl.DataFrame, int]:
    """Return the rows that have a value in all of these columns, and how many were left out."""
    kept = frame.drop_nulls(list(columns))
    if kept.is_empty():
        raise InputError(f"There is nothing to draw: no row of the frame for {owner} has {' and '.join(columns)}.")
    return kept, frame.height - kept.height


def thinned(frame: pl.DataFrame, *, keep: pl.Expr, most: int = MOST_ROWS) -> pl.DataFrame:
    """Return at most `most` rows, or all that `keep` asks for; the others are thinned evenly along all values.

    Which rows stay depends on the values alone, not on their order or on chance.
    """
    if frame.height <= most:
        return frame
    must, rest = frame.filter(keep), frame.filter(~keep).sort(frame.columns)
    room = min(max(most - must.height, 0), rest.height)
    steps = pl.int_range(room, eager=True)
    spread = (steps * (rest.height - 1)) // max(room - 1, 1)
    return pl.concat([rest[spread], must])


def inline(frame: pl.DataFrame) -> alt.InlineData:
    """Hand the rows to Altair as they are; its own limit of rows is ours to keep.

    Altair copies lists and checks values row by row each time a chart is combined with another: most of the time that
    a report takes. A tuple is not copied, and values that are set later are not checked again; the chart is the same.
    """
    data = alt.InlineData(values=[])
    data.values = tuple(frame.to_dicts())
    return data
