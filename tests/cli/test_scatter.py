"""The frontier drawn in text."""

from __future__ import annotations

import numpy as np
import pytest

from quadrille.cli.study_show import CHOSEN, DOMINATED, FRONTIER, HEIGHT, WIDTH, scatter
from quadrille.study.choose import non_dominated

AXES = ("small_cells", "hellinger")


def drawn(points: list[tuple[float, float]], chosen: int | None = None) -> list[str]:
    array = np.array(points, dtype=np.float64).reshape(-1, 2)
    return scatter(array, non_dominated(array), AXES, chosen).splitlines()


def places(lines: list[str], mark: str) -> list[tuple[int, int]]:
    """Return line and column of every mark inside the frame."""
    body = [(number, line) for number, line in enumerate(lines) if "|" in line]
    return [
        (number, column)
        for number, line in body
        for column in range(line.index("|") + 1, len(line))
        if line[column] == mark
    ]


@pytest.mark.parametrize("count", [1, 2, 30, 5000])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e15])
def test_it_fits_70_columns_and_20_lines_of_ascii(count: int, scale: float) -> None:
    points = np.random.default_rng(count).random((count, 2)) * scale
    text = scatter(points, non_dominated(points), ("small_cells(" + "A*" * 80 + "B)", "h"), 0)
    assert text.isascii()
    assert len(text.splitlines()) <= HEIGHT == 20
    assert max(map(len, text.splitlines())) <= WIDTH == 70


def test_low_risk_is_at_the_bottom_and_low_loss_to_the_left() -> None:
    lines = drawn([(1.0, 5.0), (3.0, 2.0), (4.0, 6.0)], chosen=0)
    ((safe_line, safe_column),) = places(lines, CHOSEN)
    ((gentle_line, gentle_column),) = places(lines, FRONTIER)
    ((worse_line, worse_column),) = places(lines, DOMINATED)
    assert worse_line < gentle_line < safe_line
    assert gentle_column < safe_column < worse_column
    assert lines[0] == "small_cells" and lines[-1].strip() == "hellinger"
    assert lines[1].lstrip().startswith("4|") and "1|" in lines[-4]
    assert lines[-2].split() == ["2", "6"]


def test_the_corners_of_the_frame_hold_the_extremes() -> None:
    lines = drawn([(0.0, 1.0), (1.0, 0.0)])
    (top, left), (bottom, right) = places(lines, FRONTIER)
    assert (top, bottom) == (1, HEIGHT - 4)
    assert right == WIDTH - 1 and lines[1][left - 1] == "|"


def test_what_matters_more_is_drawn_over_what_matters_less() -> None:
    crowd = [(1.0, 1.0), *[(1.0 + 1e-9 * i, 1.0 + 1e-9 * i) for i in range(1, 20)], (2.0, 2.0)]
    assert len(places(drawn(crowd), FRONTIER)) == 1
    assert len(places(drawn(crowd), DOMINATED)) == 1
    assert places(drawn(crowd, chosen=0), FRONTIER) == []
    assert places(drawn(crowd, chosen=0), CHOSEN) == places(drawn(crowd), FRONTIER)


def test_far_away_points_do_not_crush_the_frontier() -> None:
    lines = drawn([(1.0, 2.0), (1.5, 1.5), (2.0, 1.0), (2.0, 2.0), (900.0, 1.5), (1.5, 900.0)])
    assert len(places(lines, FRONTIER)) == 3
    assert len(places(lines, DOMINATED)) == 1
    assert lines[-1].startswith("(2 dominated ones lie outside)")
    assert lines[-1].endswith("hellinger") and len(lines[-1]) == WIDTH


def test_points_without_spread_and_no_points_at_all_are_drawn() -> None:
    assert len(places(drawn([(2.0, 3.0)] * 4), FRONTIER)) == 1
    assert "no candidate" in drawn([])[0]
