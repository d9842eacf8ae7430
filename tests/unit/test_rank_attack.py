"""The intersection of rank windows: by hand, against all pairs of rows, and the printed table of generated files."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quadrille as qd
from effort import examples
from quadrille.attack import linkage
from quadrille.attack.linkage import rank_intersection, rank_section
from quadrille.errors import InputError, ParameterError

Columns = list[np.ndarray]


def rank_swapped(values: np.ndarray, width: int, generator: np.random.Generator) -> np.ndarray:
    """Exchange each value with one at most `width` ranks above it, in order of rank."""
    ranked = np.flatnonzero(~np.isnan(values))
    order = ranked[np.lexsort((generator.random(len(ranked)), values[ranked]))]
    out, free = values.copy(), np.ones(len(order), dtype=bool)
    for i in range(len(order)):
        partners = i + 1 + np.flatnonzero(free[i + 1 : i + 1 + width])
        if free[i] and len(partners):
            j = generator.choice(partners)
            out[order[i]], out[order[j]] = values[order[j]], values[order[i]]
            free[j] = False
    return out


def normals(n: int, variables: int, seed: int) -> Columns:
    generator = np.random.default_rng(seed)
    common = generator.normal(size=n)
    return [0.3**0.5 * common + 0.7**0.5 * generator.normal(size=n) for _ in range(variables)]


@pytest.mark.parametrize(
    ("variables", "window", "single", "linked"),
    [
        (2, 0.05, 0, 0.105),
        (4, 0.05, 0.881, 0.939),
        (4, 0.10, 0.233, 0.502),
        (6, 0.10, 0.915, 0.955),
        (6, 0.20, 0.118, 0.363),
        (8, 0.20, 0.606, 0.772),
    ],
)
def test_table_of_correlated_normals(variables: int, window: float, single: float, linked: float) -> None:
    """A thousand records, correlation .3; the printed figures are those of one file, with a spread of .017 or less."""
    generator = np.random.default_rng(variables)
    original = normals(1_000, variables, seed=7)
    released = [rank_swapped(column, int(1_000 * window), generator) for column in original]
    found = rank_intersection(original, released, window)
    assert found.inside.all()
    assert found.single == pytest.approx(single, abs=0.05)
    assert found.linked == pytest.approx(linked, abs=0.04)
    assert 1 / 1_000 < found.nearest.mean() < found.linked + 0.02


def test_two_variables_by_hand() -> None:
    """Ranks 0..4; one rank of window. Income exchanged 0-1 and 2-3; age exchanged 1-2 and 3-4."""
    income = np.array([10.0, 20.0, 30.0, 40.0, 50.0])
    age = np.array([5.0, 4.0, 3.0, 2.0, 1.0])
    found = rank_intersection([income, age], [income[[1, 0, 3, 2, 4]], age[[0, 2, 1, 4, 3]]], 0.2)
    # Released income ranks 1 0 3 2 4, age ranks 4 2 3 0 1; original ones 0 1 2 3 4 and 4 3 2 1 0.
    # Row 0: income in {0, 1}: rows 0, 1; age in {3, 4}: rows 0, 2.
    # Row 1: income in 0..2: 0, 1, 3; age in 2..4: 0, 1, 2.
    # Row 2: income in 1..3: 0, 2, 3; age in 1..3: 1, 2, 4. Row 3: income in 2..4: 2, 3, 4; age in 0..2: 1, 3, 4.
    # Row 4: income in {3, 4}: 2, 4; age in {0, 1}: 3, 4.
    assert found.size.tolist() == [1, 2, 1, 2, 1]
    assert found.inside.all()
    assert found.single == 3 / 5 and found.linked == pytest.approx((1 + 0.5 + 1 + 0.5 + 1) / 5)


@examples(40)
@given(st.data(), st.integers(1, 3), st.integers(2, 25), st.floats(0.05, 1))
def test_the_true_row_is_always_possible_whatever_ties_and_missing_values(
    draw: st.DataObject, variables: int, n: int, window: float
) -> None:
    one = st.lists(st.sampled_from([0.0, 1.0, 2.0, 5.0, float("nan")]), min_size=n, max_size=n)
    original = [np.array(draw.draw(one)) for _ in range(variables)]
    generator = np.random.default_rng(draw.draw(st.integers(0, 99)))
    released = [rank_swapped(column, int(window * (~np.isnan(column)).sum() + 1e-9), generator) for column in original]
    found = rank_intersection(original, released, window)
    assert found.inside.all()
    assert found.size.tolist() == [possible_rows(original, released, window, i) for i in range(n)]


def possible_rows(original: Columns, released: Columns, window: float, target: int) -> int:
    """Look at all rows: a value is possible when some rank of it is within the window of some rank of the target's."""
    possible = np.ones(len(original[0]), dtype=bool)
    for was, now in zip(original, released, strict=True):
        value, present = was[target], np.sort(now[~np.isnan(now)])
        width = int(window * len(present) + 1e-9)
        for row, shown in enumerate(now):
            if np.isnan(value) or np.isnan(shown):
                possible[row] &= bool(np.isnan(value) and np.isnan(shown))
                continue
            between = (present > min(value, shown)) & (present < max(value, shown))
            possible[row] &= shown == value or int(between.sum()) + 1 <= width
    return int(possible.sum())


