"""Parameter effects: what each choice in a design does to each measure."""

from __future__ import annotations

import math

import altair as alt
import polars as pl

from quadrille.chart import n_rule, theme
from quadrille.chart.theme import HUES, INK, WIDTH
from quadrille.chart.tidy import checked, defined, inline, thinned
from quadrille.present.numbers import counted

_BAND = 24
_NARROWEST, _SPACE = 190, 20
_GOLDEN = (math.sqrt(5) - 1) / 2
_LABELS = 220


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
    kinds = checked(
        effects, "parameter_effects", {"parameter": "text", "level": "text", "measure": "text", "value": "number"}
    )
    everything, left_out = defined(kinds, "parameter_effects", "value")
    _refuse_the_n_rule_alone(everything)
    means = everything.group_by("parameter", "level", "measure", maintain_order=True).agg(
        pl.col("value").mean(), values=pl.len()
    )
    shown = thinned(_jittered(everything), keep=pl.lit(False))
    measures = means["measure"].unique(maintain_order=True).to_list()
    ranges = {name: theme.extent(everything.filter(pl.col("measure") == name)["value"]) for name in measures}
    margin = min(max(theme.text_width(level) for level in means["level"]), _LABELS)
    rows: list[alt.HConcatChart] = []
    for parameter in means["parameter"].unique(maintain_order=True):
        here = pl.col("parameter") == parameter
        title = alt.TitleParams(text=parameter, anchor="start", fontSize=14, offset=2)
        panels = _panels(shown.filter(here), means.filter(here), ranges, margin)
        rows.append(alt.hconcat(*panels, spacing=_SPACE, title=title))
    notes = [f"Shown: {shown.height:,} of {everything.height:,} points, thinned evenly; means are of all."]
    notes = notes if shown.height < everything.height else []
    if left_out:
        notes.append(f"Left out: {counted(left_out, 'value')} that are undefined.")
    reading = (
        "Each point is a candidate release, each bar the mean of its strip. Bars far apart: the choice "
        "matters. Strips as wide as the distance between bars: it hardly does."
    )
    figure = alt.vconcat(*rows, spacing=22)
    return theme.finish(figure, "What each parameter does to risk and loss", reading, notes)


def _refuse_the_n_rule_alone(everything: pl.DataFrame) -> None:
    for (parameter,), here in everything.group_by("parameter", maintain_order=True):
        for rule, want in n_rule.missing(here["measure"].unique(maintain_order=True)).items():
            lack = f"Column 'measure' of the frame has no {want!r} with a value for the parameter {parameter!r}."
            raise n_rule.refusal("parameter_effects", rule, lack)


def _jittered(everything: pl.DataFrame) -> pl.DataFrame:
    """Spread the points of a strip over its band: by their rank and the golden ratio, not by chance."""
    strip = ("parameter", "level", "measure")
    rank = pl.int_range(pl.len()).over(*strip)
    return everything.sort(*strip, "value").with_columns(jitter=(rank * _GOLDEN) % 1.0 * 2 - 1)


def _panels(
    shown: pl.DataFrame, means: pl.DataFrame, ranges: dict[str, theme.Range], margin: float
) -> list[alt.LayerChart]:
    """Return the strips of one parameter, a panel per measure; only the first one names the levels."""
    levels = means["level"].unique(maintain_order=True).to_list()
    width = max(_NARROWEST, (WIDTH - _SPACE * (len(ranges) - 1)) // len(ranges))
    names = alt.Axis(minExtent=margin + 10, labelLimit=_LABELS, ticks=False, grid=False)
    panels: list[alt.LayerChart] = []
    for measure, domain in ranges.items():
        here = pl.col("measure") == measure
        axis = alt.Axis(format=theme.number_format(measure), tickCount=5, labelOverlap=True, labelSeparation=8)
        x = alt.X("value:Q", title=measure, scale=theme.fixed(domain), axis=axis)
        y = alt.Y("level:N", title=None, scale=alt.Scale(domain=levels), axis=None if panels else names)
        strips = _strips(shown.filter(here), means.filter(here), x, y)
        panels.append(theme.layered(strips, width, _BAND * len(levels)))
    return panels


def _strips(shown: pl.DataFrame, means: pl.DataFrame, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    spread = alt.YOffset("jitter:Q", scale=alt.Scale(domain=[-1.5, 1.5]))
    points = alt.Chart(inline(shown.select("level", "value", "jitter")))
    middle = alt.Chart(inline(means.select("level", "value", "values")))
    dots = points.mark_point(filled=True, size=16, opacity=0.4, color=HUES[0], strokeWidth=0)
    bars = middle.mark_tick(color=INK, opacity=1, thickness=3, size=_BAND * 0.8)
    return [dots.encode(x=x, y=y, yOffset=spread), bars.encode(x=x, y=y, tooltip=["level:N", "value:Q", "values:Q"])]
