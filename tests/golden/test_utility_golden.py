"""Utility measures against numbers printed for the original program."""

from __future__ import annotations

import csv
from importlib.resources import files

import numpy as np
import pytest

import quadrille as qd
from quadrille.measure.association import Known, c_of, v_of
from quadrille.measure.correlation import ased, ased_of
from quadrille.measure.tables import hellinger
from quadrille.summary import Table
from strategies import file_of

TOTAL = 123_130
PRINTED_DIGITS = 4e-4
"""The percents are printed with four decimals; the program worked from unrounded data."""


@pytest.mark.parametrize(
    ("before", "after", "distance"),
    [
        ((44.6327, 51.2125, 4.1548), (44.9139, 50.9312, 4.1548), 0.7143),
        ((16.8029, 47.4255, 35.7716), (16.8573, 47.3711, 35.7716), 0.1915),
    ],
)
def test_hellinger_distances_in_weights_are_those_printed(before: tuple, after: tuple, distance: float) -> None:
    was, now = np.array(before) / 100 * TOTAL, np.array(after) / 100 * TOTAL
    assert abs(hellinger(was, now) - distance) < PRINTED_DIGITS
    data, other = (file_of(np.round(weights, 6), A=[0, 1, 2]) for weights in (was, now))
    scores = qd.score(data, other, ["hd1(A)", "hd3(A)", "hd1_norm(A)"])
    assert abs(scores["hd1(A)"] - distance) < PRINTED_DIGITS
    assert scores["hd3(A)"] == scores["hd1(A)"]
    assert abs(scores["hd1_norm(A)"] * TOTAL**0.5 - distance) < PRINTED_DIGITS


@pytest.mark.parametrize(("example", "printed"), [(1, 0.2931), (2, 0.3074)])
def test_changes_of_correlations_in_standard_errors_are_those_printed(example: int, printed: float) -> None:
    path = files("quadrille") / "papers" / "published" / "controlled_swap_correlations.csv"
    with path.open(encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if int(row["example"]) == example]
    before = np.array([float(row["r_before_weighted"]) for row in rows])
    after = np.array([float(row["r_after_weighted"]) for row in rows])
    found = ased(before, after, 182)
    assert len(rows) > 40
    assert abs(np.nanmean(found) - printed) < 5e-5 + 5e-6  # four decimals, from correlations with five


def test_changes_of_coefficients_in_standard_errors_are_those_printed() -> None:
    found = ased_of(np.array([251.0132, -8.8040]), np.array([13.9876, 8.2584]), np.array([247.1533, -6.3957]))
    assert abs(found.mean() - 0.2838) < 5e-5
    assert abs(found.mean() * 2 / (2 + 2) - 0.1419) < 5e-5  # the original program counts two more lines


def test_associations_of_a_table_of_four_cells() -> None:
    data = file_of([10, 20, 30, 40], A=[0, 0, 1, 1], B=[0, 1, 0, 1])
    table = Known(Table(("A", "B")).of(data))
    share, rows, columns = table.share()
    assert (round(share * 100, 6), rows, columns) == (0.793651, 2, 2)
    assert round(c_of(table, table)[0], 6) == 0.088736
    assert round(v_of(table, table)[0], 6) == -0.089087


def test_associations_leave_out_records_that_miss_a_variable() -> None:
    whole = file_of([10, 20, 30, 40], A=[0, 0, 1, 1], B=[0, 1, 0, 1])
    variable = qd.Variable("B", categories=("B0", "B1"), missing=("?",))
    weight = qd.Variable("w", "numeric", role="weight")
    columns = [
        (whole["A"].variable, [0, 0, 1, 1, 0]),
        (variable, [0, 1, 0, 1, 2]),
        (weight, [10.0, 20.0, 30.0, 40.0, 99.0]),
    ]
    data = qd.Data([type(whole["A"])(v, np.array(x, dtype=float if v is weight else np.uint8)) for v, x in columns])
    assert round(Known(Table(("A", "B")).of(data)).share()[0] * 100, 6) == 0.793651
