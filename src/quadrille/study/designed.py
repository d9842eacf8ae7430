"""Studying designed swaps: the grids of their curve, what cells cost, what they gain over random swaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from quadrille import kernels
from quadrille.data import Cross, Data, require_data, tidy
from quadrille.delta import PlanReport
from quadrille.plan import Move, Pairs, Plan
from quadrille.randomness import Stream, Words, draw_until_enough
from quadrille.recipe import Recipe
from quadrille.score.published import table_name
from quadrille.study.choose import dominated_by
from quadrille.study.grid import Grid, grid
from quadrille.swap.designed import Curve, DesignedSwap
from quadrille.swap.designed.lattice import cube_problem, layout_of
from quadrille.swap.designed.pairs import TREATMENTS, DesignedPairs, without_spread
from quadrille.swap.designed.problem import DesignedProblem, Floats, problem_of
from quadrille.swap.designed.search import natural_price
from quadrille.text import Shown

if TYPE_CHECKING:
    import polars as pl


Flags = NDArray[np.bool_]
Point = tuple[float, float]
MOST_SIZE = 6


def size_table(data: Data, plan: Plan, variables: Sequence[str] = (), *, most: int = MOST_SIZE) -> pl.DataFrame:
    """Count the cells of 1 to `most` records before and after a swap, as `chart.small_cells` draws them.

    >>> import quadrille as qd
    >>> from quadrille.study.designed import size_table
    >>> data = qd.datasets.cps8d()
    >>> found = size_table(data, qd.DesignedSwap(effort=0.05, seed=7).plan(data))
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


def cell_costs(data: Data, recipe: DesignedPairs | None = None) -> pl.DataFrame:
    """Return what treating each size of small cell costs, per protected record, if nothing else is treated.

    One row is a treatment and a size: `cells`, `treatable` (cells that can be treated in this way), `low`, `cost` and
    `high` (the 10th, 50th and 90th percentile of the cost in `loss`, Hellinger squared, times the number of records),
    and `theory`: the cost where all other cells are large (Hellinger of one table only).
    """
    recipe = DesignedPairs(seed=0) if recipe is None else recipe
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


def one_way_report(data: Data, recipe: Recipe) -> PlanReport | None:
    """Return the account of the same swap without kept tables, to see what keeping costs; None where nothing is kept.

    >>> import quadrille as qd
    >>> from quadrille.study.designed import one_way_report
    >>> data = qd.datasets.cps8d()
    >>> one_way_report(data, qd.DesignedSwap(effort=0.1, seed=7)).details["exposed_after"] < 5
    True
    >>> one_way_report(data, qd.DesignedSwap(keep="1-way", seed=7)) is None
    True
    """
    if not isinstance(recipe, DesignedSwap) or recipe.keep == "1-way":
        return None
    return recipe.changed(keep="1-way").plan(data).report(data)


PUBLISHED_WEIGHT = 2.0
"""How much a published table counts in the loss of a designed swap, the protected tables counting 1."""


def published_loss(
    recipes: Sequence[DesignedSwap], data: Data, tables: Sequence[tuple[str, ...]]
) -> dict[str, float] | None:
    """Return the default loss with the published tables added that one of the recipes may change; None without any.

    A kept table shows its small cells as they were, so published ones are kept only where the recipe says so; in the
    loss they change little, and their small cells are still protected.

    >>> import quadrille as qd
    >>> from quadrille.study.designed import published_loss
    >>> published_loss([qd.DesignedSwap()], qd.datasets.cps8d(), [("Age", "Edu"), ("Age", "Edu", "Sex")])
    {'hellinger': 1.0, 'hellinger(Age*Edu*Sex)': 2.0}
    """
    changing: set[tuple[str, ...]] = set()
    for layout in (layout_of(recipe, data) for recipe in recipes):
        moving = {name for axis in layout.axes if axis.moves for name in axis.columns}
        changing.update(
            table
            for table in tables
            if moving & set(table) and not any(set(table) <= set(kept) for kept in layout.kept)
        )
    if not changing:
        return None
    listed = [table for table in tables if table in changing]
    return {"hellinger": 1.0} | {f"hellinger({table_name(table)})": PUBLISHED_WEIGHT for table in listed}


def with_published(recipe: Recipe, data: Data, tables: Sequence[tuple[str, ...]]) -> Recipe:
    """Return a designed swap whose loss has the published tables, and any other recipe as it is.

    >>> import quadrille as qd
    >>> from quadrille.study.designed import with_published
    >>> made = with_published(qd.DesignedSwap(seed=1), qd.datasets.cps8d(), [("Age", "Edu", "Sex")])
    >>> made.parameters()["loss"]
    {'hellinger': 1.0, 'hellinger(Age*Edu*Sex)': 2.0}
    """
    if not isinstance(recipe, DesignedSwap) or not tables:
        return recipe
    loss = published_loss([recipe], data, tables)
    return recipe if loss is None else recipe.changed(loss=loss)


PRICES = (0.06, 0.15, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.6)
"""Prices of a sweep, in units of what protecting a record costs where all other cells are large, and a little more."""


