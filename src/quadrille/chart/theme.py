"""What all charts share: one look, colours that everybody can tell apart, frames checked and thinned, names placed."""

from __future__ import annotations

import difflib
import math
import os
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, cast

import altair as alt
import numpy as np
import polars as pl
import vl_convert
from numpy.typing import NDArray

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


Place = tuple[float, float]

_ACROSS, _DOWN = 8.0, 6.0
_MARGIN, _HALF = 7.0, 14.0
_RING = 12.0
_NEAR = 26.0
_ABOVE = 60.0
_LEVEL = 7.0
_TRIED = 60


class Spot(NamedTuple):
    """Where a label ends on its right, in pixels, how wide it is, and the line that leads to it from its point."""

    x: float
    y: float
    width: float
    line: tuple[Place, Place]

    def covered(self) -> list[Place]:
        """Return places all along the label, for the next label to keep away from."""
        count = max(12, round(self.width / _ACROSS))
        return [(self.x - self.width * share, self.y) for share in np.linspace(0, 1, count).tolist()]

    def lead(self) -> list[Place]:
        """Return places all along its line, none where there is no line."""
        (x, y), (to_x, to_y) = self.line
        steps = np.linspace(0, 1, int(math.hypot(to_x - x, to_y - y) / _ACROSS) + 1)
        return (
            [] if self.line[0] == self.line[1] else [(x + s * (to_x - x), y + s * (to_y - y)) for s in steps.tolist()]
        )


def free_spots(
    labels: Sequence[tuple[Place, float]], taken: Sequence[Place], size: tuple[int, int], ring: float = 0.0
) -> list[Spot]:
    """Return a place for each label, (point, width): on no other label, on no ring of this radius around a point."""
    rings = [(x + dx, y + dy) for (x, y), _ in labels for dx in (-ring, 0, ring) for dy in (-ring, 0, ring)]
    taken, covered, found = list(taken), list[Place](), list[Spot]()
    for point, width in labels:
        spot = free_spot(point, width, taken, size, covered, rings)
        taken += spot.lead()
        covered += spot.covered()
        found.append(spot)
    return found


def free_spot(
    point: Place,
    width: float,
    taken: Sequence[Place],
    size: tuple[int, int],
    labels: Sequence[Place] = (),
    rings: Sequence[Place] = (),
) -> Spot:
    """Return the nearest free place for a label of this width; below its point rather than above, where points crowd.

    `taken` are the places to keep free, `size` the width and height of the chart; all in pixels from the top left.
    `labels` and `rings` are the places of other labels and of rings: where the chart is full, a label covers points
    sooner than these, and its line crosses no label where that can be helped.
    """
    rights = np.arange(width + _MARGIN, size[0] - 2, _ACROSS)
    downs = np.arange(_HALF, size[1] - _HALF / 2, _DOWN)
    down, right = np.meshgrid(downs, rights, indexing="ij")
    x, y = point
    gap = np.hypot(np.maximum(np.maximum(right - width - x, x - right), 0), down - y)
    cost = gap + np.where(down < y - _DOWN, _ABOVE, 0) + np.where(gap < _RING + 4, np.inf, 0)
    cost[_blocked(rights, downs, width, _array([*labels, *rings]))] = np.inf
    free = np.where(_blocked(rights, downs, width, _array(taken)), np.inf, cost)
    for costs, tried in ((free, _TRIED), (cost, _TRIED), (free, 1), (cost, 1)):
        for best in np.argsort(costs, axis=None, kind="stable")[:tried].tolist():
            if not np.isfinite(costs.flat[best]):
                break
            found = float(right.flat[best]), float(down.flat[best])
            spot = Spot(*found, width, _lead(point, found, width, float(gap.flat[best])))
            if tried == 1 or not _crosses(spot.lead(), labels):
                return spot
    return Spot(min(max(x, width + _MARGIN), float(size[0])), max(y - 2 * _HALF, _HALF), width, (point, point))


def _crosses(line: Sequence[Place], labels: Sequence[Place]) -> bool:
    """Tell whether a line comes near any place of a label."""
    apart = _array(line)[:, None, :] - _array(labels)[None, :, :]
    return bool((np.hypot(apart[..., 0], apart[..., 1]) < _LEVEL).any())


