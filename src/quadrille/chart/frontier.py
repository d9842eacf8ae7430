"""The frontier: every candidate release by its risk and its loss."""

from __future__ import annotations

from typing import NamedTuple

import altair as alt
import polars as pl

from quadrille.chart import theme
from quadrille.chart.labels import free_spot, stairs
from quadrille.chart.n_rule import COMPANION, with_companion
from quadrille.chart.theme import GREY, HUES, INK, LOWER_PANEL, SHAPES, Figure, Plane
from quadrille.chart.tidy import Kind, checked, defined, inline, thinned
from quadrille.errors import ParameterError
from quadrille.present.numbers import counted

_OTHER = "other swaps"
_TEXT = 13
_CROWD = 1_000
_UNRATED = 70
_DRAWN, _PREDICTED, _BOUND = "of the draws", "predicted (white diamonds)", "no swap beyond"
_DASHES = {_DRAWN: [1, 0], _PREDICTED: [5, 3], _BOUND: [1.5, 2.5]}


class _Looks(NamedTuple):
    """How a point shows its swap and its rate: the same in both panels."""

    color: alt.Color
    shape: alt.Shape
    size: alt.Size


def frontier(
    points: pl.DataFrame,
    *,
    risk: str,
    loss: str,
    companion: str | None = None,
    predicted: pl.DataFrame | None = None,
    bound: pl.DataFrame | None = None,
) -> Figure:
    """Draw candidates by risk and loss, with the line of those that no other beats in both.

    One row of `points` is a candidate: `risk`, `loss` (numbers; rows without one are left out and counted),
    `swap` (the swap variables, "Race + Sex"), `rate` (share of records that take part), `on_frontier`, `chosen`
    (true or false), `label` (text). `risk` and `loss` name the measures.

    A second panel shows the same candidates by a second risk. Beside the n-rule (`small_cells`) that is always
    `exposed`, from the column of that name: with "small_cells(n=5)" the column is "exposed(n=5)". `companion` names
    any other one; its values are in a column of that name, or in column `companion`.

    `predicted` adds the frontier that theory expects before any draw: one row is a design, as `theory.predictions`
    returns them, with `label`, the two measures (in columns of their names, or `risk` and `loss`) and the second risk
    as in `points`. Only designs that no other is expected to beat are drawn; rows without a value are counted.

    Where `points` has a column `method` with several methods, the shape tells them apart, and the colour the swap.

    `bound` adds a thin line that no swap lies beyond, in the panel of `exposed`: one row is an exposure, as the frame
    of `theory.least_loss` has them: `exposed`, `least_loss` (in the loss of the chart).

    Above 5,000 candidates the beaten ones are thinned; the frontier and the chosen one are always complete.

    Example
    -------
    >>> import polars as pl
    >>> import quadrille as qd
    >>> points = pl.DataFrame({
    ...     "risk": [0.015, 0.013, 0.014], "loss": [0.01, 0.05, 0.06], "swap": ["Edu", "MS", "Race"],
    ...     "rate": [0.01, 0.05, 0.05],
    ...     "on_frontier": [True, True, False], "chosen": [False, True, False], "label": ["No. 1", "No. 2", "No. 3"],
    ... })
    >>> picture = qd.chart.frontier(points, risk="exposed", loss="hellinger")
    >>> picture.to_dict()["title"]["text"]
    'Risk and loss of 3 candidate releases'
    """
    columns: dict[str, Kind] = {"risk": "number", "loss": "number", "swap": "text", "rate": "number"}
    columns |= {"on_frontier": "flag", "chosen": "flag", "label": "text"}
    points, below = with_companion("frontier", points, (risk, loss), companion)
    if below is not None:
        columns[COMPANION] = "number"
    if "method" in points.columns:
        columns["method"] = "text"
    everyone, left_out = defined(checked(points, "frontier", columns), "frontier", "risk", "loss")
    groups = _coloured(everyone)
    group = pl.when(pl.col("swap").is_in(groups)).then("swap").otherwise(pl.lit(_OTHER))
    everyone = everyone.with_columns(group=group)
    shown = thinned(everyone, keep=pl.col("on_frontier") | pl.col("chosen"))
    looks = _looks(everyone, groups, crowded=shown.height > _CROWD)
    title = f"Risk and loss of {counted(everyone.height, 'candidate release')}"
    notes = _notes(everyone, shown.height, left_out)
    ahead, told = _foreseen(predicted, (risk, loss), companion, below)
    notes += told
    floor = _floor(bound, risk, below)
    notes += [] if floor.is_empty() else [_BOUND_TOLD]
    across = theme.extent([*everyone["loss"], *ahead["loss"]])
    plane = Plane(risk, loss, across, theme.extent([*everyone["risk"], *ahead["risk"]], 0.08))
    main = _panel(shown, ahead, floor, "risk", plane, looks)
    if below is None:
        return theme.finish(main, title, _reading(everyone), notes)
    known, unknown = defined(everyone, "frontier", COMPANION)
    up = theme.extent([*known[COMPANION], *ahead[COMPANION].drop_nulls()], 0.08)
    plane = Plane(below, loss, across, up, height=LOWER_PANEL)
    lower = _panel(shown.drop_nulls(COMPANION), ahead.drop_nulls(COMPANION), floor, COMPANION, plane, looks)
    notes += theme.told_below(below, "candidates", unknown)
    return theme.finish(alt.vconcat(main, lower, spacing=26), title, _reading(everyone), notes)


