"""The least loss at a given exposure, over all tables with the same one-way margins (bound.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum, inf, nan, prod
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from quadrille.data import Cross, Data, require_columns, require_data, tidy
from quadrille.errors import InputError, ParameterError, bad_parameter
from quadrille.params import as_float, names, one_of, whole

if TYPE_CHECKING:
    import polars as pl


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_EMPTY = 1 << 14
"""Tables of more possible cells do not list their empty ones."""

_ROUNDING = 1e-14
"""What rounding may add to a sum, as a share of the size of its terms: far more than it does."""


@dataclass(frozen=True)
class Loss:
    """A loss that is a sum over cells: `term(f, g)`, convex in g; `empty` is what a record in an empty cell costs.

    `turning(f, s)` is the g at which term(f, g) - s g is least. The loss is (sum / unit)^(1 / power), where the unit
    is the number of records if `per_record`, else 1. `most` is the largest loss that exists.
    """

    term: Callable[[Floats, Floats], Floats]
    turning: Callable[[Floats, Floats], Floats]
    empty: float
    power: int = 1
    per_record: bool = True
    most: float = 1.0


def _root_turning(f: Floats, s: Floats) -> Floats:
    rest = np.maximum(1 - 2 * s, 0.0)
    return np.divide(f, rest**2, out=np.full(len(f), inf), where=rest > 0)


_MOVED = Loss(
    lambda f, g: np.abs(f - g) / 2,
    lambda f, s: np.where(s >= 0.5, inf, np.where(s <= -0.5, 0.0, f)),
    empty=0.5,
)
LOSSES: dict[str, Loss] = {
    "hellinger": Loss(lambda f, g: (np.sqrt(f) - np.sqrt(g)) ** 2 / 2, _root_turning, empty=0.5, power=2),
    "total_variation": _MOVED,
    "effective_swap_rate": _MOVED,
    "chi_square": Loss(
        lambda f, g: (g - f) ** 2 / f, lambda f, s: f * (1 + s / 2), empty=0.0, per_record=False, most=inf
    ),
}


def exposure(f: Floats, g: Floats, n: int) -> Floats:
    """Return the records that a cell exposes: min(f, g) where 0 < g < n."""
    return np.where(g < n, np.minimum(f, g), 0.0)


@dataclass(frozen=True, eq=False)
class Counts:
    """The occupied cells of a table: counts, and for each variable the place of its category among all margins.

    `times` says for how many cells a row stands. `starts` says where the margins of each variable begin, and ends with
    their number. `empty` lists the categories of the empty cells; None stands for any combination whatever.
    """

    f: Floats
    times: Floats
    codes: Ints
    starts: Ints
    empty: Ints | None

    @cached_property
    def records(self) -> float:
        """Number of records."""
        return float(self.f @ self.times)

    @cached_property
    def most(self) -> Floats:
        """The most records each cell can have: its smallest margin."""
        margins = np.zeros(self.starts[-1])
        np.add.at(margins, self.codes, (self.f * self.times)[:, None])
        return margins[self.codes].min(axis=1)


def counts_of(data: Data, table: Sequence[str]) -> Counts:
    """Count the cells of a table, with all its one-way margins."""
    cross = Cross.of(data, tuple(table))
    _, first, f = np.unique(cross.cells(data), return_index=True, return_counts=True)
    # Categories without a record stay without: they are left out.
    found = [np.unique(data[name].values[first], return_inverse=True) for name in table]
    sizes = [len(levels) for levels, _ in found]
    codes = np.stack([code for _, code in found], axis=1).astype(np.int64)
    starts = np.concatenate(([0], np.cumsum(sizes)))
    empty = None
    if prod(sizes) <= MOST_EMPTY:
        vacant = np.setdiff1d(np.arange(prod(sizes)), np.ravel_multi_index(tuple(codes.T), sizes))
        empty = np.stack(np.unravel_index(vacant, sizes), axis=1) + starts[:-1]
    return Counts(f.astype(np.float64), np.ones(len(f)), codes + starts[:-1], starts, empty)


def total_only(data: Data, table: Sequence[str]) -> Counts:
    """Count the cells of a table by their size, with no margin but the number of records."""
    f = np.unique(Cross.of(data, tuple(table)).cells(data), return_counts=True)[1]
    size, times = np.unique(f, return_counts=True)
    codes = np.zeros((len(size), 1), dtype=np.int64)
    return Counts(size.astype(np.float64), times.astype(np.float64), codes, np.array([0, 1]), None)


@dataclass(frozen=True)
class Certificate:
    """`loss^power >= height - price * exposed`, for every table with the same one-way margins.

    The multipliers, one per category that occurs, variable by variable, are the proof:
    `quadrille.theory.bound.certify` checks them (bound.md, 3).

    Example
    -------
    >>> import quadrille as qd
    >>> bound = qd.theory.least_loss(qd.datasets.cps8d(), 0.001, margins="total")
    >>> found = bound.points[0].certificate
    >>> round(found.height, 6), round(found.price, 4)
    (0.002226, 0.2777)
    >>> round(found.at(0.001) ** (1 / bound.power), 4), round(bound.points[0].loss, 4)
    (0.0441, 0.0441)
    """

    height: float
    price: float
    multipliers: tuple[float, ...] = ()

    def at(self, exposed: float) -> float:
        """Return what loss^power is at least where so much is exposed.

        Example
        -------
        >>> import quadrille as qd
        >>> qd.theory.Certificate(height=0.002, price=0.25).at(0.004)
        0.001
        """
        return self.height - self.price * exposed


def certify(counts: Counts, loss: Loss, n: int, price: float, multipliers: Floats) -> tuple[Certificate, Floats]:
    """Return the inequality that a price per exposed record and multipliers of margins prove (bound.md, 3).

    Return also the count at which each cell attains its minimum. Any price of 0 or more and any multipliers give a
    true inequality.
    """
    y = _below_empty(counts, loss, multipliers)
    s = y[counts.codes].sum(axis=1)
    f, most = counts.f[:, None], counts.most[:, None]
    around = np.floor(loss.turning(counts.f, s))[:, None] + np.arange(-1, 3)
    small = np.broadcast_to(np.arange(n, dtype=np.float64), (len(f), n))
    tried = np.hstack([small, np.minimum(np.maximum(around, n), np.maximum(most, n)), f])
    with np.errstate(invalid="ignore"):
        value = loss.term(f, tried) + price * exposure(f, tried, n) - s[:, None] * (tried - f)
    value[tried > most] = inf
    best = value.argmin(axis=1)
    rows = np.arange(len(f))
    least = value[rows, best]
    slack = _ROUNDING * counts.records * (1 + price + len(counts.starts) * float(np.abs(y).max()))
    unit = counts.records if loss.per_record else 1.0
    height = (fsum(counts.times * least) - slack) / unit
    return Certificate(height, price * counts.records / unit, tuple(y.tolist())), tried[rows, best]


def _below_empty(counts: Counts, loss: Loss, multipliers: Floats) -> Floats:
    """Lower the multipliers of one variable until no record gains by going to an empty cell.

    A constant for all cells changes nothing, because the number of records is given.
    """
    if counts.empty is None:
        highest = float(np.maximum.reduceat(multipliers, counts.starts[:-1]).sum())
    else:
        highest = float(multipliers[counts.empty].sum(axis=1).max(initial=-inf))
    y = multipliers.copy()
    y[: counts.starts[1]] -= max(0.0, highest - loss.empty)
    return y


Status = Literal["optimal", "lower", "unreachable"]

_STEPS = (1, 2, 3, 4, 6, 9, 13)
"""Changes of a count that are tried from the start; others are added where they pay."""
_ROUNDS = 12
_ENOUGH = 1e-4
"""The rounds end when the certificate is within this share of the programme's own minimum."""
_HIGHEST_PRICE = 1e4
"""A record above the exposure asked for costs this much, so that the programme always has a solution."""


