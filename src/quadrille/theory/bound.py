"""The least loss at a given exposure, over all tables with the same margins (bound.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum, inf, nan, prod
from typing import TYPE_CHECKING, Literal, cast

import numpy as np
from numpy.typing import NDArray

from quadrille.data import Cross, Data, require_columns, require_data, tidy
from quadrille.errors import InputError, ParameterError, bad_parameter
from quadrille.params import as_float, names, one_of, whole
from quadrille.swap.designed import DesignedSwap
from quadrille.swap.designed.pairs import DesignedPairs
from quadrille.swap.designed.problem import movers_of, protected_tables
from quadrille.swap.kept import Keep, kept_tables, named_variables
from quadrille.text import Shown
from quadrille.theory.programme import FreeColumns, Margins, Programme, Solution

if TYPE_CHECKING:
    import polars as pl


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_EMPTY = 1 << 19
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
    """The occupied cells of a table: counts, and for each kept table the place of its cell among all margins.

    `times` says for how many cells a row stands. `starts` says where the margins of each kept table begin, and ends
    with their number. `empty` lists the margins of the empty cells that may get a record; None stands for any
    combination whatever.
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

    @property
    def relaxed(self) -> bool:
        """Whether records may leave for combinations of margins that are no cell."""
        return self.empty is None and len(self.starts) > 2


def counts_of(data: Data, table: Sequence[str], kept: Sequence[Sequence[str]] | None = None) -> Counts:
    """Count the cells of a table, with the margins of the kept tables: by default all one-way margins."""
    cross = Cross.of(data, tuple(table))
    _, first, f = np.unique(cross.cells(data), return_index=True, return_counts=True)
    # Categories without a record stay without: they are left out.
    found = [np.unique(data[name].values[first], return_inverse=True) for name in table]
    sizes = tuple(len(levels) for levels, _ in found)
    codes = np.stack([code for _, code in found], axis=1).astype(np.int64)
    vacant = None
    if prod(sizes) <= MOST_EMPTY:
        free = np.ones(prod(sizes), dtype=np.bool_)
        free[np.ravel_multi_index(tuple(codes.T), sizes)] = False
        vacant = np.stack(np.unravel_index(np.flatnonzero(free), sizes), axis=1)
    held: list[Ints] = []
    absent: list[Ints] = []
    starts = [0]
    for part in kept if kept is not None else [(name,) for name in table]:
        at = [tuple(table).index(name) for name in part]
        occurs, number = np.unique(codes[:, at], axis=0, return_inverse=True)
        held.append(number.reshape(-1) + starts[-1])
        if vacant is not None:
            place = np.full([sizes[each] for each in at], -1)
            place[tuple(occurs.T)] = np.arange(len(occurs))
            # A cell of a kept table without records stays without, and all that is in it.
            where = place[tuple(vacant[:, at].T)]
            vacant, absent = vacant[where >= 0], [each[where >= 0] for each in absent]
            absent.append(where[where >= 0] + starts[-1])
        starts.append(starts[-1] + len(occurs))
    empty = None if vacant is None else np.stack(absent, axis=1)
    return Counts(f.astype(np.float64), np.ones(len(f)), np.stack(held, axis=1), np.array(starts), empty)


def total_only(data: Data, table: Sequence[str]) -> Counts:
    """Count the cells of a table by their size, with no margin but the number of records."""
    f = np.unique(Cross.of(data, tuple(table)).cells(data), return_counts=True)[1]
    size, times = np.unique(f, return_counts=True)
    codes = np.zeros((len(size), 1), dtype=np.int64)
    full = len(f) == prod(len(np.unique(data[name].values)) for name in table)
    empty = np.zeros((0, 1), dtype=np.int64) if full else None
    return Counts(size.astype(np.float64), times.astype(np.float64), codes, np.array([0, 1]), empty)