def _foreseen(
    predicted: pl.DataFrame | None, axes: tuple[str, str], companion: str | None, below: str | None
) -> tuple[pl.DataFrame, list[str]]:
    """Return the designs on the predicted frontier, none without a prediction, and what is to be said about them."""
    columns: dict[str, Kind] = {"risk": "number", "loss": "number", "label": "text"}
    if below is not None:
        columns[COMPANION] = "number"
    if predicted is None:
        kinds = {name: pl.String if kind == "text" else pl.Float64 for name, kind in columns.items()}
        return pl.DataFrame(schema=kinds), []
    owner = "frontier(predicted=)"
    predicted, _ = with_companion(owner, predicted, axes, companion)
    for column, measure in zip(("risk", "loss"), axes, strict=True):
        if column not in predicted.columns and measure in predicted.columns:
            predicted = predicted.with_columns(predicted[measure].alias(column))
    designs, left_out = defined(checked(predicted, owner, columns), owner, "risk", "loss")
    ahead = _lowest(designs)
    told = (
        "The dashed line with white diamonds is the frontier predicted before any draw: "
        f"{counted(ahead.height, 'design')} of {designs.height:,}, each at the mean over its seeds. "
        "Single draws scatter around it, and the luckiest lie below."
    )
    return ahead, [told, *([f"Not predicted: {counted(left_out, 'design')}."] if left_out else [])]


_BOUND_TOLD = (
    "The thin dotted line is a lower bound of the loss at each exposure: no swap of any kind lies below or left of it."
)


def _floor(bound: pl.DataFrame | None, risk: str, below: str | None) -> pl.DataFrame:
    """Return the lower bound, none without one; it is a bound of `exposed`, so it belongs beside that."""
    if bound is None:
        return pl.DataFrame(schema={"exposed": pl.Float64, "least_loss": pl.Float64})
    if not any(axis is not None and _is_exposed(axis) for axis in (risk, below)):
        raise ParameterError("The bound of frontier is one of exposed: draw it with exposed as risk or as companion.")
    owner = "frontier(bound=)"
    given = checked(bound, owner, {"exposed": "number", "least_loss": "number"})
    return defined(given, owner, "exposed", "least_loss")[0].sort("exposed")


def _is_exposed(measure: str) -> bool:
    return measure.partition("(")[0].strip() == "exposed"


def _reading(everyone: pl.DataFrame) -> str:
    best = counted(everyone.filter("on_frontier").height, "candidate")
    return (
        "Each point is a candidate release. Lower and further left is better. "
        f"The line joins the {best} that no other beats (the frontier); pale points are beaten."
    )


def _notes(everyone: pl.DataFrame, shown: int, left_out: int) -> list[str]:
    chosen = everyone.filter("chosen")["label"].to_list()
    notes = [f"The ring marks the chosen one: {'; '.join(chosen)}."] if chosen else []
    if shown < everyone.height:
        notes.append(f"Shown: {shown:,} of {everyone.height:,}; the frontier is complete, beaten points are thinned.")
    if left_out:
        notes.append(f"Left out: {counted(left_out, 'candidate')} without a value on both axes.")
    return notes


def _coloured(everyone: pl.DataFrame) -> list[str]:
    """Return the swaps that get a colour: those with the longest stretch of the frontier, in order along it, then
    the most frequent ones; of equally frequent ones all or none.
    """
    best = everyone.filter("on_frontier").sort("loss", "risk")
    loss = pl.col("loss")
    stretch = loss.shift(-1).fill_null(loss.last()) - loss.shift(1).fill_null(loss.first())
    tally = best.with_columns(stretch=stretch).group_by("swap").agg(pl.col("stretch").sum(), pl.col("loss").min())
    longest = tally.sort("stretch", "swap", descending=[True, False]).head(len(HUES))
    winners = longest.sort("loss", "swap")["swap"].to_list()
    rest = everyone.filter(~pl.col("swap").is_in(winners)).group_by("swap").len()
    rest = rest.sort("len", "swap", descending=[True, False])
    room = len(HUES) - len(winners)
    if rest.height > room:
        rest = rest.filter(pl.col("len") > rest["len"][room])
    return [*winners, *rest["swap"].to_list()]