@dataclass(frozen=True, eq=False)
class Columns:
    """What may happen: cell `cell` has `g` records. A cell that has none of these stays as it is."""

    cell: Ints
    g: Floats

    @classmethod
    def start(cls, counts: Counts, n: int) -> Columns:
        """Return the counts near n and near what each cell has."""
        f = counts.f[:, None]
        steps = np.array([*_STEPS, *(-step for step in _STEPS)], dtype=np.float64)
        tried = np.hstack([np.broadcast_to(np.arange(n + 2.0), (len(f), n + 2)), f + steps])
        return cls._kept(counts, np.repeat(np.arange(len(f)), tried.shape[1]), tried.ravel())

    def joined(self, counts: Counts, g: Floats) -> Columns:
        """Add a count for each cell, with its neighbours."""
        cells = np.arange(len(g))
        more = np.concatenate([g - 1, g, g + 1])
        return self._kept(counts, np.concatenate([self.cell, np.tile(cells, 3)]), np.concatenate([self.g, more]))

    @classmethod
    def _kept(cls, counts: Counts, cell: Ints, g: Floats) -> Columns:
        possible = (g >= 0) & (g <= counts.most[cell]) & (g != counts.f[cell])
        pairs = np.unique(np.stack([cell[possible], g[possible].astype(np.int64)], axis=1), axis=0)
        return cls(pairs[:, 0], pairs[:, 1].astype(np.float64))


