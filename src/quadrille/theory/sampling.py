"""The sampling error of a cell, to set beside the error of swapping."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, SupportsFloat, cast

import numpy as np

from quadrille.data import Data, require_data
from quadrille.errors import bad_parameter
from quadrille.recipe import share, whole
from quadrille.theory.error import Error
from quadrille.theory.margin import margin_of

if TYPE_CHECKING:
    import polars as pl

_OWNER = "sampling_error"
_TABLE = "sampling_table"


def sampling_error(total: float, n: int, *, fraction: float, squares: float | None = None) -> Error:
    """Return the sampling error of a cell's total, when the file is a simple random sample of a population.

    With y the weight of a record in the cell and 0 in the others, the variance of sum y over samples of n records is
    estimated by (1 - fraction) n/(n-1) (sum y^2 - (sum y)^2 / n). For counts that is (1 - fraction) n/(n-1) n p (1-p).

    Parameters
    ----------
    total, n : the cell's count, or its total weight, and the number of records of the file.
    fraction : the share of the population that the file holds, in (0, 1]; 1 is a census.
    squares : the sum of squared weights in the cell; for counts it is the count.

    Example
    -------
    >>> import quadrille as qd
    >>> round(qd.theory.sampling_error(200, 1000, fraction=0.1).sd, 3)
    12.006
    """
    n = whole(_OWNER, "n", n, least=2)
    held = share(_OWNER, "fraction", fraction)
    number = isinstance(cast("object", total), SupportsFloat) and not isinstance(total, bool)
    if not number or not isfinite(total) or total < 0 or (squares is None and total > n):
        raise bad_parameter(_OWNER, "total", "a number of 0 or more, a count no larger than n", total)
    square = total if squares is None else squares
    variance = (1 - held) * n / (n - 1) * (square - total / n * total)
    return Error(float(total), 0.0, max(float(variance), 0.0))


def sampling_table(data: Data, margin: str | Sequence[str], *, fraction: float) -> pl.DataFrame:
    """Return the sampling error of every cell of a margin that can be: its labels, `total` and `sampling`.

    Example
    -------
    >>> import quadrille as qd
    >>> qd.theory.sampling_table(qd.datasets.cps8d(), "Age*MS", fraction=0.01)["sampling"].round(1).to_list()[:2]
    [27.5, 79.9]
    """
    from quadrille.frames import tidy

    require_data(data, _TABLE)
    split = margin_of(data, margin, (), _TABLE)
    of = split.stayed.cells(data)
    weight = None if data.ticks is None else data.ticks.values / data.ticks.per_unit
    totals = np.bincount(of, weights=weight, minlength=split.cells)
    squares = totals if weight is None else np.bincount(of, weights=weight**2, minlength=split.cells)
    rows = zip(split.named(np.arange(split.cells)), totals.tolist(), squares.tolist(), strict=True)
    return tidy(
        [
            {
                **labels,
                "total": total,
                "sampling": sampling_error(total, data.n, fraction=fraction, squares=square).sd,
            }
            for labels, total, square in rows
        ]
    )
