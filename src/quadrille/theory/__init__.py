"""The error of swapping in closed form, before any draw; rounding beside it; correction by the user; the least loss."""

from quadrille.theory.bound import Bound, Certificate, Point, least_loss
from quadrille.theory.budget import RateFor, rate_for
from quadrille.theory.correction import Corrected, correct
from quadrille.theory.equivalent import equivalent_records, equivalent_table, error_of_counts, rounding_error
from quadrille.theory.expected import pairs_between
from quadrille.theory.moments import Error, large_n_error, swap_error
from quadrille.theory.prediction import Predicted, Prediction, predict, predictions
from quadrille.theory.tables import (
    ExpectedChiSquare,
    expected_chi_square,
    expected_table,
    realised,
    realised_of_counts,
    sampling_error,
    sampling_table,
    table_error,
)

__all__ = [
    "Bound",
    "Certificate",
    "Corrected",
    "Error",
    "ExpectedChiSquare",
    "Point",
    "Predicted",
    "Prediction",
    "RateFor",
    "correct",
    "equivalent_records",
    "equivalent_table",
    "error_of_counts",
    "expected_chi_square",
    "expected_table",
    "large_n_error",
    "least_loss",
    "pairs_between",
    "predict",
    "predictions",
    "rate_for",
    "realised",
    "realised_of_counts",
    "rounding_error",
    "sampling_error",
    "sampling_table",
    "swap_error",
    "table_error",
]