def _array(places: Sequence[Place]) -> NDArray[np.float64]:
    return np.array(places, dtype=np.float64).reshape(-1, 2)


def _blocked(
    rights: NDArray[np.float64], downs: NDArray[np.float64], width: float, taken: NDArray[np.float64]
) -> NDArray[np.bool_]:
    blocked = np.zeros((len(downs), len(rights)), dtype=np.bool_)
    for i, down in enumerate(downs):
        xs = np.sort(taken[np.abs(taken[:, 1] - down) < _HALF, 0])
        blocked[i] = np.searchsorted(xs, rights + _MARGIN) > np.searchsorted(xs, rights - width - _MARGIN)
    return blocked


def _lead(point: Place, end: Place, width: float, gap: float) -> tuple[Place, Place]:
    """Return the line from the ring around the point to the label; none where the label is near."""
    if gap < _NEAR:
        return point, point
    (x, y), (right, down) = point, end
    to = min(max(x, right - width), right), down + (0 if down == y else -10 if down > y else 10)
    length = float(np.hypot(to[0] - x, to[1] - y)) or 1.0
    return (x + (to[0] - x) / length * _RING, y + (to[1] - y) / length * _RING), to


def stairs(corners: Sequence[Place]) -> list[Place]:
    """Return places along a line of steps that runs level from each corner and then down to the next."""
    places: list[Place] = []
    for (x, y), (to_x, to_y) in pairwise(corners):
        places += [(along, y) for along in np.arange(x, to_x, _ACROSS).tolist()]
        places += [(to_x, along) for along in np.arange(y, to_y, _ACROSS).tolist()]
    return places


_TEXT = 11
_EDGE = 5.0


class Area(Protocol):
    """A pair of axes that knows the place of a point, in pixels from its top left corner, and back."""

    def x(self, field: str) -> alt.X: ...  # noqa: D102
    def y(self, field: str) -> alt.Y: ...  # noqa: D102
    def pixels(self, x: float, y: float, /) -> Place: ...  # noqa: D102
    def values(self, x: float, y: float, /) -> Place: ...  # noqa: D102


def names(
    points: Iterable[tuple[str, float, float]], taken: Sequence[Place], area: Area, size: tuple[int, int]
) -> list[alt.Chart]:
    """Return the layers that name some points, (text, x, y) each; `taken` are the places to keep free, in pixels."""
    named = [(text, area.pixels(x, y)) for text, x, y in points]
    spots = free_spots([(at, text_width(text, _TEXT)) for text, at in named], taken, size)
    rows: list[dict[str, float | str]] = []
    for (text, at), spot in zip(named, spots, strict=True):
        row: dict[str, float | str] = {"text": text}
        for name, place in zip(("at", "from", "to"), ((spot.x, spot.y), *_lead_of_names(at, spot)), strict=True):
            row[f"{name}_x"], row[f"{name}_y"] = area.values(*place)
        rows.append(row)
    if not rows:
        return []
    base = alt.Chart(inline(pl.DataFrame(rows)))
    lead = base.mark_rule(color=INK, strokeWidth=0.8, opacity=0.6)
    halo = base.mark_text(fontSize=_TEXT, align="right", stroke="white", strokeWidth=3)
    name = base.mark_text(fontSize=_TEXT, align="right", color=INK)
    x, y = area.x("at_x"), area.y("at_y")
    return [
        lead.encode(x=area.x("from_x"), y=area.y("from_y"), x2=alt.X2("to_x:Q"), y2=alt.Y2("to_y:Q")),
        *(mark.encode(x=x, y=y, text=alt.Text("text:N")) for mark in (halo, name)),
    ]


def _lead_of_names(point: Place, spot: Spot) -> tuple[Place, Place]:
    """Return the line from the edge of a point to its name: where points crowd, nearness does not tell whose it is."""
    x, y = point
    to_x = min(max(x, spot.x - spot.width - 2), spot.x + 2)
    to_y = spot.y if abs(spot.y - y) < _LEVEL else spot.y - math.copysign(_LEVEL, spot.y - y)
    length = math.hypot(to_x - x, to_y - y) or 1.0
    share = min(_EDGE / length, 1.0)
    return (x + share * (to_x - x), y + share * (to_y - y)), (to_x, to_y)
