"""What each choice does to each measure, a small chart per measure: by level of a factor, parameter, rate and seed."""

from __future__ import annotations

import math
from collections.abc import Callable

import altair as alt
import polars as pl

from quadrille.chart import cell_sizes, theme
from quadrille.chart.theme import (
    AXIS,
    HUES,
    INK,
    SHAPES,
    WIDTH,
    Kind,
    checked,
    defined,
    inline,
    left_out,
    prepared,
    thinned,
    tooltips,
)
from quadrille.errors import InputError
from quadrille.present.numbers import counted, statistic

At = Callable[[str], alt.X]
"""Puts a column on the axis of a panel."""
_BAND, _LABELS = 22, 260
_PANEL, _SPACE, _ACROSS = 300, 26, 3


def _panels(
    rows: pl.DataFrame, ends: tuple[str, str], draw: Callable[[pl.DataFrame, At, alt.Y], list[alt.Chart]]
) -> alt.VConcatChart:
    """Lay out a panel per metric, three in a line; only the first of a line names the levels.

    `rows` have `metric`, `label` and the columns that `draw` needs; `ends` are the columns of the outermost marks.
    """
    labels = rows["label"].unique(maintain_order=True).to_list()
    margin = min(max(theme.text_width(label) for label in labels), _LABELS)
    names = alt.Axis(minExtent=margin + 10, labelLimit=_LABELS, ticks=False, grid=True)
    bare = alt.Axis(labels=False, ticks=False, domain=False, grid=True)
    metrics = rows["metric"].unique(maintain_order=True).to_list()
    size = _PANEL if len(metrics) > 1 else 2 * _PANEL, _BAND * len(labels)

    def panel(metric: str, named: alt.Axis) -> alt.LayerChart:
        here = rows.filter(pl.col("metric") == metric)
        domain = theme.extent([0.0, *here[ends[0]], *here[ends[1]]])
        form = ",.5~g" if max(map(abs, domain)) >= 1e-5 else ".3~e"
        axis = alt.Axis(tickCount=4, labelOverlap=True, labelSeparation=8, format=form)
        y = alt.Y("label:N", title=None, sort=labels, scale=alt.Scale(domain=labels), axis=named)

        def at(field: str) -> alt.X:
            return alt.X(f"{field}:Q", title=metric, scale=theme.fixed(domain), axis=axis)

        return theme.layered(draw(here, at, y), *size)

    panels = [panel(metric, bare if i % _ACROSS else names) for i, metric in enumerate(metrics)]
    lines = (panels[start : start + _ACROSS] for start in range(0, len(panels), _ACROSS))
    return alt.vconcat(*(alt.hconcat(*line, spacing=_SPACE, bounds="flush") for line in lines), spacing=_SPACE)