@dataclass(frozen=True, repr=False)
class Certificate(Shown):
    """`loss^power >= height - price * exposed`, for every table with the same margins.

    The multipliers, one per cell of each kept table that has records, table by table, are the proof:
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
    """Lower the multipliers of one table until no record gains by going to an empty cell.

    A constant for all cells changes nothing, because the number of records is given.
    """
    if counts.empty is None:
        highest = float(np.maximum.reduceat(multipliers, counts.starts[:-1]).sum())
    else:
        highest = float(multipliers[counts.empty].sum(axis=1).max(initial=-inf))
    y = multipliers.copy()
    y[: counts.starts[1]] -= max(0.0, highest - loss.empty)
    return y


Status = Literal["optimal", "bound", "lower", "unreachable"]

_STEPS = (1, 2, 3, 4, 6, 9, 13)
"""Changes of a count that are tried from the start; others are added where they pay."""
_ROUNDS = 12
_ENOUGH = 1e-4
"""The rounds end when the certificate is within this share of the programme's own minimum."""
_ACCURACY = 1e-5
"""The programme is solved to this share of its minimum."""
_PRICES = (10.0, 1e4)
"""A record above the exposure asked for costs this much, so that there is always a solution; the lower is faster."""
_LEAST_LIMIT = 1e-3
"""Records that may always be exposed: at none at all any high price would do, and this finds the lowest that does."""
_FEW_EMPTY = 1 << 12
"""So many empty cells are columns from the start; of more, those that records would gain by going to."""


@dataclass(frozen=True, eq=False)
class Columns:
    """What may happen: cell `cell` has `g` records, sorted; each cell may stay as it is. Records may go to `empty`."""

    cell: Ints
    g: Floats
    empty: Ints
    margins: Margins

    @classmethod
    def start(cls, counts: Counts, n: int) -> Columns:
        """Return the counts near n and near what each cell has."""
        f = counts.f[:, None]
        steps = np.array([0, *_STEPS, *(-step for step in _STEPS)], dtype=np.float64)
        tried = np.hstack([np.broadcast_to(np.arange(n + 2.0), (len(f), n + 2)), f + steps])
        empty = np.arange(0 if counts.empty is None or len(counts.empty) > _FEW_EMPTY else len(counts.empty))
        cell, g = _possible(counts, np.repeat(np.arange(len(f)), tried.shape[1]), tried.ravel())
        return cls(cell, g, empty, _margins(counts, empty))

    def joined(self, counts: Counts, loss: Loss, g: Floats, multipliers: Floats) -> Columns:
        """Add a count for each cell, with its neighbours; and the empty cells where records would gain most."""
        cell = np.concatenate([self.cell, np.tile(np.arange(len(g)), 3)])
        cell, g = _possible(counts, cell, np.concatenate([self.g, g - 1, g, g + 1]))
        if counts.empty is None or len(self.empty) == len(counts.empty):
            return Columns(cell, g, self.empty, self.margins)
        gain = multipliers[counts.empty].sum(axis=1) - loss.empty
        best = np.argsort(-gain, kind="stable")[:_FEW_EMPTY]
        empty = np.union1d(self.empty, best[gain[best] > 0])
        return Columns(cell, g, empty, _margins(counts, empty))


def _possible(counts: Counts, cell: Ints, g: Floats) -> tuple[Ints, Floats]:
    """Return the pairs of cell and count that can be, sorted, each once."""
    possible = (g >= 0) & (g <= counts.most[cell])
    width = int(counts.most.max()) + 1
    pairs = np.unique(cell[possible] * width + g[possible].astype(np.int64))
    return pairs // width, (pairs % width).astype(np.float64)


