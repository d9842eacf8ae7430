"""The tables that near="loss" keeps low: what each household would do to them elsewhere."""

from __future__ import annotations

import numpy as np

from quadrille import kernels
from quadrille.data import Ints, require_columns
from quadrille.errors import ParameterError
from quadrille.measure.base import Address
from quadrille.swap.designed.problem import LOSSES
from quadrille.swap.groups import group_ids
from quadrille.swap.targeted.problem import OWNER, Problem

_MOST_CELLS = 1 << 26


def loss_tables(problem: Problem) -> kernels.LossTables:
    """Lay the tables out, with nothing moved; empty ones where no loss is named."""
    data, units, loss = problem.data, problem.units, problem.recipe.loss or {}
    prices = {loss: 1.0} if isinstance(loss, str) else dict(loss)
    rows = data.n if prices else 0
    weight = np.ones(rows) if data.ticks is None else data.ticks.values[:rows] / data.ticks.per_unit
    stay = np.zeros((len(prices), data.n), dtype=np.int64)
    move = np.zeros((len(prices), units.count), dtype=np.int64)
    kind: list[int] = []
    cells = 0
    for number, address in enumerate(prices):
        margin, measure = _margin(problem, address)
        kind.append(measure)
        places, staying = ([name for name in margin if (name in problem.columns) is here] for here in (True, False))
        place, moving = _ids(problem, places)
        rest, count = _ids(problem, staying)
        move[number] = place[units.first]
        if cells + count * moving > _MOST_CELLS:
            raise ParameterError(
                f"The tables in 'loss' of {OWNER} have more than {_MOST_CELLS:,} cells. Name tables of fewer variables."
            )
        stay[number] = cells + rest * moving
        cells += count * moving
    before = np.zeros(cells)
    for number in range(len(prices)):
        before += np.bincount(stay[number] + move[number][units.of], weights=weight, minlength=cells)
    return kernels.LossTables(
        stay=stay,
        move=move,
        kind=np.array(kind, dtype=np.int64),
        price=np.array(list(prices.values()), dtype=np.float64),
        now=before,
        before=before,
        weight=weight,
        total=float(weight.sum()),
        rows=units.rows,
        first=units.start,
        sizes=units.sizes,
    )


def _ids(problem: Problem, names: list[str]) -> tuple[Ints, int]:
    data = problem.data
    columns = [data.coded(name, purpose=f"'loss' of {OWNER}") for name in names]
    return group_ids([(column.values, column.size) for column in columns], data.n)


def _margin(problem: Problem, address: str) -> tuple[tuple[str, ...], int]:
    """Return the table of a loss, which must have a column that moves, and the number of its measure."""
    call = Address.parse(address)
    fine = call.name in LOSSES and call.margin and call.margin != ("2-way",)
    if not fine or call.where or call.options or call.models:
        raise ParameterError(
            f"'loss' of {OWNER} has {address!r}. It takes {', '.join(LOSSES)}, each with one margin, "
            'like "hellinger(region*age)".'
        )
    assert call.margin is not None
    require_columns(problem.data, call.margin, f"'loss' of {OWNER}")
    if not set(call.margin) & set(problem.columns):
        raise ParameterError(
            f"'loss' of {OWNER} has {address!r}, a table in which nothing moves. Cross it with a level of geography: "
            f"{', '.join(problem.columns)}."
        )
    return call.margin, LOSSES[call.name]