def test_nearest_ranks_by_all_pairs() -> None:
    generator = np.random.default_rng(3)
    original = normals(200, 3, seed=1)
    released = [rank_swapped(column, 20, generator) for column in original]
    was, now = (np.argsort(np.argsort(np.column_stack(c), axis=0), axis=0) for c in (original, released))
    distance = ((was[:, None, :] - now[None, :, :]) ** 2).sum(axis=2)
    best = distance == distance.min(axis=1, keepdims=True)
    expected = np.diag(best) / best.sum(axis=1)
    assert rank_intersection(original, released, 0.1).nearest == pytest.approx(expected)


def test_records_alike_are_counted_with_missing_values() -> None:
    column = np.array([1.0, float("nan"), 1.0, float("nan"), 2.0])
    assert rank_intersection([column], [column], 0.1).alike.tolist() == [2, 2, 2, 2, 1]


def test_an_unbounded_shift_leaves_the_true_row_out_for_some() -> None:
    original = normals(500, 4, seed=2)
    generator = np.random.default_rng(5)
    released = [rank_swapped(column, 100, generator) for column in original]
    found = rank_intersection(original, released, 0.1)
    assert found.inside.mean() < 0.9
    assert found.linked < (1 / np.maximum(found.size, 1)).mean()


def test_a_large_file_is_looked_at_by_targets_at_equal_distances(monkeypatch: pytest.MonkeyPatch) -> None:
    original = normals(1_000, 3, seed=1)
    released = [rank_swapped(column, 50, np.random.default_rng(1)) for column in original]
    every = rank_intersection(original, released, 0.05)
    monkeypatch.setattr(linkage, "MOST_RECORDS", 999)
    monkeypatch.setattr(linkage, "TARGETS", 100)
    some = rank_intersection(original, released, 0.05)
    assert some.targets.tolist() == list(range(0, 1_000, 10))
    for name in ("size", "inside", "nearest", "alike"):
        assert getattr(some, name).tolist() == getattr(every, name)[some.targets].tolist()


def test_the_section_has_before_and_chance_next_to_each_value() -> None:
    original = normals(300, 4, seed=1)
    released = [rank_swapped(column, 15, np.random.default_rng(1)) for column in original]
    names = ["a", "b", "c", "d"]
    files = [qd.from_frame(pl.DataFrame(dict(zip(names, columns, strict=True)))) for columns in (original, released)]
    section = rank_section(*files, names, 0.05)
    found = {finding.quantity: finding for finding in section.findings}
    link = found["right link, intersection"]
    assert link.value is not None and link.before == 1 and link.chance == 1 / 300
    assert link.value == rank_intersection(original, released, 0.05).linked
    assert found["true row among the possible"].value == 1
    assert "of 300 can be hers" in section.story and section.advice


def test_ordered_categories_have_ranks_too() -> None:
    data = qd.datasets.cps8d().take(np.arange(0, 48_842, 100))
    section = rank_section(data, data, ["Age", "AvgHrs"], 0.01)
    found = {finding.quantity: finding.value for finding in section.findings}
    assert found["true row among the possible"] == 1


def test_bad_input_is_refused() -> None:
    column = np.arange(5.0)
    with pytest.raises(ParameterError, match="'window' parameter of rank_intersection"):
        rank_intersection([column], [column], 5)
    with pytest.raises(ParameterError, match="one for each"):
        rank_intersection([column], [column], [0.1, 0.1])
    with pytest.raises(InputError, match="as many original columns"):
        rank_intersection([column], [], 0.1)
    with pytest.raises(InputError, match="differ in length"):
        rank_intersection([column], [column[:3]], 0.1)
