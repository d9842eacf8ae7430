"""The trade-off curve of designed swaps: shares and prices swept in one study, beside any other recipes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from quadrille.data import Data, require_data
from quadrille.errors import ParameterError
from quadrille.recipe import Recipe
from quadrille.study.cells import sweep_prices
from quadrille.study.grid import Grid, grid
from quadrille.study.progress import Progress
from quadrille.study.results import Study
from quadrille.study.run import Recipes, search
from quadrille.swap.designed import DesignedSwap

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
