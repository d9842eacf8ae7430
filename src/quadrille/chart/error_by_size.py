"""Error against the size of the cell: swapping's grows with it, rounding's does not."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import polars as pl

from quadrille.chart import theme
from quadrille.chart.labels import Place, names
from quadrille.chart.theme import (
    AXIS,
    GREY,
    HEIGHT,
    HUES,
    SHAPES,
    WIDTH,
    Kind,
    Range,
    defined,
    inline,
    left_out,
    prepared,
    thinned,
    tooltips,
)
from quadrille.errors import InputError
from quadrille.present.numbers import counted

_TEXT = 12
_BAND, _BAND_INK = "#f3c98b", "#8a5a00"
_SHARES = ((0.01, "1 %"), (0.1, "10 %"), (1.0, "100 %"))
_AIR = 1.35
_LEFT = -0.3  # left of an empty cell, so that its point is not on the axis
_COUNTS = "Records in the cell"
_READING = (
    "Each point is a cell: its {size} to the right, the error (RMSE) that swapping puts into it upwards, both on "
    "logarithmic scales (empty cells stand at 0). On a dotted line the error is that share of the {size}."
)


class _Logs(NamedTuple):
    """Counts from 0 across, on log(1 + count), and errors up, on a logarithmic scale."""

    most: float
    up: Range
    size: str = _COUNTS

    def x(self, field: str) -> alt.X:
        ticks = [0, *(10**i for i in range(math.ceil(math.log10(self.most))))]
        # The format of an axis is not kept by this kind of scale.
        axis = alt.Axis(values=ticks, labelExpr="format(datum.value, ',')", labelOverlap=True)
        scale = alt.Scale(type="symlog", constant=1, domain=[_LEFT, self.most], nice=False)
        return alt.X(f"{field}:Q", title=self.size, scale=scale, axis=axis)

    def y(self, field: str) -> alt.Y:
        low, high = (math.log10(end) for end in self.up)
        ticks = [10.0**i for i in range(math.ceil(low), math.floor(high) + 1)]
        axis = alt.Axis(values=ticks, format="~g" if high < 3 else ",~g")
        scale = alt.Scale(type="log", domain=list(self.up), nice=False)
        return alt.Y(f"{field}:Q", title="Error of the cell (RMSE)", scale=scale, axis=axis)

    def pixels(self, count: float, error: float) -> tuple[float, float]:
        (left, right), (low, high) = self._ends()
        across = (_symlog(count) - left) / (right - left)
        return across * WIDTH, (high - math.log(error)) / (high - low) * HEIGHT

    def values(self, x: float, y: float) -> tuple[float, float]:
        (left, right), (low, high) = self._ends()
        across = left + x / WIDTH * (right - left)
        return math.copysign(math.expm1(abs(across)), across), math.exp(high - y / HEIGHT * (high - low))

    def _ends(self) -> tuple[Range, Range]:
        return (_symlog(_LEFT), _symlog(self.most)), (math.log(self.up[0]), math.log(self.up[1]))


def _symlog(count: float) -> float:
    return math.copysign(math.log1p(abs(count)), count)


def error_by_size(cells: pl.DataFrame, *, size: str = _COUNTS) -> alt.LayerChart:
    """Draw the error of swapping by the count of each cell, with the errors of rounding and of sampling next to it.

    One row of `cells` is a cell: `label`, `group` (text: what the colour says, such as the rate or the region; at most
    seven), `count`, `rmse` (numbers; rows without one, or with an error of 0, are left out and counted). Columns that
    may be there, too: `rounding` and `sampling` (numbers: the error by random rounding, the standard error of the
    survey) and `named` (true or false: cells whose label is written beside their point). Above 5,000 cells those
    without a name are thinned. `size` says what the counts are, where they are weighted totals for example.

    Example
    -------
    >>> import polars as pl
    >>> import quadrille as qd
    >>> cells = pl.DataFrame({"label": ["a", "b"], "group": ["5 %", "5 %"], "count": [779, 7653],
    ...     "rmse": [160.5, 160.5]})
    >>> picture = qd.chart.error_by_size(cells)
    >>> picture.to_dict()["title"]["text"]
    'Error against the size of the cell: 2 cells'
    """
    columns: dict[str, Kind] = {"label": "text", "group": "text", "count": "number", "rmse": "number"}
    extra: dict[str, Kind] = {"rounding": "number", "sampling": "number", "named": "flag"}
    columns |= {name: kind for name, kind in extra.items() if name in cells.columns}
    everyone, _ = prepared(cells, "error_by_size", columns, "count", "rmse")
    if (everyone["count"] < 0).any() or (everyone["rmse"] < 0).any():
        raise InputError("error_by_size has a negative count or error. Counts and errors are 0 or more.")
    everyone, _ = defined(everyone.filter(pl.col("rmse") > 0), "error_by_size", "rmse")
    groups = everyone["group"].unique(maintain_order=True).to_list()
    if len(groups) > len(HUES):
        raise InputError(f"error_by_size has {len(groups)} groups. At most {len(HUES)} can be told apart: draw fewer.")
    rounding, sampling = _positive(everyone, "rounding"), _positive(everyone, "sampling")
    axes = _axes(everyone, rounding, sampling)._replace(size=size)
    shown = thinned(everyone, keep=pl.col("named") if "named" in columns else pl.lit(False))
    taken = [axes.pixels(*point) for point in shown.select("count", "rmse").iter_rows()]
    layers = _shares(axes)
    layers += _band(rounding, axes, taken) if rounding is not None else []
    layers += [_ticks(thinned(sampling, keep=pl.lit(False)), axes)] if sampling is not None else []
    layers.append(_dots(shown, groups, axes))
    if "named" in columns:
        layers += names(
            shown.filter("named").select("label", "count", "rmse").iter_rows(), taken, axes, (WIDTH, HEIGHT)
        )
    notes = [
        f"Shown: {shown.height:,} of {everyone.height:,} cells, thinned evenly."
        if shown.height < everyone.height
        else "",
        left_out(cells.height - everyone.height, "cell", "that cannot change or have no value"),
    ]
    reading = [
        _READING.format(size="count" if size == _COUNTS else size[:1].lower() + size[1:].removesuffix(" of the cell"))
    ]
    reading += [_rounded(rounding)] if rounding is not None else []
    reading += ["Grey dashes are the standard errors of sampling."] if sampling is not None else []
    title = f"Error against the size of the cell: {counted(everyone.height, 'cell')}"
    return theme.finish(theme.layered(layers, WIDTH, HEIGHT), title, " ".join(reading), notes)


def _positive(cells: pl.DataFrame, name: str) -> pl.DataFrame | None:
    """Return the cells with an error of this kind, or None without any: a logarithmic scale has no 0."""
    if name not in cells.columns:
        return None
    kept = cells.filter(pl.col(name) > 0)
    return kept if kept.height else None


def _axes(cells: pl.DataFrame, rounding: pl.DataFrame | None, sampling: pl.DataFrame | None) -> _Logs:
    errors = [cells["rmse"]]
    errors += [frame[name] for frame, name in ((rounding, "rounding"), (sampling, "sampling")) if frame is not None]
    every = pl.concat([column.cast(pl.Float64).alias("error") for column in errors]).to_numpy()
    low, high = float(every.min()) / _AIR, float(every.max()) * _AIR**2
    # At least two powers of ten, so that the axis has ticks to read it by.
    middle = math.sqrt(low * high)
    up = (min(low, middle / 11), max(high, middle * 11))
    return _Logs(max(float(cells["count"].to_numpy().max()), 9.0) * _AIR, up)


def _rounded(rounding: pl.DataFrame) -> str:
    low, high = _ends(rounding)
    span = f"{low:.3g} to {high:.3g}" if low < high else f"{low:.3g}"
    return (
        f"The band is the error of random rounding where a cell is rounded at all ({span}): it is the same for every "
        "size."
    )


def _ends(rounding: pl.DataFrame) -> Range:
    errors = rounding["rounding"].to_numpy()
    return float(errors.min()), float(errors.max())


def _band(rounding: pl.DataFrame, axes: _Logs, taken: list[Place]) -> list[alt.Chart]:
    """Draw the band of rounding, with its name where no point is; the places of the name are added to `taken`."""
    low, high = _ends(rounding)
    # A single value would be a band without height.
    ends = {"low": low / 1.02, "high": high * 1.02, "left": _LEFT, "right": axes.most}
    band = alt.Chart(inline(pl.DataFrame([ends]))).mark_rect(color=_BAND, opacity=0.75)
    layers = [band.encode(x=axes.x("left"), x2=alt.X2("right:Q"), y=axes.y("low"), y2=alt.Y2("high:Q"))]
    text = "random rounding"
    heights = (axes.pixels(0, ends["high"])[1] - 10, axes.pixels(0, ends["low"])[1] + 10)
    spot = _free(theme.text_width(text, _TEXT), heights, taken)
    if spot is None:
        return layers
    taken += [(spot[0] - theme.text_width(text, _TEXT) * share, spot[1]) for share in np.linspace(0, 1, 12).tolist()]
    count, error = axes.values(*spot)
    name = alt.Chart(inline(pl.DataFrame([{"text": text, "count": count, "error": error}])))
    name = name.mark_text(align="right", fontSize=_TEXT, color=_BAND_INK)
    return [*layers, name.encode(x=axes.x("count"), y=axes.y("error"), text=alt.Text("text:N"))]


def _free(width: float, heights: tuple[float, ...], taken: list[Place]) -> Place | None:
    """Return where a text of this width may end at one of these heights without touching a point, far right first."""
    for right in np.arange(WIDTH - 6, width + 6, -20).tolist():
        for y in heights:
            near = ((px, py) for px, py in taken if abs(py - y) < 1.1 * _TEXT)
            if _TEXT < y < HEIGHT - _TEXT and not any(right - width - 8 < px < right + 8 for px, _ in near):
                return right, y
    return None


def _shares(axes: _Logs) -> list[alt.Chart]:
    """Draw the lines on which the error is a given share of the count; the share stands outside, where a line ends."""
    lines: list[dict[str, float | str]] = []
    tops: list[dict[str, float | str]] = []
    sides: list[dict[str, float | str]] = []
    for share, text in _SHARES:
        low, high = axes.up[0] / share, min(axes.up[1] / share, axes.most)
        if high <= low:
            continue
        along = [(float(count), float(np.clip(count * share, *axes.up))) for count in np.geomspace(low, high, 60)]
        lines += [{"share": text, "count": count, "error": error} for count, error in along]
        count, error = along[-1]
        (sides if high == axes.most else tops).append({"text": text, "count": count, "error": error})
    x, y = axes.x("count"), axes.y("error")
    layers: list[alt.Chart] = []
    if lines:
        base = alt.Chart(inline(pl.DataFrame(lines)))
        line = base.mark_line(color=GREY, strokeWidth=1, strokeDash=[2, 3], opacity=0.8)
        layers.append(line.encode(x=x, y=y, detail=alt.Detail("share:N")))
    above: dict[str, Any] = {"align": "center", "dy": -8}
    beside: dict[str, Any] = {"align": "left", "dx": 5}
    for ends, place in ((tops, above), (sides, beside)):
        if ends:
            name = alt.Chart(inline(pl.DataFrame(ends))).mark_text(**place, fontSize=_TEXT, color=AXIS)
            layers.append(name.encode(x=x, y=y, text=alt.Text("text:N")))
    return layers


def _ticks(sampling: pl.DataFrame, axes: _Logs) -> alt.Chart:
    marks = alt.Chart(inline(sampling.select("label", "count", "sampling")))
    dash = marks.mark_point(shape="stroke", size=130, color="#4d4d4d", strokeWidth=2, opacity=0.9)
    return dash.encode(x=axes.x("count"), y=axes.y("sampling"), tooltip=tooltips("label:N", "count:Q", "sampling:Q"))


def _dots(cells: pl.DataFrame, groups: list[str], axes: _Logs) -> alt.Chart:
    legend = theme.legend("Swapping", symbolOpacity=1, offset=44)
    color, shape = theme.looks("group", groups, HUES, SHAPES, legend)
    tips = [name for name in ("rmse", "rounding", "sampling") if name in cells.columns]
    return (
        alt.Chart(inline(cells.select("label", "group", "count", *tips)))
        .mark_point(filled=True, size=70, opacity=0.85, stroke="white", strokeWidth=0.7)
        .encode(
            x=axes.x("count"),
            y=axes.y("rmse"),
            color=color,
            shape=shape,
            tooltip=tooltips("label:N", "group:N", "count:Q", *(f"{name}:Q" for name in tips)),
        )
    )