def _margins(counts: Counts, empty: Ints) -> Margins:
    """Return the rows of margins, with a column per empty cell; or, where these are not listed, formula (7).

    That is a column per margin, and one for the total that those of each kept table must add up to.
    """
    margins, tables = int(counts.starts[-1]), len(counts.starts) - 1
    if counts.empty is not None:
        return Margins(counts.codes, FreeColumns.of_codes(counts.empty[empty]), margins)
    every, each = np.arange(margins), np.arange(tables)
    free = FreeColumns(
        np.concatenate([every, margins + np.repeat(each, np.diff(counts.starts)), margins + each]),
        np.concatenate([every, every, np.full(tables, margins)]),
        np.concatenate([np.ones(2 * margins), np.full(tables, -1.0)]),
        margins + 1,
    )
    return Margins(counts.codes, free, margins + tables)


def solve(counts: Counts, loss: Loss, n: int, exposed: float, columns: Columns) -> tuple[Certificate, Status, Columns]:
    """Find the inequality that is strongest at `exposed`, and whether it reaches the optimum of the programme.

    Return also the columns, for the next exposure.
    """
    unit = counts.records if loss.per_record else 1.0
    at = max(exposed, _LEAST_LIMIT / counts.records)
    best, status = Certificate(0.0, 0.0), "lower"
    for _ in range(_ROUNDS):
        found, reached = _minimum(counts, loss, n, at, columns)
        if found is None:
            break
        multipliers = found.multipliers[: counts.starts[-1]]
        certificate, g = certify(counts, loss, n, found.price, multipliers)
        best = max(best, certificate, key=lambda one: one.at(at))
        if best.at(at) >= found.minimum / unit * (1 - _ENOUGH) - 1e-12:
            status = "unreachable" if not reached else "lower" if counts.relaxed else "bound"
            break
        columns = columns.joined(counts, loss, g, multipliers)
    return best, status, columns


def _minimum(counts: Counts, loss: Loss, n: int, exposed: float, columns: Columns) -> tuple[Solution | None, bool]:
    """Solve the programme over some columns; say also whether it exposes as little as it was asked for."""
    f, g = counts.f[columns.cell], columns.g
    free = np.full(columns.margins.free.shape[1], loss.empty)
    if counts.empty is None:
        free[:-1] = 0.0
    change, exposes, cost = g - f, exposure(f, g, n), loss.term(f, g)
    found = None
    for dearest in _PRICES:
        limit = exposed * counts.records
        programme = Programme(columns.cell, change, exposes, cost, counts.times, free, columns.margins, limit, dearest)
        found = programme.solve(_ACCURACY)
        if found is not None and found.price < dearest / 2:
            return found, True
    return found, found is not None and found.over <= 1e-6


_OWNER = "least_loss"

MOST_CELLS = 20_000
MOST_MARGINS = 3_000
"""Tables of more occupied cells, or of more cells in kept tables, are refused unless only the total is held."""
FEW_CELLS = 4_000
FEW_MARGINS = 1_500
"""So many take a second or two."""


@dataclass(frozen=True, repr=False)
class Point(Shown):
    """What the loss is at least at one exposure, and the inequality that proves it.

    `loss` is None where no table with these margins exposes so little. `price` is by how much loss^power falls per
    unit of exposure. `status`: "optimal" (some table loses no more: 0, where the file itself exposes so little),
    "bound" (the optimum of the programme, in which cells may mix several counts: every table of whole numbers may lose
    more), "lower" (a bound that the programme itself may exceed) or "unreachable".

    Example
    -------
    >>> import quadrille as qd
    >>> bound = qd.theory.least_loss(qd.datasets.cps8d(), [0.001], margins="total")
    >>> round(bound.points[0].loss, 4), bound.points[0].status
    (0.0441, 'bound')
    """

    exposed: float
    loss: float | None
    price: float
    status: Status
    certificate: Certificate


