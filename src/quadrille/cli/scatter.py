"""The frontier drawn in text: risk upwards, loss to the right, so that the best corner is at the bottom left."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WIDTH = 70
HEIGHT = 20
BEYOND = 1.5
"""How far the picture goes on beyond the frontier, in spreads of the frontier."""
DOMINATED, FRONTIER, CHOSEN = ".", "o", "@"


def scatter(
    points: NDArray[np.float64], frontier: NDArray[np.bool_], axes: tuple[str, str], chosen: int | None = None
) -> str:
    """Draw candidates, one row of (risk, loss) each; returns at most 20 lines of at most 70 characters, in ASCII.

    frontier : which candidates are on the frontier; they are drawn over the dominated ones.
    chosen : the row of the candidate that is drawn over all others.
    """
    if not len(points):
        return "  (no candidate to draw)"
    import numpy as np

    low, high = points.min(axis=0), _limits(points, frontier)
    inside: NDArray[np.bool_] = np.all(points <= high, axis=1)
    labels = [f"{value:.4g}" for value in (high[0], low[0])]
    margin = max(map(len, labels)) + 1
    columns, rows = WIDTH - margin - 1, HEIGHT - 4
    down = rows - 1 - _steps(points[:, 0], low[0], high[0], rows)
    right = _steps(points[:, 1], low[1], high[1], columns)
    paper = [[" "] * columns for _ in range(rows)]
    for mark, drawn in ((DOMINATED, inside & ~frontier), (FRONTIER, frontier)):
        for row, column in set(zip(down[drawn].tolist(), right[drawn].tolist(), strict=True)):
            paper[row][column] = mark
    if chosen is not None and inside[chosen]:
        paper[int(down[chosen])][int(right[chosen])] = CHOSEN
    sides = [labels[0], *[""] * (rows - 2), labels[1]]
    body = [f"{side:>{margin}}|{''.join(line)}".rstrip() for side, line in zip(sides, paper, strict=True)]
    ends = f"{low[1]:.4g}", f"{high[1]:.4g}"
    scale = " " * (margin + 1) + ends[0] + f"{ends[1]:>{columns - len(ends[0])}}"
    outside = int(np.count_nonzero(~inside))
    left = f"({outside:,} dominated ones lie outside)" if outside else ""
    foot = left + _cut(axes[1], WIDTH - len(left) - 1).rjust(WIDTH - len(left))
    return "\n".join([_cut(axes[0], WIDTH), *body, " " * margin + "+" + "-" * columns, scale, foot])


def _limits(points: NDArray[np.float64], frontier: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return where the picture ends: with the last point, but not much beyond the frontier, which it is about."""
    import numpy as np

    last: NDArray[np.float64] = points.max(axis=0)
    end: NDArray[np.float64] = points[frontier].max(axis=0)
    spread: NDArray[np.float64] = end - points[frontier].min(axis=0)
    return np.where(spread > 0, np.minimum(last, end + BEYOND * spread), last)


def _steps(values: NDArray[np.float64], low: float, high: float, count: int) -> NDArray[np.int64]:
    """Return which of `count` equal steps each value falls on; all on the first when there is no spread."""
    import numpy as np

    spread = high - low
    share = (values - low) / spread if spread > 0 and np.isfinite(spread) else np.zeros(len(values))
    return np.minimum((share * count).astype(np.int64), count - 1)


def _cut(name: str, width: int) -> str:
    return name if len(name) <= width else name[: width - 3] + "..."
