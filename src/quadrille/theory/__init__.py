"""The error of swapping in closed form, before any draw, next to that of rounding; correction; the least loss."""

from __future__ import annotations

import warnings
from typing import Any

from quadrille.swap.permutation import PermutationSwap
from quadrille.swap.private import chance_for, swap_epsilon
from quadrille.theory.bound import Bound, Certificate, Point, bound_for, least_loss
from quadrille.theory.correction import Corrected, correct, correct_published
from quadrille.theory.equivalent import (
    RateFor,
    equivalent_records,
    equivalent_table,
    ons_rates,
    rate_for,
    rounding_error,
)
from quadrille.theory.expected import expected_ranks, pairs_between, rank_correlation
from quadrille.theory.moments import Error, large_n_error, swap_error
from quadrille.theory.prediction import Predicted, Prediction, epsilon_curve, predict, predictions
from quadrille.theory.tables import (
    CellErrors,
    ExpectedChiSquare,
    compare_errors,
    expected_chi_square,
    expected_table,
    realised,
    sampling_error,
    sampling_table,
    table_error,
)

__all__ = [
    "Bound",
    "CellErrors",
    "Certificate",
    "Corrected",
    "Error",
    "ExpectedChiSquare",
    "Point",
    "Predicted",
    "Prediction",
    "RateFor",
    "bound_for",
    "chance_for",
    "compare_errors",
    "correct",
    "correct_published",
    "epsilon_curve",
    "equivalent_records",
    "equivalent_table",
    "expected_chi_square",
    "expected_ranks",
    "expected_table",
    "large_n_error",
    "least_loss",
    "ons_rates",
    "pairs_between",
    "predict",
    "predictions",
    "rank_correlation",
    "rate_for",
    "realised",
    "rounding_error",
    "sampling_error",
    "sampling_table",
    "swap_epsilon",
    "swap_error",
    "table_error",
]

_OLD = {"error_of_counts": "compare_errors", "realised_of_counts": "realised"}
"""Functions of an earlier version for tables of counts, and what takes a table of counts now."""


def __getattr__(name: str) -> object:
    if name not in _OLD:
        raise AttributeError(f"module 'quadrille.theory' has no attribute {name!r}")
    now = f'quadrille.theory.{_OLD[name]}(table, PermutationSwap("column", ...))'
    warnings.warn(f"quadrille.theory.{name} is now {now}.", DeprecationWarning, stacklevel=2)
    return _of_counts(_OLD[name])


def _of_counts(now: str) -> object:
    def called(table: object, *, rate: Any = None, records: Any = None, kind: Any = "pairs", **options: Any) -> object:
        found = globals()[now](table, PermutationSwap("column", rate=rate, records=records, kind=kind), **options)
        return found.frame() if isinstance(found, CellErrors) else found

    return called
