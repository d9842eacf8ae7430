"""Runs: how the measures of one design vary over its seeds, a small chart per family of measures."""

from __future__ import annotations

import altair as alt
import polars as pl

from quadrille.chart import n_rule, theme
from quadrille.chart.theme import HUES, INK, SHAPES, WIDTH, left_out, tooltips
from quadrille.chart.tidy import Kind, checked, defined, inline
from quadrille.errors import InputError
from quadrille.present.numbers import counted, statistic

_HEIGHT = 150
_RUN = "run "
_MANY = 40
_TITLES = {
    "HD": "Distance of distributions (HD)",
    "pairwise": "Associations of pairs",
    "regression": "Regressions",
    "other": "Other measures",
}


def runs(table: pl.DataFrame, *, chosen: int | None = None) -> alt.VConcatChart:
    """Draw a chart per family of measures: runs across, and for each measure its value relative to its mean.

    `table` is that of `Study.runs`: a row per measure with `family`, `measure`, `better` (text) and a column "run N"
    (number; null where undefined, which is left out and counted) per run. Values are taken by size, without their
    sign, and divided by the mean over the runs, so that measures on different scales can share a chart: 1 is an
    average run. `chosen` is the number of the run to mark. With the n-rule (`small_cells`) among the measures,
    `exposed` must be there too.

    Example
    -------
    >>> import polars as pl
    >>> import quadrille as qd
    >>> table = pl.DataFrame({"family": ["associations"], "measure": ["r_ased"], "better": ["lower"],
    ...     "run 1": [0.05], "run 2": [0.04]})
    >>> picture = qd.chart.runs(table, chosen=2)
    >>> picture.to_dict()["title"]["text"]
    '2 runs that differ by seed only'
    """
    names = [name for name in table.columns if name.startswith(_RUN) and name.removeprefix(_RUN).isdecimal()]
    if not names:
        raise InputError("The frame for runs has no column 'run 1', nor of any other run. Make it with study.runs().")
    columns: dict[str, Kind] = {"family": "text", "measure": "text", "better": "text"}
    kept = checked(table, "runs", {**columns, **dict.fromkeys(names, "number")})
    order = sorted(names, key=lambda name: int(name.removeprefix(_RUN)))
    numbers = [name.removeprefix(_RUN) for name in order]
    if chosen is not None and str(chosen) not in numbers:
        raise InputError(f"The table has no run {chosen}. Choose one of its {len(numbers):,} runs.")
    long = kept.unpivot(order, index=list(columns), variable_name="run").with_columns(
        pl.col("run").str.strip_prefix(_RUN), pl.col("value").abs()
    )
    everything, undefined = defined(long, "runs", "value")
    n_rule.require_companions("runs", everything, of="table")
    points = _relative(everything)
    panels = [
        _panel(points.filter(pl.col("family") == family), family, numbers, chosen)
        for family in kept["family"].unique(maintain_order=True)
        if family in points["family"]
    ]
    if not panels:
        raise InputError("There is nothing to draw: every measure is 0 in every run.")
    own = alt.Resolve(scale=alt.ScaleResolveMap(color="independent", shape="independent"))
    figure = alt.vconcat(*panels, spacing=14, resolve=own)
    title = f"{counted(len(numbers), 'run')} that differ by seed only"
    zero = everything["measure"].n_unique() - points["measure"].n_unique()
    notes = [
        left_out(zero, "measure", f"that {'is' if zero == 1 else 'are'} 0 in every run"),
        left_out(undefined, "value", "not defined"),
    ]
    return theme.finish(figure, title, _reading(points, chosen), notes)


def _reading(points: pl.DataFrame, chosen: int | None) -> str:
    mark = f" The grey band marks run {chosen}, the chosen one." if chosen is not None else ""
    higher = points.filter(pl.col("better") == "higher")
    better = "lower is better, unless its name says otherwise" if higher.height else "lower is better"
    return (
        "Each point is a measure of one run, divided by its mean over the runs: 1 is an average run, "
        f"0.5 half of it; {better}. What one run has beyond the others is luck of the draw.{mark}"
    )


def _relative(everything: pl.DataFrame) -> pl.DataFrame:
    """Divide by the mean over the runs; the name in the legend says the mean and which way is better."""
    mean = pl.col("value").mean().over("measure")
    known = everything.with_columns(mean=mean).filter(pl.col("mean") > 0)
    names = [
        f"{measure} (mean {statistic(mean)}{', higher is better' if better == 'higher' else ''})"
        for measure, mean, better in known.select("measure", "mean", "better").iter_rows()
    ]
    return known.with_columns(pl.Series("name", names, dtype=pl.String), relative=pl.col("value") / pl.col("mean"))


def _panel(points: pl.DataFrame, family: str, runs: list[str], chosen: int | None) -> alt.LayerChart:
    angle = 0 if max(map(len, runs)) * 8 * len(runs) < WIDTH else -90
    axis = alt.Axis(labelAngle=angle, labelOverlap=True, ticks=False, grid=False)
    x = alt.X("run:N", title="run", sort=runs, scale=alt.Scale(domain=runs, padding=0.5), axis=axis)
    top = max([*points["relative"], 1.0])
    low = min([*points["relative"], 1.0])
    air = (top - low) * 0.08 or 0.1
    scale = theme.fixed((max(low - air, 0), top + air))
    y = alt.Y("relative:Q", title="value / mean", scale=scale, axis=alt.Axis(tickCount=4))
    layers = [*_band(x, len(runs), chosen), _average(), *_dots(points, x, y, dense=len(runs) > _MANY)]
    return theme.layered(layers, WIDTH, _HEIGHT, theme.heading(_TITLES.get(family, family)))


def _band(x: alt.X, count: int, chosen: int | None) -> list[alt.Chart]:
    if chosen is None:
        return []
    width = min(max(WIDTH / count * 0.8, 4), 26)
    bar = alt.Chart(inline(pl.DataFrame({"run": [str(chosen)]}))).mark_rule(
        color="#d9d9d9", strokeWidth=width, clip=True
    )
    return [bar.encode(x=x)]


def _average() -> alt.Chart:
    line = alt.Chart(inline(pl.DataFrame({"one": [1.0]}))).mark_rule(strokeDash=[5, 4], color=INK, opacity=0.6)
    return line.encode(y=alt.Y("one:Q"))


def _dots(points: pl.DataFrame, x: alt.X, y: alt.Y, *, dense: bool) -> list[alt.Chart]:
    names = points["name"].unique(maintain_order=True).to_list()
    color, shape = theme.looks("name", names, HUES, SHAPES, theme.legend(symbolOpacity=1))
    base = alt.Chart(inline(points.select("run", "measure", "name", "value", "relative")))
    dots = base.mark_point(filled=True, size=22 if dense else 60, opacity=0.85)
    tooltip = tooltips("run:N", "measure:N", "value:Q", "relative:Q")
    return [dots.encode(x=x, y=y, color=color, shape=shape, tooltip=tooltip)]