def sweep_prices(data: Data, recipe: DesignedSwap) -> tuple[float, ...]:
    """Return prices along which ever more cells are treated.

    >>> import quadrille as qd
    >>> from quadrille.study.designed import sweep_prices
    >>> sweep_prices(qd.datasets.cps8d(), qd.DesignedSwap(seed=0))[::4]
    (0.027, 0.27, 0.451)
    """
    natural = natural_price(cube_problem(recipe, data), recipe.n)
    return tuple(dict.fromkeys(float(f"{price * natural:.3g}") for price in PRICES))


def curve_grids(curve: Curve, data: Data) -> list[Grid]:
    """Return the grids of a curve: along prices, those of these data unless given, inferences, coins and shares.

    >>> import quadrille as qd
    >>> from quadrille.study.designed import curve_grids
    >>> [len(grid) for grid in curve_grids(qd.DesignedSwap.curve(seeds=3), qd.datasets.cps8d())]
    [33, 21, 12]
    """
    fixed = curve.parameters
    first = DesignedSwap(**fixed, keep=cast("Any", curve.keep[0]), seed=0)
    prices = sweep_prices(data, first) if curve.prices is None else curve.prices
    axes: dict[str, Any] = {
        name: [value] for name, value in fixed.items() if value or name not in ("tables", "together")
    }
    axes["keep"] = curve.keep
    sweeps: list[dict[str, Any]] = [{"price": prices}] if prices else []
    if curve.inferences:
        sweeps.append({"price": prices[:1] or sweep_prices(data, first)[:1], "inference": curve.inferences})
    sweeps += [{"coin": curve.coins}] if curve.coins else []
    sweeps += [{"share": curve.shares, "choose": curve.choose}] if curve.shares else []
    return [grid(DesignedSwap, **axes, **sweep, seeds=curve.seeds, seed=curve.seed) for sweep in sweeps]


def default_measures(n: int, tables: Sequence[object]) -> tuple[str, ...]:
    """Return exposed, attributed_unique, small_cells, hellinger and confidence of the protected tables.

    >>> from quadrille.study.designed import default_measures
    >>> default_measures(3, ())
    ('exposed', 'attributed_unique', 'small_cells', 'hellinger', 'confidence')
    >>> default_measures(5, [("Age", "Sex")])[:2]
    ('exposed(Age*Sex, n=5)', 'attributed_unique(Age*Sex)')
    """
    margins = ["*".join(cast("Sequence[str]", table)) for table in tables] or [""]
    option = "" if n == 3 else f"n={n}"

    def of(name: str, *parts: str) -> list[str]:
        listed = [", ".join(filter(None, (margin, *parts))) for margin in margins]
        return [f"{name}({within})" if within else name for within in listed]

    return (
        *of("exposed", option),
        *of("attributed_unique"),
        *of("small_cells", option),
        *of("hellinger"),
        *of("confidence", option),
    )


@dataclass(frozen=True, repr=False)
class Gains(Shown):
    """What designed swaps gain over the others of a study: risk and loss of telling candidates, None where none is."""

    axes: tuple[str, str]
    random: int
    designed: int
    beaten: int
    gentlest_random: Point | None
    at_no_more_loss: Point | None
    safest_random: Point | None
    at_no_more_risk: Point | None
    safest_designed: Point | None

    def as_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return asdict(self)

    def facts(self) -> list[tuple[str, str]]:
        """Return the numbers as names and sentences."""
        rows = [
            ("beaten", f"{self.beaten:,} of {self.random:,} random candidates, by one of {self.designed:,} designed")
        ]
        if self.gentlest_random:
            rows.append(("gentlest", self._compared(self.gentlest_random, self.at_no_more_loss, "loss")))
        if self.safest_random:
            rows.append(("safest", self._compared(self.safest_random, self.at_no_more_risk, "risk")))
        if self.safest_designed:
            rows.append(("beyond", f"the safest designed swap has {self._scores(self.safest_designed)}"))
        return rows

    def _compared(self, random: Point, designed: Point | None, what: str) -> str:
        best = "none" if designed is None else self._scores(designed)
        return f"random {self._scores(random)}; designed at no more {what}: {best}"

    def _scores(self, point: Point) -> str:
        return f"{self.axes[0]} {point[0]:.5f}, {self.axes[1]} {point[1]:.4f}"


def gains_of(axes: tuple[str, str], points: Floats, ours: Flags) -> Gains:
    """Compare designed candidates with all others; `points` are their risks and losses."""
    random, designed = points[~ours], points[ours]
    beaten = sum(int(dominated_by(np.vstack((one[None], designed)))[0] > 0) for one in random)
    gentle, safe = _least(random, 1), _least(random, 0)
    return Gains(
        axes=axes,
        random=len(random),
        designed=len(designed),
        beaten=beaten,
        gentlest_random=gentle,
        at_no_more_loss=None if gentle is None else _least(designed[designed[:, 1] <= gentle[1]], 0),
        safest_random=safe,
        at_no_more_risk=None if safe is None else _least(designed[designed[:, 0] <= safe[0]], 1),
        safest_designed=_least(designed, 0),
    )


def _least(points: Floats, column: int) -> Point | None:
    """Return the point with the least value in a column; of equal ones the least in the other."""
    if not len(points):
        return None
    risk, loss = min(points.tolist(), key=lambda point: (point[column], point[1 - column]))
    return risk, loss
