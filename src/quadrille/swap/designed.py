"""Designed swapping: pairs chosen so that the small cells of a table are hidden at the least loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from math import inf
from typing import Literal, cast

from quadrille.data import Data
from quadrille.errors import OverlapError, ParameterError, bad_parameter
from quadrille.randomness import Seed, checked_seed
from quadrille.recipe import Drawer, Recipe, as_float, names, one_of, settle, share, whole
from quadrille.rules import rule_texts
from quadrille.swap.design import TREATMENTS, Design
from quadrille.swap.task import ground_of

_OWNER = "DesignedSwap"


@dataclass(frozen=True)
class DesignedSwap(Recipe):
    """Hide the small cells of a table: let records come in until they are no longer small, or let theirs leave.

    Each pair exchanges one variable, or one set of `together`. A small cell gets a record from a neighbouring cell that
    differs in that variable only; its partner moves the other way between cells that are large. No other cell becomes
    small. Moves are chosen by what they cost in `loss`; then cells are treated anew while that lowers the loss.

    Parameters
    ----------
    swap : variables that may move; by default those of the protected tables.
    tables : tables whose small cells are protected, as lists of variables; by default one, of the key variables.
    n : cells of 1 to n - 1 records are small.
    share : share of the small cells to treat.
    choose : which ones: "random" (an intruder cannot tell), or "cheapest" (closest to the bound).
    treatment : "cheaper" (camouflage, or empty a cell where that costs less; one that cannot be camouflaged is left),
        "either" (such a cell is emptied where that can be done), "camouflage" or "empty" (only that).
    loss : what to keep low: a loss of a table such as "hellinger", "total_variation(Age*Sex)" or "chi_square", or
        several with their weights, {"hellinger": 1, "hellinger(Age*AnnSal)": 5}.
    spread : choose at random among ways that cost up to this share more than the cheapest; 0 for always the cheapest.
    price : treat a cell only where loss + price * exposed falls, with Hellinger distances squared; None: at any cost.
    improve : treat cells anew, round by round, while that lowers the loss.
    together : sets of swap variables that move as one, [["Age", "MS"]].
    same, different : columns that must agree, or must differ, within every pair; never swap variables.
    never : name of a boolean column: records that take no part.
    rules : conditions that no record may come to meet by the swap, like ["Age<16 & MS=Widowed"].
    max_pairs : most pairs.
    seed : None for 256 secret bits; a whole number only for tests and papers.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> plan = qd.DesignedSwap(seed=7).plan(data)
    >>> scores = qd.score(data, plan, ["exposed", "hellinger"])
    >>> scores["exposed"] < 0.001, scores["hellinger"] < 0.049
    (True, True)
    """

    swap: Sequence[str] = ()
    _: KW_ONLY
    tables: Sequence[Sequence[str]] = ()
    n: int = 3
    share: float = 1.0
    choose: Literal["random", "cheapest"] = "random"
    treatment: Literal["cheaper", "camouflage", "empty", "either"] = "cheaper"
    loss: str | Mapping[str, float] = field(default="hellinger", hash=False)
    spread: float = 0.1
    price: float | None = None
    improve: bool = True
    together: Sequence[Sequence[str]] = ()
    same: Sequence[str] = ()
    different: Sequence[str] = ()
    never: str | None = None
    rules: Sequence[str] = ()
    max_pairs: int | None = None
    seed: Seed = field(default=None, repr=False)

    def __post_init__(self) -> None:
        one_of(_OWNER, "choose", self.choose, ("random", "cheapest"))
        one_of(_OWNER, "treatment", self.treatment, tuple(TREATMENTS))
        if not isinstance(cast("object", self.improve), bool):
            raise bad_parameter(_OWNER, "improve", "True or False", self.improve)
        if not isinstance(cast("object", self.never), str | None):
            raise bad_parameter(_OWNER, "never", "the name of a column", self.never)
        settle(
            self,
            {
                "swap": names(_OWNER, "swap", self.swap),
                "tables": _sets("tables", self.tables),
                "together": _sets("together", self.together),
                "same": names(_OWNER, "same", self.same),
                "different": names(_OWNER, "different", self.different),
                "rules": rule_texts(_OWNER, self.rules),
                "n": whole(_OWNER, "n", self.n, least=2),
                "share": share(_OWNER, "share", self.share),
                "loss": _loss(self.loss),
                "spread": _number("spread", self.spread, most=1.0),
                "price": None if self.price is None else _number("price", self.price),
                "max_pairs": None if self.max_pairs is None else whole(_OWNER, "max_pairs", self.max_pairs, least=1),
            },
        )
        self._refuse_overlap()
        settle(self, {"seed": checked_seed(self.seed, _OWNER)})

    @property
    def secret_columns(self) -> tuple[str, ...]:
        """The column that says who takes no part."""
        return () if self.never is None else (self.never,)

    def prepare(self, data: Data) -> Drawer:
        """Tabulate the file and find out which cells neighbour which."""
        ground, never = ground_of(self, data)
        return Drawer(Design(self, data, ground, never).draw)

    def _refuse_overlap(self) -> None:
        part: dict[str, str] = {}
        lists = {"swap": self.swap, "same": self.same, "different": self.different, "never": self.secret_columns}
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


def _sets(parameter: str, value: object) -> tuple[tuple[str, ...], ...]:
    """Check a list of lists of columns; a set may be written A*B."""
    must = "a list of lists of column names, like [['Age', 'Sex'], ['Age', 'Race']]"
    if not isinstance(value, list | tuple):
        raise bad_parameter(_OWNER, parameter, must, value)
    made: list[tuple[str, ...]] = []
    for each in cast("list[object]", value):
        listed = [name.strip() for name in each.split("*")] if isinstance(each, str) else each
        made.append(names(_OWNER, parameter, listed, least=1))
    return tuple(made)


def _loss(loss: object) -> str | dict[str, float]:
    must = 'a measure such as "hellinger(Age*Sex)", or measures with weights above 0, like {"hellinger": 1}'
    if isinstance(loss, str) and loss:
        return loss
    given = cast("Mapping[object, object]", loss)
    if not isinstance(loss, Mapping) or not given or not all(isinstance(address, str) for address in given):
        raise bad_parameter(_OWNER, "loss", must, cast("object", loss))
    made = {cast("str", address): _number("loss", weight) for address, weight in given.items()}
    if min(made.values()) <= 0:
        raise bad_parameter(_OWNER, "loss", must, cast("object", loss))
    return dict(sorted(made.items()))


def _number(parameter: str, value: object, *, most: float = inf) -> float:
    number = as_float(value)
    if not 0 <= number <= most or number == inf:
        limit = f"a number from 0 to {most:g}" if most < inf else "a number of 0 or more, not infinite"
        raise bad_parameter(_OWNER, parameter, limit, value)
    return number
