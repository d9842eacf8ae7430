"""Designed swapping: pairs chosen so that the small cells of a table are hidden at the least loss."""

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
from quadrille.recipe import Prepared, Recipe
from quadrille.swap.designed.draw import DesignedDraw
from quadrille.swap.designed.problem import problem_of


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
        Word("which ones, random (an intruder cannot tell) or cheapest (closest to the bound)"),
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
            '"total_variation(Age*Sex)" or "chi_square", or several with their weights'
        ),
    ] = field(default="hellinger", hash=False)
    spread: Annotated[
        float,
        Share(
            "choose at random among ways that cost up to this share more than the cheapest; 0 for always the cheapest",
            within="[0, 1]",
            must="a number from 0 to 1",
            unit="share of the cost",
        ),
    ] = 0.1
    price: Annotated[
        float | None,
        Number(
            "treat a cell only where loss + price * exposed falls, with Hellinger distances squared",
            must=NOT_INFINITE,
            otherwise="at any cost",
        ),
    ] = None
    improve: Annotated[bool, Flag("treat cells anew, round by round, while that lowers the loss")] = True
    together: Annotated[
        Sequence[Sequence[str]], ColumnSets('sets of swap variables that move as one, [["Age", "MS"]]')
    ] = ()
    same: Annotated[Sequence[str], Columns("columns that must agree within a pair; never swap variables")] = ()
    different: Annotated[Sequence[str], Columns("columns that must differ within a pair; never swap variables")] = ()
    never: Annotated[str | None, ColumnName("a boolean column: records that must not be touched", steers=True)] = None
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
