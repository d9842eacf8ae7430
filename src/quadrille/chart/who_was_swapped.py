"""Who was swapped: the share of records that took part, by the size of the cell they came from."""

from __future__ import annotations

import altair as alt
import polars as pl

from quadrille.chart import theme
from quadrille.chart.theme import HUES, INK, WIDTH
from quadrille.chart.tidy import checked, defined, inline
from quadrille.present.numbers import count, share

_HEIGHT = 360


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
    columns = checked(
        groups, "who_was_swapped", {"size": "text", "order": "number", "swapped": "number", "records": "number"}
    )
    frame, _ = defined(columns.sort("order", maintain_order=True), "who_was_swapped", "swapped", "records")
    shares, records = frame["swapped"].to_list(), frame["records"].to_list()
    overall = sum(part * number for part, number in zip(shares, records, strict=True)) / (sum(records) or 1)
    frame = frame.with_columns(
        below=pl.Series([f"{count(number)} records" for number in records]), text=pl.Series(map(share, shares))
    )
    top = max(*shares, overall) or 1.0
    figure = theme.layered([*_bars(frame, top), *_line(overall, top)], WIDTH, _HEIGHT)
    reading = (
        "Each bar is the share of records swapped among those from cells of one size. "
        "Bars that fall from left to right: the swap reaches the records most at risk. Equal bars: it is blind to risk."
    )
    return theme.finish(figure, "Who was swapped, by the size of the cell they came from", reading)


def _share_axis(field: str, top: float) -> alt.Y:
    axis = alt.Axis(format="%", tickCount=6)
    return alt.Y(f"{field}:Q", title="share of records swapped", scale=theme.fixed((0, top * 1.15)), axis=axis)


def _bars(frame: pl.DataFrame, top: float) -> list[alt.Chart]:
    x = alt.X(
        "size:N",
        title="records in the cell before the swap",
        sort=frame["size"].to_list(),
        axis=alt.Axis(labelAngle=0, ticks=False, labelFontSize=13, titlePadding=32),
        scale=alt.Scale(paddingInner=0.3, paddingOuter=0.2),
    )
    base = alt.Chart(inline(frame)).encode(x=x, y=_share_axis("swapped", top))
    tooltip = ["size:N", alt.Tooltip("swapped:Q", format=theme.SHARE), alt.Tooltip("records:Q", format=",")]
    return [
        base.mark_bar(color=HUES[0]).encode(tooltip=tooltip),
        base.mark_text(dy=-9, fontSize=13, fontWeight="bold", color=INK).encode(text="text:N"),
        base.mark_text(dy=27, fontSize=12, color="#555555").encode(y=alt.value(_HEIGHT), text="below:N"),
    ]


def _line(overall: float, top: float) -> list[alt.Chart]:
    base = alt.Chart(inline(pl.DataFrame({"share": [overall], "text": [f"all: {share(overall)}"]})))
    y = _share_axis("share", top)
    return [
        base.mark_rule(strokeDash=[6, 4], color=INK, strokeWidth=1.3).encode(y=y),
        base.mark_text(color=INK, align="left", dx=6, fontSize=12).encode(y=y, x=alt.value(WIDTH), text="text:N"),
    ]
