"""The error that a random procedure puts into an estimate."""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, sqrt


@dataclass(frozen=True)
class Error:
    """Bias and variance of an estimate after swapping or rounding, given the file.

    `value` is the estimate before, X; `bias` is E X' - X; `variance` is Var X'. `idle` counts the classes that were
    to move one record only, where nothing can move.

    Example
    -------
    >>> import quadrille as qd
    >>> error = qd.theory.Error(value=100.0, bias=-3.0, variance=16.0)
    >>> error.expected, error.sd, error.rmse, error.relative_rmse
    (97.0, 4.0, 5.0, 0.05)
    """

    value: float
    bias: float
    variance: float
    idle: int = 0

    @property
    def expected(self) -> float:
        """The expectation after, E X'."""
        return self.value + self.bias

    @property
    def sd(self) -> float:
        """The standard deviation."""
        return sqrt(self.variance)

    @property
    def rmse(self) -> float:
        """The root of the mean square error, variance + bias^2."""
        return hypot(self.sd, self.bias)

    @property
    def relative_rmse(self) -> float | None:
        """The root mean square error as a share of the estimate before; None when that is 0."""
        return self.rmse / abs(self.value) if self.value else None
