"""From the parameters of a designed swap and a file to tables, losses and movers; refuses what cannot be done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from quadrille.data import Data, require_columns
from quadrille.errors import InputError, ParameterError, infeasible
from quadrille.kernels.lattice import CHI_SQUARE, HELLINGER, TOTAL_VARIATION
from quadrille.measure_base import Call
from quadrille.recipe import carried, refuse_fixed
from quadrille.rules import Rules
from quadrille.swap.frame import flags_of
from quadrille.swap.lattice import Ground, Task, View, build
from quadrille.swap.limits import Limits

if TYPE_CHECKING:
    from quadrille.swap.designed import DesignedSwap

LOSSES = {
    "hellinger": HELLINGER,
    "total_variation": TOTAL_VARIATION,
    "effective_swap_rate": TOTAL_VARIATION,
    "chi_square": CHI_SQUARE,
}
"""Losses that are a sum over cells, or its root, and the number by which the kernels know them."""
Movers = tuple[tuple[str, ...], ...]


def ground_of(recipe: DesignedSwap, data: Data) -> tuple[Ground, NDArray[np.bool_]]:
    """Tabulate a file for a recipe; return also which records take no part."""
    for parameter in ("swap", "same", "different"):
        require_columns(data, getattr(recipe, parameter), f"'{parameter}' of DesignedSwap")
    require_columns(data, recipe.secret_columns, "'never' of DesignedSwap")
    protected = _tables(recipe, data)
    movers, columns = _movers(recipe, data, protected)
    views = _views(recipe, data, protected)
    task = Task(views, movers, columns, tuple(recipe.same), tuple(recipe.different), recipe.n, recipe.spread)
    never = flags_of(data, recipe.never, "never", "DesignedSwap")
    limits = Limits.of(Rules.of(data, recipe.rules, "DesignedSwap"), movers, columns)
    return build(data, task, never, limits), never


def _tables(recipe: DesignedSwap, data: Data) -> list[tuple[str, ...]]:
    """Return the protected tables."""
    tables = [tuple(table) for table in recipe.tables]
    for table in tables:
        require_columns(data, table, "'tables' of DesignedSwap")
    keys = tuple(name for name in data.keys if name not in recipe.secret_columns)
    found = tables or [keys]
    if not found[0]:
        raise InputError("The file has no key variable. Name categorical variables with 'tables' of DesignedSwap.")
    return list(dict.fromkeys(found))


def _movers(recipe: DesignedSwap, data: Data, protected: list[tuple[str, ...]]) -> tuple[Movers, Movers]:
    """Return the variables that each pair exchanges, as the tables see them, and all columns that go with them."""
    fixed = {*recipe.same, *recipe.different}
    inside = dict.fromkeys(name for table in protected for name in table)
    swap = tuple(recipe.swap) or tuple(name for name in inside if name not in fixed and name != data.weight)
    refuse_fixed(data, swap)
    for name in swap:
        if name not in inside:
            raise ParameterError(
                f"'swap' of DesignedSwap names {name!r}, which is in none of the protected tables: moving it protects "
                "nobody. Leave it out, or name a table that has it with 'tables'."
            )
    grouped = [tuple(group) for group in recipe.together]
    for name in (name for group in grouped for name in group):
        if name not in swap:
            raise ParameterError(f"'together' of DesignedSwap names {name!r}, which is not a swap variable.")
    alone = [(name,) for name in swap if not any(name in group for group in grouped)]
    whole = _united([(*mover, *carried(data, mover, recipe.same)) for mover in [*grouped, *alone]])
    seen = [tuple(name for name in mover if name in inside) for mover in whole]
    for mover in seen:
        if any(0 < len(set(mover) & set(table)) < len(mover) for table in protected):
            raise ParameterError(
                f"The columns {', '.join(mover)} move together, and one of the protected tables has some of them only. "
                "A table must have all of them or none."
            )
    several = [m for m, mover in enumerate(seen) if any(_varies(data, name) for name in mover)]
    if not several:
        raise infeasible(
            "Every variable that DesignedSwap may move has one category only in this file, so nothing can be swapped. "
            "Name other variables with 'swap' or 'tables'.",
            1,
            0,
            exact=True,
        )
    return tuple(seen[m] for m in several), tuple(whole[m] for m in several)


def _united(movers: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Unite movers that share a column."""
    made: list[tuple[str, ...]] = []
    for mover in movers:
        shared = [other for other in made if set(other) & set(mover)]
        made = [other for other in made if other not in shared]
        made.append(tuple(dict.fromkeys(name for each in (*shared, mover) for name in each)))
    return made


def _varies(data: Data, name: str) -> bool:
    values = data.coded(name, purpose="DesignedSwap").values
    return bool((values != values[0]).any())


def _views(recipe: DesignedSwap, data: Data, protected: list[tuple[str, ...]]) -> tuple[View, ...]:
    """Return the protected tables and those whose loss counts; a table with the same variables once."""
    losses = {recipe.loss: 1.0} if isinstance(recipe.loss, str) else dict(recipe.loss)
    views = {frozenset(table): View(table, protected=True, loss=0, importance=0.0) for table in protected}
    extra: list[View] = []
    for address, importance in losses.items():
        kind, margin = _loss(recipe, data, address)
        key = frozenset(margin)
        if key in views and views[key].loss == 0:
            views[key] = views[key]._replace(loss=kind, importance=importance)
        else:
            extra.append(View(margin, protected=False, loss=kind, importance=importance))
    return (*views.values(), *extra)


def _loss(recipe: DesignedSwap, data: Data, address: str) -> tuple[int, tuple[str, ...]]:
    call = Call.parse(address)
    if call.name not in LOSSES or call.where or call.options or call.models or call.margin == ("2-way",):
        raise ParameterError(
            f"'loss' of DesignedSwap has {address!r}. It takes {', '.join(LOSSES)}, each alone or with one margin, "
            'like "hellinger(Age*Sex)".'
        )
    margin = call.margin or tuple(name for name in data.keys if name not in recipe.secret_columns)
    require_columns(data, margin, "'loss' of DesignedSwap")
    return LOSSES[call.name], margin
