"""Risk against loss: every candidate release with the frontier, and how far a design depends on its seed."""

from __future__ import annotations

from typing import NamedTuple

import altair as alt
import polars as pl

from quadrille.chart import theme
from quadrille.chart.cell_sizes import COMPANION, with_companion
from quadrille.chart.theme import (
    GREY,
    HEIGHT,
    HUES,
    INK,
    SHAPES,
    WIDTH,
    Figure,
    Kind,
    Plane,
    Range,
    defined,
    free_spots,
    inline,
    left_out,
    prepared,
    stairs,
    thinned,
    tooltips,
)
from quadrille.errors import InputError, ParameterError
from quadrille.present.numbers import AS_IT_IS, counted, epsilon

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
    unswapped: tuple[float, float | None] | None = None,
    colour: str = "swap",
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

    `unswapped` are risk and second risk (or None) of the file as it is, which loses nothing: a cross with a label.

    `colour` names another column of `points` whose values colours tell apart, a parameter for instance.

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
    columns |= {name: "text" for name in ("method", colour) if name in points.columns or name == colour}
    everyone, unplaced = prepared(points, "frontier", columns, "risk", "loss")
    groups = _coloured(everyone, colour)
    group = pl.when(pl.col(colour).is_in(groups)).then(colour).otherwise(pl.lit(_OTHER))
    everyone = everyone.with_columns(group=group)
    shown = thinned(everyone, keep=pl.col("on_frontier") | pl.col("chosen"))
    looks = _looks(everyone, groups, colour, crowded=shown.height > _CROWD)
    title = f"Risk and loss of {counted(everyone.height, 'candidate release')}"
    ahead, told = _predicted(predicted, (risk, loss), companion, below)
    floor = _floor(bound, risk, below)
    notes = [*_notes(everyone, shown.height, unplaced), *told, "" if floor.is_empty() else _BOUND_TOLD]
    notes.append("" if unswapped is None else _UNSWAPPED_TOLD)
    here, there = (None, None) if unswapped is None else unswapped
    across = theme.extent([*everyone["loss"], *ahead["loss"], *([] if unswapped is None else [0.0])])
    upright = [*everyone["risk"], *ahead["risk"], *([] if here is None else [here])]
    plane = _plane(risk, loss, across, theme.extent(upright, 0.08))
    main = _panel(shown, ahead, floor, "risk", plane, looks, here)
    if below is None:
        return theme.finish(main, title, _reading(everyone), notes)
    known, unknown = defined(everyone, "frontier", COMPANION)
    beside = [*known[COMPANION], *ahead[COMPANION].drop_nulls(), *([] if there is None else [there])]
    up = theme.extent(beside, 0.08)
    plane = _plane(below, loss, across, up, _LOWER)
    lower = _panel(shown.drop_nulls(COMPANION), ahead.drop_nulls(COMPANION), floor, COMPANION, plane, looks, there)
    notes += _told_below(below, "candidates", unknown)
    return theme.finish(alt.vconcat(main, lower, spacing=26), title, _reading(everyone), notes)


_LOWER = 230


