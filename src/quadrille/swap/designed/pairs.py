"""Designed swapping by pairs: the first version of the method, whose recipes still draw their plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Literal

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
from quadrille.recipe import Movement, Prepared, Recipe
from quadrille.swap.designed.draw import DesignedDraw
from quadrille.swap.designed.problem import movers_of, problem_of, protected_tables


@dataclass(frozen=True)
class DesignedPairs(Recipe, earlier_version_of="DesignedSwap"):
    """Hide the small cells of a table by pairs of records, without regard to other tables: the first version.

    Recipes of that version are read as this. `DesignedSwap` keeps tables exactly; it uses these pairs where columns
    must differ within a pair.

    Each pair exchanges one variable, or one set of `together`. A small cell gets a record from a neighbouring cell that
    differs in that variable only; its partner moves the other way between cells that are large. No other cell becomes
    small. Moves are chosen by what they cost in `loss`; then cells are treated anew while that lowers the loss.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> plan = qd.Recipe.from_json('{"method":"DesignedSwap","seed":7,"version":1}').plan(data)
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
        ColumnSets(
            "tables whose small cells are protected",
            otherwise="one, of the key variables",
            option="protect",
            moves=True,
        ),
    ] = ()
    n: Annotated[int, Count("cells of 1 to n - 1 records are small", least=2, unit="records")] = 3
    share: Annotated[float, Share("share of the small cells to treat", unit="share of the small cells")] = 1.0
    choose: Annotated[
        Literal["random", "cheapest"],
        Word("which ones: random or cheapest. Those that are not treated stay as they are, and genuine, either way"),
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
    def moved(cls, parameters: Mapping[str, object]) -> frozenset[str]:
        """Return the swap variables, or those of the tables."""
        return super().moved({"swap": parameters.get("swap", ())}) or super().moved(parameters)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Columns that are in no table unless it names them."""
        return self.steering_columns

    def movement(self, data: Data) -> Movement:
        """Return the movers; every record stays in a cell of the protected tables that was occupied."""
        tables = protected_tables(self, data)
        return Movement(movers_of(self, data, tables)[1], tuple(self.same), tuple(tables))

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