def _looks(everyone: pl.DataFrame, groups: list[str], *, crowded: bool) -> _Looks:
    grey = [_OTHER] if _OTHER in everyone["group"] else []
    domain = [*groups, *grey]
    hues, shapes = [*HUES[: len(groups)], *(GREY for _ in grey)], [*SHAPES[: len(groups)], *("circle" for _ in grey)]
    legend = alt.Legend(title="Variables swapped", symbolOpacity=1, symbolStrokeWidth=0)
    rates: list[float] = sorted(everyone["rate"].drop_nulls().unique())
    values = rates if len(rates) <= 5 else alt.Undefined
    sizes = alt.Legend(title="Records taking part", format=".2~%", values=values, tickCount=4, symbolOpacity=1)
    sizes.symbolFillColor, sizes.symbolStrokeWidth = GREY, 0
    scale = alt.Scale(domain=[0, max(rates, default=1.0) or 1.0], range=[10, 80] if crowded else [25, 230])
    shape = alt.Shape("group:N", scale=alt.Scale(domain=domain, range=shapes), legend=legend)
    methods: list[str] = everyone["method"].unique(maintain_order=True).sort().to_list() if "method" in everyone else []
    if len(methods) > 1:
        legend.symbolType = "circle"
        shape = _by_method(methods)
    return _Looks(
        alt.Color("group:N", scale=alt.Scale(domain=domain, range=hues), legend=legend),
        shape,
        alt.Size("rate:Q", scale=scale, legend=sizes if rates else None),
    )


def _by_method(methods: list[str]) -> alt.Shape:
    """Tell methods apart by their shape: designed swaps are diamonds, random ones discs."""
    order = sorted(methods, key=lambda method: (method != "random", method == "designed", method))
    shapes = [
        "diamond" if method == "designed" else SHAPES[(0, 1, 2, 4, 5, 6)[i % 6]] for i, method in enumerate(order)
    ]
    legend = alt.Legend(title="Method", symbolOpacity=1, symbolFillColor=GREY, symbolStrokeWidth=0)
    return alt.Shape("method:N", scale=alt.Scale(domain=order, range=shapes), legend=legend)


def _panel(
    shown: pl.DataFrame, ahead: pl.DataFrame, floor: pl.DataFrame, field: str, plane: Plane, looks: _Looks
) -> alt.LayerChart:
    best, chosen = shown.filter("on_frontier"), shown.filter("chosen")
    layers = _dots(shown.filter(~pl.col("on_frontier")), field, plane, looks, opacity=0.3, outline=0)
    if field == "risk":
        layers.append(_line(shown, ahead, plane, bounded=not floor.is_empty()))
    if not floor.is_empty() and _is_exposed(plane.risk):
        layers.append(_thin(floor, plane, with_ahead=not ahead.is_empty()))
    layers += _dots(best, field, plane, looks, opacity=1, outline=0.9)
    if not ahead.is_empty():
        layers.append(_diamonds(ahead, field, plane))
    if not chosen.is_empty():
        layers += _marked(chosen, shown, ahead, field, plane)
    return theme.layered(layers, plane.width, plane.height)


def _dots(
    frame: pl.DataFrame, field: str, plane: Plane, looks: _Looks, *, opacity: float, outline: float
) -> list[alt.Chart]:
    """Draw candidates; those of which nobody knows beforehand how many records take part have one size."""
    columns = [name for name in frame.columns if name not in ("on_frontier", "chosen")]
    tooltip = ["label:N", "swap:N", alt.Tooltip("rate:Q", format=theme.SHARE)]
    tooltip += [alt.Tooltip(f"{name}:Q", format=theme.SCORE) for name in (field, "loss")]
    rated = frame.filter(pl.col("rate").is_not_null()).select(columns)
    others = frame.filter(pl.col("rate").is_null()).select(columns)
    layers: list[alt.Chart] = []
    for part, size in ((rated, looks.size), (others, alt.SizeValue(_UNRATED))):
        if not part.is_empty() or (part is rated and others.is_empty()):
            mark = alt.Chart(inline(part)).mark_point(filled=True, opacity=opacity, stroke=INK, strokeWidth=outline)
            dots = mark.encode(x=plane.x("loss"), y=plane.y(field), tooltip=tooltip)
            layers.append(dots.encode(color=looks.color, shape=looks.shape, size=size))
    return layers


