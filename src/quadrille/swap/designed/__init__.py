"""Designed swapping: pairs chosen so that the small cells of a table are hidden at the least loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any, Literal

from quadrille.data import Data
from quadrille.errors import OverlapError, ParameterError
from quadrille.params import (
    NOT_INFINITE,
    SEED,
    ColumnName,
    Columns,
    ColumnSets,
    Count,
    Flag,
    Losses,
    Number,
    RuleList,
    Share,
    Word,
)
from quadrille.randomness import Seed
from quadrille.recipe import Prepared, Recipe
from quadrille.swap.designed.draw import DesignedDraw
from quadrille.swap.designed.problem import problem_of

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


@dataclass(frozen=True)
class Curve:
    """Designed swaps along their trade-off, which `search` turns into grids for its data; see `DesignedSwap.curve`."""

    shares: tuple[float, ...]
    prices: tuple[float, ...] | None
    choose: tuple[str, ...]
    seeds: int | None
    seed: object
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class DesignedSwap(Recipe):
    """Hide the small cells of a table: let records come in until they are no longer small, or let theirs leave.

    Each pair exchanges one variable, or one set of `together`. A small cell gets a record from a neighbouring cell that
    differs in that variable only; its partner moves the other way between cells that are large. No other cell becomes
    small. Moves are chosen by what they cost in `loss`; then cells are treated anew while that lowers the loss.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> plan = qd.DesignedSwap(seed=7).plan(data)
    >>> scores = qd.score(data, plan, ["exposed", "hellinger"])
    >>> scores["exposed"] < 0.001, scores["hellinger"] < 0.049
    (True, True)
    """

    swap: Annotated[
        Sequence[str],
        Columns("variables that may move", otherwise="those of the protected tables", moves=True),
    ] = ()
    _: KW_ONLY
    tables: Annotated[
        Sequence[Sequence[str]],
        ColumnSets("tables whose small cells are protected", otherwise="one, of the key variables", moves=True),
    ] = ()
    n: Annotated[int, Count("cells of 1 to n - 1 records are small", least=2, unit="records")] = 3
    share: Annotated[float, Share("share of the small cells to treat", unit="share of the small cells")] = 1.0
    choose: Annotated[
        Literal["random", "cheapest"],
        Word("which ones: random or cheapest. Random: an intruder cannot tell; cheapest: closest to the bound"),
    ] = "random"
    treatment: Annotated[
        Literal["cheaper", "camouflage", "empty", "either"],
        Word(
            "cheaper, either, camouflage or empty. Cheaper: camouflage, or empty a cell where that costs less, and "
            "leave one that cannot be camouflaged; either: empty such a cell where that can be done; camouflage, "
            "empty: only that"
        ),
    ] = "cheaper"
    loss: Annotated[
        str | Mapping[str, float],
        Losses(
            'what to keep low, as in "hellinger=1,hellinger(Age*Sex)=5". A loss of a table, such as "hellinger", '
            '"total_variation(Age*Sex)" or "chi_square", or several with their weights',
            option="keep-low",
        ),
    ] = field(default="hellinger", hash=False)
    spread: Annotated[
        float,
        Share(
            "how much dearer than the cheapest a way may be; one of these is drawn, with 0 always the cheapest",
            within="[0, 1]",
            must="a number from 0 to 1",
            unit="share of the cost",
        ),
    ] = 0.1
    price: Annotated[
        float | None,
        Number(
            "treat where loss + price * exposed falls; Hellinger distances are squared in it",
            must=NOT_INFINITE,
            otherwise="at any cost",
        ),
    ] = None
    improve: Annotated[bool, Flag("treat cells anew; round by round, while that lowers the loss")] = True
    together: Annotated[Sequence[Sequence[str]], ColumnSets("sets of swap variables that move as one: Age*MS")] = ()
    same: Annotated[Sequence[str], Columns("columns that must agree within a pair; never swap variables")] = ()
    different: Annotated[Sequence[str], Columns("columns that must differ within a pair; never swap variables")] = ()
    never: Annotated[
        str | None, ColumnName("column that is true for records that must not be touched", steers=True)
    ] = None
    rules: Annotated[
        Sequence[str],
        RuleList('no pair may make a record meet it: "Age<16 & MS=Widowed"', option="rule"),
    ] = ()
    max_pairs: Annotated[int | None, Count("most pairs", unit="pairs")] = None
    seed: Annotated[Seed, SEED] = field(default=None, repr=False)

    @classmethod
    def curve(
        cls,
        swap: Sequence[str] = (),
        *,
        n: int = 3,
        shares: Sequence[float] = SHARES,
        prices: Sequence[float] | None = None,
        choose: str | Sequence[str] = "random",
        seeds: int | None = None,
        seed: object = None,
        **parameters: Any,
    ) -> Curve:
        """Return the designs along the trade-off curve, for `search` and `forecast`, among any other recipes.

        At each price all cells are treated that are worth it: that gives the lower curve. Each share of the small
        cells, chosen in the ways of `choose`, is treated at any cost: chosen at random, the curve that hides the
        choice.

        Parameters
        ----------
        swap, n : as in `DesignedSwap`.
        shares, prices : what to sweep; either may be empty. Without prices, those at which cells of the data are
            treated, found when the data are known: the same data have the same prices, so that a study resumes.
        choose : which cells a share takes: "random", "cheapest" or both.
        seeds : number of secret seeds of every design, 1 by default; `seed` gives seeds, for tests and papers.
        parameters : any other parameter of `DesignedSwap`, the same for all: `tables`, `loss`, `spread`, ...

        Example
        -------
        >>> import quadrille as qd
        >>> cloud = qd.grid(qd.RandomSwap, swap=[["Edu"], ["Race"]], pairs=[244, 2442], seed=1)
        >>> curve = qd.DesignedSwap.curve(shares=[0.5, 1.0], prices=[0.03, 0.3], seed=1)
        >>> measures = ["exposed", "small_cells", "hellinger"]
        >>> study = qd.search(qd.datasets.cps8d(), [cloud, curve], measures, out="designed", progress=False)
        >>> study.frontier("exposed", "hellinger")["method"].unique().to_list(), len(study)
        (['DesignedSwap'], 8)
        """
        for name in ("share", "price"):
            if name in parameters:
                raise ParameterError(f"DesignedSwap.curve sweeps '{name}s' itself. Leave '{name}' out.")
        if not shares and prices is not None and not prices:
            raise ParameterError("DesignedSwap.curve has nothing to sweep. Give 'shares', 'prices' or both.")
        common: dict[str, Any] = {**parameters, "swap": swap, "n": n}
        known = cls(**common, seed=0).parameters()
        ways = (choose,) if isinstance(choose, str) else tuple(choose)
        swept = None if prices is None else tuple(prices)
        return Curve(tuple(shares), swept, ways, seeds, seed, {name: known[name] for name in common})

    @classmethod
    def moved(cls, parameters: Mapping[str, object]) -> frozenset[str]:
        """Return the swap variables, or those of the tables."""
        return super().moved({"swap": parameters.get("swap", ())}) or super().moved(parameters)

    def prepare(self, data: Data) -> Prepared:
        """Tabulate the file and find out which cells neighbour which."""
        problem, never = problem_of(self, data)
        return Prepared(DesignedDraw(self, data, problem, never).draw)

    def check(self) -> None:
        """Refuse columns with two parts."""
        part: dict[str, str] = {}
        lists = {"swap": self.swap, "same": self.same, "different": self.different, "never": self.steering_columns}
        for parameter, columns in lists.items():
            for name in columns:
                if name in part:
                    raise OverlapError(
                        f"Column {name!r} is in both '{part[name]}' and '{parameter}' of DesignedSwap. "
                        "A column can be swapped, kept the same, kept different or say who takes no part: one of these."
                    )
                part[name] = parameter
        grouped = [name for group in self.together for name in group]
        if len(set(grouped)) != len(grouped):
            raise ParameterError("A column is in two sets of 'together' of DesignedSwap. Name it in one.")
        for name in grouped if self.swap else ():
            if name not in self.swap:
                raise ParameterError(f"'together' of DesignedSwap names {name!r}, which is not a swap variable.")
