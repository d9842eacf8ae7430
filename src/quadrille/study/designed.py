"""The trade-off curve of designed swaps: shares and prices swept in one study, beside any other recipes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Cross, Data, require_data, tidy
from quadrille.errors import ParameterError
from quadrille.plan import Move, Pairs, Plan
from quadrille.randomness import Stream, Words, draw_until_enough
from quadrille.recipe import Recipe
from quadrille.study.grid import Grid, grid
from quadrille.study.run import Progress, Recipes, search
from quadrille.study.study import Study
from quadrille.swap.designed import DesignedSwap
from quadrille.swap.designed.draw import TREATMENTS, without_spread
from quadrille.swap.designed.problem import DesignedProblem, Floats, problem_of

if TYPE_CHECKING:
    import polars as pl


Flags = NDArray[np.bool_]
MOST_SIZE = 6


def size_table(data: Data, plan: Plan, variables: Sequence[str] = (), *, most: int = MOST_SIZE) -> pl.DataFrame:
    """Count the cells of 1 to `most` records before and after a swap, as `chart.small_cells` draws them.

    >>> import quadrille as qd
    >>> from quadrille.study.designed import size_table
    >>> data = qd.datasets.cps8d()
    >>> found = size_table(data, qd.DesignedSwap(seed=7).plan(data))
    >>> dict(found.filter(when="before").select("size", "cells").iter_rows())
    {1: 361, 2: 186, 3: 118, 4: 101, 5: 89, 6: 65}
    """
    cross = Cross.of(data, tuple(variables) or data.keys)
    both = np.concatenate((cross.cells(data), cross.cells(plan.apply(data))))
    _, place = np.unique(both, return_inverse=True)
    f, g = (np.bincount(part, minlength=int(place.max()) + 1) for part in (place[: data.n], place[data.n :]))
    rows: list[dict[str, object]] = []
    for size in range(1, most + 1):
        was, now = int((f == size).sum()), int((g == size).sum())
        genuine = int(np.minimum(f, g)[g == size].sum())
        rows.append({"size": size, "when": "before", "cells": was, "records": size * was, "genuine": None})
        rows.append({"size": size, "when": "after", "cells": now, "records": size * now, "genuine": genuine})
    return tidy(rows)


def cell_costs(data: Data, recipe: DesignedSwap | None = None) -> pl.DataFrame:
    """Return what treating each size of small cell costs, per protected record, if nothing else is treated.

    One row is a treatment and a size: `cells`, `treatable` (cells that can be treated in this way), `low`, `cost` and
    `high` (the 10th, 50th and 90th percentile of the cost in `loss`, Hellinger squared, times the number of records),
    and `theory`: the cost where all other cells are large (Hellinger of one table only).
    """
    recipe = DesignedSwap(seed=0) if recipe is None else recipe
    problem, _ = problem_of(recipe, require_data(data, "cell_costs"))
    before = problem.state.lattice.cells["before"][problem.small]
    rows: list[dict[str, object]] = []
    for treatment in ("empty", "camouflage"):
        price = _priced(problem, treatment) * data.n
        for size in range(1, recipe.n):
            costs = price[before == size]
            known = costs[np.isfinite(costs)]
            low, cost, high = np.quantile(known, (0.1, 0.5, 0.9)).tolist() if len(known) else (None, None, None)
            theory = theory_cost(size, recipe.n, treatment) if recipe.loss == "hellinger" else None
            counted = {"cells": len(costs), "treatable": len(known)}
            rows.append(
                {
                    "treatment": treatment,
                    "size": size,
                    **counted,
                    "low": low,
                    "cost": cost,
                    "high": high,
                    "theory": theory,
                }
            )
    return tidy(rows)


def theory_cost(size: int, n: int, treatment: str) -> float:
    """Return the cost of treating a cell per record of it, in Hellinger squared times N, where others are large.

    A record that leaves a large cell costs 1/2 of overlap and one that enters a large cell gains 1/2; each needed move
    is balanced by another between large cells, so that these cancel but for the one at the small cell.

    >>> from quadrille.study.designed import theory_cost
    >>> [round(theory_cost(f, 3, "camouflage"), 3) for f in (1, 2)], theory_cost(1, 3, "empty")
    ([0.268, 0.025], 0.5)
    """
    if treatment == "empty":
        return 0.5
    return (0.5 * (n - size) - ((size * n) ** 0.5 - size)) / size


def _priced(problem: DesignedProblem, treatment: str) -> Floats:
    """Return what treating each small cell alone costs per exposed record; infinite where it cannot be done."""

    def attempt(words: Words) -> Floats | None:
        dice, price = kernels.dice(words), np.empty(len(problem.small))
        kernels.price_cells(price, TREATMENTS[treatment], without_spread(kernels.fresh(problem.state)), dice)
        return None if dice.cursor[1] else price

    return draw_until_enough(attempt, Stream.of(0, "cell costs"), guess=4096 + 8 * len(problem.small))


def undoing_plan(data: Data, n: int = 3, variables: Sequence[str] = ()) -> Plan:
    """Return a plan that fools the n-rule: records of small cells take part, and no cell changes.

    Every record of a small cell exchanges one variable with a record that differs from it in this variable only, so
    the two change places. The n-rule calls both safe; the released table is the true one.
    """
    keys = tuple(variables) or data.keys
    cells = Cross.of(data, keys).cells(data)
    _, place, size = np.unique(cells, return_inverse=True, return_counts=True)
    used = np.zeros(data.n, dtype=bool)
    pairs = {name: _undone(data, keys, name, size[place] < n, used) for name in keys}
    moves = [Move.exchange((name,), found) for name, found in pairs.items() if len(found)]
    return Plan(moves, data=data)


def _undone(data: Data, keys: tuple[str, ...], name: str, small: Flags, used: Flags) -> Pairs:
    """Pair unused records of small cells with others that differ in one variable only; a record takes part once."""
    rest = tuple(key for key in keys if key != name)
    group = Cross.of(data, rest).cells(data) if rest else np.zeros(data.n, dtype=np.int64)
    values, wanted = data[name].values, small & ~used
    near = np.flatnonzero(np.isin(group, group[wanted]) & ~used)
    members: dict[int, list[int]] = {}
    for row in near[np.argsort(small[near], kind="stable")].tolist():  # partners in large cells last: popped first
        members.setdefault(int(group[row]), []).append(row)
    made: list[tuple[int, int]] = []
    for row in np.flatnonzero(wanted).tolist():
        there = members[int(group[row])]
        partner = None if used[row] else next((r for r in there if not used[r] and values[r] != values[row]), None)
        if partner is not None:
            used[[row, partner]] = True
            made.append((row, partner))
    return np.array(made, dtype=np.int64).reshape(-1, 2)


def sweep_prices(data: Data, recipe: DesignedSwap, count: int = 14) -> tuple[float, ...]:
    """Return prices along which ever more cells of a file are treated: quantiles of what treating them costs."""
    problem, _ = problem_of(recipe, data)
    costs = _priced(problem, recipe.treatment) * data.n
    costs = costs[np.isfinite(costs) & (costs > 0)]
    if not len(costs):
        return ()
    steps = np.quantile(costs, (np.arange(count) + 0.5) / count)
    listed = [*steps.tolist(), 1.5 * float(costs.max())]
    return tuple(dict.fromkeys(float(f"{price:.3g}") for price in listed))


SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_OWNER = "designed_frontier"
_OURS = ("share", "price")


def designed_frontier(
    data: Data,
    swap: Sequence[str] = (),
    *,
    n: int = 3,
    shares: Sequence[float] = SHARES,
    prices: Sequence[float] | None = None,
    choose: str | Sequence[str] = "random",
    seeds: int | None = None,
    seed: object = None,
    random: Recipes | None = None,
    measures: Sequence[str] | None = None,
    out: str | Path = "study",
    workers: int | None = None,
    progress: Progress | bool | None = None,
    **parameters: object,
) -> Study:
    """Search the trade-off curve of designed swaps; an unfinished study is resumed.

    At each price all cells are treated that are worth it: that gives the lower curve. Each share of the small cells,
    chosen in the ways of `choose`, is treated at any cost: chosen at random, the curve that hides the choice.

    Parameters
    ----------
    data, swap, n : as in `DesignedSwap`.
    shares, prices : what to sweep; either may be empty. Without prices, those at which cells of this file are treated.
    choose : which cells a share takes: "random", "cheapest" or both.
    seeds : number of secret seeds of every design, 1 by default; `seed` gives seeds, for tests and papers.
    random : other recipes or grids to stand on the same chart, such as a grid of `RandomSwap`.
    measures : what to score; by default exposed, small_cells, hellinger and confidence of the protected tables.
    out, workers, progress : as in `search`.
    parameters : any other parameter of `DesignedSwap`, the same for all: `tables`, `loss`, `spread`, `together`, ...

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> cloud = qd.grid(qd.RandomSwap, swap=[["Edu"], ["Race"]], pairs=[244, 2442], seed=1)
    >>> study = qd.designed_frontier(
    ...     data, shares=[0.5, 1.0], prices=[0.03, 0.3], seed=1, random=cloud, out="designed", progress=False
    ... )
    >>> study.frontier("exposed", "hellinger")["method"].unique().to_list(), len(study)
    (['DesignedSwap'], 8)
    """
    require_data(data, _OWNER)
    for name in _OURS:
        if name in parameters:
            raise ParameterError(f"{_OWNER} sweeps '{name}s' itself. Leave '{name}' out.")
    common = {**parameters, "swap": swap, "n": n}
    known = DesignedSwap(**{**common, "seed": 0})  # pyright: ignore[reportArgumentType]
    common |= {name: value for name, value in known.parameters().items() if name in common}
    prices = sweep_prices(data, known) if prices is None else prices
    grids = sweeps(common, tuple(shares), tuple(prices), choose, seeds, seed)
    others = [] if random is None else [random] if isinstance(random, Grid | Recipe) else list(random)
    wanted = default_measures(n, known.tables) if measures is None else measures
    return search(data, [*others, *grids], wanted, out=out, workers=workers, progress=progress)


def sweeps(
    common: Mapping[str, object],
    shares: tuple[float, ...],
    prices: tuple[float, ...],
    choose: str | Sequence[str],
    seeds: int | None,
    seed: object,
) -> list[Grid]:
    """Return the grids of both sweeps; `common` are the parameters that all designs share."""
    if not shares and not prices:
        raise ParameterError(f"{_OWNER} has nothing to sweep. Give 'shares', 'prices' or both.")
    fixed = {name: [value] for name, value in common.items() if value or name not in ("tables", "together")}
    ways = [choose] if isinstance(choose, str) else list(choose)
    made: list[Grid] = []
    if prices:
        made.append(grid(DesignedSwap, **fixed, price=prices, seeds=seeds, seed=seed))
    if shares:
        made.append(grid(DesignedSwap, **fixed, share=shares, choose=ways, seeds=seeds, seed=seed))
    return made


def default_measures(n: int, tables: Sequence[object]) -> tuple[str, ...]:
    """Return exposed, small_cells, hellinger and confidence of the protected tables.

    >>> from quadrille.study.designed import default_measures
    >>> default_measures(3, ())
    ('exposed', 'small_cells', 'hellinger', 'confidence')
    >>> default_measures(5, [("Age", "Sex")])
    ('exposed(Age*Sex, n=5)', 'small_cells(Age*Sex, n=5)', 'hellinger(Age*Sex)', 'confidence(Age*Sex, n=5)')
    """
    margins = ["*".join(cast("Sequence[str]", table)) for table in tables] or [""]
    option = "" if n == 3 else f"n={n}"

    def told(name: str, *parts: str) -> list[str]:
        given = [[part for part in (margin, *parts) if part] for margin in margins]
        return [f"{name}({', '.join(each)})" if each else name for each in given]

    return (*told("exposed", option), *told("small_cells", option), *told("hellinger"), *told("confidence", option))