def _labelled(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the label of a row: factor and level."""
    return rows.with_columns(
        label=pl.when(pl.col("level") == "").then(pl.col("factor")).otherwise(pl.col("factor") + ": " + pl.col("level"))
    )


def _zero(at: At, width: float) -> alt.Chart:
    line = alt.Chart(inline(pl.DataFrame({"value": [0.0]}))).mark_rule(color=AXIS, strokeWidth=width)
    return line.encode(x=at("value"))


_TERM: dict[str, Kind] = {"metric": "text", "factor": "text", "level": "text"}
_NUMBERS = ("mean", "p5", "p25", "median", "p75", "p95")


def factor_distributions(summary: pl.DataFrame) -> alt.VConcatChart:
    """Draw a panel per metric: a thin bar from the 5th to the 95th percentile, a thick one over the middle half.

    One row of `summary` is a level of a factor: `metric`, `factor`, `level` (text), `mean`, `p5`, `p25`, `median`,
    `p75`, `p95` (numbers). The level of all replicates together has an empty text.

    Example
    -------
    >>> import polars as pl
    >>> import quadrille as qd
    >>> summary = pl.DataFrame({"metric": ["chi_square"] * 2, "factor": ["rate"] * 2, "level": ["1 %", "5 %"],
    ...     "mean": [5.0, 25.0], "p5": [1.0, 9.0], "p25": [3.0, 16.0], "median": [5.0, 24.0], "p75": [7.0, 33.0],
    ...     "p95": [9.0, 44.0]})
    >>> picture = qd.chart.factor_distributions(summary)
    >>> picture.to_dict()["title"]["text"]
    'How the metrics spread, by factor'
    """
    columns: dict[str, Kind] = {**_TERM, **dict.fromkeys(_NUMBERS, "number")}
    rows, _ = prepared(summary, "factor_distributions", columns, *_NUMBERS)
    reading = (
        "Each line is all replicates with that level: thin from the 5th to the 95th percentile, thick over the middle "
        "half, white mark the median, diamond the mean. Lines of one factor that lie apart: it matters by itself. "
        "Lines that cover each other: other factors or chance matter more."
    )
    return theme.finish(_panels(_labelled(rows), ("p5", "p95"), _bars), "How the metrics spread, by factor", reading)


def _bars(here: pl.DataFrame, at: At, y: alt.Y) -> list[alt.Chart]:
    base = alt.Chart(inline(here.select("label", *_NUMBERS)))

    tooltip = tooltips("label:N", *(f"{name}:Q" for name in _NUMBERS))
    return [
        _zero(at, 1),
        base.mark_rule(color=HUES[0], strokeWidth=2).encode(x=at("p5"), x2=alt.X2("p95:Q"), y=y, tooltip=tooltip),
        base.mark_rule(color=HUES[0], strokeWidth=9).encode(x=at("p25"), x2=alt.X2("p75:Q"), y=y, tooltip=tooltip),
        base.mark_tick(color="white", opacity=1, thickness=2, size=9).encode(x=at("median"), y=y),
        base.mark_point(
            shape="diamond", filled=True, size=55, color=HUES[1], opacity=1, stroke=INK, strokeWidth=0.7
        ).encode(x=at("mean"), y=y, tooltip=tooltip),
    ]


_INTERCEPT = "intercept"


def factor_effects(effects: pl.DataFrame) -> alt.VConcatChart:
    """Draw a panel per metric: a dot per level at its effect, with its 95 % interval, and a line at 0.

    One row of `effects` is a term of a main-effects model: `metric`, `factor`, `level` (text), `effect`, `low`, `high`
    (numbers; a term without an interval is drawn without one). The intercept is left out. A level that is missing for
    a metric was not selected, and has no dot there.

    Example
    -------
    >>> import polars as pl
    >>> import quadrille as qd
    >>> effects = pl.DataFrame({"metric": ["chi_square"] * 2, "factor": ["rate"] * 2, "level": ["3 %", "5 %"],
    ...     "effect": [9.8, 19.7], "low": [9.6, 19.5], "high": [10.0, 19.9]})
    >>> picture = qd.chart.factor_effects(effects)
    >>> picture.to_dict()["title"]["text"]
    'What each factor does to each metric'
    """
    known = checked(effects, "factor_effects", {**_TERM, "effect": "number", "low": "number", "high": "number"})
    terms, _ = defined(known.filter(pl.col("factor") != _INTERCEPT), "factor_effects", "effect")
    rows = _labelled(terms).with_columns(
        value="effect", low=pl.col("low").fill_null(pl.col("effect")), high=pl.col("high").fill_null(pl.col("effect"))
    )
    possible = rows["label"].n_unique() * known["metric"].n_unique()
    missing = possible - rows.height
    notes = [f"No dot: {counted(missing, 'effect')} that the selection left out." if missing > 0 else ""]
    reading = (
        "Each dot says by how much a level changes the metric against the baseline of its factor, the other factors "
        "being equal; its bar is the 95 % interval, often narrower than the dot. On the line at 0: no effect. Compare "
        "dots within a panel, not across panels: each metric has its own scale."
    )
    return theme.finish(_panels(rows, ("low", "high"), _dots), "What each factor does to each metric", reading, notes)


def _dots(here: pl.DataFrame, at: At, y: alt.Y) -> list[alt.Chart]:
    base = alt.Chart(inline(here.select("label", "value", "low", "high")))
    return [
        _zero(at, 1.2),
        base.mark_rule(color=HUES[0], strokeWidth=3).encode(x=at("low"), x2=alt.X2("high:Q"), y=y),
        base.mark_point(filled=True, size=60, color=HUES[0], opacity=1).encode(
            x=at("value"), y=y, tooltip=tooltips("label:N", "value:Q", "low:Q", "high:Q")
        ),
    ]


_STRIP, _LEVELS = 24, 220
_NARROWEST, _GAP = 190, 20
_GOLDEN = (math.sqrt(5) - 1) / 2


def parameter_effects(effects: pl.DataFrame) -> alt.VConcatChart:
    """Draw small multiples: a row per parameter, a column per measure, a strip of points per level, and its mean.

    One row of `effects` is one value of one candidate: `parameter`, `level`, `measure` (text), `value` (number; rows
    without one are left out and counted). Parameters, levels and measures keep the order they first appear in. With
    the n-rule (`small_cells`) among the measures, `exposed` must be there too, for every parameter.

    Above 5,000 values the points are thinned; means are always of all values.

    Example
    -------
    >>> import polars as pl
    >>> import quadrille as qd
    >>> effects = pl.DataFrame({"parameter": ["rate"] * 3, "level": ["1 %", "5 %", "5 %"], "measure": ["hellinger"] * 3,
    ...     "value": [0.017, 0.041, 0.043]})
    >>> picture = qd.chart.parameter_effects(effects)
    >>> picture.to_dict()["title"]["text"]
    'What each parameter does to risk and loss'
    """
    columns: dict[str, Kind] = {"parameter": "text", "level": "text", "measure": "text", "value": "number"}
    everything, undefined = prepared(effects, "parameter_effects", columns, "value")
    for (parameter,), here in everything.group_by("parameter", maintain_order=True):
        cell_sizes.require_companions("parameter_effects", here, where=f" for the parameter {parameter!r}")
    means = everything.group_by("parameter", "level", "measure", maintain_order=True).agg(
        pl.col("value").mean(), values=pl.len()
    )
    shown = thinned(_jittered(everything), keep=pl.lit(False))
    measures = means["measure"].unique(maintain_order=True).to_list()
    ranges = {name: theme.extent(everything.filter(pl.col("measure") == name)["value"]) for name in measures}
    margin = min(max(theme.text_width(level) for level in means["level"]), _LEVELS)
    rows: list[alt.HConcatChart] = []
    for parameter in means["parameter"].unique(maintain_order=True):
        here = pl.col("parameter") == parameter
        panels = _strip_panels(shown.filter(here), means.filter(here), ranges, margin)
        rows.append(alt.hconcat(*panels, spacing=_GAP, title=theme.heading(parameter, offset=2)))
    thin = f"Shown: {shown.height:,} of {everything.height:,} points, thinned evenly; means are of all."
    notes = [thin if shown.height < everything.height else "", left_out(undefined, "value", "that are undefined")]
    reading = (
        "Each point is a candidate release, each bar the mean of its strip. Bars far apart: the choice "
        "matters. Strips as wide as the distance between bars: it hardly does."
    )
    figure = alt.vconcat(*rows, spacing=22)
    return theme.finish(figure, "What each parameter does to risk and loss", reading, notes)


def _jittered(everything: pl.DataFrame) -> pl.DataFrame:
    """Spread the points of a strip over its band: by their rank and the golden ratio, not by chance."""
    strip = ("parameter", "level", "measure")
    rank = pl.int_range(pl.len()).over(*strip)
    return everything.sort(*strip, "value").with_columns(jitter=(rank * _GOLDEN) % 1.0 * 2 - 1)


def _strip_panels(
    shown: pl.DataFrame, means: pl.DataFrame, ranges: dict[str, theme.Range], margin: float
) -> list[alt.LayerChart]:
    """Return the strips of one parameter, a panel per measure; only the first one names the levels."""
    levels = means["level"].unique(maintain_order=True).to_list()
    width = max(_NARROWEST, (WIDTH - _GAP * (len(ranges) - 1)) // len(ranges))
    names = alt.Axis(minExtent=margin + 10, labelLimit=_LEVELS, ticks=False, grid=False)
    panels: list[alt.LayerChart] = []
    for measure, domain in ranges.items():
        here = pl.col("measure") == measure
        axis = alt.Axis(format=theme.number_format(measure), tickCount=5, labelOverlap=True, labelSeparation=8)
        x = alt.X("value:Q", title=measure, scale=theme.fixed(domain), axis=axis)
        y = alt.Y("level:N", title=None, scale=alt.Scale(domain=levels), axis=None if panels else names)
        strips = _strips(shown.filter(here), means.filter(here), x, y)
        panels.append(theme.layered(strips, width, _STRIP * len(levels)))
    return panels


def _strips(shown: pl.DataFrame, means: pl.DataFrame, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    spread = alt.YOffset("jitter:Q", scale=alt.Scale(domain=[-1.5, 1.5]))
    points = alt.Chart(inline(shown.select("level", "value", "jitter")))
    middle = alt.Chart(inline(means.select("level", "value", "values")))
    dots = points.mark_point(filled=True, size=16, opacity=0.4, color=HUES[0], strokeWidth=0)
    bars = middle.mark_tick(color=INK, opacity=1, thickness=3, size=_STRIP * 0.8)
    return [
        dots.encode(x=x, y=y, yOffset=spread),
        bars.encode(x=x, y=y, tooltip=tooltips("level:N", "value:Q", "values:Q")),
    ]


_RATES_SIZE = 250, 150


def metrics_by_rate(scores: pl.DataFrame) -> alt.VConcatChart:
    """Draw a panel per measure: rate across, value up, a point per run, a line through the means.

    One row of `scores` is a value of a run, as in `score_recipes(...).runs`: `rate` (share of the records that take
    part), `measure` (text), `value` (number; rows without one are left out and counted). Measures keep the order
    they first appear in. With the n-rule (`small_cells`) among the measures, `exposed` must be there too.

    Example
    -------
    >>> import polars as pl
    >>> import quadrille as qd
    >>> scores = pl.DataFrame({"rate": [0.01, 0.01, 0.05], "measure": ["hellinger"] * 3, "value": [0.02, 0.02, 0.04]})
    >>> picture = qd.chart.metrics_by_rate(scores)
    >>> picture.to_dict()["title"]["text"]
    'The measures against the rate of swapping'
    """
    columns: dict[str, Kind] = {"rate": "number", "measure": "text", "value": "number"}
    everything, unknown = prepared(scores, "metrics_by_rate", columns, "rate", "value")
    measures = everything["measure"].unique(maintain_order=True).to_list()
    cell_sizes.require_companions("metrics_by_rate", everything)
    means = everything.group_by("measure", "rate", maintain_order=True).agg(pl.col("value").mean(), runs=pl.len())
    shown = thinned(everything, keep=pl.lit(False))
    rates = theme.extent(everything["rate"], margin=0.06)
    panels = [_rate_panel(shown, means, name, rates) for name in measures]
    reading = (
        "Each point is a run, each black dot the mean of the runs at a rate. A line that keeps moving away from "
        "zero: the measure tells how much was swapped. Points scattered around zero: it does not."
    )
    thin = f"Shown: {shown.height:,} of {everything.height:,} points; means are of all."
    alike = "The differences of diversity are negative where areas become more alike: larger is not more perturbed."
    notes = [
        thin if shown.height < everything.height else "",
        alike if any(map(theme.is_diversity, measures)) else "",
        left_out(unknown, "value", "undefined or infinite"),
    ]
    title = "The measures against the rate of swapping"
    return theme.finish(theme.in_rows(panels, _ACROSS, 22, 20), title, reading, notes)


def _rate_panel(shown: pl.DataFrame, means: pl.DataFrame, measure: str, rates: theme.Range) -> alt.LayerChart:
    here = pl.col("measure") == measure
    points, middle = shown.filter(here), means.filter(here).sort("rate")
    low, high = theme.extent([*points["value"], *middle["value"], 0.0], margin=0.08)
    axis = alt.Axis(tickCount=4, format=theme.number_format(measure) or ",.6~g", minExtent=46)
    x = alt.X("rate:Q", title="rate", scale=theme.fixed(rates), axis=alt.Axis(format="~%", tickCount=5, grid=False))
    y = alt.Y("value:Q", title=None, scale=theme.fixed((low, high)), axis=axis)
    dots = alt.Chart(inline(points.select("rate", "value")))
    line = alt.Chart(inline(middle.select("rate", "value", "runs")))
    zero = alt.Chart(inline(pl.DataFrame({"zero": [0.0]}))).mark_rule(color=INK, opacity=0.5, strokeDash=[4, 3])
    layers = [
        *([zero.encode(y=alt.Y("zero:Q"))] if low < 0 < high else []),
        dots.mark_point(filled=True, size=26, opacity=0.45, color=HUES[0], strokeWidth=0).encode(x=x, y=y),
        line.mark_line(color=INK, strokeWidth=1.5).encode(x=x, y=y),
        line.mark_point(filled=True, color=INK, opacity=1, size=34).encode(
            x=x, y=y, tooltip=tooltips("rate:Q", "value:Q", "runs:Q")
        ),
    ]
    return theme.layered(layers, *_RATES_SIZE, theme.heading(measure, frame="group", fontSize=13, limit=_RATES_SIZE[0]))


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
    cell_sizes.require_companions("runs", everything, of="table")
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
    layers = [*_band(x, len(runs), chosen), _average(), *_run_dots(points, x, y, dense=len(runs) > _MANY)]
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


def _run_dots(points: pl.DataFrame, x: alt.X, y: alt.Y, *, dense: bool) -> list[alt.Chart]:
    names = points["name"].unique(maintain_order=True).to_list()
    color, shape = theme.looks("name", names, HUES, SHAPES, theme.legend(symbolOpacity=1))
    base = alt.Chart(inline(points.select("run", "measure", "name", "value", "relative")))
    dots = base.mark_point(filled=True, size=22 if dense else 60, opacity=0.85)
    tooltip = tooltips("run:N", "measure:N", "value:Q", "relative:Q")
    return [dots.encode(x=x, y=y, color=color, shape=shape, tooltip=tooltip)]
