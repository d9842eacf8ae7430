"""Names beside points: where the text covers no other point, with a line from each point to its name."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Protocol

import altair as alt
import polars as pl

from quadrille.chart import theme
from quadrille.chart.labels import Place, Spot, free_spot
from quadrille.chart.theme import INK
from quadrille.chart.tidy import inline

_TEXT = 11
_EDGE, _LEVEL = 5.0, 7.0


class Area(Protocol):
    """A pair of axes that knows the place of a point, in pixels from its top left corner, and back."""

    def x(self, field: str) -> alt.X: ...  # noqa: D102
    def y(self, field: str) -> alt.Y: ...  # noqa: D102
    def pixels(self, x: float, y: float, /) -> Place: ...  # noqa: D102
    def values(self, x: float, y: float, /) -> Place: ...  # noqa: D102


def names(
    points: Iterable[tuple[str, float, float]], taken: Sequence[Place], area: Area, size: tuple[int, int]
) -> list[alt.Chart]:
    """Return the layers that name some points, (text, x, y) each; `taken` are the places to keep free, in pixels."""
    taken = list(taken)
    rows: list[dict[str, float | str]] = []
    for text, x, y in points:
        at = area.pixels(x, y)
        spot = free_spot(at, theme.text_width(text, _TEXT), taken, size)
        taken += spot.covered()
        row: dict[str, float | str] = {"text": text}
        for name, place in zip(("at", "from", "to"), ((spot.x, spot.y), *_lead(at, spot)), strict=True):
            row[f"{name}_x"], row[f"{name}_y"] = area.values(*place)
        rows.append(row)
    if not rows:
        return []
    base = alt.Chart(inline(pl.DataFrame(rows)))
    lead = base.mark_rule(color=INK, strokeWidth=0.8, opacity=0.6)
    halo = base.mark_text(fontSize=_TEXT, align="right", stroke="white", strokeWidth=3)
    name = base.mark_text(fontSize=_TEXT, align="right", color=INK)
    x, y = area.x("at_x"), area.y("at_y")
    return [
        lead.encode(x=area.x("from_x"), y=area.y("from_y"), x2="to_x:Q", y2="to_y:Q"),
        *(mark.encode(x=x, y=y, text="text:N") for mark in (halo, name)),
    ]


def _lead(point: Place, spot: Spot) -> tuple[Place, Place]:
    """Return the line from the edge of a point to its name: where points crowd, nearness does not tell whose it is."""
    x, y = point
    to_x = min(max(x, spot.x - spot.width - 2), spot.x + 2)
    to_y = spot.y if abs(spot.y - y) < _LEVEL else spot.y - math.copysign(_LEVEL, spot.y - y)
    length = math.hypot(to_x - x, to_y - y) or 1.0
    share = min(_EDGE / length, 1.0)
    return (x + share * (to_x - x), y + share * (to_y - y)), (to_x, to_y)
