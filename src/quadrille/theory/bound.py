"""The least loss at a given exposure, over all tables with the same one-way margins (derivations/bound.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite, nan
from typing import TYPE_CHECKING, Literal, SupportsFloat, cast

import numpy as np

from quadrille.data import Data, require_columns, require_data
from quadrille.errors import InputError, ParameterError, bad_parameter
from quadrille.recipe import names, one_of, whole
from quadrille.theory.certificate import LOSSES, Certificate, Counts, Floats, counts_of, exposure, total_only
from quadrille.theory.programme import Columns, Status, solve

if TYPE_CHECKING:
    import polars as pl

_OWNER = "least_loss"

MOST_CELLS = 10_000
"""Tables of more occupied cells are refused unless only the total is held."""


@dataclass(frozen=True)
class Point:
    """The least loss at one exposure, and the inequality that proves it.

    `loss` is None where no table with these margins exposes so little. `price` is by how much loss^power falls per
    unit of exposure. `status`: "optimal" (the optimum of the programme), "lower" (a bound, and a better one may exist)
    or "unreachable".

    Example
    -------
    >>> import quadrille as qd
    >>> bound = qd.theory.least_loss(qd.datasets.cps8d(), [0.001], margins="total")
    >>> round(bound.points[0].loss, 4), bound.points[0].status
    (0.0441, 'optimal')
    """

    exposed: float
    loss: float | None
    price: float
    status: Status
    certificate: Certificate


@dataclass(frozen=True)
class Bound:
    """Inequalities `loss^power >= height - price * exposed` that hold for every table with the same one-way margins.

    `exposed` is what the file itself exposes. `table`, `n`, `loss` and `margins` say what the bound is about.

    Example
    -------
    >>> import quadrille as qd
    >>> bound = qd.theory.least_loss(qd.datasets.cps8d(), [0.001], margins="total")
    >>> bound.n, bound.loss, round(bound.exposed, 4)
    (3, 'hellinger', 0.015)
    >>> round(float(bound.at(0.002)), 4)
    0.0409
    """

    points: tuple[Point, ...]
    table: tuple[str, ...]
    n: int
    loss: str
    margins: str
    exposed: float

    @property
    def power(self) -> int:
        """2 for Hellinger distances, whose squares add up over cells; else 1.

        Example
        -------
        >>> import quadrille as qd
        >>> data = qd.datasets.cps8d()
        >>> losses = ("hellinger", "chi_square")
        >>> [qd.theory.least_loss(data, 0.001, margins="total", loss=loss).power for loss in losses]
        [2, 1]
        """
        return LOSSES[self.loss].power

    def at(self, exposed: float | Sequence[float] | Floats) -> Floats:
        """Return a lower bound of the loss at any exposure: the best of the inequalities, so never too high.

        It is the least loss itself at the exposures that were solved, and less than it in between. It is infinite
        where no table exposes so little.

        Example
        -------
        >>> import quadrille as qd
        >>> bound = qd.theory.least_loss(qd.datasets.cps8d(), [0.001, 0.0074], margins="total")
        >>> bound.at([0.001, 0.004, 0.0074]).round(4).tolist()
        [0.0441, 0.0334, 0.014]
        """
        given = np.asarray(exposed, dtype=np.float64)
        kind = LOSSES[self.loss]
        best = np.zeros(given.shape)
        for point in self.points:
            best = np.maximum(best, point.certificate.height - point.certificate.price * given)
        value = best ** (1 / kind.power)
        return np.where(value > kind.most, inf, value)

    def gap(self, exposed: float | Sequence[float] | Floats, loss: float | Sequence[float] | Floats) -> Floats:
        """Return the loss of scored candidates as a multiple of the bound at their own exposure.

        1 is at the bound; NaN where the bound is 0.

        Example
        -------
        A random swap loses several times what a table that exposes as little has to:

        >>> import quadrille as qd
        >>> data = qd.datasets.cps8d()
        >>> bound = qd.theory.least_loss(data, 0.014, margins="total")
        >>> plan = qd.RandomSwap(["Edu"], rate=0.05, seed=1).plan(data)
        >>> scores = qd.score(data, plan, ["exposed", "hellinger"])
        >>> round(float(bound.gap(scores["exposed"], scores["hellinger"])), 1)
        6.4
        """
        least = self.at(exposed)
        some = least > 0
        return np.divide(np.asarray(loss, dtype=np.float64), least, out=np.full(some.shape, nan), where=some)

    def frame(self) -> pl.DataFrame:
        """Return one row per exposure: `exposed`, `least_loss`, `price`, `status`.

        Example
        -------
        >>> import quadrille as qd
        >>> bound = qd.theory.least_loss(qd.datasets.cps8d(), [0.001, 0.0074], margins="total")
        >>> found = bound.frame()
        >>> found["least_loss"].round(4).to_list(), found["status"].to_list()
        ([0.0441, 0.014], ['optimal', 'optimal'])
        """
        from quadrille.frames import tidy

        return tidy(
            [
                {"exposed": each.exposed, "least_loss": each.loss, "price": each.price, "status": each.status}
                for each in self.points
            ]
        )


def least_loss(
    data: Data,
    exposed: float | Sequence[float],
    *,
    n: int = 3,
    table: str | Sequence[str] | None = None,
    loss: str = "hellinger",
    margins: Literal["each", "total"] = "each",
) -> Bound:
    """Return how little a table can lose at a given exposure, whatever method swaps.

    Every release by swapping keeps the one-way margins; the bound is over all tables that do, by linear programming.
    For CPS-8d it takes a few seconds per exposure. `Bound.at` then bounds the loss at any other
    exposure at once, and `Bound.gap` compares scored candidates with it.

    Parameters
    ----------
    data : the file; without weights.
    exposed : exposures (measure "exposed") from 0 to that of the file.
    n : cells of 1 to n - 1 records are small.
    table : variables, as a list or written A*B; by default the key variables.
    loss : "hellinger", "total_variation", "effective_swap_rate" or "chi_square", of the same table.
    margins : what the tables share with the file: "each" one-way margin, or only the "total" number of records, which
        gives a lower bound (CPS-8d: by 2 to 5 %) in next to no time, for tables of any size.

    Example
    -------
    >>> import quadrille as qd
    >>> bound = qd.theory.least_loss(qd.datasets.cps8d(), [0.0074, 0.001], margins="total")
    >>> bound.at([0.0074, 0.0021, 0.001]).round(4).tolist()
    [0.014, 0.0405, 0.0441]
    """
    require_data(data, _OWNER)
    one_of(_OWNER, "loss", loss, tuple(LOSSES))
    one_of(_OWNER, "margins", margins, ("each", "total"))
    n = whole(_OWNER, "n", n, least=2)
    variables = _variables(data, table)
    counts = _counted(data, variables, margins)
    before = float(counts.times @ exposure(counts.f, counts.f, n)) / counts.records
    asked = _exposures(exposed, before)
    points: list[Point] = []
    columns = Columns.start(counts, n)
    for each in asked:
        solved, columns = solve(counts, LOSSES[loss], n, each, columns)
        value = max(0.0, solved.certificate.at(each)) ** (1 / LOSSES[loss].power)
        reached = None if solved.status == "unreachable" else value
        points.append(Point(each, reached, solved.certificate.price, solved.status, solved.certificate))
    return Bound(tuple(points), variables, n, loss, margins, before)


def _variables(data: Data, table: str | Sequence[str] | None) -> tuple[str, ...]:
    listed = [name.strip() for name in table.split("*")] if isinstance(table, str) else table
    variables = data.keys if listed is None else names(_OWNER, "table", listed)
    require_columns(data, variables, f"'table' of {_OWNER}")
    if len(variables) < 2:
        raise ParameterError(
            f"{_OWNER} needs a table of at least two variables: with one, its margin is the table and nothing can "
            "change. Name variables with 'table'."
        )
    if data.weight is not None:
        raise InputError(
            f"The file has the weight {data.weight!r}, so losses are of weighted tables, and {_OWNER} bounds losses of "
            "counts only. Read the file without weight= to compare counts."
        )
    return variables


def _counted(data: Data, variables: tuple[str, ...], margins: str) -> Counts:
    if margins == "total":
        return total_only(data, variables)
    counts = counts_of(data, variables)
    if len(counts.f) > MOST_CELLS:
        raise ParameterError(
            f"The table has {len(counts.f):,} occupied cells, and {_OWNER} solves programmes of up to {MOST_CELLS:,}. "
            "Name fewer variables with 'table', or hold the number of records only: margins=\"total\"."
        )
    return counts


def _exposures(exposed: object, before: float) -> list[float]:
    given = list(cast("Sequence[object]", exposed)) if isinstance(exposed, list | tuple | np.ndarray) else [exposed]
    must = f"numbers from 0 to {before:.6g}, which the file itself exposes"
    found: list[float] = []
    for each in given:
        number = float(each) if isinstance(each, SupportsFloat) and not isinstance(each, bool) else nan
        if not isfinite(number) or not 0 <= number <= before + 1e-12:
            raise bad_parameter(_OWNER, "exposed", must, each)
        found.append(min(number, before))
    if not found:
        raise bad_parameter(_OWNER, "exposed", must, given)
    return found
