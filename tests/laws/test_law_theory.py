"""Law 8 and the symmetries of the swap error, over random vectors and files."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import quadrille as qd
from quadrille.theory import correct, swap_error, table_error
from strategies import coded, files
from theory_oracle import amounts, enumerated

numbers = st.floats(-100, 100).map(lambda number: round(number, 9))  # what is smaller is refused, not worked out


@st.composite
def vectors(draw: st.DrawFn, most: int = 7) -> tuple[np.ndarray, np.ndarray, int, str, np.ndarray | None]:
    """Two vectors, a kind with its groups, and a number of records that can move."""
    kind = draw(st.sampled_from(["pairs", "cycles", "across"]))
    n = draw(st.integers(2, most))
    a, b = (np.array(draw(st.lists(numbers, min_size=n, max_size=n))) for _ in range(2))
    groups = np.array(draw(st.permutations([0, 1, *draw(st.lists(st.integers(0, 1), min_size=n - 2, max_size=n - 2))])))
    groups = groups if kind == "across" else None
    return a, b, draw(st.sampled_from(amounts(n, kind, groups))), kind, groups


@given(vectors())
def test_moments_equal_those_of_all_permutations(case: tuple) -> None:
    a, b, k, kind, groups = case
    error, values = swap_error(a, b, k, kind, groups=groups), enumerated(a, b, k, kind, groups)
    scale = max(1.0, np.abs(a).max() * np.abs(b).max() * len(a))
    assert abs(error.expected - values.mean()) <= 1e-10 * scale
    assert abs(error.variance - values.var()) <= 1e-10 * scale**2


@given(vectors(most=40), numbers, numbers, st.floats(0.1, 10))
def test_shifts_scales_and_sides_do_not_matter(case: tuple, up: float, down: float, factor: float) -> None:
    a, b, k, kind, groups = case
    plain = swap_error(a, b, k, kind, groups=groups)
    turned = swap_error(b, a, k, kind, groups=groups)
    moved = swap_error(factor * (a + up), b - down, k, kind, groups=groups)
    scale = max(1.0, (np.abs(a).max() + 100) * (np.abs(b).max() + 100) * len(a))
    assert abs(turned.bias - plain.bias) <= 1e-12 * scale
    assert abs(turned.variance - plain.variance) <= 1e-12 * scale**2
    assert abs(moved.bias - factor * plain.bias) <= 1e-12 * scale * factor
    assert abs(moved.variance - factor**2 * plain.variance) <= 1e-12 * (scale * factor) ** 2


@given(vectors(most=12), st.data())
def test_counts_stand_for_repeated_records(case: tuple, draw: st.DataObject) -> None:
    a, b, k, kind, groups = case
    counts = np.array(draw.draw(st.lists(st.integers(1, 4), min_size=len(a), max_size=len(a))))
    table = swap_error(a, b, k, kind, groups=groups, counts=counts)
    repeated = None if groups is None else np.repeat(groups, counts)
    assert table == swap_error(np.repeat(a, counts), np.repeat(b, counts), k, kind, groups=repeated)


@st.composite
def planned(draw: st.DrawFn) -> tuple[qd.Data, qd.PermutationSwap, list[str]]:
    """A file, a permutation of some of its columns, and a margin."""
    data = draw(files(least=2, most=5, wide=False, numeric=False, largest=40))
    names = coded(data)
    swap = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
    rest = [name for name in names if name not in swap]
    within = draw(st.lists(st.sampled_from(rest), max_size=1)) if rest else []
    kind = draw(st.sampled_from(["pairs", "cycles"]))
    rate = draw(st.floats(0.1, 1.0))
    weight = draw(st.sampled_from(["stays", "moves"])) if data.weight else "stays"
    recipe = qd.PermutationSwap(swap, rate=rate, kind=kind, within=within, weight=weight, seed=1)
    margin = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    return data, recipe, margin


@given(planned())
def test_every_cell_of_a_margin_has_the_error_of_its_indicator(case: tuple) -> None:
    data, recipe, margin = case
    try:
        classes = recipe.classes(data)
    except qd.QuadrilleError:
        assume(False)
    frame = table_error(data, recipe, margin)
    weight = np.ones(data.n) if data.weight is None else np.asarray(data[data.weight].values, dtype=float)
    listed = {name: np.array(data[name].labels)[data[name].values] for name in margin}
    scale = max(1.0, float(weight.sum()))
    for row in frame.head(12).iter_rows(named=True):
        sides = {True: np.ones(data.n), False: np.ones(data.n)}
        for name in margin:
            sides[name in recipe.swap] *= listed[name] == row[name]
        sides[recipe.weight == "moves"] *= weight
        cell = swap_error(sides[True], sides[False], classes.k.tolist(), recipe.kind, within=classes.of)
        assert abs(row["before"] - cell.value) <= 1e-12 * scale
        assert abs(row["bias"] - cell.bias) <= 1e-12 * scale
        assert abs(row["rmse"] ** 2 - cell.rmse**2) <= 1e-11 * scale**2
    if data.weight is None:
        assert frame["before"].sum() == data.n
        assert abs(frame["bias"].sum()) <= 1e-9 * data.n


@given(
    st.lists(st.lists(st.integers(0, 50), min_size=3, max_size=3), min_size=2, max_size=4),
    st.floats(0, 0.95),
)
def test_correcting_the_expectation_gives_the_table_back(rows: list[list[int]], f: float) -> None:
    truth = np.array(rows)
    assume(truth.sum() > 1 and (f == 0 or f * (truth.sum() - 1) >= 1))
    row, column, n = truth.sum(axis=1, keepdims=True), truth.sum(axis=0, keepdims=True), truth.sum()
    # the corrected table is linear in the swapped one, so its expectation is that of the expected table
    found = correct(truth, f, no_totals=True).table
    assert found.sum(axis=1) == pytest.approx(truth.sum(axis=1))
    assert found.sum(axis=0) == pytest.approx(truth.sum(axis=0))
    assert (1 - f) * found + f * row * column / n == pytest.approx(truth, abs=1e-9)
