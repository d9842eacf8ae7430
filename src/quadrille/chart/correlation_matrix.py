"""The correlation matrix: which metrics put replicates into the same order."""

from __future__ import annotations

import altair as alt
import polars as pl

from quadrille.chart import theme
from quadrille.chart.theme import INK
from quadrille.chart.tidy import checked, inline
from quadrille.errors import InputError

_STEP = 62
_EDGE, _UNDEFINED = "#e4e4e4", "#d5d5d5"
_DARK = 0.6
_STOPS = [-1.0, -0.5, 0.0, 0.5, 1.0]
_COLOURS = ["#08519c", "#6baed6", "#ffffff", "#fd8d3c", "#a63603"]


def correlation_matrix(pairs: pl.DataFrame) -> alt.LayerChart:
    """Draw a square matrix of metrics with their rank correlations, from -1 to 1.

    One row of `pairs` is a pair of metrics: `first`, `second` (text), `spearman` (number in [-1, 1]; null where a
    metric does not vary). A pair given in one order is drawn in both. Metrics keep the order they first appear in.

    Example
    -------
    >>> import polars as pl
    >>> import quadrille as qd
    >>> pairs = pl.DataFrame({"first": ["chi_square"], "second": ["deviance"], "spearman": [0.99]})
    >>> picture = qd.chart.correlation_matrix(pairs)
    >>> picture.to_dict()["title"]["text"]
    'Which metrics agree'
    """
    given = checked(pairs, "correlation_matrix", {"first": "text", "second": "text", "spearman": "number"})
    outside = given.filter(pl.col("spearman").abs() > 1 + 1e-9).height
    if outside:
        raise InputError(f"Column 'spearman' of the frame has {outside:,} values that are not in [-1, 1].")
    names = pl.concat([given["first"].rename("name"), given["second"].rename("name")]).unique(maintain_order=True)
    cells = _cells(given, names.to_list())
    reading = (
        "Each cell compares two metrics over all replicates by rank. 1: they order replicates alike, so that one of "
        "them will do; 0: they have nothing to do with each other; below 0: they contradict each other."
    )
    notes = ["A grey cell is undefined: a metric does not vary."] if cells["value"].is_null().any() else []
    return theme.finish(_matrix(cells, names.to_list()), "Which metrics agree", reading, notes)


def _cells(given: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Return both triangles and the diagonal, with the text of each cell and whether it must be light on dark."""
    one_way = given.rename({"spearman": "value"})
    other_way = one_way.select(first="second", second="first", value="value")
    same = pl.DataFrame({"first": names, "second": names, "value": [1.0] * len(names)})
    both = pl.concat([one_way, other_way, same]).unique(["first", "second"], keep="first", maintain_order=True)
    texts = ["–" if value is None else f"{value:.2f}".replace("-", "−") for value in both["value"]]
    return both.with_columns(
        pl.Series("text", texts, dtype=pl.String), dark=(pl.col("value").abs() > _DARK).fill_null(False)
    )


def _two_lines(name: str) -> list[str]:
    first, mark, rest = name.partition("_")
    return [first + mark, rest] if rest else [name]


def _matrix(cells: pl.DataFrame, names: list[str]) -> alt.LayerChart:
    lines = {name: _two_lines(name) for name in names}
    room = 6 + 14 * (max(map(len, lines.values())) - 1)
    above = alt.Axis(
        orient="top",
        labelExpr=f"({lines})[datum.value]",
        labelAngle=0,
        ticks=False,
        domain=False,
        labelPadding=room,
        labelLimit=120,
    )
    beside = alt.Axis(ticks=False, domain=False, labelLimit=220, labelPadding=6)
    x = alt.X("second:N", title=None, sort=names, scale=alt.Scale(domain=names), axis=above)
    y = alt.Y("first:N", title=None, sort=names, scale=alt.Scale(domain=names), axis=beside)
    scale = alt.Scale(domain=_STOPS, range=_COLOURS, interpolate="rgb")
    legend = alt.Legend(title=["Spearman", "correlation"], gradientLength=220, values=_STOPS)
    tooltip = ["first:N", "second:N", alt.Tooltip("value:Q", format=".3f")]
    known, unknown = cells.drop_nulls("value"), cells.filter(pl.col("value").is_null())
    squares = alt.Chart(inline(known)).mark_rect(stroke=_EDGE)
    blanks = alt.Chart(inline(unknown)).mark_rect(stroke=_EDGE, color=_UNDEFINED)
    ink = alt.when(alt.datum.dark).then(alt.value("white")).otherwise(alt.value(INK))
    numbers = alt.Chart(inline(cells.drop("value"))).mark_text(fontSize=13)
    layers = [
        squares.encode(x=x, y=y, color=alt.Color("value:Q", scale=scale, legend=legend), tooltip=tooltip),
        blanks.encode(x=x, y=y),
        numbers.encode(x=x, y=y, text="text:N", color=ink),
    ]
    return theme.layered(layers, int(1.5 * _STEP) * len(names), _STEP * len(names))
