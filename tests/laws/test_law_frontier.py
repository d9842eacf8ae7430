"""The frontier: no member is dominated, every other point is dominated by a member, whatever the order."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadrille.study.choose import dominated_by, knee, linear_winners, nearest_ideal, non_dominated
from quadrille.study.run import Front

COARSE = st.integers(0, 6).map(float)  # few distinct values, so that ties and duplicates abound
FINE = st.floats(0, 1, allow_nan=False)


@st.composite
def clouds(draw: st.DrawFn, least: int = 1) -> np.ndarray:
    size, objectives = draw(st.integers(least, 40)), draw(st.integers(2, 4))
    number = draw(st.sampled_from([COARSE, FINE]))
    return np.array(
        draw(st.lists(st.lists(number, min_size=objectives, max_size=objectives), min_size=size, max_size=size))
    )


def dominates(one: np.ndarray, other: np.ndarray) -> bool:
    return bool((one <= other).all() and (one < other).any())


@given(clouds())
def test_no_member_is_dominated_and_every_other_point_is_dominated_by_a_member(points: np.ndarray) -> None:
    front = non_dominated(points)
    members = points[front]
    assert len(members)
    for point, member in zip(points, front, strict=True):
        assert any(dominates(other, point) for other in members) != member


@given(clouds())
def test_counts_of_dominating_points_are_those_of_the_definition(points: np.ndarray) -> None:
    expected = [sum(dominates(other, point) for other in points) for point in points]
    assert dominated_by(points).tolist() == expected


@given(clouds(), st.randoms(use_true_random=False))
def test_order_and_duplicates_do_not_matter(points: np.ndarray, random: object) -> None:
    front = {tuple(p) for p in points[non_dominated(points)]}
    order = list(range(len(points)))
    random.shuffle(order)  # type: ignore[attr-defined]
    twice = np.concatenate((points[order], points[: len(points) // 2]))
    kept = non_dominated(twice)
    assert {tuple(p) for p in twice[kept]} == front
    assert [tuple(p) in front for p in twice] == kept.tolist()


@pytest.mark.parametrize("objectives", [2, 3])
def test_many_points_are_compared_with_all_others(objectives: int) -> None:
    """Points are compared in blocks; the two that dominate all others are in the first of three."""
    rest = np.random.default_rng(1).random((1_500, objectives)) + 1
    points = np.concatenate((rest, np.eye(objectives)[:2]))
    assert np.flatnonzero(non_dominated(points)).tolist() == [1_500, 1_501]
    assert (non_dominated(rest) == (dominated_by(rest) == 0)).all()


@given(clouds(), st.data())
def test_a_dominated_point_more_changes_nothing(points: np.ndarray, draw: st.DataObject) -> None:
    worse = points[draw.draw(st.integers(0, len(points) - 1))] + 0.5
    assert non_dominated(np.concatenate((points, worse[None]))).tolist() == [*non_dominated(points).tolist(), False]


@given(clouds())
def test_the_frontier_kept_up_to_date_is_the_frontier(points: np.ndarray) -> None:
    front = Front()
    for x, y in points[:, :2]:
        front.add(float(x), float(y))
    assert len(front) == len({tuple(p) for p in points[:, :2][non_dominated(points[:, :2])]})


@given(clouds(), st.floats(0, 50))
def test_the_linear_objective_is_won_by_the_one_its_range_names(points: np.ndarray, trade: float) -> None:
    risk, loss = points[:, 0], points[:, 1]
    winners = linear_winners(risk, loss)
    assert winners[0].low == 0
    assert winners[-1].high == np.inf
    assert all(one.high == other.low for one, other in pairwise(winners))
    (winner, *_) = [w for w in winners if w.low <= trade <= w.high]
    objective = risk + trade * loss
    assert objective[winner.point] == pytest.approx(objective.min(), abs=1e-9)


@given(clouds())
def test_knee_and_ideal_point_choose_from_the_frontier(points: np.ndarray) -> None:
    points = points[:, :2]
    front = non_dominated(points)
    assert front[knee(points)]
    assert front[nearest_ideal(points, np.array([1.0, 2.0]))]


def test_a_weight_multiplies_the_square_of_the_distance_to_the_ideal_point() -> None:
    points = np.array([[0.0, 1.0], [0.2, 0.9], [0.5, 0.6], [1.0, 0.0]])
    squares = {(1, 1): [1, 0.85, 0.61, 1], (4, 1): [1, 0.97, 1.36, 4], (9, 1): [1, 1.17, 2.61, 9]}
    for weights, square in squares.items():
        assert nearest_ideal(points, np.array(weights, dtype=float)) == np.argmin(square)


def test_the_knee_is_the_corner_of_an_elbow() -> None:
    assert knee(np.array([[0.0, 10.0], [1.0, 1.0], [10.0, 0.0], [5.0, 5.0]])) == 1
