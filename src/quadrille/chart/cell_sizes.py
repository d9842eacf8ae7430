"""Charts by the size of cells: how many, who was swapped, what treating one costs, the n rule, errors of estimates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import polars as pl

from quadrille.chart import theme
from quadrille.chart.theme import (
    AXIS,
    GREY,
    HEIGHT,
    HUES,
    INK,
    PALE,
    SHAPES,
    WIDTH,
    Kind,
    Place,
    Range,
    checked,
    defined,
    inline,
    left_out,
    names,
    prepared,
    thinned,
    tooltips,
)
from quadrille.errors import InputError, ParameterError, QuadrilleError
from quadrille.measure import measure_of
from quadrille.measure.base import Address
from quadrille.present.numbers import count, counted, share

_WHEN = ["before", "after"]
_GENUINE = "after, genuine"
_RECORDS = "records in such cells"
_PANEL, _HEIGHT, _TEXT = 310, 320, 11
_CELLS = "A cell is a combination of all key variables; a record alone in its cell, or nearly, can be recognised."
_READING = f"{_CELLS} A swap empties some small cells and fills others, so bars may rise: what counts is the dark part."
_ALONE = (
    "Small cells that are false protect, genuine ones do not, so the two are never shown as one: give the records in "
    "cells of that size after the swap that match a true one, the sum of min(f, g) that `exposed` counts."
)


def small_cells(cells: pl.DataFrame) -> alt.HConcatChart:
    """Draw bars of the cells of each small size, and of the records in them, before and after side by side.

    One row of `cells` is a size of cell before or after: `size` (1, 2, ...), `when` ("before" or "after"), `cells`,
    `records`, `genuine` (numbers). `genuine` counts the records after the swap that match a true one of the same
    combination (what `exposed` counts; the sum of min(f, g)); they are drawn inside the bars. Before the swap it
    may be null. Without rows "after" the file as it is is drawn.

    Example
    -------
    >>> import polars as pl
    >>> import quadrille as qd
    >>> cells = pl.DataFrame({"size": [1, 1], "when": ["before", "after"], "cells": [361, 34], "records": [361, 34],
    ...     "genuine": [None, 34]})
    >>> picture = qd.chart.small_cells(cells)
    >>> picture.to_dict()["title"]["text"]
    'Small cells before and after the swap'
    """
    if "genuine" not in cells.columns:
        raise ParameterError(f"The frame for small_cells has no column 'genuine'. {_ALONE}")
    columns: dict[str, Kind] = {"size": "number", "when": "text", "cells": "number", "records": "number"}
    frame, _ = prepared(cells, "small_cells", {**columns, "genuine": "number"}, "size", "cells", "records")
    if not set(frame["when"]) <= set(_WHEN):
        raise InputError("Column 'when' of the frame for small_cells must hold 'before' and 'after'.")
    if frame.filter(pl.col("when") == "after")["genuine"].has_nulls():
        raise ParameterError(f"Column 'genuine' of the frame for small_cells is empty in a row 'after'. {_ALONE}")
    frame = frame.sort("size", maintain_order=True).with_columns(size=pl.col("size").cast(pl.Int64).cast(pl.String))
    swapped = "after" in set(frame["when"])
    legend = alt.Legend(title=None, orient="top", direction="horizontal", symbolType="square", offset=8)
    scale = alt.Scale(domain=[*_WHEN, _GENUINE], range=[PALE, HUES[5], HUES[0]])
    color = alt.Color("series:N", scale=scale, legend=legend if swapped else None)
    left = _small_bars(frame, "cells", "cells of this size", color)
    right = [*_small_bars(frame, "records", _RECORDS, color), *(_genuine(frame, color) if swapped else [])]
    figure = alt.hconcat(*(theme.layered(layers, _PANEL, _HEIGHT) for layers in (left, right)), spacing=36)
    if not swapped:
        return theme.finish(figure, "Small cells of the file as it is", _CELLS)
    return theme.finish(figure, "Small cells before and after the swap", _READING)


def _by_size(frame: pl.DataFrame, field: str, title: str, top: float) -> alt.Chart:
    sizes = frame["size"].unique(maintain_order=True).to_list()
    x = alt.X("size:N", title="size of cell (records)", sort=sizes, axis=alt.Axis(labelAngle=0, ticks=False))
    scale = alt.Scale(domain=[0, 1.08 * top or 1], nice=False)
    y = alt.Y(f"{field}:Q", title=title, scale=scale, axis=alt.Axis(format=",.0f", tickCount=6, tickMinStep=1))
    offset = alt.XOffset(
        "when:N", sort=_WHEN, scale=alt.Scale(domain=_WHEN if "after" in set(frame["when"]) else _WHEN[:1])
    )
    return alt.Chart(inline(frame)).encode(x=x, y=y, xOffset=offset)


def _small_bars(frame: pl.DataFrame, field: str, title: str, color: alt.Color) -> list[alt.Chart]:
    top = max(frame[field].drop_nulls(), default=0.0)
    base = _by_size(frame.with_columns(series="when"), field, title, top)
    bars = base.mark_bar().encode(color=color, tooltip=tooltips("size:N", "when:N", "cells:Q", "records:Q"))
    numbers = base.mark_text(dy=-8, fontSize=_TEXT, color=INK).encode(text=alt.Text(f"{field}:Q", format=","))
    return [bars, numbers] if _fits(frame, field) else [bars]


def _genuine(frame: pl.DataFrame, color: alt.Color) -> list[alt.Chart]:
    after = frame.filter((pl.col("when") == "after") & pl.col("genuine").is_not_null())
    top = max(frame["records"].drop_nulls(), default=0.0)
    base = _by_size(after.with_columns(series=pl.lit(_GENUINE)), "genuine", _RECORDS, top)
    bars = base.mark_bar().encode(color=color, tooltip=tooltips("size:N", "genuine:Q", "records:Q"))
    numbers = base.mark_text(dy=9, fontSize=_TEXT, color="white").encode(text=alt.Text("genuine:Q", format=","))
    return [bars, numbers] if _fits(after, "genuine") else [bars]


def _fits(frame: pl.DataFrame, field: str) -> bool:
    """Whether the numbers are narrower than the bars."""
    bar = _PANEL / frame["size"].n_unique() * 0.8 / 2
    return all(theme.text_width(f"{value:,.0f}", _TEXT) < bar for value in frame[field].drop_nulls())


_SHARES_HEIGHT = 360


def who_was_swapped(groups: pl.DataFrame) -> alt.LayerChart:
    """Draw a bar per class of cell size: the share of its records that were swapped, and a line at the overall share.

    One row of `groups` is a class: `size` (text, "1", "2", "3-9"), `order` (number, the place along the axis),
    `swapped` (share of its records; null where it has none), `records` (number).

    Example
    -------
    >>> import polars as pl
    >>> import quadrille as qd
    >>> groups = pl.DataFrame({"size": ["1", "2", "3+"], "order": [0, 1, 2], "swapped": [0.1, 0.1, 0.1],
    ...     "records": [361, 372, 48109]})
    >>> picture = qd.chart.who_was_swapped(groups)
    >>> picture.to_dict()["title"]["text"]
    'Who was swapped, by the size of the cell they came from'
    """
    columns: dict[str, Kind] = {"size": "text", "order": "number", "swapped": "number", "records": "number"}
    frame, _ = prepared(groups, "who_was_swapped", columns, "swapped", "records")
    frame = frame.sort("order", maintain_order=True)
    shares, records = frame["swapped"].to_list(), frame["records"].to_list()
    overall = sum(part * number for part, number in zip(shares, records, strict=True)) / (sum(records) or 1)
    frame = frame.with_columns(
        below=pl.Series([f"{count(number)} records" for number in records]), text=pl.Series(map(share, shares))
    )
    top = max(*shares, overall) or 1.0
    figure = theme.layered([*_share_bars(frame, top), *_overall(overall, top)], WIDTH, _SHARES_HEIGHT)
    reading = (
        "Each bar is the share of records swapped among those from cells of one size. "
        "Bars that fall from left to right: the swap reaches the records most at risk. Equal bars: it is blind to risk."
    )
    return theme.finish(figure, "Who was swapped, by the size of the cell they came from", reading)


def _share_axis(field: str, top: float) -> alt.Y:
    axis = alt.Axis(format="%", tickCount=6)
    return alt.Y(f"{field}:Q", title="share of records swapped", scale=theme.fixed((0, top * 1.15)), axis=axis)


def _share_bars(frame: pl.DataFrame, top: float) -> list[alt.Chart]:
    x = alt.X(
        "size:N",
        title="records in the cell before the swap",
        sort=frame["size"].to_list(),
        axis=alt.Axis(labelAngle=0, ticks=False, labelFontSize=13, titlePadding=32),
        scale=alt.Scale(paddingInner=0.3, paddingOuter=0.2),
    )
    base = alt.Chart(inline(frame)).encode(x=x, y=_share_axis("swapped", top))
    tooltip = tooltips("size:N", alt.Tooltip("swapped:Q", format=theme.SHARE), alt.Tooltip("records:Q", format=","))
    return [
        base.mark_bar(color=HUES[0]).encode(tooltip=tooltip),
        base.mark_text(dy=-9, fontSize=13, fontWeight="bold", color=INK).encode(text=alt.Text("text:N")),
        base.mark_text(dy=27, fontSize=12, color="#555555").encode(
            y=alt.value(_SHARES_HEIGHT), text=alt.Text("below:N")
        ),
    ]


def _overall(overall: float, top: float) -> list[alt.Chart]:
    base = alt.Chart(inline(pl.DataFrame({"share": [overall], "text": [f"all: {share(overall)}"]})))
    y = _share_axis("share", top)
    return [
        base.mark_rule(strokeDash=[6, 4], color=INK, strokeWidth=1.3).encode(y=y),
        base.mark_text(color=INK, align="left", dx=6, fontSize=12).encode(
            y=y, x=alt.value(WIDTH), text=alt.Text("text:N")
        ),
    ]


_COST_WIDTH = 560
_TREATMENTS = {
    "empty": ("empty the cell", HUES[3], "square"),
    "camouflage": ("fill it up (camouflage)", HUES[0], "diamond"),
}
"""Name, hue and shape."""
_COST_READING = (
    "Each dot is the middle cell of its size, treated alone: what it costs per record that is no longer exposed. Bars "
    "reach from the 10th to the 90th percentile. Ticks are what theory says where all other cells are large."
)


def treatment_costs(costs: pl.DataFrame, *, loss: str = "hellinger²") -> alt.LayerChart:
    """Draw the cost per protected record of both treatments, by the size of the small cell.

    One row of `costs` is a treatment of a size, as `study.cells.cell_costs` returns them: `treatment` ("empty" or
    "camouflage"), `size`, `cells`, `treatable`, `low`, `cost`, `high`, `theory` (numbers; no cost where no cell can be
    treated). `loss` names what the costs are in.

    Example
    -------
    >>> import polars as pl
    >>> import quadrille as qd
    >>> costs = pl.DataFrame({"treatment": ["empty", "camouflage"], "size": [1, 1], "cells": [361, 361],
    ...     "treatable": [300, 327], "low": [0.45, 0.25], "cost": [0.5, 0.27], "high": [0.6, 0.3],
    ...     "theory": [0.5, 0.27]})
    >>> picture = qd.chart.treatment_costs(costs)
    >>> picture.to_dict()["title"]["text"]
    'What it costs to protect one record'
    """
    columns: dict[str, Kind] = {"treatment": "text"}
    columns |= dict.fromkeys(("size", "cells", "treatable", "low", "cost", "high", "theory"), "number")
    everyone = checked(costs, "treatment_costs", columns)
    frame, _ = defined(everyone, "treatment_costs", "cost")
    name = pl.col("treatment").replace({treatment: name for treatment, (name, _, _) in _TREATMENTS.items()})
    frame = frame.with_columns(name=name, cell=pl.col("size").cast(pl.Int64).cast(pl.String))
    shown = [look for treatment, look in _TREATMENTS.items() if treatment in frame["treatment"]]
    names, hues, shapes = ([look[i] for look in shown] for i in range(3))
    top = 1.12 * max([*frame["high"], *frame["theory"].drop_nulls()])

    def y(field: str) -> alt.Y:
        scale = alt.Scale(domain=[0, top], nice=False)
        return alt.Y(f"{field}:Q", title=f"{loss} per protected record, × N", scale=scale)

    sizes = frame.sort("size")["cell"].unique(maintain_order=True).to_list()
    x = alt.X("cell:N", title="records in the small cell", sort=sizes, axis=alt.Axis(labelAngle=0, ticks=False))
    offset = alt.XOffset("name:N", scale=alt.Scale(domain=names))
    tooltip = tooltips("name:N", "cell:N", "cells:Q", "treatable:Q", "low:Q", "cost:Q", "high:Q", "theory:Q")
    base = alt.Chart(inline(frame)).encode(x=x, xOffset=offset, y=y("cost"), tooltip=tooltip)
    known = frame.drop_nulls("theory")
    ticks = alt.Chart(inline(known)).mark_tick(thickness=1.6, size=22, color=INK)
    legend = theme.legend("Treatment", symbolOpacity=1, symbolStrokeWidth=0)
    color, shape = theme.looks("name", names, hues, shapes, legend)
    layers = [
        *([ticks.encode(x=x, xOffset=offset, y=y("theory"), tooltip=tooltip)] if known.height else []),
        base.mark_rule(strokeWidth=3, opacity=0.45).encode(y=y("low"), y2=alt.Y2("high:Q"), color=color),
        base.mark_point(filled=True, size=110, opacity=1).encode(color=color, shape=shape),
        base.mark_text(dx=13, dy=-4, align="left", fontSize=12, color=INK).encode(
            text=alt.Text("cost:Q", format=".3~f")
        ),
    ]
    untreated = int((everyone["cells"] - everyone["treatable"]).sum())
    undone = f"{counted(untreated, 'treatment')} of single cells cannot be done"
    notes = [f"Not drawn: {undone}, because no neighbour can give or take a record." if untreated else ""]
    figure = theme.layered(layers, _COST_WIDTH, _HEIGHT)
    return theme.finish(figure, "What it costs to protect one record", _COST_READING, notes)


_N_RULE, _BESIDE = "small_cells", "exposed"
COMPANION = "companion"
"""The column of a second risk, where it is not named by its measure."""


def is_n_rule(measure: str) -> bool:
    """Whether a measure is the n-rule, whatever its margin and options."""
    return measure.partition("(")[0].strip() == _N_RULE


def beside(measure: str) -> str:
    """Return the measure that belongs beside an n-rule: of the same margin, with the same options.

    >>> from quadrille.chart.cell_sizes import beside
    >>> beside("small_cells(Age*Sex, n=5)")
    'exposed(Age*Sex, n=5)'
    """
    return _BESIDE + measure.strip().removeprefix(_N_RULE)


def matches(one: str, other: str) -> bool:
    """Whether two addresses mean the same measure, however they are written.

    >>> from quadrille.chart.cell_sizes import matches
    >>> matches("exposed(Sex*Age)", "exposed(Age*Sex, n=3)"), matches("exposed", "exposed(n=5)")
    (True, False)
    """
    return one.strip() == other.strip() or _meaning(one) == _meaning(other)


def _meaning(address: str) -> tuple[object, ...]:
    try:
        call = Address.parse(address)
        margin = None if call.margin is None else frozenset(call.margin)
        return call.name, margin, call.where, tuple(measure_of(call.text).with_options(call).options.items())
    except QuadrilleError:  # an axis may carry any text
        return (address.strip(),)


def missing(shown: Iterable[str], there: Sequence[str] = ()) -> dict[str, str]:
    """Return what is missing beside each n-rule among the measures shown; `there` are further ones."""
    shown = list(shown)
    wanted = {rule: beside(rule) for rule in shown if is_n_rule(rule)}
    return {rule: want for rule, want in wanted.items() if not any(matches(want, each) for each in (*shown, *there))}


def require_companions(owner: str, rows: pl.DataFrame, of: str = "frame", where: str = "") -> None:
    """Refuse an n-rule in column `measure` without `exposed` there; `where` says which rows these are."""
    for rule, want in missing(rows["measure"].unique(maintain_order=True)).items():
        raise refusal(owner, rule, f"Column 'measure' of the {of} has no {want!r} with a value{where}.")


def refusal(owner: str, rule: str, lack: str) -> ParameterError:
    """Build the message for an n-rule that would stand alone."""
    return ParameterError(
        f"{owner} cannot show {rule} alone: swaps can fool the n-rule, so {beside(rule)} stands beside it. {lack} "
        "A search scores it by itself; in a score of your own, name both measures."
    )


def with_companion(
    owner: str, frame: pl.DataFrame, axes: tuple[str, str], given: str | None
) -> tuple[pl.DataFrame, str | None]:
    """Return the frame with the second risk in column `companion`, and its measure; None where there is no need.

    Beside the n-rule it is `exposed`, found in the frame by its name. Any other second risk is drawn when it is
    `given`; its values are in a column of that name, or in `companion`.
    """
    alone = missing(axes)
    if len(alone) > 1:
        raise ParameterError(f"{owner} has room for one n-rule. Draw {' and '.join(alone)} one at a time.")
    rule, want = next(iter(alone.items()), (None, given))
    if want is None:
        return frame, None
    if rule is not None and given is not None and not matches(given, want):
        raise refusal(owner, rule, f"Leave out companion={given!r}.")
    if given is not None and COMPANION in frame.columns:
        return frame, want
    named = next((name for name in frame.columns if matches(name, want)), None)
    if named is not None:
        return frame.with_columns(frame[named].alias(COMPANION)), want
    if rule is not None:
        raise refusal(owner, rule, f"The frame has no column {want!r}.")
    return frame, want


_ERROR_TEXT = 12
_BAND, _BAND_INK = "#f3c98b", "#8a5a00"
_SHARES = ((0.01, "1 %"), (0.1, "10 %"), (1.0, "100 %"))
_AIR = 1.35
_LEFT = -0.3  # left of an empty cell, so that its point is not on the axis
_COUNTS = "Records in the cell"
_ERROR_READING = (
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
        _ERROR_READING.format(
            size="count" if size == _COUNTS else size[:1].lower() + size[1:].removesuffix(" of the cell")
        )
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
    spot = _free(theme.text_width(text, _ERROR_TEXT), heights, taken)
    if spot is None:
        return layers
    taken += [
        (spot[0] - theme.text_width(text, _ERROR_TEXT) * share, spot[1]) for share in np.linspace(0, 1, 12).tolist()
    ]
    count, error = axes.values(*spot)
    name = alt.Chart(inline(pl.DataFrame([{"text": text, "count": count, "error": error}])))
    name = name.mark_text(align="right", fontSize=_ERROR_TEXT, color=_BAND_INK)
    return [*layers, name.encode(x=axes.x("count"), y=axes.y("error"), text=alt.Text("text:N"))]


def _free(width: float, heights: tuple[float, ...], taken: list[Place]) -> Place | None:
    """Return where a text of this width may end at one of these heights without touching a point, far right first."""
    for right in np.arange(WIDTH - 6, width + 6, -20).tolist():
        for y in heights:
            near = ((px, py) for px, py in taken if abs(py - y) < 1.1 * _ERROR_TEXT)
            if _ERROR_TEXT < y < HEIGHT - _ERROR_TEXT and not any(right - width - 8 < px < right + 8 for px, _ in near):
                return right, y
    return None


def _shares(axes: _Logs) -> list[alt.Chart]:
    """Draw the lines on which the error is a given share of the count; the share stands outside, where a line ends."""
    lines: list[dict[str, float | str]] = []
    tops: list[dict[str, float | str]] = []
    sides: list[dict[str, float | str]] = []
    for part, text in _SHARES:
        low, high = axes.up[0] / part, min(axes.up[1] / part, axes.most)
        if high <= low:
            continue
        along = [(float(count), float(np.clip(count * part, *axes.up))) for count in np.geomspace(low, high, 60)]
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
            name = alt.Chart(inline(pl.DataFrame(ends))).mark_text(**place, fontSize=_ERROR_TEXT, color=AXIS)
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