@dataclass(frozen=True, repr=False)
class Bound(Shown):
    """Inequalities `loss^power >= height - price * exposed` that hold for every table with the same margins.

    `exposed` is what the file itself exposes. `table`, `n`, `loss` and `margins` say what the bound is about; `kept`
    lists the tables that are held, none where it is only the number of records.

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
    kept: tuple[tuple[str, ...], ...] = ()

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

        It is the optimum of the programme at the exposures that were solved, and less than it in between. It is
        infinite where no table exposes so little.

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
        ([0.0441, 0.014], ['bound', 'bound'])
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
    margins: Keep = "1-way",
    swap: str | Sequence[str] | None = None,
) -> Bound:
    """Return how little a table can lose at a given exposure, whatever method swaps.

    Every release by swapping keeps the one-way margins, and some keep more; the bound is over all tables that do, by
    linear programming. For CPS-8d it takes less than a second per exposure. `Bound.at` then bounds the loss at any
    other exposure at once, and `Bound.gap` compares scored candidates with it.

    Parameters
    ----------
    data : the file; without weights.
    exposed : exposures (measure "exposed") from 0 to that of the file.
    n : cells of 1 to n - 1 records are small.
    table : variables, as a list or written A*B; by default the key variables.
    loss : "hellinger", "total_variation", "effective_swap_rate" or "chi_square", of the same table.
    margins : what the tables share with the file: "1-way", "2-way", ..., "A*B*C", "logit(Y)" or a list of these, each
        with all one-way margins; or only the "total" number of records, which gives a lower bound (CPS-8d: by 2 to
        5 %) in next to no time, for tables of any size.
    swap : the variables that move, if not all: then the joint table of the others is shared too.

    Example
    -------
    To keep all two-way tables costs a ninth of the distance:

    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> for margins in ("total", "1-way", "2-way"):
    ...     print(margins, qd.theory.least_loss(data, 0.001, margins=margins).at([0.0021, 0.001]).round(4).tolist())
    total [0.0405, 0.0441]
    1-way [0.0417, 0.046]
    2-way [0.0465, 0.0512]
    """
    require_data(data, _OWNER)
    one_of(_OWNER, "loss", loss, tuple(LOSSES))
    n = whole(_OWNER, "n", n, least=2)
    variables = _variables(data, table)
    if margins == "total":
        return _solved(total_only(data, variables), exposed, n, loss, variables, "total", ())
    moving = variables if swap is None else names(_OWNER, "swap", swap, least=1)
    fixed = set(variables).difference(moving)
    kept = kept_tables(margins, variables, fixed=fixed, owner=_OWNER, name="margins")
    counts = counts_of(data, variables, kept)
    for found, what, most in (
        (len(counts.f), "occupied cells", MOST_CELLS),
        (int(counts.starts[-1]), "cells in the tables to keep", MOST_MARGINS),
    ):
        if found > most:
            raise ParameterError(
                f"The table has {found:,} {what}, and {_OWNER} solves programmes of up to {most:,}. Name fewer "
                'variables with \'table\', or hold less: margins="1-way", or margins="total" for any table.'
            )
    return _solved(counts, exposed, n, loss, variables, _written(margins), kept)


def bound_for(
    recipe: DesignedPairs | None,
    data: Data,
    exposed: float | Sequence[float],
    *,
    n: int | None = None,
    table: str | Sequence[str] | None = None,
    loss: str = "hellinger",
) -> Bound:
    """Return the least loss over all tables that keep what a recipe keeps, as far as that takes no more than seconds.

    Held are the tables that the recipe keeps, the joint table of what it does not move, and that of what it moves
    together. Where these are too many, the same without the tables that it keeps; then only the number of records:
    `Bound.kept` says what is held, and each is a true bound.

    Parameters
    ----------
    recipe : a designed swap; None stands for any swap whatever.
    data, exposed, n, table, loss : as in `least_loss`; by default n and the first table of the recipe.

    Example
    -------
    Any swap whatever, one that keeps all tables of two variables, and one that moves the level of education alone:

    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> for recipe in (None, qd.DesignedSwap(), qd.DesignedSwap(["Edu"], keep="1-way")):
    ...     bound = qd.theory.bound_for(recipe, data, 0.008)
    ...     print(round(float(bound.at(0.008)), 4), len(bound.kept), "tables")
    0.0138 8 tables
    0.0154 28 tables
    0.0208 2 tables
    """
    require_data(data, "bound_for")
    one_of("bound_for", "loss", loss, tuple(LOSSES))
    n = whole("bound_for", "n", (3 if recipe is None else recipe.n) if n is None else n, least=2)
    own = None if recipe is None else protected_tables(recipe, data)[0]
    variables = _variables(data, own if table is None else table)
    for margins, kept in _held_by(recipe, data, variables):
        counts = counts_of(data, variables, kept)
        if len(counts.f) <= FEW_CELLS and counts.starts[-1] <= FEW_MARGINS:
            return _solved(counts, exposed, n, loss, variables, margins, kept)
    return _solved(total_only(data, variables), exposed, n, loss, variables, "total", ())


def _held_by(
    recipe: DesignedPairs | None, data: Data, variables: tuple[str, ...]
) -> Iterator[tuple[str, tuple[tuple[str, ...], ...]]]:
    """Yield what a recipe keeps of a table, in words and as tables; then the same without the tables in its `keep`."""
    if recipe is None:
        yield "1-way", kept_tables("1-way", variables)
        return
    protected = protected_tables(recipe, data)
    movers, _ = movers_of(recipe, data, protected)
    keep = recipe.keep if isinstance(recipe, DesignedSwap) else "1-way"
    named = sorted(named_variables(keep), key=data.columns.index)
    every = tuple(dict.fromkeys((*(name for table in protected for name in table), *named, *variables)))
    fixed = set(every).difference(*movers)
    for margins in (keep, "1-way"):
        # What moves together is one variable: a table with a part of it has all of it.
        held = [
            frozenset(table).union(*(mover for mover in movers if not set(mover).isdisjoint(table)))
            for table in kept_tables(margins, every, fixed=fixed)
        ]
        parts = [[name for name in variables if name in table] for table in held]
        yield (
            _written(margins),
            kept_tables([part for part in parts if part], variables, owner="bound_for", name="table"),
        )


def _solved(
    counts: Counts,
    exposed: float | Sequence[float],
    n: int,
    loss: str,
    variables: tuple[str, ...],
    margins: str,
    kept: tuple[tuple[str, ...], ...],
) -> Bound:
    before = float(counts.times @ exposure(counts.f, counts.f, n)) / counts.records
    asked = _exposures(exposed, before)
    points: list[Point] = []
    columns = Columns.start(counts, n)
    for each in asked:
        certificate, status, columns = solve(counts, LOSSES[loss], n, each, columns)
        value = max(0.0, certificate.at(each)) ** (1 / LOSSES[loss].power)
        if each == before:  # the file itself exposes so little, and loses nothing
            status = "optimal"
        reached = None if status == "unreachable" else value
        points.append(Point(each, reached, certificate.price, status, certificate))
    return Bound(tuple(points), variables, n, loss, margins, before, kept)


def _written(margins: Keep) -> str:
    """Return what is held as one line of text."""
    if isinstance(margins, int):
        return f"{margins}-way"
    return (
        margins
        if isinstance(margins, str)
        else ", ".join("*".join(each) if isinstance(each, list | tuple) else _written(each) for each in margins)
    )


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


def _exposures(exposed: object, before: float) -> list[float]:
    given = list(cast("Sequence[object]", exposed)) if isinstance(exposed, list | tuple | np.ndarray) else [exposed]
    must = f"numbers from 0 to {before:.6g}, which the file itself exposes"
    for value in given or [given]:
        if not 0 <= as_float(value) <= before + 1e-12:
            raise bad_parameter(_OWNER, "exposed", must, value)
    return [min(as_float(value), before) for value in given]
