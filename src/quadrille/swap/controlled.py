"""Controlled random swapping for weighted surveys: drawn targets, close partners (Dohrmann et al. 2009)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from math import inf
from typing import Literal, cast

from quadrille.data import Data
from quadrille.errors import OverlapError, ParameterError, bad_parameter
from quadrille.randomness import Seed, checked_seed
from quadrille.recipe import Drawer, Recipe, as_float, names, one_of, settle
from quadrille.rules import rule_texts
from quadrille.swap.control import Control


@dataclass(frozen=True)
class ControlledSwap(Recipe):
    """Draw targets by a probability design and exchange values with close partners of similar weight.

    Cells are the observed combinations of boundary and swap variables in category order. A target looks into the
    nearest cell with a free donor on either side, takes the donor with the closest weight in each, and of the two the
    one with the smaller swapping bias |w_t - w_d| * |x_t - x_d|. A donor wanted by several goes to the smallest bias.
    Levels of geography travel together: swapping one carries the others along, but for those in `boundary`.

    Parameters
    ----------
    swap : categorical variables; the right-most changes most often.
    targets : share of records drawn as targets, in [0, 0.5), or a column that is constant within stratum. Up to twice
        that share of records changes.
    size : measure of size for the draw, a column of numbers above 0; records at risk get more.
    must, never : names of boolean columns: targets for certain; neither targets nor donors.
    stratum : columns that bind the draw of targets; donors may come from any stratum.
    sort : columns to sort by within stratum before the systematic draw; by default the cells.
    boundary : columns on which partners agree; never swapped.
    bias : the variable x of the bias; by default the right-most swap variable. The balanced method ignores it.
    linked : {swap variable: [columns that travel with it]}, exchanged in pairs that differ on the swap variable.
    method : "standard", or "balanced": groups of records, one for each swap variable, in which it is right-most.
    matching : "greedy", the published search, or "optimal": most pairs, then least total cost over near donors.
    cost : weights of the optimal cost, {"distance": 1, "weight": 1, "bias": 1}; a part that is left out counts 0.
    on_missing : "impute" (missing swap values get a value drawn from their zone, for cells and bias only) or
        "category" (missing is a category of its own, last in order).
    rules : plausibility rules, such as "Age<16 & MS=Widowed": a donor with whom the target or itself would come to meet
        one is passed over. Values are judged as they are, before any imputation.
    strict : raise an error when a target has no partner; by default it is left as it is, listed and counted.
    seed : None for 256 secret bits; a whole number only for tests and papers.

    Example
    -------
    >>> import quadrille as qd
    >>> data = qd.datasets.cps8d()
    >>> plan = qd.ControlledSwap(["Race", "Edu"], targets=0.01, boundary=["Sex"], seed=7).plan(data)
    >>> len(plan.pairs)
    488

    Reference: Dohrmann, Krenzke, Roey & Russell, Evaluating the Impact of Data Swapping Using Global Utility Measures,
    Proceedings of the Federal Committee on Statistical Methodology Research Conference, 2009.
    """

    swap: Sequence[str]
    _: KW_ONLY
    targets: float | str
    size: str | Literal[1] = 1
    must: str | None = None
    never: str | None = None
    stratum: Sequence[str] = ()
    sort: Sequence[str] = ()
    boundary: Sequence[str] = ()
    bias: str | None = None
    linked: Mapping[str, Sequence[str]] | None = field(default=None, hash=False)
    method: Literal["standard", "balanced"] = "standard"
    matching: Literal["greedy", "optimal"] = "greedy"
    cost: Mapping[str, float] | None = field(default=None, hash=False)
    on_missing: Literal["impute", "category"] = "impute"
    rules: Sequence[str] = ()
    strict: bool = False
    seed: Seed = field(default=None, repr=False)

    def __post_init__(self) -> None:
        owner = "ControlledSwap"
        one_of(owner, "method", self.method, ("standard", "balanced"))
        one_of(owner, "matching", self.matching, ("greedy", "optimal"))
        one_of(owner, "on_missing", self.on_missing, ("impute", "category"))
        lists = {
            "swap": names(owner, "swap", self.swap, least=1),
            "stratum": names(owner, "stratum", self.stratum),
            "sort": names(owner, "sort", self.sort),
            "boundary": names(owner, "boundary", self.boundary),
        }
        settle(self, lists)
        settle(self, {"targets": _share_or_column(self.targets), "linked": _linked(self.linked)})
        settle(self, {"cost": _cost(self.cost, self.matching), "rules": rule_texts(owner, self.rules)})
        for name in ("must", "never", "bias"):
            if not isinstance(getattr(self, name), str | None):
                raise bad_parameter(owner, name, "the name of a column", getattr(self, name))
        size = cast("object", self.size)
        if not isinstance(size, str) and (isinstance(size, bool) or size != 1):
            raise bad_parameter(owner, "size", "the name of a column, or 1 for equal sizes", size)
        if not isinstance(cast("object", self.strict), bool):
            raise bad_parameter(owner, "strict", "True or False", self.strict)
        self._refuse_overlap()
        settle(self, {"seed": checked_seed(self.seed, owner)})

    def prepare(self, data: Data) -> Drawer:
        """Check the parameters against the data and number the cells."""
        return Drawer(Control(self, data).draw)

    @property
    def secret_columns(self) -> tuple[str, ...]:
        """Columns that say who is a target, who never is, or how many are."""
        return tuple(name for name in (self.targets, self.must, self.never) if isinstance(name, str))

    @property
    def followers(self) -> Mapping[str, Sequence[str]]:
        """The linked columns by their swap variable.

        >>> import quadrille as qd
        >>> qd.ControlledSwap(["Edu"], targets=0.01, linked={"Edu": ["AnnSal"]}).followers
        {'Edu': ('AnnSal',)}
        """
        return self.linked or {}

    def _refuse_overlap(self) -> None:
        parts: dict[str, str] = {}
        linked = {name: "linked" for followers in self.followers.values() for name in followers}
        listed = [*((n, "swap") for n in self.swap), *((n, "boundary") for n in self.boundary), *linked.items()]
        for name, part in listed:
            if name in parts:
                raise OverlapError(
                    f"Column {name!r} is in both '{parts[name]}' and '{part}' of ControlledSwap. "
                    "A column can be swapped, be a boundary or be linked, not two of these."
                )
            parts[name] = part
        steering = [(name, "targets, must or never") for name in self.secret_columns]
        for name, part in steering:
            if name in parts:
                raise OverlapError(
                    f"Column {name!r} is in both '{parts[name]}' and '{part}' of ControlledSwap. What steers the draw "
                    "is left out of the public file, so it cannot be released in another part."
                )
        for parent in self.followers:
            if parent not in self.swap:
                raise ParameterError(f"'linked' of ControlledSwap names {parent!r}, which is not a swap variable.")
        if self.must is not None and self.must == self.never:
            raise OverlapError(f"Column {self.must!r} is both 'must' and 'never' of ControlledSwap. Use two columns.")


def _share_or_column(targets: object) -> float | str:
    if isinstance(targets, str):
        return targets
    number = as_float(targets)
    if not 0 <= number < 0.5:
        raise bad_parameter("ControlledSwap", "targets", "a number in [0, 0.5) or the name of a column", targets)
    return number


def _linked(linked: object) -> dict[str, tuple[str, ...]] | None:
    if linked is None or linked == {}:
        return None
    must = "like {'Edu': ['Degree', 'Years']}: columns that travel with a swap variable, each named once"
    given = _mapping("linked", must, linked)
    made = {parent: names("ControlledSwap", "linked", each, least=1) for parent, each in given.items()}
    listed = [name for followers in made.values() for name in followers]
    if len(set(listed)) != len(listed):
        raise bad_parameter("ControlledSwap", "linked", must, dict(given))
    return dict(sorted(made.items()))


def _cost(cost: object, matching: str) -> dict[str, float] | None:
    if cost is None:
        return None
    if matching != "optimal":
        raise ParameterError("The 'cost' parameter of ControlledSwap belongs to matching=\"optimal\". Set both.")
    must = "like {'distance': 1, 'weight': 1, 'bias': 1}: numbers of 0 or more, not all 0"
    made: dict[str, float] = {}
    for name, value in _mapping("cost", must, cost).items():
        number = as_float(value)
        if name not in ("distance", "weight", "bias") or not 0 <= number < inf:
            raise bad_parameter("ControlledSwap", "cost", must, cost)
        made[name] = number
    if not any(made.values()):
        raise bad_parameter("ControlledSwap", "cost", must, cost)
    return dict(sorted(made.items()))


def _mapping(parameter: str, must: str, value: object) -> Mapping[str, object]:
    given = cast("Mapping[object, object]", value)
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in given):
        raise bad_parameter("ControlledSwap", parameter, must, given)
    return cast("Mapping[str, object]", given)
