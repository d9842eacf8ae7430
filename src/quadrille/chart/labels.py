"""Placing a label on a crowded chart: near its point, on nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

import altair as alt
import numpy as np
import polars as pl
from numpy.typing import NDArray

from quadrille.chart import theme
from quadrille.chart.theme import INK, inline

Place = tuple[float, float]

_ACROSS, _DOWN = 8.0, 6.0
_MARGIN, _HALF = 7.0, 14.0
_RING = 12.0
_NEAR = 26.0
_ABOVE = 60.0
_LEVEL = 7.0
_TRIED = 60


class Spot(NamedTuple):
    """Where a label ends on its right, in pixels, how wide it is, and the line that leads to it from its point."""

    x: float
    y: float
    width: float
    line: tuple[Place, Place]

    def covered(self) -> list[Place]:
        """Return places all along the label, for the next label to keep away from."""
        count = max(12, round(self.width / _ACROSS))
        return [(self.x - self.width * share, self.y) for share in np.linspace(0, 1, count).tolist()]

    def lead(self) -> list[Place]:
        """Return places all along its line, none where there is no line."""
        (x, y), (to_x, to_y) = self.line
        steps = np.linspace(0, 1, int(math.hypot(to_x - x, to_y - y) / _ACROSS) + 1)
        return (
            [] if self.line[0] == self.line[1] else [(x + s * (to_x - x), y + s * (to_y - y)) for s in steps.tolist()]
        )


def free_spots(
    labels: Sequence[tuple[Place, float]], taken: Sequence[Place], size: tuple[int, int], ring: float = 0.0
) -> list[Spot]:
    """Return a place for each label, (point, width): on no other label, on no ring of this radius around a point."""
    rings = [(x + dx, y + dy) for (x, y), _ in labels for dx in (-ring, 0, ring) for dy in (-ring, 0, ring)]
    taken, covered, found = list(taken), list[Place](), list[Spot]()
    for point, width in labels:
        spot = free_spot(point, width, taken, size, covered, rings)
        taken += spot.lead()
        covered += spot.covered()
        found.append(spot)
    return found


def free_spot(
    point: Place,
    width: float,
    taken: Sequence[Place],
    size: tuple[int, int],
    labels: Sequence[Place] = (),
    rings: Sequence[Place] = (),
) -> Spot:
    """Return the nearest free place for a label of this width; below its point rather than above, where points crowd.

    `taken` are the places to keep free, `size` the width and height of the chart; all in pixels from the top left.
    `labels` and `rings` are the places of other labels and of rings: where the chart is full, a label covers points
    sooner than these, and its line crosses no label where that can be helped.
    """
    rights = np.arange(width + _MARGIN, size[0] - 2, _ACROSS)
    downs = np.arange(_HALF, size[1] - _HALF / 2, _DOWN)
    down, right = np.meshgrid(downs, rights, indexing="ij")
    x, y = point
    gap = np.hypot(np.maximum(np.maximum(right - width - x, x - right), 0), down - y)
    cost = gap + np.where(down < y - _DOWN, _ABOVE, 0) + np.where(gap < _RING + 4, np.inf, 0)
    cost[_blocked(rights, downs, width, _array([*labels, *rings]))] = np.inf
    free = np.where(_blocked(rights, downs, width, _array(taken)), np.inf, cost)
    for costs, tried in ((free, _TRIED), (cost, _TRIED), (free, 1), (cost, 1)):
        for best in np.argsort(costs, axis=None, kind="stable")[:tried].tolist():
            if not np.isfinite(costs.flat[best]):
                break
            found = float(right.flat[best]), float(down.flat[best])
            spot = Spot(*found, width, _lead(point, found, width, float(gap.flat[best])))
            if tried == 1 or not _crosses(spot.lead(), labels):
                return spot
    return Spot(min(max(x, width + _MARGIN), float(size[0])), max(y - 2 * _HALF, _HALF), width, (point, point))


def _crosses(line: Sequence[Place], labels: Sequence[Place]) -> bool:
    """Tell whether a line comes near any place of a label."""
    apart = _array(line)[:, None, :] - _array(labels)[None, :, :]
    return bool((np.hypot(apart[..., 0], apart[..., 1]) < _LEVEL).any())


def _array(places: Sequence[Place]) -> NDArray[np.float64]:
    return np.array(places, dtype=np.float64).reshape(-1, 2)


def _blocked(
    rights: NDArray[np.float64], downs: NDArray[np.float64], width: float, taken: NDArray[np.float64]
) -> NDArray[np.bool_]:
    blocked = np.zeros((len(downs), len(rights)), dtype=np.bool_)
    for i, down in enumerate(downs):
        xs = np.sort(taken[np.abs(taken[:, 1] - down) < _HALF, 0])
        blocked[i] = np.searchsorted(xs, rights + _MARGIN) > np.searchsorted(xs, rights - width - _MARGIN)
    return blocked


def _lead(point: Place, end: Place, width: float, gap: float) -> tuple[Place, Place]:
    """Return the line from the ring around the point to the label; none where the label is near."""
    if gap < _NEAR:
        return point, point
    (x, y), (right, down) = point, end
    to = min(max(x, right - width), right), down + (0 if down == y else -10 if down > y else 10)
    length = float(np.hypot(to[0] - x, to[1] - y)) or 1.0
    return (x + (to[0] - x) / length * _RING, y + (to[1] - y) / length * _RING), to


def stairs(corners: Sequence[Place]) -> list[Place]:
    """Return places along a line of steps that runs level from each corner and then down to the next."""
    places: list[Place] = []
    for (x, y), (to_x, to_y) in pairwise(corners):
        places += [(along, y) for along in np.arange(x, to_x, _ACROSS).tolist()]
        places += [(to_x, along) for along in np.arange(y, to_y, _ACROSS).tolist()]
    return places


_TEXT = 11
_EDGE = 5.0


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
    named = [(text, area.pixels(x, y)) for text, x, y in points]
    spots = free_spots([(at, theme.text_width(text, _TEXT)) for text, at in named], taken, size)
    rows: list[dict[str, float | str]] = []
    for (text, at), spot in zip(named, spots, strict=True):
        row: dict[str, float | str] = {"text": text}
        for name, place in zip(("at", "from", "to"), ((spot.x, spot.y), *_lead_of_names(at, spot)), strict=True):
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
        lead.encode(x=area.x("from_x"), y=area.y("from_y"), x2=alt.X2("to_x:Q"), y2=alt.Y2("to_y:Q")),
        *(mark.encode(x=x, y=y, text=alt.Text("text:N")) for mark in (halo, name)),
    ]


def _lead_of_names(point: Place, spot: Spot) -> tuple[Place, Place]:
    """Return the line from the edge of a point to its name: where points crowd, nearness does not tell whose it is."""
    x, y = point
    to_x = min(max(x, spot.x - spot.width - 2), spot.x + 2)
    to_y = spot.y if abs(spot.y - y) < _LEVEL else spot.y - math.copysign(_LEVEL, spot.y - y)
    length = math.hypot(to_x - x, to_y - y) or 1.0
    share = min(_EDGE / length, 1.0)
    return (x + share * (to_x - x), y + share * (to_y - y)), (to_x, to_y)