def _plane(risk: str, loss: str, across: Range, up: Range, height: int = HEIGHT) -> Plane:
    """Return the axes of loss across and risk up."""
    axes = (
        alt.Axis(format=theme.number_format(loss), tickCount=7),
        alt.Axis(format=theme.number_format(risk), tickCount=height // 55),
    )
    titles = f"{loss} (loss, lower is better)", f"{risk} (risk, lower is better)"
    return Plane(titles, across, up, axes, (WIDTH, height))


def _told_below(companion: str, what: str, unknown: int) -> list[str]:
    """Say what the second panel is for, and how many have no place there."""
    return [
        f"Below, the same {what} by {companion}: trust a lower risk only where both panels show it.",
        f"Not below: {counted(unknown, 'candidate')} without {companion}." if unknown else "",
    ]


def _predicted(
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
    designs, unknown = prepared(predicted, owner, columns, "risk", "loss")
    ahead = _lowest(designs)
    told = (
        "The dashed line with white diamonds is the frontier predicted before any draw: "
        f"{counted(ahead.height, 'design')} of {designs.height:,}, each at the mean over its seeds. "
        "Single draws scatter around it, and the luckiest lie below."
    )
    return ahead, [told, f"Not predicted: {counted(unknown, 'design')}." if unknown else ""]


_UNSWAPPED_TOLD = "The cross is the file as it is: compare every risk with it."
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
    columns: dict[str, Kind] = {"exposed": "number", "least_loss": "number"}
    return prepared(bound, owner, columns, "exposed", "least_loss")[0].sort("exposed")


def _is_exposed(measure: str) -> bool:
    return measure.partition("(")[0].strip() == "exposed"


def _reading(everyone: pl.DataFrame) -> str:
    best = counted(everyone.filter("on_frontier").height, "candidate")
    return (
        "Each point is a candidate release. Lower and further left is better. "
        f"The line joins the {best} that no other beats (the frontier); pale points are beaten."
    )


def _notes(everyone: pl.DataFrame, shown: int, unplaced: int) -> list[str]:
    chosen = list(dict.fromkeys(everyone.filter("chosen")["label"].to_list()))
    marks, s = (" marks", "") if len(chosen) == 1 else ("s mark", "s")
    thin = f"Shown: {shown:,} of {everyone.height:,}; the frontier is complete, beaten points are thinned."
    return [
        f"The ring{marks} the chosen one{s}: {'; '.join(chosen)}." if chosen else "",
        thin if shown < everyone.height else "",
        left_out(unplaced, "candidate", "without a value on both axes"),
    ]


def _coloured(everyone: pl.DataFrame, colour: str) -> list[str]:
    """Return the values that get a colour: those with the longest stretch of the frontier, in order along it, then
    the most frequent ones; of equally frequent ones all or none.
    """
    best = everyone.filter("on_frontier").sort("loss", "risk")
    loss = pl.col("loss")
    stretch = loss.shift(-1).fill_null(loss.last()) - loss.shift(1).fill_null(loss.first())
    tally = best.with_columns(stretch=stretch).group_by(colour).agg(pl.col("stretch").sum(), pl.col("loss").min())
    longest = tally.sort("stretch", colour, descending=[True, False]).head(len(HUES))
    winners = longest.sort("loss", colour)[colour].to_list()
    rest = everyone.filter(~pl.col(colour).is_in(winners)).group_by(colour).len()
    rest = rest.sort("len", colour, descending=[True, False])
    room = len(HUES) - len(winners)
    if rest.height > room:
        rest = rest.filter(pl.col("len") > rest["len"][room])
    return [*winners, *rest[colour].to_list()]


def _looks(everyone: pl.DataFrame, groups: list[str], colour: str, *, crowded: bool) -> _Looks:
    grey = [_OTHER] if _OTHER in everyone["group"] else []
    hues, shapes = [*HUES[: len(groups)], *(GREY for _ in grey)], [*SHAPES[: len(groups)], *("circle" for _ in grey)]
    named = "Variables swapped" if colour == "swap" else colour
    legend = theme.legend(named, symbolOpacity=1, symbolStrokeWidth=0)
    rates: list[float] = sorted(everyone["rate"].drop_nulls().unique())
    values = rates if len(rates) <= 5 else alt.Undefined
    by_units = "method" in everyone.columns and "targeted" in everyone["method"]
    title = "Rate asked for" if by_units else "Records taking part"
    sizes = alt.Legend(title=title, format=".2~%", values=values, tickCount=4, symbolOpacity=1)
    sizes.symbolFillColor, sizes.symbolStrokeWidth = GREY, 0
    scale = alt.Scale(domain=[0, max(rates, default=1.0) or 1.0], range=[10, 80] if crowded else [25, 230])
    color, shape = theme.looks("group", [*groups, *grey], hues, shapes, legend)
    methods: list[str] = everyone["method"].unique(maintain_order=True).sort().to_list() if "method" in everyone else []
    if len(methods) > 1:
        legend.symbolType = "circle"
        shape = _by_method(methods)
    return _Looks(color, shape, alt.Size("rate:Q", scale=scale, legend=sizes if rates else None))


def _by_method(methods: list[str]) -> alt.Shape:
    """Tell methods apart by their shape: designed swaps are diamonds, random ones discs."""
    order = sorted(methods, key=lambda method: (method != "random", method == "designed", method))
    shapes = [
        "diamond" if method == "designed" else SHAPES[(0, 1, 2, 4, 5, 6)[i % 6]] for i, method in enumerate(order)
    ]
    legend = theme.legend("Method", symbolOpacity=1, symbolFillColor=GREY, symbolStrokeWidth=0)
    return alt.Shape("method:N", scale=alt.Scale(domain=order, range=shapes), legend=legend)


def _panel(
    shown: pl.DataFrame,
    ahead: pl.DataFrame,
    floor: pl.DataFrame,
    field: str,
    plane: Plane,
    looks: _Looks,
    unswapped: float | None = None,
) -> alt.LayerChart:
    best, chosen = shown.filter("on_frontier"), shown.filter("chosen")
    layers = _dots(shown.filter(~pl.col("on_frontier")), field, plane, looks, opacity=0.3, outline=0)
    if field == "risk":
        layers.append(_line(shown, ahead, plane, bounded=not floor.is_empty()))
    if not floor.is_empty() and _is_exposed(plane.titles[1]):
        layers.append(_thin(floor, plane, with_ahead=not ahead.is_empty()))
    layers += _dots(best, field, plane, looks, opacity=1, outline=0.9)
    if not ahead.is_empty():
        layers.append(_diamonds(ahead, field, plane))
    origin = pl.DataFrame({"loss": [0.0], field: [unswapped], "label": [AS_IT_IS]}).drop_nulls()
    if not chosen.is_empty():
        layers += _marked(pl.concat([chosen.select("loss", field, "label"), origin]), shown, ahead, field, plane)
    elif not origin.is_empty():
        layers += _marked(origin, shown, ahead, field, plane)
    return theme.layered(layers, *plane.size)


def _dots(
    frame: pl.DataFrame, field: str, plane: Plane, looks: _Looks, *, opacity: float, outline: float
) -> list[alt.Chart]:
    """Draw candidates; those of which nobody knows beforehand how many records take part have one size."""
    columns = [name for name in frame.columns if name not in ("on_frontier", "chosen")]
    tooltip = tooltips("label:N", "swap:N", alt.Tooltip("rate:Q", format=theme.SHARE))
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
    tooltip = tooltips("label:N", f"{field}:Q", "loss:Q")
    return (
        alt.Chart(inline(ahead))
        .mark_point(shape="diamond", filled=True, size=75, fill="white", stroke=INK, strokeWidth=1.3, opacity=1)
        .encode(x=plane.x("loss"), y=plane.y(field), tooltip=tooltip)
    )


_RING, _LONGEST = 13.0, 40


def _by_point(chosen: pl.DataFrame) -> list[tuple[float, float, str]]:
    """Return the points to mark, each once, with the labels of all that lie there; the notes have long ones whole."""
    found: dict[tuple[float, float, bool], list[str]] = {}
    for loss, risk, label in chosen.iter_rows():
        short = label.partition(": ")[0]
        half = _LONGEST // 2
        short = short if len(short) <= _LONGEST else f"{short[:half].rstrip()} … {short[-half:].lstrip()}"
        known = found.setdefault((loss, risk, label == AS_IT_IS), [])
        known += [] if short in known else [short]
    return [(loss, risk, ", ".join(labels)) for (loss, risk, _), labels in found.items()]


def _marked(
    chosen: pl.DataFrame, shown: pl.DataFrame, ahead: pl.DataFrame, field: str, plane: Plane
) -> list[alt.Chart]:
    """Draw a ring, or the cross of the file as it is, and the label where it covers no point, with a line to it."""
    taken = [plane.pixels(*point) for frame in (shown, ahead) for point in frame.select("loss", field).iter_rows()]
    if field == "risk":
        for corners in (_corners(shown), ahead.select("loss", "risk")):
            taken += stairs([plane.pixels(*corner) for corner in corners.iter_rows()])
    marked = _by_point(chosen.select("loss", field, "label"))
    labels = [(plane.pixels(loss, risk), theme.text_width(label, _TEXT)) for loss, risk, label in marked]
    rows: list[dict[str, float | str]] = []
    for (loss, risk, label), spot in zip(marked, free_spots(labels, taken, plane.size, _RING), strict=True):
        row: dict[str, float | str] = {"loss": loss, field: risk, "label": label}
        for name, place in (("at", (spot.x, spot.y)), ("from", spot.line[0]), ("to", spot.line[1])):
            row[f"{name}_loss"], row[f"{name}_risk"] = plane.values(*place)
        rows.append(row)
    base = alt.Chart(inline(pl.DataFrame(rows)))
    ring = base.mark_point(shape="circle", filled=False, size=480, color=INK, strokeWidth=2.2, opacity=1)
    cross = base.mark_point(shape="cross", filled=True, size=170, color=INK, opacity=1)
    of_file = alt.datum.label == AS_IT_IS
    lead = base.mark_rule(color=INK, strokeWidth=1)
    halo = base.mark_text(fontSize=_TEXT, fontWeight="bold", align="right", stroke="white", strokeWidth=4)
    text = base.mark_text(fontSize=_TEXT, fontWeight="bold", align="right", color=INK)
    across, up = plane.x("at_loss"), plane.y("at_risk")
    return [
        lead.encode(x=plane.x("from_loss"), y=plane.y("from_risk"), x2=alt.X2("to_loss:Q"), y2=alt.Y2("to_risk:Q")),
        *(
            mark.transform_filter(which).encode(x=plane.x("loss"), y=plane.y(field))
            for mark, which in ((ring, ~of_file), (cross, of_file))
            if any((row["label"] == AS_IT_IS) == (mark is cross) for row in rows)
        ),
        *(mark.encode(x=across, y=up, text=alt.Text("label:N")) for mark in (halo, text)),
    ]


_OWN_HUES = HUES[:6]
_DARK_GREY = "#4d4d4d"
_MORE, _NEVER = "other designs on the frontier", "designs never on it"
_CLOUD_READING = (
    "Each faint point is one seed of a design. Each dot is the mean of a design's seeds, its bars are one standard "
    "deviation. Where bars overlap, the order of the designs may be chance."
)


def seed_cloud(points: pl.DataFrame, *, risk: str, loss: str, companion: str | None = None) -> Figure:
    """Draw each design's seeds as a faint cloud, and their mean with bars of one standard deviation.

    One row of `points` is a candidate: `design` (text), `risk`, `loss` (numbers; rows without one are left out and
    counted), `on_frontier` (true or false). Designs with a seed on the frontier are coloured, the six with the
    largest share of such seeds each in a colour of its own. `risk` and `loss` name the measures.

    A second panel shows the same designs by a second risk, as in `frontier`: beside the n-rule (`small_cells`) always
    by `exposed`, from the column of that name.

    Above 5,000 candidates the clouds are thinned; means and bars are always of all seeds.

    Example
    -------
    >>> import polars as pl
    >>> import quadrille as qd
    >>> points = pl.DataFrame({"design": ["Edu, 1 %"] * 2 + ["MS, 5 %"] * 2, "risk": [0.0148, 0.0147, 0.0131, 0.0133],
    ...     "loss": [0.017, 0.016, 0.052, 0.054], "on_frontier": [False, True, True, False]})
    >>> picture = qd.chart.seed_cloud(points, risk="exposed", loss="hellinger")
    >>> picture.to_dict()["title"]["text"]
    'How much the seed matters: 2 designs, 4 candidates'
    """
    columns: dict[str, Kind] = {"design": "text", "risk": "number", "loss": "number", "on_frontier": "flag"}
    points, companion = with_companion("seed_cloud", points, (risk, loss), companion)
    if companion is not None:
        columns[COMPANION] = "number"
    everyone, unplaced = prepared(points, "seed_cloud", columns, "risk", "loss")
    designs = _grouped(_designs(everyone))
    groups = designs.select("design", "group")
    everyone = everyone.join(groups, on="design", how="left", maintain_order="left")
    shown = thinned(everyone, keep=pl.col("on_frontier"))
    across = theme.extent([*everyone["loss"], *designs["left"], *designs["right"]])
    plane, color = _plane(risk, loss, across, _up(everyone, designs)), _color(designs)
    figure: Figure = _cloud_panel(shown, designs, plane, color)
    title = f"How much the seed matters: {counted(designs.height, 'design')}, {counted(everyone.height, 'candidate')}"
    notes = _cloud_notes(designs, everyone.height, shown.height, unplaced)
    if companion is None:
        return theme.finish(figure, title, _CLOUD_READING, notes)
    known, unknown = defined(everyone.drop("risk"), "seed_cloud", COMPANION)
    known = known.rename({COMPANION: "risk"})
    below = _designs(known).join(groups, on="design", how="left", maintain_order="left")
    plane = _plane(companion, loss, across, _up(known, below), _LOWER)
    dots = shown.drop("risk").drop_nulls(COMPANION).rename({COMPANION: "risk"})
    notes += _told_below(companion, "designs", unknown)
    return theme.finish(
        alt.vconcat(figure, _cloud_panel(dots, below, plane, color), spacing=26), title, _CLOUD_READING, notes
    )


def _cloud_panel(shown: pl.DataFrame, designs: pl.DataFrame, plane: Plane, color: alt.Color) -> alt.LayerChart:
    layers = [
        _cloud(shown, plane, color),
        *_means(designs.filter(pl.col("group") == _NEVER), plane, color, opacity=0.35),
        *_means(designs.filter(pl.col("group") != _NEVER), plane, color, opacity=1),
    ]
    return theme.layered(layers, *plane.size)


def _cloud_notes(designs: pl.DataFrame, total: int, shown: int, unplaced: int) -> list[str]:
    won = designs.filter(pl.col("won") > 0)
    always = won.filter(pl.col("won") == pl.col("seeds")).height
    winners = f"On the frontier with some seed: {counted(won.height, 'design')}; with every seed: {always:,}."
    return [
        winners if won.height else "",
        f"Shown: {shown:,} of {total:,} points, thinned evenly; means are of all." if shown < total else "",
        left_out(unplaced, "candidate", "without a value on both axes"),
    ]


def _designs(everyone: pl.DataFrame) -> pl.DataFrame:
    """Return a row per design: means, ends of the bars, how many of its seeds are on the frontier."""
    mean, deviation = pl.col("risk", "loss").mean(), pl.col("risk", "loss").std().fill_null(0).name.suffix("_sd")
    seeds, won = pl.len().alias("seeds"), pl.col("on_frontier").sum().alias("won")
    table = everyone.group_by("design").agg(mean, deviation, seeds, won)
    table = table.sort(pl.col("won") / pl.col("seeds"), "won", "design", descending=[True, True, False])
    return table.with_columns(
        left=pl.col("loss") - pl.col("loss_sd"),
        right=pl.col("loss") + pl.col("loss_sd"),
        low=pl.col("risk") - pl.col("risk_sd"),
        high=pl.col("risk") + pl.col("risk_sd"),
    )


def _grouped(designs: pl.DataFrame) -> pl.DataFrame:
    """Add the group that a design is coloured by."""
    own = pl.format("{} ({} of {})", "design", "won", "seeds")
    rank = pl.int_range(pl.len())
    group = (
        pl.when(pl.col("won") == 0).then(pl.lit(_NEVER)).when(rank < len(_OWN_HUES)).then(own).otherwise(pl.lit(_MORE))
    )
    return designs.with_columns(group=group)


def _up(everyone: pl.DataFrame, designs: pl.DataFrame) -> Range:
    return theme.extent([*everyone["risk"], *designs["low"], *designs["high"]])


def _color(designs: pl.DataFrame) -> alt.Color:
    found = designs.sort("loss")["group"].unique(maintain_order=True).to_list()
    own = [name for name in found if name not in (_MORE, _NEVER)]
    groups = [*own, *(name for name in (_MORE, _NEVER) if name in found)]
    hues = dict(zip(own, _OWN_HUES, strict=False)) | {_MORE: _DARK_GREY, _NEVER: GREY}
    legend = theme.legend(["Design", "(seeds on the frontier)"], symbolOpacity=1)
    return alt.Color("group:N", scale=alt.Scale(domain=groups, range=[hues[name] for name in groups]), legend=legend)


def _cloud(shown: pl.DataFrame, plane: Plane, color: alt.Color) -> alt.Chart:
    faint = alt.when(alt.datum.group == _NEVER).then(alt.value(0.15)).otherwise(alt.value(0.45))
    return (
        alt.Chart(inline(shown.select("design", "risk", "loss", "group")))
        .mark_point(filled=True, size=26, strokeWidth=0)
        .encode(x=plane.x("loss"), y=plane.y("risk"), color=color, opacity=faint)
        .encode(tooltip=tooltips("design:N", "risk:Q", "loss:Q"))
    )


def _means(designs: pl.DataFrame, plane: Plane, color: alt.Color, *, opacity: float) -> list[alt.Chart]:
    base = alt.Chart(inline(designs)).encode(color=color)
    across = base.mark_rule(strokeWidth=1.6, opacity=opacity)
    dots = base.mark_point(filled=True, size=75, stroke=INK, strokeWidth=0.7, opacity=opacity)
    tooltip = tooltips("design:N", "seeds:Q", "won:Q", "risk:Q", "risk_sd:Q", "loss:Q", "loss_sd:Q")
    return [
        across.encode(x=plane.x("left"), x2=alt.X2("right:Q"), y=plane.y("risk")),
        across.encode(x=plane.x("loss"), y=plane.y("low"), y2=alt.Y2("high:Q")),
        dots.encode(x=plane.x("loss"), y=plane.y("risk"), tooltip=tooltip),
    ]


_READING = (
    "Each point is a design before any draw: its epsilon to the right, the loss that is expected upwards. A smaller "
    "epsilon promises more. With a chance of its own for each stratum the same epsilon costs less, because small "
    "strata are left alone: next to nobody moves there, and what they show is published nearly as it is."
)
_MEANINGLESS = "Above an epsilon of about 5 the promise by itself rules out nothing that matters."


def epsilon_loss(curve: pl.DataFrame) -> alt.LayerChart:
    """Draw what each epsilon of a private swap costs, a line per design.

    `curve` is the frame of `theory.epsilon_curve`: `epsilon`, `loss`, `moved` (numbers; rows without a loss are left
    out and counted), `design` and `measure` (text).

    Example
    -------
    >>> import polars as pl
    >>> import quadrille as qd
    >>> curve = pl.DataFrame({"epsilon": [12.0, 10.0], "design": ["one chance"] * 2,
    ...     "moved": [0.1, 0.45], "loss": [0.0455, 0.1171], "measure": ["hellinger"] * 2})
    >>> picture = qd.chart.epsilon_loss(curve)
    >>> picture.to_dict()["title"]["text"]
    'What an epsilon costs: hellinger by epsilon, from 10 to 12'
    """
    columns: dict[str, Kind] = {"epsilon": "number", "design": "text", "moved": "number", "loss": "number"}
    points, lacking = prepared(curve, "epsilon_loss", {**columns, "measure": "text"}, "epsilon", "loss")
    measures = points["measure"].unique(maintain_order=True).to_list()
    if len(measures) > 1:
        raise InputError(f"The frame for epsilon_loss has {len(measures)} measures of loss. Draw one at a time.")
    designs = points["design"].unique(maintain_order=True).to_list()
    if len(designs) > len(HUES):
        raise InputError(f"epsilon_loss has {len(designs)} designs. At most {len(HUES)} can be told apart: draw fewer.")
    color, shape = theme.looks("design", designs, HUES, SHAPES, theme.legend())
    x = alt.X("epsilon:Q", title="epsilon, per record", scale=alt.Scale(zero=False, nice=True))
    y = alt.Y("loss:Q", title=f"{measures[0]}, predicted", scale=alt.Scale(zero=True))
    base = alt.Chart(inline(points.sort("design", "epsilon")))
    lines = base.mark_line(strokeWidth=2).encode(x=x, y=y, color=color)
    shown = tooltips("design:N", "epsilon:Q", "loss:Q", "moved:Q")
    dots = base.mark_point(filled=True, size=60, opacity=1).encode(x=x, y=y, color=color, shape=shape, tooltip=shown)
    low, high = (epsilon(float(end)) for end in (points["epsilon"].min(), points["epsilon"].max()))  # type: ignore[arg-type]
    title = f"What an epsilon costs: {measures[0]} by epsilon, from {low} to {high}"
    notes = [_MEANINGLESS, left_out(lacking, "design", "that cannot be predicted")]
    return theme.finish(theme.layered([lines, dots], WIDTH, HEIGHT), title, _READING, notes)
