"""Designed swapping: small cells of a table are hidden, and the tables that matter stay as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, ClassVar, Literal

from quadrille.data import Data
from quadrille.errors import ParameterError
from quadrille.params import NOT_INFINITE, Columns, Count, Flag, Number, Share, Word
from quadrille.randomness import Stream
from quadrille.recipe import Movement, Prepared
from quadrille.swap.designed.lattice import cube_problem, layout_of
from quadrille.swap.designed.pairs import DesignedPairs
from quadrille.swap.designed.search import CubeDraw
from quadrille.swap.kept import Keep, Kept
from quadrille.text import Shown

COINS = (0.0, 0.2, 0.5, 1.0)
INFERENCES = (0.0, 0.05, 0.06, 0.07, 0.08, 0.15, 0.3)
_CURVE_EFFORT = 0.3


@dataclass(frozen=True, repr=False)
class Curve(Shown):
    """Designed swaps along their trade-off, which `search` turns into grids for its data; see `DesignedSwap.curve`."""

    prices: tuple[float, ...] | None
    keep: tuple[object, ...]
    coins: tuple[float, ...]
    inferences: tuple[float, ...]
    shares: tuple[float, ...]
    choose: tuple[str, ...]
    seeds: int | None
    seed: object
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class DesignedSwap(DesignedPairs):
    """Hide the small cells of a table at the least loss, and keep other tables exactly as they are.

    Small cells are filled until they are no longer small, or emptied, by moves that cannot change a kept table: by
    default no table of two variables, to the last record. A search finds moves that cost little in `loss`; then each
    variable is permuted among the fewest records that can make the new table.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> plan = qd.DesignedSwap(effort=0.3, seed=7).plan(data)
    >>> scores = qd.score(data, plan, ["exposed", "hellinger", "hellinger(2-way)"])
    >>> scores["exposed"] < 0.0002, scores["hellinger"] < 0.06, scores["hellinger(2-way)"]
    (True, True, 0.0)
    """

    version: ClassVar[int] = 3
    by_partners: ClassVar[bool] = True
    """Whether the coin is tossed between cells that are as plausible as each other."""

    _: KW_ONLY
    keep: Annotated[
        Keep,
        Kept(
            'tables that stay exact: 2-way, 3-way, Age*Edu*Sex, or several. "1-way", "2-way", ... are all tables of so '
            'many variables, "logit(Y)" is what a logistic regression of Y needs'
        ),
    ] = "2-way"
    treatment: Annotated[
        Literal["either", "camouflage", "empty"],
        Word("either, camouflage or empty. Camouflage fills small cells, empty empties them, either takes the cheaper"),
    ] = "either"
    coin: Annotated[
        float,
        Share(
            "chance of a cell of one record to be left or displaced, by a fair coin. It is displaced to an empty cell "
            "that is as plausible: half of the records that stand alone are then genuine, and who they are is told a "
            "little better than by chance where tables are kept (AUC .57 on CPS-8d)",
            within="[0, 1]",
            must="a number from 0 to 1",
            unit="chance",
        ),
    ] = 0.0
    inference: Annotated[
        float,
        Number(
            "price of a value that can be inferred of somebody who is alone with all other values; a cell from which "
            "much can be inferred is then rather emptied than filled up",
            must=NOT_INFINITE,
        ),
    ] = 0.1
    sensitive: Annotated[
        Sequence[str],
        Columns("variables that an intruder wants to know: left out of the protected table and of the loss"),
    ] = ()
    fit: Annotated[
        Sequence[str],
        Columns("other columns of the public file: records are moved whose values in these fit their new place"),
    ] = ()
    new_cells: Annotated[bool, Flag("let combinations arise that nobody has, for files with many small cells")] = False
    max_pairs: Annotated[int | None, Count("most records that move", unit="records")] = None
    effort: Annotated[
        float,
        Number(
            "how long to look for a better way, 1 being a few seconds",
            within="(0, 1000]",
            must="a number above 0, up to 1000",
        ),
    ] = 1.0

    @property
    def makes_cells(self) -> bool:
        """Whether combinations that nobody has can arise.

        >>> import quadrille as qd
        >>> qd.DesignedSwap().makes_cells, qd.DesignedSwap(coin=0.5).makes_cells
        (False, True)
        """
        return self.new_cells or self.coin > 0

    @property
    def left_out(self) -> tuple[str, ...]:
        """Columns that are in no table unless it names them.

        >>> import quadrille as qd
        >>> qd.DesignedSwap(sensitive=["AnnSal"]).left_out
        ('AnnSal',)
        """
        return (*self.steering_columns, *self.sensitive)

    @classmethod
    def curve(
        cls,
        swap: Sequence[str] = (),
        *,
        n: int = 3,
        keep: Keep = "2-way",
        prices: Sequence[float] | None = None,
        coins: Sequence[float] | None = None,
        inferences: Sequence[float] = INFERENCES,
        shares: Sequence[float] = (),
        choose: str | Sequence[str] = "random",
        seeds: int | None = None,
        seed: object = None,
        **parameters: Any,
    ) -> Curve:
        """Return the designs along the trade-off curve, for `search` and `forecast`, among any other recipes.

        At each price all cells are treated that are worth it: that gives the lower curve. At any cost, each coin leaves
        or displaces more of the records that stand alone, which costs loss and exposure and makes what an intruder
        infers uncertain. At the lowest price, each price of an inference empties more of the cells from which much
        can be read off, at little loss. Each share of `shares`, of cells chosen in the ways of `choose`, is treated at
        any cost.

        Parameters
        ----------
        swap, n : as in `DesignedSwap`.
        keep : what is kept, or a list of what to sweep; a list within the list keeps several tables at once.
        prices, coins, inferences, shares : what to sweep; each may be empty. Without prices, those at which cells are
            treated, found when the data are known: the same data have the same prices, so that a study resumes. Without
            coins, 0, 0.2, 0.5 and 1; of several tables 0 alone.
        choose : which cells a share takes: "random", "cheapest" or both.
        seeds : number of secret seeds of every design, 1 by default; `seed` gives seeds, for tests and papers.
        parameters : any other parameter of `DesignedSwap`, the same for all: `tables`, `loss`, `effort`, ... The
            effort is 0.3 unless given.

        Example
        -------
        >>> import quadrille as qd
        >>> cloud = qd.grid(qd.RandomSwap, swap=[["Edu"], ["Race"]], pairs=[244, 2442], seed=1)
        >>> curve = qd.DesignedSwap.curve(prices=[0.03, 0.3], coins=[0.5], inferences=[0.0], effort=0.1, seed=1)
        >>> measures = ["exposed", "attributed_unique", "hellinger"]
        >>> study = qd.search(qd.datasets.cps8d(), [cloud, curve], measures, out="designed", progress=False)
        >>> study.frontier("exposed", "hellinger")["method"].unique().to_list(), len(study)
        (['DesignedSwap'], 8)
        """
        coins = (COINS if len(parameters.get("tables", ())) < 2 else COINS[:1]) if coins is None else coins
        for name in ("share", "price", "coin", "inference"):
            if name in parameters:
                raise ParameterError(f"DesignedSwap.curve sweeps '{name}s' itself. Leave '{name}' out.")
        if not (shares or coins or inferences or prices or prices is None):
            raise ParameterError("DesignedSwap.curve has nothing to sweep. Give 'prices', 'coins' or 'shares'.")
        common: dict[str, Any] = {"effort": _CURVE_EFFORT, **parameters, "swap": swap, "n": n}
        known = cls(**common, seed=0).parameters()
        ways = (choose,) if isinstance(choose, str) else tuple(choose)
        return Curve(
            None if prices is None else tuple(prices),
            tuple(keep) if isinstance(keep, list | tuple) else (keep,),
            tuple(coins),
            tuple(inferences),
            tuple(shares),
            ways,
            seeds,
            seed,
            {name: known[name] for name in common},
        )

    def movement(self, data: Data) -> Movement:
        """Return the movers; kept tables, and protected ones unless new cells may arise, show nothing that nobody had.

        >>> import quadrille as qd
        >>> qd.DesignedSwap(tables=[["Age", "Edu"]], keep="1-way").movement(qd.datasets.cps8d())
        Movement(together=(('Age',), ('Edu',)), same=(), closed=(('Age',), ('Edu',), ('Age', 'Edu')), unit=None)
        """
        if self.different:
            return super().movement(data)
        layout = layout_of(self, data)
        together = tuple(axis.columns for axis in layout.axes if axis.moves)
        protected = tuple(view.variables for view in layout.views if view.protected and not self.makes_cells)
        return Movement(together, tuple(self.same), (*layout.kept, *protected))

    def stream_of(self, seed: int | str) -> Stream:
        """Return the random stream of this design with a seed; without a coin version 3 draws as version 2 did.

        >>> import quadrille as qd
        >>> words = qd.DesignedSwap(seed=7).stream_of(8).words(4)
        >>> bool((words == qd.DesignedSwap(seed=8).stream().words(4)).all())
        True
        """
        if self.coin or self.version == DesignedNeighbours.version:
            return super().stream_of(seed)
        return DesignedNeighbours(**self.parameters()).stream_of(seed)

    def prepare(self, data: Data) -> Prepared:
        """Tabulate the file."""
        if self.different:
            return super().prepare(data)
        return Prepared(CubeDraw(self, data, cube_problem(self, data)).draw)

    def check(self) -> None:
        """Refuse what does not go together."""
        super().check()
        if self.different and (self.keep != "1-way" or self.coin or self.new_cells):
            raise ParameterError(
                "'different' of DesignedSwap is about pairs of records, and exact tables are made by permutations. "
                "Use it with keep=\"1-way\", without 'coin' and 'new_cells', or leave it out."
            )
        if self.coin and len(self.tables) > 1:
            raise ParameterError("'coin' of DesignedSwap works on one protected table. Name one, or leave 'coin' out.")
        for name in self.sensitive:
            if any(name in columns for columns in (self.swap, *self.tables)):
                raise ParameterError(
                    f"{name!r} is in 'sensitive' of DesignedSwap, which is left out of the protected tables, and in "
                    "'swap' or 'tables'. Name it in one of them."
                )


@dataclass(frozen=True)
class DesignedNeighbours(DesignedSwap, earlier_version_of="DesignedSwap"):
    """Hide the small cells of a table and keep other tables exactly: the second version, with a coin that can be seen.

    Recipes of that version are read as this. Its coin displaces a record to a plausible empty neighbour: a cell to
    which few others lead, or from which few can be reached, then tells something. Without a coin both versions draw
    the same.

    Example
    -------
    >>> import quadrille as qd
    >>> recipe = qd.Recipe.from_json('{"effort":0.05,"method":"DesignedSwap","seed":7,"version":2}')
    >>> recipe.plan(qd.datasets.cps8d()) == qd.DesignedSwap(effort=0.05, seed=7).plan(qd.datasets.cps8d())
    True
    """

    version: ClassVar[int] = 2
    by_partners: ClassVar[bool] = False
