"""The linear programme behind the least loss: which margins to price, and at what (derivations/bound.md, 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, cast

import numpy as np

from quadrille.theory.certificate import Certificate, Counts, Floats, Ints, Loss, certify, exposure

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


@dataclass(frozen=True)
class Solved:
    """The best inequality for an exposure, and whether it is the optimum of the programme."""

    certificate: Certificate
    status: Status


def solve(counts: Counts, loss: Loss, n: int, exposed: float, columns: Columns) -> tuple[Solved, Columns]:
    """Find the inequality that is strongest at `exposed`; return also the columns, for the next exposure."""
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
    return Solved(best, status), columns


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
    result = cast("Callable[..., _Result]", linprog)(
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
    return result.fun, float(result.x[-1]), price, result.eqlin.marginals[: counts.starts[-1]]


class _Duals(Protocol):
    """The multipliers of a set of rows."""

    marginals: Floats


class _Result(Protocol):
    """What the solver returns."""

    status: int
    fun: float
    x: Floats
    ineqlin: _Duals
    eqlin: _Duals


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
