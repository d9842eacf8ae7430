"""The seed cloud: how far a design's risk and loss depend on the seed."""

from __future__ import annotations

import altair as alt
import polars as pl

from quadrille.chart import theme
from quadrille.chart.n_rule import COMPANION, with_companion
from quadrille.chart.theme import GREY, HUES, INK, LOWER_PANEL, Figure, Plane
from quadrille.chart.tidy import Kind, checked, defined, inline, thinned
from quadrille.present.numbers import counted

_OWN = HUES[:6]
_DARK = "#4d4d4d"
_MORE, _NEVER = "other designs on the frontier", "designs never on it"
_READING = (
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
    everyone, left_out = defined(checked(points, "seed_cloud", columns), "seed_cloud", "risk", "loss")
    designs = _grouped(_designs(everyone))
    groups = designs.select("design", "group")
    everyone = everyone.join(groups, on="design", how="left", maintain_order="left")
    shown = thinned(everyone, keep=pl.col("on_frontier"))
    across = theme.extent([*everyone["loss"], *designs["left"], *designs["right"]])
    plane, color = Plane(risk, loss, across, _up(everyone, designs)), _color(designs)
    figure: Figure = _panel(shown, designs, plane, color)
    title = f"How much the seed matters: {counted(designs.height, 'design')}, {counted(everyone.height, 'candidate')}"
    notes = _notes(designs, everyone.height, shown.height, left_out)
    if companion is None:
        return theme.finish(figure, title, _READING, notes)
    known, unknown = defined(everyone.drop("risk"), "seed_cloud", COMPANION)
    known = known.rename({COMPANION: "risk"})
    below = _designs(known).join(groups, on="design", how="left", maintain_order="left")
    plane = Plane(companion, loss, across, _up(known, below), height=LOWER_PANEL)
    dots = shown.drop("risk").drop_nulls(COMPANION).rename({COMPANION: "risk"})
    notes += theme.told_below(companion, "designs", unknown)
    return theme.finish(alt.vconcat(figure, _panel(dots, below, plane, color), spacing=26), title, _READING, notes)


def _panel(shown: pl.DataFrame, designs: pl.DataFrame, plane: Plane, color: alt.Color) -> alt.LayerChart:
    layers = [
        _cloud(shown, plane, color),
        *_means(designs.filter(pl.col("group") == _NEVER), plane, color, opacity=0.35),
        *_means(designs.filter(pl.col("group") != _NEVER), plane, color, opacity=1),
    ]
    return theme.layered(layers, plane.width, plane.height)


def _notes(designs: pl.DataFrame, total: int, shown: int, left_out: int) -> list[str]:
    won = designs.filter(pl.col("won") > 0)
    always = won.filter(pl.col("won") == pl.col("seeds")).height
    notes: list[str] = []
    if won.height:
        notes.append(f"On the frontier with some seed: {counted(won.height, 'design')}; with every seed: {always:,}.")
    if shown < total:
        notes.append(f"Shown: {shown:,} of {total:,} points, thinned evenly; means are of all.")
    if left_out:
        notes.append(f"Left out: {counted(left_out, 'candidate')} without a value on both axes.")
    return notes


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
    group = pl.when(pl.col("won") == 0).then(pl.lit(_NEVER)).when(rank < len(_OWN)).then(own).otherwise(pl.lit(_MORE))
    return designs.with_columns(group=group)


def _up(everyone: pl.DataFrame, designs: pl.DataFrame) -> theme.Range:
    return theme.extent([*everyone["risk"], *designs["low"], *designs["high"]])


def _color(designs: pl.DataFrame) -> alt.Color:
    found = designs.sort("loss")["group"].unique(maintain_order=True).to_list()
    own = [name for name in found if name not in (_MORE, _NEVER)]
    groups = [*own, *(name for name in (_MORE, _NEVER) if name in found)]
    hues = dict(zip(own, _OWN, strict=False)) | {_MORE: _DARK, _NEVER: GREY}
    legend = alt.Legend(title=["Design", "(seeds on the frontier)"], symbolOpacity=1)
    return alt.Color("group:N", scale=alt.Scale(domain=groups, range=[hues[name] for name in groups]), legend=legend)


def _cloud(shown: pl.DataFrame, plane: Plane, color: alt.Color) -> alt.Chart:
    faint = alt.when(alt.datum.group == _NEVER).then(alt.value(0.15)).otherwise(alt.value(0.45))
    return (
        alt.Chart(inline(shown.select("design", "risk", "loss", "group")))
        .mark_point(filled=True, size=26, strokeWidth=0)
        .encode(
            x=plane.x("loss"),
            y=plane.y("risk"),
            color=color,
            opacity=faint,
            tooltip=["design:N", "risk:Q", "loss:Q"],
        )
    )


def _means(designs: pl.DataFrame, plane: Plane, color: alt.Color, *, opacity: float) -> list[alt.Chart]:
    base = alt.Chart(inline(designs)).encode(color=color)
    across = base.mark_rule(strokeWidth=1.6, opacity=opacity)
    dots = base.mark_point(filled=True, size=75, stroke=INK, strokeWidth=0.7, opacity=opacity)
    tooltip = ["design:N", "seeds:Q", "won:Q", "risk:Q", "risk_sd:Q", "loss:Q", "loss_sd:Q"]
    return [
        across.encode(x=plane.x("left"), x2="right:Q", y=plane.y("risk")),
        across.encode(x=plane.x("loss"), y=plane.y("low"), y2="high:Q"),
        dots.encode(x=plane.x("loss"), y=plane.y("risk"), tooltip=tooltip),
    ]