def solve(counts: Counts, loss: Loss, n: int, exposed: float, columns: Columns) -> tuple[Certificate, Status, Columns]:
    """Find the inequality that is strongest at `exposed`, and whether it is the optimum of the programme.

    Return also the columns, for the next exposure.
    """
    unit = counts.records if loss.per_record else 1.0
    best, status = Certificate(0.0, 0.0), "lower"
    for _ in range(_ROUNDS):
        found = _master(counts, loss, n, exposed, columns)
        if found is None:
            break
        minimum, over, price, multipliers = found
        certificate, g = certify(counts, loss, n, price, multipliers)
        best = max(best, certificate, key=lambda one: one.at(exposed))
        if best.at(exposed) >= minimum / unit * (1 - _ENOUGH) - 1e-12:
            status = "unreachable" if over > 1e-6 else "optimal"
            break
        columns = columns.joined(counts, g)
    return best, status, columns


def _master(
    counts: Counts, loss: Loss, n: int, exposed: float, columns: Columns
) -> tuple[float, float, float, Floats] | None:
    """Solve the programme over some columns: the minimum, records above the exposure, price and multipliers."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    cell, g, f = columns.cell, columns.g, counts.f[columns.cell]
    many, variables = len(g), len(counts.starts) - 1
    each, absorbed = np.arange(many), _absorbed(counts, loss)
    last = many + len(absorbed.cost)
    equal = coo_array(
        (
            np.concatenate([np.repeat(g - f, variables), absorbed.value]),
            (
                np.concatenate([counts.codes[cell].ravel(), absorbed.row]),
                np.concatenate([np.repeat(each, variables), many + absorbed.column]),
            ),
        ),
        shape=(absorbed.rows, last + 1),
    )
    # A row per cell, and one for what is exposed; its last column is the records above the exposure asked for.
    change = np.append(exposure(f, g, n) - exposure(f, f, n), -1.0)
    rows = np.concatenate([cell, np.full(many + 1, len(counts.f))])
    below = coo_array((np.concatenate([np.ones(many), change]), (rows, np.concatenate([each, each, [last]]))))
    before = float(counts.times @ exposure(counts.f, counts.f, n))
    result: Any = cast("Any", linprog)(
        np.concatenate([loss.term(f, g), absorbed.cost, [_HIGHEST_PRICE]]),
        A_ub=below.tocsr(),
        b_ub=np.append(counts.times, exposed * counts.records - before),
        A_eq=equal.tocsr(),
        b_eq=np.zeros(absorbed.rows),
        method="highs",
    )
    if result.status != 0:
        return None
    price = max(0.0, -float(result.ineqlin.marginals[-1]))
    return float(result.fun), float(result.x[-1]), price, result.eqlin.marginals[: counts.starts[-1]]


class _Absorbed(NamedTuple):
    """The part of the equations for records that go to empty cells."""

    row: Ints
    column: Ints
    value: Floats
    rows: int
    cost: Floats


def _absorbed(counts: Counts, loss: Loss) -> _Absorbed:
    """Return a column per empty cell; or one per margin and one for the total that each variable's must add up to."""
    margins, variables = int(counts.starts[-1]), len(counts.starts) - 1
    if counts.empty is not None:
        many = len(counts.empty)
        column = np.repeat(np.arange(many), variables)
        return _Absorbed(counts.empty.ravel(), column, np.ones(column.size), margins, np.full(many, loss.empty))
    every, each = np.arange(margins), np.arange(variables)
    variable = np.repeat(each, np.diff(counts.starts))
    return _Absorbed(
        np.concatenate([every, margins + variable, margins + each]),
        np.concatenate([every, every, np.full(variables, margins)]),
        np.concatenate([np.ones(2 * margins), np.full(variables, -1.0)]),
        margins + variables,
        np.append(np.zeros(margins), loss.empty),
    )


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
        certificate, status, columns = solve(counts, LOSSES[loss], n, each, columns)
        value = max(0.0, certificate.at(each)) ** (1 / LOSSES[loss].power)
        reached = None if status == "unreachable" else value
        points.append(Point(each, reached, certificate.price, status, certificate))
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
    for value in given or [given]:
        if not 0 <= as_float(value) <= before + 1e-12:
            raise bad_parameter(_OWNER, "exposed", must, value)
    return [min(as_float(value), before) for value in given]