def _lowest(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that no other one beats in risk and loss."""
    lowest = pl.col("risk").cum_min().shift(1).fill_null(float("inf"))
    return frame.sort("loss", "risk").filter(pl.col("risk") < lowest)


def _corners(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the corners of the line; with more than two objectives only members that no other beats in these two."""
    return _lowest(frame.filter("on_frontier")).select("loss", "risk")


def _line(shown: pl.DataFrame, ahead: pl.DataFrame, plane: Plane, *, bounded: bool) -> alt.Chart:
    """Draw the line of the draws; with predictions theirs too, dashed, and a legend that tells the lines apart."""
    drawn = _corners(shown)
    if ahead.is_empty() and not bounded:
        return _steps(drawn, plane)
    both = pl.concat([drawn.with_columns(line=pl.lit(_DRAWN)), ahead.select("loss", "risk", line=pl.lit(_PREDICTED))])
    return _steps(both, plane).encode(strokeDash=_dashes(with_ahead=not ahead.is_empty(), bounded=bounded))


def _dashes(*, with_ahead: bool, bounded: bool) -> alt.StrokeDash:
    shown = [_DRAWN, *([_PREDICTED] if with_ahead else []), *([_BOUND] if bounded else [])]
    scale = alt.Scale(domain=shown, range=[_DASHES[line] for line in shown])
    legend = alt.Legend(title="Frontier", symbolType="stroke", symbolStrokeColor=INK, symbolSize=400)
    return alt.StrokeDash("line:N", scale=scale, legend=legend)


def _thin(floor: pl.DataFrame, plane: Plane, *, with_ahead: bool) -> alt.Chart:
    """Draw the lower bound."""
    return (
        alt.Chart(inline(floor.with_columns(line=pl.lit(_BOUND))))
        .mark_line(color=INK, strokeWidth=1.1, clip=True)
        .encode(
            x=plane.x("least_loss"),
            y=plane.y("exposed"),
            order=alt.Order("exposed:Q"),
            strokeDash=_dashes(with_ahead=with_ahead, bounded=True),
        )
    )


def _steps(corners: pl.DataFrame, plane: Plane) -> alt.Chart:
    return (
        alt.Chart(inline(corners))
        .mark_line(interpolate="step-after", color=INK, strokeWidth=1.4, opacity=0.75)
        .encode(x=plane.x("loss"), y=plane.y("risk"), order=alt.Order("loss:Q"))
    )


def _diamonds(ahead: pl.DataFrame, field: str, plane: Plane) -> alt.Chart:
    tooltip = ["label:N", f"{field}:Q", "loss:Q"]
    return (
        alt.Chart(inline(ahead))
        .mark_point(shape="diamond", filled=True, size=75, fill="white", stroke=INK, strokeWidth=1.3, opacity=1)
        .encode(x=plane.x("loss"), y=plane.y(field), tooltip=tooltip)
    )


def _marked(
    chosen: pl.DataFrame, shown: pl.DataFrame, ahead: pl.DataFrame, field: str, plane: Plane
) -> list[alt.Chart]:
    """Draw a ring, and the label where it covers no point, with a line to it."""
    taken = [plane.pixels(*point) for frame in (shown, ahead) for point in frame.select("loss", field).iter_rows()]
    if field == "risk":
        for corners in (_corners(shown), ahead.select("loss", "risk")):
            taken += stairs([plane.pixels(*corner) for corner in corners.iter_rows()])
    rows: list[dict[str, float | str]] = []
    for loss, risk, label in chosen.select("loss", field, "label").iter_rows():
        width = theme.text_width(label, _TEXT)
        spot = free_spot(plane.pixels(loss, risk), width, taken, (plane.width, plane.height))
        taken += spot.covered()
        row: dict[str, float | str] = {"loss": loss, field: risk, "label": label}
        for name, place in (("at", (spot.x, spot.y)), ("from", spot.line[0]), ("to", spot.line[1])):
            row[f"{name}_loss"], row[f"{name}_risk"] = plane.values(*place)
        rows.append(row)
    base = alt.Chart(inline(pl.DataFrame(rows)))
    ring = base.mark_point(shape="circle", filled=False, size=480, color=INK, strokeWidth=2.2, opacity=1)
    lead = base.mark_rule(color=INK, strokeWidth=1)
    halo = base.mark_text(fontSize=_TEXT, fontWeight="bold", align="right", stroke="white", strokeWidth=4)
    text = base.mark_text(fontSize=_TEXT, fontWeight="bold", align="right", color=INK)
    across, up = plane.x("at_loss"), plane.y("at_risk")
    return [
        lead.encode(x=plane.x("from_loss"), y=plane.y("from_risk"), x2="to_loss:Q", y2="to_risk:Q"),
        ring.encode(x=plane.x("loss"), y=plane.y(field)),
        *(mark.encode(x=across, y=up, text="label:N") for mark in (halo, text)),
    ]
